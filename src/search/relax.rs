//! Why there is no answer: conditions none of which can be left out, and the least change of one of them that leaves
//! an answer, each tried by searching again.

use super::change::Change;
use super::conflict::irreducible;
use super::outcome::Found;
use super::point::place;
use super::question::{Question, Traffic};
use super::run::{UNWATCHED, run};
use super::shape::largest;
use crate::spec::objective::{Aim, Direction, Metric};

/// A condition that a user states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// A latency limit, in seconds.
    Limit(Metric, f64),
    /// Requests in flight.
    InFlight(u64),
    /// Requests a second.
    Rate(f64),
}

/// A change that leaves an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Help {
    /// The limit, in seconds.
    Limit(Metric, f64),
    /// So many requests in flight and no more.
    InFlight(u64),
    /// So many requests a second and no more.
    Rate(f64),
    /// So many more devices, or nodes where there are several.
    Devices(u64),
    /// So many more bytes on every device.
    Memory(f64),
}

/// Why there is no answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Relaxed {
    /// Sets of conditions, none in two of them, that this hardware cannot keep together; without any one of a set it
    /// could keep the rest of it. None where it can hold nothing whatever is asked.
    pub conflicts: Vec<Vec<Condition>>,
    /// The least single changes with which there is an answer.
    pub helps: Vec<Help>,
}

/// The best, and whether there is one.
fn best(question: &Question) -> Option<Found> {
    run(question, &UNWATCHED).best
}

fn conditions(question: &Question) -> Vec<Condition> {
    let limits = [Metric::Ttft, Metric::Tpot, Metric::E2e];
    let limits =
        limits.into_iter().filter_map(|metric| Some(Condition::Limit(metric, question.limit(metric)?)));
    let traffic = match question.traffic {
        Traffic::Free => None,
        Traffic::InFlight(requests) => Some(Condition::InFlight(requests)),
        Traffic::Rate(rate) => Some(Condition::Rate(rate)),
    };
    limits.chain(traffic).collect()
}

/// The question with those conditions alone.
fn only(question: &Question, kept: &[Condition]) -> Question {
    let mut bare = question.clone();
    bare.axes.clear();
    bare.limits = Default::default();
    bare.traffic = Traffic::Free;
    for condition in kept {
        match *condition {
            Condition::Limit(Metric::Ttft, limit) => bare.limits.ttft = Some(limit),
            Condition::Limit(Metric::Tpot, limit) => bare.limits.tpot = Some(limit),
            Condition::Limit(_, limit) => bare.limits.e2e = Some(limit),
            Condition::InFlight(requests) => bare.traffic = Traffic::InFlight(requests),
            Condition::Rate(rate) => bare.traffic = Traffic::Rate(rate),
        }
    }
    bare
}

/// Room above what came out, so that rounding does not miss it.
const HAIR: f64 = 1.0 + 1e-9;

/// The reasons against a question that has no answer.
pub fn relaxed(question: &Question) -> Relaxed {
    let stated = conditions(question);
    let clash = |kept: &[Condition]| best(&only(question, kept)).is_none();
    let mut conflicts: Vec<Vec<Condition>> = Vec::new();
    let mut rest = stated.clone();
    while !clash(&[]) && clash(&rest) {
        let of = |kept: &[usize]| kept.iter().map(|at| rest[*at]).collect::<Vec<_>>();
        let conflict = of(&irreducible(rest.len(), |kept| Some(clash(&of(kept)))).kept);
        rest.retain(|one| !conflict.contains(one));
        conflicts.push(conflict);
    }
    // One change of a condition helps only where all that conflicts has it in common.
    let helping = conflicts.first().filter(|_| conflicts.len() == 1);
    let mut helps: Vec<Help> =
        helping.into_iter().flatten().filter_map(|one| loosened(question, &stated, *one)).collect();
    helps.extend(more_devices(question));
    helps.extend(more_memory(question));
    Relaxed { conflicts, helps }
}

/// The least change of one condition with which, all others kept, there is an answer.
fn loosened(question: &Question, stated: &[Condition], one: Condition) -> Option<Help> {
    let others: Vec<Condition> = stated.iter().copied().filter(|other| *other != one).collect();
    let with = |condition: Condition| {
        let all: Vec<Condition> = others.iter().copied().chain([condition]).collect();
        best(&only(question, &all)).is_some()
    };
    match one {
        Condition::Limit(metric, _) => {
            let mut free = only(question, &others);
            free.aims = vec![Aim { metric, direction: Direction::Minimize }];
            let least = best(&free)?.point[place(metric)] * HAIR;
            with(Condition::Limit(metric, least)).then_some(Help::Limit(metric, least))
        }
        Condition::InFlight(requests) => {
            let most = largest(requests, |requests| with(Condition::InFlight(requests)));
            (most > 0).then_some(Help::InFlight(most))
        }
        Condition::Rate(rate) => {
            // To one part in a thousand.
            const PARTS: u64 = 1000;
            let share = |parts: u64| rate * parts as f64 / PARTS as f64;
            let most = largest(PARTS, |parts| with(Condition::Rate(share(parts))));
            (most > 0).then(|| Help::Rate(share(most)))
        }
    }
}

/// So many times the devices are tried at most.
const MOST_TIMES: u64 = 4;

/// The fewest more devices with which there is an answer, of systems that could hold more.
fn more_devices(question: &Question) -> Option<Help> {
    let larger = |more: u64| {
        let mut larger = question.clone();
        larger.axes.clear();
        for _ in 0..more {
            larger = larger.changed(Change::Device)?;
        }
        Some(larger)
    };
    let units = if question.cluster.nodes > 1 { question.cluster.nodes } else { question.cluster.devices() };
    let most = units * (MOST_TIMES - 1);
    // The largest number that does not help: more devices are never worse, and so many are tried in turn.
    let mut more = 1;
    while more <= most {
        if best(&larger(more)?).is_some() {
            let short = largest(more - 1, |fewer| larger(fewer).is_some_and(|fewer| best(&fewer).is_none()));
            return Some(Help::Devices(short + 1));
        }
        more *= 2;
    }
    None
}

/// The least more memory on every device with which there is an answer, in whole GB.
fn more_memory(question: &Question) -> Option<Help> {
    const GB: f64 = 1e9;
    let chip = &question.formats.first()?.machine.chip;
    let most = (chip.capacity.value / GB) as u64 * (MOST_TIMES - 1);
    let helps = |gigabytes: u64| {
        let larger = question.changed(Change::Memory(gigabytes as f64 * GB));
        larger.is_some_and(|mut larger| {
            larger.axes.clear();
            best(&larger).is_some()
        })
    };
    if most == 0 || !helps(most) {
        return None;
    }
    let short = largest(most - 1, |gigabytes| !helps(gigabytes));
    Some(Help::Memory((short + 1) as f64 * GB))
}
