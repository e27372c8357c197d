//! The work of a search in waves: what one wave found prunes the next.
//!
//! Waves and their parts are fixed, so that pruning, and with it the census, does not depend on the number of threads.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use rayon::prelude::*;

use super::aggregated::{self, finish};
use super::decode_options::{DecodeOptions, Depth};
use super::family::StrategyFamily;
use super::prefill_options::PrefillOptions;
use super::problem::Problem;
use super::remaining_bound::RemainingBound;
use super::run::Control;
use super::shape::{InstanceConfig, PreparedShape};
use super::shape_cache::ShapeCache;
use super::split;

/// Maximum number of parts of a wave, and of threads that have work.
const PARTS: usize = 16;
/// Steps of the first wave. Each further wave is as long as all before, up to a limit.
const FIRST: usize = 4;
/// Maximum number of steps of a wave, unless a `PARTS`th of all steps is more.
const LONG: usize = 256;

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

/// Progress, and whether the search was cancelled.
pub struct Progress<'a> {
    /// Callbacks.
    pub control: &'a Control<'a>,
    /// Number of finished steps.
    pub done: AtomicUsize,
    /// Whether the search was cancelled.
    pub stopped: AtomicBool,
}

impl Progress<'_> {
    /// Whether to stop.
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

/// Results of examining every instance configuration.
pub struct ShapeResults<'q> {
    /// Aggregated replicas.
    pub aggregated: aggregated::Incumbents,
    /// Decode workers.
    pub decode: DecodeOptions,
    /// Prefill workers.
    pub prefill: PrefillOptions<'q>,
    /// Configurations that were not examined.
    pub unexplored: Vec<usize>,
}

/// Examines every instance configuration: as an aggregated replica, as a decode worker, as a prefill worker.
pub fn evaluate_shapes<'q>(
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
    let mut all = none();
    for wave in waves(shapes.len()) {
        let known = &all;
        let parts = parts(wave).map(|part| {
            let mut seen = none();
            for index in part {
                if !watch.tick(shapes.len()) {
                    seen.unexplored.push(index);
                    continue;
                }
                let laid = PreparedShape::new(problem, &shapes[index]);
                if problem.family != StrategyFamily::Split {
                    aggregated::explore(problem, &laid, index, &known.aggregated, &mut seen.aggregated);
                }
                if problem.split {
                    seen.decode.explore(problem, &laid, index, Some(&known.decode), Depth::Loads);
                    seen.prefill.explore(problem, laid, index);
                }
            }
            seen
        });
        for part in parts.collect::<Vec<ShapeResults>>() {
            all.decode.merge(part.decode);
            all.prefill.merge(part.prefill);
            all.unexplored.extend(part.unexplored);
            all.aggregated = all.aggregated.merged(problem, part.aggregated);
        }
    }
    all
}

/// Pairs prefill options with decode options; includes the bound of the pairs that were not examined.
pub fn pair_up<'q>(
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
    let nothing = &split::SplitIncumbents::new(problem);
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
                known: nothing,
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
    let (mut found, mut left) = (split::SplitIncumbents::new(problem), RemainingBound::default());
    for wave in waves(pairs.len()) {
        let known = &found;
        let parts = parts(wave).map(|part| {
            let (mut survey, mut left) = (split::SplitIncumbents::new(problem), RemainingBound::default());
            for (_, pair) in part.map(|at| &pairs[at]) {
                let pair = split::PoolPair { known, ..*pair };
                if watch.tick(shapes.len() + pairs.len()) {
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
