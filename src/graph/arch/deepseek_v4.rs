//! DeepSeek-V4: compressed attention, parallel residual streams, experts selected by token id in the first layers.
//!
//! Defaults for missing keys: `DeepseekV4Config` of transformers.

use serde_json::json;

use super::deepseek::{routed, shared};
use crate::graph::assembly::{below, weight};
use crate::graph::model::ModelGraph;
use crate::graph::part::compressed::{Compressed, Compressor, Picker};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::hyper::Hyper;
use crate::graph::part::layer::{Arrangement, Layer, Mixer};
use crate::graph::part::misfit;
use crate::graph::part::moe::Moe;
use crate::graph::part::rope::{Rope, RopeClass};
use crate::graph::tensor::{TensorRole, Weight};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Tokens per entry, and whether an indexer selects entries, by the class's names.
const KINDS: &[(&str, u64, bool)] = &[
    ("sliding_attention", 0, false),
    ("compressed_sparse_attention", 4, true),
    ("heavily_compressed_attention", 128, false),
];

/// `deepseek_v4`.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Position encoding and numerics; `expert_dtype` belongs to the quantization.
    keys.set_aside(&["hc_eps", "hc_sinkhorn_iters", "expert_dtype"]);
    // Attention has one key/value head and no biases, whatever these keys contain: the class does not read them.
    keys.set_aside(&["num_key_value_heads", "attention_bias"]);
    keys.only("n_shared_experts", &json!(1))?;
    let bias = keys.flag("mlp_bias", false)?;
    let streams = keys.count("hc_mult")?;
    let hyper = Hyper { streams, mixes: true, head: true, rank: None };
    let whole = DecoderSpec { streams: Some(hyper), ..DecoderSpec::read(keys, false)? };
    let hidden = whole.hidden;
    let window = keys.count("sliding_window")?;
    let rotary = keys.count_or("qk_rope_head_dim", 64)?;
    let beyond = RopeClass { theta: 160_000, names: &["compress_rope_theta"], ..RopeClass::WHOLE };
    let beyond = Rope::of(keys, rotary, beyond)?;
    let plain = Compressed {
        hidden,
        heads: keys.count("num_attention_heads")?,
        head_dim: keys.count("head_dim")?,
        q_lora_rank: keys.count("q_lora_rank")?,
        o_groups: keys.count("o_groups")?,
        o_lora_rank: keys.count("o_lora_rank")?,
        window,
        rope: Rope::of(keys, rotary, RopeClass::WHOLE)?,
        compressor: None,
    };
    if !plain.heads.value.is_multiple_of(plain.o_groups.value) {
        return Err(misfit(
            plain.o_groups,
            format!("a divisor of num_attention_heads {}", plain.heads.value),
        ));
    }
    let moe = Moe {
        correction_bias: Some("mlp.gate.e_score_correction_bias"),
        shared: shared(keys, hidden)?.map(|shared| shared.biased(bias)),
        ..routed(keys, hidden)?
    };
    let hashed = Moe { correction_bias: None, table: Some(whole.vocab), ..moe.clone() };
    let layer = |compressor, moe: &Moe| Layer {
        arrangement: Arrangement::HyperConnected(hyper),
        ..Layer::of(
            hidden,
            Mixer::Compressed(Compressed {
                compressor,
                rope: if compressor.is_some() { beyond } else { plain.rope },
                ..plain
            }),
            moe.clone(),
        )
    };
    let compressors = compressors(keys, whole.layers)?;
    let by_token = hash_layers(keys, whole.layers)?;
    let layers = compressors.into_iter().zip(by_token);
    let layers =
        layers.map(|(compressor, by_token)| layer(compressor, if by_token { &hashed } else { &moe }));
    let layers = layers.collect();
    let modules = keys.count_unless_zero("num_nextn_predict_layers")?.map_or(0, |modules| modules.value);
    let mtp =
        (0..modules).flat_map(|module| mtp_module(&whole, streams, &layer(None, &moe), module)).collect();
    Ok(whole.graph(layers, mtp))
}

/// Compression of each layer: `layer_types`, else `compress_ratios`, which may continue for multi-token prediction.
fn compressors(keys: &Keys<'_>, layers: Count) -> Result<Vec<Option<Compressor>>, Error> {
    let copy = "copy the value from the model's config.json";
    let picker = Picker {
        heads: keys.count("index_n_heads")?,
        head_dim: keys.count("index_head_dim")?,
        top_k: keys.count("index_topk")?,
    };
    let of = |key: &'static str, found: &str, fits: &dyn Fn(&(&str, u64, bool)) -> bool| {
        let kind = KINDS.iter().find(|kind| fits(kind));
        let (_, every, picked) = kind.ok_or_else(|| {
            let names: Vec<String> =
                KINDS.iter().map(|(name, every, _)| format!("{name} ({every})")).collect();
            Error::new(key, found, names.join(", "), copy)
        })?;
        let every = Count::config("compress_ratios", *every);
        let compressor = Compressor { every, picker: Some(picker).filter(|_| *picked) };
        Ok(Some(compressor).filter(|_| every.value > 0))
    };
    if let Some(rates) = keys.section_or_none("compress_rates")? {
        rates.only("compressed_sparse_attention", &json!(4))?;
        rates.only("heavily_compressed_attention", &json!(128))?;
    }
    let found: Vec<_> = match (keys.texts("layer_types")?, keys.numbers("compress_ratios")?) {
        (Some(types), _) => types
            .iter()
            .map(|kind| of("layer_types", kind, &|(name, ..)| name == kind))
            .collect::<Result<_, Error>>()?,
        (None, Some(ratios)) => ratios
            .iter()
            .map(|ratio| of("compress_ratios", &ratio.to_string(), &|(_, every, _)| every == ratio))
            .collect::<Result<_, Error>>()?,
        (None, None) => {
            return Err(Error::new(
                "compress_ratios",
                "nothing: the key is missing",
                "a number for each layer",
                copy,
            ));
        }
    };
    if (found.len() as u64) < layers.value {
        let expected = format!("one entry for each of the {} layers", layers.value);
        return Err(Error::new("compress_ratios", format!("a list of {}", found.len()), expected, copy));
    }
    Ok(found.into_iter().take(layers.value as usize).collect())
}

/// The layers that select experts by token id: `mlp_layer_types`, else the first `num_hash_layers`.
fn hash_layers(keys: &Keys<'_>, layers: Count) -> Result<Vec<bool>, Error> {
    let Some(types) = keys.texts("mlp_layer_types")? else {
        let first = keys.stated("num_hash_layers")?.count_unless_zero("num_hash_layers")?;
        return Ok((0..layers.value).map(|layer| layer < first.map_or(0, |first| first.value)).collect());
    };
    keys.set_aside(&["num_hash_layers"]);
    let strange = types.iter().find(|kind| !["hash_moe", "moe"].contains(&kind.as_str()));
    if strange.is_some() || types.len() as u64 != layers.value {
        return Err(Error::new(
            "mlp_layer_types",
            strange.cloned().unwrap_or(format!("a list of {}", types.len())),
            format!("hash_moe or moe for each of the {} layers", layers.value),
            "copy mlp_layer_types from the model's config.json",
        ));
    }
    Ok(types.iter().map(|kind| kind == "hash_moe").collect())
}

/// A multi-token-prediction module: a layer without compressor, two projections, three norms, a head of streams.
fn mtp_module(whole: &DecoderSpec, streams: Count, layer: &Layer, module: u64) -> Vec<Weight> {
    let hidden = whole.hidden.value;
    let mut weights = vec![
        weight("enorm.weight", vec![hidden], TensorRole::Norm),
        weight("hnorm.weight", vec![hidden], TensorRole::Norm),
        weight("e_proj.weight", vec![hidden, hidden], TensorRole::Mlp),
        weight("h_proj.weight", vec![hidden, hidden], TensorRole::Mlp),
        weight("norm.weight", vec![hidden], TensorRole::Norm),
        weight("hc_head_fn", vec![streams.value, streams.value * hidden], TensorRole::Norm),
        weight("hc_head_base", vec![streams.value], TensorRole::Norm),
        weight("hc_head_scale", vec![1], TensorRole::Norm),
    ];
    let block = layer.block("mtp_layer", vec![]);
    weights.extend(block.graph.node_weights().flat_map(|node| node.weights.clone()));
    below(&format!("mtp.{module}"), weights).collect()
}
