//! Cross-attention to an encoder's states in a separate layer (Llama-3.2-Vision), behind learned gates.
//!
//! Depends on the encoder only through its number of positions.

use petgraph::graph::NodeIndex;

use super::attention::Attention;
use crate::graph::assembly::{Affine, Assembly, Matrix, NormRows, NormSpec, weight};
use crate::graph::cache::{Cache, StateWidth};
use crate::graph::dimensions::{CrossAttention, ScoredKeys, Scores};
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;

/// Cross-attention of one layer, with the dimensions of the text layers.
#[derive(Clone, Debug, PartialEq)]
pub struct Cross {
    /// Heads and widths.
    pub attention: Attention,
    /// Encoder positions that a sequence attends to.
    pub positions: Count,
    /// Learned scalar gates on attention and network, by name.
    pub gates: &'static [&'static str],
}

impl Cross {
    /// State of one layer: keys and values of the encoder's positions, independent of text length.
    pub fn caches(&self) -> Vec<Cache> {
        let Attention { kv_heads, head_dim, .. } = self.attention;
        let elements = self.positions.value * kv_heads.value * 2 * head_dim.value;
        let elements = Count::derived("cross_kv", elements, "positions × num_key_value_heads × 2 × head_dim");
        vec![Cache::State { name: "cross_kv", elements, parts: kv_heads, width: StateWidth::Native }]
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Attention { hidden, heads, kv_heads, head_dim, .. } = self.attention;
        let wide =
            |symbol, heads: Count| Count::derived(symbol, heads.value * head_dim.value, "heads × head_dim");
        let (q_width, kv_width) = (wide("q_width", heads), wide("kv_width", kv_heads));
        let matrix = |name: &'static str, input, output, split| Matrix {
            name,
            tensor: format!("cross_attn.{name}"),
            input,
            output,
            split,
            role: TensorRole::Attention,
            bias: false,
        };
        let q = block.linear(from, matrix("q_proj", hidden, q_width, Split::Heads));
        let q_norm = NormSpec {
            name: "q_norm",
            tensor: "cross_attn.q_norm".to_owned(),
            width: head_dim,
            rows: heads,
            split: Split::Heads,
            affine: Affine::Scale,
            sharing: NormRows::Shared,
        };
        let q = block.norm(q, q_norm);
        let mut weights: Vec<Weight> = ["k_proj", "v_proj"]
            .map(|name| {
                weight(
                    format!("cross_attn.{name}.weight"),
                    vec![kv_width.value, hidden.value],
                    TensorRole::Attention,
                )
            })
            .to_vec();
        weights.push(weight("cross_attn.k_norm.weight", vec![head_dim.value], TensorRole::Norm));
        weights.extend(self.gates.iter().map(|gate| weight(*gate, vec![1], TensorRole::Norm)));
        let positions = self.positions;
        let cross =
            Operator::CrossAttention(CrossAttention { heads, kv_heads, head_dim, source: hidden, positions });
        let softmax = block.softmax(Scores { heads, keys: ScoredKeys::Positions(positions) }, &[q]);
        let attention = block.node("cross_attention", cross, weights, &[q, softmax]);
        block.linear(attention, matrix("o_proj", q_width, hidden, Split::Row))
    }
}
