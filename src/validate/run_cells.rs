//! A run as a row of a table of measurements: the cells that its record fills.

use std::collections::BTreeMap;

use serde_json::Value;

use super::imported::llama_bench::{host_part, is_timed_separately};
use super::measured::{HOST, HOST_PART, OTHER_PLAN, Record};
use super::measured_traffic::CLIENTS;
use crate::spec::degree::Degree;
use crate::spec::notation::{PlanText, PoolText};
use crate::spec::percentile::Percentile;
use crate::spec::role::Role;
use crate::spec::run::{RunDegrees, RunLatency, RunOrigin, RunRecord, RunStatistic};

/// Columns of latencies, by their beginning.
const LATENCIES: [(RunLatency, &str); 4] = [
    (RunLatency::Ttft, "ttft"),
    (RunLatency::Tpot, "tpot"),
    (RunLatency::Itl, "itl"),
    (RunLatency::E2e, "e2e"),
];
/// Statistics of latencies that a table has, by their place in the names of columns.
const STATISTICS: [(RunStatistic, &str); 5] = [
    (RunStatistic::Mean, "mean"),
    (RunStatistic::At(Percentile::P50), "p50"),
    (RunStatistic::At(Percentile::P90), "p90"),
    (RunStatistic::At(Percentile::P95), "p95"),
    (RunStatistic::At(Percentile::P99), "p99"),
];

/// Degrees that a table has columns for.
const COLUMNS: [Degree; 4] = [Degree::Tp, Degree::Pp, Degree::Dp, Degree::Ep];

/// The cells of a run by column.
pub struct RunCells(BTreeMap<String, String>);

impl RunCells {
    /// The cells that the record fills; a run that is in doubt has the reason in `doubt`.
    pub fn of(run: &RunRecord) -> RunCells {
        let mut cells = RunCells(BTreeMap::new());
        let given = |text: &Option<String>| text.clone().unwrap_or_default();
        for (column, text) in [
            ("id", run.run_id.clone()),
            ("date", run.timestamp_utc.clone()),
            ("model", run.model_id.clone()),
            ("runtime", run.runtime_id.clone()),
            ("runtime_version", given(&run.runtime_version)),
            ("hardware", given(&run.hardware_id)),
            ("weight_format", given(&run.quant)),
            ("kv_format", given(&run.kv_format)),
            ("source", given(&run.source)),
            ("doubt", run.doubt().or_else(|| simulated(run)).or_else(|| invalid(run)).unwrap_or_default()),
        ] {
            cells.put(column, text);
        }
        for column in ["speculative", "acceptance_length"] {
            let stated = run.env.get(column).map(|value| value.to_string().trim_matches('"').to_owned());
            cells.put(column, stated.unwrap_or_default());
        }
        cells.count("devices", run.devices);
        cells.count("isl", Some(run.context_tokens).filter(|tokens| *tokens > 0));
        cells.count("osl", Some(run.output_tokens).filter(|tokens| *tokens > 0));
        cells.count("concurrency", run.concurrency);
        cells.load(run);
        cells.plan(run);
        cells.figures(run);
        if is_timed_separately(run) {
            cells.separately(run);
        }
        cells
    }

    /// The cells of a run whose prompt and answer were timed separately: those of a device, or those of a home machine
    /// where a part of the model is on the host.
    fn separately(&mut self, run: &RunRecord) {
        self.put("mode", "llama-bench".to_owned());
        if let Some(rate) = run.metrics.prefill_toks_sec {
            self.put("prefill_tok_s", rate.to_string());
        }
        if let Some(share) = run.metrics.cached_share {
            self.put("hit_rate", share.to_string());
        }
        let cpu = run.env.get("cpu").and_then(Value::as_str).unwrap_or_default();
        let alone = run.devices.is_none() && run.hardware_id.as_deref() == Some(cpu);
        let Some(part) = host_part(run).or(alone.then(|| "CPU only".to_owned())) else { return };
        let gpu = if alone { "" } else { run.hardware_id.as_deref().unwrap_or_default() };
        let speed = |tpot_ms: f64| (1e3 / tpot_ms).to_string();
        for (column, text) in [
            ("gpu", gpu.to_owned()),
            ("gpu_count", run.devices.unwrap_or(u64::from(!alone)).to_string()),
            ("cpu", cpu.to_owned()),
            ("quant", run.quant.clone().unwrap_or_default()),
            ("offload", part),
            ("pp_tok_s", run.metrics.prefill_toks_sec.map(|rate| rate.to_string()).unwrap_or_default()),
            ("tg_tok_s", run.metrics.tpot_ms_mean.map(speed).unwrap_or_default()),
        ] {
            self.put(column, text);
        }
        self.count("prompt_tokens", Some(run.context_tokens).filter(|tokens| *tokens > 0));
        self.count("gen_tokens", Some(run.output_tokens).filter(|tokens| *tokens > 0));
    }

    /// The row of these cells.
    pub fn record(&self) -> Record<'_> {
        Record(self.0.iter().map(|(column, text)| (column.as_str(), text.as_str())).collect())
    }

    fn put(&mut self, column: &str, text: String) {
        self.0.insert(column.to_owned(), text);
    }

    fn count(&mut self, column: &str, count: Option<u64>) {
        if let Some(count) = count {
            self.put(column, count.to_string());
        }
    }

    fn load(&mut self, run: &RunRecord) {
        let sent = run.requests.as_ref().map(|requests| requests.sent);
        if let Some(rate) = run.rate_per_s {
            self.put("rate", rate.to_string());
            if let Some(variation) = run.arrival_variation {
                self.put("arrival_variation", variation.to_string());
            }
            self.count("num_prompts", sent);
        } else if has_equal_requests(run) {
            self.put("arrival", CLIENTS.to_owned());
            let warm_up = run.requests.as_ref().map_or(0, |requests| requests.warm_up);
            self.count("num_prompts", sent.map(|sent| sent.saturating_add(warm_up)));
        }
    }

    /// The degrees of its pools: by its plan, else as stated.
    fn plan(&mut self, run: &RunRecord) {
        let plan = run.plan.as_deref().and_then(|plan| plan.parse::<PlanText>().ok());
        if let Some(plan) = &plan {
            self.beyond_degrees(plan, run);
        }
        let pools = plan.map(|plan| plan.pools).unwrap_or_default();
        let of = |role| pools.iter().find(|pool| pool.role == role);
        match (of(Role::Prefill), of(Role::Decode)) {
            (Some(prefill), Some(decode)) => {
                self.put("mode", "disagg".to_owned());
                self.pool("prefill_", prefill);
                self.pool("decode_", decode);
            }
            _ => {
                self.put("mode", "agg".to_owned());
                match of(Role::Aggregated) {
                    Some(pool) => self.pool("", pool),
                    None => self.degrees(&run.parallelism),
                }
            }
        }
    }

    /// Parts of a plan beyond the degrees of a table: a part on the host, or something that no column states.
    fn beyond_degrees(&mut self, plan: &PlanText, run: &RunRecord) {
        let has_others = |pool: &PoolText| {
            let others = Degree::stated().filter(|degree| !COLUMNS.contains(degree));
            others.filter_map(|degree| pool.degrees.get(degree)).any(|number| number > 1)
        };
        let is_other = plan.offload.is_some() || plan.prefill_weights.is_some();
        if is_other || plan.pools.iter().any(has_others) {
            self.put(OTHER_PLAN, plan.to_string());
        }
        if let Some(part) = plan.host {
            self.put(HOST_PART, part.to_string());
            let stated = run.env.get(HOST).and_then(Value::as_str).unwrap_or_default();
            self.put(HOST, stated.to_owned());
        }
    }

    fn pool(&mut self, prefix: &str, pool: &PoolText) {
        let degrees = &pool.degrees;
        for (name, degree) in [("tp", degrees.tp), ("pp", degrees.pp), ("dp", degrees.dp), ("ep", degrees.ep)]
        {
            self.count(&format!("{prefix}{name}"), degree);
        }
        self.count(&format!("{prefix}workers"), Some(degrees.replicas.unwrap_or(1)));
    }

    fn degrees(&mut self, degrees: &RunDegrees) {
        self.count("tp", degrees.tensor_parallel);
        self.count("pp", degrees.pipeline_parallel);
        self.count("dp", degrees.data_parallel);
        self.count("ep", degrees.expert_parallel);
        self.count("workers", degrees.replicas);
    }

    fn figures(&mut self, run: &RunRecord) {
        for (latency, name) in LATENCIES {
            for (statistic, part) in STATISTICS {
                if let Some(value) = run.metrics.latency(latency, statistic) {
                    self.put(&format!("{name}_{part}_ms"), value.to_string());
                }
            }
        }
        // The rate of prompts under a load is not that of prompts alone.
        if let Some(rate) = run.metrics.decode_toks_sec {
            self.put("output_tok_s", rate.to_string());
        }
    }
}

/// Whether all of its clients sent requests of the same lengths: those of `bench`, where the server keeps answers to theirs.
fn has_equal_requests(run: &RunRecord) -> bool {
    run.method.as_ref().is_some_and(|method| method.fixed_length && method.trace.is_none())
}

/// A simulated run is no measurement.
fn simulated(run: &RunRecord) -> Option<String> {
    (run.origin == RunOrigin::Simulated).then(|| "it is simulated".to_owned())
}

/// A run that its own tool calls invalid, as LoadGen does where a rule of the benchmark was not met.
fn invalid(run: &RunRecord) -> Option<String> {
    let stated = run.env.get("result").and_then(Value::as_str);
    (stated == Some("INVALID")).then(|| "its tool calls the result invalid".to_owned())
}
