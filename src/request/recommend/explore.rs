//! The exploration in parallel on all cores: every system for a model, or every model on a machine.

use super::super::estimate::{EstimateRequest, estimate};
use super::super::{RequestControl, UNCONTROLLED};
use crate::graph::model::ModelGraph;
use crate::report::launch::LaunchReport;
use crate::report::recommend::models::{OtherFormat, ServedModel, ServedModels, serves};
use crate::report::recommend::money::SystemPrices;
use crate::report::recommend::{
    Build, Recommendation, RejectedBuild, Requirements, SearchSummary, SizedSystem, missed, recommend,
};
use crate::search::outcome::{Census, EvaluatedCandidate};
use crate::search::problem::Problem;
use crate::search::sizing::{Sized, SizedForUsers, SizedProblem, size_by};
use crate::spec::cluster::Cluster;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::precision::{EIGHT_BITS, FormatOption, WeightQuality};
use crate::spec::price::PriceBasis;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::inventory::{Inventory, SystemOption, qualities};
use crate::store::kind::CatalogKind;
use crate::store::model::ResolvedModel;
use crate::store::resolved_scenario::{DEFAULT_HARDWARE, DEFAULT_MODEL, ResolvedScenario};

pub(in crate::request) const TIERS: usize = 5;

/// Every system of the catalogue, for one model.
pub(in crate::request) fn for_model(
    catalog: &Catalog,
    scenario: &Scenario,
    sought: &mut Requirements,
    control: &RequestControl,
) -> Result<Recommendation, Error> {
    let (model, graph) = catalog.built(scenario.model.as_deref().unwrap_or(DEFAULT_MODEL))?;
    sought.model = Some(model.name.clone());
    let market = market(catalog, scenario, sought)?;
    let scenario = &on_one_basis(scenario, sought, &market);
    sought.hardware = scenario.hardware.clone();
    let seen: Vec<SystemResult> =
        control.each(&market.systems, |lot| search_system(catalog, scenario, sought, (&model, &graph), lot));
    let mut looked =
        SearchSummary { systems: (seen.len() + market.rejected.len()) as u64, ..SearchSummary::default() };
    let (mut builds, mut misses) = (Vec::new(), Vec::new());
    for one in seen {
        looked.serve += u64::from(!one.builds.is_empty());
        one.censuses.iter().for_each(|census| looked.add(census));
        builds.extend(one.builds);
        misses.extend(one.rejected);
    }
    misses.extend(market.rejected.iter().map(|(name, fault)| rejected_for_error(name, fault)));
    count_missed(&mut looked, &misses);
    let found = recommend((scenario.clone(), sought.clone()), builds, misses, (looked, TIERS));
    let launch = found.first().and_then(|build| launch_of(catalog, scenario, build));
    Ok(Recommendation { launch, ..found })
}

fn count_missed(looked: &mut SearchSummary, misses: &[RejectedBuild]) {
    for miss in misses {
        *looked.missed.entry(miss.kind.clone()).or_default() += 1;
    }
}

/// The launch of a build, on each copy of its system; `None` where no name of `--hardware` says the system.
fn launch_of(catalog: &Catalog, scenario: &Scenario, build: &Build) -> Option<LaunchReport> {
    catalog.hardware(&build.system).ok()?;
    let request = EstimateRequest::of(build_scenario(scenario, build));
    estimate(catalog, &request, &UNCONTROLLED).ok()?.launch
}

/// The scenario of each copy of a build, with its plan.
pub fn build_scenario(scenario: &Scenario, build: &Build) -> Scenario {
    Scenario {
        model: Some(build.model.clone()),
        hardware: Some(build.system.clone()),
        runtime: Some(build.runtime.clone()),
        weight_format: Some(build.each.weight_format.clone()),
        deployment: Some(Deployment { plan: Some(build.each.notation.clone()), ..Deployment::default() }),
        ..scenario.clone()
    }
}

/// The scenario with the price basis of all offers, which `sought` names.
fn on_one_basis(scenario: &Scenario, sought: &mut Requirements, market: &Inventory) -> Scenario {
    let offers = market.systems.iter().map(|lot| &lot.cluster);
    let basis = sought.price_basis.unwrap_or_else(|| {
        let basis = PriceBasis::of_offers(offers);
        sought.assumed.push(basis.assumption());
        basis
    });
    sought.price_basis = Some(basis);
    Scenario { price_basis: Some(basis), ..scenario.clone() }
}

/// The scenario on one system: one user of a home machine waits for a long prompt, so that no TTFT limit applies there
/// by default.
pub(in crate::request) fn on_system(
    scenario: &Scenario,
    sought: &Requirements,
    cluster: &Cluster,
) -> Scenario {
    let free = sought.no_ttft_at_home && cluster.device.is_home();
    let ttft = if free { Some("none".to_owned()) } else { scenario.ttft.clone() };
    Scenario { ttft, ..scenario.clone() }
}

/// The offers explored for a model.
pub(in crate::request) fn market(
    catalog: &Catalog,
    scenario: &Scenario,
    sought: &Requirements,
) -> Result<Inventory, Error> {
    match &scenario.hardware {
        Some(hardware) => catalog.one(hardware),
        None => catalog.inventory(&sought.only),
    }
}

/// Every model of the catalogue, on one machine.
pub(in crate::request) fn for_hardware(
    catalog: &Catalog,
    scenario: &Scenario,
    sought: &mut Requirements,
    control: &RequestControl,
) -> Result<ServedModels, Error> {
    let hardware = scenario.hardware.as_deref().unwrap_or(DEFAULT_HARDWARE);
    let market = catalog.one(hardware)?;
    let scenario = &on_one_basis(scenario, sought, &market);
    let lot = market.systems.first().expect("one machine is one lot");
    sought.hardware = Some(lot.cluster.name.clone());
    let ids: Vec<String> = catalog.entries(CatalogKind::Models).into_keys().collect();
    let seen = control.each(&ids, |id| match catalog.built(id) {
        Ok((model, graph)) => search_model(catalog, scenario, sought, (&model, &graph), lot),
        Err(fault) => (None, Some(rejected_for_error(id, &fault)), vec![]),
    });
    let mut looked = SearchSummary { systems: seen.len() as u64, ..SearchSummary::default() };
    let (mut models, mut misses) = (Vec::new(), Vec::new());
    for (held, miss, censuses) in seen {
        looked.serve += u64::from(held.is_some());
        censuses.iter().for_each(|census| looked.add(census));
        models.extend(held);
        misses.extend(miss);
    }
    count_missed(&mut looked, &misses);
    let found = serves((scenario.clone(), sought.clone()), models, misses, looked);
    let launch = found.models.first().and_then(|served| launch_of(catalog, scenario, &served.build));
    Ok(ServedModels { launch, ..found })
}

/// One model on a machine, with each runtime in weight formats of each quality.
fn search_model(
    catalog: &Catalog,
    scenario: &Scenario,
    sought: &Requirements,
    (model, graph): (&ResolvedModel, &ModelGraph),
    lot: &SystemOption,
) -> (Option<ServedModel>, Option<RejectedBuild>, Vec<Census>) {
    let (mut found, mut miss, mut censuses) = (Vec::new(), None, Vec::new());
    let scenario = &on_system(scenario, sought, &lot.cluster);
    let problems = match qualities(catalog, scenario, (model, graph), &lot.cluster) {
        Ok(problems) => problems,
        Err(fault) => return (None, Some(rejected_for_error(&model.name, &fault)), censuses),
    };
    for (resolved, kept) in &problems {
        match SizedOption::new((resolved, *kept), sought) {
            Ok(option) if option.sized.copies == 1 => found.push(option),
            Ok(SizedOption { sized, .. }) => {
                censuses.push(sized.census.clone());
                let reason = format!("it needs {} copies of the machine", sized.copies);
                let name = model.name.clone();
                miss = Some(RejectedBuild { name, weight_formats: vec![], kind: "users".into(), reason });
            }
            Err(refused) => {
                let (rejected, census) = *refused;
                censuses.extend(census);
                miss = Some(RejectedBuild { name: model.name.clone(), ..rejected });
            }
        }
    }
    // The first has the highest quality on the default runtime.
    let Some(least) = found.first().map(SizedOption::quality) else {
        return (None, miss, censuses);
    };
    let speed = |at: usize| found[at].sized.tok_s_per_user();
    let fastest = (0..found.len())
        .filter(|at| found[*at].quality() >= least)
        .max_by(|a, b| speed(*a).total_cmp(&speed(*b)).then(b.cmp(a)));
    let option = found.remove(fastest.unwrap_or(0));
    let (build, census) = option.build(lot, sought);
    censuses.push(census);
    censuses.extend(found.iter().map(|option| option.sized.census.clone()));
    let release = model.release.as_ref();
    let served = ServedModel {
        parameters: graph.unique_parameters(),
        family: release.map_or_else(|| model.name.clone(), |release| release.family.clone()),
        released: release.map(|release| release.date.clone()),
        build,
        others: found.iter().map(SizedOption::other_format).collect(),
    };
    (Some(served), None, censuses)
}

/// One system in formats of one quality that meets the requirements, before its full load is searched.
struct SizedOption<'a> {
    resolved: &'a ResolvedScenario,
    keeps_quality: bool,
    problem: Problem,
    sized: SizedForUsers,
}

/// Quality of the weights of a build: whether it counts as preserved, and whether they have 8 bits.
type QualityGroup = (bool, bool);

impl<'a> SizedOption<'a> {
    fn new(
        (resolved, keeps_quality): (&'a ResolvedScenario, bool),
        sought: &Requirements,
    ) -> Result<SizedOption<'a>, Box<(RejectedBuild, Option<Census>)>> {
        let name = &resolved.cluster.name;
        let problem =
            resolved.problem().map_err(|fault| Box::new((rejected_for_error(name, &fault), None)))?;
        match size_by(problem, sought.users) {
            Err(unfit) => Err(Box::new((missed(name, vec![], &unfit), Some(unfit.census)))),
            Ok(SizedProblem { problem, sized }) => {
                Ok(SizedOption { resolved, keeps_quality, problem, sized })
            }
        }
    }

    fn weights(&self) -> Option<&'a FormatOption> {
        weights(self.resolved, &self.problem, &self.sized.at_share)
    }

    fn quality(&self) -> Option<WeightQuality> {
        self.weights().map(|choice| choice.quality(self.resolved.checkpoint_bits()))
    }

    fn quality_group(&self) -> QualityGroup {
        (self.keeps_quality, self.quality().is_some_and(|quality| quality.bits >= EIGHT_BITS.0))
    }

    fn build(self, lot: &SystemOption, sought: &Requirements) -> (Build, Census) {
        let SizedOption { resolved, keeps_quality, problem, sized } = self;
        let sized = sized.at_full_load(&problem);
        let build = serving(resolved, &problem, &sized, (keeps_quality, lot)).build(sought);
        (build, sized.census)
    }

    fn other_format(&self) -> OtherFormat {
        OtherFormat {
            runtime: self.problem.runtime.id.clone(),
            weight_format: self.problem.formats[self.sized.at_share.candidate.formats].weights.clone(),
            checkpoint: self.weights().and_then(|choice| choice.checkpoint.clone()),
            tok_s_per_user: self.sized.tok_s_per_user(),
            most_users: self.sized.most_users(),
        }
    }
}

fn weights<'a>(
    resolved: &'a ResolvedScenario,
    problem: &Problem,
    found: &EvaluatedCandidate,
) -> Option<&'a FormatOption> {
    let format = &problem.formats[found.candidate.formats].weights;
    resolved.weight_formats.iter().find(|choice| choice.format.id == *format)
}

#[derive(Default)]
struct SystemResult {
    builds: Vec<Build>,
    rejected: Option<RejectedBuild>,
    censuses: Vec<Census>,
}

/// Evaluates a lot, with each runtime in weight formats of each quality; of builds of one quality the best is kept.
fn search_system(
    catalog: &Catalog,
    scenario: &Scenario,
    sought: &Requirements,
    (model, graph): (&ResolvedModel, &ModelGraph),
    lot: &SystemOption,
) -> SystemResult {
    let mut seen = SystemResult::default();
    let scenario = &on_system(scenario, sought, &lot.cluster);
    let problems = match qualities(catalog, scenario, (model, graph), &lot.cluster) {
        Ok(problems) => problems,
        Err(fault) => {
            return SystemResult { rejected: Some(rejected_for_error(&lot.cluster.name, &fault)), ..seen };
        }
    };
    let mut tried: Vec<String> = Vec::new();
    let mut found: Vec<(QualityGroup, SizedOption)> = Vec::new();
    for (resolved, kept) in &problems {
        tried.extend(resolved.weight_formats.iter().map(|choice| choice.format.id.clone()));
        match SizedOption::new((resolved, *kept), sought) {
            Ok(option) => {
                let quality = option.quality_group();
                match found.iter_mut().find(|(known, _)| *known == quality) {
                    Some((_, known)) => {
                        let mut worse = option;
                        if worse.sized.serves_more(&known.sized) {
                            std::mem::swap(known, &mut worse);
                        }
                        seen.censuses.push(worse.sized.census);
                    }
                    None => found.push((quality, option)),
                }
            }
            Err(refused) => {
                let (mut miss, census) = *refused;
                miss.weight_formats.clone_from(&tried);
                seen.rejected = Some(miss);
                seen.censuses.extend(census);
            }
        }
    }
    for (_, option) in found {
        let (build, census) = option.build(lot, sought);
        seen.builds.push(build);
        seen.censuses.push(census);
    }
    if !seen.builds.is_empty() {
        seen.rejected = None;
    }
    seen
}

/// A system that meets the requirements, with its names and prices.
pub(in crate::request) fn serving<'a>(
    resolved: &ResolvedScenario,
    problem: &'a Problem,
    sized: &'a Sized,
    (kept, lot): (bool, &SystemOption),
) -> SizedSystem<'a> {
    let choice = weights(resolved, problem, &sized.at_share);
    let checkpoint = choice.and_then(|choice| choice.checkpoint.clone());
    let economics = &resolved.economics;
    let prices = SystemPrices {
        bill: resolved.offered_bill(),
        bounds: resolved.bill_bounds(),
        serving_time: economics.serving_time.value,
        host: economics.purchase.as_ref().and_then(|bought| bought.host_class.clone()),
        dated: economics.dated(),
    };
    let names = (resolved.cluster.name.clone(), lot.id.clone(), resolved.model.name.clone(), checkpoint);
    let competes = resolved.unmeasured_allowed || lot.competes;
    SizedSystem { problem, sized, prices, names, keeps_quality: kept, competes }
}

/// A fault of the data as a reason against a system.
fn rejected_for_error(name: &str, fault: &Error) -> RejectedBuild {
    let reason = format!("{}; {} expected", fault.found, fault.expected);
    RejectedBuild { name: name.to_string(), weight_formats: vec![], kind: fault.key.clone(), reason }
}
