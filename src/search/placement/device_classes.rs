//! States of the dynamic programs: the number of used members of each kind.
//!
//! A member without an identical one is a kind of one, so a bitmask is the special case.

use super::chain::Chain;

/// Members by kind, and the states that count them.
#[derive(Clone, Debug, Default)]
pub struct DeviceClasses {
    pub members: Vec<Vec<usize>>,
    /// The increment of the state number for one more member of a kind.
    strides: Vec<usize>,
    /// Number of states; 0 where there are too many to list.
    pub states: usize,
    /// First row of each state: a state has one row for each kind with at least one member in it.
    rows: Vec<u32>,
    /// The kind of each row: a division for every state would take longer than the programs.
    kind_of: Vec<u8>,
    /// The count of each kind for each state, precomputed for the same reason.
    counts: Vec<u8>,
}

impl DeviceClasses {
    /// The kinds of `chain` with their states; `None` where there would be more than `most` rows.
    #[cfg(feature = "internals")]
    pub fn new(chain: &Chain, most: usize) -> Option<DeviceClasses> {
        DeviceClasses::of(by_kind(chain), most)
    }

    /// The kinds of `chain`, with their states if these have at most `most` rows.
    pub fn counted(chain: &Chain, most: usize) -> DeviceClasses {
        let members = by_kind(chain);
        DeviceClasses::of(members.clone(), most).unwrap_or_else(|| DeviceClasses {
            members,
            rows: vec![0],
            ..DeviceClasses::default()
        })
    }

    /// Whether the states are listed; with too many states only the kinds are.
    pub fn listed(&self) -> bool {
        self.states > 0
    }

    /// Every member as its own kind: a state is a bitmask.
    pub fn singletons(members: usize, most: usize) -> Option<DeviceClasses> {
        DeviceClasses::of((0..members).map(|member| vec![member]).collect(), most)
    }

    fn of(members: Vec<Vec<usize>>, most: usize) -> Option<DeviceClasses> {
        let mut strides = Vec::with_capacity(members.len());
        let mut states: usize = 1;
        for kind in &members {
            strides.push(states);
            states = states.checked_mul(kind.len() + 1).filter(|states| *states <= most)?;
            u8::try_from(kind.len()).ok()?;
        }
        let mut groups = DeviceClasses { members, strides, states, ..DeviceClasses::default() };
        for state in 0..states {
            groups.rows.push(groups.kind_of.len() as u32);
            let count = |kind: usize| state / groups.strides[kind] % (groups.members[kind].len() + 1);
            let counts: Vec<u8> = groups.kinds().map(|kind| count(kind) as u8).collect();
            groups.counts.extend(counts);
            let present = groups.kinds().filter(|&kind| groups.count(state, kind) > 0);
            let present: Vec<u8> = present.map(|kind| kind as u8).collect();
            groups.kind_of.extend(present);
            if groups.kind_of.len() > most {
                return None;
            }
        }
        groups.rows.push(groups.kind_of.len() as u32);
        Some(groups)
    }

    pub fn kinds(&self) -> std::ops::Range<usize> {
        0..self.members.len()
    }

    #[inline(always)]
    pub fn count(&self, state: usize, kind: usize) -> usize {
        usize::from(self.counts[state * self.members.len() + kind])
    }

    /// Members of all kinds in `state`.
    pub fn total(&self, state: usize) -> usize {
        self.kinds().map(|kind| self.count(state, kind)).sum()
    }

    /// For every state, the sum of `each` over the members that it does not use.
    pub fn left(&self, each: &[usize]) -> Vec<usize> {
        let all: usize = self.kinds().map(|kind| each[kind] * self.members[kind].len()).sum();
        let mut left = vec![all; self.states];
        for state in 1..self.states {
            let kind = usize::from(self.kind_of[self.rows[state] as usize]);
            left[state] = left[self.without(state, kind)] - each[kind];
        }
        left
    }

    /// `state` without one member of `kind`.
    #[inline(always)]
    pub fn without(&self, state: usize, kind: usize) -> usize {
        state - self.strides[kind]
    }

    pub fn rows(&self) -> usize {
        self.rows[self.states] as usize
    }

    /// The kinds in `state`, each with its row.
    #[inline(always)]
    pub fn present(&self, state: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let rows = self.rows[state] as usize..self.rows[state + 1] as usize;
        rows.map(|row| (usize::from(self.kind_of[row]), row))
    }

    /// The representative member of a kind.
    pub fn face(&self, kind: usize) -> usize {
        self.members[kind][0]
    }

    /// Ticks from a member of one kind to a member of another, or to another member of the same kind.
    pub fn link(&self, chain: &Chain, from: usize, to: usize) -> Option<u64> {
        let (a, b) = (self.face(from), self.face(to));
        if from == to { chain.links[a][*self.members[from].get(1)?] } else { chain.links[a][b] }
    }

    /// Maps a sequence of kinds to members: the members of each kind are used in order.
    pub fn name(&self, kinds: &[usize]) -> Vec<usize> {
        let mut used = vec![0; self.members.len()];
        kinds
            .iter()
            .map(|&kind| {
                used[kind] += 1;
                self.members[kind][used[kind] - 1]
            })
            .collect()
    }
}

/// Whether the members of `chain` have the kinds of `groups`.
pub fn is_grouped(groups: &DeviceClasses, chain: &Chain) -> bool {
    groups.members == by_kind(chain)
}

fn by_kind(chain: &Chain) -> Vec<Vec<usize>> {
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (member, like) in chain.kinds().into_iter().enumerate() {
        match members.iter_mut().find(|kind| kind[0] == like) {
            Some(kind) => kind.push(member),
            None => members.push(vec![member]),
        }
    }
    members
}
