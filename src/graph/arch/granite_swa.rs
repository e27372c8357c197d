//! Granite with sliding windows, dense or with experts: sinks in every layer, one full layer in four, and a base of
//! angles for each layer.
//!
//! Source: `modular_granite_swa.py` and `modular_granitemoe_swa.py` of transformers 5.24.

use serde_json::Value;

use super::moe_variants::{GRANITE_NAMES, granite_experts};
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::{COPY, complete};
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::rope::Rope;
use crate::graph::part::window::{interleaved_windows, uniform_window};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;
use crate::spec::model::value::{base_of_angles, says_nothing};

/// `granite_swa`.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, true)?;
    let network = FeedForward::read_biased(keys, whole.hidden)?;
    layers(keys, whole, network.into())
}

/// `granitemoe_swa`: experts in every layer, with a shared network if it has a width.
pub fn build_moe(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec { names: GRANITE_NAMES, ..DecoderSpec::read(keys, false)? };
    let moe = granite_experts(keys, whole.hidden)?;
    layers(keys, whole, moe.into())
}

/// The layers whose index is a multiple of four are full, unless `layer_types` is given.
fn layers(keys: &Keys<'_>, whole: DecoderSpec, network: Network) -> Result<ModelGraph, Error> {
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let attention = Attention { sinks: true, ..attention };
    let window = uniform_window(keys, Some(128))?;
    let windows = interleaved_windows(keys, whole.layers, window, |layer| layer % 4 != 0)?;
    let ropes = rotations(keys, whole.layers, attention.rope)?;
    let layer = |(window, rope): (Option<Count>, Option<Rope>)| {
        Layer::new(Attention { mask: window.into(), rope, ..attention.clone() }, network.clone())
    };
    Ok(whole.graph(windows.into_iter().zip(ropes).map(layer).collect(), vec![]))
}

/// The rotation of each layer: by `layer_rope_theta`, in which 0 means none, else the same `rope` in all.
pub(super) fn rotations(
    keys: &Keys<'_>,
    layers: Count,
    rope: Option<Rope>,
) -> Result<Vec<Option<Rope>>, Error> {
    let key = "layer_rope_theta";
    let bases = match keys.value(key) {
        None | Some(Value::Null) => return Ok(vec![rope; layers.value as usize]),
        Some(Value::Array(bases)) => bases,
        Some(_) => return Err(Error::new(key, "not a list", "a list of bases of angles", COPY)),
    };
    complete(key, bases.len(), layers, COPY)?;
    let one = |(at, base): (usize, &Value)| {
        if base.is_number() && says_nothing(base) {
            return Ok(None);
        }
        let theta = Count::config(key, base_of_angles(&format!("{key}[{at}]"), base)?);
        Ok(rope.map(|rope| Rope { theta, ..rope }))
    };
    bases.iter().enumerate().map(one).collect()
}
