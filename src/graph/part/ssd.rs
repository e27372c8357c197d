//! Mamba-2 (SSD): heads with one decay each, B and C by groups (Nemotron-H, Granite-4, Falcon-H1, Bamba).
//!
//! Independent of the surrounding layer.

use petgraph::graph::NodeIndex;

use super::recurrent::{conv_state, convolve, fixed, gate, head_state, product, project, small};
use crate::graph::assembly::{Assembly, weight};
use crate::graph::cache::{Cache, StateWidth};
use crate::graph::dimensions::Recurrence;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::misfit;
use crate::graph::rule::{ConvForm, RecurrenceRule};
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;
use crate::spec::error::Error;

/// The Mamba-2 mixer of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Ssd {
    /// Width of the residual stream.
    pub hidden: Count,
    pub heads: Count,
    /// Elements of a head.
    pub head_dim: Count,
    /// Groups of heads that share B and C.
    pub groups: Count,
    /// Rows of a head's state.
    pub state: Count,
    /// Kernel width of the convolution, in tokens.
    pub kernel: Count,
    /// Tokens of a prefill chunk.
    pub chunk: Count,
    /// Biases on the input and output projections.
    pub bias: [bool; 2],
    /// Bias of the convolution.
    pub conv_bias: bool,
    /// A norm before the output projection.
    pub norm: bool,
    /// Number format of a state element.
    pub width: StateWidth,
}

impl Ssd {
    /// Returns an error if the heads do not divide into the groups.
    pub fn checked(self) -> Result<Ssd, Error> {
        if self.heads.value.is_multiple_of(self.groups.value) {
            return Ok(self);
        }
        Err(misfit(
            self.groups,
            format!("a divisor of the {} heads of {}", self.heads.value, self.heads.symbol),
        ))
    }

    fn inner(&self) -> Count {
        product("d_inner", self.heads, self.head_dim, "mamba heads × head_dim")
    }

    fn b_and_c(&self) -> Count {
        Count::derived("b_and_c", 2 * self.groups.value * self.state.value, "2 × groups × state_size")
    }

    /// State of one layer per sequence.
    pub fn caches(&self) -> Vec<Cache> {
        vec![
            conv_state(self.inner(), self.kernel, self.heads),
            conv_state(self.b_and_c(), self.kernel, self.groups),
            head_state("ssm", self.heads, self.state, self.head_dim, self.width),
        ]
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Ssd { hidden, heads, head_dim, groups, state, kernel, chunk, conv_bias, .. } = *self;
        let (inner, b_and_c, bias) = (self.inner(), self.b_and_c(), self.bias[0]);
        // A single group is replicated on every device; several groups are sharded with their heads.
        let shared = if groups.value == 1 { Split::Replicate } else { Split::Heads };
        let mut enter = |name: &'static str, width, split| {
            project(block, from, (name, "mamba.in_proj"), (hidden, width), split, bias)
        };
        let z = enter("z_proj", inner, Split::Heads);
        let x = enter("x_proj", inner, Split::Heads);
        let bc = enter("bc_proj", b_and_c, shared);
        let dt = enter("dt_proj", heads, Split::Heads);
        let mut conv = |name: &'static str, from, channels, split| {
            let form = (ConvForm::Activated, split, conv_bias);
            convolve(block, &[from], (name, "mamba.conv1d"), (channels, kernel), form)
        };
        let x = conv("conv1d_x", x, inner, Split::Heads);
        let bc = conv("conv1d_bc", bc, b_and_c, shared);
        let scan = Operator::Recurrence(Recurrence {
            rule: RecurrenceRule::Decay,
            heads,
            key_heads: groups,
            key_dim: state,
            value_dim: head_dim,
            gates: fixed("gates", 1, "one step per head"),
            chunk: Some(chunk),
            state: self.width,
        });
        let vector = |name: &str| small(format!("mamba.{name}"), vec![heads.value]);
        let weights = vec![vector("dt_bias"), vector("A_log"), vector("D")];
        let y = block.node("ssd", scan, weights, &[x, bc, dt]);
        let mut y = gate(block, y, z, inner);
        if self.norm {
            let width = Count::derived("group_width", inner.value / groups.value, "d_inner / groups");
            let weights = vec![weight("mamba.norm.weight", vec![inner.value], TensorRole::Norm)];
            y = block.node(
                "mixer_norm",
                Operator::Norm { width, rows: groups, split: shared },
                weights,
                &[y],
            );
        }
        project(block, y, ("out_proj", "mamba.out_proj"), (inner, hidden), Split::Row, self.bias[1])
    }
}
