//! LLaVA and those who lead from CLIP, SigLIP or Pixtral into a language model as it does: LLaVA-NeXT,
//! LLaVA-OneVision, PaliGemma.
//!
//! Knows nothing of how an image is cut into tiles; where that is left open, so is the number of its tokens.

use super::vision::clip::{self, Projector};
use super::vision::pixtral;
use super::wrapper::{self, INSIDE_MODEL, language, text, tied, vision, wrap};
use crate::graph::model::ModelGraph;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Language models before which an encoder stands.
const LANGUAGES: &[&str] = &["llama", "mistral", "qwen2", "gemma", "gemma2"];

/// `llava`: CLIP or Pixtral, and two matrices.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    with_two_matrices(keys, "llama", "clip_vision_model", false)
}

/// `llava_next`: an image in several tiles, rows of which end in a learned token.
pub fn build_next(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    with_two_matrices(keys, "llama", "clip_vision_model", true)
}

/// `llava_onevision`: likewise behind SigLIP.
pub fn build_onevision(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    with_two_matrices(keys, "qwen2", "siglip_vision_model", true)
}

fn with_two_matrices(
    keys: &Keys<'_>,
    class: &str,
    encoder: &str,
    newline: bool,
) -> Result<ModelGraph, Error> {
    wrapper::set_prompt_aside(keys);
    // A copy of the language model's, which the class does not read.
    keys.set_aside(&["vocab_size"]);
    if keys.value("vision_feature_layer").is_some_and(|layer| !layer.is_number()) {
        let fix = "report the model: states of several layers need a projector of their own";
        return Err(Error::new("vision_feature_layer", "several layers", "one layer", fix));
    }
    let inside = text(keys, class)?;
    let graph = tied(language(&inside, LANGUAGES)?, keys, &inside)?;
    let bias = keys.flag("multimodal_projector_bias", true)?;
    let seen = vision(keys, encoder)?;
    let tower = match seen.says("model_type", "pixtral") && seen.has("model_type") {
        true => pixtral::tower(&seen, &pixtral::Projector { text: graph.hidden, merge: None, bias })?,
        false => clip::tower(&seen, encoder, &Projector::Two { text: graph.hidden, bias, newline })?,
    };
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `paligemma`: SigLIP and one matrix before Gemma or Gemma-2.
pub fn build_paligemma(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    wrapper::set_prompt_aside(keys);
    // Copies of the language model's widths; the projector's follows from them.
    keys.set_aside(&["hidden_size", "vocab_size", "num_image_tokens"]);
    let inside = text(keys, "gemma")?;
    inside.set_aside(&["num_image_tokens"]);
    let graph = tied(language(&inside, &["gemma", "gemma2"])?, keys, &inside)?;
    let seen = vision(keys, "siglip_vision_model")?;
    // The class gives the projector this width; one unlike the stream's would not fit it.
    let width =
        keys.value("projection_dim").or(seen.value("projection_dim")).and_then(|width| width.as_u64());
    if width.is_some_and(|width| width != graph.hidden.value) {
        let expected = format!("the language model's hidden_size {}", graph.hidden.value);
        let fix = "copy both values from the model's config.json";
        return Err(Error::new("projection_dim", format!("{width:?}"), expected, fix));
    }
    seen.set_aside(&["num_image_tokens", "projector_hidden_act"]);
    let tower = clip::tower(&seen, "siglip_vision_model", &Projector::One { text: graph.hidden })?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}
