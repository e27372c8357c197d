//! Mamba-2 with attention: interleaved in Bamba and Granite-4, in parallel in every layer of Falcon-H1.
//!
//! Defaults for missing keys: the configuration classes of transformers.

use serde_json::{Value, json};

use super::mamba::{fills, inner};
use crate::graph::arch::class_keys::ignored;
use crate::graph::cache::StateWidth;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::moe::{Moe, SharedExperts};
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::rope::RopeClass;
use crate::graph::part::ssd::Ssd;
use crate::graph::part::unless_zero_or;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const BAMBA: TensorNames = TensorNames::of_table(&[
    ("model.norm", "model.final_layernorm"),
    ("post_attention_layernorm", "pre_ff_layernorm"),
    ("mlp", "feed_forward"),
]);

const GRANITE: TensorNames = TensorNames::of_table(&[
    ("mlp.experts", "block_sparse_moe.experts"),
    ("mlp.gate_proj mlp.up_proj", "shared_mlp.input_linear"),
    ("mlp.down_proj", "shared_mlp.output_linear"),
    ("mlp.gate", "block_sparse_moe.router"),
]);

/// `bamba`: attention in the layers of `attn_layer_indices`.
pub fn build_bamba(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("mamba2 mixer"));
    let whole = DecoderSpec { names: BAMBA, ..DecoderSpec::read(keys, false)? };
    let hidden = whole.hidden;
    let attending = keys.numbers("attn_layer_indices")?.unwrap_or_default();
    let attention = Attention::read_stated(keys, hidden)?.biased(keys.flag("attention_bias", false)?);
    let attention = attention.rotated(keys, RopeClass::HALF)?;
    let ssd = Recurrent::Ssd(read(keys, hidden, inner(keys, hidden, "mamba_expand", None)?)?);
    let network = FeedForward::read_biased(keys, hidden)?;
    let layer = |layer| {
        Layer::of(hidden, Mixer::either(attending.contains(&layer), &attention, &ssd), network.clone())
    };
    let layers = (0..whole.layers.value).map(layer).collect();
    Ok(whole.graph(layers, vec![]))
}

/// `granitemoehybrid`: a shared network in every layer, in parallel with experts if there are any.
pub fn build_granite(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("mamba2 mixer"));
    keys.set_aside(ignored("granitemoehybrid"));
    keys.only("normalization_function", &json!("rmsnorm"))?;
    let whole = DecoderSpec { names: GRANITE, ..DecoderSpec::read(keys, false)? };
    let hidden = whole.hidden;
    let kinds =
        [("mamba", false), ("linear_attention", false), ("attention", true), ("full_attention", true)];
    let attends = layer_kinds(keys, "layer_types", whole.layers, &kinds)?;
    let attends = attends.unwrap_or_else(|| vec![false; whole.layers.value as usize]);
    let bias = keys.flag("attention_bias", false)?;
    let attention = Attention::read_grouped(keys, hidden)?.biased(bias);
    let rope = attention
        .rope
        .filter(|_| keys.text("position_embedding_type").is_ok_and(|kind| kind.as_deref() == Some("rope")));
    let attention = Attention { rope, ..attention };
    let ssd = Recurrent::Ssd(read(keys, hidden, inner(keys, hidden, "mamba_expand", None)?)?);
    let shared = FeedForward::gated(hidden, keys.count_or("shared_intermediate_size", 1024)?);
    keys.set_aside(&["intermediate_size", "num_experts_per_tok"]);
    let experts = unless_zero_or(keys, "num_local_experts", 8)?;
    let network: Network = match experts {
        None => shared.into(),
        Some(experts) => {
            let top_k = keys.count_or("num_experts_per_tok", 2)?;
            let shared = Some(SharedExperts { tensor: "mlp", network: shared, gate: None });
            let moe = Moe::routed(hidden, experts, top_k, keys.count("intermediate_size")?)?;
            Moe { shared, ..moe }.into()
        }
    };
    let layer = |attends| Layer::of(hidden, Mixer::either(attends, &attention, &ssd), network.clone());
    let layers = attends.into_iter().map(layer).collect();
    Ok(whole.graph(layers, vec![]))
}

/// `falcon_h1`: attention and Mamba-2 read the same norm, and their sum is added to the stream.
pub fn build_falcon_h1(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("mamba2 mixer"));
    keys.set_aside(ignored("falcon_h1"));
    keys.only("mamba_use_mlp", &json!(true))?;
    keys.only("attn_layer_indices", &Value::Null)?;
    let whole = DecoderSpec { names: BAMBA, ..DecoderSpec::read(keys, false)? };
    let hidden = whole.hidden;
    let (attention_bias, mlp_bias) = (keys.flag("attention_bias", false)?, keys.flag("mlp_bias", false)?);
    let attention = Attention::read_stated(keys, hidden)?.biased(attention_bias);
    let channels = match keys.has("mamba_d_ssm") {
        true => keys.count_or_none("mamba_d_ssm")?,
        false => Some(Count::class_default("mamba_d_ssm", 1024)),
    };
    let channels = match channels {
        Some(channels) => {
            keys.set_aside(&["mamba_expand"]);
            channels
        }
        None => inner(keys, hidden, "mamba_expand", None)?,
    };
    let ssd = read(keys, hidden, channels)?;
    let out_bias = keys.flag("projectors_bias", false)?;
    let norm = keys.flag("mamba_rms_norm", false)?;
    let ssd = Ssd { bias: [ssd.bias[0], out_bias], norm, ..ssd };
    let network = FeedForward { bias: mlp_bias, ..FeedForward::read(keys, hidden)? };
    let mixer = Mixer::AttentionAndRecurrent(attention, Box::new(Recurrent::Ssd(ssd)));
    let layer = Layer::of(hidden, mixer, network);
    Ok(whole.uniform(layer))
}

/// The `mamba_…` keys of all three, whose classes have the same defaults.
fn read(keys: &Keys<'_>, hidden: Count, inner: Count) -> Result<Ssd, Error> {
    let heads = keys.count_or("mamba_n_heads", 128)?;
    let head_dim = if keys.says("mamba_d_head", "auto") {
        Count::derived("mamba_d_head", inner.value / heads.value, "d_inner / mamba_n_heads")
    } else {
        keys.count("mamba_d_head")?
    };
    let bias = keys.flag("mamba_proj_bias", false)?;
    let ssd = Ssd {
        hidden,
        heads,
        head_dim,
        groups: keys.count_or("mamba_n_groups", 1)?,
        state: keys.count_or("mamba_d_state", 256)?,
        kernel: keys.count_or("mamba_d_conv", 4)?,
        chunk: keys.count_or("mamba_chunk_size", 256)?,
        bias: [bias, bias],
        conv_bias: keys.flag("mamba_conv_bias", true)?,
        norm: true,
        width: StateWidth::Native,
    };
    fills(&ssd, inner)?;
    ssd.checked()
}
