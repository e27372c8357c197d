//! The whole model: embedding, blocks of identical layers, head; and the counts kept apart.

use petgraph::graph::{DiGraph, NodeIndex};

use super::cache::Cache;
use super::draft::Draft;
use super::image_inputs::ImageInputs;
use super::operator::{Operator, Split};
use super::tensor::{Tensor, Weight};
use super::tower::Tower;
use crate::quantity::count::Count;

/// An operator in its place: its name and the weights it reads.
#[derive(Clone, Debug)]
pub struct OperatorNode {
    /// Its place in the layer, e.g. `q_proj`, `attention`, `experts`.
    pub name: &'static str,
    /// What it does.
    pub operator: Operator,
    /// The checkpoint tensors it reads (empty for attention, activations and sums).
    pub weights: Vec<Weight>,
}

/// Identical layers, priced once and multiplied by their number.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its name in explanations, e.g. `dense_layer`, `moe_layer`, `sliding_layer`.
    pub name: &'static str,
    /// Which layers of the model these are; empty for embedding and head, which come once.
    pub layers: Vec<u32>,
    /// Operators and what flows between them.
    pub graph: DiGraph<OperatorNode, Tensor>,
    /// Execution order.
    pub order: Vec<NodeIndex>,
    /// What each layer keeps of a sequence; nothing, where it has no cache or reads an earlier layer's.
    pub caches: Vec<Cache>,
}

/// A model as a graph.
#[derive(Clone, Debug)]
pub struct ModelGraph {
    /// `model_type` of the configuration.
    pub model_type: String,
    /// Width of the residual stream.
    pub hidden: Count,
    /// Number of layers.
    pub layers: Count,
    /// Rows of the embedding.
    pub vocab: Count,
    /// Longest context that the configuration states, in tokens.
    pub max_context: Option<u64>,
    /// The head reuses the embedding's weights.
    pub tied: bool,
    /// Embedding lookup.
    pub embedding: Block,
    /// The layers, in order of first appearance.
    pub blocks: Vec<Block>,
    /// Final norm, vocabulary projection, sampling.
    pub head: Block,
    /// Multi-token-prediction weights, where the checkpoint ships them; kept apart.
    pub mtp: Vec<Weight>,
    /// What guesses tokens ahead of it, where it is served with that.
    pub draft: Option<Draft>,
    /// Encoders beside the language model.
    pub towers: Vec<Tower>,
    /// Images of each request, where it has any.
    pub seen: Option<ImageInputs>,
    /// What the names of layers' tensors begin with, e.g. `model.layers`.
    pub layer_prefix: String,
    /// Which block each layer belongs to (index into `blocks`).
    pub layer_block: Vec<usize>,
    /// Whether there is a head that scores the vocabulary; without one nothing is generated.
    pub generates: bool,
}

impl ModelGraph {
    /// Takes the head away: what a checkpoint of the bare model holds, under its shorter names.
    pub(super) fn behead(&mut self) {
        let scores = |node: &OperatorNode| {
            matches!(node.operator, Operator::Linear { split: Split::Vocab, .. } | Operator::Sampling { .. })
        };
        let head = &mut self.head;
        head.graph =
            head.graph.filter_map(|_, node| (!scores(node)).then(|| node.clone()), |_, edge| Some(*edge));
        // Nodes were added in execution order, and what is left keeps it.
        head.order = head.graph.node_indices().collect();
        let short = |name: &mut String| {
            if let Some(rest) = name.strip_prefix("model.") {
                *name = rest.to_owned();
            }
        };
        for block in [&mut self.embedding, &mut self.head] {
            let weights = block.graph.node_weights_mut().flat_map(|node| &mut node.weights);
            weights.for_each(|weight| short(&mut weight.name));
        }
        short(&mut self.layer_prefix);
        (self.tied, self.generates) = (false, false);
    }
}
