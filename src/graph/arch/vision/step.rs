//! The encoder of Step-3.7: rotated and learned positions, sums scaled by learned factors, two convolutions that shrink the
//! result.
//!
//! Source: `modular_step3p7.py` of transformers 5.24. Image tiling is defined by processors only.

use super::{matrix_once, side};
use crate::graph::assembly::{Assembly, weight};
use crate::graph::image_processor::ImageProcessor;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::encoder::{Encoder, EncoderNames, Patches, Projection, norm, once};
use crate::graph::tensor::TensorRole;
use crate::graph::tower::Tower;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: EncoderNames = EncoderNames {
    norms: ["layernorm_before", "layernorm_after"],
    qkv: ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    out: "self_attn.out_proj",
    network: &["mlp.fc1", "mlp.fc2"],
};

/// The encoder and one matrix to the width `text`.
pub fn tower(keys: &Keys<'_>, text: Count, bias: bool) -> Result<Tower, Error> {
    // The class computes the width of networks from `mlp_ratio`.
    keys.set_aside(&["model_type", "intermediate_size", "layer_scale_init_value", "ls_init_value"]);
    let named = |names: [&'static str; 2], default| keys.count_or(keys.spelling(&names)?, default);
    let hidden = named(["width", "hidden_size"], 1536)?;
    let depth = named(["layers", "num_hidden_layers"], 47)?;
    let heads = named(["heads", "num_attention_heads"], 16)?;
    let channels = keys.count_or("num_channels", 3)?.value;
    let patch = keys.count_or("patch_size", 14)?;
    let side = side(keys.count_or("image_size", 728)?, patch)?;
    let positions = Count::derived("positions", side * side, "(image_size / patch_size)²");
    let prefix = "model.vision_model";
    let mut block = Assembly::default();
    let embeddings = vec![("embeddings.position_embedding.weight", vec![positions.value, hidden.value])];
    let shape = vec![hidden.value, channels, patch.value, patch.value];
    let patches = Patches { tensor: "embeddings.patch_embedding", shape, bias: false, embeddings };
    let stream = patches.assemble(&mut block, hidden);
    norm(&mut block, stream, "pre_norm", "pre_layernorm", hidden, true);
    let stem = once(block, "patches", prefix, positions);
    let encoder = Encoder::biased(hidden, heads, inner(keys, hidden)?, &NAMES);
    let extra = ["lambda_1", "lambda_2"].map(|name| weight(name, vec![hidden.value], TensorRole::Norm));
    let layers = encoder.layers(&format!("{prefix}.layers"), depth, positions, &extra)?;
    let mut parts = vec![stem, layers];
    let mut width = hidden;
    for (tensor, shrunk) in [("downsampler1", 2), ("downsampler2", 4)] {
        let twice = Count::derived("downsampled", 2 * width.value, "twice the channels");
        let taps = Count::derived("taps", 9 * width.value, "3 × 3 × channels");
        let (mut block, stream) = Assembly::from_input(width);
        let stored = vec![
            weight(format!("{tensor}.weight"), vec![twice.value, width.value, 3, 3], TensorRole::Tower),
            weight(format!("{tensor}.bias"), vec![twice.value], TensorRole::Bias),
        ];
        let convolution = Operator::Linear { input: taps, output: twice, split: Split::Replicate };
        block.node("downsample", convolution, stored, &[stream]);
        let fewer = side.div_ceil(shrunk).pow(2);
        let fewer = Count::derived("positions", fewer, "positions after a convolution of stride 2");
        parts.push(once(block, "downsample", prefix, fewer));
        width = twice;
    }
    let tokens = Count::derived("image_tokens", side.div_ceil(4).pow(2), "positions after both convolutions");
    let tensor = "multi_modal_projector";
    let matrix = Projection { name: "projector", tensor, input: width, output: text, bias };
    parts.push(matrix_once("projector", matrix, "model", tokens));
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::Unknown })
}

/// Width of the networks, rounded down as in the class.
fn inner(keys: &Keys<'_>, hidden: Count) -> Result<Count, Error> {
    // Without the key the class has 8960 / 1536.
    let usual = || hidden.value.saturating_mul(8960) / 1536;
    let inner = keys.scaled("mlp_ratio", hidden.value)?.unwrap_or_else(usual).max(1);
    Ok(Count::derived("intermediate_size", inner, "hidden_size × mlp_ratio, rounded down"))
}
