//! The standard errors of a simulation of some replicas, as text.

use super::page::{heading, indent, paragraph};
use crate::report::number::{count, digits, percent, time};
use crate::report::sampled_replicas::{SampledReplicas, SamplingMethod};
use crate::report::simulate::LatencyRow;
use crate::report::table::table;

/// The sample and its errors.
pub(super) fn sampled_replicas(sample: &SampledReplicas) -> String {
    let how = match sample.method {
        SamplingMethod::Thinned => "each with the requests that the router of all sends it".to_owned(),
        SamplingMethod::Groups => format!(
            "in {}, each with its share of the load and a router of its own; one over all replicas has more to choose \
             from",
            count(sample.clusters, "group")
        ),
    };
    let head = format!("{} of {} simulated, {how}", sample.simulated, count(sample.replicas, "replica"));
    let cell = |ms: Option<f64>| ms.map_or_else(String::new, time);
    let row = |one: &LatencyRow| {
        let times = [one.mean_ms, one.p50_ms, one.p90_ms, one.p95_ms, one.p99_ms].map(cell);
        std::iter::once(one.metric.to_uppercase()).chain(times).collect::<Vec<_>>()
    };
    let errors = &sample.errors;
    let mut text = heading("Sample", "standard errors of the figures above");
    text.push_str(&paragraph(&head));
    let rows = errors.latencies.iter().map(row);
    text.push_str(&indent(&table(&["", "mean", "p50", "p90", "p95", "p99"], rows), 2));
    let parts = [
        errors.output_tok_s.map(|rate| format!("{} output tok/s", digits(rate))),
        errors.concurrency.map(|number| format!("{} requests in the system", digits(number))),
        errors.goodput.map(|part| format!("{} of requests within the SLOs", percent(part))),
        errors.hit_rate.map(|part| format!("{} of prompt tokens in the cache", percent(part))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        text.push_str(&paragraph(&parts.join("; ")));
    }
    text
}
