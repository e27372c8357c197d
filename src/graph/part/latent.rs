//! Multi-head latent attention (MLA) with its low-rank projections: DeepSeek-V2, V3 and related families.
//!
//! Independent of the surrounding layer. Absorbed decode is part of the cost model.

use petgraph::graph::NodeIndex;

use super::attention::{OutputGate, gated, width};
use super::indexer::{Indexer, own_key};
use super::rope::{Rope, RopeClass};
use crate::graph::assembly::{Affine, Assembly, Matrix, NormRows, NormSpec, once, weight};
use crate::graph::cache::Cache;
use crate::graph::dimensions::{LatentAttention, ScoredKeys, Scores};
use crate::graph::mask::AttentionMask;
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Latent attention of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Latent {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Dimensions of the attention.
    pub dims: LatentAttention,
    /// Rank of the compressed query; `None`: queries are projected directly.
    pub q_lora_rank: Option<Count>,
    /// Biases on the down-projections and the output.
    pub bias: bool,
    /// The indexer that selects keys. `None` with a selection mask: reuses the selection of an earlier layer.
    pub indexer: Option<Indexer>,
    /// The rotation of `qk_rope_head_dim`; `None`: no rotary positions.
    pub rope: Option<Rope>,
    /// The gate on the result.
    pub output_gate: Option<OutputGate>,
}

impl Latent {
    /// The keys of DeepSeek-V2 and V3. `num_key_value_heads` and `head_dim` do not apply to MLA.
    pub fn read(keys: &Keys<'_>, hidden: Count) -> Result<Latent, Error> {
        keys.set_aside(&["num_key_value_heads", "head_dim", "qk_head_dim"]);
        let qk_rope_head_dim = keys.count("qk_rope_head_dim")?;
        let heads = keys.count("num_attention_heads")?;
        let q_lora_rank = keys.stated("q_lora_rank")?.count_or_none("q_lora_rank")?;
        let dims = LatentAttention {
            heads,
            kv_lora_rank: keys.count("kv_lora_rank")?,
            qk_rope_head_dim,
            qk_nope_head_dim: keys.count("qk_nope_head_dim")?,
            v_head_dim: keys.count("v_head_dim")?,
            mask: AttentionMask::All,
        };
        Ok(Latent {
            hidden,
            dims,
            q_lora_rank,
            bias: keys.flag("attention_bias", false)?,
            indexer: None,
            rope: Some(Rope::of(keys, qk_rope_head_dim, RopeClass::WHOLE)?),
            output_gate: None,
        })
    }

    /// KV cache of one layer.
    pub fn caches(&self) -> Vec<Cache> {
        let LatentAttention { kv_lora_rank, qk_rope_head_dim, .. } = self.dims;
        let mut caches = vec![Cache::Latent { kv_lora_rank, qk_rope_head_dim }];
        caches.extend(
            self.indexer.map(|indexer| Cache::IndexKeys { head_dim: indexer.head_dim, every: own_key() }),
        );
        caches
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Latent { hidden, dims, bias, .. } = *self;
        let LatentAttention { heads, kv_lora_rank, qk_rope_head_dim, qk_nope_head_dim, v_head_dim, mask } =
            dims;
        let (q, compressed) = self.queries(block, from);
        let latent = sum("kv_latent", kv_lora_rank, qk_rope_head_dim, "kv_lora_rank + qk_rope_head_dim");
        let kv = matrix("kv_a_proj", "kv_a_proj_with_mqa", hidden, latent, Split::Replicate, bias);
        let rope_and_latent = block.linear(from, kv);
        let normed = block.norm(rope_and_latent, norm("kv_a_norm", "kv_a_layernorm", kv_lora_rank));
        let kv_head = sum("kv_head_dim", qk_nope_head_dim, v_head_dim, "qk_nope_head_dim + v_head_dim");
        let kv_b_rows = width("kv_b_width", heads, kv_head, "num_attention_heads × (qk_nope + v)");
        let kv_b = weight(
            "self_attn.kv_b_proj.weight",
            vec![kv_b_rows.value, kv_lora_rank.value],
            TensorRole::Attention,
        );
        let indexer = self.indexer.map(|indexer| indexer.assemble(block, compressed, from));
        let (q, cache) = self.cached(block, q, (normed, rope_and_latent), latent);
        let softmax = block.softmax(Scores { heads, keys: ScoredKeys::Masked(mask) }, &[q, cache]);
        let inputs: Vec<NodeIndex> = [q, cache, softmax].into_iter().chain(indexer).collect();
        let attention = block.node("attention", Operator::LatentAttention(dims), vec![kv_b], &inputs);
        let v_width = width("v_width", heads, v_head_dim, "num_attention_heads × v_head_dim");
        let gate = self.output_gate.map(|gate| gate.project(block, (from, hidden), (heads, v_width), false));
        let attention = gated(block, attention, gate, v_width);
        block.linear(attention, matrix("o_proj", "o_proj", v_width, hidden, Split::Row, bias))
    }

    /// The rotated queries, and the cache of the latent and the rotated key that all heads share.
    fn cached(
        &self,
        block: &mut Assembly,
        q: NodeIndex,
        (normed, with_rope): (NodeIndex, NodeIndex),
        latent: Count,
    ) -> (NodeIndex, NodeIndex) {
        let LatentAttention { heads, qk_rope_head_dim, .. } = self.dims;
        let shared = Count::derived("rope_keys", 1, "one rotary key for all heads");
        let (q, key) = match &self.rope {
            Some(rope) => {
                let whole = (shared, qk_rope_head_dim, Split::Replicate);
                let q = rope.assemble(block, "q_rope", q, (heads, self.qk_head_dim(), Split::Heads));
                (q, rope.assemble(block, "k_rope", with_rope, whole))
            }
            None => (q, with_rope),
        };
        (q, block.kv_cache((shared, latent, Split::Replicate), &[normed, key]))
    }

    /// Elements of a query head.
    fn qk_head_dim(&self) -> Count {
        let how = "qk_nope_head_dim + qk_rope_head_dim";
        sum("qk_head_dim", self.dims.qk_nope_head_dim, self.dims.qk_rope_head_dim, how)
    }

    /// The queries, and the stream that they are computed from: compressed where the queries have a rank.
    fn queries(&self, block: &mut Assembly, from: NodeIndex) -> (NodeIndex, NodeIndex) {
        let Latent { hidden, bias, .. } = *self;
        let q_width = width(
            "q_width",
            self.dims.heads,
            self.qk_head_dim(),
            "num_attention_heads × (qk_nope + qk_rope)",
        );
        let Some(rank) = self.q_lora_rank else {
            let q = matrix("q_proj", "q_proj", hidden, q_width, Split::Heads, false);
            return (block.linear(from, q), from);
        };
        let a = block.linear(from, matrix("q_a_proj", "q_a_proj", hidden, rank, Split::Replicate, bias));
        let a = block.norm(a, norm("q_a_norm", "q_a_layernorm", rank));
        (block.linear(a, matrix("q_b_proj", "q_b_proj", rank, q_width, Split::Heads, false)), a)
    }
}

fn matrix(name: &'static str, tensor: &str, input: Count, output: Count, split: Split, bias: bool) -> Matrix {
    Matrix {
        name,
        tensor: format!("self_attn.{tensor}"),
        input,
        output,
        split,
        role: TensorRole::Attention,
        bias,
    }
}

fn norm(name: &'static str, tensor: &str, width: Count) -> NormSpec {
    NormSpec {
        name,
        tensor: format!("self_attn.{tensor}"),
        width,
        rows: once(),
        split: Split::Replicate,
        affine: Affine::Scale,
        sharing: NormRows::Shared,
    }
}

fn sum(symbol: &'static str, one: Count, other: Count, how: &'static str) -> Count {
    Count::derived(symbol, one.value + other.value, how)
}
