//! Multi-head latent attention (MLA) with its low-rank projections: DeepSeek-V2, V3 and related families.
//!
//! Independent of the surrounding layer. Absorbed decode is part of the cost model.

use petgraph::graph::NodeIndex;

use super::attention::{OutputGate, gated, width};
use super::indexer::Indexer;
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

/// Parts of latent attention that some families have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatentTraits {
    /// One learned logit per head in the softmax denominator (Hunyuan-4).
    pub sinks: bool,
    /// A norm on the shared rotary key (dots3).
    pub rope_norm: bool,
    /// A scale and a shift per head for the softmax (Mistral Large 4).
    pub scaled: bool,
    /// The latent is that of an earlier layer (Mistral Large 4).
    pub borrowed: bool,
    /// Queries and a gate on the result come from one matrix over the compressed query, before and after its norm
    /// (A.X-K2).
    pub gated_queries: bool,
}

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
    /// Parts that some families have.
    pub traits: LatentTraits,
}

impl Latent {
    /// The keys of DeepSeek-V2 and V3. `num_key_value_heads` and `head_dim` do not apply to MLA.
    pub fn read(keys: &Keys<'_>, hidden: Count) -> Result<Latent, Error> {
        Latent::of(keys, hidden, keys.count("qk_rope_head_dim")?)
    }

    /// The same with this number of rotary elements of a head.
    pub fn of(keys: &Keys<'_>, hidden: Count, qk_rope_head_dim: Count) -> Result<Latent, Error> {
        let rank = keys.stated("q_lora_rank")?.count_or_none("q_lora_rank")?;
        Latent::with_rank(keys, hidden, qk_rope_head_dim, rank)
    }

    /// The same with this rank of queries.
    pub fn with_rank(
        keys: &Keys<'_>,
        hidden: Count,
        qk_rope_head_dim: Count,
        q_lora_rank: Option<Count>,
    ) -> Result<Latent, Error> {
        keys.set_aside(&["num_key_value_heads", "head_dim", "qk_head_dim"]);
        let heads = keys.count("num_attention_heads")?;
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
            rope: match qk_rope_head_dim.value {
                0 => None,
                _ => Some(Rope::of(keys, qk_rope_head_dim, RopeClass::WHOLE)?),
            },
            output_gate: None,
            traits: LatentTraits::default(),
        })
    }

    /// KV cache of one layer.
    pub fn caches(&self) -> Vec<Cache> {
        let LatentAttention { kv_lora_rank, qk_rope_head_dim, mask: reach, .. } = self.dims;
        let mut caches = match self.traits.borrowed {
            true => vec![],
            false => vec![Cache::Latent { kv_lora_rank, qk_rope_head_dim, reach }],
        };
        caches.extend(
            self.indexer
                .map(|indexer| Cache::IndexKeys { head_dim: indexer.head_dim, every: indexer.every() }),
        );
        caches
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Latent { hidden, dims, bias, .. } = *self;
        let LatentAttention { heads, kv_lora_rank, qk_nope_head_dim, v_head_dim, mask, .. } = dims;
        let v_width = width("v_width", heads, v_head_dim, "num_attention_heads × v_head_dim");
        let (q, compressed, gate) = self.queries(block, from, v_width);
        let kv_head = sum("kv_head_dim", qk_nope_head_dim, v_head_dim, "qk_nope_head_dim + v_head_dim");
        let kv_b_rows = width("kv_b_width", heads, kv_head, "num_attention_heads × (qk_nope + v)");
        let kv_b_shape = vec![kv_b_rows.value, kv_lora_rank.value];
        let mut weights = vec![weight("self_attn.kv_b_proj.weight", kv_b_shape, TensorRole::Attention)];
        let of_heads = |name: &str, role| weight(format!("self_attn.{name}"), vec![heads.value], role);
        if self.traits.sinks {
            weights.push(of_heads("sinks", TensorRole::Sink));
        }
        if self.traits.scaled {
            let names = ["softmax_scaling.scale", "softmax_scaling.bias"];
            weights.extend(names.map(|name| of_heads(name, TensorRole::Norm)));
        }
        let latent = self.latent(block, from);
        let indexer = self.indexer.map(|indexer| indexer.assemble(block, compressed, from));
        let (q, cache) = self.cached(block, q, latent);
        let softmax = block.softmax(Scores { heads, keys: ScoredKeys::Masked(mask) }, &[q, cache]);
        let inputs: Vec<NodeIndex> = [q, cache, softmax].into_iter().chain(indexer).collect();
        let attention = block.node("attention", Operator::LatentAttention(dims), weights, &inputs);
        let gate = match (gate, self.output_gate) {
            (None, Some(gate)) => Some(gate.project(block, (from, hidden), (heads, v_width), false)),
            (gate, _) => gate,
        };
        let attention = gated(block, attention, gate, v_width);
        block.linear(attention, matrix("o_proj", "o_proj", v_width, hidden, Split::Row, bias))
    }

    /// Elements of a token's latent and rotary key.
    fn width(&self) -> Count {
        let LatentAttention { kv_lora_rank, qk_rope_head_dim, .. } = self.dims;
        sum("kv_latent", kv_lora_rank, qk_rope_head_dim, "kv_lora_rank + qk_rope_head_dim")
    }

    /// The normed latent, and the latent with its rotary key; none where an earlier layer has them.
    fn latent(&self, block: &mut Assembly, from: NodeIndex) -> Option<(NodeIndex, NodeIndex)> {
        if self.traits.borrowed {
            return None;
        }
        let kv =
            matrix("kv_a_proj", "kv_a_proj_with_mqa", self.hidden, self.width(), Split::Replicate, self.bias);
        let rope_and_latent = block.linear(from, kv);
        let normed = block.norm(rope_and_latent, norm("kv_a_norm", "kv_a_layernorm", self.dims.kv_lora_rank));
        let key = match self.traits.rope_norm {
            true => block.norm(
                rope_and_latent,
                norm("k_rope_norm", "k_rope_only_layernorm", self.dims.qk_rope_head_dim),
            ),
            false => rope_and_latent,
        };
        Some((normed, key))
    }

    /// The rotated queries, and the cache of the latent and the rotated key that all heads share.
    fn cached(
        &self,
        block: &mut Assembly,
        q: NodeIndex,
        latent: Option<(NodeIndex, NodeIndex)>,
    ) -> (NodeIndex, NodeIndex) {
        let LatentAttention { heads, qk_rope_head_dim, .. } = self.dims;
        let shared = Count::derived("rope_keys", 1, "one rotary key for all heads");
        let q = match &self.rope {
            Some(rope) => rope.assemble(block, "q_rope", q, (heads, self.qk_head_dim(), Split::Heads)),
            None => q,
        };
        let mut new = vec![];
        if let Some((normed, key)) = latent {
            let whole = (shared, qk_rope_head_dim, Split::Replicate);
            let key = match &self.rope {
                Some(rope) => rope.assemble(block, "k_rope", key, whole),
                None => key,
            };
            new.extend([normed, key]);
        }
        (q, block.kv_cache((shared, self.width(), Split::Replicate), &new))
    }

    /// Elements of a query head.
    fn qk_head_dim(&self) -> Count {
        let how = "qk_nope_head_dim + qk_rope_head_dim";
        sum("qk_head_dim", self.dims.qk_nope_head_dim, self.dims.qk_rope_head_dim, how)
    }

    /// The queries, and the stream that they are computed from: compressed where the queries have a rank. A gate on
    /// the result, where it shares their matrix.
    fn queries(
        &self,
        block: &mut Assembly,
        from: NodeIndex,
        v_width: Count,
    ) -> (NodeIndex, NodeIndex, Option<NodeIndex>) {
        let Latent { hidden, bias, .. } = *self;
        let q_width = width(
            "q_width",
            self.dims.heads,
            self.qk_head_dim(),
            "num_attention_heads × (qk_nope + qk_rope)",
        );
        let Some(rank) = self.q_lora_rank else {
            let q = matrix("q_proj", "q_proj", hidden, q_width, Split::Heads, false);
            return (block.linear(from, q), from, None);
        };
        let plain = block.linear(from, matrix("q_a_proj", "q_a_proj", hidden, rank, Split::Replicate, bias));
        let a = block.norm(plain, norm("q_a_norm", "q_a_layernorm", rank));
        if !self.traits.gated_queries {
            return (
                block.linear(a, matrix("q_b_proj", "q_b_proj", rank, q_width, Split::Heads, false)),
                a,
                None,
            );
        }
        let both = sum("joined_rank", rank, rank, "2 × q_lora_rank");
        let mut project =
            |name, output| block.linear(a, matrix(name, "q_gate_proj", both, output, Split::Heads, false));
        let q = project("q_b_proj", q_width);
        (q, a, Some(project("q_gate_proj", v_width)))
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
