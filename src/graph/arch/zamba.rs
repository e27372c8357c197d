//! Zamba: Mamba layers, some of which read the result of a transformer that all of them share. Zamba2: Mamba-2, several
//! such transformers in turn, and adapters for each use.
//!
//! Source: `modeling_zamba.py` and `modular_zamba2.py` of transformers 5.24.

use serde_json::json;

use super::mamba::{dt_rank, fills, inner};
use crate::graph::arch::class_keys::ignored;
use crate::graph::cache::StateWidth;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, mha};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::mamba::Mamba;
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::rope::RopeClass;
use crate::graph::part::shared_transformer::SharedTransformer;
use crate::graph::part::ssd::Ssd;
use crate::graph::part::streams::Extras;
use crate::graph::part::{misfit, unless_zero_or};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames =
    TensorNames::of_table(&[("model.norm", "model.final_layernorm"), ("mlp", "feed_forward")]);

const SECOND_NAMES: TensorNames = TensorNames::of_table(&[
    ("model.norm", "model.final_layernorm"),
    ("mlp.gate_proj mlp.up_proj", "feed_forward.gate_up_proj"),
    ("mlp", "feed_forward"),
]);

/// Context of Zamba2 with `use_long_context`.
const LONG_CONTEXT: u64 = 16_384;

/// `zamba`: one transformer for all layers that have it.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("zamba"));
    let whole = DecoderSpec { names: NAMES, ..shared_by_tying(keys)? };
    let hidden = whole.hidden;
    let (inner, heads) = (inner(keys, hidden, "mamba_expand", None)?, keys.count_or("n_mamba_heads", 2)?);
    if !inner.value.is_multiple_of(heads.value) {
        let channels = inner.value;
        return Err(misfit(heads, format!("a divisor of mamba_expand × hidden_size {channels}")));
    }
    let bias = keys.flag("mamba_proj_bias", false)?;
    let mamba = Recurrent::Mamba(Mamba {
        hidden,
        inner,
        state: keys.count_or("mamba_d_state", 16)?,
        dt_rank: dt_rank(keys, hidden, "mamba_dt_rank")?,
        kernel: keys.count_or("mamba_d_conv", 4)?,
        bias,
        conv_bias: keys.flag("mamba_conv_bias", true)?,
        norms: None,
        heads: Some(heads),
    });
    let both = keys.count_or_none("attention_hidden_size")?.unwrap_or_else(|| both(hidden));
    let heads = keys.count("num_attention_heads")?;
    let head_dim = match keys.count_or_none("attention_head_dim")? {
        Some(head_dim) => head_dim,
        None => head_dim(hidden, heads)?,
    };
    let kv_heads = keys.count_or("num_key_value_heads", 16)?;
    let attention =
        Attention { output: Some(hidden), ..Attention::of(both, heads, kv_heads, Some(head_dim))? };
    let shared = SharedTransformer { attention, network: FeedForward::read(keys, hidden)? };
    let every = hybrid_layers(keys, whole.layers)?;
    Ok(hybrid(whole, every, (mamba, shared), ("shared_transf", 1)))
}

/// `zamba2`.
pub fn build_second(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("zamba2"));
    let whole = DecoderSpec { names: SECOND_NAMES, ..shared_by_tying(keys)? };
    let whole = match keys.flag("use_long_context", false)? {
        true => DecoderSpec { max_context: Some(LONG_CONTEXT), ..whole },
        false => whole,
    };
    let hidden = whole.hidden;
    let (inner, heads) = (inner(keys, hidden, "mamba_expand", None)?, keys.count_or("n_mamba_heads", 8)?);
    let bias = keys.flag("add_bias_linear", false)?;
    let ssd = Ssd {
        hidden,
        heads,
        head_dim: Count::derived("mamba_headdim", inner.value / heads.value, "d_inner / n_mamba_heads"),
        groups: keys.count_or("mamba_ngroups", 1)?,
        state: keys.count_or("mamba_d_state", 64)?,
        kernel: keys.count_or("mamba_d_conv", 4)?,
        chunk: keys.count_or("chunk_size", 256)?,
        bias: [bias, bias],
        conv_bias: true,
        norm: true,
        width: StateWidth::Native,
    };
    fills(&ssd, inner)?;
    let mamba = Recurrent::Ssd(ssd.checked()?);
    // The class has adapters on networks whatever these say.
    keys.only("use_shared_mlp_adapter", &json!(true))?;
    let rank = keys.count_or("adapter_rank", 128)?;
    let intermediate = keys
        .count_or_none("intermediate_size")?
        .unwrap_or_else(|| Count::derived("intermediate_size", 4 * hidden.value, "4 × hidden_size"));
    let network = FeedForward { bias, adapter: Some(rank), ..FeedForward::gated(hidden, intermediate) };
    let shared = SharedTransformer { attention: second_attention(keys, hidden, rank)?, network };
    let every = match listed_layers(keys, whole.layers)? {
        Some(every) => every,
        None => usual_layers(whole.layers)?,
    };
    let sets = keys.count_or("num_mem_blocks", 1)?.value;
    Ok(hybrid(whole, every, (mamba, shared), ("shared_transformer", sets)))
}

/// The parts other than layers. Where the key ties no head, the classes tie no transformers either: each layer would have
/// its own, with the adapters of all.
fn shared_by_tying(keys: &Keys<'_>) -> Result<DecoderSpec, Error> {
    let whole = DecoderSpec::read(keys, true)?;
    if whole.tied {
        return Ok(whole);
    }
    let expected = "true: transformers shares the transformers of layers only where it ties the head";
    let fix = "copy the key from the model's config.json: checkpoints of Zamba tie both";
    Err(Error::new("tie_word_embeddings", "false", expected, fix))
}

/// Zamba2's attention over stream and embedding, with adapters if the file has them.
fn second_attention(keys: &Keys<'_>, hidden: Count, rank: Count) -> Result<Attention, Error> {
    let heads = keys.count("num_attention_heads")?;
    let kv_heads = keys.count_or_none("num_key_value_heads")?.unwrap_or_else(|| mha(heads));
    let adapted = keys.flag("use_shared_attention_adapter", false)?;
    if adapted && (kv_heads.value != heads.value || !(2 * hidden.value).is_multiple_of(heads.value)) {
        let expected = format!("num_attention_heads {}, a divisor of 2 × hidden_size", heads.value);
        return Err(misfit(kv_heads, format!("{expected}: adapters on keys are as wide as the input")));
    }
    let head_dim = head_dim(hidden, heads)?;
    // The class sets both, whatever a file says: one that says otherwise was not written by it.
    for derived in [both(hidden), head_dim] {
        let stated = keys.count_or_none(derived.symbol)?;
        if let Some(stated) = stated.filter(|stated| stated.value != derived.value) {
            return Err(misfit(stated, format!("{} by the other keys", derived.value)));
        }
    }
    let attention = Attention {
        output: Some(hidden),
        adapter: Some(rank).filter(|_| adapted),
        ..Attention::of(both(hidden), heads, kv_heads, Some(head_dim))?
    };
    match keys.flag("use_mem_rope", false)? {
        true => attention.rotated(keys, RopeClass::WHOLE),
        false => Ok(attention),
    }
}

/// Width of stream and embedding.
fn both(hidden: Count) -> Count {
    Count::derived("attention_hidden_size", 2 * hidden.value, "2 × hidden_size")
}

/// A head's share of stream and embedding, rounded down.
fn head_dim(hidden: Count, heads: Count) -> Result<Count, Error> {
    match both(hidden).value / heads.value {
        0 => Err(misfit(heads, format!("at most 2 × hidden_size {}", both(hidden).value))),
        share => Ok(Count::derived("attention_head_dim", share, "2 × hidden_size / num_attention_heads")),
    }
}

/// Whether each layer has the transformer, by the list of the file.
fn listed_layers(keys: &Keys<'_>, layers: Count) -> Result<Option<Vec<bool>>, Error> {
    let words = [("linear_attention", false), ("mamba", false), ("hybrid", true)];
    layer_kinds(keys, keys.spelling(&["layers_block_type", "layer_types"])?, layers, &words)
}

/// Whether each layer of Zamba has the transformer: by the list, else the third, and of the later ones by period and
/// offset.
fn hybrid_layers(keys: &Keys<'_>, layers: Count) -> Result<Vec<bool>, Error> {
    let period = keys.count_or("attn_layer_period", 6)?.value;
    let offset = unless_zero_or(keys, "attn_layer_offset", 4)?.map_or(0, |offset| offset.value);
    if let Some(stated) = listed_layers(keys, layers)? {
        return Ok(stated);
    }
    if layers.value < 3 {
        return Err(misfit(layers, "at least 3, or a list layers_block_type".to_owned()));
    }
    Ok((0..layers.value).map(|layer| layer == 2 || layer > 2 && (layer - 3) % period == offset).collect())
}

/// The layers of Zamba2-2.7B, which its class takes where the file has no list.
fn usual_layers(layers: Count) -> Result<Vec<bool>, Error> {
    const HYBRID: [u64; 9] = [6, 12, 18, 24, 30, 36, 42, 47, 51];
    if layers.value != 54 {
        return Err(misfit(layers, "54, or a list layers_block_type".to_owned()));
    }
    Ok((0..layers.value).map(|layer| HYBRID.contains(&layer)).collect())
}

/// The model with the transformer before the mixer where `every` says so, stored `sets` times under `module`.
fn hybrid(
    whole: DecoderSpec,
    every: Vec<bool>,
    (mixer, shared): (Recurrent, SharedTransformer),
    (module, sets): (&'static str, u64),
) -> ModelGraph {
    let hidden = whole.hidden;
    let plain = Layer::of(hidden, Mixer::Recurrent(Box::new(mixer)), Network::Absent);
    let extras = Extras { transformer: Some(Box::new(shared)), ..Extras::default() };
    let with = Layer { extras, ..plain.clone() };
    let layer = |has: &bool| if *has { with.clone() } else { plain.clone() };
    let mut graph = whole.graph(every.iter().map(layer).collect(), vec![]);
    let users: Vec<usize> = (0..every.len()).filter(|layer| every[*layer]).collect();
    if users.is_empty() {
        return graph;
    }
    graph.stores = vec![String::new(); every.len()];
    for (at, layer) in users.iter().enumerate() {
        let first = users[(at as u64 % sets) as usize];
        graph.stores[*layer] = format!("{}.{first}.{module}", graph.layer_prefix);
    }
    // Checkpoints have the adapters of all uses in the module's lists; here each is in its layer.
    let nodes = graph.blocks.iter_mut().filter(|block| block.shared_elements() > 0);
    for node in nodes.flat_map(|block| block.graph.node_weights_mut()) {
        let inside = match node.name {
            "shared_linear" => continue,
            "adapter_down" | "adapter_up" => module,
            _ => "mamba_decoder",
        };
        for weight in node.weights.iter_mut().filter(|weight| !weight.shared) {
            weight.name = format!("{inside}.{}", weight.name);
        }
    }
    graph.carried = Some(Count::derived("stream_and_embedding", both(hidden).value, "2 × hidden_size"));
    graph
}

#[cfg(test)]
mod tests {
    use crate::graph::inspect::Inspection;
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    fn graph(text: &str) -> ModelGraph {
        ModelGraph::build(&ModelConfig::parse(text).expect("JSON")).expect("a known type")
    }

    const FIRST: &str = r#"{"model_type": "zamba", "hidden_size": 8, "num_hidden_layers": 5, "vocab_size": 11,
        "intermediate_size": 10, "num_attention_heads": 4, "num_key_value_heads": 2, "mamba_dt_rank": 3,
        "layers_block_type": ["mamba", "mamba", "hybrid", "mamba", "hybrid"]}"#;

    const SECOND: &str = r#"{"model_type": "zamba2", "hidden_size": 8, "num_hidden_layers": 5, "vocab_size": 11,
        "intermediate_size": 10, "num_attention_heads": 4, "adapter_rank": 3, "mamba_d_state": 5, "n_mamba_heads": 2,
        "num_mem_blocks": 2, "use_shared_attention_adapter": true,
        "layers_block_type": ["hybrid", "mamba", "hybrid", "hybrid", "hybrid"]}"#;

    #[test]
    fn the_transformer_counts_once_and_caches_at_each_use() {
        let graph = graph(FIRST);
        let mamba = 8 * 32 + 16 * 4 + 16 + 2 * (3 + 32) * 8 + 16 * 3 + 16 + 16 * 16 + 16 + 16 * 8 + 8;
        let transformer = 16 + 16 * 16 + 2 * 16 * 8 + 16 * 8 + 8 + 3 * 8 * 10;
        assert_eq!(graph.parameters().unique, 11 * 8 + 8 + 5 * mamba + transformer + 2 * 8 * 8);
        assert_eq!(graph.parameters().active, graph.parameters().unique);
        assert_eq!(graph.kv_elements_per_token().growing, 2 * 2 * 2 * 4);
        let tensors = graph.tensors();
        let count = |part: &str| tensors.iter().filter(|tensor| tensor.name.contains(part)).count();
        assert_eq!([count("model.layers.2.shared_transf."), count("model.layers.4.shared_transf.")], [9, 0]);
        assert_eq!(count("model.layers.4.mamba_decoder."), 10);
        let elements: u64 = tensors.iter().map(crate::graph::tensor::Weight::elements).sum();
        assert_eq!(elements, graph.parameters().unique);
    }

    #[test]
    fn a_head_of_its_own_is_refused_since_it_unties_the_transformers() {
        let untied = FIRST.replace("\"layers_block", "\"tie_word_embeddings\": false, \"layers_block");
        let error = ModelGraph::build(&ModelConfig::parse(&untied).expect("JSON")).expect_err("untied");
        assert_eq!(error.key, "tie_word_embeddings");
    }

    #[test]
    fn two_transformers_take_turns_and_each_use_has_adapters() {
        let graph = graph(SECOND);
        let mamba = 8 * (16 + 26 + 2) + 26 * 4 + 26 + 3 * 2 + 16 + 16 * 8 + 8;
        let transformer = 16 + 3 * 16 * 16 + 16 * 8 + 8 + 3 * 8 * 10;
        let adapters = 3 * (16 * 3 + 3 * 16) + 8 * 3 + 3 * 20;
        let all = 11 * 8 + 8 + 5 * mamba + 2 * transformer + 4 * (adapters + 8 * 8);
        assert_eq!(graph.parameters().unique, all);
        assert_eq!(Inspection::of(&graph).kv_bytes_per_token, 2 * 4 * 2 * 16);
        let at = |layer: usize| graph.stores[layer].as_str();
        assert_eq!([at(0), at(2)], [at(3), at(4)]);
        assert_ne!(at(0), at(2));
    }
}
