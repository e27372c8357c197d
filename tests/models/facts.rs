//! Configurations and totals of published models, collected beside the repository: exact, or refused by name.

use std::collections::BTreeMap;

use mantile::graph::arch::ARCHITECTURES;

use super::*;

/// Where the collection lies; `None`, said aloud, where it does not (but never in CI).
fn collection() -> Option<PathBuf> {
    let folder = root().join("../shared/facts/models");
    if folder.exists() {
        return Some(folder);
    }
    assert!(std::env::var("CI").is_err(), "{} is missing", folder.display());
    eprintln!("SKIPPED: {} is missing, published totals are not compared", folder.display());
    None
}

fn rows(file: &Path) -> Vec<BTreeMap<String, String>> {
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

/// What checkpoints hold beyond unique parameters, by the words of the collection.
fn published_total(inspection: &Inspection, relation: &str) -> Option<u64> {
    let parameters = inspection.parameters;
    match relation {
        "unique params" => Some(parameters.unique),
        "unique params + persistent buffers (e.g. e_score_correction_bias)" => {
            Some(parameters.unique + parameters.buffers)
        }
        relation
            if parameters.mtp > 0
                && relation
                    .ends_with("MTP, embed+head copies (last layer + bias + eh_proj 2h*h + 3h + 2Vh)") =>
        {
            Some(parameters.unique + parameters.buffers + parameters.mtp + parameters.mtp_copies)
        }
        _ => None,
    }
}

/// What a graph says otherwise than the collection; nothing: it is exact.
fn differences(
    folder: &Path,
    row: &BTreeMap<String, String>,
    inspection: &Inspection,
    totals: &mut u32,
) -> Vec<String> {
    let number = |column: &str| row[column].parse::<u64>().ok();
    let parameters = inspection.parameters;
    // Models that only their own code builds were counted by hand, multi-token prediction included.
    let by_hand = !row["how"].starts_with("meta-device");
    let mtp = if by_hand && row["how"].contains("MTP") { parameters.mtp } else { 0 };
    let mut pairs = vec![
        ("unique", parameters.unique + mtp, number("exact_unique_params")),
        ("towers", parameters.towers, number("vision_audio_params").or(Some(0))),
    ];
    for (what, ours, column) in [
        ("buffers", parameters.buffers, "persistent_buffers"),
        ("active", parameters.active, "active_text_params_incl_embed"),
        ("kv", inspection.kv_bytes_per_token, "kv_bytes_per_token_growing_bf16"),
    ] {
        pairs.extend(number(column).map(|theirs| (what, ours, Some(theirs))));
    }
    // A reconstructed file leaves out what ships beside the model, e.g. multi-token prediction.
    let relation = if row["config_kind"] == "verbatim" { row["checkpoint_relation"].as_str() } else { "" };
    if let Some(total) = published_total(inspection, relation) {
        pairs.push(("published total", total, number("published_checkpoint_total")));
        *totals += 1;
    }
    let mut wrong: Vec<String> = pairs
        .into_iter()
        .filter(|(_, ours, theirs)| Some(*ours) != *theirs)
        .map(|(what, ours, theirs)| format!("{what}: {ours} instead of {theirs:?}"))
        .collect();
    let file = folder.join(&row["config_file"]);
    let collected = folder.join("tensors").join(file.file_name().unwrap());
    if by_hand && !collected.exists() {
        return wrong;
    }
    let theirs = collected_shapes(&collected);
    let parameters = inspection.tensors.iter().filter(|tensor| !tensor.buffer);
    let ours: Shapes = parameters.map(|tensor| (tensor.name.clone(), tensor.shape.clone())).collect();
    let only = |one: &Shapes, other: &Shapes| {
        one.iter()
            .filter(|(name, shape)| other.get(*name) != Some(*shape))
            .map(|pair| format!("{pair:?}"))
            .next()
    };
    wrong.extend(only(&ours, &theirs).map(|tensor| format!("tensor {tensor} is not there")));
    wrong.extend(only(&theirs, &ours).map(|tensor| format!("tensor {tensor} is missing")));
    wrong
}

#[test]
fn published_models_are_counted_exactly_or_refused() {
    let Some(folder) = collection() else { return };
    let (mut exact, mut totals, mut refused, mut wrong) = (0, 0, vec![], vec![]);
    for row in rows(&folder.join("oracles.csv")) {
        let (name, file) = (&row["hf_id"], folder.join(&row["config_file"]));
        let known = ARCHITECTURES.iter().any(|known| known.model_type == row["model_type"]);
        let config = ModelConfig::parse(&fs::read_to_string(&file).unwrap());
        match config.and_then(|config| ModelGraph::build(&config)) {
            Ok(graph) => {
                assert!(known, "{name}: built although {} is not known", row["model_type"]);
                let differences = differences(&folder, &row, &Inspection::of(&graph), &mut totals);
                exact += u32::from(differences.is_empty());
                wrong.extend(differences.into_iter().map(|difference| format!("{name}: {difference}")));
            }
            Err(error) => {
                assert!(
                    !error.found.is_empty() && !error.expected.is_empty() && !error.fix.is_empty(),
                    "{name}"
                );
                refused.extend(known.then(|| format!("{name}: {error}")));
            }
        }
    }
    println!("{exact} exact, {totals} of them equal to the published total; refused: {refused:#?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(exact >= 70, "only {exact} compared");
}
