//! Cross-attention to an encoder's states: in a layer of its own behind learned gates (Llama-3.2-Vision, IDEFICS), or
//! between a layer's attention and its network (BLIP), or at a layer's end (Evolla).
//!
//! Depends on the encoder only through its number of positions.

use petgraph::graph::NodeIndex;

use super::attention::{Attention, QkNorm};
use super::feed_forward::FeedForward;
use crate::graph::assembly::{Affine, Assembly, Matrix, NormRows, NormSpec, weight};
use crate::graph::cache::{Cache, StateWidth};
use crate::graph::dimensions::{CrossAttention, ScoredKeys, Scores};
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;

/// Cross-attention of one layer, with the dimensions of the text layers.
#[derive(Clone, Debug, PartialEq)]
pub struct Cross {
    /// Heads, widths, biases, and whether queries and keys have norms of `head_dim`.
    pub attention: Attention,
    /// Width of the encoder's states.
    pub source: Count,
    /// Encoder positions that a sequence attends to.
    pub positions: Count,
    /// Learned scalar gates on attention and network, by name.
    pub gates: &'static [&'static str],
}

/// Cross-attention and a network of its own at the end of a layer, both with a norm (Evolla).
#[derive(Clone, Debug, PartialEq)]
pub struct CrossAdapter {
    pub cross: Cross,
    pub network: FeedForward,
}

impl CrossAdapter {
    /// Adds the operators after the layer's last sum.
    pub fn assemble(&self, block: &mut Assembly, stream: NodeIndex) -> NodeIndex {
        let sum = Operator::Add { width: self.cross.attention.hidden };
        let normed = block.stream_norm(stream, "adapter_norm", "adapter.attention_norm", Affine::Scale);
        let attended = self.cross.assemble(block, normed);
        let stream = block.node("adapter_add", sum.clone(), vec![], &[attended, stream]);
        let normed = block.stream_norm(stream, "adapter_ffn_norm", "adapter.ff.norm", Affine::ScaleAndShift);
        let network = self.network.assemble_at(block, normed, "adapter.ff");
        block.node("adapter_ffn_add", sum, vec![], &[network, stream])
    }
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
        let Attention { hidden, heads, kv_heads, head_dim, qkv_bias, o_bias, qk_norm, .. } = self.attention;
        let Cross { source, positions, .. } = *self;
        let normed = qk_norm != QkNorm::Absent;
        let wide =
            |symbol, heads: Count| Count::derived(symbol, heads.value * head_dim.value, "heads × head_dim");
        let (q_width, kv_width) = (wide("q_width", heads), wide("kv_width", kv_heads));
        let matrix = |name: &'static str, input, output, split, bias| Matrix {
            name,
            tensor: format!("cross_attn.{name}"),
            input,
            output,
            split,
            role: TensorRole::Attention,
            bias,
        };
        let q = block.linear(from, matrix("q_proj", hidden, q_width, Split::Heads, qkv_bias));
        let spec = NormSpec {
            name: "q_norm",
            tensor: "cross_attn.q_norm".to_owned(),
            width: head_dim,
            rows: heads,
            split: Split::Heads,
            affine: Affine::Scale,
            sharing: NormRows::Shared,
        };
        let q = if normed { block.norm(q, spec) } else { q };
        let mut weights: Vec<Weight> = vec![];
        for name in ["k_proj", "v_proj"] {
            let stored = |end, shape, role| weight(format!("cross_attn.{name}.{end}"), shape, role);
            weights.push(stored("weight", vec![kv_width.value, source.value], TensorRole::Attention));
            weights.extend(qkv_bias.then(|| stored("bias", vec![kv_width.value], TensorRole::Bias)));
        }
        let k_norm = || weight("cross_attn.k_norm.weight", vec![head_dim.value], TensorRole::Norm);
        weights.extend(normed.then(k_norm));
        weights.extend(self.gates.iter().map(|gate| weight(*gate, vec![1], TensorRole::Norm)));
        let cross = Operator::CrossAttention(CrossAttention { heads, kv_heads, head_dim, source, positions });
        let softmax = block.softmax(Scores { heads, keys: ScoredKeys::Positions(positions) }, &[q]);
        let attention = block.node("cross_attention", cross, weights, &[q, softmax]);
        block.linear(attention, matrix("o_proj", q_width, hidden, Split::Row, o_bias))
    }
}
