//! The search: instance configurations, then all deployments of them, then the result.

use crate::spec::offload::OffloadPolicy;
use crate::spec::role::Role;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use super::aggregated::replicas::non_dominated;
use super::aggregated::{self, finish};
use super::best_mix::best_mix;
use super::family::StrategyFamily;
use super::layouts::Layouts;
use super::mixed::{MixResult, goal, mixed};
use super::outcome::{Census, EvaluatedCandidate, Outcome, Status};
use super::point::{Point, rank};
use super::problem::Problem;
use super::remaining_bound::{MOST_BOUNDED, RemainingBound};
use super::repeated::{Repeated, repeated};
use super::shape::PreparedShape;
use super::shape_cache::ShapeCache;
use super::shape_results::{ShapeResults, mixes_given_traffic};
use super::shapes::Shapes;
use super::split;
use super::waves::{Pass, Progress, evaluate_shapes, pair_up};
use crate::serving::instance::Instance;

/// Progress and cancellation callbacks.
pub struct Control<'a> {
    /// Receives the number of finished and total steps.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Returns whether to stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// No progress and no cancellation.
pub const UNWATCHED: Control<'static> = Control { progress: &|_, _| {}, stop: &|| false };

const ALTERNATIVES: usize = 8;

pub fn run(problem: &Problem, control: &Control) -> Outcome {
    run_with(problem, &Layouts::until(problem, control.stop), control)
}

/// Solves a problem with the layouts of a problem that has the same instances.
pub fn run_with(problem: &Problem, layouts: &Layouts, control: &Control) -> Outcome {
    run_above(problem, (None, layouts), control)
}

/// Solves a problem whose optimum is better than `floor`, where only the optimum is needed, with the layouts of a problem
/// that has the same instances.
pub(super) fn run_above(
    problem: &Problem,
    (floor, layouts): (Option<&Point>, &Layouts),
    control: &Control,
) -> Outcome {
    let mut census = Census::default();
    if let Err(reason) = problem.context_fits() {
        census.refuse(reason.kind(), 1, &reason.to_string());
        return Outcome::nothing(Status::Infeasible, None, census);
    }
    if !layouts.is_whole() {
        let bound = RemainingBound::UNKNOWN.bound(problem, None);
        return Outcome::nothing(Status::Unknown, bound, census);
    }
    let watch = Progress { control, done: AtomicUsize::new(0), stopped: AtomicBool::new(false) };
    layouts.count_illegal(&mut census);
    let mut found = ShapeResults::new(problem);
    found.aggregated.leader = floor.copied();
    let held = Pass { layouts, offloads: None, first: 0, each: 1 };
    if problem.family != StrategyFamily::Offload {
        found = evaluate_shapes(problem, &held, found, &watch);
    }
    let mut promise = remaining(problem, &held, &mut found);
    // Aggregated deployments only: transferred KV caches must lie in device memory.
    if problem.offload != OffloadPolicy::Never && problem.family != StrategyFamily::Split {
        let filled = std::mem::take(&mut found.filled);
        let offloads = |place: usize, formats: usize, instance: &Instance| {
            problem.offloads(formats, instance, filled.contains(&place))
        };
        let first = layouts.places();
        let pass = Pass { layouts, offloads: Some(&offloads), first, each: MOST_OFFLOADS };
        found = evaluate_shapes(problem, &pass, found, &watch);
        if !found.unexplored.is_empty() {
            promise = RemainingBound::UNKNOWN;
        }
    }
    found.count(&mut census);
    let ShapeResults {
        aggregated: mut replicas,
        decode: mut decode_options,
        prefill: prefill_options,
        shapes,
        ..
    } = found;
    let (mut disaggregated, mut ratio) = (split::SplitIncumbents::new(problem), None);
    let enough = problem.any && !replicas.best.is_empty();
    if problem.split && !enough {
        decode_options.settle(problem);
        census.add(std::mem::take(&mut decode_options.census));
        let cache = ShapeCache::new(problem, &shapes);
        let (found, left) = pair_up(&cache, (&prefill_options, &decode_options), &replicas, &watch);
        disaggregated = found;
        promise = promise.with(problem, left);
        // Pairs of like workers were all searched: only a front shows more than the best of them.
        let mixes = !problem.only_best();
        if mixes && !watch.stopped.load(Relaxed) {
            ratio = mixed(&cache, (&prefill_options, &decode_options), &replicas);
        } else if mixes && goal(problem).is_some() {
            // The throughput of any mix of workers is at most that of the best of them on all devices.
            promise = promise.with(problem, RemainingBound::of_any(problem, &shapes));
        }
    }
    let enough = enough || problem.any && disaggregated.best.is_some();
    let inside = if problem.split && !enough {
        let known = disaggregated.best.iter().map(|(point, _)| point).chain(&replicas.leader);
        let known = known.reduce(|a, b| if problem.is_better(b, a) { b } else { a });
        repeated(problem, layouts, known, control)
    } else {
        Repeated::default()
    };
    census.add(inside.census);
    if inside.stopped {
        // No deployment inside units is better than one request alone or the maximum concurrency.
        promise = promise.with(problem, RemainingBound::of_any(problem, &shapes));
    }
    census.add(std::mem::take(&mut replicas.census));
    census.add(std::mem::take(&mut disaggregated.census));
    let interrupted = watch.stopped.into_inner() || inside.stopped;
    let mixes = mixes_given_traffic(problem) && !interrupted;
    let found = !replicas.best.is_empty() || disaggregated.best.is_some();
    let mix = if mixes { best_mix(problem, &shapes, found) } else { None };
    let extra = mix.into_iter().chain(inside.best.clone()).collect();
    let parts = (replicas, disaggregated, &ratio, (extra, &inside.front[..]));
    let found = assembled(problem, &shapes, parts, census, interrupted.then_some(promise));
    // By plan: a figure that is unknown equals nothing.
    let plan = |best: &Option<EvaluatedCandidate>| best.as_ref().map(|best| best.candidate.clone());
    let repeats = found.best.is_some() && plan(&found.best) == plan(&inside.best);
    Outcome { ratio: if repeats { inside.ratio } else { ratio }, ..found }
}

/// More than the parts of an instance that may be offloaded.
const MOST_OFFLOADS: usize = 1 << 16;

/// The bound of what a stopped pass left, whose workers are outlined; unknown where that is too much.
fn remaining<'q>(problem: &'q Problem, pass: &Pass, found: &mut ShapeResults<'q>) -> RemainingBound {
    let left = std::mem::take(&mut found.unexplored);
    let count = left.iter().map(|(stage, taken)| pass.layouts.count(*stage) - taken).sum::<usize>();
    if count > MOST_BOUNDED {
        return RemainingBound::UNKNOWN;
    }
    let mut promise = RemainingBound::default();
    for (stage, taken) in left {
        let mut seen = 0;
        pass.layouts.each(problem, stage, |place, formats, instance| {
            seen += 1;
            if seen > taken
                && let Ok(prepared) = PreparedShape::fitting(problem, formats, &instance)
            {
                if problem.family != StrategyFamily::Split {
                    promise.shape(&prepared);
                }
                found.outline(place, prepared);
            }
            true
        });
    }
    promise
}

fn assembled(
    problem: &Problem,
    shapes: &Shapes,
    (replicas, disaggregated, ratio, (extra, inside)): (
        aggregated::Incumbents,
        split::SplitIncumbents,
        &Option<MixResult>,
        (Vec<EvaluatedCandidate>, &[EvaluatedCandidate]),
    ),
    census: Census,
    left: Option<RemainingBound>,
) -> Outcome {
    let mut deployments = finish(problem, shapes, &replicas);
    let best = disaggregated.best.map(|(_, key)| key.candidate(shapes));
    deployments.extend(best.map(|candidate| EvaluatedCandidate::measured(problem, candidate)));
    deployments.extend(extra);
    // Pairs of uniform pools were examined already.
    let mixes = ratio.iter().flat_map(|ratio| [&ratio.best, &ratio.disaggregated]).flatten();
    deployments.extend(mixes.filter(|found| found.candidate.pools.len() > 2).cloned());
    deployments.extend(aggregated::strategies(problem, shapes, &replicas));
    deployments.sort_by(|a, b| order(problem, a, b));
    deployments.dedup_by(|a, b| a.candidate == b.candidate);
    let mut alternatives: Vec<EvaluatedCandidate> = Vec::new();
    let mut deployments = deployments.into_iter();
    let best = deployments.next();
    for found in deployments {
        let alike = |other: &EvaluatedCandidate| strategy(other) == strategy(&found);
        if alternatives.len() < ALTERNATIVES && !alternatives.iter().chain(&best).any(alike) {
            alternatives.push(found);
        }
    }
    let mut front = replicas.front.map(FrontKey::Aggregated);
    for (point, key) in disaggregated.front.into_sorted() {
        // Pools that turn out to divide into groups transfer inside them.
        let known = problem.tiers().len() == 1;
        let instances = || [key.prefill.0, key.decode.0].map(|shape| &*shapes[shape].instance);
        let point = if known { point } else { key.candidate(shapes).measure(problem, &instances()) };
        if !disaggregated.copied.dominate(&point) {
            front.insert(point, FrontKey::Disaggregated(key));
        }
    }
    for (at, found) in inside.iter().enumerate() {
        front.insert(found.point, FrontKey::Repeated(at));
    }
    if let Some(best) = &best {
        front.insert(best.point, FrontKey::Best);
    }
    // Replicas that share a host are not copied at will.
    let copied = |key: &aggregated::AggregatedKey| key.replicas == 1 && shapes[key.shape].per_node.is_none();
    let single = |key: &FrontKey| matches!(key, FrontKey::Aggregated(key) if copied(key));
    let front = non_dominated(problem, front.into_sorted(), single);
    let front = front.into_iter().map(|(point, key)| {
        let candidate = match key {
            FrontKey::Aggregated(key) => key.candidate(shapes),
            FrontKey::Disaggregated(key) => key.candidate(shapes),
            FrontKey::Repeated(at) => inside[at].candidate.clone(),
            FrontKey::Best => best.as_ref().expect("it was inserted").candidate.clone(),
        };
        EvaluatedCandidate { candidate, point }
    });
    let mut front: Vec<EvaluatedCandidate> = front.collect();
    // Of equals the front lists the optimum. Where a likelier optimum ties with a point that is better on other axes, it
    // lists both, unless its axes were stated.
    if let Some(best) = best.as_ref().filter(|_| !problem.axes.is_empty()) {
        let same = |row: &&mut EvaluatedCandidate| {
            problem.axes.iter().all(|axis| rank(&row.point, *axis) == rank(&best.point, *axis))
        };
        match front.iter_mut().find(same) {
            Some(row) => row.clone_from(best),
            None if problem.stated_axes => {}
            None => front.insert(0, best.clone()),
        }
    }
    let nearest = replicas.nearest.filter(|_| best.is_none()).map(|(_, point, key, reason)| {
        (EvaluatedCandidate { candidate: key.candidate(shapes), point }, reason)
    });
    let status = match (best.is_some(), left.is_some()) {
        (true, false) => Status::Optimal,
        (true, true) => Status::Feasible,
        (false, false) => Status::Infeasible,
        (false, true) => Status::Unknown,
    };
    let bound = left.unwrap_or_default().bound(problem, best.as_ref().map(|best| &best.point));
    Outcome { status, best, bound, alternatives, front, census, nearest, ratio: None }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum FrontKey {
    Aggregated(aggregated::AggregatedKey),
    Disaggregated(split::SplitKey),
    /// Index among the deployments that repeat inside units.
    Repeated(usize),
    /// The optimum; it may mix configurations.
    Best,
}

/// By the objective; ties to the plainest plan: aggregated before disaggregated, fewest kinds of workers.
fn order(problem: &Problem, a: &EvaluatedCandidate, b: &EvaluatedCandidate) -> std::cmp::Ordering {
    let plainness = |found: &EvaluatedCandidate| {
        let candidate = &found.candidate;
        let plans: Vec<_> = candidate.pools.iter().map(|pool| pool.plan.plainness()).collect();
        (candidate.is_disaggregated(), candidate.pools.len(), plans, candidate.formats)
    };
    problem
        .compare(&a.point, &b.point)
        .then_with(|| plainness(a).cmp(&plainness(b)))
        .then_with(|| a.candidate.pools.cmp(&b.candidate.pools))
}

/// The key that distinguishes strategies.
fn strategy(found: &EvaluatedCandidate) -> (usize, Vec<(Role, String)>) {
    let pools = found.candidate.pools.iter().map(|pool| (pool.role, pool.plan.label()));
    (found.candidate.formats, pools.collect())
}
