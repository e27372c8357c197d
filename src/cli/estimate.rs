//! `estimate`: evaluates one given deployment with the metrics of `optimize`.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::emit::{EmitArgs, MANIFEST};
use super::output::OutputArgs;
use super::plot::PlotArgs;
use super::problem::ProblemArgs;
use super::trace::TraceArgs;
use super::{CliError, ExitStatus, stdin, workbook};
use crate::launch::settings_file::NamedFiles;
use crate::report::format::Format;
use crate::report::result::EstimateResult;
use crate::report::rows::operators;
use crate::report::svg::deployment::estimate_picture;
use crate::request::UNCONTROLLED;
use crate::request::estimate::{EstimateRequest, estimate};
use crate::request::saved_answer::{is_saved_answer, of_saved};
use crate::request::timeline::given_timeline;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::file::{self, FileSizeLimit};

const AFTER: &str = "\
A one-line plan determines all metrics: aggregated, prefill and decode pools, and for each pool the number of \
replicas or workers, the parallel degrees, the pipeline cut and the concurrency of each (@). `optimize` \
writes it as `notation`.

Examples:
  mantile-opt estimate --model Llama-3.1-8B --hardware 1xh100 --tp 1 --concurrency 64
  mantile-opt estimate --model Qwen3-32B --hardware 4xl40s --pp 4 --stages 15,17,17,15
  mantile-opt estimate --hardware 4xh100 --plan 'prefill 2 x tp1 @1, decode 1 x tp2 @24, weights fp8'
  mantile-opt estimate --model Qwen3-32B --hardware 8xl40s --plan '1 x tp4 @40 + 2 x tp2 pp2[30,34] sp @25'
  mantile-opt --model Qwen3-32B --hardware 4xl40s --format json --out answer.json
  mantile-opt estimate --plan-from answer.json --pick front/7
  mantile-opt estimate --hardware 4xh100 --command 'vllm serve Qwen/Qwen3-32B -tp 4 --max-num-seqs 64'
  mantile-opt estimate --hardware 4xh100 --command deployment.yaml
  mantile-opt estimate --hardware 8xh100 --plan '1 x tp8 @64' --out answer.xlsx";

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Estimate {
    #[command(flatten)]
    pub planned: PlannedArgs,
    /// Read the deployment from a launch command, or from a file or folder with one: scripts, a Kubernetes manifest, a docker compose file, a graph of Dynamo
    #[arg(long, value_name = "COMMAND|FILE", conflicts_with_all = ["plan", "plan_from"], help_heading = "The deployment")]
    pub command: Option<String>,
    /// Value of a variable of the shell that the command leaves open (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable, help_heading = "The deployment")]
    pub var: Vec<(String, String)>,
    /// Show everything: memory, breakdown, operators, sources; as CSV, the operators
    #[arg(long, help_heading = "Output")]
    pub detail: bool,
    /// Exit with 3 where the deployment misses an SLO at the confidence of --risk, breaks a rule of the runtime or does not fit: for CI and hooks. An SLO that holds at the median alone is a warning
    #[arg(long)]
    pub slo: bool,
    #[command(flatten)]
    pub emit: EmitArgs,
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub plot: PlotArgs,
}

/// A problem with its deployment, by flags or in a file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PlannedArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,
    #[command(flatten)]
    pub deployment: Deployment,
    #[command(flatten)]
    pub saved: SavedPlan,
}

/// A plan in a file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SavedPlan {
    /// Read the plan and problem from a saved answer of any command or a bundle (flags override the problem), or from a deployment file
    #[arg(long, visible_alias = "from", value_name = "FILE.json", help_heading = "The deployment")]
    pub plan_from: Option<PathBuf>,
    /// Row of the saved answer: best, nearest, alternatives/N, front/N; routes/N of a fleet; minimum, value, builds/N or models/N of a recommendation [default: the first choice]
    #[arg(long, value_name = "ROW", requires = "plan_from", help_heading = "The deployment")]
    pub pick: Option<String>,
}

impl Estimate {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let request = self.request()?;
        self.plot.check()?;
        self.output.check::<EstimateResult>()?;
        self.planned.problem.save(catalog, &request.scenario)?;
        let report = estimate(catalog, &request, &UNCONTROLLED)?;
        self.emit.write(report.launch.iter().map(|launch| (None, launch)))?;
        let scenario = report.command.as_ref().map_or(&request.scenario, |command| &command.scenario);
        let timed = report.candidate.metrics.is_some();
        let drawn = timed && self.plot.plot.is_some();
        let timeline = drawn.then(|| given_timeline(catalog, scenario)).transpose()?;
        self.plot.write(|| estimate_picture(&report, timeline.as_ref()))?;
        self.trace.write(|| timed.then(|| given_timeline(catalog, scenario)))?;
        let kept = report.candidate.violations.is_empty();
        let starts = report.command.as_ref().is_none_or(|command| command.will_not_start.is_empty());
        let runs = timed && starts && (kept || !self.slo);
        let status = ExitStatus::of(runs);
        // Where the answer is text, it has the warning itself.
        let risk = report.risk();
        if let Some(risk) = risk.filter(|_| self.slo && self.output.format() != Format::Table) {
            writeln!(anstream::stderr(), "warning: {risk}")?;
        }
        if self.output.format() == Format::Xlsx {
            workbook::write(&self.output, catalog, &report)?;
            return Ok(status);
        }
        match report.detail.as_ref().filter(|_| self.detail && self.output.format() == Format::Csv) {
            Some(detail) => self.output.write(&operators(detail))?,
            None => self.output.answer(&report, self.detail)?,
        };
        Ok(status)
    }

    pub fn request(&self) -> Result<EstimateRequest, Error> {
        let scenario = self.planned.scenario()?;
        with_command(scenario, self.command.as_deref(), &self.var)
    }
}

/// The request of a scenario and a launch command, whose files are read.
pub(super) fn with_command(
    scenario: Scenario,
    command: Option<&str>,
    variables: &[(String, String)],
) -> Result<EstimateRequest, Error> {
    let Some(command) = command else { return Ok(EstimateRequest::of(scenario)) };
    let (text, folder) = command_text(command)?;
    let command_files = settings_files(&text, &folder)?;
    let command_variables = variables.iter().cloned().collect();
    Ok(EstimateRequest { scenario, command: Some(text), command_files, command_variables })
}

/// A variable with its value, of a flag.
pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    let named = |(name, value): (&str, &str)| (name.trim().to_owned(), value.to_owned());
    let pair = text.split_once('=').map(named).filter(|(name, _)| !name.is_empty());
    pair.ok_or_else(|| "expected NAME=VALUE".to_owned())
}

/// A command with the folder of its files: the text itself, that of a file, or what a folder that `--emit` wrote starts.
fn command_text(command: &str) -> Result<(String, PathBuf), Error> {
    let here = PathBuf::from(".");
    if command == "-" {
        let fix = "write e.g. `mantile-opt estimate --hardware 4xh100 --command - < launch.sh`";
        return Ok((stdin::text("command", "a launch command on standard input", fix)?, here));
    }
    let path = Path::new(command);
    if !path.exists() {
        return Ok((command.to_owned(), here));
    }
    if path.is_dir() {
        return Ok((folder_text(path)?, path.to_path_buf()));
    }
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or(here, Path::to_path_buf);
    // A script that `--emit` wrote starts one process of several: the folder has them all.
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let text = if is_worker(name) && folder.join(MANIFEST).is_file() {
        folder_text(&folder)?
    } else {
        file::read(path)?
    };
    Ok((text, folder))
}

/// The text of what starts every process of a folder: its start script, else its manifest, else its scripts of workers.
fn folder_text(folder: &Path) -> Result<String, Error> {
    let names = file::names(folder)?;
    if let Some(whole) = WHOLE.iter().find(|whole| names.iter().any(|name| name == *whole)) {
        return file::read(&folder.join(whole));
    }
    let scripts = names.into_iter().filter(|name| is_worker(name));
    Ok(scripts.map(|name| file::read(&folder.join(name))).collect::<Result<Vec<_>, _>>()?.concat())
}

/// The files in a folder that the text of a command names: of settings, and scripts that it runs; and those that they
/// name.
fn settings_files(text: &str, folder: &Path) -> Result<NamedFiles, Error> {
    let mut files = NamedFiles::new();
    let mut texts = vec![text.to_owned()];
    let may_be_read = |name: &String| READ.iter().any(|ending| name.ends_with(ending));
    if !READ.iter().any(|ending| text.contains(ending)) {
        return Ok(files);
    }
    let names: Vec<String> = file::names(folder)?.into_iter().filter(may_be_read).collect();
    while let Some(text) = texts.pop() {
        for name in names.iter().filter(|name| text.contains(name.as_str())) {
            if !files.contains_key(name) {
                let contents = file::read(&folder.join(name))?;
                texts.push(contents.clone());
                files.insert(name.clone(), contents);
            }
        }
    }
    Ok(files)
}

/// Whether it is the name of a script that starts a worker.
fn is_worker(name: &str) -> bool {
    name.ends_with(".sh") && WORKERS.iter().any(|worker| name.starts_with(worker))
}

/// Files that start every process of a deployment, the first that exists counts.
const WHOLE: [&str; 3] = ["start.sh", "slurm.sh", "kubernetes.yaml"];

/// Beginnings of the names of scripts that start workers.
const WORKERS: [&str; 3] = ["server", "prefill", "decode"];

/// Endings of files that a command reads or runs.
const READ: [&str; 3] = [".yaml", ".yml", ".sh"];

impl SavedPlan {
    pub fn text(&self) -> Result<Option<String>, Error> {
        let Some(path) = &self.plan_from else { return Ok(None) };
        let text = match path.to_str() {
            Some(stdin::STDIN) => {
                let fix = "write e.g. `mantile-opt explain --from - < answer.json`";
                stdin::text("plan-from", "a saved answer on standard input", fix)?
            }
            _ => file::read_json(path, FileSizeLimit::Answer)?,
        };
        Ok(Some(text))
    }
}

impl PlannedArgs {
    /// The scenario of flags and files, with its deployment; flags take precedence.
    pub fn scenario(&self) -> Result<Scenario, Error> {
        self.scenario_of(self.saved.text()?)
    }

    /// The same for the text of the file.
    pub fn scenario_of(&self, text: Option<String>) -> Result<Scenario, Error> {
        let PlannedArgs { problem, deployment, saved } = self;
        let (Some(text), Some(path)) = (text, &saved.plan_from) else { return problem.scenario(deployment) };
        let (scenario, deployment) = of_saved(&text, saved.pick.as_deref(), &problem.scenario, deployment)
            .map_err(|fault| fault.in_file(path.display().to_string()))?;
        // A saved result has all its inputs: defaults of today are none of them.
        let defaults = match is_saved_answer(&text) {
            true => problem.defaults.without(),
            false => problem.defaults.clone(),
        };
        ProblemArgs { scenario, defaults, ..problem.clone() }.scenario(&deployment)
    }
}
