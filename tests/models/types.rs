//! Types of transformers without a shipped model: totals of its classes on the meta device, and caches from the shapes of
//! their projections.

use super::*;

/// A configuration that transformers 5.24.0 writes for a type, without keys of training and numerics.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    model_type: String,
    /// Elements of all parameters of the class, built from the same configuration on the meta device.
    parameters: u64,
    /// From the rows of the key and value projections of layers that keep every token, at two bytes per element.
    kv_bytes_per_token: u64,
    /// The same for layers with a window.
    kv_bytes_per_token_windowed: u64,
    /// From the shapes of convolutions, and of the states of recurrent layers in single precision.
    state_bytes: u64,
    config: Value,
}

#[test]
fn types_of_transformers_have_the_totals_and_caches_of_its_classes() {
    let rows = include_str!("../data/model_types.jsonl").lines();
    let rows: Vec<Row> = rows.map(|row| serde_json::from_str(row).unwrap()).collect();
    assert!(rows.len() >= 90, "only {} types", rows.len());
    let mut faults = vec![];
    for row in &rows {
        assert_eq!(row.config["model_type"], row.model_type.as_str());
        let config = ModelConfig::parse(&row.config.to_string()).unwrap();
        let found = match ModelGraph::build(&config) {
            Ok(graph) => Inspection::of(&graph),
            Err(error) => {
                faults.push(format!("{}: {error}", row.model_type));
                continue;
            }
        };
        let expected =
            [row.parameters, row.kv_bytes_per_token, row.kv_bytes_per_token_windowed, row.state_bytes];
        let found = [
            found.parameters.unique,
            found.kv_bytes_per_token,
            found.kv_bytes_per_token_windowed,
            found.state_bytes_per_sequence,
        ];
        if found != expected {
            faults.push(format!("{}: {found:?}, expected {expected:?}", row.model_type));
        }
    }
    assert!(faults.is_empty(), "{} types:\n{}", faults.len(), faults.join("\n"));
}
