//! `estimate`: evaluates one given deployment with the metrics of `optimize`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::build_candidate::candidate;
use super::output::{OutputArgs, OutputFormat, json};
use super::question::QuestionArgs;
use super::{CliError, ExitStatus, ask};
use crate::report::answer::estimated;
use crate::report::rows::csv;
use crate::report::text::estimate;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::notation::PlanText;
use crate::spec::scenario::Scenario;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::file;
use crate::store::resolved_scenario::ResolvedScenario;

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
  mantile-opt estimate --plan-from answer.json --pick front/7";

/// The flags of `estimate`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = AFTER)]
pub struct Estimate {
    /// The problem.
    #[command(flatten)]
    pub question: QuestionArgs,
    /// The deployment.
    #[command(flatten)]
    pub deployment: Deployment,
    /// A file with the deployment.
    #[command(flatten)]
    pub saved: SavedPlan,
    /// The output flags.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A plan in a file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SavedPlan {
    /// Read the plan and problem from a saved result (flags override the problem), or from a deployment file
    #[arg(long, value_name = "FILE.json", help_heading = "The deployment")]
    pub plan_from: Option<PathBuf>,
    /// Row of the saved result: best, nearest, alternatives/N or front/N [default: best]
    #[arg(long, value_name = "ROW", requires = "plan_from", help_heading = "The deployment")]
    pub pick: Option<String>,
}

impl Estimate {
    /// Resolves the problem and evaluates the deployment.
    ///
    /// # Errors
    /// The problem is faulty, or the output cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let (question, deployment) = self.saved.filled(&self.question, &self.deployment)?;
        let (problem, plan) = stated(catalog, &question, &deployment)?;
        self.answer(&problem, &plan)
    }

    fn answer(&self, problem: &ResolvedScenario, plan: &PlanText) -> Result<ExitStatus, CliError> {
        let question = problem.question()?;
        let estimated =
            estimated(&question, ask::report_inputs(problem, &question), &candidate(&question, plan)?);
        let text = match self.output.format {
            OutputFormat::Table => estimate(&estimated),
            OutputFormat::Json => json(&estimated),
            OutputFormat::Csv => csv(std::slice::from_ref(&estimated.candidate)),
        };
        self.output.write(&text)?;
        Ok(if estimated.candidate.metrics.is_some() { ExitStatus::Found } else { ExitStatus::Infeasible })
    }
}

/// The problem and its given plan; an empty plan is one replica on one device. Formats of the plan are added to those
/// of the problem.
///
/// # Errors
/// The problem or the plan is faulty.
pub fn stated(
    catalog: &Catalog,
    question: &QuestionArgs,
    deployment: &Deployment,
) -> Result<(ResolvedScenario, PlanText), Error> {
    let scenario = question.scenario(deployment)?;
    let problem = question.resolved(catalog, &scenario)?;
    let plan = problem.deployment.clone().unwrap_or_default().text()?;
    let of = |id: &Option<String>, known: &[crate::spec::precision::FormatOption]| {
        id.as_ref().is_none_or(|id| known.iter().any(|choice| choice.format.id == *id))
    };
    if of(&plan.weights, &problem.weight_formats) && of(&plan.kv, &problem.kv_formats) {
        return Ok((problem, plan));
    }
    let named = |key: &str, stated: &Option<String>, named: &Option<String>| match (stated, named) {
        (Some(stated), Some(named)) if stated != named && stated != "any" => {
            let found = format!("`{named}` in the plan, `{stated}` as a flag");
            Err(Error::new(key, found, "one of them", format!("omit --{key}")))
        }
        _ => Ok(named.clone().or(stated.clone())),
    };
    let scenario = Scenario {
        weight_format: named("weight-format", &scenario.weight_format, &plan.weights)?,
        kv_format: named("kv-format", &scenario.kv_format, &plan.kv)?,
        ..scenario
    };
    let problem = ResolvedScenario::resolve(catalog, &scenario)?;
    // A format may have several names.
    let id = |named: &Option<String>, known: &[crate::spec::precision::FormatOption]| {
        named.as_ref().and(known.first()).map(|choice| choice.format.id.clone())
    };
    let (weights, kv) = (id(&plan.weights, &problem.weight_formats), id(&plan.kv, &problem.kv_formats));
    Ok((problem, PlanText { weights, kv, ..plan }))
}

impl SavedPlan {
    /// The problem and the deployment with those of the file; flags take precedence.
    ///
    /// # Errors
    /// The file is neither a saved result nor a deployment.
    pub fn filled(
        &self,
        question: &QuestionArgs,
        flags: &Deployment,
    ) -> Result<(QuestionArgs, Deployment), Error> {
        let Some(path) = &self.plan_from else { return Ok((question.clone(), flags.clone())) };
        let name = path.display().to_string();
        self.read(path, question, flags)
            .map_err(|fault| if fault.file.is_empty() { fault.in_file(name) } else { fault })
    }

    fn read(
        &self,
        path: &Path,
        question: &QuestionArgs,
        flags: &Deployment,
    ) -> Result<(QuestionArgs, Deployment), Error> {
        let text = file::read(path)?;
        let saved: Value = from_json(&text, "a saved result or a deployment")?;
        if saved.get("question").is_none() && saved.get("best").is_none() {
            let filed: Deployment = from_json(&text, "a deployment")?;
            return Ok((question.clone(), flags.clone().or(filed)));
        }
        let row = self.row(&saved)?;
        let plan = row.get("notation").and_then(Value::as_str).ok_or_else(|| {
            let fix = "save the result again with `mantile-opt ... --format json --out answer.json`";
            Error::new("notation", "no one-line plan", "the plan of that row", fix)
        })?;
        let filed = match saved.get("scenario") {
            Some(scenario) if scenario.is_object() => from_json(&scenario.to_string(), "scenario")?,
            _ => Scenario::default(),
        };
        let plan = flags.plan.clone().unwrap_or_else(|| plan.to_string());
        let deployment = Deployment { plan: Some(plan), ..flags.clone() };
        let stated = question.stated.clone().or(filed);
        Ok((QuestionArgs { stated, ..question.clone() }, deployment))
    }

    /// The selected row.
    fn row<'a>(&self, saved: &'a Value) -> Result<&'a Value, Error> {
        let picked = self.pick.as_deref().unwrap_or("best");
        // A result of `estimate` is itself a row.
        let whole = (self.pick.is_none() && saved.get("best").is_none()).then_some(saved);
        let row = whole.or_else(|| match picked.split_once('/') {
            Some((list, at)) => saved.get(list)?.get(at.parse::<usize>().ok()?),
            None => saved.get(picked).map(|row| row.get("candidate").unwrap_or(row)),
        });
        row.filter(|row| row.is_object()).ok_or_else(|| {
            let fix = "set --pick to best, nearest, alternatives/0 … or front/0 …";
            Error::new(
                "pick",
                format!("`{picked}`, which the result does not contain"),
                "a row of the result",
                fix,
            )
        })
    }
}
