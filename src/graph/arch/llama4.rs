//! Llama-4: three of four layers have chunked attention, experts in every or every other layer, always with a shared
//! expert.
//!
//! Defaults for missing keys: `Llama4TextConfig` of transformers.

use serde_json::json;

use super::{vision, wrapper};
use crate::graph::mask::AttentionMask;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::complete;
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::moe::{Moe, SharedExperts, Stacking};
use crate::graph::part::names::TensorNames;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames = TensorNames::of_table(&[("mlp", "feed_forward")]);

const PLACE: wrapper::WrapperPaths =
    wrapper::WrapperPaths { model: "language_model.model", head: "language_model.lm_head", others: "" };

/// `llama4`: the language model and its vision encoder.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    wrapper::set_prompt_aside(keys);
    let text = wrapper::text(keys, "llama4_text")?;
    // The wrapper's class ties nothing, whatever its own key contains; versions before 5 do.
    if !wrapper::written_by_5(keys)? {
        keys.only("tie_word_embeddings", &json!(false))?;
    }
    keys.set_aside(&["tie_word_embeddings"]);
    let graph = build_text(&text)?;
    let tower = vision::llama4::tower(&wrapper::vision(keys, "llama4_vision_model")?, graph.hidden)?;
    Ok(wrapper::wrap(graph, PLACE, vec![tower]))
}

/// `llama4_text`: the language model alone.
pub fn build_text(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Norms of queries and keys have no weights; temperature tuning scales queries.
    keys.set_aside(&["use_qk_norm", "attn_temperature_tuning", "floor_scale", "attn_scale"]);
    let whole = DecoderSpec { names: NAMES, ..DecoderSpec::read(keys, false)? };
    let bias = keys.flag("attention_bias", false)?;
    keys.count("head_dim")?;
    let attention = Attention::read_stated(keys, whole.hidden)?.biased(bias);
    let reaches = reaches(keys, whole.layers)?;
    let inner = keys.count("intermediate_size")?;
    let dense = FeedForward::gated(whole.hidden, keys.count("intermediate_size_mlp")?);
    let shared = FeedForward::gated(whole.hidden, inner);
    let moe = Moe {
        router: "mlp.router",
        stacking: Stacking::InOut,
        shared: Some(SharedExperts { tensor: "mlp.shared_expert", network: shared, gate: None }),
        ..Moe::routed(
            whole.hidden,
            keys.count("num_local_experts")?,
            keys.count("num_experts_per_tok")?,
            inner,
        )?
    };
    let step = keys.stated("interleave_moe_layer_step")?.count("interleave_moe_layer_step")?.value;
    let listed = keys.numbers("moe_layers")?;
    let sparse = |layer: u64| match &listed {
        Some(layers) => layers.contains(&layer),
        None => (layer + 1).is_multiple_of(step),
    };
    let layer = |(index, (reach, rotates)): (u64, (AttentionMask, bool))| {
        let network = Network::either(sparse(index), &moe, &dense);
        let rope = attention.rope.filter(|_| rotates);
        Layer::new(Attention { mask: reach, rope, ..attention.clone() }, network)
    };
    let layers = (0..).zip(reaches).map(layer).collect();
    Ok(whole.graph(layers, vec![]))
}

/// The mask of each layer, and whether it has rotary positions: causal without them, chunked with them.
fn reaches(keys: &Keys<'_>, layers: Count) -> Result<Vec<(AttentionMask, bool)>, Error> {
    // An old name that the class does not read.
    keys.only("nope_layer_interval", &json!(4))?;
    let interval = keys.count_or("no_rope_layer_interval", 4)?.value;
    let stated = keys.has("attention_chunk_size");
    let chunk = match keys.count_or_none("attention_chunk_size")? {
        Some(chunk) => AttentionMask::Chunk(chunk),
        None if stated => AttentionMask::All,
        None => AttentionMask::Chunk(Count::class_default("attention_chunk_size", 8192)),
    };
    let fix = "copy the value from the model's config.json";
    if let Some(types) = keys.texts("layer_types")? {
        keys.set_aside(&["no_rope_layers"]);
        complete("layer_types", types.len(), layers, fix)?;
        let one = |kind: &String| match kind.as_str() {
            "chunked_attention" => Ok((chunk, true)),
            "full_attention" => Ok((AttentionMask::All, false)),
            other => Err(Error::new("layer_types", other, "chunked_attention or full_attention", fix)),
        };
        return types.iter().map(one).collect();
    }
    let rope = match keys.numbers("no_rope_layers")?.filter(|list| !list.is_empty()) {
        Some(list) => {
            complete("no_rope_layers", list.len(), layers, fix)?;
            list.iter().map(|rope| *rope != 0).collect()
        }
        None => (0..layers.value).map(|layer| !(layer + 1).is_multiple_of(interval)).collect::<Vec<_>>(),
    };
    Ok(rope.into_iter().map(|rope| (if rope { chunk } else { AttentionMask::All }, rope)).collect())
}
