//! The audio encoder of Qwen3-Omni and Qwen3-ASR: three convolutions over time and mel bands, Whisper's layers with all
//! biases, two matrices.
//!
//! Source: `modeling_qwen3_omni_moe.py` and `modeling_qwen3_asr.py` of transformers 5.24.

use super::two_once;
use super::whisper::NAMES;
use crate::graph::assembly::{Assembly, weight};
use crate::graph::image_processor::ImageProcessor;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::encoder::{Encoder, Projection, linear, norm_once, once};
use crate::graph::tensor::TensorRole;
use crate::graph::tower::{Positions, Tower, TowerPart};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const PREFIX: &str = "model.audio_tower";

/// Qwen3-Omni: both matrices belong to the encoder.
pub fn audio(keys: &Keys<'_>) -> Result<Tower, Error> {
    tower(keys, (PREFIX, ["proj1", "proj2"]))
}

/// Qwen3-ASR: both matrices are the projector.
pub fn asr(keys: &Keys<'_>) -> Result<Tower, Error> {
    tower(keys, ("model.multi_modal_projector", ["linear_1", "linear_2"]))
}

fn tower(keys: &Keys<'_>, (place, [up, down]): (&str, [&'static str; 2])) -> Result<Tower, Error> {
    // Lengths of windows and chunks of frames, and positions that are computed.
    keys.set_aside(&["model_type", "conv_chunksize", "max_source_positions", "n_window", "n_window_infer"]);
    keys.set_aside(&["num_hidden_layers", "scale_embedding", "max_position_embeddings"]);
    let hidden = keys.count_or("d_model", 1280)?;
    let heads = keys.count_or("encoder_attention_heads", 20)?;
    let encoder = Encoder::biased(hidden, heads, keys.count_or("encoder_ffn_dim", 5120)?, &NAMES);
    let layers = keys.count_or("encoder_layers", 32)?;
    let layers = encoder.layers(&format!("{PREFIX}.layers"), layers, Positions::Open, &[])?;
    let last = norm_once("post_norm", "ln_post", hidden, true, PREFIX, Positions::Open);
    let out = keys.count_or("output_dim", 3584)?;
    let up = Projection { name: "linear_1", tensor: up, input: hidden, output: hidden, bias: true };
    let down = Projection { name: "linear_2", tensor: down, input: hidden, output: out, bias: true };
    let projector = two_once("projector", up, down, place, Positions::Open);
    let parts = vec![stem(keys, hidden)?, layers, last, projector];
    Ok(Tower { name: "audio", parts, image_processor: ImageProcessor::Unknown })
}

/// Three convolutions that halve time and bands, and a matrix over the channels of the bands that are left.
fn stem(keys: &Keys<'_>, hidden: Count) -> Result<TowerPart, Error> {
    let channels = keys.count_or("downsample_hidden_size", 480)?;
    let bands = keys.count_or("num_mel_bins", 128)?.value;
    let one = Count::derived("channels", 1, "one channel of mel bands");
    let (mut block, mut stream) = Assembly::from_input(one);
    for (name, input) in [("conv2d1", one), ("conv2d2", channels), ("conv2d3", channels)] {
        let taps = Count::derived("taps", 9 * input.value, "3 × 3 × channels");
        let weights = vec![
            weight(format!("{name}.weight"), vec![channels.value, input.value, 3, 3], TensorRole::Tower),
            weight(format!("{name}.bias"), vec![channels.value], TensorRole::Bias),
        ];
        let convolution = Operator::Linear { input: taps, output: channels, split: Split::Replicate };
        stream = block.node(name, convolution, weights, &[stream]);
    }
    let left = bands.div_ceil(2).div_ceil(2).div_ceil(2);
    let input = Count::derived("bands_width", channels.value * left, "channels × bands after three halvings");
    let matrix = Projection { name: "conv_out", tensor: "conv_out", input, output: hidden, bias: false };
    linear(&mut block, stream, matrix, Split::Replicate);
    Ok(once(block, "stem", PREFIX, Positions::Open))
}
