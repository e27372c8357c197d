//! Branch and bound over the loads of one configuration: from the lowest up, in leaps over what cannot matter.

use super::front_sampling::sampled;

/// Loads of a configuration whose latencies never fall as the load grows.
pub trait LoadSearch {
    type Figures: Copy;

    /// Evaluates a load.
    ///
    /// # Errors
    /// The figures, where they miss a latency SLO: every higher load misses it too.
    fn see(&mut self, load: u64) -> Result<Self::Figures, Self::Figures>;

    /// Why none of the loads of `range` matters; `listed` says whether one of them is listed.
    fn beaten(&self, range: &LoadRange<Self::Figures>, listed: bool) -> Option<&'static str>;

    /// Counts loads that are not evaluated.
    fn discard(&mut self, reason: &'static str, loads: u64);

    /// Takes over loads between two listed ones, all within the SLOs. Returns whether it did.
    fn take_between(&mut self, range: &LoadRange<Self::Figures>) -> bool;
}

/// Loads above one that was evaluated.
#[derive(Clone, Copy, Debug)]
pub struct LoadRange<F> {
    /// The load below all of them, and its figures.
    pub low: (u64, F),
    pub high: u64,
    /// Figures at the load above the highest, where it was evaluated. An error misses an SLO.
    pub above: Option<Result<F, F>>,
}

impl<F> LoadRange<F> {
    fn count(&self) -> u64 {
        self.high - self.low.0
    }
}

/// Leaps, as factors on the load.
const LEAPS: [u64; 3] = [16, 4, 2];

/// Evaluates the listed loads between `from` and `most`, and the others where they matter. Listed is every load at first,
/// then geometric steps of one part in `every`, both ends, and the highest load within the SLOs: a figure may change by
/// more than its load in the last step.
pub fn explore<S: LoadSearch>(search: &mut S, (from, most): (u64, u64), every: u64) {
    if most < from {
        return;
    }
    let Ok(first) = search.see(from) else {
        search.discard(BEYOND_LIMIT, most - from);
        return;
    };
    let steps: Vec<u64> = sampled(most, every).collect();
    let mut open = vec![LoadRange { low: (from, first), high: most, above: None }];
    while let Some(range) = open.pop() {
        if range.count() == 0 {
            continue;
        }
        let first = steps.partition_point(|load| *load <= range.low.0);
        let inside = &steps[first..steps.partition_point(|load| *load <= range.high)];
        let listed = !inside.is_empty() || matches!(range.above, Some(Err(_)));
        if let Some(reason) = search.beaten(&range, listed) {
            search.discard(reason, range.count());
            continue;
        }
        if inside.is_empty() && matches!(range.above, Some(Ok(_))) && search.take_between(&range) {
            continue;
        }
        let next = next(search, &range, inside);
        let found = search.see(next);
        open.push(LoadRange { high: next - 1, above: Some(found), ..range });
        match found {
            Ok(there) => open.push(LoadRange { low: (next, there), ..range }),
            Err(_) => search.discard(BEYOND_LIMIT, range.high - next),
        }
    }
}

/// The reason against loads above one that misses an SLO.
const BEYOND_LIMIT: &str = "latency_limit";

/// The load that divides a range: beyond the part that cannot matter, at double the load, or in the middle.
fn next<S: LoadSearch>(search: &S, range: &LoadRange<S::Figures>, inside: &[u64]) -> u64 {
    let low = range.low.0;
    let Some(last) = inside.len().checked_sub(1) else { return low + range.count().div_ceil(2) };
    if range.high / 2 < low {
        return inside[last / 2];
    }
    for leap in LEAPS.into_iter().filter(|leap| low * leap <= range.high) {
        let near = LoadRange { high: low * leap, above: None, ..*range };
        if search.beaten(&near, true).is_some() {
            return inside[inside.partition_point(|load| *load <= near.high).min(last)];
        }
    }
    inside[inside.partition_point(|load| *load < 2 * low).min(last)]
}
