//! From the inputs of a fleet to kinds of systems with their capacities, and from those to the result.

use std::sync::Arc;

use super::super::RequestControl;
use super::trials::{SystemTrial, no_price, try_systems};
use crate::graph::model::ModelGraph;
use crate::report::fleet::{FleetInputs, FleetProblem, FleetResult, RateOrigin, SystemName, fleet_answer};
use crate::search::fleet::rates::SEARCHED;
use crate::search::fleet::{Bucket, Fleet, FleetBounds, FleetObjective, SystemKind, SystemSupply, mix};
use crate::search::mip::solve::SolveBudget;
use crate::search::outcome::Status;
use crate::search::problem::Problem;
use crate::spec::cluster::Cluster;
use crate::spec::defaults::stated_basis;
use crate::spec::error::Error;
use crate::spec::fleet::{FleetFile, PricingTerms};
use crate::spec::limits::{BUDGET_HOUR, HEADROOM, HOURS_PER_DAY, MAX_DEVICES};
use crate::spec::price::PriceBasis;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::model::ResolvedModel;
use crate::store::resolved_scenario::{DEFAULT_MODEL, ResolvedScenario};

/// The models of a fleet, and the model of each bucket.
struct FleetModels {
    models: Vec<(String, ResolvedModel, ModelGraph)>,
    of_bucket: Vec<usize>,
}

impl FleetModels {
    fn of(catalog: &Catalog, inputs: &FleetInputs, scenario: &Scenario) -> Result<FleetModels, Error> {
        let mut models: Vec<(String, ResolvedModel, ModelGraph)> = Vec::new();
        let mut of_bucket = Vec::new();
        for bucket in &inputs.buckets {
            let name = bucket.model.as_deref().or(scenario.model.as_deref()).unwrap_or(DEFAULT_MODEL);
            let known = models.iter().position(|(known, _, _)| known == name);
            of_bucket.push(match known {
                Some(at) => at,
                None => {
                    let (model, graph) = catalog.built(name)?;
                    models.push((name.to_owned(), model, graph));
                    models.len() - 1
                }
            });
        }
        Ok(FleetModels { models, of_bucket })
    }
}

/// Every offer in every configuration, with its capacity for every bucket.
pub fn build_problem(
    catalog: &Catalog,
    mut inputs: FleetInputs,
    scenario: Scenario,
    control: &RequestControl,
) -> Result<FleetProblem, Error> {
    let catalog = &*catalog.overridden_by_name(&scenario)?;
    // A saved result may contain values that flags and files exclude.
    let FleetInputs { buckets, offers, limits, .. } = inputs.clone();
    FleetFile { model: None, buckets, offers, limits }.check()?;
    inputs.budget_usd_per_hour.map_or(Ok(()), |usd| BUDGET_HOUR.check("budget-hour", usd))?;
    inputs.max_devices.map_or(Ok(()), |devices| MAX_DEVICES.check_whole("max-devices", devices))?;
    inputs.headroom.map_or(Ok(()), |share| HEADROOM.check("headroom", share))?;
    inputs.hours_per_day.map_or(Ok(()), |hours| HOURS_PER_DAY.check("hours-per-day", hours))?;
    let FleetModels { models, of_bucket } = FleetModels::of(catalog, &inputs, &scenario)?;
    let more = format!(
        "plans are searched for {SEARCHED} of {} buckets: the others use those plans, or equal replicas",
        inputs.buckets.len()
    );
    if inputs.buckets.len() > SEARCHED && !inputs.assumed.contains(&more) {
        inputs.assumed.push(more);
    }
    inputs.models = models.iter().map(|(_, model, _)| model.name.clone()).collect();
    let clusters: Vec<Cluster> =
        inputs.offers.iter().map(|offer| catalog.hardware(&offer.hardware)).collect::<Result<_, _>>()?;
    let scenario = on_one_basis(scenario, &mut inputs, &clusters)?;
    let (offered, left_out): (Vec<usize>, Vec<usize>) =
        (0..inputs.offers.len()).partition(|offer| on_basis(&inputs, *offer));
    let pairs: Vec<(usize, usize)> =
        offered.into_iter().flat_map(|offer| (0..models.len()).map(move |model| (offer, model))).collect();
    let found = control.each(&pairs, |&(offer, model)| {
        let (_, found, graph) = &models[model];
        let found = (found.clone(), graph.clone());
        let on = |fault: Error| {
            format!("{}: {}; {} expected", inputs.offers[offer].hardware, fault.found, fault.expected)
        };
        let resolved =
            ResolvedScenario::placed(catalog, &scenario, found, clusters[offer].clone()).map_err(on)?;
        let problem = resolved.problem().map_err(on)?;
        let trials = try_systems(&resolved, &problem, &inputs, offer, |bucket| of_bucket[bucket] == model)?;
        Ok((Arc::new(problem), trials))
    });
    let bounds = FleetBounds {
        usd_per_hour: inputs.budget_usd_per_hour,
        devices: inputs.max_devices,
        spare: inputs.spare,
    };
    let fleet = empty_fleet(&inputs, &of_bucket);
    let basis = inputs.price_basis.unwrap_or(PriceBasis::Owned);
    let unserved =
        left_out.into_iter().map(|offer| no_price(&inputs.offers[offer].hardware, basis)).collect();
    let (names, shapes) = (vec![], vec![]);
    let mut problem = FleetProblem { scenario, inputs, fleet, bounds, names, shapes, unserved };
    for ((offer, model), found) in pairs.into_iter().zip(found) {
        match found {
            Ok(found) => add_kinds(&mut problem, (offer, model), &clusters[offer], found),
            Err(reason) => problem.unserved.push(reason),
        }
    }
    add_unserved(&mut problem);
    Ok(problem)
}

/// The scenario with the price basis of all offers: the given one, else that of their terms, else the default.
///
/// # Errors
/// The terms are of both bases, so that a basis must be given.
fn on_one_basis(
    scenario: Scenario,
    inputs: &mut FleetInputs,
    clusters: &[Cluster],
) -> Result<Scenario, Error> {
    let of_terms = || inputs.offers.iter().filter_map(|offer| Some(offer.terms?.basis()));
    let first = of_terms().next();
    let given = inputs.price_basis.or(first);
    if inputs.price_basis.is_none() && of_terms().any(|basis| Some(basis) != first) {
        let fix = "set --price-basis owned or rented; offers of the other basis are then left out";
        return Err(Error::new("price_basis", "owned and rented offers", "offers of one basis", fix));
    }
    let given = given.map_or_else(|| stated_basis(&scenario), |basis| Ok(Some(basis)))?;
    let basis = given.unwrap_or_else(|| PriceBasis::of_offers(clusters.iter()));
    if inputs.price_basis.is_none() {
        inputs.assumed.push(basis.assumption());
    }
    inputs.price_basis = Some(basis);
    // A rent includes its electricity.
    let electricity_usd_per_kwh = scenario.electricity_usd_per_kwh.filter(|_| basis == PriceBasis::Owned);
    let hours_per_day = inputs.hours_per_day;
    Ok(Scenario { price_basis: Some(basis), electricity_usd_per_kwh, hours_per_day, ..scenario })
}

/// Whether the terms of an offer are of the basis of the comparison.
fn on_basis(inputs: &FleetInputs, offer: usize) -> bool {
    inputs.offers[offer].terms.is_none_or(|terms| Some(terms.basis()) == inputs.price_basis)
}

/// Buckets and offers, without any kind of system.
fn empty_fleet(inputs: &FleetInputs, of_bucket: &[usize]) -> Fleet {
    let buckets = inputs.buckets.iter().zip(of_bucket).map(|(bucket, model)| Bucket {
        name: format!("{} in, {} out", bucket.isl, bucket.osl),
        model: *model,
        rate: bucket.rate,
        osl: bucket.osl,
    });
    let supplies = inputs.offers.iter().map(|offer| {
        let terms = offer.terms.map_or("", PricingTerms::name);
        let name = format!("{} {terms}", offer.hardware).trim().to_string();
        SystemSupply { name, available: offer.available }
    });
    Fleet { buckets: buckets.collect(), supplies: supplies.collect(), ..Fleet::default() }
}

fn add_kinds(
    fleet: &mut FleetProblem,
    (offer, model): (usize, usize),
    cluster: &Cluster,
    (problem, trials): (Arc<Problem>, Vec<SystemTrial>),
) {
    let usable = 1.0 - fleet.inputs.headroom.unwrap_or(0.0);
    for trial in trials {
        fleet.fleet.kinds.push(SystemKind {
            name: format!("{} as {}", fleet.fleet.supplies[offer].name, trial.plan),
            supply_index: offer,
            model,
            usd_per_hour: trial.usd_per_hour,
            usd_per_hour_most: trial.usd_per_hour_most,
            devices: cluster.devices(),
            rates: trial.rates.into_iter().map(|rate| rate.map(|rate| rate * usable)).collect(),
        });
        fleet.names.push(SystemName {
            hardware: cluster.name.clone(),
            offer: trial.terms,
            model: fleet.inputs.models[model].clone(),
            plan: trial.plan,
        });
        let (problem, buckets) = (problem.clone(), trial.buckets);
        fleet.shapes.push(RateOrigin { problem, shape: trial.shape, buckets });
    }
}

fn add_unserved(fleet: &mut FleetProblem) {
    for (at, bucket) in fleet.fleet.buckets.iter().enumerate() {
        if !fleet.fleet.kinds.iter().any(|kind| kind.rates[at].is_some()) {
            let model = &fleet.inputs.models[bucket.model];
            fleet.unserved.push(format!("{} of {model}: no offer serves it within the limits", bucket.name));
        }
    }
}

/// The best mix; if infeasible, the reasons and the part of the traffic that can be served.
pub fn solved(resolved: &FleetProblem) -> FleetResult {
    let FleetProblem { inputs, fleet, bounds, .. } = resolved;
    let found = mix(fleet, inputs.aim, bounds, &SolveBudget::default());
    let partly = (found.solved.status == Status::Infeasible)
        .then(|| mix(fleet, FleetObjective::Throughput, bounds, &SolveBudget::default()));
    let most = partly.filter(|partly| partly.solved.values.is_some()).map(|partly| partly.served(fleet));
    FleetResult { most_output_tok_s: most, ..fleet_answer(resolved, &found) }
}
