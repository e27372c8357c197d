//! Evaluates any given placement: the prices of the dynamic programs without the programs, and its stages directly by
//! the formulas.

use std::collections::BTreeMap;

use super::bound;
use super::chain::{MemoryShortfall, Stage};
use super::cycle::{batches, cycle_of};
use super::price::{MemberPrices, PAGE, PlacementProblem, PlacementWork, PricedChain};
use super::solve::{PlacementTime, SolvedPlacement};
use crate::plan::parallel::Phase;

/// The members and links of a problem, priced for every load that a placement may have.
pub struct PlacementEvaluator<'a> {
    prices: MemberPrices<'a>,
    objective: PlacementTime,
    /// By requests per micro-batch; only one entry where the objective has no micro-batches.
    priced: BTreeMap<u64, PricedChain>,
}

/// Stages with several identical members, which share the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedStages {
    /// The additional members of each stage.
    pub copies: Vec<Vec<usize>>,
    /// Micro-batches in flight, and requests in each.
    pub batches: (u64, u64),
}

impl ReplicatedStages {
    /// Number of members that hold a stage.
    pub fn held_by(&self, stage: usize) -> u64 {
        1 + self.copies[stage].len() as u64
    }
}

/// Cost of a stage directly by the formulas, not summed over layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageCost {
    /// Seconds of a decode step, without the transfer to the next stage and without reads from overflow memory.
    pub decode: f64,
    /// Bytes that each of its devices must hold.
    pub bytes: f64,
    /// Usable bytes of each device.
    pub usable: f64,
}

impl<'a> PlacementEvaluator<'a> {
    pub fn new(problem: &'a PlacementProblem, objective: PlacementTime) -> PlacementEvaluator<'a> {
        let prices = MemberPrices::new(problem);
        let most = problem.members.len().min(problem.graph.layer_block.len()).max(1);
        let works: Vec<(u64, PlacementWork)> = match objective {
            PlacementTime::Step => vec![(1, PlacementWork::Token(problem.concurrency))],
            PlacementTime::Request => vec![(1, PlacementWork::Request)],
            PlacementTime::Cycle => {
                let loads = (1..=most).map(|stages| batches(problem.concurrency, stages).1);
                loads.map(|each| (each, PlacementWork::Token(each))).collect()
            }
        };
        let mut priced = BTreeMap::new();
        for (each, work) in works {
            priced.entry(each).or_insert_with(|| prices.chain(work));
        }
        PlacementEvaluator { prices, objective, priced }
    }

    pub fn question(&self) -> &'a PlacementProblem {
        self.prices.problem
    }

    /// Micro-batches in flight over a number of stages, and requests in each.
    pub fn batches(&self, stages: usize) -> (u64, u64) {
        let concurrency = self.question().concurrency;
        match self.objective {
            PlacementTime::Step => (1, concurrency),
            PlacementTime::Request => (1, 1),
            PlacementTime::Cycle => batches(concurrency, stages),
        }
    }

    /// Members and links under the load of a number of stages.
    pub fn priced(&self, stages: usize) -> &PricedChain {
        let each = if self.objective == PlacementTime::Cycle { self.batches(stages).1 } else { 1 };
        &self.priced[&each]
    }

    /// Whether two members are identical, without their links.
    pub fn alike(&self, one: usize, other: usize) -> bool {
        let members = &self.priced(1).chain.members;
        members[one] == members[other]
    }

    /// Objective value in seconds. With `parts`, each member takes at most its part of host memory.
    ///
    /// # Errors
    /// The first member that cannot hold its stage, or reach the next.
    pub fn seconds(&self, stages: &[Stage], parts: Option<&[u64]>) -> Result<f64, MemoryShortfall> {
        let stated = self.priced(stages.len());
        let limited =
            parts.map(|parts| PricedChain { chain: stated.chain.with_host_parts(parts), ..*stated });
        let priced = limited.as_ref().unwrap_or(stated);
        match self.objective {
            PlacementTime::Step | PlacementTime::Request => Ok(priced.seconds(priced.chain.sum(stages)?)),
            PlacementTime::Cycle => {
                priced.chain.sum(stages)?;
                let (flying, _) = self.batches(stages.len());
                Ok(cycle_of(priced, stages, flying).unwrap_or(f64::INFINITY))
            }
        }
    }

    /// A placement in the form of a solver result, without its proof.
    pub fn to_solved(
        &self,
        stages: &[Stage],
        parts: Option<Vec<u64>>,
        dealt: Option<&ReplicatedStages>,
    ) -> Result<SolvedPlacement, MemoryShortfall> {
        let solved = |seconds, cheap_bound| SolvedPlacement {
            stages: stages.to_vec(),
            copies: dealt.map_or(vec![], |dealt| dealt.copies.clone()),
            seconds,
            cheap_bound,
            batches: dealt.map_or(self.batches(stages.len()), |dealt| dealt.batches),
            parts: parts.clone(),
            ..SolvedPlacement::default()
        };
        let Some(dealt) = dealt else {
            return Ok(solved(self.seconds(stages, parts.as_deref())?, self.least()));
        };
        let found = solved(f64::NAN, 0.0);
        let priced = found.priced(&self.prices, PlacementWork::Token(dealt.batches.1));
        priced.chain.sum(stages)?;
        Ok(SolvedPlacement { seconds: found.cycle(&priced).unwrap_or(f64::INFINITY), ..found })
    }

    /// Lower bound in seconds that ignores order and links: of a sum, or of a cycle over any number of stages.
    pub fn least(&self) -> f64 {
        let members = self.question().members.len();
        let layers = self.question().graph.layer_block.len();
        let of = |stages: usize| {
            let priced = self.priced(stages);
            let (flying, _) = self.batches(stages);
            priced.seconds(bound::slowest(&priced.chain, Some(stages))) * flying as f64
        };
        match self.objective {
            PlacementTime::Step | PlacementTime::Request => {
                let priced = self.priced(1);
                priced.seconds(bound::sum(&priced.chain))
            }
            PlacementTime::Cycle => (1..=members.min(layers)).map(of).fold(f64::INFINITY, f64::min),
        }
    }

    /// A stage that processes `each` requests at a time and holds the KV caches of `held`, directly by the formulas.
    pub fn stage_cost(&self, stage: &Stage, (each, held): (u64, u64)) -> StageCost {
        let problem = self.question();
        let stand = &self.prices.prepared[stage.member];
        let kind = problem.stage_kind(stage);
        let first = kind.first;
        let (bytes, usable) = stand.bytes(Phase::Decode, &kind, held);
        let alone = stand.seconds(Phase::Decode, kind, each);
        // The step is prepared once, on the first stage.
        let prepared = if first { 0.0 } else { stand.seconds(Phase::Decode, stand.no_layers(), each) };
        StageCost { decode: alone - prepared, bytes, usable }
    }

    pub fn pages(bytes: f64) -> u64 {
        (bytes / PAGE).round().max(0.0) as u64
    }
}
