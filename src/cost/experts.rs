//! Routed experts: grouped matrix products over the activated experts.

use super::batch::Batch;
use super::machine::Chip;
use super::roofline::{Cost, roofline};
use crate::graph::dimensions::RoutedExperts;
use crate::quantity::count::{Count, Origin};
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{BYTE, COUNT, FLOP};

/// The experts on one device.
pub struct Experts<T> {
    /// Inner dimension.
    pub hidden: T,
    /// Experts on this device.
    pub experts_here: T,
    /// Experts of the layer.
    pub experts: T,
    /// Experts chosen per token.
    pub top_k: T,
    /// Width of an expert on this device.
    pub intermediate: T,
    /// 3 matrices (gated) or 2.
    pub matrices: T,
    /// Elements of the expert matrices on this device.
    pub matrix: T,
}

impl<N: Num> Experts<Qty<N>> {
    /// Token–expert pairs on this device, under uniform routing.
    #[inline(always)]
    pub fn routed(&self, pooled: Qty<N>) -> Qty<N> {
        (pooled * self.top_k * self.experts_here / self.experts).is(&ROUTED)
    }

    /// Fraction of the experts that at least one token activates.
    #[inline(always)]
    pub fn touched(&self, pooled: Qty<N>) -> Qty<N> {
        let missed = (1.0 - self.top_k / self.experts).pow(pooled);
        (1.0 - missed).is(&TOUCHED)
    }

    #[inline(always)]
    pub fn flops(&self, pooled: Qty<N>) -> Qty<N> {
        (2.0 * FLOP * self.routed(pooled) * self.matrices * self.hidden * self.intermediate).is(&FLOPS)
    }

    /// Bytes: the matrices of activated experts, and the input, intermediate and output of each routed token.
    #[inline(always)]
    pub fn bytes(&self, pooled: Qty<N>, weight_bytes: Qty<N>, activation_bytes: Qty<N>) -> Qty<N> {
        let weights = weight_bytes * self.matrix * self.touched(pooled);
        let activations = self.routed(pooled) * (2.0 * self.hidden + self.matrices * self.intermediate);
        (weights + activation_bytes * activations).is(&BYTES)
    }

    /// Cost of the kernels.
    #[inline(always)]
    pub fn cost(&self, batch: &Batch<Qty<N>>, chip: &Chip<Qty<N>>, quantised: bool) -> Cost<Qty<N>> {
        let pooled = batch.ep_tokens;
        let bytes = self.bytes(pooled, chip.weight_bytes(quantised), chip.activation_bytes);
        roofline(self.flops(pooled), bytes, &chip.moe(quantised))
    }

    /// The experts of a device's share `dims`, with `matrix()` elements.
    #[inline(always)]
    pub fn of<R: Reading<N = N>>(read: &R, dims: &RoutedExperts, matrix: impl Fn() -> Qty<N>) -> Self {
        let experts = match dims.experts.origin {
            Origin::Split { whole, key, .. } => Count::config(key, whole),
            _ => dims.experts,
        };
        Experts {
            hidden: read.count(dims.hidden),
            experts_here: read.count(dims.experts),
            experts: read.count(experts),
            top_k: read.count(dims.top_k),
            intermediate: read.count(dims.intermediate),
            matrices: Qty::from(if dims.gated { 3.0 } else { 2.0 }),
            matrix: matrix(),
        }
    }
}

crate::formulas! {
    ROUTED {
        symbol: "routed_tokens",
        unit: COUNT,
        why: "each token is routed to top_k experts; routing is uniform, so each device gets its share",
        cite: "Shazeer et al. 2017, 2; balance is an assumption, which trained routers approach",
    }
    TOUCHED {
        symbol: "touched_experts",
        unit: COUNT,
        why: "no token selects an expert with probability (1 - top_k / experts)^tokens",
        cite: "expected occupancy under uniform routing",
    }
    FLOPS {
        symbol: "experts_flops",
        unit: FLOP,
        why: "one multiply-add per routed token and element of the expert matrices",
        cite: "definition",
    }
    BYTES {
        symbol: "experts_bytes",
        unit: BYTE,
        why: "a step reads the activated experts only; memory holds all of them",
        cite: "definition",
    }
}
