//! Measured runs compared with their predictions, in memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{EstimatorAnswer, answered};
use super::hardware::HardwareProfile;
use super::question::{EstimatorDegrees, EstimatorRequest, EstimatorWorkload};
use crate::request::RequestControl;
use crate::request::drift::{DriftFigure, RunErrors, median_error};
use crate::spec::error::Error;
use crate::spec::limits::MEASURED;
use crate::store::catalog::Catalog;

/// A measured run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BenchmarkRun {
    /// Id of the run.
    pub run_id: String,
    /// Time of the run.
    #[serde(default)]
    pub timestamp_utc: Option<String>,
    /// Model.
    pub model_id: String,
    /// Runtime.
    pub runtime_id: String,
    /// Hardware profile.
    pub hardware_id: String,
    /// Weight format.
    #[serde(default)]
    pub quant: Option<String>,
    /// Tokens of the prompt.
    pub context_tokens: u64,
    /// Tokens of the output.
    pub output_tokens: u64,
    /// Concurrent requests.
    pub concurrency: u64,
    /// Degrees.
    #[serde(default)]
    pub parallelism: EstimatorDegrees,
    /// Measured metrics.
    pub metrics: RunMetrics,
    /// Driver, operating system, container: kept, not read.
    #[serde(default)]
    pub env: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Measured metrics of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunMetrics {
    /// Median time to first token, ms.
    pub ttft_ms_p50: Option<f64>,
    /// 95th percentile of the time to first token, ms.
    pub ttft_ms_p95: Option<f64>,
    /// Prompt tokens per second.
    pub prefill_toks_sec: Option<f64>,
    /// Output tokens per second of all requests.
    pub decode_toks_sec: Option<f64>,
    /// Median time of a request, ms.
    pub latency_ms_p50: Option<f64>,
    /// 95th percentile of the time of a request, ms.
    pub latency_ms_p95: Option<f64>,
    /// Device memory in use, all devices, GB.
    pub vram_peak_gb: Option<f64>,
    /// Host memory in use, GB.
    pub ram_peak_gb: Option<f64>,
    /// Traffic over PCIe, GB/s.
    pub pcie_tx_gbps: Option<f64>,
    /// Utilisation of the GPUs, percent.
    pub gpu_util_pct: Option<f64>,
}

/// Most runs that are kept; the oldest leave first.
const MOST_RUNS: usize = 10_000;

#[derive(Debug, Default)]
pub struct MeasuredRuns {
    runs: std::collections::VecDeque<RunErrors>,
    /// Every run that was accepted.
    pub accepted: u64,
}

impl MeasuredRuns {
    pub(super) fn add(&mut self, errors: RunErrors) {
        if self.runs.len() == MOST_RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back(errors);
        self.accepted += 1;
    }

    pub(super) fn kept(&self) -> usize {
        self.runs.len()
    }

    /// The median absolute error of a figure; none without runs that measured it.
    pub(super) fn median(&self, figure: DriftFigure) -> Option<f64> {
        median_error(self.runs.iter().filter_map(|errors| errors.get(figure)))
    }
}

impl BenchmarkRun {
    pub(super) fn predicted(
        &self,
        known: &Catalog,
        control: &RequestControl,
    ) -> Result<EstimatorAnswer, Error> {
        let hardware =
            HardwareProfile { hardware_id: Some(self.hardware_id.clone()), ..HardwareProfile::default() };
        let request = EstimatorRequest {
            model_id: self.model_id.clone(),
            runtime_id: Some(self.runtime_id.clone()),
            hardware,
            workload: EstimatorWorkload {
                context_tokens: self.context_tokens,
                output_tokens: self.output_tokens,
                concurrency: Some(self.concurrency),
            },
            objective: None,
            quant: self.quant.clone(),
            parallelism: Some(self.parallelism.clone()),
            hours_per_day: None,
        };
        answered(known, &request, control)
    }

    pub(super) fn errors(&self, predicted: &EstimatorAnswer) -> Result<RunErrors, Error> {
        let metrics = &self.metrics;
        let Some(estimates) = &predicted.estimates else { return Ok(RunErrors::default()) };
        let error =
            |key: &str, measured: Option<f64>, predicted: Option<f64>| -> Result<Option<f64>, Error> {
                let Some((measured, predicted)) = measured.zip(predicted) else { return Ok(None) };
                MEASURED.check(&format!("metrics.{key}"), measured)?;
                Ok(Some(predicted / measured - 1.0))
            };
        Ok(RunErrors {
            decode: error("decode_toks_sec", metrics.decode_toks_sec, estimates.decode_toks_sec.p50)?,
            ttft: error("ttft_ms_p50", metrics.ttft_ms_p50, estimates.ttft_ms.p50)?,
            memory: error("vram_peak_gb", metrics.vram_peak_gb, estimates.vram_peak_gb.p50)?,
        })
    }
}
