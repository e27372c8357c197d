//! `diagnose`: measured numbers of a deployment next to its prediction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::audit::planned;
use super::estimate::{EstimateRequest, estimate};
use crate::launch::settings_file::NamedFiles;
use crate::launch::shell::CommandVariables;
use crate::report::diagnose::{Diagnosis, MeasuredNumbers, diagnosis};
use crate::spec::error::Error;
use crate::spec::limits::MEASURED;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// A request of `diagnose`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DiagnoseRequest {
    /// The problem; without a `deployment` or a command, the best one is compared.
    pub scenario: Scenario,
    /// The launch command, script or manifest that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Settings files that the command names, by name without folders: their text.
    #[serde(skip_serializing_if = "NamedFiles::is_empty")]
    pub command_files: NamedFiles,
    /// Values of variables of the shell that the command leaves open, by name.
    #[serde(skip_serializing_if = "CommandVariables::is_empty")]
    pub command_variables: CommandVariables,
    /// Measured median time to first token, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<f64>,
    /// Measured median time per output token, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpot_ms: Option<f64>,
    /// Measured output tokens per second of the deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tok_s: Option<f64>,
}

/// Compares.
///
/// # Errors
/// Nothing was measured, or the problem or the deployment is faulty.
pub fn diagnose(
    catalog: &Catalog,
    request: &DiagnoseRequest,
    control: &RequestControl,
) -> Result<Diagnosis, Error> {
    let measured = MeasuredNumbers {
        ttft_ms: request.ttft_ms,
        tpot_ms: request.tpot_ms,
        output_tok_s: request.output_tok_s,
    };
    if measured == MeasuredNumbers::default() {
        let fix = "add a measured TPOT, TTFT or throughput";
        return Err(Error::new("tpot_ms", "no measured number", "at least one", fix));
    }
    for (key, value) in [
        ("ttft_ms", measured.ttft_ms),
        ("tpot_ms", measured.tpot_ms),
        ("output_tok_s", measured.output_tok_s),
    ] {
        value.map_or(Ok(()), |value| MEASURED.check(key, value))?;
    }
    let estimate_request = match &request.command {
        Some(_) => EstimateRequest {
            scenario: request.scenario.clone(),
            command: request.command.clone(),
            command_files: request.command_files.clone(),
            command_variables: request.command_variables.clone(),
        },
        None => EstimateRequest::of(planned(catalog, &request.scenario, control)?),
    };
    Ok(diagnosis(estimate(catalog, &estimate_request, control)?, measured))
}
