//! Dory: layers on the unit sphere without learned norms, of which the middle ones run several times per token.
//!
//! Source: `modular_dory.py` of transformers 5.24. The norm and the sum at the start of each pass have no weights and are
//! not in the graph.

use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::{Affine, weight};
use crate::graph::mask::AttentionMask;
use crate::graph::model::ModelGraph;
use crate::graph::part::attention::{Attention, KvSource, OutputGate, QkNorm};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::kinds::{COPY, complete, kinds_of};
use crate::graph::part::layer::{Arrangement, Layer, Mixer};
use crate::graph::part::rope::{Rope, RopeClass};
use crate::graph::part::streams::{Extras, Side};
use crate::graph::part::{runs, unless_zero_or};
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `dory`.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("dory"));
    let passes = DoryLoop::read(keys)?;
    let (hidden, vocab) = (keys.count("hidden_size")?, keys.count("vocab_size")?);
    let order = passes.order();
    let whole = DecoderSpec::of(keys, hidden, runs("n_recurrent_loops", order.len() as u64)?, vocab, false)?;
    let whole = DecoderSpec { norm: Affine::Absent, ..whole };
    let (heads, kv_heads) = (keys.count("num_attention_heads")?, keys.count_or("num_key_value_heads", 4)?);
    let head_dim = keys.count_or("head_dim", 256)?;
    let attention = Attention {
        qk_norm: QkNorm::Plain,
        output_gate: Some(OutputGate::PerElement("gate_proj")),
        result_norm: Some(("self_attn.attn_sub_norm", Affine::Absent)),
        ..Attention::of(hidden, heads, kv_heads, Some(head_dim))?.biased(keys.flag("attention_bias", false)?)
    };
    let far = RopeClass { theta: 10_000_000, ..RopeClass::WHOLE };
    let ropes = [Rope::read(keys, head_dim, RopeClass::SLIDING)?, Rope::read(keys, head_dim, far)?];
    let window = AttentionMask::Window(keys.count_or("sliding_window", 1024)?);
    let inner_norm = Some(("ffn_sub_norm", Affine::Absent));
    let network = FeedForward { inner_norm, ..FeedForward::read_biased(keys, hidden)? };
    let (queries, width) = (heads.value * head_dim.value, network.intermediate.value);
    let vectors = [
        ("lambda_1", hidden.value),
        ("lambda_2", hidden.value),
        ("self_attn.sqk", queries),
        ("self_attn.s_gate", queries),
        ("mlp.suv_gate", width),
        ("mlp.suv_up", width),
    ];
    let sides = vectors.map(|(name, elements)| Side::elements(name, vec![elements])).to_vec();
    let extras = Extras { sides, ..Extras::default() };
    let layer = |&(layer, source): &(usize, KvSource)| {
        let full = passes.full[layer];
        let mask = if full { AttentionMask::All } else { window };
        let attention = Attention { mask, source, rope: Some(ropes[usize::from(full)]), ..attention.clone() };
        let layer = Layer::of(hidden, Mixer::Attention(attention), network.clone());
        Layer { norm: Affine::Absent, arrangement: Arrangement::Sandwich, extras: extras.clone(), ..layer }
    };
    let mut graph = whole.graph(order.iter().map(layer).collect(), vec![]);
    if let Some(head) = graph.head.graph.node_weights_mut().find(|node| node.name == "lm_head") {
        head.weights.push(weight("lm_head.logit_scale", vec![vocab.value], TensorRole::Norm));
    }
    // Each pass starts from its last result and from the result of the layers before the first pass.
    graph.carried = Some(Count::derived("two_streams", 2 * hidden.value, "2 × hidden_size"));
    Ok(graph.repeating(order.iter().map(|(layer, _)| *layer)))
}

/// Which layers run when.
struct DoryLoop {
    /// Whether each stored layer keeps every token.
    full: Vec<bool>,
    /// Layers before those that run several times, and these.
    before: usize,
    repeated: usize,
    passes: usize,
    /// Only the last pass keeps keys and values.
    last_keeps: bool,
}

impl DoryLoop {
    fn read(keys: &Keys<'_>) -> Result<DoryLoop, Error> {
        let stated = keys.count("num_hidden_layers")?;
        let list = keys.texts("layer_types")?;
        // Released files list attention and network of a layer one by one.
        let pairs = list.iter().flatten().any(|word| word == "mlp");
        let (key, unit) = ("layer_types", if pairs { 2 } else { 1 });
        let layers = stated.value / unit;
        let full = match list {
            None => (1..=layers).map(|layer| layer.is_multiple_of(4)).collect(),
            Some(list) => {
                complete(key, list.len(), stated, COPY)?;
                let (mixers, networks): (Vec<_>, Vec<_>) =
                    list.into_iter().enumerate().partition(|(at, _)| (*at as u64).is_multiple_of(unit));
                let words =
                    |list: Vec<(usize, String)>| list.into_iter().map(|(_, word)| word).collect::<Vec<_>>();
                kinds_of(key, &words(networks), &[("mlp", ())], COPY)?;
                kinds_of(
                    key,
                    &words(mixers),
                    &[("full_attention", true), ("sliding_attention", false)],
                    COPY,
                )?
            }
        };
        let number = |key: &'static str, default: u64| -> Result<u64, Error> {
            Ok(unless_zero_or(keys, key, default)?.map_or(0, |number| number.value) / unit)
        };
        let (before, after) = (number("n_input_layers", 8)?, number("n_output_layers", 8)?);
        let key = "n_recurrent_layers";
        let rest = layers.saturating_sub(before + after);
        let repeated = match keys.value(key) {
            None | Some(serde_json::Value::Null) => rest,
            Some(_) => keys.count_unless_zero(key)?.map_or(0, |number| number.value) / unit,
        };
        if before + repeated + after != layers {
            let found = format!("{before} + {repeated} + {after} layers before, in and after the loop");
            return Err(Error::new(key, found, format!("a sum of {layers} layers"), COPY));
        }
        let mode = "recurrent_kv_cache_mode";
        let last_keeps = match keys.text(mode)?.as_deref() {
            None | Some("per_loop") => false,
            Some("last_loop") => true,
            Some(other) => return Err(Error::new(mode, other, "per_loop or last_loop", COPY)),
        };
        let passes = keys.count_or("n_recurrent_loops", 2)?.value;
        runs("n_recurrent_loops", before + passes * repeated + after)?;
        let [before, repeated, passes] = [before, repeated, passes].map(|number| number as usize);
        Ok(DoryLoop { full, before, repeated, passes, last_keeps })
    }

    /// The stored layer of each run, and where its keys and values are.
    fn order(&self) -> Vec<(usize, KvSource)> {
        let end = self.before + self.repeated;
        let once = |layers: std::ops::Range<usize>| layers.map(|layer| (layer, KvSource::Own));
        let pass = |pass: usize| {
            let keeps = !self.last_keeps || pass + 1 == self.passes;
            let source = if keeps { KvSource::Own } else { KvSource::Passing };
            (self.before..end).map(move |layer| (layer, source))
        };
        let loops = (0..self.passes).flat_map(pass);
        once(0..self.before).chain(loops).chain(once(end..self.full.len())).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    const DORY: &str = r#"{"model_type": "dory", "hidden_size": 6, "num_hidden_layers": 4, "vocab_size": 11,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 5, "intermediate_size": 10,
        "layer_types": ["sliding_attention", "full_attention", "full_attention", "full_attention"],
        "n_input_layers": 1, "n_output_layers": 1, "n_recurrent_loops": 3}"#;

    fn graph(text: &str) -> ModelGraph {
        ModelGraph::build(&ModelConfig::parse(text).expect("JSON")).expect("a known type")
    }

    const LAYER: u64 = 2 * 6 * 10 + 2 * 6 * 5 + 10 * 6 + 3 * 6 * 10 + 2 * 6 + 2 * 10 + 2 * 10;

    #[test]
    fn layers_that_run_several_times_count_once_and_keep_each_pass() {
        let graph = graph(DORY);
        assert_eq!(graph.parameters().unique, 2 * 11 * 6 + 11 + 4 * LAYER);
        assert_eq!((graph.layers.value, graph.layer_block.len()), (2 + 3 * 2, 8));
        let kv = graph.kv_elements_per_token();
        assert_eq!([kv.growing, kv.windowed], [7 * 2 * 5, 2 * 5]);
        assert_eq!(graph.tensors().len(), 3 + 4 * 14);
        let flops: u64 = graph.layer_block.iter().map(|block| graph.blocks[*block].shared_elements()).sum();
        assert_eq!(flops, 8 * LAYER);
    }

    #[test]
    fn earlier_passes_without_a_cache_of_their_own_project_and_keep_nothing() {
        let alone =
            graph(&DORY.replace(r#""n_input"#, r#""recurrent_kv_cache_mode": "last_loop", "n_input"#));
        assert_eq!(alone.parameters(), graph(DORY).parameters());
        assert_eq!(alone.kv_elements_per_token().growing, 3 * 2 * 5);
    }

    #[test]
    fn layers_in_pairs_are_the_same_layers() {
        let pairs = DORY
            .replace("_attention\"", "_attention\", \"mlp\"")
            .replace("layers\": 4", "layers\": 8")
            .replace("layers\": 1", "layers\": 2");
        assert_eq!(graph(&pairs).parameters(), graph(DORY).parameters());
        assert_eq!(graph(&pairs).layer_block, graph(DORY).layer_block);
    }

    #[test]
    fn sections_that_do_not_add_up_are_refused() {
        let text =
            DORY.replace(r#""n_output_layers": 1"#, r#""n_output_layers": 1, "n_recurrent_layers": 1"#);
        let error = ModelGraph::build(&ModelConfig::parse(&text).expect("JSON")).expect_err("a wrong sum");
        assert_eq!(error.key, "n_recurrent_layers");
    }
}
