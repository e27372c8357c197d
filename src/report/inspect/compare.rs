//! Compares two models: values, counts and operators that differ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Inspected;
use crate::graph::inspect::{InspectedBlock, InspectedOperator};
use crate::report::diff::{Difference, difference, table_of};
use crate::report::table::ranges;
use crate::spec::visible::visible;

/// After a key, before its tag.
const STATED_BY: &str = " stated by";

/// Differences between two models.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Name of the first.
    pub a: String,
    /// Name of the second.
    pub b: String,
    /// Differences, in the order of `inspect`.
    pub differences: Vec<Difference>,
}

impl Comparison {
    pub fn of(names: [&str; 2], models: [&Inspected; 2]) -> Comparison {
        let [a, b] = models.map(flat);
        let mut differences = difference(&a, &b);
        differences.retain(|one| is_reported(one, [&a, &b]));
        Comparison { a: names[0].to_owned(), b: names[1].to_owned(), differences }
    }
}

pub fn text(comparison: &Comparison) -> String {
    let names = [comparison.a.as_str(), comparison.b.as_str()];
    if comparison.differences.is_empty() {
        let [a, b] = names.map(visible);
        return format!("{a} and {b} have no differences.\n");
    }
    table_of("what", names, &comparison.differences)
}

/// Whether a difference adds information beyond a key or block that only one model has.
fn is_reported(one: &Difference, sides: [&Value; 2]) -> bool {
    let alone = one.a.is_none() || one.b.is_none();
    if alone && one.key.ends_with(STATED_BY) {
        return false;
    }
    let within = one.key.strip_prefix("blocks.").and_then(|rest| rest.split_once('.'));
    let Some((block, what)) = within else { return true };
    let both = sides.iter().all(|side| side["blocks"].get(block).is_some());
    both || ["layers", "parameters", "kv_bytes_per_token", "window"].contains(&what)
}

/// The compared values, by name.
fn flat(inspected: &Inspected) -> Value {
    let inspection = &inspected.inspection;
    let mut values = Map::new();
    for value in &inspection.values {
        // A key that differs between layers has several values.
        let text = |known: Option<&Value>, new: String| match known.and_then(Value::as_str) {
            Some(known) if !known.split(", ").any(|one| one == new) => {
                Value::String(format!("{known}, {new}"))
            }
            Some(known) => Value::String(known.to_owned()),
            None => Value::String(new),
        };
        let both = [
            (value.key.clone(), value.value.to_string()),
            (format!("{}{STATED_BY}", value.key), value.tag.to_string()),
        ];
        for (key, new) in both {
            let joined = text(values.get(&key), new);
            values.insert(key, joined);
        }
    }
    let towers = inspection.towers.iter().map(|tower| {
        let per_image =
            json!({"flops_per_image": tower.flops_per_image, "tokens_per_image": tower.tokens_per_image});
        (
            tower.name.clone(),
            json!({"parameters": tower.parameters, "image": per_image, "blocks": blocks(&tower.blocks)}),
        )
    });
    json!({
        "model_type": inspection.model_type,
        "weight_format": inspected.weight_format,
        "max_context": inspection.max_context,
        "tied": inspection.tied,
        "values": values,
        "parameters": inspection.parameters,
        "checkpoint": inspection.checkpoint,
        "kv_bytes_per_token": inspection.kv_bytes_per_token,
        "kv_bytes_per_token_windowed": inspection.kv_bytes_per_token_windowed,
        "state_bytes_per_sequence": inspection.state_bytes_per_sequence,
        "mtp_tensors": inspection.mtp.len(),
        "towers": towers.collect::<Map<_, _>>(),
        "blocks": blocks(&inspection.blocks),
    })
}

fn blocks(blocks: &[InspectedBlock]) -> Value {
    let mut named = Map::new();
    for block in blocks {
        // Blocks of one name are distinguished by their position.
        let mut name = block.name.clone();
        let mut place = 2;
        while named.contains_key(&name) {
            name = format!("{} {place}", block.name);
            place += 1;
        }
        named.insert(name, of_block(block));
    }
    Value::Object(named)
}

fn of_block(block: &InspectedBlock) -> Value {
    let layers = (!block.layers.is_empty()).then(|| ranges(&block.layers));
    let mut value = json!({
        "layers": layers,
        "parameters": block.parameters,
        "kv_bytes_per_token": block.kv_bytes_per_token,
        "state_bytes_per_sequence": block.state_bytes_per_sequence,
        "window": block.window,
    });
    if let Value::Object(map) = &mut value {
        map.extend(block.operators.iter().map(|one| (one.name.clone(), Value::String(of_operator(one)))));
    }
    value
}

fn of_operator(operator: &InspectedOperator) -> String {
    let dims: Vec<String> = operator.dims.iter().map(|dim| format!("{} {}", dim.name, dim.value)).collect();
    format!("{}: {}", operator.kind, dims.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::inspect::tests::llama;

    #[test]
    fn a_key_that_only_one_file_states_differs_in_its_tag_alone() {
        let model =
            |heads| llama(&format!(r#""tie_word_embeddings": false, "num_key_value_heads": {heads}"#));
        let (a, b) = (model(3), model(1));
        assert!(Comparison::of(["a", "a"], [&a, &a]).differences.is_empty());
        let found = Comparison::of(["a", "b"], [&a, &b]).differences;
        let keys: Vec<&str> = found.iter().map(|one| one.key.as_str()).collect();
        assert!(keys.contains(&"values.num_key_value_heads"), "{keys:?}");
        assert!(keys.contains(&"blocks.dense_layer.attention"), "{keys:?}");
        let kv = found.iter().find(|one| one.key == "kv_bytes_per_token").unwrap();
        assert_eq!((kv.a.as_deref(), kv.b.as_deref()), (Some("72"), Some("24")));
        assert!(kv.ratio.is_some_and(|ratio| (ratio - 1.0 / 3.0).abs() < 1e-9));
    }
}
