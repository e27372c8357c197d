//! Families with DeepSeek's latent attention and further parts: A.X-K2, Hunyuan-4, dots3-note, Mistral Large 4 and GLM-5
//! Next.
//!
//! Source: the modular files of these classes in transformers 5.24.

use serde_json::Value;

use super::deepseek::{self, DeepseekVariant, Mtp, V3};
use super::deepseek_sparse::indexer_types;
use super::kimi_linear;
use crate::graph::arch::class_keys::ignored;
use crate::graph::mask::AttentionMask;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::OutputGate;
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::hyper::Hyper;
use crate::graph::part::indexer::Indexer;
use crate::graph::part::kinds::{COPY, layer_kinds, layer_switches};
use crate::graph::part::latent::{Latent, LatentTraits};
use crate::graph::part::layer::{Layer, Mixer, Network};
use crate::graph::part::misfit;
use crate::graph::part::names::TensorNames;
use crate::graph::part::recurrent::Recurrent;
use crate::graph::part::rope::Rope;
use crate::graph::part::streams::{Extras, Side};
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// Families whose modules for several tokens store neither embedding nor head.
const SHARED: DeepseekVariant = DeepseekVariant { mtp: Mtp::Shared, ..V3 };

/// `axk2`: an indexer in every layer; norms with a low-rank gate, except the second of dense layers.
pub fn build_axk2(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["mlp_bias"]);
    let table = &[("input_layernorm.weight", "input_layernorm.norm.weight")];
    let whole = DecoderSpec { names: TensorNames::of_table(table), ..DecoderSpec::read(keys, false)? };
    indexed(keys, whole.layers)?;
    let hidden = whole.hidden;
    let rank = keys.count_or("gated_norm_rank", 16)?.value;
    let indexer = Indexer::read(keys, hidden)?;
    let mut latent = Latent { indexer: Some(indexer), ..Latent::read(keys, hidden)? };
    latent.dims.mask = AttentionMask::Selected(indexer.top_k);
    latent.traits = LatentTraits { gated_queries: true, ..LatentTraits::default() };
    let mixers = vec![Mixer::Latent(latent); whole.layers.value as usize];
    let (layers, mtp) = deepseek::layers_and_mtp(keys, &whole, mixers, None, SHARED)?;
    let gate = |norm: &str| {
        let side = |name: &str, shape| Side::matrix(&format!("{norm}.mlp.{name}"), shape);
        [side("fc1", vec![rank, hidden.value]), side("fc2", vec![hidden.value, rank])]
    };
    let gated = |layer: Layer| {
        let mut sides = gate("input_layernorm").to_vec();
        if matches!(layer.network, Network::Moe(_)) {
            sides.extend(gate("post_attention_layernorm"));
        }
        Layer { extras: Extras { sides, ..Extras::default() }, ..layer }
    };
    let mut graph = whole.graph(layers.into_iter().map(gated).collect(), mtp);
    for block in &mut graph.blocks {
        let gated =
            block.weights().iter().any(|weight| weight.name == "post_attention_layernorm.mlp.fc1.weight");
        let weights = block.graph.node_weights_mut().flat_map(|node| &mut node.weights);
        for weight in weights.filter(|weight| gated && weight.name == "post_attention_layernorm.weight") {
            weight.name = "post_attention_layernorm.norm.weight".to_owned();
        }
    }
    Ok(graph)
}

/// Returns an error where `layer_types` names another attention than the indexed one.
fn indexed(keys: &Keys<'_>, layers: Count) -> Result<(), Error> {
    let words = [("indexed_attention", ()), ("deepseek_sparse_attention", ()), ("full_attention", ())];
    layer_kinds(keys, "layer_types", layers, &words).map(drop)
}

/// `hy_v4`: sinks, a gate on attention, parallel streams that are not mixed; some layers reuse a selection.
pub fn build_hunyuan(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["hc_eps", "hc_magnitude", "learnable_sink_init", "mlp_bias"]);
    keys.set_aside(ignored("glm_moe_dsa"));
    let hyper = Hyper { streams: keys.count_or("hc_mult", 4)?, mixes: false, head: true, rank: None };
    let whole = DecoderSpec { streams: Some(hyper), ..DecoderSpec::read(keys, false)? };
    indexed(keys, whole.layers)?;
    let indexer = Indexer::read(keys, whole.hidden)?;
    let mut latent = Latent::read(keys, whole.hidden)?;
    latent.output_gate = Some(OutputGate::PerElement("gate_proj"));
    latent.dims.mask = AttentionMask::Selected(indexer.top_k);
    latent.traits = LatentTraits { sinks: true, ..LatentTraits::default() };
    let own = indexer_types(keys, whole.layers, 4)?;
    let mixer = |own| Mixer::Latent(Latent { indexer: Some(indexer).filter(|_| own), ..latent.clone() });
    deepseek::layers(keys, whole, own.into_iter().map(mixer).collect(), None, SHARED)
}

/// The language model of GLM-5 Next: Kimi Delta Attention, and latent attention without rotation whose indexer pools
/// keys; parallel streams whose mean the head takes.
pub fn build_glm5(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("glm_moe_dsa"));
    keys.set_aside(&["hc_eps", "hc_sinkhorn_iters", "index_kpool_always_select_tail", "linear_lower_bound"]);
    keys.set_aside(&["mlp_bias"]);
    let hyper = Hyper { streams: keys.count_or("hc_mult", 4)?, mixes: true, head: false, rank: None };
    let whole = DecoderSpec { streams: Some(hyper), names: GLM5, ..DecoderSpec::read(keys, false)? };
    let (hidden, layers) = (whole.hidden, whole.layers);
    let pool = Some(keys.count_or("index_kpool", 16)?);
    let indexer = Indexer { pool, ..Indexer::read(keys, hidden)? };
    let mut latent = read(keys, hidden)?;
    latent.dims.mask = AttentionMask::Selected(indexer.top_k);
    let own = indexer_types(keys, layers, 1)?;
    let delta = kimi_linear::delta_of(keys, hidden, 64)?;
    let words = [("linear_attention", true), ("indexed_attention", false), ("full_attention", false)];
    let recurrent = layer_kinds(keys, "layer_types", layers, &words)?
        .unwrap_or_else(|| (0..layers.value).map(|layer| layer % 4 != 3).collect());
    let mixer = |(recurrent, own): (bool, bool)| match recurrent {
        true => Mixer::Recurrent(Box::new(Recurrent::KimiDelta(delta.clone()))),
        false => Mixer::Latent(Latent { indexer: Some(indexer).filter(|_| own), ..latent.clone() }),
    };
    let mixers = recurrent.into_iter().zip(own).map(mixer).collect();
    deepseek::layers(keys, whole, mixers, Some(mixer((false, true))), SHARED)
}

const GLM5: TensorNames = TensorNames::of_table(&[
    ("self_attn.q_conv1d self_attn.k_conv1d self_attn.v_conv1d", "self_attn.conv1d"),
    ("self_attn.f_a_proj", "self_attn.forget_gate.f_a_proj"),
    ("self_attn.f_b_proj", "self_attn.forget_gate.f_b_proj"),
    ("self_attn.A_log", "self_attn.forget_gate.A_log"),
    ("self_attn.dt_bias", "self_attn.forget_gate.dt_bias"),
]);

/// Latent attention whose heads may have no rotary part.
fn read(keys: &Keys<'_>, hidden: Count) -> Result<Latent, Error> {
    if keys.value("qk_rope_head_dim").and_then(Value::as_u64) != Some(0) {
        return Latent::read(keys, hidden);
    }
    Latent::of(keys, hidden, Count::config("qk_rope_head_dim", 0))
}

/// The language model of Mistral Large 4: queries without a rank, layers without rotation, layers that read the latent of
/// an earlier one.
pub fn build_mistral(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("glm_moe_dsa"));
    keys.set_aside(&["mlp_bias", "no_rope_layer_interval"]);
    let whole = DecoderSpec::read(keys, false)?;
    indexed(keys, whole.layers)?;
    let (hidden, count) = (whole.hidden, whole.layers.value);
    let mut latent = Latent::with_rank(keys, hidden, keys.count("qk_rope_head_dim")?, None)?;
    let indexer = Indexer { scaled: true, ..Indexer::of_rank(keys, hidden, hidden)? };
    latent.dims.mask = AttentionMask::Selected(indexer.top_k);
    let every = keys.count_or("no_rope_layer_interval", 4)?.value;
    let rotates = match keys.has("no_rope_layers") {
        true => layer_switches(keys, "no_rope_layers", whole.layers)?,
        false => (0..count).map(|layer| !(layer + 1).is_multiple_of(every)).collect(),
    };
    let sources = keys.numbers("kv_source_layers")?.unwrap_or_else(|| (0..count).collect());
    if sources.len() as u64 != count || sources.iter().zip(0..).any(|(source, layer)| *source > layer) {
        let expected = format!("an earlier layer or itself for each of the {count} layers");
        return Err(Error::new("kv_source_layers", format!("a list of {}", sources.len()), expected, COPY));
    }
    let own = indexer_types(keys, whole.layers, 1)?;
    let mixer = |(((layer, source), rotates), own): (((u64, u64), bool), bool)| {
        let mut latent = Latent { indexer: Some(indexer).filter(|_| own), ..latent.clone() };
        latent.traits = LatentTraits { scaled: true, borrowed: layer != source, ..LatentTraits::default() };
        if !rotates {
            let all = latent.dims.qk_nope_head_dim.value + latent.dims.qk_rope_head_dim.value;
            latent.dims.qk_nope_head_dim = Count::derived("qk_nope_head_dim", all, "qk_nope + qk_rope");
            latent.dims.qk_rope_head_dim = Count::derived("qk_rope_head_dim", 0, "a layer without rotation");
            latent.rope = None;
        }
        Mixer::Latent(latent)
    };
    let mixers = (0..count).zip(sources).zip(rotates).zip(own).map(mixer).collect();
    deepseek::layers(keys, whole, mixers, None, DeepseekVariant { correction_bias: None, ..SHARED })
}

/// `dots3_note_text`: a norm on the rotary key, a gate on each head; in sliding layers latent attention of other sizes,
/// by `per_layer_config` or by the keys that begin with `swa_`.
pub fn build_dots3(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(&["swa_head_dim", "swa_num_key_value_heads", "layer_types"]);
    let whole = DecoderSpec::read(keys, false)?;
    let (hidden, layers) = (whole.hidden, whole.layers);
    let indexer = Indexer::read(keys, hidden)?;
    let mut full = Latent { indexer: Some(indexer), ..Latent::read(keys, hidden)? };
    full.dims.mask = AttentionMask::Selected(indexer.top_k);
    full.output_gate = Some(OutputGate::PerHead("g_proj"));
    full.traits = LatentTraits { rope_norm: true, ..LatentTraits::default() };
    let window = keys.count_or("sliding_window", 512)?;
    let words = [("sliding_attention", true), ("indexed_attention", false), ("full_attention", false)];
    let slides = layer_kinds(keys, "layer_types", layers, &words)?
        .unwrap_or_else(|| (0..layers.value).map(|layer| layer >= 2 && layer % 4 != 1).collect());
    let sliding = Latent { indexer: None, ..full.clone() };
    let mut mixers: Vec<Latent> =
        slides.iter().map(|slides| if *slides { &sliding } else { &full }.clone()).collect();
    let written = keys.entries("per_layer_config")?;
    let old = ["swa_num_attention_heads", "swa_q_lora_rank", "swa_kv_lora_rank", "swa_qk_rope_head_dim"];
    let old = [old[0], old[1], old[2], old[3], "swa_qk_nope_head_dim", "swa_v_head_dim"];
    for (latent, slides) in mixers.iter_mut().zip(&slides) {
        if *slides {
            if written.is_none() {
                resize_by_class(latent, keys, old)?;
            }
            latent.dims.mask = AttentionMask::Window(window);
        }
    }
    for (name, entry) in written.unwrap_or_default() {
        entry.set_aside(&["num_key_value_heads", "head_dim", "qk_head_dim"]);
        let latent = name.parse::<usize>().ok().and_then(|layer| mixers.get_mut(layer));
        let Some(latent) = latent else {
            let expected = format!("the index of one of the {} layers", layers.value);
            return Err(Error::new("per_layer_config", name, expected, COPY));
        };
        let new = ["num_attention_heads", "q_lora_rank", "kv_lora_rank", "qk_rope_head_dim"];
        resize(latent, &entry, [new[0], new[1], new[2], new[3], "qk_nope_head_dim", "v_head_dim"])?;
    }
    keys.set_aside(&old);
    keys.set_aside(&["swa_head_dim"]);
    let family = DeepseekVariant {
        mlp_bias: true,
        shared_width: match keys.has("shared_experts_intermediate_size") {
            true => "shared_experts_intermediate_size",
            false => "moe_intermediate_size",
        },
        ..SHARED
    };
    deepseek::layers(keys, whole, mixers.into_iter().map(Mixer::Latent).collect(), None, family)
}

/// Sizes of sliding layers in files without `per_layer_config`, by the class (`configuration_dots3_note.py` of
/// transformers 5.24).
const SLIDING: &[(&str, u64)] = &[
    ("swa_num_attention_heads", 64),
    ("swa_q_lora_rank", 1024),
    ("swa_kv_lora_rank", 1024),
    ("swa_head_dim", 256),
    ("swa_qk_nope_head_dim", 192),
    ("swa_v_head_dim", 128),
];

/// Sets the sizes that `keys` states under `names`, or else the class. The rotated part is the rest of the head.
fn resize_by_class(latent: &mut Latent, keys: &Keys<'_>, names: [&'static str; 6]) -> Result<(), Error> {
    let keys = keys.clone().with_defaults(SLIDING);
    resize(latent, &keys, names)?;
    if !keys.has(names[3]) {
        let (whole, other) = (keys.count("swa_head_dim")?, latent.dims.qk_nope_head_dim);
        let Some(rest) = whole.value.checked_sub(other.value).filter(|rest| *rest > 0) else {
            return Err(misfit(whole, format!("more than {} {}", other.symbol, other.value)));
        };
        let rotary = Count::derived("qk_rope_head_dim", rest, "swa_head_dim - swa_qk_nope_head_dim");
        latent.dims.qk_rope_head_dim = rotary;
        latent.rope = latent.rope.map(|rope| Rope { rotary, ..rope });
    }
    Ok(())
}

/// Sets the sizes that `keys` states under `names`.
fn resize(latent: &mut Latent, keys: &Keys<'_>, names: [&'static str; 6]) -> Result<(), Error> {
    let [heads, q_rank, kv_rank, rope, nope, value] = names;
    let dims = &mut latent.dims;
    for (name, place) in [
        (heads, &mut dims.heads),
        (kv_rank, &mut dims.kv_lora_rank),
        (rope, &mut dims.qk_rope_head_dim),
        (nope, &mut dims.qk_nope_head_dim),
        (value, &mut dims.v_head_dim),
    ] {
        if let Some(stated) = keys.count_or_none(name)? {
            *place = stated;
        }
    }
    if let Some(rank) = keys.count_or_none(q_rank)? {
        latent.q_lora_rank = Some(rank);
    }
    latent.rope = latent.rope.map(|rope| Rope { rotary: latent.dims.qk_rope_head_dim, ..rope });
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    const KEYS: &str = r#""hidden_size": 6, "num_hidden_layers": 3, "vocab_size": 11, "num_attention_heads": 4,
        "q_lora_rank": 5, "kv_lora_rank": 8, "qk_rope_head_dim": 2, "qk_nope_head_dim": 3, "v_head_dim": 5,
        "intermediate_size": 10, "moe_intermediate_size": 7, "n_routed_experts": 4, "num_experts_per_tok": 2,
        "n_shared_experts": 1, "index_n_heads": 2, "index_head_dim": 4, "index_topk": 16,
        "mlp_layer_types": ["dense", "sparse", "sparse"]"#;

    fn graph(text: &str) -> ModelGraph {
        ModelGraph::build(&ModelConfig::parse(&format!("{{{text}, {KEYS}}}")).unwrap()).unwrap()
    }

    const ATTENTION: u64 = 6 * 5 + 5 + 5 * 20 + 6 * 10 + 8 + 8 * 4 * 8 + 20 * 6;
    const INDEXER: u64 = 5 * 8 + 6 * 4 + 2 * 4 + 6 * 2;
    const NETWORKS: u64 = 3 * 6 * 10 + 2 * (4 * 6 + 5 * 3 * 6 * 7);
    const REST: u64 = 2 * 11 * 6 + 6 + 3 * 2 * 6;

    #[test]
    fn a_gate_shares_the_matrix_of_queries_and_norms_have_gates_of_low_rank() {
        let graph = graph(r#""model_type": "axk2", "gated_norm_rank": 2"#);
        let attention = ATTENTION - 5 * 20 + 2 * 5 * (20 + 20) + INDEXER;
        assert_eq!(graph.parameters().unique, REST + NETWORKS + 3 * attention + (3 + 2) * 2 * 2 * 6);
        assert_eq!(graph.kv_elements_per_token().growing, 3 * 10);
    }

    #[test]
    fn streams_that_are_not_mixed_have_two_rows_each() {
        let graph = graph(r#""model_type": "hy_v4", "hc_mult": 2"#);
        let streams = 3 * 2 * (4 * 12 + 4 + 2) + 2 * 12 + 2 + 1;
        let attention = 3 * (ATTENTION + 4 + 6 * 20) + 2 * INDEXER;
        assert_eq!(graph.parameters().unique, REST + NETWORKS + attention + streams);
    }

    #[test]
    fn sliding_latent_layers_keep_a_window_of_their_own_size() {
        let graph = graph(
            r#""model_type": "dots3_note_text", "shared_experts_intermediate_size": 7, "sliding_window": 9,
            "per_layer_config": {"02": {"kv_lora_rank": 16}}"#,
        );
        let kv = graph.kv_elements_per_token();
        assert_eq!((kv.growing, kv.windowed), (2 * 10, 18));
    }

    #[test]
    fn sliding_latent_layers_have_the_sizes_of_their_class_where_the_file_says_nothing() {
        let graph = graph(r#""model_type": "dots3_note_text", "swa_kv_lora_rank": 16"#);
        let kv = graph.kv_elements_per_token();
        assert_eq!((kv.growing, kv.windowed), (2 * 10, 16 + 64));
    }
}
