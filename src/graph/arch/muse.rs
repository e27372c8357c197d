//! The language models of Muse Glimmer and Muse Spark: Gemma-2's four norms, a gate on attention, windows in three layers
//! of four; Spark has experts that work at a width of their own.
//!
//! Source: `modular_muse_glimmer.py` and `modular_muse_spark.py` of transformers 5.24.

use super::granite_swa::rotations;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, OutputGate};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::{Arrangement, Layer, Network};
use crate::graph::part::moe::Moe;
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::Rope;
use crate::graph::part::streams::{Extras, Side};
use crate::graph::part::window::{interleaved_windows, uniform_window};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Spark's norm after attention has no scale; a gate on the residual sum has one number per element instead.
const SPARK: TensorNames = TensorNames::of_table(&[
    ("post_attention_layernorm.weight", "post_attention_residual_gate.gate"),
    ("mlp.fc1_latent_proj", "mlp.pre_expert_proj"),
    ("mlp.fc2_latent_proj", "mlp.post_expert_proj"),
]);

/// `muse_glimmer_text`.
pub fn build_glimmer(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let dense = Network::from(FeedForward::read(keys, whole.hidden)?);
    let networks = vec![dense; whole.layers.value as usize];
    layers(keys, whole, networks, vec![])
}

/// `muse_spark_text`.
pub fn build_spark(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec { names: SPARK, ..DecoderSpec::read(keys, false)? };
    let hidden = whole.hidden;
    let names = ["num_local_experts", "num_experts_per_tok", "moe_intermediate_size"];
    let moe = Moe {
        correction_bias: Some("mlp.gate.e_score_correction_bias"),
        latent: Some(keys.count("moe_hidden_size")?),
        latent_norms: Some(["mlp.pre_expert_norm", "mlp.experts.post_expert_norm"]),
        ..Moe::read(keys, hidden, names)?
    };
    let dense = FeedForward::read(keys, hidden)?;
    let words = [("dense", false), ("sparse", true)];
    let sparse = layer_kinds(keys, "mlp_layer_types", whole.layers, &words)?
        .unwrap_or_else(|| vec![true; whole.layers.value as usize]);
    let networks = sparse.into_iter().map(|sparse| Network::either(sparse, &moe, &dense)).collect();
    let gate = Side::elements("post_feedforward_residual_gate.gate", vec![hidden.value]);
    layers(keys, whole, networks, vec![gate])
}

/// A layer with each of `networks`; every fourth from the last is full and not rotated.
fn layers(
    keys: &Keys<'_>,
    whole: DecoderSpec,
    networks: Vec<Network>,
    sides: Vec<Side>,
) -> Result<ModelGraph, Error> {
    keys.set_aside(&["output_multiplier", "post_norm_eps", "qk_scale_factor", "residual_gate_temperature"]);
    let attention = Attention::read_stated(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let gate = Some(OutputGate::PerElement("gate_proj"));
    let attention = Attention { output_gate: gate, ..attention };
    let window = uniform_window(keys, Some(2048))?;
    let count = whole.layers.value;
    let windows = interleaved_windows(keys, whole.layers, window, |layer| (count - layer) % 4 != 1)?;
    let ropes = rotations(keys, whole.layers, attention.rope)?;
    let extras = Extras { sides, ..Extras::default() };
    let layer = |((window, rope), network): ((Option<Count>, Option<Rope>), Network)| {
        let layer = Layer::new(Attention { mask: window.into(), rope, ..attention.clone() }, network);
        Layer { arrangement: Arrangement::Sandwich, extras: extras.clone(), ..layer }
    };
    let built = windows.into_iter().zip(ropes).zip(networks).map(layer).collect();
    Ok(whole.graph(built, vec![]))
}
