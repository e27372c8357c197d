//! The measurements behind a plan, and a better plan without any.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number::{count, digits, format_metric, percent};
use super::result::ReportedDeployment;
use crate::search::candidate::Candidate;
use crate::search::problem::Problem;
use crate::spec::evidence::{EvidenceScope, KIND_DEGREES, MeasuredKind};
use crate::spec::objective::Metric;

/// Measured runs of the kind of a plan: those with the same roles and degrees in use, none larger, of models with or
/// without experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanEvidence {
    /// Number of runs: of the role with the fewest. 0 where this kind was never measured.
    pub rows: u64,
    /// Where they were measured; null where models of this class never were.
    pub scope: Option<EvidenceScope>,
}

impl PlanEvidence {
    pub fn of(problem: &Problem, candidate: &Candidate) -> PlanEvidence {
        let scope = problem.space.kinds.as_ref().map(|kinds| kinds.scope);
        PlanEvidence { rows: problem.space.rows_of(candidate), scope }
    }

    /// In words.
    pub fn words(&self) -> String {
        let place = match self.scope {
            Some(EvidenceScope::Here) | None => "",
            Some(EvidenceScope::Runtime) => " on other devices",
            Some(EvidenceScope::Elsewhere) => " of other runtimes",
        };
        match self.rows {
            0 => "no measured run of its kind".to_owned(),
            rows => format!("{} of its kind{place}", count(rows, "measured run")),
        }
    }
}

/// A plan that is better by the prediction, of a kind that was never measured.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UntriedPlan {
    /// The plan.
    pub deployment: ReportedDeployment,
    /// The metric of the comparison.
    pub metric: Metric,
}

impl UntriedPlan {
    /// In one line.
    pub fn words(&self) -> String {
        let promise = promise(&self.deployment, self.metric);
        format!("{promise}; no measured run of this kind: try it first")
    }
}

/// A plan with its value of a metric, the interval of that, and its odds.
fn promise(one: &ReportedDeployment, metric: Metric) -> String {
    let value = one.figure(metric).map_or_else(String::new, |value| format_metric(metric, value));
    let ends = one.intervals.as_ref().and_then(|known| known.get(metric));
    let ends =
        ends.map_or_else(String::new, |ends| format!(" ({} to {})", digits(ends.p10), digits(ends.p90)));
    let odds = one.slo_odds.map_or_else(String::new, |odds| format!(", SLO odds {}", percent(odds.all)));
    format!("{} may give {value}{ends}{odds}", one.plan.label)
}

/// How a simpler plan compares with the optimum of the formulas, to which it is equal within the error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimplerChoice {
    /// Share of draws from the intervals of both, whose errors have half of their variance in common, in which it is the
    /// better one: 0.4 at least.
    pub wins: f64,
    /// The metric of the comparison.
    pub metric: Metric,
}

impl SimplerChoice {
    /// The optimum of the formulas in one line.
    pub fn words(&self, optimum: &ReportedDeployment) -> String {
        let promise = promise(optimum, self.metric);
        format!(
            "{promise}; within the error: the simpler plan is better in {} of the draws",
            percent(self.wins)
        )
    }
}

pub const KINDS: [&str; 7] = ["runtime", "devices", "models", "drafts", "role", "degrees", "runs"];

/// A row of [`KINDS`].
pub fn kind_cells(one: &MeasuredKind) -> Vec<String> {
    let degrees = KIND_DEGREES.iter().zip(one.largest()).filter(|(_, most)| *most > 1);
    let degrees: Vec<String> = degrees.map(|(degree, most)| format!("{} ≤ {most}", degree.key())).collect();
    let degrees = if degrees.is_empty() { "one device".into() } else { degrees.join(", ") };
    vec![
        one.runtime.clone(),
        format!("{} {}", one.vendor, one.class),
        if one.experts { "with experts" } else { "dense" }.into(),
        if one.drafts { "yes" } else { "no" }.into(),
        one.role.name().into(),
        degrees,
        one.rows.to_string(),
    ]
}
