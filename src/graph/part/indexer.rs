//! Indexers of sparse attention: light heads over a shared key select the keys that attention reads.
//!
//! Independent of the attention operator.

use petgraph::graph::NodeIndex;

use super::attention::width;
use super::encoder;
use crate::graph::assembly::{Assembly, Matrix, weight};
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
    /// Tokens whose keys are pooled into one: by learned weights for compressed queries (GLM-5 Next), else by their mean
    /// (Qwen4).
    pub pool: Option<Count>,
    /// A norm on the stream before the queries, and a scale and a shift per head of their scores (Mistral Large 4).
    pub scaled: bool,
}

impl Indexer {
    /// The keys `index_n_heads`, `index_head_dim` and `index_topk`.
    pub fn read(keys: &Keys<'_>, hidden: Count) -> Result<Indexer, Error> {
        Indexer::of_rank(keys, hidden, keys.count("q_lora_rank")?)
    }

    /// The same for queries computed from `rank` elements.
    pub fn of_rank(keys: &Keys<'_>, hidden: Count, rank: Count) -> Result<Indexer, Error> {
        Ok(Indexer {
            hidden,
            q_lora_rank: Some(rank),
            heads: keys.count("index_n_heads")?,
            head_dim: keys.count("index_head_dim")?,
            top_k: keys.count("index_topk")?,
            pool: None,
            scaled: false,
        })
    }

    /// Tokens per key.
    pub fn every(&self) -> Count {
        self.pool.unwrap_or_else(own_key)
    }

    /// Adds the operators, from the compressed query and the normed stream to the selected keys.
    ///
    /// Engines run it whole on every tensor-parallel rank, since its key is shared by all heads.
    pub fn assemble(&self, block: &mut Assembly, compressed: NodeIndex, from: NodeIndex) -> NodeIndex {
        let Indexer { hidden, q_lora_rank, heads, head_dim, top_k, .. } = *self;
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
                let compressed = match self.scaled {
                    true => {
                        let tensor = "self_attn.indexer.q_input_norm";
                        encoder::norm(block, compressed, "index_input_norm", tensor, hidden, true)
                    }
                    false => compressed,
                };
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
        let small =
            |name: &str, shape| weight(format!("self_attn.indexer.{name}"), shape, TensorRole::Indexer);
        let mut weights = vec![];
        if let Some(pool) = self.pool.filter(|_| q_lora_rank.is_some()) {
            weights.push(small("index_kpool_compress_ape", vec![pool.value, head_dim.value]));
            let mut gate = matrix("index_pool_gate", "index_kpool_compress_gate", hidden, head_dim);
            gate.tensor = "self_attn.indexer.index_kpool_compress_gate".to_owned();
            inputs.push(block.linear(from, gate));
        }
        if self.scaled {
            let names = ["softmax_scaling.scale", "softmax_scaling.bias"];
            weights.extend(names.map(|name| small(name, vec![heads.value])));
        }
        let every = self.every();
        block.node("indexer", Operator::Indexer { heads, head_dim, top_k, every }, weights, &inputs)
    }
}

/// One key per token.
pub fn own_key() -> Count {
    Count::derived("tokens_of_a_key", 1, "one key per token")
}
