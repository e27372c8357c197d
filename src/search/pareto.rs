//! The Pareto front: the set of nondominated points.

use super::point::{Point, cost};
use crate::spec::objective::Metric;

/// The figures of a point along the axes; lower is better.
type Ranks = [f64; super::point::WIDTH];

/// A set of nondominated points, each with a key.
///
/// Of points that are equal on every axis, the one with the smallest key stays, so the front does not depend on the
/// order of insertion. Members are kept in blocks with their minimum and maximum figures, so that most blocks are
/// skipped without a scan.
#[derive(Clone, Debug)]
pub struct ParetoFront<K> {
    axes: Vec<Metric>,
    blocks: Vec<FrontBlock>,
    /// Points and keys of members, dropped ones included: reordering members moves only their figures.
    belongings: Vec<(Point, K)>,
}

/// Members inserted one after another, which are often close to each other.
#[derive(Clone, Debug)]
struct FrontBlock {
    least: Ranks,
    greatest: Ranks,
    members: Vec<(Ranks, usize)>,
}

/// Maximum number of members per block.
const BLOCK: usize = 32;

impl FrontBlock {
    fn new() -> Self {
        let (least, greatest) =
            ([f64::INFINITY; super::point::WIDTH], [f64::NEG_INFINITY; super::point::WIDTH]);
        FrontBlock { least, greatest, members: Vec::with_capacity(BLOCK) }
    }

    fn push(&mut self, member: (Ranks, usize)) {
        for (axis, rank) in member.0.iter().enumerate() {
            self.least[axis] = self.least[axis].min(*rank);
            self.greatest[axis] = self.greatest[axis].max(*rank);
        }
        self.members.push(member);
    }
}

impl<K: Clone + Ord> ParetoFront<K> {
    /// An empty front over `axes`.
    pub fn new(axes: &[Metric]) -> Self {
        ParetoFront { axes: axes.to_vec(), blocks: Vec::new(), belongings: Vec::new() }
    }

    fn ranks(&self, point: &Point) -> Ranks {
        let mut ranks = [0.0; super::point::WIDTH];
        for (rank, metric) in ranks.iter_mut().zip(&self.axes) {
            *rank = cost(point, *metric, metric.entry().direction);
        }
        ranks
    }

    /// Whether a member is at least as good on every axis. A front without axes covers every point.
    pub fn covers(&self, point: &Point) -> bool {
        if self.axes.is_empty() {
            return true;
        }
        let (ranks, width) = (self.ranks(point), self.axes.len());
        let near = self.blocks.iter().filter(|block| no_worse(&block.least, &ranks, width));
        near.flat_map(|block| &block.members).any(|(member, ..)| no_worse(member, &ranks, width))
    }

    /// Adds a point unless a member dominates it, and drops the members that it dominates.
    pub fn insert(&mut self, point: Point, key: K) {
        if self.axes.is_empty() {
            return;
        }
        let (ranks, width) = (self.ranks(&point), self.axes.len());
        for at in 0..self.blocks.len() {
            let block = &mut self.blocks[at];
            if !no_worse(&block.least, &ranks, width) {
                continue;
            }
            for &(ref member, place) in &block.members {
                if dominates(member, &ranks, width) {
                    // A block that dominated one point is likely to dominate the next: test it first.
                    self.blocks.swap(0, at);
                    return;
                }
                if member[..width] == ranks[..width] {
                    if key < self.belongings[place].1 {
                        self.belongings[place] = (point, key);
                    }
                    return;
                }
            }
        }
        for block in self.blocks.iter_mut().filter(|block| no_worse(&ranks, &block.greatest, width)) {
            block.members.retain(|(member, ..)| !dominates(&ranks, member, width));
        }
        self.blocks.retain(|block| !block.members.is_empty());
        let place = self.belongings.len();
        self.belongings.push((point, key));
        match self.blocks.last_mut() {
            Some(block) if block.members.len() < BLOCK => block.push((ranks, place)),
            _ => {
                let mut block = FrontBlock::new();
                block.push((ranks, place));
                self.blocks.push(block);
            }
        }
    }

    /// Adds all members of another front.
    pub fn merge(&mut self, other: ParetoFront<K>) {
        for (_, place) in other.blocks.iter().flat_map(|block| &block.members) {
            let (point, key) = other.belongings[*place].clone();
            self.insert(point, key);
        }
    }

    /// The same front with other keys, in the same order.
    pub fn map<L>(self, mut name: impl FnMut(K) -> L) -> ParetoFront<L> {
        let belongings = self.belongings.into_iter().map(|(point, key)| (point, name(key))).collect();
        ParetoFront { axes: self.axes, blocks: self.blocks, belongings }
    }

    /// The members, sorted by the figures of the axes.
    pub fn into_sorted(self) -> Vec<(Point, K)> {
        let (width, belongings) = (self.axes.len(), self.belongings);
        let mut members: Vec<_> = self.blocks.into_iter().flat_map(|block| block.members).collect();
        members.sort_by(|a, b| {
            let order = a.0[..width].iter().zip(&b.0[..width]).map(|(x, y)| x.total_cmp(y));
            let key = |place: usize| &belongings[place].1;
            order.into_iter().find(|o| o.is_ne()).unwrap_or_else(|| key(a.1).cmp(key(b.1)))
        });
        members.into_iter().map(|(_, place)| belongings[place].clone()).collect()
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(|block| block.members.len()).sum()
    }

    /// Whether the front is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether `a` dominates `b`: at least as good on every one of `axes`, and better on one.
pub fn beats(axes: &[Metric], a: &Point, b: &Point) -> bool {
    let figure = |point: &Point, metric: &Metric| cost(point, *metric, metric.entry().direction);
    let each = || axes.iter().map(|metric| (figure(a, metric), figure(b, metric)));
    each().all(|(a, b)| a <= b) && each().any(|(a, b)| a < b)
}

/// At least as good on every axis.
#[inline(always)]
fn no_worse(a: &Ranks, b: &Ranks, width: usize) -> bool {
    a[..width].iter().zip(&b[..width]).all(|(x, y)| x <= y)
}

#[inline(always)]
fn dominates(a: &Ranks, b: &Ranks, width: usize) -> bool {
    let mut better = false;
    for (x, y) in a[..width].iter().zip(&b[..width]) {
        if x > y {
            return false;
        }
        better |= x < y;
    }
    better
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::point::{WIDTH, place};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_front_is_what_nobody_dominates(points in prop::collection::vec((0u8..6, 0u8..6, 0u8..6), 1..60)) {
            let axes = [Metric::Ttft, Metric::Tpot, Metric::OutputTokSPerDevice];
            let make = |&(ttft, tpot, out): &(u8, u8, u8)| {
                let mut point = [0.0; WIDTH];
                point[place(Metric::Ttft)] = ttft.into();
                point[place(Metric::Tpot)] = tpot.into();
                point[place(Metric::OutputTokSPerDevice)] = out.into();
                point
            };
            let mut front = ParetoFront::new(&axes);
            let mut backwards = ParetoFront::new(&axes);
            points.iter().enumerate().for_each(|(key, point)| front.insert(make(point), key));
            points.iter().enumerate().rev().for_each(|(key, point)| backwards.insert(make(point), key));
            let beaten = |a: &(u8, u8, u8)| points.iter().any(|b| {
                (b.0 <= a.0 && b.1 <= a.1 && b.2 >= a.2) && (b.0 < a.0 || b.1 < a.1 || b.2 > a.2)
            });
            let first = |a: &(u8, u8, u8)| points.iter().position(|b| a == b);
            let mut expected: Vec<_> = points.iter().filter(|p| !beaten(p)).filter_map(first).collect();
            expected.sort_unstable();
            expected.dedup();
            let keys = |front: ParetoFront<usize>| {
                let mut keys: Vec<_> = front.into_sorted().into_iter().map(|(_, key)| key).collect();
                keys.sort_unstable();
                keys
            };
            prop_assert_eq!(keys(front), expected.clone());
            prop_assert_eq!(keys(backwards), expected);
        }
    }
}
