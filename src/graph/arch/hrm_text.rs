//! HRM-Text: two stacks of layers without learned norms, a low one and a high one, which run in turn in cycles.
//!
//! Source: `modular_hrm_text.py` of transformers 5.24. The sums and norms between the stacks have no weights and are not in
//! the graph. The mask of prompts (`prefix_lm`) changes neither tensors nor caches.

use crate::graph::arch::class_keys::ignored;
use crate::graph::assembly::{Affine, weight};
use crate::graph::model::ModelGraph;
use crate::graph::operator::Operator;
use crate::graph::part::attention::{Attention, OutputGate, mha};
use crate::graph::part::decoder::DecoderSpec;
use crate::graph::part::feed_forward::FeedForward;
use crate::graph::part::layer::Layer;
use crate::graph::part::rope::RopeClass;
use crate::graph::part::runs;
use crate::graph::part::streams::{Extras, Side};
use crate::graph::tensor::TensorRole;
use crate::quantity::count::Count;
use crate::spec::error::Error;
use crate::spec::model::keys::Keys;

/// `hrm_text`.
pub fn build(keys: &Keys<'_>) -> Result<ModelGraph, Error> {
    keys.set_aside(ignored("hrm_text"));
    let (hidden, vocab) = (keys.count("hidden_size")?, keys.count("vocab_size")?);
    // The class writes the layers of a stack under a key of their own, and all runs as the number of layers.
    let stated = keys.count("num_hidden_layers")?;
    let stack = keys.count_or_none("num_layers_per_stack")?.unwrap_or(stated).value;
    let (high, low) = (keys.count_or("H_cycles", 2)?.value, keys.count_or("L_cycles", 3)?.value);
    let layers = runs("num_layers_per_stack", stack * high * (low + 1))?;
    let whole = DecoderSpec { norm: Affine::Absent, ..DecoderSpec::of(keys, hidden, layers, vocab, false)? };
    let (heads, head_dim) = (keys.count("num_attention_heads")?, keys.count_or("head_dim", 128)?);
    let bias = keys.flag("attention_bias", false)?;
    let attention = Attention {
        output_gate: Some(OutputGate::PerElement("gate_proj")),
        ..Attention::of(hidden, heads, mha(heads), Some(head_dim))?.biased(bias)
    };
    let attention = attention.rotated(keys, RopeClass::WHOLE)?;
    let gate = Side::elements("self_attn.gate_proj.bias", vec![heads.value * head_dim.value]);
    let extras = Extras { sides: if bias { vec![gate] } else { vec![] }, ..Extras::default() };
    let layer = Layer::new(attention, FeedForward::read_biased(keys, hidden)?);
    let mut graph = whole.uniform(Layer { norm: Affine::Absent, extras, ..layer });
    let start = vec![weight("model.z_L_init", vec![hidden.value], TensorRole::Norm)];
    graph.embedding.append("low_start", Operator::Add { width: hidden }, start);
    // Between two layers, there are the state of the stack that runs and that of the other.
    graph.carried = Some(Count::derived("two_states", 2 * hidden.value, "2 × hidden_size"));
    let mut stores = vec![];
    for at in 0..high * (low + 1) {
        let module = if (at + 1).is_multiple_of(low + 1) { "H_module" } else { "L_module" };
        stores.extend((0..stack).map(|layer| format!("model.{module}.layers.{layer}")));
    }
    Ok(graph.sharing(stores))
}

#[cfg(test)]
mod tests {
    use crate::graph::model::ModelGraph;
    use crate::spec::model::ModelConfig;

    const HRM: &str = r#"{"model_type": "hrm_text", "hidden_size": 6, "num_hidden_layers": 2, "vocab_size": 11,
        "num_attention_heads": 2, "head_dim": 5, "intermediate_size": 10, "H_cycles": 2, "L_cycles": 3}"#;

    fn graph(text: &str) -> ModelGraph {
        ModelGraph::build(&ModelConfig::parse(text).expect("JSON")).expect("a known type")
    }

    #[test]
    fn both_stacks_count_once_and_every_run_has_a_cache() {
        let graph = graph(HRM);
        let layer = 5 * 6 * 10 + 3 * 6 * 10;
        assert_eq!(graph.parameters().unique, 2 * 11 * 6 + 6 + 2 * 2 * layer);
        assert_eq!(graph.layer_block.len(), 2 * 2 * 4);
        assert_eq!(graph.kv_elements_per_token().growing, 16 * 2 * 2 * 5);
        let tensors = graph.tensors();
        let of = |stack: &str| tensors.iter().filter(|tensor| tensor.name.contains(stack)).count();
        assert_eq!([of("L_module"), of("H_module")], [2 * 8, 2 * 8]);
        assert_eq!(
            [&graph.stores[5], &graph.stores[6]],
            ["model.L_module.layers.1", "model.H_module.layers.0"]
        );
    }

    #[test]
    fn a_written_file_states_runs_and_layers() {
        let written = HRM.replace("layers\": 2", "layers\": 16, \"num_layers_per_stack\": 2");
        assert_eq!(graph(&written).parameters(), graph(HRM).parameters());
    }

    #[test]
    fn the_gate_has_the_bias_of_the_projections() {
        let biased = graph(&HRM.replace("\"H_cycles", "\"attention_bias\": true, \"H_cycles"));
        assert_eq!(biased.parameters().unique - graph(HRM).parameters().unique, 2 * 2 * (4 * 10 + 6));
    }
}
