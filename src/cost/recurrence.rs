//! Recurrent layers: a state per head that each token decays, writes and reads, and the short convolutions before them.
//!
//! There are no measured constants for these kernels. They are assumed to reach the efficiency of attention.

use super::batch::Batch;
use super::machine::Chip;
use super::memory::element_bytes;
use super::roofline::{Cost, roofline};
use crate::graph::dimensions::Recurrence;
use crate::graph::rule::ConvForm;
use crate::plan::parallel::Phase;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{BYTE, FLOP};

/// The recurrence on one device.
pub struct RecurrenceShard<T> {
    /// Dimensions: `heads` and `key_heads` are the share of this device; `chunk` is `None` in a phase that does not
    /// compute in chunks.
    pub dims: Recurrence<T>,
    /// Weight elements on this device.
    pub weights: T,
}

impl<N: Num> RecurrenceShard<Qty<N>> {
    /// The form in which `phase` computes it: in chunks only in prefill, and only for rules that allow it.
    #[inline(always)]
    pub fn of<R: Reading<N = N>>(read: &R, dims: Recurrence, weights: Qty<N>, phase: Phase) -> Self {
        let chunk = dims.chunk.filter(|_| phase == Phase::Prefill && dims.rule.chunks());
        RecurrenceShard { dims: Recurrence { chunk, ..dims }.map(|count| read.count(count)), weights }
    }

    /// State elements of a sequence.
    #[inline(always)]
    fn state(&self) -> Qty<N> {
        self.dims.heads * self.dims.key_dim * self.dims.value_dim
    }

    #[inline(always)]
    pub fn flops(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        let one = Qty::literal(1.0 * FLOP);
        match self.dims.chunk {
            None => (self.dims.rule.step_flops() as f64 * one * batch.tokens * self.state()).is(&STEP_FLOPS),
            Some(chunk) => {
                let (key, value) = (self.dims.key_dim, self.dims.value_dim);
                // Products of the state with the key or query of each token, and products between the tokens of a
                // chunk.
                let corrects = self.dims.rule.corrects();
                let (through, scores, sums) = if corrects {
                    (3.0, 3.0 * self.dims.heads, 2.0 * self.dims.heads)
                } else {
                    (2.0, self.dims.key_heads, self.dims.heads)
                };
                let inside = chunk * (scores * key + sums * value);
                let passing = self.state() / chunk;
                let products = inside + through * self.state() + passing;
                let solving = self.dims.heads * chunk * chunk / 3.0;
                let all = if corrects { products + solving } else { products };
                (2.0 * one * batch.tokens * all).is(&CHUNK_FLOPS)
            }
        }
    }

    /// Bytes: one read and one write of the state, the inputs and results of each token, and the states of chunks.
    #[inline(always)]
    pub fn bytes(&self, batch: &Batch<Qty<N>>, chip: &Chip<Qty<N>>) -> Qty<N> {
        let state = 2.0 * batch.sequences * self.state() * element_bytes(self.dims.state, chip);
        let values = self.dims.heads * (2.0 * self.dims.value_dim + self.dims.gates);
        let token = if self.dims.rule.keys() {
            values + 2.0 * self.dims.key_heads * self.dims.key_dim
        } else {
            values
        };
        let moved = state + chip.activation_bytes * batch.tokens * token + chip.native_bytes * self.weights;
        match self.dims.chunk {
            None => moved.is(&STEP_BYTES),
            Some(chunk) => {
                let passed = 2.0 * chip.activation_bytes * batch.tokens / chunk * self.state();
                (moved + passed).is(&CHUNK_BYTES)
            }
        }
    }

    #[inline(always)]
    pub fn cost(&self, batch: &Batch<Qty<N>>, chip: &Chip<Qty<N>>) -> Cost<Qty<N>> {
        roofline(self.flops(batch), self.bytes(batch, chip), &chip.attention())
    }
}

/// A depthwise causal convolution over the last `kernel` tokens and the channels of this device.
pub struct ShortConv<T> {
    /// Channels on this device.
    pub channels: T,
    /// Kernel width in tokens.
    pub kernel: T,
    /// The gates or activation fused with it.
    pub form: ConvForm,
    /// Weight elements on this device.
    pub weights: T,
}

impl<N: Num> ShortConv<Qty<N>> {
    #[inline(always)]
    pub fn flops(&self, batch: &Batch<Qty<N>>) -> Qty<N> {
        let around = self.form.flops() as f64;
        (Qty::literal(1.0 * FLOP) * batch.tokens * self.channels * (2.0 * self.kernel + around))
            .is(&CONV_FLOPS)
    }

    #[inline(always)]
    pub fn bytes(&self, batch: &Batch<Qty<N>>, chip: &Chip<Qty<N>>) -> Qty<N> {
        let tokens = batch.tokens * self.channels * (self.form.inputs() as f64 + 1.0);
        let state = 2.0 * batch.sequences * self.channels * self.kernel;
        (chip.activation_bytes * (tokens + state) + chip.native_bytes * self.weights).is(&CONV_BYTES)
    }

    #[inline(always)]
    pub fn cost(&self, batch: &Batch<Qty<N>>, chip: &Chip<Qty<N>>) -> Cost<Qty<N>> {
        roofline(self.flops(batch), self.bytes(batch, chip), &chip.attention())
    }
}

crate::formulas! {
    STEP_FLOPS {
        symbol: "recurrence_flops",
        unit: FLOP,
        why: "each token decays, writes and reads every element of the state: 5 operations, 7 where the decay is computed per element or an old value is removed first, 17 for RG-LRU with the sigmoids of its gates",
        cite: "counted from the definitions: Gu, Dao 2023 (Mamba), 3.2; Dao, Gu 2024 (Mamba-2), 2; Yang, Kautz, Hatamizadeh 2025 (Gated DeltaNet), 3.1; De et al. 2024 (Griffin), 2.4",
    }
    CHUNK_FLOPS {
        symbol: "chunked_recurrence_flops",
        unit: FLOP,
        why: "chunked prefill: scores and sums between the tokens of a chunk, products with the incoming state, and the outgoing state; the delta rule adds a triangular system per chunk",
        cite: "Dao, Gu 2024 (Mamba-2), 6; Qin et al. 2024 (Lightning Attention-2), 3.2; Yang et al. 2024 (DeltaNet), 3.2; Kimi Team 2025 (Kimi Linear), 3",
    }
    STEP_BYTES {
        symbol: "recurrence_bytes",
        unit: BYTE,
        why: "reads and writes the state of each sequence once per step, whatever its length, and moves the inputs and result of each token",
        cite: "Gu, Dao 2023 (Mamba), 3.3.2",
    }
    CHUNK_BYTES {
        symbol: "chunked_recurrence_bytes",
        unit: BYTE,
        why: "as in the token-by-token form, and one kernel writes the state of each chunk and the next kernel reads it",
        cite: "Dao, Gu 2024 (Mamba-2), 6 (states of chunks, then their passing)",
    }
    CONV_FLOPS {
        symbol: "short_conv_flops",
        unit: FLOP,
        why: "one multiply-add per channel, token and tap; SiLU after it counts as 5, gates before and after it as 2",
        cite: "definition (depthwise causal convolution)",
    }
    CONV_BYTES {
        symbol: "short_conv_bytes",
        unit: BYTE,
        why: "reads its input and gates, writes its result, and reads and rewrites the last tokens of each sequence",
        cite: "definition; transformers keeps as many tokens as the kernel has taps, vLLM one less",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::cache::StateWidth;
    use crate::graph::rule::RecurrenceRule;

    fn batch(sequences: f64, new: f64) -> Batch<Qty<f64>> {
        let one = Qty(1.0);
        Batch::new((Qty(sequences), Qty(new), Qty(0.0)), (one, one, one))
    }

    /// 6 heads on 2 key heads, keys of 5 and values of 3 elements.
    fn recurrence(rule: RecurrenceRule, chunk: Option<f64>) -> RecurrenceShard<Qty<f64>> {
        let dims = Recurrence {
            rule,
            heads: Qty(6.0),
            key_heads: Qty(2.0),
            key_dim: Qty(5.0),
            value_dim: Qty(3.0),
            gates: Qty(2.0),
            chunk: chunk.map(Qty),
            state: StateWidth::Single,
        };
        RecurrenceShard { dims, weights: Qty(0.0) }
    }

    #[test]
    fn a_step_costs_by_the_element_of_the_state() {
        for (rule, operations) in [
            (RecurrenceRule::Selective, 7.0),
            (RecurrenceRule::Decay, 5.0),
            (RecurrenceRule::Delta, 7.0),
            (RecurrenceRule::Gated, 17.0),
        ] {
            assert_eq!(
                recurrence(rule, None).flops(&batch(4.0, 1.0)).value(),
                operations * 4.0 * 6.0 * 5.0 * 3.0
            );
        }
    }

    #[test]
    fn chunks_cost_what_their_products_cost() {
        // A chunk of 8 tokens, product by product: [m × k] · [k × n] takes 2·m·k·n operations.
        let product = |m: f64, k: f64, n: f64| 2.0 * m * k * n;
        let passed = 2.0 * 6.0 * 5.0 * 3.0;
        let decay = 2.0 * product(8.0, 5.0, 8.0)
            + 6.0 * (product(8.0, 8.0, 3.0) + product(5.0, 8.0, 3.0) + product(8.0, 5.0, 3.0));
        let flops = recurrence(RecurrenceRule::Decay, Some(8.0)).flops(&batch(1.0, 8.0)).value();
        assert!((flops - (decay + passed)).abs() < 1e-9, "{flops}");
        // Two score products, the solution of their system, keys and values multiplied by it, three products with the
        // state, and one sum.
        let head = 2.0 * product(8.0, 5.0, 8.0)
            + 2.0 * 8.0 * 8.0 * 8.0 / 3.0
            + product(8.0, 8.0, 5.0)
            + product(8.0, 8.0, 3.0)
            + 2.0 * product(8.0, 5.0, 3.0)
            + product(8.0, 8.0, 3.0)
            + product(5.0, 8.0, 3.0);
        let flops = recurrence(RecurrenceRule::Delta, Some(8.0)).flops(&batch(1.0, 8.0)).value();
        assert!((flops - (6.0 * head + passed)).abs() < 1e-9, "{flops}");
    }

    #[test]
    fn a_convolution_costs_by_channel_and_tap() {
        let conv = |form| ShortConv { channels: Qty(7.0), kernel: Qty(4.0), form, weights: Qty(0.0) };
        let flops = |form| conv(form).flops(&batch(2.0, 3.0)).value();
        assert_eq!(flops(ConvForm::Plain), 2.0 * 3.0 * 7.0 * 2.0 * 4.0);
        assert_eq!(flops(ConvForm::Activated), 2.0 * 3.0 * 7.0 * (2.0 * 4.0 + 5.0));
        assert_eq!(flops(ConvForm::Gated), 2.0 * 3.0 * 7.0 * (2.0 * 4.0 + 2.0));
    }
}
