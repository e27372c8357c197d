//! All instance configurations of a system: the one with the highest concurrency, the highest throughput, or the
//! lowest latency at a concurrency.
//!
//! Covers aggregated deployments of identical replicas. Exact: a configuration is skipped only where it cannot be the
//! best, because latencies never decrease with load.

use std::sync::Arc;

use rayon::prelude::*;

use crate::plan::infeasible::{Infeasible, Refused, refuse};
use crate::search::aggregated::measure;
use crate::search::candidate::{Candidate, PoolPlan, PoolRole};
use crate::search::hosting::most_replicas;
use crate::search::layouts::each;
use crate::search::outcome::{Census, EvaluatedCandidate};
use crate::search::point::{Point, place};
use crate::search::problem::{OffloadPolicy, Problem};
use crate::search::shape::{InstanceConfig, PreparedShape};
use crate::serving::instance::Instance;
use crate::spec::objective::Metric;

/// A prepared instance in one format pair.
pub struct InstanceLayout {
    formats: usize,
    instance: Arc<Instance>,
}

/// Every legal instance of the problem, independent of lengths.
pub fn layouts(problem: &Problem, census: &mut Census) -> Vec<InstanceLayout> {
    each(problem, census, |formats, instance| InstanceLayout { formats, instance })
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
                Ok(laid) if !laid.shape.roles.aggregated => continue,
                Ok(laid) if laid.shape.fits > 0 => {
                    let most = laid.concurrency(laid.shape.fits);
                    let late = laid.missed(&laid.at(1, most), most).is_some();
                    held.push(laid);
                    late
                }
                Ok(_) => false,
                Err(reason) => {
                    refuse(&mut refused, &reason);
                    false
                }
            };
            if problem.offload == OffloadPolicy::Considered {
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
            Ok(all) => shapes.extend(all.into_iter().filter(|laid| laid.shape.roles.aggregated)),
            Err(reason) => refuse(refused, &reason),
        }
    }
}

/// Layouts per chunk.
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
    /// Maximum output tokens per second, with the deployment.
    pub output: (f64, DeploymentKey),
}

impl MaxServed {
    const NONE: MaxServed = MaxServed { users: 0, output: (0.0, (usize::MAX, 0, 0)) };

    /// With the throughput of one more deployment.
    fn with_output(self, point: &Point, deployment: DeploymentKey) -> MaxServed {
        self.with(MaxServed { users: 0, output: (point[place(Metric::OutputTokS)], deployment) })
    }

    fn with(self, other: MaxServed) -> MaxServed {
        // Of equals the first.
        let ahead = (other.output.0, self.output.1.0) > (self.output.0, other.output.1.0);
        MaxServed {
            users: self.users.max(other.users),
            output: if ahead { other.output } else { self.output },
        }
    }
}

/// A load of a replica within the SLOs.
#[derive(Clone, Copy)]
struct FeasibleLoad {
    /// Concurrency.
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

impl FeasibleShape<'_> {
    /// Upper bound of the total throughput at up to `concurrency` per replica, if no latency is below that at `low`.
    fn output_at_most(&self, osl: f64, concurrency: u64, low: &FeasibleLoad) -> f64 {
        (self.capacity * concurrency) as f64 * osl / low.e2e * (1.0 + HAIR)
    }

    /// The lowest concurrency at which the same bound may reach `output`.
    fn output_from(&self, osl: f64, low: &FeasibleLoad, output: f64) -> u64 {
        (output * low.e2e / (osl * self.capacity as f64) * (1.0 - HAIR)).ceil() as u64
    }
}

/// Steps to the lowest concurrency that may improve the best throughput, before the SLOs are followed.
const LEAPS: u64 = 4;
/// Rounding margin.
const HAIR: f64 = 1e-12;

/// The nearest candidate where all are infeasible: the factor by which it misses an SLO, and which.
pub type NearestCandidate = (f64, EvaluatedCandidate, Infeasible);

/// All configurations that meet the SLOs, those with the highest throughput bound first.
pub struct SizingCandidates<'q> {
    problem: &'q Problem,
    shapes: &'q [PreparedShape<'q>],
    entries: Vec<(usize, FeasibleShape<'q>)>,
    nearest: Option<(f64, usize, Infeasible)>,
    paced: bool,
}

impl<'q> SizingCandidates<'q> {
    /// Evaluates every configuration with one request.
    pub fn new(problem: &'q Problem, shapes: &'q [PreparedShape<'q>]) -> SizingCandidates<'q> {
        let tried = shapes.par_iter().map(|laid| {
            let shape = &laid.shape;
            let concurrency = laid.lowest();
            let point = laid.at(1, concurrency);
            match laid.missed(&point, concurrency) {
                None => {
                    let filled = problem.filled(&point, laid.margin(concurrency));
                    let e2e = point[place(Metric::E2e)];
                    let (room, fits) = (most_replicas(problem, shape), laid.concurrency(shape.fits));
                    Ok(FeasibleShape {
                        prepared: laid,
                        capacity: room,
                        fits,
                        lowest: FeasibleLoad { concurrency, filled, e2e },
                    })
                }
                Some(reason) => {
                    let slow = point[place(Metric::Tpot)] > problem.tpot_limit(laid.margin(concurrency));
                    Err((reason, !slow))
                }
            }
        });
        let (mut entries, mut nearest) = (Vec::new(), None::<(f64, usize, Infeasible)>);
        let mut paced = false;
        for (at, tried) in tried.collect::<Vec<_>>().into_iter().enumerate() {
            match tried {
                Ok(entry) => {
                    paced = true;
                    entries.push((at, entry))
                }
                Err((reason, pace)) => {
                    paced |= pace;
                    let Infeasible::LimitMissed { value, limit, .. } = reason else { continue };
                    let miss = value / limit;
                    if nearest.as_ref().is_none_or(|(known, ..)| miss < *known) {
                        nearest = Some((miss, at, reason));
                    }
                }
            }
        }
        let promise =
            |(_, entry): &(usize, FeasibleShape)| entry.output_at_most(1.0, entry.fits, &entry.lowest);
        entries.sort_by(|a, b| promise(b).total_cmp(&promise(a)).then(a.0.cmp(&b.0)));
        SizingCandidates { problem, shapes, entries, nearest, paced }
    }

    /// Whether any configuration meets the TPOT SLO with one request. If none does, no decode worker does either.
    pub fn paced(&self) -> bool {
        self.paced
    }

    /// The nearest candidate.
    pub fn nearest(&self) -> Option<NearestCandidate> {
        let (miss, at, reason) = self.nearest.clone()?;
        let lowest = self.shapes.get(at)?.lowest();
        Some((miss, self.found(self.problem, (at, 1, lowest)), reason))
    }

    /// Maximum concurrency and throughput; `None` where no candidate meets the SLOs.
    pub fn most(&self, census: &mut Census) -> Option<MaxServed> {
        let count = self.entries.len().div_ceil(ENTRIES_PER_PART).clamp(1, PARTS);
        let parts = (0..count).into_par_iter().map(|part| {
            let (mut most, mut probes) = (MaxServed::NONE, 0);
            for (at, entry) in self.entries.iter().skip(part).step_by(count) {
                probes += self.raise(*at, entry, &mut most);
            }
            (most, probes)
        });
        let start = (MaxServed::NONE, self.shapes.len() as u64);
        let (most, probes) = parts
            .collect::<Vec<_>>()
            .into_iter()
            .fold(start, |(most, probes), (other, more)| (most.with(other), probes + more));
        let loads: u64 = self.shapes.iter().map(|laid| laid.shape.fits + 1 - laid.shape.from).sum();
        let missing = (self.shapes.len() - self.entries.len()) as u64;
        let evaluated = probes.min(loads);
        census.candidates += loads;
        census.evaluated += evaluated;
        census.prune("cannot_be_most", loads - evaluated);
        if let Some((_, _, reason)) = &self.nearest {
            census.refuse(reason.kind(), missing, &reason.to_string());
        }
        (most.users > 0).then_some(most)
    }

    /// Examines one configuration as far as it may improve `most`. Returns the number of evaluations.
    fn raise(&self, at: usize, entry: &FeasibleShape, most: &mut MaxServed) -> u64 {
        let osl = self.problem.workload.lengths.osl as f64;
        // The SLOs are met at `low` and missed beyond `highest`.
        let (mut low, mut highest, mut above) = (entry.lowest, entry.fits, None::<(u64, f64)>);
        let (mut steps, mut halve) = (0, false);
        // Whether no concurrency below `low` has a higher throughput than the best so far.
        let mut all_leaps = true;
        while low.concurrency < highest {
            let more_users = entry.capacity * highest > most.users.max(entry.capacity * low.concurrency);
            let more_output = entry.output_at_most(osl, highest, &low) >= most.output.0;
            if !more_users && !more_output {
                break;
            }
            let from = low.concurrency + 1;
            // The lowest concurrency that may improve on the users or the throughput so far.
            let raising = if more_users { most.users / entry.capacity + 1 } else { u64::MAX };
            let leap = if more_output { entry.output_from(osl, &low, most.output.0) } else { u64::MAX };
            let next = raising.min(leap);
            let leaping = steps < LEAPS && (from..highest).contains(&next);
            all_leaps &= leaping;
            let probe = match above {
                _ if leaping => next,
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
                *most = most.with_output(&point, (at, entry.capacity, probe));
            } else {
                (highest, above) = (probe - 1, Some((probe, filled)));
            }
            halve = !halve && highest - low.concurrency > before / 2;
        }
        most.users = most.users.max(entry.capacity * low.concurrency);
        if all_leaps && low.concurrency > 1 {
            return steps;
        }
        // Throughput increases among loads that fill every rank and micro-batch equally, and after the last of them.
        let plan = &entry.prepared.shape.plan;
        let ranks = low.concurrency / plan.dp;
        let loads = [ranks * plan.dp, (ranks - ranks % plan.pp) * plan.dp];
        for concurrency in loads.into_iter().map(|load| if ranks == 0 { low.concurrency } else { load }) {
            if concurrency == 0 || entry.output_at_most(osl, concurrency, &entry.lowest) < most.output.0 {
                continue;
            }
            steps += 1;
            let point = entry.prepared.at(entry.capacity, concurrency);
            *most = most.with_output(&point, (at, entry.capacity, concurrency));
        }
        steps
    }

    /// The deployment of `share` concurrent requests with the lowest latency within the SLOs. Uses as many replicas
    /// as fit: fewer are never faster.
    pub fn quickest(&self, share: u64, census: &mut Census) -> Option<DeploymentKey> {
        let mut order: Vec<&(usize, FeasibleShape)> = self.entries.iter().collect();
        order.sort_by(|a, b| a.1.lowest.e2e.total_cmp(&b.1.lowest.e2e).then(a.0.cmp(&b.0)));
        let mut best: Option<(f64, DeploymentKey)> = None;
        for (at, entry) in order {
            // No load has a lower latency than the lowest.
            if best.is_some_and(|(e2e, _)| entry.lowest.e2e > e2e) {
                break;
            }
            let (replicas, concurrency) = spread(entry, share);
            if !(entry.lowest.concurrency..=entry.fits).contains(&concurrency) {
                continue;
            }
            census.candidates += 1;
            census.evaluated += 1;
            let point = entry.prepared.at(replicas, concurrency);
            let found = (point[place(Metric::E2e)], (*at, replicas, concurrency));
            let ahead = best.is_none_or(|known| (found.0, found.1.0) < (known.0, known.1.0));
            if ahead && entry.prepared.missed(&point, concurrency).is_none() {
                best = Some(found);
            }
        }
        best.map(|(_, at)| at)
    }

    /// Whether any configuration meets the SLOs at a concurrency of `users`.
    pub fn serves(&self, users: u64) -> bool {
        self.entries.par_iter().any(|(_, entry)| {
            let (replicas, concurrency) = spread(entry, users);
            (entry.lowest.concurrency..=entry.fits).contains(&concurrency)
                && entry.prepared.missed(&entry.prepared.at(replicas, concurrency), concurrency).is_none()
        })
    }

    /// A deployment with its metrics under the traffic of `question`.
    pub fn found(&self, problem: &Problem, (at, replicas, concurrency): DeploymentKey) -> EvaluatedCandidate {
        let InstanceConfig { formats, plan, stages, offload, .. } = &*self.shapes[at].shape;
        let pool = PoolPlan {
            role: PoolRole::Aggregated,
            plan: *plan,
            stages: stages.clone(),
            replicas,
            concurrency,
        };
        let candidate = Candidate { formats: *formats, pools: vec![pool], offload: *offload };
        EvaluatedCandidate { point: measure(problem, &candidate), candidate }
    }
}

/// Number of replicas for `requests`, and the highest concurrency of one.
fn spread(entry: &FeasibleShape, requests: u64) -> (u64, u64) {
    let replicas = entry.capacity.min(requests);
    (replicas, requests.div_ceil(replicas))
}
