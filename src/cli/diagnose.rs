//! `diagnose`: is a measured speed possible, and is a server slow?

use std::path::PathBuf;

#[cfg(feature = "bench")]
use super::bench::measured_now;
use super::deadline::with_deadline;
use super::estimate::{PlannedArgs, variable, with_command};
use super::output::OutputArgs;
use super::validate::tables;
use super::{CliError, ExitStatus};
use crate::request::diagnose::{DiagnoseRequest, diagnose};
use crate::request::estimate::EstimateRequest;
#[cfg(feature = "bench")]
use crate::request::runs::lines_of;
#[cfg(feature = "bench")]
use crate::request::validate::table::MeasuredTable;
use crate::spec::error::Error;
use crate::spec::limits::{MEASURED, number};
use crate::store::catalog::Catalog;

const AFTER: &str = "\
Each measured number is compared with the prediction, its 80 % interval, and the roofline of the operators, which no \
run of this plan at this load can beat. For a slow one, the longest operators are listed with the efficiency that would \
explain the gap alone. Exit code 3: a number is slow or impossible.

Examples:
  mantile-opt diagnose --model Llama-3.1-8B --hardware 1xh100 --tp 1 --concurrency 64 --measured-tpot-ms 25
  mantile-opt diagnose --hardware 4xh100 --command 'vllm serve Qwen/Qwen3-32B -tp 4' --concurrency 32 --measured-tok-s 900
  mantile-opt diagnose --hardware 1xmi300x --tp 1 --measured-run vllm-bench.json
  mantile-opt diagnose --endpoint http://127.0.0.1:8000 --model Qwen3-8B --hardware 1xl40s --tp 1 --concurrency 8
  mantile-opt diagnose --plan-from answer.json --measured-ttft-ms 800 --json";

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Diagnose {
    #[command(flatten)]
    pub planned: PlannedArgs,
    /// Read the deployment from a launch command, or from a file or folder with one
    #[arg(long, value_name = "COMMAND|FILE", conflicts_with_all = ["plan", "plan_from"], help_heading = "The deployment")]
    pub command: Option<String>,
    /// Value of a variable of the shell that the command leaves open (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable, help_heading = "The deployment")]
    pub var: Vec<(String, String)>,
    /// Read the medians and the load from a run of bench or from the benchmark file of another tool
    #[arg(long, value_name = "FILE", help_heading = "Measured")]
    pub measured_run: Option<PathBuf>,
    /// Measure a running server now, as `bench` does, under --isl, --osl and --concurrency or --rate
    #[cfg(feature = "bench")]
    #[arg(long, value_name = "URL", conflicts_with = "measured_run", help_heading = "Measured")]
    pub endpoint: Option<String>,
    /// A file with the bearer token that requests to the server carry
    #[cfg(feature = "bench")]
    #[arg(long, value_name = "FILE", requires = "endpoint", help_heading = "Measured")]
    pub token_file: Option<PathBuf>,
    /// A file of certificates (PEM) that are trusted in addition to the public authorities, for an address with https://
    #[cfg(feature = "bench")]
    #[arg(long, value_name = "FILE.pem", requires = "endpoint", help_heading = "Measured")]
    pub ca_file: Option<PathBuf>,
    /// Measured median time to first token
    #[arg(long, value_name = "MS", value_parser = number(&MEASURED), allow_negative_numbers = true, help_heading = "Measured")]
    pub measured_ttft_ms: Option<f64>,
    /// Measured median time per output token
    #[arg(long, value_name = "MS", value_parser = number(&MEASURED), allow_negative_numbers = true, help_heading = "Measured")]
    pub measured_tpot_ms: Option<f64>,
    /// Measured output tokens per second of the deployment
    #[arg(long, value_name = "TOK/S", value_parser = number(&MEASURED), allow_negative_numbers = true, help_heading = "Measured")]
    pub measured_tok_s: Option<f64>,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Diagnose {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let request = self.request()?;
        self.planned.problem.save(catalog, &request.scenario)?;
        #[cfg(feature = "bench")]
        let request = self.measured(catalog, request)?;
        let report = with_deadline(None, |control| diagnose(catalog, &request, control))?;
        self.output.answer(&report, false)?;
        Ok(ExitStatus::of(report.is_expected()))
    }

    /// The request with a run of the server, where its address is stated.
    #[cfg(feature = "bench")]
    fn measured(&self, catalog: &Catalog, request: DiagnoseRequest) -> Result<DiagnoseRequest, CliError> {
        let Some(endpoint) = &self.endpoint else { return Ok(request) };
        let (token_file, ca_file) = (self.token_file.as_deref(), self.ca_file.as_deref());
        let run = measured_now(catalog, &request.scenario, endpoint, token_file, ca_file)?;
        let table = MeasuredTable { name: endpoint.clone(), csv: lines_of(&[run]) };
        Ok(DiagnoseRequest { run: Some(table), ..request })
    }

    pub fn request(&self) -> Result<DiagnoseRequest, Error> {
        let scenario = self.planned.scenario()?;
        let EstimateRequest { scenario, command, command_files, command_variables } =
            with_command(scenario, self.command.as_deref(), &self.var)?;
        Ok(DiagnoseRequest {
            scenario,
            command,
            command_files,
            command_variables,
            run: tables(self.measured_run.as_slice())?.pop(),
            ttft_ms: self.measured_ttft_ms,
            tpot_ms: self.measured_tpot_ms,
            output_tok_s: self.measured_tok_s,
        })
    }
}
