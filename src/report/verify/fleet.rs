//! Verification of a saved fleet against the formulas: every system, share, load and limit, cost, bound,
//! neighbouring fleets, and the search itself. Reads no files.

mod read;

use serde_json::Value;

use super::{CLOSE, CheckResult, Verified, figure, off, rows, unlike, value, whole};
use crate::report::fleet::{FleetProblem, FleetResult};
use crate::search::fleet::{Bucket, FleetObjective, SystemKind, pinned};
use crate::search::mip::solve::SolveBudget;
use read::{Route, SavedFleet, read};

/// Shares are whole parts of a thousand million, loads are rounded up to one in a hundred thousand.
const ROUNDED: f64 = 1e-5;
/// Maximum number of neighbouring fleets tried: each needs its own integer program.
const MOST_BESIDE: u64 = 300;

/// A bound for every fleet: each bucket alone, served at least cost.
fn apart(posed: &FleetProblem) -> f64 {
    let fleet = &posed.fleet;
    let worth = |kind: &SystemKind| match posed.asked.aim {
        FleetObjective::Cost => kind.usd_per_hour,
        FleetObjective::Devices | FleetObjective::Throughput => kind.devices as f64,
    };
    let least = |at: usize| {
        let serving = fleet.kinds.iter().filter(|kind| kind.model == fleet.buckets[at].model);
        let loads = serving.filter_map(|kind| Some(worth(kind) * fleet.buckets[at].rate / kind.rates[at]?));
        loads.fold(f64::INFINITY, f64::min)
    };
    match posed.asked.aim {
        FleetObjective::Throughput => fleet.buckets.iter().map(Bucket::tokens).sum(),
        FleetObjective::Cost | FleetObjective::Devices => (0..fleet.buckets.len()).map(least).sum(),
    }
}

/// Whether `a` is better than `b`.
fn beyond(aim: FleetObjective, a: f64, b: f64) -> bool {
    let hair = CLOSE.max(ROUNDED) * b.abs();
    if aim == FleetObjective::Throughput { a > b + hair } else { a < b - hair }
}

/// Consistency of the certificate.
fn certificate(posed: &FleetProblem, saved: &Value, objective: f64) -> Vec<String> {
    let (proof, aim) = (&saved["certificate"], posed.asked.aim);
    let (told, bound) = (figure(proof, "objective"), figure(proof, "bound"));
    let mut faults: Vec<String> =
        off("certificate.objective", told, objective, ROUNDED).into_iter().collect();
    if bound.is_nan() || beyond(aim, told, bound) {
        faults.push(format!("certificate.bound: saved {bound}, the objective {told} is beyond it"));
    }
    let apart = apart(posed);
    if beyond(aim, objective, apart) {
        faults.push(format!(
            "certificate.objective: {objective}, beyond the bound {apart} of independent lengths"
        ));
    }
    let gap = if told == 0.0 { 0.0 } else { (told - bound).abs() / told.abs() };
    if (figure(proof, "gap") - gap).abs() > ROUNDED || proof["gap"].is_null() {
        faults.push(format!("certificate.gap: saved {}, recomputed {gap}", proof["gap"]));
    }
    if proof["status"] == "optimal" && gap > ROUNDED {
        faults.push(format!("certificate.status: saved optimal, the gap is {gap}"));
    }
    faults
}

/// Fleets near `read` that are better than its bound: one system fewer, or some replaced.
fn beside(read: &SavedFleet, bound: f64, (count, seed): (u64, u64)) -> (u64, Vec<String>) {
    let posed = read.problem;
    let (fleet, aim) = (&posed.fleet, posed.asked.aim);
    let held = read.counts();
    let used: Vec<usize> = (0..held.len()).filter(|kind| held[*kind] > 0).collect();
    if used.is_empty() {
        return (0, vec![]);
    }
    let mut tried: Vec<Vec<u64>> = Vec::new();
    for &kind in &used {
        let mut fewer = held.clone();
        fewer[kind] -= 1;
        tried.push(fewer);
    }
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..count.min(MOST_BESIDE) {
        let mut other = held.clone();
        let from = used[random.usize(0..used.len())];
        other[from] -= random.u64(1..=other[from].min(2));
        for _ in 0..random.usize(1..=2) {
            other[random.usize(0..fleet.kinds.len())] += 1;
        }
        if !tried.contains(&other) {
            tried.push(other);
        }
    }
    let worth = |counts: &[u64]| {
        let systems = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        SavedFleet { problem: posed, systems: systems.map(|(kind, count)| (kind, *count)).collect() }
    };
    let (mut looked, mut faults) = (0, Vec::new());
    for counts in &tried {
        let other = worth(counts);
        looked += 1;
        // Feasibility is tested only for better fleets.
        if aim != FleetObjective::Throughput && !beyond(aim, other.objective(0.0), bound) {
            continue;
        }
        let found = pinned(fleet, aim, &posed.bounds, counts, &SolveBudget::default());
        let objective = other.objective(found.served(fleet));
        if found.solved.values.is_some() && beyond(aim, objective, bound) {
            let name = |(kind, count): &(usize, u64)| format!("{count} x {}", fleet.kinds[*kind].name);
            let told: Vec<String> = other.systems.iter().map(name).collect();
            faults.push(format!(
                "{}: objective {objective}, better than the saved bound {bound}",
                told.join(", ")
            ));
        }
    }
    (looked, faults)
}

/// Compares the saved limits with those of the scenario.
fn limits(posed: &FleetProblem) -> Vec<String> {
    let (told, sought) = (posed.asked.limits, posed.scenario.limits(posed.asked.limits));
    let same = sought.is_ok_and(|sought| sought == told);
    if same { vec![] } else { vec!["asked.limits: differ from those of the scenario".to_string()] }
}

/// Checks a saved result of `posed`; `fresh` is the result of a new search.
pub fn verify(
    posed: &FleetProblem,
    (saved, fresh): (&Value, &FleetResult),
    (count, seed): (u64, u64),
) -> Verified {
    let again = value(fresh);
    let mut checks = vec![CheckResult::new(
        "question: resolves to the same inputs, with defaults",
        1,
        [unlike(&["scenario", "asked"], saved, &again), limits(posed)].concat(),
    )];
    let told = rows(saved, "systems").len();
    match read(posed, saved) {
        Err(faults) => {
            checks.push(CheckResult::new("systems: of known kinds, in integer counts", told, faults))
        }
        Ok(read) if told > 0 => {
            checks.push(CheckResult::new("systems: of known kinds, in integer counts", told, vec![]));
            let (routes, mut faults) = read.routes(saved);
            faults.extend(read.shares(&routes));
            checks.push(CheckResult::new("traffic: shares of every length sum to 1", routes.len(), faults));
            checks.push(CheckResult::new(
                "load: devices, price and utilization of every system",
                told,
                read.systems(saved, &routes),
            ));
            checks.push(CheckResult::new(
                "limits: every length on its systems, re-evaluated",
                routes.len(),
                read.limits(&routes),
            ));
            checks.push(CheckResult::new(
                "bounds: budget, devices, availability of every offer",
                posed.fleet.supplies.len() + 2,
                read.bounds(),
            ));
            let tokens = |route: &Route| route.share * posed.fleet.buckets[route.bucket].tokens();
            let served: f64 = routes.iter().map(tokens).sum();
            let wanted: f64 = posed.fleet.buckets.iter().map(Bucket::tokens).sum();
            let sums = [
                ("usd_per_hour", figure(saved, "usd_per_hour"), read.sum(|kind| kind.usd_per_hour)),
                ("devices", figure(saved, "devices"), read.sum(|kind| kind.devices as f64)),
                ("output_tok_s.0", saved["output_tok_s"][0].as_f64().unwrap_or(f64::NAN), served),
                ("output_tok_s.1", saved["output_tok_s"][1].as_f64().unwrap_or(f64::NAN), wanted),
            ];
            let faults = sums.into_iter().filter_map(|(key, saved, again)| off(key, saved, again, CLOSE));
            checks.push(CheckResult::new("sums: cost, devices and throughput add up", 4, faults.collect()));
            checks.push(CheckResult::new(
                "certificate: objective, bounds and gap agree",
                1,
                certificate(posed, saved, read.objective(served)),
            ));
            let bound = figure(&saved["certificate"], "bound");
            let (looked, faults) = beside(&read, bound, (count, seed));
            let what = "sample: fleets with one system fewer or replaced are infeasible or no better";
            checks.push(CheckResult::new(what, looked as usize, faults));
        }
        // Without a fleet, the new search must confirm it.
        Ok(_) => {}
    }
    let what = "search: a new search gives the same result in every field";
    checks.push(CheckResult::new(what, 1, whole(saved, &again, &[])));
    Verified::of(checks, seed)
}
