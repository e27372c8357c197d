//! DeepSeek-V2 and V3, and Kimi-K2: latent attention, dense layers first, then routed and shared experts.

use serde_json::json;

use crate::graph::assembly::weight;
use crate::graph::model::ModelGraph;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::indexer::Indexer;
use crate::graph::part::latent::Latent;
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::moe::{Moe, Shared};
use crate::graph::part::whole::Whole;
use crate::graph::reach::Reach;
use crate::graph::tensor::{Role, Weight};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// What a checkpoint of multi-token prediction stores again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mtp {
    /// Embedding and head beside the module's layer, projection and norms.
    WithCopies,
    /// Neither: the module uses the model's own.
    Shared,
}

/// Which layers have an indexer of their own.
pub type Indexers = fn(&Keys<'_>, Count) -> Result<Vec<bool>, Error>;

/// What tells the families with DeepSeek's layers apart.
pub struct Family {
    /// The buffer that balances the experts.
    pub correction_bias: Option<&'static str>,
    /// Indexers of sparse attention, where there is any.
    pub indexers: Option<Indexers>,
    /// What multi-token prediction ships.
    pub mtp: Mtp,
}

/// `deepseek_v2`: experts chosen by plain scores.
pub fn build_v2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    build_family(keys, &Family { correction_bias: None, indexers: None, mtp: Mtp::WithCopies })
}

/// `deepseek_v3` and `kimi_k2`: a buffer balances the experts.
pub fn build_v3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    build_family(keys, &Family { correction_bias: CORRECTION_BIAS, indexers: None, mtp: Mtp::WithCopies })
}

/// The buffer that balances the experts.
pub const CORRECTION_BIAS: Option<&str> = Some("mlp.gate.e_score_correction_bias");

/// A model of DeepSeek's layers.
pub fn build_family(keys: &Keys<'_>, family: &Family) -> Result<ModelGraph, Error> {
    let whole = Whole::read(keys, false)?;
    let hidden = whole.hidden;
    keys.only("moe_layer_freq", &json!(1))?;
    let latent = Latent::read(keys, hidden)?;
    let correction_bias = family.correction_bias;
    let moe = Moe { correction_bias, shared: shared(keys, hidden)?, ..routed(keys, hidden)? };
    let indexer = family.indexers.map(|_| Indexer::read(keys, hidden)).transpose()?;
    let layer = |network, own| {
        let reach = indexer.map_or(Reach::All, |indexer| Reach::Selected(indexer.top_k));
        let latent = Latent { reach, indexer: indexer.filter(|_| own), ..latent.clone() };
        Layer::of(hidden, Mixer::Latent(latent), network)
    };
    let count = whole.layers.value as usize;
    let indexers = family.indexers.map_or(Ok(vec![false; count]), |read| read(keys, whole.layers))?;
    let sparse = sparse_layers(keys, whole.layers)?;
    let mut layers = Vec::with_capacity(count);
    keys.set_aside(&["intermediate_size"]);
    for (sparse, own) in sparse.into_iter().zip(indexers) {
        let network = if sparse {
            Network::Moe(Box::new(moe.clone()))
        } else {
            Network::Dense(FeedForward::gated(hidden, keys.count("intermediate_size")?))
        };
        layers.push(layer(network, own));
    }
    let modules = keys.count_unless_zero("num_nextn_predict_layers")?.map_or(0, |modules| modules.value);
    let predicting = layer(Network::Moe(Box::new(moe.clone())), true);
    let module = |module| mtp_module(&whole, &predicting, whole.layers.value + module, family.mtp);
    let mtp = (0..modules).flat_map(module).collect();
    Ok(whole.graph(layers, mtp))
}

/// Which layers have experts: `mlp_layer_types`, else those after `first_k_dense_replace`.
fn sparse_layers(keys: &Keys<'_>, layers: Count) -> Result<Vec<bool>, Error> {
    let Some(types) = keys.texts("mlp_layer_types")? else {
        let dense = keys.stated("first_k_dense_replace")?.count_unless_zero("first_k_dense_replace")?;
        return Ok((0..layers.value).map(|layer| layer >= dense.map_or(0, |dense| dense.value)).collect());
    };
    keys.set_aside(&["first_k_dense_replace"]);
    let refuse = |key: &str, found: &str, expected: &str| {
        Error::new(key, found, expected, "copy mlp_layer_types from the model's config.json")
    };
    if types.len() as u64 != layers.value {
        let expected = format!("one entry for each of the {} layers", layers.value);
        return Err(refuse("mlp_layer_types", &format!("a list of {}", types.len()), &expected));
    }
    let one = |(at, kind): (usize, &String)| match kind.as_str() {
        "dense" => Ok(false),
        "sparse" => Ok(true),
        other => Err(refuse(&format!("mlp_layer_types[{at}]"), other, "dense or sparse")),
    };
    types.iter().enumerate().map(one).collect()
}

fn routed(keys: &Keys<'_>, hidden: Count) -> Result<Moe, Error> {
    let (experts, top_k) = (keys.count("n_routed_experts")?, keys.count("num_experts_per_tok")?);
    Moe::routed(hidden, experts, top_k, keys.count("moe_intermediate_size")?)
}

/// The shared experts, which the checkpoint keeps as one network of their joint width.
fn shared(keys: &Keys<'_>, hidden: Count) -> Result<Option<Shared>, Error> {
    let Some(experts) = keys.stated("n_shared_experts")?.count_unless_zero("n_shared_experts")? else {
        return Ok(None);
    };
    let width = experts.value * keys.count("moe_intermediate_size")?.value;
    let width = Count::derived("shared_intermediate", width, "n_shared_experts × moe_intermediate_size");
    let network = FeedForward::gated(hidden, width);
    Ok(Some(Shared { tensor: "mlp.shared_experts", network, gate: None }))
}

/// The weights of a multi-token-prediction module: a layer, its two-to-one projection, three norms,
/// and copies of embedding and head where the checkpoint stores them again.
fn mtp_module(whole: &Whole, layer: &Layer, index: u64, mtp: Mtp) -> Vec<Weight> {
    let (hidden, vocab) = (whole.hidden.value, whole.vocab.value);
    let copy = |name, role| (mtp == Mtp::WithCopies).then(|| weight(name, vec![vocab, hidden], role));
    let mut weights: Vec<Weight> = copy("embed_tokens.weight", Role::Embedding).into_iter().collect();
    weights.extend([
        weight("enorm.weight", vec![hidden], Role::Norm),
        weight("hnorm.weight", vec![hidden], Role::Norm),
        weight("eh_proj.weight", vec![hidden, 2 * hidden], Role::Mlp),
    ]);
    let block = layer.block("mtp_layer", vec![]);
    weights.extend(block.graph.node_weights().flat_map(|node| node.weights.clone()));
    weights.push(weight("shared_head.norm.weight", vec![hidden], Role::Norm));
    weights.extend(copy("shared_head.head.weight", Role::LmHead));
    for weight in &mut weights {
        weight.name = format!("model.layers.{index}.{}", weight.name);
    }
    weights
}
