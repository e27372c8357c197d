//! Gated DeltaNet: the gated delta rule behind a short convolution, with a gated norm (Qwen3-Next, Qwen3.5).
//!
//! Independent of the surrounding layer.

use petgraph::graph::NodeIndex;

use super::recurrent::{conv_state, convolve, fixed, gate, head_norm, head_state, product, project, small};
use crate::graph::assembly::Assembly;
use crate::graph::cache::{Cache, StateWidth};
use crate::graph::dimensions::Recurrence;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::misfit;
use crate::graph::rule::{ConvForm, RecurrenceRule};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Chunk size of the gated delta rule's kernels, in tokens.
pub(super) const CHUNK: u64 = 64;

/// Gated DeltaNet of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Delta {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Heads of queries and keys.
    pub key_heads: Count,
    /// Heads of values and of the state.
    pub value_heads: Count,
    /// Elements of a key.
    pub key_dim: Count,
    /// Elements of a value.
    pub value_dim: Count,
    /// Kernel width of the convolution, in tokens.
    pub kernel: Count,
    /// Number format of a state element.
    pub width: StateWidth,
    /// Queries and keys come from a matrix each (OLMo-Hybrid).
    pub two_matrices: bool,
}

impl Delta {
    /// The keys of Qwen3-Next and Qwen3.5, whose classes have the same defaults.
    pub fn read(keys: &Keys<'_>, hidden: Count, width: StateWidth) -> Result<Delta, Error> {
        let delta = Delta {
            hidden,
            key_heads: keys.count_or("linear_num_key_heads", 16)?,
            value_heads: keys.count_or("linear_num_value_heads", 32)?,
            key_dim: keys.count_or("linear_key_head_dim", 128)?,
            value_dim: keys.count_or("linear_value_head_dim", 128)?,
            kernel: keys.count_or("linear_conv_kernel_dim", 4)?,
            width,
            two_matrices: false,
        };
        if delta.value_heads.value.is_multiple_of(delta.key_heads.value) {
            return Ok(delta);
        }
        Err(misfit(
            delta.value_heads,
            format!("a multiple of linear_num_key_heads {}", delta.key_heads.value),
        ))
    }

    fn widths(&self) -> (Count, Count, Count) {
        let keys = 2 * self.key_heads.value * self.key_dim.value;
        let values = product("value_width", self.value_heads, self.value_dim, "value heads × value head_dim");
        let queries_and_keys = Count::derived("qk_width", keys, "2 × key heads × key head_dim");
        let channels = Count::derived("conv_width", keys + values.value, "queries, keys and values");
        (queries_and_keys, values, channels)
    }

    /// State of one layer per sequence.
    pub fn caches(&self) -> Vec<Cache> {
        let Delta { key_heads, value_heads, key_dim, value_dim, kernel, width, .. } = *self;
        vec![
            conv_state(self.widths().2, kernel, key_heads),
            head_state("delta", value_heads, key_dim, value_dim, width),
        ]
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Delta { hidden, key_heads, value_heads, key_dim, value_dim, kernel, .. } = *self;
        let (queries_and_keys, values, channels) = self.widths();
        let mut enter = |name: &'static str, width| {
            let tensor = format!("linear_attn.{name}");
            project(block, from, (name, &tensor), (hidden, width), Split::Heads, false)
        };
        let mut inputs = match self.two_matrices {
            true => {
                let keys = product("key_width", key_heads, key_dim, "key heads × key head_dim");
                vec![enter("q_proj", keys), enter("k_proj", keys)]
            }
            false => vec![enter("in_proj_qk", queries_and_keys)],
        };
        inputs.push(enter("in_proj_v", values));
        let z = enter("in_proj_z", values);
        let (b, a) = (enter("in_proj_b", value_heads), enter("in_proj_a", value_heads));
        let form = (ConvForm::Activated, Split::Heads, false);
        let qkv = convolve(block, &inputs, ("conv1d", "linear_attn.conv1d"), (channels, kernel), form);
        let rule = Operator::Recurrence(Recurrence {
            rule: RecurrenceRule::Delta,
            heads: value_heads,
            key_heads,
            key_dim,
            value_dim,
            gates: fixed("gates", 2, "a decay and a step per head"),
            chunk: Some(fixed("chunk", CHUNK, "64 tokens per chunk, as in the class")),
            state: self.width,
        });
        let vector = |name: &str| small(format!("linear_attn.{name}"), vec![value_heads.value]);
        let y = block.node("delta_rule", rule, vec![vector("dt_bias"), vector("A_log")], &[qkv, b, a]);
        let y = head_norm(block, y, ("mixer_norm", "linear_attn.norm"), (value_heads, value_dim));
        let y = gate(block, y, z, values);
        project(block, y, ("out_proj", "linear_attn.out_proj"), (values, hidden), Split::Row, false)
    }
}
