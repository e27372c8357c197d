//! Layer additions: per-layer inputs from a second embedding and additional streams (Gemma-3n, Gemma-4), further
//! tensors, cross-attention in a layer.
//!
//! Independent of attention and networks.

use petgraph::graph::NodeIndex;

use super::cross::{Cross, CrossAdapter};
use super::feed_forward::FeedForward;
use super::layer::Mixer;
use super::ngrams::Ngrams;
use super::recurrent::{fixed, product};
use super::shared_transformer::SharedTransformer;
use crate::graph::assembly::{Affine, Assembly, Matrix, weight};
use crate::graph::cache::Cache;
use crate::graph::operator::{Operator, Split};
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;

/// Embeddings of each token per layer, added one layer at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerLayer {
    /// Rows of the second embedding.
    pub vocab: Count,
    /// Elements per layer.
    pub width: Count,
}

/// AltUp: several streams, of which layers compute one and predict and correct the others; LAuReL in parallel with
/// attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Altup {
    /// Streams.
    pub inputs: Count,
    /// Rank of the learned residual in parallel with attention.
    pub laurel_rank: Count,
}

/// A learned tensor of a layer outside its mixer, network and norms.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Its name in the layer.
    pub name: String,
    pub shape: Vec<u64>,
    /// Whether it multiplies what passes as a matrix; else element by element.
    pub product: bool,
}

impl Side {
    /// Numbers that scale or shift what passes.
    pub fn elements(name: &str, shape: Vec<u64>) -> Side {
        Side { name: name.to_owned(), shape, product: false }
    }

    /// A matrix `[output, input]`, stored as `name.weight`, or a convolution.
    pub fn matrix(name: &str, shape: Vec<u64>) -> Side {
        Side { name: format!("{name}.weight"), shape, product: true }
    }

    fn assemble(&self, block: &mut Assembly, stream: NodeIndex) -> NodeIndex {
        let inner = self.shape.iter().skip(1).fold(1u64, |so_far, side| so_far.saturating_mul(*side));
        let input = fixed("side_input", inner, "inner sides of the tensor");
        let output = fixed("side_output", self.shape.first().copied().unwrap_or(1), "rows of the tensor");
        let matrix = Operator::Linear { input, output, split: Split::Replicate };
        block.node(
            "side",
            matrix,
            vec![weight(self.name.clone(), self.shape.clone(), TensorRole::Mlp)],
            &[stream],
        )
    }
}

/// Additional parts of a layer other than mixer, network and their norms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// A per-layer input.
    pub per_layer: Option<PerLayer>,
    /// Additional streams.
    pub altup: Option<Altup>,
    /// A scalar that scales its result, stored as a buffer.
    pub scalar: bool,
    /// Further tensors.
    pub sides: Vec<Side>,
    /// States that these keep between tokens.
    pub states: Vec<Cache>,
    /// No norm before the mixer.
    pub unnormed: bool,
    /// A transformer that several layers share, before the mixer.
    pub transformer: Option<Box<SharedTransformer>>,
    /// Embeddings of n-grams, added to all streams before the mixer.
    pub ngrams: Option<Ngrams>,
    /// Cross-attention between the norm after the mixer and the network, with a norm of its own (BLIP).
    pub crossed: Option<Box<Cross>>,
    /// The same with a network at the layer's end.
    pub adapter: Option<Box<CrossAdapter>>,
    /// A second attention and network after the first, around which the layer's experts run (LongCat).
    pub second: Option<Box<(Mixer, FeedForward)>>,
}

fn matrix(name: &'static str, tensor: &str, input: Count, output: Count) -> Matrix {
    let (tensor, split, role) = (tensor.to_owned(), Split::Replicate, TensorRole::Mlp);
    Matrix { name, tensor, input, output, split, role, bias: false }
}

impl PerLayer {
    /// Adds the second look-up to the embedding's block, and the projection of the main embedding to each layer's
    /// input.
    pub fn embed(&self, block: &mut Assembly, stream: NodeIndex, hidden: Count, layers: Count) {
        let all = product("per_layer_width", layers, self.width, "layers × hidden_size_per_layer_input");
        let name = "model.embed_tokens_per_layer.weight";
        let table = weight(name, vec![self.vocab.value, all.value], TensorRole::Embedding);
        let lookup = Operator::Embedding { vocab: self.vocab, hidden: all, split: Split::Vocab };
        let own = block.node("embed_tokens_per_layer", lookup, vec![table], &[]);
        let name = "per_layer_model_projection";
        let projected = block.linear(stream, matrix(name, &format!("model.{name}"), hidden, all));
        let scale =
            weight("model.per_layer_projection_norm.weight", vec![self.width.value], TensorRole::Norm);
        let norm = Operator::Norm { width: self.width, rows: layers, split: Split::Replicate };
        let normed = block.node("per_layer_projection_norm", norm, vec![scale], &[projected]);
        block.node("per_layer_add", Operator::Add { width: all }, vec![], &[own, normed]);
    }

    /// Adds the per-layer input to the stream at the end of a layer.
    fn mix(&self, block: &mut Assembly, stream: NodeIndex, hidden: Count) -> NodeIndex {
        let name = "per_layer_input_gate";
        let gate = block.linear(stream, matrix(name, name, hidden, self.width));
        let gated = Operator::Activation { width: self.width, gated: true };
        let gated = block.node("per_layer_gate", gated, vec![], &[gate]);
        let name = "per_layer_projection";
        let projected = block.linear(gated, matrix(name, name, self.width, hidden));
        block.stream_norm(projected, "post_per_layer_input_norm", "post_per_layer_input_norm", Affine::Scale)
    }
}

impl Altup {
    /// Total elements of all streams.
    fn width(&self, hidden: Count) -> Count {
        product("streams_width", self.inputs, hidden, "altup_num_inputs × hidden_size")
    }

    /// Adds the prediction of all streams before the layer computes; returns the main one.
    pub fn predict(&self, block: &mut Assembly, input: NodeIndex, hidden: Count) -> NodeIndex {
        let inputs = self.inputs;
        let squared = product("altup_coefficients", inputs, inputs, "altup_num_inputs²");
        let normed = block.stream_norm(input, "altup_norm", "altup.router_norm", Affine::Scale);
        let router = matrix("altup_router", "altup.modality_router", hidden, inputs);
        let modality = block.linear(normed, router);
        let coefficients = matrix("altup_prediction", "altup.prediction_coefs", inputs, squared);
        let coefficients = block.linear(modality, coefficients);
        // Every stream becomes a mixture of all streams: a product without weights.
        let mixture = Operator::Linear { input: inputs, output: self.width(hidden), split: Split::Replicate };
        let mixed = block.node("altup_predict", mixture, vec![], &[coefficients]);
        block.node("altup_stream", Operator::Add { width: hidden }, vec![], &[mixed, input])
    }

    /// Adds the learned residual in parallel with attention.
    pub fn laurel(&self, block: &mut Assembly, normed: NodeIndex, hidden: Count) -> NodeIndex {
        let rank = self.laurel_rank;
        let left = block.linear(normed, matrix("laurel_left", "laurel.linear_left", hidden, rank));
        let right = block.linear(left, matrix("laurel_right", "laurel.linear_right", rank, hidden));
        block.stream_norm(right, "laurel_norm", "laurel.post_laurel_norm", Affine::Scale)
    }

    /// Adds the correction of all streams by the layer's result.
    fn correct(&self, block: &mut Assembly, stream: NodeIndex, hidden: Count) -> NodeIndex {
        let name = "altup_correction";
        let coefficients = matrix(name, "altup.correction_coefs", self.inputs, self.inputs);
        let one = fixed("altup_router_width", self.inputs.value, "scores of the router, as before the layer");
        let scores = Operator::Activation { width: one, gated: false };
        let scores = block.node("altup_scores", scores, vec![], &[stream]);
        let coefficients = block.linear(scores, coefficients);
        let scale = weight("altup.correct_output_scale", vec![hidden.value], TensorRole::Norm);
        let sum = Operator::Add { width: self.width(hidden) };
        block.node("altup_correct", sum, vec![scale], &[coefficients, stream])
    }

    /// Projections of the additional streams before the first layer and after the last; `side` selects the names.
    pub fn project(&self, block: &mut Assembly, stream: NodeIndex, side: &str, hidden: Count) -> NodeIndex {
        let projection = |index: u64| {
            let tensor = format!("model.{side}.{index}.weight");
            weight(tensor, vec![hidden.value, hidden.value], TensorRole::Mlp)
        };
        let weights: Vec<Weight> = (0..self.inputs.value.saturating_sub(1)).map(projection).collect();
        let others = Count::derived("other_streams", weights.len() as u64, "altup_num_inputs - 1");
        let others = product("streams_width", others, hidden, "(altup_num_inputs - 1) × hidden_size");
        let matrices = Operator::Linear { input: hidden, output: others, split: Split::Replicate };
        block.node("altup_project", matrices, weights, &[stream])
    }
}

impl Extras {
    /// Adds the operators after the layer's last sum.
    pub fn finish(&self, block: &mut Assembly, stream: NodeIndex, hidden: Count) {
        let mut stream = stream;
        if let Some(adapter) = &self.adapter {
            stream = adapter.assemble(block, stream);
        }
        if let Some(altup) = &self.altup {
            stream = altup.correct(block, stream, hidden);
        }
        let mut sums = vec![stream];
        sums.extend(self.per_layer.map(|per_layer| per_layer.mix(block, stream, hidden)));
        let scalar = Weight { buffer: true, ..weight("layer_scalar", vec![1], TensorRole::Norm) };
        let mut weights = if self.scalar { vec![scalar] } else { vec![] };
        for side in &self.sides {
            match side.product {
                true => sums.push(side.assemble(block, stream)),
                false => weights.push(weight(side.name.clone(), side.shape.clone(), TensorRole::Norm)),
            }
        }
        if sums.len() == 1 && weights.is_empty() {
            return;
        }
        block.node("layer_output", Operator::Add { width: hidden }, weights, &sums);
    }
}
