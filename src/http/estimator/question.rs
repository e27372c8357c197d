//! A request of the Estimator as a scenario.

use crate::spec::degree::Degrees;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hardware::HardwareProfile;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// A request of `/v1/estimate`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EstimatorRequest {
    /// Model: an id of `/v1/catalog/models`, an alias, or a Hugging Face id; absent where the objective chooses it.
    #[serde(default)]
    pub model_id: String,
    /// Runtime, with a version where that matters, e.g. `vllm-0.19.0`; the usual one of the hardware if absent.
    #[serde(default)]
    pub runtime_id: Option<String>,
    /// Hardware: a profile by its id, or with its figures.
    pub hardware: HardwareProfile,
    /// Traffic.
    pub workload: EstimatorWorkload,
    /// Objective: throughput, latency, perf-per-dollar …, or `max_model_size`, the largest model of the catalogue that
    /// runs; `throughput` if absent.
    #[serde(default)]
    pub objective: Option<String>,
    /// Weight format; if absent, the best one of at least 8 bits that fits, else any.
    #[serde(default)]
    pub quant: Option<String>,
    /// Degrees; the best ones if absent.
    #[serde(default)]
    pub parallelism: Option<EstimatorDegrees>,
    /// Hours per day in which the hardware serves, for its cost; 24 if absent.
    #[serde(default)]
    pub hours_per_day: Option<f64>,
}

/// Traffic of a request.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EstimatorWorkload {
    /// Tokens of the prompt.
    pub context_tokens: u64,
    /// Tokens of the output.
    pub output_tokens: u64,
    /// Concurrent requests; 1 if absent.
    #[serde(default)]
    pub concurrency: Option<u64>,
}

/// Degrees of a deployment.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EstimatorDegrees {
    /// Tensor parallelism; 1 if absent.
    pub tensor_parallel: Option<u64>,
    /// Pipeline parallelism; 1 if absent.
    pub pipeline_parallel: Option<u64>,
}

/// The objective that chooses the model: by its words, whatever joins them.
const MAX_MODEL_SIZE: [&str; 3] = ["max", "model", "size"];

impl EstimatorRequest {
    pub(super) fn seeks_largest_model(&self) -> bool {
        let words = self.objective.as_deref().unwrap_or_default().split([' ', '-', '_']);
        words.eq(MAX_MODEL_SIZE)
    }

    /// The scenario; the deployment is part of it where degrees are given.
    pub(super) fn scenario(&self, known: &Catalog) -> Result<Scenario, Error> {
        let named = self.runtime_id.as_deref().map(|id| known.runtime_by_id(id)).transpose()?;
        let (runtime, runtime_version) =
            named.map_or((None, None), |(runtime, version)| (Some(runtime.id.clone()), version));
        let degrees = self.parallelism.as_ref().map(|degrees| Deployment {
            both: Degrees {
                tp: degrees.tensor_parallel,
                pp: degrees.pipeline_parallel,
                ..Degrees::default()
            },
            ..Deployment::default()
        });
        let none = Some("none".to_owned());
        Ok(Scenario {
            model: Some(self.model_id.clone()),
            objective: Some(self.objective.clone().unwrap_or_else(|| "throughput".to_owned())),
            isl: Some(self.workload.context_tokens),
            osl: Some(self.workload.output_tokens),
            concurrency: Some(self.workload.concurrency.unwrap_or(1)),
            ttft: none.clone(),
            tpot: none.clone(),
            e2e: none,
            runtime,
            runtime_version,
            weight_format: self.quant.clone(),
            deployment: degrees,
            hours_per_day: self.hours_per_day,
            ..self.hardware.scenario(known)?
        })
    }
}
