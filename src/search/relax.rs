//! Analysis of infeasible problems: every minimal set of conflicting conditions, and the smallest change of one of
//! them that makes the problem feasible. Each is found by searching again.

use super::change::Change;
use super::conflict::minimal;
use super::decide::of_kinds;
use super::layouts::Layouts;
use super::outcome::{EvaluatedCandidate, Outcome, Status};
use super::problem::{Problem, Traffic};
use super::run::{Control, run};
use crate::quantity::read::Plain;
use crate::spec::objective::Metric;
use crate::spec::percentile::Confidence;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// A latency SLO, in seconds.
    Limit(Metric, f64),
    /// Concurrency.
    InFlight(u64),
    /// Requests per second.
    Rate(f64),
}

/// The search was stopped before it was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

#[derive(Clone, Debug, PartialEq)]
pub struct Conflicts {
    /// The hardware cannot hold the model and one request, independent of the conditions.
    pub bare: bool,
    /// Every minimal set of conflicting conditions.
    pub sets: Vec<Vec<Condition>>,
}

/// The best deployment, if any; no alternatives or front.
pub fn best(problem: &Problem, control: &Control) -> Result<Option<EvaluatedCandidate>, Stopped> {
    let mut bare = problem.clone();
    bare.axes.clear();
    let layouts = Layouts::until(&bare, control.stop);
    of_search(of_kinds(bare, &layouts, control).outcome)
}

fn of_search(outcome: Outcome) -> Result<Option<EvaluatedCandidate>, Stopped> {
    match (outcome.best, outcome.status) {
        (None, Status::Unknown) => Err(Stopped),
        (best, _) => Ok(best),
    }
}

/// Whether any of `problems`, which differ in the runtime alone, is feasible.
pub fn answered(problems: &[Problem], control: &Control) -> Result<bool, Stopped> {
    let mut stopped = false;
    for problem in problems {
        if (control.stop)() {
            return Err(Stopped);
        }
        match of_search(run(&problem.feasibility(), control)) {
            Ok(Some(_)) => return Ok(true),
            Ok(None) => {}
            Err(Stopped) => stopped = true,
        }
    }
    if stopped { Err(Stopped) } else { Ok(false) }
}

pub fn all_with(problems: &[Problem], condition: Condition) -> Vec<Problem> {
    problems.iter().map(|problem| with(problem, condition)).collect()
}

pub fn all_without(problems: &[Problem], lifted: &[Condition]) -> Vec<Problem> {
    problems.iter().map(|problem| without(problem, lifted)).collect()
}

pub fn conditions(problem: &Problem) -> Vec<Condition> {
    let limits = [Metric::Ttft, Metric::Tpot, Metric::E2e];
    let limits =
        limits.into_iter().filter_map(|metric| Some(Condition::Limit(metric, problem.limit(metric)?)));
    let traffic = match problem.traffic {
        Traffic::Free => None,
        Traffic::InFlight(_) => problem.traffic.slots().map(Condition::InFlight),
        Traffic::Rate(rate) => Some(Condition::Rate(rate)),
    };
    limits.chain(traffic).collect()
}

pub fn with(problem: &Problem, condition: Condition) -> Problem {
    let mut other = problem.clone();
    match condition {
        Condition::Limit(metric, limit) => set(&mut other, metric, Some(limit)),
        Condition::InFlight(requests) => other.traffic = Traffic::InFlight(requests.into()),
        Condition::Rate(rate) => other.traffic = Traffic::Rate(rate),
    }
    other
}

pub fn without(problem: &Problem, lifted: &[Condition]) -> Problem {
    let mut other = problem.clone();
    for condition in lifted {
        match *condition {
            Condition::Limit(metric, _) => set(&mut other, metric, None),
            Condition::InFlight(_) | Condition::Rate(_) => other.traffic = Traffic::Free,
        }
    }
    other
}

fn set(problem: &mut Problem, metric: Metric, limit: Option<f64>) {
    match metric {
        Metric::Ttft => problem.limits.ttft = limit,
        Metric::Tpot => problem.limits.tpot = limit,
        _ => problem.limits.e2e = limit,
    }
}

/// The conflicts of infeasible problems, which differ in the runtime alone: each set conflicts in all of them.
pub fn conflicts(problems: &[Problem], control: &Control) -> Result<Conflicts, Stopped> {
    let all = problems.first().map(conditions).unwrap_or_default();
    let clash = |kept: &[usize]| {
        let lifted: Vec<Condition> =
            (0..all.len()).filter(|one| !kept.contains(one)).map(|one| all[one]).collect();
        Ok(!answered(&all_without(problems, &lifted), control)?)
    };
    let sets = minimal(all.len(), clash)?;
    // A conflict without any condition means that the hardware is too small.
    if sets.iter().any(Vec::is_empty) {
        return Ok(Conflicts { bare: true, sets: vec![] });
    }
    let sets = sets.into_iter().map(|set| set.into_iter().map(|one| all[one]).collect()).collect();
    Ok(Conflicts { bare: false, sets })
}

/// The minimum of a latency metric over the problems, in seconds, subject to all other conditions; `None` where those are
/// infeasible.
pub fn least(problems: &[Problem], metric: Metric, control: &Control) -> Result<Option<f64>, Stopped> {
    let each = problems.iter().map(|problem| least_of(problem, metric, control));
    let found = each.collect::<Result<Vec<_>, Stopped>>()?;
    let Some(least) = found.into_iter().flatten().reduce(f64::min) else { return Ok(None) };
    if problems.iter().all(|problem| problem.confidence() == Confidence::Median) {
        return Ok(Some(least));
    }
    // A limit that is met with odds allows for errors.
    let met = |times: f64| answered(&all_with(problems, Condition::Limit(metric, least * times)), control);
    Ok(smallest_factor(met, CLOSEST)?.map(|times| times * least))
}

/// The smallest factor of at least 1 for which `holds`, to within a factor of `close`; `None` where it holds for none.
fn smallest_factor(
    mut holds: impl FnMut(f64) -> Result<bool, Stopped>,
    close: f64,
) -> Result<Option<f64>, Stopped> {
    let (mut low, mut high) = (1.0, 1.0);
    while !holds(high)? {
        if high > FARTHEST {
            return Ok(None);
        }
        (low, high) = (high, 2.0 * high);
    }
    while high / low > close {
        let middle = f64::sqrt(low * high);
        if holds(middle)? { high = middle } else { low = middle }
    }
    Ok(Some(high))
}

/// Factors on limits beyond which none is tried.
const FARTHEST: f64 = 1e7;
/// Distance of a limit from the smallest one.
const CLOSEST: f64 = 1.005;

fn least_of(problem: &Problem, metric: Metric, control: &Control) -> Result<Option<f64>, Stopped> {
    let free = without(problem, &[Condition::Limit(metric, f64::INFINITY)]).optimizing(metric);
    let outcome = run(&free, control);
    match outcome.status {
        Status::Feasible | Status::Unknown => Err(Stopped),
        Status::Optimal | Status::Infeasible => Ok(outcome.best.map(|found| slowest(&free, &found, metric))),
    }
}

/// A latency of the slowest pool of a deployment, in seconds: limits hold in every pool, metrics are means over requests.
fn slowest(problem: &Problem, found: &EvaluatedCandidate, metric: Metric) -> f64 {
    let pools = found.candidate.evaluate(&Plain, problem, &mut ()).slowest;
    pools.latency(metric).unwrap_or(f64::INFINITY)
}

/// The smallest common factor on `limits`, at least 1 and to within 2 %, that makes a problem feasible; `None` where all
/// are infeasible without them.
pub fn factor(
    problems: &[Problem],
    limits: &[(Metric, f64)],
    control: &Control,
) -> Result<Option<f64>, Stopped> {
    const CLOSE: f64 = 1.02;
    let lifted: Vec<Condition> =
        limits.iter().map(|(metric, limit)| Condition::Limit(*metric, *limit)).collect();
    let free: Vec<Problem> = problems.iter().map(|problem| without(problem, &lifted)).collect();
    if !answered(&free, control)? {
        return Ok(None);
    }
    let met = |times: f64| {
        let scaled = limits.iter().fold(problems.to_vec(), |problems, (metric, limit)| {
            all_with(&problems, Condition::Limit(*metric, limit * times))
        });
        answered(&scaled, control)
    };
    smallest_factor(met, CLOSE)
}

/// The largest `n` from `low` up to but not including `beyond` for which `holds`, if it holds for none beyond one it
/// fails; `None` where it fails for `low`.
pub fn largest_below<E>(
    low: u64,
    beyond: u64,
    mut holds: impl FnMut(u64) -> Result<bool, E>,
) -> Result<Option<u64>, E> {
    if low >= beyond || !holds(low)? {
        return Ok(None);
    }
    let (mut low, mut high) = (low, beyond);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle)? { low = middle } else { high = middle }
    }
    Ok(Some(low))
}

/// Maximum factor on the memory that is tried.
const MOST_TIMES: u64 = 4;

/// The smallest additional memory per device that makes a problem feasible, in whole GB.
pub fn more_memory(problems: &[Problem], control: &Control) -> Result<Option<u64>, Stopped> {
    const GB: f64 = 1e9;
    let Some(formats) = problems.first().and_then(|problem| problem.formats.first()) else { return Ok(None) };
    let most = (formats.machine.chip.capacity.value / GB) as u64 * (MOST_TIMES - 1);
    let helps = |gigabytes: u64| {
        let larger = |problem: &Problem| problem.with_change(Change::Memory(gigabytes as f64 * GB));
        answered(&problems.iter().filter_map(larger).collect::<Vec<_>>(), control)
    };
    if most == 0 || !helps(most)? {
        return Ok(None);
    }
    // The largest amount that does not suffice is one below.
    let short = largest_below(1, most, |gigabytes| Ok(!helps(gigabytes)?))?;
    Ok(Some(short.map_or(1, |short| short + 1)))
}
