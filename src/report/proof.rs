//! Optimality proof of a result: the bound, and the gap of the best to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::space::{Space, space};
use crate::search::outcome::{Outcome, Status};
use crate::search::point::place;
use crate::search::problem::Problem;

/// Reason why a search ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// The time limit.
    TimeLimit,
    /// An interrupt.
    Interrupt,
    /// Lack of memory.
    Memory,
}

/// The proof.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Column of the objective's first metric, in whose unit the bound is.
    pub metric: Option<String>,
    /// No deployment is better; null if there is no bound.
    pub bound: Option<f64>,
    /// Gap between best and bound, as a fraction of the best.
    pub gap: Option<f64>,
    /// Description of the proof.
    pub proved_by: String,
    /// Reason for an early end of the search; null if it was complete.
    pub stopped_by: Option<StoppedBy>,
    /// The search space, and the plans outside it.
    pub space: Space,
}

/// The gap between a result and its bound, as a fraction of the result.
pub fn gap_between(found: f64, bound: f64) -> f64 {
    let far = (found - bound).abs();
    if far == 0.0 { 0.0 } else { far / found.abs() }
}

pub fn proof(problem: &Problem, outcome: &Outcome) -> Proof {
    let metric = problem.objective.first().map(|term| term.metric);
    let scale = metric.map_or(1.0, |metric| metric.entry().scale);
    let found = metric.zip(outcome.best.as_ref()).map(|(metric, best)| best.point[place(metric)]);
    let gap = found.filter(|found| found.is_finite()).zip(outcome.bound);
    let gap = gap.map(|(found, bound)| gap_between(found, bound));
    // A relative gap to 0 is undefined.
    let gap = gap.filter(|gap| gap.is_finite());
    let proved_by = match (outcome.status, outcome.bound) {
        (Status::Optimal, _) => "exhaustive search: every plan was evaluated or pruned by a bound",
        (Status::Infeasible, _) => "exhaustive search: every plan was evaluated, or its bound misses an SLO",
        (_, Some(_)) => {
            "bounds of the remaining plans: latency of one request, throughput at the concurrency that fits, or all FLOPs \
             at the dense peak"
        }
        (_, None) => "no bound: the remaining plans have none, or none of them meets the SLOs",
    };
    Proof {
        metric: metric.map(|metric| metric.entry().column.to_string()),
        bound: outcome.bound.map(|bound| bound / scale),
        gap,
        proved_by: proved_by.to_string(),
        stopped_by: None,
        space: space(problem, outcome),
    }
}
