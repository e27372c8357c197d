//! The Pareto front: the set of nondominated points.

use super::front_tree::{FrontNode, FrontRival, Ranks, dominates};
use super::point::{Point, compare, rank};
use super::problem::Problem;
use crate::spec::objective::{Metric, ObjectiveTerm};

/// A set of nondominated points, each with a key.
///
/// Of points that are equal on every axis, the one that is best by `ties` stays, then the one with the smallest key, so
/// the front does not depend on the order of insertion. Members are the leaves of a tree whose nodes know the bounds of
/// their members, so that few are compared (ND-tree: Jaszkiewicz, Lust 2018).
#[derive(Clone, Debug)]
pub struct ParetoFront<K> {
    axes: Vec<Metric>,
    ties: Vec<ObjectiveTerm>,
    tree: FrontNode,
    /// Figures that dominated a point: what dominates one often dominates the next. Whatever replaced that member is no
    /// worse.
    recent: Option<Ranks>,
    /// Points and keys of members, dropped ones included: reordering members moves only their figures.
    belongings: Vec<(Point, K)>,
}

/// Belongings of dropped members that a front may keep.
const SPARE: usize = 1024;

impl<K: Clone + Ord> ParetoFront<K> {
    pub fn new(axes: &[Metric]) -> Self {
        ParetoFront {
            axes: axes.to_vec(),
            ties: vec![],
            tree: FrontNode::EMPTY,
            recent: None,
            belongings: Vec::new(),
        }
    }

    /// The front of a problem. Where its axes do not include the objective, that decides between equals.
    pub fn of(problem: &Problem) -> Self {
        let ties = if problem.stated_axes { problem.objective.clone() } else { vec![] };
        ParetoFront { ties, ..ParetoFront::new(&problem.distinct_axes()) }
    }

    /// Whether a point replaces the member with these belongings, which equals it on every axis.
    fn replaces(&self, point: &Point, key: &K, place: usize) -> bool {
        let (known, own) = &self.belongings[place];
        compare(point, known, &self.ties).then_with(|| key.cmp(own)).is_lt()
    }

    fn ranks(&self, point: &Point) -> Ranks {
        let mut ranks = [0.0; super::point::WIDTH];
        for (own, metric) in ranks.iter_mut().zip(&self.axes) {
            *own = rank(point, *metric);
        }
        ranks
    }

    /// Whether a member is at least as good on every axis. A front without axes covers every point.
    pub fn covers(&self, point: &Point) -> bool {
        self.axes.is_empty() || self.tree.reaches(&self.ranks(point), self.axes.len())
    }

    /// Whether the point would become a member: none dominates it, and it replaces an equal.
    pub fn admits(&self, point: &Point, key: &K) -> bool {
        if self.axes.is_empty() {
            return false;
        }
        match self.tree.rival(&self.ranks(point), self.axes.len()) {
            None => true,
            Some(FrontRival::Better(_)) => false,
            Some(FrontRival::Equal(place)) => self.replaces(point, key, place),
        }
    }

    /// Adds a point unless a member dominates it, and drops the members that it dominates.
    pub fn insert(&mut self, point: Point, key: K) {
        if self.axes.is_empty() {
            return;
        }
        let (ranks, width) = (self.ranks(&point), self.axes.len());
        if self.recent.as_ref().is_some_and(|recent| dominates(recent, &ranks, width)) {
            return;
        }
        match self.tree.rival(&ranks, width) {
            Some(FrontRival::Better(better)) => {
                self.recent = Some(better);
                return;
            }
            Some(FrontRival::Equal(place)) => {
                if self.replaces(&point, &key, place) {
                    self.belongings[place] = (point, key);
                }
                return;
            }
            None => {}
        }
        self.tree.drop_dominated(&ranks, width, &mut |_| {});
        self.tree.add((ranks, self.belongings.len()), width);
        self.belongings.push((point, key));
        self.forget_dropped();
    }

    pub fn merge(&mut self, other: ParetoFront<K>) {
        for (_, place) in other.tree.members() {
            let (point, key) = other.belongings[place].clone();
            self.insert(point, key);
        }
    }

    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.tree.members().into_iter().map(|(_, place)| &self.belongings[place].1)
    }

    /// Forgets the belongings of dropped members once they are the most.
    fn forget_dropped(&mut self) {
        if self.belongings.len() < 2 * self.tree.size + SPARE {
            return;
        }
        let mut kept = Vec::with_capacity(self.tree.size + SPARE);
        let belongings = &self.belongings;
        self.tree.renumber(&mut |place| {
            kept.push(belongings[place].clone());
            kept.len() - 1
        });
        self.belongings = kept;
    }

    /// The same front with other keys, in the same order.
    pub fn map<L>(self, mut name: impl FnMut(K) -> L) -> ParetoFront<L> {
        let belongings = self.belongings.into_iter().map(|(point, key)| (point, name(key))).collect();
        let ParetoFront { axes, ties, tree, recent, .. } = self;
        ParetoFront { axes, ties, tree, recent, belongings }
    }

    /// The members, sorted by the figures of the axes.
    pub fn into_sorted(self) -> Vec<(Point, K)> {
        let (width, belongings) = (self.axes.len(), self.belongings);
        let mut members = self.tree.members();
        members.sort_by(|a, b| {
            let order = a.0[..width].iter().zip(&b.0[..width]).map(|(x, y)| x.total_cmp(y));
            let key = |place: usize| &belongings[place].1;
            order.into_iter().find(|o| o.is_ne()).unwrap_or_else(|| key(a.1).cmp(key(b.1)))
        });
        members.into_iter().map(|(_, place)| belongings[place].clone()).collect()
    }

    pub fn count(&self) -> usize {
        self.tree.size
    }
}

/// Whether `a` dominates `b`: at least as good on every one of `axes`, and better on one.
pub fn beats(axes: &[Metric], a: &Point, b: &Point) -> bool {
    let each = || axes.iter().map(|metric| (rank(a, *metric), rank(b, *metric)));
    each().all(|(a, b)| a <= b) && each().any(|(a, b)| a < b)
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

    /// A long branch would overflow the stack, and be slow.
    #[test]
    fn points_in_the_order_of_an_axis_make_no_long_branch() {
        let axes = [Metric::Ttft, Metric::Tpot];
        let mut front = ParetoFront::new(&axes);
        let all = 20_000;
        for key in 0..all {
            let mut point = [0.0; WIDTH];
            point[place(Metric::Ttft)] = f64::from(key) + 1.0;
            point[place(Metric::Tpot)] = 1.0 / (f64::from(key) + 1.0);
            assert!(!front.covers(&point));
            front.insert(point, key);
            assert!(front.covers(&point));
        }
        assert_eq!(front.count(), all as usize);
        front.insert([0.0; WIDTH], all);
        assert_eq!(front.into_sorted().len(), 1);
    }
}
