//! Wrappers with audio encoders, and Fuyu, whose patches enter the language model directly.
//!
//! Source: the modeling files of these classes in transformers 5.24. A whole Qwen-Omni also has a talker and a decoder of
//! sound, which count as encoders: they run once for each answer that is spoken.

use super::vision::{omni, patches, qwen as qwen_tower, whisper};
use super::wrapper::{self, INSIDE_MODEL, WrapperPaths, inside, language, vision, wrap};
use super::{described, nemotron, qwen, qwen_moe};
use crate::graph::model::ModelGraph;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `qwen3_asr`: Qwen3-Omni's audio encoder before Qwen3.
pub fn build_qwen3_asr(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["audio_token_id", "token_classification_bias"]);
    let graph = inside(keys, "qwen3", |text| language(text, &["qwen3"]))?;
    let tower = omni::asr(&wrapper::encoder(keys, "audio_config", "qwen3_asr_encoder")?)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `qwen3_omni_moe_thinker`: encoders of images and of audio before Qwen3-MoE.
pub fn build_qwen3_thinker(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    set_prompt_aside(keys);
    let graph = inside(keys, "qwen3_omni_moe_text", qwen_moe::build_omni)?;
    let seen = qwen_tower::qwen3_omni(&vision(keys, "qwen3_omni_moe_vision_encoder")?)?;
    let heard = omni::audio(&wrapper::encoder(keys, "audio_config", "qwen3_omni_moe_audio_encoder")?)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![seen, heard]))
}

/// `qwen3_omni_moe`.
pub fn build_qwen3_omni(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    whole(keys, "qwen3_omni_moe", build_qwen3_thinker)
}

/// `qwen2_5_omni`.
pub fn build_qwen2_omni(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    whole(keys, "qwen2_5_omni", build_qwen2_thinker)
}

/// The thinker, and the talker with its decoder of sound unless `enable_audio_output` is off.
fn whole(
    keys: &Keys<'_>,
    name: &str,
    thinker: fn(&Keys<'_>) -> Result<ModelGraph, Error>,
) -> Result<ModelGraph, Error> {
    set_prompt_aside(keys);
    // The thinker has a key of its own.
    keys.set_aside(&["tie_word_embeddings"]);
    let mut graph = thinker(&keys.section("thinker_config")?)?;
    let spoken = described::towers_of(name, keys, &graph)?;
    let mut towers = std::mem::take(&mut graph.towers);
    for part in towers.iter_mut().flat_map(|tower| &mut tower.parts) {
        part.prefix = format!("thinker.{}", part.prefix);
    }
    towers.extend(spoken);
    let place = WrapperPaths { model: "thinker.model", head: "thinker.lm_head", others: "thinker." };
    Ok(wrap(graph, place, towers))
}

/// `qwen2_5_omni_thinker`: encoders of images and of audio before Qwen2.
pub fn build_qwen2_thinker(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    set_prompt_aside(keys);
    let graph = inside(keys, "qwen2_5_omni_text", qwen::build_qwen2)?;
    let seen = qwen_tower::omni(&vision(keys, "qwen2_5_omni_vision_encoder")?)?;
    let heard = whisper::omni(&wrapper::encoder(keys, "audio_config", "qwen2_5_omni_audio_encoder")?)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![seen, heard]))
}

/// `moss_transcribe_diarize`: Whisper's encoder before Qwen3.
pub fn build_moss(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["audio_token_id", "audio_chunk_size"]);
    let graph = inside(keys, "qwen3", |text| language(text, &["qwen3"]))?;
    let projector = (keys.count_or("audio_merge_size", 4)?, keys.flag("projector_bias", true)?);
    let audio = wrapper::encoder(keys, "audio_config", "moss_transcribe_diarize_audio")?;
    let tower = whisper::moss(&audio, graph.hidden, projector)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `fuyu`: one matrix over patches before Persimmon.
pub fn build_fuyu(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["image_size"]);
    let graph = inside(keys, "persimmon", nemotron::build_persimmon)?;
    let tower = patches::fuyu(keys, graph.hidden)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// Keys for the position of audio in the prompt, and for positions in time.
fn set_prompt_aside(keys: &Keys<'_>) {
    keys.set_aside(&["audio_token_id", "audio_token_index", "audio_start_token_id", "audio_end_token_id"]);
    keys.set_aside(&["position_id_per_seconds", "seconds_per_chunk", "user_token_id"]);
}
