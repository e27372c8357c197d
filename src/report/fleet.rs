//! A fleet that leaves the house: how many of what, where the traffic goes, and what is certified of it.

pub mod program;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use program::{ReportedProgram, stated};

use crate::search::fleet::rates::ShapeRates;
use crate::search::fleet::{Bucket, Fleet, FleetBounds, FleetMix, FleetObjective, MILLS};
use crate::search::mip::solve::Prover;
use crate::search::outcome::Status;
use crate::search::question::Problem;
use crate::spec::fleet::{PricedOffer, TrafficBucket};
use crate::spec::objective::LatencyLimits;
use crate::spec::scenario::Scenario;

/// What is asked, every default filled in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FleetInputs {
    /// Models, each with its traffic.
    pub models: Vec<String>,
    /// Traffic.
    pub buckets: Vec<TrafficBucket>,
    /// What may be had.
    pub offers: Vec<PricedOffer>,
    /// Latency limits of every request.
    pub limits: LatencyLimits,
    /// What is made small or large.
    pub aim: FleetObjective,
    /// Most US dollars an hour.
    pub budget_usd_per_hour: Option<f64>,
    /// Most devices.
    pub max_devices: Option<u64>,
    /// One system more of every kind in use than its load takes.
    pub spare: bool,
    /// What was assumed because nobody stated it.
    pub assumed: Vec<String>,
}

/// Like systems of the fleet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Systems {
    /// How many.
    pub count: u64,
    /// Of what.
    pub hardware: String,
    /// How they are paid for, and what else tells the offer from others.
    pub offer: String,
    /// The model they run.
    pub model: String,
    /// How each runs it: plan and weight format.
    pub plan: String,
    /// Devices of all of them.
    pub devices: u64,
    /// US dollars an hour of all of them.
    pub usd_per_hour: f64,
    /// Requests a second that go to them.
    pub requests_per_s: f64,
    /// Systems that their load keeps busy.
    pub busy: f64,
}

/// A share of a bucket.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Routed {
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// The model asked.
    pub model: String,
    /// Index into `systems`.
    pub systems: u64,
    /// How much of the bucket goes there.
    pub share: f64,
    /// Requests a second that go there.
    pub requests_per_s: f64,
}

/// What is proved, and how it was checked.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FleetCertificate {
    /// How far it is proved.
    pub status: Status,
    /// What the mix comes to, in the aim's unit.
    pub objective: Option<f64>,
    /// No mix is better than that.
    pub bound: Option<f64>,
    /// How far the mix may be from the best, as a fraction of it.
    pub gap: Option<f64>,
    /// The aim's unit.
    pub unit: String,
    /// Who answers for the bound.
    pub prover: Prover,
    /// Nodes of the search.
    pub nodes: u64,
    /// Unknowns of the programme.
    pub columns: u64,
    /// Conditions of the programme.
    pub rows: u64,
    /// Conditions checked in whole numbers, all kept.
    pub rows_checked: u64,
    /// What the solver got wrong, where it did; our own search answered in its place.
    pub doubts: Vec<String>,
    /// What was solved, with the answer's values: whoever doubts it can check every row, or solve it again.
    pub programme: ReportedProgram,
}

/// A change that helps.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RelaxationHint {
    /// What is changed.
    pub what: String,
    /// As stated.
    pub stated: f64,
    /// The least change for which there is a mix, tried by solving again.
    pub needed: f64,
}

/// The answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FleetResult {
    /// What is asked of every offer, so that the answer can be checked.
    pub scenario: Scenario,
    /// What is asked.
    pub asked: FleetInputs,
    /// The fleet; empty when there is none.
    pub systems: Vec<Systems>,
    /// US dollars an hour of all of it.
    pub usd_per_hour: Option<f64>,
    /// Devices of all of it.
    pub devices: Option<u64>,
    /// Output tokens a second that it serves, and those asked for.
    pub output_tok_s: (f64, f64),
    /// Where the traffic goes.
    pub routes: Vec<Routed>,
    /// What is certified.
    pub certificate: FleetCertificate,
    /// Conditions that cannot all be kept; leaving out any one of them, the others can.
    pub conflict: Vec<String>,
    /// That is proved.
    pub irreducible: bool,
    /// Where not all traffic can be served: most output tokens a second that can, with everything else kept.
    pub most_output_tok_s: Option<f64>,
    /// The least single changes that help.
    pub helps: Vec<RelaxationHint>,
    /// Traffic that no offer serves within the limits, and offers that serve nothing, with reasons.
    pub unserved: Vec<String>,
    /// Shapes of systems among which the mix was chosen.
    pub kinds: u64,
}

/// What a kind of system is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemName {
    /// The system.
    pub hardware: String,
    /// How it is paid for.
    pub offer: String,
    /// The model it runs.
    pub model: String,
    /// How.
    pub plan: String,
}

/// Where the rates of a kind of system come from.
#[derive(Clone, Debug)]
pub struct RateOrigin {
    /// What the system is asked.
    pub question: Arc<Problem>,
    /// Its shape, with what it carries.
    pub shape: ShapeRates,
    /// Of which buckets, in order.
    pub buckets: Vec<usize>,
}

/// Everything that a fleet is chosen among.
#[derive(Clone, Debug)]
pub struct FleetProblem {
    /// What is asked of every offer.
    pub scenario: Scenario,
    /// What is asked.
    pub asked: FleetInputs,
    /// Traffic, supplies and kinds.
    pub fleet: Fleet,
    /// What must be kept.
    pub bounds: FleetBounds,
    /// Of every kind.
    pub names: Vec<SystemName>,
    /// Of every kind.
    pub shapes: Vec<RateOrigin>,
    /// Traffic that no offer serves, and offers that serve nothing.
    pub unserved: Vec<String>,
}

/// Puts the answer together.
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
    // Tokens are weighed against the largest bucket: the gap carries over.
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
        programme: stated(&mix.programme, solved.values.as_ref()),
    }
}
