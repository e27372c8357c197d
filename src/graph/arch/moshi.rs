//! The decoders of Moshi and of Kyutai's speech-to-text: windows in all layers, gates and values of the network in one
//! matrix, more rows in the embedding than in the head.
//!
//! Source: `modeling_moshi.py` and `modular_kyutai_speech_to_text.py` of transformers 5.24.

use super::mllama::lengthen;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::Layer;
use crate::graph::part::misfit;
use crate::graph::part::names::TensorNames;
use crate::graph::part::window::uniform_window;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.q_proj", "self_attn.q_proj.linear"),
    ("self_attn.k_proj", "self_attn.k_proj.linear"),
    ("self_attn.v_proj", "self_attn.v_proj.linear"),
    ("self_attn.o_proj", "self_attn.o_proj.linear"),
    ("mlp.gate_proj mlp.up_proj", "mlp.fc1"),
    ("mlp.down_proj", "mlp.fc2"),
]);

/// `moshi`: the decoder of text alone; a row for the padding of the embedding. No key ties the head.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["audio_encoder_config", "audio_vocab_size", "depth_decoder_config", "num_codebooks"]);
    let whole = DecoderSpec { tied: false, ..DecoderSpec::read(keys, false)? };
    let rows = Count::derived("embedding_rows", whole.vocab.value + 1, "vocab_size + 1");
    decoder(keys, whole, rows, 3000)
}

/// `kyutai_speech_to_text`: the embedding has rows for the tokens of each codebook, which are summed with that of the
/// text.
pub fn build_kyutai(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let (books, entries) = (keys.count_or("num_codebooks", 32)?, keys.count_or("codebook_vocab_size", 2049)?);
    let rows = whole.vocab.value + books.value * entries.value + 1;
    let rows = Count::derived("embedding_rows", rows, "vocab_size + num_codebooks × codebook_vocab_size + 1");
    let mut graph = decoder(keys, whole, rows, 375)?;
    for weight in graph.embedding.graph.node_weights_mut().flat_map(|node| &mut node.weights) {
        weight.name = weight.name.replace("embed_tokens", "embed_tokens.embed_tokens");
    }
    Ok(graph)
}

fn decoder(keys: &Keys<'_>, whole: DecoderSpec, rows: Count, window: u64) -> Result<ModelGraph, Error> {
    let width = keys.count("ffn_dim")?;
    if !width.value.is_multiple_of(2) {
        return Err(misfit(width, "an even number: the rows of gates and values".to_owned()));
    }
    let half = Count::derived("intermediate_size", width.value / 2, "ffn_dim / 2");
    let mask = uniform_window(keys, Some(window))?.into();
    let attention = Attention { mask, ..Attention::read_grouped(keys, whole.hidden)? };
    let layer = Layer::new(attention, FeedForward::gated(whole.hidden, half));
    let mut graph = DecoderSpec { names: NAMES, ..whole }.uniform(layer);
    lengthen(&mut graph.embedding, rows);
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    const MOSHI: &str = r#"{"model_type": "moshi", "hidden_size": 6, "num_hidden_layers": 2, "vocab_size": 11,
        "num_attention_heads": 3, "ffn_dim": 10, "sliding_window": 7, "tie_word_embeddings": true}"#;

    #[test]
    fn half_of_the_rows_are_gates_and_no_key_ties_the_head() {
        let graph = ModelGraph::build(&ModelConfig::parse(MOSHI).unwrap()).unwrap();
        let layer = 4 * 6 * 6 + 3 * 6 * 5 + 2 * 6;
        assert_eq!(graph.parameters().unique, 12 * 6 + 2 * layer + 6 + 11 * 6);
        assert_eq!(graph.kv_elements_per_token().windowed, 2 * 2 * 6);
        let fc1 = graph.blocks[0].weights().into_iter().find(|weight| weight.name == "mlp.fc1.weight");
        assert_eq!(fc1.map(|weight| weight.shape), Some(vec![10, 6]));
    }

    #[test]
    fn an_odd_number_of_rows_is_refused() {
        let config = ModelConfig::parse(&MOSHI.replace("10", "9")).unwrap();
        assert_eq!(ModelGraph::build(&config).unwrap_err().key, "ffn_dim");
    }
}
