//! How many layers each kind of members holds in how many segments, order left out: every link as fast as the kind's
//! fastest, every segment as cheap as the cheapest of its length.
//!
//! Exact where layers are alike and links are as fast everywhere; elsewhere a bound, and a placement to begin with.
//! Members of a kind are counted, so that it takes time by kinds, not by sets of members.

use super::chain::{Chain, Hosts, Segments};
use super::groups::Groups;

/// Ticks of what cannot be.
pub const NEVER: u64 = u64::MAX;

/// What is made small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// The sum of all segments.
    Sum,
    /// The slowest segment.
    Slowest,
}

impl Worth {
    fn with(self, one: u64, other: u64) -> u64 {
        match self {
            Worth::Sum => one.saturating_add(other),
            Worth::Slowest => one.max(other),
        }
    }
}

/// A way to hold a segment: so many members of a kind, and ticks by the number of its layers.
#[derive(Clone, Debug)]
pub struct Way {
    /// The kind.
    pub kind: usize,
    /// How many of it hold the segment, each with all of its layers.
    pub members: usize,
    /// Of a segment that begins with the first layer, its way onward with it.
    first: Vec<u64>,
    /// Of one between others.
    middle: Vec<u64>,
    /// Of one that ends with the last layer.
    last: Vec<u64>,
    /// Of all layers.
    whole: u64,
}

impl Way {
    /// The segments of `kind` in `chain`, each worked through `turns` times.
    pub fn new(
        chain: &Chain,
        groups: &Groups,
        kind: usize,
        (members, turns): (usize, u64),
        hosts: Hosts,
    ) -> Way {
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
        let apart = |length: usize| length < layers;
        Way {
            kind,
            members,
            first: of(&|length| if apart(length) { sent(0, length) } else { NEVER }),
            middle: of(&middle),
            last: of(&|length| {
                if apart(length) { ticks(layers - length, layers).saturating_mul(turns) } else { NEVER }
            }),
            whole: ticks(0, layers).saturating_mul(turns),
        }
    }
}

/// Where a segment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    First,
    Middle,
    Last,
}

/// A segment of a kind, its layers counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The kind.
    pub kind: usize,
    /// Members that hold it.
    pub members: usize,
    /// Its layers.
    pub layers: usize,
}

/// Entries of a table, at most.
const MOST_ENTRIES: usize = 1 << 26;

/// No choice.
const NONE: u32 = u32::MAX;

/// The least of every number of segments, or of any.
pub struct Unordered<'a> {
    layers: usize,
    ways: &'a [Way],
    worth: Worth,
    /// Segments that are counted, at most; none where they are not.
    segments: usize,
    counted: bool,
    /// For each kind, and each number of its members, how each state came about.
    chosen: Vec<Vec<Vec<u32>>>,
    /// For each kind, and each state, how many of its members are taken.
    taken: Vec<Vec<u16>>,
    least: Vec<u64>,
}

impl<'a> Unordered<'a> {
    /// Fills the tables for `counts` members of each kind, the numbers of segments told apart up to `segments` where
    /// that is stated; `None` where there would be too many entries.
    pub fn new(
        layers: usize,
        counts: &[usize],
        ways: &'a [Way],
        worth: Worth,
        segments: Option<usize>,
    ) -> Option<Unordered<'a>> {
        let most = segments.unwrap_or(0);
        let states = 4_usize.checked_mul(layers + 1)?.checked_mul(most + 1)?;
        let members: usize = counts.iter().map(|count| count + 1).sum();
        states.checked_mul(members).filter(|entries| *entries <= MOST_ENTRIES)?;
        let mut all = Unordered {
            layers,
            ways,
            worth,
            segments: most,
            counted: segments.is_some(),
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

    /// The number of a state: which ends are held, layers, segments.
    fn state(&self, ends: usize, layers: usize, segments: usize) -> usize {
        (ends * (self.layers + 1) + layers) * (self.segments + 1) + segments
    }

    /// Takes up to `count` members of `kind`.
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

    /// Puts one segment held in the way numbered `at` on top of `before`.
    fn add(&self, at: usize, before: &[u64], table: &mut [u64], how: &mut [u32]) {
        let way = &self.ways[at];
        let places = [(Place::First, &way.first), (Place::Middle, &way.middle), (Place::Last, &way.last)];
        let step = usize::from(self.counted);
        for (place, ticks) in places {
            let bit = match place {
                Place::First => 1,
                Place::Middle => 0,
                Place::Last => 2,
            };
            for ends in (0..4).filter(|ends| bit == 0 || ends & bit == 0) {
                for (length, ticks) in ticks.iter().enumerate().filter(|(_, ticks)| **ticks < NEVER) {
                    let choice = ((at as u32) << 18) | ((place as u32) << 16) | length as u32;
                    for layers in 0..=self.layers - length {
                        for segments in 0..=self.segments - step.min(self.segments) {
                            let known = before[self.state(ends, layers, segments)];
                            if known == NEVER {
                                continue;
                            }
                            let value = self.worth.with(known, *ticks);
                            let to = self.state(ends | bit, layers + length, segments + step);
                            if value < table[to] {
                                (table[to], how[to]) = (value, choice);
                            }
                        }
                    }
                }
            }
        }
    }

    /// The least, of exactly `segments` segments where they are counted, and its pieces, first to last.
    pub fn least(&self, segments: Option<usize>) -> Option<(u64, Vec<Piece>)> {
        let exactly = if self.counted { segments? } else { 0 };
        let alone = (!self.counted || exactly == 1).then(|| {
            let ways = self.ways.iter().filter(|way| way.whole < NEVER);
            let least = ways.min_by_key(|way| (way.whole, way.members))?;
            Some((least.whole, vec![Piece { kind: least.kind, members: least.members, layers: self.layers }]))
        });
        let several = (exactly <= self.segments).then(|| self.state(3, self.layers, exactly));
        let several = several.filter(|state| self.least[*state] < NEVER);
        let several = several.map(|state| (self.least[state], self.pieces(state)));
        alone.flatten().into_iter().chain(several).min_by_key(|(ticks, pieces)| (*ticks, pieces.len()))
    }

    fn pieces(&self, mut state: usize) -> Vec<Piece> {
        let mut pieces: Vec<(Place, Piece)> = Vec::new();
        for kind in (0..self.taken.len()).rev() {
            let mut used = usize::from(self.taken[kind][state]);
            while used > 0 {
                let choice = self.chosen[kind][used][state];
                let way = &self.ways[(choice >> 18) as usize];
                let (place, bit) = match choice >> 16 & 3 {
                    0 => (Place::First, 1),
                    1 => (Place::Middle, 0),
                    _ => (Place::Last, 2),
                };
                let layers = (choice & 0xffff) as usize;
                pieces.push((place, Piece { kind, members: way.members, layers }));
                state -= self.state(bit, layers, usize::from(self.counted));
                used -= way.members;
            }
        }
        pieces.sort_by_key(|(place, piece)| (*place, piece.kind, piece.members));
        pieces.into_iter().map(|(_, piece)| piece).collect()
    }
}
