//! Gemma-3n: several streams of which a layer computes one, per-layer inputs, KV caches shared by the last layers.
//!
//! Defaults for missing keys: `Gemma3nTextConfig` of transformers.

use super::gemma4::shared_layers;
use super::vision::gemma3n as tower;
use super::wrapper::{self, INSIDE_MODEL, inside, wrap};
use crate::graph::arch::class_keys::ignored;
use crate::graph::mask::AttentionMask;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, KvSource, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::{Arrangement, Layer, Mixer};
use crate::graph::part::rope::{Rope, RopeClass};
use crate::graph::part::streams::{Altup, Extras, PerLayer};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `gemma3n`: the language model with its encoders, which are present even if the file omits them.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("gemma3n"));
    let graph = inside(keys, "gemma3n_text", build_text)?;
    let optional = |key| match keys.section_or_none(key)? {
        Some(_) => wrapper::encoder(keys, key, "").map(Some),
        None => Ok(None),
    };
    let (vision, audio) = (optional("vision_config")?, optional("audio_config")?);
    let towers =
        vec![tower::vision(vision.as_ref(), graph.hidden)?, tower::audio(audio.as_ref(), graph.hidden)?];
    Ok(wrap(graph, INSIDE_MODEL, towers))
}

/// `gemma3n_text`.
pub fn build_text(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("gemma3n_text"));
    let (hidden, layers) = (keys.count_or("hidden_size", 2048)?, keys.count_or("num_hidden_layers", 35)?);
    let whole = DecoderSpec::of(keys, hidden, layers, keys.count_or("vocab_size", 262_400)?, true)?;
    let per_layer = Some(PerLayer {
        vocab: keys.count_or("vocab_size_per_layer_input", 262_144)?,
        width: keys.count_or("hidden_size_per_layer_input", 256)?,
    });
    let altup = Some(Altup {
        inputs: keys.count_or("altup_num_inputs", 4)?,
        laurel_rank: keys.count_or("laurel_rank", 64)?,
    });
    let whole = DecoderSpec { per_layer, altup, ..whole };
    let kinds = [("full_attention", true), ("sliding_attention", false)];
    let full = layer_kinds(keys, "layer_types", layers, &kinds)?;
    let full = full.unwrap_or_else(|| (1..=layers.value).map(|layer| layer % 5 == 0).collect());
    let first_shared = layers.value - shared_layers(keys, layers, 15)?;
    let heads = keys.count_or("num_attention_heads", 8)?;
    let kv_heads = keys.count_or("num_key_value_heads", 2)?;
    let attention = Attention::of(hidden, heads, kv_heads, Some(keys.count_or("head_dim", 256)?))?;
    let attention = Attention {
        qk_norm: QkNorm::PerHead,
        v_norm: true,
        ..attention.biased(keys.flag("attention_bias", false)?)
    };
    let ropes = local_and_global(keys, [attention.head_dim; 2])?;
    let window = AttentionMask::Window(keys.count_or("sliding_window", 512)?);
    let widths = widths(keys, layers)?;
    let extras = Extras { per_layer, altup, ..Extras::default() };
    let layer = |((index, full), width): ((u64, bool), Count)| {
        let reach = if full { AttentionMask::All } else { window };
        let source = if index >= first_shared { KvSource::Shared } else { KvSource::Own };
        let mixer = Mixer::Attention(Attention {
            mask: reach,
            source,
            rope: Some(ropes[usize::from(full)]),
            ..attention.clone()
        });
        let network = FeedForward::gated(hidden, width);
        Layer {
            arrangement: Arrangement::Sandwich,
            extras: extras.clone(),
            ..Layer::of(hidden, mixer, network)
        }
    };
    let layers = (0..).zip(full).zip(widths).map(layer).collect();
    Ok(whole.graph(layers, vec![]))
}

/// The rotation of sliding and of full layers, with heads of `head_dim`: the base of full layers is a hundred times that of
/// the others.
pub(super) fn local_and_global(keys: &Keys<'_>, head_dim: [Count; 2]) -> Result<[Rope; 2], Error> {
    let near = RopeClass {
        names: &["rope_local_base_freq", "rope_theta"],
        kind: "sliding_attention",
        ..RopeClass::WHOLE
    };
    let far = RopeClass { theta: 1_000_000, ..RopeClass::WHOLE };
    Ok([Rope::read(keys, head_dim[0], near)?, Rope::read(keys, head_dim[1], far)?])
}

/// The width of each layer's network: one number, or one per layer.
fn widths(keys: &Keys<'_>, layers: Count) -> Result<Vec<Count>, Error> {
    let Ok(Some(list)) = keys.numbers("intermediate_size") else {
        return Ok(vec![keys.count_or("intermediate_size", 16_384)?; layers.value as usize]);
    };
    if list.len() as u64 != layers.value || list.contains(&0) {
        let expected = format!("a width for each of the {} layers", layers.value);
        let fix = "copy intermediate_size from the model's config.json";
        return Err(Error::new("intermediate_size", format!("a list of {}", list.len()), expected, fix));
    }
    Ok(list.into_iter().map(|width| Count::config("intermediate_size", width)).collect())
}
