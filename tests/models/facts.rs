//! Configurations and totals of published models, collected beside the repository: exact, or refused by name.

use std::collections::BTreeMap;

use mantile::graph::arch::ARCHITECTURES;

use super::*;

/// Where the collection lies; `None`, said aloud, where it does not (but never in CI).
pub fn collection() -> Option<PathBuf> {
    let folder = root().join("../shared/facts/models");
    if folder.exists() {
        return Some(folder);
    }
    assert!(std::env::var("CI").is_err(), "{} is missing", folder.display());
    eprintln!("SKIPPED: {} is missing, published totals are not compared", folder.display());
    None
}

pub fn rows(file: &Path) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_path(file).unwrap().deserialize().map(|row| row.unwrap()).collect()
}

/// Tensors by full name as the collection groups them.
fn collected_shapes(file: &Path) -> Shapes {
    let value: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let map = |value: &Value| serde_json::from_value::<Shapes>(value.clone()).unwrap();
    let mut shapes = map(&value["non_layer"]);
    for group in value["layer_groups"].as_array().unwrap() {
        let prefix = group["prefix"].as_str().unwrap();
        for layer in group["indices"].as_array().unwrap() {
            let named = |(name, shape)| (format!("{prefix}.{layer}.{name}"), shape);
            shapes.extend(map(&group["tensors"]).into_iter().map(named));
        }
    }
    shapes
}

/// How relations end where the checkpoint ships multi-token prediction.
const SHIPS_MTP: &[&str] = &[
    "MTP, embed+head copies (last layer + bias + eh_proj 2h*h + 3h + 2Vh)",
    "MTP, shared embed/head (last layer + bias + eh_proj 2h*h + 3h)",
    "deepseek-v4-style MTP (layer without compressor/indexer + bias + 2h*h + 3h + hc_head hc*hc*h+hc+1)",
    "MTP with its own full indexer, shared embed/head (largest layer + bias + 2h*h + 3h)",
    "qwen-style MTP (last full-attn layer + 2h*h fc + 3h norms)",
];

/// What checkpoints hold beyond unique parameters, by the words of the collection.
fn published_total(inspection: &Inspection, relation: &str) -> Option<u64> {
    let parameters = inspection.parameters;
    match relation {
        "unique params" => Some(parameters.unique),
        "unique params + persistent buffers (e.g. e_score_correction_bias)" => {
            Some(parameters.unique + parameters.buffers)
        }
        // These totals leave buffers out, those of multi-token prediction too.
        "unique params + nemotron-style MTP (pattern *E + 2h*h + 3h)" => {
            let trained = inspection.mtp.iter().filter(|tensor| !tensor.buffer);
            Some(parameters.unique + trained.map(|tensor| tensor.shape.iter().product::<u64>()).sum::<u64>())
        }
        relation if parameters.mtp > 0 && SHIPS_MTP.iter().any(|ending| relation.ends_with(ending)) => {
            Some(parameters.unique + parameters.buffers + parameters.mtp + parameters.mtp_copies)
        }
        _ => None,
    }
}

/// What of a row the graph has otherwise.
fn wrong(row: &BTreeMap<String, String>, inspection: &Inspection, folder: &Path) -> Vec<String> {
    let (name, parameters) = (&row["hf_id"], inspection.parameters);
    let mut wrong = vec![];
    let mut compare = |what: &str, ours: u64, column: &str| {
        if let Some(theirs) = row[column].parse::<u64>().ok().filter(|theirs| *theirs != ours) {
            wrong.push(format!("{name}: {what} {ours}, not {theirs}"));
        }
    };
    // Models that only their own code builds were counted by hand, multi-token prediction included.
    let by_hand = !row["how"].starts_with("meta-device");
    let mtp = if by_hand && row["how"].contains("MTP") { parameters.mtp } else { 0 };
    compare("unique", parameters.unique + mtp, "exact_unique_params");
    compare("buffers", parameters.buffers, "persistent_buffers");
    compare("encoders", parameters.towers, "vision_audio_params");
    compare("cache", inspection.kv_bytes_per_token, "kv_bytes_per_token_growing_bf16");
    compare("active", parameters.active, "active_text_params_incl_embed");
    if let Some(total) = published_total(inspection, &row["checkpoint_relation"]) {
        compare("published total", total, "published_checkpoint_total");
    }
    let collected = folder.join("tensors").join(Path::new(&row["config_file"]).file_name().unwrap());
    if collected.exists() || !by_hand {
        let ours = inspection.tensors.iter().filter(|tensor| !tensor.buffer);
        let ours: Shapes = ours.map(|tensor| (tensor.name.clone(), tensor.shape.clone())).collect();
        let theirs = collected_shapes(&collected);
        let differ = |(name, shape): &(&String, &Vec<u64>), other: &Shapes| other.get(*name) != Some(*shape);
        let extra = ours.iter().filter(|tensor| differ(tensor, &theirs)).take(3);
        let missing = theirs.iter().filter(|tensor| differ(tensor, &ours)).take(3);
        wrong.extend(extra.map(|(tensor, shape)| format!("{name}: {tensor} {shape:?} is ours alone")));
        wrong.extend(missing.map(|(tensor, shape)| format!("{name}: {tensor} {shape:?} is missing")));
    }
    wrong
}

#[test]
fn published_models_are_counted_exactly_or_refused() {
    let Some(folder) = collection() else { return };
    let (mut exact, mut totals, mut refused, mut mistakes) = (0, 0, vec![], vec![]);
    for row in rows(&folder.join("oracles.csv")) {
        let (name, file) = (&row["hf_id"], folder.join(&row["config_file"]));
        let known = ARCHITECTURES.iter().any(|known| known.model_type == row["model_type"]);
        let config = ModelConfig::parse(&fs::read_to_string(&file).unwrap());
        let graph = config.and_then(|config| ModelGraph::build(&config));
        match (&graph, known) {
            (Ok(graph), true) => {
                let inspection = Inspection::of(graph);
                let found = wrong(&row, &inspection, &folder);
                exact += usize::from(found.is_empty());
                totals += usize::from(published_total(&inspection, &row["checkpoint_relation"]).is_some());
                mistakes.extend(found);
            }
            (Ok(_), false) => panic!("{name}: built although {} is not known", row["model_type"]),
            (Err(error), known) => {
                assert!(
                    !error.found.is_empty() && !error.expected.is_empty() && !error.fix.is_empty(),
                    "{name}"
                );
                refused.push(format!("{}{name}: {}", if known { "" } else { "(unknown) " }, error.key));
            }
        }
    }
    println!("{exact} exact, {totals} of them with a published total; refused: {refused:#?}");
    assert!(mistakes.is_empty(), "{mistakes:#?}");
    assert!(exact >= 70, "only {exact} compared");
}
