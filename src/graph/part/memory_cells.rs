//! RWKV-4's weighted sums per channel, and the matrix memory of xLSTM.
//!
//! Independent of the surrounding layer.

use petgraph::graph::NodeIndex;

use super::recurrent::{fixed, gate, project, small};
use crate::graph::assembly::{Assembly, weight};
use crate::graph::cache::{Cache, StateWidth};
use crate::graph::dimensions::Recurrence;
use crate::graph::operator::{Operator, Split};
use crate::graph::rule::RecurrenceRule;
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;

/// RWKV-4's mixer of one layer: an exponentially decaying mean of values, weighted by keys, for each channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Wkv {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Channels.
    pub inner: Count,
}

/// The matrix memory of xLSTM in one layer: a decaying sum of outer products with exponential gates.
#[derive(Clone, Debug, PartialEq)]
pub struct Mlstm {
    /// Width of the residual stream.
    pub hidden: Count,
    pub heads: Count,
    /// Elements of a query or key.
    pub key_dim: Count,
    /// Elements of a value.
    pub value_dim: Count,
    /// Tokens of a prefill chunk.
    pub chunk: Count,
}

impl Wkv {
    /// State of one layer per sequence: the last token of mixer and network, and three numbers per channel.
    pub fn caches(&self) -> Vec<Cache> {
        let sums = Count::derived("wkv_state", 3 * self.inner.value, "3 × attention_hidden_size");
        let shift = Count::derived("shift_state", 2 * self.hidden.value, "2 × hidden_size");
        let state = |name, elements, width| Cache::State { name, elements, parts: self.inner, width };
        vec![state("wkv", sums, StateWidth::Single), state("shift", shift, StateWidth::Native)]
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Wkv { hidden, inner } = *self;
        let mut enter = |name, tensor: &str| {
            project(block, from, (name, tensor), (hidden, inner), Split::Replicate, false)
        };
        let (k, v) = (enter("k_proj", "attention.key"), enter("v_proj", "attention.value"));
        let r = enter("r_proj", "attention.receptance");
        let one = || fixed("channel", 1, "a state per channel");
        let rule = Operator::Recurrence(Recurrence {
            rule: RecurrenceRule::Gated,
            heads: inner,
            key_heads: inner,
            key_dim: one(),
            value_dim: one(),
            gates: fixed("gates", 2, "key and receptance"),
            chunk: None,
            state: StateWidth::Single,
        });
        let vector = |name: &str| small(format!("attention.{name}"), vec![inner.value]);
        let mix = |name: &str| small(format!("attention.time_mix_{name}"), vec![1, 1, hidden.value]);
        let weights =
            vec![vector("time_decay"), vector("time_first"), mix("key"), mix("value"), mix("receptance")];
        let y = block.node("wkv", rule, weights, &[k, v]);
        let y = gate(block, y, r, inner);
        project(block, y, ("out_proj", "attention.output"), (inner, hidden), Split::Replicate, false)
    }
}

impl Mlstm {
    /// State of one layer per sequence: a matrix, a vector and a number for each head.
    pub fn caches(&self) -> Vec<Cache> {
        let one = self.key_dim.value * self.value_dim.value + self.key_dim.value + 1;
        let elements =
            Count::derived("mlstm_state", self.heads.value * one, "heads × (key × value + key + 1)");
        vec![Cache::State { name: "mlstm", elements, parts: self.heads, width: StateWidth::Single }]
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Mlstm { hidden, heads, key_dim, value_dim, chunk } = *self;
        let keys = Count::derived("key_width", heads.value * key_dim.value, "heads × key_dim");
        let values = Count::derived("value_width", heads.value * value_dim.value, "heads × value_dim");
        let mut enter = |name, tensor: &str, width, bias| {
            let tensor = format!("mlstm_layer.{tensor}");
            project(block, from, (name, &tensor), (hidden, width), Split::Heads, bias)
        };
        let mixed = [
            enter("q_proj", "q", keys, false),
            enter("k_proj", "k", keys, false),
            enter("v_proj", "v", values, false),
            enter("i_gate", "igate_preact", heads, true),
            enter("f_gate", "fgate_preact", heads, true),
        ];
        let z = enter("o_gate", "ogate_preact", values, false);
        let rule = Operator::Recurrence(Recurrence {
            rule: RecurrenceRule::Decay,
            heads,
            key_heads: heads,
            key_dim,
            value_dim,
            gates: fixed("gates", 2, "gates of input and forgetting"),
            chunk: Some(chunk),
            state: StateWidth::Single,
        });
        let y = block.node("mlstm", rule, vec![], &mixed);
        let scale = weight("mlstm_layer.multihead_norm.weight", vec![values.value], TensorRole::Norm);
        let norm = Operator::Norm { width: value_dim, rows: heads, split: Split::Heads };
        let y = block.node("mixer_norm", norm, vec![scale], &[y]);
        let y = gate(block, y, z, values);
        project(block, y, ("out_proj", "mlstm_layer.out_proj"), (values, hidden), Split::Row, false)
    }
}
