//! Assembles a block, operator by operator, in execution order.
//!
//! Handles wiring and weight names, not the choice of operators of a layer.

use petgraph::graph::{DiGraph, NodeIndex};

use super::cache::Cache;
use super::dimensions::Scores;
use super::model::{Block, OperatorNode};
use super::operator::{Operator, Split};
use super::tensor::{Tensor, TensorRole, Weight};
use crate::quantity::count::Count;

/// A block under construction.
#[derive(Default)]
pub struct Assembly {
    graph: DiGraph<OperatorNode, Tensor>,
    order: Vec<NodeIndex>,
}

/// A matrix of the checkpoint, as an operator.
pub struct Matrix {
    /// The operator's name, e.g. `q_proj`.
    pub name: &'static str,
    /// The checkpoint's name without `.weight`, e.g. `self_attn.q_proj`.
    pub tensor: String,
    /// Inner dimension.
    pub input: Count,
    /// Outer dimension.
    pub output: Count,
    /// How a plan may shard it.
    pub split: Split,
    pub role: TensorRole,
    pub bias: bool,
}

/// Learned parameters of a norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Affine {
    /// Nothing (OLMo-1).
    Absent,
    /// A scale: RMSNorm, and LayerNorm without shift.
    Scale,
    /// LayerNorm's scale and shift.
    ScaleAndShift,
}

impl Affine {
    /// LayerNorm's scale, with or without its shift.
    pub fn shift(shift: bool) -> Affine {
        if shift { Affine::ScaleAndShift } else { Affine::Scale }
    }
}

/// How the rows of a norm share its learned parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NormRows {
    /// One set for all rows.
    Shared,
    /// One set per row, in one tensor.
    Stacked,
    /// One set per row, in a separate tensor each.
    PerTensor,
}

/// A norm of the checkpoint, as an operator.
pub struct NormSpec {
    /// The operator's name, e.g. `q_norm`.
    pub name: &'static str,
    /// The checkpoint's name without `.weight`.
    pub tensor: String,
    /// Elements per normalised row.
    pub width: Count,
    /// Rows per token.
    pub rows: Count,
    /// How the rows are sharded.
    pub split: Split,
    /// Its learned parameters.
    pub affine: Affine,
    /// How rows share them.
    pub sharing: NormRows,
}

impl Assembly {
    /// A block that begins with an input of this width, and that input.
    pub fn from_input(width: Count) -> (Assembly, NodeIndex) {
        let mut block = Assembly::default();
        let input = block.input(width);
        (block, input)
    }

    /// Adds an operator that reads the results of `inputs`.
    pub fn node(
        &mut self,
        name: &'static str,
        operator: Operator,
        weights: Vec<Weight>,
        inputs: &[NodeIndex],
    ) -> NodeIndex {
        let node = self.graph.add_node(OperatorNode { name, operator, weights });
        for input in inputs {
            let width = self.graph[*input].operator.output();
            self.graph.add_edge(*input, node, Tensor { width });
        }
        self.order.push(node);
        node
    }

    /// Input of the residual stream.
    pub fn input(&mut self, width: Count) -> NodeIndex {
        self.node("input", Operator::Input { width }, vec![], &[])
    }

    /// Adds a matrix multiplication.
    pub fn linear(&mut self, from: NodeIndex, matrix: Matrix) -> NodeIndex {
        let Matrix { name, tensor, input, output, split, role, bias } = matrix;
        let mut weights = vec![weight(format!("{tensor}.weight"), vec![output.value, input.value], role)];
        if bias {
            weights.push(weight(format!("{tensor}.bias"), vec![output.value], TensorRole::Bias));
        }
        self.node(name, Operator::Linear { input, output, split }, weights, &[from])
    }

    /// Adds a norm.
    pub fn norm(&mut self, from: NodeIndex, scale: NormSpec) -> NodeIndex {
        let NormSpec { name, tensor, width, rows, split, affine, sharing: learns } = scale;
        let suffixes: &[&str] = match affine {
            Affine::Absent => &[],
            Affine::Scale => &["weight"],
            Affine::ScaleAndShift => &["weight", "bias"],
        };
        let learned = |suffix: &&str| match learns {
            NormRows::Shared => {
                vec![weight(format!("{tensor}.{suffix}"), vec![width.value], TensorRole::Norm)]
            }
            NormRows::Stacked => {
                vec![weight(format!("{tensor}.{suffix}"), vec![rows.value, width.value], TensorRole::Norm)]
            }
            NormRows::PerTensor => (0..rows.value)
                .map(|row| {
                    weight(format!("{tensor}.norms.{row}.{suffix}"), vec![width.value], TensorRole::Norm)
                })
                .collect(),
        };
        let weights = suffixes.iter().flat_map(learned).collect();
        self.node(name, Operator::Norm { width, rows, split }, weights, &[from])
    }

    /// Adds a norm of the whole residual stream.
    pub fn stream_norm(
        &mut self,
        from: NodeIndex,
        name: &'static str,
        tensor: &str,
        affine: Affine,
    ) -> NodeIndex {
        let width = self.graph[from].operator.output();
        let (tensor, rows, split) = (tensor.to_owned(), once(), Split::Replicate);
        self.norm(from, NormSpec { name, tensor, width, rows, split, affine, sharing: NormRows::Shared })
    }

    /// Adds the KV cache, with `heads` entries of `width` elements a token, that takes in the results of `inputs`.
    pub fn kv_cache(
        &mut self,
        (heads, width, split): (Count, Count, Split),
        inputs: &[NodeIndex],
    ) -> NodeIndex {
        self.node("kv_cache", Operator::KvCache { heads, width, split }, vec![], inputs)
    }

    /// Adds the softmax over the scores of `inputs`: queries, and the keys where a cache has them.
    pub fn softmax(&mut self, scores: Scores, inputs: &[NodeIndex]) -> NodeIndex {
        self.node("softmax", Operator::Softmax(scores), vec![], inputs)
    }

    /// Number of operators so far.
    pub fn nodes(&self) -> usize {
        self.order.len()
    }

    /// Names the module `from` of all operators after the first `kept` as `to`.
    pub fn rename(&mut self, kept: usize, from: &str, to: &str) {
        for node in self.order.iter().skip(kept) {
            for weight in &mut self.graph[*node].weights {
                if let Some(rest) = weight.name.strip_prefix(from).filter(|rest| rest.starts_with('.')) {
                    weight.name = format!("{to}{rest}");
                }
            }
        }
    }

    /// Marks the weights of the operators after the first `kept` whose names are among `these` as shared by several layers.
    pub fn share(&mut self, kept: usize, these: impl Fn(&str) -> bool) {
        for node in self.order.iter().skip(kept) {
            let node = &mut self.graph[*node];
            if these(node.name) {
                node.weights.iter_mut().for_each(|weight| weight.shared = true);
            }
        }
    }

    /// Closes the block.
    pub fn finish(self, name: &'static str, layers: Vec<u32>, caches: Vec<Cache>) -> Block {
        Block { name, layers, graph: self.graph, order: self.order, caches }
    }
}

/// A parameter of the checkpoint.
pub fn weight(name: impl Into<String>, shape: Vec<u64>, role: TensorRole) -> Weight {
    Weight { name: name.into(), shape, joined: 0, role, buffer: false, shared: false }
}

/// The same weights with names below `prefix`; a weight without a name is `prefix` itself.
pub fn below(prefix: &str, weights: impl IntoIterator<Item = Weight>) -> impl Iterator<Item = Weight> {
    weights.into_iter().map(move |weight| {
        let dot = if prefix.is_empty() || weight.name.is_empty() { "" } else { "." };
        Weight { name: format!("{prefix}{dot}{}", weight.name), ..weight }
    })
}

/// The single row of a norm over the whole width.
pub fn once() -> Count {
    Count::derived("rows", 1, "one norm per token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_carry_what_the_source_yields() {
        let hidden = Count::config("hidden_size", 6);
        let mut block = Assembly::default();
        let input = block.input(hidden);
        let up = block.linear(
            input,
            Matrix {
                name: "up_proj",
                tensor: "mlp.up_proj".to_owned(),
                input: hidden,
                output: Count::config("intermediate_size", 10),
                split: Split::Column,
                role: TensorRole::Mlp,
                bias: true,
            },
        );
        let activation = Operator::Activation { width: Count::config("intermediate_size", 10), gated: false };
        block.node("activation", activation, vec![], &[up]);
        let block = block.finish("dense_layer", vec![0], vec![]);
        let widths: Vec<u64> = block.graph.edge_weights().map(|tensor| tensor.width.value).collect();
        assert_eq!(widths, [6, 10]);
        let elements: u64 = block.graph[up].weights.iter().map(Weight::elements).sum();
        assert_eq!(elements, 6 * 10 + 10);
    }
}
