//! Lightning attention: linear attention with a fixed decay per head and a gated norm (MiniMax-Text-01, Ling 2.5).
//!
//! Independent of the surrounding layer.

use petgraph::graph::NodeIndex;

use super::recurrent::{fixed, gate, head_norm, head_state, product, project};
use super::rope::Rope;
use crate::graph::assembly::{Affine, Assembly, weight};
use crate::graph::cache::{Cache, StateWidth};
use crate::graph::dimensions::Recurrence;
use crate::graph::operator::{Operator, Split};
use crate::graph::rule::RecurrenceRule;
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;

/// The treatment of queries, keys and the result in the two families.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LightningForm {
    /// Queries, keys and values are activated; one norm on the result; the class has buffers of decays (MiniMax).
    Activated,
    /// Queries and keys are rotated, behind norms on their heads if `normed`; the result has a norm of each of `groups`
    /// (Bailing).
    Rotated { rope: Rope, normed: bool, groups: Count },
}

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
    /// The treatment of queries, keys and the result.
    pub form: LightningForm,
}

impl Lightning {
    /// State of one layer per sequence.
    pub fn caches(&self) -> Vec<Cache> {
        vec![head_state("linear", self.heads, self.head_dim, self.head_dim, StateWidth::Native)]
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Lightning { hidden, heads, head_dim, chunk, form } = *self;
        let inner = product("linear_width", heads, head_dim, "num_attention_heads × head_dim");
        let mixed = self.projected(block, from, inner);
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
        let y = block.node("linear_attention", rule, self.decays(), &mixed);
        let (y, gate_name) = match form {
            LightningForm::Activated => {
                (block.stream_norm(y, "mixer_norm", "self_attn.norm", Affine::Scale), "self_attn.output_gate")
            }
            LightningForm::Rotated { groups, .. } => {
                let width = Count::derived(
                    "group_width",
                    inner.value / groups.value,
                    "num_attention_heads × head_dim / group_norm_size",
                );
                let norm = Operator::Norm { width, rows: groups, split: Split::Heads };
                let weights = vec![weight("self_attn.g_norm.weight", vec![inner.value], TensorRole::Norm)];
                (block.node("mixer_norm", norm, weights, &[y]), "self_attn.g_proj")
            }
        };
        let z = project(block, from, ("output_gate", gate_name), (hidden, inner), Split::Heads, false);
        let y = gate(block, y, z, inner);
        project(block, y, ("out_proj", "self_attn.out_proj"), (inner, hidden), Split::Row, false)
    }

    /// Queries, keys and values as the recurrence takes them.
    fn projected(&self, block: &mut Assembly, from: NodeIndex, inner: Count) -> Vec<NodeIndex> {
        let Lightning { hidden, heads, head_dim, form, .. } = *self;
        let LightningForm::Rotated { rope, normed, .. } = form else {
            let qkv = Count::derived("qkv_width", 3 * inner.value, "3 × num_attention_heads × head_dim");
            let names = ("qkv_proj", "self_attn.qkv_proj");
            let all = project(block, from, names, (hidden, qkv), Split::Heads, false);
            let activation = Operator::Activation { width: qkv, gated: false };
            return vec![block.node("activation", activation, vec![], &[all])];
        };
        let mut matrix = |name: &'static str, tensor: &str| {
            project(block, from, (name, tensor), (hidden, inner), Split::Heads, false)
        };
        let [q, k, v] = [
            matrix("q_proj", "self_attn.q_proj"),
            matrix("k_proj", "self_attn.k_proj"),
            matrix("v_proj", "self_attn.v_proj"),
        ];
        let mut rotated = |from, tensor: &str, names: [&'static str; 2]| {
            let normed = match normed {
                true => head_norm(block, from, (names[0], tensor), (heads, head_dim)),
                false => from,
            };
            rope.assemble(block, names[1], normed, (heads, head_dim, Split::Heads))
        };
        vec![
            rotated(q, "self_attn.q_norm", ["q_norm", "q_rope"]),
            rotated(k, "self_attn.k_norm", ["k_norm", "k_rope"]),
            v,
        ]
    }

    /// Decay buffers of MiniMax's class: per head, per query and key position in a chunk, and between positions.
    fn decays(&self) -> Vec<Weight> {
        if self.form != LightningForm::Activated {
            return vec![];
        }
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
