//! `explain`: one number, down to its source data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::build_candidate::candidate;
use super::estimate::with_plan;
use super::inputs::report_inputs;
use crate::quantity::ledger::{Explanation, Leaf, Ledger};
use crate::report::answer::{estimate_result, forbidden};
use crate::search::candidate::Candidate;
use crate::search::problem::Problem;
use crate::search::run::run;
use crate::serving::evaluate::Evaluation;
use crate::spec::error::Error;
use crate::spec::limits::DEPTH;
use crate::spec::scenario::Scenario;
use crate::spec::text::suggest;
use crate::store::catalog::Catalog;

/// A number that can be explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "cli", value(rename_all = "snake_case"))]
pub enum Number {
    /// Time per output token
    #[default]
    Tpot,
    /// Time to first token
    Ttft,
    /// Time of a whole request
    E2e,
    /// Output tokens per second of the whole deployment
    OutputTokS,
    /// Output tokens per second and device
    OutputTokSPerDevice,
    /// Output tokens per second and user
    OutputTokSPerUser,
    /// Requests per second of the whole deployment
    RequestsPerS,
    /// Concurrent requests of the whole deployment
    Concurrency,
    /// Memory of the fullest device
    Memory,
    /// Longest context that fits
    MaxContext,
    /// USD per million output tokens
    UsdPerMtok,
    /// Power of the devices
    Watts,
    /// Output tokens per joule
    TokPerJoule,
}

impl Number {
    /// The number of an evaluation; `None` where it is unknown.
    fn of<T: Copy>(self, evaluation: &Evaluation<T>) -> Option<T> {
        let metrics = &evaluation.metrics;
        match self {
            Number::Tpot => Some(metrics.tpot),
            Number::Ttft => Some(metrics.ttft),
            Number::E2e => Some(metrics.e2e),
            Number::OutputTokS => Some(metrics.output_tok_s),
            Number::OutputTokSPerDevice => Some(metrics.output_tok_s_per_device),
            Number::OutputTokSPerUser => Some(metrics.output_tok_s_per_user),
            Number::RequestsPerS => Some(metrics.requests_per_s),
            Number::Concurrency => Some(metrics.in_flight),
            Number::Memory => Some(evaluation.memory.total),
            Number::MaxContext => Some(metrics.max_context),
            Number::UsdPerMtok => metrics.usd_per_token,
            Number::Watts => metrics.watts,
            Number::TokPerJoule => metrics.tok_per_joule,
        }
    }
}

/// A request of `explain`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExplainRequest {
    /// The problem, with its `deployment`; without one the best deployment is explained.
    pub scenario: Scenario,
    /// The number.
    pub number: Number,
    /// Explains the term at this path of the number.
    pub path: Option<String>,
    /// Levels of the tree.
    pub depth: Option<u64>,
}

/// A report of `explain`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ExplainReport {
    /// The number.
    Explained(Box<Explanation>),
    /// There is no such number.
    Infeasible {
        /// The reason.
        infeasible: String,
    },
}

/// An explained number with the deployment it belongs to.
pub struct Explained {
    /// The problem.
    pub problem: Problem,
    /// The deployment.
    pub candidate: Candidate,
    /// The number.
    pub explanation: Explanation,
    /// Its inputs.
    pub leaves: Vec<Leaf>,
    /// Levels of the tree.
    pub depth: usize,
    /// The constraints that the deployment violates.
    pub violations: Vec<String>,
}

/// Default depth, in levels.
const LEVELS: u64 = 3;

/// Explains the number.
///
/// # Errors
/// The problem, the deployment, the number or the path is faulty.
pub fn explain(
    catalog: &Catalog,
    request: &ExplainRequest,
    control: &RequestControl,
) -> Result<ExplainReport, Error> {
    Ok(match explained(catalog, request, control)? {
        Ok(found) => ExplainReport::Explained(Box::new(found.explanation)),
        Err(infeasible) => ExplainReport::Infeasible { infeasible },
    })
}

/// The explained number with its deployment, or the reason why there is none.
///
/// # Errors
/// As [`explain`].
pub fn explained(
    catalog: &Catalog,
    request: &ExplainRequest,
    control: &RequestControl,
) -> Result<Result<Explained, String>, Error> {
    request.depth.map_or(Ok(()), |depth| DEPTH.check_whole("depth", depth))?;
    let (resolved, plan) = with_plan(catalog, &request.scenario)?;
    let problem = resolved.problem()?;
    let candidate = match resolved.deployment {
        Some(_) => Some(candidate(&problem, &plan)?),
        None => run(&problem, &control.search).best.map(|found| found.candidate),
    };
    let Some(candidate) = candidate else {
        let reason = "no feasible deployment, so no number to explain; `optimize` reports the reasons";
        return Ok(Err(reason.to_owned()));
    };
    let broken = forbidden(&problem, &candidate);
    if !broken.is_empty() {
        let broken: Vec<String> = broken.iter().map(ToString::to_string).collect();
        let broken = broken.join("; ");
        return Ok(Err(format!("the deployment cannot run, so no number to explain: {broken}")));
    }
    let ledger = Ledger::new();
    let evaluation = candidate.evaluate(&&ledger, &problem, &mut ());
    let number = request.number.of(&evaluation).ok_or_else(|| match request.number {
        Number::UsdPerMtok => {
            let found = "usd_per_mtok, for a device without a known price";
            Error::new("number", found, "a device with a price", "set one with --usd-per-device-hour")
        }
        _ => {
            let found = "a power figure, for a device without a known power";
            Error::new("number", found, "a device with `power` in its file", "explain another number")
        }
    })?;
    let number = match &request.path {
        None => number,
        Some(path) => ledger.find(path, None).ok_or_else(|| {
            let paths = ledger.paths();
            let fix = suggest(path, paths.iter().map(String::as_str), "explain without --path");
            Error::new("path", format!("`{path}`"), format!("one of {}", paths.join(", ")), fix)
        })?,
    };
    let violations =
        estimate_result(&problem, report_inputs(&resolved, &problem), &candidate).candidate.violations;
    let depth = request.depth.unwrap_or(LEVELS) as usize;
    let (explanation, leaves) = (ledger.explain(number, depth), ledger.leaves(number));
    Ok(Ok(Explained { problem, candidate, explanation, leaves, depth, violations }))
}
