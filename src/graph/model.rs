//! The whole model: embedding, blocks of identical layers, head, and separate counts.

use petgraph::graph::{DiGraph, NodeIndex};

use super::cache::Cache;
use super::draft::Draft;
use super::image_inputs::ImageInputs;
use super::mask::AttentionMask;
use super::operator::{Operator, Split};
use super::tensor::{Tensor, TensorRole, Weight};
use super::tower::Tower;
use crate::quantity::count::Count;
use crate::spec::constant::AttentionKind;

/// A named operator and the weights it reads.
#[derive(Clone, Debug)]
pub struct OperatorNode {
    /// Its name in the layer, e.g. `q_proj`, `attention`, `experts`.
    pub name: &'static str,
    pub operator: Operator,
    /// The checkpoint tensors it reads (empty for attention, activations and sums).
    pub weights: Vec<Weight>,
}

impl OperatorNode {
    /// TensorRole of its matrix; `None` without weights.
    pub fn role(&self) -> Option<TensorRole> {
        self.weights.iter().map(|weight| weight.role).find(|role| *role != TensorRole::Bias)
    }
}

/// Identical layers, evaluated once and multiplied by their number.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its name in traces, e.g. `dense_layer`, `moe_layer`, `sliding_layer`.
    pub name: &'static str,
    /// Layer indices; empty for embedding and head.
    pub layers: Vec<u32>,
    /// Operators, with tensors as edges.
    pub graph: DiGraph<OperatorNode, Tensor>,
    /// Execution order.
    pub order: Vec<NodeIndex>,
    /// Caches and states of each layer; empty without a cache or with the cache of an earlier layer.
    pub caches: Vec<Cache>,
}

#[derive(Clone, Debug)]
pub struct ModelGraph {
    /// `model_type` of the configuration.
    pub model_type: String,
    /// Width of the residual stream.
    pub hidden: Count,
    pub layers: Count,
    /// Rows of the embedding.
    pub vocab: Count,
    /// Maximum context of the configuration, in tokens.
    pub max_context: Option<u64>,
    /// The head is tied to the embedding's weights.
    pub tied: bool,
    /// Embedding lookup.
    pub embedding: Block,
    /// The layers, in order of first appearance.
    pub blocks: Vec<Block>,
    /// Final norm, vocabulary projection, sampling.
    pub head: Block,
    /// Multi-token-prediction weights in the checkpoint, counted separately.
    pub mtp: Vec<Weight>,
    /// The draft for speculative decoding, if any.
    pub draft: Option<Draft>,
    /// Encoders next to the language model.
    pub towers: Vec<Tower>,
    /// Images of each request, where it has any.
    pub image_inputs: Option<ImageInputs>,
    /// Prefix of the layers' tensor names, e.g. `model.layers`.
    pub layer_prefix: String,
    /// Which block each layer belongs to (index into `blocks`).
    ///
    /// A layer that runs several times per token is as many layers, which share their weights.
    pub layer_block: Vec<usize>,
    /// The module that stores the shared weights of each layer, by its full name; empty where each has its own weights.
    pub stores: Vec<String>,
    /// Elements per token from one layer to the next, where they are more than the head reads.
    pub carried: Option<Count>,
    /// Whether there is a language-model head. Without one the model generates no text.
    pub generates: bool,
    /// Unknown keys of the configuration that were ignored: their names cannot change the architecture.
    pub ignored_keys: Vec<String>,
}

impl Block {
    /// Adds an operator after the last one.
    pub(super) fn append(&mut self, name: &'static str, operator: Operator, weights: Vec<Weight>) {
        let last = self.order.last().copied();
        let node = self.graph.add_node(OperatorNode { name, operator, weights });
        if let Some(last) = last {
            let width = self.graph[last].operator.output();
            self.graph.add_edge(last, node, Tensor { width });
        }
        self.order.push(node);
    }
}

impl ModelGraph {
    /// The operators of one layer of each block.
    pub fn layer_nodes(&self) -> impl Iterator<Item = &OperatorNode> {
        self.blocks.iter().flat_map(|block| block.graph.node_weights())
    }

    /// Whether its layers attend and none of them keeps a cache: those of another model are read.
    pub fn reads_foreign_caches(&self) -> bool {
        let shared = |node: &OperatorNode| matches!(&node.operator, Operator::Attention(dims) if dims.shared);
        self.layer_nodes().any(shared) && self.blocks.iter().all(|block| block.caches.is_empty())
    }

    /// The kind of its attention; none where no layer attends.
    pub fn attention_kind(&self) -> Option<AttentionKind> {
        let operators = || self.layer_nodes().map(|node| &node.operator);
        let latent = operators().any(|operator| matches!(operator, Operator::LatentAttention(_)));
        let attends = operators()
            .any(|operator| matches!(operator, Operator::Attention(_) | Operator::CompressedAttention(_)));
        let bounded =
            |mask: &AttentionMask| matches!(mask, AttentionMask::Window(_) | AttentionMask::Chunk(_));
        let sliding =
            operators().any(|operator| matches!(operator, Operator::Attention(dims) if bounded(&dims.mask)));
        match (latent, sliding) {
            (true, _) => Some(AttentionKind::Latent),
            (false, true) => Some(AttentionKind::Sliding),
            (false, false) => attends.then_some(AttentionKind::Full),
        }
    }

    /// The same with all weights of each layer in the module that `stores` names: layers with one name share them.
    pub(super) fn sharing(mut self, stores: Vec<String>) -> ModelGraph {
        let nodes = self.blocks.iter_mut().flat_map(|block| block.graph.node_weights_mut());
        nodes.flat_map(|node| &mut node.weights).for_each(|weight| weight.shared = true);
        self.stores = stores;
        self
    }

    /// The same where each run is one of the stored layer of this number.
    pub(super) fn repeating(self, runs: impl Iterator<Item = usize>) -> ModelGraph {
        let stores = runs.map(|layer| format!("{}.{layer}", self.layer_prefix)).collect();
        self.sharing(stores)
    }

    /// Removes the head: the checkpoint of the bare model, with its shorter names.
    pub(super) fn behead(&mut self) {
        let scores = |node: &OperatorNode| {
            matches!(node.operator, Operator::Linear { split: Split::Vocab, .. } | Operator::Sampling { .. })
        };
        let head = &mut self.head;
        head.graph =
            head.graph.filter_map(|_, node| (!scores(node)).then(|| node.clone()), |_, edge| Some(*edge));
        // Nodes were added in execution order, which the remaining ones keep.
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
        self.stores.iter_mut().for_each(short);
        (self.tied, self.generates) = (false, false);
    }
}
