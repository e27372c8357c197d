//! Configuration switches that some model classes read and others ignore.
//!
//! Source: the keys that the `configuration_*.py` and `modeling_*.py` of each class mention in transformers 5.23,
//! <https://github.com/huggingface/transformers/tree/v5.23.0/src/transformers/models>. Classes in checkpoints are not
//! covered: for a file with `auto_map`, the switches are read or the file is rejected.

use crate::spec::model::keys::Keys;

/// The switches, and the classes that read them.
static SWITCHES: &[(&str, &str)] = &[
    (
        "attention_bias",
        "apertus arcee bamba cohere cohere2 dots1 falcon_h1 gemma gemma2 gemma3_text gemma3n_text \
         gemma4_text glm glm4 glm4_moe gpt_neox gpt_oss granite granitemoe granitemoehybrid \
         granitemoeshared helium hunyuan_v1_dense hunyuan_v1_moe llama llama4_text nemotron olmo \
         olmo2 olmo3 olmoe phimoe qwen3 qwen3_moe qwen3_next recurrent_gemma seed_oss smollm3",
    ),
    ("lm_head_bias", "phimoe"),
    ("max_window_layers", "dots1 qwen2 qwen2_moe qwen3"),
    ("mlp_bias", "arcee bamba falcon_h1 granite helium llama nemotron nemotron_h seed_oss smollm3"),
    ("qk_layernorm", "persimmon phi stablelm"),
    ("qk_norm", "llama4_text"),
    ("qkv_bias", "qwen2_moe"),
    (
        "sliding_window",
        "cohere2 dots1 exaone4 gemma2 gemma3_text gemma3n_text gemma4_text gpt_oss ministral3 mistral \
         mixtral olmo3 olmoe phi3 phimoe qwen2 qwen2_moe qwen3 qwen3_moe recurrent_gemma smollm3 \
         starcoder2",
    ),
    (
        "use_bias",
        "bamba ernie4_5 ernie4_5_moe falcon_h1 falcon_mamba granitemoehybrid jamba mamba mamba2 nemotron_h \
         starcoder2",
    ),
    ("use_parallel_residual", "gpt_neox stablelm"),
    ("use_qk_norm", "cohere glm4_moe llama4_text"),
    ("use_qkv_bias", "stablelm"),
    ("use_sliding_window", "qwen2 qwen2_moe qwen3 qwen3_moe smollm3"),
];

/// The classes covered.
static SEARCHED: &str = "apertus arcee bamba bloom codegen cohere cohere2 dots1 ernie4_5 ernie4_5_moe exaone4 falcon \
         falcon_h1 falcon_mamba gemma gemma2 gemma3_text gemma3n_text gemma4_text glm glm4 glm4_moe gpt2 \
         gpt_bigcode gpt_neo gpt_neox gpt_oss gptj granite granitemoe granitemoehybrid granitemoeshared \
         helium hunyuan_v1_dense hunyuan_v1_moe jamba lfm2 lfm2_moe llama llama4_text mamba mamba2 \
         ministral3 mistral mixtral nemotron nemotron_h olmo olmo2 olmo3 olmoe opt persimmon phi phi3 \
         phimoe qwen2 qwen2_moe qwen3 qwen3_moe qwen3_next recurrent_gemma seed_oss smollm3 stablelm \
         starcoder2";

/// Marks the switches that the class of `model_type` ignores as read.
pub fn set_aside(keys: &Keys<'_>, model_type: &str) {
    if !among(SEARCHED, model_type) || keys.has("auto_map") {
        return;
    }
    for (switch, _) in SWITCHES.iter().filter(|(_, readers)| !among(readers, model_type)) {
        keys.set_aside(&[switch]);
    }
}

fn among(classes: &str, model_type: &str) -> bool {
    classes.split(' ').any(|class| class == model_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    const KEYS: &str = r#""hidden_size": 6, "num_hidden_layers": 2, "vocab_size": 11, "num_attention_heads": 3,
        "num_key_value_heads": 1, "head_dim": 2, "intermediate_size": 10, "mlp_bias": true"#;

    fn unique(model_type: &str, more: &str) -> Option<u64> {
        // Each key once.
        let keys = if more.contains("mlp_bias") {
            KEYS.replace(r#", "mlp_bias": true"#, "")
        } else {
            KEYS.to_owned()
        };
        let config =
            ModelConfig::parse(&format!(r#"{{"model_type": "{model_type}", {keys} {more}}}"#)).unwrap();
        ModelGraph::build(&config).ok().map(|graph| graph.parameters().unique)
    }

    #[test]
    fn a_switch_that_the_class_passes_over_changes_nothing_and_one_that_it_reads_does() {
        let plain = 2 * (10 + 10 + 6);
        assert_eq!(unique("llama", ""), unique("llama", r#", "mlp_bias": false"#).map(|count| count + plain));
        assert_eq!(unique("gemma", ""), unique("gemma", r#", "mlp_bias": false"#));
    }

    #[test]
    fn a_reader_is_a_class_that_was_searched_and_is_understood() {
        use crate::graph::arch::ARCHITECTURES;
        let understood = |class: &str| ARCHITECTURES.iter().any(|known| known.model_type == class);
        assert!(SEARCHED.split(' ').all(understood));
        let mut readers = SWITCHES.iter().flat_map(|(_, readers)| readers.split(' '));
        assert!(readers.all(|reader| among(SEARCHED, reader)));
    }

    #[test]
    fn code_that_comes_with_a_checkpoint_may_read_any_switch() {
        assert_eq!(unique("gemma", r#", "auto_map": {"AutoConfig": "own.Config"}"#), None);
    }
}
