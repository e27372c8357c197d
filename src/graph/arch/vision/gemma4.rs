//! The encoders of Gemma-4: layers as in the language model for images, a conformer for audio.
//!
//! Defaults for missing keys: `Gemma4VisionConfig` and `Gemma4AudioConfig` of transformers.

use serde_json::json;

use super::conformer::{Conformer, bound};
use super::matrix_once;
use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::{Assembly, weight};
use crate::graph::image_processor::ImageProcessor;
use crate::graph::mask::AttentionMask;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::encoder::{Patches, Projection, linear, norm, once};
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer};
use crate::graph::part::names::TensorNames;
use crate::graph::tensor::{TensorRole, Weight};
use crate::graph::tower::{Positions, Tower, TowerPart};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Matrices are inside modules that may clip their input and output.
const CLIPPED: TensorNames = TensorNames::of_table(&[
    ("self_attn.q_proj", "self_attn.q_proj.linear"),
    ("self_attn.k_proj", "self_attn.k_proj.linear"),
    ("self_attn.v_proj", "self_attn.v_proj.linear"),
    ("self_attn.o_proj", "self_attn.o_proj.linear"),
    ("self_attn.post", "self_attn.post.linear"),
    ("mlp.gate_proj", "mlp.gate_proj.linear"),
    ("mlp.up_proj", "mlp.up_proj.linear"),
    ("mlp.down_proj", "mlp.down_proj.linear"),
    ("feed_forward1.ffw_layer_1", "feed_forward1.ffw_layer_1.linear"),
    ("feed_forward1.ffw_layer_2", "feed_forward1.ffw_layer_2.linear"),
    ("feed_forward2.ffw_layer_1", "feed_forward2.ffw_layer_1.linear"),
    ("feed_forward2.ffw_layer_2", "feed_forward2.ffw_layer_2.linear"),
    ("lconv1d.linear_start", "lconv1d.linear_start.linear"),
    ("lconv1d.linear_end", "lconv1d.linear_end.linear"),
]);

/// The image encoder, and the projection to the width `text`.
pub fn vision(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    keys.set_aside(ignored("gemma4 vision_config"));
    let hidden = keys.count_or("hidden_size", 768)?;
    let patch = keys.count_or("patch_size", 16)?.value;
    let positions = keys.count_or("position_embedding_size", 10_240)?;
    let mut block = Assembly::default();
    let table = ("position_embedding_table", vec![2, positions.value, hidden.value]);
    let shape = vec![hidden.value, 3 * patch * patch];
    Patches { tensor: "input_proj", shape, bias: false, embeddings: vec![table] }
        .assemble(&mut block, hidden);
    let stem = once(block, "patches", "model.vision_tower.patch_embedder", Positions::Open);
    let heads = keys.count_or("num_attention_heads", 12)?;
    let kv_heads = keys.count_or("num_key_value_heads", 12)?;
    // The class has none, whatever the key contains.
    keys.set_aside(&["attention_bias"]);
    let attention = Attention::of(hidden, heads, kv_heads, Some(keys.count_or("head_dim", 64)?))?;
    let attention =
        Attention { qk_norm: QkNorm::PerHead, v_norm: true, mask: AttentionMask::Both, ..attention };
    let network = FeedForward::gated(hidden, keys.count_or("intermediate_size", 3072)?);
    let layer = Layer { arrangement: Arrangement::Sandwich, ..Layer::new(attention, network) };
    let count = keys.count_or("num_hidden_layers", 16)?.value as u32;
    let mut block = layer.block("encoder_layer", (0..count).collect());
    // An encoder has no KV cache.
    block.caches = vec![];
    for node in block.graph.node_weights_mut() {
        let matrices = node.weights.iter_mut().filter(|weight| weight.shape.len() > 1);
        matrices.for_each(|weight| weight.role = TensorRole::Tower);
    }
    if keys.flag("use_clipped_linears", false)? {
        bound(&mut block);
    }
    CLIPPED.apply(&mut block);
    let layers = TowerPart {
        prefix: "model.vision_tower.encoder.layers".to_owned(),
        block,
        positions: Positions::Open,
    };
    let mut parts = vec![stem, layers];
    if keys.flag("standardize", false)? {
        let (mut block, stream) = Assembly::from_input(hidden);
        let buffer =
            |name: &str| Weight { buffer: true, ..weight(name, vec![hidden.value], TensorRole::Norm) };
        let sum = Operator::Add { width: hidden };
        block.node("standardize", sum, vec![buffer("std_bias"), buffer("std_scale")], &[stream]);
        parts.push(once(block, "standardize", "model.vision_tower", Positions::Open));
    }
    parts.push(projection("model.embed_vision", hidden, text));
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::Unknown })
}

/// The audio encoder, and the projection to the width `text`.
pub fn audio(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    keys.set_aside(ignored("gemma4 audio_config"));
    let hidden = keys.count_or("hidden_size", 1024)?;
    let channels = match keys.numbers("subsampling_conv_channels")?.as_deref() {
        None => [128, 32],
        Some([first, second]) => [*first, *second],
        Some(_) => {
            keys.only("subsampling_conv_channels", &json!([128, 32]))?;
            [128, 32]
        }
    };
    let conformer = Conformer {
        hidden,
        heads: keys.count_or("num_attention_heads", 8)?,
        kernel: keys.count_or("conv_kernel_size", 5)?,
        channels,
        clipped: keys.flag("use_clipped_linears", true)?,
        names: CLIPPED,
    };
    let prefix = "model.audio_tower.subsample_conv_projection";
    let stem = conformer.stem(prefix, ["layer0", "layer1"]);
    let layers = conformer.layers("model.audio_tower.layers", keys.count_or("num_hidden_layers", 12)?)?;
    let out = keys.count_or("output_proj_dims", 1536)?;
    let (name, tensor) = ("output_proj", "output_proj");
    let projected = Projection { name, tensor, input: hidden, output: out, bias: true };
    let end = matrix_once("output", projected, "model.audio_tower", Positions::Open);
    let parts = vec![stem, layers, end, projection("model.embed_audio", out, text)];
    Ok(Tower { name: "audio", parts, image_processor: ImageProcessor::Unknown })
}

/// The images of `gemma4_unified`, without an encoder: one matrix on merged patches of pixels, then the projection to the
/// width `text`.
///
/// Defaults: `Gemma4UnifiedVisionConfig` of transformers 5.24.
pub fn merged_patches(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    keys.set_aside(&["model_type", "rms_norm_eps", "initializer_range", "num_soft_tokens"]);
    let side = keys.count_or("patch_size", 16)?.value * keys.count_or("pooling_kernel_size", 3)?.value;
    let width = keys.count_or("mm_embed_dim", 3840)?;
    let rows = keys.count_or("mm_posemb_size", 1120)?.value;
    let output = keys.count_or("output_proj_dims", 3840)?;
    keys.only("model_patch_size", &json!(side))?;
    let pixels = Count::derived("pixels", 3 * side * side, "3 × (patch_size × pooling_kernel_size)²");
    let mut block = Assembly::default();
    let input = block.input(pixels);
    let normed = norm(&mut block, input, "input_norm", "patch_ln1", pixels, true);
    let dense =
        Projection { name: "patch_embed", tensor: "patch_dense", input: pixels, output: width, bias: true };
    let embedded = linear(&mut block, normed, dense, Split::Replicate);
    let embedded = norm(&mut block, embedded, "patch_norm", "patch_ln2", width, true);
    let table = weight("pos_embedding", vec![rows, 2, width.value], TensorRole::Tower);
    let placed = block.node("positions", Operator::Add { width }, vec![table], &[embedded]);
    norm(&mut block, placed, "position_norm", "pos_norm", width, true);
    let prefix = "model.embed_vision";
    let parts = vec![
        once(block, "patches", prefix, Positions::Open),
        projection(&format!("{prefix}.multimodal_embedder"), output, text),
    ];
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::Unknown })
}

/// The sound of `gemma4_unified`: the projection of frames of a wave to the width `text`.
///
/// Defaults: `Gemma4UnifiedAudioConfig` of transformers 5.24, whose other sizes are other names of the frame.
pub fn frames(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    keys.set_aside(&["model_type", "rms_norm_eps", "initializer_range"]);
    let frame = keys.count_or("audio_embed_dim", 640)?;
    for name in ["hidden_size", "output_proj_dims", "audio_samples_per_token"] {
        keys.only(name, &json!(frame.value))?;
    }
    let parts = vec![projection("model.embed_audio", frame, text)];
    Ok(Tower { name: "audio", parts, image_processor: ImageProcessor::Unknown })
}

fn projection(prefix: &str, input: Count, output: Count) -> TowerPart {
    let (name, tensor) = ("embedding_projection", "embedding_projection");
    let matrix = Projection { name, tensor, input, output, bias: false };
    matrix_once("projection", matrix, prefix, Positions::Open)
}
