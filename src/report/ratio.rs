//! The choice between aggregated and disaggregated serving, from the plans that the search tried.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::plan;
use crate::search::family::StrategyFamily;
use crate::search::mixed::MixResult;
use crate::search::outcome::Outcome;
use crate::search::point::place;
use crate::spec::objective::Metric;

/// Whether to disaggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SplitAdvice {
    /// Aggregated: every replica does prefill and decode.
    DoNotSplit,
    /// Disaggregated: prefill and decode workers.
    Split,
    /// Disaggregated, with aggregated replicas on the leftover devices.
    SplitWithBoth,
}

/// Aggregated or disaggregated serving, when maximizing throughput.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SplitRatio {
    /// Whether to disaggregate.
    pub verdict: SplitAdvice,
    /// The best fully disaggregated plan; null if none meets the SLO.
    pub split_plan: Option<String>,
    /// Its output, tokens per second.
    pub split_output_tok_s: Option<f64>,
    /// Maximum output of one prefill and one decode configuration, if throughput is the objective.
    pub one_shape_each_output_tok_s: Option<f64>,
    /// Constraints of the integer program that the plan was checked against, all satisfied.
    pub rows_checked: u64,
}

pub fn split_ratio(outcome: &Outcome) -> Option<SplitRatio> {
    let MixResult { disaggregated, one_shape_each, rows_checked, .. } = outcome.ratio.as_ref()?;
    let verdict = match StrategyFamily::of(&outcome.best.as_ref()?.candidate) {
        StrategyFamily::Split => SplitAdvice::Split,
        _ if outcome.best.as_ref()?.candidate.is_disaggregated() => SplitAdvice::SplitWithBoth,
        _ => SplitAdvice::DoNotSplit,
    };
    Some(SplitRatio {
        verdict,
        split_plan: disaggregated.as_ref().map(|found| plan(&found.candidate).label),
        split_output_tok_s: disaggregated.as_ref().map(|found| found.point[place(Metric::OutputTokS)]),
        one_shape_each_output_tok_s: *one_shape_each,
        rows_checked: *rows_checked,
    })
}
