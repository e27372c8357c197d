//! `explain`: one number, down to its source data.

use super::build_candidate::candidate;
use super::estimate::{SavedPlan, stated};
use super::output::{OutputArgs, OutputFormat, json};
use super::question::QuestionArgs;
use super::{CliError, ExitStatus, ask};
use crate::quantity::ledger::Ledger;
use crate::report::answer::{estimated, forbidden};
use crate::report::explain::{explained, leaves};
use crate::search::run::{UNWATCHED, run};
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::limits::{DEPTH, whole};
use crate::spec::notation::PlanText;
use crate::spec::text::suggest;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::ResolvedScenario;

/// A number that can be explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Number {
    /// Time per output token
    #[default]
    Tpot,
    /// Time to first token
    Ttft,
    /// Output tokens per second of the whole deployment
    OutputTokS,
    /// Memory of the fullest device
    Memory,
    /// USD per million output tokens
    UsdPerMtok,
}

/// The flags of `explain`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Explain {
    /// Number to explain: tpot, ttft, output_tok_s, memory or usd_per_mtok
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "NUMBER",
        hide_possible_values = true,
        help_heading = "Number to explain"
    )]
    pub number: Number,
    /// Show only the terms under this path, e.g. decode/layer/attention
    #[arg(long, value_name = "PATH", help_heading = "Number to explain")]
    pub path: Option<String>,
    /// Depth of the tree, in levels
    #[arg(long, value_name = "N", value_parser = whole(&DEPTH), help_heading = "Number to explain")]
    pub depth: Option<u64>,
    /// The problem.
    #[command(flatten)]
    pub question: QuestionArgs,
    /// The deployment; the best one if absent.
    #[command(flatten)]
    pub deployment: Deployment,
    /// A file with the deployment.
    #[command(flatten)]
    pub saved: SavedPlan,
    /// The output flags.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Explain {
    /// Resolves the problem and explains the number.
    ///
    /// # Errors
    /// The problem is faulty, or the output cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let (question, deployment) = self.saved.filled(&self.question, &self.deployment)?;
        let (problem, plan) = stated(catalog, &question, &deployment)?;
        self.answer(&problem, problem.deployment.is_some().then_some(&plan))
    }

    fn answer(&self, problem: &ResolvedScenario, plan: Option<&PlanText>) -> Result<ExitStatus, CliError> {
        let question = problem.question()?;
        let candidate = if let Some(plan) = plan {
            Some(candidate(&question, plan)?)
        } else {
            run(&question, &UNWATCHED).best.map(|found| found.candidate)
        };
        let Some(candidate) = candidate else {
            let text = "no feasible deployment, so no number to explain; `optimize` reports the reasons\n";
            self.output.write(text)?;
            return Ok(ExitStatus::Infeasible);
        };
        let broken = forbidden(&question, &candidate);
        if !broken.is_empty() {
            let broken: Vec<String> = broken.iter().map(ToString::to_string).collect();
            let text = format!("the deployment cannot run, so no number to explain: {}\n", broken.join("; "));
            self.output.write(&text)?;
            return Ok(ExitStatus::Infeasible);
        }
        let ledger = Ledger::new();
        let evaluation = candidate.evaluate(&&ledger, &question, &mut ());
        let metrics = &evaluation.metrics;
        let number = match self.number {
            Number::Tpot => Some(metrics.tpot),
            Number::Ttft => Some(metrics.ttft),
            Number::OutputTokS => Some(metrics.output_tok_s),
            Number::Memory => Some(evaluation.memory.total),
            Number::UsdPerMtok => metrics.usd_per_token,
        };
        let Some(number) = number else {
            return Err(Error::new(
                "number",
                "usd_per_mtok, for a device without a known price",
                "a device with a price",
                "set one with --usd-per-device-hour",
            )
            .into());
        };
        let number = match &self.path {
            None => number,
            Some(path) => ledger.find(path, None).ok_or_else(|| {
                let paths = ledger.paths();
                let fix = suggest(path, paths.iter().map(String::as_str), "explain without --path");
                let expected = format!("one of {}", paths.join(", "));
                Error::new("path", format!("`{path}`"), expected, fix)
            })?,
        };
        let violations =
            estimated(&question, ask::report_inputs(problem, &question), &candidate).candidate.violations;
        let depth = self.depth.unwrap_or(LEVELS) as usize;
        let explanation = ledger.explain(number, depth);
        let text = match self.output.format {
            OutputFormat::Table => explained(&candidate, &question, &explanation, depth, &violations),
            OutputFormat::Json => json(&explanation),
            OutputFormat::Csv => leaves(&ledger.leaves(number)),
        };
        self.output.found(&text)
    }
}

/// Default depth, in levels.
const LEVELS: u64 = 3;
