//! Kolibri-1: GLM-4's four norms a layer, experts in every layer, one full layer without rotation in five.
//!
//! Source: `modular_kolibri1.py` of transformers 5.24.

use super::glm::SANDWICH_NAMES;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer};
use crate::graph::part::moe::{Moe, SharedExperts};
use crate::graph::part::window::{interleaved_windows, uniform_window};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `kolibri1`: a norm on each head of Q and K, no biases, a shared expert of a width of its own.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec { names: SANDWICH_NAMES, ..DecoderSpec::read(keys, false)? };
    let hidden = whole.hidden;
    keys.count("head_dim")?;
    let attention = Attention { qk_norm: QkNorm::PerHead, ..Attention::read_stated(keys, hidden)? };
    let experts = keys.spelling(&["num_local_experts", "num_experts"])?;
    let width = keys.count("shared_expert_intermediate_size")?;
    let network = FeedForward::gated(hidden, width);
    let moe = Moe {
        correction_bias: Some("mlp.gate.e_score_correction_bias"),
        shared: Some(SharedExperts { tensor: "mlp.shared_experts", network, gate: None }),
        ..Moe::read(keys, hidden, [experts, "num_experts_per_tok", "moe_intermediate_size"])?
    };
    let window = uniform_window(keys, Some(513))?;
    let windows = interleaved_windows(keys, whole.layers, window, |layer| !(layer + 1).is_multiple_of(5))?;
    let layer = |window: Option<Count>| {
        let rope = attention.rope.filter(|_| window.is_some());
        let layer = Layer::new(Attention { mask: window.into(), rope, ..attention.clone() }, moe.clone());
        Layer { arrangement: Arrangement::Sandwich, ..layer }
    };
    Ok(whole.graph(windows.into_iter().map(layer).collect(), vec![]))
}
