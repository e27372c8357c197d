//! Scaled dot-product attention with grouped key/value heads, fused: scores never reach memory.

use super::batch::Batch;
use super::machine::Chip;
use super::roofline::{Cost, roofline};
use crate::graph::dimensions::SoftmaxAttention;
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::{BYTE, FLOP};

impl<N: Num> SoftmaxAttention<Qty<N>> {
    #[inline(always)]
    pub fn flops(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        let per_pair = 2.0 * FLOP * self.heads * (self.head_dim + self.v_head_dim);
        (per_pair * batch.sequences * batch.qk_pairs(self.mask)).is(&FLOPS)
    }

    /// Bytes: queries and results in the activation dtype, keys and values in the KV cache dtype.
    #[inline(always)]
    pub fn bytes(&self, batch: &Batch<Qty<N>>, activation_bytes: Qty<N>, kv_bytes: Qty<N>) -> Qty<N> {
        let width = self.head_dim + self.v_head_dim;
        let queries = activation_bytes * batch.tokens * self.heads * width;
        let read = batch.sequences * batch.kv_tokens_read(self.mask);
        let cached = if self.shared { read } else { read + batch.tokens / batch.context_parts };
        (queries + kv_bytes * cached * self.kv_heads * width).is(&BYTES)
    }

    #[inline(always)]
    pub fn cost(&self, batch: &Batch<Qty<N>>, chip: &Chip<Qty<N>>) -> Cost<Qty<N>> {
        let bytes = self.bytes(batch, chip.activation_bytes, chip.kv_bytes);
        roofline(self.flops(batch), bytes, &chip.attention())
    }
}

crate::formulas! {
    FLOPS {
        symbol: "attention_flops",
        unit: FLOP,
        why: "QK^T and A·V: one multiply-add each per query-key pair, head and channel",
        cite: "Vaswani et al. 2017, 3.2.1",
    }
    BYTES {
        symbol: "attention_bytes",
        unit: BYTE,
        why: "reads queries and the KV cache inside the mask, writes results and the new keys and values; scores stay on chip",
        cite: "Dao et al. 2022 (FlashAttention), 3.1",
    }
}
