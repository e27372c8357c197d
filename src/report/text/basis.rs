//! What an answer stands on: lower formats left aside, data assumed, candidates counted.

use std::collections::BTreeMap;

use super::page::{WIDTH, heading, paragraph, shorten, wrap};
use crate::quantity::datum::Grade;
use crate::report::bounds::{PriceBound, PriceBounds};
use crate::report::number::{change, count, digits, told};
use crate::report::result::{Assumption, OptimizeResult, ReportedDeployment};
use crate::report::space::Space;
use crate::report::table::grouped;
use crate::search::outcome::Census;
use crate::spec::objective::{Direction, Metric};

/// What the next lower weight format would gain, and what is published of its quality.
pub fn lower_format(answer: &OptimizeResult) -> String {
    let Some(lower) = &answer.lower_format else { return String::new() };
    let metric = Metric::parse(&lower.metric).ok();
    let told = |value: f64| match metric {
        Some(metric) => told(metric, value),
        None => format!("{} {}", digits(value), lower.metric),
    };
    let gain = match (lower.now, lower.then) {
        (Some(now), Some(then)) => {
            let better = metric.is_some_and(|metric| match metric.entry().direction {
                Direction::Minimize => then < now,
                Direction::Maximize => then > now,
            });
            let verdict = if better { "" } else { ": no gain" };
            format!("{} instead of {} ({}){verdict}", told(then), digits(now), change(now, then))
        }
        (None, Some(then)) => format!("feasible, with {}", told(then)),
        (_, None) => "infeasible all the same".to_string(),
    };
    let name = &lower.weight_format;
    let mut text = heading("Lower weight format", "not taken unless asked for");
    let bits = digits(lower.bits_per_weight);
    text.push_str(&paragraph(&format!(
        "{name}, {bits} bits a weight with scales: {gain} (--weight-format {name})"
    )));
    if lower.then.is_none() {
        return text;
    }
    let quality = lower.quality.as_ref().map_or_else(
        || "no figure for its loss of quality is known here".to_string(),
        |quality| {
            let crate::spec::format::Quality { metric, value, model, source } = quality;
            format!("quality as published: {metric} {value}, on {model}; {source}")
        },
    );
    text + &paragraph(&quality)
}

/// Characters of a source that are told.
const SOURCE: usize = 260;

/// What the metrics rest on, by how far it may be trusted; what was assumed, by source.
pub fn assumptions(evidence: &BTreeMap<Grade, u64>, assumptions: &[Assumption]) -> String {
    let Some((weakest, _)) = evidence.last_key_value() else { return String::new() };
    let all: u64 = evidence.values().sum();
    let by: Vec<String> =
        evidence.iter().map(|(grade, count)| format!("{} {grade}", grouped(*count))).collect();
    let figures = format!("{}: {}; the weakest is {weakest}", count(all, "figure"), by.join(", "));
    let mut text = heading("It rests on", "") + &paragraph(&figures);
    let mut sources: Vec<(&str, Vec<String>)> = Vec::new();
    for assumption in assumptions {
        let figure = format!("{} {}", assumption.symbol, assumption.value);
        match sources.iter_mut().find(|(why, _)| *why == assumption.why) {
            Some((_, figures)) => figures.push(figure),
            None => sources.push((&assumption.why, vec![figure])),
        }
    }
    for (why, figures) in sources {
        text.push_str(&wrap(&format!("assumed: {}", figures.join(", ")), WIDTH, 2, 4));
        text.push_str(&wrap(&shorten(why, SOURCE), WIDTH, 4, 4));
    }
    text
}

/// What an answer costs at the bounds of the price that it rests on; empty where none are known.
pub fn prices(reported: &ReportedDeployment) -> String {
    let Some(PriceBounds { low, high }) = &reported.price_bounds else { return String::new() };
    let at = |bound: &PriceBound| {
        format!("{} USD per million output tokens at a {}", digits(bound.usd_per_mtok), bound.price)
    };
    let mut text = wrap(&format!("prices differ: {}, {}", at(low), at(high)), WIDTH, 2, 4);
    for bound in [low, high] {
        text.push_str(&wrap(&format!("{}: {}", bound.price, shorten(&bound.source, SOURCE)), WIDTH, 4, 4));
    }
    text
}

/// Bounds of the search in words.
static BOUNDS: &[(&str, &str)] = &[
    ("latency_limit", "beyond the load at which a latency limit breaks"),
    ("dominated", "cannot reach the front or the optimum"),
    ("less_throughput", "cannot yield as much as the best"),
    ("outrun", "another of its size answers quicker and carries more"),
];

/// So many reasons are told with an example.
const REASONS: usize = 4;

/// What the search covers, and what it does not.
pub fn space(space: &Space) -> String {
    let yes = |flag: bool, what: &str| if flag { format!(", {what}") } else { String::new() };
    let covers = format!(
        "every degree of {}{}{}; {}; {}; host memory {}.",
        space.degrees.join(", "),
        yes(space.split, "prefill and decode split"),
        yes(space.mixes, "instances of several shapes"),
        space.formats.join(" or "),
        space.loads,
        space.offload
    );
    let outside =
        format!("Outside: {}. Best is meant under the model: {}.", space.outside.join("; "), space.under);
    heading("What the search covers", "its worth: docs/optimality.md")
        + &paragraph(&covers)
        + &paragraph(&outside)
}

/// What became of every candidate, in a paragraph.
pub fn census(census: &Census) -> String {
    let mut text = heading("Search", "");
    let pruned: u64 = census.pruned.values().sum();
    let mut told = format!(
        "{} (a legal plan in formats that hold the model), {}, {} evaluated one by one",
        count(census.shapes, "shape"),
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
        told.push_str(&format!(
            "; not evaluated because a bound shows that they cannot matter: {}",
            by.join(", ")
        ));
    }
    text.push_str(&paragraph(&format!("{told}.")));
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
        text.push_str(&paragraph(&format!("{} refused: {}{more}.", grouped(all), by.join("; "))));
    }
    text
}
