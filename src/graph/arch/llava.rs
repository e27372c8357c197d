//! LLaVA and models of the same structure, with CLIP, SigLIP or Pixtral before a language model: LLaVA-NeXT,
//! LLaVA-OneVision, PaliGemma.
//!
//! Independent of how an image is divided into tiles. If that is unknown, so is the number of image tokens.

use serde_json::{Value, json};

use super::vision::clip::{self, ClipProjector};
use super::vision::{pixtral, shuffle, siglip2};
use super::wrapper::{self, INSIDE_MODEL, inside, language, vision, wrap};
use crate::graph::arch::class_keys::ignored;
use crate::graph::model::ModelGraph;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Language models that the encoder feeds.
const LANGUAGES: &[&str] = &["llama", "mistral", "qwen2", "gemma", "gemma2"];

/// `llava`: CLIP or Pixtral, and two matrices.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    with_two_matrices(keys, "llama", "clip_vision_model", false)
}

/// `llava_next`: an image in several tiles, with a learned token at the end of each row.
pub fn build_next(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    with_two_matrices(keys, "llama", "clip_vision_model", true)
}

/// `llava_next_video`: the same; frames are pooled without weights (`modular_llava_next_video.py` of transformers 5.24).
pub fn build_next_video(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["spatial_pool_stride"]);
    if keys.says("spatial_pool_mode", "conv") && keys.has("spatial_pool_mode") {
        let fix = "report the model: pooling by a convolution needs its own builder";
        return Err(Error::new("spatial_pool_mode", "conv", "average or max", fix));
    }
    build_next(keys)
}

/// `vipllava`: the states of several layers, joined.
pub fn build_vip(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["projector_layernorm_eps"]);
    let layers = match keys.value("vision_feature_layer") {
        Some(Value::Array(layers)) => layers.len().max(1) as u64,
        Some(Value::Number(_)) => 1,
        _ => 5,
    };
    let graph = inside(keys, "llama", |text| language(text, LANGUAGES))?;
    let tower = clip::vip(&vision(keys, "clip_vision_model")?, graph.hidden, layers)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `video_llava`: one encoder for images and one for videos.
pub fn build_video(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "llama", |text| language(text, LANGUAGES))?;
    let bias = keys.flag("multimodal_projector_bias", true)?;
    let towers = clip::images_and_videos(&vision(keys, "clip_vision_model")?, graph.hidden, bias)?;
    Ok(wrap(graph, INSIDE_MODEL, towers))
}

/// `deepseek_vl`: SigLIP and two matrices before Llama.
pub fn build_deepseek(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "llama", |text| language(text, &["llama"]))?;
    let tower = clip::deepseek(&vision(keys, "siglip_vision_model")?, graph.hidden)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `video_llama_3`: SigLIP for images of any size before Qwen2.
pub fn build_video_llama(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "qwen2", |text| language(text, &["qwen2"]))?;
    let tower = siglip2::video_llama(&vision(keys, "siglip_vision_model")?, graph.hidden)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `lfm2_vl`: SigLIP-2 before LFM2, dense or with experts.
pub fn build_lfm2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "lfm2", |text| language(text, &["lfm2", "lfm2_moe"]))?;
    let projector = siglip2::UnshuffledProjector {
        text: graph.hidden,
        merge: keys.count_or("downsample_factor", 2)?,
        inner: keys.count_or("projector_hidden_size", 2560)?,
        bias: keys.flag("projector_bias", true)?,
        normed: keys.flag("projector_use_layernorm", true)?,
    };
    let tower = siglip2::lfm2(&vision(keys, "siglip_vision_model")?, &projector)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `llava_onevision`: LLaVA-NeXT with SigLIP.
pub fn build_onevision(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    with_two_matrices(keys, "qwen2", "siglip_vision_model", true)
}

fn with_two_matrices(
    keys: &Keys<'_>,
    class: &str,
    encoder: &str,
    newline: bool,
) -> Result<ModelGraph, Error> {
    // A copy of a language-model key, which the class does not read.
    keys.set_aside(&["vocab_size"]);
    if keys.value("vision_feature_layer").is_some_and(|layer| !layer.is_number()) {
        let fix = "report the model: states of several layers need a projector of their own";
        return Err(Error::new("vision_feature_layer", "several layers", "one layer", fix));
    }
    let graph = inside(keys, class, |text| language(text, LANGUAGES))?;
    let bias = keys.flag("multimodal_projector_bias", true)?;
    let seen = vision(keys, encoder)?;
    let tower = match seen.says("model_type", "pixtral") && seen.has("model_type") {
        true => pixtral::tower(
            &seen,
            &pixtral::PixtralProjector { text: graph.hidden, merge: None, bias, places: pixtral::PLACES },
        )?,
        false => clip::tower(&seen, encoder, &ClipProjector::TwoLayer { text: graph.hidden, bias, newline })?,
    };
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `idefics3` and `smolvlm`: SigLIP with pixel shuffle before Llama.
pub fn build_idefics3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Copies of language-model keys, and image tiling.
    keys.set_aside(&["vocab_size", "pad_token_id", "image_size"]);
    let graph = inside(keys, "llama", |text| {
        // Keys of the family's first generation, whose resampler and norms these models do not have.
        text.set_aside(ignored("idefics3 text_config"));
        for key in ["use_resampler", "qk_layer_norms"] {
            text.only(key, &json!(false))?;
        }
        language(text, &["llama"])
    })?;
    let class = keys.text("model_type")?;
    let class = if class.as_deref() == Some("smolvlm") { "smolvlm_vision" } else { "idefics3_vision" };
    let tower = shuffle::idefics(&vision(keys, class)?, graph.hidden, keys.count_or("scale_factor", 2)?)?;
    Ok(wrap(graph, INSIDE_TEXT_MODEL, vec![tower]))
}

/// Location of the language model in Idefics3.
const INSIDE_TEXT_MODEL: wrapper::WrapperPaths =
    wrapper::WrapperPaths { model: "model.text_model", head: "lm_head", others: "" };

/// `cohere2_vision`: Command A Vision.
pub fn build_cohere2_vision(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    cohere(keys, false)
}

/// `aya_vision`: the same with a norm first, before Cohere's models of either generation.
pub fn build_aya_vision(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["adapter_layer_norm_eps"]);
    cohere(keys, true)
}

fn cohere(keys: &Keys<'_>, aya: bool) -> Result<ModelGraph, Error> {
    // A copy of a language-model key, and image tiling.
    keys.set_aside(&["vocab_size", "max_splits_per_img"]);
    let graph = inside(keys, "cohere2", |text| language(text, &["cohere", "cohere2"]))?;
    let scale = keys.count_or("downsample_factor", 2)?;
    let inner = match keys.count_or_none("alignment_intermediate_size")? {
        Some(stated) => stated,
        None if aya => graph.hidden,
        None => Count::class_default("alignment_intermediate_size", 36864),
    };
    let seen = vision(keys, "siglip_vision_model")?;
    seen.only("model_type", &json!("siglip_vision_model"))?;
    let tower = shuffle::cohere(&seen, graph.hidden, (scale, inner), aya)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `paligemma`: SigLIP and one matrix before Gemma or Gemma-2.
pub fn build_paligemma(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Copies of the language model's widths; the projector's width follows from them.
    keys.set_aside(&["hidden_size", "vocab_size", "num_image_tokens"]);
    let graph = inside(keys, "gemma", |text| {
        // The class has bidirectional attention inside the prompt's image, whatever the key contains.
        text.set_aside(&["num_image_tokens", "use_bidirectional_attention"]);
        language(text, &["gemma", "gemma2"])
    })?;
    let seen = vision(keys, "siglip_vision_model")?;
    // The class gives the projector this width. A width different from the stream's would not fit.
    let width =
        keys.value("projection_dim").or(seen.value("projection_dim")).and_then(|width| width.as_u64());
    if let Some(width) = width.filter(|width| *width != graph.hidden.value) {
        let expected = format!("the language model's hidden_size {}", graph.hidden.value);
        let fix = "copy both values from the model's config.json";
        return Err(Error::new("projection_dim", width.to_string(), expected, fix));
    }
    seen.set_aside(&["num_image_tokens", "projector_hidden_act"]);
    let tower = clip::tower(&seen, "siglip_vision_model", &ClipProjector::OneLayer { text: graph.hidden })?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}
