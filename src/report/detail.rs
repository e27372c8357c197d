//! Details of a deployment: latency breakdown, memory, constraints.

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
use crate::search::problem::{Problem, Traffic};
use crate::spec::percentile::Percentile;

/// Details of a deployment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeploymentDetail {
    /// Latency breakdown of a prefill and of a decode step; of several pools of a role, the first.
    pub phases: Vec<PhaseTime>,
    /// Memory of the fullest device of each pool.
    pub pools: Vec<PoolMemory>,
    /// Latency percentiles; empty for closed-loop traffic, which has only mean latency.
    pub percentiles: Vec<Latencies>,
    /// Constraints, and whether each binds.
    pub constraints: Vec<Constraint>,
    /// Number of input data of the metrics, by grade.
    pub evidence: BTreeMap<Grade, u64>,
}

/// Latencies at one percentile.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Latencies {
    /// The percentile.
    pub percentile: Percentile,
    /// Time to first token, ms.
    pub ttft_ms: f64,
    /// Time per output token, ms.
    pub tpot_ms: f64,
    /// End-to-end time, ms, with TTFT and TPOT at that percentile: an upper bound.
    pub e2e_ms: f64,
}

/// Latency breakdown of a phase.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PhaseTime {
    /// The phase.
    pub phase: Phase,
    /// Total time, ms: a prompt or a decode step through all stages.
    pub time_ms: f64,
    /// Sum of its operators, ms, each at full duration; stage transfers, offloading and
    /// further prompt chunks add to it, overlap subtracts from it.
    pub operators_ms: f64,
    /// Of that, time bound by compute.
    pub compute_ms: f64,
    /// Time bound by device-memory bandwidth.
    pub memory_ms: f64,
    /// Time bound by the interconnect.
    pub communication_ms: f64,
    /// Time of kernel launches and host overhead.
    pub overhead_ms: f64,
    /// Every operator, in execution order.
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

/// Memory of the fullest device of a pool.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PoolMemory {
    /// Role of the pool.
    pub duty: PoolRole,
    /// Parallelism of one worker, e.g. `tp4 pp2`.
    pub label: String,
    /// Memory footprint.
    pub memory: MemoryReport,
}

fn latencies(problem: &Problem, candidate: &Candidate) -> Vec<Latencies> {
    let at = |percentile| {
        let problem = problem.with_tail(percentile);
        let metrics = candidate.evaluate(&Plain, &problem, &mut ()).metrics;
        Latencies {
            percentile,
            ttft_ms: metrics.ttft.value() * 1e3,
            tpot_ms: metrics.tpot.value() * 1e3,
            e2e_ms: metrics.e2e.value() * 1e3,
        }
    };
    let random = matches!(problem.traffic, Traffic::Rate(_));
    Percentile::ALL.into_iter().filter(|_| random).map(at).collect()
}

/// Details of a valid candidate; `leaves` are the input data of its metrics.
pub fn detail(problem: &Problem, candidate: &Candidate, leaves: &[Leaf]) -> DeploymentDetail {
    let evaluation = candidate.evaluate(&Plain, problem, &mut ());
    let breakdown = Breakdown::of(problem, candidate);
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
    let pools = candidate.pools.iter().zip(holdings(problem, candidate));
    let mut evidence = BTreeMap::new();
    leaves.iter().for_each(|leaf| *evidence.entry(leaf.grade).or_default() += 1);
    DeploymentDetail {
        pools: pools
            .map(|(pool, held)| PoolMemory {
                duty: pool.role,
                label: pool.plan.label(),
                memory: memory(&held, evaluation.spilled, problem, candidate),
            })
            .collect(),
        constraints: constraints(problem, candidate, &phases),
        percentiles: latencies(problem, candidate),
        phases,
        evidence,
    }
}
