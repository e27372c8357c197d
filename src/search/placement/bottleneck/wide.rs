//! Minimum bottleneck where there are too many states to list, or too many layers for a bit mask: a capacity
//! relaxation, then a path search under one bound that remembers dead ends.

use std::collections::HashSet;

use super::{BoundSearch, MinMaxResult, MinMaxStage};
use crate::search::placement::chain::Stage;
use crate::search::placement::unordered::Piece;
use crate::search::placement::wide::{improved, stages};
use crate::search::shape::smallest;

/// Maximum number of states expanded under one bound; beyond it the bound stays undecided.
const MOST_STATES: u64 = 100_000;

/// Maximum layers of each kind under one bound: first, between others, last, and alone.
struct MaxLayers {
    first: Vec<usize>,
    middle: Vec<usize>,
    last: Vec<usize>,
    whole: Vec<bool>,
    /// Kinds by their middle capacity, largest first.
    sorted: Vec<usize>,
}

/// A path search under one bound.
struct PathSearch<'a> {
    bound: u64,
    /// Exact number of stages, or any number.
    stages: Option<usize>,
    max_layers: MaxLayers,
    used: Vec<usize>,
    /// Kinds with the first layer of each.
    way: Vec<(usize, usize)>,
    dead: HashSet<Vec<u16>>,
    looked: u64,
    stop: &'a dyn Fn() -> bool,
}

impl MinMaxStage<'_> {
    /// As [`MinMaxStage::least`], for members whose states are not listed.
    pub(super) fn least_wide(&mut self, count: usize, below: u64, stop: &dyn Fn() -> bool) -> MinMaxResult {
        let longest = self.longest();
        let (mut low, last) = (self.floor(count), below.saturating_sub(1).min(longest));
        let nothing = if last == longest { u64::MAX } else { below };
        if low > last || self.covered(last, count).is_none() {
            return MinMaxResult { found: None, bound: low.max(nothing) };
        }
        // With ends included, members may hold less than the floor assumes.
        low = smallest(low, last, |bound| self.covered(bound, count).is_some());
        let mut best: Option<(u64, Vec<Stage>)> = None;
        for bound in [low, last] {
            let Some(pieces) = self.covered(bound, count) else { continue };
            let found = improved(self.groups, stages(self.groups, &pieces), &cost_of(self, count), stop);
            let found = found.filter(|(ticks, _)| *ticks <= last);
            best = best.into_iter().chain(found).min_by_key(|(ticks, _)| *ticks);
        }
        if best.is_none() {
            match self.within_wide(last, Some(count), stop) {
                BoundSearch::Found(found) => best = improved(self.groups, found, &cost_of(self, count), stop),
                BoundSearch::Nothing => return MinMaxResult { found: None, bound: nothing },
                BoundSearch::Stopped => return MinMaxResult { found: None, bound: low },
            }
        }
        let Some((mut most, mut found)) = best else { return MinMaxResult { found: None, bound: low } };
        let values = self.values(low, most);
        let (mut first, mut end) = (0, values.partition_point(|value| *value < most));
        while first < end {
            // Bisect from the floor upward: the optimum is usually close to it.
            let middle = if first == 0 { 0 } else { first + (end - first) / 2 };
            match self.within_wide(values[middle], Some(count), stop) {
                BoundSearch::Found(stages) => {
                    let improved = improved(self.groups, stages, &cost_of(self, count), stop);
                    (most, found) = improved.expect("the placement found is feasible");
                    end = values.partition_point(|value| *value < most).min(middle);
                }
                BoundSearch::Nothing => first = middle + 1,
                BoundSearch::Stopped => {
                    return MinMaxResult { found: Some((most, found)), bound: values[first] };
                }
            }
        }
        MinMaxResult { bound: most, found: Some((most, found)) }
    }

    fn max_layers_under(&self, bound: u64) -> MaxLayers {
        let layers = self.chain.layers;
        let onward =
            |kind: usize| self.links[kind].iter().flatten().min().and_then(|link| bound.checked_sub(*link));
        let longest =
            |kind: usize, most: Option<u64>, from: &dyn Fn(usize) -> usize, to: std::ops::Range<usize>| {
                let Some(most) = most else { return 0 };
                let one = |to: usize| {
                    let column = &self.times[kind][to];
                    let begin = (from(to)..to).find(|from| column[*from] <= most);
                    begin.map_or(0, |begin| to - begin)
                };
                to.map(one).max().unwrap_or(0)
            };
        let first = |kind: usize| {
            let Some(most) = onward(kind) else { return 0 };
            (1..layers).rev().find(|to| self.times[kind][*to][0] <= most).unwrap_or(0)
        };
        let middle: Vec<usize> =
            self.groups.kinds().map(|kind| longest(kind, onward(kind), &|_| 1, 2..layers)).collect();
        let last = |kind| longest(kind, Some(bound), &|_| 1, layers..layers + 1);
        let mut sorted: Vec<usize> = self.groups.kinds().collect();
        sorted.sort_unstable_by_key(|kind| std::cmp::Reverse(middle[*kind]));
        MaxLayers {
            first: self.groups.kinds().map(first).collect(),
            last: self.groups.kinds().map(last).collect(),
            whole: self.groups.kinds().map(|kind| self.times[kind][layers][0] <= bound).collect(),
            middle,
            sorted,
        }
    }

    /// Pieces that cover all layers on exactly `count` members under `bound`, with order relaxed.
    fn covered(&self, bound: u64, count: usize) -> Option<Vec<Piece>> {
        let (max_layers, layers) = (self.max_layers_under(bound), self.chain.layers);
        let piece = |kind: usize, layers: usize| Piece { kind, members: 1, layers };
        if count == 1 {
            return max_layers.whole.iter().position(|whole| *whole).map(|kind| vec![piece(kind, layers)]);
        }
        let all = |first: usize, last: usize| {
            let mut pieces = vec![piece(first, max_layers.first[first])];
            for &kind in &max_layers.sorted {
                let ends = usize::from(kind == first) + usize::from(kind == last);
                let free = self.groups.members[kind].len().checked_sub(ends)?;
                let more = free.min(count - 1 - pieces.len());
                pieces.extend(std::iter::repeat_n(piece(kind, max_layers.middle[kind]), more));
            }
            pieces.push(piece(last, max_layers.last[last]));
            let held: usize = pieces.iter().map(|piece| piece.layers).sum();
            let whole = pieces.len() == count && pieces.iter().all(|piece| piece.layers > 0);
            (whole && held >= layers).then_some((held, pieces))
        };
        let ends = self.groups.kinds().flat_map(|first| self.groups.kinds().map(move |last| (first, last)));
        let (mut held, mut pieces) =
            ends.filter_map(|(first, last)| all(first, last)).max_by_key(|(held, _)| *held)?;
        // Reduce the largest pieces first.
        while held > layers {
            let most = pieces.iter_mut().max_by_key(|piece| piece.layers)?;
            most.layers -= 1;
            held -= 1;
        }
        Some(pieces)
    }

    /// As [`MinMaxStage::within`], for members whose states are not listed.
    pub(super) fn within_wide(
        &mut self,
        bound: u64,
        count: Option<usize>,
        stop: &dyn Fn() -> bool,
    ) -> BoundSearch {
        let max_layers = self.max_layers_under(bound);
        let used = vec![0; self.groups.kinds().len()];
        let mut way = PathSearch {
            bound,
            stages: count,
            max_layers,
            used,
            way: vec![],
            dead: HashSet::new(),
            looked: 0,
            stop,
        };
        let mut begins: Vec<usize> = self.groups.kinds().collect();
        begins.sort_unstable_by_key(|kind| std::cmp::Reverse(way.max_layers.first[*kind]));
        let mut look = BoundSearch::Nothing;
        for kind in begins {
            look = self.on(&mut way, kind, 0);
            if !matches!(look, BoundSearch::Nothing) {
                break;
            }
        }
        self.states += way.looked;
        look
    }

    /// Extends the path by a member of `kind` from the layer `from`.
    fn on(&self, way: &mut PathSearch, kind: usize, from: usize) -> BoundSearch {
        let layers = self.chain.layers;
        if way.used[kind] == self.groups.members[kind].len() {
            return BoundSearch::Nothing;
        }
        let left = way.stages.map(|stages| stages - way.way.len());
        let mut key: Vec<u16> = way.used.iter().map(|used| *used as u16).collect();
        key.extend([kind as u16, from as u16]);
        if way.dead.contains(&key) {
            return BoundSearch::Nothing;
        }
        way.looked += 1;
        if way.looked > MOST_STATES || way.looked.is_multiple_of(1024) && (way.stop)() {
            return BoundSearch::Stopped;
        }
        way.used[kind] += 1;
        way.way.push((kind, from));
        let look = self.further(way, (kind, from), left, layers);
        way.way.pop();
        way.used[kind] -= 1;
        if matches!(look, BoundSearch::Nothing) {
            way.dead.insert(key);
        }
        look
    }

    fn further(
        &self,
        way: &mut PathSearch,
        (kind, from): (usize, usize),
        left: Option<usize>,
        layers: usize,
    ) -> BoundSearch {
        if left.is_none_or(|left| left == 1) && self.times[kind][layers][from] <= way.bound {
            let kinds: Vec<usize> = way.way.iter().map(|(kind, _)| *kind).collect();
            let ends = way.way.iter().skip(1).map(|(_, from)| *from).chain([layers]);
            let named = self.groups.name(&kinds).into_iter().zip(&way.way).zip(ends);
            return BoundSearch::Found(
                named.map(|((member, (_, from)), to)| Stage { member, from: *from, to }).collect(),
            );
        }
        if left == Some(1) {
            return BoundSearch::Nothing;
        }
        let behind = left.map_or(usize::MAX, |left| left - 1);
        let capacity = self.layers_left(way, behind);
        // Every later stage holds at least one layer.
        let furthest = if left.is_some() { layers.saturating_sub(behind) } else { layers - 1 };
        let nearest = layers.saturating_sub(capacity).max(from + 1);
        for to in (nearest..=furthest.min(layers - 1)).rev() {
            let time = self.times[kind][to][from];
            if time > way.bound {
                continue;
            }
            for at in 0..way.max_layers.sorted.len() {
                let next = way.max_layers.sorted[at];
                let fits = self.links[kind][next].is_some_and(|link| time.saturating_add(link) <= way.bound);
                if !fits {
                    continue;
                }
                match self.on(way, next, to) {
                    BoundSearch::Nothing => {}
                    look => return look,
                }
            }
        }
        BoundSearch::Nothing
    }

    /// Maximum layers of `count` of the unused members, one of them last.
    fn layers_left(&self, way: &PathSearch, mut count: usize) -> usize {
        let free = |kind: usize| self.groups.members[kind].len() - way.used[kind];
        let of = |kind: usize| way.max_layers.last[kind];
        let end = self.groups.kinds().filter(|kind| free(*kind) > 0).map(of).max().unwrap_or(0);
        let mut layers = end;
        count = count.saturating_sub(1);
        for &kind in &way.max_layers.sorted {
            let more = free(kind).min(count);
            layers = layers.saturating_add(more * way.max_layers.middle[kind]);
            count -= more;
        }
        layers
    }
}

/// Bottleneck of exactly `count` stages, in ticks.
fn cost_of<'a>(peak: &'a MinMaxStage<'_>, count: usize) -> impl Fn(&[Stage]) -> Option<u64> + 'a {
    move |stages| (stages.len() == count).then(|| peak.chain.slowest(stages).ok()).flatten()
}
