//! When nothing is feasible: that first, then why with numbers, what came nearest, and what would help.

use super::head;
use super::page::{BAD, WIDTH, bullet, heading, styled, wrap};
use crate::report::number::{count as times, gib, requests, told};
use crate::report::result::{Answer, Feasibility, Reported};
use crate::report::table::grouped;
use crate::search::outcome::{Census, Refusal, Status};
use crate::spec::objective::Metric;

/// That there is none.
pub fn head(answer: &Answer) -> String {
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
pub fn sorted(census: &Census) -> Vec<(&String, &Refusal)> {
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
    for (kind, Refusal { count, example }) in all {
        text.push_str(&bullet(&format!("{kind}, {}, e.g. {example}", times(*count, "time"))));
    }
    text
}

fn figures(candidate: &Reported) -> String {
    let shown = [Metric::Ttft, Metric::Tpot, Metric::E2e, Metric::OutputTokS];
    let told = shown.into_iter().filter_map(|metric| Some(told(metric, candidate.figure(metric)?)));
    told.collect::<Vec<_>>().join(", ")
}

/// What came nearest, and what it misses.
pub fn nearest(answer: &Answer) -> String {
    let Some(near) = &answer.nearest else { return String::new() };
    let candidate = &near.candidate;
    let Reported { weight_format, concurrency, violations, .. } = candidate;
    let mut text = heading("Nearest miss", "");
    let requests = format!("{} requests", requests(*concurrency));
    let plan =
        format!("{}, {weight_format}, {requests} in flight: {}", head::plan(candidate), figures(candidate));
    text.push_str(&wrap(&plan, WIDTH, 2, 4));
    text.extend(violations.iter().map(|reason| bullet(reason)));
    text
}

/// Conditions that cannot all be kept, and the least changes that help.
pub fn conflict(answer: &Answer) -> String {
    let Some(conflict) = &answer.conflict else { return String::new() };
    let mut text = String::new();
    if !conflict.conflicts.is_empty() {
        text.push_str(&heading("What cannot be kept here", ""));
        text.extend(conflict.conflicts.iter().map(|set| match &set[..] {
            [one] => bullet(&format!("{one}, whatever else is asked")),
            _ => bullet(&format!("{} together; without any one of them the others can", set.join(" and "))),
        }));
    }
    if !conflict.helps.is_empty() {
        text.push_str(&heading(
            "Any one of these would help",
            "the least such change, found by searching again",
        ));
        text.extend(conflict.helps.iter().map(|help| bullet(help)));
    }
    text
}

/// What would help, as far as it follows from what is known.
pub fn remedies(answer: &Answer) -> String {
    let mut text = String::new();
    if let Some(near) =
        answer.nearest.as_ref().filter(|near| near.candidate.feasibility == Feasibility::InVram)
    {
        let limits = &answer.question.limits;
        let flags = [
            ("--ttft", Metric::Ttft, limits.ttft),
            ("--tpot", Metric::Tpot, limits.tpot),
            ("--e2e", Metric::E2e, limits.e2e),
        ];
        let loosened = flags.into_iter().filter_map(|(flag, metric, limit)| {
            let value = near.candidate.figure(metric)?;
            (value > limit? * 1e3).then(|| format!("{flag} {}ms", above(value)))
        });
        let loosened: Vec<String> = loosened.collect();
        if !loosened.is_empty() {
            text.push_str(&bullet(&format!(
                "loosen the limit: the nearest miss keeps {}",
                loosened.join(" ")
            )));
        }
    }
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
    if let Some(lower) = answer.lower_format.as_ref().filter(|lower| lower.then.is_some()) {
        text.push_str(&bullet(&format!("--weight-format {} is feasible here (below)", lower.weight_format)));
    }
    if text.is_empty() { text } else { heading("What would help", "") + &text }
}

/// A little more than `ms`, with few digits.
fn above(ms: f64) -> String {
    let step = 10f64.powf(ms.log10().floor() - 2.0);
    let rounded = (ms / step).ceil() * step;
    let decimals = (-step.log10().round()).max(0.0) as usize;
    format!("{rounded:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loosened_limit_is_kept() {
        assert_eq!(above(45.576), "45.6");
        assert_eq!(above(1234.5), "1240");
        assert_eq!(above(0.01234), "0.0124");
        for ms in [45.576, 1234.5, 0.01234, 99.99] {
            assert!(above(ms).parse::<f64>().unwrap_or(0.0) >= ms);
        }
    }
}
