//! `deploy`: the commands and files that launch a deployment.

use super::deadline::with_deadline;
use super::emit::EmitArgs;
use super::estimate::PlannedArgs;
use super::output::OutputArgs;
use super::{CliError, ExitStatus};
use crate::report::launch::LaunchReport;
use crate::request::deploy::{DeployRequest, deploy};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

const AFTER: &str = "\
Without a plan, the best one is deployed. Nothing is started: scripts, docker compose, Kubernetes, Dynamo and Slurm files \
are written with --emit, or one of them is printed with --print.

Examples:
  mantile-opt deploy --model Llama-3.1-8B --hardware 1xh100
  mantile-opt deploy --model DeepSeek-V3 --hardware 2x8xh200 --runtime sglang --emit launch
  mantile-opt deploy --model Qwen3-32B --hardware 4xl40s --tp 4 --print kubernetes.yaml | kubectl apply -f -
  mantile-opt deploy --plan-from answer.json --pick front/7 --emit launch";

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Deploy {
    #[command(flatten)]
    pub planned: PlannedArgs,
    /// Print one file instead of the commands, e.g. server.sh or kubernetes.yaml
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub print: Option<String>,
    #[command(flatten)]
    pub emit: EmitArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Deploy {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let request = self.request()?;
        self.planned.problem.save(catalog, &request.scenario)?;
        let launch = with_deadline(None, |control| deploy(catalog, &request, control))?;
        self.emit.write([(None, &launch)])?;
        match &self.print {
            Some(path) => self.output.write(&printed(&launch, path)?)?,
            None => self.output.answer(&launch, false)?,
        };
        Ok(ExitStatus::of(launch.runs()))
    }

    pub fn request(&self) -> Result<DeployRequest, Error> {
        Ok(DeployRequest { scenario: self.planned.scenario()? })
    }
}

/// The file of a launch at `path`.
///
/// # Errors
/// The deployment cannot run, or the launch has no such file.
fn printed(launch: &LaunchReport, path: &str) -> Result<String, Error> {
    if !launch.infeasible.is_empty() {
        let found = format!("`{path}` of a deployment that cannot run: {}", launch.infeasible.join("; "));
        let fix = "run it without --print for the reasons, and change the plan or the limits";
        return Err(Error::new("print", found, "a deployment that runs", fix));
    }
    let known: Vec<&str> = launch.files.iter().map(|file| file.path.as_str()).collect();
    let file = launch.file(path).ok_or_else(|| {
        let found = format!("`{path}`, which this launch does not have");
        Error::new("print", found, format!("one of {}", known.join(", ")), "name one of these files")
    })?;
    Ok(file.text.clone())
}
