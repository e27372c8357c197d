//! Keys of `config.json` that change neither tensors nor caches, in any architecture.
//!
//! Keys that matter in some architectures are not here: a builder sets them aside where they do not.

/// Keys without effect on shapes: tokens, training, position encoding, numerics, file keeping.
const NEUTRAL: &[&str] = &[
    // read by every model alike
    "architectures",
    "dtype",
    "max_position_embeddings",
    "model_type",
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
    // numerics: same shapes, same operators
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
    "swiglu_limit",
    "topk_group",
    "topk_method",
    "n_group",
    // file keeping
    "_name_or_path",
    "auto_map",
    "id2label",
    "custom_pipelines",
    "is_llama_config",
    "label2id",
    "transformers.js_config",
    "transformers_version",
];

/// Whether `key` changes neither tensors nor caches. A leading `_` marks notes of whoever wrote the file.
pub fn is_neutral(key: &str) -> bool {
    key.starts_with('_') || NEUTRAL.contains(&key)
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
}
