//! RG-LRU: a gated linear recurrence after a short convolution, in parallel with a gate (RecurrentGemma).
//!
//! Independent of the surrounding layer.

use petgraph::graph::NodeIndex;

use super::recurrent::{conv_state, convolve, fixed, gate, head_state, project, small};
use crate::graph::assembly::{Assembly, weight};
use crate::graph::cache::{Cache, StateWidth};
use crate::graph::dimensions::Recurrence;
use crate::graph::operator::{Operator, Split};
use crate::graph::rule::{ConvForm, RecurrenceRule};
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;

/// A recurrent block of RecurrentGemma in one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Lru {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Channels of the recurrence.
    pub width: Count,
    /// Blocks of the block-diagonal gate matrices.
    pub blocks: Count,
    /// Channels of a block.
    pub block_width: Count,
    /// Kernel width of the convolution, in tokens.
    pub kernel: Count,
}

impl Lru {
    /// State of one layer per sequence.
    pub fn caches(&self) -> Vec<Cache> {
        let one = fixed("one", 1, "one number per channel");
        // This class caches the tokens before the newest one; others cache the newest one as well.
        let kept = Count::derived("kept", self.kernel.value.saturating_sub(1), "conv1d_width - 1");
        vec![
            conv_state(self.width, kept, self.blocks),
            head_state("lru", self.width, one, one, StateWidth::Single),
        ]
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Lru { hidden, width, blocks, block_width, kernel } = *self;
        let ends = (hidden, width);
        let y = project(block, from, ("linear_y", "temporal_block.linear_y"), ends, Split::Heads, true);
        let x = project(block, from, ("linear_x", "temporal_block.linear_x"), ends, Split::Heads, true);
        let form = (ConvForm::Plain, Split::Heads, true);
        let x = convolve(block, &[x], ("conv_1d", "temporal_block.conv_1d"), (width, kernel), form);
        let mut gates = |name: &'static str| {
            let tensor = format!("temporal_block.rg_lru.{name}");
            let (count, size) = (blocks.value, block_width.value);
            let weights = vec![
                weight(format!("{tensor}_weight"), vec![count, size, size], TensorRole::Attention),
                weight(format!("{tensor}_bias"), vec![count, size], TensorRole::Bias),
            ];
            let matrix = Operator::GroupedLinear { groups: blocks, input: block_width, output: block_width };
            block.node(name, matrix, weights, &[x])
        };
        let (input_gate, recurrent_gate) = (gates("input_gate"), gates("recurrent_gate"));
        let one = fixed("one", 1, "one number per channel");
        let rule = Operator::Recurrence(Recurrence {
            rule: RecurrenceRule::Gated,
            heads: width,
            key_heads: one,
            key_dim: one,
            value_dim: one,
            gates: fixed("gates", 2, "an input gate and a recurrence gate per channel"),
            chunk: None,
            state: StateWidth::Single,
        });
        let weights = vec![small("temporal_block.rg_lru.recurrent_param", vec![width.value])];
        let h = block.node("rg_lru", rule, weights, &[x, input_gate, recurrent_gate]);
        let h = gate(block, h, y, width);
        let names = ("linear_out", "temporal_block.linear_out");
        project(block, h, names, (width, hidden), Split::Row, true)
    }
}
