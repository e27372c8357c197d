//! Latency breakdown: every operator of a deployment's steps, with its bottleneck.

use schemars::JsonSchema;
use serde::Serialize;

use crate::cost::roofline::Cost;
use crate::graph::operator::Operator;
use crate::graph::tensor::Role;
use crate::plan::parallel::Phase;
use crate::plan::shard::{ShardedBlock, Task, TaskStep};
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::candidate::{Candidate, PoolRole};
use crate::search::problem::Problem;
use crate::serving::step::CostObserver;

/// Bottleneck of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
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
    /// Its name.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
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

impl Module {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Module::Attention => "attention",
            Module::FeedForward => "feed-forward",
            Module::Experts => "experts",
            Module::Residual => "norms, residual",
            Module::Vocabulary => "vocabulary",
            Module::Images => "images",
            Module::Communication => "communication",
            Module::Overhead => "overhead",
        }
    }

    fn of(block: &ShardedBlock, task: &Task) -> Module {
        let Task::Compute { operator, role, .. } = task else { return Module::Communication };
        if block.encoder {
            return Module::Images;
        }
        match operator {
            Operator::Attention { .. }
            | Operator::LatentAttention { .. }
            | Operator::CrossAttention { .. }
            | Operator::CompressedAttention { .. }
            | Operator::Indexer { .. }
            | Operator::GroupedLinear { .. }
            | Operator::ShortConv { .. }
            | Operator::Recurrence { .. } => Module::Attention,
            Operator::Activation { .. } => Module::FeedForward,
            Operator::Router { .. } | Operator::Experts { .. } => Module::Experts,
            Operator::Embedding { .. } | Operator::Sampling { .. } => Module::Vocabulary,
            Operator::Input { .. }
            | Operator::Norm { .. }
            | Operator::Add { .. }
            | Operator::HyperConnection { .. } => Module::Residual,
            Operator::Linear { .. } => match role {
                Role::Attention | Role::Indexer => Module::Attention,
                Role::Expert | Role::SharedExpert | Role::Router => Module::Experts,
                Role::Embedding | Role::LmHead | Role::Tower => Module::Vocabulary,
                Role::Mlp | Role::Norm | Role::Bias | Role::Sink | Role::Recurrence => Module::FeedForward,
            },
        }
    }
}

/// One operator of a step, over all its layers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    /// Speed of light, ms: operations at the dense peak, bytes at full bandwidth, wire bytes at link rate.
    pub speed_of_light_ms: f64,
}

/// Every class, in report order.
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

    /// Seconds of a class.
    pub fn of(&self, class: Class) -> f64 {
        self.seconds[class as usize]
    }

    /// The sum over all classes.
    pub fn total(&self) -> f64 {
        self.seconds.iter().sum()
    }
}

/// Collects lines while a candidate is evaluated.
#[derive(Default)]
struct BreakdownCollector {
    lines: Vec<OperatorLine>,
}

impl BreakdownCollector {
    fn line(
        &mut self,
        place: (Phase, &str, &str),
        layers: u64,
        (part_of, class): (Module, Class),
        (time, floor): (f64, f64),
    ) {
        let all = |seconds: f64| seconds * layers as f64 * 1e3;
        self.lines.push(OperatorLine {
            phase: place.0,
            block: place.1.to_string(),
            module: place.2.to_string(),
            part_of,
            layers,
            class,
            time_ms: all(time),
            speed_of_light_ms: all(floor),
        });
    }
}

impl CostObserver<f64> for BreakdownCollector {
    fn on_operator(&mut self, phase: Phase, block: &ShardedBlock, step: &TaskStep, cost: &Cost<Qty<f64>>) {
        let class = match &step.task {
            Task::Communicate(_) => Class::Communication,
            Task::Compute { .. } if cost.compute_time.value() > cost.memory_time.value() => Class::Compute,
            Task::Compute { .. } => Class::Memory,
        };
        let times = (cost.time.value(), cost.roofline_time.value());
        let kind = (Module::of(block, &step.task), class);
        self.line((phase, block.name, step.name), block.layers.value, kind, times);
    }

    fn on_idle(&mut self, phase: Phase, what: &'static str, times: u64, time: Qty<f64>) {
        let kind = (Module::Overhead, Class::Overhead);
        self.line((phase, "step", what), times, kind, (time.value(), 0.0));
    }
}

/// The breakdown of a deployment's steps.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Breakdown {
    /// Operators of a prefill and of a decode step.
    pub lines: Vec<OperatorLine>,
}

impl Breakdown {
    /// Evaluates the candidate and records its operators; of several pools of a role, the first.
    pub fn of(problem: &Problem, candidate: &Candidate) -> Breakdown {
        let mut collect = BreakdownCollector::default();
        let together = candidate.pools[0].role == PoolRole::Aggregated;
        let wanted: &[PoolRole] =
            if together { &[PoolRole::Aggregated] } else { &[PoolRole::Prefill, PoolRole::Decode] };
        let first = |duty: &PoolRole| candidate.pools.iter().find(|pool| pool.role == *duty).cloned();
        let pools = wanted.iter().filter_map(first).collect();
        Candidate { pools, ..candidate.clone() }.evaluate(&Plain, problem, &mut collect);
        Breakdown { lines: collect.lines }
    }

    /// Time of a phase by bottleneck.
    pub fn by_class(&self, phase: Phase) -> ByClass {
        let mut by = ByClass::default();
        for line in self.lines.iter().filter(|line| line.phase == phase) {
            by.seconds[line.class as usize] += line.time_ms / 1e3;
        }
        by
    }
}
