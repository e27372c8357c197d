//! Embeddings of hashed n-grams inside a layer (Qwen4): tables, and their gated projection to all residual streams.
//!
//! Independent of the layer's mixer and network.

use petgraph::graph::NodeIndex;

use super::hyper::stream_width;
use super::recurrent::{conv_state, product};
use crate::graph::assembly::{Affine, Assembly, Matrix, weight};
use crate::graph::cache::Cache;
use crate::graph::operator::{Operator, Split};
use crate::graph::rule::ConvForm;
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;

/// The n-grams of one layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ngrams {
    /// Rows of the joined tables.
    pub rows: Count,
    /// Tables: as many for each length of an n-gram.
    pub heads: Count,
    /// Elements of a token's rows, all together.
    pub width: Count,
    /// Tokens of the longest n-gram; also the dilation of the convolution.
    pub longest: Count,
    /// Taps of the convolution.
    pub kernel: Count,
}

impl Ngrams {
    /// Adds the operators; returns the streams with the embeddings.
    pub fn assemble(
        &self,
        block: &mut Assembly,
        streams: NodeIndex,
        (hidden, count): (Count, Count),
    ) -> NodeIndex {
        let Ngrams { rows, heads, width, longest, kernel } = *self;
        let all = stream_width(hidden, count);
        let table = "ple.ple_embedding.ngram_embedding.weight";
        let table = weight(table, vec![rows.value, width.value / heads.value], TensorRole::Embedding);
        let buffer = |name: &str, length: u64| {
            let name = format!("ple.ple_embedding.{name}");
            Weight { buffer: true, ..weight(name, vec![length], TensorRole::Norm) }
        };
        let buffers = [
            buffer("layer_multipliers", longest.value),
            buffer("ngram_heads_vocab_sizes", heads.value),
            buffer("ngram_heads_offsets", heads.value),
        ];
        let each = Count::derived("ngram_rows", rows.value.div_ceil(heads.value), "rows of a table");
        let lookup = Operator::Embedding { vocab: each, hidden: width, split: Split::Vocab };
        let found = block.node("ngram_embedding", lookup, [vec![table], buffers.to_vec()].concat(), &[]);
        let mut project = |name: &'static str, stored, output| {
            let (tensor, split, role) = (format!("ple.{stored}"), Split::Replicate, TensorRole::Mlp);
            block.linear(found, Matrix { name, tensor, input: width, output, split, role, bias: false })
        };
        let key = project("ngram_key", "key_proj", all);
        let value = project("ngram_value", "value_proj", hidden);
        let key = block.stream_norm(key, "ngram_key_norm", "ple.norm_key", Affine::Scale);
        let query = block.stream_norm(streams, "ngram_query_norm", "ple.norm_query", Affine::Scale);
        let gate = Operator::Activation { width: all, gated: true };
        let gated = block.node("ngram_gate", gate, vec![], &[key, query, value]);
        let normed = block.stream_norm(gated, "ngram_conv_norm", "ple.norm_conv", Affine::Scale);
        let taps = weight("ple.conv1d.weight", vec![all.value, 1, kernel.value], TensorRole::Recurrence);
        let (form, split) = (ConvForm::Activated, Split::Replicate);
        let conv = Operator::ShortConv { channels: all, kernel, form, split };
        let conv = block.node("ngram_conv", conv, vec![taps], &[normed]);
        block.node("ngram_add", Operator::Add { width: all }, vec![], &[gated, conv, streams])
    }

    /// The tokens that the dilated convolution keeps.
    pub fn state(&self, hidden: Count, count: Count) -> Cache {
        let taps =
            Count::derived("ngram_taps", self.kernel.value.saturating_sub(1), "ple_conv_kernel_size - 1");
        let reach = product("ngram_reach", taps, self.longest, "taps × dilation");
        conv_state(stream_width(hidden, count), reach, count)
    }
}
