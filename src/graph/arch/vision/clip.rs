//! CLIP and SigLIP encoders, and their projectors to LLaVA and Gemma-3.
//!
//! Defaults for missing keys: `CLIPVisionConfig`, `SiglipVisionConfig` of transformers.

use serde_json::json;

use super::{matrix_once, side, two_once};
use crate::graph::assembly::{Assembly, weight};
use crate::graph::image_processor::ImageProcessor;
use crate::graph::operator::{Operator, Split};
use crate::graph::part::encoder::{Encoder, EncoderNames, Patches, Projection, norm, norm_once, once};
use crate::graph::tensor::TensorRole;
use crate::graph::tower::{Positions, Tower, TowerPart};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// The tensor names inside a layer, which many encoders share.
pub const NAMES: EncoderNames = EncoderNames {
    norms: ["layer_norm1", "layer_norm2"],
    qkv: ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    out: "self_attn.out_proj",
    network: &["mlp.fc1", "mlp.fc2"],
};

/// Common parts of CLIP and SigLIP, and their differences.
pub struct Vit {
    /// Width of its stream.
    pub hidden: Count,
    /// Positions per image or tile.
    pub positions: Count,
    pub parts: Vec<TowerPart>,
}

/// `clip` has a class token and a norm before its layers. SigLIP has neither, but a bias on its patches, and a pooling
/// head unless `vision_use_head` is false. The head is stored but not used by a language model.
fn vit(keys: &Keys<'_>, clip: bool, prefix: &str) -> Result<Vit, Error> {
    let mut vit = encoder(keys, clip, prefix)?;
    if keys.flag("vision_use_head", !clip)? && !clip {
        vit.parts.push(idle_head(keys, vit.hidden, prefix)?);
    }
    Ok(vit)
}

/// SigLIP's pooling head: attention of one learned query, a norm and a network. Only its weights are modelled, as it is
/// not computed.
pub fn idle_head(keys: &Keys<'_>, hidden: Count, prefix: &str) -> Result<TowerPart, Error> {
    let (width, inner) = (hidden.value, keys.count("intermediate_size")?.value);
    let stored = |name: &str, shape| weight(format!("head.{name}"), shape, TensorRole::Tower);
    let weights = vec![
        stored("probe", vec![1, 1, width]),
        stored("attention.in_proj_weight", vec![3 * width, width]),
        stored("attention.in_proj_bias", vec![3 * width]),
        stored("attention.out_proj.weight", vec![width, width]),
        stored("attention.out_proj.bias", vec![width]),
        stored("layernorm.weight", vec![width]),
        stored("layernorm.bias", vec![width]),
        stored("mlp.fc1.weight", vec![inner, width]),
        stored("mlp.fc1.bias", vec![inner]),
        stored("mlp.fc2.weight", vec![width, inner]),
        stored("mlp.fc2.bias", vec![width]),
    ];
    let (mut block, stream) = Assembly::from_input(hidden);
    block.node("idle_head", Operator::Add { width: hidden }, weights, &[stream]);
    Ok(once(block, "idle_head", prefix, Count::derived("positions", 1, "one pooled state")))
}

pub fn siglip(keys: &Keys<'_>) -> Result<Vit, Error> {
    vit(keys, false, PREFIX)
}

/// DeepSeek-VL: SigLIP with its pooling head, and two matrices (`modular_deepseek_vl.py` of transformers 5.24).
pub fn deepseek(keys: &Keys<'_>, text: Count) -> Result<Tower, Error> {
    let Vit { hidden, positions, mut parts } = vit(keys, false, "model.vision_model")?;
    let up = Projection { name: "linear_1", tensor: "linear1", input: hidden, output: text, bias: true };
    let down = Projection { name: "linear_2", tensor: "linear2", input: text, output: text, bias: true };
    parts.push(two_once("projector", up, down, "model.aligner", positions));
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::FixedSize })
}

/// VipLLaVA: the states of several of CLIP's layers, joined behind a norm (`modular_vipllava.py` of transformers 5.24).
pub fn vip(keys: &Keys<'_>, text: Count, layers: u64) -> Result<Tower, Error> {
    let Vit { hidden, positions, mut parts } = vit(keys, true, PREFIX)?;
    let tokens = Count::derived("image_tokens", positions.value - 1, "(image_size / patch_size)²");
    let wide =
        Count::derived("joined_width", layers * hidden.value, "layers of vision_feature_layer × width");
    parts.push(norm_once("projector_norm", "projector_layernorm", wide, true, PROJECTOR, tokens));
    let up = Projection { name: "linear_1", tensor: "linear_1", input: wide, output: text, bias: true };
    let down = Projection { name: "linear_2", tensor: "linear_2", input: text, output: text, bias: true };
    parts.push(two_once("projector", up, down, PROJECTOR, tokens));
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::FixedSize })
}

/// Video-LLaVA: CLIP for images and again for frames of videos, before one projector (`modeling_video_llava.py` of
/// transformers 5.24). The second encoder runs on videos alone.
pub fn images_and_videos(keys: &Keys<'_>, text: Count, bias: bool) -> Result<Vec<Tower>, Error> {
    let Vit { hidden, positions, mut parts } = vit(keys, true, "model.image_tower")?;
    let up = Projection { name: "linear_1", tensor: "linear_1", input: hidden, output: text, bias };
    let down = Projection { name: "linear_2", tensor: "linear_2", input: text, output: text, bias };
    parts.push(two_once("projector", up, down, PROJECTOR, positions));
    let mut videos = vit(keys, true, "model.video_tower")?.parts;
    videos.iter_mut().for_each(|part| part.positions = Positions::Open);
    Ok(vec![
        Tower { name: "vision", parts, image_processor: ImageProcessor::FixedSize },
        Tower { name: "video", parts: videos, image_processor: ImageProcessor::Unknown },
    ])
}

/// Names of encoder and projector in most wrappers.
const PREFIX: &str = "model.vision_tower";
const PROJECTOR: &str = "model.multi_modal_projector";

/// The encoder alone, under `prefix`.
pub fn encoder(keys: &Keys<'_>, clip: bool, prefix: &str) -> Result<Vit, Error> {
    keys.set_aside(&["projection_dim", "vocab_size", "initializer_factor"]);
    let channels = keys.count_or("num_channels", 3)?.value;
    let (hidden, heads) = (keys.count("hidden_size")?, keys.count("num_attention_heads")?);
    let patch = keys.count("patch_size")?;
    let side = side(keys.count("image_size")?, patch)?;
    let positions = side * side + u64::from(clip);
    let positions =
        Count::derived("positions", positions, "(image_size / patch_size)², and a class token in CLIP");
    let mut block = Assembly::default();
    let mut embeddings = vec![("embeddings.position_embedding.weight", vec![positions.value, hidden.value])];
    if clip {
        embeddings.push(("embeddings.class_embedding", vec![hidden.value]));
    }
    let shape = vec![hidden.value, channels, patch.value, patch.value];
    let patches = Patches { tensor: "embeddings.patch_embedding", shape, bias: !clip, embeddings };
    let stream = patches.assemble(&mut block, hidden);
    if clip {
        norm(&mut block, stream, "pre_norm", "pre_layrnorm", hidden, true);
    }
    let stem = once(block, "patches", prefix, positions);
    let encoder = Encoder::biased(hidden, heads, keys.count("intermediate_size")?, &NAMES);
    let layers = encoder.layers(
        &format!("{prefix}.encoder.layers"),
        keys.count("num_hidden_layers")?,
        positions,
        &[],
    )?;
    let last = norm_once("post_norm", "post_layernorm", hidden, true, prefix, positions);
    Ok(Vit { hidden, positions, parts: vec![stem, layers, last] })
}

/// The projector from the encoder to a language model of width `text`.
pub enum ClipProjector {
    /// Two matrices; `newline`: a learned token at the end of each row, for images with a variable number of tiles.
    TwoLayer {
        /// The language model's width.
        text: Count,
        /// Whether both have biases.
        bias: bool,
        /// Whether there is such a token.
        newline: bool,
    },
    /// One matrix with a bias.
    OneLayer {
        /// The language model's width.
        text: Count,
    },
}

/// CLIP or SigLIP, by `model_type` or else `class`, and a projector.
pub fn tower(keys: &Keys<'_>, class: &str, projector: &ClipProjector) -> Result<Tower, Error> {
    let stated = keys.text("model_type")?;
    let clip = match stated.as_deref().unwrap_or(class) {
        "clip_vision_model" => true,
        "siglip_vision_model" => false,
        other => {
            let fix = "report the model: this encoder needs its own builder";
            return Err(Error::new("model_type", other, "clip_vision_model or siglip_vision_model", fix));
        }
    };
    let Vit { hidden, positions, mut parts } = vit(keys, clip, PREFIX)?;
    let tokens = positions.value - u64::from(clip);
    let tokens = Count::derived("image_tokens", tokens, "(image_size / patch_size)²");
    let prefix = PROJECTOR;
    let mut sight = ImageProcessor::FixedSize;
    match *projector {
        ClipProjector::TwoLayer { text, bias, newline } => {
            let up = Projection { name: "linear_1", tensor: "linear_1", input: hidden, output: text, bias };
            let down = Projection { name: "linear_2", tensor: "linear_2", input: text, output: text, bias };
            parts.push(two_once("projector", up, down, prefix, tokens));
            if newline {
                let (mut block, stream) = Assembly::from_input(text);
                let token = weight("image_newline", vec![text.value], TensorRole::Tower);
                block.node("image_newline", Operator::Add { width: text }, vec![token], &[stream]);
                parts.push(once(block, "image_newline", "model", Positions::Open));
                sight = ImageProcessor::Unknown;
            }
        }
        ClipProjector::OneLayer { text } => {
            let matrix =
                Projection { name: "linear", tensor: "linear", input: hidden, output: text, bias: true };
            parts.push(matrix_once("projector", matrix, prefix, tokens));
        }
    }
    Ok(Tower { name: "vision", parts, image_processor: sight })
}

/// Gemma-3: SigLIP, pooled to `mm_tokens_per_image`, a norm and one matrix.
pub fn gemma3(keys: &Keys<'_>, text: Count, tokens: Count) -> Result<Tower, Error> {
    keys.only("model_type", &json!("siglip_vision_model"))?;
    let Vit { hidden, mut parts, .. } = vit(keys, false, PREFIX)?;
    let (mut block, stream) = Assembly::from_input(hidden);
    let normed = norm(&mut block, stream, "projector_norm", "mm_soft_emb_norm", hidden, false);
    let matrix = weight("mm_input_projection_weight", vec![hidden.value, text.value], TensorRole::Tower);
    let projection = Operator::Linear { input: hidden, output: text, split: Split::Replicate };
    block.node("projection", projection, vec![matrix], &[normed]);
    parts.push(once(block, "projector", "model.multi_modal_projector", tokens));
    Ok(Tower { name: "vision", parts, image_processor: ImageProcessor::FixedSize })
}
