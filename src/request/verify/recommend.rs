//! Verification of a saved recommendation: every build estimated again, the ranking, a sample of the rejected systems,
//! and the search itself.

use serde_json::Value;

use super::compare::FieldDifference;
use super::{CheckResult, RandomSample, Rerun, differences, faults, question, read, row, search};
use crate::quantity::tolerance::SUMMED;
use crate::report::answer::plan;
use crate::report::recommend::models::{ServedModels, serves};
use crate::report::recommend::report::RecommendReport;
use crate::report::recommend::{Build, Recommendation, RejectedBuild, Requirements, SizedSystem, recommend};
use crate::report::reporter::Reporter;
use crate::report::verify::Verified;
use crate::request::UNCONTROLLED;
use crate::request::recommend::explore::{TIERS, for_hardware, for_model, market, on_system, serving};
use crate::search::problem::{Problem, Traffic};
use crate::search::sample::sample;
use crate::search::sizing::{Sized, SizedProblem, size_by};
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::inventory::{SystemOption, qualities};
use crate::store::resolved_scenario::{DEFAULT_MODEL, ResolvedScenario};

/// Maximum number of rejected systems that are evaluated again.
const MOST_MISSED: usize = 40;

/// Requirements resolved again, and the result of a new search.
pub struct RecommendRerun<'a> {
    catalog: &'a Catalog,
    scenario: Scenario,
    requirements: Requirements,
    systems: Vec<SystemOption>,
    fresh: RecommendReport,
}

pub fn report(saved: &Value) -> Result<RecommendReport, Error> {
    Ok(if saved.get("models").is_some() {
        RecommendReport::Models(Box::new(read(saved)?))
    } else {
        RecommendReport::Hardware(Box::new(read(saved)?))
    })
}

impl Rerun for RecommendRerun<'_> {
    fn check(&self, saved: &Value, drawn: RandomSample) -> Result<Verified, Error> {
        let checks = match &self.fresh {
            RecommendReport::Hardware(fresh) => self.of_hardware(&read(saved)?, fresh, drawn),
            RecommendReport::Models(fresh) => self.of_models(&read(saved)?, fresh, drawn),
        };
        Ok(Verified::of(checks, drawn.seed))
    }
}

impl<'a> RecommendRerun<'a> {
    pub fn solve(catalog: &'a Catalog, saved: RecommendReport) -> Result<RecommendRerun<'a>, Error> {
        let (scenario, sought, of_machine) = match saved {
            RecommendReport::Hardware(saved) => (saved.scenario, saved.sought, false),
            RecommendReport::Models(saved) => (saved.scenario, saved.sought, true),
        };
        crate::request::recommend::requirements::check(&sought)?;
        let (objective, workload) = catalog.objective_and_workload(&scenario, false)?;
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
            RecommendReport::Models(Box::new(for_hardware(catalog, &scenario, &mut sought, &UNCONTROLLED)?))
        } else {
            RecommendReport::Hardware(Box::new(for_model(catalog, &scenario, &mut sought, &UNCONTROLLED)?))
        };
        let systems = market(catalog, &scenario, &sought)?.systems;
        Ok(RecommendRerun { catalog, scenario, requirements: sought, systems, fresh })
    }

    fn of_hardware(
        &self,
        saved: &Recommendation,
        fresh: &Recommendation,
        drawn: RandomSample,
    ) -> Vec<CheckResult> {
        let mut unranked = saved.builds.clone();
        for build in &mut unranked {
            (build.standing, build.because) = (String::new(), None);
        }
        let Recommendation { scenario, sought, missed, looked, .. } = saved.clone();
        let ranked = recommend((scenario, sought), unranked, missed, (looked, TIERS));
        let ranked = Recommendation { launch: saved.launch.clone(), ..ranked };
        let (standing, named): (Vec<_>, Vec<FieldDifference>) =
            differences("", saved, &ranked).into_iter().partition(|one| one.path.starts_with("builds"));
        vec![
            self.question((&saved.scenario, &saved.sought), (&fresh.scenario, &fresh.sought)),
            self.builds(&saved.builds.iter().collect::<Vec<_>>()),
            CheckResult::new(
                "standing: front and dominated builds are classified correctly",
                saved.builds.len(),
                [dominated(&saved.builds), faults(standing)].concat(),
            ),
            CheckResult::new(
                "named: among the builds, and the cheapest is the cheapest",
                saved.tiers.len() + 3,
                faults(named),
            ),
            self.rejected(&saved.missed, drawn),
            search(saved, fresh),
        ]
    }

    fn of_models(&self, saved: &ServedModels, fresh: &ServedModels, drawn: RandomSample) -> Vec<CheckResult> {
        let ServedModels { scenario, sought, models, missed, looked, .. } = saved.clone();
        let ordered = serves((scenario, sought), models, missed, looked);
        let ordered = ServedModels { launch: saved.launch.clone(), ..ordered };
        vec![
            self.question((&saved.scenario, &saved.sought), (&fresh.scenario, &fresh.sought)),
            self.builds(&saved.models.iter().map(|served| &served.build).collect::<Vec<_>>()),
            CheckResult::new(
                "order: by size and age",
                saved.models.len(),
                faults(differences("", saved, &ordered)),
            ),
            self.rejected(&saved.missed, drawn),
            search(saved, fresh),
        ]
    }

    fn question(&self, saved: (&Scenario, &Requirements), fresh: (&Scenario, &Requirements)) -> CheckResult {
        let mut found = differences("scenario", saved.0, fresh.0);
        found.extend(differences("sought", saved.1, fresh.1));
        question(faults(found))
    }

    /// Every build, estimated again with its own plan.
    fn builds(&self, builds: &[&Build]) -> CheckResult {
        let of = |build: &&Build| {
            let faults = self.estimated(build).unwrap_or_else(|why| vec![why]);
            faults.into_iter().map(|why| format!("{}: {why}", build.name)).collect::<Vec<_>>()
        };
        let faults = UNCONTROLLED.each(builds, of).concat();
        CheckResult::new("builds: re-estimated, each with its own plan", builds.len(), faults)
    }

    fn estimated(&self, build: &Build) -> Result<Vec<String>, String> {
        let fault = |fault: Error| format!("{}; {} expected", fault.found, fault.expected);
        let lot = self.systems.iter().find(|lot| lot.id == build.system);
        let lot = lot.ok_or_else(|| format!("system: {} is not an available system", build.system))?;
        let model = self.scenario.model.as_ref().unwrap_or(&build.model);
        let problems = self.qualities(model, lot).map_err(fault)?;
        let format = &build.each.weight_format;
        let runs = |(resolved, _): &&(ResolvedScenario, bool)| {
            let runtime = resolved.runtime.id == build.runtime;
            runtime && resolved.weight_formats.iter().any(|choice| choice.format.id == *format)
        };
        let (resolved, kept) = problems.iter().find(runs).ok_or_else(|| {
            format!("each.weight_format: {format} does not run with {} on {}", build.runtime, build.system)
        })?;
        let problem = resolved.problem().map_err(fault)?;
        let SizedProblem { problem, sized } = size_by(problem, self.requirements.users)
            .map_err(|unfit| format!("it does not meet the requirements: {}", unfit.reason))?;
        let sized = sized.at_full_load(&problem);
        Ok(of_sized(build, &serving(resolved, &problem, &sized, (*kept, lot)), &self.requirements))
    }

    /// The problems of a model on a system, one for each quality of the weights.
    fn qualities(&self, model: &str, lot: &SystemOption) -> Result<Vec<(ResolvedScenario, bool)>, Error> {
        let (model, graph) = self.catalog.built(model)?;
        let scenario = on_system(&self.scenario, &self.requirements, &lot.cluster);
        qualities(self.catalog, &scenario, (&model, &graph), &lot.cluster)
    }

    /// Random deployments of rejected systems: none may meet the SLO.
    fn rejected(&self, missed: &[RejectedBuild], drawn: RandomSample) -> CheckResult {
        let some: Vec<&RejectedBuild> =
            missed.iter().step_by(missed.len().div_ceil(MOST_MISSED).max(1)).collect();
        let problems = UNCONTROLLED.each(&some, |miss| self.rejected_problems(miss));
        let problems: Vec<(String, Problem)> = problems.into_iter().flatten().collect();
        let each = drawn.count.div_ceil(problems.len().max(1) as u64);
        let (mut count, mut faults) = (0, Vec::new());
        for (name, problem) in &problems {
            let mut one = problem.clone();
            one.traffic = Traffic::InFlight(1.into());
            let found = sample(&one, None, each, drawn.seed);
            count += found.drawn;
            if let Some(better) = found.better.first() {
                let plan = plan(&better.candidate).label;
                faults.push(format!("{name}: saved as rejected, {plan} meets the SLO"));
            }
        }
        let what =
            format!("sample: no random deployment of {} rejected systems meets the SLO", problems.len());
        CheckResult::new(what, count as usize, faults)
    }

    /// The problems of a system, or a model, that the result rejects, with its name; none where it cannot be posed.
    fn rejected_problems(&self, miss: &RejectedBuild) -> Vec<(String, Problem)> {
        // Too many users for one copy does not reject the machine itself.
        if miss.kind == "users" {
            return vec![];
        }
        let (lot, model) = match &self.fresh {
            RecommendReport::Models(_) => (self.systems.first(), miss.name.as_str()),
            RecommendReport::Hardware(_) => {
                let lot = self.systems.iter().find(|lot| lot.cluster.name == miss.name);
                (lot, self.scenario.model.as_deref().unwrap_or(DEFAULT_MODEL))
            }
        };
        let problems = lot.and_then(|lot| self.qualities(model, lot).ok()).unwrap_or_default();
        let problems = problems.iter().filter_map(|(resolved, _)| resolved.problem().ok());
        let fit = problems.filter(|problem| problem.context_fits().is_ok());
        fit.map(|problem| (miss.name.clone(), problem)).collect()
    }
}

/// The faults of a build with its own plan, cost and power.
fn of_sized(saved: &Build, serving: &SizedSystem, sought: &Requirements) -> Vec<String> {
    let mut shared = serving.problem.clone();
    shared.traffic = Traffic::InFlight(serving.sized.share.into());
    let at_share = match row::again(&Reporter::new(&shared), &saved.each) {
        Ok(found) => found,
        Err(faults) => return faults.into_iter().map(|fault| format!("each.{fault}")).collect(),
    };
    let sized = Sized { at_share, ..serving.sized.clone() };
    let again = SizedSystem { sized: &sized, ..serving.clone() }.build(sought);
    // The status depends on the other builds.
    let again = Build { standing: saved.standing.clone(), because: saved.because.clone(), ..again };
    let mut faults = faults(differences("", saved, &again));
    let tok_s_per_user = again.tok_s_per_user;
    if tok_s_per_user < sought.target_tok_s * (1.0 - SUMMED) {
        faults.push(format!("tok_s_per_user: recomputed {tok_s_per_user}, target {}", sought.target_tok_s));
    }
    if again.most_users < sought.users {
        faults.push(format!("most_users: recomputed {}, target {}", again.most_users, sought.users));
    }
    faults
}

/// Builds on the front that another build within the budgets dominates.
fn dominated(builds: &[Build]) -> Vec<String> {
    let mut faults = Vec::new();
    for front in builds.iter().filter(|build| build.standing == "front") {
        let within = builds.iter().filter(|build| build.standing != "over budget");
        let mut better = within.filter(|other| other.offered().beats(&front.offered()));
        if let Some(other) = better.next() {
            faults
                .push(format!("{}: saved on the front, {} is no worse in anything", front.name, other.name));
        }
    }
    faults
}
