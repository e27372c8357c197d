//! Bounds that owe nothing to the programmes: order and links left out, layers handed to whoever is fastest.

use super::chain::{Chain, Hosts};

/// Most layers that a member can hold with no segment above `most` ticks.
fn room(chain: &Chain, member: usize, most: u64) -> usize {
    let holds = |from: usize, to: usize| {
        let ticks = chain.members[member].ticks(chain.layers, from, to, Hosts::Each);
        ticks.is_some_and(|ticks| ticks <= most)
    };
    // Both ends move forward only: a segment that is too long stays so.
    let (mut from, mut longest) = (0, 0);
    for to in 1..=chain.layers {
        while from < to && !holds(from, to) {
            from += 1;
        }
        longest = longest.max(to - from);
    }
    longest
}

/// Ticks that no placement's sum is below.
pub fn sum(chain: &Chain) -> u64 {
    let least = |of: &dyn Fn(usize) -> u64| (0..chain.members.len()).map(of).min().unwrap_or_default();
    let cheapest = |member: usize| {
        chain.members[member].layers.iter().map(|layer| layer.ticks).min().unwrap_or_default()
    };
    let mut fastest: Vec<(u64, usize)> =
        (0..chain.members.len()).map(|member| (cheapest(member), room(chain, member, u64::MAX))).collect();
    fastest.sort_unstable();
    let mut left = chain.layers;
    let mut handed = 0;
    for (ticks, room) in fastest {
        let layers = left.min(room);
        handed += ticks * layers as u64;
        left -= layers;
    }
    // Layers are unlike: each on whoever is fastest at it is a bound too.
    let each: u64 =
        (0..chain.layers).map(|layer| least(&|member| chain.members[member].layers[layer].ticks)).sum();
    let ends = least(&|k| chain.members[k].first.ticks + chain.members[k].host)
        + least(&|k| chain.members[k].last.ticks);
    handed.max(each) + ends
}

/// Ticks that no placement's slowest stage is below: under less, all members together hold too few layers.
pub fn slowest(chain: &Chain) -> u64 {
    let holds = |most: u64| {
        let all: usize = (0..chain.members.len()).map(|member| room(chain, member, most)).sum();
        all >= chain.layers
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
