//! Size of a model as stored in its checkpoint: quantized matrices with their scales, all other tensors in its dtype.
//!
//! Models matrix layouts, not the formats in which devices compute.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::ModelGraph;
use super::tensor::{TensorRole, Weight};
use crate::spec::model::ModelConfig;
use crate::spec::model::parts::{Modules, QuantizedPart};
use crate::spec::model::quantization::Quantization;
use crate::spec::model::scheme::{Scheme, Stored};
use crate::spec::precision::CheckpointLayout;

/// Tensor bytes of a checkpoint, including multi-token-prediction weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// Total tensor bytes; file headers are not included.
    pub bytes: u64,
    /// Elements in the quantized format.
    pub quantised: u64,
    /// Elements in the model's own dtype, including fp32 buffers.
    pub native: u64,
    /// Scales, zero points and group indices of the quantized format.
    pub scales: u64,
    /// Bytes of these.
    pub scale_bytes: u64,
}

impl Checkpoint {
    /// The checkpoint of `graph` that `config` describes; `None` where the byte layout is not known.
    pub fn of(graph: &ModelGraph, config: &ModelConfig) -> Option<Checkpoint> {
        let native = native_bytes(config)?;
        let stored = match &config.quantization {
            None => None,
            Some(quantization) => Some(CheckpointParts::to_the_byte(quantization)?),
        };
        let mut sum = Checkpoint::default();
        for tensor in graph.tensors().iter().chain(&graph.mtp) {
            let scheme = stored.as_ref().and_then(|stored| stored.scheme(tensor));
            match scheme {
                Some(scheme) => sum.add(scheme, tensor, graph.hidden.value),
                None => {
                    // Expert-balancing buffers are kept in fp32.
                    sum.bytes += tensor.elements() * if tensor.buffer { 4 } else { native };
                    sum.native += tensor.elements();
                }
            }
        }
        Some(sum)
    }

    /// Weight bytes by role in the formats of the checkpoint; `None` where it is not quantized or a format has no entry
    /// in the catalogue.
    pub fn layout(graph: &ModelGraph, config: &ModelConfig) -> Option<CheckpointLayout> {
        let quantization = config.quantization.as_ref().filter(|found| !found.parts.is_empty())?;
        let stored = CheckpointParts::of(quantization);
        let native = native_bytes(config)?;
        // By role: quantised elements, all elements, bytes.
        let mut roles: Vec<(TensorRole, [u64; 3])> = vec![];
        let mut formats: Vec<(&'static str, u64)> = vec![];
        for tensor in graph.tensors() {
            if tensor.role.is_small()
                || tensor.buffer
                || tensor.shape.len() < 2
                || tensor.role == TensorRole::Tower
            {
                continue;
            }
            let mut sum = Checkpoint::default();
            match stored.part(&tensor) {
                Some(part) => {
                    sum.add(part.scheme, &tensor, graph.hidden.value);
                    match formats.iter_mut().find(|(format, _)| *format == part.format) {
                        Some((_, elements)) => *elements += sum.quantised,
                        None => formats.push((part.format, sum.quantised)),
                    }
                }
                None => sum.bytes += tensor.elements() * native,
            }
            let new = [sum.quantised, tensor.elements(), sum.bytes];
            match roles.iter_mut().find(|(role, _)| *role == tensor.role) {
                Some((_, known)) => known.iter_mut().zip(new).for_each(|(known, new)| *known += new),
                None => roles.push((tensor.role, new)),
            }
        }
        // A part without any tensors names modules in an unsupported way.
        if !stored.parts.iter().all(|(part, _)| formats.iter().any(|(format, _)| *format == part.format)) {
            return None;
        }
        formats.sort_by_key(|(_, elements)| std::cmp::Reverse(*elements));
        let quantised = |index: usize| -> u64 {
            roles.iter().filter(|(_, sums)| sums[0] > 0).map(|(_, sums)| sums[index]).sum()
        };
        let (elements, bytes) = (quantised(1), quantised(2));
        let name = |role: &TensorRole| serde_json::to_value(role).ok()?.as_str().map(str::to_owned);
        let named =
            roles.iter().map(|(role, sums)| Some((name(role)?, sums[0] > 0))).collect::<Option<_>>()?;
        let formats = formats.into_iter().map(|(format, _)| format).collect();
        (elements > 0).then_some(CheckpointLayout { formats, bytes, elements, roles: named })
    }

    fn add(&mut self, scheme: Scheme, tensor: &Weight, hidden: u64) {
        for (outputs, inputs, times) in matrices(tensor, hidden) {
            let Stored { elements, scales, scale_bytes } = scheme.matrix(outputs, inputs);
            self.quantised += times * outputs * inputs;
            self.scales += times * scales;
            self.scale_bytes += times * scale_bytes;
            self.bytes += times * (elements + scale_bytes);
        }
    }
}

/// Bytes of an element in the model's own dtype.
fn native_bytes(config: &ModelConfig) -> Option<u64> {
    match config.dtype.as_deref().map(|dtype| dtype.trim_start_matches("torch.")) {
        Some("bfloat16" | "float16") => Some(2),
        Some("float32") => Some(4),
        // gpt-oss: weights that are not quantized are bf16, without a key.
        None if config.quantization.is_some() => Some(2),
        _ => None,
    }
}

/// The quantized parts of a checkpoint, and the modules left in the model's dtype.
struct CheckpointParts<'q> {
    parts: Vec<(&'q QuantizedPart, Option<UnquantizedModules>)>,
    unquantized: UnquantizedModules,
}

impl CheckpointParts<'_> {
    fn of(quantization: &Quantization) -> CheckpointParts<'_> {
        let named = |part: &QuantizedPart| match &part.modules {
            Modules::Named(names) => Some(UnquantizedModules::named(names)),
            Modules::Experts | Modules::Rest => None,
        };
        CheckpointParts {
            parts: quantization.parts.iter().map(|part| (part, named(part))).collect(),
            unquantized: UnquantizedModules::named(&quantization.modules_to_not_convert),
        }
    }

    /// The same for layouts that are known to the byte.
    fn to_the_byte(quantization: &Quantization) -> Option<CheckpointParts<'_>> {
        let named = |part: &QuantizedPart| matches!(part.modules, Modules::Named(_));
        let known = quantization.scheme.is_some() || quantization.parts.iter().any(named);
        (known && !quantization.parts.is_empty()).then(|| CheckpointParts::of(quantization))
    }

    /// The part of a tensor; `None`: it is in the model's own dtype.
    fn part(&self, tensor: &Weight) -> Option<&QuantizedPart> {
        let means =
            |(part, names): &&(&QuantizedPart, Option<UnquantizedModules>)| match (&part.modules, names) {
                (Modules::Experts, _) => tensor.role == TensorRole::Expert,
                (_, Some(names)) => names.has(tensor),
                (_, None) => !self.unquantized.has(tensor),
            };
        let (part, names) = self.parts.iter().find(means)?;
        // A head is converted only where the file names it.
        let head = tensor.role == TensorRole::LmHead && names.is_some() && tensor.shape.len() == 2;
        Some(*part).filter(|part| head || convertible(part.scheme, tensor))
    }

    fn scheme(&self, tensor: &Weight) -> Option<Scheme> {
        self.part(tensor).map(|part| part.scheme)
    }
}

/// The matrices of a tensor: outputs, inputs, count. Checkpoints store stacked experts separately, and gate and up as
/// well.
fn matrices(tensor: &Weight, hidden: u64) -> Vec<(u64, u64, u64)> {
    match tensor.shape[..] {
        [outputs, inputs] => vec![(outputs, inputs, 1)],
        [experts, one, other] => {
            let joined = tensor.name.ends_with("gate_up_proj");
            let down = tensor.name.ends_with("down_proj");
            // `[out, in]`, unless only `[in, out]` is consistent with the width of the stream.
            let (outputs, inputs) = match (joined, down) {
                (true, _) if other != hidden && one == hidden => (other, one),
                (_, true) if one != hidden && other == hidden => (other, one),
                _ => (one, other),
            };
            if joined { vec![(outputs / 2, inputs, 2 * experts)] } else { vec![(outputs, inputs, experts)] }
        }
        _ => vec![],
    }
}

/// Whether methods of this layout quantize tensors of this kind.
fn convertible(scheme: Scheme, tensor: &Weight) -> bool {
    let matrix = tensor.shape.len() >= 2 && !tensor.buffer;
    let kind = match scheme {
        Scheme::Mxfp4 => tensor.role == TensorRole::Expert,
        _ => matches!(
            tensor.role,
            TensorRole::Attention
                | TensorRole::Mlp
                | TensorRole::Expert
                | TensorRole::SharedExpert
                | TensorRole::Indexer
        ),
    };
    // The projection of multi-token prediction and the indexer's weights are not quantized (DeepSeek-V3's 41,540,496
    // scales).
    matrix && kind && !["eh_proj.weight", "weights_proj.weight"].iter().any(|end| tensor.name.ends_with(end))
}

/// The modules that a checkpoint leaves in the model's dtype. Files can list thousands of them.
struct UnquantizedModules {
    named: HashSet<String>,
    patterns: Vec<Pattern>,
}

impl UnquantizedModules {
    fn named(modules: &[String]) -> UnquantizedModules {
        let plain = |pattern: &&String| !pattern.contains('*') && !pattern.starts_with("re:");
        let (named, patterns): (Vec<&String>, _) = modules.iter().partition(plain);
        UnquantizedModules {
            named: named.into_iter().cloned().collect(),
            patterns: patterns.into_iter().map(|pattern| Pattern::of(pattern)).collect(),
        }
    }

    /// Whether the tensor's module is in the list.
    fn has(&self, tensor: &Weight) -> bool {
        let module = tensor.name.trim_end_matches(".weight");
        let mut names = vec![module.to_owned()];
        if let Some((experts, _)) = module.split_once(".experts.") {
            names.push(format!("{experts}.experts"));
            names.push(format!("{experts}.experts.0.down_proj"));
        }
        names.extend(names.clone().iter().filter_map(|name| {
            name.strip_prefix("model.language_model.").map(|rest| format!("language_model.model.{rest}"))
        }));
        names.iter().any(|name| self.names(name) || self.patterns.iter().any(|pattern| pattern.fits(name)))
    }

    /// Whether a module is listed: itself, a parent, or the end of its name.
    fn names(&self, module: &str) -> bool {
        let dots = module.match_indices('.').map(|(at, _)| at);
        self.named.contains(module)
            || dots
                .clone()
                .any(|at| self.named.contains(&module[..at]) || self.named.contains(&module[at + 1..]))
    }
}

/// A pattern for modules: their names, their parents' names, the ends of their names, or any of these with `*` as a
/// wildcard. Parsed once, as files have hundreds of patterns and models thousands of modules.
enum Pattern {
    /// A prefix, at the start or after a dot (with the dot): one `*`, at the end.
    Beginning(String, String),
    /// Any of these.
    Globs([String; 3]),
}

impl Pattern {
    fn of(pattern: &str) -> Pattern {
        let plain = match pattern.strip_prefix("re:") {
            Some(expression) => {
                expression.replace(".*", "*").replace("\\.", ".").trim_end_matches('$').to_owned()
            }
            None => pattern.to_owned(),
        };
        match plain.strip_suffix('*') {
            Some(start) if !start.is_empty() && !start.contains('*') => {
                Pattern::Beginning(start.to_owned(), format!(".{start}"))
            }
            _ => Pattern::Globs([format!("{plain}.*"), format!("*.{plain}"), plain]),
        }
    }

    /// Whether the pattern matches the module.
    fn fits(&self, name: &str) -> bool {
        match self {
            Pattern::Beginning(start, inside) => {
                name.starts_with(start.as_str()) || name.contains(inside.as_str())
            }
            Pattern::Globs(globs) => globs.iter().any(|pattern| glob(name, pattern)),
        }
    }
}

/// Whether `name` matches `pattern`, with `*` as a wildcard.
fn glob(name: &str, pattern: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_modules_their_children_and_ends_of_names() {
        for (pattern, name, means) in [
            ("lm_head", "lm_head", true),
            ("model.layers.1.mlp", "model.layers.1.mlp.up_proj", true),
            ("model.layers.1.mlp", "model.layers.10.mlp.up_proj", false),
            ("mlp.gate", "model.layers.1.mlp.gate", true),
            ("mlp.gate", "model.layers.1.mlp.gate_proj", false),
            ("model.layers.*.self_attn", "model.layers.7.self_attn.q_proj", true),
            (
                "language_model.model.layers.0.self_attn*",
                "language_model.model.layers.0.self_attn.o_proj",
                true,
            ),
            ("layers.1.self_attn*", "model.layers.1.self_attn.o_proj", true),
            ("ayers.1.self_attn*", "model.layers.1.self_attn.o_proj", false),
            ("re:.*self_attn.*", "model.layers.0.self_attn.k_proj", true),
            ("re:.*self_attn.*", "model.layers.0.mlp.up_proj", false),
        ] {
            assert_eq!(Pattern::of(pattern).fits(name), means, "{pattern} {name}");
            // The fast path matches the same names as the full match.
            let long = [format!("{pattern}.*"), format!("*.{pattern}"), pattern.to_owned()];
            let long = Pattern::Globs(long).fits(name);
            assert!(pattern.starts_with("re:") || long == means, "{pattern} {name}");
            let kept = UnquantizedModules { named: HashSet::from([pattern.to_owned()]), patterns: vec![] };
            assert!(kept.names(name) == means || pattern.contains('*'), "{pattern} {name}");
        }
    }

    #[test]
    fn experts_are_counted_one_by_one_whichever_way_they_are_stacked() {
        let tensor =
            |name: &str, shape| Weight { ..crate::graph::assembly::weight(name, shape, TensorRole::Expert) };
        assert_eq!(matrices(&tensor("mlp.experts.gate_up_proj", vec![8, 20, 6]), 6), [(10, 6, 16)]);
        assert_eq!(matrices(&tensor("mlp.experts.gate_up_proj", vec![8, 6, 20]), 6), [(10, 6, 16)]);
        assert_eq!(matrices(&tensor("mlp.experts.down_proj", vec![8, 6, 10]), 6), [(6, 10, 8)]);
        assert_eq!(matrices(&tensor("mlp.experts.down_proj", vec![8, 10, 6]), 6), [(6, 10, 8)]);
    }
}
