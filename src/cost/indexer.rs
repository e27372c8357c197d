//! The indexer of sparse attention: scores every visible key with a few light heads and selects the top k.

use super::batch::Batch;
use super::machine::Chip;
use super::roofline::{Cost, roofline};
use crate::graph::mask::AttentionMask;
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::{BYTE, FLOP};

/// An indexer. Every device runs all of it.
pub struct IndexerShard<T> {
    pub heads: T,
    /// Elements of a head, and of the key that all heads share.
    pub head_dim: T,
    /// Tokens per key.
    pub every: T,
}

/// Elements per scale in the index-key cache.
const SCALED_TOGETHER: f64 = 128.0;

/// Bytes of an index key: fp8, with one fp32 scale per 128 elements.
#[inline(always)]
pub fn key_bytes<N: Num>(head_dim: Qty<N>) -> Qty<N> {
    let scales = (head_dim / SCALED_TOGETHER).ceil();
    (1.0 * BYTE * head_dim + 4.0 * BYTE * scales).is(&KEY)
}

impl<N: Num> IndexerShard<Qty<N>> {
    /// Operations per head and pair: the product, its ReLU, weight and sum.
    #[inline(always)]
    pub fn flops(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        let per_pair = 2.0 * FLOP * self.heads * (self.head_dim + 1.0);
        (per_pair * batch.sequences * (batch.qk_pairs(AttentionMask::All) / self.every)).is(&FLOPS)
    }

    /// Bytes: queries, all cached keys, and the scores, which are written and read again for the selection.
    #[inline(always)]
    pub fn bytes(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        let queries = 1.0 * BYTE * batch.tokens * self.heads * self.head_dim;
        let keys = batch.sequences
            * (batch.kv_tokens_read(AttentionMask::All) / self.every)
            * key_bytes(self.head_dim);
        let scores = 8.0 * BYTE * batch.sequences * (batch.qk_pairs(AttentionMask::All) / self.every);
        (queries + keys + scores).is(&BYTES)
    }

    /// Cost of the kernel at the peak of attention. The fp8 peak of devices is not assumed.
    #[inline(always)]
    pub fn cost(&self, batch: &Batch<Qty<N>>, chip: &Chip<Qty<N>>) -> Cost<Qty<N>> {
        roofline(self.flops(batch), self.bytes(batch), &chip.attention())
    }
}

crate::formulas! {
    KEY {
        symbol: "index_key_bytes",
        unit: BYTE,
        why: "engines keep index keys in fp8 with one fp32 scale per 128 elements: 132 B where head_dim is 128",
        cite: "DeepSeek-AI 2025 (DeepSeek-V3.2-Exp inference code); vLLM DeepseekV32IndexerCache: head_dim + head_dim / 128 x 4",
    }
    FLOPS {
        symbol: "indexer_flops",
        unit: FLOP,
        why: "each index head scores each visible key: one multiply-add per channel, then a weight and a sum over heads",
        cite: "DeepSeek-AI 2025 (DeepSeek-V3.2), 2.1, lightning indexer",
    }
    BYTES {
        symbol: "indexer_bytes",
        unit: BYTE,
        why: "reads queries and every cached index key; scores are written to memory in fp32 and read once to select the top k",
        cite: "DeepGEMM fp8_mqa_logits and fp8_paged_mqa_logits: logits are a tensor of their own",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(past: f64, new: f64) -> Batch<Qty<f64>> {
        let one = Qty::from(1.0);
        Batch::new((Qty::from(3.0), Qty::from(new), Qty::from(past)), (one, one, one))
    }

    #[test]
    fn a_decode_step_by_hand() {
        let indexer =
            IndexerShard { heads: Qty::from(64.0), head_dim: Qty::from(128.0), every: Qty::from(1.0) };
        let step = batch(1000.0, 1.0);
        assert_eq!(indexer.flops(&step).value(), 3.0 * 1001.0 * 64.0 * 2.0 * 129.0);
        let (queries, keys, scores) = (3.0 * 64.0 * 128.0, 3.0 * 1001.0 * 132.0, 3.0 * 1001.0 * 8.0);
        assert_eq!(indexer.bytes(&step).value(), queries + keys + scores);
    }
}
