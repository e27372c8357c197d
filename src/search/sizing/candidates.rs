//! All instance configurations of a system: the one with the highest concurrency, or the lowest latency at a
//! concurrency.
//!
//! Covers aggregated deployments of identical replicas. Exact: a configuration is skipped only where it cannot be the
//! best, because latencies never decrease with load.

use crate::spec::offload::OffloadPolicy;
use std::sync::Arc;

use rayon::prelude::*;

use crate::plan::infeasible::{Infeasible, Refused, refuse};
use crate::search::hosting::most_replicas;
use crate::search::layouts::Layouts;
use crate::search::outcome::{Census, EvaluatedCandidate};
use crate::search::point::{Point, place};
use crate::search::problem::Problem;
use crate::search::shape::PreparedShape;
use crate::serving::instance::Instance;
use crate::spec::objective::Metric;

/// A prepared instance in one format pair.
pub struct InstanceLayout {
    formats: usize,
    instance: Arc<Instance>,
}

/// Every legal instance of the problem, independent of lengths.
pub fn instances(problem: &Problem, layouts: &Layouts, census: &mut Census) -> Vec<InstanceLayout> {
    layouts.all(problem, census, |formats, instance| InstanceLayout { formats, instance })
}

/// Those that hold the model and one request: with offloading where it is allowed, or where nothing fits without.
pub fn shapes<'q>(
    problem: &'q Problem,
    layouts: &[InstanceLayout],
    census: &mut Census,
) -> Vec<PreparedShape<'q>> {
    let parts = layouts.par_chunks(CHUNK).map(|chunk| {
        let (mut held, mut shapes, mut refused) = (Vec::new(), Vec::new(), Refused::new());
        for layout in chunk {
            let filled = match PreparedShape::fitting(problem, layout.formats, &layout.instance) {
                Ok(prepared) if !prepared.shape.roles.aggregated => continue,
                Ok(prepared) if prepared.shape.fits > 0 => {
                    let most = prepared.concurrency(prepared.shape.fits);
                    let late = prepared.missed(&prepared.at(1, most), most).is_some();
                    held.push(prepared);
                    late
                }
                Ok(_) => false,
                Err(reason) => {
                    refuse(&mut refused, &reason);
                    false
                }
            };
            if problem.offload != OffloadPolicy::Never {
                offloaded(problem, (layout, filled), &mut shapes, &mut refused);
            }
        }
        (held, shapes, refused)
    });
    let (mut all, mut later) = (Vec::new(), Vec::new());
    for (held, shapes, refused) in parts.collect::<Vec<_>>() {
        all.extend(held);
        later.extend(shapes);
        census.add_refused(refused);
    }
    all.extend(later);
    census.shapes = all.len() as u64;
    all
}

/// The configurations of an instance with an offloaded part. `filled`: no more memory would let it serve more.
fn offloaded<'q>(
    problem: &'q Problem,
    (layout, filled): (&InstanceLayout, bool),
    shapes: &mut Vec<PreparedShape<'q>>,
    refused: &mut Refused,
) {
    let InstanceLayout { formats, instance } = layout;
    for offload in problem.offloads(*formats, instance, filled) {
        match PreparedShape::offloading(problem, *formats, instance, offload) {
            Ok(all) => shapes.extend(all.into_iter().filter(|prepared| prepared.shape.roles.aggregated)),
            Err(reason) => refuse(refused, &reason),
        }
    }
}

const CHUNK: usize = 64;
/// Maximum number of parts of the work, and configurations per part. They do not depend on the number of threads, so
/// that the census does not either.
const PARTS: usize = 4;
const ENTRIES_PER_PART: usize = 1024;

/// A deployment: index of its configuration, replicas, concurrency of each.
type DeploymentKey = (usize, u64, u64);

/// Maximum capacity of a system within the SLOs.
#[derive(Clone, Copy, Debug)]
pub struct MaxServed {
    /// Maximum concurrency, in any deployment.
    pub users: u64,
    /// The highest throughput of those that were evaluated: a lower bound of the maximum.
    pub point: Point,
}

/// A load of a replica within the SLOs.
#[derive(Clone, Copy)]
struct FeasibleLoad {
    concurrency: u64,
    /// The largest ratio of a latency to its SLO.
    filled: f64,
    /// E2E latency in seconds.
    e2e: f64,
}

/// A configuration that meets the SLOs at its lowest load.
struct FeasibleShape<'q> {
    prepared: &'q PreparedShape<'q>,
    /// Number of replicas that fit.
    capacity: u64,
    /// Maximum concurrency of a replica by memory.
    fits: u64,
    /// The lowest load that is searched: one request, or the first beyond device memory.
    lowest: FeasibleLoad,
}

/// The nearest candidate where all are infeasible: the factor by which it misses an SLO, and which.
pub type NearestCandidate = (f64, EvaluatedCandidate, Infeasible);

/// All configurations that meet the SLOs, those that hold the most requests first.
pub struct SizingCandidates<'q> {
    problem: &'q Problem,
    shapes: &'q [PreparedShape<'q>],
    entries: Vec<(usize, FeasibleShape<'q>)>,
    nearest: Option<(f64, usize, Infeasible)>,
    meets_tpot: bool,
}

impl<'q> SizingCandidates<'q> {
    /// Evaluates every configuration with one request.
    pub fn new(problem: &'q Problem, shapes: &'q [PreparedShape<'q>]) -> SizingCandidates<'q> {
        let tried = shapes.par_iter().map(|prepared| {
            let shape = &prepared.shape;
            let concurrency = prepared.lowest();
            let point = prepared.at(1, concurrency);
            match prepared.missed(&point, concurrency) {
                None => {
                    let filled = problem.filled(&point, prepared.margin(concurrency));
                    let e2e = point[place(Metric::E2e)];
                    let (capacity, fits) = (most_replicas(problem, shape), prepared.concurrency(shape.fits));
                    let lowest = FeasibleLoad { concurrency, filled, e2e };
                    Ok(FeasibleShape { prepared, capacity, fits, lowest })
                }
                Some(reason) => {
                    let slow = point[place(Metric::Tpot)] > problem.tpot_limit(prepared.margin(concurrency));
                    Err((reason, !slow))
                }
            }
        });
        let (mut entries, mut nearest) = (Vec::new(), None::<(f64, usize, Infeasible)>);
        let mut meets_tpot = false;
        for (at, tried) in tried.collect::<Vec<_>>().into_iter().enumerate() {
            match tried {
                Ok(entry) => {
                    meets_tpot = true;
                    entries.push((at, entry))
                }
                Err((reason, in_time)) => {
                    meets_tpot |= in_time;
                    let Some(miss) = reason.filled() else { continue };
                    if nearest.as_ref().is_none_or(|(known, ..)| miss < *known) {
                        nearest = Some((miss, at, reason));
                    }
                }
            }
        }
        let users = |(_, entry): &(usize, FeasibleShape)| entry.capacity * entry.fits;
        entries.sort_by(|a, b| users(b).cmp(&users(a)).then(a.0.cmp(&b.0)));
        SizingCandidates { problem, shapes, entries, nearest, meets_tpot }
    }

    /// Whether any configuration meets the TPOT SLO with one request. If none does, no decode worker does either.
    pub fn meets_tpot(&self) -> bool {
        self.meets_tpot
    }

    pub fn nearest(&self) -> Option<NearestCandidate> {
        let (miss, at, reason) = self.nearest.clone()?;
        let lowest = self.shapes.get(at)?.lowest();
        Some((miss, self.found(self.problem, (at, 1, lowest)), reason))
    }

    /// Maximum concurrency; `None` where no candidate meets the SLOs.
    pub fn most(&self, census: &mut Census) -> Option<MaxServed> {
        let count = self.entries.len().div_ceil(ENTRIES_PER_PART).clamp(1, PARTS);
        let parts = (0..count).into_par_iter().map(|part| {
            let (mut most, mut probes) = (None::<MaxServed>, 0);
            for (_, entry) in self.entries.iter().skip(part).step_by(count) {
                let (found, tried) = self.raise(entry, most.map_or(0, |most| most.users));
                most = merged(most, found);
                probes += tried;
            }
            (most, probes)
        });
        let start = (None, self.shapes.len() as u64);
        let (most, probes) = parts
            .collect::<Vec<_>>()
            .into_iter()
            .fold(start, |(most, probes), (other, more)| (merged(most, other), probes + more));
        let loads: u64 =
            self.shapes.iter().map(|prepared| prepared.shape.fits + 1 - prepared.shape.from).sum();
        let missing = (self.shapes.len() - self.entries.len()) as u64;
        let evaluated = probes.min(loads);
        census.candidates += loads;
        census.evaluated += evaluated;
        census.prune("cannot_be_most", loads - evaluated);
        if let Some((_, _, reason)) = &self.nearest {
            census.refuse(reason.kind(), missing, &reason.to_string());
        }
        most
    }

    /// Examines one configuration as far as it may serve more than `users`. Returns the number of evaluations too.
    fn raise(&self, entry: &FeasibleShape, users: u64) -> (Option<MaxServed>, u64) {
        // The SLOs are met at `low` and missed beyond `highest`.
        let (mut low, mut highest, mut above) = (entry.lowest, entry.fits, None::<(u64, f64)>);
        let (mut steps, mut halve) = (0, false);
        let mut most: Option<MaxServed> = None;
        while low.concurrency < highest && entry.capacity * highest > users {
            let from = low.concurrency + 1;
            let probe = match above {
                None => highest,
                Some(_) if halve => from + (highest - from) / 2,
                // Secant step to the SLO.
                Some((load, beyond)) => {
                    let share = (1.0 - low.filled) / (beyond - low.filled);
                    let straight = low.concurrency + (share * (load - low.concurrency) as f64) as u64;
                    straight.clamp(from, highest)
                }
            };
            steps += 1;
            let point = entry.prepared.at(entry.capacity, probe);
            let filled = self.problem.filled(&point, entry.prepared.margin(probe));
            let before = highest - low.concurrency;
            if filled <= 1.0 {
                low = FeasibleLoad { concurrency: probe, filled, e2e: point[place(Metric::E2e)] };
                most = merged(most, Some(MaxServed { users: entry.capacity * probe, point }));
            } else {
                (highest, above) = (probe - 1, Some((probe, filled)));
            }
            halve = !halve && highest - low.concurrency > before / 2;
        }
        if most.is_none() && entry.capacity * low.concurrency > users {
            steps += 1;
            let point = entry.prepared.at(entry.capacity, low.concurrency);
            most = Some(MaxServed { users: entry.capacity * low.concurrency, point });
        }
        (most, steps)
    }

    /// The deployment of `share` concurrent requests that is the best under `target`, whose objective is the lowest latency,
    /// within the SLOs. Fewer replicas are never faster: of those with the lowest concurrency of each it takes the fewest.
    pub fn quickest(&self, target: &Problem, share: u64, census: &mut Census) -> Option<DeploymentKey> {
        let mut order: Vec<&(usize, FeasibleShape)> = self.entries.iter().collect();
        order.sort_by(|a, b| a.1.lowest.e2e.total_cmp(&b.1.lowest.e2e).then(a.0.cmp(&b.0)));
        let mut best: Option<(Point, DeploymentKey)> = None;
        for (at, entry) in order {
            // No load has a lower latency than the lowest.
            if best.is_some_and(|(known, _)| entry.lowest.e2e > known[place(Metric::E2e)]) {
                break;
            }
            let (replicas, concurrency) = spread(entry, share);
            if !(entry.lowest.concurrency..=entry.fits).contains(&concurrency) {
                continue;
            }
            census.candidates += 1;
            census.evaluated += 1;
            let point = entry.prepared.under(&target.traffic, replicas, concurrency);
            let better =
                best.is_none_or(|(known, key)| target.compare(&point, &known).then(at.cmp(&key.0)).is_lt());
            if better && entry.prepared.missed(&point, concurrency).is_none() {
                best = Some((point, (*at, replicas, concurrency)));
            }
        }
        best.map(|(_, at)| at)
    }

    /// A deployment with its metrics under the traffic of `question`.
    pub fn found(&self, problem: &Problem, (at, replicas, concurrency): DeploymentKey) -> EvaluatedCandidate {
        EvaluatedCandidate::measured(problem, self.shapes[at].shape.replicated(replicas, concurrency))
    }
}

/// The maxima of both, where there are any.
fn merged(one: Option<MaxServed>, other: Option<MaxServed>) -> Option<MaxServed> {
    let (Some(a), Some(b)) = (one, other) else { return one.or(other) };
    let output = place(Metric::OutputTokS);
    let point = if b.point[output] > a.point[output] { b.point } else { a.point };
    Some(MaxServed { users: a.users.max(b.users), point })
}

/// The lowest concurrency of each replica at which those that fit serve `requests`, and the fewest replicas that do.
fn spread(entry: &FeasibleShape, requests: u64) -> (u64, u64) {
    let concurrency = requests.div_ceil(entry.capacity.min(requests));
    (requests.div_ceil(concurrency), concurrency)
}
