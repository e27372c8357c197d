//! MiniMax-M2: GQA with norms over the whole Q and K projections, experts with a balancing buffer.

use serde_json::json;

use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::layer::Layer;
use crate::graph::part::moe::Moe;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `minimax_m2`: full attention and 256 experts in every layer, none shared.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, false)?;
    // The files declare multi-token prediction, but the checkpoints' total sizes leave no weights for it.
    keys.set_aside(&["use_mtp", "num_mtp_modules", "mtp_transformer_layers"]);
    keys.only("use_qk_norm", &json!(true))?;
    keys.only("qk_norm_type", &json!("per_layer"))?;
    keys.only("use_routing_bias", &json!(true))?;
    keys.only("shared_intermediate_size", &json!(0))?;
    keys.only("sliding_window", &json!(null))?;
    keys.only("attn_type_list", &json!(vec![1; whole.layers.value as usize]))?;
    keys.count("head_dim")?;
    let attention =
        Attention { qk_norm: QkNorm::WholeProjection, ..Attention::read_stated(keys, whole.hidden)? };
    let moe = Moe {
        correction_bias: Some("mlp.e_score_correction_bias"),
        ..Moe::read(keys, whole.hidden, ["num_local_experts", "num_experts_per_tok", "intermediate_size"])?
    };
    Ok(whole.uniform(Layer::new(attention, moe)))
}
