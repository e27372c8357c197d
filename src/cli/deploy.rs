//! `deploy`: the commands and files that launch a deployment.

use super::deadline::with_deadline;
use super::emit::EmitArgs;
use super::estimate::SavedPlan;
use super::output::{OutputArgs, OutputFormat, csv};
use super::problem::ProblemArgs;
use super::{CliError, ExitStatus};
use crate::report::launch::LaunchReport;
use crate::report::pretty::pretty;
use crate::report::text::launch::table;
use crate::request::deploy::{DeployRequest, deploy};
use crate::spec::deployment::Deployment;
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

/// The flags of `deploy`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Deploy {
    /// The problem.
    #[command(flatten)]
    pub problem: ProblemArgs,
    /// The deployment.
    #[command(flatten)]
    pub deployment: Deployment,
    /// A file with the deployment.
    #[command(flatten)]
    pub saved: SavedPlan,
    /// Print one file instead of the commands, e.g. server.sh or kubernetes.yaml
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub print: Option<String>,
    /// Where the files are written.
    #[command(flatten)]
    pub emit: EmitArgs,
    /// The output flags.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Deploy {
    /// Resolves the problem, and the best plan where none is given, and writes its launch.
    ///
    /// # Errors
    /// The problem is faulty, or the output cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let request = self.request()?;
        self.problem.save(catalog, &request.scenario)?;
        let launch = with_deadline(None, |control| deploy(catalog, &request, control))?;
        self.emit.write([(None, &launch)])?;
        self.output.write(&self.text(&launch)?)?;
        Ok(if launch.runs() { ExitStatus::Success } else { ExitStatus::Infeasible })
    }

    /// The request of the flags and files.
    ///
    /// # Errors
    /// A file is faulty.
    pub fn request(&self) -> Result<DeployRequest, Error> {
        Ok(DeployRequest { scenario: self.saved.scenario(&self.problem, &self.deployment)? })
    }

    fn text(&self, launch: &LaunchReport) -> Result<String, CliError> {
        if let Some(path) = &self.print {
            if !launch.infeasible.is_empty() {
                let found =
                    format!("`{path}` of a deployment that cannot run: {}", launch.infeasible.join("; "));
                let fix = "run it without --print for the reasons, and change the plan or the limits";
                return Err(Error::new("print", found, "a deployment that runs", fix).into());
            }
            let known: Vec<&str> = launch.files.iter().map(|file| file.path.as_str()).collect();
            let file = launch.file(path).ok_or_else(|| {
                let found = format!("`{path}`, which this launch does not have");
                Error::new("print", found, format!("one of {}", known.join(", ")), "name one of these files")
            })?;
            return Ok(file.text.clone());
        }
        match self.output.format() {
            OutputFormat::Table => Ok(table(launch)),
            OutputFormat::Json => Ok(pretty(launch)),
            OutputFormat::Csv => csv(
                &["worker", "replicas", "devices", "hosts", "command"],
                launch.workers.iter().map(|worker| {
                    let counts =
                        [worker.replicas, worker.devices, worker.hosts].map(|count| count.to_string());
                    [vec![worker.name.clone()], counts.to_vec(), vec![worker.command.clone()]].concat()
                }),
            ),
        }
    }
}
