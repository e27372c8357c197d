//! Replicated stages as flows: the maximum rate of a sequence of stages that each have several members, from the rate
//! of every kind of member by its number of layers.
//!
//! The optimum among sequences of stages is exact; the bound is valid for any flow of requests through members, with
//! any layers per member. (Helix formulates the latter as a MIP: Mei et al., ASPLOS 2025,
//! <https://github.com/Thesys-lab/Helix-ASPLOS25>.)

/// Identical members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberKind {
    /// Number of members.
    pub count: usize,
    /// Rate of one member by its number of layers, starting at one. The rate may increase with the number of layers.
    pub rates: Vec<u64>,
}

/// Layers held by a group of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStage {
    /// First layer.
    pub from: usize,
    /// First layer of the next stage.
    pub to: usize,
    /// Members of each kind.
    pub members: Vec<usize>,
}

/// Source of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowProver {
    /// Layers times rate, summed over the members.
    Area,
    /// Each layer is held by one member with the full rate, or by at least two.
    Pairs,
}

/// The maximum flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// First to last.
    pub stages: Vec<MemberStage>,
    /// Its rate.
    pub rate: u64,
    /// Upper bound of the rate over any assignment of layers and any routes.
    pub bound: u64,
    /// Source of the bound.
    pub prover: FlowProver,
    /// States expanded.
    pub states: u64,
}

/// Number of layers that fit a bit mask.
pub const MOST_LAYERS: usize = 127;

impl MemberKind {
    fn rate(&self, layers: usize) -> u64 {
        layers.checked_sub(1).and_then(|at| self.rates.get(at)).copied().unwrap_or(0)
    }

    /// Maximum of `worth` over layers and rate.
    fn most(&self, worth: impl Fn(u128, u128) -> u128) -> u128 {
        let each = (1..).zip(&self.rates).map(|(layers, rate)| worth(layers, u128::from(*rate)));
        self.count as u128 * each.max().unwrap_or_default()
    }
}

/// Total rate of the members of a stage with the given number of layers.
fn combined_rate(kinds: &[MemberKind], members: &[usize], layers: usize) -> u64 {
    members.iter().zip(kinds).map(|(count, kind)| *count as u64 * kind.rate(layers)).sum()
}

/// Upper bound of any flow, and its source: above it, some layer has too few members.
///
/// The whole flow passes every layer. Either one member carries all of it, or at least two share it: a member that
/// cannot carry it alone counts half a layer for each of its layers, or the fraction of the flow that it can carry.
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

/// The highest number up to `most` for which the monotone `holds` is true.
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

    /// Numbers of layers, one bit each, at which a stage of `members` sustains `flow`.
    fn held(&self, members: &[usize], flow: u64) -> u128 {
        let enough = |layers: &usize| combined_rate(self.kinds, members, *layers) >= flow;
        (1..=self.layers).filter(enough).fold(0, |held, layers| held | 1 << layers)
    }

    /// For each state, the numbers of layers that it can hold in sequences of stages that each sustain `flow`.
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

    /// `state` without the members of `part`, if it contains them.
    fn without(&self, state: usize, part: usize) -> Option<usize> {
        let inside = self.counts[part].iter().zip(&self.counts[state]).all(|(part, all)| part <= all);
        // States are mixed-radix numbers: subtraction is digit by digit.
        inside.then(|| state - part)
    }

    /// A sequence of stages that sustains `flow` over all layers.
    fn row(&self, flow: u64, looked: &mut u64) -> Option<Vec<MemberStage>> {
        let reach = self.reach(flow, looked);
        let whole = |state: &usize| reach[*state] >> self.layers & 1 == 1;
        // Of these, the one with the fewest members.
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
            let (part, rest, size) = found.expect("a reached state has a predecessor");
            stages.push(MemberStage { from: to - size, to, members: self.counts[part].clone() });
            (state, to) = (rest, to - size);
        }
        stages.reverse();
        Some(stages)
    }
}

/// The maximum rate of a sequence of stages over `layers` layers; `None` where no sequence holds them, or there are
/// more than [`MOST_LAYERS`].
pub fn most(layers: usize, kinds: &[MemberKind]) -> Option<Flow> {
    if layers == 0 || layers > MOST_LAYERS - 1 {
        return None;
    }
    let states = States::new(layers, kinds);
    let (bound, prover) = bound(layers, kinds);
    let mut looked = 0;
    let mut rates: Vec<u64> = Vec::new();
    for members in &states.counts {
        rates.extend((1..=layers).map(|held| combined_rate(kinds, members, held)));
    }
    rates.retain(|rate| (1..=bound).contains(rate));
    rates.sort_unstable();
    rates.dedup();
    // The flow equals the rate of some stage: take the highest one that is feasible.
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
