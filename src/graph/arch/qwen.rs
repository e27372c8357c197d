//! Dense Qwen: Qwen1.5, 2 and 2.5 with biases on Q, K and V; Qwen3 with a norm on each head of Q and K.

use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::whole::Whole;
use crate::graph::part::window::qwen_windows;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `qwen2`: Q, K and V carry biases by class, without a key; the output projection does not.
pub fn build_qwen2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // `use_mrope` and `is_causal` choose position encoding and mask.
    keys.set_aside(&["use_mrope", "is_causal"]);
    let whole = Whole::read(keys, false)?;
    let attention = Attention { qkv_bias: true, ..Attention::read_stated(keys, whole.hidden)? };
    dense(keys, whole, attention)
}

/// `qwen3`: a norm of `head_dim` on each head of Q and K. The class's `head_dim` is no quotient, so it must be stated.
pub fn build_qwen3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = Whole::read(keys, false)?;
    let attention = normed_attention(keys, &whole)?;
    dense(keys, whole, attention)
}

/// Attention of Qwen3, dense or MoE.
pub(super) fn normed_attention(keys: &Keys<'_>, whole: &Whole) -> Result<Attention, Error> {
    keys.count("head_dim")?;
    let bias = keys.flag("attention_bias", false)?;
    let qk_norm = QkNorm::PerHead;
    Ok(Attention { qkv_bias: bias, o_bias: bias, qk_norm, ..Attention::read_stated(keys, whole.hidden)? })
}

fn dense(keys: &Keys<'_>, whole: Whole, attention: Attention) -> Result<ModelGraph, Error> {
    let windows = qwen_windows(keys, whole.layers)?;
    let network = Network::Dense(FeedForward::gated(whole.hidden, keys.count("intermediate_size")?));
    let layer = |window: Option<Count>| {
        Layer::new(Attention { reach: window.into(), ..attention.clone() }, network.clone())
    };
    Ok(whole.graph(windows.into_iter().map(layer).collect(), vec![]))
}
