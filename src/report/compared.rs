//! Results next to the optimum: of other runtimes, and of the best plan that any router balances.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::result::{OptimizeResult, ReportedDeployment};
use crate::search::outcome::Status;
use crate::spec::objective::{Direction, ObjectiveTerm};

/// The result of one runtime, where several were compared.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeTrial {
    /// The runtime.
    pub runtime: String,
    /// Its proof status; null where it does not run this.
    pub status: Option<Status>,
    /// The first metric of the objective, in its unit; null if infeasible.
    pub objective: Option<f64>,
    /// The reason that it does not run this.
    pub reason: Option<String>,
}

impl OptimizeResult {
    /// Whether the axes of the front were stated.
    pub(crate) fn states_axes(&self) -> bool {
        self.scenario.as_ref().is_some_and(|scenario| scenario.pareto.is_some())
    }

    /// The optimum of the formulas, to which the proof belongs.
    pub fn optimum(&self) -> Option<&ReportedDeployment> {
        self.formulas_best.as_ref().or(self.best.as_ref())
    }

    /// The optimum where its front is listed without it: another point is better on every stated axis.
    pub(crate) fn outside_front(&self) -> Option<&ReportedDeployment> {
        let without =
            self.states_axes() && !self.front.is_empty() && !self.front.iter().any(|row| row.chosen);
        self.optimum().filter(|_| without)
    }

    /// Whether its optimum is before that of `other` by the objective; any optimum is before none.
    pub fn is_better(&self, other: &OptimizeResult) -> bool {
        match (self.optimum(), other.optimum()) {
            (Some(best), Some(known)) => best.is_better(known, &self.question.optimize),
            (best, known) => best.is_some() && known.is_none(),
        }
    }
}

impl ReportedDeployment {
    /// Whether it is before `other` by `terms`.
    pub fn is_better(&self, other: &ReportedDeployment, terms: &[ObjectiveTerm]) -> bool {
        for term in terms {
            let Some((a, b)) = self.figure(term.metric).zip(other.figure(term.metric)) else { continue };
            if a != b {
                return if term.direction == Direction::Minimize { a < b } else { a > b };
            }
        }
        false
    }
}

/// The best plan of like workers: any router balances their requests.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlainPlan {
    /// The plan in one line.
    pub notation: String,
    /// Label, e.g. `2 x tp4`.
    pub label: String,
    /// Its value of the first metric of the objective, in base units.
    pub value: f64,
    /// Value of the best plan, in the same units.
    pub best: f64,
}
