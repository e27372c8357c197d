//! How far an answer is proved: what nothing is better than, and how far the best is from that.

use schemars::JsonSchema;
use serde::Serialize;

use super::space::{Space, space};
use crate::search::outcome::{Outcome, Status};
use crate::search::point::place;
use crate::search::question::Problem;

/// Why a search ended before it had seen everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// Its time was up.
    TimeLimit,
    /// It was interrupted.
    Interrupt,
    /// Hardly any memory was left.
    Memory,
}

/// What is proved.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Proof {
    /// Column of the objective's first metric, in whose unit the bound is.
    pub metric: Option<String>,
    /// No deployment is better; null where there is none, or nobody can tell.
    pub bound: Option<f64>,
    /// How far the best may be from the bound, as a fraction of the best.
    pub gap: Option<f64>,
    /// What proves it.
    pub proved_by: String,
    /// What ended the search before it had seen everything; null where it had.
    pub stopped_by: Option<StoppedBy>,
    /// The plans that it is the best of, and what is not among them.
    pub space: Space,
}

/// What `outcome` proves.
pub fn proof(question: &Problem, outcome: &Outcome) -> Proof {
    let metric = question.aims.first().map(|aim| aim.metric);
    let scale = metric.map_or(1.0, |metric| metric.entry().scale);
    let found = metric.zip(outcome.best.as_ref()).map(|(metric, best)| best.point[place(metric)]);
    let gap = found.filter(|found| found.is_finite()).zip(outcome.bound).map(|(found, bound)| {
        let far = (found - bound).abs();
        if far == 0.0 { 0.0 } else { far / found.abs() }
    });
    // Of nothing no part can be told: what is free has no gap in per cent.
    let gap = gap.filter(|gap| gap.is_finite());
    let proved_by = match (outcome.status, outcome.bound) {
        (Status::Optimal, _) => "exhaustive search: every plan was evaluated or pruned by a bound",
        (Status::Infeasible, _) => "exhaustive search: every plan was evaluated, or its bound misses an SLO",
        (_, Some(_)) => {
            "bounds of the remaining plans: latency of one request, throughput at the concurrency that fits"
        }
        (_, None) => "no bound: the remaining plans have none, or none of them meets the SLOs",
    };
    Proof {
        metric: metric.map(|metric| metric.entry().column.to_string()),
        bound: outcome.bound.map(|bound| bound / scale),
        gap,
        proved_by: proved_by.to_string(),
        stopped_by: None,
        space: space(question, outcome),
    }
}
