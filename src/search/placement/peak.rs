//! The placement whose slowest stage is fastest, for a stated number of stages: exact, by bisection over stage times.
//!
//! For a bound on every stage, the layers at which what a set of members holds can begin are a set too, a word of
//! bits. (One number, the front-most, would not do: layers are unlike, and nobody may hold none.) Knows nothing of
//! what a tick is.

use super::bound;
use super::chain::{Chain, Hosts, Stage};
use super::groups::Groups;

/// Layers at which a placement so far can begin, a bit each.
type Begins = u128;

/// Layers that such a set has bits for.
pub const MOST_LAYERS: usize = Begins::BITS as usize - 1;

/// Segment times of every kind and the links between kinds.
pub struct Peak<'a> {
    chain: &'a Chain,
    groups: &'a Groups,
    /// `[kind][to][from]`.
    times: Vec<Vec<Vec<u64>>>,
    links: Vec<Vec<Option<u64>>>,
    sizes: Vec<u16>,
    /// States that were looked at: one kind in front of a state, for each bound tried.
    pub looked: u64,
}

/// Segments of a kind under one bound on its time, by where they end.
#[derive(Clone)]
struct Fits {
    /// Ends of segments that begin with the first layer.
    front: Begins,
    /// Ends of those that begin later.
    inner: Begins,
    /// The first layer that those can begin with; with any after it they can too.
    begin: Vec<u8>,
}

impl Fits {
    fn nothing(layers: usize) -> Fits {
        Fits { front: 0, inner: 0, begin: vec![0; layers + 1] }
    }

    /// Where segments that end at any of `ends` can begin, the first layer apart.
    #[inline(always)]
    fn before(&self, ends: Begins) -> Begins {
        let mut ends = ends & self.inner;
        let mut begins = 0;
        // Neighbouring ends leave no gap between where they begin.
        while ends != 0 {
            let low = ends.trailing_zeros();
            let run = (ends >> low).trailing_ones();
            begins |= span(u32::from(self.begin[low as usize]), low + run - 1);
            ends &= !span(low, low + run);
        }
        begins
    }
}

/// Bits from `low` up to but not including `high`.
#[inline(always)]
fn span(low: u32, high: u32) -> Begins {
    let below = |bit: u32| if bit >= Begins::BITS { Begins::MAX } else { (1 << bit) - 1 };
    below(high) & !below(low)
}

/// What fits under one bound: with another kind behind, and with nothing.
struct Reach {
    onward: Vec<Vec<Fits>>,
    last: Vec<Fits>,
}

impl<'a> Peak<'a> {
    /// Prices every segment.
    pub fn new(chain: &'a Chain, groups: &'a Groups) -> Peak<'a> {
        let layers = chain.layers;
        let time = |kind: usize, from, to| {
            chain.members[groups.face(kind)].ticks(layers, from, to, Hosts::Each).unwrap_or(u64::MAX)
        };
        let column = |kind, to: usize| (0..to).map(|from| time(kind, from, to)).collect();
        let times = groups.kinds().map(|kind| (0..=layers).map(|to| column(kind, to)).collect()).collect();
        let link = |from, to| groups.link(chain, from, to);
        let links = groups.kinds().map(|from| groups.kinds().map(|to| link(from, to)).collect()).collect();
        let sizes = (0..groups.states).map(|state| groups.total(state) as u16).collect();
        Peak { chain, groups, times, links, sizes, looked: 0 }
    }

    /// The least slowest stage of exactly `stages` stages, if it is below `below`.
    pub fn least(&mut self, stages: usize, below: u64) -> Option<(u64, Vec<Stage>)> {
        if stages == 0 || stages > self.chain.layers || stages > self.chain.members.len() {
            return None;
        }
        // From a bound upward: what is out of reach is soon told, what is far within it is not.
        let mut low = bound::slowest(self.chain, Some(stages));
        let last = below.checked_sub(1)?.min(self.longest());
        let (mut tried, mut stride) = (low, low / 64 + 1);
        if low > last {
            return None;
        }
        let mut best = loop {
            match self.within(tried, Some(stages)) {
                Some(found) => break found,
                None if tried == last => return None,
                None => {
                    low = tried + 1;
                    tried = tried.saturating_add(stride).min(last);
                    stride = stride.saturating_mul(2);
                }
            }
        };
        let mut most = self.chain.slowest(&best).ok()?;
        let values = self.values(low, most);
        let (mut low, mut high) = (0, values.partition_point(|value| *value < most));
        while low < high {
            let middle = low + (high - low) / 2;
            match self.within(values[middle], Some(stages)) {
                Some(found) => {
                    most = self.chain.slowest(&found).ok()?;
                    high = values.partition_point(|value| *value < most).min(middle);
                    best = found;
                }
                None => low = middle + 1,
            }
        }
        Some((most, best))
    }

    /// Whether anything fits at all, and how.
    pub fn any(&mut self) -> Option<Vec<Stage>> {
        self.within(u64::MAX - 1, None)
    }

    /// Layers that all members together can hold at most, from the last one on.
    pub fn held(&self) -> usize {
        let reach = self.reach(u64::MAX - 1);
        let mut begins = vec![0; self.groups.rows()];
        for state in 1..self.groups.states {
            for (kind, row) in self.groups.present(state) {
                begins[row] = self.begins(&reach, state, kind, &begins);
            }
        }
        let furthest = begins.into_iter().filter(|set| *set != 0).map(|set| set.trailing_zeros()).min();
        furthest.map_or(0, |from| self.chain.layers - from as usize)
    }

    /// The longest that any stage can take.
    fn longest(&self) -> u64 {
        let time = self.times.iter().flatten().flatten().filter(|time| **time < u64::MAX).max();
        let link = self.links.iter().flatten().flatten().max();
        time.map_or(0, |time| time.saturating_add(link.copied().unwrap_or_default()))
    }

    /// Every time that a stage can take, from `least` to `most`.
    fn values(&self, least: u64, most: u64) -> Vec<u64> {
        let mut values = Vec::new();
        for kind in self.groups.kinds() {
            let mut onward: Vec<u64> = self.links[kind].iter().flatten().copied().collect();
            onward.push(0);
            onward.sort_unstable();
            onward.dedup();
            for time in self.times[kind].iter().flatten().filter(|time| **time <= most) {
                let all = onward.iter().map(|link| time + link);
                values.extend(all.filter(|value| (least..=most).contains(value)));
            }
        }
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Segments of `kind` of at most `most` ticks.
    fn fits(&self, kind: usize, most: u64) -> Fits {
        let mut fits = Fits::nothing(self.chain.layers);
        for (to, column) in self.times[kind].iter().enumerate().skip(1) {
            fits.front |= Begins::from(column[0] <= most) << to;
            let inner = &column[1..];
            let skip = inner.partition_point(|time| *time > most);
            if skip < inner.len() {
                fits.inner |= 1 << to;
                fits.begin[to] = skip as u8 + 1;
            }
        }
        fits
    }

    fn reach(&self, bound: u64) -> Reach {
        let onward = |kind: usize, next: usize| {
            let most = self.links[kind][next].and_then(|link| bound.checked_sub(link));
            most.map_or_else(|| Fits::nothing(self.chain.layers), |most| self.fits(kind, most))
        };
        Reach {
            onward: self
                .groups
                .kinds()
                .map(|a| self.groups.kinds().map(|b| onward(a, b)).collect())
                .collect(),
            last: self.groups.kinds().map(|kind| self.fits(kind, bound)).collect(),
        }
    }

    /// Where what `state` holds with `kind` in front can begin, the first layer apart.
    #[inline(always)]
    fn begins(&self, reach: &Reach, state: usize, kind: usize, begins: &[Begins]) -> Begins {
        let rest = self.groups.without(state, kind);
        if rest == 0 {
            return reach.last[kind].before(1 << self.chain.layers);
        }
        let behind = self.groups.present(rest);
        behind.fold(0, |set, (next, row)| set | reach.onward[kind][next].before(begins[row]))
    }

    /// Whether `state` can hold everything with `kind` in front.
    fn whole(&self, reach: &Reach, state: usize, kind: usize, begins: &[Begins]) -> bool {
        let rest = self.groups.without(state, kind);
        if rest == 0 {
            return reach.last[kind].front >> self.chain.layers & 1 == 1;
        }
        self.groups.present(rest).any(|(next, row)| reach.onward[kind][next].front & begins[row] != 0)
    }

    /// A placement with no stage above `bound`, on exactly `stages` members if that is stated.
    fn within(&mut self, bound: u64, stages: Option<usize>) -> Option<Vec<Stage>> {
        let reach = self.reach(bound);
        let groups = self.groups;
        let room = |kind| bound::room(self.chain, groups.face(kind), bound);
        let room: Vec<usize> = groups.kinds().map(room).collect();
        let largest = room.iter().copied().max().unwrap_or_default();
        let left = groups.left(&room);
        // What comes before must fit on whoever is left.
        let most = |state: usize, placed: usize| {
            let more = stages.map_or(usize::MAX, |stages| (stages - placed) * largest);
            left[state].min(more).min(MOST_LAYERS) as u32
        };
        let mut begins = vec![0; groups.rows()];
        // Most states hold nothing that could be completed: they are passed by as a whole.
        let mut alive = vec![false; groups.states];
        alive[0] = true;
        for state in 1..groups.states {
            let placed = usize::from(self.sizes[state]);
            if stages.is_some_and(|stages| placed > stages) {
                continue;
            }
            for (kind, row) in groups.present(state) {
                if !alive[groups.without(state, kind)] {
                    continue;
                }
                self.looked += 1;
                let complete = stages.is_none_or(|stages| placed == stages);
                if complete && self.whole(&reach, state, kind, &begins) {
                    return Some(self.trace(state, kind, &begins, &reach));
                }
                if stages != Some(placed) {
                    let most = most(state, placed);
                    begins[row] = self.begins(&reach, state, kind, &begins) & span(0, most + 1);
                    alive[state] |= begins[row] != 0;
                }
            }
        }
        None
    }

    fn trace(&self, state: usize, kind: usize, begins: &[Begins], reach: &Reach) -> Vec<Stage> {
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
                let holds = |to: &usize| {
                    let inner = fits.inner >> to & 1 == 1 && usize::from(fits.begin[*to]) <= from;
                    let fits = if from == 0 { fits.front >> to & 1 == 1 } else { inner };
                    fits && begins[row] >> to & 1 == 1
                };
                (from + 1..self.chain.layers).find(holds).map(|to| (next, to))
            });
            let (next, to) = found.expect("what reached this far is found again");
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
