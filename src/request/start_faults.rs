//! Reasons of a runtime against a start that are neither words of its options, nor degrees, nor memory.

use super::start_memory::StartInputs;
use crate::graph::model::OperatorNode;
use crate::graph::operator::Operator;
use crate::graph::tensor::TensorRole;
use crate::spec::model::ModelConfig;
use crate::spec::setting::Setting;
use crate::spec::start::{DtypeRule, GroupRule, ValueCacheRule};

/// Modules that every quantised checkpoint may leave whole: a list of others means that layers differ.
const LEFT: [&str; 8] = ["lm_head", "embed", "norm", "gate", "router", "vision", "visual", "audio"];

/// The runtime's reasons against a launch of a checkpoint with this configuration.
pub fn start_faults(of: &StartInputs, config: &ModelConfig) -> Vec<String> {
    let rules = &of.launch.known.0.start;
    let native = config.dtype.as_deref().map(|dtype| dtype.trim_start_matches("torch."));
    let dtype = rules.dtypes.iter().find(|rule| is_refused(of, rule, native));
    let dtype = dtype.map(|rule| format!("{}: {}", rule.words, rule.source));
    let values = rules.value_cache.as_ref().and_then(|rule| value_fault(of, rule));
    let groups = rules.groups.as_ref().and_then(|rule| group_fault(of, rule, config));
    dtype.into_iter().chain(values).chain(groups).collect()
}

/// The fault of a matrix whose inputs are no whole number of groups.
fn group_fault(of: &StartInputs, rule: &GroupRule, config: &ModelConfig) -> Option<String> {
    let is_here = rule.vendors.iter().any(|vendor| vendor == of.device.vendor.name())
        && of.weight_format.as_ref().is_some_and(|format| rule.formats.contains(format));
    let group = group_of(of, rule, config).filter(|_| is_here)?;
    let tiled = rule.tiled_families.contains(&of.device.family);
    let [input_tile, output_tile] = rule.tiles;
    let (what, inputs) = of.graph.layer_nodes().find_map(|node| {
        let (what, inputs, outputs) = grouped(node)?;
        let takes = tiled
            && outputs.is_some_and(|outputs| {
                inputs.is_multiple_of(input_tile) && outputs.is_multiple_of(output_tile)
            });
        (inputs > group && !inputs.is_multiple_of(group) && !takes).then_some((what, inputs))
    })?;
    Some(format!("{what} has {inputs} inputs, no whole number of groups of {group}: {}", rule.source))
}

/// Weights in a group, where the configuration states it for all layers, or the name does.
fn group_of(of: &StartInputs, rule: &GroupRule, config: &ModelConfig) -> Option<u64> {
    if let Some(quantization) = &config.quantization {
        let is_left = |module: &String| LEFT.iter().any(|left| module.contains(left));
        return quantization.group_size.filter(|_| quantization.modules_to_not_convert.iter().all(is_left));
    }
    let name = of.launch.processes[0].read.settings.word(Setting::Model)?.to_lowercase();
    rule.names.iter().any(|word| name.contains(word)).then_some(rule.named_group)
}

/// Inputs of a quantised matrix, and its outputs where it is a dense one.
fn grouped(node: &OperatorNode) -> Option<(&'static str, u64, Option<u64>)> {
    match (&node.operator, node.role()?) {
        (Operator::Experts(dims), _) => Some(("moe_intermediate_size", dims.intermediate.value, None)),
        (
            Operator::Linear { input, output, .. },
            TensorRole::Attention | TensorRole::Mlp | TensorRole::SharedExpert,
        ) => Some((node.name, input.value, Some(output.value))),
        _ => None,
    }
}

fn is_refused(of: &StartInputs, rule: &DtypeRule, native: Option<&str>) -> bool {
    let stated = of.launch.processes[0].read.settings.word(Setting::Dtype).filter(|word| *word != "auto");
    let dtype = stated.or(native.filter(|_| !rule.stated));
    rule.versions.as_ref().is_none_or(|range| range.holds(of.version))
        && rule.families.contains(&of.device.family)
        && dtype.is_some_and(|dtype| rule.dtypes.iter().any(|one| one == dtype))
}

fn value_fault(of: &StartInputs, rule: &ValueCacheRule) -> Option<String> {
    let words = of.words();
    // The last of several is the one that counts.
    let after = |options: &[String]| {
        let at = words.iter().rposition(|word| options.contains(word))?;
        Some(words.get(at + 1).map_or("", String::as_str))
    };
    let values = after(&rule.values).filter(|format| rule.quantised.iter().any(|one| one == format))?;
    let keys = after(&rule.keys).unwrap_or_default();
    let attention = after(&rule.attention).unwrap_or("auto");
    let has_kernel = keys == values && rule.with_same_keys.iter().any(|one| one == values);
    let here = rule.vendors.iter().any(|vendor| vendor == of.device.vendor.name());
    let is_without = match attention {
        word if rule.off.iter().any(|off| off == word) => true,
        "auto" => here && !has_kernel,
        _ => false,
    };
    is_without.then(|| format!("values of the cache in {values} without flash attention: {}", rule.source))
}
