//! Step-3.5 and 3.7 (StepFun): a gate on each head, a number of heads by kind of layer, experts after the first layers.
//!
//! Source: `modular_step3p7.py` of transformers 5.24. Published files have older names of most keys, and lists that go on
//! over the layers of multi-token prediction.

use serde_json::{Value, json};

use super::deepseek::{Mtp, mtp_module};
use super::vision::step as tower;
use super::wrapper::{INSIDE_MODEL, inside, vision, wrap};
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, OutputGate, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::{COPY, complete, kinds_of};
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::moe::{Moe, SharedExperts};
use crate::graph::part::rope::RopeClass;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `step3p7`: the language model with its encoder.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let graph = inside(keys, "step3p5", build_text)?;
    let bias = keys.flag("projector_bias", false)?;
    let tower = tower::tower(&vision(keys, "step3p5_vision")?, graph.hidden, bias)?;
    Ok(wrap(graph, INSIDE_MODEL, vec![tower]))
}

/// `step3p5`: the language model.
pub fn build_text(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["swiglu_limits_shared", "swiglu_limits", "moe_router_scaling_factor"]);
    keys.set_aside(&["mtp_layer_types", "mtp_mlp_layer_types", "partial_rotary_factors"]);
    keys.only("gating", &json!(true))?;
    keys.only("use_bidirectional_attention", &json!(false))?;
    let whole = DecoderSpec::read(keys, false)?;
    let (hidden, depth) = (whole.hidden, whole.layers.value as usize);
    let modules = keys.count_unless_zero("num_nextn_predict_layers")?.map_or(0, |modules| modules.value);
    let slides = kinds(
        keys,
        "layer_types",
        (depth, modules),
        [("full_attention", false), ("sliding_attention", true)],
    )?
    .unwrap_or_else(|| vec![false; depth + modules as usize]);
    let sparse = sparse(keys, depth, modules)?;
    let attention = StepHeads::read(keys, hidden, whole.layers)?;
    let bias = keys.flag("mlp_bias", false)?;
    let width = keys.count(keys.spelling(&["share_expert_dim", "share_expert_dims"])?)?;
    let network = FeedForward { bias, ..FeedForward::gated(hidden, width) };
    let moe = Moe {
        correction_bias: Some("mlp.gate.e_score_correction_bias"),
        shared: Some(SharedExperts { tensor: "mlp.shared_experts", network, gate: None }),
        ..Moe::read(
            keys,
            hidden,
            [
                keys.spelling(&["n_routed_experts", "moe_num_experts"])?,
                keys.spelling(&["num_experts_per_tok", "moe_top_k"])?,
                "moe_intermediate_size",
            ],
        )?
    };
    let dense = FeedForward { bias, ..FeedForward::read(keys, hidden)? };
    let layer = |at: usize| {
        let slides = slides.get(at).copied().unwrap_or_default();
        let network = Network::either(sparse.get(at) == Some(&true), &moe, &dense);
        Ok::<_, Error>(Layer::new(attention.of(slides)?, network))
    };
    let layers = (0..depth).map(layer).collect::<Result<Vec<_>, Error>>()?;
    let mut predicting = vec![];
    for module in depth..depth + modules as usize {
        predicting.extend(mtp_module(&whole, &layer(module)?, module as u64, Mtp::Shared));
    }
    Ok(whole.graph(layers, predicting))
}

/// The kind of each layer by the list under `key`, which may go on over the modules of multi-token prediction.
fn kinds(
    keys: &Keys<'_>,
    key: &'static str,
    (depth, modules): (usize, u64),
    words: [(&str, bool); 2],
) -> Result<Option<Vec<bool>>, Error> {
    let Some(list) = keys.texts(key)? else { return Ok(None) };
    if list.len() != depth + modules as usize {
        complete(key, list.len(), Count::config("num_hidden_layers", depth as u64), COPY)?;
    }
    kinds_of(key, &list, &words, COPY).map(Some)
}

/// The layers with experts: `mlp_layer_types`, else those of `moe_layers_enum`, else all from the fourth on.
fn sparse(keys: &Keys<'_>, depth: usize, modules: u64) -> Result<Vec<bool>, Error> {
    let words = [("dense", false), ("sparse", true)];
    let key = "moe_layers_enum";
    if let Some(sparse) = kinds(keys, "mlp_layer_types", (depth, modules), words)? {
        keys.set_aside(&[key]);
        return Ok(sparse);
    }
    let Some(list) = keys.value(key).filter(|list| !list.is_null()) else {
        return Ok((0..depth).map(|layer| layer >= 3).collect());
    };
    let numbers: Option<Vec<usize>> = match list {
        Value::String(list) => {
            let numbers = list.split(',').map(str::trim).filter(|number| !number.is_empty());
            numbers.map(|number| number.parse().ok()).collect()
        }
        _ => keys.numbers(key)?.map(|list| list.into_iter().map(|number| number as usize).collect()),
    };
    let Some(numbers) = numbers else {
        return Err(Error::new(key, list.to_string(), "layers between commas, such as 3,4,5", COPY));
    };
    Ok((0..depth + modules as usize).map(|layer| numbers.contains(&layer)).collect())
}

/// The heads of full and of sliding layers.
struct StepHeads {
    full: Attention,
    heads: Count,
    window: Option<Count>,
    near: Attention,
}

impl StepHeads {
    fn read(keys: &Keys<'_>, hidden: Count, layers: Count) -> Result<StepHeads, Error> {
        let heads = keys.count("num_attention_heads")?;
        let kv_heads = keys.count(keys.spelling(&["num_key_value_heads", "num_attention_groups"])?)?;
        let attention = Attention::of(hidden, heads, kv_heads, Some(keys.count_or("head_dim", 128)?))?;
        let attention = Attention {
            qk_norm: QkNorm::PerHead,
            output_gate: Some(OutputGate::PerHead("g_proj")),
            ..attention.biased(keys.flag("attention_bias", false)?)
        };
        let full = attention.clone().rotated(keys, RopeClass::WHOLE)?;
        let near = attention.rotated(keys, RopeClass::SLIDING)?;
        let window = keys.count_or_none("sliding_window")?;
        Ok(StepHeads { full, near, heads: sliding_heads(keys, heads, layers)?, window })
    }

    fn of(&self, slides: bool) -> Result<Attention, Error> {
        if !slides {
            return Ok(self.full.clone());
        }
        let Some(window) = self.window else {
            let expected = "a window for the sliding layers of layer_types";
            return Err(Error::new("sliding_window", "no window", expected, COPY));
        };
        let Attention { hidden, kv_heads, head_dim, .. } = self.near;
        let checked = Attention::of(hidden, self.heads, kv_heads, Some(head_dim))?;
        Ok(Attention { heads: checked.heads, mask: Some(window).into(), ..self.near.clone() })
    }
}

/// Query heads of sliding layers: a key of their own, an older section, or the same as in full layers. Transformers
/// repeats them in `per_layer_config`.
fn sliding_heads(keys: &Keys<'_>, heads: Count, layers: Count) -> Result<Count, Error> {
    let older = keys.section_or_none("attention_other_setting")?;
    let older = match &older {
        Some(older) => {
            older.set_aside(&["attention_type", "head_dim", "num_attention_groups", "true_head_dim"]);
            older.count_or_none("num_attention_heads")?
        }
        None => None,
    };
    let stated = keys.count_or_none("num_sliding_attention_heads")?.or(older);
    let mut own = None;
    for (layer, entry) in keys.entries("per_layer_config")?.unwrap_or_default() {
        let inside = layer.parse::<u64>().is_ok_and(|layer| layer < layers.value);
        let found = entry.count_or_none("num_attention_heads")?;
        if !inside || own.is_some() && own != found {
            let expected = "one number of heads in all sliding layers";
            return Err(Error::new("per_layer_config", "layers that differ", expected, COPY));
        }
        own = found;
    }
    Ok(own.or(stated).unwrap_or(heads))
}
