//! Latency breakdown: every operator of a deployment's steps, with its bottleneck.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shard::Shard;
use crate::cost::collective::CollectiveCost;
use crate::cost::roofline::Cost;
use crate::graph::operator::Operator;
use crate::graph::tensor::TensorRole;
use crate::plan::collective::Collective;
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::plan::shard::{ShardedBlock, Task, TaskStep};
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::candidate::{Candidate, PoolPlan};
use crate::search::problem::Problem;
use crate::serving::instance::Instance;
use crate::serving::step::{CostObserver, is_fused};
use crate::serving::step_part::{StepPart, Wait};
use crate::spec::role::Role;

/// Bottleneck of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Compute-bound.
    Compute,
    /// Bound by device-memory bandwidth.
    Memory,
    /// Bound by the interconnect.
    Communication,
    /// Kernel launches and host overhead.
    Overhead,
}

impl Class {
    /// The bottleneck of a task with this cost.
    pub fn of(task: &Task, cost: &Cost<Qty<f64>>) -> Class {
        match task {
            Task::Communicate(_) => Class::Communication,
            Task::Compute { .. } if cost.compute_time.value() > cost.memory_time.value() => Class::Compute,
            Task::Compute { .. } => Class::Memory,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Class::Compute => "compute",
            Class::Memory => "memory",
            Class::Communication => "communication",
            Class::Overhead => "overhead",
        }
    }
}

/// Module that an operator belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Module {
    /// Attention and its projections.
    Attention,
    /// Dense feed-forward networks.
    FeedForward,
    /// Routed and shared experts, and the router.
    Experts,
    /// Norms and the residual stream.
    Residual,
    /// Embedding, vocabulary projection, sampling.
    Vocabulary,
    /// The image encoder.
    Images,
    /// Collectives and transfers between devices.
    Communication,
    /// Kernel launches and host overhead.
    Overhead,
}

/// Every module with its name, in the order of the variants and of legends.
pub const MODULES: [(Module, &str); 8] = [
    (Module::Attention, "attention"),
    (Module::FeedForward, "feed-forward"),
    (Module::Experts, "experts"),
    (Module::Residual, "norms, residual"),
    (Module::Vocabulary, "vocabulary"),
    (Module::Images, "images"),
    (Module::Communication, "communication"),
    (Module::Overhead, "overhead"),
];

crate::rows_by_variant!(MODULES);

impl Module {
    pub fn name(self) -> &'static str {
        MODULES[self as usize].1
    }

    /// The module of a task of `block`.
    pub fn of(block: &ShardedBlock, task: &Task) -> Module {
        let Task::Compute { operator, role, .. } = task else { return Module::Communication };
        if block.encoder {
            return Module::Images;
        }
        match operator {
            Operator::Attention(_)
            | Operator::Rope { .. }
            | Operator::KvCache { .. }
            | Operator::Softmax(_)
            | Operator::LatentAttention(_)
            | Operator::CrossAttention(_)
            | Operator::CompressedAttention(_)
            | Operator::Indexer { .. }
            | Operator::GroupedLinear { .. }
            | Operator::ShortConv { .. }
            | Operator::Recurrence(_) => Module::Attention,
            Operator::Activation { .. } => Module::FeedForward,
            Operator::Router { .. } | Operator::Experts(_) => Module::Experts,
            Operator::Embedding { .. } | Operator::Sampling { .. } => Module::Vocabulary,
            Operator::Input { .. }
            | Operator::Norm { .. }
            | Operator::Add { .. }
            | Operator::HyperConnection { .. } => Module::Residual,
            Operator::Linear { .. } => match role {
                TensorRole::Attention | TensorRole::Indexer => Module::Attention,
                TensorRole::Expert | TensorRole::SharedExpert | TensorRole::Router => Module::Experts,
                TensorRole::Embedding | TensorRole::LmHead | TensorRole::Tower => Module::Vocabulary,
                TensorRole::Mlp
                | TensorRole::Norm
                | TensorRole::Bias
                | TensorRole::Sink
                | TensorRole::Recurrence => Module::FeedForward,
            },
        }
    }
}

/// One operator of a step, over all its layers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OperatorLine {
    /// Prefill or decode.
    pub phase: Phase,
    /// Block of the operator.
    pub block: String,
    /// Name of the operator in the block.
    pub module: String,
    /// Module of the operator.
    pub part_of: Module,
    /// Number of layers of that block.
    pub layers: u64,
    /// Bottleneck.
    pub class: Class,
    /// Time over all layers, ms.
    pub time_ms: f64,
    /// Time on the vector units, ms, of an operator inside the kernel of the one that follows. It is not part of the sum: that
    /// kernel takes the time of the slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fused_ms: Option<f64>,
    /// Speed of light, ms: operations at the dense peak, bytes at full bandwidth, wire bytes at link rate.
    pub speed_of_light_ms: f64,
    /// Speed of light over time: the share of the roofline that is reached; 0 for overhead.
    pub efficiency: f64,
    /// FLOPs of one device over all layers.
    pub flops: f64,
    /// Bytes to and from the memory of one device, over all layers.
    pub bytes: f64,
    /// Bytes that one device sends, over all layers.
    pub wire_bytes: f64,
    /// The part of the operator on one device; absent for collectives and overhead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
}

pub const CLASSES: [Class; 4] = [Class::Compute, Class::Memory, Class::Communication, Class::Overhead];

/// Time of one phase by bottleneck, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ByClass {
    /// In the order of [`Class`].
    pub seconds: [f64; 4],
}

impl ByClass {
    /// The class with the largest time.
    pub fn largest(&self) -> Class {
        let most = CLASSES.into_iter().max_by(|a, b| self.of(*a).total_cmp(&self.of(*b)));
        most.expect("there are four")
    }

    pub fn add(&mut self, class: Class, milliseconds: f64) {
        self.seconds[class as usize] += milliseconds / 1e3;
    }

    /// Seconds of a class.
    pub fn of(&self, class: Class) -> f64 {
        self.seconds[class as usize]
    }

    pub fn total(&self) -> f64 {
        self.seconds.iter().sum()
    }
}

/// `times` times a time, in milliseconds.
pub fn milliseconds(times: u64, time: Qty<f64>) -> f64 {
    time.value() * times as f64 * 1e3
}

#[derive(Clone, Debug)]
pub struct PlacedOperator {
    pub part: StepPart,
    pub line: OperatorLine,
    /// Overlaps with the operator before it: the step waits for the slower of the two.
    pub overlaps: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Breakdown {
    /// Operators of a prefill and of a decode step, in the order of evaluation.
    pub operators: Vec<PlacedOperator>,
    /// Waits outside the layers, by phase.
    pub waits: Vec<(Phase, Wait<f64>)>,
    /// Bytes that operators and waits of a phase send over each tier of the interconnect.
    pub traffic: BTreeMap<(Phase, usize), TierTraffic>,
}

/// The part of a tier of the interconnect in what one device of each pipeline stage sends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TierTraffic {
    /// Bytes.
    pub wire_bytes: f64,
    /// Seconds: the latency of each hop, and the bytes at the achieved fraction of the link rate.
    pub seconds: f64,
}

/// Collects operators while a candidate is evaluated.
pub struct BreakdownCollector {
    found: Breakdown,
    /// Plan of the pool that runs prefill, and of the one that runs decode.
    plans: [ParallelPlan; 2],
    part: StepPart,
}

impl BreakdownCollector {
    fn add(&mut self, line: OperatorLine, overlaps: bool) {
        self.found.operators.push(PlacedOperator { part: self.part, line, overlaps });
    }
}

impl CostObserver<f64> for BreakdownCollector {
    fn on_part(&mut self, _: Phase, part: StepPart) {
        self.part = part;
    }

    fn on_operator(&mut self, phase: Phase, block: &ShardedBlock, step: &TaskStep, cost: &Cost<Qty<f64>>) {
        let overlaps = matches!(&step.task, Task::Communicate(Collective { overlaps: true, .. }));
        let layers = block.layers.value;
        let all = |number: Qty<f64>| number.value() * layers as f64;
        let fused = is_fused(&step.task);
        let nothing = Qty::from(0.0);
        let (time, floor) = if fused { (nothing, nothing) } else { (cost.time, cost.roofline_time) };
        let line = OperatorLine {
            phase,
            block: block.name.to_string(),
            module: step.name.to_string(),
            part_of: Module::of(block, &step.task),
            layers,
            class: Class::of(&step.task, cost),
            time_ms: milliseconds(layers, time),
            fused_ms: fused.then(|| milliseconds(layers, cost.time)),
            speed_of_light_ms: all(floor) * 1e3,
            efficiency: if time.value() > 0.0 { floor.value() / time.value() } else { 0.0 },
            flops: all(cost.flops),
            bytes: all(cost.bytes),
            wire_bytes: all(cost.wire),
            shard: Shard::of(&step.task, &self.plans[phase as usize]),
        };
        self.add(line, overlaps);
    }

    fn on_idle(&mut self, phase: Phase, what: &'static str, times: u64, time: Qty<f64>) {
        let line = OperatorLine {
            phase,
            block: "step".to_string(),
            module: what.to_string(),
            part_of: Module::Overhead,
            layers: times,
            class: Class::Overhead,
            time_ms: milliseconds(times, time),
            fused_ms: None,
            speed_of_light_ms: 0.0,
            efficiency: 0.0,
            flops: 0.0,
            bytes: 0.0,
            wire_bytes: 0.0,
            shard: None,
        };
        self.add(line, false);
    }

    fn on_wait(&mut self, phase: Phase, wait: &Wait<Qty<f64>>) {
        let Wait { kind, times, time, wire } = *wait;
        self.found.waits.push((phase, Wait { kind, times, time: time.value(), wire: wire.value() }));
    }

    fn on_leg(&mut self, phase: Phase, tier: usize, times: u64, leg: &CollectiveCost<Qty<f64>>) {
        let sum = self.found.traffic.entry((phase, tier)).or_default();
        sum.wire_bytes += leg.wire.value() * times as f64;
        sum.seconds += leg.time.value() * times as f64;
    }
}

/// The pools whose steps a breakdown shows: the first that prefills, and the first that decodes.
pub fn shown(candidate: &Candidate) -> [&PoolPlan; 2] {
    let first = |role: Role| candidate.pools.iter().find(|pool| pool.role == role);
    let whole = &candidate.pools[0];
    match whole.role {
        Role::Aggregated => [whole, whole],
        Role::Prefill | Role::Decode => {
            [Role::Prefill, Role::Decode].map(|role| first(role).unwrap_or(whole))
        }
    }
}

/// The candidate with only the pools whose steps a breakdown shows.
pub fn alone(candidate: &Candidate) -> Candidate {
    let [prefill, decode] = shown(candidate);
    let mut pools = vec![prefill.clone()];
    if !std::ptr::eq(prefill, decode) {
        pools.push(decode.clone());
    }
    Candidate { pools, ..*candidate }
}

impl Breakdown {
    /// Evaluates the candidate and records its operators; of several pools of a role, the first.
    pub fn of(problem: &Problem, candidate: &Candidate) -> Breakdown {
        let alone = alone(candidate);
        Breakdown::on(problem, &alone, &alone.instances(problem))
    }

    /// The same for a candidate that is [`alone`], where the instances of its pools are prepared.
    pub fn on(problem: &Problem, alone: &Candidate, instances: &[impl Borrow<Instance>]) -> Breakdown {
        Breakdown::collected(shown(alone).map(|pool| pool.plan), |collect| {
            alone.evaluate_on(&Plain, problem, instances, collect);
        })
    }

    /// The operators that `evaluate` shows its observer, by the plans of prefill and decode.
    pub fn collected(plans: [ParallelPlan; 2], evaluate: impl FnOnce(&mut BreakdownCollector)) -> Breakdown {
        let found = Breakdown::default();
        let mut collect = BreakdownCollector { found, plans, part: StepPart::Host };
        evaluate(&mut collect);
        collect.found
    }

    pub fn lines(&self, phase: Phase) -> impl Iterator<Item = &OperatorLine> {
        self.operators.iter().map(|one| &one.line).filter(move |line| line.phase == phase)
    }

    /// Bytes that one device of each stage sends in a phase, transfers between stages included.
    pub fn wire_bytes(&self, phase: Phase) -> f64 {
        let waits = self.waits.iter().filter(|(of, _)| *of == phase);
        let between: f64 = waits.map(|(_, wait)| wait.times as f64 * wait.wire).sum();
        between + self.lines(phase).map(|line| line.wire_bytes).sum::<f64>()
    }

    /// The part of a tier in what one device of each stage sends in a phase.
    pub fn traffic(&self, phase: Phase, tier: usize) -> TierTraffic {
        self.traffic.get(&(phase, tier)).copied().unwrap_or_default()
    }

    pub fn by_class(&self, phase: Phase) -> ByClass {
        let mut by = ByClass::default();
        for line in self.lines(phase) {
            by.add(line.class, line.time_ms);
        }
        by
    }
}

/// Sums the time of decode steps by bottleneck while a deployment is evaluated.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecodeClasses(ByClass);

impl DecodeClasses {
    /// The class with the largest time.
    pub fn largest(&self) -> Class {
        self.0.largest()
    }

    fn add(&mut self, phase: Phase, class: Class, times: u64, time: Qty<f64>) {
        if phase == Phase::Decode {
            self.0.add(class, milliseconds(times, time));
        }
    }
}

impl CostObserver<f64> for DecodeClasses {
    fn on_operator(&mut self, phase: Phase, block: &ShardedBlock, step: &TaskStep, cost: &Cost<Qty<f64>>) {
        self.add(phase, Class::of(&step.task, cost), block.layers.value, cost.time);
    }

    fn on_idle(&mut self, phase: Phase, _: &'static str, times: u64, time: Qty<f64>) {
        self.add(phase, Class::Overhead, times, time);
    }
}
