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
            if relation.ends_with("MTP, embed+head copies (last layer + bias + eh_proj 2h*h + 3h + 2Vh)") =>
        {
            Some(parameters.unique + parameters.buffers + parameters.mtp + parameters.mtp_copies)
        }
        _ => None,
    }
}

#[test]
fn published_models_are_counted_exactly_or_refused() {
    let Some(folder) = collection() else { return };
    let (mut exact, mut totals, mut refused) = (0, 0, vec![]);
    for row in rows(&folder.join("oracles.csv")) {
        let (name, file) = (&row["hf_id"], folder.join(&row["config_file"]));
        let known = ARCHITECTURES.iter().any(|known| known.model_type == row["model_type"]);
        let config = ModelConfig::parse(&fs::read_to_string(&file).unwrap());
        let graph = config.and_then(|config| ModelGraph::build(&config));
        let inspection = match (&graph, known) {
            (Ok(graph), true) => Inspection::of(graph),
            (Ok(_), false) => panic!("{name}: built although {} is not known", row["model_type"]),
            (Err(error), known) => {
                assert!(
                    !error.found.is_empty() && !error.expected.is_empty() && !error.fix.is_empty(),
                    "{name}"
                );
                refused.extend(known.then(|| format!("{name}: {error}")));
                continue;
            }
        };
        let number = |column: &str| row[column].parse::<u64>().ok();
        assert_eq!(Some(inspection.parameters.unique), number("exact_unique_params"), "{name}");
        assert_eq!(Some(inspection.parameters.buffers), number("persistent_buffers"), "{name}");
        assert_eq!(Some(inspection.kv_bytes_per_token), number("kv_bytes_per_token_growing_bf16"), "{name}");
        if let Some(active) = number("active_text_params_incl_embed") {
            assert_eq!(inspection.parameters.active, active, "{name}");
        }
        if let Some(total) = published_total(&inspection, &row["checkpoint_relation"]) {
            assert_eq!(Some(total), number("published_checkpoint_total"), "{name}");
            totals += 1;
        }
        let collected = folder.join("tensors").join(file.file_name().unwrap());
        let parameters = inspection.tensors.iter().filter(|tensor| !tensor.buffer);
        let shapes: Shapes = parameters.map(|tensor| (tensor.name.clone(), tensor.shape.clone())).collect();
        assert_eq!(shapes, collected_shapes(&collected), "{name}");
        exact += 1;
    }
    println!("{exact} exact, {totals} of them equal to the published total; refused: {refused:#?}");
    assert!(exact >= 70, "only {exact} compared");
}
