//! Dense feed-forward networks: gated (three matrices) and plain (two).
//!
//! Independent of experts and of the surrounding layer.

use petgraph::graph::NodeIndex;

use super::attention::low_rank;
use crate::graph::assembly::{Affine, Assembly, Matrix, weight};
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Dense feed-forward network of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedForward {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Intermediate width.
    pub intermediate: Count,
    /// Whether it is `act(gate_proj) × up_proj`, then `down_proj`; else `act(up_proj)`, then `down_proj`.
    pub gated: bool,
    /// Biases on all of them.
    pub bias: bool,
    /// Learned scalars of the activation (two in xIELU).
    pub learned: &'static [&'static str],
    /// Scalars of the activation that checkpoints store as buffers.
    pub constants: &'static [&'static str],
    /// A norm before the last matrix, by its name below the network's (BitNet, Kosmos-2).
    pub inner_norm: Option<(&'static str, Affine)>,
    /// Rank of an adapter on gate and up that each layer has for itself where it shares the rest (Zamba2).
    pub adapter: Option<Count>,
}

/// Operator names, which distinguish shared experts from a dense network.
struct FeedForwardNames {
    gate: &'static str,
    up: &'static str,
    activation: &'static str,
    down: &'static str,
}

const DENSE: FeedForwardNames =
    FeedForwardNames { gate: "gate_proj", up: "up_proj", activation: "activation", down: "down_proj" };
const SHARED: FeedForwardNames = FeedForwardNames {
    gate: "shared_gate_proj",
    up: "shared_up_proj",
    activation: "shared_activation",
    down: "shared_down_proj",
};

impl FeedForward {
    /// Gate, up and down projections without biases, stored separately: the form of most models.
    pub fn gated(hidden: Count, intermediate: Count) -> FeedForward {
        FeedForward {
            hidden,
            intermediate,
            gated: true,
            bias: false,
            learned: &[],
            constants: &[],
            inner_norm: None,
            adapter: None,
        }
    }

    /// The same with the key of most files, `intermediate_size`.
    pub fn read(keys: &Keys<'_>, hidden: Count) -> Result<FeedForward, Error> {
        Ok(FeedForward::gated(hidden, keys.count("intermediate_size")?))
    }

    /// The same with biases by `mlp_bias`.
    pub fn read_biased(keys: &Keys<'_>, hidden: Count) -> Result<FeedForward, Error> {
        let bias = keys.flag("mlp_bias", false)?;
        Ok(FeedForward { bias, ..FeedForward::read(keys, hidden)? })
    }

    /// Up and down projections, with biases on both or on neither.
    pub fn plain(hidden: Count, intermediate: Count, bias: bool) -> FeedForward {
        FeedForward { gated: false, bias, ..FeedForward::gated(hidden, intermediate) }
    }

    /// Adds the operators of a layer's `mlp`, starting from the normed stream.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        self.assemble_as(block, from, "mlp", &DENSE, TensorRole::Mlp)
    }

    /// The same for a network stored under `tensor`.
    pub fn assemble_at(&self, block: &mut Assembly, from: NodeIndex, tensor: &str) -> NodeIndex {
        self.assemble_as(block, from, tensor, &DENSE, TensorRole::Mlp)
    }

    /// Adds the operators of shared experts stored under `tensor`.
    pub fn assemble_shared(&self, block: &mut Assembly, from: NodeIndex, tensor: &str) -> NodeIndex {
        self.assemble_as(block, from, tensor, &SHARED, TensorRole::SharedExpert)
    }

    fn assemble_as(
        &self,
        block: &mut Assembly,
        from: NodeIndex,
        tensor: &str,
        names: &FeedForwardNames,
        role: TensorRole,
    ) -> NodeIndex {
        let FeedForward { hidden, intermediate, gated, bias, learned, constants, inner_norm, adapter } =
            *self;
        let column = |name, stored: &str| Matrix {
            name,
            tensor: format!("{tensor}.{stored}"),
            input: hidden,
            output: intermediate,
            split: Split::Column,
            role,
            bias,
        };
        let mut wide = vec![];
        if gated {
            wide.push(block.linear(from, column(names.gate, "gate_proj")));
        }
        wide.push(block.linear(from, column(names.up, "up_proj")));
        if let (Some(rank), &[gate, up]) = (adapter, &wide[..]) {
            let both = Count::derived("gate_up_width", 2 * intermediate.value, "2 × intermediate_size");
            let tensor = format!("{tensor}.gate_up_proj_adapter_list");
            let sizes = (hidden, rank, both);
            wide = vec![low_rank(block, (from, &[gate, up]), &tensor, sizes, (Split::Column, role))];
        }
        let activation = Operator::Activation { width: intermediate, gated };
        let learned =
            learned.iter().map(|name| weight(format!("{tensor}.{name}"), vec![1], TensorRole::Norm));
        let constants = constants.iter().map(|name| Weight {
            buffer: true,
            ..weight(format!("{tensor}.{name}"), vec![], TensorRole::Norm)
        });
        let activated = block.node(names.activation, activation, learned.chain(constants).collect(), &wide);
        let activated = match inner_norm {
            Some((stored, affine)) => {
                block.stream_norm(activated, "inner_norm", &format!("{tensor}.{stored}"), affine)
            }
            None => activated,
        };
        block.linear(
            activated,
            Matrix {
                name: names.down,
                tensor: format!("{tensor}.down_proj"),
                input: intermediate,
                output: hidden,
                split: Split::Row,
                role,
                bias,
            },
        )
    }
}
