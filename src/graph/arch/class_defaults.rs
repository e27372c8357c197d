//! Defaults of transformers model classes for missing keys.
//!
//! Source of every row: the class's `configuration_*.py` of transformers 5.23,
//! <https://github.com/huggingface/transformers/tree/v5.23.0/src/transformers/models>. Numbers that classes derive from
//! others are handled by the builders.

/// Keys with a default in a class.
type KeyDefaults = &'static [(&'static str, u64)];

/// Defaults for a whole file: only keys that older versions of the class did not write. A file without its widths is
/// more likely broken than intended.
pub fn of_file(model_type: &str) -> KeyDefaults {
    find(FILES, model_type)
}

/// Defaults for a section (`text_config`, `vision_config`): older versions of transformers omitted every key that
/// equals the class's default.
pub fn of_part(model_type: &str) -> KeyDefaults {
    find(PARTS, model_type)
}

fn find(table: &'static [(&'static str, KeyDefaults)], model_type: &str) -> KeyDefaults {
    table.iter().find(|(class, _)| *class == model_type).map_or(&[], |(_, defaults)| defaults)
}

/// `qwen2_5_vl_text`, and classes derived from it.
const QWEN2_5_VL_TEXT: KeyDefaults = &[
    ("vocab_size", 152_064),
    ("hidden_size", 8192),
    ("intermediate_size", 29568),
    ("num_hidden_layers", 80),
    ("num_attention_heads", 64),
    ("num_key_value_heads", 8),
];

/// `idefics3_vision`, and SmolVLM's class derived from it.
const IDEFICS3_VISION: KeyDefaults = &[
    ("hidden_size", 1152),
    ("intermediate_size", 3072),
    ("num_hidden_layers", 12),
    ("num_attention_heads", 16),
    ("image_size", 224),
    ("patch_size", 32),
];

/// `qwen3`, and classes derived from it.
const QWEN3: KeyDefaults = &[
    ("vocab_size", 151_936),
    ("hidden_size", 4096),
    ("intermediate_size", 22016),
    ("num_hidden_layers", 32),
    ("num_attention_heads", 32),
    ("num_key_value_heads", 32),
    ("head_dim", 128),
];

/// By `model_type` of the file.
static FILES: &[(&str, KeyDefaults)] = &[
    ("bamba", &[("num_key_value_heads", 8)]),
    ("dots1", &[("num_key_value_heads", 32)]),
    ("ernie4_5", &[("num_key_value_heads", 2), ("head_dim", 128)]),
    ("ernie4_5_moe", &[("num_key_value_heads", 4)]),
    ("exaone4", &[("num_key_value_heads", 32)]),
    ("falcon_h1", &[("num_key_value_heads", 8)]),
    ("gemma", &[("num_key_value_heads", 16), ("head_dim", 256)]),
    ("gemma2", &[("num_key_value_heads", 4), ("head_dim", 256)]),
    ("gemma3_text", &[("num_key_value_heads", 4), ("head_dim", 256)]),
    ("glm", &[("num_key_value_heads", 2), ("head_dim", 128)]),
    ("glm4", &[("num_key_value_heads", 2), ("head_dim", 128)]),
    ("glm4_moe", &[("num_key_value_heads", 8)]),
    ("gpt_oss", &[("head_dim", 64), ("num_key_value_heads", 8)]),
    ("helium", &[("num_key_value_heads", 20)]),
    ("jamba", &[("num_key_value_heads", 8)]),
    ("lfm2", &[("num_key_value_heads", 8)]),
    ("lfm2_moe", &[("num_key_value_heads", 8)]),
    ("ministral3", &[("num_key_value_heads", 8), ("head_dim", 128)]),
    ("mistral", &[("num_key_value_heads", 8)]),
    ("mixtral", &[("num_key_value_heads", 8)]),
    ("phimoe", &[("num_key_value_heads", 8)]),
    ("qwen2", &[("num_key_value_heads", 32)]),
    ("qwen2_moe", &[("num_key_value_heads", 16)]),
    ("qwen3", &[("num_key_value_heads", 32), ("head_dim", 128)]),
    ("qwen3_moe", &[("num_key_value_heads", 4)]),
    ("seed_oss", &[("num_key_value_heads", 8), ("head_dim", 128)]),
    ("solar_open", &[("num_key_value_heads", 8), ("head_dim", 128)]),
    ("smollm3", &[("num_key_value_heads", 4)]),
    ("stablelm", &[("num_key_value_heads", 32)]),
    ("starcoder2", &[("num_key_value_heads", 2)]),
];

/// By `model_type` of the section.
static PARTS: &[(&str, KeyDefaults)] = &[
    (
        "clip_vision_model",
        &[
            ("hidden_size", 768),
            ("intermediate_size", 3072),
            ("num_hidden_layers", 12),
            ("num_attention_heads", 12),
            ("image_size", 224),
            ("patch_size", 32),
        ],
    ),
    (
        "gemma",
        &[
            ("vocab_size", 256_000),
            ("hidden_size", 3072),
            ("intermediate_size", 24576),
            ("num_hidden_layers", 28),
            ("num_attention_heads", 16),
            ("num_key_value_heads", 16),
            ("head_dim", 256),
        ],
    ),
    (
        "gemma2",
        &[
            ("vocab_size", 256_000),
            ("hidden_size", 2304),
            ("intermediate_size", 9216),
            ("num_hidden_layers", 26),
            ("num_attention_heads", 8),
            ("num_key_value_heads", 4),
            ("head_dim", 256),
        ],
    ),
    (
        "gemma3_text",
        &[
            ("vocab_size", 262_208),
            ("hidden_size", 2304),
            ("intermediate_size", 9216),
            ("num_hidden_layers", 26),
            ("num_attention_heads", 8),
            ("num_key_value_heads", 4),
            ("head_dim", 256),
        ],
    ),
    (
        "glm4v_text",
        &[
            ("vocab_size", 151_552),
            ("hidden_size", 4096),
            ("intermediate_size", 13696),
            ("num_hidden_layers", 40),
            ("num_attention_heads", 32),
            ("num_key_value_heads", 2),
        ],
    ),
    ("idefics3_vision", IDEFICS3_VISION),
    (
        "kimi_k25_vision",
        &[
            ("hidden_size", 1152),
            ("intermediate_size", 4304),
            ("num_hidden_layers", 27),
            ("num_attention_heads", 16),
            ("patch_size", 14),
            ("pos_emb_height", 64),
            ("pos_emb_width", 64),
        ],
    ),
    (
        "llama",
        &[
            ("vocab_size", 32000),
            ("hidden_size", 4096),
            ("intermediate_size", 11008),
            ("num_hidden_layers", 32),
            ("num_attention_heads", 32),
        ],
    ),
    (
        "llama4_text",
        &[
            ("vocab_size", 202_048),
            ("hidden_size", 5120),
            ("intermediate_size", 8192),
            ("intermediate_size_mlp", 16384),
            ("num_hidden_layers", 48),
            ("num_attention_heads", 40),
            ("num_key_value_heads", 8),
            ("head_dim", 128),
            ("num_experts_per_tok", 1),
            ("num_local_experts", 16),
            ("interleave_moe_layer_step", 1),
        ],
    ),
    (
        "llama4_vision_model",
        &[
            ("hidden_size", 768),
            ("num_hidden_layers", 34),
            ("num_attention_heads", 16),
            ("intermediate_size", 5632),
            ("vision_output_dim", 7680),
            ("image_size", 448),
            ("patch_size", 14),
            ("projector_input_dim", 4096),
            ("projector_output_dim", 4096),
        ],
    ),
    (
        "minimax_m3_vl_text",
        &[
            ("vocab_size", 200_064),
            ("hidden_size", 6144),
            ("intermediate_size", 3072),
            ("num_hidden_layers", 60),
            ("num_attention_heads", 64),
            ("num_key_value_heads", 4),
            ("head_dim", 128),
            ("num_experts_per_tok", 4),
            ("num_local_experts", 128),
            ("dense_intermediate_size", 12288),
            ("shared_intermediate_size", 3072),
        ],
    ),
    (
        "ministral3",
        &[
            ("vocab_size", 131_072),
            ("hidden_size", 4096),
            ("intermediate_size", 14336),
            ("num_hidden_layers", 34),
            ("num_attention_heads", 32),
            ("num_key_value_heads", 8),
            ("head_dim", 128),
        ],
    ),
    (
        "mistral",
        &[
            ("vocab_size", 32000),
            ("hidden_size", 4096),
            ("intermediate_size", 14336),
            ("num_hidden_layers", 32),
            ("num_attention_heads", 32),
            ("num_key_value_heads", 8),
        ],
    ),
    (
        "mllama_text_model",
        &[
            ("vocab_size", 128_256),
            ("hidden_size", 4096),
            ("num_hidden_layers", 40),
            ("num_attention_heads", 32),
            ("num_key_value_heads", 8),
            ("intermediate_size", 14336),
        ],
    ),
    (
        "mllama_vision_model",
        &[
            ("hidden_size", 1280),
            ("num_hidden_layers", 32),
            ("num_global_layers", 8),
            ("attention_heads", 16),
            ("intermediate_size", 5120),
            ("vision_output_dim", 7680),
            ("image_size", 448),
            ("patch_size", 14),
        ],
    ),
    (
        "pixtral",
        &[
            ("hidden_size", 1024),
            ("intermediate_size", 4096),
            ("num_hidden_layers", 24),
            ("num_attention_heads", 16),
            ("image_size", 1024),
            ("patch_size", 16),
        ],
    ),
    (
        "qwen2",
        &[
            ("vocab_size", 151_936),
            ("hidden_size", 4096),
            ("intermediate_size", 22016),
            ("num_hidden_layers", 32),
            ("num_attention_heads", 32),
            ("num_key_value_heads", 32),
        ],
    ),
    ("qwen2_5_vl_text", QWEN2_5_VL_TEXT),
    ("qwen2_5_vl_vision", &[("hidden_size", 3584)]),
    ("qwen2_vl_text", QWEN2_5_VL_TEXT),
    ("qwen2_vl_vision", &[("hidden_size", 3584)]),
    ("qwen3", QWEN3),
    (
        "qwen3_5_moe_text",
        &[
            ("vocab_size", 248_320),
            ("hidden_size", 2048),
            ("num_hidden_layers", 40),
            ("num_attention_heads", 16),
            ("num_key_value_heads", 2),
            ("head_dim", 256),
            ("linear_conv_kernel_dim", 4),
            ("linear_key_head_dim", 128),
            ("linear_value_head_dim", 128),
            ("linear_num_key_heads", 16),
            ("linear_num_value_heads", 32),
            ("moe_intermediate_size", 512),
            ("shared_expert_intermediate_size", 512),
            ("num_experts_per_tok", 8),
            ("num_experts", 256),
        ],
    ),
    (
        "qwen3_5_text",
        &[
            ("vocab_size", 248_320),
            ("hidden_size", 4096),
            ("intermediate_size", 12288),
            ("num_hidden_layers", 32),
            ("num_attention_heads", 16),
            ("num_key_value_heads", 4),
            ("head_dim", 256),
            ("linear_conv_kernel_dim", 4),
            ("linear_key_head_dim", 128),
            ("linear_value_head_dim", 128),
            ("linear_num_key_heads", 16),
            ("linear_num_value_heads", 32),
        ],
    ),
    (
        "qwen3_vl_moe_text",
        &[
            ("vocab_size", 151_936),
            ("hidden_size", 2048),
            ("intermediate_size", 5632),
            ("num_hidden_layers", 24),
            ("num_attention_heads", 16),
            ("num_key_value_heads", 16),
            ("moe_intermediate_size", 1408),
            ("num_experts_per_tok", 4),
            ("num_experts", 60),
        ],
    ),
    ("qwen3_vl_text", QWEN3),
    (
        "siglip_vision_model",
        &[
            ("hidden_size", 768),
            ("intermediate_size", 3072),
            ("num_hidden_layers", 12),
            ("num_attention_heads", 12),
            ("image_size", 224),
            ("patch_size", 16),
        ],
    ),
    ("smolvlm_vision", IDEFICS3_VISION),
];
