//! Relaxation without order: number of layers and segments of each kind of members, with every link as fast as the
//! fastest of the kind, and every segment as cheap as the cheapest of its length.
//!
//! Exact for identical layers and uniform links; otherwise a bound and an initial placement. Members of a kind are
//! counted, so the cost grows with the number of kinds, not with the number of sets of members.

use super::chain::{Chain, HostOverhead, Segments};
use super::device_classes::DeviceClasses;

/// Ticks of an infeasible value.
pub const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainObjective {
    TotalTime,
    SlowestStage,
}

impl ChainObjective {
    fn with(self, one: u64, other: u64) -> u64 {
        match self {
            ChainObjective::TotalTime => one.saturating_add(other),
            ChainObjective::SlowestStage => one.max(other),
        }
    }
}

/// An option for a segment: a number of members of a kind, and ticks by number of layers.
#[derive(Clone, Debug)]
pub struct SegmentOption {
    pub kind: usize,
    /// Number of members that hold the segment, each with all of its layers.
    pub members: usize,
    /// A segment that begins with the first layer, including the transfer to the next.
    first: Vec<u64>,
    /// A segment between others.
    middle: Vec<u64>,
    /// A segment that ends with the last layer.
    last: Vec<u64>,
    whole: u64,
}

impl SegmentOption {
    /// The segments of `kind` in `chain`, each processed `turns` times.
    pub fn new(
        chain: &Chain,
        groups: &DeviceClasses,
        kind: usize,
        (members, turns): (usize, u64),
        hosts: HostOverhead,
    ) -> SegmentOption {
        let layers = chain.layers;
        let segments = Segments::new(&chain.members[groups.face(kind)], layers);
        let onward = groups.kinds().filter_map(|next| groups.link(chain, kind, next)).min();
        let ticks = |from, to| segments.ticks(from, to, hosts).map_or(NEVER, |ticks| ticks);
        let sent = |from, to| match (ticks(from, to), onward) {
            (NEVER, _) | (_, None) => NEVER,
            (ticks, Some(onward)) => (ticks + onward).saturating_mul(turns),
        };
        let middle = |length: usize| {
            let begins = 1..layers.saturating_sub(length);
            begins.map(|from| sent(from, from + length)).min().unwrap_or(NEVER)
        };
        let of = |ticks: &dyn Fn(usize) -> u64| -> Vec<u64> {
            (0..=layers).map(|length| if length == 0 { NEVER } else { ticks(length) }).collect()
        };
        let partial = |length: usize| length < layers;
        SegmentOption {
            kind,
            members,
            first: of(&|length| if partial(length) { sent(0, length) } else { NEVER }),
            middle: of(&middle),
            last: of(&|length| {
                if partial(length) { ticks(layers - length, layers).saturating_mul(turns) } else { NEVER }
            }),
            whole: ticks(0, layers).saturating_mul(turns),
        }
    }
}

/// The ends of the chain that a segment holds, as bits: of the first one, of one between others, of the last one.
const ENDS: [usize; 3] = [1, 0, 2];

/// A segment of a kind with a number of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub kind: usize,
    /// Number of members that hold it.
    pub members: usize,
    pub layers: usize,
}

const MOST_ENTRIES: usize = 1 << 26;

const MOST_WORK: usize = 1 << 31;

/// No choice.
const NONE: u32 = u32::MAX;

/// The counts of the states in addition to layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Nothing,
    /// Segments, up to a maximum, for an exact number of segments.
    Segments(usize),
    /// Members, up to a maximum.
    Members(usize),
}

impl Counted {
    fn most(self) -> usize {
        match self {
            Counted::Nothing => 0,
            Counted::Segments(most) | Counted::Members(most) => most,
        }
    }

    /// The count of one more segment.
    fn step(self, way: &SegmentOption) -> usize {
        match self {
            Counted::Nothing => 0,
            Counted::Segments(_) => 1,
            Counted::Members(_) => way.members,
        }
    }
}

/// The minimum for every number of segments, or for any number.
pub struct Unordered<'a> {
    layers: usize,
    counts: &'a [usize],
    ways: &'a [SegmentOption],
    objective: ChainObjective,
    counted: Counted,
    /// For each kind, and each number of its members, the choice that led to each state.
    chosen: Vec<Vec<Vec<u32>>>,
    /// For each kind, and each state, the number of its members in use.
    taken: Vec<Vec<u16>>,
    least: Vec<u64>,
}

impl<'a> Unordered<'a> {
    /// Fills the tables for `counts` members of each kind; `None` where there would be too many entries, or too much
    /// work.
    pub fn new(
        layers: usize,
        counts: &'a [usize],
        ways: &'a [SegmentOption],
        objective: ChainObjective,
        counted: Counted,
    ) -> Option<Unordered<'a>> {
        let states = 4_usize.checked_mul(layers + 1)?.checked_mul(counted.most() + 1)?;
        let members: usize = counts.iter().map(|count| count + 1).sum();
        let entries = states.checked_mul(members).filter(|entries| *entries <= MOST_ENTRIES)?;
        let each = (ways.len() / counts.len().max(1) + 1) * (layers + 1);
        entries.checked_mul(each).filter(|work| *work <= MOST_WORK)?;
        let mut all = Unordered {
            layers,
            counts,
            ways,
            objective,
            counted,
            chosen: vec![],
            taken: vec![],
            least: vec![NEVER; states],
        };
        all.least[0] = 0;
        for (kind, count) in counts.iter().enumerate() {
            all.kind(kind, *count);
        }
        Some(all)
    }

    /// The index of a state: ends held, layers, and count.
    fn state(&self, ends: usize, layers: usize, counted: usize) -> usize {
        (ends * (self.layers + 1) + layers) * (self.counted.most() + 1) + counted
    }

    fn kind(&mut self, kind: usize, count: usize) {
        let states = self.least.len();
        let ways: Vec<usize> = (0..self.ways.len()).filter(|at| self.ways[*at].kind == kind).collect();
        let mut tables = vec![std::mem::take(&mut self.least)];
        let mut chosen = vec![vec![]];
        for used in 1..=count {
            let (mut table, mut how) = (vec![NEVER; states], vec![NONE; states]);
            for &at in ways.iter().filter(|at| self.ways[**at].members <= used) {
                self.add(at, &tables[used - self.ways[at].members], &mut table, &mut how);
            }
            tables.push(table);
            chosen.push(how);
        }
        let mut taken = vec![0_u16; states];
        let mut tables = tables.into_iter();
        let mut least = tables.next().unwrap_or_default();
        for (used, table) in tables.enumerate() {
            for state in 0..states {
                if table[state] < least[state] {
                    (least[state], taken[state]) = (table[state], used as u16 + 1);
                }
            }
        }
        self.least = least;
        self.chosen.push(chosen);
        self.taken.push(taken);
    }

    /// Adds one segment of the option with index `at` to `before`.
    fn add(&self, at: usize, before: &[u64], table: &mut [u64], how: &mut [u32]) {
        let way = &self.ways[at];
        let step = self.counted.step(way);
        let Some(most) = self.counted.most().checked_sub(step) else { return };
        for (place, ticks) in [&way.first, &way.middle, &way.last].into_iter().enumerate() {
            let bit = ENDS[place];
            for ends in (0..4).filter(|ends| bit == 0 || ends & bit == 0) {
                for (length, ticks) in ticks.iter().enumerate().filter(|(_, ticks)| **ticks < NEVER) {
                    let choice = ((at as u32) << 18) | ((place as u32) << 16) | length as u32;
                    for layers in 0..=self.layers - length {
                        for counted in 0..=most {
                            let known = before[self.state(ends, layers, counted)];
                            if known == NEVER {
                                continue;
                            }
                            let value = self.objective.with(known, *ticks);
                            let to = self.state(ends | bit, layers + length, counted + step);
                            if value < table[to] {
                                (table[to], how[to]) = (value, choice);
                            }
                        }
                    }
                }
            }
        }
    }

    /// The minimum, with exactly `segments` segments if counted, and its pieces, first to last.
    pub fn least(&self, segments: Option<usize>) -> Option<(u64, Vec<Piece>)> {
        let (alone, counted) = match self.counted {
            Counted::Nothing => (Some(usize::MAX), 0..1),
            Counted::Segments(most) => {
                let exactly = segments.filter(|segments| *segments <= most)?;
                ((exactly == 1).then_some(usize::MAX), exactly..exactly + 1)
            }
            Counted::Members(most) => (Some(most), 0..most + 1),
        };
        let alone = alone.and_then(|most| {
            let there =
                |way: &&SegmentOption| way.members <= self.counts[way.kind].min(most) && way.whole < NEVER;
            let least = self.ways.iter().filter(there).min_by_key(|way| (way.whole, way.members))?;
            Some((least.whole, vec![Piece { kind: least.kind, members: least.members, layers: self.layers }]))
        });
        let several = counted.map(|counted| self.state(3, self.layers, counted));
        let several =
            several.filter(|state| self.least[*state] < NEVER).min_by_key(|state| self.least[*state]);
        let several = several.map(|state| (self.least[state], self.pieces(state)));
        alone.into_iter().chain(several).min_by_key(|(ticks, pieces)| (*ticks, pieces.len()))
    }

    fn pieces(&self, mut state: usize) -> Vec<Piece> {
        let mut pieces: Vec<(usize, Piece)> = Vec::new();
        for kind in (0..self.taken.len()).rev() {
            let mut used = usize::from(self.taken[kind][state]);
            while used > 0 {
                let choice = self.chosen[kind][used][state];
                let way = &self.ways[(choice >> 18) as usize];
                let (place, layers) = ((choice >> 16 & 3) as usize, (choice & 0xffff) as usize);
                pieces.push((place, Piece { kind, members: way.members, layers }));
                state -= self.state(ENDS[place], layers, self.counted.step(way));
                used -= way.members;
            }
        }
        pieces.sort_by_key(|(place, piece)| (*place, piece.kind, piece.members));
        pieces.into_iter().map(|(_, piece)| piece).collect()
    }
}
