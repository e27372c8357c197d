//! A saved recommendation asked again: its builds and what it passed over, each resolved from the catalogue.

use serde_json::Value;

use super::explore::{for_hardware, for_model, market, serving};
use crate::cli::output::value;
use crate::cli::progress::counted;
use crate::report::recommend::Requirements;
use crate::report::verify::Verified;
use crate::report::verify::recommend::{builds, estimated, held, missed, verify};
use crate::search::question::Problem;
use crate::search::sizing::size;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::inventory::{SystemOption, qualities};
use crate::store::resolved_scenario::DEFAULT_MODEL;

/// Systems said not to serve that are looked at again, at most.
const MOST_MISSED: usize = 40;

/// What is sought, asked again, and what it comes to.
pub struct RecommendRerun {
    scenario: Scenario,
    sought: Requirements,
    lots: Vec<SystemOption>,
    of_machine: bool,
    fresh: Value,
}

impl RecommendRerun {
    /// Asks again.
    ///
    /// # Errors
    /// The question does not resolve any more.
    pub fn again(
        catalog: &Catalog,
        (scenario, sought): (Scenario, Requirements),
        of_machine: bool,
    ) -> Result<RecommendRerun, Error> {
        let (objective, workload) = catalog.aim(&scenario)?;
        // What the scenario says of it is read there.
        let mut sought = Requirements {
            target_tok_s: objective.limits.tpot.map_or(sought.target_tok_s, |tpot| 1.0 / tpot),
            isl: workload.isl,
            osl: workload.osl,
            prefix: workload.prefix,
            limits: objective.limits,
            ..sought
        };
        let fresh = if of_machine {
            value(&for_hardware(catalog, &scenario, &mut sought)?)
        } else {
            value(&for_model(catalog, &scenario, &mut sought)?)
        };
        let lots = market(catalog, &scenario, &sought)?.lots;
        Ok(RecommendRerun { scenario, sought, lots, of_machine, fresh })
    }

    /// Checks a saved answer.
    pub fn check(&self, catalog: &Catalog, saved: &Value, (count, seed): (u64, u64)) -> Verified {
        let told = if self.of_machine { held(saved) } else { builds(saved) };
        let faults = counted(&told, |build| {
            let name = build["name"].as_str().unwrap_or_default().to_string();
            (name, self.build(catalog, build))
        });
        let misses = saved["missed"].as_array().map_or(&[][..], Vec::as_slice);
        let some = misses.iter().step_by(misses.len().div_ceil(MOST_MISSED).max(1));
        let some: Vec<&Value> = some.collect();
        let questions: Vec<_> = counted(&some, |miss| self.passed_over(catalog, miss));
        let questions: Vec<(String, Problem)> = questions.into_iter().flatten().collect();
        let missed = missed(&questions, (count, seed));
        verify(&self.sought, (saved, &self.fresh), faults, missed, seed)
    }

    /// What is wrong with a build.
    fn build(&self, catalog: &Catalog, build: &Value) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let (system, format) = (text(&build["system"]), text(&build["each"]["weight_format"]));
        let Some(lot) = self.lots.iter().find(|lot| lot.id == system) else {
            return vec![format!("system: {system} is not on offer")];
        };
        let model = self.scenario.model.clone().unwrap_or_else(|| text(&build["model"]));
        let problems = catalog
            .built(&model)
            .and_then(|(model, graph)| qualities(catalog, &self.scenario, (&model, &graph), &lot.cluster));
        let problems = match problems {
            Ok(problems) => problems,
            Err(fault) => return vec![format!("{}; {} expected", fault.found, fault.expected)],
        };
        let runs = problems
            .iter()
            .find(|(problem, _)| problem.weight_formats.iter().any(|choice| choice.format.id == format));
        let Some((problem, kept)) = runs else {
            return vec![format!("each.weight_format: {format} does not run on {system}")];
        };
        match problem.question() {
            Err(fault) => vec![format!("{}; {} expected", fault.found, fault.expected)],
            Ok(question) => match size(&question, self.sought.users) {
                Err(unfit) => vec![format!("it does not serve: {}", unfit.reason)],
                Ok(sized) => {
                    estimated(build, &serving(problem, &question, &sized, (*kept, lot)), &self.sought)
                }
            },
        }
    }

    /// What a system, or a model, that is said not to serve was asked: nothing where it is none that could.
    fn passed_over(&self, catalog: &Catalog, miss: &Value) -> Vec<(String, Problem)> {
        let name = miss["name"].as_str().unwrap_or_default();
        let lot = if self.of_machine {
            self.lots.first()
        } else {
            self.lots.iter().find(|lot| lot.cluster.name == name)
        };
        let model = if self.of_machine { Some(name) } else { self.scenario.model.as_deref() };
        let model = catalog.built(model.unwrap_or(DEFAULT_MODEL));
        let (Some(lot), Ok((model, graph))) = (lot, model) else { return vec![] };
        // Too many users for one copy of a machine is no question of whether it serves one.
        if miss["kind"] == "users" {
            return vec![];
        }
        let problems = qualities(catalog, &self.scenario, (&model, &graph), &lot.cluster);
        let problems = problems.unwrap_or_default();
        let asked = problems.iter().filter_map(|(problem, _)| problem.question().ok());
        asked
            .filter(|question| question.context_fits().is_ok())
            .map(|question| (name.to_string(), question))
            .collect()
    }
}
