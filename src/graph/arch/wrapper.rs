//! Common parts of vision-language models: a language model under another name, and its encoders.
//!
//! Independent of families, which define the location of their parts.

use petgraph::graph::NodeIndex;
use serde_json::json;

use super::{ARCHITECTURES, class_keys, switches};
use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::weight;
use crate::graph::model::{Block, ModelGraph};
use crate::graph::operator::Operator;
use crate::graph::tensor::TensorRole;
use crate::graph::tower::Tower;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Marks wrapper keys for the position of images in the prompt as read.
pub fn set_prompt_aside(keys: &Keys<'_>) {
    keys.set_aside(ignored("prompt"));
}

/// The keys of the language model; its class is `class` unless its `model_type` names another one.
pub fn text<'c>(keys: &Keys<'c>, class: &str) -> Result<Keys<'c>, Error> {
    part(keys, "text_config", class)
}

/// The keys of the encoder. A file without them is rejected, since the class's defaults would make another model.
pub fn vision<'c>(keys: &Keys<'c>, class: &str) -> Result<Keys<'c>, Error> {
    encoder(keys, "vision_config", class)
}

fn part<'c>(keys: &Keys<'c>, key: &'static str, class: &str) -> Result<Keys<'c>, Error> {
    let part = keys.section(key)?;
    let stated = part.text("model_type")?.map_or(&[][..], |stated| class_keys::of_part(&stated));
    let defaults = if stated.is_empty() { class_keys::of_part(class) } else { stated };
    Ok(part.with_defaults(defaults))
}

/// The keys of an encoder under `key`.
pub fn encoder<'c>(keys: &Keys<'c>, key: &'static str, class: &str) -> Result<Keys<'c>, Error> {
    let vision = part(keys, key, class)?;
    // An encoder has neither a vocabulary nor a head to tie.
    vision.set_aside(&["tie_word_embeddings", "vocab_size"]);
    Ok(vision)
}

/// The language model that `model_type` of the section names, with the `defaults` of its class if known.
pub fn language(keys: &Keys<'_>, allowed: &[&str]) -> Result<ModelGraph, Error> {
    let stated = keys.text("model_type")?.unwrap_or_default();
    let known = ARCHITECTURES.iter().find(|known| known.model_type == stated);
    match known.filter(|_| allowed.contains(&stated.as_str())) {
        Some(known) => {
            switches::set_aside(keys, known.model_type);
            (known.build)(keys)
        }
        None => Err(Error::new(
            "text_config.model_type",
            stated,
            format!("one of {}", allowed.join(", ")),
            "report the model: this combination needs its own builder",
        )),
    }
}

/// The language model under `text_config`, built as `class` unless its `model_type` names another one, and tied by the
/// rule of the wrapper's class.
pub fn inside(
    keys: &Keys<'_>,
    class: &str,
    build: impl Fn(&Keys<'_>) -> Result<ModelGraph, Error>,
) -> Result<ModelGraph, Error> {
    set_prompt_aside(keys);
    let inside = text(keys, class)?;
    tied(build(&inside)?, keys, &inside)
}

/// The same for files whose older form has the keys of the language model next to those of the encoder.
pub fn inside_or_flat(
    keys: &Keys<'_>,
    class: &str,
    build: fn(&Keys<'_>) -> Result<ModelGraph, Error>,
) -> Result<ModelGraph, Error> {
    if keys.section_or_none("text_config")?.is_some() {
        // Newer versions of transformers leave copies of these in the outer section.
        keys.set_aside(ignored("text_config copies"));
        return inside(keys, class, build);
    }
    set_prompt_aside(keys);
    build(keys)
}

/// Location of the language model in a wrapper.
#[derive(Clone, Copy, Debug)]
pub struct WrapperPaths {
    /// Name of the language model's `model`, e.g. `model.language_model`.
    pub model: &'static str,
    /// Name of its `lm_head`.
    pub head: &'static str,
    /// Prefix of other names.
    pub others: &'static str,
}

/// The naming of most wrappers in transformers 5.
pub const INSIDE_MODEL: WrapperPaths =
    WrapperPaths { model: "model.language_model", head: "lm_head", others: "" };

/// The language model under its name inside the wrapper, with its encoders.
pub fn wrap(mut graph: ModelGraph, place: WrapperPaths, towers: Vec<Tower>) -> ModelGraph {
    let renamed = |name: &str| match (name.strip_prefix("model."), name.strip_prefix("lm_head.")) {
        (Some(rest), _) => format!("{}.{rest}", place.model),
        (_, Some(rest)) => format!("{}.{rest}", place.head),
        _ => format!("{}{name}", place.others),
    };
    let whole = |block: &mut Block| {
        for node in block.graph.node_weights_mut() {
            node.weights.iter_mut().for_each(|weight| weight.name = renamed(&weight.name));
        }
    };
    whole(&mut graph.embedding);
    whole(&mut graph.head);
    graph.mtp.iter_mut().for_each(|weight| weight.name = renamed(&weight.name));
    graph.layer_prefix = renamed(&graph.layer_prefix);
    graph.stores.iter_mut().for_each(|store| *store = renamed(store));
    graph.towers = towers;
    graph
}

/// Wrappers whose head is tied if either they or their language model set the key.
const EITHER: &[&str] = &["mllama"];

/// Wrappers whose head no key ties in files of transformers 5.
const SEPARATE: &[&str] = &["mllama", "qwen2_audio", "voxtral"];

/// Wrappers whose head no key ties, whatever version wrote the file.
const NEVER: &[&str] = &[
    "inkling2",
    "inkling2_loop",
    "inkling_mm_model",
    "molmo2",
    "muse_spark",
    "nemo_speechlm",
    "nemotron_h_omni",
    "omniasr",
    "vibevoice_asr",
];

/// Parts of whole models, in a section without the version that wrote it: their own key alone ties the head.
const OWN: &[&str] = &["qwen2_5_omni_thinker", "qwen3_omni_moe_thinker"];

/// Wrappers whose missing key is that of the language model.
const INHERITING: &[&str] = &["perception_lm"];

/// The same, whatever version wrote the file: the class takes over the language model's key, or the language model
/// has a head of its own, which it ties itself (transformers 5.24).
const FORWARDING: &[&str] = &[
    "blip",
    "fast_vlm",
    "glm4v",
    "glm4v_moe",
    "glm_ocr",
    "hunyuan_vl",
    "kosmos-2",
    "llava",
    "llava_next_video",
    "llava_onevision",
    "minimax_m3_vl",
    "paddleocr_vl",
    "qwen2_5_vl",
    "qwen2_vl",
    "shieldgemma2",
    "video_llama_3",
];

/// Of the other wrappers, whose own key decides, those that tie the head by class default.
const TYING: &[&str] = &[
    "aya_vision",
    "blip",
    "cohere2_vision",
    "deepseek_vl",
    "deepseek_vl_hybrid",
    "ernie4_5_vl_moe",
    "fun_asr_nano",
    "gemma3",
    "gemma3n",
    "gemma4",
    "gemma4_assistant",
    "gemma4_unified",
    "gemma4_unified_assistant",
    "glmasr",
    "got_ocr2",
    "granite_docling",
    "granite_speech",
    "granite_speech_plus",
    "hunyuan_vl",
    "hyperclovax_vision_v2",
    "internvl",
    "janus",
    "kimi_k25",
    "kosmos-2",
    "lfm2_vl",
    "lfm3_vl",
    "lighton_ocr",
    "minicpm_ocr",
    "mistral3",
    "moss_transcribe_diarize",
    "ovis2",
    "paddleocr_vl",
    "paligemma",
    "pp_chart2table",
    "qwen3_asr",
    "voxtral_realtime",
];

/// Whether transformers 5 or later wrote the file. It ties heads by the wrapper's key alone, and writes the language
/// model's default as well, which is ignored.
pub fn written_by_5(keys: &Keys<'_>) -> Result<bool, Error> {
    let version = keys.text("transformers_version")?;
    let major = version.as_deref().and_then(|version| version.split('.').next()?.parse::<u64>().ok());
    Ok(major.is_some_and(|major| major >= 5))
}

/// Whether the head is tied in a family whose class of transformers 5 ties nothing, whatever the key contains, while the
/// checkpoints' own code does.
///
/// # Errors
/// The key is set in a file that another version wrote.
pub fn separate_head(keys: &Keys<'_>) -> Result<bool, Error> {
    let key = "tie_word_embeddings";
    match written_by_5(keys)? {
        true => keys.set_aside(&[key]),
        false => keys.only(key, &json!(false))?,
    }
    Ok(false)
}

/// The language model with its head tied or not, by the rule of the wrapper's class.
///
/// # Errors
/// Wrapper and language model contradict each other, by key or by class default: versions of transformers then
/// disagree.
pub fn tied(graph: ModelGraph, keys: &Keys<'_>, text: &Keys<'_>) -> Result<ModelGraph, Error> {
    let (key, inside) = ("tie_word_embeddings", graph.tied);
    // A file without model_type is loaded by no class that could decide.
    let class = keys.text("model_type")?;
    let among = |classes: &[&str]| class.as_deref().is_none_or(|class| classes.contains(&class));
    let named = |classes: &[&str]| class.is_some() && among(classes);
    let forwards = named(FORWARDING);
    let either = among(EITHER) || forwards;
    let wrapper_rules = written_by_5(keys)?;
    let separate = named(NEVER) || wrapper_rules && named(SEPARATE);
    let default = match (either, named(INHERITING)) {
        (true, _) => inside && !separate || named(TYING),
        (false, true) => inside,
        (false, false) => among(TYING),
    };
    let outside = keys.flag(key, default)? && !separate;
    let one_says = wrapper_rules || named(NEVER) || named(OWN);
    let both_say = !one_says && (text.has(key) || !keys.has(key));
    if inside != outside && both_say && (outside || !either) {
        return Err(Error::new(
            key,
            format!("{outside}, and {inside} in text_config, by key or by class default"),
            "the same in both places",
            "set both to true (lm_head is tied to the embedding) or both to false (lm_head is stored separately)",
        ));
    }
    let tied = outside || (either && inside && (forwards || !wrapper_rules));
    Ok(retied(graph, tied))
}

/// The language model with its head tied or not.
pub fn retied(mut graph: ModelGraph, tied: bool) -> ModelGraph {
    let vocabulary = |node: &NodeIndex| match graph.head.graph[*node].operator {
        Operator::Linear { input, output, .. } if graph.head.graph[*node].name == "lm_head" => {
            Some((*node, vec![output.value, input.value]))
        }
        _ => None,
    };
    let found = graph.head.order.iter().find_map(vocabulary);
    if let Some((node, shape)) = found.filter(|_| tied != graph.tied) {
        let stored = weight("lm_head.weight", shape, TensorRole::LmHead);
        let weights = &mut graph.head.graph[node].weights;
        weights.retain(|weight| weight.role == TensorRole::Bias);
        if !tied {
            weights.insert(0, stored);
        }
        graph.tied = tied;
    }
    graph
}
