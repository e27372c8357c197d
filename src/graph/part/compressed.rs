//! Attention with one shared key/value head over a window and over compressed entries (DeepSeek-V4).
//!
//! Independent of the surrounding layer.

use petgraph::graph::NodeIndex;

use super::attention::width;
use super::encoder;
use super::rope::Rope;
use crate::graph::assembly::{Assembly, Matrix, weight};
use crate::graph::cache::Cache;
use crate::graph::dimensions::{CompressedAttention, ScoredKeys, Scores};
use crate::graph::mask::AttentionMask;
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;

/// The indexer that selects compressed entries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Picker {
    pub heads: Count,
    /// Elements of a head, and of the key that all heads share.
    pub head_dim: Count,
    /// Entries selected per query.
    pub top_k: Count,
}

/// Compression of tokens before the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compressor {
    /// Tokens per entry.
    pub every: Count,
    /// The indexer of entries; `None`: a query sees all entries, and compression windows do not overlap.
    pub picker: Option<Picker>,
}

/// Compressed attention of one layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compressed {
    /// Input width.
    pub hidden: Count,
    /// Query heads.
    pub heads: Count,
    /// Elements of a head, and of an entry.
    pub head_dim: Count,
    /// Rank of the compressed query.
    pub q_lora_rank: Count,
    /// Groups of heads, each with its own output projection.
    pub o_groups: Count,
    /// Width of the result of a group.
    pub o_lora_rank: Count,
    /// Tokens of the window, with one entry each.
    pub window: Count,
    /// The rotation of queries and entries.
    pub rope: Rope,
    /// Compression before the window; `None`: these tokens are not visible.
    pub compressor: Option<Compressor>,
}

impl Compressed {
    /// Reach of compressed entries, in tokens.
    fn mask(compressor: Compressor) -> AttentionMask {
        match compressor.picker {
            None => AttentionMask::All,
            Some(Picker { top_k, .. }) => AttentionMask::Selected(Count::derived(
                "index_topk_tokens",
                top_k.value * compressor.every.value,
                "index_topk × tokens of an entry",
            )),
        }
    }

    /// KV cache of one layer: one entry per token in the window, one per several tokens before it, and the indexer's
    /// keys.
    pub fn caches(&self) -> Vec<Cache> {
        let one = Count::derived("tokens_of_an_entry", 1, "an entry for each token of the window");
        let near =
            Cache::Entries { width: self.head_dim, every: one, reach: AttentionMask::Window(self.window) };
        let Some(Compressor { every, picker }) = self.compressor else { return vec![near] };
        let mut caches =
            vec![near, Cache::Entries { width: self.head_dim, every, reach: AttentionMask::All }];
        caches.extend(picker.map(|picker| Cache::IndexKeys { head_dim: picker.head_dim, every }));
        caches
    }

    /// Adds the operators, from the normed stream to the output projection.
    pub fn assemble(&self, block: &mut Assembly, from: NodeIndex) -> NodeIndex {
        let Compressed { hidden, heads, head_dim, q_lora_rank, o_groups, o_lora_rank, .. } = *self;
        let q_width = width("q_width", heads, head_dim, "num_attention_heads × head_dim");
        let (whole, role) = (Split::Replicate, TensorRole::Attention);
        let a = block.linear(from, matrix("q_a_proj", "q_a_proj", (hidden, q_lora_rank), whole, role));
        let a = norm(block, a, "q_a_norm", "q_a_norm", q_lora_rank);
        let q = block.linear(a, matrix("q_b_proj", "q_b_proj", (q_lora_rank, q_width), Split::Heads, role));
        // A norm without weights on each head.
        let q = block.node(
            "q_b_norm",
            Operator::Norm { width: head_dim, rows: heads, split: Split::Heads },
            vec![],
            &[q],
        );
        let kv = block.linear(from, matrix("kv_proj", "kv_proj", (hidden, head_dim), whole, role));
        let kv = norm(block, kv, "kv_norm", "kv_norm", head_dim);
        let compressed = self.compressor.map(|compressor| self.compress(block, from, a, compressor));
        let beyond = self.compressor.map(|compressor| (compressor.every, Compressed::mask(compressor)));
        let one = Count::derived("entries", 1, "one entry for all heads");
        let q = self.rope.assemble(block, "q_rope", q, (heads, head_dim, Split::Heads));
        let kv = self.rope.assemble(block, "k_rope", kv, (one, head_dim, whole));
        let new: Vec<NodeIndex> = [kv].into_iter().chain(compressed.into_iter().flatten()).collect();
        let cache = block.kv_cache((one, head_dim, whole), &new);
        let scores = Scores { heads, keys: ScoredKeys::Entries(self.window, beyond) };
        let softmax = block.softmax(scores, &[q, cache]);
        let attention = Operator::CompressedAttention(CompressedAttention {
            heads,
            head_dim,
            window: self.window,
            beyond,
        });
        let sinks = weight("self_attn.sinks", vec![heads.value], TensorRole::Sink);
        let attention = block.node("attention", attention, vec![sinks], &[q, cache, softmax]);
        let slice = Count::derived("o_group_width", q_width.value / o_groups.value, "q_width / o_groups");
        let out = width("o_a_width", o_groups, o_lora_rank, "o_groups × o_lora_rank");
        let o_a = weight("self_attn.o_a_proj.weight", vec![out.value, slice.value], role);
        let grouped = Operator::GroupedLinear { groups: o_groups, input: slice, output: o_lora_rank };
        let o_a = block.node("o_a_proj", grouped, vec![o_a], &[attention]);
        block.linear(o_a, matrix("o_b_proj", "o_b_proj", (out, hidden), Split::Row, role))
    }

    /// Entries of the compressor, and the indexer's selection.
    fn compress(
        &self,
        block: &mut Assembly,
        from: NodeIndex,
        compressed_query: NodeIndex,
        compressor: Compressor,
    ) -> Vec<NodeIndex> {
        let Compressor { every, picker } = compressor;
        // Overlapping windows: a token contributes to its own entry and to the next.
        let series = if picker.is_some() { 2 } else { 1 };
        let names = ["compressor_kv", "compressor_gate", "compressor_norm"];
        let tensors = "compressor";
        let mut results = vec![self.pool(block, from, names, tensors, (self.head_dim, every, series))];
        if let Some(Picker { heads, head_dim, top_k }) = picker {
            let names = ["index_kv", "index_gate", "index_k_norm"];
            let key = self.pool(block, from, names, "compressor.indexer", (head_dim, every, series));
            let q_width = width("index_q_width", heads, head_dim, "index_n_heads × index_head_dim");
            let (whole, role) = (Split::Replicate, TensorRole::Indexer);
            let q =
                matrix("index_q", "compressor.indexer.q_b_proj", (self.q_lora_rank, q_width), whole, role);
            let q = block.linear(compressed_query, q);
            let scores = "compressor.indexer.scorer.weights_proj";
            let weights =
                block.linear(from, matrix("index_weights", scores, (self.hidden, heads), whole, role));
            let indexer = Operator::Indexer { heads, head_dim, top_k, every };
            results.push(block.node("indexer", indexer, vec![], &[q, key, weights]));
        }
        results
    }

    /// Values and gates of tokens, pooled into entries. The pooling is fused with the norm.
    fn pool(
        &self,
        block: &mut Assembly,
        from: NodeIndex,
        [kv, gate, normed]: [&'static str; 3],
        tensors: &'static str,
        (head_dim, every, series): (Count, Count, u64),
    ) -> NodeIndex {
        let wide = Count::derived("compressed_width", series * head_dim.value, "entry × overlapping windows");
        let role = if tensors == "compressor" { TensorRole::Attention } else { TensorRole::Indexer };
        let project = |block: &mut Assembly, name, tensor: &str| {
            let tensor = format!("{tensors}.{tensor}");
            block.linear(from, matrix(name, &tensor, (self.hidden, wide), Split::Replicate, role))
        };
        let values = project(block, kv, "kv_proj");
        let gates = project(block, gate, "gate_proj");
        let name = |tensor: &str| format!("self_attn.{tensors}.{tensor}");
        let weights = vec![
            weight(name("position_bias"), vec![every.value, wide.value], TensorRole::Norm),
            weight(name("kv_norm.weight"), vec![head_dim.value], TensorRole::Norm),
        ];
        let rows = Count::derived("rows", series, "windows that overlap");
        let operator = Operator::Norm { width: head_dim, rows, split: Split::Replicate };
        block.node(normed, operator, weights, &[values, gates])
    }
}

fn matrix(
    name: &'static str,
    tensor: &str,
    (input, output): (Count, Count),
    split: Split,
    role: TensorRole,
) -> Matrix {
    Matrix { name, tensor: format!("self_attn.{tensor}"), input, output, split, role, bias: false }
}

fn norm(block: &mut Assembly, from: NodeIndex, name: &'static str, tensor: &str, width: Count) -> NodeIndex {
    encoder::norm(block, from, name, &format!("self_attn.{tensor}"), width, false)
}
