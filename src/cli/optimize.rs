//! `optimize`: the best deployment and the Pareto front.

use std::io::Write;
use std::path::PathBuf;

use super::deadline::watched;
use super::output::{OutputArgs, OutputFormat, json};
use super::place::PlaceArgs;
use super::question::QuestionArgs;
use super::remedy::InfeasibleProblem;
use super::{CliError, ExitStatus, ask};
use crate::report::answer::answer;
use crate::report::proof::Proof;
use crate::report::result::OptimizeResult;
use crate::report::rows::csv;
use crate::report::text::table;
use crate::search::outcome::Status;
use crate::search::run::{Control, run};
use crate::spec::deployment::Deployment;
use crate::spec::limits::{TIME_LIMIT, number};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::file;
use crate::store::resolved_scenario::ResolvedScenario;

/// The flags of `optimize`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Optimize {
    /// The problem.
    #[command(flatten)]
    pub question: QuestionArgs,
    /// Add the analysis: best of each strategy, crossover to the runner-up, sensitivity to constraints
    #[arg(long, help_heading = "Output")]
    pub why: bool,
    /// Stop after S seconds and report the best found so far [default: no limit]
    #[arg(long, value_name = "S", value_parser = number(&TIME_LIMIT), help_heading = "Search space")]
    pub time_limit: Option<f64>,
    /// The output flags.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Write the Pareto front to a file; the ending selects CSV or JSON
    #[arg(long, value_name = "FILE.csv|.json", help_heading = "Output")]
    pub pareto_out: Option<PathBuf>,
}

impl Optimize {
    /// Resolves the problem and optimises it.
    ///
    /// # Errors
    /// The problem is faulty, or the output cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let scenario = self.question.scenario(&Deployment::default())?;
        // A rig has heterogeneous devices: the problem is a placement of layers.
        if scenario.hardware.as_deref().is_some_and(|name| catalog.has_rig(name)) {
            let place = PlaceArgs::asked_by(catalog, scenario, self.output.clone())?;
            return PlaceArgs { time_limit: self.time_limit, ..place }.run(catalog);
        }
        let problem = self.question.resolved(catalog, &scenario)?;
        self.answer(catalog, &problem, scenario)
    }

    fn answer(
        &self,
        catalog: &Catalog,
        problem: &ResolvedScenario,
        scenario: Scenario,
    ) -> Result<ExitStatus, CliError> {
        let question = problem.question()?;
        let (outcome, why) = watched(self.time_limit, |control| run(&question, control));
        let stopped = matches!(outcome.status, Status::Feasible | Status::Unknown);
        let stopped_by = why.filter(|_| stopped);
        let lower = ask::lower_format(problem, &outcome)?;
        let whole = self.pareto_out.is_some() || self.output.format != OutputFormat::Table;
        let most = if whole { usize::MAX } else { DRAWN };
        let told = answer(&question, ask::report_inputs(problem, &question), &outcome, lower, most);
        let proof = Proof { stopped_by, ..told.proof };
        let why =
            outcome.best.as_ref().filter(|_| self.why && !stopped).and_then(|best| ask::why(&question, best));
        let conflict = (outcome.status == Status::Infeasible).then(|| {
            let (question, scenario) = (&question, &scenario);
            let conflict = |control: &Control| {
                InfeasibleProblem { catalog, scenario, problem, question, control }.conflict()
            };
            watched(self.time_limit, conflict).0
        });
        let answer = OptimizeResult { proof, scenario: Some(scenario), why, conflict, ..told };
        if let Some(path) = &self.pareto_out {
            let rows = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
            let text = if rows { csv(&answer.front) } else { json(&answer.front) };
            file::write(path, &text)?;
        }
        let text = match self.output.format {
            OutputFormat::Table => table(&answer),
            OutputFormat::Json => json(&answer),
            OutputFormat::Csv => csv(&answer.front),
        };
        self.output.write(&text)?;
        Ok(answer.status.into())
    }
}

/// Maximum number of front points in a terminal plot.
const DRAWN: usize = 1000;

/// Prints further commands, after a run without arguments.
///
/// # Errors
/// Standard error is closed.
pub fn hint() -> Result<(), CliError> {
    let mut out = anstream::stderr().lock();
    writeln!(out, "\nExample: Llama-3.3-70B on one HGX H100 node. For your own model and hardware:")?;
    writeln!(out, "  mantile-opt --model Qwen3-32B --hardware 4xl40s --objective perf-per-dollar")?;
    writeln!(out, "  mantile-opt catalog models|devices|systems|objectives   list the catalogue")?;
    writeln!(out, "  mantile-opt explain --number tpot                       trace a number to its sources")?;
    writeln!(out, "  mantile-opt --help                                      all commands and flags")?;
    Ok(())
}
