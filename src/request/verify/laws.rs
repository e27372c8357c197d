//! Identities among the numbers of a row, independent of the formulas behind them: checked on the saved
//! values alone.

use super::off;
use crate::quantity::tolerance::{SUMMED, WHOLE};
use crate::report::pool::PoolReport;
use crate::report::result::{MetricsReport, Plan, Quantiles, ReportedDeployment};
use crate::search::problem::{Problem, Traffic};

pub(super) fn laws(problem: &Problem, row: &ReportedDeployment) -> Vec<String> {
    let mut faults = of_devices(problem, row);
    if let Some(metrics) = &row.metrics {
        faults.extend(of_metrics(problem, row, metrics));
    }
    if let Some(memory) = &row.memory {
        let device = memory.weights_bytes + memory.kv_cache_bytes;
        let sum = device + memory.activations_bytes + memory.buffers_bytes;
        faults.push(off("memory.total_bytes", memory.total_bytes, sum, SUMMED));
    }
    if let Some(intervals) = &row.intervals {
        faults.push(ordered("intervals.ttft_ms", &intervals.ttft_ms));
        faults.push(ordered("intervals.tpot_ms", &intervals.tpot_ms));
        faults.push(ordered("intervals.output_tok_s", &intervals.output_tok_s));
    }
    faults.into_iter().flatten().collect()
}

fn ordered(what: &str, Quantiles { p10, p50, p90 }: &Quantiles) -> Option<String> {
    (!(p10 <= p50 && p50 <= p90)).then(|| format!("{what}: {p10}, {p50}, {p90} are not in ascending order"))
}

/// Times add up, rates agree with times, and concurrency agrees with Little's law.
fn of_metrics(problem: &Problem, row: &ReportedDeployment, m: &MetricsReport) -> Vec<Option<String>> {
    let osl = problem.workload.lengths.osl as f64;
    let output = m.output_tok_s;
    let mut laws = vec![
        ("metrics.e2e_ms: from TTFT and TPOT", m.e2e_ms, m.ttft_ms + (osl - 1.0) * m.tpot_ms),
        (
            "metrics.output_tok_s: from output per device",
            output,
            m.output_tok_s_per_device * row.devices as f64,
        ),
        ("metrics.requests_per_s: output over OSL", m.requests_per_s, output / osl),
    ];
    if osl > 1.0 {
        laws.push(("metrics.output_tok_s_per_user: from TPOT", m.output_tok_s_per_user, 1e3 / m.tpot_ms));
    }
    if let Some((mtok, hour)) = m.usd_per_mtok.zip(m.usd_per_hour) {
        laws.push(("metrics.usd_per_hour: from cost per token", hour, mtok * output * 3600.0 / 1e6));
    }
    if let Some((watts, joule)) = m.watts.zip(m.tok_per_joule) {
        laws.push(("metrics.tok_per_joule: from throughput and power", joule, output / watts));
    }
    if let Traffic::Rate(rate) = problem.traffic {
        laws.push(("metrics.output_tok_s: from the request rate", output, rate * osl));
    }
    // Under a request rate E2E is that of a percentile, and concurrency follows from the mean.
    let means = !matches!(problem.traffic, Traffic::Rate(_));
    let in_flight = output * m.e2e_ms * 1e-3 / osl;
    let little =
        means.then(|| off("concurrency: output x E2E / OSL", row.concurrency, in_flight, WHOLE)).flatten();
    laws.into_iter().map(|(what, saved, again)| off(what, saved, again, SUMMED)).chain([little]).collect()
}

/// Devices of every pool, of all pools, and idle ones.
fn of_devices(problem: &Problem, row: &ReportedDeployment) -> Vec<Option<String>> {
    let Plan { prefill, decode, others, mode, .. } = &row.plan;
    // Aggregated replicas are reported as both.
    let decode = (mode == "disaggregated").then_some(decode);
    let pools: Vec<&PoolReport> = [prefill].into_iter().chain(decode).chain(others).collect();
    let exact = |what: &str, saved: u64, again: f64| off(what, saved as f64, again, 0.0);
    let mut faults = Vec::new();
    for pool in &pools {
        // A layer type may be wider than all ranks of attention.
        let wider = [pool.plan.ffn_tp, pool.plan.vocab_tp].into_iter().flatten().max().unwrap_or(1) as f64;
        let attention: f64 =
            [pool.plan.tp, pool.plan.dp, pool.plan.cp].iter().map(|degree| *degree as f64).product();
        let devices = attention.max(wider) * pool.plan.pp as f64 * pool.replicas as f64;
        faults.push(exact("plan: devices of a pool", pool.devices, devices));
        let layers: u64 = pool.stages.iter().map(|layers| u64::from(*layers)).sum();
        faults.push(exact("plan: layers of its stages", layers, problem.graph.layers.value as f64));
    }
    let used: f64 = pools.iter().map(|pool| pool.devices as f64).sum();
    faults.push(exact("devices: of all pools", row.devices, used));
    let idle = problem.cluster.devices() as f64 - used;
    faults.push(exact("idle_devices: of the system", row.idle_devices, idle));
    faults
}
