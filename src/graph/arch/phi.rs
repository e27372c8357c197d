//! Phi-1 to 2, StableLM: LayerNorm with shift; attention and network in parallel behind one norm.

use crate::graph::assembly::Affine;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer};
use crate::graph::part::names::TensorNames;
use crate::graph::part::rope::RopeClass;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `phi`: biases throughout, the head included.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let norm = Affine::ScaleAndShift;
    let whole = DecoderSpec { norm, head_bias: true, names: NAMES, ..DecoderSpec::read(keys, false)? };
    let qk_norm = if keys.flag("qk_layernorm", false)? { QkNorm::PerHeadWithShift } else { QkNorm::Absent };
    let attention = Attention { qk_norm, ..Attention::read_grouped(keys, whole.hidden)?.biased(true) };
    let attention = attention.rotated(keys, RopeClass::HALF)?;
    let network = FeedForward::plain(whole.hidden, keys.count("intermediate_size")?, true);
    let layer = Layer::new(attention, network);
    Ok(whole.uniform(Layer { norm, arrangement: Arrangement::Parallel, ..layer }))
}

/// `stablelm`: in parallel only with `use_parallel_residual`; biases on Q, K and V only.
pub fn build_stablelm(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["rope_pct", "rotary_scaling_factor"]);
    let norm = Affine::ScaleAndShift;
    let whole = DecoderSpec { norm, names: STABLELM_NAMES, ..DecoderSpec::read(keys, false)? };
    let attention = Attention {
        qkv_bias: keys.flag("use_qkv_bias", false)?,
        qk_norm: if keys.flag("qk_layernorm", false)? { QkNorm::PerHeadTensors } else { QkNorm::Absent },
        ..Attention::read_stated(keys, whole.hidden)?
    };
    let attention = attention.rotated(keys, RopeClass::QUARTER)?;
    let parallel = keys.flag("use_parallel_residual", false)?;
    let arrangement = if parallel { Arrangement::Parallel } else { Arrangement::PreNorm };
    let network = FeedForward::read(keys, whole.hidden)?;
    let layer = Layer::new(attention, network);
    Ok(whole.uniform(Layer { norm, arrangement, ..layer }))
}

const NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.o_proj", "self_attn.dense"),
    ("self_attn.q_norm", "self_attn.q_layernorm"),
    ("self_attn.k_norm", "self_attn.k_layernorm"),
    ("mlp.up_proj", "mlp.fc1"),
    ("mlp.down_proj", "mlp.fc2"),
    ("model.norm", "model.final_layernorm"),
]);

const STABLELM_NAMES: TensorNames = TensorNames::of_table(&[
    ("self_attn.q_norm", "self_attn.q_layernorm"),
    ("self_attn.k_norm", "self_attn.k_layernorm"),
]);
