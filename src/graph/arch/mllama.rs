//! Llama-3.2-Vision: Llama's layers, interleaved with cross-attention layers to an image.
//!
//! Defaults for missing keys: `MllamaTextConfig` of transformers.

use super::{vision, wrapper};
use crate::graph::model::{Block, ModelGraph};
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::cross::Cross;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Layer, Mixer};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Default cross-attention layers.
const CROSSING: [u64; 8] = [3, 8, 13, 18, 23, 28, 33, 38];

/// Rows of the embedding without a row in the head: the image token and its padding.
const EXTRA_ROWS: u64 = 8;

/// `mllama`: a sequence attends to all tiles of one image.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    wrapper::set_prompt_aside(keys);
    let text = wrapper::text(keys, "mllama_text_model")?;
    text.set_aside(&["cross_attention_hidden_size", "dropout"]);
    let whole = DecoderSpec::read(&text, false)?;
    let (tower, positions) =
        vision::mllama::tower(&wrapper::vision(keys, "mllama_vision_model")?, whole.hidden)?;
    let attention = Attention::read_stated(&text, whole.hidden)?;
    let network = FeedForward::read(&text, whole.hidden)?;
    let crossing = match text.has("cross_attention_layers") {
        true => text.numbers("cross_attention_layers")?.unwrap_or_default(),
        false => CROSSING.to_vec(),
    };
    let gates = &["cross_attn_attn_gate", "cross_attn_mlp_gate"];
    let layer = |index| match crossing.contains(&index) {
        true => {
            let attention = Attention { qk_norm: QkNorm::PerHead, ..attention.clone() };
            let cross = Cross { attention, source: whole.hidden, positions, gates };
            Layer::of(whole.hidden, Mixer::Cross(cross), network.clone())
        }
        false => Layer::new(attention.clone(), network.clone()),
    };
    let layers = (0..whole.layers.value).map(layer).collect();
    let rows = Count::derived("embedding_rows", whole.vocab.value + EXTRA_ROWS, "vocab_size + 8");
    let mut graph = whole.graph(layers, vec![]);
    lengthen(&mut graph.embedding, rows);
    let graph = wrapper::tied(graph, keys, &text)?;
    Ok(wrapper::wrap(graph, wrapper::INSIDE_MODEL, vec![tower]))
}

/// Sets the own number of rows of the tokens' embedding.
pub(super) fn lengthen(embedding: &mut Block, rows: Count) {
    use crate::graph::operator::Operator;
    for node in embedding.graph.node_weights_mut().filter(|node| node.name == "embed_tokens") {
        if let Operator::Embedding { vocab, .. } = &mut node.operator {
            *vocab = rows;
            node.weights.iter_mut().for_each(|weight| weight.shape[0] = rows.value);
        }
    }
}
