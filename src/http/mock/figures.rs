//! Figures of the simulated deployment, under vLLM's names, in the text format of Prometheus.

use std::fmt::Write;

use crate::traffic::outcome::{RequestRecord, TimelinePoint};
use crate::traffic::run::RunTotals;

/// Upper bounds of the buckets of vLLM's histograms, in seconds (`vllm/v1/metrics/loggers.py`).
const TTFT_BOUNDS: [f64; 22] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0, 640.0, 2560.0,
];
const TPOT_BOUNDS: [f64; 19] = [
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
];
const REQUEST_BOUNDS: [f64; 21] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1920.0, 7680.0,
];

/// Values by the buckets of a histogram.
#[derive(Clone, Debug)]
struct BucketCounts {
    bounds: &'static [f64],
    /// By bucket: values up to its bound and above the one before.
    counts: Vec<u64>,
    count: u64,
    sum: f64,
}

impl BucketCounts {
    fn within(bounds: &'static [f64]) -> BucketCounts {
        BucketCounts { bounds, counts: vec![0; bounds.len()], count: 0, sum: 0.0 }
    }

    fn add(&mut self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.count += 1;
        self.sum += value;
    }

    fn write(&self, text: &mut String, name: &str, help: &str, labels: &str) {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut below = 0;
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            below += count;
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}");
        }
        let (count, sum) = (self.count, self.sum);
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}");
    }
}

/// Latencies of the requests that were answered, as their clients see them.
#[derive(Clone, Debug)]
pub(super) struct MockLatencies {
    ttft: BucketCounts,
    tpot: BucketCounts,
    e2e: BucketCounts,
    queue: BucketCounts,
}

impl Default for MockLatencies {
    fn default() -> MockLatencies {
        MockLatencies {
            ttft: BucketCounts::within(&TTFT_BOUNDS),
            tpot: BucketCounts::within(&TPOT_BOUNDS),
            e2e: BucketCounts::within(&REQUEST_BOUNDS),
            queue: BucketCounts::within(&REQUEST_BOUNDS),
        }
    }
}

impl MockLatencies {
    pub(super) fn count(&mut self, record: &RequestRecord) {
        self.ttft.add(record.ttft_s());
        self.e2e.add(record.e2e_s());
        self.queue.add(record.admitted_s - record.arrived_s);
        if let Some(tpot) = record.tpot_s() {
            self.tpot.add(tpot);
        }
    }
}

/// The state of the deployment, and its totals.
#[derive(Clone, Debug)]
pub(super) struct MockFigures {
    state: TimelinePoint,
    prompt_tokens: u64,
    cached_tokens: u64,
    answered: u64,
    preemptions: u64,
    latencies: MockLatencies,
}

impl MockFigures {
    pub(super) fn of(state: TimelinePoint, totals: &RunTotals, latencies: &MockLatencies) -> MockFigures {
        MockFigures {
            state,
            prompt_tokens: totals.prompt_tokens,
            cached_tokens: totals.cached_tokens,
            answered: totals.answered,
            preemptions: totals.preemptions,
            latencies: latencies.clone(),
        }
    }

    /// The text, for the model of this name.
    pub(super) fn text(&self, model: &str) -> String {
        let named = model.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels = format!("model_name=\"{named}\",engine=\"0\"");
        let mut text = String::new();
        for (name, kind, help, value) in [
            ("vllm:num_requests_running", "gauge", "Requests that run.", self.state.running as f64),
            ("vllm:num_requests_waiting", "gauge", "Requests that wait.", self.state.waiting as f64),
            ("vllm:kv_cache_usage_perc", "gauge", "Share of the KV cache in use.", self.state.kv_used),
            ("vllm:gpu_cache_usage_perc", "gauge", "The same, under its older name.", self.state.kv_used),
            (
                "vllm:prompt_tokens_total",
                "counter",
                "Prompt tokens of answered requests.",
                self.prompt_tokens as f64,
            ),
            (
                "vllm:generation_tokens_total",
                "counter",
                "Output tokens so far.",
                self.state.output_tokens as f64,
            ),
            ("vllm:prefix_cache_queries_total", "counter", "Prompt tokens.", self.prompt_tokens as f64),
            (
                "vllm:prefix_cache_hits_total",
                "counter",
                "Prompt tokens that were in the cache.",
                self.cached_tokens as f64,
            ),
            ("vllm:num_preemptions_total", "counter", "Preemptions.", self.preemptions as f64),
            ("vllm:request_success_total", "counter", "Requests that were answered.", self.answered as f64),
        ] {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{{{labels}}} {value}");
        }
        let all = &self.latencies;
        for (values, name, help) in [
            (&all.ttft, "vllm:time_to_first_token_seconds", "TTFT."),
            (&all.tpot, "vllm:request_time_per_output_token_seconds", "TPOT."),
            (&all.e2e, "vllm:e2e_request_latency_seconds", "Time from arrival to answer."),
            (&all.queue, "vllm:request_queue_time_seconds", "Time in the queue."),
        ] {
            values.write(&mut text, name, help, &labels);
        }
        text
    }
}
