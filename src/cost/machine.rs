//! The constants that operator costs use: a device with one runtime and one set of formats.

use std::sync::Arc;

use super::calibration::ConstantMultipliers;
use super::host::HostMachine;
use super::roofline::RooflineParams;
use crate::figures;
use crate::plan::group::TierShape;
use crate::plan::parallel::Phase;
use crate::plan::shard::ROLES;
use crate::quantity::datum::Datum;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::spec::constant::{CalibratedConstant, calibrated_constants};
use crate::spec::runtime::{PagePool, SchedulerPolicy, StepPolicy};

figures! {
    /// Constants of one device.
    Chip {
        /// Peak memory bandwidth.
        bandwidth,
        /// Dense peak for matrices in the weight format, in FLOP/s.
        weight_peak,
        /// Dense peak for matrices in the model dtype, in FLOP/s.
        native_peak,
        /// Dense peak for attention, in FLOP/s.
        attention_peak,
        /// Bytes of a weight in the weight format, scales included.
        quantised_bytes,
        /// Bytes of a weight in the model dtype.
        native_bytes,
        /// Bytes of an activation.
        activation_bytes,
        /// Bytes of an element of the KV cache.
        kv_bytes,
        /// Achieved fraction of the peak in matrix products.
        gemm_compute,
        /// Achieved fraction of the bandwidth in matrix products.
        gemm_memory,
        /// Achieved fraction of the peak in prefill attention.
        attention_compute,
        /// Achieved fraction of the bandwidth in decode attention.
        attention_memory,
        /// Achieved fraction of the peak in expert products.
        moe_compute,
        /// Achieved fraction of the bandwidth in expert products.
        moe_memory,
        /// Gap between the kernels of one layer.
        launch_per_layer,
        /// Launch time per kernel of a layer.
        kernel_launch,
        /// Additional time per quantised matrix product.
        quantised_launch,
        /// Routing time per expert layer.
        experts_launch,
        /// Host time per step.
        host_per_step,
        /// Host time per sequence of a step.
        host_per_sequence,
        /// Additional wait for the first token per concurrent request.
        request_work,
        /// Fixed time of a collective of any size.
        collective_latency,
        /// Achieved fraction of the link rate in collectives.
        collective_bandwidth,
        /// Decode delay caused by a concurrent prefill, as a multiple of the prefill time.
        prefill_interference,
        /// Request overhead before prefill.
        request_overhead,
        /// Queued prompts ahead of a new one, per square root of the requests of a rank.
        prompt_queue,
        /// Queued prompts ahead of a new one, per request of a rank.
        prompt_burst,
        /// Decode steps that a new request waits for.
        step_wait,
        /// Planned utilisation of a prefill pool.
        prefill_utilization,
        /// Memory visible to software.
        capacity,
        /// Fraction of the visible memory that the runtime uses.
        utilization,
        /// Runtime buffers, in bytes.
        buffers,
        /// Weights of a device that are streamed whatever is free, in bytes.
        least_streamed,
        /// Bytes reserved per logit for sampling.
        sampler_bytes,
        /// Fraction of the KV cache lost to fragmentation.
        fragmentation,
        /// Fraction of the remaining output that is reserved at admission.
        answer_reserved,
        /// Tokens per page of the KV cache.
        block_tokens,
        /// Token budget of a step.
        max_batched_tokens,
    }
}

macro_rules! constant_fields {
    ($($Name:ident $key:ident $Kind:ident $Section:ident,)*) => {
        impl<T> Chip<T> {
            /// The calibrated constant `of`.
            pub fn constant(&self, of: CalibratedConstant) -> &T {
                match of { $(CalibratedConstant::$Name => &self.$key,)* }
            }

            /// The calibrated constant `of`, to change.
            pub fn constant_mut(&mut self, of: CalibratedConstant) -> &mut T {
                match of { $(CalibratedConstant::$Name => &mut self.$key,)* }
            }
        }
    };
}
calibrated_constants!(constant_fields);

figures! {
    /// Constants of one tier of the interconnect.
    PricedLink {
        /// Bandwidth per direction and device.
        bandwidth,
        /// Latency of one small message.
        latency,
    }
}

figures! {
    /// How long prompts wait for others, next to requests that decode.
    HeldPrompts {
        /// Steps, at most.
        steps,
        /// Part of the token budget of a step at which they wait no longer.
        tokens_ratio,
    }
}

figures! {
    /// Memory that a server leaves free for activations and graphs, beyond that of a server on one device.
    ShapeHeadroom {
        /// For each further device.
        per_device,
        /// For each sequence of decode graphs.
        per_sequence,
        /// The same for each attention data-parallel rank.
        per_rank_sequence,
        /// The same on top in large graphs.
        per_rank_sequence_of_many,
        /// Sequences above which graphs are large.
        many_sequences,
        /// Ranks of a stage up to which graphs have few sequences.
        narrow_ranks,
        /// Sequences of graphs with that number of ranks.
        narrow_sequences,
        /// Sequences of graphs with more ranks.
        wide_sequences,
        /// Graphs of prompts with latent attention.
        latent_prompts,
        /// Graphs of prompts with other attention.
        prompts,
        /// The same for each token of a step.
        per_prompt_token,
        /// Bytes that are left in any shape.
        least_free,
    }
}

/// A device, its interconnect, and the roles that the weight format quantises.
#[derive(Clone, Debug)]
pub struct Machine<T> {
    /// The device.
    pub chip: Chip<T>,
    /// Achieved fraction of the peak in the matrix products of decode, where the device's file states one.
    pub decode_compute: Option<T>,
    /// Whether arithmetic and loads take turns in decode, as on a processor whose decode has a peak of its own.
    pub in_turn: bool,
    /// Peak of the vector units, where the device's file states one.
    pub vector_peak: Option<T>,
    /// Tiers, innermost first.
    pub links: Vec<PricedLink<T>>,
    pub shapes: Vec<TierShape>,
    /// The roles stored in the weight format. All others are in the model dtype.
    pub quantised: [bool; ROLES],
    /// Sequences reserved for sampling, where the runtime fixes their number.
    pub max_sequences: Option<T>,
    /// Memory that a server leaves free by its shape, where the runtime decides so.
    pub by_shape: Option<ShapeHeadroom<T>>,
    /// Draft tokens of a sequence that the runtime verifies in its start-up profile, where it does not take all.
    pub sampler_drafts: Option<T>,
    /// Pages of the KV cache of layers that keep entries for several tokens, where the runtime has one pool for all.
    pub page_pool: Option<Arc<PagePool>>,
    /// Elements and bytes of an entry of such a pool, where its format has parts in others.
    pub pool_entry: Option<(u64, u64)>,
    /// How the runtime makes up its steps, where that is known.
    pub policy: Option<StepPolicy>,
    /// How long the scheduler holds new prompts back, where launch flags say so.
    pub held: Option<HeldPrompts<T>>,
    /// Multipliers that a reading applies to the constants of the device; none are left in a machine that was read.
    pub calibration: Vec<ConstantMultipliers>,
    /// Factor of one's own measurements on the memory except the KV cache, where there are any.
    pub memory_correction: Option<T>,
    /// The host behind the device, where the runtime computes on it.
    pub host: Option<Box<HostMachine<T>>>,
    /// The machine as prefill workers use it, where their weight format is another.
    pub prefill: Option<Box<Machine<T>>>,
}

impl<T> Machine<T> {
    /// The rules of its scheduler, where the closed form follows them.
    pub fn formula_policy(&self) -> Option<StepPolicy> {
        self.policy.and_then(StepPolicy::in_formulas)
    }

    /// Whether `ranks` attention ranks hold prompts back until each of them has one: those of TensorRT-LLM.
    pub fn ranks_wait_together(&self, ranks: u64) -> bool {
        ranks > 1 && self.held.is_some() && self.policy.is_some_and(|it| it.like == SchedulerPolicy::Trtllm)
    }

    /// The machine with the weight format of a phase.
    #[inline(always)]
    pub fn of(&self, phase: Phase) -> &Machine<T> {
        match (phase, &self.prefill) {
            (Phase::Prefill, Some(prefill)) => prefill,
            (Phase::Prefill, None) | (Phase::Decode, _) => self,
        }
    }

    /// The device in decode, where its matrix products reach another fraction of the peak. The arithmetic of a processor is
    /// that of one unit, which computes the attention too.
    #[inline(always)]
    pub fn decode_chip(&self) -> Option<Chip<T>>
    where
        T: Copy,
    {
        let chip = self.chip;
        self.decode_compute.map(|compute| Chip {
            gemm_compute: compute,
            moe_compute: compute,
            attention_compute: if self.in_turn { compute } else { chip.attention_compute },
            ..chip
        })
    }

    /// Index of the tier that joins all devices. There may be links beyond it.
    #[inline(always)]
    pub fn outermost(&self) -> usize {
        self.shapes.len().saturating_sub(1)
    }
}

impl Machine<Datum> {
    /// The same machine in another reading, its constants calibrated.
    pub fn read<R: Reading>(&self, read: &R) -> Machine<Qty<R::N>> {
        let mut chip = self.chip.map(|datum| read.datum(datum));
        for one in &self.calibration {
            let constant = chip.constant_mut(one.of);
            *constant = one.apply(read, *constant);
        }
        Machine {
            chip,
            decode_compute: self.decode_compute.as_ref().map(|datum| read.datum(datum)),
            in_turn: self.in_turn,
            vector_peak: self.vector_peak.as_ref().map(|datum| read.datum(datum)),
            links: self.links.iter().map(|link| link.map(|datum| read.datum(datum))).collect(),
            shapes: self.shapes.clone(),
            quantised: self.quantised,
            max_sequences: self.max_sequences.as_ref().map(|datum| read.datum(datum)),
            by_shape: self.by_shape.as_ref().map(|reserve| reserve.map(|datum| read.datum(datum))),
            sampler_drafts: self.sampler_drafts.as_ref().map(|datum| read.datum(datum)),
            page_pool: self.page_pool.clone(),
            pool_entry: self.pool_entry,
            policy: self.policy,
            held: self.held.as_ref().map(|held| held.map(|datum| read.datum(datum))),
            calibration: Vec::new(),
            memory_correction: self.memory_correction.as_ref().map(|datum| read.datum(datum)),
            host: self.host.as_ref().map(|host| Box::new(host.read(read))),
            prefill: self.prefill.as_ref().map(|prefill| Box::new(prefill.read(read))),
        }
    }
}

impl<N: Num> Chip<Qty<N>> {
    #[inline(always)]
    pub fn weight_bytes(&self, quantised: bool) -> Qty<N> {
        if quantised { self.quantised_bytes } else { self.native_bytes }
    }

    #[inline(always)]
    fn peak(&self, quantised: bool) -> Qty<N> {
        if quantised { self.weight_peak } else { self.native_peak }
    }

    /// Constants of the roofline for matrix products.
    #[inline(always)]
    pub fn gemm(&self, quantised: bool) -> RooflineParams<Qty<N>> {
        let (peak, bandwidth) = (self.peak(quantised), self.bandwidth);
        RooflineParams { peak, bandwidth, compute: self.gemm_compute, memory: self.gemm_memory }
    }

    /// Constants of the roofline for expert products.
    #[inline(always)]
    pub fn moe(&self, quantised: bool) -> RooflineParams<Qty<N>> {
        let (peak, bandwidth) = (self.peak(quantised), self.bandwidth);
        RooflineParams { peak, bandwidth, compute: self.moe_compute, memory: self.moe_memory }
    }

    /// Constants of the roofline for attention.
    #[inline(always)]
    pub fn attention(&self) -> RooflineParams<Qty<N>> {
        let (peak, bandwidth) = (self.attention_peak, self.bandwidth);
        RooflineParams { peak, bandwidth, compute: self.attention_compute, memory: self.attention_memory }
    }
}
