//! `diagnose`: is a measured speed possible, and is a server slow?

use std::path::PathBuf;

use super::deadline::with_deadline;
use super::estimate::{PlannedArgs, variable, with_command};
use super::output::OutputArgs;
use super::validate::tables;
use super::{CliError, ExitStatus};
use crate::request::diagnose::{DiagnoseRequest, diagnose};
use crate::request::estimate::EstimateRequest;
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
        let report = with_deadline(None, |control| diagnose(catalog, &request, control))?;
        self.output.answer(&report, false)?;
        Ok(ExitStatus::of(report.is_expected()))
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
