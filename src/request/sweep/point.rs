//! One point of a sweep: an estimate where the deployment is given, else the best deployment.

use std::fmt;

use super::shared::SharedProblems;
use crate::report::answer::{estimate_deployment, report_deployment};
use crate::report::comparison::ComparedProblem;
use crate::report::result::ReportedDeployment;
use crate::report::simulated_point::SimulatedPoint;
use crate::report::sweep::{PointOutcome, PointStatus};
use crate::request::RequestControl;
use crate::request::build_candidate::candidate;
use crate::request::given_plan::with_plan_of;
use crate::request::optimize::{OptimizeRequest, at, optimize};
use crate::request::remedy::of_each_runtime;
use crate::request::simulate::{SimulateRequest, SimulatedTraffic, simulate};
use crate::search::decide::{PlanDecision, decided};
use crate::search::outcome::{Outcome, Status};
use crate::search::run::Control;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::precision::ANY;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

pub(in crate::request) struct PointEvaluator<'a> {
    catalog: &'a Catalog,
    problems: SharedProblems<'a>,
}

pub(in crate::request) fn invalid(fault: &Error) -> PointOutcome {
    PointOutcome { status: PointStatus::Invalid, reason: Some(words(fault)), deployment: None }
}

fn words(fault: &Error) -> String {
    format!("{}: {}, expected {}", fault.key, fault.found, fault.expected)
}

impl<'a> PointEvaluator<'a> {
    pub(in crate::request) fn new(catalog: &'a Catalog) -> PointEvaluator<'a> {
        PointEvaluator { catalog, problems: SharedProblems::new(catalog) }
    }

    /// Checks that the names of a scenario resolve: a misspelt one is a fault of the sweep, not of a point.
    pub(in crate::request) fn check_names(&self, scenario: &Scenario) -> Result<(), Error> {
        self.problems.check_names(scenario)
    }

    /// Hands on all that the answer of a scenario rests on, every name resolved; the fault of one that has none.
    pub(in crate::request) fn hand_on(&self, scenario: &Scenario, part: &mut dyn FnMut(&dyn fmt::Debug)) {
        let of_runtimes = of_each_runtime(self.catalog, scenario).unwrap_or_else(|_| vec![scenario.clone()]);
        for scenario in of_runtimes {
            match self.problems.of(&scenario) {
                Ok(point) => part(point.as_ref()),
                Err(fault) => part(&fault),
            }
        }
    }

    /// The names and lengths of a scenario's problem.
    pub(in crate::request) fn resolved(&self, scenario: &Scenario) -> Result<ComparedProblem, Error> {
        let point = self.problems.of(scenario)?;
        let resolved = point.as_ref();
        Ok(ComparedProblem {
            name: String::new(),
            model: resolved.model.name.clone(),
            hardware: resolved.cluster.name.clone(),
            runtime: resolved.runtime.id.clone(),
            lengths: [resolved.workload.isl, resolved.workload.osl],
        })
    }

    /// The outcome of a point; a fault of its inputs is one.
    pub(in crate::request) fn outcome(&self, scenario: &Scenario, control: &RequestControl) -> PointOutcome {
        let pinned = scenario.deployment.as_ref().is_some_and(Deployment::is_stated);
        let found = if pinned { self.estimated(scenario) } else { self.optimized(scenario, control) };
        found.unwrap_or_else(|fault| invalid(&fault))
    }

    /// The point of this outcome under traffic: the given deployment, or the best one.
    pub(super) fn simulated(
        &self,
        scenario: &Scenario,
        traffic: &SimulatedTraffic,
        outcome: &PointOutcome,
        control: &RequestControl,
    ) -> SimulatedPoint {
        // A given deployment that a rate overloads is simulated: its queue grows.
        let pinned = scenario.deployment.as_ref().is_some_and(Deployment::is_stated);
        let planned = match &outcome.deployment {
            _ if pinned => scenario.clone(),
            Some(best) => at(scenario, best),
            None => {
                let reason = outcome.reason.clone().unwrap_or_default();
                return SimulatedPoint::without(format!("no plan that can run: {reason}"));
            }
        };
        let request =
            SimulateRequest { scenario: planned, traffic: traffic.clone(), ..SimulateRequest::default() };
        let silent = Control { progress: &|_, _| {}, stop: control.search.stop };
        let control = RequestControl { search: silent, stopped_by: control.stopped_by };
        match simulate(self.catalog, &request, &control) {
            Ok(report) => SimulatedPoint::of(&report),
            Err(fault) => SimulatedPoint::without(words(&fault)),
        }
    }

    fn estimated(&self, scenario: &Scenario) -> Result<PointOutcome, Error> {
        let (point, plan) = with_plan_of(scenario, |scenario| self.problems.of(scenario))?;
        let problem = &point.problem();
        let deployment = estimate_deployment(problem, &candidate(problem, &plan)?);
        Ok(given_outcome(deployment))
    }

    fn optimized(&self, scenario: &Scenario, control: &RequestControl) -> Result<PointOutcome, Error> {
        let silent = Control { progress: &|_, _| {}, stop: control.search.stop };
        if scenario.runtime.as_deref() == Some(ANY) {
            let request = OptimizeRequest {
                max_front_points: Some(1.into()),
                ..OptimizeRequest::best_of(scenario.clone())
            };
            let control = RequestControl { search: silent, stopped_by: control.stopped_by };
            let found = optimize(self.catalog, &request, &control)?;
            let reason = found.nearest.map(|nearest| nearest.misses);
            return Ok(PointOutcome { status: status(found.status), reason, deployment: found.best });
        }
        let point = self.problems.of(scenario)?;
        // Only the optimum is needed: without axes the search keeps no front.
        let mut problem = point.problem().clone();
        problem.axes.clear();
        let decision = decided(problem, &silent);
        let (PlanDecision { problem, outcome: found, .. }, best) = (&decision, decision.shown());
        Ok(PointOutcome {
            status: status(found.status),
            reason: best.is_none().then(|| reason(found)),
            deployment: best.map(|best| report_deployment(problem, &best.candidate)),
        })
    }
}

/// The outcome of a given deployment.
pub(in crate::request) fn given_outcome(deployment: ReportedDeployment) -> PointOutcome {
    let status = match (&deployment.metrics, deployment.violations.is_empty()) {
        (None, _) => PointStatus::Infeasible,
        (Some(_), false) => PointStatus::SloMissed,
        (Some(_), true) => PointStatus::Feasible,
    };
    let reason = (!deployment.violations.is_empty()).then(|| deployment.violations.join("; "));
    PointOutcome { status, reason, deployment: Some(deployment) }
}

pub(in crate::request) fn status(found: Status) -> PointStatus {
    match found {
        Status::Optimal => PointStatus::Optimal,
        Status::Feasible => PointStatus::Feasible,
        Status::Infeasible | Status::Unknown => PointStatus::Infeasible,
    }
}

/// Why nothing is feasible: the limits that the nearest deployment misses, else the most frequent reason.
fn reason(found: &Outcome) -> String {
    if let Some((_, missed)) = &found.nearest {
        return missed.to_string();
    }
    let most = found.census.illegal.iter().max_by_key(|(kind, refused)| (refused.count, *kind));
    most.map_or_else(|| "no candidate".to_owned(), |(_, refused)| refused.example.clone())
}
