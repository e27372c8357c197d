//! Multi-head latent attention (MLA): heads are materialised in prefill and absorbed into the latent in decode.

use super::batch::Batch;
use super::machine::Chip;
use super::roofline::{Cost, roofline};
use crate::graph::dimensions::LatentAttention;
use crate::graph::mask::AttentionMask;
use crate::plan::parallel::Phase;
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::{BYTE, FLOP};

/// Latent attention on one device.
pub struct LatentAttentionShard<T> {
    /// Dimensions: `heads` is the share of this device, the latent is whole.
    pub dims: LatentAttention<T>,
    /// Elements of `kv_b_proj` on this device.
    pub matrix: T,
    /// True in decode, and always with sparse attention: attends to the latent itself.
    pub absorbed: bool,
}

impl<N: Num> LatentAttentionShard<Qty<N>> {
    /// The form in which `phase` computes it. Heads share a latent that was selected for one query only in the absorbed
    /// form.
    #[inline(always)]
    pub fn of(dims: LatentAttention<Qty<N>>, matrix: Qty<N>, phase: Phase) -> Self {
        let absorbed = phase == Phase::Decode || matches!(dims.mask, AttentionMask::Selected(_));
        LatentAttentionShard { dims, matrix, absorbed }
    }

    /// Elements cached per token.
    #[inline(always)]
    fn latent(&self) -> Qty<N> {
        self.dims.kv_lora_rank + self.dims.qk_rope_head_dim
    }

    /// Elements of a query head and of a result head: over the latent where absorbed, otherwise over the head
    /// dimensions.
    #[inline(always)]
    fn width(&self) -> Qty<N> {
        if self.absorbed {
            self.latent() + self.dims.kv_lora_rank
        } else {
            self.dims.qk_nope_head_dim + self.dims.qk_rope_head_dim + self.dims.v_head_dim
        }
    }

    /// Tokens that pass `kv_b_proj`: the new ones, and in prefill also the cached ones.
    #[inline(always)]
    fn expanded(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        if self.absorbed {
            batch.tokens
        } else {
            batch.sequences * (batch.cached_tokens + batch.new_tokens) / batch.token_parts
        }
    }

    /// Operations of the products with both halves of `kv_b_proj`.
    #[inline(always)]
    pub fn projection_flops(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        let width = self.dims.heads * (self.dims.qk_nope_head_dim + self.dims.v_head_dim);
        (2.0 * FLOP * self.expanded(batch) * self.dims.kv_lora_rank * width).is(&PROJECTION_FLOPS)
    }

    /// Bytes of the products with both halves of `kv_b_proj`.
    #[inline(always)]
    pub fn projection_bytes(
        &self,
        batch: &Batch<Qty<N>>,
        weight_bytes: Qty<N>,
        activation_bytes: Qty<N>,
    ) -> Qty<N> {
        let wide = self.dims.heads * (self.dims.qk_nope_head_dim + self.dims.v_head_dim);
        let narrow = if self.absorbed {
            self.dims.heads * self.dims.kv_lora_rank * 2.0
        } else {
            self.dims.kv_lora_rank
        };
        let activations = self.expanded(batch) * (wide + narrow);
        (weight_bytes * self.matrix + activation_bytes * activations).is(&PROJECTION_BYTES)
    }

    /// Operations of the attention kernel.
    #[inline(always)]
    pub fn flops(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        let width = self.width();
        (2.0 * FLOP * self.dims.heads * width * batch.sequences * batch.qk_pairs(self.dims.mask)).is(&FLOPS)
    }

    /// Bytes of the attention kernel.
    #[inline(always)]
    pub fn bytes(&self, batch: &Batch<Qty<N>>, activation_bytes: Qty<N>, kv_bytes: Qty<N>) -> Qty<N> {
        let width = self.width();
        let queries = activation_bytes * batch.tokens * self.dims.heads * width;
        let cached =
            batch.sequences * batch.kv_tokens_read(self.dims.mask) + batch.tokens / batch.context_parts;
        let keys = kv_bytes * cached * self.latent();
        let read = if self.absorbed {
            queries + keys
        } else {
            let expanded = self.dims.heads * (self.dims.qk_nope_head_dim + self.dims.v_head_dim)
                + self.dims.qk_rope_head_dim;
            queries
                + keys
                + activation_bytes * batch.sequences * batch.kv_tokens_read(self.dims.mask) * expanded
        };
        read.is(&BYTES)
    }

    #[inline(always)]
    pub fn cost(&self, batch: &Batch<Qty<N>>, chip: &Chip<Qty<N>>, quantised: bool) -> Cost<Qty<N>> {
        let bytes = self.projection_bytes(batch, chip.weight_bytes(quantised), chip.activation_bytes);
        let projection = roofline(self.projection_flops(batch), bytes, &chip.gemm(quantised));
        let bytes = self.bytes(batch, chip.activation_bytes, chip.kv_bytes);
        let attention = roofline(self.flops(batch), bytes, &chip.attention());
        attention.after(&projection)
    }
}

crate::formulas! {
    PROJECTION_FLOPS {
        symbol: "kv_b_flops",
        unit: FLOP,
        why: "prefill expands the latent into heads; decode multiplies queries and results by the same matrices instead",
        cite: "DeepSeek-AI 2024 (DeepSeek-V2), 2.1.2 and appendix C",
    }
    PROJECTION_BYTES {
        symbol: "kv_b_bytes",
        unit: BYTE,
        why: "reads kv_b_proj once, and its input and output activations",
        cite: "definition",
    }
    FLOPS {
        symbol: "latent_attention_flops",
        unit: FLOP,
        why: "absorbed heads score over the latent and the rotary key and sum the latent; materialised heads use their own dimensions",
        cite: "DeepSeek-AI 2024 (DeepSeek-V2), 2.1",
    }
    BYTES {
        symbol: "latent_attention_bytes",
        unit: BYTE,
        why: "every device reads the whole latent of its sequences: tensor parallelism does not shard it",
        cite: "DeepSeek-AI 2024 (DeepSeek-V2), 2.1.4 (KV cache of MLA)",
    }
}
