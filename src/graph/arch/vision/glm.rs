//! GLM-4.1V's encoder: RMSNorm, gated networks, a convolution that merges neighbours, a gated merger. GLM-OCR: the same
//! without learned positions, with norms on the heads of queries and keys.
//!
//! Defaults for missing keys: `Glm4vVisionConfig` of transformers.

use super::{side, stretched};
use crate::graph::assembly::{Assembly, weight};
use crate::graph::operator::{Operator, Split};
use crate::graph::part::encoder::{
    Encoder, EncoderNames, Patches, Projection, linear, norm, norm_once, once,
};
use crate::graph::tensor::TensorRole;
use crate::graph::tower::{Positions, Tower};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::image::ImageSize;
use crate::spec::model::keys::Keys;

const NAMES: EncoderNames = EncoderNames {
    norms: ["norm1", "norm2"],
    qkv: ["attn.qkv"; 3],
    out: "attn.proj",
    network: &["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"],
};

/// The encoder. The inner width of its layers is the language model's width; the merger is `intermediate_size` wide.
pub fn tower(keys: &Keys<'_>) -> Result<Tower, Error> {
    let (hidden, out) = (keys.count_or("hidden_size", 1536)?, keys.count_or("out_hidden_size", 4096)?);
    let bias = keys.flag("attention_bias", false)?;
    let encoder = Encoder {
        shift: false,
        qkv_bias: [bias; 3],
        out_bias: false,
        network_bias: false,
        ..Encoder::biased(hidden, keys.count_or("num_heads", 12)?, out, &NAMES)
    };
    whole(keys, (encoder, true), out, keys.count_or("intermediate_size", 13696)?)
}

/// GLM-OCR's encoder: one key for all biases of a layer; the merger is `out_hidden_size` × `in_channels` wide
/// (`modeling_glm_ocr.py` of transformers 5.24).
pub fn ocr(keys: &Keys<'_>) -> Result<Tower, Error> {
    let out = keys.count_or("out_hidden_size", 1536)?;
    let merger = out.value * keys.count_or("in_channels", 3)?.value;
    rotated(keys, Count::derived("merger_width", merger, "out_hidden_size × in_channels"))
}

/// GLM-5 Next's encoder: the same with a key of the merger's width (`modular_glm5_next.py` of transformers 5.24).
pub fn next(keys: &Keys<'_>) -> Result<Tower, Error> {
    rotated(keys, keys.count_or("projection_intermediate_size", 10240)?)
}

/// The layers of both, and a merger of width `merger`.
fn rotated(keys: &Keys<'_>, merger: Count) -> Result<Tower, Error> {
    let (hidden, out) = (keys.count_or("hidden_size", 1024)?, keys.count_or("out_hidden_size", 1536)?);
    let bias = keys.flag("attention_bias", true)?;
    let inner = keys.count_or("intermediate_size", 4096)?;
    let encoder = Encoder {
        shift: false,
        qkv_bias: [bias; 3],
        out_bias: bias,
        network_bias: bias,
        head_norms: Some(["attn.q_norm", "attn.k_norm"]),
        ..Encoder::biased(hidden, keys.count_or("num_heads", 16)?, inner, &NAMES)
    };
    whole(keys, (encoder, false), out, merger)
}

/// These layers, with `learned` positions and a norm before them or without, and a merger of width `inner`.
fn whole(
    keys: &Keys<'_>,
    (encoder, learned): (Encoder, bool),
    out: Count,
    inner: Count,
) -> Result<Tower, Error> {
    keys.set_aside(&["model_type", "hidden_dropout_prob"]);
    let channels = keys.count_or("in_channels", 3)?.value;
    let hidden = encoder.hidden;
    let patch = keys.count_or("patch_size", 14)?;
    let size = keys.count_or("image_size", 336)?;
    let side = side(size, patch)?;
    let frames = keys.count_or("temporal_patch_size", 2)?.value;
    let merge = keys.count_or("spatial_merge_size", 2)?;
    let positions = Positions::PerCell(merge.value * merge.value);
    let sight = stretched(patch.value, merge.value, Some(ImageSize::square(size.value)));
    let prefix = "model.visual";
    let mut block = Assembly::default();
    let table = ("embeddings.position_embedding.weight", vec![side * side, hidden.value]);
    let embeddings = if learned { vec![table] } else { vec![] };
    let shape = vec![hidden.value, channels, frames, patch.value, patch.value];
    let patches = Patches { tensor: "patch_embed.proj", shape, bias: true, embeddings };
    let stream = patches.assemble(&mut block, hidden);
    if learned {
        norm(&mut block, stream, "pre_norm", "post_conv_layernorm", hidden, false);
    }
    let stem = once(block, "patches", prefix, positions);
    let layers = encoder.layers("model.visual.blocks", keys.count_or("depth", 24)?, positions, &[])?;
    let last = norm_once("post_norm", "post_layernorm", hidden, false, prefix, positions);
    let mut block = Assembly::default();
    let wide = super::merged_width(hidden, merge);
    let stream = block.input(wide);
    let kernel = vec![out.value, hidden.value, merge.value, merge.value];
    let weights = vec![
        weight("downsample.weight", kernel, TensorRole::Tower),
        weight("downsample.bias", vec![out.value], TensorRole::Bias),
    ];
    let convolution = Operator::Linear { input: wide, output: out, split: Split::Replicate };
    let stream = block.node("downsample", convolution, weights, &[stream]);
    let matrix = |name, tensor, input, output| Projection { name, tensor, input, output, bias: false };
    let stream = linear(&mut block, stream, matrix("merger_proj", "merger.proj", out, out), Split::Replicate);
    let stream = norm(&mut block, stream, "merger_norm", "merger.post_projection_norm", out, true);
    let gate = linear(&mut block, stream, matrix("gate_proj", "merger.gate_proj", out, inner), Split::Column);
    let up = linear(&mut block, stream, matrix("up_proj", "merger.up_proj", out, inner), Split::Column);
    let activation = Operator::Activation { width: inner, gated: true };
    let activated = block.node("activation", activation, vec![], &[gate, up]);
    linear(&mut block, activated, matrix("down_proj", "merger.down_proj", inner, out), Split::Row);
    let merger = once(block, "merger", prefix, Positions::PerCell(1));
    Ok(Tower { name: "vision", parts: vec![stem, layers, last, merger], image_processor: sight })
}
