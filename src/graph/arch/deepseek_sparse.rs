//! DeepSeek-V3.2 and GLM-5: latent attention over the keys that an indexer selects.

use serde_json::json;

use super::deepseek::{self, DeepseekVariant, Mtp, V3};
use crate::graph::arch::class_keys::ignored;
use crate::graph::mask::AttentionMask;
use crate::graph::model::ModelGraph;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::indexer::Indexer;
use crate::graph::part::kinds::complete;
use crate::graph::part::latent::Latent;
use crate::graph::part::layer::Mixer;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// GLM-5 stores embedding and head once.
const GLM: DeepseekVariant = DeepseekVariant { mtp: Mtp::Shared, ..V3 };

/// `deepseek_v32`: an indexer in every layer.
pub fn build_v32(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    // Inherited by the class, which does not read it.
    keys.set_aside(&["mlp_bias"]);
    let whole = DecoderSpec::read(keys, false)?;
    let own = everywhere(whole.layers);
    build(keys, whole, own, V3)
}

/// `glm_moe_dsa`: some layers reuse the selection of an earlier one; embedding and head are stored once.
pub fn build_glm(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("glm_moe_dsa"));
    // The class has the key, and no module reads it.
    keys.set_aside(&["mlp_bias"]);
    let whole = DecoderSpec::read(keys, false)?;
    let own = indexer_types(keys, whole.layers, 1)?;
    // The class uses it as `n_routed_experts`, of which it is a copy.
    keys.only("num_experts", &json!(keys.count("n_routed_experts")?.value))?;
    build(keys, whole, own, GLM)
}

/// Latent attention over an indexer's selection, the layer's `own` or that of an earlier layer.
fn build(
    keys: &Keys<'_>,
    whole: DecoderSpec,
    own: Vec<bool>,
    family: DeepseekVariant,
) -> Result<ModelGraph, Error> {
    let every = |kind: &str| json!(vec![kind; whole.layers.value as usize]);
    keys.only("layer_types", &every("deepseek_sparse_attention"))
        .or_else(|_| keys.only("layer_types", &every("indexed_attention")))?;
    let indexer = Indexer::read(keys, whole.hidden)?;
    let mut latent = Latent::read(keys, whole.hidden)?;
    latent.dims.mask = AttentionMask::Selected(indexer.top_k);
    let mixer = |own| Mixer::Latent(Latent { indexer: Some(indexer).filter(|_| own), ..latent.clone() });
    let mixers = own.into_iter().map(mixer).collect();
    deepseek::layers(keys, whole, mixers, Some(mixer(true)), family)
}

/// An indexer of its own in every layer.
fn everywhere(layers: Count) -> Vec<bool> {
    vec![true; layers.value as usize]
}

/// The layers with their own indexer: `indexer_types`, else a pattern, else every `index_topk_freq`-th.
pub(super) fn indexer_types(keys: &Keys<'_>, layers: Count, every: u64) -> Result<Vec<bool>, Error> {
    keys.set_aside(&["index_topk_freq", "index_skip_topk_offset"]);
    keys.only("index_topk_pattern", &json!(null))?;
    let Some(types) = keys.texts("indexer_types")? else {
        let frequency = keys.count_or("index_topk_freq", every)?.value;
        let offset = keys.count_or("index_skip_topk_offset", 2)?.value;
        return Ok((0..layers.value)
            .map(|layer| (layer + 1).saturating_sub(offset).is_multiple_of(frequency))
            .collect());
    };
    let fix = "copy indexer_types from the model's config.json";
    complete("indexer_types", types.len(), layers, fix)?;
    let one = |(at, kind): (usize, &String)| match (at, kind.as_str()) {
        (_, "full") => Ok(true),
        (1.., "shared") => Ok(false),
        (_, other) => {
            Err(Error::new(format!("indexer_types[{at}]"), other, "full, or shared after the first", fix))
        }
    };
    types.iter().enumerate().map(one).collect()
}
