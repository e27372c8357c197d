//! Lower bounds independent of the dynamic programs: order and links are relaxed, layers go to the fastest members.

use super::chain::{Chain, HostOverhead, Segments};
use super::device_classes::DeviceClasses;
use crate::search::shape::smallest;

/// Maximum number of layers of a member with no segment above `most` ticks.
pub fn max_layers(chain: &Chain, member: usize, most: u64) -> usize {
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
pub struct PrefixBound<'a> {
    groups: &'a DeviceClasses,
    /// On any members, for each number of layers.
    pub all: Vec<u64>,
    /// Maximum number of layers of a member of each kind.
    pub max_layers: Vec<usize>,
    /// Minimum ticks of a layer, and the kind, the fastest first.
    fastest: Vec<(u64, usize)>,
    /// Minimum ticks of the embedding and the host overhead.
    begun: u64,
}

impl<'a> PrefixBound<'a> {
    pub fn new(chain: &Chain, groups: &'a DeviceClasses) -> PrefixBound<'a> {
        let max_layers = groups.kinds().map(|kind| max_layers(chain, groups.face(kind), u64::MAX)).collect();
        let mut fastest: Vec<(u64, usize)> =
            groups.kinds().map(|kind| (cheapest(chain, groups.face(kind)), kind)).collect();
        fastest.sort_unstable();
        PrefixBound { groups, all: before(chain), max_layers, fastest, begun: begun(chain) }
    }

    /// The same on the members that `state` does not use, into `ticks`; infinite where they hold fewer layers.
    pub fn without(&self, state: usize, ticks: &mut [f64]) {
        let left = |kind: usize| self.groups.members[kind].len() - self.groups.count(state, kind);
        let kinds = self.fastest.iter().map(|&(ticks, kind)| (ticks, self.max_layers[kind] * left(kind)));
        let most = ticks.len() - 1;
        ticks[0] = 0.0;
        let held =
            fill(self.begun, kinds, most, |layers, sum| ticks[layers] = sum.max(self.all[layers]) as f64);
        ticks[held + 1..].fill(f64::INFINITY);
    }
}

/// Shows `each` the ticks of the first layers, for each number of layers up to `most`, on kinds with these ticks per
/// layer and layers that they hold. Returns the number of layers that are held.
fn fill(
    begun: u64,
    fastest: impl Iterator<Item = (u64, usize)>,
    most: usize,
    mut each: impl FnMut(usize, u64),
) -> usize {
    let (mut layers, mut sum) = (0, begun);
    for (ticks, count) in fastest {
        for _ in 0..count.min(most - layers) {
            (layers, sum) = (layers + 1, sum + ticks);
            each(layers, sum);
        }
    }
    layers
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
    let members = 0..chain.members.len();
    let mut fastest: Vec<(u64, usize)> = members
        .clone()
        .map(|member| (cheapest(chain, member), max_layers(chain, member, u64::MAX)))
        .collect();
    fastest.sort_unstable();
    let begun = begun(chain);
    // A segment that begins with the first layer includes its embedding.
    let mut before = vec![0; chain.layers + 1];
    let mut handed = begun;
    let held = fill(begun, fastest.into_iter(), chain.layers, |layers, sum| {
        before[layers] = sum;
        handed = sum;
    });
    before[held + 1..].fill(handed);
    // The fastest member has no capacity for all layers; and layers differ, each goes to the member fastest at it.
    let mut each = begun;
    for (layer, before) in before[1..].iter_mut().enumerate() {
        let least = members.clone().map(|member| chain.members[member].layers[layer].ticks).min();
        each += least.unwrap_or_default();
        *before = each.max(*before);
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
        let mut counts: Vec<usize> =
            (0..chain.members.len()).map(|member| max_layers(chain, member, most)).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.into_iter().take(stages.unwrap_or(usize::MAX)).sum::<usize>() >= chain.layers
    };
    let one = |member: usize| {
        let held = &chain.members[member];
        let work: u64 = held.layers.iter().map(|layer| layer.ticks).sum();
        held.host + held.first.ticks + held.last.ticks + work
    };
    smallest(0, (0..chain.members.len()).map(one).max().unwrap_or_default(), holds)
}
