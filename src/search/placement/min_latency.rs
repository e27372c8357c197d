//! The placement with the minimum sum of stage times, by an exact dynamic program over members and layers.
//!
//! From the last layer to the first: `best[state][kind][from]` is the minimum time of the layers from `from` on, held
//! by `state` with `kind` in front.

use std::ops::Range;

use super::bound;
use super::chain::{Chain, HostOverhead, Segments, Stage};
use super::device_classes::DeviceClasses;
use crate::search::run::{Control, UNWATCHED};

/// Ticks of the program: integers in `f64`, exact up to 2^53, because `f64` additions are fast.
const NEVER: f64 = f64::INFINITY;

/// Segment times of one kind, `[to][from]`.
struct SegmentTimes {
    ticks: Vec<f64>,
    /// The first layer, except layer 0, at which a segment can begin; it can begin at every layer after it too.
    begin: Vec<usize>,
    side: usize,
}

impl SegmentTimes {
    fn new(chain: &Chain, member: usize) -> SegmentTimes {
        let side = chain.layers + 1;
        let mut ticks = vec![NEVER; side * side];
        let mut begin: Vec<usize> = (0..side).collect();
        let segments = Segments::new(&chain.members[member], chain.layers);
        for to in 1..side {
            // If a segment does not fit, it does not fit with one more layer in front.
            for from in (1..to).rev() {
                match segments.ticks(from, to, HostOverhead::Once) {
                    Some(time) => {
                        ticks[to * side + from] = time as f64;
                        begin[to] = from;
                    }
                    None => break,
                }
            }
            if let Some(time) = segments.ticks(0, to, HostOverhead::Once) {
                ticks[to * side] = time as f64;
            }
        }
        SegmentTimes { ticks, begin, side }
    }

    fn to(&self, to: usize) -> &[f64] {
        &self.ticks[to * self.side..to * self.side + to]
    }
}

/// The times of one row, from its first layer to its last one with a time.
#[derive(Clone, Copy, Default)]
struct Row {
    /// Place of the first time among all.
    start: usize,
    /// Layer of the first time.
    from: usize,
    /// Number of times; 0 if the row has none.
    len: usize,
}

/// Tables of the dynamic program.
pub struct MinLatencySearch<'a> {
    chain: &'a Chain,
    groups: &'a DeviceClasses,
    times: Vec<SegmentTimes>,
    links: Vec<Vec<f64>>,
    /// Times of all rows.
    best: Vec<f64>,
    rows: Vec<Row>,
    /// States expanded: segments of one kind in front of a state.
    pub states: u64,
    /// The search was not stopped: a placement that is not in the tables does not exist.
    pub complete: bool,
}

/// States between two checks of the stop flag.
const STRETCH: usize = 1024;

impl<'a> MinLatencySearch<'a> {
    /// Fills the tables with everything that may have a sum of at most `bound`.
    pub fn new(chain: &'a Chain, groups: &'a DeviceClasses, bound: u64) -> MinLatencySearch<'a> {
        MinLatencySearch::with_control(chain, groups, bound, &UNWATCHED)
    }

    /// The same, until `control` stops it.
    pub fn with_control(
        chain: &'a Chain,
        groups: &'a DeviceClasses,
        bound: u64,
        control: &Control,
    ) -> MinLatencySearch<'a> {
        let times = groups.kinds().map(|kind| SegmentTimes::new(chain, groups.face(kind))).collect();
        let link = |from, to| groups.link(chain, from, to).map_or(NEVER, |ticks| ticks as f64);
        let links = groups.kinds().map(|from| groups.kinds().map(|to| link(from, to)).collect()).collect();
        let (best, rows) = (vec![], vec![Row::default(); groups.rows()]);
        let mut sum = MinLatencySearch { chain, groups, times, links, best, rows, states: 0, complete: true };
        sum.fill(bound as f64, control);
        sum
    }

    fn fill(&mut self, bound: f64, control: &Control) {
        let side = self.chain.layers + 1;
        let before = bound::PrefixBound::new(self.chain, self.groups);
        let front: Vec<f64> = before.all.iter().map(|ticks| *ticks as f64).collect();
        let mut unused = front.clone();
        let (mut rest_time, mut out) = (vec![NEVER; side], vec![NEVER; side]);
        let left = self.groups.left(&before.max_layers);
        // The segments of a state begin no earlier than its capacity allows, and the layers before must fit on the
        // remaining members.
        let layers = self.chain.layers;
        let window = |state: usize| {
            let holds = left[0] - left[state];
            (layers.saturating_sub(holds), left[state].min(layers - 1) + 1)
        };
        for state in 1..self.groups.states {
            if state.is_multiple_of(STRETCH) {
                (control.progress)(state, self.groups.states);
            }
            if state.is_multiple_of(STRETCH) && (control.stop)() {
                self.complete = false;
                return;
            }
            let (_, most) = window(state);
            before.without(state, &mut unused);
            let rows: Vec<(usize, usize)> = self.groups.present(state).collect();
            for (kind, row) in rows {
                let rest = self.groups.without(state, kind);
                out.fill(NEVER);
                let (low, high) = window(rest);
                if rest == 0 {
                    out[..layers].copy_from_slice(self.times[kind].to(layers));
                } else if low < high && self.onward(rest, kind, low..high, &mut rest_time) {
                    let times = &self.times[kind];
                    for to in low.max(1)..high {
                        if rest_time[to] + front[to] > bound {
                            continue;
                        }
                        let (onward, column) = (rest_time[to], times.to(to));
                        out[0] = out[0].min(column[0] + onward);
                        let (begin, end) = (times.begin[to], to.min(most));
                        if begin >= end {
                            continue;
                        }
                        for (out, time) in out[begin..end].iter_mut().zip(&column[begin..end]) {
                            let through = time + onward;
                            *out = if through < *out { through } else { *out };
                        }
                    }
                } else {
                    continue;
                }
                self.states += 1;
                let kept = |from: &usize| out[*from] < NEVER && out[*from] + unused[*from] <= bound;
                if let Some(from) = (0..side).find(kept) {
                    let end = 1 + (from..side).rfind(kept).unwrap_or(from);
                    self.rows[row] = Row { start: self.best.len(), from, len: end - from };
                    self.best.extend_from_slice(&out[from..end]);
                }
            }
        }
    }

    /// `rest_time[to]`: the minimum time from a member of `kind` whose segment ends at `to`, on through `rest`.
    fn onward(&self, rest: usize, kind: usize, window: Range<usize>, rest_time: &mut [f64]) -> bool {
        rest_time.fill(NEVER);
        let mut any = false;
        for (next, row) in self.groups.present(rest) {
            let (link, Row { start, from, len }) = (self.links[kind][next], self.rows[row]);
            let (low, high) = (window.start.max(from), window.end.min(from + len));
            if link == NEVER || low >= high {
                continue;
            }
            any = true;
            let best = &self.best[start + low - from..start + high - from];
            for (rest_time, best) in rest_time[low..high].iter_mut().zip(best) {
                let through = best + link;
                *rest_time = if through < *rest_time { through } else { *rest_time };
            }
        }
        any
    }

    fn best(&self, row: usize, layer: usize) -> f64 {
        let Row { start, from, len } = self.rows[row];
        layer.checked_sub(from).filter(|at| *at < len).map_or(NEVER, |at| self.best[start + at])
    }

    /// The minimum time of all layers on `state`, with its front kind, if feasible.
    pub fn whole(&self, state: usize) -> Option<(u64, usize)> {
        let whole = self.groups.present(state).map(|(kind, row)| (self.best(row, 0), kind));
        let least = whole.min_by(|a, b| a.0.total_cmp(&b.0))?;
        (least.0 < NEVER).then_some((least.0 as u64, least.1))
    }

    /// The best state, and its time. Ties go to the fewest members.
    pub fn least(&self) -> Option<(u64, usize)> {
        let all = (1..self.groups.states).filter_map(|state| Some((self.whole(state)?.0, state)));
        all.min_by_key(|&(time, state)| (time, self.groups.total(state), state))
    }

    pub fn stages(&self, state: usize) -> Vec<Stage> {
        let Some((_, front)) = self.whole(state) else { return vec![] };
        let (mut state, mut kind, mut from) = (state, front, 0);
        let (mut kinds, mut cuts) = (Vec::new(), vec![0]);
        loop {
            kinds.push(kind);
            let rest = self.groups.without(state, kind);
            if rest == 0 {
                cuts.push(self.chain.layers);
                break;
            }
            let row = self.groups.present(state).find(|(k, _)| *k == kind).map(|(_, row)| row);
            let target = self.best(row.expect("the front kind is in its state"), from);
            let found = self.groups.present(rest).find_map(|(next, row)| {
                let fits = |&to: &usize| {
                    let time = self.times[kind].to(to)[from];
                    time + self.links[kind][next] + self.best(row, to) == target
                };
                (from + 1..self.chain.layers).find(fits).map(|to| (next, to))
            });
            let (next, to) = found.expect("a sum has a predecessor: integers are exact");
            cuts.push(to);
            (state, kind, from) = (rest, next, to);
        }
        let members = self.groups.name(&kinds);
        let pairs = cuts.windows(2).zip(members);
        pairs.map(|(cut, member)| Stage { member, from: cut[0], to: cut[1] }).collect()
    }
}
