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
    #[inline(always)]
    pub fn flops(&self) -> Qty<N> {
        (self.flops_per_element * FLOP * self.elements).is(&FLOPS)
    }

    #[inline(always)]
    pub fn bytes(&self, chip: &Chip<Qty<N>>) -> Qty<N> {
        (chip.activation_bytes * self.moved + chip.native_bytes * self.weights).is(&BYTES)
    }

    #[inline(always)]
    pub fn cost(&self, chip: &Chip<Qty<N>>) -> Cost<Qty<N>> {
        roofline(self.flops(), self.bytes(chip), &chip.gemm(false))
    }

    /// No work: the input of a block.
    #[inline(always)]
    pub fn nothing() -> Self {
        let none = Qty::from(0.0);
        Elementwise { elements: none, flops_per_element: 0.0, moved: none, weights: none }
    }

    /// A norm of `elements`.
    #[inline(always)]
    pub fn norm(elements: Qty<N>, weights: Qty<N>) -> Self {
        Elementwise { elements, flops_per_element: NORM_FLOPS, moved: 2.0 * elements, weights }
    }

    /// An activation with `elements` results, from one input each or two (gated).
    #[inline(always)]
    pub fn activation(elements: Qty<N>, gated: bool) -> Self {
        let moved = elements * if gated { 3.0 } else { 2.0 };
        Elementwise { elements, flops_per_element: ACTIVATION_FLOPS, moved, weights: Qty::from(0.0) }
    }

    /// A residual sum, which is fused with the following norm.
    #[inline(always)]
    pub fn sum(elements: Qty<N>) -> Self {
        let moved = 2.0 * elements;
        Elementwise { elements, flops_per_element: 1.0, moved, weights: Qty::from(0.0) }
    }

    /// An embedding lookup.
    #[inline(always)]
    pub fn look_up(elements: Qty<N>) -> Self {
        Elementwise { elements, flops_per_element: 0.0, moved: elements, weights: elements }
    }

    /// Sampling from fp32 logits, each of which equals two activation elements.
    #[inline(always)]
    pub fn sampling(logits: Qty<N>) -> Self {
        let moved = 2.0 * logits;
        Elementwise { elements: logits, flops_per_element: SAMPLING_FLOPS, moved, weights: Qty::from(0.0) }
    }

    /// `n` parallel residual streams: `one` is the number of elements of a stream, `streams` is `n` in this reading.
    ///
    /// Before a network, each stream element takes part in the `(2 + n) n` rows of the mapping and the sum. After it,
    /// the `n` streams are mixed and the result is added to each (DeepSeek-AI 2026 (DeepSeek-V4), 2.2).
    #[inline(always)]
    pub fn hyper_connection(n: u64, one: Qty<N>, streams: Qty<N>, expands: bool, weights: Qty<N>) -> Self {
        let (n, all) = (n as f64, one * streams);
        let (flops_per_element, moved) =
            if expands { (2.0 * n + 2.0, 2.0 * all + one) } else { (2.0 * (2.0 + n) * n + 2.0, all + one) };
        Elementwise { elements: all, flops_per_element, moved, weights }
    }
}

/// Operations per element of a norm: square, add, scale, multiply.
pub const NORM_FLOPS: f64 = 4.0;
/// Operations per element of a gated activation: a sigmoid (counted as 4) and two products.
pub const ACTIVATION_FLOPS: f64 = 6.0;
/// Operations per logit of sampling: compare and exponentiate.
pub const SAMPLING_FLOPS: f64 = 2.0;

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
