//! From the inputs of a fleet to kinds of systems with their capacities, and from those to the result.

use std::sync::Arc;

use super::super::RequestControl;
use super::trials::{SystemTrial, try_systems};
use crate::graph::model::ModelGraph;
use crate::report::fleet::{FleetInputs, FleetProblem, FleetResult, RateOrigin, SystemName, fleet_answer};
use crate::search::fleet::rates::SEARCHED;
use crate::search::fleet::{Bucket, Fleet, FleetBounds, FleetObjective, SystemKind, SystemSupply, mix};
use crate::search::mip::solve::SolveBudget;
use crate::search::outcome::Status;
use crate::search::problem::Problem;
use crate::spec::error::Error;
use crate::spec::fleet::{FleetFile, PricingTerms};
use crate::spec::limits::{BUDGET_HOUR, MAX_DEVICES};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::model::ResolvedModel;
use crate::store::resolved_scenario::{DEFAULT_MODEL, ResolvedScenario};

/// Every offer in every configuration, with its capacity for every bucket.
///
/// # Errors
/// A name is unknown.
pub fn build_problem(
    catalog: &Catalog,
    mut asked: FleetInputs,
    scenario: Scenario,
    control: &RequestControl,
) -> Result<FleetProblem, Error> {
    // A saved result may contain values that flags and files exclude.
    let FleetInputs { buckets, offers, limits, .. } = asked.clone();
    FleetFile { model: None, buckets, offers, limits }.check()?;
    asked.budget_usd_per_hour.map_or(Ok(()), |usd| BUDGET_HOUR.check("budget-hour", usd))?;
    asked.max_devices.map_or(Ok(()), |devices| MAX_DEVICES.check_whole("max-devices", devices))?;
    let mut models: Vec<(String, ResolvedModel, ModelGraph)> = Vec::new();
    let mut of_bucket = Vec::new();
    for bucket in &asked.buckets {
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
    let more = format!(
        "plans are searched for {SEARCHED} of {} buckets: the others use those plans, or equal replicas",
        asked.buckets.len()
    );
    if asked.buckets.len() > SEARCHED && !asked.assumed.contains(&more) {
        asked.assumed.push(more);
    }
    asked.models = models.iter().map(|(_, model, _)| model.name.clone()).collect();
    let fleet_buckets = asked.buckets.iter().zip(&of_bucket).map(|(bucket, model)| Bucket {
        name: format!("{} in, {} out", bucket.isl, bucket.osl),
        model: *model,
        rate: bucket.rate,
        osl: bucket.osl,
    });
    let mut fleet = Fleet { buckets: fleet_buckets.collect(), ..Fleet::default() };
    let clusters: Vec<_> =
        asked.offers.iter().map(|offer| catalog.hardware(&offer.hardware)).collect::<Result<_, _>>()?;
    let pairs: Vec<(usize, usize)> = (0..asked.offers.len())
        .flat_map(|offer| (0..models.len()).map(move |model| (offer, model)))
        .collect();
    let looked: Vec<Result<(Arc<Problem>, Vec<SystemTrial>), String>> =
        control.each(&pairs, |&(offer, model)| {
            let (_, found, graph) = &models[model];
            let found = (found.clone(), graph.clone());
            let on = |fault: Error| {
                format!("{}: {}; {} expected", asked.offers[offer].hardware, fault.found, fault.expected)
            };
            let resolved =
                ResolvedScenario::placed(catalog, &scenario, found, clusters[offer].clone()).map_err(on)?;
            let problem = resolved.problem().map_err(on)?;
            let tried = try_systems(&resolved, &problem, &asked, offer, |bucket| of_bucket[bucket] == model)?;
            Ok((Arc::new(problem), tried))
        });
    let (mut names, mut shapes, mut unserved) = (Vec::new(), Vec::new(), Vec::new());
    for offer in &asked.offers {
        let terms = offer.terms.map_or("", PricingTerms::name);
        let name = format!("{} {terms}", offer.hardware).trim().to_string();
        fleet.supplies.push(SystemSupply { name, available: offer.available });
    }
    for (&(offer, model), found) in pairs.iter().zip(looked) {
        let (problem, tried) = match found {
            Ok(found) => found,
            Err(reason) => {
                unserved.push(reason);
                continue;
            }
        };
        for one in tried {
            let name = format!("{} as {}", fleet.supplies[offer].name, one.plan);
            let (usd_per_hour, devices) = (one.usd_per_hour, clusters[offer].devices());
            fleet.kinds.push(SystemKind {
                name,
                supply_index: offer,
                model,
                usd_per_hour,
                devices,
                rates: one.rates,
            });
            names.push(SystemName {
                hardware: clusters[offer].name.clone(),
                offer: one.terms,
                model: asked.models[model].clone(),
                plan: one.plan,
            });
            shapes.push(RateOrigin { problem: problem.clone(), shape: one.shape, buckets: one.buckets });
        }
    }
    for (at, bucket) in fleet.buckets.iter().enumerate() {
        if !fleet.kinds.iter().any(|kind| kind.rates[at].is_some()) {
            let model = &asked.models[bucket.model];
            unserved.push(format!("{} of {model}: no offer serves it within the limits", bucket.name));
        }
    }
    let bounds = FleetBounds {
        usd_per_hour: asked.budget_usd_per_hour,
        devices: asked.max_devices,
        spare: asked.spare,
    };
    Ok(FleetProblem { scenario, asked, fleet, bounds, names, shapes, unserved })
}

/// The best mix; if infeasible, the reasons and the part of the traffic that can be served.
pub fn solved(resolved: &FleetProblem) -> FleetResult {
    let FleetProblem { asked, fleet, bounds, .. } = resolved;
    let found = mix(fleet, asked.aim, bounds, &SolveBudget::default());
    let partly = (found.solved.status == Status::Infeasible)
        .then(|| mix(fleet, FleetObjective::Throughput, bounds, &SolveBudget::default()));
    let most = partly.filter(|partly| partly.solved.values.is_some()).map(|partly| partly.served(fleet));
    FleetResult { most_output_tok_s: most, ..fleet_answer(resolved, &found) }
}
