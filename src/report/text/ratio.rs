//! The choice between aggregated and disaggregated serving, with the throughput of the alternative.

use super::page::{heading, paragraph};
use crate::quantity::tolerance::SUMMED;
use crate::report::number::{change, format_metric};
use crate::report::ratio::SplitAdvice;
use crate::report::result::{OptimizeResult, ReportedDeployment};
use crate::spec::objective::Metric;

/// The section; empty if there is no choice to report.
pub fn ratio(answer: &OptimizeResult, best: &ReportedDeployment) -> String {
    let router = super::screen::router(answer)
        .map_or_else(String::new, |line| heading("Custom router", "") + &paragraph(&line));
    let Some(ratio) = &answer.split_ratio else { return router };
    let now = best.figure(Metric::OutputTokS).unwrap_or(f64::NAN);
    let against =
        |value: f64| format!("{} ({})", format_metric(Metric::OutputTokS, value), change(now, value));
    let split = ratio.split_plan.as_deref().zip(ratio.split_output_tok_s);
    let disaggregated =
        |(plan, value): (&str, f64)| format!("the best disaggregated plan, {plan}, gives {}", against(value));
    let each = ratio.one_shape_each_output_tok_s.filter(|each| (each - now).abs() > SUMMED * now);
    let each = each.map(|each| {
        format!("one prefill configuration and one decode configuration give at most {}", against(each))
    });
    let verdict = match (ratio.verdict, split, each) {
        (SplitAdvice::DoNotSplit, Some(split), _) => {
            format!("Aggregated. Disaggregated: {}", disaggregated(split))
        }
        (SplitAdvice::DoNotSplit, None, _) => "Aggregated: no disaggregated plan meets the SLO".to_string(),
        (SplitAdvice::SplitWithBoth, Some((plan, value)), each) => {
            let each = each.map_or_else(String::new, |each| format!("; {each}"));
            format!(
                "Disaggregated, leftover devices serve aggregated; without them {}{each}",
                disaggregated((plan, value))
            )
        }
        (_, _, Some(each)) => format!("Disaggregated with mixed parallel configurations; {each}"),
        (_, _, None) => return router,
    };
    router + &heading("Prefill/decode disaggregation", "") + &paragraph(&verdict)
}
