//! Wrappers around language models of other families: Mistral-3, Gemma-3, Qwen-VL, Kimi-K2.5, GLM-V, and models of
//! speech and documents.

use serde_json::{Value, json};

use super::vision::{
    clip, glm as glm_tower, minicpm, moonvit, pixtral, qwen as qwen_tower, sam, siglip2, whisper,
};
use super::wrapper::{self, INSIDE_MODEL, WrapperPaths, inside, inside_or_flat, language, vision, wrap};
use super::{
    cohere, deepseek, described, exaone, glm, latent_variants, llama, llama_variants, nemotron, qwen,
    qwen_moe,
};
use crate::graph::assembly::weight;
use crate::graph::model::ModelGraph;
use crate::graph::tensor::TensorRole;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `mistral3`: Pixtral's encoder before Mistral or Ministral.
pub fn build_mistral3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "mistral", |keys| language(keys, &["mistral", "ministral3", "mistral4"]))?;
    behind_pixtral(keys, graph)
}

/// Pixtral's encoder before a language model of Mistral.
fn behind_pixtral(keys: &Keys<'_>, graph: ModelGraph) -> Result<ModelGraph, Error> {
    let projector = pixtral::PixtralProjector {
        text: graph.hidden,
        merge: Some(keys.count_or("spatial_merge_size", 2)?),
        bias: keys.flag("multimodal_projector_bias", false)?,
        places: pixtral::PLACES,
    };
    let tower = pixtral::tower(&vision(keys, "pixtral")?, &projector)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `mistral_large4`: Pixtral's encoder before latent attention; the rotation has learned exponents.
pub fn build_mistral_large4(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let mut graph = inside(keys, "mistral_large4_text", latent_variants::build_mistral)?;
    let text = wrapper::text(keys, "mistral_large4_text")?;
    let pairs = text.count("qk_rope_head_dim")?.value / 2;
    let norm = graph.head.graph.node_weights_mut().find(|node| node.name == "final_norm");
    let alpha = weight("model.rotary_emb.alpha", vec![pairs], TensorRole::Norm);
    norm.into_iter().for_each(|node| node.weights.push(alpha.clone()));
    behind_pixtral(keys, graph)
}

/// `glm5_next`: GLM-OCR's encoder before Kimi Delta Attention and latent attention. Old files have the keys of the
/// language model at the top.
pub fn build_glm5_next(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside_or_flat(keys, "glm5_next_text", latent_variants::build_glm5)?;
    let tower = glm_tower::next(&vision(keys, "glm5_next_vision")?)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `lighton_ocr`: the same under other names, before Qwen3 (`modular_lighton_ocr.py` of transformers 5.24).
pub fn build_lighton(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "qwen3", |keys| language(keys, &["qwen3"]))?;
    let projector = pixtral::PixtralProjector {
        text: graph.hidden,
        merge: Some(keys.count_or("spatial_merge_size", 2)?),
        bias: false,
        places: ["model.vision_encoder", "model.vision_projection"],
    };
    let tower = pixtral::tower(&vision(keys, "pixtral")?, &projector)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `exaone4_5`: Qwen2.5-VL's encoder with grouped heads before EXAONE-4.0.
pub fn build_exaone(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "exaone4", exaone::build_exaone4)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![qwen_tower::exaone(&vision(keys, "exaone4_5_vision")?)?]))
}

/// `hyperclovax_vision_v2`: Qwen2.5-VL's encoder before HyperCLOVA X.
pub fn build_hyperclovax(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "hyperclovax", llama_variants::build_hyperclovax)?;
    let tower = qwen_tower::hyperclovax(&vision(keys, "qwen2_5_vl_vision")?, graph.hidden)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `paddleocr_vl`: SigLIP for images of any size before ERNIE-4.5.
pub fn build_paddle(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "paddleocr_vl_text", llama_variants::build_ernie)?;
    let tower = siglip2::paddle(&vision(keys, "paddleocr_vl_vision")?, graph.hidden)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `minicpmv4_6`, `minicpmv4_7` and `minicpm_ocr`: SigLIP with mergers before Qwen3.5.
pub fn build_minicpm(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let shorter = minicpm::drops_last(keys)?;
    let times = keys.count_or("merger_times", 1)?;
    let languages = ["qwen3_5_text", "qwen3_5_moe_text"];
    let graph = inside(keys, "qwen3_5_text", |text| language(text, &languages))?;
    let seen = vision(keys, "siglip_vision_model")?;
    let tower = minicpm::tower(&seen, graph.hidden, times, shorter)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `minicpmv`: SigLIP and a resampler before the language model of each version; MiniCPM-Llama3-V 2.5 states none
/// (`minicpmv.py` of <https://github.com/vllm-project/vllm>).
pub fn build_minicpmv(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    wrapper::set_prompt_aside(keys);
    let version = match keys.value("version") {
        Some(Value::String(version)) => version.clone(),
        Some(version) if !version.is_null() => version.to_string(),
        // MiniCPM-V 2 has no such key either, and 64 queries.
        _ if keys.count("query_num")?.value == 96 => "2.5".to_owned(),
        _ => "nothing: the key is missing".to_owned(),
    };
    let graph = match version.as_str() {
        "2.5" | "4" | "4.0" => llama::build(keys)?,
        "2.6" => qwen::build_qwen2(keys)?,
        "4.5" => qwen::build_qwen3(keys)?,
        _ => {
            let fix = "report the model: this version needs its own builder";
            return Err(Error::new("version", version, "2.5, 2.6, 4.0 or 4.5", fix));
        }
    };
    let towers = described::towers_of("minicpmv", keys, &graph)?;
    let place = WrapperPaths { model: "llm.model", head: "llm.lm_head", others: "llm." };
    Ok(wrap(graph, place, towers))
}

/// `got_ocr2` and `pp_chart2table`: SAM's encoder before Qwen2.
pub fn build_got(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "qwen2", |text| language(text, &["qwen2"]))?;
    let tower = sam::tower(&vision(keys, "got_ocr2_vision")?, graph.hidden)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `voxtral`: Whisper's encoder before Llama; the outer width is a copy of the language model's.
pub fn build_voxtral(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["audio_token_id", "hidden_size", "vocab_size"]);
    let graph = inside(keys, "llama", |text| language(text, &["llama"]))?;
    let audio = wrapper::encoder(keys, "audio_config", "voxtral_encoder")?;
    let tower = whisper::voxtral(&audio, graph.hidden)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `glmasr`: Whisper's layers with rotation before Llama.
pub fn build_glmasr(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["audio_token_id"]);
    let graph = inside(keys, "llama", |text| language(text, &["llama"]))?;
    let audio = wrapper::encoder(keys, "audio_config", "glmasr_encoder")?;
    let tower = whisper::glm(&audio, graph.hidden)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `gemma3` and `shieldgemma2`: SigLIP before Gemma-3.
pub fn build_gemma3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "gemma3_text", |keys| language(keys, &["gemma3_text"]))?;
    let tokens = keys.count_or("mm_tokens_per_image", 256)?;
    let tower = clip::gemma3(&vision(keys, "siglip_vision_model")?, graph.hidden, tokens)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `qwen2_vl`: the language model's keys are next to `vision_config`, in newer files in `text_config`.
pub fn build_qwen2_vl(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside_or_flat(keys, "qwen2_vl_text", qwen::build_qwen2)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![qwen_tower::qwen2(&vision(keys, "qwen2_vl_vision")?)?]))
}

/// `qwen2_5_vl`: the same.
pub fn build_qwen2_5_vl(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside_or_flat(keys, "qwen2_5_vl_text", qwen::build_qwen2)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![qwen_tower::qwen2_5(&vision(keys, "qwen2_5_vl_vision")?)?]))
}

/// `qwen3_vl` and `cosmos3_omni`.
pub fn build_qwen3_vl(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    qwen3(keys, "qwen3_vl_text", qwen::build_qwen3)
}

/// `cohere_compass`: the same before Cohere's layers.
pub fn build_compass(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    qwen3(keys, "cohere_compass_text", cohere::build_compass)
}

/// `cosmos3_edge`: SigLIP-2 before a language model whose head no key ties.
pub fn build_edge(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    wrapper::set_prompt_aside(keys);
    keys.set_aside(&["tie_word_embeddings"]);
    let graph = nemotron::build_edge(&wrapper::text(keys, "cosmos3_edge_text")?)?;
    let inner = keys.count_or("projector_hidden_size", 11520)?;
    let tower = siglip2::cosmos(&vision(keys, "cosmos3_edge_vision")?, graph.hidden, inner)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `qwen3_vl_moe`.
pub fn build_qwen3_vl_moe(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    qwen3(keys, "qwen3_vl_moe_text", qwen_moe::build_qwen3)
}

fn qwen3(
    keys: &Keys<'_>,
    class: &str,
    build: fn(&Keys<'_>) -> Result<ModelGraph, Error>,
) -> Result<ModelGraph, Error> {
    let graph = inside(keys, class, build)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![qwen_tower::qwen3(&vision(keys, "qwen3_vl_vision")?)?]))
}

/// `kimi_k25`: MoonViT before Kimi-K2.
pub fn build_kimi_k25(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Published keys of the checkpoint: token ids and texts of the prompt.
    keys.set_aside(&["media_placeholder_token_id", "video_placeholder", "use_unified_vision_chunk"]);
    let graph = inside(keys, "", |text| {
        text.set_aside(&["cross_attention_hidden_size"]);
        text.only("model_type", &json!("deepseek_v3"))
            .or_else(|_| text.only("model_type", &json!("kimi_k2")))?;
        deepseek::build_v3(text)
    })?;
    let seen = vision(keys, "kimi_k25_vision")?;
    let tower = moonvit::tower(&seen, graph.hidden)?;
    // Width of the projector's norm, which equals that of the encoder.
    keys.set_aside(&["projection_layer_norm_eps"]);
    keys.only("projection_hidden_size", &json!(moonvit::width(&seen)?.value))?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `glm4v`: GLM-4-0414's layers; the keys are next to `vision_config`, in newer files in `text_config`.
pub fn build_glm4v(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside_or_flat(keys, "glm4v_text", glm::build_glm4v)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![glm_tower::tower(&vision(keys, "glm4v_vision")?)?]))
}

/// `glm_ocr`: GLM-4.1V's parts without biases in the language model.
pub fn build_glm_ocr(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "glm_ocr_text", glm::build_ocr)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![glm_tower::ocr(&vision(keys, "glm_ocr_vision")?)?]))
}

/// `glm46v` and `glmga`: GLM-4.6V: the parts of GLM-4.5V or GLM-4.1V, by the language model's class.
pub fn build_glm46v(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "glm4v_text", |text| {
        let sparse = text.text("model_type")?.is_some_and(|class| class == "glm4v_moe_text");
        if sparse { deepseek::glm4(text, true) } else { glm::build_glm4v(text) }
    })?;
    Ok(wrap(graph, INSIDE_MODEL, vec![glm_tower::tower(&vision(keys, "glm4v_vision")?)?]))
}

/// `qwen2_audio`: Whisper's encoder before Qwen2; the outer copies of language-model keys are not read.
pub fn build_qwen2_audio(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["audio_token_index", "audio_token_id", "vocab_size"]);
    let graph = inside(keys, "qwen2", qwen::build_qwen2)?;
    let audio = wrapper::encoder(keys, "audio_config", "qwen2_audio_encoder")?;
    let tower = whisper::tower(&audio, graph.hidden)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `glm4v_moe`: GLM-4.5's layers; always `text_config`.
pub fn build_glm4v_moe(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "glm4v_moe_text", |text| deepseek::glm4(text, true))?;
    Ok(wrap(graph, INSIDE_MODEL, vec![glm_tower::tower(&vision(keys, "glm4v_moe_vision")?)?]))
}
