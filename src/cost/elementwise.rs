//! Memory-bound operators with little arithmetic: norms, activations, sums, look-ups, sampling.

use super::machine::Chip;
use super::roofline::{Cost, roofline};
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::{BYTE, FLOP};

/// A kernel with a fixed number of operations per element over `elements`, which moves `moved` elements and reads
/// `weights`.
pub struct Elementwise<T> {
    /// Computed elements.
    pub elements: T,
    /// Operations per element.
    pub flops_per_element: f64,
    /// Activation elements read and written.
    pub moved: T,
    /// Weight elements read.
    pub weights: T,
}

impl<N: Num> Elementwise<Qty<N>> {
    /// Operations.
    #[inline(always)]
    pub fn flops(&self) -> Qty<N> {
        (self.flops_per_element * FLOP * self.elements).is(&FLOPS)
    }

    /// Bytes.
    #[inline(always)]
    pub fn bytes(&self, chip: &Chip<Qty<N>>) -> Qty<N> {
        (chip.activation_bytes * self.moved + chip.native_bytes * self.weights).is(&BYTES)
    }

    /// Cost of the kernel.
    #[inline(always)]
    pub fn cost(&self, chip: &Chip<Qty<N>>) -> Cost<Qty<N>> {
        roofline(self.flops(), self.bytes(chip), &chip.gemm(false))
    }
}

/// Operations per element of a norm: square, add, scale, multiply.
pub const NORM_FLOPS: f64 = 4.0;
/// Operations per element of a gated activation: a sigmoid (counted as 4) and two products.
pub const ACTIVATION_FLOPS: f64 = 6.0;
/// Operations per logit of sampling: compare and exponentiate.
pub const SAMPLING_FLOPS: f64 = 2.0;

/// Operations per element of parallel residual streams, and the elements moved: `one` stream and `all` of them.
///
/// Before a network, each stream element takes part in the `(2 + n) n` rows of the mapping and the sum. After it, the
/// `n` streams are mixed and the result is added to each (DeepSeek-AI 2026 (DeepSeek-V4), 2.2).
pub fn hyper_connection<N: Num>(streams: f64, expands: bool, one: Qty<N>, all: Qty<N>) -> (f64, Qty<N>) {
    if expands {
        (2.0 * streams + 2.0, 2.0 * all + one)
    } else {
        (2.0 * (2.0 + streams) * streams + 2.0, all + one)
    }
}

crate::formulas! {
    FLOPS {
        symbol: "elementwise_flops",
        unit: FLOP,
        why: "a few operations per element: 4 for a norm, 6 for a gated activation, 1 for a sum, 2 per logit",
        cite: "counted from the definitions (Zhang, Sennrich 2019; Shazeer 2020)",
    }
    BYTES {
        symbol: "elementwise_bytes",
        unit: BYTE,
        why: "reads its inputs and writes its result once; a residual sum is fused with the following norm",
        cite: "definition",
    }
}
