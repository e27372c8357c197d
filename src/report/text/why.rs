//! Why the best plan is the best: the verdict on disaggregated serving, strategies, crossovers, sensitivity.

use super::page::{bullet_within, heading, indent, shorten, wrap};
use crate::report::number::{digits, percent, requests};
use crate::report::result::OptimizeResult;
use crate::report::robustness::Robustness;
use crate::report::table::{grouped, table_within};
use crate::report::why::{Crossing, Gain, Strategy, Why, moved};

/// Width of the plan column, in characters.
const PLAN: usize = 30;
/// Width of a reason, in characters.
const REASON: usize = 92;

/// The analysis in lines of at most `width` characters.
pub fn why(answer: &OptimizeResult, width: usize) -> String {
    let Some(why) = &answer.why else { return String::new() };
    let paragraph = |text: &str| wrap(text, width, 2, 2);
    let bullet = |text: &str| bullet_within(text, width);
    let split = why.split.as_ref();
    let split =
        split.map(|case| heading("Is disaggregation worth it?", "") + &paragraph(&case.sentence) + "\n");
    let mut text = split.unwrap_or_default() + &heading("Why", "");
    text.push_str(&paragraph(&why.sentence));
    text.push('\n');
    text.push_str(&strategies(why, width));
    if !why.crossovers.is_empty() {
        text.push('\n');
        text.push_str(&heading("Crossover to the runner-up", "both re-optimized at each value"));
        text.extend(why.crossovers.iter().map(|one| bullet(&crossing(one))));
    }
    text.push('\n');
    text.push_str(&heading("Sensitivity", "re-optimized"));
    let (helps, idle): (Vec<&Gain>, Vec<&Gain>) = why.worth.iter().partition(|gain| gain.helps);
    let now = why.strategies.first().and_then(|best| best.value);
    for gain in helps {
        let value = gain.value.map_or_else(String::new, digits);
        let plan = gain.plan.clone().unwrap_or_default();
        text.push_str(&bullet(&format!(
            "{}: {} {} ({}) by {plan}",
            gain.what,
            value,
            why.metric,
            moved(now, gain.value)
        )));
    }
    if !idle.is_empty() {
        let names: Vec<&str> = idle.iter().map(|gain| gain.what.as_str()).collect();
        text.push_str(&paragraph(&format!("no effect: {}", names.join("; "))));
    }
    text.push_str(&why.robustness.as_ref().map(|robust| robustness(robust, width)).unwrap_or_default());
    text
}

/// How often the best stays the best.
fn robustness(robust: &Robustness, width: usize) -> String {
    let paragraph = |text: &str| wrap(text, width, 2, 2);
    let note = format!(
        "{} draws from the intervals of {} plans",
        grouped(robust.draws.into()),
        grouped(robust.plans)
    );
    let mut text = format!("\n{}", heading("Robustness", &note));
    text.push_str(&paragraph(&format!(
        "The best plan stays the best in {} of the draws where the errors of plans are independent, in {} where all plans have the same error; it \
         meets the SLOs in {}.",
        percent(robust.stays_best_independent),
        percent(robust.stays_best_common),
        percent(robust.meets_slos)
    )));
    if let Some(rival) = &robust.rival {
        text.push_str(&paragraph(&format!(
            "Most frequent rival: {}, in {}.",
            rival.plan,
            percent(rival.wins)
        )));
    }
    text
}

fn strategies(why: &Why, width: usize) -> String {
    let header = ["strategy", "best plan", "weights", "conc.", &why.metric, "TTFT ms", "TPOT ms", "odds", ""];
    let best = why.strategies.first().and_then(|one| one.value);
    let (some, none): (Vec<&Strategy>, Vec<&Strategy>) =
        why.strategies.iter().partition(|one| one.plan.is_some());
    let figure = |value: Option<f64>| value.map_or_else(String::new, digits);
    let rows = some.iter().enumerate().map(|(rank, one)| {
        vec![
            one.family.name().to_string(),
            shorten(one.plan.as_deref().unwrap_or_default(), PLAN),
            one.weight_format.clone().unwrap_or_default(),
            one.concurrency.map_or_else(String::new, requests),
            figure(one.value),
            figure(one.ttft_ms),
            figure(one.tpot_ms),
            one.slo_odds.map_or_else(String::new, percent),
            if rank == 0 { String::new() } else { moved(best, one.value) },
        ]
    });
    let mut text = indent(&table_within(&header, rows, width - 2), 2);
    for one in none {
        let reason = shorten(one.none.as_deref().unwrap_or_default(), REASON);
        text.push_str(&bullet_within(&format!("{}: {reason}", one.family.name()), width));
    }
    text
}

fn crossing(one: &Crossing) -> String {
    let range = format!("from {} to {} {}", grouped(one.least), grouped(one.most), one.along.unit());
    let Some(leader) = one.leader else { return format!("{range}: neither is feasible") };
    if one.changes.is_empty() {
        return format!("{range}: no crossover, {} leads throughout", leader.name());
    }
    let changes = one.changes.iter().map(|change| {
        let (below, at) = (grouped(change.below), grouped(change.at));
        format!("{} up to {below}, {} from {at}", change.from.name(), change.to.name())
    });
    format!("{range}: {}", changes.collect::<Vec<_>>().join("; then "))
}
