//! Reruns a saved recommendation: its builds and rejected systems, each resolved from the catalogue.

use serde_json::Value;

use super::super::{UNCONTROLLED, value};
use super::explore::{for_hardware, for_model, market, serving};
use crate::report::recommend::Requirements;
use crate::report::verify::Verified;
use crate::report::verify::recommend::{builds, estimated, held, missed, verify};
use crate::search::problem::Problem;
use crate::search::sizing::size;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::inventory::{SystemOption, qualities};
use crate::store::resolved_scenario::DEFAULT_MODEL;

/// Maximum number of rejected systems that are evaluated again.
const MOST_MISSED: usize = 40;

/// Requirements resolved again, and their result.
pub struct RecommendRerun {
    scenario: Scenario,
    requirements: Requirements,
    systems: Vec<SystemOption>,
    of_machine: bool,
    fresh: Value,
}

impl RecommendRerun {
    /// Runs the recommendation again.
    ///
    /// # Errors
    /// The problem no longer resolves.
    pub fn rerun(
        catalog: &Catalog,
        (scenario, sought): (Scenario, Requirements),
        of_machine: bool,
    ) -> Result<RecommendRerun, Error> {
        let (objective, workload) = catalog.aim(&scenario, false)?;
        // The scenario supplies the fields that it defines.
        let mut sought = Requirements {
            target_tok_s: objective.limits.tpot.map_or(sought.target_tok_s, |tpot| 1.0 / tpot),
            isl: workload.isl,
            osl: workload.osl,
            prefix: workload.prefix,
            limits: objective.limits,
            ..sought
        };
        let fresh = if of_machine {
            value(&for_hardware(catalog, &scenario, &mut sought, &UNCONTROLLED)?)
        } else {
            value(&for_model(catalog, &scenario, &mut sought, &UNCONTROLLED)?)
        };
        let lots = market(catalog, &scenario, &sought)?.systems;
        Ok(RecommendRerun { scenario, requirements: sought, systems: lots, of_machine, fresh })
    }

    /// Checks a saved result.
    pub fn check(&self, catalog: &Catalog, saved: &Value, (count, seed): (u64, u64)) -> Verified {
        let told = if self.of_machine { held(saved) } else { builds(saved) };
        let faults = UNCONTROLLED.each(&told, |build| {
            let name = build["name"].as_str().unwrap_or_default().to_string();
            (name, self.build(catalog, build))
        });
        let misses = saved["missed"].as_array().map_or(&[][..], Vec::as_slice);
        let some = misses.iter().step_by(misses.len().div_ceil(MOST_MISSED).max(1));
        let some: Vec<&Value> = some.collect();
        let questions: Vec<_> = UNCONTROLLED.each(&some, |miss| self.rejected_problems(catalog, miss));
        let questions: Vec<(String, Problem)> = questions.into_iter().flatten().collect();
        let missed = missed(&questions, (count, seed));
        verify(&self.requirements, (saved, &self.fresh), faults, missed, seed)
    }

    /// The faults of a build.
    fn build(&self, catalog: &Catalog, build: &Value) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let (system, format) = (text(&build["system"]), text(&build["each"]["weight_format"]));
        let Some(lot) = self.systems.iter().find(|lot| lot.id == system) else {
            return vec![format!("system: {system} is not an available system")];
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
            .find(|(resolved, _)| resolved.weight_formats.iter().any(|choice| choice.format.id == format));
        let Some((resolved, kept)) = runs else {
            return vec![format!("each.weight_format: {format} does not run on {system}")];
        };
        match resolved.problem() {
            Err(fault) => vec![format!("{}; {} expected", fault.found, fault.expected)],
            Ok(problem) => match size(&problem, self.requirements.users) {
                Err(unfit) => vec![format!("it does not meet the requirements: {}", unfit.reason)],
                Ok(sized) => {
                    estimated(build, &serving(resolved, &problem, &sized, (*kept, lot)), &self.requirements)
                }
            },
        }
    }

    /// The problems of a system, or a model, that the result rejects, with its name; none where it cannot be posed.
    fn rejected_problems(&self, catalog: &Catalog, miss: &Value) -> Vec<(String, Problem)> {
        let name = miss["name"].as_str().unwrap_or_default();
        let lot = if self.of_machine {
            self.systems.first()
        } else {
            self.systems.iter().find(|lot| lot.cluster.name == name)
        };
        let model = if self.of_machine { Some(name) } else { self.scenario.model.as_deref() };
        let model = catalog.built(model.unwrap_or(DEFAULT_MODEL));
        let (Some(lot), Ok((model, graph))) = (lot, model) else { return vec![] };
        // Too many users for one copy does not reject the machine itself.
        if miss["kind"] == "users" {
            return vec![];
        }
        let problems = qualities(catalog, &self.scenario, (&model, &graph), &lot.cluster);
        let problems = problems.unwrap_or_default();
        let asked = problems.iter().filter_map(|(resolved, _)| resolved.problem().ok());
        asked
            .filter(|problem| problem.context_fits().is_ok())
            .map(|problem| (name.to_string(), problem))
            .collect()
    }
}
