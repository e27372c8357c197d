//! GGUF files as models: the header becomes a model file, whose graph must have as many parameters as the tensors.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::file;
use crate::graph::model::ModelGraph;
use crate::spec::error::Error;
use crate::spec::model::ModelConfig;
use crate::spec::model::file::{ModelFile, Published, PublishedTotal};
use crate::spec::model::gguf::{GgufHeader, GgufTensor};

pub const ENDING: &str = ".gguf";

/// Keys of the metadata after the architecture, and those of `config.json`, in order.
type KeyPairs = Map<String, Value>;

/// An architecture of llama.cpp as a class of transformers.
#[derive(Deserialize)]
struct GgufArchitecture {
    /// `general.architecture`.
    name: String,
    /// Whether it has experts; one name may mean both.
    experts: bool,
    model_type: String,
    class: String,
    /// Its keys in addition to the common ones.
    keys: KeyPairs,
}

/// The tables of `gguf.json`.
#[derive(Deserialize)]
struct GgufTables {
    common: KeyPairs,
    /// Conversions of llama.cpp's `convert_hf_to_gguf.py`.
    architectures: Vec<GgufArchitecture>,
    /// Weight formats by `general.file_type`: `enum llama_ftype` of llama.cpp's `include/llama.h`.
    file_types: BTreeMap<u64, String>,
    /// Tensors that a conversion adds: factors of rotary embeddings.
    added: Vec<String>,
}

static TABLES: LazyLock<GgufTables> =
    LazyLock::new(|| serde_json::from_str(include_str!("gguf.json")).expect("the tables are JSON"));

/// The model file of a GGUF file and its further parts, as text.
pub fn model_text(path: &Path) -> Result<String, Error> {
    text_of(path, &file::shown(path), read)
}

/// The same of a file that `read` reads part by part; `name` is its name in faults.
pub(super) fn text_of(
    path: &Path,
    name: &str,
    mut read: impl FnMut(&Path) -> Result<GgufHeader, Error>,
) -> Result<String, Error> {
    let in_file = |fault: Error| fault.in_file(name);
    let header = read(path)?;
    let mut tensors = header.tensors.clone();
    for part in parts(path, &header).map_err(in_file)? {
        tensors.extend(read(Path::new(&part))?.tensors);
    }
    let file = model_file(&header, &tensors, path).map_err(in_file)?;
    Ok(json!(file).to_string())
}

pub(super) fn read(path: &Path) -> Result<GgufHeader, Error> {
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
    let counted = |tensor: &&GgufTensor| !TABLES.added.contains(&tensor.name);
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
        published: vec![Published {
            id: name.clone(),
            weight_format,
            config: serde_json::Map::new(),
            source: source.clone(),
        }],
        published_total: Some(PublishedTotal { elements, source }),
        name,
        aliases: vec![],
        release: None,
        code: None,
        parameters,
        config,
    })
}

fn weight_format(header: &GgufHeader) -> Result<&'static str, Error> {
    let kind = header.whole("general.file_type");
    kind.and_then(|kind| TABLES.file_types.get(&kind)).map(String::as_str).ok_or_else(|| {
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
    let known = TABLES.architectures.iter().find(|one| one.name == name && one.experts == experts);
    let architecture = known.ok_or_else(|| {
        let names: Vec<&str> = TABLES.architectures.iter().map(|one| one.name.as_str()).collect();
        let fix = "name the model itself with --weight-format, e.g. gguf-q4_k_m";
        Error::new("general.architecture", format!("`{name}`"), format!("one of {}", names.join(", ")), fix)
    })?;
    let mut config = Map::new();
    config.insert("architectures".into(), json!([architecture.class]));
    config.insert("model_type".into(), json!(architecture.model_type));
    for (suffix, name) in TABLES.common.iter().chain(&architecture.keys) {
        let name = name.as_str().unwrap_or_default();
        match header.whole(&key(suffix)) {
            Some(number) => config.insert(name.into(), json!(number)),
            // The class has a default for it: as many key-value heads as heads, and heads that divide the width.
            None if ["num_key_value_heads", "head_dim"].contains(&name) => None,
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
