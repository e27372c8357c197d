//! What has misled other readers of `config.json`: each by name, and what is said of it here.
//!
//! Numbers of shipped models are published totals and the counts of transformers 5.23 that explain them; numbers of
//! small models (`WIDTHS`: 4 layers, 4 heads, width 16, 64 tokens) are worked out by hand.

use mantile::graph::cache::Cache;
use mantile::graph::checkpoint::Checkpoint;
use mantile::graph::model::Block;
use mantile::report::inspect::total::Reconciliation;
use mantile::spec::model::file::PublishedTotal;

use super::traps::WIDTHS;
use super::*;

/// The configuration that a trap lies in.
enum Of {
    /// Keys beside [`WIDTHS`], which these overrule.
    Keys(&'static str),
    /// A shipped model.
    Model(&'static str),
}
use Of::{Keys, Model};

/// What is said of it.
enum Says {
    Unique(u64),
    Active(u64),
    Buffers(u64),
    Mtp(u64),
    MtpCopies(u64),
    Towers(std::ops::RangeInclusive<u64>),
    Scales(u64),
    /// This published total is the sum of counts, that of this name among them.
    Explained(u64, &'static str),
    Tied(bool),
    Layers(u64),
    /// Elements that a token adds to caches without limit.
    Growing(u64),
    /// Bytes of cache per token where all grow.
    KvBytes(u64),
    /// Elements that a token adds to the indexers' caches.
    IndexKeys(u64),
    /// Bytes of state per sequence.
    State(u64),
    Windowed(u64),
    Shape(&'static str, &'static [u64]),
    Without(&'static str),
    Format(Option<&'static str>),
    Context(u64),
    Refused(&'static str),
}
use Says::*;

/// K-EXAONE-236B-A23B, <https://huggingface.co/LGAI-EXAONE/K-EXAONE-236B-A23B>.
const K_EXAONE: &str = r#""model_type": "exaone_moe", "vocab_size": 153600, "hidden_size": 6144,
    "intermediate_size": 18432, "num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 8,
    "head_dim": 128, "sliding_window": 128, "sliding_window_pattern": "LLLG", "first_k_dense_replace": 1,
    "moe_intermediate_size": 2048, "num_experts": 128, "num_experts_per_tok": 8, "num_shared_experts": 1,
    "num_nextn_predict_layers": 1, "tie_word_embeddings": false"#;

/// Trinity-Mini, <https://huggingface.co/arcee-ai/Trinity-Mini>.
const TRINITY: &str = r#""model_type": "afmoe", "vocab_size": 200192, "hidden_size": 2048,
    "intermediate_size": 6144, "moe_intermediate_size": 1024, "num_hidden_layers": 32, "num_dense_layers": 2,
    "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "sliding_window": 2048,
    "global_attn_every_n_layers": 4, "num_experts": 128, "num_experts_per_tok": 8, "num_shared_experts": 1,
    "route_scale": 2.826, "score_func": "sigmoid", "mup_enabled": true, "tie_word_embeddings": false"#;

const LLAMA: &str = r#""model_type": "llama", "intermediate_size": 32"#;

#[rustfmt::skip]
const TRAPS: &[(&str, Of, Says)] = &[
    // Which total
    ("unique parameters, buffers and MTP apart", Model("deepseek-ai--DeepSeek-V3"), Unique(671_026_404_352)),
    ("persistent buffers", Model("deepseek-ai--DeepSeek-V3"), Buffers(58 * 256)),
    ("MTP weights", Model("deepseek-ai--DeepSeek-V3"), Mtp(11_610_068_224)),
    ("MTP's copies of embedding and head", Model("deepseek-ai--DeepSeek-V3"), MtpCopies(2 * 926_679_040)),
    ("block-scale tensors of FP8", Model("deepseek-ai--DeepSeek-V3"), Scales(41_540_496)),
    ("stored copy of the tied lm_head", Model("Qwen--Qwen3-0.6B"), Explained(751_632_384, "copy of the tied head")),
    ("legacy buffers saved as tensors", Model("meta-llama--Llama-2-7b-hf"), Unique(6_738_415_616)),
    ("packed low-bit tensors", Keys(r#""model_type": "llama", "intermediate_size": 32,
        "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}"#),
        Unique(2 * 64 * 16 + 4 * (4 * 16 * 16 + 3 * 16 * 32 + 2 * 16) + 16)),
    ("unused K/V projections of layers that share", Model("google--gemma-3n-E4B-it"),
        Without("model.language_model.layers.34.self_attn.k_proj.weight")),
    ("lm_head absent", Keys(r#""model_type": "mistral", "architectures": ["MistralModel"],
        "num_key_value_heads": 4, "intermediate_size": 32"#), Without("lm_head.weight")),
    ("a classifier is no base model", Keys(r#""model_type": "mistral",
        "architectures": ["MistralForSequenceClassification"]"#), Refused("architectures")),
    // Where the numbers live
    ("nested configs", Model("google--gemma-3-27b-it"), Unique(27_432_406_640)),
    ("nested configs with missing keys", Keys(r#""model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
        "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024},
        "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 896,
        "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14,
        "vision_use_head": false}"#), Unique(4_300_079_472)),
    ("a wrapper's missing vision_config", Keys(r#""model_type": "llava", "text_config": {"model_type": "llama"}"#),
        Refused("vision_config")),
    ("other key dialects", Keys(r#""model_type": "bloom", "n_layer": 2, "num_hidden_layers": 2, "n_embed": 16"#), Layers(2)),
    ("no num_hidden_layers", Model("nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16"), Layers(108)),
    ("layer strings", Model("nvidia--Nemotron-H-8B-Base-8K"), Growing(4 * 2 * 8 * 128)),
    ("list lengths exceed depth", Model("deepseek-ai--DeepSeek-V4-Flash"), Layers(43)),
    ("dtype key", Keys(r#""model_type": "llama", "intermediate_size": 32, "dtype": "bfloat16""#), Format(Some("bf16"))),
    ("quantization_config wins over dtype", Keys(r#""model_type": "llama", "intermediate_size": 32, "dtype": "bfloat16",
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}"#), Format(Some("fp8-block"))),
    ("rope key", Keys(r#""model_type": "llama", "intermediate_size": 32,
        "rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}"#), Layers(4)),
    ("code of its own behind auto_map", Keys(r#""model_type": "molmo", "auto_map": {"AutoConfig": "own.Config"}"#),
        Refused("model_type")),
    ("intermediate_size of experts", Keys(r#""model_type": "mixtral", "intermediate_size": 32, "num_local_experts": 3,
        "num_experts_per_tok": 2, "num_key_value_heads": 2"#),
        Shape("model.layers.0.mlp.experts.gate_up_proj", &[3, 64, 16])),
    ("intermediate_size twice the width", Keys(r#""model_type": "qwen", "kv_channels": 4, "intermediate_size": 48"#),
        Shape("transformer.h.0.mlp.w1.weight", &[24, 16])),
    ("intermediate_size that no tensor uses", Model("Qwen--Qwen3-30B-A3B"), Unique(30_532_122_624)),
    ("no intermediate_size at all", Model("Qwen--Qwen3.5-35B-A3B"),
        Without("model.language_model.layers.0.mlp.gate_proj.weight")),
    // Embeddings, head, vocabulary
    ("tied by class where the key is absent", Keys(r#""model_type": "gemma", "intermediate_size": 32, "num_key_value_heads": 4"#), Tied(true)),
    ("not tied by class where the key is absent", Keys(LLAMA), Tied(false)),
    ("lm_head bias", Keys(r#""model_type": "phi", "intermediate_size": 32"#), Shape("lm_head.bias", &[64])),
    ("padding: more rows than the head has", Model("meta-llama--Llama-3.2-11B-Vision-Instruct"),
        Shape("model.language_model.embed_tokens.weight", &[128_264, 4096])),
    ("padding: learned positions begin at 2", Keys(r#""model_type": "opt", "ffn_dim": 32, "max_position_embeddings": 8"#),
        Shape("model.decoder.embed_positions.weight", &[10, 16])),
    ("per-layer embeddings", Model("google--gemma-3n-E4B-it"),
        Shape("model.language_model.embed_tokens_per_layer.weight", &[262_144, 35 * 256])),
    ("OPT-350m's embedding narrower than the stream", Keys(r#""model_type": "opt", "ffn_dim": 32, "word_embed_proj_dim": 8,
        "max_position_embeddings": 8, "do_layer_norm_before": false"#), Shape("model.decoder.project_in.weight", &[16, 8])),
    // Attention
    ("head_dim explicit", Keys(r#""model_type": "qwen3", "intermediate_size": 32, "num_key_value_heads": 2, "head_dim": 32"#),
        Shape("model.layers.0.self_attn.o_proj.weight", &[16, 128])),
    ("head_dim lies for MLA", Model("zai-org--GLM-5"), KvBytes(78 * 2 * (512 + 64))),
    ("num_key_value_heads absent", Keys(r#""model_type": "falcon""#), Growing(4 * 2 * 4)),
    ("multi_query that does not mean MQA", Keys(r#""model_type": "falcon", "multi_query": true,
        "new_decoder_architecture": true, "num_kv_heads": 2"#), Growing(4 * 2 * 2 * 4)),
    ("QKV bias by class", Keys(r#""model_type": "qwen2", "intermediate_size": 32, "num_key_value_heads": 2"#),
        Shape("model.layers.0.self_attn.k_proj.bias", &[8])),
    ("no bias on the output beside QKV's", Keys(r#""model_type": "qwen2", "intermediate_size": 32, "num_key_value_heads": 2"#),
        Without("model.layers.0.self_attn.o_proj.bias")),
    ("QK norm per head", Keys(r#""model_type": "qwen3", "intermediate_size": 32, "num_key_value_heads": 2, "head_dim": 8"#),
        Shape("model.layers.0.self_attn.q_norm.weight", &[8])),
    ("QK norm over the whole projection", Keys(r#""model_type": "olmo2", "intermediate_size": 32, "num_key_value_heads": 2"#),
        Shape("model.layers.0.self_attn.k_norm.weight", &[8])),
    ("gated attention", Model("Qwen--Qwen3-Coder-Next"), Shape("model.layers.3.self_attn.q_proj.weight", &[8192, 2048])),
    ("fused projections", Keys(r#""model_type": "phi3", "intermediate_size": 32, "num_key_value_heads": 2"#),
        Shape("model.layers.0.self_attn.qkv_proj.weight", &[32, 16])),
    ("MLA's cache", Model("deepseek-ai--DeepSeek-V3"), KvBytes(70_272)),
    ("MLA with q_lora_rank null", Model("deepseek-ai--DeepSeek-V2-Lite"),
        Shape("model.layers.0.self_attn.q_proj.weight", &[16 * 192, 2048])),
    ("DSA's second cache", Model("deepseek-ai--DeepSeek-V3.2"), IndexKeys(61 * 128)),
    ("indexers that layers share", Model("zai-org--GLM-5.2"), Without("model.layers.4.self_attn.indexer.wk.weight")),
    ("DeepSeek-V4's layers", Model("deepseek-ai--DeepSeek-V4-Flash"), Shape("model.layers.0.mlp.gate.tid2eid", &[129_280, 6])),
    ("sliding windows by class", Keys(r#""model_type": "gemma2", "intermediate_size": 32, "head_dim": 4,
        "num_key_value_heads": 4"#), Windowed(2 * 2 * 16)),
    ("sliding_window present but off", Keys(r#""model_type": "qwen2", "intermediate_size": 32, "num_key_value_heads": 4,
        "sliding_window": 7, "use_sliding_window": false, "max_window_layers": 2"#), Windowed(0)),
    ("sliding_window on for all layers", Keys(r#""model_type": "mistral", "intermediate_size": 32, "num_key_value_heads": 4,
        "sliding_window": 7"#), Windowed(4 * 2 * 16)),
    ("a pattern where 1 means sliding", Keys(r#""model_type": "mimo_v2_flash", "hybrid_layer_pattern": [0, 2, 1, 1]"#),
        Refused("hybrid_layer_pattern")),
    ("KV geometry varies by layer", Model("google--gemma-4-26B-A4B"), Growing(5 * 2 * 2 * 512)),
    ("KV sharing", Model("google--gemma-4-E2B-it"),
        Without("model.language_model.layers.15.self_attn.k_proj.weight")),
    ("sinks", Model("openai--gpt-oss-120b"), Shape("model.layers.0.self_attn.sinks", &[64])),
    ("sinks take no cache", Model("openai--gpt-oss-120b"), Growing(18 * 2 * 8 * 64)),
    ("cross-attention", Model("meta-llama--Llama-3.2-11B-Vision-Instruct"), Growing(32 * 2 * 8 * 128)),
    ("encoder and decoder", Keys(r#""model_type": "t5", "is_encoder_decoder": true"#), Refused("model_type")),
    ("partial rotary", Keys(r#""model_type": "llama", "intermediate_size": 32, "partial_rotary_factor": 0.5"#),
        Unique(2 * 64 * 16 + 4 * (4 * 16 * 16 + 3 * 16 * 32 + 2 * 16) + 16)),
    ("RoPE scaling does not lengthen the context", Keys(r#""model_type": "llama", "intermediate_size": 32,
        "max_position_embeddings": 163840, "rope_scaling": {"type": "yarn", "factor": 40}"#), Context(163_840)),
    // Networks and experts
    ("networks of two matrices", Keys(r#""model_type": "nemotron", "intermediate_size": 32, "num_key_value_heads": 4"#),
        Without("model.layers.0.mlp.gate_proj.weight")),
    ("attention and network side by side", Keys(r#""model_type": "cohere", "intermediate_size": 32"#),
        Without("model.layers.0.post_attention_layernorm.weight")),
    ("norm count", Keys(r#""model_type": "gemma2", "intermediate_size": 32, "num_key_value_heads": 4"#),
        Shape("model.layers.0.post_feedforward_layernorm.weight", &[16])),
    ("which layers have experts", Model("meta-llama--Llama-4-Maverick-17B-128E-Instruct"),
        Shape("language_model.model.layers.0.feed_forward.gate_proj.weight", &[16_384, 5120])),
    ("shared experts", Model("Qwen--Qwen1.5-MoE-A2.7B"), Shape("model.layers.0.mlp.shared_expert_gate.weight", &[1, 2048])),
    ("latent experts", Model("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-BF16"), Shape("model.layers.1.mixer.fc1_latent_proj.weight", &[1024, 4096])),
    ("router biases", Model("openai--gpt-oss-20b"), Shape("model.layers.0.mlp.router.bias", &[32])),
    ("top_k without the shared expert", Model("deepseek-ai--DeepSeek-V3"), Active(37_552_282_624)),
    ("class-default ghosts", Keys(r#""model_type": "nemotron_h", "hybrid_override_pattern": "M*-M", "mamba_num_heads": 4,
        "mamba_head_dim": 8, "n_groups": 2, "ssm_state_size": 4, "num_key_value_heads": 2, "head_dim": 4,
        "intermediate_size": 32, "use_bias": false, "mlp_bias": false, "attention_bias": false"#),
        Without("model.layers.2.mixer.gate.weight")),
    ("active parameters with the embedding", Model("openai--gpt-oss-120b"), Active(5_711_982_912)),
    // States
    ("Mamba-2's inner width is heads times head_dim", Model("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"),
        State(23 * ((4096 + 2 * 8 * 128) * 4 * 2 + 64 * 64 * 128 * 4))),
    ("only some layers keep a cache", Model("Qwen--Qwen3-Coder-Next"), KvBytes(24_576)),
    // Heterogeneous depth
    ("layers without attention or with other widths", Model("nvidia--Llama-3_3-Nemotron-Super-49B-v1"),
        Unique(49_867_145_216)),
    // Multi-token prediction
    ("a key of MTP without weights", Model("MiniMaxAI--MiniMax-M2.5"), Mtp(0)),
    // Quantization
    ("mxfp4 covers experts only", Model("openai--gpt-oss-120b"), Format(Some("mxfp4"))),
    ("experts in a format of their own", Keys(r#""model_type": "llama", "intermediate_size": 32, "expert_dtype": "fp4",
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}"#), Refused("expert_dtype")),
    ("compression_config, an old key", Keys(r#""model_type": "llama", "intermediate_size": 32,
        "compression_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights":
        {"type": "int", "num_bits": 8, "strategy": "channel"}}}}"#), Format(Some("int8"))),
    // Experts of newer families, and heads that are not there
    ("experts of K-EXAONE", Keys(K_EXAONE), Unique(236_571_150_336)),
    ("K-EXAONE balances by buffers", Keys(K_EXAONE), Buffers(47 * 128)),
    // A layer of attention and a dense network, a two-to-one projection, five norms and two of heads.
    ("K-EXAONE predicts with a dense layer", Keys(K_EXAONE), Mtp(2 * 6144 * (8192 + 1024)
        + 3 * 6144 * 18432 + 2 * 6144 * 6144 + 5 * 6144 + 2 * 128)),
    ("word patterns of windows", Keys(K_EXAONE), Growing(12 * 2 * 8 * 128)),
    ("gates and learned biases of AFMoE", Keys(TRINITY), Unique(26_123_974_400)),
    ("a gate that is a matrix of its own", Keys(TRINITY), Shape("model.layers.0.self_attn.gate_proj.weight", &[4096, 2048])),
    ("norms that learn nothing", Keys(r#""model_type": "nanochat", "num_key_value_heads": 2,
        "intermediate_size": 64"#), Unique(2 * 64 * 16 + 4 * (2 * 16 * 16 + 2 * 16 * 8 + 2 * 16 * 64))),
    ("a bare model has no head", Keys(r#""model_type": "mistral", "architectures": ["MistralModel"],
        "num_key_value_heads": 4, "intermediate_size": 32"#),
        Unique(64 * 16 + 16 + 4 * (4 * 16 * 16 + 3 * 16 * 32 + 2 * 16))),
    ("nor the prefix of one", Keys(r#""model_type": "mistral", "architectures": ["MistralModel"],
        "num_key_value_heads": 4, "intermediate_size": 32"#), Shape("layers.0.mlp.up_proj.weight", &[32, 16])),
    // Encoders
    ("neighbours side by side before one matrix (SmolVLM)", Keys(r#""model_type": "smolvlm", "scale_factor": 3,
        "tie_word_embeddings": false, "text_config": {"model_type": "llama", "hidden_size": 2048,
        "intermediate_size": 8192, "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32,
        "head_dim": 64, "vocab_size": 49280, "tie_word_embeddings": false, "use_resampler": false,
        "qk_layer_norms": false}, "vision_config": {"model_type": "smolvlm_vision", "hidden_size": 1152,
        "image_size": 384, "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27,
        "patch_size": 14, "size": {"longest_edge": 1536}}"#), Unique(2_246_784_880)),
    ("a gate inside the projector (Aya Vision)", Keys(r#""model_type": "aya_vision", "downsample_factor": 2,
        "alignment_intermediate_size": 28672, "tie_word_embeddings": true, "text_config": {"model_type": "cohere2",
        "vocab_size": 256000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "sliding_window": 4096,
        "sliding_window_pattern": 4, "tie_word_embeddings": true}, "vision_config":
        {"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
        "num_attention_heads": 16, "image_size": 364, "patch_size": 14, "vision_use_head": false}"#),
        Unique(8_631_842_032)),
    ("towers are in the total", Model("google--gemma-3-27b-it"), Towers(419_000_000..=424_000_000)),
    ("towers of MoonViT", Model("moonshotai--Kimi-K2.5"), Towers(470_000_000..=472_000_000)),
];

fn config(of: &Of, shipped: &[(String, ModelFile)]) -> ModelConfig {
    match of {
        Model(stem) => {
            let found = shipped.iter().find(|(name, _)| name == stem);
            found.unwrap_or_else(|| panic!("{stem} is not shipped")).1.model_config().unwrap()
        }
        Keys(text) => {
            let read = |text: &str| -> serde_json::Map<String, Value> {
                serde_json::from_str(&format!("{{{text}}}")).unwrap_or_else(|error| panic!("{text}: {error}"))
            };
            let mut map = if text.contains("_config\": {\"model_type") { read("") } else { read(WIDTHS) };
            map.extend(read(text));
            ModelConfig::from_map(map, None).unwrap_or_else(|error| panic!("{text}: {error}"))
        }
    }
}

/// What is said otherwise, if anything.
fn contradicts(says: &Says, config: &ModelConfig) -> Option<String> {
    let built = ModelGraph::build(config);
    if let Refused(key) = says {
        return match built {
            Err(error) if error.key == *key && !error.fix.is_empty() => None,
            Err(error) => Some(format!("refused by {}", error.key)),
            Ok(_) => Some("not refused".to_owned()),
        };
    }
    let graph = match built {
        Ok(graph) => graph,
        Err(error) => return Some(error.to_string()),
    };
    let inspection = Inspection::of_checkpoint(&graph, config);
    let counts = inspection.parameters;
    let shape = |name: &str| {
        inspection.tensors.iter().find(|tensor| tensor.name == name).map(|tensor| tensor.shape.clone())
    };
    let number = |ours: u64, theirs: u64| (ours != theirs).then(|| format!("{ours}, not {theirs}"));
    match says {
        Unique(count) => number(counts.unique, *count),
        Active(count) => number(counts.active, *count),
        Buffers(count) => number(counts.buffers, *count),
        Mtp(count) => number(counts.mtp, *count),
        MtpCopies(count) => number(counts.mtp_copies, *count),
        Towers(range) => (!range.contains(&counts.towers)).then(|| counts.towers.to_string()),
        Scales(count) => number(Checkpoint::of(&graph, config).map_or(0, |found| found.scales), *count),
        Explained(elements, name) => {
            let total = PublishedTotal { elements: *elements, source: "published".to_owned() };
            let found = Reconciliation::of(&inspection, &total);
            let named = found.terms.iter().any(|term| term.name == *name);
            (found.unexplained != 0 || !named).then(|| format!("{:?}", found.terms))
        }
        Tied(tied) => (graph.tied != *tied).then(|| format!("tied: {}", graph.tied)),
        Layers(layers) => number(inspection.layers, *layers),
        Growing(elements) => number(graph.kv_elements_per_token().growing, *elements),
        KvBytes(bytes) => number(inspection.kv_bytes_per_token, *bytes),
        IndexKeys(elements) => {
            let keys = |cache: &Cache| match cache {
                Cache::IndexKeys { head_dim, .. } => head_dim.value,
                _ => 0,
            };
            let of = |block: &Block| block.repeats() * block.caches.iter().map(keys).sum::<u64>();
            number(graph.blocks.iter().map(of).sum(), *elements)
        }
        State(bytes) => number(inspection.state_bytes_per_sequence, *bytes),
        Windowed(elements) => number(graph.kv_elements_per_token().windowed, *elements),
        Shape(name, expected) => {
            let found = shape(name);
            (found.as_deref() != Some(*expected)).then(|| format!("{name} {found:?}, not {expected:?}"))
        }
        Without(name) => shape(name).map(|shape| format!("{name} {shape:?}")),
        Format(format) => {
            (config.weight_format() != *format).then(|| format!("{:?}", config.weight_format()))
        }
        Context(tokens) => number(graph.max_context.unwrap_or(0), *tokens),
        Refused(_) => None,
    }
}

#[test]
fn no_trap_catches() {
    let shipped = shipped();
    let mut caught = vec![];
    for (trap, of, says) in TRAPS {
        caught.extend(contradicts(says, &config(of, &shipped)).map(|why| format!("{trap}: {why}")));
    }
    assert!(caught.is_empty(), "{caught:#?}");
    let names: BTreeSet<&str> = TRAPS.iter().map(|(trap, _, _)| *trap).collect();
    assert_eq!(names.len(), TRAPS.len(), "a trap is named once");
}
