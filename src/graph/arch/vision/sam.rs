//! SAM's encoder as used in GOT-OCR 2: windows in most layers, relative positions, convolutions that shrink the result.
//!
//! Source: `modeling_got_ocr2.py` of transformers 5.24.

use super::side;
use crate::graph::assembly::{Assembly, weight};
use crate::graph::image_processor::ImageProcessor;
use crate::graph::mask::AttentionMask;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::encoder::{Encoder, EncoderNames, Patches, Projection, linear, norm, once};
use crate::graph::tensor::{TensorRole, Weight};
use crate::graph::tower::{Tower, TowerPart};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: EncoderNames = EncoderNames {
    norms: ["layer_norm1", "layer_norm2"],
    qkv: ["attn.qkv"; 3],
    out: "attn.proj",
    network: &["mlp.lin1", "mlp.lin2"],
};

const PREFIX: &str = "model.vision_tower";

/// The encoder and its projector to the width `text`.
pub fn tower(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    keys.set_aside(&["model_type"]);
    let channels = keys.count_or("num_channels", 3)?.value;
    let (hidden, heads) = (keys.count_or("hidden_size", 768)?, keys.count_or("num_attention_heads", 12)?);
    let patch = keys.count_or("patch_size", 16)?;
    let side = side(keys.count_or("image_size", 1024)?, patch)?;
    let positions = Count::derived("positions", side * side, "(image_size / patch_size)²");
    let table = ("pos_embed", vec![1, side, side, hidden.value]);
    let embeddings = if keys.flag("use_abs_pos", true)? { vec![table] } else { vec![] };
    let mut block = Assembly::default();
    let shape = vec![hidden.value, channels, patch.value, patch.value];
    Patches { tensor: "patch_embed.projection", shape, bias: true, embeddings }.assemble(&mut block, hidden);
    let mut parts = vec![once(block, "patches", PREFIX, positions)];
    let encoder = Encoder {
        qkv_bias: [keys.flag("qkv_bias", true)?; 3],
        ..Encoder::biased(hidden, heads, keys.count_or("mlp_dim", 3072)?, &NAMES)
    };
    parts.extend(layers(keys, &encoder, (side, positions))?);
    parts.extend(neck(keys.count_or("output_channels", 256)?, hidden, text, side));
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::FixedSize })
}

/// Layers with windows, and those of `global_attn_indexes` without.
fn layers(
    keys: &Keys<'_>,
    encoder: &Encoder,
    (side, positions): (u64, Count),
) -> Result<Vec<TowerPart>, Error> {
    let window = keys.count_or("window_size", 14)?;
    let relative = keys.flag("use_rel_pos", true)?;
    let head_dim = encoder.hidden.value / encoder.heads.value;
    let tables = |side: u64| -> Vec<Weight> {
        let rows = if relative { 2 * side - 1 } else { 0 };
        let table = |name| weight(name, vec![rows, head_dim], TensorRole::Tower);
        ["attn.rel_pos_h", "attn.rel_pos_w"].map(table).into_iter().filter(|_| relative).collect()
    };
    let global = keys.numbers("global_attn_indexes")?.unwrap_or_else(|| vec![2, 5, 8, 11]);
    let depth = keys.count_or("num_hidden_layers", 12)?.value as u32;
    let (whole, inside): (Vec<u32>, Vec<u32>) =
        (0..depth).partition(|layer| global.contains(&u64::from(*layer)));
    let tile = Count::derived("window_positions", window.value * window.value, "window_size²");
    let (prefix, mut parts) = (format!("{PREFIX}.layers"), vec![]);
    for (name, layers, reach, side) in [
        ("windowed_encoder_layer", inside, AttentionMask::Tile(tile), window.value),
        ("encoder_layer", whole, AttentionMask::Both, side),
    ] {
        if !layers.is_empty() {
            parts.push(encoder.some_layers(&prefix, (name, layers), reach, positions, &tables(side))?);
        }
    }
    Ok(parts)
}

/// Convolutions to `channels`, twice those and the width `text`, of which the last two halve each side, and a matrix.
fn neck(channels: Count, hidden: Count, text: Count, side: u64) -> Vec<TowerPart> {
    let positions =
        |shrunk: u64| Count::derived("positions", (side / shrunk).pow(2), "positions after the convolutions");
    let (mut block, stream) = Assembly::from_input(hidden);
    let stream = convolution(&mut block, stream, ("neck_1", "neck.conv1"), [hidden, channels], 1);
    let stream = norm(&mut block, stream, "neck_norm_1", "neck.layer_norm1", channels, true);
    let stream = convolution(&mut block, stream, ("neck_2", "neck.conv2"), [channels, channels], 3);
    norm(&mut block, stream, "neck_norm_2", "neck.layer_norm2", channels, true);
    let neck = once(block, "neck", PREFIX, positions(1));
    let place = "model.multi_modal_projector";
    let twice = Count::derived("upsampled", 2 * channels.value, "2 × output_channels");
    let (mut block, stream) = Assembly::from_input(channels);
    convolution(&mut block, stream, ("shrink_1", "conv_upsampler1"), [channels, twice], 3);
    let first = once(block, "shrink", place, positions(2));
    let (mut block, stream) = Assembly::from_input(twice);
    let stream = convolution(&mut block, stream, ("shrink_2", "conv_upsampler2"), [twice, text], 3);
    let (name, tensor) = ("projection", "multimodal_projector");
    let matrix = Projection { name, tensor, input: text, output: text, bias: true };
    linear(&mut block, stream, matrix, Split::Replicate);
    vec![neck, first, once(block, "projector", place, positions(4))]
}

/// A convolution without a bias, with a kernel of `taps` positions per side.
fn convolution(
    block: &mut Assembly,
    from: petgraph::graph::NodeIndex,
    (name, tensor): (&'static str, &str),
    [input, output]: [Count; 2],
    taps: u64,
) -> petgraph::graph::NodeIndex {
    let shape = vec![output.value, input.value, taps, taps];
    let stored = weight(format!("{tensor}.weight"), shape, TensorRole::Tower);
    let input = Count::derived("taps", taps * taps * input.value, "kernel positions × channels");
    block.node(name, Operator::Linear { input, output, split: Split::Replicate }, vec![stored], &[from])
}
