//! The report of an infeasible problem: verdict, rejection reasons, nearest miss, conflicts, smallest changes.

use super::head;
use super::page::{BAD, bullet_within, bullets, heading, section, styled, wrap};
use crate::plan::infeasible::RejectionCount;
use crate::report::number::{count as times, digits, format_metric, gib, requests};
use crate::report::relax::{ConflictSet, Remedy, RemedyClaim, RemedyGain};
use crate::report::result::{OptimizeResult, ReportedDeployment};
use crate::report::table::grouped;
use crate::search::outcome::{Census, Status};
use crate::spec::objective::Metric;

pub fn verdict(answer: &OptimizeResult) -> &'static str {
    match answer.status {
        Status::Unknown => "UNKNOWN: stopped before a deployment was found",
        _ => "INFEASIBLE: no deployment meets these conditions",
    }
}

pub fn head(answer: &OptimizeResult, width: usize) -> String {
    let verdict = verdict(answer);
    let term = answer.question.optimize.first().filter(|_| answer.status == Status::Unknown);
    let bound = term.zip(answer.proof.bound);
    let bound = bound
        .map_or_else(String::new, |(term, bound)| format!("bound {}; ", format_metric(term.metric, bound)));
    let problem = bound + &head::problem(&answer.question);
    let lifted = head::theoretical(&answer.question);
    format!("{lifted}{}\n{}", styled(BAD, verdict), wrap(&problem, width, 0, 2))
}

/// Rejection reasons, the most frequent first.
pub fn sorted(census: &Census) -> Vec<(&String, &RejectionCount)> {
    let mut all: Vec<_> = census.illegal.iter().collect();
    all.sort_by(|a, b| b.1.count.cmp(&a.1.count).then(a.0.cmp(b.0)));
    all
}

/// Rejection reasons with counts and examples.
pub fn reasons(census: &Census) -> String {
    let lines = sorted(census).into_iter().map(|(kind, RejectionCount { count, example, .. })| {
        format!("{kind}, {}, e.g. {example}", times(*count, "time"))
    });
    section("Rejected configurations", "", bullets(lines))
}

fn figures(candidate: &ReportedDeployment) -> String {
    let shown = [Metric::Ttft, Metric::Tpot, Metric::E2e, Metric::OutputTokS];
    let named = shown.into_iter().filter_map(|metric| Some(format_metric(metric, candidate.figure(metric)?)));
    named.collect::<Vec<_>>().join(", ")
}

/// The deployment nearest to feasibility, and the limits it misses.
pub fn nearest(answer: &OptimizeResult, width: usize) -> String {
    let Some(near) = &answer.nearest else { return String::new() };
    let candidate = &near.candidate;
    let ReportedDeployment { weight_format, concurrency, violations, .. } = candidate;
    let mut text = heading("Nearest miss", "");
    let noun = if *concurrency == 1.0 { "concurrent request" } else { "concurrent requests" };
    let requests = format!("{} {noun}", requests(*concurrency));
    let plan = format!("{}, {weight_format}, {requests}: {}", head::plan(candidate), figures(candidate));
    text.push_str(&wrap(&plan, width, 2, 4));
    text.extend(violations.iter().map(|reason| bullet_within(reason, width)));
    text
}

/// Conflicting conditions, and the smallest changes that make the problem feasible.
pub fn conflict(answer: &OptimizeResult, width: usize) -> String {
    let bullet = |text: &str| bullet_within(text, width);
    let Some(conflict) = &answer.conflict else { return String::new() };
    let clashes = conflict.conflicts.iter().map(|clash| bullet(&conflict_words(clash)));
    let mut text = section("Conflicting conditions", "", clashes.collect::<String>());
    if !conflict.remedies.is_empty() {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&heading(
            "Smallest changes that make it feasible",
            "each re-optimized alone; the most by the objective first",
        ));
        text.extend(conflict.remedies.iter().map(|remedy| bullet(&change(remedy))));
    }
    if let Some(more) = conflict.more_memory_gb {
        text.push_str(&bullet(&format!(
            "{more} GB more memory per device would be enough, {} GB would not",
            more - 1
        )));
    }
    if !conflict.complete {
        text.push_str(&bullet("stopped before every change was tried"));
    }
    text
}

pub fn conflict_words(clash: &ConflictSet) -> String {
    let set = clash.conditions.join(" and ");
    match (&clash.why, clash.conditions.len()) {
        (Some(why), _) => format!("{set}: {why}"),
        (None, 1) => format!("{set}: unattainable whatever the other conditions are"),
        (None, _) => format!("{set}: dropping any one makes the rest feasible"),
    }
}

/// The new flags, the flags they replace, and how close the change is to the smallest.
pub fn change(remedy: &Remedy) -> String {
    let Remedy { flags, now, claim, tighter, .. } = remedy;
    let mut now = if now.is_empty() { String::new() } else { format!(" instead of {now}") };
    now.push_str(&remedy.gives.as_ref().map_or_else(String::new, |gain| format!(": {}", gain_words(gain))));
    match claim {
        RemedyClaim::Least => format!("{flags}{now}; infeasible with {}", tighter.join(", and with ")),
        RemedyClaim::About => format!("{flags}{now}; approximately the smallest"),
        RemedyClaim::Works => format!("{flags}{now}"),
    }
}

/// The objective with a remedy, the speeds that it is not, and the cost.
pub fn gain_words(gain: &RemedyGain) -> String {
    let cost = gain.usd_per_hour.map_or_else(String::new, |usd| format!(" at {} USD/h", digits(usd)));
    let speeds =
        [(Metric::OutputTokS, gain.output_tok_s), (Metric::OutputTokSPerUser, gain.output_tok_s_per_user)];
    let others = speeds.into_iter().filter(|(metric, _)| *metric != gain.objective.metric);
    let all = std::iter::once((gain.objective.metric, gain.value)).chain(others);
    let all: Vec<String> = all.map(|(metric, value)| format_metric(metric, value)).collect();
    format!("{}{cost}", all.join(", "))
}

/// Memory of the weights against the usable memory per device.
pub fn weights(answer: &OptimizeResult, width: usize) -> String {
    let bullet = |text: &str| bullet_within(text, width);
    let mut text = String::new();
    for need in &answer.weights_need {
        let (weights, usable) = (gib(need.weights_bytes), gib(need.usable_bytes_per_device));
        let (format, there) = (&need.weight_format, answer.question.devices);
        let line = format!("{format} weights take {weights}, usable per device {usable}");
        if need.least_devices > there {
            let least = times(need.least_devices, "device");
            let host = need.least_host_bytes.map_or_else(String::new, |bytes| {
                format!("; or {} of memory on each host, a part of the model in it", gib(bytes))
            });
            let needed = format!("{line}: at least {least} needed, {} available{host}", grouped(there));
            text.push_str(&bullet(&needed));
        } else {
            text.push_str(&bullet(&format!(
                "{line}: {} hold the weights in all, but no plan holds them with activations, buffers and a request",
                times(there, "device")
            )));
        }
    }
    section("Weight memory", "", text)
}
