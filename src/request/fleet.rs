//! `fleet`: the cheapest mix of systems for a traffic mix.

pub mod build_problem;
pub mod trials;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimate::{EstimateRequest, estimate};
use super::recommend::requirements::dollars;
use super::{RequestControl, UNCONTROLLED};
use crate::report::fleet::{FleetInputs, FleetResult, Systems};
use crate::report::launch::LaunchReport;
use crate::search::fleet::FleetObjective;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::fleet::{FleetFile, PricedOffer, TracedRequest, TrafficBucket, buckets};
use crate::spec::limits::{BUDGET_HOUR, PREFIX_GROUPS};
use crate::spec::notation::PlanText;
use crate::spec::objective::Workload;
use crate::spec::price::PriceBasis;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::DEFAULT_MODEL;
use build_problem::{build_problem, solved};

/// A request of `fleet`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FleetRequest {
    /// Traffic buckets, offers and SLOs, as in a fleet file.
    pub fleet: FleetFile,
    /// Requests of a trace, in place of the buckets.
    pub trace: Option<Vec<TracedRequest>>,
    /// Systems, in place of the offers of `fleet`.
    pub offers: Vec<String>,
    /// Lowest cost, fewest devices, or highest throughput within the budget.
    pub aim: FleetObjective,
    /// Budget per hour, e.g. `50usd`.
    pub budget_hour: Option<String>,
    /// Maximum number of devices.
    pub max_devices: Option<u64>,
    /// One spare system of every kind in use (N+1).
    pub spare: bool,
    /// Share of every system's capacity that stays free.
    pub headroom: Option<f64>,
    /// Hours a day that the fleet runs; 24 if absent.
    pub hours_per_day: Option<f64>,
    /// Model of buckets without one.
    pub model: Option<String>,
    /// TTFT SLO; `none` for no limit.
    pub ttft: Option<String>,
    /// TPOT SLO; `none` for no limit.
    pub tpot: Option<String>,
    /// Weight format: an id, or `any`.
    pub weight_format: Option<String>,
    /// Owned or rented, for every offer; if absent that of the offers' terms, else rented where every offer has a rent.
    pub price_basis: Option<PriceBasis>,
    /// Electricity price in USD/kWh.
    pub electricity_usd_per_kwh: Option<f64>,
    /// Overrides of values in files, each with the name of its file: `device[h100-sxm].memory.bandwidth=3 TB/s`.
    pub set: Option<Vec<String>>,
}

/// Default offers.
const OFFERS: [&str; 6] =
    ["l40s-x1", "a100-sxm-80gb-x1", "h100-sxm-x1", "h200-sxm-x1", "mi300x-x1", "b200-sxm-x1"];
/// Default traffic: workloads, one request per second each.
const TRAFFIC: [&str; 4] = ["chat", "balanced", "long-prompt", "reasoning"];

pub fn fleet(
    catalog: &Catalog,
    request: &FleetRequest,
    control: &RequestControl,
) -> Result<FleetResult, Error> {
    let (inputs, scenario) = request.resolved(catalog)?;
    let result = solved(&build_problem(catalog, inputs, scenario, control)?);
    let launches = launches(catalog, &result)?;
    Ok(FleetResult { launches, ..result })
}

/// The launch of every kind of system, for the longest requests that are routed there.
///
/// # Errors
/// A plan of the fleet cannot be launched on its system.
pub fn launches(catalog: &Catalog, result: &FleetResult) -> Result<Vec<LaunchReport>, Error> {
    let launch = |at| {
        let request = EstimateRequest::of(system_scenario(result, at));
        Ok(estimate(catalog, &request, &UNCONTROLLED)?.launch.unwrap_or_default())
    };
    (0..result.systems.len()).map(launch).collect()
}

/// The scenario of the systems at `at`, with their plan, for the longest requests that are routed there.
pub fn system_scenario(result: &FleetResult, at: usize) -> Scenario {
    let systems: &Systems = &result.systems[at];
    let routes = || result.routes.iter().filter(|route| route.systems == at as u64);
    Scenario {
        model: Some(systems.model.clone()),
        hardware: Some(systems.system.clone()),
        isl: routes().map(|route| route.isl).max(),
        osl: routes().map(|route| route.osl).max(),
        deployment: Some(Deployment { plan: Some(systems.notation.clone()), ..Deployment::default() }),
        ..result.scenario.clone()
    }
}

/// The scenario of the route at `at`: requests of its lengths, at its own rate on each of its systems. The load of the
/// plan follows from the rate.
pub fn route_scenario(result: &FleetResult, at: usize) -> Result<Scenario, Error> {
    let route = &result.routes[at];
    let system = route.systems as usize;
    let systems = result.systems.get(system).ok_or_else(|| {
        let found = format!("systems {system}");
        Error::new(format!("routes.{at}.systems"), found, "the index of a system", "save the fleet again")
    })?;
    let plan = systems.notation.parse::<PlanText>()?.without_loads();
    let of_route = |bucket: &&TrafficBucket| (bucket.isl, bucket.osl) == (route.isl, route.osl);
    let prefix = result.question.buckets.iter().find(of_route).map(|bucket| bucket.prefix);
    Ok(Scenario {
        isl: Some(route.isl),
        osl: Some(route.osl),
        prefix: prefix.filter(|prefix| *prefix > 0),
        prefix_groups: own_prefixes(prefix.into_iter()),
        rate: Some(route.requests_per_s / systems.count.max(1) as f64),
        deployment: Some(Deployment { plan: Some(plan.to_string()), ..Deployment::default() }),
        ..system_scenario(result, system)
    })
}

/// The cached tokens of traffic are those of each request's own history: as many prefixes as there may be requests.
fn own_prefixes(mut prefixes: impl Iterator<Item = u64>) -> Option<u64> {
    prefixes.any(|prefix| prefix > 0).then(|| PREFIX_GROUPS.most_whole())
}

impl FleetRequest {
    /// The inputs with every default, and the scenario of every system.
    fn resolved(&self, catalog: &Catalog) -> Result<(FleetInputs, Scenario), Error> {
        let mut assumed = Vec::new();
        let filed = self.filed(catalog, &mut assumed)?;
        let model = self.model.clone().or(filed.model.clone());
        if model.is_none() && filed.buckets.iter().any(|bucket| bucket.model.is_none()) {
            assumed.push(format!("model: {DEFAULT_MODEL}"));
        }
        let scenario = Scenario {
            model,
            ttft: self.ttft.clone(),
            tpot: self.tpot.clone(),
            weight_format: self.weight_format.clone(),
            price_basis: self.price_basis,
            electricity_usd_per_kwh: self.electricity_usd_per_kwh,
            set: self.set.clone(),
            prefix_groups: own_prefixes(filed.buckets.iter().map(|bucket| bucket.prefix)),
            ..Scenario::default()
        };
        let (objective, workload) = catalog
            .objective_and_workload(&Scenario { ttft: None, tpot: None, ..scenario.clone() }, false)?;
        let limits = scenario.limits(filed.limits.or(objective.limits))?;
        if filed.limits.ttft.or(filed.limits.tpot).is_none() && self.ttft.is_none() && self.tpot.is_none() {
            assumed.push(format!("SLOs: those of the workload `{}`", workload.id));
        }
        let spell = |limit: Option<f64>| Some(limit.map_or("none".to_string(), |limit| format!("{limit} s")));
        let scenario = Scenario {
            objective: Some(objective.id.clone()),
            ttft: spell(limits.ttft),
            tpot: spell(limits.tpot),
            e2e: spell(limits.e2e),
            ..scenario
        };
        let budget = self.budget_hour.as_deref();
        let budget = budget.map(|text| dollars(&BUDGET_HOUR, text)).transpose()?;
        if self.aim == FleetObjective::Throughput
            && budget.is_none()
            && self.max_devices.is_none()
            && filed.offers.iter().any(|offer| offer.available.is_none())
        {
            let fix = "set --budget-hour or --max-devices, or `available` of each offer";
            return Err(Error::new("aim", "throughput without a bound on cost or devices", "a bound", fix));
        }
        let inputs = FleetInputs {
            models: vec![],
            buckets: filed.buckets,
            offers: filed.offers,
            limits,
            aim: self.aim,
            budget_usd_per_hour: budget,
            max_devices: self.max_devices,
            spare: self.spare,
            headroom: self.headroom,
            hours_per_day: self.hours_per_day,
            price_basis: self.price_basis,
            assumed,
        };
        Ok((inputs, scenario))
    }

    /// Traffic and offers, with the defaults of both listed in `assumed`.
    fn filed(&self, catalog: &Catalog, assumed: &mut Vec<String>) -> Result<FleetFile, Error> {
        let mut filed = self.fleet.clone();
        if let Some(requests) = &self.trace {
            filed.buckets = buckets(requests)?;
            assumed.push("lengths of the trace are rounded up to powers of two".to_string());
        }
        if !self.offers.is_empty() {
            filed.offers = self.offers.iter().map(|name| offered(name)).collect();
        }
        if filed.buckets.is_empty() {
            for id in TRAFFIC {
                let workload: Workload = catalog.load(id)?;
                let Workload { isl, osl, prefix, .. } = workload;
                filed.buckets.push(TrafficBucket { isl, osl, rate: 1.0, prefix, model: None });
            }
            assumed.push(format!("traffic: 1 request/s of each of the workloads {}", TRAFFIC.join(", ")));
        }
        if filed.offers.is_empty() {
            filed.offers = OFFERS.iter().map(|name| offered(name)).collect();
            assumed.push(format!("offers: any number of {}", OFFERS.join(", ")));
        }
        filed.check()?;
        Ok(filed)
    }
}

fn offered(name: &str) -> PricedOffer {
    PricedOffer { hardware: name.to_owned(), terms: None, usd_per_hour: None, available: None }
}
