//! Indexers of sparse attention: light heads over a shared key select the keys that attention reads.
//!
//! Independent of the attention operator.

use petgraph::graph::NodeIndex;

use super::attention::width;
use super::encoder;
use crate::graph::assembly::{Assembly, Matrix};
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// The indexer of one layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Indexer {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Rank of the compressed query that it reads (DeepSeek's DSA). `None`: it reads the stream, normalises its queries
    /// and has no head weights (MiniMax-M3).
    pub q_lora_rank: Option<Count>,
    pub heads: Count,
    /// Elements of a head, and of the key that all heads share.
    pub head_dim: Count,
    /// Keys selected per query.
    pub top_k: Count,
}

impl Indexer {
    /// The keys `index_n_heads`, `index_head_dim` and `index_topk`.
    pub fn read(keys: &Keys<'_>, hidden: Count) -> Result<Indexer, Error> {
        Ok(Indexer {
            hidden,
            q_lora_rank: Some(keys.count("q_lora_rank")?),
            heads: keys.count("index_n_heads")?,
            head_dim: keys.count("index_head_dim")?,
            top_k: keys.count("index_topk")?,
        })
    }

    /// Adds the operators, from the compressed query and the normed stream to the selected keys.
    ///
    /// Engines run it whole on every tensor-parallel rank, since its key is shared by all heads.
    pub fn assemble(&self, block: &mut Assembly, compressed: NodeIndex, from: NodeIndex) -> NodeIndex {
        let Indexer { hidden, q_lora_rank, heads, head_dim, top_k } = *self;
        let matrix = |name, tensor: &str, input, output| Matrix {
            name,
            tensor: format!("self_attn.indexer.{tensor}"),
            input,
            output,
            split: Split::Replicate,
            role: TensorRole::Indexer,
            bias: false,
        };
        let q_width = width("index_q_width", heads, head_dim, "index heads × their dimension");
        let norm = |block: &mut Assembly, from, name, tensor: &str, shift| {
            encoder::norm(block, from, name, &format!("self_attn.indexer.{tensor}"), head_dim, shift)
        };
        let mut inputs = vec![];
        match q_lora_rank {
            Some(rank) => {
                inputs.push(block.linear(compressed, matrix("index_q", "wq_b", rank, q_width)));
                let k = block.linear(from, matrix("index_k", "wk", hidden, head_dim));
                inputs.push(norm(block, k, "index_k_norm", "k_norm", true));
                inputs.push(block.linear(from, matrix("index_weights", "weights_proj", hidden, heads)));
            }
            None => {
                let q = block.linear(from, matrix("index_q", "q_proj", hidden, q_width));
                inputs.push(norm(block, q, "index_q_norm", "q_norm", false));
                let k = block.linear(from, matrix("index_k", "k_proj", hidden, head_dim));
                inputs.push(norm(block, k, "index_k_norm", "k_norm", false));
            }
        }
        block.node("indexer", Operator::Indexer { heads, head_dim, top_k, every: own_key() }, vec![], &inputs)
    }
}

/// One key per token.
pub fn own_key() -> Count {
    Count::derived("tokens_of_a_key", 1, "one key per token")
}
