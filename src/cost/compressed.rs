//! Attention over a window and over entries that represent several tokens each. Each entry is key and value, shared by
//! all heads.

use super::batch::Batch;
use super::machine::Chip;
use super::roofline::{Cost, roofline};
use super::softmax::entry_pairs;
use crate::graph::dimensions::CompressedAttention;
use crate::graph::mask::AttentionMask;
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::{BYTE, FLOP};

impl<N: Num> CompressedAttention<Qty<N>> {
    /// Entries of one sequence that are read, each counted once.
    #[inline(always)]
    fn entries(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        let near = batch.kv_tokens_read(AttentionMask::Window(self.window));
        match self.beyond {
            Some((every, reach)) => near + batch.kv_tokens_read(reach) / every,
            None => near,
        }
    }

    #[inline(always)]
    pub fn flops(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        let per_pair = 2.0 * FLOP * self.heads * (2.0 * self.head_dim);
        (per_pair * batch.sequences * entry_pairs(batch, self.window, self.beyond)).is(&FLOPS)
    }

    /// Bytes: queries and results, visible entries, and the entries of new tokens.
    #[inline(always)]
    pub fn bytes(&self, batch: &Batch<Qty<N>>, activation_bytes: Qty<N>, kv_bytes: Qty<N>) -> Qty<N> {
        let queries = activation_bytes * batch.tokens * self.heads * (2.0 * self.head_dim);
        let written = batch.tokens / batch.context_parts;
        let entries = batch.sequences * self.entries(batch) + written;
        (queries + kv_bytes * entries * self.head_dim).is(&BYTES)
    }

    #[inline(always)]
    pub fn cost(&self, batch: &Batch<Qty<N>>, chip: &Chip<Qty<N>>) -> Cost<Qty<N>> {
        let bytes = self.bytes(batch, chip.activation_bytes, chip.kv_bytes);
        roofline(self.flops(batch), bytes, &chip.attention())
    }
}

crate::formulas! {
    FLOPS {
        symbol: "compressed_attention_flops",
        unit: FLOP,
        why: "each head scores and sums entries: one per token inside the window, one per several tokens before it",
        cite: "DeepSeek-AI 2026 (DeepSeek-V4), 2.3",
    }
    BYTES {
        symbol: "compressed_attention_bytes",
        unit: BYTE,
        why: "an entry is key and value for all heads: it is read once and not sharded by tensor parallelism",
        cite: "DeepSeek-AI 2026 (DeepSeek-V4), 2.3; Shazeer 2019 (multi-query attention)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decode_step_by_hand() {
        let n = Qty::<f64>::from;
        let of =
            |beyond| CompressedAttention { heads: n(64.0), head_dim: n(512.0), window: n(128.0), beyond };
        let step = Batch::new((n(3.0), n(1.0), n(4095.0)), (n(1.0), n(1.0), n(1.0)));
        for (beyond, entries) in [
            (None, 128.0),
            (Some((n(128.0), AttentionMask::All)), 128.0 + 4096.0 / 128.0),
            (Some((n(4.0), AttentionMask::Selected(n(4.0 * 512.0)))), 128.0 + 512.0),
            (Some((n(4.0), AttentionMask::Selected(n(4.0 * 2048.0)))), 128.0 + 1024.0),
        ] {
            assert_eq!(of(beyond).flops(&step).value(), 3.0 * entries * 64.0 * 4.0 * 512.0);
            let bytes = of(beyond).bytes(&step, n(0.0), n(1.0)).value();
            assert_eq!(bytes, 3.0 * (entries + 1.0) * 512.0);
        }
    }
}
