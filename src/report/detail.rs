//! Details of a deployment: latency breakdown, memory, constraints.

use crate::spec::role::Role;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{memory, offloaded_quantiles};
use super::breakdown::{Breakdown, Class, OperatorLine, TierTraffic, shown};
use super::constraint::{Constraint, constraints};
use super::prefill_flops::prefill_flops;
use super::reporter::Reporter;
use super::result::{Intervals, MemoryReport, Quantiles};
use crate::plan::parallel::Phase;
use crate::quantity::datum::Grade;
use crate::quantity::ledger::Leaf;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::candidate::Candidate;
use crate::search::hosting::held_on_node;
use crate::search::prepared::PreparedInstance;
use crate::search::problem::{Problem, Traffic};
use crate::serving::evaluate::Evaluation;
use crate::serving::instance::Instance;
use crate::serving::iteration::{cycle, micro_batches};
use crate::serving::step::StepTime;
use crate::serving::utilization::{bubble, mbu, mfu, prefill_tok_s};
use crate::spec::percentile::Percentile;

/// Details of a deployment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeploymentDetail {
    /// Latency breakdown of a prefill and of a decode step; of several pools of a role, the first. Empty if it cannot run.
    pub phases: Vec<PhaseTime>,
    /// Memory of the fullest device of each pool.
    pub pools: Vec<PoolMemory>,
    /// Latency percentiles; empty for closed-loop traffic, which has only mean latency, and if it cannot run.
    pub percentiles: Vec<Latencies>,
    /// Constraints, and whether each binds; empty if it cannot run.
    pub constraints: Vec<Constraint>,
    /// Input tokens per second of one replica or prefill worker at its load, less those in the prefix cache; null if it
    /// cannot run.
    pub prefill_tok_s: Option<f64>,
    /// Its interval: that of the requests. Absent without measurements to derive it from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill_interval: Option<Quantiles>,
    /// FLOPs of the prefill of one prompt by the unsharded model: causal attention, LM head for the last token.
    pub prefill_flops: f64,
    /// The same in the convention of older tools: matrix products, attention in which every query sees every key, and
    /// norms; no LM head.
    pub prefill_flops_noncausal_without_head: f64,
    /// Peak memory of the deployment on one host, bytes: weights and KV cache that devices do not hold, for each device of
    /// the host as much as for the one with most.
    pub host_memory_peak_bytes: f64,
    /// Its interval: what that of the memory has beyond the devices. Absent where the part in host memory is stated by the
    /// plan, which is exact, or where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_memory_interval: Option<Quantiles>,
    /// Number of input data of the metrics, by grade.
    pub evidence: BTreeMap<Grade, u64>,
}

/// Latencies at one percentile.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
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
    /// FLOPs of one device of each pipeline stage.
    pub flops: f64,
    /// Bytes to and from the memory of one device of each pipeline stage.
    pub bytes: f64,
    /// Bytes that one device of each pipeline stage sends, transfers between stages included.
    pub wire_bytes: f64,
    /// Of that, what each level of the interconnect carries, innermost first, in the order of those of the question; zeros
    /// where the plan sends nothing over a level. Empty for a single device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interconnect: Vec<LevelLoad>,
    /// Model FLOPs utilisation (MFU): FLOPs over what the dense peak does in that time. With several pipeline stages, a
    /// device counts while its stage works.
    pub mfu: f64,
    /// Model bandwidth utilisation (MBU): bytes over what the peak memory bandwidth moves in that time.
    pub mbu: f64,
    /// Share of the time in which pipeline stages wait: prompts follow each other in prefill; in decode, the
    /// concurrent requests are divided into micro-batches.
    pub bubble_share: f64,
    /// Every operator, in execution order.
    pub operators: Vec<OperatorLine>,
}

/// The load of a level of the interconnect in a phase. Transfers of KV caches between workers and the collectives of a draft
/// are not part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelLoad {
    /// Name of the level.
    pub level: String,
    /// Bytes that one device of each pipeline stage sends over it.
    pub wire_bytes: f64,
    /// Time in which it sends them, ms: the latency of each hop, and the bytes at the achieved fraction of the link rate.
    pub time_ms: f64,
    /// Share of the phase's time in which the link is busy. With several pipeline stages, a device counts while its stage
    /// works.
    pub load_share: f64,
}

impl PhaseTime {
    pub fn of(&self, class: Class) -> f64 {
        [self.compute_ms, self.memory_ms, self.communication_ms, self.overhead_ms][class as usize]
    }
}

/// Memory of the fullest device of a pool.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PoolMemory {
    /// Role of the pool.
    #[serde(alias = "duty")]
    pub role: Role,
    /// Parallelism of one worker, e.g. `tp4 pp2`.
    pub label: String,
    /// Memory footprint.
    pub memory: MemoryReport,
}

fn latencies(problem: &Problem, candidate: &Candidate, instances: &[PreparedInstance]) -> Vec<Latencies> {
    let at = |percentile| {
        let problem = problem.with_tail(percentile);
        let metrics = candidate.evaluate_on(&Plain, &problem, instances, &mut ()).metrics;
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

fn interconnect(
    problem: &Problem,
    breakdown: &Breakdown,
    phase: Phase,
    step: &StepTime<Qty<f64>>,
) -> Vec<LevelLoad> {
    let tiers = problem.cluster.tiers.iter().enumerate();
    tiers
        .map(|(at, tier)| {
            let TierTraffic { wire_bytes, seconds } = breakdown.traffic(phase, at);
            LevelLoad {
                level: tier.name.clone(),
                wire_bytes,
                time_ms: seconds * 1e3,
                load_share: seconds / step.total.value(),
            }
        })
        .collect()
}

/// A phase with its operators; `step` is its time.
fn phase_time(
    problem: &Problem,
    candidate: &Candidate,
    breakdown: &Breakdown,
    (phase, step): (Phase, StepTime<Qty<f64>>),
) -> PhaseTime {
    let by = breakdown.by_class(phase);
    let chip = &problem.formats[candidate.formats].plain().chip;
    let sum = |of: fn(&OperatorLine) -> f64| breakdown.lines(phase).map(of).sum::<f64>();
    let (flops, bytes) = (sum(|line| line.flops), sum(|line| line.bytes));
    PhaseTime {
        phase,
        time_ms: step.total.value() * 1e3,
        operators_ms: by.total() * 1e3,
        compute_ms: by.of(Class::Compute) * 1e3,
        memory_ms: by.of(Class::Memory) * 1e3,
        communication_ms: by.of(Class::Communication) * 1e3,
        overhead_ms: by.of(Class::Overhead) * 1e3,
        flops,
        bytes,
        wire_bytes: breakdown.wire_bytes(phase),
        interconnect: interconnect(problem, breakdown, phase, &step),
        mfu: mfu(Qty(flops), chip, step.total).value(),
        mbu: mbu(Qty(bytes), chip, step.total).value(),
        bubble_share: bubble_share(problem, candidate, phase, &step),
        operators: breakdown.lines(phase).cloned().collect(),
    }
}

fn bubble_share(problem: &Problem, candidate: &Candidate, phase: Phase, step: &StepTime<Qty<f64>>) -> f64 {
    let pool = shown(candidate)[phase as usize];
    let stages = Qty(pool.plan.pp as f64);
    let flying = match phase {
        // Prompts follow each other: every stage has one.
        Phase::Prefill => stages,
        Phase::Decode => {
            let lay = Instance::new(&problem.graph, pool.plan, pool.stages.clone(), problem.tiers());
            micro_batches(&Plain, &lay, Qty(pool.concurrency as f64)).0
        }
    };
    bubble(step, stages, flying, cycle(step, flying)).value()
}

/// Input tokens per second of one replica or prefill worker, the mean over all of them.
fn input_rate(problem: &Problem, candidate: &Candidate, requests_per_s: Qty<f64>) -> f64 {
    let terms = problem.terms();
    let reading = candidate.pools.iter().filter(|pool| pool.role != Role::Decode);
    let replicas = reading.map(|pool| pool.replicas).sum::<u64>() as f64;
    prefill_tok_s(requests_per_s, terms.isl - terms.prefix, Qty(replicas)).value()
}

/// Details of a candidate that runs; `leaves` are the input data of its metrics.
pub fn detail(reporter: &Reporter, candidate: &Candidate, leaves: &[Leaf]) -> DeploymentDetail {
    let (problem, instances) = (reporter.problem(), reporter.instances(candidate));
    let evaluation = reporter.evaluate(candidate, &instances, &mut ());
    let breakdown = reporter.breakdown(candidate);
    let phases = [(Phase::Prefill, evaluation.prefill), (Phase::Decode, evaluation.decode)];
    let phases: Vec<PhaseTime> =
        phases.into_iter().map(|phase| phase_time(problem, candidate, &breakdown, phase)).collect();
    let mut evidence = BTreeMap::new();
    leaves.iter().for_each(|leaf| *evidence.entry(leaf.grade).or_default() += 1);
    let prompts = input_rate(problem, candidate, evaluation.metrics.requests_per_s);
    let at_rate = matches!(problem.traffic, Traffic::Rate(_));
    let errors = candidate.interval(problem).map(|interval| Intervals::of_rates(interval, at_rate));
    DeploymentDetail {
        constraints: constraints(reporter, candidate, &phases),
        percentiles: latencies(problem, candidate, &instances),
        phases,
        prefill_tok_s: Some(prompts),
        prefill_interval: errors.map(|ends| Quantiles::around(prompts, ends)),
        evidence,
        ..held(reporter, candidate, &instances, &evaluation)
    }
}

/// Details of a legal candidate that cannot run: its memory, and nothing that takes time. Where memory does not hold it,
/// nothing is streamed from the host.
pub fn memory_detail(reporter: &Reporter, candidate: &Candidate, fits: bool) -> DeploymentDetail {
    let instances = reporter.instances(candidate);
    let evaluation = reporter.evaluate(candidate, &instances, &mut ());
    let spilled = evaluation.spilled.filter(|_| fits || candidate.offload.streamed().is_none());
    held(reporter, candidate, &instances, &Evaluation { spilled, ..evaluation })
}

/// The part of the details that does not depend on time.
fn held(
    reporter: &Reporter,
    candidate: &Candidate,
    instances: &[PreparedInstance],
    evaluation: &Evaluation<Qty<f64>>,
) -> DeploymentDetail {
    let problem = reporter.problem();
    let pools = candidate.pools.iter().zip(reporter.held(candidate, instances, evaluation));
    let prompt = prefill_flops(problem);
    let away = offloaded_quantiles(&evaluation.memory, evaluation.spilled, problem, candidate);
    DeploymentDetail {
        pools: pools
            .map(|(pool, held)| PoolMemory {
                role: pool.role,
                label: pool.plan.label(),
                memory: memory(&held, evaluation.spilled, problem, candidate),
            })
            .collect(),
        constraints: vec![],
        percentiles: vec![],
        phases: vec![],
        prefill_tok_s: None,
        prefill_interval: None,
        prefill_flops: prompt.flops,
        prefill_flops_noncausal_without_head: prompt.noncausal_without_head,
        host_memory_peak_bytes: held_on_node(problem, candidate, evaluation.spilled.map_or(0.0, Qty::value)),
        host_memory_interval: away.map(|[p10, p50, p90]| {
            let [p10, p50, p90] = [p10, p50, p90].map(|bytes| held_on_node(problem, candidate, bytes));
            Quantiles { p10, p50, p90 }
        }),
        evidence: BTreeMap::new(),
    }
}
