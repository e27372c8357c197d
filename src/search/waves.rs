//! The work of a search in waves: what one wave found prunes the next.
//!
//! Waves and their parts are fixed, so that pruning, and with it the census, does not depend on the number of threads.

use crate::spec::offload::Offload;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use rayon::prelude::*;

use super::aggregated::{self, finish};
use super::decode_options::DecodeOptions;
use super::layouts::{InstancePlace, Layouts};
use super::prefill_options::PrefillOptions;
use super::problem::Problem;
use super::remaining_bound::RemainingBound;
use super::run::Control;
use super::shape::PreparedShape;
use super::shape_cache::ShapeCache;
use super::shape_results::ShapeResults;
use super::split;
use crate::plan::infeasible::Infeasible;
use crate::serving::instance::Instance;

/// Maximum number of parts of a wave, and of threads that have work.
const PARTS: usize = 16;
/// Steps of the first wave. Each further wave is as long as all before, up to a limit.
const FIRST: usize = 4;
/// Maximum number of steps of a wave, unless a `PARTS`th of all steps is more.
const LONG: usize = 64;

/// Pairs of options that a stopped search still bounds.
const MOST_PAIRS: usize = 20_000;

/// The waves of `total` steps.
fn waves(total: usize) -> impl Iterator<Item = Range<usize>> {
    let most = LONG.max(total / PARTS);
    let next = move |wave: &Range<usize>| {
        let end = wave.end + wave.end.clamp(FIRST, most);
        Some(wave.end..end.min(total))
    };
    std::iter::successors(Some(0..FIRST.min(total)), next).take_while(|wave| !wave.is_empty())
}

/// The parts of a wave, whose steps alternate.
fn parts(wave: Range<usize>) -> impl IndexedParallelIterator<Item = impl Iterator<Item = usize>> {
    (0..PARTS.min(wave.len())).into_par_iter().map(move |part| wave.clone().skip(part).step_by(PARTS))
}

pub struct Progress<'a> {
    pub control: &'a Control<'a>,
    /// Number of finished steps.
    pub done: AtomicUsize,
    pub stopped: AtomicBool,
}

impl Progress<'_> {
    pub fn stops(&self) -> bool {
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

/// The parts of an instance that are tried in host memory, by its place and the index of its format pair.
pub type OffloadsOf<'a> = dyn Fn(InstancePlace, usize, &Instance) -> Vec<Offload> + Sync + 'a;

/// Instances to examine, with what may be offloaded of each.
pub struct Pass<'a> {
    pub layouts: &'a Layouts,
    /// The parts that are tried in host memory, by place and index of the format pair; without, none are.
    pub offloads: Option<&'a OffloadsOf<'a>>,
    /// Number of the first configuration.
    pub first: usize,
    /// Numbers of the configurations of one instance.
    pub each: usize,
}

impl Pass<'_> {
    /// The configurations of an instance, or why they hold no request.
    fn prepared<'q>(
        &self,
        problem: &'q Problem,
        (place, formats, instance): (InstancePlace, usize, &Arc<Instance>),
    ) -> Vec<Result<PreparedShape<'q>, Infeasible>> {
        let Some(offloads) = self.offloads else {
            return vec![PreparedShape::fitting(problem, formats, instance)];
        };
        let each =
            offloads(place, formats, instance).into_iter().flat_map(
                |offload| match PreparedShape::offloading(problem, formats, instance, offload) {
                    Ok(all) => all.into_iter().map(Ok).collect(),
                    Err(reason) => vec![Err(reason)],
                },
            );
        each.collect()
    }
}

/// Examines every configuration of a pass, next to those that are `known`.
pub fn evaluate_shapes<'q>(
    problem: &'q Problem,
    pass: &Pass,
    known: ShapeResults<'q>,
    watch: &Progress,
) -> ShapeResults<'q> {
    let layouts = pass.layouts;
    let total = (0..layouts.stages()).map(|stage| layouts.count(stage)).sum();
    let mut all = known;
    for wave in waves(layouts.stages()) {
        if all.suffice(problem) {
            break;
        }
        let known = &all;
        let parts = parts(wave).map(|part| {
            let mut seen = ShapeResults::new(problem);
            for stage in part {
                let mut one = |place: usize, formats: usize, instance: Arc<Instance>| {
                    if !watch.tick(total) {
                        return false;
                    }
                    let numbers = pass.first + place * pass.each..;
                    for (number, prepared) in numbers.zip(pass.prepared(problem, (place, formats, &instance)))
                    {
                        match prepared {
                            Ok(prepared) => seen.explore((number, prepared), known),
                            Err(reason) => seen.refuse(&reason),
                        }
                    }
                    true
                };
                let stopped = if watch.stops() { Some(0) } else { layouts.each(problem, stage, &mut one) };
                seen.unexplored.extend(stopped.map(|taken| (stage, taken)));
                seen.drop_beaten();
            }
            seen
        });
        for part in parts.collect::<Vec<ShapeResults>>() {
            all = all.merged(problem, part);
        }
        all.drop_beaten();
    }
    all
}

/// Pairs prefill options with decode options; includes the bound of the pairs that were not examined.
pub fn pair_up<'q>(
    cache: &ShapeCache<'q>,
    (prefill_options, decode_options): (&PrefillOptions<'q>, &DecodeOptions),
    replicas: &aggregated::Incumbents,
    watch: &Progress,
) -> (split::SplitIncumbents, RemainingBound) {
    let (problem, shapes) = (cache.problem, cache.shapes);
    let alone = finish(problem, shapes, replicas);
    let points = alone.iter().map(|found| &found.point).chain(&replicas.leader);
    let leader = points.reduce(|a, b| if problem.is_better(b, a) { b } else { a });
    let (required, rivals) = (decode_options.required(), &replicas.front);
    let prefill_options: Vec<_> = prefill_options.iter().collect();
    let nothing = &split::SplitIncumbents::new(problem);
    let done = watch.done.load(Relaxed);
    // Few pairs are bounded after a stop too.
    let many = prefill_options.len() * decode_options.lists().count() > MOST_PAIRS;
    let skipped = AtomicBool::new(false);
    let open = prefill_options.par_iter().map(|prefill| {
        let mut first_tokens: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        let mut survey = split::SplitIncumbents::new(problem);
        let mut open = Vec::new();
        for list in decode_options.lists().filter(|list| prefill.suits(problem, shapes, &list.options)) {
            if many && watch.stops() {
                skipped.store(true, Relaxed);
                break;
            }
            // It takes the time of the prefill worker and of the KV transfer, for any decode worker.
            let first = || cache.first_token(prefill, &list.options[0]);
            let ttft = *first_tokens.entry(list.received).or_insert_with(first);
            let pair = split::PoolPair {
                problem,
                prefill,
                decode: list,
                capacity: problem
                    .capacity()
                    .pair(prefill.prepared.shape.plan.devices(), list.options[0].devices),
                ttft,
                cache,
                required,
                rivals,
                leader,
                known: nothing,
            };
            if let Some(best) = pair.may_matter(&mut survey) {
                open.push((best, pair));
            }
        }
        (open, survey.census)
    });
    let (pairs, censuses): (Vec<_>, Vec<_>) = open.unzip();
    // The pair with the best bound first, so that its deployments prune the rest.
    let mut pairs: Vec<_> = pairs.into_iter().flatten().collect();
    pairs.sort_by(|a, b| problem.compare(&a.0, &b.0));
    let (mut found, mut left) = (split::SplitIncumbents::new(problem), RemainingBound::default());
    for wave in waves(pairs.len()) {
        if problem.any && found.best.is_some() {
            break;
        }
        let known = &found;
        let parts = parts(wave).map(|part| {
            let (mut survey, mut left) = (split::SplitIncumbents::new(problem), RemainingBound::default());
            for (_, pair) in part.map(|at| &pairs[at]) {
                let pair = split::PoolPair { known, capacity: pair.capacity.clone(), ..*pair };
                if watch.tick(done + pairs.len()) {
                    pair.explore_all(&mut survey);
                } else if let Some(best) = pair.best_point() {
                    left.point(problem, &best);
                }
            }
            (survey, left)
        });
        for (survey, unexplored) in parts.collect::<Vec<_>>() {
            found = found.merged(problem, survey);
            left = left.with(problem, unexplored);
        }
    }
    censuses.into_iter().for_each(|census| found.census.add(census));
    let left = if skipped.into_inner() { RemainingBound::UNKNOWN } else { left };
    (found, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_and_parts_cover_each_step_once() {
        for total in [0, 1, 3, 4, 5, 8, 100, 5000] {
            let all: Vec<usize> = waves(total).flatten().collect();
            assert_eq!(all, (0..total).collect::<Vec<_>>());
            for wave in waves(total) {
                let mut steps: Vec<usize> =
                    parts(wave.clone()).collect::<Vec<_>>().into_iter().flatten().collect();
                steps.sort_unstable();
                assert_eq!(steps, wave.collect::<Vec<_>>());
            }
        }
    }
}
