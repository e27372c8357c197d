//! The Pareto front as a small plot, with the option that saves all of it.

use super::page::{heading, indent, paragraph};
use crate::report::number::{count, percent, word};
use crate::report::plot::{Mark, plot};
use crate::report::result::{OptimizeResult, ReportedDeployment};
use crate::report::table::grouped;
use crate::spec::objective::{Metric, MetricFormat};
use crate::spec::role::Role;

/// Metrics for the horizontal axis, in order of preference.
const ACROSS: [Metric; 4] = [Metric::Tpot, Metric::OutputTokSPerUser, Metric::Ttft, Metric::E2e];
/// Metrics for the vertical axis, in order of preference.
const UP: [Metric; 7] = [
    Metric::OutputTokSPerDevice,
    Metric::OutputTokS,
    Metric::UsdPerMtok,
    Metric::TokPerJoule,
    Metric::Watts,
    Metric::MaxContext,
    Metric::Devices,
];

/// The two metrics of a plot of the front: horizontal and vertical; `None` where fewer are requested. Stated ones are
/// taken as they are, the first two.
pub fn axes(answer: &OptimizeResult) -> Option<(Metric, Metric)> {
    let known: Vec<Metric> =
        answer.question.pareto.iter().filter_map(|name| Metric::parse(name).ok()).collect();
    if answer.states_axes() {
        return known.first().copied().zip(known.get(1).copied());
    }
    let first = |wanted: &[Metric]| wanted.iter().copied().find(|metric| known.contains(metric));
    let (across, up) = (first(&ACROSS), first(&UP));
    match (across, up) {
        // As tok/s per user, the inverse of TPOT: up and right are better on both axes.
        (Some(Metric::Tpot), Some(up)) => Some((Metric::OutputTokSPerUser, up)),
        (Some(across), Some(up)) => Some((across, up)),
        // Two latencies, or two throughputs.
        _ if known.len() > 1 => Some((known[0], known[1])),
        _ => None,
    }
}

/// The label of a metric on an axis, with its unit.
pub fn label(metric: Metric) -> String {
    match metric.entry().format {
        MetricFormat::Time => format!("{} ms", word(metric)),
        MetricFormat::Number | MetricFormat::Count | MetricFormat::Tokens => word(metric).to_string(),
    }
}

/// Of an optimum that its front does not list.
const OUTSIDE: &str =
    "the selected plan is not on it: it is best by the objective, and others are better on these axes";

const AGGREGATED: char = 'o';
const DISAGGREGATED: char = 'x';
const BEST: char = '#';

/// Whether prefill and decode have workers of their own.
pub fn is_disaggregated(point: &ReportedDeployment) -> bool {
    point.plan.prefill.role == Role::Prefill
}

/// How much of a thinned front is listed; `None` where all of it is.
pub fn front_listed(answer: &OptimizeResult) -> Option<String> {
    let thinning = answer.front_thinning.as_ref()?;
    let (listed, all) = (grouped(answer.front.len() as u64), count(answer.front_points, "configuration"));
    let near =
        thinning.tolerance.map(|near| format!(", each other one within {} of one of them", percent(near)));
    Some(format!("{listed} of {all} on the front{}", near.unwrap_or_default()))
}

/// The front: number of configurations, axes, and a plot over two of the axes.
pub fn front(answer: &OptimizeResult, best: &ReportedDeployment) -> String {
    let names = &answer.question.pareto;
    let points = &answer.front;
    let all = count(answer.front_points, "configuration");
    let title = format!("{} over {}", front_listed(answer).unwrap_or(all), names.join(", "));
    let mut text =
        heading("Pareto front", "") + &paragraph(&format!("{title}; save with --pareto-out front.csv"));
    if answer.outside_front().is_some() {
        text.push_str(&paragraph(OUTSIDE));
    }
    let Some((across, up)) = axes(answer) else { return text };
    let mark = |point: &ReportedDeployment, sign| {
        Some(Mark { x: point.figure(across)?, y: point.figure(up)?, sign })
    };
    let (split, whole): (Vec<&ReportedDeployment>, Vec<&ReportedDeployment>) =
        points.iter().partition(|point| is_disaggregated(point));
    let kind = |points: &[&ReportedDeployment], sign| -> Vec<Mark> {
        points.iter().filter_map(|point| mark(point, sign)).collect()
    };
    // The rarer kind is drawn over the other, the selected configuration over both.
    let mut kinds = [kind(&whole, AGGREGATED), kind(&split, DISAGGREGATED)];
    kinds.sort_by_key(|marks| std::cmp::Reverse(marks.len()));
    let mut marks = kinds.concat();
    marks.extend(mark(best, BEST));
    let drawn = plot(&marks, (&label(across), &label(up)));
    if drawn.is_empty() {
        return text;
    }
    text.push_str(&indent(&drawn, 2));
    let drawn_all = answer.front_thinning.is_none();
    let number_of = |points: &[&ReportedDeployment]| {
        if drawn_all { format!(" ({})", grouped(points.len() as u64)) } else { String::new() }
    };
    let mut legend = format!(
        "{BEST} selected   {AGGREGATED} aggregated{}   {DISAGGREGATED} disaggregated{}",
        number_of(&whole),
        number_of(&split)
    );
    if !drawn_all {
        legend.push_str(&format!("   {} drawn", grouped(points.len() as u64)));
    }
    text + &indent(&legend, 13)
}
