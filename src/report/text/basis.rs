//! The basis of a result: lower weight formats, sources of its inputs, search space and candidate counts.

use std::collections::BTreeMap;

use super::page::{WIDTH, heading, paragraph, shorten, wrap};
use crate::quantity::datum::Grade;
use crate::report::audit::AuditSection;
use crate::report::bounds::{PriceBound, PriceBounds};
use crate::report::number::{change, count, digits, format_metric};
use crate::report::result::{OptimizeResult, ReportedDeployment};
use crate::report::space::Space;
use crate::report::table::grouped;
use crate::search::outcome::Census;
use crate::spec::objective::{Direction, Metric};

/// Gain of the next lower weight format, with its published quality.
pub fn lower_format(answer: &OptimizeResult) -> String {
    let Some(lower) = &answer.lower_format else { return String::new() };
    let metric = Metric::parse(&lower.metric).ok();
    let shown = |value: f64| match metric {
        Some(metric) => format_metric(metric, value),
        None => format!("{} {}", digits(value), lower.metric),
    };
    let gain = match (lower.now, lower.then) {
        (Some(now), Some(then)) => {
            let better = metric.is_some_and(|metric| match metric.entry().direction {
                Direction::Minimize => then < now,
                Direction::Maximize => then > now,
            });
            let verdict = if better { "" } else { ": no gain" };
            format!("{} instead of {} ({}){verdict}", shown(then), digits(now), change(now, then))
        }
        (None, Some(then)) => format!("feasible, with {}", shown(then)),
        (_, None) => "also infeasible".to_string(),
    };
    let name = &lower.weight_format;
    let mut text = heading("Lower-precision weights", "not considered by default");
    let bits = digits(lower.bits_per_weight);
    text.push_str(&paragraph(&format!(
        "{name}, {bits} bits per weight including scales: {gain} (--weight-format {name})"
    )));
    if lower.then.is_none() {
        return text;
    }
    let quality = lower.quality.as_ref().map_or_else(
        || "no published quality figure in the catalogue".to_string(),
        |quality| {
            let crate::spec::format::Quality { metric, value, model, source } = quality;
            format!("published quality: {metric} {value}, on {model}; {source}")
        },
    );
    text + &paragraph(&quality)
}

/// Characters of a source that are shown.
const SOURCE: usize = 260;

/// Inputs of the metrics counted by grade, and the assumed ones grouped by source.
pub fn assumptions(evidence: &BTreeMap<Grade, u64>, audit: Option<&AuditSection>) -> String {
    let Some((weakest, _)) = evidence.last_key_value() else { return String::new() };
    let all: u64 = evidence.values().sum();
    let by: Vec<String> =
        evidence.iter().map(|(grade, count)| format!("{} {grade}", grouped(*count))).collect();
    let figures = format!("{}: {}; weakest: {weakest}", count(all, "input"), by.join(", "));
    let mut text = heading("Sources", "") + &paragraph(&figures);
    let mut sources: Vec<(&str, Vec<String>)> = Vec::new();
    let assumptions = audit.into_iter().flat_map(|audit| &audit.assumptions);
    for assumption in assumptions.filter(|input| input.grade == Grade::Assumed) {
        let figure = format!("{} {}", assumption.symbol, assumption.value);
        match sources.iter_mut().find(|(source, _)| *source == assumption.source) {
            Some((_, figures)) => figures.push(figure),
            None => sources.push((&assumption.source, vec![figure])),
        }
    }
    for (why, figures) in sources {
        text.push_str(&wrap(&format!("assumed: {}", figures.join(", ")), WIDTH, 2, 4));
        text.push_str(&wrap(&shorten(why, SOURCE), WIDTH, 4, 4));
    }
    text
}

/// Cost at the lowest and the highest known price; empty if no price range is known.
pub fn prices(reported: &ReportedDeployment) -> String {
    let Some(PriceBounds { low, high }) = &reported.price_bounds else { return String::new() };
    let at =
        |bound: &PriceBound| format!("{} USD/Mtok of output at {}", digits(bound.usd_per_mtok), bound.price);
    let mut text = wrap(&format!("price range: {}, {}", at(low), at(high)), WIDTH, 2, 4);
    for bound in [low, high] {
        text.push_str(&wrap(&format!("{}: {}", bound.price, shorten(&bound.source, SOURCE)), WIDTH, 4, 4));
    }
    text
}

static BOUNDS: &[(&str, &str)] = &[
    ("latency_limit", "beyond the load at which a latency SLO is missed"),
    ("dominated", "cannot reach the Pareto front or the optimum"),
    ("less_throughput", "less throughput than the best"),
    ("outrun", "dominated by a configuration of equal size"),
    ("between_listed", "between two listed loads, cannot reach the optimum"),
];

/// Rejection reasons shown, each with an example.
const REASONS: usize = 4;

/// The search space, and the plans outside it.
pub fn space(space: &Space) -> String {
    let yes = |flag: bool, what: &str| if flag { format!(", {what}") } else { String::new() };
    let covers = format!(
        "every degree of {}{}{}; {}; {}; host memory {}.",
        space.degrees.join(", "),
        yes(space.split, "prefill/decode disaggregation"),
        yes(space.mixes, "mixed parallel configurations"),
        space.formats.join(" or "),
        space.loads,
        space.offload
    );
    let outside =
        format!("Not searched: {}. Optimal under the model: {}.", space.outside.join("; "), space.under);
    heading("Search space", "details: docs/optimality.md") + &paragraph(&covers) + &paragraph(&outside)
}

/// Counts of evaluated, pruned and rejected candidates.
pub fn census(census: &Census) -> String {
    let mut text = heading("Search", "");
    let pruned: u64 = census.pruned.values().sum();
    let mut counts = format!(
        "{} (valid plan and formats), {}, {} evaluated",
        count(census.shapes, "configuration"),
        count(census.candidates, "candidate"),
        grouped(census.evaluated)
    );
    if pruned > 0 {
        let mut by: Vec<(&String, &u64)> = census.pruned.iter().collect();
        by.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let spell = |(bound, count): (&String, &u64)| {
            let words =
                BOUNDS.iter().find(|(name, _)| name == bound).map_or(bound.as_str(), |(_, words)| words);
            format!("{} {words}", grouped(*count))
        };
        let by: Vec<String> = by.into_iter().map(spell).collect();
        counts.push_str(&format!("; pruned by bounds: {}", by.join(", ")));
    }
    text.push_str(&paragraph(&format!("{counts}.")));
    let refused = super::infeasible::sorted(census);
    let all: u64 = refused.iter().map(|(_, refusal)| refusal.count).sum();
    if all > 0 {
        let by: Vec<String> = refused
            .iter()
            .take(REASONS)
            .map(|(kind, refusal)| format!("{} {kind} (e.g. {})", grouped(refusal.count), refusal.example))
            .collect();
        let more = refused.len().saturating_sub(REASONS);
        let more =
            if more > 0 { format!("; and {}", count(more as u64, "other reason")) } else { String::new() };
        text.push_str(&paragraph(&format!("{} rejected: {}{more}.", grouped(all), by.join("; "))));
    }
    text
}
