//! Minimum bottleneck: the placement with the fastest slowest stage for a fixed number of stages. Exact, by bisection
//! over stage times.
//!
//! For a bound on every stage, the layers at which the segments of a set of members can begin form a set, stored as a
//! bit mask. (The front-most layer alone would not suffice: layers differ, and every member must hold at least one.)

mod fits;
pub mod replicated;
mod wide;

use super::chain::{Chain, HostOverhead, Segments, Stage};
use super::device_classes::DeviceClasses;
use fits::{Begins, Fits, span};

/// Where the upper bound is within one part in this number of the floor, it is tested first.
const NEAR: u64 = 16;

/// Number of layers that fit a bit mask.
pub const MOST_LAYERS: usize = Begins::BITS as usize - 1;

/// Segment times of every kind and the links between kinds.
pub struct MinMaxStage<'a> {
    chain: &'a Chain,
    groups: &'a DeviceClasses,
    /// `[kind][to][from]`.
    times: Vec<Vec<Vec<u64>>>,
    links: Vec<Vec<Option<u64>>>,
    sizes: Vec<u16>,
    /// States expanded: one kind in front of a state, for each bound tried.
    pub states: u64,
}

/// Feasible segments under one bound: followed by another kind, and last.
struct FeasibleStarts {
    onward: Vec<Vec<Fits>>,
    last: Vec<Fits>,
}

/// Result of the search for the minimum bottleneck at a number of stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinMaxResult {
    /// The best placement found, with its bottleneck in ticks.
    pub found: Option<(u64, Vec<Stage>)>,
    /// Lower bound in ticks.
    pub bound: u64,
}

/// Result of the feasibility test of one bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundSearch {
    Found(Vec<Stage>),
    Nothing,
    /// Stopped before it was decided.
    Stopped,
}

/// States between two checks of the stop flag.
const STRETCH: usize = 4096;

impl<'a> MinMaxStage<'a> {
    pub fn new(chain: &'a Chain, groups: &'a DeviceClasses) -> MinMaxStage<'a> {
        let layers = chain.layers;
        let rows = |kind: usize| {
            let segments = Segments::new(&chain.members[groups.face(kind)], layers);
            let time = |from, to| segments.ticks(from, to, HostOverhead::Each).unwrap_or(u64::MAX);
            (0..=layers).map(|to| (0..to).map(|from| time(from, to)).collect()).collect()
        };
        let times = groups.kinds().map(rows).collect();
        let link = |from, to| groups.link(chain, from, to);
        let links = groups.kinds().map(|from| groups.kinds().map(|to| link(from, to)).collect()).collect();
        let sizes = (0..groups.states).map(|state| groups.total(state) as u16).collect();
        MinMaxStage { chain, groups, times, links, sizes, states: 0 }
    }

    /// The minimum bottleneck of exactly `stages` stages, if it is below `below`; a partial result when `stop`
    /// returns true.
    pub fn least(&mut self, stages: usize, below: u64, stop: &dyn Fn() -> bool) -> MinMaxResult {
        if stages == 0 || stages > self.chain.layers || stages > self.chain.members.len() {
            return MinMaxResult { found: None, bound: u64::MAX };
        }
        let longest = self.longest();
        if self.wide() {
            return self.least_wide(stages, below, stop);
        }
        let last = below.saturating_sub(1).min(longest);
        let mut low = self.floor(stages);
        let nothing = if last == longest { u64::MAX } else { below };
        if low > last {
            return MinMaxResult { found: None, bound: low.max(nothing) };
        }
        // Test bounds from the floor upward: infeasible bounds are rejected fast. Where the end is near, testing it
        // decides most.
        let near = last - low <= low / NEAR;
        let (mut tried, mut stride) = (if near { last } else { low }, low / 64 + 1);
        let mut best = loop {
            match self.within(tried, Some(stages), stop) {
                BoundSearch::Found(found) => break found,
                BoundSearch::Stopped => return MinMaxResult { found: None, bound: low },
                BoundSearch::Nothing if tried == last => return MinMaxResult { found: None, bound: nothing },
                BoundSearch::Nothing => {
                    low = tried + 1;
                    tried = tried.saturating_add(stride).min(last);
                    stride = stride.saturating_mul(2);
                }
            }
        };
        let slowest = |stages: &[Stage]| self.chain.slowest(stages).expect("the placement found is feasible");
        let mut most = slowest(&best);
        let values = self.values(low, most);
        let (mut first, mut end) = (0, values.partition_point(|value| *value < most));
        while first < end {
            let middle = first + (end - first) / 2;
            match self.within(values[middle], Some(stages), stop) {
                BoundSearch::Found(found) => {
                    most = self.chain.slowest(&found).expect("the placement found is feasible");
                    end = values.partition_point(|value| *value < most).min(middle);
                    best = found;
                }
                BoundSearch::Nothing => first = middle + 1,
                BoundSearch::Stopped => {
                    return MinMaxResult { found: Some((most, best)), bound: values[first] };
                }
            }
        }
        MinMaxResult { found: Some((most, best)), bound: most }
    }

    /// Whether any placement fits, with an example.
    pub fn any(&mut self) -> BoundSearch {
        let (bound, stop) = (u64::MAX - 1, &|| false);
        if self.wide() { self.within_wide(bound, None, stop) } else { self.within(bound, None, stop) }
    }

    /// Whether there are too many states to list, or too many layers for a bit mask.
    fn wide(&self) -> bool {
        !self.groups.listed() || self.chain.layers > MOST_LAYERS
    }

    /// Maximum number of layers that all members can hold, counted from the last layer.
    pub fn held(&self) -> usize {
        let reach = self.feasible_starts(u64::MAX - 1);
        let mut begins = vec![0; self.groups.rows()];
        for state in 1..self.groups.states {
            for (kind, row) in self.groups.present(state) {
                begins[row] = self.begins(&reach, state, kind, &begins);
            }
        }
        let furthest = begins.into_iter().filter(|set| *set != 0).map(|set| set.trailing_zeros()).min();
        furthest.map_or(0, |from| self.chain.layers - from as usize)
    }

    fn longest(&self) -> u64 {
        let time = self.times.iter().flatten().flatten().filter(|time| **time < u64::MAX).max();
        let link = self.links.iter().flatten().flatten().max();
        time.map_or(0, |time| time.saturating_add(link.copied().unwrap_or_default()))
    }

    /// Every possible stage time from `least` to `most`.
    fn values(&self, least: u64, most: u64) -> Vec<u64> {
        let mut values = Vec::new();
        for kind in self.groups.kinds() {
            let mut onward: Vec<u64> = self.links[kind].iter().flatten().copied().collect();
            onward.push(0);
            onward.sort_unstable();
            onward.dedup();
            for time in self.times[kind].iter().flatten().filter(|time| **time <= most) {
                let all = onward.iter().map(|link| time.saturating_add(*link));
                values.extend(all.filter(|value| (least..=most).contains(value)));
            }
        }
        values.sort_unstable();
        values.dedup();
        values
    }

    fn feasible_starts(&self, bound: u64) -> FeasibleStarts {
        let onward = |kind: usize, next: usize| {
            let most = self.links[kind][next].and_then(|link| bound.checked_sub(link));
            most.map_or_else(|| Fits::nothing(self.chain.layers), |most| Fits::new(&self.times[kind], most))
        };
        FeasibleStarts {
            onward: self
                .groups
                .kinds()
                .map(|a| self.groups.kinds().map(|b| onward(a, b)).collect())
                .collect(),
            last: self.groups.kinds().map(|kind| Fits::new(&self.times[kind], bound)).collect(),
        }
    }

    /// Layers at which the segments of `state` with `kind` in front can begin, except the first layer.
    #[inline(always)]
    fn begins(&self, reach: &FeasibleStarts, state: usize, kind: usize, begins: &[Begins]) -> Begins {
        let rest = self.groups.without(state, kind);
        if rest == 0 {
            return reach.last[kind].before(1 << self.chain.layers);
        }
        let behind = self.groups.present(rest);
        behind.fold(0, |set, (next, row)| set | reach.onward[kind][next].before(begins[row]))
    }

    /// Whether `state` can hold all layers with `kind` in front.
    fn whole(&self, reach: &FeasibleStarts, state: usize, kind: usize, begins: &[Begins]) -> bool {
        let rest = self.groups.without(state, kind);
        if rest == 0 {
            return reach.last[kind].front >> self.chain.layers & 1 == 1;
        }
        self.groups.present(rest).any(|(next, row)| reach.onward[kind][next].front & begins[row] != 0)
    }

    /// A placement with no stage above `bound`, on exactly `stages` members if given.
    fn within(&mut self, bound: u64, stages: Option<usize>, stop: &dyn Fn() -> bool) -> BoundSearch {
        let reach = self.feasible_starts(bound);
        let groups = self.groups;
        let most_layers = self.max_layers_onward(bound);
        let mut largest_first: Vec<usize> = groups.kinds().collect();
        largest_first.sort_unstable_by_key(|&kind| std::cmp::Reverse(most_layers[kind]));
        // The layers before must fit on the remaining members with the most memory.
        let most = |state: usize, placed: usize| {
            let (mut more, mut layers) = (stages.map_or(usize::MAX, |stages| stages - placed), 0);
            for &kind in &largest_first {
                let left = groups.members[kind].len() - groups.count(state, kind);
                layers += left.min(more) * most_layers[kind];
                more -= left.min(more);
            }
            layers.min(MOST_LAYERS) as u32
        };
        let mut begins = vec![0; groups.rows()];
        // Most states cannot be completed: skip them as a whole.
        let mut alive = vec![false; groups.states];
        alive[0] = true;
        for state in 1..groups.states {
            if state.is_multiple_of(STRETCH) && stop() {
                return BoundSearch::Stopped;
            }
            let placed = usize::from(self.sizes[state]);
            if stages.is_some_and(|stages| placed > stages) {
                continue;
            }
            let mut before = None;
            for (kind, row) in groups.present(state) {
                if !alive[groups.without(state, kind)] {
                    continue;
                }
                self.states += 1;
                let complete = stages.is_none_or(|stages| placed == stages);
                if complete && self.whole(&reach, state, kind, &begins) {
                    return BoundSearch::Found(self.trace(state, kind, &begins, &reach));
                }
                if stages != Some(placed) {
                    let most = *before.get_or_insert_with(|| most(state, placed));
                    begins[row] = self.begins(&reach, state, kind, &begins) & span(0, most + 1);
                    alive[state] |= begins[row] != 0;
                }
            }
        }
        BoundSearch::Nothing
    }

    fn trace(&self, state: usize, kind: usize, begins: &[Begins], reach: &FeasibleStarts) -> Vec<Stage> {
        let groups = self.groups;
        let (mut state, mut kind, mut from) = (state, kind, 0);
        let (mut kinds, mut cuts) = (vec![kind], vec![0]);
        loop {
            let rest = groups.without(state, kind);
            if rest == 0 {
                break;
            }
            let found = groups.present(rest).find_map(|(next, row)| {
                let fits = &reach.onward[kind][next];
                let holds = |to: &usize| fits.holds(from, *to) && begins[row] >> to & 1 == 1;
                (from + 1..self.chain.layers).find(holds).map(|to| (next, to))
            });
            let (next, to) = found.expect("a reached state has a predecessor");
            cuts.push(to);
            kinds.push(next);
            (state, kind, from) = (rest, next, to);
        }
        cuts.push(self.chain.layers);
        let members = groups.name(&kinds);
        let stage = |(cut, member): (&[usize], usize)| Stage { member, from: cut[0], to: cut[1] };
        cuts.windows(2).zip(members).map(stage).collect()
    }
}
