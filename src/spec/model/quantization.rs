//! Quantization of a checkpoint's weights: `quantization_config`, or a separate `hf_quant_config.json`.
//!
//! Names the weight format; its bits, scales and speed belong to the format.

use serde_json::{Map, Value};

use super::parts::{self, QuantizedPart};
use super::scheme::Scheme;
use super::value::shown;
use crate::spec::error::Error;

#[derive(Clone, Debug, PartialEq)]
pub struct Quantization {
    /// `quant_method` (or `quant_algo`) as written, e.g. `fp8`, `awq`, `NVFP4`.
    pub method: String,
    /// Its weight format, e.g. `fp8-block`; none where layers differ (`MIXED_PRECISION`) or the catalogue lacks the
    /// method's format.
    pub weight_format: Option<&'static str>,
    /// Rows and columns that share a scale, for scales per block.
    pub weight_block_size: Option<[u64; 2]>,
    /// Weights along a row that share a scale, for scales per group.
    pub group_size: Option<u64>,
    /// Layout of matrices and scales, where it is uniform and known to the byte.
    pub scheme: Option<Scheme>,
    /// Modules of each format; empty where a format has no figures or is not given.
    pub parts: Vec<QuantizedPart>,
    /// Patterns of modules left in the model's dtype.
    pub modules_to_not_convert: Vec<String>,
    /// Format of the KV cache, where the checkpoint contains scales for one.
    pub kv_format: Option<&'static str>,
}

const KEY: &str = "quantization_config";
/// The keys of a quantization in a configuration.
pub(super) const KEYS: [&str; 2] = [KEY, "compression_config"];
const FIX: &str = "set --weight-format, or use a checkpoint in one of these";
const KNOWN: &str = "fp8, fbgemm_fp8, mxfp4, awq, gptq, auto-round, compressed-tensors, modelopt, or another method of \
                     transformers";

/// Methods that preserve shapes, without formats in the catalogue: `quant_method` of transformers' own quantizers,
/// <https://huggingface.co/docs/transformers/quantization/overview>, and `exl2`, `exl3` of ExLlama.
const WITHOUT_FORMAT: &str = "aqlm autoround bitnet bitnet_b158 bitsandbytes eetq exl2 exl3 \
                              finegrained_fp8 fp_quant higgs hqq intel/auto-round quanto quark spqr torchao vptq";

/// AutoRound's `data_type`, a part of its packing, and bits → weight format, as vLLM's `INCConfig` and SGLang's
/// `AutoRoundConfig` read them: without a type integers, without a packing that of GPTQ.
const AUTO_ROUND: &[(&str, &str, u64, &str)] = &[
    ("int", "gptq", 4, "int4-gptq"),
    ("int", "awq", 4, "int4-awq"),
    ("int", "gptq", 8, "int8-w8a16"),
    ("mx_fp", "llm_compressor", 4, "mxfp4"),
    ("mx_fp", "llm_compressor", 8, "mxfp8"),
];
/// Bits from which a module is not quantised.
const WHOLE_BITS: u64 = 16;

/// ModelOpt's value for layers in different formats.
const MIXED: &str = "MIXED_PRECISION";

/// ModelOpt's `quant_algo` → weight format.
const ALGORITHMS: &[(&str, Option<&str>)] = &[
    ("FP8", Some("fp8")),
    ("FP8_PER_CHANNEL_PER_TOKEN", Some("fp8")),
    ("FP8_PB_WO", Some("fp8-block")),
    ("NVFP4", Some("nvfp4")),
    ("W4A16_AWQ", Some("int4-awq")),
    ("MXFP4", Some("mxfp4")),
    (MIXED, None),
];

impl Quantization {
    /// The quantization in `config.json`, or in `hf_quant_config.json` if present.
    pub(super) fn find(
        config: &Map<String, Value>,
        hf_quant_config: Option<&Map<String, Value>>,
    ) -> Result<Option<Quantization>, Error> {
        let inside = match KEYS.iter().find_map(|key| config.get(*key)) {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(Quantization::read(map)?.with_experts(map, config)),
            Some(other) => return Err(Error::new(KEY, shown(other), "an object", FIX)),
        };
        let separate = match hf_quant_config.and_then(|map| map.get("quantization")) {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(Quantization::read(map)?),
            Some(other) => return Err(Error::new("quantization", shown(other), "an object", FIX)),
        };
        match (inside, separate) {
            (Some(inside), Some(separate)) if inside.weight_format != separate.weight_format => {
                Err(Error::new(
                    KEY,
                    inside.weight_format.unwrap_or(MIXED),
                    format!("{}, as in hf_quant_config.json", separate.weight_format.unwrap_or(MIXED)),
                    "use both files from the same revision of the checkpoint",
                ))
            }
            (inside, separate) => Ok(inside.or(separate)),
        }
    }

    /// The same where experts have their own format (`expert_dtype`: DeepSeek-V4's fp4 with fp8 for other weights).
    fn with_experts(self, map: &Map<String, Value>, config: &Map<String, Value>) -> Quantization {
        match map.get("expert_dtype").or_else(|| config.get("expert_dtype")) {
            None | Some(Value::Null) => self,
            Some(dtype) => {
                // DeepSeek-V4's fp4: one exponent per 32 elements, as in MXFP4.
                let parts = match (dtype.as_str(), self.weight_format, self.scheme) {
                    (Some("fp4"), Some(rest), Some(scheme)) => {
                        parts::experts_and_rest(("mxfp4", Scheme::Mxfp4), (rest, scheme))
                    }
                    _ => vec![],
                };
                Quantization { weight_format: None, scheme: None, parts, ..self }
            }
        }
    }

    fn read(map: &Map<String, Value>) -> Result<Quantization, Error> {
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        let number = |key: &str| map.get(key).and_then(Value::as_u64);
        let method = text("quant_method").or_else(|| text("quant_algo"));
        let group = sole_group(map)?;
        let weight_block_size = block_size(map.get("weight_block_size"))?
            .or(group.and_then(|weights| block_size(weights.get("block_structure")).ok().flatten()));
        let group_size = number("group_size")
            .or_else(|| group.and_then(|weights| weights.get("group_size")).and_then(Value::as_u64));
        let weight_format = weight_format(map, group, weight_block_size.is_some(), group_size.is_some())?;
        let modules_to_not_convert = ["modules_to_not_convert", "ignore", "exclude_modules"]
            .iter()
            .filter_map(|key| map.get(*key).and_then(Value::as_array))
            .flatten()
            .filter_map(|pattern| pattern.as_str().map(str::to_owned))
            .chain(extra_modules(map).filter(|(_, bits)| *bits >= WHOLE_BITS).map(|(name, _)| name.clone()))
            .collect();
        let scheme = Scheme::read(map, method.unwrap_or_default(), weight_block_size, group_size);
        let parts = match weight_format {
            None => parts::mixed(map),
            Some(format) => {
                let of_group =
                    || map.get("config_groups")?.as_object()?.values().find_map(parts::group_layout);
                let scheme = scheme.or_else(|| of_group().map(|(_, scheme)| scheme));
                scheme.map_or_else(Vec::new, |scheme| parts::whole(format, scheme))
            }
        };
        Ok(Quantization {
            method: method.unwrap_or_default().to_owned(),
            weight_format,
            scheme,
            parts,
            weight_block_size,
            group_size,
            modules_to_not_convert,
            kv_format: kv_format(map)?,
        })
    }
}

/// The weight format of a quantisation that has one name; `None` where it has none here.
fn weight_format(
    map: &Map<String, Value>,
    group: Option<&Map<String, Value>>,
    blocks: bool,
    groups: bool,
) -> Result<Option<&'static str>, Error> {
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    let bits = map.get("bits").and_then(Value::as_u64);
    let refuse = |found: String| Error::new(KEY, found, KNOWN, FIX);
    if let Some(algorithm) = text("quant_algo") {
        let known = ALGORITHMS.iter().find(|(name, _)| *name == algorithm);
        return known.map(|(_, format)| *format).ok_or_else(|| refuse(format!("quant_algo {algorithm}")));
    }
    Ok(match text("quant_method") {
        Some("fp8") if blocks => Some("fp8-block"),
        Some("fp8" | "fbgemm_fp8") => Some("fp8"),
        Some("mxfp4") => Some("mxfp4"),
        Some(method @ ("awq" | "gptq")) => match (method, bits) {
            ("awq", Some(4)) => Some("int4-awq"),
            ("gptq", Some(4)) => Some("int4-gptq"),
            ("gptq", Some(8)) => Some("int8"),
            (_, Some(1..=8)) => None,
            (_, Some(bits)) => return Err(refuse(format!("{method} of {bits} bits"))),
            (_, None) => return Err(refuse(format!("{method} without `bits`"))),
        },
        Some("auto-round") => match bits {
            Some(bits) => auto_round(map, bits),
            None => return Err(refuse("auto-round without `bits`".to_owned())),
        },
        Some("compressed-tensors") => match group {
            Some(weights) => {
                let found = |key: &str| weights.get(key).map_or_else(|| "nothing".to_owned(), shown);
                let words = ["type", "num_bits", "strategy", "group_size"];
                let words = words.map(|key| format!("{key} {}", found(key))).join(", ");
                Some(group_format(weights).ok_or_else(|| refuse(format!("weights of {words}")))?)
            }
            None if !parts::mixed(map).is_empty() => None,
            None => return Err(refuse("compressed-tensors without config_groups".to_owned())),
        },
        Some(other) if WITHOUT_FORMAT.split(' ').any(|known| known == other) => None,
        Some(other) => return Err(refuse(format!("quant_method {other}"))),
        // MLX writes only bits and group size.
        None if bits.is_some() && groups => None,
        None => return Err(refuse("neither quant_method nor quant_algo".to_owned())),
    })
}

/// The weight format of an AutoRound checkpoint; `None` where modules have several, or where it is not in the table.
fn auto_round(map: &Map<String, Value>, bits: u64) -> Option<&'static str> {
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    if extra_modules(map).any(|(_, own)| own < WHOLE_BITS && own != bits) {
        return None;
    }
    let kind = text("data_type").unwrap_or("int");
    let kind = if kind.contains("mx_fp") { "mx_fp" } else { kind };
    let usual = if kind == "mx_fp" { "llm_compressor" } else { "gptq" };
    let packing = text("packing_format").unwrap_or(usual);
    let known =
        AUTO_ROUND.iter().find(|(name, part, of, _)| *name == kind && packing.contains(part) && *of == bits);
    known.map(|(.., format)| *format)
}

/// Modules with bits of their own in AutoRound's `extra_config`.
fn extra_modules(map: &Map<String, Value>) -> impl Iterator<Item = (&String, u64)> {
    let modules = map.get("extra_config").and_then(Value::as_object).into_iter().flatten();
    modules.filter_map(|(name, own)| Some((name, own.get("bits")?.as_u64()?)))
}

/// The `weights` of `config_groups`, if exactly one kind exists.
fn sole_group(map: &Map<String, Value>) -> Result<Option<&Map<String, Value>>, Error> {
    let Some(groups) = map.get("config_groups").and_then(Value::as_object) else { return Ok(None) };
    let mut kinds: Vec<&Map<String, Value>> =
        groups.values().filter_map(|group| group.get("weights").and_then(Value::as_object)).collect();
    kinds.dedup();
    match kinds.as_slice() {
        [] => Ok(None),
        [kind] => Ok(Some(kind)),
        _ if map.get("quant_algo").and_then(Value::as_str) == Some(MIXED) => Ok(None),
        _ if !parts::mixed(map).is_empty() => Ok(None),
        several => Err(Error::new(
            "quantization_config.config_groups",
            format!("{} weight formats", several.len()),
            KNOWN,
            FIX,
        )),
    }
}

/// The weight format of a compressed-tensors group: its element type, bits and how scales are shared.
fn group_format(weights: &Map<String, Value>) -> Option<&'static str> {
    let text = |key: &str| weights.get(key).and_then(Value::as_str);
    let number = |key: &str| weights.get(key).and_then(Value::as_u64);
    match (text("type")?, number("num_bits")?, text("strategy"), number("group_size")) {
        ("float", 8, Some("block"), _) => Some("fp8-block"),
        ("float", 8, _, None) => Some("fp8"),
        ("float", 4, _, Some(16)) => Some("nvfp4"),
        ("float", 4, _, Some(32)) => Some("mxfp4"),
        ("int", 8, _, None) => Some("int8"),
        ("int", 4, Some("group"), Some(_)) => Some("int4-gptq"),
        _ => None,
    }
}

fn block_size(value: Option<&Value>) -> Result<Option<[u64; 2]>, Error> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    if let [rows, columns] = value.as_array().map_or(&[][..], Vec::as_slice)
        && let (Some(rows @ 1..), Some(columns @ 1..)) = (rows.as_u64(), columns.as_u64())
    {
        return Ok(Some([rows, columns]));
    }
    let key = "quantization_config.weight_block_size";
    Err(Error::new(key, shown(value), "two whole numbers, e.g. [128, 128]", FIX))
}

/// The KV cache format, which checkpoints give as a word, or as an object of bits and type.
fn kv_format(map: &Map<String, Value>) -> Result<Option<&'static str>, Error> {
    let value = map.get("kv_cache_scheme").or_else(|| map.get("kv_cache_quant_algo"));
    let word = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(word)) => word.to_lowercase(),
        Some(value) => {
            let of = |key: &str| value.get(key).cloned().unwrap_or_default();
            format!("{}{}", of("type").as_str().unwrap_or_default(), of("num_bits"))
        }
    };
    match word.as_str() {
        "fp8" | "float8" => Ok(Some("fp8")),
        "int8" => Ok(Some("int8")),
        "nvfp4" => Ok(Some("nvfp4")),
        _ => Err(Error::new(
            "quantization_config.kv_cache_scheme",
            word,
            "FP8, INT8 or NVFP4",
            "remove it and set --kv-format",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Quantization, Error> {
        let map: Map<String, Value> = serde_json::from_str(text).unwrap();
        Quantization::read(&map)
    }

    #[test]
    fn each_method_names_its_format() {
        for (text, format) in [
            (r#"{"quant_method": "fp8", "weight_block_size": [128, 128]}"#, "fp8-block"),
            (r#"{"quant_method": "fp8", "weight_block_size": null}"#, "fp8"),
            (r#"{"quant_method": "fbgemm_fp8"}"#, "fp8"),
            (r#"{"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}"#, "mxfp4"),
            (r#"{"quant_method": "awq", "bits": 4, "group_size": 128}"#, "int4-awq"),
            (r#"{"quant_method": "gptq", "bits": 8}"#, "int8"),
            (r#"{"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": true}"#, "int4-gptq"),
            (
                r#"{"quant_method": "auto-round", "bits": 4, "group_size": 128, "packing_format":
                    "auto_round:auto_awq"}"#,
                "int4-awq",
            ),
            (r#"{"quant_method": "auto-round", "bits": 8, "group_size": 128}"#, "int8-w8a16"),
            (
                r#"{"quant_method": "auto-round", "bits": 4, "group_size": 32, "data_type": "mx_fp4",
                    "packing_format": "auto_round:llm_compressor"}"#,
                "mxfp4",
            ),
            (r#"{"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": "FP8"}"#, "nvfp4"),
            (
                r#"{"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights":
                    {"type": "float", "num_bits": 8, "strategy": "channel", "group_size": null}}}}"#,
                "fp8",
            ),
        ] {
            assert_eq!(of(text).unwrap().weight_format, Some(format), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        for text in [
            r#"{"quant_method": "own"}"#,
            r#"{"quant_method": "awq", "bits": 30}"#,
            r#"{"quant_method": "auto-round", "group_size": 128}"#,
            r#"{"quant_method": "fp8", "weight_block_size": [128]}"#,
            r#"{}"#,
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_method_without_a_format_of_the_table_names_none() {
        for text in [
            r#"{"quant_algo": "MIXED_PRECISION"}"#,
            r#"{"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"}"#,
            r#"{"quant_method": "awq", "bits": 3}"#,
            r#"{"quant_method": "auto-round", "bits": 2, "group_size": 128}"#,
            r#"{"quant_method": "auto-round", "bits": 4, "extra_config": {"a": {"bits": 8}}}"#,
            r#"{"bits": 4, "group_size": 64}"#,
        ] {
            assert_eq!(of(text).unwrap().weight_format, None, "{text}");
        }
    }

    #[test]
    fn modules_that_auto_round_leaves_whole_are_not_converted() {
        let found = of(r#"{"quant_method": "auto-round", "bits": 4, "group_size": 128, "extra_config":
                {"model.layers.0.mlp": {"bits": 16, "data_type": "fp"}, "model.layers.1.mlp": {"bits": 4}}}"#);
        let found = found.unwrap();
        assert_eq!((found.weight_format, found.group_size), (Some("int4-gptq"), Some(128)));
        assert_eq!(found.modules_to_not_convert, ["model.layers.0.mlp"]);
    }

    #[test]
    fn experts_of_their_own_format_make_a_checkpoint_mixed() {
        let config: Map<String, Value> = serde_json::from_str(
            r#"{"expert_dtype": "fp4", "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}"#,
        )
        .unwrap();
        let found = Quantization::find(&config, None).unwrap().unwrap();
        assert_eq!((found.weight_format, found.scheme), (None, None));
    }

    #[test]
    fn the_separate_file_speaks_where_config_json_is_silent_and_must_not_contradict_it() {
        let silent = Map::new();
        let separate: Map<String, Value> = serde_json::from_str(
            r#"{"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}"#,
        )
        .unwrap();
        let found = Quantization::find(&silent, Some(&separate)).unwrap().unwrap();
        assert_eq!((found.weight_format, found.kv_format), (Some("fp8"), Some("fp8")));
        assert_eq!(found.modules_to_not_convert, ["lm_head"]);
        let other: Map<String, Value> =
            serde_json::from_str(r#"{"quantization_config": {"quant_method": "mxfp4"}}"#).unwrap();
        assert!(Quantization::find(&other, Some(&separate)).is_err());
    }
}
