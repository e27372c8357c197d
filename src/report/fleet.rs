//! The reported fleet: systems with counts, routing of the traffic, certificate.

pub mod program;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use program::{ReportedProgram, report_program};

use crate::search::fleet::rates::ShapeRates;
use crate::search::fleet::{Bucket, Fleet, FleetBounds, FleetMix, FleetObjective, MILLS};
use crate::search::mip::solve::Prover;
use crate::search::outcome::Status;
use crate::search::problem::Problem;
use crate::spec::fleet::{PricedOffer, TrafficBucket};
use crate::spec::objective::LatencyLimits;
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
    /// Defaults used for unspecified inputs.
    pub assumed: Vec<String>,
}

/// Equal systems of the fleet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Systems {
    /// Count.
    pub count: u64,
    /// The system.
    pub hardware: String,
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
    /// Requests per second routed to them.
    pub requests_per_s: f64,
    /// Number of systems that their load keeps busy.
    pub busy: f64,
}

/// A share of a bucket.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    pub programme: ReportedProgram,
}

/// A change that makes the problem feasible.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RelaxationHint {
    /// The changed constraint.
    pub what: String,
    /// The current value.
    pub stated: f64,
    /// The smallest feasible value, found by solving again.
    pub needed: f64,
}

/// The result of `fleet`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FleetResult {
    /// The scenario of every offer, so that the result can be verified.
    pub scenario: Scenario,
    /// The problem.
    pub asked: FleetInputs,
    /// The fleet; empty if infeasible.
    pub systems: Vec<Systems>,
    /// US dollars per hour of the whole fleet.
    pub usd_per_hour: Option<f64>,
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
}

/// Name of a system type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemName {
    /// The system.
    pub hardware: String,
    /// The offer.
    pub offer: String,
    /// The model it runs.
    pub model: String,
    /// Plan and weight format.
    pub plan: String,
}

/// Source of the rates of a system type.
#[derive(Clone, Debug)]
pub struct RateOrigin {
    /// The problem of the system.
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
    /// The problem.
    pub asked: FleetInputs,
    /// Traffic, supplies and kinds.
    pub fleet: Fleet,
    /// Constraints.
    pub bounds: FleetBounds,
    /// Of every kind.
    pub names: Vec<SystemName>,
    /// Of every kind.
    pub shapes: Vec<RateOrigin>,
    /// Traffic that no offer serves, and offers that serve nothing.
    pub unserved: Vec<String>,
}

/// Builds the result.
pub fn fleet_answer(posed: &FleetProblem, mix: &FleetMix) -> FleetResult {
    let FleetProblem { scenario, asked, fleet, names, unserved, .. } = posed;
    let mut systems = Vec::new();
    let mut place = vec![None; fleet.kinds.len()];
    for (kind, count) in mix.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let parts = || mix.parts.iter().filter(|part| part.kind == kind);
        let rate = |part: &crate::search::fleet::BucketShare| part.share * fleet.buckets[part.bucket].rate;
        let busy = parts().map(|part| fleet.kinds[kind].busy(part.bucket, rate(part)));
        let SystemName { hardware, offer, model, plan } = names[kind].clone();
        place[kind] = Some(systems.len() as u64);
        systems.push(Systems {
            count: *count,
            hardware,
            offer,
            model,
            plan,
            devices: count * fleet.kinds[kind].devices,
            usd_per_hour: *count as f64 * fleet.kinds[kind].usd_per_hour,
            requests_per_s: parts().map(rate).sum(),
            busy: busy.sum(),
        });
    }
    let routes = mix.parts.iter().filter_map(|part| {
        let bucket = &asked.buckets[part.bucket];
        Some(Routed {
            isl: bucket.isl,
            osl: bucket.osl,
            model: asked.models[fleet.buckets[part.bucket].model].clone(),
            systems: place[part.kind]?,
            share: part.share,
            requests_per_s: part.share * bucket.rate,
        })
    });
    let served = mix.served(fleet);
    let wanted: f64 = fleet.buckets.iter().map(Bucket::tokens).sum();
    let found = mix.solved.values.is_some();
    let why = mix.reasons.clone().unwrap_or_default();
    let help = |help: &crate::search::mip::reasons::RowRelaxation| {
        let scale = if help.group == "budget" { MILLS } else { 1.0 };
        RelaxationHint {
            what: help.row.clone(),
            stated: help.stated as f64 / scale,
            needed: help.needed as f64 / scale,
        }
    };
    FleetResult {
        usd_per_hour: found.then(|| systems.iter().map(|one| one.usd_per_hour).sum()),
        devices: found.then(|| systems.iter().map(|one| one.devices).sum()),
        output_tok_s: (served, wanted),
        routes: routes.collect(),
        certificate: certificate(asked.aim, mix, (served, wanted)),
        conflict: why.conflict.clone(),
        irreducible: why.irreducible,
        most_output_tok_s: None,
        helps: why.relaxations.iter().map(help).collect(),
        unserved: unserved.clone(),
        kinds: fleet.kinds.len() as u64,
        systems,
        scenario: scenario.clone(),
        asked: asked.clone(),
    }
}

fn certificate(aim: FleetObjective, mix: &FleetMix, (served, _): (f64, f64)) -> FleetCertificate {
    let solved = &mix.solved;
    let gap = solved
        .objective
        .zip(solved.bound)
        .map(|(objective, bound)| (objective - bound).abs() / objective.abs().max(f64::MIN_POSITIVE));
    // Tokens are scaled by the largest bucket, which leaves the relative gap unchanged.
    let tell = |value: f64| match aim {
        FleetObjective::Cost => value / MILLS,
        FleetObjective::Devices => value,
        FleetObjective::Throughput => {
            let whole = solved.objective.unwrap_or(0.0);
            if whole == 0.0 { 0.0 } else { served * value / whole }
        }
    };
    let unit = match aim {
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
        columns: mix.programme.columns.len() as u64,
        rows: mix.programme.rows.len() as u64,
        rows_checked: solved.rows_checked,
        doubts: solved.doubts.clone(),
        programme: report_program(&mix.programme, solved.values.as_ref()),
    }
}
