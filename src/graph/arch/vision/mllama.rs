//! Llama-3.2-Vision's encoder: tiles, local and global layers, gates, concatenated intermediate results.
//!
//! Defaults for missing keys: `MllamaVisionConfig` of transformers.

use super::{matrix_once, side};
use crate::graph::assembly::{Assembly, weight};
use crate::graph::image_processor::ImageProcessor;
use crate::graph::part::encoder::{Encoder, EncoderNames, Patches, Projection, norm, norm_once, once};
use crate::graph::tensor::TensorRole;
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

/// Default number of aspect ratios.
const ASPECT_RATIOS: u64 = 8;

/// The encoder, and the positions of all tiles of an image, which cross-attention reads.
pub fn tower(keys: &Keys<'_>, text: Count) -> Result<(Tower, Count), Error> {
    keys.set_aside(&["model_type", "intermediate_layers_indices", "norm_eps", "supported_aspect_ratios"]);
    let channels = keys.count_or("num_channels", 3)?.value;
    let (hidden, heads) = (keys.count("hidden_size")?, keys.count("attention_heads")?);
    let patch = keys.count_or("patch_size", 14)?;
    let side = side(keys.count_or("image_size", 448)?, patch)?;
    let tiles = keys.count_or("max_num_tiles", 4)?;
    let per_tile = side * side + 1;
    let positions = Count::derived(
        "positions",
        per_tile * tiles.value,
        "max_num_tiles × ((image_size / patch_size)² + 1)",
    );
    let ratios = keys.length("supported_aspect_ratios")?.unwrap_or(ASPECT_RATIOS) + 1;
    let prefix = "model.vision_model";
    let mut block = Assembly::default();
    let tile = tiles.value * hidden.value;
    let embeddings = vec![
        ("class_embedding", vec![hidden.value]),
        ("gated_positional_embedding.gate", vec![1]),
        ("gated_positional_embedding.embedding", vec![per_tile, hidden.value]),
        ("gated_positional_embedding.tile_embedding.weight", vec![ratios, per_tile * tile]),
        ("pre_tile_positional_embedding.gate", vec![1]),
        ("pre_tile_positional_embedding.embedding.weight", vec![ratios, tile]),
        ("post_tile_positional_embedding.gate", vec![1]),
        ("post_tile_positional_embedding.embedding.weight", vec![ratios, tile]),
    ];
    let shape = vec![hidden.value, channels, patch.value, patch.value];
    let stream =
        Patches { tensor: "patch_embedding", shape, bias: false, embeddings }.assemble(&mut block, hidden);
    norm(&mut block, stream, "pre_norm", "layernorm_pre", hidden, true);
    let stem = once(block, "patches", prefix, positions);
    let encoder = Encoder::biased(hidden, heads, keys.count("intermediate_size")?, &NAMES);
    let encoder = Encoder { qkv_bias: [false; 3], out_bias: false, ..encoder };
    let local = keys.count("num_hidden_layers")?;
    let local = encoder.layers(&format!("{prefix}.transformer.layers"), local, positions, &[])?;
    let gates = ["gate_attn", "gate_ffn"].map(|name| weight(name, vec![1], TensorRole::Norm));
    let global = keys.count("num_global_layers")?;
    let global = encoder.layers(&format!("{prefix}.global_transformer.layers"), global, positions, &gates)?;
    let last = norm_once("post_norm", "layernorm_post", hidden, true, prefix, positions);
    let width = keys.count("vision_output_dim")?;
    let tensor = "multi_modal_projector";
    let matrix = Projection { name: "projection", tensor, input: width, output: text, bias: true };
    let projector = matrix_once("projector", matrix, "model", positions);
    Ok((
        Tower {
            name: "vision",
            parts: vec![stem, local, last, global, projector],
            image_processor: ImageProcessor::CrossAttended,
        },
        positions,
    ))
}
