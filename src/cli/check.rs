//! `check`: whether the server of a launch command starts.

use std::path::PathBuf;

use super::estimate::{variable, with_command};
use super::output::OutputArgs;
use super::problem::ProblemArgs;
use super::{CliError, ExitStatus};
use crate::request::UNCONTROLLED;
use crate::request::check::{CheckRequest, check};
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::file;

const AFTER: &str = "\
Reads the command as its runtime does, and checks what the server checks before it serves: every option and value, the \
context that it states against the model's, the rules of the runtime for the plan on these devices, and the memory at \
the start. Exit code 3 where it does not start, with the runtime's reasons and the smallest changes as whole commands.

Examples:
  mantile-opt check --hardware 2xh100 'vllm serve meta-llama/Llama-3.3-70B-Instruct -tp 2'
  mantile-opt check --hardware 8xh20-141 deployment.yaml
  mantile-opt check --hardware 2xl40s 'vllm serve Qwen/Qwen3-32B -tp 2' --log server.log
  mantile-opt check --hardware 1xrtx-3090 'llama-server -hf unsloth/Qwen3-32B-GGUF:Q4_K_M -c 32768'";

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Check {
    /// A launch command, or a file or folder with one: scripts, manifests
    #[arg(value_name = "COMMAND|FILE")]
    pub command: String,
    /// Value of a variable of the shell that the command leaves open (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable, help_heading = "The deployment")]
    pub var: Vec<(String, String)>,
    /// The log of the server that failed: its reason, with the changes that meet it
    #[arg(long, value_name = "FILE", help_heading = "The deployment")]
    pub log: Option<PathBuf>,
    #[command(flatten)]
    pub problem: ProblemArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Check {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        self.output.check::<crate::report::start::StartReport>()?;
        let request = self.request()?;
        self.problem.save(catalog, &request.scenario)?;
        let report = check(catalog, &request, &UNCONTROLLED)?;
        self.output.answer(&report, false)?;
        Ok(ExitStatus::of(report.starts))
    }

    pub fn request(&self) -> Result<CheckRequest, Error> {
        let scenario = self.problem.scenario(&Deployment::default())?;
        let read = with_command(scenario, Some(&self.command), &self.var)?;
        let command = read.command.unwrap_or_default();
        Ok(CheckRequest {
            command,
            command_files: read.command_files,
            command_variables: read.command_variables,
            log: self.log.as_deref().map(file::read).transpose()?,
            scenario: read.scenario,
        })
    }
}
