//! The whole model from its layers: embedding, blocks of equal layers, head.
//!
//! Independent of architectures: a family supplies its layers, in order.

use petgraph::graph::NodeIndex;

use super::hyper::{Hyper, head_connection, stream_width};
use super::layer::{Layer, name};
use super::names::TensorNames;
use super::streams::{Altup, PerLayer};
use crate::graph::assembly::{Affine, Assembly, Matrix, weight};
use crate::graph::model::{Block, ModelGraph};
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// The parts of a decoder other than its layers.
#[derive(Clone, Copy, Debug)]
pub struct DecoderSpec {
    /// Width of the residual stream.
    pub hidden: Count,
    pub layers: Count,
    /// Rows of the embedding.
    pub vocab: Count,
    /// The head is tied to the embedding.
    pub tied: bool,
    /// Learned parameters of the final norm (and of the embedding's).
    pub norm: Affine,
    /// Whether there is a final norm.
    pub final_norm: bool,
    /// Rows of learned position embeddings (GPT-2, OPT).
    pub positions: Option<Count>,
    /// Rows of a table of segments, of which a token reads one (CPM-Ant, Kosmos-2.5).
    pub segments: Option<Count>,
    /// A norm after the embedding (BLOOM).
    pub embedding_norm: bool,
    /// Width of embedding and head, if projections connect them to the stream (OPT-350m).
    pub embedding_width: Option<Count>,
    /// Bias on the head (Phi-2, GPT-J).
    pub head_bias: bool,
    /// A matrix and a norm before the head, and whether the matrix has a bias (ModernBERT's decoder).
    pub head_network: Option<bool>,
    /// Parallel residual streams (DeepSeek-V4), summed by the head.
    pub streams: Option<Hyper>,
    /// A second embedding, with one input per layer (Gemma-3n, Gemma-4).
    pub per_layer: Option<PerLayer>,
    /// Additional streams (Gemma-3n).
    pub altup: Option<Altup>,
    /// Maximum context in tokens, for families with a key of their own.
    pub max_context: Option<u64>,
    pub names: TensorNames,
}

impl DecoderSpec {
    /// The keys that most decoders share. `tied` is the class's default of `tie_word_embeddings`.
    pub fn read(keys: &Keys<'_>, tied: bool) -> Result<DecoderSpec, Error> {
        let (hidden, layers) = (keys.count("hidden_size")?, keys.count("num_hidden_layers")?);
        DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, tied)
    }

    /// The same for families with other key names for the three counts.
    pub fn of(
        keys: &Keys<'_>,
        hidden: Count,
        layers: Count,
        vocab: Count,
        tied: bool,
    ) -> Result<DecoderSpec, Error> {
        Ok(DecoderSpec {
            hidden,
            layers,
            vocab,
            tied: keys.flag("tie_word_embeddings", tied)?,
            norm: Affine::Scale,
            final_norm: true,
            positions: None,
            segments: None,
            embedding_norm: false,
            embedding_width: None,
            head_bias: false,
            head_network: None,
            streams: None,
            per_layer: None,
            altup: None,
            max_context: None,
            names: TensorNames::default(),
        })
    }

    /// A graph of `num_hidden_layers` identical layers.
    pub fn uniform(self, layer: Layer) -> ModelGraph {
        let layers = vec![layer; self.layers.value as usize];
        self.graph(layers, vec![])
    }

    /// A graph of one layer with each of these windows.
    pub fn windowed(self, layer: &Layer, windows: Vec<Option<Count>>) -> ModelGraph {
        self.graph(windows.into_iter().map(|window| layer.sliding(window)).collect(), vec![])
    }

    /// A graph of these layers. Equal layers share a block.
    pub fn graph(self, layers: Vec<Layer>, mtp: Vec<Weight>) -> ModelGraph {
        let mixers_differ = layers.iter().any(|layer| layer.mixer_kind() != layers[0].mixer_kind());
        let networks_differ = layers.iter().any(|layer| layer.has_experts() != layers[0].has_experts());
        let mut kinds: Vec<(Layer, Vec<u32>)> = vec![];
        let mut layer_block = Vec::with_capacity(layers.len());
        for (index, layer) in (0u32..).zip(layers) {
            let block = match kinds.iter().position(|(kind, _)| *kind == layer) {
                Some(block) => block,
                None => {
                    kinds.push((layer, vec![]));
                    kinds.len() - 1
                }
            };
            kinds[block].1.push(index);
            layer_block.push(block);
        }
        let blocks = kinds.into_iter().map(|(layer, indices)| {
            let mut block = layer.block(name(&layer, mixers_differ, networks_differ), indices);
            self.names.apply(&mut block);
            block
        });
        ModelGraph {
            model_type: String::new(),
            hidden: self.hidden,
            layers: self.layers,
            vocab: self.vocab,
            max_context: self.max_context,
            tied: self.tied,
            embedding: self.embedding(),
            blocks: blocks.collect(),
            head: self.head(),
            mtp,
            draft: None,
            towers: vec![],
            image_inputs: None,
            generates: true,
            ignored_keys: vec![],
            layer_prefix: self.names.of("model.layers"),
            layer_block,
            stores: vec![],
            carried: None,
        }
    }

    fn embedding(&self) -> Block {
        let mut block = Assembly::default();
        let width = self.embedding_width.unwrap_or(self.hidden);
        let lookup =
            |block: &mut Assembly, name: &'static str, tensor: &str, rows: Count, hidden: Count, split| {
                let table = weight(tensor, vec![rows.value, hidden.value], TensorRole::Embedding);
                block.node(name, Operator::Embedding { vocab: rows, hidden, split }, vec![table], &[])
            };
        let tokens = "model.embed_tokens.weight";
        let mut stream = lookup(&mut block, "embed_tokens", tokens, self.vocab, width, Split::Vocab);
        if self.embedding_width.is_some() {
            stream = self.projection(&mut block, stream, "project_in", width, self.hidden);
        }
        for (rows, name, tensor, add) in [
            (self.positions, "embed_positions", "model.embed_positions.weight", "positions_add"),
            (self.segments, "embed_segments", "model.embed_segments.weight", "segments_add"),
        ] {
            let Some(rows) = rows else { continue };
            let added = lookup(&mut block, name, tensor, rows, self.hidden, Split::Replicate);
            let sum = Operator::Add { width: self.hidden };
            stream = block.node(add, sum, vec![], &[stream, added]);
        }
        if self.embedding_norm {
            block.stream_norm(stream, "embedding_norm", "model.embed_norm", self.norm);
        }
        if let Some(per_layer) = &self.per_layer {
            per_layer.embed(&mut block, stream, self.hidden, self.layers);
        }
        if let Some(altup) = &self.altup {
            altup.project(&mut block, stream, "altup_projections", self.hidden);
        }
        self.finish(block, "embedding")
    }

    fn head(&self) -> Block {
        let mut block = Assembly::default();
        let mut stream = match self.streams {
            None => block.input(self.hidden),
            Some(hyper) => {
                let all = block.input(stream_width(self.hidden, hyper.streams));
                head_connection(&mut block, all, self.hidden, hyper)
            }
        };
        if let Some(altup) = &self.altup {
            let others = altup.project(&mut block, stream, "altup_unembed_projections", self.hidden);
            let mean = Operator::Add { width: self.hidden };
            stream = block.node("altup_mean", mean, vec![], &[stream, others]);
        }
        if self.final_norm {
            stream = block.stream_norm(stream, "final_norm", "model.norm", self.norm);
        }
        if let Some(bias) = self.head_network {
            let (name, tensor) = ("head_dense", "lm_head.dense".to_owned());
            let (input, output, split) = (self.hidden, self.hidden, Split::Replicate);
            let role = TensorRole::Mlp;
            stream = block.linear(stream, Matrix { name, tensor, input, output, split, role, bias });
            let activation = Operator::Activation { width: self.hidden, gated: false };
            stream = block.node("head_activation", activation, vec![], &[stream]);
            stream = block.stream_norm(stream, "head_norm", "lm_head.norm", self.norm);
        }
        let width = self.embedding_width.unwrap_or(self.hidden);
        if self.embedding_width.is_some() {
            stream = self.projection(&mut block, stream, "project_out", self.hidden, width);
        }
        let mut weights = vec![];
        if !self.tied {
            weights.push(weight("lm_head.weight", vec![self.vocab.value, width.value], TensorRole::LmHead));
        }
        if self.head_bias {
            weights.push(weight("lm_head.bias", vec![self.vocab.value], TensorRole::Bias));
        }
        let projection = Operator::Linear { input: width, output: self.vocab, split: Split::Vocab };
        let logits = block.node("lm_head", projection, weights, &[stream]);
        block.node("sampling", Operator::Sampling { vocab: self.vocab }, vec![], &[logits]);
        self.finish(block, "head")
    }

    /// Projections between the width of the embedding and that of the stream.
    fn projection(
        &self,
        block: &mut Assembly,
        from: NodeIndex,
        name: &'static str,
        input: Count,
        output: Count,
    ) -> NodeIndex {
        let (tensor, split, role) = (format!("model.{name}"), Split::Replicate, TensorRole::Embedding);
        block.linear(from, Matrix { name, tensor, input, output, split, role, bias: false })
    }

    fn finish(&self, block: Assembly, name: &'static str) -> Block {
        let mut block = block.finish(name, vec![], vec![]);
        self.names.apply(&mut block);
        block
    }
}
