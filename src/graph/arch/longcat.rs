//! LongCat-Flash: two latent attentions and two dense networks in each layer, with experts around the second pair; some
//! experts have no weights.
//!
//! Source: `modular_longcat_flash.py` of transformers 5.24.

use serde_json::json;

use crate::graph::model::ModelGraph;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::latent::Latent;
use crate::graph::part::layer::{Layer, Mixer};
use crate::graph::part::moe::Moe;
use crate::graph::part::names::TensorNames;
use crate::graph::part::streams::Extras;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

const NAMES: TensorNames =
    TensorNames::of_table(&[("mlp.gate.e_score_correction_bias", "mlp.router.e_score_correction_bias")]);

/// `longcat_flash`.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Scales of queries and latents, without weights.
    keys.set_aside(&["mla_scale_q_lora", "mla_scale_kv_lora", "attention_method"]);
    keys.only("zero_expert_type", &json!("identity"))?;
    let (hidden, layers) =
        (keys.count("hidden_size")?, keys.count(keys.spelling(&["num_layers", "num_hidden_layers"])?)?);
    let whole = DecoderSpec::of(keys, hidden, layers, keys.count("vocab_size")?, false)?;
    let whole = DecoderSpec { names: NAMES, ..whole };
    let latent = Mixer::Latent(Latent::read(keys, hidden)?);
    let moe = Moe {
        idle: keys.count_unless_zero("zero_expert_num")?,
        router: "mlp.router.classifier",
        router_bias: keys.flag("router_bias", false)?,
        correction_bias: Some("mlp.gate.e_score_correction_bias"),
        ..Moe::read(keys, hidden, ["n_routed_experts", "moe_topk", "expert_ffn_hidden_size"])?
    };
    let dense = FeedForward::gated(hidden, keys.count("ffn_hidden_size")?);
    let second = Some(Box::new((latent.clone(), dense)));
    let layer = Layer::of(hidden, latent, moe);
    Ok(whole.uniform(Layer { extras: Extras { second, ..Extras::default() }, ..layer }))
}

#[cfg(test)]
mod tests {
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    #[test]
    fn a_layer_has_two_caches_and_experts_without_weights_are_expected_as_often_as_others() {
        let text = r#"{"model_type": "longcat_flash", "hidden_size": 6, "num_layers": 2, "vocab_size": 11,
            "num_attention_heads": 4, "q_lora_rank": null, "kv_lora_rank": 8, "qk_rope_head_dim": 2,
            "qk_nope_head_dim": 3, "v_head_dim": 5, "ffn_hidden_size": 10, "expert_ffn_hidden_size": 7,
            "n_routed_experts": 4, "zero_expert_num": 4, "moe_topk": 4}"#;
        let graph = ModelGraph::build(&ModelConfig::parse(text).unwrap()).unwrap();
        assert_eq!(graph.kv_elements_per_token().growing, 2 * 2 * (8 + 2));
        let attention = 6 * 4 * 5 + 6 * (8 + 2) + 8 + 8 * 4 * (3 + 5) + 4 * 5 * 6 + 2 * 6;
        let layer = 2 * (attention + 3 * 6 * 10) + 8 * 6;
        let (unique, expert) = (graph.parameters().unique, 3 * 6 * 7);
        assert_eq!(unique, 2 * 11 * 6 + 6 + 2 * (layer + 4 * expert));
        assert_eq!(unique - graph.parameters().active, 2 * 2 * expert);
    }
}
