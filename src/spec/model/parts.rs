//! The weight format of each module of a checkpoint: one for all, or several.
//!
//! Knows how files list modules, not the modules of a model.

use serde_json::{Map, Value};

use super::scheme::Scheme;

#[derive(Clone, Debug, PartialEq)]
pub struct QuantizedPart {
    /// The format, e.g. `nvfp4`.
    pub format: &'static str,
    pub scheme: Scheme,
    pub modules: Modules,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Modules {
    Experts,
    Named(Vec<String>),
    /// Modules in no other part.
    Rest,
}

/// ModelOpt's `quant_algo` of a layer.
const ALGORITHMS: &[(&str, &str, Scheme)] = &[
    ("FP8", "fp8", Scheme::Fp8Tensor { scale: 4, inputs: true }),
    ("FP8_PER_CHANNEL_PER_TOKEN", "fp8", Scheme::Fp8Row(4)),
    ("FP8_PB_WO", "fp8-block", Scheme::Fp8Block([128, 128])),
    ("MXFP4", "mxfp4", Scheme::Mxfp4),
    ("MXFP8", "mxfp8", Scheme::Mxfp8),
    ("NVFP4", "nvfp4", Scheme::Nvfp4),
    ("W4A16_NVFP4", "nvfp4", Scheme::Nvfp4),
];

/// The parts of a checkpoint in several formats; none where the file does not list their modules, or where one of the
/// formats has no figures.
pub(super) fn mixed(map: &Map<String, Value>) -> Vec<QuantizedPart> {
    let found = match map.get("quantized_layers") {
        Some(Value::Object(layers)) => by_layer(layers),
        _ => map.get("config_groups").and_then(Value::as_object).and_then(by_group),
    };
    found.unwrap_or_default()
}

/// One format for every module.
pub(super) fn whole(format: &'static str, scheme: Scheme) -> Vec<QuantizedPart> {
    vec![QuantizedPart { format, scheme, modules: Modules::Rest }]
}

/// Experts in one format, all other modules in another.
pub(super) fn experts_and_rest(
    experts: (&'static str, Scheme),
    rest: (&'static str, Scheme),
) -> Vec<QuantizedPart> {
    let part = |(format, scheme), modules| QuantizedPart { format, scheme, modules };
    vec![part(experts, Modules::Experts), part(rest, Modules::Rest)]
}

fn by_layer(layers: &Map<String, Value>) -> Option<Vec<QuantizedPart>> {
    let mut parts: Vec<QuantizedPart> = vec![];
    for (module, said) in layers {
        let algorithm = said.get("quant_algo")?.as_str()?;
        let (_, format, scheme) = ALGORITHMS.iter().find(|(name, ..)| *name == algorithm)?;
        put(
            &mut parts,
            QuantizedPart { format, scheme: *scheme, modules: Modules::Named(vec![module.clone()]) },
        );
    }
    Some(parts)
}

fn by_group(groups: &Map<String, Value>) -> Option<Vec<QuantizedPart>> {
    let mut parts: Vec<QuantizedPart> = vec![];
    for group in groups.values() {
        let (format, scheme) = group_layout(group)?;
        let targets = group.get("targets")?.as_array()?.iter().map(|target| target.as_str());
        let targets: Vec<String> = targets.map(|target| target.map(str::to_owned)).collect::<Option<_>>()?;
        // A class of modules, without the named ones.
        let modules = match targets.iter().any(|target| target == "Linear") {
            true => Modules::Rest,
            false => Modules::Named(targets),
        };
        put(&mut parts, QuantizedPart { format, scheme, modules });
    }
    // Named modules precede the others.
    parts.sort_by_key(|part| part.modules == Modules::Rest);
    Some(parts)
}

/// Adds modules to the part of their format, or as a new part.
fn put(parts: &mut Vec<QuantizedPart>, new: QuantizedPart) {
    let same = |part: &&mut QuantizedPart| part.format == new.format && part.scheme == new.scheme;
    match (parts.iter_mut().find(same).map(|part| &mut part.modules), &new.modules) {
        (Some(Modules::Named(known)), Modules::Named(more)) => known.extend(more.iter().cloned()),
        _ => parts.push(new),
    }
}

/// The format and layout of a group of compressed-tensors or ModelOpt.
pub(super) fn group_layout(group: &Value) -> Option<(&'static str, Scheme)> {
    let weights = group.get("weights")?;
    let text = |key: &str| weights.get(key).and_then(Value::as_str);
    let number = |key: &str| weights.get(key).and_then(Value::as_u64);
    let symmetric = weights.get("symmetric").and_then(Value::as_bool).unwrap_or(true);
    let inputs = group.get("input_activations").and_then(|inputs| inputs.get("dynamic")?.as_bool());
    let blocks = weights.get("block_structure").and_then(|sides| {
        let sides = sides.as_array()?;
        Some([
            sides.first()?.as_u64().filter(|side| *side > 0)?,
            sides.get(1)?.as_u64().filter(|side| *side > 0)?,
        ])
    });
    let group = number("group_size").filter(|group| *group > 0);
    match (text("type")?, number("num_bits")?, text("strategy"), group) {
        ("float", 8, Some("block"), _) => Some(("fp8-block", Scheme::Fp8Block(blocks.unwrap_or([128, 128])))),
        ("float", 8, Some("channel"), None) => Some(("fp8", Scheme::Fp8Row(2))),
        ("float", 8, _, None) => Some(("fp8", Scheme::Fp8Tensor { scale: 4, inputs: inputs == Some(false) })),
        ("float", 8, _, Some(32)) => Some(("mxfp8", Scheme::Mxfp8)),
        ("float", 4, _, Some(16)) => Some(("nvfp4", Scheme::Nvfp4)),
        ("float", 4, _, Some(32)) => Some(("mxfp4", Scheme::Mxfp4)),
        ("int", 4, _, Some(group)) => {
            Some(("int4-gptq", Scheme::Int4 { group, zeros: !symmetric, order: false }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<QuantizedPart> {
        mixed(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn layers_are_read_one_by_one_and_groups_by_their_targets() {
        let parts = of(r#"{"quantized_layers": {"a.q_proj": {"quant_algo": "MXFP8"},
            "a.experts": {"quant_algo": "NVFP4", "group_size": 16}, "b.q_proj": {"quant_algo": "MXFP8"}}}"#);
        let named = |names: &[&str]| Modules::Named(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(
            parts.iter().map(|part| (part.format, part.modules.clone())).collect::<Vec<_>>(),
            [("mxfp8", named(&["a.q_proj", "b.q_proj"])), ("nvfp4", named(&["a.experts"]))]
        );
        let parts = of(r#"{"config_groups": {
            "group_0": {"targets": ["Linear"], "weights": {"type": "float", "num_bits": 4, "group_size": 16}},
            "group_1": {"targets": ["re:.*self_attn.*"], "weights": {"type": "float", "num_bits": 8}}}}"#);
        assert_eq!(
            parts.iter().map(|part| (part.format, part.modules.clone())).collect::<Vec<_>>(),
            [("fp8", named(&["re:.*self_attn.*"])), ("nvfp4", Modules::Rest)]
        );
    }

    #[test]
    fn a_format_without_figures_leaves_all_unsaid() {
        assert_eq!(of(r#"{"quantized_layers": {"a": {"quant_algo": "NF3"}}}"#), []);
    }
}
