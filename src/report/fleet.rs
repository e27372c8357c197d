//! The reported fleet: systems with counts, routing of the traffic, certificate.

pub mod costs;
pub mod program;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use costs::{FleetCosts, costs};
use program::{ReportedProgram, report_program};

use super::answer::report_deployment;
use super::launch::LaunchReport;
use super::sheet::{self, CsvColumn};
use crate::search::fleet::rates::ShapeRates;
use crate::search::fleet::{Bucket, BucketShare, Fleet, FleetBounds, FleetMix, FleetObjective, MILLS};
use crate::search::mip::reasons::RowRelaxation;
use crate::search::mip::solve::Prover;
use crate::search::outcome::Status;
use crate::search::problem::Problem;
use crate::spec::fleet::{PricedOffer, TrafficBucket};
use crate::spec::objective::LatencyLimits;
use crate::spec::price::PriceBasis;
use crate::spec::scenario::Scenario;

/// The problem, with every default filled in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FleetInputs {
    /// Models, each with its traffic.
    pub models: Vec<String>,
    /// Traffic, by lengths and model.
    pub buckets: Vec<TrafficBucket>,
    /// Available offers.
    pub offers: Vec<PricedOffer>,
    /// Latency SLOs of every request.
    pub limits: LatencyLimits,
    /// The objective.
    pub aim: FleetObjective,
    /// Maximum US dollars per hour.
    pub budget_usd_per_hour: Option<f64>,
    /// Maximum number of devices.
    pub max_devices: Option<u64>,
    /// One spare system of every kind in use.
    pub spare: bool,
    /// Share of every system's capacity that stays free; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom: Option<f64>,
    /// Hours a day that the fleet runs; absent for 24.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours_per_day: Option<f64>,
    /// Owned or rented: every offer is priced on this basis; null before the offers are known.
    pub price_basis: Option<PriceBasis>,
    /// Defaults used for unspecified inputs.
    pub assumed: Vec<String>,
}

/// Equal systems of the fleet.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Systems {
    /// Count.
    pub count: u64,
    /// The system.
    pub hardware: String,
    /// The system as `--hardware` takes it.
    #[serde(default)]
    pub system: String,
    /// The plan of each in one line.
    #[serde(default)]
    pub notation: String,
    /// The offer: payment mode and name.
    pub offer: String,
    /// The model they run.
    pub model: String,
    /// Plan and weight format of each.
    pub plan: String,
    /// Devices of all of them.
    pub devices: u64,
    /// US dollars per hour of all of them.
    pub usd_per_hour: f64,
    /// The most that they may cost per hour; a budget holds at this price.
    pub usd_per_hour_most: f64,
    /// Requests per second routed to them.
    pub requests_per_s: f64,
    /// Number of systems that their load keeps busy.
    pub busy: f64,
}

/// A share of a bucket.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Routed {
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// The model.
    pub model: String,
    /// Index into `systems`.
    pub systems: u64,
    /// Fraction of the bucket routed there.
    pub share: f64,
    /// Requests per second routed there.
    pub requests_per_s: f64,
}

/// The certificate: bound, proof method, exact checks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FleetCertificate {
    /// Proof status.
    pub status: Status,
    /// Objective of the fleet, in `unit`.
    pub objective: Option<f64>,
    /// Bound on the objective.
    pub bound: Option<f64>,
    /// Gap between objective and bound, as a fraction of the objective.
    pub gap: Option<f64>,
    /// Unit of the objective.
    pub unit: String,
    /// Method that proves the bound.
    pub prover: Prover,
    /// Nodes of the search.
    pub nodes: u64,
    /// Variables of the integer program.
    pub columns: u64,
    /// Constraints of the integer program.
    pub rows: u64,
    /// Constraints checked in exact integers, all satisfied.
    pub rows_checked: u64,
    /// Errors of the solver, if any; the result is then from the exact search.
    pub doubts: Vec<String>,
    /// The integer program with the values of the solution, for independent checks.
    #[serde(rename = "programme")]
    pub program: ReportedProgram,
}

/// A change that makes the problem feasible.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RelaxationHint {
    /// The changed constraint.
    pub what: String,
    /// The current value.
    pub stated: f64,
    /// The smallest feasible value, found by solving again.
    pub needed: f64,
}

/// The result of `fleet`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FleetResult {
    /// The scenario of every offer, so that the result can be verified.
    pub scenario: Scenario,
    /// The problem.
    #[serde(alias = "asked")]
    pub question: FleetInputs,
    /// The fleet; empty if infeasible.
    pub systems: Vec<Systems>,
    /// Costs by time, token and bucket; null if infeasible.
    #[serde(default)]
    pub costs: Option<FleetCosts>,
    /// US dollars per hour of the whole fleet.
    pub usd_per_hour: Option<f64>,
    /// The most that the whole fleet may cost per hour.
    pub usd_per_hour_most: Option<f64>,
    /// Devices of the whole fleet.
    pub devices: Option<u64>,
    /// Output tokens per second: served, requested.
    pub output_tok_s: (f64, f64),
    /// Routing of the traffic.
    pub routes: Vec<Routed>,
    /// The certificate.
    pub certificate: FleetCertificate,
    /// Minimal conflicting constraints: dropping any one makes the others feasible.
    pub conflict: Vec<String>,
    /// Whether that minimality is proved.
    pub irreducible: bool,
    /// If not all traffic can be served: maximum output tokens per second under the other constraints.
    pub most_output_tok_s: Option<f64>,
    /// The smallest single changes that make it feasible.
    pub helps: Vec<RelaxationHint>,
    /// Traffic that no offer serves within the SLOs, and offers that serve nothing, with reasons.
    pub unserved: Vec<String>,
    /// Number of system types (hardware, offer, model, plan) considered.
    pub kinds: u64,
    /// Commands and files that launch each of `systems`, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<LaunchReport>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemName {
    pub hardware: String,
    pub offer: String,
    pub model: String,
    /// Plan and weight format.
    pub plan: String,
}

/// Source of the rates of a system type.
#[derive(Clone, Debug)]
pub struct RateOrigin {
    pub problem: Arc<Problem>,
    /// Its deployment, with its capacity.
    pub shape: ShapeRates,
    /// Its buckets, in order.
    pub buckets: Vec<usize>,
}

/// The fleet problem with its sources.
#[derive(Clone, Debug)]
pub struct FleetProblem {
    /// The scenario of every offer.
    pub scenario: Scenario,
    pub inputs: FleetInputs,
    /// Traffic, supplies and kinds.
    pub fleet: Fleet,
    pub bounds: FleetBounds,
    /// Of every kind.
    pub names: Vec<SystemName>,
    /// Of every kind.
    pub shapes: Vec<RateOrigin>,
    /// Traffic that no offer serves, and offers that serve nothing.
    pub unserved: Vec<String>,
}

impl FleetResult {
    /// One row for each share of a bucket.
    pub(crate) fn csv(&self) -> String {
        let columns: [CsvColumn<(&Routed, &Systems)>; 10] = [
            ("isl", |(route, _)| route.isl.to_string()),
            ("osl", |(route, _)| route.osl.to_string()),
            ("model", |(route, _)| route.model.clone()),
            ("requests_per_s", |(route, _)| route.requests_per_s.to_string()),
            ("share", |(route, _)| route.share.to_string()),
            ("hardware", |(_, system)| system.hardware.clone()),
            ("offer", |(_, system)| system.offer.clone()),
            ("plan", |(_, system)| system.plan.clone()),
            ("systems", |(_, system)| system.count.to_string()),
            ("usd_per_hour", |(_, system)| system.usd_per_hour.to_string()),
        ];
        let routes = self.routes.iter().map(|route| (route, &self.systems[route.systems as usize]));
        sheet::table(&columns, routes)
    }

    /// The same result with `systems`, kinds with counts, that serve `parts` of the traffic.
    pub fn with_systems(
        self,
        problem: &FleetProblem,
        systems: &[(usize, u64)],
        parts: &[BucketShare],
    ) -> FleetResult {
        let FleetProblem { inputs, fleet, names, .. } = problem;
        let rate = |part: &BucketShare| part.share * fleet.buckets[part.bucket].rate;
        let system = |&(kind, count): &(usize, u64)| {
            let own = || parts.iter().filter(|part| part.kind == kind);
            let SystemName { hardware, offer, model, plan } = names[kind].clone();
            let RateOrigin { problem: own_problem, shape, .. } = &problem.shapes[kind];
            Systems {
                count,
                hardware,
                system: own_problem.cluster.id.clone(),
                notation: report_deployment(own_problem, &shape.candidate).notation,
                offer,
                model,
                plan,
                devices: count.saturating_mul(fleet.kinds[kind].devices),
                usd_per_hour: count as f64 * fleet.kinds[kind].usd_per_hour,
                usd_per_hour_most: count as f64 * fleet.kinds[kind].usd_per_hour_most,
                requests_per_s: own().map(rate).sum(),
                busy: own().map(|part| fleet.kinds[kind].busy(part.bucket, rate(part))).sum(),
            }
        };
        let route = |part: &BucketShare| {
            let bucket = &inputs.buckets[part.bucket];
            Some(Routed {
                isl: bucket.isl,
                osl: bucket.osl,
                model: inputs.models[fleet.buckets[part.bucket].model].clone(),
                systems: systems.iter().position(|(kind, _)| *kind == part.kind)? as u64,
                share: part.share,
                requests_per_s: part.share * bucket.rate,
            })
        };
        let reported: Vec<Systems> = systems.iter().map(system).collect();
        let served = parts.iter().map(|part| part.share * fleet.buckets[part.bucket].tokens()).sum();
        let routes: Vec<Routed> = parts.iter().filter_map(route).collect();
        let known = parts.iter().filter(|part| systems.iter().any(|(kind, _)| *kind == part.kind));
        let shares: Vec<(usize, usize, f64)> = known
            .map(|part| (part.kind, part.bucket, fleet.kinds[part.kind].busy(part.bucket, rate(part))))
            .collect();
        FleetResult {
            costs: Some(costs(problem, &reported, &routes, &shares)),
            usd_per_hour: Some(reported.iter().map(|one| one.usd_per_hour).sum()),
            usd_per_hour_most: Some(reported.iter().map(|one| one.usd_per_hour_most).sum()),
            devices: Some(reported.iter().map(|one| one.devices).fold(0, u64::saturating_add)),
            output_tok_s: (served, fleet.buckets.iter().map(Bucket::tokens).sum()),
            routes,
            systems: reported,
            ..self
        }
    }
}

pub fn fleet_answer(posed: &FleetProblem, mix: &FleetMix) -> FleetResult {
    let why = mix.reasons.clone().unwrap_or_default();
    let help = |help: &RowRelaxation| {
        let scale = if help.group == "budget" { MILLS } else { 1.0 };
        RelaxationHint {
            what: help.row.clone(),
            stated: help.stated as f64 / scale,
            needed: help.needed as f64 / scale,
        }
    };
    let served = mix.served(&posed.fleet);
    let result = FleetResult {
        launches: vec![],
        costs: None,
        usd_per_hour: None,
        usd_per_hour_most: None,
        devices: None,
        output_tok_s: (served, posed.fleet.buckets.iter().map(Bucket::tokens).sum()),
        routes: vec![],
        certificate: certificate(posed.inputs.aim, mix, served),
        conflict: why.conflict.clone(),
        irreducible: why.irreducible,
        most_output_tok_s: None,
        helps: why.relaxations.iter().map(help).collect(),
        unserved: posed.unserved.clone(),
        kinds: posed.fleet.kinds.len() as u64,
        systems: vec![],
        scenario: posed.scenario.clone(),
        question: posed.inputs.clone(),
    };
    if mix.solved.values.is_none() {
        return result;
    }
    let counts = mix.counts.iter().copied().enumerate();
    let systems: Vec<(usize, u64)> = counts.filter(|(_, count)| *count > 0).collect();
    result.with_systems(posed, &systems, &mix.parts)
}

fn certificate(objective: FleetObjective, mix: &FleetMix, served: f64) -> FleetCertificate {
    let solved = &mix.solved;
    let gap = solved
        .objective
        .zip(solved.bound)
        .map(|(objective, bound)| (objective - bound).abs() / objective.abs().max(f64::MIN_POSITIVE));
    // Tokens are scaled by the largest bucket, which leaves the relative gap unchanged.
    let tell = |value: f64| match objective {
        FleetObjective::Cost => value / MILLS,
        FleetObjective::Devices => value,
        FleetObjective::Throughput => {
            let whole = solved.objective.unwrap_or(0.0);
            if whole == 0.0 { 0.0 } else { served * value / whole }
        }
    };
    let unit = match objective {
        FleetObjective::Cost => "USD/h",
        FleetObjective::Devices => "devices",
        FleetObjective::Throughput => "output tok/s",
    };
    FleetCertificate {
        status: solved.status,
        objective: solved.objective.map(tell),
        bound: solved.bound.map(tell),
        gap: gap.map(|gap| if solved.objective == Some(0.0) { 0.0 } else { gap }),
        unit: unit.to_string(),
        prover: solved.prover,
        nodes: solved.nodes,
        columns: mix.program.columns.len() as u64,
        rows: mix.program.rows.len() as u64,
        rows_checked: solved.rows_checked,
        doubts: solved.doubts.clone(),
        program: report_program(&mix.program, solved.values.as_ref()),
    }
}
