//! A placement in one screen: layers per device, speed, proof, commands; or why none fits, and what would.

use super::super::launch::first_command;
use super::super::page::{bullet_within, heading, join, remainder, section, shorten, wrap};
use super::super::place::{disaggregation, head, stage_table, theoretical};
use super::{lines, more};
use crate::report::number::{digits, gib, percent, time};
use crate::report::place::{InfeasibleReport, PlacementReport, PlacementResult};
use crate::report::table::grouped;

const STAGES: usize = 7;
const ENTRIES: usize = 3;

/// The result in lines of at most `width` characters; `command` is the one that posed the problem.
pub fn place(answer: &PlacementResult, command: &str, width: usize) -> String {
    let more = more(command, "baselines, disaggregation, notes", width);
    let Some(placed) = &answer.placement else {
        let why = answer.infeasible.as_ref().map(|reason| infeasible(reason, width)).unwrap_or_default();
        return join([head(answer, width), why, more]);
    };
    let facts = facts(placed, answer, width);
    let launch = first_command(answer.launch.as_ref(), width);
    join([head(answer, width), stages(placed, width) + &facts, more + &launch])
}

fn stages(placed: &PlacementReport, width: usize) -> String {
    let shown = &placed.stages[..placed.stages.len().min(STAGES)];
    let rest = remainder(placed.stages.len(), shown.len(), "stages with --detail");
    heading("Layer placement", &rest) + &stage_table(shown, width)
}

/// Speed, unused devices, comparison with baselines, proof.
fn facts(placed: &PlacementReport, answer: &PlacementResult, width: usize) -> String {
    let speed = format!(
        "decode step {}, prefill of {} tokens {}, E2E {}; {} tok/s in decode",
        time(placed.token_ms),
        grouped(answer.question.isl),
        time(placed.prefill_ms),
        time(placed.request_ms),
        digits(placed.decode_tok_s)
    );
    let mut facts = vec![("speed", speed)];
    facts.extend(answer.intervals.as_ref().map(|known| ("p10–p90", known.words())));
    if !placed.unused.is_empty() {
        facts.push(("unused", shorten(&placed.unused.join(", "), width)));
    }
    let known = answer.compared.iter().filter_map(|other| Some((other, other.objective_ms?, other.times?)));
    if let Some((other, ms, times)) = known.min_by(|a, b| a.1.total_cmp(&b.1)) {
        facts.push(("baseline", format!("{}: {}, {} times as long", other.rule, time(ms), digits(times))));
    }
    if let Some(found) = theoretical(answer) {
        facts.push(("theoretical", shorten(&found, 3 * width)));
    }
    if let Some(found) = &answer.disaggregated {
        facts.push(("disaggregated", disaggregation(found)));
    }
    if let Some(proof) = &answer.certificate {
        let (bound, gap) = (time(proof.lower_bound_ms), percent(proof.gap));
        facts.push(("proof", format!("lower bound {bound}, gap {gap}, by {}", proof.proved_by)));
    }
    if !answer.question.defaults.is_empty() {
        let named = answer.scenario.as_ref().is_some_and(|scenario| scenario.weight_format.is_some());
        let (id, why) = (&answer.question.weight_format, &answer.question.weight_format_why);
        let reason = if named || why.is_empty() { String::new() } else { format!("; weights {id} ({why})") };
        facts.push(("defaults", defaults(&answer.question.defaults) + &reason));
    }
    lines(&facts, width)
}

/// Flags as on a command line, then sentences.
fn defaults(all: &[String]) -> String {
    let (flags, sentences): (Vec<&str>, Vec<&str>) =
        all.iter().map(String::as_str).partition(|one| one.starts_with("--"));
    let flags = Some(flags.join(" ")).filter(|flags| !flags.is_empty());
    flags.into_iter().chain(sentences.into_iter().map(str::to_owned)).collect::<Vec<_>>().join("; ")
}

/// The reason, the nearest placement, and changes that make the problem feasible.
fn infeasible(reason: &InfeasibleReport, width: usize) -> String {
    let bullet = |text: &str| bullet_within(text, width);
    let mut text = heading("Why", "") + &wrap(&shorten(&reason.text, 3 * width), width, 2, 2);
    if !reason.conflict.is_empty() {
        text.push_str(&bullet(&format!("conflicting constraints: {}", reason.conflict.join(" and "))));
    }
    for lack in reason.nearest.iter().filter(|lack| lack.short_bytes > 0.0).take(ENTRIES) {
        let (member, first, last) = (&lack.member, lack.first_layer, lack.last_layer);
        text.push_str(&bullet(&format!(
            "{member}, layers {first}-{last}: short by {}",
            gib(lack.short_bytes)
        )));
    }
    let helps = reason.tried.iter().filter_map(|tried| {
        Some(format!("{}: {} (now {})", tried.change, tried.needed.as_deref()?, tried.stated))
    });
    let mut helps: Vec<String> = helps.take(ENTRIES).collect();
    let title =
        if helps.is_empty() { "Possible changes" } else { "Changes that make it feasible, each tried alone" };
    if helps.is_empty() {
        helps = reason.fixes.iter().take(ENTRIES).cloned().collect();
    }
    text + &section(title, "", helps.iter().map(|help| bullet(help)).collect::<String>())
}
