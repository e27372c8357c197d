//! Solves placement problems with a certificate: one program per objective.

use super::baseline::{self, BaselineRule};
use super::bottleneck::replicated::{CycleSearchResult, DecodeCycle, ReplicatedStage, copies};
use super::chain::{HostOverhead, Stage};
use super::cycle::cycle;
use super::price::{MemberPrices, PlacementProblem, PlacementWork, PricedChain};
use super::reasons::holds;
use super::shared_hosts::{BoundedSolution, HostSplit, share};
use super::{Placement, PlacementInfeasible, least_sum_controlled};
use crate::search::run::Control;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementTime {
    /// Of a decode step with all requests in it.
    Step,
    /// Of one request end to end: prefill and decode.
    Request,
    /// In which every request gets a token, with requests divided into as many micro-batches as stages.
    Cycle,
}

/// An optimal placement, or the best one found with its gap.
#[derive(Clone, Debug, Default)]
pub struct SolvedPlacement {
    /// Index of the problem that it solves.
    #[cfg_attr(not(feature = "internals"), allow(dead_code))]
    pub way: usize,
    pub stages: Vec<Stage>,
    /// For each stage, the additional members that hold all of its layers and share its requests; empty where no
    /// stage is replicated.
    pub copies: Vec<Vec<usize>>,
    /// Seconds of a step, of a request, or of the cycle in which every request gets a token.
    pub seconds: f64,
    /// Lower bound by the dynamic program.
    pub bound: f64,
    /// Independent lower bound; unknown for cycles shorter than their requests.
    pub cheap_bound: f64,
    /// Micro-batches in flight, and requests in each.
    pub batches: (u64, u64),
    pub states: u64,
    pub kinds: usize,
    /// Limit on host memory of each member in pages, where members share a host.
    pub parts: Option<Vec<u64>>,
    /// Results of the baseline rules, which partition by memory alone.
    pub others: Vec<(BaselineRule, Option<(f64, Vec<Stage>)>)>,
}

pub(super) const RULES: [BaselineRule; 3] =
    [BaselineRule::Fewest, BaselineRule::All, BaselineRule::BackToFront];

/// The best placement over all `questions`, which differ in how devices are grouped into members, until `control`
/// stops the search.
///
/// # Errors
/// All are infeasible; returns the reason for the first.
#[cfg(feature = "internals")]
pub fn solve(
    questions: &[PlacementProblem],
    objective: PlacementTime,
    control: &Control,
) -> Result<SolvedPlacement, PlacementInfeasible> {
    let mut best: Option<SolvedPlacement> = None;
    let (mut states, mut first, mut bound, mut cheap) = (0, None, f64::INFINITY, f64::INFINITY);
    for (way, problem) in questions.iter().enumerate() {
        let prices = MemberPrices::new(problem);
        match one(&prices, objective, true, control) {
            Ok(found) => {
                states += found.states;
                bound = bound.min(found.bound);
                cheap = cheap.min(found.cheap_bound);
                if best.as_ref().is_none_or(|best| found.seconds < best.seconds) {
                    best = Some(SolvedPlacement { way, ..found });
                }
            }
            // An incomplete search leaves feasibility undecided.
            Err(why @ PlacementInfeasible::Stopped { .. }) => {
                bound = 0.0;
                first = Some(why);
            }
            Err(why) => {
                first.get_or_insert(why);
            }
        }
    }
    let found = best.ok_or_else(|| first.unwrap_or(PlacementInfeasible::WholeLayers { held: None }))?;
    Ok(SolvedPlacement { states, bound, cheap_bound: cheap, ..found })
}

impl SolvedPlacement {
    /// Whether the gap is zero.
    pub fn is_optimal(&self) -> bool {
        self.seconds <= self.bound * (1.0 + 1e-12)
    }

    /// Number of members that hold a stage.
    pub fn held_by(&self, stage: usize) -> u64 {
        1 + self.copies.get(stage).map_or(0, Vec::len) as u64
    }

    /// Members and links priced for `work`, with the KV caches of its requests on each member.
    pub fn priced(&self, prices: &MemberPrices<'_>, work: PlacementWork) -> PricedChain {
        let mut priced = self.with_host_parts(prices.chain(work));
        for (at, stage) in self.stages.iter().enumerate().filter(|(at, _)| self.held_by(*at) > 1) {
            let (flying, each) = self.batches;
            let own = prices.chain_holding(work, (flying / self.held_by(at)).saturating_mul(each));
            priced.chain.members[stage.member] = own.chain.members[stage.member].clone();
        }
        priced
    }

    /// Seconds in which every request gets a token, on members priced by [`SolvedPlacement::priced`]: each processes
    /// its micro-batches one after another. `None` where a member cannot hold its stage.
    pub fn cycle(&self, priced: &PricedChain) -> Option<f64> {
        let (flying, _) = self.batches;
        let way = priced.seconds(priced.chain.sum(&self.stages).ok()?);
        let each = stage_seconds(priced, &self.stages, HostOverhead::Each)?;
        let worked =
            each.iter().enumerate().map(|(at, seconds)| (flying / self.held_by(at)) as f64 * seconds);
        Some(worked.fold(way, f64::max))
    }

    /// `priced` with the host memory of each member limited to its use here.
    pub fn with_host_parts(&self, priced: PricedChain) -> PricedChain {
        let chain = match &self.parts {
            Some(parts) => priced.chain.with_host_parts(parts),
            None => priced.chain,
        };
        PricedChain { chain, ..priced }
    }
}

/// The best placement of one problem; `replicated` says whether equal devices may hold the same layers.
pub fn solve_one(
    problem: &PlacementProblem,
    objective: PlacementTime,
    replicated: bool,
    control: &Control,
) -> Result<SolvedPlacement, PlacementInfeasible> {
    one(&MemberPrices::new(problem), objective, replicated, control)
}

/// Whether `problem` may have a placement below `seconds`, by the bound that ignores order and links.
pub fn could_improve(problem: &PlacementProblem, objective: PlacementTime, seconds: f64) -> bool {
    let work = match objective {
        PlacementTime::Step => PlacementWork::Token(problem.concurrency),
        PlacementTime::Request => PlacementWork::Request,
        PlacementTime::Cycle => return true,
    };
    if seconds.is_infinite() {
        return true;
    }
    let priced = MemberPrices::new(problem).chain(work);
    priced.seconds(super::bound::sum(&priced.chain)) < seconds
}

fn one(
    prices: &MemberPrices<'_>,
    objective: PlacementTime,
    replicated: bool,
    control: &Control,
) -> Result<SolvedPlacement, PlacementInfeasible> {
    let concurrency = prices.problem.concurrency;
    match objective {
        PlacementTime::Step => whole(prices, PlacementWork::Token(concurrency), (1, concurrency), control),
        PlacementTime::Request => whole(prices, PlacementWork::Request, (1, 1), control),
        PlacementTime::Cycle if replicated => Ok(copied(prices, shared_cycle(prices, control)?, control)),
        PlacementTime::Cycle => shared_cycle(prices, control),
    }
}

/// The shortest cycle with replicated stages; `single` is the shortest without.
fn copied(prices: &MemberPrices<'_>, single: SolvedPlacement, control: &Control) -> SolvedPlacement {
    let CycleSearchResult { best, bound, cheap_bound, states } = copies(prices, single.seconds, control);
    let (bound, states) = (single.bound.min(bound), single.states + states);
    let cheap_bound = single.cheap_bound.min(cheap_bound);
    let single = SolvedPlacement { bound, cheap_bound, states, ..single };
    let Some(DecodeCycle { stages, seconds, batches }) = best else { return single };
    let first = |stage: &ReplicatedStage| Stage { member: stage.members[0], from: stage.from, to: stage.to };
    SolvedPlacement {
        copies: stages.iter().map(|stage| stage.members[1..].to_vec()).collect(),
        stages: stages.iter().map(first).collect(),
        seconds,
        batches,
        bound: bound.min(seconds),
        cheap_bound: cheap_bound.min(seconds),
        ..single
    }
}

/// The shortest cycle on members that may share hosts.
fn shared_cycle(
    prices: &MemberPrices<'_>,
    control: &Control,
) -> Result<SolvedPlacement, PlacementInfeasible> {
    let chain = prices.chain(PlacementWork::Token(prices.problem.concurrency)).chain;
    if chain.hosts.is_empty() {
        return cycle(prices, None, control);
    }
    let mut states = 0;
    let HostSplit { best, parts, bound } = share(&chain, control.stop, |parts| {
        let found = cycle(prices, Some(parts), control)?;
        states += found.states;
        Ok(BoundedSolution {
            objective: found.seconds,
            bound: found.bound,
            stages: found.stages.clone(),
            solution: found,
        })
    })?;
    Ok(SolvedPlacement { bound: bound.max(0.0), states, parts: Some(parts), ..best.solution })
}

fn whole(
    prices: &MemberPrices<'_>,
    work: PlacementWork,
    batches: (u64, u64),
    control: &Control,
) -> Result<SolvedPlacement, PlacementInfeasible> {
    let priced = prices.chain(work);
    let Placement { stages, ticks, bound, cheap_bound, states, kinds, parts } =
        least_sum_controlled(&priced.chain, control)?;
    let cost = |stages: &[Stage]| priced.chain.sum(stages).ok();
    let other = |rule: BaselineRule| {
        let held = baseline::held(&priced.chain, rule, cost);
        (rule, held.map(|(ticks, stages)| (priced.seconds(ticks), stages)))
    };
    Ok(SolvedPlacement {
        stages,
        seconds: priced.seconds(ticks),
        bound: priced.seconds(bound),
        cheap_bound: priced.seconds(cheap_bound),
        batches,
        states,
        kinds,
        others: RULES.into_iter().map(other).collect(),
        parts,
        ..SolvedPlacement::default()
    })
}

pub fn fits(problem: &PlacementProblem) -> bool {
    holds(&MemberPrices::new(problem).chain(PlacementWork::Token(problem.concurrency)).chain)
}

/// Seconds of each stage of a placement, including the transfer to the next.
pub fn stage_seconds(priced: &PricedChain, stages: &[Stage], hosts: HostOverhead) -> Option<Vec<f64>> {
    let ticks = priced.chain.stages(stages, hosts).ok()?;
    Some(ticks.into_iter().map(|ticks| priced.seconds(ticks)).collect())
}
