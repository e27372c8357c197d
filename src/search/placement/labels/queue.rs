//! Open labels of the best-first search: which are kept, and what follows one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::{LabelSearch, NEVER, PartialPath, Tails};
use crate::search::placement::chain::Stage;

/// Open labels, best first, and the best placement so far.
pub(super) struct LabelQueue<'s> {
    search: &'s LabelSearch<'s>,
    tails: &'s Tails,
    /// Price of all devices.
    paid: i64,
    pub(super) labels: Vec<PartialPath>,
    /// Lower bound, first layer, index of the label.
    pub(super) open: BinaryHeap<(Reverse<i64>, usize, usize)>,
    seen: HashMap<Vec<u16>, i64>,
    pub(super) best: Option<(i64, Vec<Stage>)>,
    below: i64,
}

impl<'s> LabelQueue<'s> {
    pub(super) fn new(
        search: &'s LabelSearch<'s>,
        tails: &'s Tails,
        known: Option<(i64, Vec<Stage>)>,
        below: i64,
    ) -> Self {
        let paid = tails.prices.iter().zip(&search.counts).map(|(price, count)| price * count).sum();
        let best = known.filter(|(ticks, _)| *ticks < below);
        let (labels, open, seen) = (Vec::new(), BinaryHeap::new(), HashMap::new());
        LabelQueue { search, tails, paid, labels, open, seen, best, below }
    }

    /// Ticks that a placement must stay below.
    pub(super) fn end(&self) -> i64 {
        self.best.as_ref().map_or(self.below, |(ticks, _)| *ticks)
    }

    /// Lower bound of all completions of a label; that of a successor is never lower.
    fn bound(&self, label: &PartialPath) -> i64 {
        let Tails { prices, tails, .. } = self.tails;
        let tail = tails[label.left][label.kind][label.from];
        if tail >= NEVER / 2 {
            return NEVER;
        }
        let used: i64 = label.used.iter().zip(prices).map(|(used, price)| i64::from(*used) * price).sum();
        label.ticks + used - prices[label.kind] + tail - self.paid
    }

    /// Keeps a label that may improve on the best, unless its state was reached in less time.
    pub(super) fn keep(&mut self, label: PartialPath) {
        let least = self.bound(&label);
        if least >= self.end() {
            return;
        }
        let before = self.seen.entry(self.search.key(&label)).or_insert(i64::MAX);
        if label.ticks < *before {
            *before = label.ticks;
            self.open.push((Reverse(least), label.from, self.labels.len()));
            self.labels.push(label);
        }
    }

    /// Keeps all successors of the label with index `at`, and its completion where it is the best.
    pub(super) fn expand(&mut self, at: usize) {
        let search = self.search;
        let PartialPath { from, kind, left, ticks, ref used, .. } = self.labels[at];
        let used = used.clone();
        let complete = ticks + search.time(kind, from, search.layers);
        if left <= 1 && complete < self.end() {
            self.best = Some((complete, search.traced(&self.labels, at)));
        }
        for to in from + 1..search.layers {
            let time = search.time(kind, from, to);
            if time >= NEVER || left == 1 {
                break;
            }
            for next in search.groups.kinds().filter(|next| search.continues(kind, *next, &used)) {
                let mut used = used.clone();
                used[next] += 1;
                let (ticks, left) = (ticks + time + search.links[kind][next], left.saturating_sub(1));
                self.keep(PartialPath { from: to, kind: next, left, ticks, before: Some(at), used });
            }
        }
    }
}
