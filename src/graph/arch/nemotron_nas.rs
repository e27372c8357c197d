//! Nemotron-NAS (DeciLM): each block has attention and a network of its own size, or omits them.
//!
//! Widths follow DeciLM's own code, which is not part of transformers.

use serde_json::{Value, json};

use crate::graph::model::ModelGraph;
use crate::graph::part::attention::Attention;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::complete;
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::misfit;
use crate::graph::part::rope::RopeClass;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Rounding multiple of a network's width.
const MULTIPLE: u64 = 256;

/// `nemotron-nas`: `block_configs` defines each layer.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.only("num_key_value_heads", &Value::Null)?;
    keys.only("intermediate_size", &Value::Null)?;
    let whole = DecoderSpec::read(keys, false)?;
    let heads = keys.count("num_attention_heads")?;
    let attention_bias = keys.flag("attention_bias", false)?;
    let mlp_bias = keys.flag("mlp_bias", false)?;
    let blocks = keys.section_list("block_configs")?;
    let fix = "copy block_configs from the model's config.json";
    complete("block_configs", blocks.len(), whole.layers, fix)?;
    let head_dim = keys.count_or_none("head_dim")?;
    let layer = |block: &Keys<'_>| {
        let mixer = match replaced(&block.section("attention")?)? {
            Some(Replaced::Nothing) => Mixer::Absent,
            Some(Replaced::Linear) => Mixer::Linear,
            None => {
                let kv_heads = kv_heads(&block.section("attention")?, heads)?;
                let attention = Attention::of(whole.hidden, heads, kv_heads, head_dim)?;
                let attention = attention.rotated(keys, RopeClass::WHOLE)?;
                let (qkv_bias, o_bias) = (attention_bias, attention_bias);
                Mixer::Attention(Attention { qkv_bias, o_bias, ..attention })
            }
        };
        let network = match replaced(&block.section("ffn")?)? {
            Some(Replaced::Nothing) => Network::Absent,
            Some(Replaced::Linear) => Network::Linear,
            None => {
                let width = intermediate(&block.section("ffn")?, whole.hidden)?;
                FeedForward { bias: mlp_bias, ..FeedForward::gated(whole.hidden, width) }.into()
            }
        };
        Ok(Layer::of(whole.hidden, mixer, network))
    };
    let layers = blocks.iter().map(layer).collect::<Result<Vec<_>, Error>>()?;
    Ok(whole.graph(layers, vec![]))
}

/// The replacement of attention or a network.
enum Replaced {
    Nothing,
    Linear,
}

fn replaced(part: &Keys<'_>) -> Result<Option<Replaced>, Error> {
    // Pruning inside a matrix changes no shape.
    part.set_aside(&["n_heads_in_group", "ffn_mult", "sparsify"]);
    for key in ["num_sink_tokens", "window_length"] {
        part.only(key, &Value::Null)?;
    }
    for key in ["unshifted_sink", "use_prefill_window_in_sink_attention"] {
        part.only(key, &json!(false))?;
    }
    Ok(if part.flag("no_op", false)? {
        Some(Replaced::Nothing)
    } else {
        part.flag("replace_with_linear", false)?.then_some(Replaced::Linear)
    })
}

fn kv_heads(attention: &Keys<'_>, heads: Count) -> Result<Count, Error> {
    let group = attention.count("n_heads_in_group")?;
    if !heads.value.is_multiple_of(group.value) {
        return Err(misfit(group, format!("a divisor of num_attention_heads {}", heads.value)));
    }
    Ok(Count::derived("kv_heads", heads.value / group.value, "num_attention_heads / n_heads_in_group"))
}

fn intermediate(network: &Keys<'_>, hidden: Count) -> Result<Count, Error> {
    let [numerator, denominator] = network.decimal("ffn_mult")?;
    let width = u128::from(2 * hidden.value) * u128::from(numerator) / u128::from(3 * denominator);
    let most = u128::from(crate::spec::model::value::WIDTH_LIMIT);
    if width > most {
        let fix = "copy ffn_mult from the model's config.json";
        return Err(Error::new("ffn_mult", format!("a width of {width}"), format!("at most {most}"), fix));
    }
    let width = (width as u64).div_ceil(MULTIPLE) * MULTIPLE;
    Ok(Count::derived("intermediate", width, "2/3 × ffn_mult × hidden_size, up to a multiple of 256"))
}
