//! Keys of `config.json` that change neither tensors nor caches, in any architecture.
//!
//! Keys that matter in some architectures are not here: the builders of the others set them aside.

use serde_json::Value;

/// Keys without effect on shapes: tokens, training, position encoding, numerics, file keeping.
const NEUTRAL: &[&str] = &[
    // read by every model in the same way
    "architectures",
    "dtype",
    "max_position_embeddings",
    "model_type",
    "quantization",
    "quantization_config",
    "compression_config",
    "torch_dtype",
    // tokens and generation
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "sep_token_id",
    "forced_eos_token_id",
    "do_sample",
    "max_length",
    "max_sequence_length",
    "initial_context_length",
    "temperature",
    "top_p",
    "use_cache",
    "cache_implementation",
    "prefix",
    "task_specific_params",
    "tokenizer_class",
    "unk_token_id",
    "bos_token",
    "eos_token",
    "pad_token",
    "chat_template",
    "max_new_tokens",
    "model_max_length",
    "tokenizer_model_max_length",
    "tokenizer_padding_side",
    "tokenizer_name",
    // keys that transformers 4 wrote into every file
    "bad_words_ids",
    "begin_suppress_tokens",
    "chunk_size_feed_forward",
    "decoder_start_token_id",
    "diversity_penalty",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "is_composition",
    "is_decoder",
    "length_penalty",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_scores",
    "problem_type",
    "pruned_heads",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "suppress_tokens",
    "top_k",
    "torchscript",
    "typical_p",
    "use_bfloat16",
    // training
    "attention_dropout",
    "activation_dropout",
    "attention_probs_dropout_prob",
    "attn_dropout_prob",
    "attn_pdrop",
    "classifier_dropout",
    "dropout",
    "emb_dropout_prob",
    "emb_pdrop",
    "embed_dropout",
    "init_std",
    "layerdrop",
    "resid_dropout",
    "z_loss_weight",
    "aux_loss_alpha",
    "embd_pdrop",
    "ep_size",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "initializer_range",
    "pretraining_tp",
    "resid_pdrop",
    "residual_dropout",
    "embedding_dropout",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "selective_checkpoint_enabled",
    "seq_aux",
    "sequence_parallel_enabled",
    "neftune_noise_alpha",
    "unsloth_fixed",
    "unsloth_version",
    // which kernels compute attention
    "attn_impl",
    "attn_implementation",
    "flash_attn",
    "flash_attention",
    "use_flash_attention",
    "use_flash_attention_2",
    "use_flash_attn",
    // position encoding
    "full_attn_mod",
    "interpolate_factor",
    "original_max_position_embeddings",
    "partial_rotary_factor",
    "rope_interleave",
    "rope_interleaved",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "rope_local_base_freq",
    "rope_ratio",
    "rotary_emb_base",
    "rotary_pct",
    "rotary_dim",
    // number of tokens per image or video in a processor: an input of the traffic, not of the model
    "image_seq_length",
    "video_seq_length",
    // numerics: same shapes, same operators
    "output_gate_type",
    "activation",
    "activation_function",
    "attention_multiplier",
    "attn_logit_softcapping",
    "clip_qkv",
    "dim_model_base",
    "embedding_multiplier",
    "final_logit_softcapping",
    "hidden_act",
    "hidden_activation",
    "layernorm_epsilon",
    "logit_scale",
    "logits_scaling",
    "norm_eps",
    "query_pre_attn_scalar",
    "residual_multiplier",
    "scale_attn_weights",
    "scale_depth",
    "scale_emb",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "norm_epsilon",
    "norm_topk_prob",
    "output_router_logits",
    "rms_norm_eps",
    "routed_scaling_factor",
    "scoring_func",
    "swiglu_alpha",
    "swiglu_limit",
    "topk_group",
    "topk_method",
    "n_group",
    // file keeping
    "_name_or_path",
    "auto_map",
    "id2label",
    "custom_pipelines",
    "for_llm_compressor",
    "license",
    "model_name",
    "mergekit_config",
    "is_llama_config",
    "label2id",
    "transformers.js_config",
    "transformers_version",
];

/// Whether `key` changes neither tensors nor caches. A leading `_` marks a note of the file's author.
pub fn is_neutral(key: &str) -> bool {
    key.starts_with('_') || NEUTRAL.contains(&key)
}

/// Words of keys about tensors, caches and operators: the features of known architectures.
const SHAPING: &[&str] = &[
    "adapter",
    "alibi",
    "attention",
    "attn",
    "audio",
    "bias",
    "block",
    "blocks",
    "bottleneck",
    "cache",
    "channel",
    "channels",
    "chunk",
    "compress",
    "compression",
    "config",
    "conv",
    "cross",
    "d",
    "decoder",
    "delta",
    "dense",
    "depth",
    "dilation",
    "dim",
    "dims",
    "draft",
    "dtype",
    "eagle",
    "embed",
    "embedding",
    "embeddings",
    "encoder",
    "engram",
    "every",
    "exit",
    "exits",
    "expansion",
    "expert",
    "experts",
    "ff",
    "ffn",
    "freq",
    "gate",
    "gated",
    "gates",
    "gating",
    "global",
    "glu",
    "gqa",
    "group",
    "groups",
    "hash",
    "head",
    "heads",
    "hidden",
    "hybrid",
    "hyper",
    "indexer",
    "inner",
    "intermediate",
    "interval",
    "k",
    "kernel",
    "key",
    "kv",
    "latent",
    "layer",
    "layernorm",
    "layers",
    "linear",
    "ln",
    "local",
    "loop",
    "loops",
    "lora",
    "lru",
    "mamba",
    "medusa",
    "memory",
    "merge",
    "mixer",
    "mixture",
    "mla",
    "mlp",
    "mode",
    "moe",
    "mqa",
    "mtp",
    "multi",
    "multiquery",
    "n",
    "nextn",
    "ngram",
    "nope",
    "norm",
    "num",
    "outer",
    "parallel",
    "patch",
    "pattern",
    "perceiver",
    "period",
    "pool",
    "pooling",
    "proj",
    "projection",
    "projector",
    "q",
    "qk",
    "qkv",
    "quantization",
    "query",
    "rank",
    "ratio",
    "recurrence",
    "recurrent",
    "resampler",
    "residual",
    "retrieval",
    "rmsnorm",
    "rnn",
    "route",
    "routed",
    "router",
    "routing",
    "rwkv",
    "scan",
    "selective",
    "share",
    "shared",
    "shift",
    "sink",
    "sinks",
    "size",
    "skip",
    "sliding",
    "sparse",
    "speculative",
    "ssd",
    "ssm",
    "stage",
    "state",
    "stream",
    "streams",
    "stride",
    "swa",
    "swiglu",
    "tie",
    "tied",
    "top",
    "topk",
    "tower",
    "towers",
    "type",
    "types",
    "use",
    "v",
    "value",
    "vision",
    "visual",
    "vocab",
    "width",
    "window",
];

/// Words of keys that weigh a loss, whatever feature it is about: a loss has no part in inference.
const WEIGHTS_OF_LOSSES: &[&str] = &["alpha", "coef", "coefficient", "weight"];

/// Whether an unknown key could change tensors, caches or operators: it, or a key of an object in it, has a word of a
/// known feature of architectures. `my_company_tag` has none, and `router_z_loss_coef` weighs a loss of training.
pub fn could_change_model(key: &str, value: &Value) -> bool {
    let inside = match value {
        Value::Object(keys) => keys.iter().any(|(key, value)| could_change_model(key, value)),
        Value::Array(values) => values.iter().any(|value| could_change_model("", value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    let words = words(key);
    let any = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    inside || any(SHAPING) && !(any(&["loss"]) && any(WEIGHTS_OF_LOSSES))
}

/// Words of a key in lower case: `numExperts_2` has `num` and `experts`.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for c in key.chars() {
        if !c.is_alphabetic() || (lower && c.is_uppercase()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphabetic(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        lower = c.is_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shapes_the_model_is_not_neutral() {
        for key in [
            "hidden_size",
            "head_dim",
            "sliding_window",
            "q_lora_rank",
            "use_sliding_window",
            "tie_word_embeddings",
        ] {
            assert!(!is_neutral(key), "{key}");
        }
        assert!(is_neutral("rope_theta") && is_neutral("_provenance"));
    }

    #[test]
    fn a_key_with_a_word_of_a_feature_could_change_the_model() {
        let one = Value::from(1);
        for key in ["video_token_id", "training_seed", "router2", "model_version", "my_company_tag", "foo"] {
            assert_eq!(could_change_model(key, &one), key == "router2", "{key}");
        }
        for key in
            ["hyper", "num_experts_2", "expert_dropout", "path_layers", "numExperts", "use_loss", "conv1d"]
        {
            assert!(could_change_model(key, &one), "{key}");
        }
        assert!(could_change_model("training", &serde_json::json!({"depth": 3})));
        assert!(could_change_model("training", &serde_json::json!([{"depth": 3}])));
        assert!(!could_change_model("training", &serde_json::json!([{"note": {"seed": 3}}])));
    }
}
