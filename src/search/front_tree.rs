//! Members of a Pareto front in a tree of bounding boxes.

use super::point::WIDTH;

/// The figures of a point along the axes; lower is better.
pub(super) type Ranks = [f64; WIDTH];

const LEAF: usize = 16;
/// Depth that is no reason to build a tree anew.
const SHALLOW: u32 = 128;

/// A member: its figures, and its place among the belongings of the front.
pub(super) type FrontMember = (Ranks, usize);

/// A node: the bounds of its members, which may be wider than they need be after members were dropped.
#[derive(Clone, Debug)]
pub(super) struct FrontNode {
    least: Ranks,
    greatest: Ranks,
    pub(super) size: usize,
    parts: FrontParts,
}

#[derive(Clone, Debug)]
enum FrontParts {
    Leaf(Vec<FrontMember>),
    /// Members up to a figure on an axis, and beyond.
    Halves(usize, f64, Box<[FrontNode; 2]>),
}

/// A member that is at least as good as a point.
pub(super) enum FrontRival {
    /// It dominates the point; its figures.
    Better(Ranks),
    /// It is equal; its place.
    Equal(usize),
}

impl FrontNode {
    pub(super) const EMPTY: FrontNode = FrontNode {
        least: [f64::INFINITY; WIDTH],
        greatest: [f64::NEG_INFINITY; WIDTH],
        size: 0,
        parts: FrontParts::Leaf(Vec::new()),
    };

    /// Whether a member is at least as good on each of the first `width` axes.
    pub(super) fn reaches(&self, ranks: &Ranks, width: usize) -> bool {
        if self.size == 0 || !no_worse(&self.least, ranks, width) {
            return false;
        }
        no_worse(&self.greatest, ranks, width)
            || match &self.parts {
                FrontParts::Leaf(members) => members.iter().any(|(one, _)| no_worse(one, ranks, width)),
                FrontParts::Halves(.., halves) => halves.iter().any(|half| half.reaches(ranks, width)),
            }
    }

    /// A member that dominates the figures or equals them.
    pub(super) fn rival(&self, ranks: &Ranks, width: usize) -> Option<FrontRival> {
        if self.size == 0 || !no_worse(&self.least, ranks, width) {
            return None;
        }
        match &self.parts {
            FrontParts::Leaf(members) => {
                let (one, place) = members.iter().find(|(one, _)| no_worse(one, ranks, width))?;
                let equal = one[..width] == ranks[..width];
                Some(if equal { FrontRival::Equal(*place) } else { FrontRival::Better(*one) })
            }
            FrontParts::Halves(.., halves) => halves.iter().find_map(|half| half.rival(ranks, width)),
        }
    }

    /// Drops the members that the figures dominate or equal. `dropped` receives their places.
    pub(super) fn drop_dominated(&mut self, ranks: &Ranks, width: usize, dropped: &mut impl FnMut(usize)) {
        if self.size == 0 || !no_worse(ranks, &self.greatest, width) {
            return;
        }
        if no_worse(ranks, &self.least, width) {
            self.each(&mut |(_, place)| dropped(*place));
            *self = FrontNode::EMPTY;
            return;
        }
        self.size = match &mut self.parts {
            FrontParts::Leaf(members) => {
                members.retain(|(one, place)| {
                    let kept = !no_worse(ranks, one, width);
                    if !kept {
                        dropped(*place);
                    }
                    kept
                });
                members.len()
            }
            FrontParts::Halves(.., halves) => {
                halves.iter_mut().for_each(|half| half.drop_dominated(ranks, width, dropped));
                halves.iter().map(|half| half.size).sum()
            }
        };
        if self.size == 0 {
            *self = FrontNode::EMPTY;
        }
    }

    /// Adds a member. Points in the order of an axis would make one long branch: then the tree is built anew.
    pub(super) fn add(&mut self, member: FrontMember, width: usize) {
        let depth = self.push(member, width);
        if depth > 2 * self.size.ilog2() + SHALLOW {
            *self = FrontNode::built(self.members(), width);
        }
    }

    /// Adds a member; the depth of its leaf.
    fn push(&mut self, member: FrontMember, width: usize) -> u32 {
        self.widen(&member.0, width);
        self.size += 1;
        match &mut self.parts {
            FrontParts::Leaf(members) => {
                members.push(member);
                if members.len() > LEAF {
                    *self = FrontNode::built(std::mem::take(members), width);
                }
                1
            }
            FrontParts::Halves(axis, until, halves) => {
                1 + halves[usize::from(member.0[*axis] > *until)].push(member, width)
            }
        }
    }

    fn widen(&mut self, ranks: &Ranks, width: usize) {
        for (axis, rank) in ranks[..width].iter().enumerate() {
            self.least[axis] = self.least[axis].min(*rank);
            self.greatest[axis] = self.greatest[axis].max(*rank);
        }
    }

    /// A tree of members, halved at the median of the axis on which they differ most.
    fn built(mut members: Vec<FrontMember>, width: usize) -> FrontNode {
        let mut node = FrontNode { size: members.len(), ..FrontNode::EMPTY };
        members.iter().for_each(|(ranks, _)| node.widen(ranks, width));
        let spread = |axis: usize| {
            let (low, high): (f64, f64) = (node.least[axis], node.greatest[axis]);
            let share = (high - low) / low.abs().max(high.abs());
            // Unknown figures are infinite.
            if share.is_finite() { share } else { 0.0 }
        };
        let widest = (0..width).max_by(|a, b| spread(*a).total_cmp(&spread(*b)));
        let axis = widest.filter(|axis| members.len() > LEAF && spread(*axis) > 0.0);
        node.parts = match axis {
            None => FrontParts::Leaf(members),
            Some(axis) => {
                members.sort_by(|(a, _), (b, _)| a[axis].total_cmp(&b[axis]));
                let below = members.partition_point(|(one, _)| one[axis] < node.greatest[axis]);
                let until = members[below.min(members.len() / 2) - 1].0[axis];
                let beyond = members.split_off(members.partition_point(|(one, _)| one[axis] <= until));
                let halves = [members, beyond].map(|half| FrontNode::built(half, width));
                FrontParts::Halves(axis, until, Box::new(halves))
            }
        };
        node
    }

    /// Gives every member another place.
    pub(super) fn renumber(&mut self, place: &mut impl FnMut(usize) -> usize) {
        match &mut self.parts {
            FrontParts::Leaf(members) => members.iter_mut().for_each(|(_, at)| *at = place(*at)),
            FrontParts::Halves(.., halves) => halves.iter_mut().for_each(|half| half.renumber(place)),
        }
    }

    pub(super) fn members(&self) -> Vec<FrontMember> {
        let mut members = Vec::with_capacity(self.size);
        self.each(&mut |member| members.push(*member));
        members
    }

    fn each(&self, see: &mut impl FnMut(&FrontMember)) {
        match &self.parts {
            FrontParts::Leaf(members) => members.iter().for_each(see),
            FrontParts::Halves(.., halves) => halves.iter().for_each(|half| half.each(see)),
        }
    }
}

#[inline(always)]
fn no_worse(a: &Ranks, b: &Ranks, width: usize) -> bool {
    a[..width].iter().zip(&b[..width]).all(|(x, y)| x <= y)
}

/// At least as good on every axis, and better on one.
#[inline(always)]
pub(super) fn dominates(a: &Ranks, b: &Ranks, width: usize) -> bool {
    no_worse(a, b, width) && a[..width] != b[..width]
}
