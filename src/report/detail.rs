//! A deployment laid open: where its time goes, what its devices hold, what binds. Knows no text.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{holdings, memory};
use super::breakdown::{Breakdown, Class, OperatorLine};
use super::constraint::{Constraint, constraints};
use super::result::MemoryReport;
use crate::plan::parallel::Phase;
use crate::quantity::datum::Grade;
use crate::quantity::ledger::Leaf;
use crate::quantity::read::Plain;
use crate::search::candidate::{Candidate, PoolRole};
use crate::search::question::{Problem, Traffic};
use crate::spec::percentile::Percentile;

/// A deployment laid open.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeploymentDetail {
    /// Where the time goes: of a prompt's prefill, and of a decode step. Of pools side by side the first's.
    pub phases: Vec<PhaseTime>,
    /// What the fullest device of each pool holds.
    pub pools: Vec<PoolMemory>,
    /// Latencies by part of the requests; empty where these follow one another, as then only the typical one is known.
    pub percentiles: Vec<Latencies>,
    /// What could stand in the way of more, and whether it does.
    pub constraints: Vec<Constraint>,
    /// How many data the metrics rest on, by how far each may be trusted.
    pub evidence: BTreeMap<Grade, u64>,
}

/// Latencies that a part of the requests does not exceed.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Latencies {
    /// Which part.
    pub percentile: Percentile,
    /// Time to first token.
    pub ttft_ms: f64,
    /// Time per output token.
    pub tpot_ms: f64,
    /// Time of a whole request, both at that end: an upper bound.
    pub e2e_ms: f64,
}

/// Where the time of a phase goes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PhaseTime {
    /// Which.
    pub phase: Phase,
    /// The whole: a prompt through all stages, or a decode step through them.
    pub time_ms: f64,
    /// What its operators take one after another, each in full; hand-overs between stages, offloading and
    /// further chunks of a prompt come on top, what overlaps comes off.
    pub operators_ms: f64,
    /// Of that, what is bound by arithmetic.
    pub compute_ms: f64,
    /// By device memory.
    pub memory_ms: f64,
    /// By the interconnect.
    pub communication_ms: f64,
    /// Launches and the host.
    pub overhead_ms: f64,
    /// Every operator, in the order in which they run.
    pub operators: Vec<OperatorLine>,
}

impl PhaseTime {
    /// Time of a class.
    pub fn of(&self, class: Class) -> f64 {
        match class {
            Class::Compute => self.compute_ms,
            Class::Memory => self.memory_ms,
            Class::Communication => self.communication_ms,
            Class::Overhead => self.overhead_ms,
        }
    }
}

/// What the fullest device of a pool holds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PoolMemory {
    /// What the pool does.
    pub duty: PoolRole,
    /// How an instance is split.
    pub label: String,
    /// What is held.
    pub memory: MemoryReport,
}

fn latencies(question: &Problem, candidate: &Candidate) -> Vec<Latencies> {
    let at = |percentile| {
        let question = question.with_tail(percentile);
        let metrics = candidate.evaluate(&Plain, &question, &mut ()).metrics;
        Latencies {
            percentile,
            ttft_ms: metrics.ttft.value() * 1e3,
            tpot_ms: metrics.tpot.value() * 1e3,
            e2e_ms: metrics.e2e.value() * 1e3,
        }
    };
    let random = matches!(question.traffic, Traffic::Rate(_));
    Percentile::ALL.into_iter().filter(|_| random).map(at).collect()
}

/// Lays a candidate open that some rule allows; `leaves` are what its metrics rest on.
pub fn detail(question: &Problem, candidate: &Candidate, leaves: &[Leaf]) -> DeploymentDetail {
    let evaluation = candidate.evaluate(&Plain, question, &mut ());
    let breakdown = Breakdown::of(question, candidate);
    let phases = [(Phase::Prefill, evaluation.prefill), (Phase::Decode, evaluation.decode)];
    let phases: Vec<PhaseTime> = phases
        .into_iter()
        .map(|(phase, whole)| {
            let by = breakdown.by_class(phase);
            PhaseTime {
                phase,
                time_ms: whole.total.value() * 1e3,
                operators_ms: by.total() * 1e3,
                compute_ms: by.of(Class::Compute) * 1e3,
                memory_ms: by.of(Class::Memory) * 1e3,
                communication_ms: by.of(Class::Communication) * 1e3,
                overhead_ms: by.of(Class::Overhead) * 1e3,
                operators: breakdown.lines.iter().filter(|line| line.phase == phase).cloned().collect(),
            }
        })
        .collect();
    let pools = candidate.pools.iter().zip(holdings(question, candidate));
    let mut evidence = BTreeMap::new();
    leaves.iter().for_each(|leaf| *evidence.entry(leaf.grade).or_default() += 1);
    DeploymentDetail {
        pools: pools
            .map(|(pool, held)| PoolMemory {
                duty: pool.duty,
                label: pool.plan.label(),
                memory: memory(&held, evaluation.spilled, question, candidate),
            })
            .collect(),
        constraints: constraints(question, candidate, &phases),
        percentiles: latencies(question, candidate),
        phases,
        evidence,
    }
}
