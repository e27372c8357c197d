//! MiniMax-M3: GQA over blocks of keys that an indexer selects, dense layers first, then routed and shared experts.
//!
//! Defaults for missing keys: `MiniMaxM3VLTextConfig` of transformers.

use serde_json::json;

use super::{vision, wrapper};
use crate::graph::arch::class_keys::ignored;
use crate::graph::mask::AttentionMask;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::indexer::Indexer;
use crate::graph::part::kinds::{layer_kinds, layer_switches};
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::moe::{Moe, SharedExperts};
use crate::graph::part::names::TensorNames;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[
    ("mlp.gate_proj mlp.up_proj", "mlp.gate_up_proj"),
    ("mlp.shared_experts.gate_proj mlp.shared_experts.up_proj", "mlp.shared_experts.gate_up_proj"),
]);

/// `minimax_m3_vl`: the language model and its vision encoder.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // The vision encoder has its own copy of the compression.
    keys.set_aside(ignored("minimax_m3_vl"));
    keys.only("multimodal_projector_bias", &json!(true))?;
    let graph = wrapper::inside(keys, "minimax_m3_vl_text", build_text)?;
    let projector = keys.count_or("projector_hidden_size", 6144)?;
    let tower =
        vision::minimax::tower(&wrapper::vision(keys, "minimax_m3_vl_vision")?, graph.hidden, projector)?;
    Ok(wrapper::wrap(graph, wrapper::INSIDE_MODEL, vec![tower]))
}

/// `minimax_m3_vl_text`: the language model alone.
pub fn build_text(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Keys for numerics, and multi-token prediction that files declare and checkpoints do not contain.
    keys.set_aside(&["use_gemma_norm", "swiglu_alpha", "num_mtp_modules"]);
    keys.only("use_qk_norm", &json!(true))?;
    keys.only("qk_norm_type", &json!("per_head"))?;
    keys.only("use_routing_bias", &json!(true))?;
    keys.only("n_shared_experts", &json!(1))?;
    let whole = DecoderSpec { names: NAMES, ..DecoderSpec::read(keys, false)? };
    let hidden = whole.hidden;
    keys.count("head_dim")?;
    let attention = Attention { qk_norm: QkNorm::PerHead, ..Attention::read_stated(keys, hidden)? };
    let (indexer, sparse) = sparse_attention(keys, hidden, whole.layers)?;
    let with_experts = match keys.has("moe_layer_freq") {
        true => Some(layer_switches(keys, "moe_layer_freq", whole.layers)?),
        false => None,
    };
    let with_experts = named(keys, "mlp_layer_types", whole.layers, ["sparse", "dense"], with_experts)?
        .unwrap_or_else(|| vec![true; whole.layers.value as usize]);
    let dense = FeedForward::gated(hidden, keys.count("dense_intermediate_size")?);
    let network = FeedForward::gated(hidden, keys.count("shared_intermediate_size")?);
    let moe = Moe {
        correction_bias: Some("mlp.gate.e_score_correction_bias"),
        shared: Some(SharedExperts { tensor: "mlp.shared_experts", network, gate: None }),
        ..Moe::read(keys, hidden, ["num_local_experts", "num_experts_per_tok", "intermediate_size"])?
    };
    let layer = |(sparse, experts): (bool, bool)| {
        let reach = if sparse { AttentionMask::Selected(indexer.top_k) } else { AttentionMask::All };
        let indexer = Some(indexer).filter(|_| sparse);
        let network = Network::either(experts, &moe, &dense);
        Layer::new(Attention { mask: reach, indexer, ..attention.clone() }, network)
    };
    let layers = sparse.into_iter().zip(with_experts).map(layer).collect();
    Ok(whole.graph(layers, vec![]))
}

/// The indexer and the layers that use it: from `sparse_attention_config` in the checkpoint's format, or from the keys
/// that transformers writes instead.
fn sparse_attention(keys: &Keys<'_>, hidden: Count, layers: Count) -> Result<(Indexer, Vec<bool>), Error> {
    let words = ["minimax_m3_sparse", "full_attention"];
    match keys.section_or_none("sparse_attention_config")? {
        Some(config) => {
            let sparse = Some(layer_switches(&config, "sparse_attention_freq", layers)?);
            let sparse = named(keys, "layer_types", layers, words, sparse)?.unwrap_or_default();
            Ok((indexer(&config, hidden)?, sparse))
        }
        None => {
            keys.set_aside(&["index_local_blocks"]);
            let [blocks, size] =
                [keys.count_or("index_topk_blocks", 16)?, keys.count_or("index_block_size", 128)?];
            let indexer = Indexer {
                hidden,
                q_lora_rank: None,
                heads: keys.count_or("index_n_heads", 4)?,
                head_dim: keys.count_or("index_head_dim", 128)?,
                top_k: top_k(blocks, size, "index_topk_blocks × index_block_size"),
                pool: None,
                scaled: false,
            };
            let none = || vec![false; layers.value as usize];
            Ok((indexer, named(keys, "layer_types", layers, words, None)?.unwrap_or_else(none)))
        }
    }
}

/// The kind of each layer by the list under `key`. If another key gives the kinds too, both must agree.
fn named(
    keys: &Keys<'_>,
    key: &'static str,
    layers: Count,
    [yes, no]: [&str; 2],
    said: Option<Vec<bool>>,
) -> Result<Option<Vec<bool>>, Error> {
    let found = layer_kinds(keys, key, layers, &[(yes, true), (no, false)])?;
    match (found, said) {
        (Some(found), Some(said)) if found != said => Err(Error::new(
            key,
            "other layers than the list of 0 and 1 in the same file",
            "the same layers in both",
            "copy both lists from the model's config.json",
        )),
        (found, said) => Ok(found.or(said)),
    }
}

fn top_k(blocks: Count, size: Count, how: &'static str) -> Count {
    Count::derived("index_topk", blocks.value * size.value, how)
}

/// The indexer selects whole blocks of keys, including those next to the query.
fn indexer(config: &Keys<'_>, hidden: Count) -> Result<Indexer, Error> {
    config.only("use_sparse_attention", &json!(true))?;
    // The number of first and local blocks, and the switch of a value path that no checkpoint uses.
    config.set_aside(ignored("minimax_m3_vl sparse_attention_config"));
    let (blocks, size) = (config.count("sparse_topk_blocks")?, config.count("sparse_block_size")?);
    let top_k = top_k(blocks, size, "sparse_topk_blocks × sparse_block_size");
    Ok(Indexer {
        hidden,
        q_lora_rank: None,
        heads: config.count("sparse_num_index_heads")?,
        head_dim: config.count("sparse_index_dim")?,
        top_k,
        pool: None,
        scaled: false,
    })
}
