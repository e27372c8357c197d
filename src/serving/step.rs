//! One step of one instance: operators in dependency order, layer by layer, stage by stage.

use super::encode::encode;
use super::hosted::{HostedLayer, away, counted};
use super::instance::Instance;
use super::step_part::{StepPart, Wait, WaitKind};
use crate::cost::batch::Batch;
use crate::cost::collective::{CollectiveCost, cost_by_leg};
use crate::cost::machine::Machine;
use crate::cost::roofline::Cost;
use crate::cost::task::price;
use crate::graph::operator::Operator;
use crate::plan::collective::Collective;
use crate::plan::parallel::Phase;
use crate::plan::shard::{ShardedBlock, ShardedModel, Task, TaskStep};
use crate::quantity::count::Count;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::SECOND;

/// Observes the costs of a step.
pub trait CostObserver<N> {
    /// Announces the part to which the next observations belong.
    #[inline(always)]
    fn on_part(&mut self, _phase: Phase, _part: StepPart) {}
    /// A wait outside the layers.
    #[inline(always)]
    fn on_wait(&mut self, _phase: Phase, _wait: &Wait<Qty<N>>) {}
    /// A leg of a collective on this tier of the interconnect, without its launch, repeated `times` times. It is part of
    /// the operator or the wait that follows.
    #[inline(always)]
    fn on_leg(&mut self, _phase: Phase, _tier: usize, _times: u64, _leg: &CollectiveCost<Qty<N>>) {}
    /// `step` of `block` takes this cost in one layer; the block represents this many layers.
    fn on_operator(&mut self, phase: Phase, block: &ShardedBlock, step: &TaskStep, cost: &Cost<Qty<N>>);
    /// A wait of `time`, repeated `times` times, because of `what`.
    fn on_idle(&mut self, phase: Phase, what: &'static str, times: u64, time: Qty<N>);
}

/// No observer: the search.
impl<N> CostObserver<N> for () {
    #[inline(always)]
    fn on_operator(&mut self, _: Phase, _: &ShardedBlock, _: &TaskStep, _: &Cost<Qty<N>>) {}
    #[inline(always)]
    fn on_idle(&mut self, _: Phase, _: &'static str, _: u64, _: Qty<N>) {}
}

/// Time of one step.
#[derive(Clone, Copy, Debug)]
pub struct StepTime<T> {
    /// Of the whole step, all stages in sequence.
    pub total: T,
    /// Of the slowest pipeline stage.
    pub slowest: T,
    /// Time that a device's arithmetic is busy, over all stages.
    pub compute_time: T,
    /// Time that a device's memory is busy, over all stages.
    pub memory_time: T,
}

/// Sums over one layer of a block.
#[derive(Clone, Copy)]
pub(super) struct LayerTime<T> {
    pub(super) time: T,
    pub(super) compute_time: T,
    pub(super) memory_time: T,
}

/// The operators of a layer that a batch passes.
#[derive(Clone, Copy)]
pub(super) enum Passes<'a, T> {
    /// All.
    All,
    /// All; those that work token by token have the tokens of this batch, prompts included.
    With(&'a Batch<T>),
    /// Those that work sequence by sequence: the others have its tokens in a batch of [`Passes::With`].
    Sequences,
}

/// One layer, all its operators with the same batch.
pub(super) fn layer<R: Reading>(
    read: &R,
    block: &ShardedBlock,
    phase: Phase,
    batch: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    launch: bool,
    watch: &mut impl CostObserver<R::N>,
) -> LayerTime<Qty<R::N>> {
    layer_of(read, block, (phase, batch), Passes::All, machine, launch, watch)
}

/// One layer of `batch`, in the operators that it passes.
pub(super) fn layer_of<R: Reading>(
    read: &R,
    block: &ShardedBlock,
    (phase, batch): (Phase, &Batch<Qty<R::N>>),
    passes: Passes<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    launch: bool,
    watch: &mut impl CostObserver<R::N>,
) -> LayerTime<Qty<R::N>> {
    read.within(format_args!("{}", block.name), || {
        let nothing = Qty::literal(0.0 * SECOND);
        let mut sum = LayerTime { time: nothing, compute_time: nothing, memory_time: nothing };
        let mut running = nothing;
        let mut fused: Option<Qty<R::N>> = None;
        for step in &block.steps {
            let (phase, batch) = match passes {
                Passes::All => (phase, batch),
                Passes::Sequences if step.task.is_per_sequence() => (phase, batch),
                Passes::Sequences => continue,
                Passes::With(_) if step.task.is_per_sequence() => (phase, batch),
                // With that number of tokens, the kernels are those of prompts.
                Passes::With(all) => (Phase::Prefill, all),
            };
            let computes = matches!(&step.task, Task::Compute { .. });
            let inside = is_fused(&step.task);
            let vector = fused.filter(|_| computes && !inside);
            let cost = read.within(format_args!("{}", step.name), || {
                let leg = |tier, leg: &_| watch.on_leg(phase, tier, block.layers.value, leg);
                let alone = price(read, &step.task, phase, batch, machine, &block.weights, leg);
                let cost = vector.map_or(alone, |vector| alone.with_vector_work(vector));
                Cost { time: cost.time.result(), ..cost }
            });
            watch.on_operator(phase, block, step, &cost);
            if inside {
                if machine.vector_peak.is_some() {
                    fused = Some(fused.map_or(cost.time, |sum| sum + cost.time));
                }
                continue;
            }
            if vector.is_some() {
                fused = None;
            }
            match &step.task {
                // The step waits for the slower of the two.
                Task::Communicate(Collective { overlaps: true, .. }) => running = running.max(cost.time),
                _ => {
                    sum.time = sum.time + running;
                    running = cost.time;
                }
            }
            sum.compute_time = sum.compute_time + cost.compute_time;
            sum.memory_time = sum.memory_time + cost.memory_time;
        }
        let mut time = sum.time + running;
        if launch {
            let launches = launches(read, block, machine);
            watch.on_idle(phase, "launches", block.layers.value, launches);
            time = time + launches;
        }
        LayerTime { time: time.is(&LAYER).result(), ..sum }
    })
}

/// Whether a task runs on the vector units inside the kernel of a later one.
pub fn is_fused(task: &Task) -> bool {
    matches!(task, Task::Compute { operator, .. } if operator.is_fused())
}

/// Total wait between the kernels of a layer.
fn launches<R: Reading>(read: &R, block: &ShardedBlock, machine: &Machine<Qty<R::N>>) -> Qty<R::N> {
    let (mut kernels, mut products, mut groups) = (0, 0, 0);
    for step in &block.steps {
        let Task::Compute { operator, role, .. } = &step.task else { continue };
        let kind = launch_kind(operator);
        let product = matches!(kind, LaunchKind::Product | LaunchKind::Experts);
        kernels += u64::from(kind != LaunchKind::Fused);
        products += u64::from(product && machine.quantised[*role as usize]);
        groups += u64::from(kind == LaunchKind::Experts);
    }
    let number = |symbol, value| read.count(Count::derived(symbol, value, "operators of this layer"));
    let kernels = number("kernels", kernels);
    let quantised = number("quantised_products", products);
    let experts = number("expert_groups", groups);
    let chip = &machine.chip;
    let gaps = chip.launch_per_layer + kernels * chip.kernel_launch + quantised * chip.quantised_launch;
    (gaps + experts * chip.experts_launch).is(&LAUNCHES)
}

/// How an operator's kernels are launched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LaunchKind {
    /// Fused with the operator that follows.
    Fused,
    /// One kernel.
    Kernel,
    /// One kernel, and one that quantises its input where the matrix is quantised.
    Product,
    /// As a product, and the kernels that sort tokens by expert.
    Experts,
}

fn launch_kind(operator: &Operator) -> LaunchKind {
    match operator {
        // A residual sum is fused with the norm that follows it, vector work with the attention.
        Operator::Add { .. } | Operator::Rope { .. } | Operator::KvCache { .. } | Operator::Softmax(_) => {
            LaunchKind::Fused
        }
        Operator::Linear { .. } | Operator::LatentAttention(_) => LaunchKind::Product,
        Operator::Experts(_) => LaunchKind::Experts,
        Operator::Input { .. }
        | Operator::Embedding { .. }
        | Operator::Norm { .. }
        | Operator::Attention(_)
        | Operator::CrossAttention(_)
        | Operator::CompressedAttention(_)
        | Operator::HyperConnection { .. }
        | Operator::Indexer { .. }
        | Operator::GroupedLinear { .. }
        | Operator::ShortConv { .. }
        | Operator::Recurrence(_)
        | Operator::Activation { .. }
        | Operator::Router { .. }
        | Operator::Sampling { .. } => LaunchKind::Kernel,
    }
}

/// Time of one step of `instance` in `phase`, including the host.
pub fn step<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    batch: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> StepTime<Qty<R::N>> {
    let pass = pass(read, instance, phase, batch, machine, watch);
    with_host(pass, (phase, batch.sequences), machine, watch)
}

/// A pass of `sequences` that the host has prepared.
pub(super) fn with_host<N: Num>(
    pass: StepTime<Qty<N>>,
    (phase, sequences): (Phase, Qty<N>),
    machine: &Machine<Qty<N>>,
    watch: &mut impl CostObserver<N>,
) -> StepTime<Qty<N>> {
    watch.on_part(phase, StepPart::Host);
    let host = (machine.chip.host_per_step + sequences * machine.chip.host_per_sequence).is(&HOST);
    watch.on_idle(phase, "host", 1, host);
    let (total, slowest) = (host + pass.total, host + pass.slowest);
    StepTime { total: total.is(&TOTAL).result(), slowest: slowest.is(&SLOWEST), ..pass }
}

/// Time of the same step on the devices alone, without the host.
pub fn pass<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    batch: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> StepTime<Qty<R::N>> {
    let model = instance.sharded(phase);
    // All draft tokens are verified, so the head processes all of them.
    let seen = if phase == Phase::Decode && instance.draft.is_some() { *batch } else { batch.last_token() };
    watch.on_part(phase, StepPart::Embedding);
    let embedding = layer(read, &model.embedding, phase, batch, machine, false, watch);
    watch.on_part(phase, StepPart::Head);
    let head = layer(read, &model.head, phase, &seen, machine, false, watch);
    let images = model.encoder.as_ref().filter(|_| phase == Phase::Prefill);
    let images = images.map(|encoder| encode(read, encoder, machine, watch));
    let blocks: Vec<_> = (0..model.blocks.len())
        .map(|at| places(read, instance, at, (phase, batch), machine, watch))
        .collect();
    let handover = handover(read, model, batch, machine, watch);
    staged(read, instance, &PassParts { embedding, head, images, blocks, handover })
}

/// The times of the parts of a pass.
pub(super) struct PassParts<T> {
    pub(super) embedding: LayerTime<T>,
    pub(super) head: LayerTime<T>,
    /// Of the encoder, before a prefill.
    pub(super) images: Option<LayerTime<T>>,
    /// One layer of each block.
    pub(super) blocks: Vec<Places<T>>,
    pub(super) handover: Option<T>,
}

/// The parts of a pass on their stages.
pub(super) fn staged<R: Reading>(
    read: &R,
    instance: &Instance,
    parts: &PassParts<Qty<R::N>>,
) -> StepTime<Qty<R::N>> {
    let PassParts { embedding, head, images, blocks, handover } = parts;
    let (mut total, mut slowest): (Option<Qty<R::N>>, Option<Qty<R::N>>) = (None, None);
    for (number, kind) in instance.kinds.iter().enumerate() {
        let stage = read.within(format_args!("stage{number}"), || {
            let mut stage = Qty::literal(0.0 * SECOND);
            if kind.first {
                stage = stage + embedding.time;
                stage = images.as_ref().map_or(stage, |images| stage + images.time);
            }
            for (at, (&count, block)) in kind.layers.iter().zip(blocks).enumerate() {
                let away = kind.hosted.get(at).copied().unwrap_or(0);
                for (layers, one) in [(count - away, &block.device), (away, &block.hosted)] {
                    if let Some(one) = one.as_ref().filter(|_| layers > 0) {
                        stage = stage + read.count(Count::plan("layers_here", layers)) * one.time;
                    }
                }
            }
            stage = if kind.last { stage + head.time } else { handover.map_or(stage, |h| stage + h) };
            stage.is(&STAGE).result()
        });
        let all = read.count(Count::plan("stages_like_this", kind.times)) * stage;
        total = Some(total.map_or(all, |sum| sum + all));
        slowest = Some(slowest.map_or(stage, |most| most.max(stage)));
    }
    let (total, slowest) = (total.expect("a stage at least"), slowest.expect("a stage at least"));
    let over = |pick: fn(&LayerTime<Qty<R::N>>) -> Qty<R::N>| {
        let layers = blocks.iter().flat_map(|block| {
            [(block.here, &block.device), (block.away, &block.hosted)]
                .map(|(layers, one)| one.as_ref().map(|one| read.count(layers) * pick(one)))
        });
        let all = layers.flatten().fold(pick(embedding) + pick(head), |a, b| a + b);
        images.as_ref().map_or(all, |images| all + pick(images))
    };
    StepTime {
        total,
        slowest,
        compute_time: over(|layer| layer.compute_time).is(&COMPUTING),
        memory_time: over(|layer| layer.memory_time).is(&MOVING),
    }
}

/// Time of the transfer to the next pipeline stage, if there are several.
pub(super) fn handover<R: Reading>(
    read: &R,
    model: &ShardedModel,
    batch: &Batch<Qty<R::N>>,
    machine: &Machine<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> Option<Qty<R::N>> {
    let collective = model.handover.as_deref()?;
    let (kind, times) = (WaitKind::Handover, model.plan.pp.saturating_sub(1));
    let cost = read.within(format_args!("handover"), || {
        let leg = |tier, leg: &_| watch.on_leg(model.phase, tier, times, leg);
        let cost = cost_by_leg(read, collective, batch, machine, leg);
        CollectiveCost { time: cost.time.result(), ..cost }
    });
    watch.on_wait(model.phase, &Wait { kind, times, time: cost.time, wire: cost.wire });
    Some(cost.time)
}

/// One layer of a block where it lies: on the device, or with a part in host memory.
pub(super) struct Places<T> {
    here: Count,
    device: Option<LayerTime<T>>,
    away: Count,
    hosted: Option<LayerTime<T>>,
}

impl<T> Places<T> {
    /// A layer of a block of `layers`, all of them on the device.
    pub(super) fn on_device(layers: Count, time: LayerTime<T>) -> Places<T> {
        Places { here: layers, device: Some(time), away: Count::plan("layers_here", 0), hosted: None }
    }
}

fn places<R: Reading>(
    read: &R,
    instance: &Instance,
    at: usize,
    (phase, batch): (Phase, &Batch<Qty<R::N>>),
    machine: &Machine<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> Places<Qty<R::N>> {
    let model = instance.sharded(phase);
    let block = &model.blocks[at];
    let nowhere = Count::plan("layers_here", 0);
    let (Some(tensors), Some(host), away @ 1..) =
        (instance.hosted, machine.host.as_deref(), away(&instance.kinds, at))
    else {
        watch.on_part(phase, StepPart::Layer { block: at, hosted: false });
        let device = Some(layer(read, block, phase, batch, machine, true, watch));
        return Places { here: block.layers, device, away: nowhere, hosted: None };
    };
    let (rest, there) = (counted(block, block.layers.value - away), counted(block, away));
    watch.on_part(phase, StepPart::Layer { block: at, hosted: false });
    let device = (rest.layers.value > 0).then(|| layer(read, &rest, phase, batch, machine, true, watch));
    watch.on_part(phase, StepPart::Layer { block: at, hosted: true });
    let hosted = HostedLayer { tensors, model, block: &there, phase, batch, machine, host };
    let hosted = Some(hosted.time(read, watch));
    Places { here: rest.layers, device, away: there.layers, hosted }
}

/// The batch of a step with `sequences` per attention rank.
#[inline(always)]
pub fn batch<R: Reading>(
    read: &R,
    instance: &Instance,
    phase: Phase,
    sequences: Qty<R::N>,
    new: Qty<R::N>,
    past: Qty<R::N>,
) -> Batch<Qty<R::N>> {
    let plan = &instance.plan;
    let dp = read.count(Count::plan("dp", plan.dp));
    let one = Qty::from(1.0);
    let over = match phase {
        Phase::Prefill => {
            let cp = read.count(Count::plan("cp", plan.cp));
            (cp, one, dp * cp)
        }
        Phase::Decode => (one, read.count(plan.cache_ranks()), dp),
    };
    Batch::new((sequences, new, past), over)
}

crate::formulas! {
    LAUNCHES {
        symbol: "layer_launches",
        unit: SECOND,
        why: "launch of each kernel, quantisation of activations before quantised matrix products, and routing before experts",
        cite: "operators of the model graph counted; times fitted on published serving measurements, per runtime",
    }
    HOST {
        symbol: "host_time",
        unit: SECOND,
        why: "a scheduler prepares each step and processes each of its sequences; every attention rank has its own scheduler",
        cite: "vLLM data parallel deployment: a separate engine core process for each rank; fitted on published serving measurements, per runtime",
    }
    LAYER {
        symbol: "layer_time",
        unit: SECOND,
        why: "kernels of a layer depend on each other and run in sequence, with gaps between them; where two overlap, the step waits for the slower",
        cite: "model graph; gaps fitted on published serving measurements",
    }
    STAGE {
        symbol: "stage_time",
        unit: SECOND,
        why: "the layers of a stage in sequence, with the embedding on the first stage and the head on the last",
        cite: "Huang et al. 2019 (GPipe)",
    }
    TOTAL {
        symbol: "step_time",
        unit: SECOND,
        why: "a token passes all stages in sequence; the host prepares each step",
        cite: "model graph",
    }
    SLOWEST {
        symbol: "slowest_stage",
        unit: SECOND,
        why: "the slowest stage sets the speed of a pipeline",
        cite: "Huang et al. 2019 (GPipe)",
    }
    COMPUTING {
        symbol: "computing_time",
        unit: SECOND,
        why: "time that the arithmetic of a device is busy with the operations of the step",
        cite: "Williams, Waterman, Patterson 2009 (roofline)",
    }
    MOVING {
        symbol: "moving_time",
        unit: SECOND,
        why: "time that the memory of a device is busy with the bytes of the step",
        cite: "Williams, Waterman, Patterson 2009 (roofline)",
    }
}
