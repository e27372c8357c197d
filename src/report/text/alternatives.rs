//! The best configuration and its runners-up, and the choice between aggregated and disaggregated serving.

use super::page::{WIDTH, heading, indent, paragraph, remainder, shorten, wrap};
use crate::quantity::tolerance::SUMMED;
use crate::report::number::{change, digits, format_metric, requests, word};
use crate::report::ratio::SplitAdvice;
use crate::report::result::{OptimizeResult, ReportedDeployment};
use crate::report::table::{grouped, table};
use crate::spec::objective::{Direction, Metric};

/// Runners-up shown; the JSON has all of them.
const LISTED: usize = 5;

/// Width of the plan column, in characters.
const PLAN: usize = 32;

const COMPARED: [Metric; 7] = [
    Metric::OutputTokS,
    Metric::Ttft,
    Metric::Tpot,
    Metric::E2e,
    Metric::UsdPerMtok,
    Metric::TokPerJoule,
    Metric::Devices,
];

/// Difference from the best: first the objective's metric, then the metrics that are better.
fn trade(best: &ReportedDeployment, other: &ReportedDeployment, objective: Option<Metric>) -> String {
    let both = |metric: Metric| Some((best.figure(metric)?, other.figure(metric)?));
    let spell = |metric: Metric, from: f64, to: f64| {
        let change = if from == to { "unchanged".to_string() } else { change(from, to) };
        format!("{} {change}", word(metric))
    };
    let loss = objective.and_then(|objective| both(objective).map(|(from, to)| spell(objective, from, to)));
    let better = COMPARED.into_iter().filter(|metric| Some(*metric) != objective).filter_map(|metric| {
        let (from, to) = both(metric)?;
        let gain = match metric.entry().direction {
            Direction::Minimize => from - to,
            Direction::Maximize => to - from,
        };
        // A gain below 1 % is not reported.
        (gain / from.abs() >= 0.01).then(|| spell(metric, from, to))
    });
    let better: Vec<String> = better.collect();
    let gains = if better.is_empty() {
        "no metric better".to_string()
    } else {
        format!("better: {}", better.join(", "))
    };
    format!("{}; {gains}", loss.unwrap_or_else(|| "objective metric unknown".to_string()))
}

/// The table of configurations, two lines for each runner-up.
pub fn alternatives(answer: &OptimizeResult, best: &ReportedDeployment) -> String {
    let others = &answer.alternatives;
    if others.is_empty() {
        return String::new();
    }
    let objective = answer.question.optimize.first().map(|term| term.metric);
    // The objective's own metric is the last column, unless it already has one.
    let last = match objective {
        None | Some(Metric::OutputTokS | Metric::Ttft | Metric::Tpot | Metric::Devices) => Metric::UsdPerMtok,
        Some(objective) => objective,
    };
    let header = ["plan", "weights", "conc.", "devices", "tok/s", "TTFT ms", "TPOT ms", last.entry().heading];
    let figure = |other: &ReportedDeployment, metric| other.figure(metric).map_or_else(String::new, digits);
    let row = |other: &ReportedDeployment| {
        vec![
            shorten(&other.plan.label, PLAN),
            other.weight_format.clone(),
            requests(other.concurrency),
            grouped(other.devices),
            figure(other, Metric::OutputTokS),
            figure(other, Metric::Ttft),
            figure(other, Metric::Tpot),
            figure(other, last),
        ]
    };
    let listed = &others[..others.len().min(LISTED)];
    let lines = table(&header, std::iter::once(best).chain(listed).map(row));
    let mut text = heading("Top configurations", &remainder(others.len(), LISTED, "in --format json"));
    for (place, line) in lines.lines().enumerate() {
        text.push_str(&indent(line, 2));
        if let Some(other) = place.checked_sub(2).and_then(|place| listed.get(place)) {
            let long = other.plan.label.chars().count() > PLAN;
            let plan = if long { format!("{}: ", other.plan.label) } else { String::new() };
            text.push_str(&wrap(&format!("{plan}{}", trade(best, other, objective)), WIDTH, 6, 6));
        }
    }
    text
}

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
        (SplitAdvice::DoNotSplit, None, _) if answer.proof.space.measured_kinds_only => {
            "Aggregated: no disaggregated plan of a measured kind meets the SLOs".to_string()
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
