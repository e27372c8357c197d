//! GGUF files as models: the header becomes a model file, whose graph must have as many parameters as the tensors.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::file;
use crate::graph::model::ModelGraph;
use crate::spec::error::Error;
use crate::spec::model::ModelConfig;
use crate::spec::model::file::{ModelFile, Published, PublishedTotal};
use crate::spec::model::gguf::{GgufHeader, GgufTensor};

/// Ending of the files.
pub const ENDING: &str = ".gguf";

/// A key of the metadata after the architecture, and that of `config.json`.
type KeyPair = (&'static str, &'static str);

/// An architecture of llama.cpp as a class of transformers.
struct GgufArchitecture {
    /// `general.architecture`.
    name: &'static str,
    /// Whether it has experts; one name may mean both.
    experts: bool,
    model_type: &'static str,
    class: &'static str,
    /// Its keys in addition to [`COMMON`].
    keys: &'static [KeyPair],
}

const COMMON: [KeyPair; 7] = [
    ("block_count", "num_hidden_layers"),
    ("embedding_length", "hidden_size"),
    ("feed_forward_length", "intermediate_size"),
    ("attention.head_count", "num_attention_heads"),
    ("attention.head_count_kv", "num_key_value_heads"),
    ("attention.key_length", "head_dim"),
    ("context_length", "max_position_embeddings"),
];

/// Conversions of llama.cpp's `convert_hf_to_gguf.py`.
const ARCHITECTURES: [GgufArchitecture; 5] = [
    GgufArchitecture {
        name: "llama",
        experts: false,
        model_type: "llama",
        class: "LlamaForCausalLM",
        keys: &[],
    },
    GgufArchitecture {
        name: "llama",
        experts: true,
        model_type: "mixtral",
        class: "MixtralForCausalLM",
        keys: &[("expert_count", "num_local_experts"), ("expert_used_count", "num_experts_per_tok")],
    },
    GgufArchitecture {
        name: "qwen2",
        experts: false,
        model_type: "qwen2",
        class: "Qwen2ForCausalLM",
        keys: &[],
    },
    GgufArchitecture {
        name: "qwen3",
        experts: false,
        model_type: "qwen3",
        class: "Qwen3ForCausalLM",
        keys: &[],
    },
    GgufArchitecture {
        name: "qwen3moe",
        experts: true,
        model_type: "qwen3_moe",
        class: "Qwen3MoeForCausalLM",
        keys: &[
            ("expert_count", "num_experts"),
            ("expert_used_count", "num_experts_per_tok"),
            ("expert_feed_forward_length", "moe_intermediate_size"),
        ],
    },
];

/// Weight formats by `general.file_type`: `enum llama_ftype` of llama.cpp's `include/llama.h`.
const FILE_TYPES: [(u64, &str); 32] = [
    (1, "fp16"),
    (2, "gguf-q4_0"),
    (3, "gguf-q4_1"),
    (7, "gguf-q8_0"),
    (8, "gguf-q5_0"),
    (9, "gguf-q5_1"),
    (10, "gguf-q2_k"),
    (11, "gguf-q3_k_s"),
    (12, "gguf-q3_k_m"),
    (13, "gguf-q3_k_l"),
    (14, "gguf-q4_k_s"),
    (15, "gguf-q4_k_m"),
    (16, "gguf-q5_k_s"),
    (17, "gguf-q5_k_m"),
    (18, "gguf-q6_k"),
    (19, "gguf-iq2_xxs"),
    (20, "gguf-iq2_xs"),
    (21, "gguf-q2_k_s"),
    (22, "gguf-iq3_xs"),
    (23, "gguf-iq3_xxs"),
    (24, "gguf-iq1_s"),
    (25, "gguf-iq4_nl"),
    (26, "gguf-iq3_s"),
    (27, "gguf-iq3_m"),
    (28, "gguf-iq2_s"),
    (29, "gguf-iq2_m"),
    (30, "gguf-iq4_xs"),
    (31, "gguf-iq1_m"),
    (32, "bf16"),
    (36, "gguf-tq1_0"),
    (37, "gguf-tq2_0"),
    (38, "gguf-mxfp4_moe"),
];

/// Tensors that a conversion adds: factors of rotary embeddings.
const ADDED: [&str; 3] = ["rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"];

/// The model file of a GGUF file and its further parts, as text.
///
/// # Errors
/// A header is faulty, its architecture is not known, or its tensors are not those of the architecture.
pub fn model_text(path: &Path) -> Result<String, Error> {
    let name = file::shown(path);
    let in_file = |fault: Error| fault.in_file(&name);
    let header = read(path)?;
    let mut tensors = header.tensors.clone();
    for part in parts(path, &header).map_err(in_file)? {
        tensors.extend(read(Path::new(&part))?.tensors);
    }
    let file = model_file(&header, &tensors, path).map_err(in_file)?;
    Ok(json!(file).to_string())
}

fn read(path: &Path) -> Result<GgufHeader, Error> {
    let name = file::shown(path);
    let opened = File::open(path).map_err(|error| {
        let fix = "check the path and its permissions";
        Error::new("", file::spell(&error), "a file that can be read", fix).in_file(&name)
    })?;
    GgufHeader::read(BufReader::new(opened)).map_err(|fault| fault.in_file(&name))
}

/// The further parts of a file that is split, by the names that llama.cpp gives them.
fn parts(path: &Path, header: &GgufHeader) -> Result<Vec<String>, Error> {
    let count = header.whole("split.count").unwrap_or(1);
    if count <= 1 {
        return Ok(vec![]);
    }
    let path = path.to_string_lossy();
    let first = format!("-00001-of-{count:05}{ENDING}");
    let stem = path.strip_suffix(first.as_str()).filter(|_| count <= 99_999).ok_or_else(|| {
        let fix = "name the first part, with all parts next to it";
        Error::new(
            "split.count",
            format!("one of {count} parts"),
            format!("a name that ends in {first}"),
            fix,
        )
    })?;
    Ok((2..=count).map(|part| format!("{stem}-{part:05}-of-{count:05}{ENDING}")).collect())
}

fn model_file(header: &GgufHeader, tensors: &[GgufTensor], path: &Path) -> Result<ModelFile, Error> {
    let config = config(header, tensors)?;
    let counted = |tensor: &&GgufTensor| !ADDED.contains(&tensor.name.as_str());
    let mut sizes = tensors.iter().filter(counted).map(GgufTensor::elements);
    let sum = sizes.try_fold(0u64, |sum, size| sum.checked_add(size?));
    let elements = sum.ok_or_else(|| {
        let found = "more elements in its tensors than 64 bits count";
        Error::new("tensors", found, "the shapes of a model", "download the file again")
    })?;
    let stem = path.file_stem().map(|stem| file::shown(Path::new(stem)));
    let name = stem.unwrap_or_else(|| file::shown(path));
    let parsed = ModelConfig::from_map(config.clone(), None)?;
    let parameters = ModelGraph::build(&parsed)?.parameters().unique;
    if parameters != elements {
        let fix = "name the model's config.json with --weight-format instead; this conversion is not known";
        let found = format!("{elements} elements in its tensors");
        return Err(Error::new("tensors", found, format!("{parameters}, as its metadata say"), fix));
    }
    let source = "header of the GGUF file".to_owned();
    let weight_format = weight_format(header)?.to_owned();
    Ok(ModelFile {
        source: source.clone(),
        published: vec![Published { id: name.clone(), weight_format, source: source.clone() }],
        published_total: Some(PublishedTotal { elements, source }),
        name,
        aliases: vec![],
        release: None,
        parameters,
        config,
    })
}

fn weight_format(header: &GgufHeader) -> Result<&'static str, Error> {
    let kind = header.whole("general.file_type");
    let known = kind.and_then(|kind| FILE_TYPES.iter().find(|(known, _)| *known == kind));
    known.map(|(_, format)| *format).ok_or_else(|| {
        let found = kind.map_or("no file type".to_owned(), |kind| format!("file type {kind}"));
        let fix = "name the model's config.json with --weight-format instead";
        Error::new("general.file_type", found, "a file type of llama.cpp with a format in the catalogue", fix)
    })
}

/// The architecture keys of `config.json`.
fn config(header: &GgufHeader, tensors: &[GgufTensor]) -> Result<Map<String, Value>, Error> {
    let name = header.text("general.architecture").unwrap_or_default();
    let key = |suffix: &str| format!("{name}.{suffix}");
    let experts = header.whole(&key("expert_count")).unwrap_or(0) > 0;
    let known = ARCHITECTURES.iter().find(|one| one.name == name && one.experts == experts);
    let architecture = known.ok_or_else(|| {
        let names: Vec<&str> = ARCHITECTURES.iter().map(|one| one.name).collect();
        let fix = "name the model itself with --weight-format, e.g. gguf-q4_k_m";
        Error::new("general.architecture", format!("`{name}`"), format!("one of {}", names.join(", ")), fix)
    })?;
    let mut config = Map::new();
    config.insert("architectures".into(), json!([architecture.class]));
    config.insert("model_type".into(), json!(architecture.model_type));
    for (suffix, name) in COMMON.iter().chain(architecture.keys) {
        match header.whole(&key(suffix)) {
            Some(number) => config.insert((*name).into(), json!(number)),
            // The class has a default for it: as many key-value heads as heads, and heads that divide the width.
            None if ["num_key_value_heads", "head_dim"].contains(name) => None,
            None => {
                let fix = "convert the model again, or name its config.json";
                return Err(Error::new(
                    key(suffix),
                    "no whole number",
                    "the number that the class needs",
                    fix,
                ));
            }
        };
    }
    let embedding = tensors.iter().find(|tensor| tensor.name == "token_embd.weight");
    let vocab = embedding.and_then(|tensor| tensor.dims.get(1)).ok_or_else(|| {
        let fix = "name the first part of the file, or its config.json";
        Error::new("token_embd.weight", "no such tensor", "the embedding of the vocabulary", fix)
    })?;
    let has = |name: &str| tensors.iter().any(|tensor| tensor.name == name);
    config.insert("vocab_size".into(), json!(vocab));
    config.insert("tie_word_embeddings".into(), json!(!has("output.weight")));
    config.insert("torch_dtype".into(), json!("bfloat16"));
    Ok(config)
}
