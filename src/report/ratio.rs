//! Whether prompts and answers are apart, and what other ratios would give. Knows no search: it is handed what was tried.

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::plan;
use crate::search::family::StrategyFamily;
use crate::search::mixed::MixResult;
use crate::search::outcome::Outcome;
use crate::search::point::place;
use crate::spec::objective::Metric;

/// Whether to split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SplitAdvice {
    /// Every instance does both.
    DoNotSplit,
    /// Prompts and answers are apart.
    Split,
    /// They are apart, and instances that do both use what is left.
    SplitWithBoth,
}

/// Prompts and answers apart or not, where as many requests as there may be are to be served.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SplitRatio {
    /// Whether to split.
    pub verdict: SplitAdvice,
    /// The best plan with all prompts and answers apart; null where none keeps the limits.
    pub split_plan: Option<String>,
    /// Its output.
    pub split_output_tok_s: Option<f64>,
    /// The most of a split of one shape of prompt instance and one of answering instance, where output is what counts.
    pub one_shape_each_output_tok_s: Option<f64>,
    /// Rows of the integer programme that the plan was checked against, all of them kept.
    pub rows_checked: u64,
}

/// What is told of the ratio.
pub fn split_ratio(outcome: &Outcome) -> Option<SplitRatio> {
    let MixResult { apart, one_shape_each, rows_checked, .. } = outcome.ratio.as_ref()?;
    let verdict = match StrategyFamily::of(&outcome.best.as_ref()?.candidate) {
        StrategyFamily::Split => SplitAdvice::Split,
        _ if outcome.best.as_ref()?.candidate.apart() => SplitAdvice::SplitWithBoth,
        _ => SplitAdvice::DoNotSplit,
    };
    Some(SplitRatio {
        verdict,
        split_plan: apart.as_ref().map(|found| plan(&found.candidate).label),
        split_output_tok_s: apart.as_ref().map(|found| found.point[place(Metric::OutputTokS)]),
        one_shape_each_output_tok_s: *one_shape_each,
        rows_checked: *rows_checked,
    })
}
