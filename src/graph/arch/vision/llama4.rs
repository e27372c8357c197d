//! Llama-4's encoder: a class token in the last position, pixel shuffle, an adapter and a projector.
//!
//! Defaults for missing keys: `Llama4VisionConfig` of transformers.

use serde_json::json;

use super::{matrix_once, side, two_once};
use crate::graph::assembly::Assembly;
use crate::graph::image_processor::ImageProcessor;
use crate::graph::part::encoder::{Encoder, EncoderNames, Patches, Projection, norm, norm_once, once};
use crate::graph::tower::Tower;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: EncoderNames = EncoderNames {
    norms: ["input_layernorm", "post_attention_layernorm"],
    qkv: ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    out: "self_attn.o_proj",
    network: &["mlp.fc1", "mlp.fc2"],
};

/// The encoder; `text` is the language model's width. Positions are those of one tile.
pub fn tower(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    keys.set_aside(&["model_type", "vision_feature_layer", "projector_dropout", "norm_eps"]);
    let channels = keys.count_or("num_channels", 3)?.value;
    keys.only("multi_modal_projector_bias", &json!(false))?;
    keys.only("pixel_shuffle_ratio", &serde_json::from_str("0.5").expect("a number"))?;
    keys.only("vision_feature_select_strategy", &json!("default"))?;
    let (hidden, heads) = (keys.count("hidden_size")?, keys.count("num_attention_heads")?);
    let patch = keys.count_or("patch_size", 14)?;
    let side = side(keys.count("image_size")?, patch)?;
    let positions =
        Count::derived("positions", side * side + 1, "(image_size / patch_size)² and a class token");
    let prefix = "vision_model";
    let mut block = Assembly::default();
    let shape = vec![hidden.value, channels * patch.value * patch.value];
    let embeddings = vec![
        ("class_embedding", vec![hidden.value]),
        ("positional_embedding_vlm", vec![positions.value, hidden.value]),
    ];
    let patches = Patches { tensor: "patch_embedding.linear", shape, bias: false, embeddings };
    let stream = patches.assemble(&mut block, hidden);
    norm(&mut block, stream, "pre_norm", "layernorm_pre", hidden, true);
    let stem = once(block, "patches", prefix, positions);
    let intermediate = keys.count("intermediate_size")?;
    let encoder = Encoder::biased(hidden, heads, intermediate, &NAMES);
    let layers =
        encoder.layers("vision_model.model.layers", keys.count("num_hidden_layers")?, positions, &[])?;
    let last = norm_once("post_norm", "layernorm_post", hidden, true, prefix, positions);
    let tokens =
        Count::derived("image_tokens", side * side / 4, "(image_size / patch_size)² × pixel_shuffle_ratio²");
    let (inner, out) = (keys.count("projector_input_dim")?, keys.count("projector_output_dim")?);
    let up = Projection {
        name: "adapter_1",
        tensor: "vision_adapter.mlp.fc1",
        input: intermediate,
        output: inner,
        bias: false,
    };
    let down = Projection {
        name: "adapter_2",
        tensor: "vision_adapter.mlp.fc2",
        input: inner,
        output: out,
        bias: false,
    };
    let adapter = two_once("adapter", up, down, prefix, tokens);
    // The class's second matrix has the output's width as its input, not the first matrix's output.
    keys.only("projector_input_dim", &json!(out.value))?;
    let width = keys.count("vision_output_dim")?;
    let matrix =
        Projection { name: "projection", tensor: "linear_1", input: width, output: text, bias: false };
    let projector = matrix_once("projector", matrix, "multi_modal_projector", tokens);
    Ok(Tower {
        name: "vision",
        parts: vec![stem, layers, last, adapter, projector],
        image_processor: ImageProcessor::Unknown,
    })
}
