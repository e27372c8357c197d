//! Parts that architectures share: attention, feed-forward networks, the layer, the whole model.
//!
//! A family combines parts. Equal layers become one block. Independent of `model_type`.

pub mod attention;
pub mod compressed;
pub mod cross;
pub mod decoder;
pub mod delta;
pub mod encoder;
pub mod feed_forward;
pub mod hyper;
pub mod indexer;
pub mod kimi_delta;
pub mod kinds;
pub mod latent;
pub mod layer;
pub mod lightning;
pub mod lru;
pub mod mamba;
pub mod memory_cells;
pub mod moe;
pub mod names;
pub mod ngrams;
pub mod recurrent;
pub mod rope;
pub mod shared_transformer;
pub mod short_conv;
pub mod ssd;
pub mod streams;
pub mod window;

use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Runs of layers for a token, at most: the limit of `num_hidden_layers`.
const MOST_RUNS: u64 = 2_000;

/// A number of which 0 means none; `default` of the class if absent.
pub fn unless_zero_or(keys: &Keys<'_>, key: &'static str, default: u64) -> Result<Option<Count>, Error> {
    match keys.has(key) {
        true => keys.count_unless_zero(key),
        false => Ok(Some(Count::class_default(key, default))),
    }
}

/// Runs of layers for a token, where some layers run several times; at most as many as a model has layers.
pub fn runs(key: &'static str, number: u64) -> Result<Count, Error> {
    if (1..=MOST_RUNS).contains(&number) {
        return Ok(Count::derived("layer_runs", number, "layers, each as often as it runs"));
    }
    let fix = "copy the numbers of layers and loops from the model's config.json";
    Err(Error::new(key, format!("{number} runs of layers"), format!("1 to {MOST_RUNS}"), fix))
}

/// The error for a number that does not fit another one of the file.
pub fn misfit(number: Count, expected: String) -> Error {
    let fix = "copy both values from the model's config.json";
    Error::new(number.symbol, number.value.to_string(), expected, fix)
}
