//! Minimum sum of stage times where there are too many states to list: best-first search over the states that may
//! improve on the best known placement.
//!
//! The lower bound of a completion is a dynamic program in which a kind may be used any number of times, at a price
//! per use (Lagrange multipliers, by subgradients); it is valid for any prices. Interchangeable kinds are expanded
//! once.

mod queue;

use std::cmp::Reverse;

use super::chain::{Chain, HostOverhead, Segments, Stage};
use super::device_classes::DeviceClasses;
use crate::search::run::Control;
use queue::LabelQueue;

/// Ticks of an infeasible value; sums of it do not overflow.
const NEVER: i64 = i64::MAX / 8;
/// Maximum number of labels; beyond it, the best placement so far is returned with its bound.
const MOST_LABELS: usize = 200_000;
const PRICINGS: usize = 80;
/// Updates without a better bound after which the step size decreases.
const PATIENCE: usize = 6;
/// Labels between two checks of the stop flag.
const STRETCH: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSearchResult {
    /// The best placement found below the known one.
    pub found: Option<(u64, Vec<Stage>)>,
    /// Lower bound; `u64::MAX` if infeasible.
    pub bound: u64,
    pub states: u64,
}

/// A partial path: a member of `kind` is to begin with the layer `from`.
struct PartialPath {
    from: usize,
    kind: usize,
    /// Remaining segments, this one included; 0 for any number.
    left: usize,
    ticks: i64,
    before: Option<usize>,
    used: Box<[u16]>,
}

/// Segments, links and member counts of every kind.
struct LabelSearch<'a> {
    groups: &'a DeviceClasses,
    layers: usize,
    counts: Vec<i64>,
    /// `[kind][from * side + to]`.
    times: Vec<Vec<i64>>,
    links: Vec<Vec<i64>>,
    /// Exact number of segments; 0 for any number.
    stages: usize,
    /// For each kind, the first kind that is interchangeable with it.
    alike: Vec<usize>,
}

/// Lower bound of a completion, `[segments left][kind][from]`, with every use of a kind priced.
#[derive(Clone)]
struct Tails {
    prices: Vec<i64>,
    tails: Vec<Vec<Vec<i64>>>,
    bound: i64,
}

/// The minimum sum below `below` on `stages` members, or on any number, until `control` stops the search.
pub fn least(
    chain: &Chain,
    groups: &DeviceClasses,
    stages: Option<usize>,
    below: u64,
    control: &Control,
) -> LabelSearchResult {
    let search = LabelSearch::new(chain, groups, stages.unwrap_or(0));
    let below_ticks = i64::try_from(below).unwrap_or(NEVER).min(NEVER);
    let (tails, known) = search.priced(below_ticks, control);
    search.run(&tails, known, (below, below_ticks), control)
}

impl<'a> LabelSearch<'a> {
    fn new(chain: &'a Chain, groups: &'a DeviceClasses, stages: usize) -> LabelSearch<'a> {
        let (layers, side) = (chain.layers, chain.layers + 1);
        let whole = |ticks: u64| i64::try_from(ticks).unwrap_or(NEVER).min(NEVER);
        let of = |kind: usize| {
            let segments = Segments::new(&chain.members[groups.face(kind)], layers);
            let mut times = vec![NEVER; side * side];
            for from in 0..layers {
                for to in from + 1..side {
                    times[from * side + to] =
                        segments.ticks(from, to, HostOverhead::Once).map_or(NEVER, whole);
                }
            }
            times
        };
        let link = |from, to| groups.link(chain, from, to).map_or(NEVER, whole);
        let links: Vec<Vec<i64>> =
            groups.kinds().map(|from| groups.kinds().map(|to| link(from, to)).collect()).collect();
        let counts: Vec<i64> =
            groups.members.iter().map(|members| members.len().min(layers) as i64).collect();
        let like = |a: usize, b: usize| {
            let others = groups.kinds().filter(|other| ![a, b].contains(other));
            counts[a] == counts[b]
                && chain.members[groups.face(a)] == chain.members[groups.face(b)]
                && links[a][a] == links[b][b]
                && links[a][b] == links[b][a]
                && others.clone().all(|c| links[a][c] == links[b][c] && links[c][a] == links[c][b])
        };
        let alike = groups.kinds().map(|a| (0..a).find(|&b| like(b, a)).unwrap_or(a)).collect();
        let times = groups.kinds().map(of).collect();
        LabelSearch { groups, layers, counts, times, links, stages, alike }
    }

    fn time(&self, kind: usize, from: usize, to: usize) -> i64 {
        self.times[kind][from * (self.layers + 1) + to]
    }

    /// Completion bounds under `prices`.
    fn tails(&self, prices: Vec<i64>) -> Tails {
        let (layers, kinds) = (self.layers, self.counts.len());
        let mut tails = vec![vec![vec![NEVER; layers + 1]; kinds]; self.stages + 1];
        let any = self.stages == 0;
        for left in self.stages.min(1)..=self.stages {
            let mut after = vec![vec![NEVER; layers + 1]; kinds];
            if left > 1 {
                let onward =
                    |kind| (0..=layers).map(|to| self.onward(&tails[left - 1], kind, to).0).collect();
                after = (0..kinds).map(onward).collect();
            }
            for from in (0..layers).rev() {
                for kind in 0..kinds {
                    let mut least = if any || left == 1 { self.time(kind, from, layers) } else { NEVER };
                    for (to, behind) in after[kind].iter().enumerate().take(layers).skip(from + 1) {
                        let time = self.time(kind, from, to);
                        // If a segment does not fit, it does not fit with one more layer.
                        if time >= NEVER || time >= least {
                            break;
                        }
                        least = least.min(time + behind);
                    }
                    tails[left][kind][from] = least.saturating_add(prices[kind]).min(NEVER);
                }
                // For any number of segments the next part is in the same table: later layers come first.
                if any {
                    (0..kinds).for_each(|kind| after[kind][from] = self.onward(&tails[0], kind, from).0);
                }
            }
        }
        let least = tails[self.stages].iter().map(|tails| tails[0]).min().unwrap_or(NEVER);
        let paid: i64 = prices.iter().zip(&self.counts).map(|(price, count)| price * count).sum();
        let bound = if least >= NEVER { NEVER } else { least - paid };
        Tails { prices, tails, bound }
    }

    /// The best completion after a segment of `kind` that ends at `to`, and the next kind.
    fn onward(&self, tails: &[Vec<i64>], kind: usize, to: usize) -> (i64, usize) {
        let next = self.links[kind].iter().enumerate().map(|(next, link)| (link + tails[next][to], next));
        next.min().unwrap_or((NEVER, 0))
    }

    /// The path behind `tails`; some kinds may be used too often.
    fn way(&self, tails: &Tails) -> Option<Vec<(usize, usize, usize)>> {
        let all = &tails.tails;
        let mut kind = self.groups.kinds().min_by_key(|kind| all[self.stages][*kind][0])?;
        let (mut from, mut left, mut way) = (0, self.stages, Vec::new());
        loop {
            let rest = all[left][kind][from] - tails.prices[kind];
            if rest >= NEVER / 2 {
                return None;
            }
            if (self.stages == 0 || left == 1) && self.time(kind, from, self.layers) == rest {
                way.push((kind, from, self.layers));
                return Some(way);
            }
            let behind = left.saturating_sub(1);
            let (to, next) = (from + 1..self.layers).find_map(|to| {
                let (onward, next) = self.onward(&all[behind], kind, to);
                (self.time(kind, from, to) + onward == rest).then_some((to, next))
            })?;
            way.push((kind, from, to));
            (kind, from, left) = (next, to, behind);
        }
    }

    /// Prices with a high bound, and the best path found during the updates.
    fn priced(&self, below: i64, control: &Control) -> (Tails, Option<(i64, Vec<Stage>)>) {
        let mut best = self.tails(vec![0; self.counts.len()]);
        let (mut known, mut step_factor, mut idle) = (None, 1.0, 0);
        let mut last = best.clone();
        for _ in 0..PRICINGS {
            if best.bound >= below || (control.stop)() {
                break;
            }
            let Some(way) = self.way(&last) else { break };
            let used = |kind: usize| way.iter().filter(|(other, ..)| *other == kind).count() as i64;
            let over: Vec<i64> = self.groups.kinds().map(|kind| used(kind) - self.counts[kind]).collect();
            if over.iter().all(|over| *over <= 0) {
                let ticks = self.ticks(&way);
                if known.as_ref().is_none_or(|(known, _)| ticks < *known) {
                    known = Some((ticks, self.stages(&way)));
                }
            }
            let end = known.as_ref().map_or(below, |(known, _)| below.min(*known));
            if best.bound >= end {
                break;
            }
            let length: f64 = over.iter().map(|over| (over * over) as f64).sum();
            // Without a known placement, the target is a tenth above the bound.
            let gap = if end < NEVER { (end - last.bound) as f64 } else { 0.1 * last.bound as f64 + 1.0 };
            let step = step_factor * gap / length.max(1.0);
            let moved = |(price, over): (&i64, &i64)| {
                let price = *price as f64 + step * *over as f64;
                (price.round().max(0.0) as i64).min(NEVER / (1024 * self.counts.len() as i64 + 1))
            };
            let prices: Vec<i64> = last.prices.iter().zip(&over).map(moved).collect();
            if prices == last.prices {
                break;
            }
            last = self.tails(prices);
            if last.bound > best.bound {
                best = last.clone();
                idle = 0;
            } else {
                idle += 1;
            }
            if idle >= PATIENCE {
                (step_factor, idle) = (step_factor / 2.0, 0);
                last = best.clone();
            }
        }
        (best, known)
    }

    fn ticks(&self, way: &[(usize, usize, usize)]) -> i64 {
        let segments: i64 = way.iter().map(|(kind, from, to)| self.time(*kind, *from, *to)).sum();
        segments + way.windows(2).map(|pair| self.links[pair[0].0][pair[1].0]).sum::<i64>()
    }

    fn stages(&self, way: &[(usize, usize, usize)]) -> Vec<Stage> {
        let kinds: Vec<usize> = way.iter().map(|(kind, ..)| *kind).collect();
        let named = way.iter().zip(self.groups.name(&kinds));
        named.map(|((_, from, to), member)| Stage { member, from: *from, to: *to }).collect()
    }

    /// State key, with interchangeable kinds in one order.
    fn key(&self, label: &PartialPath) -> Vec<u16> {
        let mut used: Vec<(usize, Reverse<bool>, Reverse<u16>)> = label
            .used
            .iter()
            .enumerate()
            .map(|(kind, used)| (self.alike[kind], Reverse(kind == label.kind), Reverse(*used)))
            .collect();
        used.sort_unstable();
        let mut key: Vec<u16> = used.into_iter().map(|(_, _, Reverse(used))| used).collect();
        key.extend([label.from as u16, self.alike[label.kind] as u16, label.left as u16]);
        key
    }

    /// Expands states, best first.
    fn run(
        &self,
        tails: &Tails,
        known: Option<(i64, Vec<Stage>)>,
        (below, below_ticks): (u64, i64),
        control: &Control,
    ) -> LabelSearchResult {
        let mut queue = LabelQueue::new(self, tails, known, below_ticks);
        for kind in self.groups.kinds().filter(|kind| self.alike[*kind] == *kind) {
            let mut used = vec![0; self.counts.len()].into_boxed_slice();
            used[kind] = 1;
            queue.keep(PartialPath { from: 0, kind, left: self.stages, ticks: 0, before: None, used });
        }
        let (mut states, mut stopped) = (0, None);
        while let Some((Reverse(least), _, at)) = queue.open.pop() {
            if least >= queue.end() {
                break;
            }
            states += 1;
            let late = (states as usize).is_multiple_of(STRETCH) && (control.stop)();
            if queue.labels.len() > MOST_LABELS || late {
                stopped = Some(least);
                break;
            }
            queue.expand(at);
        }
        let found = queue.best.map(|(ticks, stages)| (ticks as u64, stages));
        let proved = found.as_ref().map_or(below, |(ticks, _)| *ticks);
        let bound = stopped.map_or(proved, |least| (least.max(0) as u64).min(proved));
        LabelSearchResult { found, bound, states }
    }

    /// Whether a member of `next` may follow one of `kind`. Of interchangeable kinds with equal use, only the first is
    /// expanded.
    fn continues(&self, kind: usize, next: usize, used: &[u16]) -> bool {
        if self.links[kind][next] >= NEVER || i64::from(used[next]) >= self.counts[next] {
            return false;
        }
        let twin = |other: usize| {
            other != kind && self.alike[other] == self.alike[next] && used[other] == used[next]
        };
        next == kind || !(self.alike[next]..next).any(twin)
    }

    /// The stages on the path to the label with index `at`; the last stage takes all remaining layers.
    fn traced(&self, labels: &[PartialPath], at: usize) -> Vec<Stage> {
        let (mut way, mut to, mut next) = (Vec::new(), self.layers, Some(at));
        while let Some(at) = next {
            let label = &labels[at];
            way.push((label.kind, label.from, to));
            (to, next) = (label.from, label.before);
        }
        way.reverse();
        self.stages(&way)
    }
}
