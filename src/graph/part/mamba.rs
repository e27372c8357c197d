//! Mamba-1: a convolution and a selective scan between two projections (Mamba, Falcon-Mamba, Jamba).
//!
//! Independent of the surrounding layer.

use petgraph::graph::NodeIndex;

use super::recurrent::{conv_state, convolve, fixed, gate, head_state, project, small};
use crate::graph::assembly::{Affine, Assembly, once, weight};
use crate::graph::cache::{Cache, StateWidth};
use crate::graph::dimensions::Recurrence;
use crate::graph::operator::{Operator, Split};
use crate::graph::rule::{ConvForm, RecurrenceRule};
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;

/// The Mamba-1 mixer of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Mamba {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Inner channels.
    pub inner: Count,
    /// Elements of a channel's state.
    pub state: Count,
    /// Rank of the step projection.
    pub dt_rank: Count,
    /// Kernel width of the convolution, in tokens.
    pub kernel: Count,
    /// Biases on the input and output projections.
    pub bias: bool,
    /// Bias of the convolution.
    pub conv_bias: bool,
    /// Norms of step, B and C: none, without weights (Falcon-Mamba), or with weights (Jamba).
    pub norms: Option<Affine>,
    /// Heads of channels, each with its own step, B and C (Zamba); `None`: all channels share them.
    pub heads: Option<Count>,
}

impl Mamba {
    /// State of one layer per sequence.
    pub fn caches(&self) -> Vec<Cache> {
        let one = fixed("value_dim", 1, "one head per channel, with one element each");
        vec![
            conv_state(self.inner, self.kernel, self.inner),
            head_state("ssm", self.inner, self.state, one, StateWidth::Native),
        ]
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Mamba { hidden, inner, state, dt_rank, kernel, bias, conv_bias, norms, heads } = *self;
        let ends = (hidden, inner);
        let x = project(block, from, ("x_proj_in", "mamba.in_proj"), ends, Split::Heads, bias);
        let z = project(block, from, ("z_proj", "mamba.in_proj"), ends, Split::Heads, bias);
        let form = (ConvForm::Activated, Split::Heads, conv_bias);
        let x = convolve(block, &[x], ("conv1d", "mamba.conv1d"), (inner, kernel), form);
        let steering = Count::derived("dt_b_c", dt_rank.value + 2 * state.value, "dt_rank + 2 × state_size");
        let steering = match heads {
            None => project(block, x, ("x_proj", "mamba.x_proj"), (inner, steering), Split::Row, false),
            Some(heads) => self.of_heads(block, x, "x_proj", (heads, steering)),
        };
        let mut norm = |name: &'static str, width: Count| match norms {
            None => steering,
            Some(affine) => {
                let learned = || weight(format!("mamba.{name}.weight"), vec![width.value], TensorRole::Norm);
                let weights = if affine == Affine::Absent { vec![] } else { vec![learned()] };
                let norm = Operator::Norm { width, rows: once(), split: Split::Replicate };
                block.node(name, norm, weights, &[steering])
            }
        };
        let (dt, b, c) =
            (norm("dt_layernorm", dt_rank), norm("b_layernorm", state), norm("c_layernorm", state));
        let dt = match heads {
            None => project(block, dt, ("dt_proj", "mamba.dt_proj"), (dt_rank, inner), Split::Heads, true),
            Some(heads) => self.of_heads(block, dt, "dt_proj", (heads, dt_rank)),
        };
        let scan = Operator::Recurrence(Recurrence {
            rule: RecurrenceRule::Selective,
            heads: inner,
            key_heads: heads.unwrap_or_else(|| fixed("key_heads", 1, "all channels share B and C")),
            key_dim: state,
            value_dim: fixed("value_dim", 1, "one head per channel, with one element each"),
            gates: fixed("gates", 1, "one step per channel"),
            chunk: None,
            state: StateWidth::Native,
        });
        let channels = heads.map_or(vec![inner.value], |heads| vec![heads.value, inner.value / heads.value]);
        let decays = [&channels[..], &[state.value]].concat();
        let weights = vec![small("mamba.A_log", decays), small("mamba.D", channels)];
        let inputs = if b == c { vec![x, dt, b] } else { vec![x, dt, b, c] };
        let y = block.node("selective_scan", scan, weights, &inputs);
        let y = gate(block, y, z, inner);
        project(block, y, ("out_proj", "mamba.out_proj"), (inner, hidden), Split::Row, bias)
    }

    /// A projection of each head: of its channels to `width` elements, or back from these to its channels with a bias.
    fn of_heads(
        &self,
        block: &mut Assembly,
        from: NodeIndex,
        name: &'static str,
        (groups, width): (Count, Count),
    ) -> NodeIndex {
        let channels =
            Count::derived("mamba_head_dim", self.inner.value / groups.value, "d_inner / n_mamba_heads");
        let back = name == "dt_proj";
        let (input, output) = if back { (width, channels) } else { (channels, width) };
        let shape = vec![groups.value, output.value, input.value];
        let mut weights = vec![weight(format!("mamba.{name}_weight"), shape, TensorRole::Attention)];
        if back {
            let bias = vec![groups.value, output.value];
            weights.push(weight(format!("mamba.{name}_bias"), bias, TensorRole::Bias));
        }
        block.node(name, Operator::GroupedLinear { groups, input, output }, weights, &[from])
    }
}
