//! Identities among the numbers of a row, independent of the formulas behind them: checked on the saved
//! values alone.

use serde_json::Value;

use super::{figure, off, rows};
use crate::search::problem::{Problem, Traffic};

/// Tolerance of sums in another order.
const SUMMED: f64 = 1e-9;
/// Tolerance of a concurrency that is whole except for rounding.
const IN_FLIGHT: f64 = 3e-9;

/// The identities that a row violates.
pub(super) fn laws(problem: &Problem, row: &Value) -> Vec<String> {
    let mut faults: Vec<Option<String>> = Vec::new();
    let metrics = &row["metrics"];
    if !metrics.is_null() {
        faults.extend(of_metrics(problem, row, metrics));
    }
    let memory = &row["memory"];
    if !memory.is_null() {
        let parts = ["weights_bytes", "kv_cache_bytes", "activations_bytes", "buffers_bytes"];
        let sum: f64 = parts.iter().map(|part| figure(memory, part)).sum();
        faults.push(off("memory.total_bytes", figure(memory, "total_bytes"), sum, SUMMED));
    }
    faults.extend(of_devices(problem, row));
    for (name, value) in row["intervals"].as_object().into_iter().flatten() {
        if value.is_object() {
            faults.push(ordered(&format!("intervals.{name}"), value));
        }
    }
    faults.into_iter().flatten().collect()
}

/// p10, p50 and p90 are in ascending order.
fn ordered(what: &str, quantiles: &Value) -> Option<String> {
    let [low, middle, high] = ["p10", "p50", "p90"].map(|key| figure(quantiles, key));
    (!(low <= middle && middle <= high))
        .then(|| format!("{what}: {low}, {middle}, {high} are not in ascending order"))
}

/// Times add up, rates agree with times, and concurrency agrees with Little's law.
fn of_metrics(problem: &Problem, row: &Value, metrics: &Value) -> Vec<Option<String>> {
    let of = |key: &str| figure(metrics, key);
    let osl = problem.workload.lengths.osl as f64;
    let (ttft, tpot, e2e, output) = (of("ttft_ms"), of("tpot_ms"), of("e2e_ms"), of("output_tok_s"));
    let mut faults = vec![
        off("metrics.e2e_ms: from TTFT and TPOT", e2e, ttft + (osl - 1.0) * tpot, SUMMED),
        off(
            "metrics.output_tok_s: from output per device",
            output,
            of("output_tok_s_per_device") * figure(row, "devices"),
            SUMMED,
        ),
    ];
    if osl > 1.0 {
        faults.push(off(
            "metrics.output_tok_s_per_user: from TPOT",
            of("output_tok_s_per_user"),
            1e3 / tpot,
            SUMMED,
        ));
    }
    faults.push(off("metrics.requests_per_s: output over OSL", of("requests_per_s"), output / osl, SUMMED));
    if !metrics["usd_per_mtok"].is_null() {
        let usd = of("usd_per_mtok") * output * 3600.0 / 1e6;
        faults.push(off("metrics.usd_per_hour: from cost per token", of("usd_per_hour"), usd, SUMMED));
    }
    if !metrics["watts"].is_null() {
        let watts = of("watts");
        faults.push(off(
            "metrics.tok_per_joule: from throughput and power",
            of("tok_per_joule"),
            output / watts,
            SUMMED,
        ));
    }
    let in_flight = output * e2e * 1e-3 / osl;
    faults.push(off("concurrency: output x E2E / OSL", figure(row, "concurrency"), in_flight, IN_FLIGHT));
    if let Traffic::Rate(rate) = problem.traffic {
        faults.push(off("metrics.output_tok_s: from the request rate", output, rate * osl, SUMMED));
    }
    faults
}

/// Devices of every pool, of all pools, and idle ones.
fn of_devices(problem: &Problem, row: &Value) -> Vec<Option<String>> {
    let plan = &row["plan"];
    let number = |value: &Value, key: &str| value[key].as_u64().unwrap_or(0) as f64;
    let mut pools = vec![&plan["prefill"]];
    if plan["mode"] == "disaggregated" {
        pools.push(&plan["decode"]);
    }
    pools.extend(rows(plan, "others"));
    let mut faults = Vec::new();
    for pool in &pools {
        let of = |key: &str| number(pool, key);
        let devices = of("tp") * of("pp") * of("dp") * of("cp") * of("replicas");
        faults.push(off("plan: devices of a pool", of("devices"), devices, 0.0));
        let layers: f64 = rows(pool, "stages").iter().filter_map(|held| held.as_f64()).sum();
        faults.push(off("plan: layers of its stages", layers, problem.graph.layers.value as f64, 0.0));
    }
    let used: f64 = pools.iter().map(|pool| number(pool, "devices")).sum();
    faults.push(off("devices: of all pools", number(row, "devices"), used, 0.0));
    let idle = problem.cluster.devices() as f64 - used;
    faults.push(off("idle_devices: of the system", number(row, "idle_devices"), idle, 0.0));
    faults
}
