//! The whole model from its layers: embedding, blocks of equal layers, head.
//!
//! Knows no architecture: a family hands over its layers, in order.

use super::layer::{Layer, name};
use crate::graph::assembly::{Assembly, weight};
use crate::graph::model::{Block, ModelGraph};
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::{Role, Weight};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// What a decoder has besides its layers.
#[derive(Clone, Debug)]
pub struct Whole {
    /// Width of the residual stream.
    pub hidden: Count,
    /// Number of layers.
    pub layers: Count,
    /// Rows of the embedding.
    pub vocab: Count,
    /// The head reuses the embedding.
    pub tied: bool,
    /// LayerNorm's shift in the final norm.
    pub norm_bias: bool,
}

impl Whole {
    /// The keys that all decoders share; `tied` is the class's default of `tie_word_embeddings`.
    pub fn read(keys: &Keys<'_>, tied: bool) -> Result<Whole, Error> {
        Ok(Whole {
            hidden: keys.count("hidden_size")?,
            layers: keys.count("num_hidden_layers")?,
            vocab: keys.count("vocab_size")?,
            tied: keys.flag("tie_word_embeddings", tied)?,
            norm_bias: false,
        })
    }

    /// A graph of the same layer `num_hidden_layers` times.
    pub fn uniform(self, layer: Layer) -> ModelGraph {
        let layers = vec![layer; self.layers.value as usize];
        self.graph(layers, vec![])
    }

    /// A graph of these layers; equal ones share a block.
    pub fn graph(self, layers: Vec<Layer>, mtp: Vec<Weight>) -> ModelGraph {
        let windows_differ = layers.iter().any(|layer| layer.slides() != layers[0].slides());
        let networks_differ = layers.iter().any(|layer| layer.is_moe() != layers[0].is_moe());
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
        let blocks = kinds
            .into_iter()
            .map(|(layer, indices)| layer.block(name(&layer, windows_differ, networks_differ), indices))
            .collect();
        ModelGraph {
            model_type: String::new(),
            hidden: self.hidden,
            layers: self.layers,
            vocab: self.vocab,
            max_context: None,
            tied: self.tied,
            embedding: self.embedding(),
            blocks,
            head: self.head(),
            mtp,
            towers: vec![],
            layer_block,
        }
    }

    fn embedding(&self) -> Block {
        let mut block = Assembly::default();
        let shape = vec![self.vocab.value, self.hidden.value];
        let table = weight("model.embed_tokens.weight", shape, Role::Embedding);
        let lookup = Operator::Embedding { vocab: self.vocab, hidden: self.hidden };
        block.node("embed_tokens", lookup, vec![table], &[]);
        block.finish("embedding", vec![], vec![])
    }

    fn head(&self) -> Block {
        let mut block = Assembly::default();
        let stream = block.input(self.hidden);
        let normed = block.stream_norm(stream, "final_norm", "model.norm", self.norm_bias);
        let shape = vec![self.vocab.value, self.hidden.value];
        let stored = weight("lm_head.weight", shape, Role::LmHead);
        let projection = Operator::Linear { input: self.hidden, output: self.vocab, split: Split::Vocab };
        let weights = if self.tied { vec![] } else { vec![stored] };
        let logits = block.node("lm_head", projection, weights, &[normed]);
        block.node("sampling", Operator::Sampling { vocab: self.vocab }, vec![], &[logits]);
        block.finish("head", vec![], vec![])
    }
}
