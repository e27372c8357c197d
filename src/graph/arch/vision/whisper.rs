//! Whisper's encoder as used in Qwen2-Audio: two convolutions over mel bands, learned positions, a projection.
//!
//! Defaults for missing keys: `Qwen2AudioEncoderConfig` of transformers.

use super::matrix_once;
use crate::graph::assembly::{Assembly, weight};
use crate::graph::image_processor::ImageProcessor;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::encoder::{Encoder, EncoderNames, Projection, norm_once, once};
use crate::graph::tensor::TensorRole;
use crate::graph::tower::{Positions, Tower};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: EncoderNames = EncoderNames {
    norms: ["self_attn_layer_norm", "final_layer_norm"],
    qkv: ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    out: "self_attn.out_proj",
    network: &["fc1", "fc2"],
};

/// Kernel width of a convolution, in frames.
const TAPS: u64 = 3;

/// The encoder; `text` is the language model's width.
pub fn tower(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    keys.set_aside(&["model_type", "encoder_layerdrop", "scale_embedding", "num_hidden_layers", "init_std"]);
    let bands = keys.count_or("num_mel_bins", 128)?;
    let hidden = keys.count_or("d_model", 1280)?;
    let positions = keys.count_or("max_source_positions", 1500)?;
    let prefix = "model.audio_tower";
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
    let table = weight("embed_positions.weight", vec![positions.value, hidden.value], TensorRole::Tower);
    block.node("embed_positions", Operator::Add { width: hidden }, vec![table], &[stream]);
    let stem = once(block, "stem", prefix, Positions::Open);
    let heads = keys.count_or("encoder_attention_heads", 20)?;
    let encoder = Encoder::biased(hidden, heads, keys.count_or("encoder_ffn_dim", 5120)?, &NAMES);
    let encoder = Encoder { qkv_bias: [true, false, true], ..encoder };
    let layers = keys.count_or("encoder_layers", 32)?;
    let layers = encoder.layers(&format!("{prefix}.layers"), layers, Positions::Open, &[])?;
    let last = norm_once("post_norm", "layer_norm", hidden, true, prefix, Positions::Open);
    let matrix = Projection { name: "linear", tensor: "linear", input: hidden, output: text, bias: true };
    let projector = matrix_once("projector", matrix, "model.multi_modal_projector", Positions::Open);
    Ok(Tower {
        name: "audio",
        parts: vec![stem, layers, last, projector],
        image_processor: ImageProcessor::Unknown,
    })
}
