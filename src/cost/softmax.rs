//! Softmax over the scores of an attention, inside its kernel.

use super::batch::Batch;
use super::machine::Machine;
use super::roofline::{Cost, on_vector_units};
use crate::graph::dimensions::{ScoredKeys, Scores};
use crate::graph::mask::AttentionMask;
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::FLOP;

/// Operations per score: maximum, difference, exponential, sum, and scale.
pub const SOFTMAX_FLOPS: f64 = 5.0;

impl<N: Num> Scores<Qty<N>> {
    /// Scores of one head over the batch.
    #[inline(always)]
    fn pairs(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        match self.keys {
            ScoredKeys::Masked(mask) => batch.sequences * batch.qk_pairs(mask),
            ScoredKeys::Positions(positions) => batch.tokens * positions,
            ScoredKeys::Entries(window, beyond) => batch.sequences * entry_pairs(batch, window, beyond),
        }
    }

    #[inline(always)]
    pub fn flops(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        (SOFTMAX_FLOPS * FLOP * self.heads * self.pairs(batch)).is(&FLOPS)
    }

    /// Cost on the vector units. Scores stay on chip: no bytes.
    #[inline(always)]
    pub fn cost(&self, batch: &Batch<Qty<N>>, machine: &Machine<Qty<N>>) -> Cost<Qty<N>> {
        on_vector_units(self.flops(batch), None, machine.vector_peak, machine.chip.bandwidth)
    }
}

/// Query-entry pairs of one sequence: a token each inside the window, several tokens each before it.
#[inline(always)]
pub(super) fn entry_pairs<N: Num>(
    batch: &Batch<Qty<N>>,
    window: Qty<N>,
    beyond: Option<(Qty<N>, AttentionMask<Qty<N>>)>,
) -> Qty<N> {
    let near = batch.qk_pairs(AttentionMask::Window(window));
    match beyond {
        Some((every, reach)) => near + batch.qk_pairs(reach) / every,
        None => near,
    }
}

crate::formulas! {
    FLOPS {
        symbol: "softmax_flops",
        unit: FLOP,
        why: "each score is compared with the maximum, shifted, exponentiated, summed and scaled: 5 operations per head and query-key pair inside the mask; scores stay on chip and move no bytes",
        cite: "Yuan et al. 2024 (LLM inference unveiled: survey and roofline model insights; LLM-Viewer), softmax of 5 operations; Dao et al. 2022 (FlashAttention), algorithm 1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_counted_under_the_mask() {
        let n = Qty::<f64>::from;
        let batch = |past, new| Batch::new((n(3.0), n(new), n(past)), (n(1.0), n(1.0), n(1.0)));
        let of = |keys| Scores { heads: n(8.0), keys };
        let all = of(ScoredKeys::Masked(AttentionMask::All));
        assert_eq!(all.flops(&batch(0.0, 4.0)).value(), 5.0 * 8.0 * 3.0 * (1.0 + 2.0 + 3.0 + 4.0));
        let near = of(ScoredKeys::Masked(AttentionMask::Window(n(2.0))));
        assert_eq!(near.flops(&batch(9.0, 1.0)).value(), 5.0 * 8.0 * 3.0 * 2.0);
        let encoder = of(ScoredKeys::Positions(n(100.0)));
        assert_eq!(encoder.flops(&batch(9.0, 1.0)).value(), 5.0 * 8.0 * 3.0 * 100.0);
        let entries = of(ScoredKeys::Entries(n(4.0), Some((n(2.0), AttentionMask::All))));
        assert_eq!(entries.flops(&batch(9.0, 1.0)).value(), 5.0 * 8.0 * 3.0 * (4.0 + 10.0 / 2.0));
    }
}
