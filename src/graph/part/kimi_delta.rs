//! Kimi Delta Attention: the delta rule with one decay per key channel and low-rank gates (Kimi-Linear).
//!
//! Independent of the surrounding layer.

use petgraph::graph::NodeIndex;

use super::delta::CHUNK;
use super::recurrent::{conv_state, convolve, fixed, gate, head_norm, head_state, product, project, small};
use crate::graph::assembly::Assembly;
use crate::graph::cache::{Cache, StateWidth};
use crate::graph::dimensions::Recurrence;
use crate::graph::operator::{Operator, Split};
use crate::graph::rule::{ConvForm, RecurrenceRule};
use crate::quantity::count::Count;

/// The matrices of the decays and of the gate on the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GateRank {
    /// A pair of matrices with `head_dim` elements between them (Kimi-Linear).
    Low,
    /// One matrix each (Bailing-Hybrid).
    Full,
}

/// Kimi Delta Attention of one layer: keys and values have the same number and width.
#[derive(Clone, Debug, PartialEq)]
pub struct KimiDelta {
    /// Width of the residual stream.
    pub hidden: Count,
    pub heads: Count,
    /// Elements of a head's query, key and value; also the rank of low-rank gates.
    pub head_dim: Count,
    /// Kernel width of the convolutions, in tokens.
    pub kernel: Count,
    /// The matrices of its gates.
    pub gates: GateRank,
}

impl KimiDelta {
    fn inner(&self) -> Count {
        product("kda_width", self.heads, self.head_dim, "heads × head_dim")
    }

    /// State of one layer per sequence.
    pub fn caches(&self) -> Vec<Cache> {
        let KimiDelta { heads, head_dim, kernel, .. } = *self;
        let channels = Count::derived("conv_width", 3 * self.inner().value, "queries, keys and values");
        vec![
            conv_state(channels, kernel, heads),
            head_state("delta", heads, head_dim, head_dim, StateWidth::Single),
        ]
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let KimiDelta { hidden, heads, head_dim, kernel, .. } = *self;
        let inner = self.inner();
        let mut mixed = vec![];
        for (name, tensor, conv, conv_tensor) in [
            ("q_proj", "self_attn.q_proj", "q_conv", "self_attn.q_conv1d"),
            ("k_proj", "self_attn.k_proj", "k_conv", "self_attn.k_conv1d"),
            ("v_proj", "self_attn.v_proj", "v_conv", "self_attn.v_conv1d"),
        ] {
            let projected = project(block, from, (name, tensor), (hidden, inner), Split::Heads, false);
            let form = (ConvForm::Activated, Split::Heads, false);
            mixed.push(convolve(block, &[projected], (conv, conv_tensor), (inner, kernel), form));
        }
        let mut gate_of = |names: [&'static str; 3]| {
            let [whole, a, b] = names.map(|name| (name, format!("self_attn.{name}")));
            let (from, input, (name, tensor)) = match self.gates {
                GateRank::Full => (from, hidden, whole),
                GateRank::Low => {
                    let names = (a.0, a.1.as_str());
                    (project(block, from, names, (hidden, head_dim), Split::Replicate, false), head_dim, b)
                }
            };
            project(block, from, (name, &tensor), (input, inner), Split::Heads, false)
        };
        mixed.push(gate_of(["f_proj", "f_a_proj", "f_b_proj"]));
        let z = gate_of(["g_proj", "g_a_proj", "g_b_proj"]);
        mixed.push(project(
            block,
            from,
            ("b_proj", "self_attn.b_proj"),
            (hidden, heads),
            Split::Heads,
            false,
        ));
        let rule = Operator::Recurrence(Recurrence {
            rule: RecurrenceRule::ChannelDelta,
            heads,
            key_heads: heads,
            key_dim: head_dim,
            value_dim: head_dim,
            gates: Count::derived("gates", head_dim.value + 1, "a decay per key channel and a step"),
            chunk: Some(fixed("chunk", CHUNK, "64 tokens per chunk, as in the kernels")),
            state: StateWidth::Single,
        });
        let decays = match self.gates {
            GateRank::Low => vec![1, 1, heads.value, 1],
            GateRank::Full => vec![heads.value],
        };
        let weights = vec![small("self_attn.A_log", decays), small("self_attn.dt_bias", vec![inner.value])];
        let y = block.node("delta_rule", rule, weights, &mixed);
        let y = head_norm(block, y, ("mixer_norm", "self_attn.o_norm"), (heads, head_dim));
        let y = gate(block, y, z, inner);
        project(block, y, ("o_proj", "self_attn.o_proj"), (inner, hidden), Split::Row, false)
    }
}
