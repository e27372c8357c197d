//! Gemma-4: full layers with different heads, KV caches shared by the last layers, per-layer inputs, experts in
//! parallel with a dense network.
//!
//! Defaults for missing keys: `Gemma4TextConfig` of transformers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::gemma3n::local_and_global;
use super::vision::gemma4 as tower;
use super::wrapper::{self, INSIDE_MODEL, WrapperPaths, inside, wrap};
use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::weight;
use crate::graph::mask::AttentionMask;
use crate::graph::model::{Block, ModelGraph, OperatorNode};
use crate::graph::operator::{Operator, Split};
use crate::graph::part::attention::{Attention, KvSource, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::{Arrangement, Layer, Mixer, Network};
use crate::graph::part::moe::Moe;
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::Rope;
use crate::graph::part::streams::{Extras, PerLayer};
use crate::graph::part::unless_zero_or;
use crate::graph::tensor::{Tensor, TensorRole};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;
use crate::spec::model::value::elided;

const NAMES: TensorNames = TensorNames::of_table(&[("mlp.experts", "experts"), ("mlp.router", "router")]);

/// `gemma4`: the language model with image and audio encoders, if the file has them.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("gemma4"));
    let graph = inside(keys, "gemma4_text", build_text)?;
    let mut towers = vec![];
    if keys.section_or_none("vision_config")?.is_some() {
        towers.push(tower::vision(&wrapper::vision(keys, "gemma4_vision")?, graph.hidden)?);
    }
    if keys.section_or_none("audio_config")?.is_some() {
        towers.push(tower::audio(&wrapper::encoder(keys, "audio_config", "gemma4_audio")?, graph.hidden)?);
    }
    Ok(wrap(graph, INSIDE_MODEL, towers))
}

/// `gemma4_unified`: the language model, to which patches of images and frames of sound are projected without an encoder.
pub fn build_unified(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("gemma4"));
    let graph = inside(keys, "gemma4_unified_text", build_unified_text)?;
    let mut towers = vec![];
    if keys.section_or_none("vision_config")?.is_some() {
        let vision = wrapper::vision(keys, "gemma4_unified_vision")?;
        towers.push(tower::merged_patches(&vision, graph.hidden)?);
    }
    if keys.section_or_none("audio_config")?.is_some() {
        let audio = wrapper::encoder(keys, "audio_config", "gemma4_unified_audio")?;
        towers.push(tower::frames(&audio, graph.hidden)?);
    }
    Ok(wrap(graph, INSIDE_MODEL, towers))
}

/// `gemma4_text`.
pub fn build_text(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let per_layer = per_layer(keys)?;
    text(keys, per_layer, 512, false)
}

/// `gemma4_unified_text`: without per-layer inputs and experts (`configuration_gemma4_unified.py` of transformers
/// 5.24).
pub fn build_unified_text(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.only("enable_moe_block", &json!(false))?;
    text(keys, None, 1024, false)
}

/// `gemma4_assistant`: a draft for a model of `backbone_hidden_size`, from its embedding and hidden state back to its
/// stream. All layers read the KV caches of that model.
pub fn build_assistant(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    assistant(keys, "gemma4_text", 512, 1536)
}

/// `gemma4_unified_assistant`.
pub fn build_unified_assistant(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    assistant(keys, "gemma4_unified_text", 1024, 3840)
}

/// `window` and `backbone` are the class's defaults of `sliding_window` and `backbone_hidden_size`.
fn assistant(keys: &Keys<'_>, class: &'static str, window: u64, backbone: u64) -> Result<ModelGraph, Error> {
    keys.set_aside(&["num_centroids", "centroid_intermediate_top_k"]);
    keys.only("use_ordered_embeddings", &json!(false))?;
    let graph = inside(keys, class, |keys| {
        keys.only("model_type", &json!(class))?;
        keys.only("enable_moe_block", &json!(false))?;
        keys.only("use_double_wide_mlp", &json!(false))?;
        keys.only("hidden_size_per_layer_input", &json!(0))?;
        keys.set_aside(&["num_kv_shared_layers", "vocab_size_per_layer_input"]);
        text(keys, None, window, true)
    })?;
    let hidden = graph.hidden;
    let backbone = keys.count_or("backbone_hidden_size", backbone)?;
    let both = Count::derived("two_streams", 2 * backbone.value, "2 × backbone_hidden_size");
    let mut graph = wrap(graph, WrapperPaths { model: "model", ..INSIDE_MODEL }, vec![]);
    let last = |block: &Block| block.order.last().copied();
    let ends = [
        (last(&graph.embedding), &mut graph.embedding, "pre_projection", both, hidden),
        (graph.head.order.first().copied(), &mut graph.head, "post_projection", hidden, backbone),
    ];
    for (from, block, name, input, output) in ends {
        let shape = vec![output.value, input.value];
        let weights = vec![weight(format!("{name}.weight"), shape, TensorRole::Mlp)];
        let operator = Operator::Linear { input, output, split: Split::Replicate };
        let node = block.graph.add_node(OperatorNode { name, operator, weights });
        if let Some(from) = from {
            block.graph.add_edge(from, node, Tensor { width: hidden });
        }
        block.order.push(node);
    }
    Ok(graph)
}

/// `window` is the class's default of `sliding_window`; `lent`: every cache is that of another model.
fn text(keys: &Keys<'_>, per_layer: Option<PerLayer>, window: u64, lent: bool) -> Result<ModelGraph, Error> {
    keys.set_aside(&["final_logit_softcapping", "hidden_activation"]);
    keys.only("use_bidirectional_attention", &json!("vision"))
        .or_else(|_| keys.only("use_bidirectional_attention", &Value::Null))?;
    let (hidden, layers) = (keys.count_or("hidden_size", 2304)?, keys.count_or("num_hidden_layers", 30)?);
    let whole = DecoderSpec::of(keys, hidden, layers, keys.count_or("vocab_size", 262_144)?, true)?;
    let whole = DecoderSpec { per_layer, names: NAMES, ..whole };
    let full = full_layers(keys, layers)?;
    let first_shared = if lent { 0 } else { layers.value - shared_layers(keys, layers, 0)? };
    let heads = Heads::read(keys, hidden, window)?;
    let mut own = own_numbers(keys, layers)?;
    let wide = keys.flag("use_double_wide_mlp", false)?;
    let width = keys.count_or("intermediate_size", 9216)?;
    let moe = moe(keys, hidden)?;
    let mut layer = |(index, full): (u64, bool)| {
        let shared = index >= first_shared;
        let own = own.as_mut().map(|own| own.remove(&index));
        let attention = heads.attention(full, own)?;
        let source = if shared { KvSource::Shared } else { attention.source };
        let width = match shared && wide {
            true => Count::derived("intermediate_size", 2 * width.value, "twice, since the cache is shared"),
            false => width,
        };
        let dense = FeedForward::gated(hidden, width);
        let network = match &moe {
            Some(moe) => Network::DenseAndMoe(dense, Box::new(moe.clone())),
            None => Network::Dense(dense),
        };
        let extras = Extras { per_layer, scalar: true, ..Extras::default() };
        let mixer = Mixer::Attention(Attention { source, ..attention });
        Ok(Layer { arrangement: Arrangement::Sandwich, extras, ..Layer::of(hidden, mixer, network) })
    };
    let layers = (0..).zip(full).map(&mut layer).collect::<Result<_, Error>>()?;
    Ok(whole.graph(layers, vec![]))
}

/// The per-layer input; a width of 0 means none.
fn per_layer(keys: &Keys<'_>) -> Result<Option<PerLayer>, Error> {
    let vocab = keys.count_or("vocab_size_per_layer_input", 262_144)?;
    let width = unless_zero_or(keys, "hidden_size_per_layer_input", 256)?;
    Ok(width.map(|width| PerLayer { vocab, width }))
}

/// The full-attention layers: `layer_types`, else every sixth; always the last one.
fn full_layers(keys: &Keys<'_>, layers: Count) -> Result<Vec<bool>, Error> {
    let kinds = [("full_attention", true), ("sliding_attention", false)];
    let full = layer_kinds(keys, "layer_types", layers, &kinds)?;
    let mut full = full.unwrap_or_else(|| (1..=layers.value).map(|layer| layer % 6 == 0).collect());
    if let Some(last) = full.last_mut() {
        *last = true;
    }
    Ok(full)
}

/// Number of last layers that read the KV cache of an earlier layer.
pub(super) fn shared_layers(keys: &Keys<'_>, layers: Count, default: u64) -> Result<u64, Error> {
    let shared = unless_zero_or(keys, "num_kv_shared_layers", default)?.map_or(0, |shared| shared.value);
    if shared < layers.value {
        return Ok(shared);
    }
    let expected = format!("less than num_hidden_layers {}", layers.value);
    let fix = "copy both values from the model's config.json";
    Err(Error::new("num_kv_shared_layers", shared.to_string(), expected, fix))
}

/// Head dimension and key/value heads of a layer with its own values.
type HeadOverride = (Option<Count>, Option<Count>);

/// Per-layer values of `per_layer_config`, by layer index; `None` if the file does not have the key. It replaces
/// `global_head_dim` and `num_global_key_value_heads` in files of transformers 5.
fn own_numbers(keys: &Keys<'_>, layers: Count) -> Result<Option<BTreeMap<u64, HeadOverride>>, Error> {
    let key = "per_layer_config";
    let Some(entries) = keys.entries(key)? else { return Ok(None) };
    keys.set_aside(&["global_head_dim", "num_global_key_value_heads"]);
    let one = |(name, entry): (&str, Keys<'_>)| match name.parse::<u64>() {
        Ok(layer) if layer < layers.value => {
            let own = (entry.count_or_none("head_dim")?, entry.count_or_none("num_key_value_heads")?);
            Ok((layer, own))
        }
        _ => {
            let expected = format!("the number of a layer, from 0 to {}", layers.value - 1);
            let fix = "copy per_layer_config from the model's config.json";
            Err(Error::new(key, format!("an entry named \"{}\"", elided(name)), expected, fix))
        }
    };
    entries.into_iter().map(one).collect::<Result<_, _>>().map(Some)
}

/// The heads of sliding and of full layers.
struct Heads {
    hidden: Count,
    heads: Count,
    kv_heads: [Count; 2],
    head_dim: [Count; 2],
    window: Count,
    source: KvSource,
    bias: bool,
    rope: [Rope; 2],
}

impl Heads {
    fn read(keys: &Keys<'_>, hidden: Count, window: u64) -> Result<Heads, Error> {
        let (kv_heads, head_dim) =
            (keys.count_or("num_key_value_heads", 4)?, keys.count_or("head_dim", 256)?);
        let keys_alone = keys.flag("attention_k_eq_v", false)?;
        let global = keys.count_or_none("num_global_key_value_heads")?.filter(|_| keys_alone);
        let head_dim = [head_dim, keys.count_or("global_head_dim", 512)?];
        Ok(Heads {
            hidden,
            heads: keys.count_or("num_attention_heads", 8)?,
            kv_heads: [kv_heads, global.unwrap_or(kv_heads)],
            head_dim,
            rope: local_and_global(keys, head_dim)?,
            window: keys.count_or("sliding_window", window)?,
            source: if keys_alone { KvSource::KeysAlone } else { KvSource::Own },
            bias: keys.flag("attention_bias", false)?,
        })
    }

    /// A layer's attention: by its kind, or by its own values in place of those of sliding layers.
    fn attention(&self, full: bool, own: Option<Option<HeadOverride>>) -> Result<Attention, Error> {
        let kind = usize::from(full);
        let (head_dim, kv_heads) = match own {
            None => (self.head_dim[kind], self.kv_heads[kind]),
            Some(own) => {
                let (head_dim, kv_heads) = own.unwrap_or_default();
                (head_dim.unwrap_or(self.head_dim[0]), kv_heads.unwrap_or(self.kv_heads[0]))
            }
        };
        let attention = Attention::of(self.hidden, self.heads, kv_heads, Some(head_dim))?.biased(self.bias);
        let attention =
            Attention { qk_norm: QkNorm::PerHead, v_norm: true, rope: Some(self.rope[kind]), ..attention };
        Ok(match full {
            true => Attention { source: self.source, ..attention },
            false => Attention { mask: AttentionMask::Window(self.window), ..attention },
        })
    }
}

fn moe(keys: &Keys<'_>, hidden: Count) -> Result<Option<Moe>, Error> {
    // `expert_intermediate_size` is an older name that no class reads.
    keys.set_aside(&["num_experts", "top_k_experts", "moe_intermediate_size", "expert_intermediate_size"]);
    if !keys.flag("enable_moe_block", false)? {
        return Ok(None);
    }
    let moe = Moe::read(keys, hidden, ["num_experts", "top_k_experts", "moe_intermediate_size"])?;
    Ok(Some(Moe { router: "mlp.router.proj", router_scales: Some("mlp.router"), ..moe }))
}
