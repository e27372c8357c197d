//! Lightning attention: linear attention with a fixed decay per head and a gated norm (MiniMax-Text-01).
//!
//! Independent of the surrounding layer.

use petgraph::graph::NodeIndex;

use super::recurrent::{fixed, gate, head_state, product, project};
use crate::graph::assembly::{Assembly, weight};
use crate::graph::cache::{Cache, StateWidth};
use crate::graph::dimensions::Recurrence;
use crate::graph::operator::{Operator, Split};
use crate::graph::rule::RecurrenceRule;
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;

/// Lightning attention of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Lightning {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Heads of queries, keys and values.
    pub heads: Count,
    /// Elements of a head.
    pub head_dim: Count,
    /// Tokens of a prefill chunk.
    pub chunk: Count,
}

impl Lightning {
    /// State of one layer per sequence.
    pub fn caches(&self) -> Vec<Cache> {
        vec![head_state("linear", self.heads, self.head_dim, self.head_dim, StateWidth::Native)]
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Lightning { hidden, heads, head_dim, chunk } = *self;
        let inner = product("linear_width", heads, head_dim, "num_attention_heads × head_dim");
        let qkv = Count::derived("qkv_width", 3 * inner.value, "3 × num_attention_heads × head_dim");
        let all =
            project(block, from, ("qkv_proj", "self_attn.qkv_proj"), (hidden, qkv), Split::Heads, false);
        let all = block.node("activation", Operator::Activation { width: qkv, gated: false }, vec![], &[all]);
        let rule = Operator::Recurrence(Recurrence {
            rule: RecurrenceRule::Decay,
            heads,
            key_heads: heads,
            key_dim: head_dim,
            value_dim: head_dim,
            gates: fixed("gates", 0, "the decay is fixed per head"),
            chunk: Some(chunk),
            state: StateWidth::Native,
        });
        let y = block.node("linear_attention", rule, self.decays(), &[all]);
        let y = block.stream_norm(y, "mixer_norm", "self_attn.norm", crate::graph::assembly::Affine::Scale);
        let names = ("output_gate", "self_attn.output_gate");
        let z = project(block, from, names, (hidden, inner), Split::Heads, false);
        let y = gate(block, y, z, inner);
        project(block, y, ("out_proj", "self_attn.out_proj"), (inner, hidden), Split::Row, false)
    }

    /// Decay buffers of the class: per head, per query and key position in a chunk, and between positions.
    fn decays(&self) -> Vec<Weight> {
        let (heads, chunk) = (self.heads.value, self.chunk.value);
        let buffer = |name: &str, shape| Weight {
            buffer: true,
            ..weight(format!("self_attn.{name}"), shape, TensorRole::Recurrence)
        };
        vec![
            buffer("slope_rate", vec![heads, 1, 1]),
            buffer("query_decay", vec![heads, chunk, 1]),
            buffer("key_decay", vec![heads, chunk, 1]),
            buffer("diagonal_decay", vec![1, heads, chunk, chunk]),
        ]
    }
}
