//! `diagnose`: measured numbers of a deployment next to its prediction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::audit::planned;
use super::estimate::{EstimateRequest, estimate};
use super::validate::given::GivenRunFacts;
use super::validate::table::{MeasuredTable, runs_of};
use crate::launch::settings_file::NamedFiles;
use crate::launch::shell::CommandVariables;
use crate::report::diagnose::{Diagnosis, MeasuredNumbers, diagnosis};
use crate::spec::error::Error;
use crate::spec::limits::MEASURED;
use crate::spec::percentile::Percentile;
use crate::spec::run::{EQUAL_LENGTHS, RunLatency, RunRecord, RunStatistic, UNKNOWN_RUNTIME};
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
    /// A run in a file of `bench` or of another tool: its medians, and what the problem leaves open of its model, hardware,
    /// runtime, lengths and load. Of several runs, the only one under the load of the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<MeasuredTable>,
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

impl DiagnoseRequest {
    /// The request with the figures of its run, and with what its problem leaves open; and that run.
    fn completed(&self) -> Result<(DiagnoseRequest, Option<RunRecord>), Error> {
        let Some(table) = &self.run else { return Ok((self.clone(), None)) };
        let run = run_under(table, &self.scenario)?;
        let median = |latency| run.metrics.latency(latency, RunStatistic::At(Percentile::P50));
        let completed = DiagnoseRequest {
            scenario: filled(&self.scenario, &run, self.command.is_some()),
            run: None,
            ttft_ms: self.ttft_ms.or(median(RunLatency::Ttft)),
            tpot_ms: self.tpot_ms.or(median(RunLatency::Tpot)),
            output_tok_s: self.output_tok_s.or(run.metrics.decode_toks_sec),
            ..self.clone()
        };
        Ok((completed, Some(run)))
    }
}

/// The only run of a file, or the only one under the load of the problem.
fn run_under(table: &MeasuredTable, scenario: &Scenario) -> Result<RunRecord, Error> {
    let mut runs = runs_of(table, &GivenRunFacts::default())?;
    let all = runs.len();
    if all > 1 {
        runs.retain(|one| match (scenario.concurrency, scenario.rate) {
            (Some(clients), _) => one.run.concurrency == Some(clients),
            (None, Some(rate)) => one.run.rate_per_s == Some(rate),
            (None, None) => false,
        });
    }
    match &runs[..] {
        [one] if one.run.trace().is_some() => {
            let fix = "measure the server under clients or a rate: `mantile-opt bench --concurrency 8`";
            Err(Error::new("run", "a run of a trace", "one under clients or a rate", fix)
                .in_file(&table.name))
        }
        [one] => Ok(one.run.clone()),
        some => {
            let found = format!("{} of {all} runs under the given load", some.len());
            let fix = "add --concurrency or --rate as in one of the runs";
            Err(Error::new("run", found, "one run", fix).in_file(&table.name))
        }
    }
}

/// The problem with the load and the lengths of a run, and without a command with its model, hardware and runtime, where
/// it states none.
fn filled(scenario: &Scenario, run: &RunRecord, has_command: bool) -> Scenario {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let of_run = |text: Option<String>| text.filter(|_| !has_command);
    let hardware =
        run.devices.zip(run.hardware_id.clone()).map(|(count, device)| format!("{count}x{device}"));
    let has_load = scenario.concurrency.is_some() || scenario.rate.is_some();
    let mut filled = scenario.clone();
    filled.model = filled.model.or(of_run(some(&run.model_id)));
    filled.runtime = filled.runtime.or(of_run(some(&run.runtime_id).filter(|name| name != UNKNOWN_RUNTIME)));
    filled.hardware = filled.hardware.or(hardware);
    filled.isl = filled.isl.or(Some(run.context_tokens).filter(|tokens| *tokens > 0));
    filled.osl = filled.osl.or(Some(run.output_tokens).filter(|tokens| *tokens > 0));
    if run.method.is_some() {
        filled.workload = filled.workload.or_else(|| Some(EQUAL_LENGTHS.to_owned()));
    }
    if !has_load {
        (filled.concurrency, filled.rate) = (run.concurrency, run.rate_per_s);
    }
    filled
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
    let (request, run) = &request.completed()?;
    let measured = MeasuredNumbers {
        ttft_ms: request.ttft_ms,
        tpot_ms: request.tpot_ms,
        output_tok_s: request.output_tok_s,
    };
    if measured == MeasuredNumbers::default() {
        let fix = "add a measured TPOT, TTFT or throughput, or a run that has one";
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
    Ok(diagnosis(estimate(catalog, &estimate_request, control)?, measured, run.as_ref()))
}
