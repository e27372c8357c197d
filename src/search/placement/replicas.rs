//! Stages that several members hold together, each serving part of the requests: the most that such a row of
//! stages passes on, from what every kind of member passes on by how many layers it holds.
//!
//! The optimum among rows of stages is exact; the bound holds for any flow of requests through members, whatever
//! layers they hold. (Helix poses the latter as a programme in mixed integers: Mei et al., ASPLOS 2025,
//! <https://github.com/Thesys-lab/Helix-ASPLOS25>.) Knows nothing of what a rate counts.

/// Members that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberKind {
    /// How many there are.
    pub count: usize,
    /// What one passes on while it holds so many layers, one more by each entry. More layers may pass on more.
    pub rates: Vec<u64>,
}

/// Layers that some members hold together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStage {
    /// Its first layer.
    pub from: usize,
    /// The first layer of the next.
    pub to: usize,
    /// Members of each kind.
    pub members: Vec<usize>,
}

/// Who answers for a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowProver {
    /// Layers times rate: what members pass on over the layers that they hold.
    Area,
    /// Each layer is held by a member that passes on everything, or by two.
    Pairs,
}

/// The most that is passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// First to last.
    pub stages: Vec<MemberStage>,
    /// What they pass on.
    pub rate: u64,
    /// No members pass on more, whichever layers they hold and whomever they send to.
    pub bound: u64,
    /// Who says so.
    pub prover: FlowProver,
    /// States that were looked at.
    pub states: u64,
}

/// Layers that can be counted, one bit each.
pub const MOST_LAYERS: usize = 127;

impl MemberKind {
    fn rate(&self, layers: usize) -> u64 {
        layers.checked_sub(1).and_then(|at| self.rates.get(at)).copied().unwrap_or(0)
    }

    /// The most that `worth` of layers and rate comes to.
    fn most(&self, worth: impl Fn(u128, u128) -> u128) -> u128 {
        let each = (1..).zip(&self.rates).map(|(layers, rate)| worth(layers, u128::from(*rate)));
        self.count as u128 * each.max().unwrap_or_default()
    }
}

/// All that the members of a stage pass on over so many layers.
fn together(kinds: &[MemberKind], members: &[usize], layers: usize) -> u64 {
    members.iter().zip(kinds).map(|(count, kind)| *count as u64 * kind.rate(layers)).sum()
}

/// The most that any flow passes on, and why: with more, some layer is held by too few.
///
/// Over a layer passes the whole flow. Either one member passes all of it on, or two or more share it: so a member
/// that cannot counts half a layer for each that it holds; or for the part of the flow that it can pass on.
pub fn bound(layers: usize, kinds: &[MemberKind]) -> (u64, FlowProver) {
    let layers = layers as u128;
    let area = |flow: u64| {
        let flow = u128::from(flow);
        let held: u128 = kinds.iter().map(|kind| kind.most(|layers, rate| layers * rate.min(flow))).sum();
        held >= flow * layers
    };
    let pairs = |flow: u64| {
        let half = |layers: u128, rate: u128| {
            let halves = if rate >= u128::from(flow) { 2 } else { u128::from(rate > 0) };
            layers * halves
        };
        kinds.iter().map(|kind| kind.most(half)).sum::<u128>() >= 2 * layers
    };
    let most: u64 = kinds
        .iter()
        .map(|kind| kind.count as u64 * kind.rates.iter().copied().max().unwrap_or_default())
        .sum();
    let (by_area, by_pairs) = (highest(most, area), highest(most, pairs));
    if by_pairs < by_area { (by_pairs, FlowProver::Pairs) } else { (by_area, FlowProver::Area) }
}

/// The highest number up to `most` for which `holds`, which holds for all below one it holds for.
fn highest(most: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// Numbers of members of each kind, as states.
struct States<'a> {
    kinds: &'a [MemberKind],
    layers: usize,
    counts: Vec<Vec<usize>>,
}

impl<'a> States<'a> {
    fn new(layers: usize, kinds: &'a [MemberKind]) -> States<'a> {
        let mut counts: Vec<Vec<usize>> = vec![vec![]];
        for kind in kinds.iter().rev() {
            let more = (0..=kind.count).flat_map(|count| {
                counts.iter().map(move |rest| {
                    let mut all = vec![count];
                    all.extend(rest);
                    all
                })
            });
            counts = more.collect();
        }
        States { kinds, layers, counts }
    }

    /// Layers, a bit each, that a stage of `members` may hold and pass on `flow`.
    fn held(&self, members: &[usize], flow: u64) -> u128 {
        let enough = |layers: &usize| together(self.kinds, members, *layers) >= flow;
        (1..=self.layers).filter(enough).fold(0, |held, layers| held | 1 << layers)
    }

    /// For each state the numbers of layers that it can hold in rows of stages that each pass on `flow`.
    fn reach(&self, flow: u64, looked: &mut u64) -> Vec<u128> {
        let held: Vec<u128> = self.counts.iter().map(|members| self.held(members, flow)).collect();
        let all = (1 << (self.layers + 1)) - 1;
        let mut reach = vec![0_u128; self.counts.len()];
        reach[0] = 1;
        for state in 1..self.counts.len() {
            for (part, sizes) in held.iter().enumerate().take(state + 1).skip(1) {
                let Some(rest) = self.without(state, part) else { continue };
                *looked += 1;
                let mut sizes = *sizes;
                while sizes != 0 {
                    reach[state] |= reach[rest] << sizes.trailing_zeros() & all;
                    sizes &= sizes - 1;
                }
            }
        }
        reach
    }

    /// The state that is left of `state` without the members of `part`.
    fn without(&self, state: usize, part: usize) -> Option<usize> {
        let inside = self.counts[part].iter().zip(&self.counts[state]).all(|(part, all)| part <= all);
        // States are numbered as digits: what is inside is taken away digit by digit.
        inside.then(|| state - part)
    }

    /// A row of stages that passes on `flow` over all layers.
    fn row(&self, flow: u64, looked: &mut u64) -> Option<Vec<MemberStage>> {
        let reach = self.reach(flow, looked);
        let whole = |state: &usize| reach[*state] >> self.layers & 1 == 1;
        // Of those that do, the one with fewest members.
        let least =
            (0..self.counts.len()).filter(whole).min_by_key(|at| self.counts[*at].iter().sum::<usize>());
        let (mut state, mut to, mut stages) = (least?, self.layers, Vec::new());
        while to > 0 {
            let found = (1..=state).find_map(|part| {
                let rest = self.without(state, part)?;
                let sizes = self.held(&self.counts[part], flow);
                let fits = |size: &usize| sizes >> size & 1 == 1 && reach[rest] >> (to - size) & 1 == 1;
                (1..=to).find(fits).map(|size| (part, rest, size))
            });
            let (part, rest, size) = found.expect("what was reached is found again");
            stages.push(MemberStage { from: to - size, to, members: self.counts[part].clone() });
            (state, to) = (rest, to - size);
        }
        stages.reverse();
        Some(stages)
    }
}

/// The most that a row of stages over `layers` layers passes on; nothing where no row holds them, or there are more
/// than [`MOST_LAYERS`].
pub fn most(layers: usize, kinds: &[MemberKind]) -> Option<Flow> {
    if layers == 0 || layers > MOST_LAYERS - 1 {
        return None;
    }
    let states = States::new(layers, kinds);
    let (bound, prover) = bound(layers, kinds);
    let mut looked = 0;
    let mut rates: Vec<u64> = Vec::new();
    for members in &states.counts {
        rates.extend((1..=layers).map(|held| together(kinds, members, held)));
    }
    rates.retain(|rate| (1..=bound).contains(rate));
    rates.sort_unstable();
    rates.dedup();
    // The flow is what some stage passes on: of those, the highest that a row does.
    let (mut low, mut high, mut best) = (0, rates.len(), None);
    while low < high {
        let middle = low + (high - low) / 2;
        match states.row(rates[middle], &mut looked) {
            Some(stages) => {
                best = Some((rates[middle], stages));
                low = middle + 1;
            }
            None => high = middle,
        }
    }
    let (rate, stages) = best?;
    Some(Flow { stages, rate, bound, prover, states: looked })
}
