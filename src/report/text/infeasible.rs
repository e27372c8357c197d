//! When nothing is feasible: that first, then why with numbers, what came nearest, and what gives an answer.

use super::head;
use super::page::{BAD, WIDTH, bullet, heading, styled, wrap};
use crate::report::number::{count as times, gib, requests, told};
use crate::report::relax::{Remedy, RemedyClaim};
use crate::report::result::{OptimizeResult, ReportedDeployment};
use crate::report::table::grouped;
use crate::search::outcome::{Census, RejectionCount, Status};
use crate::spec::objective::Metric;

/// That there is none.
pub fn head(answer: &OptimizeResult) -> String {
    let verdict = match answer.status {
        Status::Unknown => "UNKNOWN: stopped before anything was found",
        _ => "INFEASIBLE: no deployment can serve this",
    };
    let aim = answer.question.optimize.first().filter(|_| answer.status == Status::Unknown);
    let bound = aim.zip(answer.proof.bound);
    let bound = bound.map_or_else(String::new, |(aim, bound)| {
        format!("nothing is better than {}; ", told(aim.metric, bound))
    });
    let asked = bound + &head::asked(&answer.question);
    format!("{}\n{}", styled(BAD, verdict), wrap(&asked, WIDTH, 0, 2))
}

/// Reasons against candidates, the most frequent first.
pub fn sorted(census: &Census) -> Vec<(&String, &RejectionCount)> {
    let mut all: Vec<_> = census.illegal.iter().collect();
    all.sort_by(|a, b| b.1.count.cmp(&a.1.count).then(a.0.cmp(b.0)));
    all
}

/// Why every candidate was refused.
pub fn reasons(census: &Census) -> String {
    let all = sorted(census);
    if all.is_empty() {
        return String::new();
    }
    let mut text = heading("Why", "");
    for (kind, RejectionCount { count, example }) in all {
        text.push_str(&bullet(&format!("{kind}, {}, e.g. {example}", times(*count, "time"))));
    }
    text
}

fn figures(candidate: &ReportedDeployment) -> String {
    let shown = [Metric::Ttft, Metric::Tpot, Metric::E2e, Metric::OutputTokS];
    let told = shown.into_iter().filter_map(|metric| Some(told(metric, candidate.figure(metric)?)));
    told.collect::<Vec<_>>().join(", ")
}

/// What came nearest, and what it misses.
pub fn nearest(answer: &OptimizeResult) -> String {
    let Some(near) = &answer.nearest else { return String::new() };
    let candidate = &near.candidate;
    let ReportedDeployment { weight_format, concurrency, violations, .. } = candidate;
    let mut text = heading("Nearest miss", "");
    let noun = if *concurrency == 1.0 { "request" } else { "requests" };
    let requests = format!("{} {noun}", requests(*concurrency));
    let plan =
        format!("{}, {weight_format}, {requests} in flight: {}", head::plan(candidate), figures(candidate));
    text.push_str(&wrap(&plan, WIDTH, 2, 4));
    text.extend(violations.iter().map(|reason| bullet(reason)));
    text
}

/// Conditions that cannot all be kept, and the changes with which there is an answer.
pub fn conflict(answer: &OptimizeResult) -> String {
    let Some(conflict) = &answer.conflict else { return String::new() };
    let mut text = String::new();
    if !conflict.conflicts.is_empty() {
        text.push_str(&heading("What cannot be kept here", ""));
        text.extend(conflict.conflicts.iter().map(|clash| {
            let set = clash.conditions.join(" and ");
            match (&clash.why, clash.conditions.len()) {
                (Some(why), _) => bullet(&format!("{set}: {why}")),
                (None, 1) => bullet(&format!("{set}, whatever the other conditions are")),
                (None, _) => bullet(&format!("{set} together; without any one of them the others can")),
            }
        }));
    }
    if !conflict.remedies.is_empty() {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&heading(
            "Any one of these gives an answer",
            "each searched again as it is printed here",
        ));
        text.extend(conflict.remedies.iter().map(|remedy| bullet(&change(remedy))));
    }
    if let Some(more) = conflict.more_memory_gb {
        text.push_str(&bullet(&format!(
            "{more} GB more memory on every device of this kind would do, {} GB not",
            more - 1
        )));
    }
    if !conflict.complete {
        text.push_str(&bullet("stopped before every change was tried"));
    }
    text
}

/// The flags, what they take the place of, and what was tried beside them.
fn change(remedy: &Remedy) -> String {
    let Remedy { flags, now, claim, tighter } = remedy;
    let now = if now.is_empty() { String::new() } else { format!(" instead of {now}") };
    match claim {
        RemedyClaim::Least => format!("{flags}{now}; no answer with {}", tighter.join(", nor with ")),
        RemedyClaim::About => format!("{flags}{now}; about the least"),
        RemedyClaim::Works => format!("{flags}{now}"),
    }
}

/// What the weights take, as far as it follows from what is known.
pub fn weights(answer: &OptimizeResult) -> String {
    let mut text = String::new();
    for need in &answer.weights_need {
        let (weights, usable) = (gib(need.weights_bytes), gib(need.usable_bytes_per_device));
        let (format, there) = (&need.weight_format, answer.question.devices);
        let line = format!("the weights alone take {weights} in {format}, of which a device holds {usable}");
        if need.least_devices > there {
            let least = times(need.least_devices, "such device");
            text.push_str(&bullet(&format!("{line}: at least {least}, {} there", grouped(there))));
        } else {
            text.push_str(&bullet(&format!("{line}: they fit, what lies beside them does not")));
        }
    }
    if text.is_empty() { text } else { heading("What the weights take", "") + &text }
}
