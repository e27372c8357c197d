//! `explain`: one number, down to its source data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestControl;
use super::build_candidate::candidate;
use super::explained_placement::{ExplainedPlacement, explained_placement};
use super::given_plan::with_plan;
use crate::quantity::ledger::{Ledger, Traced};
use crate::quantity::num::Qty;
use crate::report::answer::estimate_deployment;
use crate::report::explain::{ExplainedInterval, ExplainedNumber, candidate_words, interval_of};
use crate::search::decide::decided;
use crate::serving::evaluate::Evaluation;
use crate::spec::error::Error;
use crate::spec::limits::DEPTH;
use crate::spec::metric_table::metric_table;
use crate::spec::near::suggest;
use crate::spec::objective::{Metric, MetricInput};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// Makes [`Number`] from the rows of the table.
macro_rules! numbers {
    ($($metric:ident {
        name: $name:literal, column: $column:ident, scale: $scale:expr,
        direction: $direction:ident, format: $format:ident, needs: $needs:ident,
        word: $word:literal, heading: $heading:literal, formula: $formula:expr,
        meaning: $meaning:literal,
        $($rest:tt)*
    })*) => {
        /// A number that can be explained: every metric, the concurrency and the memory.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
        #[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
        #[serde(rename_all = "snake_case")]
        #[cfg_attr(feature = "cli", value(rename_all = "snake_case"))]
        pub enum Number {
            $(
                #[doc = $meaning]
                $metric,
            )*
            /// concurrent requests of the whole deployment
            Concurrency,
            /// memory of the fullest device
            Memory,
        }

        impl Default for Number {
            fn default() -> Number {
                Number::Tpot
            }
        }

        impl Number {
            /// Every name.
            pub const NAMES: &[&str] = &[$($name,)* "concurrency", "memory"];

            /// The metric; `None` for the other two.
            fn metric(self) -> Option<Metric> {
                match self {
                    $(Number::$metric => Some(Metric::$metric),)*
                    Number::Concurrency | Number::Memory => None,
                }
            }

            /// The number of an evaluation; `None` where it is unknown.
            fn of<T: Copy>(self, evaluation: &Evaluation<T>) -> Option<T> {
                match self {
                    $(Number::$metric => evaluation.metrics.get(Metric::$metric),)*
                    Number::Concurrency => Some(evaluation.metrics.in_flight),
                    Number::Memory => Some(evaluation.memory.total),
                }
            }
        }
    };
}

metric_table!(numbers);

impl Number {
    /// The fault of a number that is unknown because an input is.
    fn unknown(self) -> Error {
        let entry = self.metric().map(Metric::entry);
        match entry.map_or(MetricInput::Nothing, |entry| entry.needs) {
            MetricInput::Price => {
                let name = entry.map_or("a cost", |entry| entry.name);
                let found = format!("{name}, for a device without a known price");
                Error::new("number", found, "a device with a price", "set one with --usd-per-device-hour")
            }
            MetricInput::Power => {
                let found = "a power figure, for a device without a known power";
                Error::new("number", found, "a device with `power` in its file", "explain another number")
            }
            MetricInput::Nothing => {
                let found = "a number without a value";
                Error::new("number", found, "a number of this deployment", "explain another number")
            }
        }
    }
}

/// A request of `explain`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExplainRequest {
    /// The problem, with its `deployment`; without one the best deployment is explained.
    pub scenario: Scenario,
    /// A saved answer of `place`, whose placement is explained in place of a deployment: its tpot, ttft or e2e.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Value>,
    /// The number.
    pub number: Number,
    /// Explains the term at this path of the number.
    pub path: Option<String>,
    /// Levels of the tree.
    pub depth: Option<u64>,
}

/// A report of `explain`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ExplainReport {
    /// The number.
    Explained(Box<ExplainedNumber>),
    /// There is no such number.
    Infeasible {
        /// The reason.
        infeasible: String,
    },
}

/// Default depth, in levels.
const LEVELS: u64 = 3;

/// Explains the number.
pub fn explain(
    catalog: &Catalog,
    request: &ExplainRequest,
    control: &RequestControl,
) -> Result<ExplainReport, Error> {
    Ok(match explained(catalog, request, control)? {
        Ok(found) => ExplainReport::Explained(Box::new(found)),
        Err(infeasible) => ExplainReport::Infeasible { infeasible },
    })
}

/// The explained number with its deployment, or the reason why there is none.
fn explained(
    catalog: &Catalog,
    request: &ExplainRequest,
    control: &RequestControl,
) -> Result<Result<ExplainedNumber, String>, Error> {
    request.depth.map_or(Ok(()), |depth| DEPTH.check_whole("depth", depth))?;
    if let Some(saved) = &request.placement {
        return Ok(match explained_placement(catalog, saved)? {
            Ok(placement) => Ok(request.explained_time(&placement)?),
            Err(reason) => Err(reason),
        });
    }
    let (resolved, plan) = with_plan(catalog, &request.scenario)?;
    let problem = resolved.problem()?;
    let candidate = match resolved.deployment {
        Some(_) => Some(candidate(&problem, &plan)?),
        None => decided(problem.clone(), &control.search).shown().map(|found| found.candidate.clone()),
    };
    let Some(candidate) = candidate else {
        let reason = "no feasible deployment, so no number to explain; `optimize` reports the reasons";
        return Ok(Err(reason.to_owned()));
    };
    let estimated = estimate_deployment(&problem, &candidate);
    let needs_no_run = request.number == Number::Memory && estimated.memory.is_some();
    if estimated.metrics.is_none() && !needs_no_run {
        let broken = estimated.violations.join("; ");
        return Ok(Err(format!("the deployment cannot run, so no number to explain: {broken}")));
    }
    let ledger = Ledger::new();
    let evaluation = candidate.evaluate(&&ledger, &problem, &mut ());
    let number = request.number.of(&evaluation).ok_or_else(|| request.number.unknown())?;
    let number = request.term(&ledger, number)?;
    let interval = match &request.path {
        None => request.number.metric().and_then(|metric| {
            let measured = resolved.nearest_measured(&estimated.weight_format);
            interval_of(metric, estimated.intervals.as_ref()?, measured)
        }),
        Some(_) => None,
    };
    let of = candidate_words(&problem, &candidate);
    Ok(Ok(request.explained(&ledger, number, (of, interval, estimated.violations))))
}

impl ExplainRequest {
    /// A time of a placement.
    fn explained_time(&self, placement: &ExplainedPlacement) -> Result<ExplainedNumber, Error> {
        let ledger = Ledger::new();
        let times = placement.times(&&ledger);
        let number = match self.number {
            Number::Tpot => times.token,
            Number::Ttft => times.prefill,
            Number::E2e => times.request,
            _ => {
                let fix = "explain --number tpot, ttft or e2e";
                return Err(Error::new("number", "no time of a placement", "tpot, ttft or e2e", fix));
            }
        };
        let number = self.term(&ledger, number)?;
        Ok(self.explained(&ledger, number, (placement.words.clone(), None, vec![])))
    }

    /// The term at the path of the request, or the number itself.
    fn term<'l>(&self, ledger: &'l Ledger, number: Qty<Traced<'l>>) -> Result<Qty<Traced<'l>>, Error> {
        let Some(path) = &self.path else { return Ok(number) };
        ledger.find(path).ok_or_else(|| {
            let paths = ledger.paths();
            let fix = suggest(path, paths.iter().map(String::as_str), "explain without --path");
            Error::new("path", format!("`{path}`"), format!("one of {}", paths.join(", ")), fix)
        })
    }

    /// The number with its tree and its inputs.
    fn explained<'l>(
        &self,
        ledger: &'l Ledger,
        number: Qty<Traced<'l>>,
        (of, interval, violations): (String, Option<ExplainedInterval>, Vec<String>),
    ) -> ExplainedNumber {
        let depth = self.depth.unwrap_or(LEVELS) as usize;
        let inputs = ledger.leaves(number);
        ExplainedNumber { number: ledger.explain(number, depth), of, violations, inputs, interval }
    }
}
