//! Analysis of infeasible problems: every minimal set of conflicting conditions, and the smallest change of one of
//! them that makes the problem feasible. Each is found by searching again.

use super::change::Change;
use super::conflict::minimal;
use super::outcome::{EvaluatedCandidate, Status};
use super::problem::{Problem, Traffic};
use super::run::{Control, run};
use crate::quantity::read::Plain;
use crate::spec::objective::{Direction, Metric, ObjectiveTerm};

/// A condition of the problem.
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

/// Conflicting conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflicts {
    /// The hardware cannot hold the model and one request, independent of the conditions.
    pub bare: bool,
    /// Every minimal set of conflicting conditions.
    pub sets: Vec<Vec<Condition>>,
}

/// The best deployment, if any; no alternatives or front.
fn best(problem: &Problem, control: &Control) -> Result<Option<EvaluatedCandidate>, Stopped> {
    let mut bare = problem.clone();
    bare.axes.clear();
    let outcome = run(&bare, control);
    match (outcome.best, outcome.status) {
        (None, Status::Unknown) => Err(Stopped),
        (best, _) => Ok(best),
    }
}

/// Whether a problem is feasible.
///
/// # Errors
/// The search was stopped before it found a deployment.
pub fn answered(problem: &Problem, control: &Control) -> Result<bool, Stopped> {
    Ok(best(&problem.feasibility(), control)?.is_some())
}

/// The conditions of a problem.
pub fn conditions(problem: &Problem) -> Vec<Condition> {
    let limits = [Metric::Ttft, Metric::Tpot, Metric::E2e];
    let limits =
        limits.into_iter().filter_map(|metric| Some(Condition::Limit(metric, problem.limit(metric)?)));
    let traffic = match problem.traffic {
        Traffic::Free => None,
        Traffic::InFlight(requests) => Some(Condition::InFlight(requests)),
        Traffic::Rate(rate) => Some(Condition::Rate(rate)),
    };
    limits.chain(traffic).collect()
}

/// The problem with one condition replaced.
pub fn with(problem: &Problem, condition: Condition) -> Problem {
    let mut other = problem.clone();
    match condition {
        Condition::Limit(metric, limit) => set(&mut other, metric, Some(limit)),
        Condition::InFlight(requests) => other.traffic = Traffic::InFlight(requests),
        Condition::Rate(rate) => other.traffic = Traffic::Rate(rate),
    }
    other
}

/// The problem without some of its conditions.
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

/// The conflicts of an infeasible problem.
///
/// # Errors
/// The search was stopped.
pub fn conflicts(problem: &Problem, control: &Control) -> Result<Conflicts, Stopped> {
    let all = conditions(problem);
    let clash = |kept: &[usize]| {
        let lifted: Vec<Condition> =
            (0..all.len()).filter(|one| !kept.contains(one)).map(|one| all[one]).collect();
        Ok(!answered(&without(problem, &lifted), control)?)
    };
    let sets = minimal(all.len(), clash)?;
    // A conflict without any condition means that the hardware is too small.
    if sets.iter().any(Vec::is_empty) {
        return Ok(Conflicts { bare: true, sets: vec![] });
    }
    let sets = sets.into_iter().map(|set| set.into_iter().map(|one| all[one]).collect()).collect();
    Ok(Conflicts { bare: false, sets })
}

/// The minimum of a latency metric, in seconds, subject to all other conditions; `None` where those are infeasible.
///
/// # Errors
/// The search was stopped, so the result may not be the minimum.
pub fn least(problem: &Problem, metric: Metric, control: &Control) -> Result<Option<f64>, Stopped> {
    let mut free = without(problem, &[Condition::Limit(metric, f64::INFINITY)]);
    free.axes.clear();
    free.aims = vec![ObjectiveTerm { metric, direction: Direction::Minimize }];
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

/// The smallest common factor on `limits`, at least 1 and to within 2 %, that makes the problem feasible; `None`
/// where it is infeasible without them.
///
/// # Errors
/// The search was stopped.
pub fn factor(
    problem: &Problem,
    limits: &[(Metric, f64)],
    control: &Control,
) -> Result<Option<f64>, Stopped> {
    const CLOSE: f64 = 1.02;
    let lifted: Vec<Condition> =
        limits.iter().map(|(metric, limit)| Condition::Limit(*metric, *limit)).collect();
    let Some(free) = best(&without(problem, &lifted), control)? else { return Ok(None) };
    let needed = limits.iter().map(|(metric, limit)| slowest(problem, &free, *metric) / limit);
    let (mut low, mut high) = (1.0, needed.fold(1.0, f64::max) * CLOSE);
    while high / low > CLOSE {
        let middle = f64::sqrt(low * high);
        let scaled = limits.iter().fold(problem.clone(), |problem, (metric, limit)| {
            with(&problem, Condition::Limit(*metric, limit * middle))
        });
        if answered(&scaled, control)? { high = middle } else { low = middle }
    }
    Ok(Some(high))
}

/// The largest `n` from `low` up to but not including `beyond` for which `holds`, if it holds for none beyond one it
/// fails; `None` where it fails for `low`.
///
/// # Errors
/// Returns the error of `holds`.
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

/// The smallest additional memory per device that makes the problem feasible, in whole GB.
///
/// # Errors
/// The search was stopped.
pub fn more_memory(problem: &Problem, control: &Control) -> Result<Option<u64>, Stopped> {
    const GB: f64 = 1e9;
    let Some(formats) = problem.formats.first() else { return Ok(None) };
    let most = (formats.machine.chip.capacity.value / GB) as u64 * (MOST_TIMES - 1);
    let helps = |gigabytes: u64| {
        let larger = problem.with_change(Change::Memory(gigabytes as f64 * GB));
        larger.map_or(Ok(false), |larger| answered(&larger, control))
    };
    if most == 0 || !helps(most)? {
        return Ok(None);
    }
    // The largest amount that does not suffice is one below.
    let short = largest_below(1, most, |gigabytes| Ok(!helps(gigabytes)?))?;
    Ok(Some(short.map_or(1, |short| short + 1)))
}
