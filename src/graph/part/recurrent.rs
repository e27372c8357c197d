//! Mixers with a state instead of a KV cache, and their shared parts: projections, convolutions, gates.
//!
//! Independent of the surrounding layer and of the cost of a state.

use petgraph::graph::NodeIndex;

use super::delta::Delta;
use super::kimi_delta::KimiDelta;
use super::lightning::Lightning;
use super::lru::Lru;
use super::mamba::Mamba;
use super::memory_cells::{Mlstm, Wkv};
use super::short_conv::GatedConv;
use super::ssd::Ssd;
use crate::graph::assembly::{Assembly, Matrix, weight};
use crate::graph::cache::{Cache, StateWidth};
use crate::graph::operator::{Operator, Split};
use crate::graph::rule::ConvForm;
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;

/// A mixer with a state of fixed size per sequence.
#[derive(Clone, Debug, PartialEq)]
pub enum Recurrent {
    /// Mamba-1.
    Mamba(Mamba),
    /// Mamba-2.
    Ssd(Ssd),
    /// Gated DeltaNet.
    Delta(Delta),
    /// Kimi Delta Attention.
    KimiDelta(KimiDelta),
    /// Lightning attention.
    Lightning(Lightning),
    /// RG-LRU.
    Lru(Lru),
    /// A gated short convolution.
    Conv(GatedConv),
    /// RWKV-4's weighted sums.
    Wkv(Wkv),
    /// The matrix memory of xLSTM.
    Mlstm(Mlstm),
}

impl Recurrent {
    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        match self {
            Recurrent::Mamba(mixer) => mixer.assemble(block, from),
            Recurrent::Ssd(mixer) => mixer.assemble(block, from),
            Recurrent::Delta(mixer) => mixer.assemble(block, from),
            Recurrent::KimiDelta(mixer) => mixer.assemble(block, from),
            Recurrent::Lightning(mixer) => mixer.assemble(block, from),
            Recurrent::Lru(mixer) => mixer.assemble(block, from),
            Recurrent::Conv(mixer) => mixer.assemble(block, from),
            Recurrent::Wkv(mixer) => mixer.assemble(block, from),
            Recurrent::Mlstm(mixer) => mixer.assemble(block, from),
        }
    }

    /// State of one layer per sequence.
    pub fn caches(&self) -> Vec<Cache> {
        match self {
            Recurrent::Mamba(mixer) => mixer.caches(),
            Recurrent::Ssd(mixer) => mixer.caches(),
            Recurrent::Delta(mixer) => mixer.caches(),
            Recurrent::KimiDelta(mixer) => mixer.caches(),
            Recurrent::Lightning(mixer) => mixer.caches(),
            Recurrent::Lru(mixer) => mixer.caches(),
            Recurrent::Conv(mixer) => mixer.caches(),
            Recurrent::Wkv(mixer) => mixer.caches(),
            Recurrent::Mlstm(mixer) => mixer.caches(),
        }
    }
}

/// A projection of a mixer, from `input` to `output` elements, stored under `tensor`.
pub(super) fn project(
    block: &mut Assembly,
    from: NodeIndex,
    (name, tensor): (&'static str, &str),
    (input, output): (Count, Count),
    split: Split,
    bias: bool,
) -> NodeIndex {
    let (tensor, role) = (tensor.to_owned(), TensorRole::Attention);
    block.linear(from, Matrix { name, tensor, input, output, split, role, bias })
}

/// A depthwise convolution, stored under `tensor` as `[channels, 1, kernel]`.
pub(super) fn convolve(
    block: &mut Assembly,
    from: &[NodeIndex],
    (name, tensor): (&'static str, &str),
    (channels, kernel): (Count, Count),
    (form, split, bias): (ConvForm, Split, bool),
) -> NodeIndex {
    let shape = vec![channels.value, 1, kernel.value];
    let mut weights = vec![small(format!("{tensor}.weight"), shape)];
    if bias {
        weights.push(small(format!("{tensor}.bias"), vec![channels.value]));
    }
    block.node(name, Operator::ShortConv { channels, kernel, form, split }, weights, from)
}

/// `act(gate) × x`, element-wise.
pub(super) fn gate(block: &mut Assembly, x: NodeIndex, gate: NodeIndex, width: Count) -> NodeIndex {
    block.node("gate", Operator::Activation { width, gated: true }, vec![], &[x, gate])
}

/// A norm of each head, with one scale shared by all heads.
pub(super) fn head_norm(
    block: &mut Assembly,
    from: NodeIndex,
    (name, tensor): (&'static str, &str),
    (heads, width): (Count, Count),
) -> NodeIndex {
    let weights = vec![weight(format!("{tensor}.weight"), vec![width.value], TensorRole::Norm)];
    block.node(name, Operator::Norm { width, rows: heads, split: Split::Heads }, weights, &[from])
}

/// A small tensor of a recurrence.
pub(super) fn small(name: impl Into<String>, shape: Vec<u64>) -> Weight {
    weight(name, shape, TensorRole::Recurrence)
}

/// The last tokens cached by a convolution, as many as its kernel width. Sharded into at most `parts` parts.
pub fn conv_state(channels: Count, kernel: Count, parts: Count) -> Cache {
    let elements = product("conv_state", channels, kernel, "channels × kernel");
    Cache::State { name: "conv", elements, parts, width: StateWidth::Native }
}

/// The state of these heads.
pub(super) fn head_state(
    name: &'static str,
    heads: Count,
    key_dim: Count,
    value_dim: Count,
    width: StateWidth,
) -> Cache {
    let elements = heads.value * key_dim.value * value_dim.value;
    let elements = Count::derived("state", elements, "heads × key_dim × value_dim");
    Cache::State { name, elements, parts: heads, width }
}

/// A product of two dimensions. Both are within the limits of their keys, so it fits.
pub(super) fn product(symbol: &'static str, one: Count, other: Count, how: &'static str) -> Count {
    Count::derived(symbol, one.value * other.value, how)
}

/// A number fixed by the kind of mixer.
pub(super) fn fixed(symbol: &'static str, value: u64, how: &'static str) -> Count {
    Count::derived(symbol, value, how)
}
