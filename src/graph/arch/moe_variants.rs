//! Families with multi-head attention and routed experts, each with its own keys.

use serde_json::{Value, json};

use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::{Affine, below, weight};
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::{COPY, layer_kinds};
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::moe::{Moe, SharedExperts, Stacking};
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::RopeClass;
use crate::graph::part::unless_zero_or;
use crate::graph::part::window::uniform_window;
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `phimoe`: biases on attention and head, LayerNorm with shift.
pub fn build_phimoe(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["input_jitter_noise"]);
    let norm = Affine::ScaleAndShift;
    let whole =
        DecoderSpec { norm, head_bias: keys.flag("lm_head_bias", false)?, ..DecoderSpec::read(keys, false)? };
    let attention = Attention::read_stated(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let attention = Attention { mask: uniform_window(keys, None)?.into(), ..attention };
    let moe = Moe { router: "mlp.router", ..local_experts(keys, whole.hidden)? };
    Ok(whole.uniform(Layer { norm, ..Layer::new(attention, moe) }))
}

/// `granitemoe`: Granite's layers with experts.
pub fn build_granitemoe(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec { names: GRANITE_NAMES, ..DecoderSpec::read(keys, false)? };
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let moe = local_experts(keys, whole.hidden)?;
    Ok(whole.uniform(Layer::new(attention, moe)))
}

/// `granitemoeshared`: a shared network in parallel with the experts, if it has a width.
pub fn build_granitemoe_shared(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec { names: GRANITE_NAMES, ..DecoderSpec::read(keys, false)? };
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    keys.stated("shared_intermediate_size")?;
    let moe = granite_experts(keys, whole.hidden)?;
    Ok(whole.uniform(Layer::new(attention, moe)))
}

/// Granite's experts, with a shared network if it has a width.
pub(super) fn granite_experts(keys: &Keys<'_>, hidden: Count) -> Result<Moe, Error> {
    let width = keys.count_unless_zero("shared_intermediate_size")?;
    let shared = width.map(|width| SharedExperts {
        tensor: "shared_mlp",
        network: FeedForward::gated(hidden, width),
        gate: None,
    });
    Ok(Moe { shared, ..local_experts(keys, hidden)? })
}

fn local_experts(keys: &Keys<'_>, hidden: Count) -> Result<Moe, Error> {
    Moe::read(keys, hidden, ["num_local_experts", "num_experts_per_tok", "intermediate_size"])
}

/// `aria_text`: Llama's layers with experts and shared ones of the same width (`modular_aria.py` of transformers 5.24).
pub fn build_aria(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let (bias, width) = (keys.flag("mlp_bias", false)?, keys.count("intermediate_size")?);
    let shared = keys.count("moe_num_shared_experts")?.value * width.value;
    let shared = Count::derived("shared_intermediate", shared, "moe_num_shared_experts × intermediate_size");
    let network = FeedForward { bias, ..FeedForward::gated(whole.hidden, shared) };
    let moe = Moe {
        router: "mlp.router",
        stacking: Stacking::InOut,
        shared: Some(SharedExperts { tensor: "mlp.shared_experts", network, gate: None }),
        ..Moe::read(keys, whole.hidden, ["moe_num_experts", "moe_topk", "intermediate_size"])?
    };
    Ok(whole.uniform(Layer::new(attention, moe)))
}

/// `dbrx`: experts stored as rows of three matrices.
pub fn build_dbrx(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["move_model_to_device"]);
    let (hidden, layers) = (
        keys.count(keys.spelling(&["d_model", "hidden_size"])?)?,
        keys.count(keys.spelling(&["n_layers", "num_hidden_layers"])?)?,
    );
    let context = keys.count_or_none(keys.spelling(&["max_seq_len", "max_position_embeddings"])?)?;
    let whole = DecoderSpec {
        names: DBRX_NAMES,
        max_context: context.map(|context| context.value),
        ..DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, false)?
    };
    let heads = keys.count(keys.spelling(&["n_heads", "num_attention_heads"])?)?;
    let (attention, ffn) = (keys.section("attn_config")?, keys.section("ffn_config")?);
    ffn.set_aside(ignored("dbrx ffn_config"));
    let moe = Moe {
        stacking: Stacking::Rows,
        ..Moe::read(&ffn, hidden, ["moe_num_experts", "moe_top_k", "ffn_hidden_size"])?
    };
    let kv_heads = attention.count("kv_n_heads")?;
    keys.only("num_key_value_heads", &json!(kv_heads.value))?;
    let attention = Attention::of(hidden, heads, kv_heads, None)?.rotated(&attention, RopeClass::WHOLE)?;
    Ok(whole.uniform(Layer::new(attention, moe)))
}

/// `hunyuan_v1_moe`: a norm on each head of Q and K, one shared expert, every width `intermediate_size`.
pub fn build_hunyuan(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("hunyuan_v1_moe"));
    for (key, only) in [("use_qk_norm", true), ("use_mixed_mlp_moe", true)] {
        keys.only(key, &json!(only))?;
    }
    keys.only("moe_layer_num_skipped", &json!(0))?;
    let whole = DecoderSpec { names: HUNYUAN_NAMES, ..DecoderSpec::read(keys, false)? };
    let (hidden, width) = (whole.hidden, keys.count("intermediate_size")?);
    for (key, only) in [("moe_intermediate_size", width.value), ("num_shared_expert", 1)] {
        every_layer(keys, key, only)?;
    }
    let top_k = match keys.value("moe_topk") {
        Some(Value::Array(values)) if !values.is_empty() => {
            let first = values[0].as_u64().unwrap_or_default();
            every_layer(keys, "moe_topk", first)?;
            Count::config("moe_topk", first)
        }
        _ => keys.count("moe_topk")?,
    };
    if top_k.value == 0 {
        keys.count("moe_topk")?;
    }
    let attention = Attention::read_grouped(keys, hidden)?.biased(keys.flag("attention_bias", false)?);
    let attention = Attention { qk_norm: QkNorm::PerHead, ..attention };
    let network = FeedForward::gated(hidden, width);
    let shared = Some(SharedExperts { tensor: "mlp.shared_experts", network, gate: None });
    let moe = Moe { shared, ..Moe::routed(hidden, keys.count("num_experts")?, top_k, width)? };
    Ok(whole.uniform(Layer::new(attention, moe)))
}

/// Returns an error if a key, one number or one per layer, differs from `only`.
fn every_layer(keys: &Keys<'_>, key: &'static str, only: u64) -> Result<(), Error> {
    match keys.value(key) {
        Some(Value::Array(values)) if values.iter().all(|value| value.as_u64() == Some(only)) => Ok(()),
        Some(Value::Array(_)) => Err(Error::new(
            key,
            "numbers that differ",
            format!("{only} in every layer"),
            "report the model: this form of the architecture needs its own builder",
        )),
        _ => keys.only(key, &json!(only)),
    }
}

/// The language model of ERNIE-4.5-VL: experts of text tokens. Those of image tokens are described with the encoder
/// (`modular_ernie4_5_vl_moe.py` of transformers 5.24).
pub fn build_ernie_vl(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["moe_norm_min"]);
    let names = TensorNames::of_table(&[
        ("mlp.gate.weight", "mlp.text_moe.gate.weight"),
        ("mlp.gate.moe_statics", "mlp.text_moe.gate.moe_statics"),
        ("mlp.experts", "mlp.text_moe.experts"),
    ]);
    let whole = DecoderSpec { names, ..DecoderSpec::read(keys, true)? };
    let (hidden, bias) = (whole.hidden, keys.flag("use_bias", false)?);
    let attention = Attention::read_stated(keys, hidden)?.biased(bias);
    let widths = keys.numbers("moe_intermediate_size")?.unwrap_or_default();
    let (Some(width), true) = (widths.first().copied().filter(|width| *width > 0), widths.len() == 2) else {
        let found = format!("a list of {}", widths.len());
        return Err(Error::new("moe_intermediate_size", found, "two widths: of text and of images", COPY));
    };
    let width = Count::config("moe_intermediate_size", width);
    let (experts, top_k) = (keys.count("moe_num_experts")?, keys.count_or("moe_k", 6)?);
    let shared = unless_zero_or(keys, "moe_num_shared_experts", 2)?;
    let moe = Moe {
        shared: shared.map(|shared| ernie_shared((hidden, shared, width), bias)),
        learned_correction: Some("mlp.gate.moe_statics.e_score_correction_bias"),
        ..Moe::routed(hidden, experts, top_k, width)?
    };
    let dense = FeedForward { bias, ..FeedForward::read(keys, hidden)? };
    let words = [("dense", false), ("sparse", true)];
    let sparse = layer_kinds(keys, "mlp_layer_types", whole.layers, &words)?
        .unwrap_or_else(|| (0..whole.layers.value).map(|layer| layer > 0).collect());
    let layer = |sparse| Layer::new(attention.clone(), Network::either(sparse, &moe, &dense));
    let layers = sparse.into_iter().map(layer).collect();
    Ok(whole.graph(layers, vec![]))
}

/// Experts of every token, joined, of which each is as wide as a routed one.
fn ernie_shared((hidden, experts, width): (Count, Count, Count), bias: bool) -> SharedExperts {
    let all = experts.value * width.value;
    let all = Count::derived("shared_intermediate", all, "moe_num_shared_experts × moe_intermediate_size");
    let network = FeedForward { bias, ..FeedForward::gated(hidden, all) };
    SharedExperts { tensor: "mlp.shared_experts", network, gate: None }
}

/// `ernie4_5_moe`: dense layers outside `moe_layer_start_index` to `moe_layer_end_index`.
pub fn build_ernie(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["compression_ratio", "moe_norm_min", "moe_capacity", "moe_gate", "moe_use_aux_free"]);
    let whole = DecoderSpec::read(keys, true)?;
    let (hidden, layers) = (whole.hidden, whole.layers.value);
    let bias = keys.flag("use_bias", false)?;
    let whole = DecoderSpec { head_bias: bias, ..whole };
    let attention = Attention::read_stated(keys, hidden)?.biased(bias);
    let width = keys.count("moe_intermediate_size")?;
    let experts = keys.count(keys.spelling(&["moe_num_experts", "num_experts"])?)?;
    let top_k = keys.count(keys.spelling(&["moe_k", "num_experts_per_tok"])?)?;
    let shared = keys.stated("moe_num_shared_experts")?.count_unless_zero("moe_num_shared_experts")?;
    let moe = Moe {
        shared: shared.map(|shared| ernie_shared((hidden, shared, width), bias)),
        learned_correction: Some("mlp.gate.moe_statics.e_score_correction_bias"),
        ..Moe::routed(hidden, experts, top_k, width)?
    };
    let index = |key, default: u64| -> Result<u64, Error> {
        match keys.value(key) {
            None => Ok(default),
            Some(value) if *value == json!(-1) => Ok(layers - 1),
            Some(_) => Ok(keys.count_unless_zero(key)?.map_or(0, |index| index.value)),
        }
    };
    let (first, last) = (index("moe_layer_start_index", 1)?, index("moe_layer_end_index", layers - 1)?);
    let interval = keys.count_or("moe_layer_interval", 1)?.value;
    let dense = FeedForward { bias, ..FeedForward::read(keys, hidden)? };
    let layer = |layer: u64| {
        let routed = (layer + 1).is_multiple_of(interval) && (first..=last).contains(&layer);
        let network = Network::either(routed, &moe, &dense);
        Layer::new(attention.clone(), network)
    };
    let modules = keys.count_unless_zero("num_nextn_predict_layers")?.map_or(0, |modules| modules.value);
    let module = Layer::new(attention.clone(), dense.clone());
    let mtp = (0..modules).flat_map(|index| ernie_module(&module, index)).collect();
    Ok(whole.graph((0..layers).map(layer).collect(), mtp))
}

/// A module of ERNIE's multi-token prediction: a dense layer, two norms and a two-to-one projection.
fn ernie_module(layer: &Layer, index: u64) -> Vec<Weight> {
    let hidden = layer.hidden.value;
    let weights = layer.block("mtp_layer", vec![]).weights();
    let mut weights: Vec<Weight> = below(&format!("model.mtp_block.{index}"), weights).collect();
    let outside = |name: &str, shape, role| weight(format!("model.{name}.{index}.weight"), shape, role);
    weights.push(outside("mtp_emb_norm", vec![hidden], TensorRole::Norm));
    weights.push(outside("mtp_hidden_norm", vec![hidden], TensorRole::Norm));
    weights.push(outside("mtp_linear_proj", vec![hidden, 2 * hidden], TensorRole::Mlp));
    weights
}

pub(super) const GRANITE_NAMES: TensorNames = TensorNames::of_table(&[
    ("shared_mlp.gate_proj shared_mlp.up_proj", "shared_mlp.input_linear"),
    ("shared_mlp.down_proj", "shared_mlp.output_linear"),
    ("mlp.gate", "block_sparse_moe.router"),
    ("mlp", "block_sparse_moe"),
]);

const HUNYUAN_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.q_norm", "self_attn.query_layernorm"),
    ("self_attn.k_norm", "self_attn.key_layernorm"),
    ("mlp.gate", "mlp.gate.wg"),
    ("mlp.shared_experts", "mlp.shared_mlp"),
]);

const DBRX_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "norm_attn_norm.attn.out_proj"),
    ("self_attn.q_proj self_attn.k_proj self_attn.v_proj", "norm_attn_norm.attn.Wqkv"),
    ("mlp.gate", "ffn.router.layer"),
    ("mlp.experts.gate_proj", "ffn.experts.mlp.w1"),
    ("mlp.experts.up_proj", "ffn.experts.mlp.v1"),
    ("mlp.experts.down_proj", "ffn.experts.mlp.w2"),
    ("input_layernorm", "norm_attn_norm.norm_1"),
    ("post_attention_layernorm", "norm_attn_norm.norm_2"),
    ("model.layers", "transformer.blocks"),
    ("model.norm", "transformer.norm_f"),
    ("model.embed_tokens", "transformer.wte"),
]);
