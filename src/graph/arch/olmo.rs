//! OLMo: the first generation without learned norms; OLMo-2 and 3 with norms after attention and network only.

use crate::graph::assembly::Affine;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Arrangement, Layer};
use crate::graph::part::moe::Moe;
use crate::graph::part::window::patterned_windows;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `olmo`: LayerNorm without scale or shift.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let norm = Affine::Absent;
    let whole = DecoderSpec { norm, ..DecoderSpec::read(keys, false)? };
    let layer = Layer { norm, ..layer(keys, &whole, QkNorm::Absent)? };
    Ok(whole.uniform(layer))
}

/// `olmo2`: norms over the whole Q and K projections.
pub fn build_olmo2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let layer = layer(keys, &whole, QkNorm::WholeProjection)?;
    Ok(whole.uniform(Layer { arrangement: Arrangement::PostNorm, ..layer }))
}

/// `olmo3`: OLMo-2 with one full layer in four.
pub fn build_olmo3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let layer = layer(keys, &whole, QkNorm::WholeProjection)?;
    let layer = Layer { arrangement: Arrangement::PostNorm, ..layer };
    let windows = patterned_windows(keys, whole.layers, 4096, 4)?;
    Ok(whole.windowed(&layer, windows))
}

/// `olmoe`: norms on Q and K as in OLMo-2, pre-norm layers, experts in every layer.
pub fn build_olmoe(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    with_experts(keys, [64, 8], Arrangement::PreNorm)
}

/// `flex_olmo`: OLMo-2's layers with experts.
pub fn build_flex(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    with_experts(keys, [7, 5], Arrangement::PostNorm)
}

/// `default`: experts and experts per token, if the file omits them.
fn with_experts(keys: &Keys<'_>, default: [u64; 2], arrangement: Arrangement) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    let experts = keys.spelling(&["num_experts", "num_local_experts"])?;
    let moe = Moe::routed(
        whole.hidden,
        keys.count_or(experts, default[0])?,
        keys.count_or("num_experts_per_tok", default[1])?,
        keys.count("intermediate_size")?,
    )?;
    let attention = attention(keys, &whole, QkNorm::WholeProjection)?;
    let layer = Layer::new(attention, moe);
    Ok(whole.uniform(Layer { arrangement, ..layer }))
}

fn attention(keys: &Keys<'_>, whole: &DecoderSpec, qk_norm: QkNorm) -> Result<Attention, Error> {
    let attention = Attention::read_grouped(keys, whole.hidden)?;
    Ok(Attention { qk_norm, ..attention.biased(keys.flag("attention_bias", false)?) })
}

fn layer(keys: &Keys<'_>, whole: &DecoderSpec, qk_norm: QkNorm) -> Result<Layer, Error> {
    let network = FeedForward::read(keys, whole.hidden)?;
    Ok(Layer::new(attention(keys, whole, qk_norm)?, network))
}
