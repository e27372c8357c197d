//! Phi-3 and Phi-4-mini: Llama's layers with Q, K, V stored as one matrix, and gate and up as another.

use serde_json::json;

use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, Packing};
use crate::graph::part::feed_forward::{FeedForward, Form};
use crate::graph::part::layer::{Layer, Network};
use crate::graph::part::whole::Whole;
use crate::graph::part::window::uniform_window;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `phi3`: no biases, whatever the file says of them would be another model.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = Whole::read(keys, false)?;
    for key in ["attention_bias", "mlp_bias", "lm_head_bias"] {
        keys.only(key, &json!(false))?;
    }
    let window = uniform_window(keys, None)?;
    let packing = Packing::Joined;
    let attention =
        Attention { reach: window.into(), packing, ..Attention::read_grouped(keys, whole.hidden)? };
    let network = FeedForward {
        form: Form::Gated(packing),
        ..FeedForward::gated(whole.hidden, keys.count("intermediate_size")?)
    };
    Ok(whole.uniform(Layer::new(attention, Network::Dense(network))))
}
