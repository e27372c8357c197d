//! A short convolution between two gates, which replaces attention in most layers of LFM2.
//!
//! Independent of the surrounding layer.

use petgraph::graph::NodeIndex;

use super::recurrent::{conv_state, convolve, project};
use crate::graph::assembly::Assembly;
use crate::graph::cache::Cache;
use crate::graph::operator::Split;
use crate::graph::rule::ConvForm;
use crate::quantity::count::Count;

/// The gated short convolution of one layer, as wide as the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct GatedConv {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Kernel width in tokens.
    pub kernel: Count,
    /// Biases on convolution and projections.
    pub bias: bool,
}

impl GatedConv {
    /// State of one layer per sequence.
    pub fn caches(&self) -> Vec<Cache> {
        vec![conv_state(self.hidden, self.kernel, self.hidden)]
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let GatedConv { hidden, kernel, bias } = *self;
        let mut enter = |name: &'static str| {
            project(block, from, (name, "conv.in_proj"), (hidden, hidden), Split::Heads, bias)
        };
        let inputs = [enter("b_proj"), enter("c_proj"), enter("x_proj")];
        let form = (ConvForm::Gated, Split::Heads, bias);
        let y = convolve(block, &inputs, ("conv", "conv.conv"), (hidden, kernel), form);
        project(block, y, ("out_proj", "conv.out_proj"), (hidden, hidden), Split::Row, bias)
    }
}
