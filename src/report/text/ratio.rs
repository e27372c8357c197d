//! Whether prompts and answers are apart, and what another ratio would give.

use super::page::{heading, paragraph};
use crate::report::number::{change, told};
use crate::report::ratio::SplitAdvice;
use crate::report::result::{OptimizeResult, ReportedDeployment};
use crate::spec::objective::Metric;

/// Outputs that differ by less are the same.
const CLOSE: f64 = 1e-9;

/// The section; empty where there is no ratio to choose, or the plan says all of it.
pub fn ratio(answer: &OptimizeResult, best: &ReportedDeployment) -> String {
    let Some(ratio) = &answer.split_ratio else { return String::new() };
    let now = best.figure(Metric::OutputTokS).unwrap_or(f64::NAN);
    let against = |value: f64| format!("{} ({})", told(Metric::OutputTokS, value), change(now, value));
    let split = ratio.split_plan.as_deref().zip(ratio.split_output_tok_s);
    let apart = |(plan, value): (&str, f64)| format!("the best split, {plan}, gives {}", against(value));
    let each = ratio.one_shape_each_output_tok_s.filter(|each| (each - now).abs() > CLOSE * now);
    let each = each
        .map(|each| format!("one shape that prefills and one that decodes give at most {}", against(each)));
    let verdict = match (ratio.verdict, split, each) {
        (SplitAdvice::DoNotSplit, Some(split), _) => format!("do not split: {}", apart(split)),
        (SplitAdvice::DoNotSplit, None, _) => "do not split: no split keeps the limits".to_string(),
        (SplitAdvice::SplitWithBoth, Some((plan, value)), each) => {
            let each = each.map_or_else(String::new, |each| format!("; {each}"));
            format!("split, and what is left does both; without that {}{each}", apart((plan, value)))
        }
        (_, _, Some(each)) => format!("split in several shapes; {each}"),
        (_, _, None) => return String::new(),
    };
    heading("Prompts and answers apart", "") + &paragraph(&verdict)
}
