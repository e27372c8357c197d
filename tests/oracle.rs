//! Numbers that others worked out, in the convention that they state.

use std::collections::BTreeMap;
use std::path::Path;

use crate::ask;
#[path = "oracle/layer.rs"]
mod layer;
#[path = "oracle/memory.rs"]
mod memory;
#[path = "oracle/row.rs"]
mod row;
#[path = "oracle/whole.rs"]
mod whole;

use row::{Row, shared, table};

/// What no formula of ours states, and why.
const UNSTATED: [(&str, &str); 10] = [
    ("activation_memory_per_chip", "counts X, Q, K, V and Y of one layer; ours is a runtime's start-up peak"),
    ("activation_memory_total", "the same over all chips"),
    ("flops_prefill", "counts 5 operations per element of a norm, ours 4"),
    ("effective bits", "int8 with a scale per 32: no shipped format is that"),
    ("bits_per_element", "mxfp8: no shipped format is that"),
    ("H100 rack capex/month", "an annuity with interest: ours spreads the price evenly"),
    ("H100 rack opex/month", "hosting per kW, which our electricity and PUE do not state apart"),
    ("H100 rack TCO", "sum of the two"),
    ("H100 TCO per GPU-hour", "sum of the two"),
    ("NVL72 TCO", "sum of the two"),
];

/// What our formulas say of a row.
fn ours(row: &Row) -> Option<f64> {
    let given = row.given();
    let group = row.id.split(['-', '.']).next().unwrap_or_default();
    let layer = match group {
        "L70" if row.metric == "mlp_flops_per_layer_prefill" => layer::network(&given),
        "L70" if ["attn_flops_per_layer_prefill", "kv_cache_bytes"].contains(&row.metric.as_str()) => {
            layer::attention(row, &given)
        }
        "MHA" | "GQA" | "CP" | "SWA" | "ATT" => layer::attention(row, &given),
        "MLP" | "TIME" => layer::network(&given),
        "MOE" | "GMOE" => layer::experts(&given),
        _ => return whole::whole(row),
    };
    let [computing, moving, slower] = layer::times(&layer, &given);
    Some(match row.metric.as_str() {
        "flops_per_chip" | "attn_flops_per_layer_prefill" | "mlp_flops_per_layer_prefill" => layer.flops,
        "kv_cache_bytes" => layer.kv * given.any(&["L"]),
        "flops_total" => layer.flops * layer.devices,
        "weight_memory_per_chip" => layer.weights,
        "weight_memory_total" => layer.weights * layer.devices,
        "kv_cache_per_chip" => layer.kv,
        "kv_cache_total" => layer.kv * layer.devices,
        "communication_bytes" => layer.payload,
        "compute_time_ms" => computing,
        "load_time_ms" => moving,
        "wall_clock_ms" => slower,
        _ => return None,
    })
}

/// Compares every right row; says how many of each metric were.
fn compare(rows: &[Row]) -> BTreeMap<String, (usize, usize)> {
    let mut covered: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut faults = Vec::new();
    for row in rows.iter().filter(|row| row.is_right()) {
        let count = covered.entry(row.metric.clone()).or_default();
        let Some(ours) = ours(row) else {
            if !UNSTATED.iter().any(|(metric, _)| *metric == row.metric) {
                faults.push(format!("{}: nothing states {}", row.id, row.metric));
            }
            count.1 += 1;
            continue;
        };
        let (value, last) = row.value();
        if (ours - value).abs() > last.max(value.abs() * 1e-12) {
            faults.push(format!("{} ({}): ours {ours}, theirs {value}; {}", row.id, row.source, row.verdict));
        }
        count.0 += 1;
    }
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), rows.len(), faults.join("\n"));
    covered
}

#[test]
fn a_handful_of_worked_cases() {
    let rows = table(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/facts.csv"));
    let covered = compare(&rows);
    assert!(covered.values().map(|(stated, _)| stated).sum::<usize>() >= 12);
}

#[test]
fn every_right_row_of_the_shared_table() {
    let Some(path) = shared("seed.csv") else { return };
    let covered = compare(&table(&path));
    for (metric, (stated, not)) in &covered {
        println!("{metric}: {stated} compared, {not} not stated");
    }
    let stated: usize = covered.values().map(|(stated, _)| stated).sum();
    assert!(stated >= 200, "only {stated} rows were compared");
}
