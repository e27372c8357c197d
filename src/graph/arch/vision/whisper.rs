//! Whisper's encoder as used in Qwen2-Audio and Voxtral: two convolutions over mel bands, learned positions, a
//! projection. GLM-ASR's encoder: the same with rotation instead of learned positions.
//!
//! Defaults for missing keys: `Qwen2AudioEncoderConfig` of transformers.

use super::{matrix_once, two_once};
use crate::graph::assembly::{Assembly, weight};
use crate::graph::image_processor::ImageProcessor;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::encoder::{Encoder, EncoderNames, Projection, norm_once, once};
use crate::graph::tensor::TensorRole;
use crate::graph::tower::{Positions, Tower, TowerPart};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Tensor names of Whisper's layers.
pub const NAMES: EncoderNames = EncoderNames {
    norms: ["self_attn_layer_norm", "final_layer_norm"],
    qkv: ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    out: "self_attn.out_proj",
    network: &["fc1", "fc2"],
};

/// Kernel width of a convolution, in frames.
const TAPS: u64 = 3;

/// Tensor names of GLM-ASR's layers.
const GLM_NAMES: EncoderNames = EncoderNames {
    norms: ["input_layernorm", "post_attention_layernorm"],
    qkv: ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    out: "self_attn.o_proj",
    network: &["mlp.fc1", "mlp.fc2"],
};

/// Name of the encoder in the checkpoint.
const PREFIX: &str = "model.audio_tower";

/// Qwen2-Audio's encoder and its matrix; `text` is the language model's width.
pub fn tower(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    keys.set_aside(&["num_hidden_layers"]);
    let (hidden, mut parts) = encoder(keys, ["d_model", "encoder_layers"])?;
    let matrix = Projection { name: "linear", tensor: "linear", input: hidden, output: text, bias: true };
    parts.push(matrix_once("projector", matrix, PROJECTOR, Positions::Open));
    Ok(Tower { name: "audio", parts, image_processor: ImageProcessor::Unknown })
}

/// Voxtral's encoder, and two matrices after as many joined frames as `intermediate_size` holds
/// (`modular_voxtral.py` of transformers 5.24).
pub fn voxtral(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    keys.set_aside(&["layerdrop", "vocab_size"]);
    let width = keys.spelling(&["hidden_size", "d_model"])?;
    let depth = keys.spelling(&["num_hidden_layers", "encoder_layers"])?;
    let (_, mut parts) = encoder(keys, [width, depth])?;
    parts.push(joined(joined_width(keys)?, [text, text], false));
    Ok(Tower { name: "audio", parts, image_processor: ImageProcessor::Unknown })
}

/// The encoder of MOSS-Transcribe-Diarize, and two matrices and a norm after `merge` joined frames
/// (`modular_moss_transcribe_diarize.py` of transformers 5.24).
pub fn moss(keys: &Keys<'_>, text: Count, (merge, bias): (Count, bool)) -> Result<Tower, Error> {
    let (hidden, mut parts) = encoder(keys, ["hidden_size", "num_hidden_layers"])?;
    let wide = Count::derived("joined_width", merge.value * hidden.value, "audio_merge_size × hidden_size");
    parts.push(joined(wide, [text, text], bias));
    parts.push(norm_once("projector_norm", "norm", text, true, PROJECTOR, Positions::Open));
    Ok(Tower { name: "audio", parts, image_processor: ImageProcessor::Unknown })
}

/// The encoder of Qwen2.5-Omni: computed positions, two learned tokens around a clip, a matrix inside the encoder
/// (`modeling_qwen2_5_omni.py` of transformers 5.24).
pub fn omni(keys: &Keys<'_>) -> Result<Tower, Error> {
    keys.set_aside(&[
        "model_type",
        "max_source_positions",
        "n_window",
        "num_hidden_layers",
        "scale_embedding",
    ]);
    let hidden = keys.count_or("d_model", 1280)?;
    let heads = keys.count_or("encoder_attention_heads", 20)?;
    let stem = stem(keys.count_or("num_mel_bins", 128)?, hidden, None);
    let encoder = Encoder::biased(hidden, heads, keys.count_or("encoder_ffn_dim", 5120)?, &NAMES);
    let encoder = Encoder { qkv_bias: [true, false, true], ..encoder };
    let layers = keys.count_or("encoder_layers", 32)?;
    let layers = encoder.layers(&format!("{PREFIX}.layers"), layers, Positions::Open, &[])?;
    let last = norm_once("post_norm", "ln_post", hidden, true, PREFIX, Positions::Open);
    let out = keys.count_or("output_dim", 3584)?;
    let matrix = Projection { name: "proj", tensor: "proj", input: hidden, output: out, bias: true };
    let projector = matrix_once("projector", matrix, PREFIX, Positions::Open);
    let (mut block, stream) = Assembly::from_input(out);
    let tokens = weight("audio_bos_eos_token.weight", vec![2, out.value], TensorRole::Tower);
    block.node("bos_eos", Operator::Add { width: out }, vec![tokens], &[stream]);
    let tokens = once(block, "bos_eos", PREFIX, Positions::Open);
    let parts = vec![stem, layers, last, projector, tokens];
    Ok(Tower { name: "audio", parts, image_processor: ImageProcessor::Unknown })
}

/// GLM-ASR's encoder, and the same with twice the width between its matrices (`modular_glmasr.py` of transformers 5.24).
pub fn glm(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    keys.set_aside(&["model_type"]);
    let (hidden, heads) = (keys.count_or("hidden_size", 1280)?, keys.count_or("num_attention_heads", 20)?);
    let inner = keys.count_or("intermediate_size", 5120)?;
    let stem = stem(keys.count_or("num_mel_bins", 128)?, hidden, None);
    let encoder = Encoder {
        kv_heads: keys.count_or_none("num_key_value_heads")?.unwrap_or(heads),
        qkv_bias: [true, false, true],
        ..Encoder::biased(hidden, heads, inner, &GLM_NAMES)
    };
    let layers = keys.count_or("num_hidden_layers", 32)?;
    let layers = encoder.layers(&format!("{PREFIX}.layers"), layers, Positions::Open, &[])?;
    let last = norm_once("post_norm", "norm", hidden, true, PREFIX, Positions::Open);
    let twice = Count::derived("projector_width", 2 * text.value, "2 × hidden_size");
    let parts = vec![stem, layers, last, joined(inner, [twice, text], true)];
    Ok(Tower { name: "audio", parts, image_processor: ImageProcessor::Unknown })
}

/// Name of the projector in the checkpoint.
const PROJECTOR: &str = "model.multi_modal_projector";

/// Width of the joined frames.
fn joined_width(keys: &Keys<'_>) -> Result<Count, Error> {
    keys.count_or(keys.spelling(&["intermediate_size", "encoder_ffn_dim"])?, 5120)
}

/// Two matrices of these widths over joined frames.
fn joined(input: Count, [inner, output]: [Count; 2], bias: bool) -> TowerPart {
    let up = Projection { name: "linear_1", tensor: "linear_1", input, output: inner, bias };
    let down = Projection { name: "linear_2", tensor: "linear_2", input: inner, output, bias };
    two_once("projector", up, down, PROJECTOR, Positions::Open)
}

/// Convolutions over mel bands, and a table of positions if there is one.
fn stem(bands: Count, hidden: Count, positions: Option<Count>) -> TowerPart {
    let (mut block, mut stream) = Assembly::from_input(bands);
    for (name, input) in [("conv1", bands), ("conv2", hidden)] {
        let taps = Count::derived("taps", TAPS * input.value, "3 × channels");
        let weights = vec![
            weight(format!("{name}.weight"), vec![hidden.value, input.value, TAPS], TensorRole::Tower),
            weight(format!("{name}.bias"), vec![hidden.value], TensorRole::Bias),
        ];
        let conv = Operator::Linear { input: taps, output: hidden, split: Split::Replicate };
        stream = block.node(name, conv, weights, &[stream]);
    }
    if let Some(positions) = positions {
        let shape = vec![positions.value, hidden.value];
        let table = weight("embed_positions.weight", shape, TensorRole::Tower);
        block.node("embed_positions", Operator::Add { width: hidden }, vec![table], &[stream]);
    }
    once(block, "stem", PREFIX, Positions::Open)
}

/// Whisper's encoder, by the keys of its width and of the number of its layers.
fn encoder(keys: &Keys<'_>, [width, depth]: [&'static str; 2]) -> Result<(Count, Vec<TowerPart>), Error> {
    keys.set_aside(&["model_type", "encoder_layerdrop", "scale_embedding", "init_std"]);
    let hidden = keys.count_or(width, 1280)?;
    let positions = keys.count_or("max_source_positions", 1500)?;
    let stem = stem(keys.count_or("num_mel_bins", 128)?, hidden, Some(positions));
    let heads = keys.spelling(&["encoder_attention_heads", "num_attention_heads"])?;
    let encoder = Encoder::biased(hidden, keys.count_or(heads, 20)?, joined_width(keys)?, &NAMES);
    let encoder = Encoder { qkv_bias: [true, false, true], ..encoder };
    let layers = keys.count_or(depth, 32)?;
    let layers = encoder.layers(&format!("{PREFIX}.layers"), layers, Positions::Open, &[])?;
    let last = norm_once("post_norm", "layer_norm", hidden, true, PREFIX, Positions::Open);
    Ok((hidden, vec![stem, layers, last]))
}
