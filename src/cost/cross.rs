//! Cross-attention to encoder positions: keys and values are computed once in prefill and read by every step.

use super::batch::Batch;
use super::machine::Chip;
use super::roofline::{Cost, roofline};
use crate::graph::dimensions::CrossAttention;
use crate::plan::parallel::Phase;
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::{BYTE, FLOP};

/// Cross-attention on one device.
pub struct CrossAttentionShard<T> {
    /// Dimensions: heads are the share of this device.
    pub dims: CrossAttention<T>,
    /// Elements of `k_proj` and `v_proj` on this device.
    pub matrix: T,
    /// Prefill: keys and values are computed.
    pub makes: bool,
}

impl<N: Num> CrossAttentionShard<Qty<N>> {
    /// The work of `phase`: keys and values are computed in prefill.
    #[inline(always)]
    pub fn of(dims: CrossAttention<Qty<N>>, matrix: Qty<N>, phase: Phase) -> Self {
        CrossAttentionShard { dims, matrix, makes: phase == Phase::Prefill }
    }

    /// Key and value elements of a position on this device.
    #[inline(always)]
    fn width(&self) -> Qty<N> {
        2.0 * self.dims.kv_heads * self.dims.head_dim
    }

    /// Operations of the key and value projections.
    #[inline(always)]
    pub fn projection_flops(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        (2.0 * FLOP * batch.sequences * self.dims.positions * self.dims.source * self.width())
            .is(&PROJECTION_FLOPS)
    }

    /// Bytes of the key and value projections.
    #[inline(always)]
    pub fn projection_bytes(&self, batch: &Batch<Qty<N>>, chip: &Chip<Qty<N>>, weight: Qty<N>) -> Qty<N> {
        let states = batch.sequences * self.dims.positions;
        let moved = chip.activation_bytes * states * (self.dims.source + self.width());
        (weight * self.matrix + moved).is(&PROJECTION_BYTES)
    }

    /// Operations of the attention kernel.
    #[inline(always)]
    pub fn flops(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        (2.0 * FLOP * batch.tokens * self.dims.positions * self.dims.heads * (2.0 * self.dims.head_dim))
            .is(&FLOPS)
    }

    /// Bytes of the attention kernel.
    #[inline(always)]
    pub fn bytes(&self, batch: &Batch<Qty<N>>, chip: &Chip<Qty<N>>) -> Qty<N> {
        let queries = 2.0 * batch.tokens * self.dims.heads * self.dims.head_dim;
        let keys = batch.sequences * self.dims.positions * self.width();
        (chip.activation_bytes * (queries + keys)).is(&BYTES)
    }

    #[inline(always)]
    pub fn cost(&self, batch: &Batch<Qty<N>>, chip: &Chip<Qty<N>>, quantised: bool) -> Cost<Qty<N>> {
        let attention = roofline(self.flops(batch), self.bytes(batch, chip), &chip.attention());
        if !self.makes {
            return attention;
        }
        let bytes = self.projection_bytes(batch, chip, chip.weight_bytes(quantised));
        attention.after(&roofline(self.projection_flops(batch), bytes, &chip.gemm(quantised)))
    }
}

crate::formulas! {
    PROJECTION_FLOPS {
        symbol: "cross_kv_flops",
        unit: FLOP,
        why: "every encoder position is projected to a key and a value once, in prefill",
        cite: "Vaswani et al. 2017, 3.2.3 (encoder-decoder attention)",
    }
    PROJECTION_BYTES {
        symbol: "cross_kv_bytes",
        unit: BYTE,
        why: "reads both matrices once and the encoder states, writes keys and values",
        cite: "definition",
    }
    FLOPS {
        symbol: "cross_attention_flops",
        unit: FLOP,
        why: "each token attends to every encoder position, whatever its own position",
        cite: "Vaswani et al. 2017, 3.2.3 (encoder-decoder attention)",
    }
    BYTES {
        symbol: "cross_attention_bytes",
        unit: BYTE,
        why: "reads queries and the encoder keys and values, writes results; the KV cache does not grow",
        cite: "Dao et al. 2022 (FlashAttention), 3.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decode_step_reads_the_encoder_and_makes_nothing() {
        let n = Qty::<f64>::from;
        let dims = CrossAttention {
            heads: n(32.0),
            kv_heads: n(8.0),
            head_dim: n(128.0),
            source: n(4096.0),
            positions: n(6404.0),
        };
        let cross = CrossAttentionShard { dims, matrix: n(0.0), makes: false };
        let batch = |past, new| Batch::new((n(3.0), n(new), n(past)), (n(1.0), n(1.0), n(1.0)));
        let pairs = 3.0 * 6404.0;
        assert_eq!(cross.flops(&batch(10.0, 1.0)).value(), pairs * 32.0 * 2.0 * 2.0 * 128.0);
        assert_eq!(cross.flops(&batch(10.0, 1.0)).value(), cross.flops(&batch(99.0, 1.0)).value());
        let made = cross.projection_flops(&batch(0.0, 7.0)).value();
        assert_eq!(made, pairs * 4096.0 * 2.0 * 8.0 * 128.0 * 2.0);
    }
}
