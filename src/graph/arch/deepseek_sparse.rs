//! DeepSeek-V3.2 and GLM-5: latent attention that reads the keys an indexer picked; GLM-4.7-Flash: without one.

use serde_json::json;

use super::deepseek::{CORRECTION_BIAS, Family, Mtp, build_family};
use crate::graph::model::ModelGraph;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `deepseek_v32`: an indexer in every layer.
pub fn build_v32(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    build_family(
        keys,
        &Family { correction_bias: CORRECTION_BIAS, indexers: Some(everywhere), mtp: Mtp::WithCopies },
    )
}

/// `glm_moe_dsa`: some layers reuse the picks of an earlier one; embedding and head are stored once.
pub fn build_glm(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&[
        "indexer_rope_interleave",
        "rope_interleave",
        "moe_router_dtype",
        "index_share_for_mtp_iteration",
    ]);
    build_family(
        keys,
        &Family { correction_bias: CORRECTION_BIAS, indexers: Some(indexer_types), mtp: Mtp::Shared },
    )
}

/// `glm4_moe_lite`: DeepSeek-V3's layers; layers with experts by `mlp_layer_types`.
pub fn build_glm_lite(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["rope_interleave"]);
    build_family(keys, &Family { correction_bias: CORRECTION_BIAS, indexers: None, mtp: Mtp::WithCopies })
}

/// An indexer of its own in every layer.
fn everywhere(_: &Keys<'_>, layers: Count) -> Result<Vec<bool>, Error> {
    Ok(vec![true; layers.value as usize])
}

/// Which layers have an indexer of their own: `indexer_types`, else a pattern, else every `index_topk_freq`-th.
fn indexer_types(keys: &Keys<'_>, layers: Count) -> Result<Vec<bool>, Error> {
    keys.set_aside(&["index_topk_freq", "index_skip_topk_offset"]);
    keys.only("index_topk_pattern", &json!(null))?;
    let Some(types) = keys.texts("indexer_types")? else {
        let frequency = keys.count_or("index_topk_freq", 1)?.value;
        let offset = keys.count_or("index_skip_topk_offset", 2)?.value;
        return Ok((0..layers.value)
            .map(|layer| (layer + 1).saturating_sub(offset).is_multiple_of(frequency))
            .collect());
    };
    let refuse = |key: &str, found: &str, expected: String| {
        Error::new(key, found, expected, "copy indexer_types from the model's config.json")
    };
    if types.len() as u64 != layers.value {
        let expected = format!("one entry for each of the {} layers", layers.value);
        return Err(refuse("indexer_types", &format!("a list of {}", types.len()), expected));
    }
    let one = |(at, kind): (usize, &String)| match (at, kind.as_str()) {
        (_, "full") => Ok(true),
        (1.., "shared") => Ok(false),
        (_, other) => {
            Err(refuse(&format!("indexer_types[{at}]"), other, "full, or shared after the first".to_owned()))
        }
    };
    types.iter().enumerate().map(one).collect()
}
