//! InternVL: InternViT with a language model of another family.
//!
//! Independent of how an image is divided into tiles.

use serde_json::json;

use super::vision::intern::{CHAT, Dialect, HUGGING_FACE, QIANFAN, tower};
use super::wrapper::{self, INSIDE_MODEL, WrapperPaths, inside, language, vision, wrap};
use crate::graph::arch::class_keys::ignored;
use crate::graph::image_processor::ImageProcessor;
use crate::graph::model::ModelGraph;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Language models that InternViT feeds.
const LANGUAGES: &[&str] = &["gpt_oss", "internlm2", "llama", "phi3", "qwen2", "qwen3", "qwen3_moe"];

/// Location of the language model in the checkpoints' own code.
const PLACE: WrapperPaths =
    WrapperPaths { model: "language_model.model", head: "language_model.lm_head", others: "language_model." };

/// `internvl`, in the format of transformers.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    of(keys, "qwen2", ("internvl_vision", &HUGGING_FACE))
}

/// `qianfan_ocr`: the same before Qwen3.
pub fn build_qianfan(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    of(keys, "qwen3", ("qianfan_ocr_vision", &QIANFAN))
}

fn of(
    keys: &Keys<'_>,
    class: &str,
    (encoder, dialect): (&str, &'static Dialect),
) -> Result<ModelGraph, Error> {
    half(keys)?;
    let graph = inside(keys, class, |text| language(text, LANGUAGES))?;
    let tower = tower(&vision(keys, encoder)?, graph.hidden, dialect, Some(PROCESSOR_TILES))?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `internvl_chat`: the keys and tensor names of the checkpoints' own code (InternVL 1.5 to 3.5).
pub fn build_chat(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    wrapper::set_prompt_aside(keys);
    // Image tiling, prompt templates, and copies of language-model keys.
    keys.set_aside(ignored("internvl_chat"));
    half(keys)?;
    keys.only("select_layer", &json!(-1))?;
    let inside = keys.section("llm_config")?;
    let graph = language(&inside, LANGUAGES)?;
    let mut tower = tower(&vision(keys, "")?, graph.hidden, &CHAT, tiles(keys)?)?;
    if keys.flag("dynamic_image_size", false)? && !keys.flag("use_thumbnail", false)? {
        tower.image_processor = ImageProcessor::Unknown;
    }
    Ok(wrap(graph, PLACE, vec![tower]))
}

/// Maximum number of tiles in the processor's defaults (`max_patches` of `InternVLProcessor`'s image processor).
const PROCESSOR_TILES: Count = Count::class_default("max_patches", 12);

/// Upper bound on the number of tiles.
const MOST_TILES: u64 = 1_000;

/// Maximum number of tiles; `None` if an image is always one tile.
fn tiles(keys: &Keys<'_>) -> Result<Option<Count>, Error> {
    let most = keys.count_or("max_dynamic_patch", 6)?;
    if most.value > MOST_TILES {
        let fix = "copy the value from the model's config.json";
        return Err(Error::new(
            "max_dynamic_patch",
            most.value.to_string(),
            format!("1 to {MOST_TILES}"),
            fix,
        ));
    }
    Ok(keys.flag("dynamic_image_size", false)?.then_some(most))
}

/// Merges 2 × 2 neighbours.
fn half(keys: &Keys<'_>) -> Result<(), Error> {
    keys.only("downsample_ratio", &serde_json::from_str("0.5").expect("a number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::model::ModelConfig;

    /// InternVL2-8B, <https://huggingface.co/OpenGVLab/InternVL2-8B>: its parts computed by hand.
    #[test]
    fn internvl2_8b_by_hand() {
        let text = r#"{"model_type": "internvl_chat", "downsample_ratio": 0.5, "force_image_size": 448,
            "select_layer": -1, "template": "internlm2-chat", "llm_config": {"model_type": "internlm2",
            "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
            "num_key_value_heads": 8, "vocab_size": 92553, "bias": false, "tie_word_embeddings": false},
            "vision_config": {"model_type": "intern_vit_6b", "hidden_size": 1024, "image_size": 448,
            "intermediate_size": 4096, "norm_type": "layer_norm", "num_attention_heads": 16,
            "num_hidden_layers": 24, "patch_size": 14, "qk_normalization": false, "qkv_bias": true}}"#;
        let graph = ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap();
        let stem = 1024 * 3 * 14 * 14 + 1024 + 1024 + 1025 * 1024;
        let layer = 4 * 1024 * 1024 + 4 * 1024 + 2 * 1024 * 4096 + 4096 + 1024 + 4 * 1024 + 2 * 1024;
        let projector = 2 * 4096 + 2 * (4096 * 4096 + 4096);
        assert_eq!(graph.parameters().towers, stem + 24 * layer + projector);
        let language =
            2 * 92_553 * 4096 + 4096 + 32 * ((4096 + 2 * 1024 + 4096 + 3 * 14_336) * 4096 + 2 * 4096);
        assert_eq!(graph.parameters().unique, language + stem + 24 * layer + projector);
        assert!(graph.tensors().iter().any(|tensor| tensor.name == "language_model.output.weight"));
    }
}
