//! Aggregated deployments of mixed instance configurations under a given load: replicas of each size, and concurrency
//! of each.
//!
//! Search space: the best configuration of each size at each of [`PARTS`] equal parts of the concurrency, or at the
//! highest rate within the SLOs, in any replica counts that fit. Dynamic programming over devices and parts gives the
//! exact optimum of the first objective term over this space.

use crate::spec::offload::Offload;
use crate::spec::role::Role;
use std::collections::BTreeMap;

use super::candidate::{Candidate, PoolPlan};
use super::fills::{Fill, fills};
use super::outcome::EvaluatedCandidate;
use super::packing::{Item, Table};
use super::point::place;
use super::problem::{Problem, Traffic};
use super::shape::{InstanceConfig, PreparedShape, largest};
use super::shapes::Shapes;
use crate::serving::economy::Bill;
use crate::spec::objective::Metric;

/// Number of equal parts that the concurrency is divided into.
pub const PARTS: u64 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MixGoal {
    Output,
    PerDevice,
    Devices,
}

/// The objective that a mix can improve; `None` where identical replicas are as good.
fn wanted(problem: &Problem, found: bool) -> Option<MixGoal> {
    let rented = matches!(problem.workload.bill, Some(Bill::Rented(_)));
    let at_rate = matches!(problem.traffic, Traffic::Rate(_));
    match problem.objective.first()?.metric {
        Metric::OutputTokS if !at_rate => Some(MixGoal::Output),
        Metric::OutputTokSPerDevice => Some(MixGoal::PerDevice),
        Metric::UsdPerMtok if rented => Some(MixGoal::PerDevice),
        Metric::Devices => Some(MixGoal::Devices),
        // With no feasible deployment of identical replicas, any mix that carries the load.
        _ => (!found).then_some(MixGoal::Devices),
    }
}

/// The best instance configuration of a size at a load.
#[derive(Clone, Copy)]
struct SizeOption {
    shape: usize,
    /// Concurrency of a replica.
    requests: u64,
    /// Output tokens, or requests, per second.
    rate: f64,
}

/// The best mix under a given load, where a mix may be better than identical replicas. `found` says whether a
/// deployment was found that carries the load.
pub fn best_mix(problem: &Problem, shapes: &Shapes, found: bool) -> Option<EvaluatedCandidate> {
    let wanted = wanted(problem, found)?;
    let formats = 0..problem.formats.len();
    let found = formats.flat_map(|formats| match problem.traffic {
        Traffic::Free => vec![],
        Traffic::InFlight(_) => problem
            .traffic
            .slots()
            .map_or_else(Vec::new, |requests| in_flight(problem, shapes, formats, (requests, wanted))),
        Traffic::Rate(rate) => at_rate(problem, shapes, formats, rate),
    });
    let found = found.filter(|found| found.candidate.pools.len() > 1);
    found.reduce(|a, b| if problem.is_better(&b.point, &a.point) { b } else { a })
}

fn of_formats<'q>(
    problem: &'q Problem,
    shapes: &'q Shapes,
    formats: usize,
) -> impl Iterator<Item = (usize, PreparedShape<'q>)> {
    let holds = move |shape: &InstanceConfig| {
        shape.formats == formats
            && shape.fits > 0
            && shape.roles.aggregated
            && shape.offload == Offload::Nothing
    };
    let held = shapes.iter().filter(move |(_, shape)| holds(shape));
    held.map(|(index, shape)| (index, PreparedShape::of(problem, shape.clone())))
}

/// Mixes that hold the given concurrency: the best for each device count.
fn in_flight(
    problem: &Problem,
    shapes: &Shapes,
    formats: usize,
    (requests, wanted): (u64, MixGoal),
) -> Vec<EvaluatedCandidate> {
    let parts = PARTS.min(requests);
    // Concurrency slots for a number of parts.
    let slots = |part: u64| (part * requests).div_ceil(parts);
    let mut options: BTreeMap<(u64, u64), SizeOption> = BTreeMap::new();
    for (shape, prepared) in of_formats(problem, shapes, formats) {
        let at = |part: u64| prepared.free(1, slots(part));
        let fits = |part: u64| {
            slots(part) <= prepared.concurrency(prepared.shape.fits)
                && prepared.missed(&at(part), slots(part)).is_none()
        };
        for part in 1..=largest(parts, fits) {
            let share = part as f64 * requests as f64 / parts as f64 / slots(part) as f64;
            let yields = at(part)[place(Metric::OutputTokS)] * share;
            let choice = SizeOption { shape, requests: slots(part), rate: yields };
            let best = options.entry((prepared.shape.plan.devices(), part)).or_insert(choice);
            if yields > best.rate {
                *best = choice;
            }
        }
    }
    let mut sizes: Vec<u64> = options.keys().map(|(size, _)| *size).collect();
    sizes.dedup();
    let mut found = Vec::new();
    for Fill { sizes, devices, .. } in fills(problem.capacity(), &sizes) {
        let of_sizes: Vec<_> = options.iter().filter(|((size, _), _)| sizes.contains(size)).collect();
        let table = ShareTable::new(&of_sizes, devices, parts);
        let all = 1..=devices;
        let best = match wanted {
            MixGoal::Output => Some(devices),
            MixGoal::Devices => all.clone().find(|on| table.throughput(*on).is_some()),
            MixGoal::PerDevice => {
                let each = |on: u64| Some((table.throughput(on)? / on as f64, on));
                all.filter_map(each).reduce(|a, b| if b.0 > a.0 { b } else { a }).map(|(_, on)| on)
            }
        };
        let chosen = best.and_then(|on| table.chosen(on)).unwrap_or_default();
        let mut counts: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        for at in chosen {
            let choice = of_sizes[at].1;
            *counts.entry((choice.shape, choice.requests)).or_default() += 1;
        }
        found.extend(deployed(problem, shapes, formats, counts));
    }
    found
}

/// Maximum throughput for each number of devices and parts, with the last instance chosen.
struct ShareTable {
    parts: u64,
    best: Vec<Option<(f64, usize)>>,
    items: Vec<(u64, u64)>,
}

impl ShareTable {
    fn new(options: &[(&(u64, u64), &SizeOption)], devices: u64, parts: u64) -> ShareTable {
        let items: Vec<(u64, u64)> = options.iter().map(|(key, _)| **key).collect();
        let mut table = ShareTable { parts, best: vec![], items };
        for on in 0..=devices {
            for held in 0..=parts {
                let mut best: Option<(f64, usize)> = None;
                for (at, ((size, part), choice)) in options.iter().enumerate() {
                    if *size > on || *part > held {
                        continue;
                    }
                    let Some(rest) = table.value(on - size, held - part) else { continue };
                    let value = rest + choice.rate;
                    if best.is_none_or(|(known, _)| value > known) {
                        best = Some((value, at));
                    }
                }
                table.best.push(best);
            }
        }
        table
    }

    fn value(&self, devices: u64, held: u64) -> Option<f64> {
        if held == 0 {
            return Some(0.0);
        }
        self.best[(devices * (self.parts + 1) + held) as usize].map(|(value, _)| value)
    }

    /// Throughput of all requests on at most `devices` devices; `None` if they do not fit.
    fn throughput(&self, devices: u64) -> Option<f64> {
        self.value(devices, self.parts)
    }

    /// The instances that reach this throughput, by index.
    fn chosen(&self, devices: u64) -> Option<Vec<usize>> {
        let (mut devices, mut held, mut chosen) = (devices, self.parts, vec![]);
        while held > 0 {
            let (_, at) = self.best[(devices * (self.parts + 1) + held) as usize]?;
            let (size, part) = self.items[at];
            (devices, held) = (devices - size, held - part);
            chosen.push(at);
        }
        Some(chosen)
    }
}

/// Mixes on the fewest devices that sustain a rate.
fn at_rate(problem: &Problem, shapes: &Shapes, formats: usize, rate: f64) -> Vec<EvaluatedCandidate> {
    let mut options: BTreeMap<u64, SizeOption> = BTreeMap::new();
    for (shape, prepared) in of_formats(problem, shapes, formats) {
        let flow = |requests: u64| {
            let slots = prepared.concurrency(requests);
            slots as f64 / prepared.filled(slots)
        };
        let keeps = |requests: u64| {
            let traffic = Traffic::Rate(flow(requests));
            let slots = prepared.concurrency(requests);
            prepared.missed(&prepared.under(&traffic, 1, slots), slots).is_none()
        };
        let most = largest(prepared.shape.fits, keeps);
        if most == 0 {
            continue;
        }
        let choice = SizeOption { shape, requests: prepared.concurrency(most), rate: flow(most) };
        let best = options.entry(prepared.shape.plan.devices()).or_insert(choice);
        if choice.rate > best.rate {
            *best = choice;
        }
    }
    let mut found = Vec::new();
    for Fill { sizes, devices, .. } in fills(problem.capacity(), &options.keys().copied().collect::<Vec<_>>())
    {
        let of_sizes: Vec<_> = options.iter().filter(|(size, _)| sizes.contains(size)).collect();
        let item = |(size, choice): &(&u64, &SizeOption)| Item { devices: **size, value: choice.rate };
        let table = Table::new(&of_sizes.iter().map(item).collect::<Vec<_>>(), devices);
        let Some(fewest) = (1..=devices).find(|on| table.value(*on) >= rate) else { continue };
        let counts = of_sizes.iter().zip(table.counts(fewest)).filter(|(_, count)| *count > 0);
        let counts = counts.map(|((_, choice), count)| ((choice.shape, choice.requests), count)).collect();
        found.extend(deployed(problem, shapes, formats, counts));
    }
    found
}

/// The full mix, larger instances first; `None` where one of its pools misses an SLO.
fn deployed(
    problem: &Problem,
    shapes: &Shapes,
    formats: usize,
    counts: BTreeMap<(usize, u64), u64>,
) -> Option<EvaluatedCandidate> {
    let pool = |((shape, slots), replicas): ((usize, u64), u64)| {
        shapes[shape].pool(Role::Aggregated, replicas, slots)
    };
    let mut pools: Vec<PoolPlan> = counts.into_iter().map(pool).collect();
    pools.sort_by_key(|pool| std::cmp::Reverse((pool.plan.devices(), pool.concurrency)));
    let candidate = Candidate { formats, pools, offload: Offload::Nothing };
    (candidate.pools.len() > 1).then(|| EvaluatedCandidate::within_limits(problem, candidate))?
}
