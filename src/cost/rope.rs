//! Rotary position encoding, inside the kernel that takes the queries and keys on.

use super::machine::Machine;
use super::roofline::{Cost, on_vector_units};
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::{BYTE, FLOP};

/// The rotation of `heads` heads of each of `tokens`.
pub struct Rotation<T> {
    pub tokens: T,
    /// Heads of this device.
    pub heads: T,
    /// Rotated elements of a head.
    pub rotary: T,
}

/// Operations per rotated element: a product with the cosine, one with the sine, and their sum.
pub const ROPE_FLOPS: f64 = 3.0;

impl<N: Num> Rotation<Qty<N>> {
    #[inline(always)]
    pub fn flops(&self) -> Qty<N> {
        (ROPE_FLOPS * FLOP * self.heads * self.rotary * self.tokens).is(&FLOPS)
    }

    /// Bytes: the cosines and sines of each position. Queries and keys are in registers.
    #[inline(always)]
    pub fn bytes(&self, activation_bytes: Qty<N>) -> Qty<N> {
        (activation_bytes * self.rotary * self.tokens).is(&BYTES)
    }

    /// Cost on the vector units.
    #[inline(always)]
    pub fn cost(&self, machine: &Machine<Qty<N>>) -> Cost<Qty<N>> {
        let bytes = self.bytes(machine.chip.activation_bytes);
        on_vector_units(self.flops(), Some(bytes), machine.vector_peak, machine.chip.bandwidth)
    }
}

crate::formulas! {
    FLOPS {
        symbol: "rope_flops",
        unit: FLOP,
        why: "each element of a pair is multiplied with the cosine, its partner with the sine, and both are added: 3 operations per rotated element",
        cite: "Su et al. 2021 (RoFormer), 3.4.2, equation 34",
    }
    BYTES {
        symbol: "rope_bytes",
        unit: BYTE,
        why: "reads a cosine and a sine for each pair of a position; queries and keys stay in the registers of the kernel that takes them on, which counts them",
        cite: "vLLM, cos_sin_cache of RotaryEmbedding; Ye et al. 2025 (FlashInfer, arXiv:2501.01005), 3.2.3 (fused RoPE)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queries_of_a_prompt_by_hand() {
        let n = Qty::<f64>::from;
        let rotation = Rotation { tokens: n(2048.0), heads: n(32.0), rotary: n(64.0) };
        assert_eq!(rotation.flops().value(), 3.0 * 2048.0 * 32.0 * 64.0);
        assert_eq!(rotation.bytes(n(2.0)).value(), 2048.0 * 64.0 * 2.0);
    }
}
