//! Dense matrix products, `[tokens × input] · [input × output]`, and the router.

use super::machine::Chip;
use super::roofline::{Cost, roofline};
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::{BYTE, FLOP};

/// A matrix product on one device, with its share of `input` and `output`.
pub struct Linear<T> {
    /// Rows of the activation.
    pub tokens: T,
    /// Inner dimension on this device.
    pub input: T,
    /// Outer dimension on this device.
    pub output: T,
    /// Matrix elements on this device.
    pub matrix: T,
}

impl<N: Num> Linear<Qty<N>> {
    #[inline(always)]
    pub fn flops(&self) -> Qty<N> {
        (2.0 * FLOP * self.tokens * self.input * self.output).is(&FLOPS)
    }

    /// Bytes: the matrix once, and the input and output activations.
    #[inline(always)]
    pub fn bytes(&self, weight_bytes: Qty<N>, activation_bytes: Qty<N>) -> Qty<N> {
        let activations = self.tokens * (self.input + self.output);
        (weight_bytes * self.matrix + activation_bytes * activations).is(&BYTES)
    }

    /// Cost of the product, with the matrix in the weight format or in the model dtype.
    #[inline(always)]
    pub fn cost(&self, chip: &Chip<Qty<N>>, quantised: bool) -> Cost<Qty<N>> {
        let bytes = self.bytes(chip.weight_bytes(quantised), chip.activation_bytes);
        roofline(self.flops(), bytes, &chip.gemm(quantised))
    }
}

crate::formulas! {
    FLOPS {
        symbol: "matmul_flops",
        unit: FLOP,
        why: "one multiply-add per output element and inner index",
        cite: "definition",
    }
    BYTES {
        symbol: "matmul_bytes",
        unit: BYTE,
        why: "reads the matrix and the activation once and writes the product; tiles stay in cache",
        cite: "definition",
    }
}
