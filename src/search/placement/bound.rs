//! Lower bounds independent of the dynamic programs: order and links are relaxed, layers go to the fastest members.

use super::chain::{Chain, HostOverhead, Segments};
use super::device_classes::DeviceClasses;

/// Maximum number of layers of a member with no segment above `most` ticks.
pub fn room(chain: &Chain, member: usize, most: u64) -> usize {
    let segments = Segments::new(&chain.members[member], chain.layers);
    let holds = |from: usize, to: usize| {
        let ticks = segments.ticks(from, to, HostOverhead::Each);
        ticks.is_some_and(|ticks| ticks <= most)
    };
    // Two pointers: a segment that is too long stays too long when extended.
    let (mut from, mut longest) = (0, 0);
    for to in 1..=chain.layers {
        while from < to && !holds(from, to) {
            from += 1;
        }
        longest = longest.max(to - from);
    }
    longest
}

/// Minimum ticks of the first layers on the members that a state leaves.
pub struct Before<'a> {
    groups: &'a DeviceClasses,
    /// On any members, for each number of layers.
    pub all: Vec<u64>,
    /// Minimum ticks of a layer, and maximum number of layers, of each kind, the fastest first.
    fastest: Vec<(u64, usize, usize)>,
    /// Minimum ticks of the embedding and the host overhead.
    begun: u64,
}

impl<'a> Before<'a> {
    /// For the states of `groups`.
    pub fn new(chain: &Chain, groups: &'a DeviceClasses) -> Before<'a> {
        let kind = |kind: usize| {
            let face = groups.face(kind);
            (cheapest(chain, face), room(chain, face, u64::MAX), kind)
        };
        let mut fastest: Vec<(u64, usize, usize)> = groups.kinds().map(kind).collect();
        fastest.sort_unstable();
        Before { groups, all: before(chain), fastest, begun: begun(chain) }
    }

    /// The same on the members that `state` does not use, into `ticks`; infinite where they hold fewer layers.
    pub fn without(&self, state: usize, ticks: &mut [f64]) {
        let left = |kind: usize| self.groups.members[kind].len() - self.groups.count(state, kind);
        let mut layers = 1;
        let mut sum = self.begun;
        ticks[0] = 0.0;
        for (each, room, kind) in &self.fastest {
            let end = ticks.len().min(layers + room * left(*kind));
            for (ticks, all) in ticks[layers..end].iter_mut().zip(&self.all[layers..]) {
                sum += each;
                *ticks = sum.max(*all) as f64;
            }
            layers = end;
        }
        ticks[layers..].fill(f64::INFINITY);
    }
}

/// Minimum ticks of a layer on a member.
fn cheapest(chain: &Chain, member: usize) -> u64 {
    chain.members[member].layers.iter().map(|layer| layer.ticks).min().unwrap_or_default()
}

/// Minimum ticks of the embedding and the host overhead.
fn begun(chain: &Chain) -> u64 {
    chain.members.iter().map(|member| member.first.ticks + member.host).min().unwrap_or_default()
}

/// Minimum ticks of the first layers, with the embedding and the host overhead, for each number of layers.
pub fn before(chain: &Chain) -> Vec<u64> {
    let members = &chain.members;
    let least = |of: &dyn Fn(usize) -> u64| (0..members.len()).map(of).min().unwrap_or_default();
    let mut fastest: Vec<(u64, usize)> =
        (0..members.len()).map(|member| (cheapest(chain, member), room(chain, member, u64::MAX))).collect();
    fastest.sort_unstable();
    let mut slots = fastest.into_iter().flat_map(|(ticks, room)| std::iter::repeat_n(ticks, room));
    let begun = begun(chain);
    let (mut handed, mut each) = (begun, begun);
    // A segment that begins with the first layer includes its embedding.
    let mut before = vec![0];
    for layer in 0..chain.layers {
        // The fastest member has no capacity for all layers; and layers differ, each goes to the member fastest at
        // it.
        handed += slots.next().unwrap_or_default();
        each += least(&|k| members[k].layers[layer].ticks);
        before.push(handed.max(each));
    }
    before
}

/// Lower bound of the sum of stage times, in ticks.
pub fn sum(chain: &Chain) -> u64 {
    let least = chain.members.iter().map(|member| member.last.ticks).min();
    before(chain)[chain.layers] + least.unwrap_or_default()
}

/// Lower bound of the bottleneck on `stages` members, or on any number, in ticks: below it they hold too few layers
/// in any selection.
pub fn slowest(chain: &Chain, stages: Option<usize>) -> u64 {
    let holds = |most: u64| {
        let mut rooms: Vec<usize> =
            (0..chain.members.len()).map(|member| room(chain, member, most)).collect();
        rooms.sort_unstable_by(|a, b| b.cmp(a));
        rooms.into_iter().take(stages.unwrap_or(usize::MAX)).sum::<usize>() >= chain.layers
    };
    let one = |member: usize| {
        let held = &chain.members[member];
        let work: u64 = held.layers.iter().map(|layer| layer.ticks).sum();
        held.host + held.first.ticks + held.last.ticks + work
    };
    let (mut low, mut high) = (0, (0..chain.members.len()).map(one).max().unwrap_or_default());
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}
