//! GGUF files as models: the header becomes a model file, whose graph must have as many parameters as the tensors.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::json;

use super::file;
use super::gguf_config::{Derivations, DerivedConfig, GgufArchitecture};
use crate::graph::model::ModelGraph;
use crate::spec::error::Error;
use crate::spec::model::ModelConfig;
use crate::spec::model::file::{ModelFile, Published, PublishedTotal};
use crate::spec::model::gguf::{GgufHeader, GgufTensor, GgufValue};

pub const ENDING: &str = ".gguf";

/// The tables of `gguf.json`.
#[derive(Deserialize)]
struct GgufTables {
    /// Keys of every class.
    common: Derivations,
    /// Conversions of llama.cpp's `convert_hf_to_gguf.py`.
    architectures: Vec<GgufArchitecture>,
    /// Weight formats by `general.file_type`: `enum llama_ftype` of llama.cpp's `include/llama.h`.
    file_types: BTreeMap<u64, String>,
    /// Weight formats by the type that most elements have, in `enum ggml_type`. llama.cpp guesses likewise
    /// (`src/llama-model-loader.cpp`), but by the number of tensors, small ones among them.
    tensor_types: BTreeMap<u64, String>,
    /// Ends of the names of tensors that a conversion adds: factors of rotary embeddings.
    added: Vec<String>,
    /// Lists of the metadata whose entries were tensors of one element.
    moved: Vec<String>,
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
    let derived = DerivedConfig::new(header, tensors);
    let config = derived.config(&TABLES.common, &TABLES.architectures)?;
    let counted = |tensor: &&GgufTensor| {
        let further = block(&tensor.name).is_some_and(|block| block >= derived.layers());
        !further && !TABLES.added.iter().any(|added| tensor.name.ends_with(added))
    };
    let mut sizes = tensors.iter().filter(counted).map(GgufTensor::elements);
    let sum = sizes.try_fold(moved(header), |sum, size| sum.checked_add(size?));
    let elements = sum.ok_or_else(|| {
        let found = "more elements in its tensors than 64 bits count";
        Error::new("tensors", found, "the shapes of a model", "download the file again")
    })?;
    let stem = path.file_stem().map(|stem| file::shown(Path::new(stem)));
    let name = stem.unwrap_or_else(|| file::shown(path));
    let parsed = ModelConfig::from_map(config.clone(), None)?;
    let found = ModelGraph::build(&parsed)?.parameters();
    let parameters = found.unique;
    // Some classes keep the bias of a router as a buffer.
    if ![parameters, parameters.saturating_add(found.buffers)].contains(&elements) {
        let fix = "name the model's config.json with --weight-format instead; this conversion is not known";
        let found = format!("{elements} elements in its tensors");
        return Err(Error::new("tensors", found, format!("{parameters}, as its metadata say"), fix));
    }
    let source = "header of the GGUF file".to_owned();
    let weight_format = weight_format(header, tensors)?.to_owned();
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

/// Number of the elements that are in the metadata.
fn moved(header: &GgufHeader) -> u64 {
    let length = |key: &String| match header.metadata.get(key) {
        Some(GgufValue::List(length)) => *length,
        Some(GgufValue::Wholes(numbers)) => numbers.len() as u64,
        _ => 0,
    };
    TABLES.moved.iter().map(length).fold(0, u64::saturating_add)
}

/// The layer of a tensor. Those behind the last layer are of multi-token prediction.
fn block(name: &str) -> Option<u64> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

/// The format of the weights: the file's type or, where its converter wrote none, that of the type that most elements have.
fn weight_format(header: &GgufHeader, tensors: &[GgufTensor]) -> Result<&'static str, Error> {
    let kind = header.whole("general.file_type");
    let format = match kind {
        Some(kind) => TABLES.file_types.get(&kind),
        None => commonest(tensors).and_then(|kind| TABLES.tensor_types.get(&kind)),
    };
    format.map(String::as_str).ok_or_else(|| {
        let found = match (kind, commonest(tensors)) {
            (Some(kind), _) => format!("file type {kind}"),
            (None, Some(kind)) => format!("no file type, and tensors of type {kind}"),
            (None, None) => "no file type and no tensors".to_owned(),
        };
        let fix = "name the model's config.json with --weight-format instead";
        Error::new("general.file_type", found, "a file type of llama.cpp with a format in the catalogue", fix)
    })
}

/// The type of most elements; the lower one of two that are equal.
fn commonest(tensors: &[GgufTensor]) -> Option<u64> {
    let mut elements: BTreeMap<u64, u64> = BTreeMap::new();
    for tensor in tensors {
        let sum = elements.entry(tensor.kind).or_default();
        *sum = sum.saturating_add(tensor.elements().unwrap_or(u64::MAX));
    }
    elements.into_iter().rev().max_by_key(|(_, sum)| *sum).map(|(kind, _)| kind)
}
