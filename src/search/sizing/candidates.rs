//! All shapes of a system side by side: which of them carries most, yields most, or is quickest with so many users.
//!
//! Knows like instances that take prompts and answers. Exact: a shape is passed by only where it cannot be the one,
//! because latencies never fall as load grows.

use std::sync::Arc;

use rayon::prelude::*;

use crate::plan::infeasible::Infeasible;
use crate::search::aggregated::measure;
use crate::search::candidate::{Candidate, PoolPlan, PoolRole};
use crate::search::layouts::each;
use crate::search::outcome::{Census, EvaluatedCandidate};
use crate::search::point::place;
use crate::search::question::{OffloadPolicy, Problem};
use crate::search::shape::{InstanceConfig, PreparedShape, Refused, refuse, shape};
use crate::serving::instance::Instance;
use crate::serving::terms::OffloadTarget;
use crate::spec::objective::Metric;

/// An instance laid out in one pair of formats.
pub struct InstanceLayout {
    formats: usize,
    instance: Arc<Instance>,
}

/// Every instance that the question allows, of any lengths.
pub fn layouts(question: &Problem, census: &mut Census) -> Vec<InstanceLayout> {
    each(question, census, |formats, instance| InstanceLayout { formats, instance: Arc::new(instance) })
}

/// Those that hold the model and a request: with host memory where it is allowed, or where nothing fits without.
pub fn shapes<'a>(
    question: &Problem,
    layouts: &'a [InstanceLayout],
    census: &mut Census,
) -> Vec<(InstanceConfig, &'a Arc<Instance>)> {
    let mut all = holding(question, layouts, &[OffloadTarget::Nothing], census);
    if question.offload == OffloadPolicy::Always
        || (question.offload == OffloadPolicy::Auto && all.is_empty())
    {
        all.extend(holding(question, layouts, question.offloads(), census));
    }
    census.shapes = all.len() as u64;
    all
}

fn holding<'a>(
    question: &Problem,
    layouts: &'a [InstanceLayout],
    offloads: &[OffloadTarget],
    census: &mut Census,
) -> Vec<(InstanceConfig, &'a Arc<Instance>)> {
    let parts = layouts.par_chunks(CHUNK).map(|chunk| {
        let (mut shapes, mut refused) = (Vec::new(), Refused::new());
        for InstanceLayout { formats, instance } in chunk {
            for &offload in offloads {
                match shape(question, *formats, instance, offload) {
                    Ok(shape) if shape.fits > 0 => shapes.push((shape, instance)),
                    Ok(_) => {}
                    Err(reason) => refuse(&mut refused, &reason),
                }
            }
        }
        (shapes, refused)
    });
    let mut all = Vec::new();
    for (shapes, refused) in parts.collect::<Vec<_>>() {
        all.extend(shapes);
        refused.iter().for_each(|(kind, (count, example))| census.refuse(kind, *count, example));
    }
    all
}

/// Layouts that are looked at in one go.
const CHUNK: usize = 64;
/// Parts that the shapes are looked at in. Fixed, so that the census does not depend on the number of threads.
const PARTS: usize = 4;

/// A deployment: the place of its shape, instances, requests in flight of each.
type DeploymentKey = (usize, u64, u64);

/// What a system does at most within the limits.
#[derive(Clone, Copy, Debug)]
pub struct MaxServed {
    /// Requests in flight, in any deployment.
    pub users: u64,
    /// Output tokens a second, and the deployment.
    pub output: (f64, DeploymentKey),
}

impl MaxServed {
    const NONE: MaxServed = MaxServed { users: 0, output: (0.0, (usize::MAX, 0, 0)) };

    fn with(self, other: MaxServed) -> MaxServed {
        // Of equals the first.
        let ahead = (other.output.0, self.output.1.0) > (self.output.0, other.output.1.0);
        MaxServed {
            users: self.users.max(other.users),
            output: if ahead { other.output } else { self.output },
        }
    }
}

/// A load of an instance that keeps the limits.
#[derive(Clone, Copy)]
struct FeasibleLoad {
    /// Requests in flight.
    concurrency: u64,
    /// The largest share of a limit that is used.
    filled: f64,
    /// Time of a request.
    e2e: f64,
}

/// A shape that keeps the limits with one request.
struct FeasibleShape<'q> {
    laid: PreparedShape<'q>,
    /// Instances that the system has room for.
    room: u64,
    /// Requests in flight of an instance that memory has room for.
    fits: u64,
    /// One request.
    alone: FeasibleLoad,
}

impl FeasibleShape<'_> {
    /// No output of the whole system is above this with up to so many requests an instance, if none is quicker
    /// than at `low`.
    fn output_at_most(&self, osl: f64, concurrency: u64, low: &FeasibleLoad) -> f64 {
        (self.room * concurrency) as f64 * osl / low.e2e * (1.0 + HAIR)
    }
}

/// Room for rounding.
const HAIR: f64 = 1e-12;

/// What came nearest to the limits where nothing keeps them: by how many times it misses one, and which.
pub type NearestCandidate = (f64, EvaluatedCandidate, Infeasible);

/// All shapes that keep the limits at all, those that promise most output first.
pub struct SizingCandidates<'q> {
    question: &'q Problem,
    shapes: &'q [(InstanceConfig, &'q Arc<Instance>)],
    entries: Vec<(usize, FeasibleShape<'q>)>,
    nearest: Option<(f64, usize, Infeasible)>,
    paced: bool,
}

impl<'q> SizingCandidates<'q> {
    /// Tries every shape with one request.
    pub fn new(
        question: &'q Problem,
        shapes: &'q [(InstanceConfig, &'q Arc<Instance>)],
    ) -> SizingCandidates<'q> {
        let tried = shapes.par_iter().map(|(shape, instance)| {
            let laid = PreparedShape::of(question, shape, Arc::clone(instance));
            let point = laid.at(1, 1);
            match question.missed(&point) {
                None => {
                    let (filled, e2e) = (question.filled(&point), point[place(Metric::E2e)]);
                    let (room, fits) =
                        (question.room().most(shape.plan.devices()), laid.concurrency(shape.fits));
                    Ok(FeasibleShape {
                        laid,
                        room,
                        fits,
                        alone: FeasibleLoad { concurrency: 1, filled, e2e },
                    })
                }
                Some(reason) => {
                    let slow = question.limits.tpot.is_some_and(|limit| point[place(Metric::Tpot)] > limit);
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
            |(_, entry): &(usize, FeasibleShape)| entry.output_at_most(1.0, entry.fits, &entry.alone);
        entries.sort_by(|a, b| promise(b).total_cmp(&promise(a)).then(a.0.cmp(&b.0)));
        SizingCandidates { question, shapes, entries, nearest, paced }
    }

    /// Whether any shape keeps the limit on the time per token with one request. If none does, no instance that
    /// only decodes does either.
    pub fn paced(&self) -> bool {
        self.paced
    }

    /// What came nearest.
    pub fn nearest(&self) -> Option<NearestCandidate> {
        let (miss, at, reason) = self.nearest.clone()?;
        Some((miss, self.found(self.question, (at, 1, 1)), reason))
    }

    /// Most users and most output; none where nothing keeps the limits.
    pub fn most(&self, census: &mut Census) -> Option<MaxServed> {
        let parts = (0..PARTS).into_par_iter().map(|part| {
            let (mut most, mut probes) = (MaxServed::NONE, 0);
            for (at, entry) in self.entries.iter().skip(part).step_by(PARTS) {
                probes += self.raise(*at, entry, &mut most);
            }
            (most, probes)
        });
        let start = (MaxServed::NONE, self.shapes.len() as u64);
        let (most, probes) = parts
            .collect::<Vec<_>>()
            .into_iter()
            .fold(start, |(most, probes), (other, more)| (most.with(other), probes + more));
        let loads: u64 = self.shapes.iter().map(|(shape, _)| shape.fits).sum();
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

    /// Looks at one shape as far as it may raise `most`; how often it was evaluated.
    fn raise(&self, at: usize, entry: &FeasibleShape, most: &mut MaxServed) -> u64 {
        let osl = self.question.stated.lengths.osl as f64;
        let mut probes = 0;
        // The limits are kept at `low`, and beyond `highest` they are not.
        let (mut low, mut highest, mut above) = (entry.alone, entry.fits, None::<(u64, f64)>);
        let (mut raised, mut halve) = (false, false);
        while low.concurrency < highest {
            let more_users = entry.room * highest > most.users.max(entry.room * low.concurrency);
            if !more_users && entry.output_at_most(osl, highest, &low) < most.output.0 {
                break;
            }
            let raising = most.users / entry.room + 1;
            let from = low.concurrency + 1;
            let probe = match above {
                // First with as many as would carry more users than anything so far.
                None if !raised && (from..highest).contains(&raising) => raising,
                None => highest,
                Some(_) if halve => from + (highest - from) / 2,
                // Where the straight line between what is kept and what is not meets the limit.
                Some((load, beyond)) => {
                    let share = (1.0 - low.filled) / (beyond - low.filled);
                    let straight = low.concurrency + (share * (load - low.concurrency) as f64) as u64;
                    straight.clamp(from, highest)
                }
            };
            raised = true;
            probes += 1;
            let point = entry.laid.at(entry.room, probe);
            let (filled, before) = (self.question.filled(&point), highest - low.concurrency);
            if filled <= 1.0 {
                low = FeasibleLoad { concurrency: probe, filled, e2e: point[place(Metric::E2e)] };
            } else {
                (highest, above) = (probe - 1, Some((probe, filled)));
            }
            halve = !halve && highest - low.concurrency > before / 2;
        }
        most.users = most.users.max(entry.room * low.concurrency);
        // Output grows among loads that fill every rank and micro-batch alike, and from the last of them on.
        let plan = &entry.laid.shape.plan;
        let ranks = low.concurrency / plan.dp;
        let loads = [ranks * plan.dp, (ranks - ranks % plan.pp) * plan.dp];
        for concurrency in loads.into_iter().map(|load| if ranks == 0 { low.concurrency } else { load }) {
            if concurrency == 0 || entry.output_at_most(osl, concurrency, &entry.alone) < most.output.0 {
                continue;
            }
            probes += 1;
            let output = entry.laid.at(entry.room, concurrency)[place(Metric::OutputTokS)];
            *most = most.with(MaxServed { users: 0, output: (output, (at, entry.room, concurrency)) });
        }
        probes
    }

    /// The quickest deployment of `share` requests that keeps the limits. Over as many instances as there is room
    /// for: fewer are no quicker.
    pub fn quickest(&self, share: u64, census: &mut Census) -> Option<DeploymentKey> {
        let mut order: Vec<&(usize, FeasibleShape)> = self.entries.iter().collect();
        order.sort_by(|a, b| a.1.alone.e2e.total_cmp(&b.1.alone.e2e).then(a.0.cmp(&b.0)));
        let mut best: Option<(f64, DeploymentKey)> = None;
        for (at, entry) in order {
            // No request is quicker than one that is alone.
            if best.is_some_and(|(e2e, _)| entry.alone.e2e > e2e) {
                break;
            }
            let (replicas, concurrency) = spread(entry, share);
            if concurrency > entry.fits {
                continue;
            }
            census.candidates += 1;
            census.evaluated += 1;
            let point = entry.laid.at(replicas, concurrency);
            let found = (point[place(Metric::E2e)], (*at, replicas, concurrency));
            let ahead = best.is_none_or(|known| (found.0, found.1.0) < (known.0, known.1.0));
            if ahead && self.question.missed(&point).is_none() {
                best = Some(found);
            }
        }
        best.map(|(_, at)| at)
    }

    /// Whether any shape keeps the limits with `users` requests in flight.
    pub fn serves(&self, users: u64) -> bool {
        self.entries.par_iter().any(|(_, entry)| {
            let (replicas, concurrency) = spread(entry, users);
            concurrency <= entry.fits && self.question.missed(&entry.laid.at(replicas, concurrency)).is_none()
        })
    }

    /// A deployment with its metrics under the traffic of `question`.
    pub fn found(
        &self,
        question: &Problem,
        (at, replicas, concurrency): DeploymentKey,
    ) -> EvaluatedCandidate {
        let InstanceConfig { formats, plan, stages, offload, .. } = &self.shapes[at].0;
        let pool =
            PoolPlan { duty: PoolRole::Both, plan: *plan, stages: stages.clone(), replicas, concurrency };
        let candidate = Candidate { formats: *formats, pools: vec![pool], offload: *offload };
        EvaluatedCandidate { point: measure(question, &candidate), candidate }
    }
}

/// Instances that take `requests`, and how many the fullest of them has.
fn spread(entry: &FeasibleShape, requests: u64) -> (u64, u64) {
    let replicas = entry.room.min(requests);
    (replicas, requests.div_ceil(replicas))
}
