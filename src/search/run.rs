//! The search: instance configurations, then all deployments of them, then the result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use rayon::prelude::*;

use super::aggregated::{self, finish, non_dominated};
use super::best_mix::best_mix;
use super::decode_options::{DecodeOptions, Depth};
use super::family::StrategyFamily;
use super::layouts;
use super::mixed::{MixResult, goal, mixed};
use super::outcome::{Census, EvaluatedCandidate, Outcome, Status};
use super::prefill_options::PrefillOptions;
use super::problem::{OffloadPolicy, Problem, Traffic};
use super::remaining_bound::{MOST_BOUNDED, RemainingBound};
use super::repeated::{Repeated, repeated};
use super::shape::{InstanceConfig, PreparedShape, Refused, refuse, shape};
use super::shape_cache::ShapeCache;
use super::split;
use crate::serving::instance::Instance;
use crate::serving::terms::OffloadTarget;

/// Progress and cancellation callbacks.
pub struct Control<'a> {
    /// Receives the number of finished and total steps.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Returns whether to stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// No progress and no cancellation.
pub const UNWATCHED: Control<'static> = Control { progress: &|_, _| {}, stop: &|| false };

/// Number of parts of the work. Fixed, so that pruning, and with it the census, does not depend on the number of
/// threads.
const PARTS: usize = 4;

/// Pairs of options that a stopped search still bounds.
const MOST_PAIRS: usize = 20_000;

/// Maximum number of alternatives in the result.
const ALTERNATIVES: usize = 8;

/// Solves a problem.
pub fn run(problem: &Problem, control: &Control) -> Outcome {
    let mut census = Census::default();
    if let Err(reason) = problem.context_fits() {
        census.refuse(reason.kind(), 1, &reason.to_string());
        return Outcome {
            status: Status::Infeasible,
            best: None,
            bound: None,
            alternatives: vec![],
            front: vec![],
            census,
            nearest: None,
            ratio: None,
        };
    }
    let none = |_, _: &Instance| vec![OffloadTarget::Nothing];
    let held = problem.family != StrategyFamily::Offload;
    let watch = Progress { control, done: AtomicUsize::new(0), stopped: AtomicBool::new(false) };
    let mut shapes = if held { prepare(problem, none, &watch, &mut census) } else { vec![] };
    let nothing_fits = !shapes.iter().any(|shape| shape.fits > 0);
    if problem.offload == OffloadPolicy::Always || (problem.offload == OffloadPolicy::Auto && nothing_fits) {
        let offloads = |formats: usize, instance: &Instance| problem.offloads(formats, instance);
        shapes.extend(prepare(problem, offloads, &watch, &mut census));
    }
    census.shapes = shapes.len() as u64;
    let unprepared = watch.stopped.load(Relaxed);
    let ShapeResults { aggregated: mut together, decode: mut answers, prefill: mut fronts, unexplored: left } =
        evaluate_shapes(problem, &shapes, &watch);
    let mut promise = RemainingBound::default();
    if unprepared || left.len() > MOST_BOUNDED {
        promise = RemainingBound::UNKNOWN;
    }
    for index in left.into_iter().take(MOST_BOUNDED) {
        let laid = PreparedShape::new(problem, &shapes[index]);
        if problem.family != StrategyFamily::Split {
            promise.shape(problem, &laid);
        }
        if problem.split {
            answers.explore(problem, &laid, index, Depth::Outline);
            fronts.explore(problem, laid, index);
        }
    }
    let (mut apart, mut ratio) = (split::SplitIncumbents::new(problem), None);
    if problem.split {
        answers.settle(problem);
        census.add(std::mem::take(&mut answers.census));
        let bench = ShapeCache::new(problem, &shapes);
        let (found, left) = pair_up(&bench, (&fronts, &answers), &together, &watch);
        apart = found;
        promise = promise.with(problem, left);
        if !watch.stopped.load(Relaxed) {
            ratio = mixed(&bench, (&fronts, &answers), &together);
        } else if goal(problem).is_some() {
            // The throughput of any mix of workers is at most that of the best of them on all devices.
            promise = promise.with(problem, RemainingBound::of_any(problem, &shapes));
        }
    }
    let inside = if problem.split { repeated(problem, control) } else { Repeated::default() };
    census.add(inside.census);
    if inside.stopped {
        // No deployment inside units is better than one request alone or the maximum concurrency.
        promise = promise.with(problem, RemainingBound::of_any(problem, &shapes));
    }
    census.add(std::mem::take(&mut together.census));
    census.add(std::mem::take(&mut apart.census));
    let interrupted = watch.stopped.into_inner() || inside.stopped;
    let stated = problem.traffic != Traffic::Free;
    let mixes = problem.custom_router
        && stated
        && !interrupted
        && !matches!(problem.family, StrategyFamily::Split | StrategyFamily::Offload);
    let found = !together.best.is_empty() || apart.best.is_some();
    let mix = if mixes { best_mix(problem, &shapes, found) } else { None };
    let extra = mix.into_iter().chain(inside.best.clone()).collect();
    let parts = (together, apart, &ratio, (extra, &inside.front[..]));
    let found = answer(problem, &shapes, parts, census, interrupted.then_some(promise));
    // By plan: a figure that is unknown equals nothing.
    let plan = |best: &Option<EvaluatedCandidate>| best.as_ref().map(|best| best.candidate.clone());
    let repeats = found.best.is_some() && plan(&found.best) == plan(&inside.best);
    Outcome { ratio: if repeats { inside.ratio } else { ratio }, ..found }
}

/// Progress, and whether the search was cancelled.
struct Progress<'a> {
    control: &'a Control<'a>,
    done: AtomicUsize,
    stopped: AtomicBool,
}

impl Progress<'_> {
    /// Whether to stop.
    fn stops(&self) -> bool {
        let stop = (self.control.stop)();
        self.stopped.fetch_or(stop, Relaxed);
        stop
    }

    /// Counts one more finished step of `total`. Returns whether to continue.
    fn tick(&self, total: usize) -> bool {
        (self.control.progress)(self.done.fetch_add(1, Relaxed) + 1, total);
        !self.stops()
    }
}

/// Results of examining every instance configuration.
struct ShapeResults<'q> {
    aggregated: aggregated::Incumbents,
    decode: DecodeOptions,
    prefill: PrefillOptions<'q>,
    /// Configurations that were not examined.
    unexplored: Vec<usize>,
}

/// Examines every instance configuration: as an aggregated replica, as a decode worker, as a prefill worker.
fn evaluate_shapes<'q>(
    problem: &'q Problem,
    shapes: &'q [InstanceConfig],
    watch: &Progress,
) -> ShapeResults<'q> {
    let none = || ShapeResults {
        aggregated: aggregated::Incumbents::new(problem),
        decode: DecodeOptions::new(problem),
        prefill: PrefillOptions::default(),
        unexplored: vec![],
    };
    let parts = (0..PARTS).into_par_iter().map(|part| {
        let mut seen = none();
        for index in (part..shapes.len()).step_by(PARTS) {
            if !watch.tick(shapes.len()) {
                seen.unexplored.push(index);
                continue;
            }
            let laid = PreparedShape::new(problem, &shapes[index]);
            if problem.family != StrategyFamily::Split {
                aggregated::explore(problem, &laid, index, &mut seen.aggregated);
            }
            if problem.split {
                seen.decode.explore(problem, &laid, index, Depth::Loads);
                seen.prefill.explore(problem, laid, index);
            }
        }
        seen
    });
    let parts: Vec<ShapeResults> = parts.collect();
    parts.into_iter().fold(none(), |mut all, part| {
        all.decode.merge(part.decode);
        all.prefill.merge(part.prefill);
        all.unexplored.extend(part.unexplored);
        ShapeResults { aggregated: all.aggregated.merged(problem, part.aggregated), ..all }
    })
}

/// Pairs prefill options with decode options; includes the bound of the pairs that were not examined.
fn pair_up<'q>(
    bench: &ShapeCache<'q>,
    (fronts, answers): (&PrefillOptions<'q>, &DecodeOptions),
    together: &aggregated::Incumbents,
    watch: &Progress,
) -> (split::SplitIncumbents, RemainingBound) {
    let (problem, shapes) = (bench.problem, bench.shapes);
    let alone = finish(problem, shapes, together);
    let points = alone.iter().map(|found| &found.point);
    let leader = points.reduce(|a, b| if problem.is_better(b, a) { b } else { a });
    let (by_pace, rivals) = (answers.by_pace(), &together.front);
    let fronts: Vec<_> = fronts.iter().collect();
    // Few pairs are bounded after a stop too.
    let many = fronts.len() * answers.lists().count() > MOST_PAIRS;
    let skipped = AtomicBool::new(false);
    let open = fronts.par_iter().map(|front| {
        let mut first_tokens: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        let mut survey = split::SplitIncumbents::new(problem);
        let mut open = Vec::new();
        for list in answers.lists().filter(|list| front.suits(problem, shapes, &list.options)) {
            if many && watch.stops() {
                skipped.store(true, Relaxed);
                break;
            }
            // It takes the time of the prefill worker and of the KV transfer, for any decode worker.
            let first = || bench.first_token(front, &list.options[0]);
            let ttft = *first_tokens.entry(list.received).or_insert_with(first);
            let pair = split::PoolPair {
                problem,
                prefill: front,
                decode: list,
                ttft,
                cache: bench,
                by_pace,
                rivals,
                leader,
            };
            if pair.may_matter(&mut survey) {
                open.push((front.best_rate(list), pair));
            }
        }
        (open, survey.census)
    });
    let (pairs, censuses): (Vec<_>, Vec<_>) = open.unzip();
    // The pair with the best bound first, so that its deployments prune the rest.
    let mut pairs: Vec<_> = pairs.into_iter().flatten().collect();
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let parts = (0..PARTS).into_par_iter().map(|part| {
        let (mut survey, mut left) = (split::SplitIncumbents::new(problem), RemainingBound::default());
        for (_, pair) in pairs.iter().skip(part).step_by(PARTS) {
            if watch.tick(shapes.len() + pairs.len()) {
                pair.explore_all(&mut survey);
            } else if let Some(best) = pair.best_point() {
                left.point(problem, &best);
            }
        }
        (survey, left)
    });
    let both = |a: (split::SplitIncumbents, RemainingBound), b: (split::SplitIncumbents, RemainingBound)| {
        (a.0.merged(problem, b.0), a.1.with(problem, b.1))
    };
    let none = || (split::SplitIncumbents::new(problem), RemainingBound::default());
    let (mut found, left) = parts.reduce_with(both).unwrap_or_else(none);
    censuses.into_iter().for_each(|census| found.census.add(census));
    let left = if skipped.into_inner() { RemainingBound::UNKNOWN } else { left };
    (found, left)
}

/// Every legal instance configuration that holds the model, as far as the search is not stopped.
fn prepare(
    problem: &Problem,
    offloads: impl Fn(usize, &Instance) -> Vec<OffloadTarget> + Sync,
    watch: &Progress,
    census: &mut Census,
) -> Vec<InstanceConfig> {
    let made = layouts::each_until(problem, census, &|| watch.stops(), |formats, instance| {
        let (mut shapes, mut refused): (Vec<InstanceConfig>, _) = (Vec::new(), Refused::new());
        let instance = Arc::new(instance);
        for offload in offloads(formats, &instance) {
            match shape(problem, formats, &instance, offload) {
                Ok(shape) => shapes.push(shape),
                Err(reason) => refuse(&mut refused, &reason),
            }
        }
        (shapes, refused)
    });
    let mut shapes = Vec::new();
    for (some, refused) in made {
        shapes.extend(some);
        refused.iter().for_each(|(kind, (count, example))| census.refuse(kind, *count, example));
    }
    shapes
}

fn answer(
    problem: &Problem,
    shapes: &[InstanceConfig],
    (together, apart, ratio, (extra, inside)): (
        aggregated::Incumbents,
        split::SplitIncumbents,
        &Option<MixResult>,
        (Vec<EvaluatedCandidate>, &[EvaluatedCandidate]),
    ),
    census: Census,
    left: Option<RemainingBound>,
) -> Outcome {
    let mut deployments = finish(problem, shapes, &together);
    let whole = |candidate: super::candidate::Candidate| {
        let point = aggregated::measure(problem, &candidate);
        EvaluatedCandidate { candidate, point }
    };
    deployments.extend(apart.best.map(|(_, key)| whole(key.candidate(shapes))));
    deployments.extend(extra);
    // Pairs of uniform pools were examined already.
    let mixes = ratio.iter().flat_map(|ratio| [&ratio.best, &ratio.disaggregated]).flatten();
    deployments.extend(mixes.filter(|found| found.candidate.pools.len() > 2).cloned());
    deployments.extend(together.strategies.values().map(|(_, key)| whole(key.candidate(shapes))));
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
    let mut front = together.front.map(FrontKey::Aggregated);
    for (point, key) in apart.front.into_sorted() {
        // Pools that turn out to divide into groups transfer inside them.
        let known = problem.tiers().len() == 1;
        let point = if known { point } else { aggregated::measure(problem, &key.candidate(shapes)) };
        front.insert(point, FrontKey::Disaggregated(key));
    }
    for (at, found) in inside.iter().enumerate() {
        front.insert(found.point, FrontKey::Repeated(at));
    }
    if let Some(best) = &best {
        front.insert(best.point, FrontKey::Best);
    }
    let single = |key: &FrontKey| matches!(key, FrontKey::Aggregated(key) if key.replicas == 1);
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
    let front: Vec<EvaluatedCandidate> = front.collect();
    let nearest = together.nearest.filter(|_| best.is_none()).map(|(_, point, key, reason)| {
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
fn strategy(found: &EvaluatedCandidate) -> (usize, Vec<(super::candidate::PoolRole, String)>) {
    let pools = found.candidate.pools.iter().map(|pool| (pool.role, pool.plan.label()));
    (found.candidate.formats, pools.collect())
}
