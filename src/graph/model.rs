//! The whole model: embedding, blocks of identical layers, head; and the counts kept apart.

use petgraph::graph::{DiGraph, NodeIndex};

use super::operator::Operator;
use super::tensor::{Tensor, Weight};
use crate::quantity::count::Count;

/// An operator in its place: its name and the weights it reads.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its place in the layer, e.g. `q_proj`, `attention`, `experts`.
    pub name: &'static str,
    /// What it does.
    pub operator: Operator,
    /// The checkpoint tensors it reads (empty for attention, activations and sums).
    pub weights: Vec<Weight>,
}

/// What a layer keeps per token of a sequence, whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KvLayout {
    /// Keys and values per head.
    Heads {
        /// Key and value heads.
        kv_heads: Count,
        /// Elements of a key.
        head_dim: Count,
        /// Elements of a value.
        v_head_dim: Count,
        /// Tokens kept at most.
        window: Option<Count>,
    },
    /// MLA: one latent and one rotary key for all heads, not divided by tensor parallelism.
    Latent {
        /// Elements of the compressed key/value.
        kv_lora_rank: Count,
        /// Elements of the shared rotary key.
        qk_rope_head_dim: Count,
    },
    /// Nothing (embedding and head).
    None,
}

/// Identical layers, priced once and multiplied by their number.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its name in explanations, e.g. `dense_layer`, `moe_layer`, `sliding_layer`.
    pub name: &'static str,
    /// Which layers of the model these are; empty for embedding and head, which come once.
    pub layers: Vec<u32>,
    /// Operators and what flows between them.
    pub graph: DiGraph<Node, Tensor>,
    /// Execution order.
    pub order: Vec<NodeIndex>,
    /// What each layer caches.
    pub kv: KvLayout,
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
    /// What the names of layers' tensors begin with, e.g. `model.layers`.
    pub layer_prefix: String,
    /// Which block each layer belongs to (index into `blocks`).
    pub layer_block: Vec<usize>,
}
