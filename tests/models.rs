//! Shipped models and published configurations: exact counts, shapes and caches, or a typed refusal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use mantile::graph::inspect::Inspection;
use mantile::graph::model::ModelGraph;
use mantile::spec::model::ModelConfig;
use mantile::spec::model::file::ModelFile;
use serde::Deserialize;
use serde_json::Value;

#[path = "models/checkpoints.rs"]
mod checkpoints;
#[path = "models/facts.rs"]
mod facts;
#[path = "models/hybrids.rs"]
mod hybrids;
#[path = "models/mutations.rs"]
mod mutations;
#[path = "models/names.rs"]
mod names;
#[path = "models/plans.rs"]
mod plans;
#[path = "models/resaved.rs"]
mod resaved;
#[path = "models/states.rs"]
mod states;
#[path = "models/totals.rs"]
mod totals;
#[path = "models/trap_list.rs"]
mod trap_list;
#[path = "models/traps.rs"]
mod traps;
#[path = "models/types.rs"]
mod types;

type Shapes = BTreeMap<String, Vec<u64>>;

/// What is known of a shipped model from elsewhere; `source` says from where.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Golden {
    source: String,
    unique: u64,
    buffers: u64,
    active: u64,
    kv_bytes_per_token: u64,
    kv_bytes_per_token_windowed: u64,
    /// Published total of a checkpoint that ships multi-token prediction with copies of embedding and head.
    with_mtp_and_copies: Option<u64>,
    /// Absent, like the groups, where only the model's own code builds it, so that nobody listed its tensors.
    outside_layers: Option<Shapes>,
    #[serde(default)]
    layer_groups: Vec<LayerGroup>,
    /// Absent where none were listed: their number alone is compared then.
    buffer: Option<Buffer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerGroup {
    /// What their names begin with, where it is not `model.layers`.
    prefix: Option<String>,
    /// First and last.
    layers: [u64; 2],
    /// Those in between, where it is not all of them.
    only: Option<Vec<u64>>,
    tensors: Shapes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Buffer {
    /// First and last.
    layers: [u64; 2],
    /// Those in between, where it is not all of them.
    only: Option<Vec<u64>>,
    name: String,
    shape: Vec<u64>,
}

fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn shipped() -> Vec<(String, ModelFile)> {
    let read = |file: PathBuf| {
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        let model = ModelFile::parse(&fs::read_to_string(&file).unwrap())
            .unwrap_or_else(|error| panic!("{stem}: {error}"));
        (stem, model)
    };
    json_files(&root().join("models"))
        .into_iter()
        .filter(|file| !file.ends_with("schema.json"))
        .map(read)
        .collect()
}

fn built(stem: &str, config: &ModelConfig) -> ModelGraph {
    ModelGraph::build(config).unwrap_or_else(|error| panic!("{stem}: {error}"))
}

/// The layers of a group.
fn indices(layers: [u64; 2], only: &Option<Vec<u64>>) -> Vec<u64> {
    only.clone().unwrap_or_else(|| (layers[0]..=layers[1]).collect())
}

/// Expected tensors by full name, from groups of layers; nothing where none are listed.
fn expand(golden: &Golden) -> Option<Shapes> {
    let mut tensors = golden.outside_layers.clone()?;
    for group in &golden.layer_groups {
        for layer in indices(group.layers, &group.only) {
            let prefix = group.prefix.as_deref().unwrap_or("model.layers");
            let named =
                |(name, shape): (&String, &Vec<u64>)| (format!("{prefix}.{layer}.{name}"), shape.clone());
            tensors.extend(group.tensors.iter().map(named));
        }
    }
    if let Some(buffer) = &golden.buffer {
        for layer in indices(buffer.layers, &buffer.only) {
            tensors.insert(format!("model.layers.{layer}.{}", buffer.name), buffer.shape.clone());
        }
    }
    Some(tensors)
}

fn shapes(inspection: &Inspection) -> Shapes {
    let shapes: Shapes =
        inspection.tensors.iter().map(|tensor| (tensor.name.clone(), tensor.shape.clone())).collect();
    assert_eq!(shapes.len(), inspection.tensors.len(), "two tensors of one name");
    shapes
}

#[test]
fn shipped_models_have_the_counts_that_they_state() {
    let shipped = shipped();
    assert!(shipped.len() >= 64, "only {} models", shipped.len());
    let mut faults = vec![];
    for (stem, model) in shipped {
        assert_eq!(stem, model.name.replace('/', "--"), "the file is named after its model");
        assert!(!model.source.is_empty(), "{stem}");
        match model.model_config().and_then(|config| ModelGraph::build(&config)) {
            Ok(graph) => {
                let unique = graph.parameters().unique;
                faults.extend(differs(&stem, "parameters", &unique, &model.parameters));
            }
            Err(error) => faults.push(format!("{stem}: {error}")),
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The fault where two figures are not the same.
fn differs<T: PartialEq + std::fmt::Debug>(stem: &str, what: &str, ours: &T, theirs: &T) -> Option<String> {
    (ours != theirs).then(|| format!("{stem}: {what} {ours:?}, not {theirs:?}"))
}

/// What of a model is otherwise than known from elsewhere.
fn faults(stem: &str, inspection: &Inspection, golden: &Golden) -> Vec<String> {
    let parameters = inspection.parameters;
    let shipped = parameters.unique + parameters.buffers + parameters.mtp + parameters.mtp_copies;
    let (mtp, total) = match golden.with_mtp_and_copies {
        Some(total) => (parameters.mtp, total),
        None => (0, parameters.unique + parameters.buffers),
    };
    let windowed = (inspection.kv_bytes_per_token_windowed, golden.kv_bytes_per_token_windowed);
    let figures = [
        ("unique", parameters.unique, golden.unique),
        ("buffers", parameters.buffers, golden.buffers),
        ("active", parameters.active, golden.active),
        ("cache", inspection.kv_bytes_per_token, golden.kv_bytes_per_token),
        ("cache inside windows", windowed.0, windowed.1),
        ("multi-token prediction", parameters.mtp, mtp),
        ("published total", shipped, total),
    ];
    let mut faults: Vec<_> =
        figures.iter().filter_map(|(what, ours, theirs)| differs(stem, what, ours, theirs)).collect();
    if let Some(expected) = expand(golden) {
        let mut found = shapes(inspection);
        if golden.buffer.is_none() {
            let buffers = inspection.tensors.iter().filter(|tensor| tensor.buffer);
            buffers.for_each(|tensor| drop(found.remove(&tensor.name)));
        }
        let names: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
        let differing =
            names.into_iter().filter_map(|name| differs(stem, name, &found.get(name), &expected.get(name)));
        faults.extend(differing.take(4));
    }
    faults
}

#[test]
fn shipped_models_have_the_tensors_and_caches_known_from_elsewhere() {
    let mut found = vec![];
    for (stem, model) in shipped() {
        let file = root().join("tests/golden").join(format!("{stem}.json"));
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let golden: Golden = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{stem}: {error}"));
        assert!(!golden.source.is_empty(), "{stem}");
        match model.model_config().and_then(|config| ModelGraph::build(&config)) {
            Ok(graph) => found.extend(faults(&stem, &Inspection::of(&graph), &golden)),
            Err(error) => found.push(format!("{stem}: {error}")),
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_golden_file_has_its_model() {
    for golden in json_files(&root().join("tests/golden")) {
        let model = root().join("models").join(golden.file_name().unwrap());
        assert!(model.exists(), "{}", model.display());
    }
}

#[test]
fn no_two_models_share_a_name() {
    let mut names: Vec<String> =
        shipped().into_iter().flat_map(|(_, model)| [vec![model.name], model.aliases].concat()).collect();
    names.sort();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn published_checkpoints_name_a_known_weight_format_and_a_source() {
    let known =
        ["bf16", "fp16", "fp8", "fp8-block", "int8", "int8-w8a16", "int4-awq", "int4-gptq", "nvfp4", "mxfp4"];
    for (stem, model) in shipped() {
        let config = model.model_config().unwrap();
        match config.weight_format() {
            Some(own) => assert!(known.contains(&own), "{stem}: {own}"),
            None => {
                let unusual = config.quantization.is_some() || config.dtype.as_deref() == Some("float32");
                assert!(unusual, "{stem}: neither uniform nor mixed, and not float32 either");
            }
        }
        for published in &model.published {
            assert!(known.contains(&published.weight_format.as_str()), "{stem}: {}", published.weight_format);
            assert!(!published.source.is_empty(), "{stem}: {}", published.id);
        }
    }
}

#[test]
fn inspections_follow_their_schema() {
    let schema = serde_json::to_value(schemars::schema_for!(Inspection)).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (stem, model) in shipped() {
        let inspection = Inspection::of(&built(&stem, &model.model_config().unwrap()));
        let value: Value = serde_json::to_value(&inspection).unwrap();
        assert!(validator.is_valid(&value), "{stem}");
    }
}
