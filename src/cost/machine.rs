//! The figures that operators are priced with: a device as one runtime drives it in given formats.

use super::margin::PredictionMargin;
use super::roofline::RooflineParams;
use crate::figures;
use crate::plan::group::TierShape;
use crate::plan::shard::ROLES;
use crate::quantity::datum::Datum;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;

figures! {
    /// Figures of one device.
    Chip {
        /// Peak rate of its memory.
        bandwidth,
        /// Dense peak for matrices in the weight format.
        weight_peak,
        /// Dense peak for matrices in the model dtype.
        native_peak,
        /// Dense peak for attention.
        attention_peak,
        /// Bytes of a weight in the weight format, scales included.
        quantised_bytes,
        /// Bytes of a weight in the model dtype.
        native_bytes,
        /// Bytes of an activation.
        activation_bytes,
        /// Bytes of a cached element.
        kv_bytes,
        /// Fraction of the peak that matrix products reach.
        gemm_compute,
        /// Fraction of the bandwidth that matrix products reach.
        gemm_memory,
        /// Fraction of the peak that prefill attention reaches.
        attention_compute,
        /// Fraction of the bandwidth that decode attention reaches.
        attention_memory,
        /// Fraction of the peak that expert products reach.
        moe_compute,
        /// Fraction of the bandwidth that expert products reach.
        moe_memory,
        /// What a layer's kernels wait between them.
        launch_per_layer,
        /// What each kernel of a layer waits for.
        kernel_launch,
        /// What each product of quantised weights waits for besides.
        quantised_launch,
        /// What routing to experts waits for, per layer.
        experts_launch,
        /// What the host needs between steps.
        host_per_step,
        /// What the host needs for each sequence of a step.
        host_per_sequence,
        /// What each request in flight adds to the wait for a first token.
        request_work,
        /// What a collective takes however small it is.
        collective_latency,
        /// Fraction of the link rate that collectives reach.
        collective_bandwidth,
        /// How many times its own time a prefill delays the decodes beside it.
        prefill_interference,
        /// What a request takes before its prompt is computed.
        request_overhead,
        /// Prompts ahead of a new one, per square root of the requests of a rank.
        prompt_queue,
        /// Prompts ahead of a new one, per request of a rank.
        prompt_burst,
        /// Decode steps that a new request waits for.
        step_wait,
        /// Share of its time that a prefill pool is planned to work.
        prefill_utilization,
        /// What software sees of its memory.
        capacity,
        /// Fraction of it that the runtime uses.
        utilization,
        /// Buffers of the runtime.
        buffers,
        /// Bytes that sampling reserves per logit.
        sampler_bytes,
        /// Fraction of the cache lost to fragmentation.
        fragmentation,
        /// Fraction of the rest of an answer that is reserved when a request is admitted.
        answer_reserved,
        /// Tokens a page of the cache holds.
        block_tokens,
        /// Tokens that a step computes at most.
        max_batched_tokens,
    }
}

figures! {
    /// Figures of one tier of the interconnect.
    PricedLink {
        /// Per direction and device.
        bandwidth,
        /// Of one small message.
        latency,
    }
}

/// A device, its interconnect, and which roles the weight format quantises.
#[derive(Clone, Debug)]
pub struct Machine<T> {
    /// The device.
    pub chip: Chip<T>,
    /// Tiers, innermost first.
    pub links: Vec<PricedLink<T>>,
    /// Their shapes.
    pub shapes: Vec<TierShape>,
    /// Which roles are stored in the weight format; the others are in the model dtype.
    pub quantised: [bool; ROLES],
    /// Sequences that sampling reserves for, where the runtime fixes it.
    pub max_sequences: Option<T>,
    /// How many times as long latencies may take as predicted, where that is allowed for.
    pub risk: Option<PredictionMargin<T>>,
}

impl Machine<Datum> {
    /// The same machine in another reading.
    pub fn read<R: Reading>(&self, read: &R) -> Machine<Qty<R::N>> {
        Machine {
            chip: self.chip.map(|datum| read.datum(datum)),
            links: self.links.iter().map(|link| link.map(|datum| read.datum(datum))).collect(),
            shapes: self.shapes.clone(),
            quantised: self.quantised,
            max_sequences: self.max_sequences.as_ref().map(|datum| read.datum(datum)),
            risk: self.risk.as_ref().map(|risk| risk.map(|datum| read.datum(datum))),
        }
    }
}

impl<N: Num> Chip<Qty<N>> {
    /// Bytes of a weight.
    #[inline(always)]
    pub fn weight_bytes(&self, quantised: bool) -> Qty<N> {
        if quantised { self.quantised_bytes } else { self.native_bytes }
    }

    #[inline(always)]
    fn peak(&self, quantised: bool) -> Qty<N> {
        if quantised { self.weight_peak } else { self.native_peak }
    }

    /// What bounds matrix products.
    #[inline(always)]
    pub fn gemm(&self, quantised: bool) -> RooflineParams<Qty<N>> {
        let (peak, bandwidth) = (self.peak(quantised), self.bandwidth);
        RooflineParams { peak, bandwidth, compute: self.gemm_compute, memory: self.gemm_memory }
    }

    /// What bounds expert products.
    #[inline(always)]
    pub fn moe(&self, quantised: bool) -> RooflineParams<Qty<N>> {
        let (peak, bandwidth) = (self.peak(quantised), self.bandwidth);
        RooflineParams { peak, bandwidth, compute: self.moe_compute, memory: self.moe_memory }
    }

    /// What bounds attention.
    #[inline(always)]
    pub fn attention(&self) -> RooflineParams<Qty<N>> {
        let (peak, bandwidth) = (self.attention_peak, self.bandwidth);
        RooflineParams { peak, bandwidth, compute: self.attention_compute, memory: self.attention_memory }
    }
}
