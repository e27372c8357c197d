//! Qwen4: Qwen3.5's delta layers and experts over gated residual streams, attention that an indexer selects keys for, and
//! embeddings of hashed n-grams in some layers.
//!
//! Source: `modular_qwen4_exp.py` of transformers 5.24.

use super::qwen_next::moe;
use super::vision::qwen as tower;
use super::wrapper::{INSIDE_MODEL, inside, vision, wrap};
use crate::graph::cache::StateWidth;
use crate::graph::mask::AttentionMask;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, OutputGate, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::delta::Delta;
use crate::graph::part::hyper::Hyper;
use crate::graph::part::indexer::Indexer;
use crate::graph::part::kinds::{COPY, layer_kinds};
use crate::graph::part::layer::{Arrangement, Layer, Mixer};
use crate::graph::part::names::TensorNames;
use crate::graph::part::ngrams::Ngrams;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::rope::RopeClass;
use crate::graph::part::streams::Extras;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("linear_attn.in_proj_qk linear_attn.in_proj_v", "linear_attn.in_proj_qkv"),
    ("self_attn.indexer.q_proj self_attn.indexer.k_proj", "self_attn.indexer.index_qk_proj"),
    ("self_attn.indexer.q_norm", "self_attn.indexer.q_layernorm"),
    ("self_attn.indexer.k_norm", "self_attn.indexer.k_layernorm"),
]);

/// More tables of n-grams than any model has: each needs a prime number of its own.
const MOST_TABLES: u64 = 4096;

/// `qwen4_exp`, the language model inside the wrapper.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "qwen4_exp_text", build_text)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower::qwen3_5(&vision(keys, "qwen4_exp_vision")?)?]))
}

/// `qwen4_exp_text`.
pub fn build_text(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["full_attention_interval", "number_of_conv_states", "output_gate_type", "seed"]);
    keys.set_aside(&["split_ngram_parts"]);
    let hyper = Hyper {
        streams: keys.count_or("hc_count", 4)?,
        mixes: false,
        head: true,
        rank: Some(keys.count_or("hc_lowrank", 320)?),
    };
    let whole = DecoderSpec::read(keys, false)?;
    let whole = DecoderSpec { names: NAMES, streams: Some(hyper), final_norm: false, ..whole };
    let (hidden, layers) = (whole.hidden, whole.layers);
    let words = [("linear_attention", false), ("indexed_attention", true), ("full_attention", true)];
    let attends = match layer_kinds(keys, "layer_types", layers, &words)? {
        Some(attends) => attends,
        None => {
            let interval = keys.count_or("full_attention_interval", 4)?.value;
            (1..=layers.value).map(|layer| layer.is_multiple_of(interval)).collect()
        }
    };
    let attention = attention(keys, hidden)?;
    let delta = Recurrent::Delta(Delta::read(keys, hidden, StateWidth::Single)?);
    let moe = moe(keys, hidden, 512, 10)?;
    let mut ngrams = ngrams(keys, hidden, layers, &attends)?;
    let layer = |(index, attends): (u64, bool)| {
        let at = ngrams.iter().position(|(layer, _)| *layer == index + 1);
        let extras = Extras { ngrams: at.map(|at| ngrams.swap_remove(at).1), ..Extras::default() };
        let layer = Layer::of(hidden, Mixer::either(attends, &attention, &delta), moe.clone());
        Layer { arrangement: Arrangement::HyperConnected(hyper), extras, ..layer }
    };
    Ok(whole.graph((0..).zip(attends).map(layer).collect(), vec![]))
}

/// Gated attention over the keys of the blocks that the indexer selects.
fn attention(keys: &Keys<'_>, hidden: Count) -> Result<Attention, Error> {
    let (heads, kv_heads) = (keys.count("num_attention_heads")?, keys.count("num_key_value_heads")?);
    let head_dim = keys.count_or("head_dim", 256)?;
    keys.only("indexer_kv_heads", &serde_json::json!(1))?;
    let indexer = Indexer {
        hidden,
        q_lora_rank: None,
        heads: keys.count("indexer_n_heads")?,
        head_dim: keys.count("indexer_head_dim")?,
        top_k: keys.count("indexer_budget")?,
        pool: Some(keys.count("indexer_compress_ratio")?),
        scaled: false,
    };
    let bias = keys.flag("attention_bias", false)?;
    let attention = Attention::of(hidden, heads, kv_heads, Some(head_dim))?.biased(bias);
    let attention = Attention {
        qk_norm: QkNorm::PerHead,
        output_gate: Some(OutputGate::PerElement("q_proj")),
        mask: AttentionMask::Selected(indexer.top_k),
        indexer: Some(indexer),
        ..attention
    };
    attention.rotated(keys, RopeClass::WHOLE)
}

/// The n-grams of the layers of `ple_layer_ids`, which count from 1. Each table has a prime number of rows: the next
/// after those of the tables before it.
fn ngrams(
    keys: &Keys<'_>,
    hidden: Count,
    layers: Count,
    attends: &[bool],
) -> Result<Vec<(u64, Ngrams)>, Error> {
    let key = "ple_layer_ids";
    let mut chosen = keys.numbers(key)?.unwrap_or_default();
    chosen.sort_unstable();
    chosen.dedup();
    let width = keys.count_or_none("ple_embed_dim")?.unwrap_or(hidden);
    let (longest, each) = (keys.count_or("ngram_size", 3)?, keys.count_or("heads_per_ngram", 8)?);
    let base = match keys.value("ngram_vocab_size_base") {
        None => Some(20_000_000),
        Some(stated) => stated.as_u64().filter(|base| (1..=1_000_000_000).contains(base)),
    };
    let Some(base) = base else {
        let expected = "a whole number from 1 to 1000000000";
        return Err(Error::new("ngram_vocab_size_base", "another value", expected, COPY));
    };
    let unit = keys.count_or("make_ngram_vocab_size_divisible_by", 128)?.value;
    let kernel = keys.count_or("ple_conv_kernel_size", 4)?;
    if chosen.is_empty() {
        return Ok(vec![]);
    }
    let fits = |layer: &u64| layer.checked_sub(1).and_then(|at| attends.get(at as usize)) == Some(&false);
    if let Some(other) = chosen.iter().find(|layer| !fits(layer)) {
        let expected = format!("linear-attention layers from 1 to {}", layers.value);
        return Err(Error::new(key, other.to_string(), expected, COPY));
    }
    let heads = (longest.value - 1) * each.value;
    if heads == 0 || !width.value.is_multiple_of(heads) || heads * chosen.len() as u64 > MOST_TABLES {
        let expected = format!("tables that divide {} and are at most {MOST_TABLES}", width.value);
        return Err(Error::new("heads_per_ngram", each.value.to_string(), expected, COPY));
    }
    let mut primes = (base..).filter(|number| is_prime(*number));
    let heads = Count::derived("ngram_heads", heads, "(ngram_size - 1) × heads_per_ngram");
    let one = |layer| {
        let rows: u64 = primes.by_ref().take(heads.value as usize).sum();
        let rows =
            Count::derived("ngram_rows", rows.next_multiple_of(unit), "primes from ngram_vocab_size_base");
        (layer, Ngrams { rows, heads, width, longest, kernel })
    };
    Ok(chosen.into_iter().map(one).collect())
}

fn is_prime(number: u64) -> bool {
    let divides = |divisor: u64| number.is_multiple_of(divisor);
    number == 2 || number > 2 && !divides(2) && !(3..=number.isqrt()).step_by(2).any(divides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_as_many_rows_as_the_next_primes() {
        let primes: Vec<u64> = (1..30).filter(|number| is_prime(*number)).collect();
        assert_eq!(primes, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
        let map = serde_json::from_str(
            r#"{"ple_layer_ids": [3, 1], "ngram_size": 2, "heads_per_ngram": 2, "ngram_vocab_size_base": 10,
            "make_ngram_vocab_size_divisible_by": 10}"#,
        );
        let (map, hidden) = (map.unwrap(), Count::config("hidden_size", 6));
        let layers = Count::config("num_hidden_layers", 4);
        let found = ngrams(&Keys::new(&map), hidden, layers, &[false, true, false, true]).unwrap();
        let rows: Vec<(u64, u64)> = found.iter().map(|(layer, one)| (*layer, one.rows.value)).collect();
        assert_eq!(rows, [(1, 30), (3, 40)]);
        let all = ngrams(&Keys::new(&map), hidden, layers, &[true; 4]).unwrap_err();
        assert_eq!(all.key, "ple_layer_ids");
    }
}
