//! Cohere's Command models: attention and network in parallel behind one norm without shift, dense or with experts.

use serde_json::{Value, json};

use crate::graph::arch::class_keys::ignored;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::layer_kinds;
use crate::graph::part::layer::{Arrangement, Layer, Network, positioned};
use crate::graph::part::moe::{Moe, SharedExperts};
use crate::graph::part::rope::{Rope, RopeClass};
use crate::graph::part::window::{interleaved_windows, patterned_windows, uniform_window};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `cohere`: Command R; Command R+ with one scale per head of Q and K.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, true)?;
    let each = keys.flag("use_qk_norm", false)?;
    let qk_norm = if each { QkNorm::EachHead } else { QkNorm::Absent };
    Ok(whole.uniform(layer(keys, &whole, qk_norm)?))
}

/// `cohere2`: Command A and R7B: one full layer in four.
pub fn build_cohere2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    let whole = DecoderSpec::read(keys, true)?;
    let layer = layer(keys, &whole, QkNorm::Absent)?;
    let windows = patterned_windows(keys, whole.layers, 4096, 4)?;
    Ok(whole.graph(positioned(windows, |window| layer.sliding(window)), vec![]))
}

/// `cohere_compass_text`: Cohere's layers, of which each kind has its own rotation (`modular_cohere_compass.py` of
/// transformers 5.24). `pooling` is for embeddings of texts.
pub fn build_compass(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["pooling"]);
    let whole = DecoderSpec::read(keys, true)?;
    let layer = layer(keys, &whole, QkNorm::Absent)?;
    let head_dim = keys.count_or_none("head_dim")?;
    let head_dim = head_dim.unwrap_or(Attention::read_grouped(keys, whole.hidden)?.head_dim);
    let far = Rope::read(keys, head_dim, RopeClass::WHOLE)?;
    let near = Rope::read(keys, head_dim, RopeClass::SLIDING)?;
    let window = uniform_window(keys, Some(4096))?;
    let windows = interleaved_windows(keys, whole.layers, window, |_| false)?;
    let kinds = keys.value("rope_parameters");
    let still = |kind: &str| kinds.and_then(|kinds| kinds.get(kind)).is_some_and(Value::is_null);
    let far = Some(far).filter(|_| !still("full_attention"));
    let near = Some(near).filter(|_| !still("sliding_attention"));
    let one =
        |window: Option<Count>| layer.sliding(window).rotated(if window.is_some() { near } else { far });
    Ok(whole.graph(windows.into_iter().map(one).collect(), vec![]))
}

/// `cohere2_moe`: experts as wide as `intermediate_size`, after dense layers whose windows have a pattern of their own;
/// full layers are rotated only where they are dense and that pattern has no windows (`modular_cohere2_moe.py` of
/// transformers 5.24).
pub fn build_cohere2_moe(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["expert_selection_fn", "shared_expert_combination_strategy"]);
    let whole = DecoderSpec::read(keys, true)?;
    let (hidden, width) = (whole.hidden, keys.count("intermediate_size")?);
    let attention = Attention::read_grouped(keys, hidden)?.biased(keys.flag("attention_bias", false)?);
    let shared = keys.count_unless_zero("num_shared_experts")?.map(|shared| {
        let how = "num_shared_experts × intermediate_size";
        let width = Count::derived("shared_intermediate", shared.value * width.value, how);
        SharedExperts { tensor: "mlp.shared_experts", network: FeedForward::gated(hidden, width), gate: None }
    });
    let experts = ["num_experts", "num_experts_per_tok", "intermediate_size"];
    let moe = Moe { shared, ..Moe::read(keys, hidden, experts)? };
    let dense_width = keys.count_or_none("prefix_dense_intermediate_size")?.unwrap_or(width);
    let dense = FeedForward::gated(hidden, dense_width);
    let first = keys.count_unless_zero("first_k_dense_replace")?.map_or(0, |first| first.value);
    let words = [("dense", false), ("sparse", true)];
    let sparse = layer_kinds(keys, "mlp_layer_types", whole.layers, &words)?
        .unwrap_or_else(|| (0..whole.layers.value).map(|layer| layer >= first).collect());
    let pattern = keys.count_or("prefix_dense_sliding_window_pattern", 1)?.value;
    let later = keys.count_or("sliding_window_pattern", 4)?.value;
    let slides = |layer: u64| match layer.checked_sub(first) {
        None => !(layer + 1).is_multiple_of(pattern),
        Some(layer) => !(layer + 1).is_multiple_of(later),
    };
    let window = uniform_window(keys, Some(4096))?;
    let windows = interleaved_windows(keys, whole.layers, window, slides)?;
    let layer = |(window, sparse): (Option<Count>, bool)| {
        let rotates = window.is_some() || (!sparse && pattern == 1);
        let rope = attention.rope.filter(|_| rotates);
        let network = Network::either(sparse, &moe, &dense);
        let layer = Layer::new(Attention { mask: window.into(), rope, ..attention.clone() }, network);
        Layer { arrangement: Arrangement::Parallel, ..layer }
    };
    Ok(whole.graph(windows.into_iter().zip(sparse).map(layer).collect(), vec![]))
}

fn layer(keys: &Keys<'_>, whole: &DecoderSpec, qk_norm: QkNorm) -> Result<Layer, Error> {
    // Vendor metadata in the checkpoints; the layer has one form.
    keys.set_aside(ignored("cohere"));
    for key in
        ["use_parallel_block", "use_gated_activation", "use_embedding_sharing", "use_parallel_embedding"]
    {
        keys.only(key, &json!(true))?;
    }
    let attention = Attention::read_grouped(keys, whole.hidden)?.biased(keys.flag("attention_bias", false)?);
    let network = FeedForward::read(keys, whole.hidden)?;
    let layer = Layer::new(Attention { qk_norm, ..attention }, network);
    Ok(Layer { arrangement: Arrangement::Parallel, ..layer })
}
