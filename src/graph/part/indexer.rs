//! The indexer of DeepSeek's sparse attention (DSA): light heads over a key of their own pick what attention reads.
//!
//! Knows nothing of the attention that reads it.

use petgraph::graph::NodeIndex;

use super::attention::width;
use super::encoder;
use crate::graph::assembly::{Assembly, Matrix};
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::Role;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// An indexer, as one layer has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Indexer {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Rank of the compressed query that it reads.
    pub q_lora_rank: Count,
    /// Its heads.
    pub heads: Count,
    /// Elements of a head, and of the one key that all share.
    pub head_dim: Count,
    /// Keys chosen for each query.
    pub top_k: Count,
}

impl Indexer {
    /// The keys `index_n_heads`, `index_head_dim` and `index_topk`.
    pub fn read(keys: &Keys<'_>, hidden: Count) -> Result<Indexer, Error> {
        Ok(Indexer {
            hidden,
            q_lora_rank: keys.count("q_lora_rank")?,
            heads: keys.count("index_n_heads")?,
            head_dim: keys.count("index_head_dim")?,
            top_k: keys.count("index_topk")?,
        })
    }

    /// Adds the operators: from the compressed query and the normed stream to the chosen keys.
    ///
    /// Engines run it whole on every tensor-parallel rank: its key is one for all heads.
    pub fn assemble(&self, block: &mut Assembly, compressed: NodeIndex, from: NodeIndex) -> NodeIndex {
        let Indexer { hidden, q_lora_rank, heads, head_dim, top_k } = *self;
        let matrix = |name, tensor: &str, input, output| Matrix {
            name,
            tensor: format!("self_attn.indexer.{tensor}"),
            input,
            output,
            split: Split::Replicate,
            role: Role::Indexer,
            bias: false,
        };
        let q_width = width("index_q_width", heads, head_dim, "index_n_heads × index_head_dim");
        let q = block.linear(compressed, matrix("index_q", "wq_b", q_lora_rank, q_width));
        let k = block.linear(from, matrix("index_k", "wk", hidden, head_dim));
        let k = encoder::norm(block, k, "index_k_norm", "self_attn.indexer.k_norm", head_dim, true);
        let weights = block.linear(from, matrix("index_weights", "weights_proj", hidden, heads));
        block.node("indexer", Operator::Indexer { heads, head_dim, top_k }, vec![], &[q, k, weights])
    }
}
