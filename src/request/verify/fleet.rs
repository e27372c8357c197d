//! Verification of a saved fleet: every system, share, load and limit, cost, bound, neighbouring fleets, and the search
//! itself.

mod mix;

use serde_json::Value;

use super::compare::FieldDifference;
use super::{CheckResult, RandomSample, Rerun, differences, faults, off, question, read, search};
use crate::quantity::tolerance::{ROUNDED_LOAD, SUMMED};
use crate::report::fleet::{FleetProblem, FleetResult};
use crate::report::verify::Verified;
use crate::request::UNCONTROLLED;
use crate::request::fleet::build_problem::{build_problem, solved};
use crate::request::fleet::launches;
use crate::search::fleet::{Bucket, FleetObjective, SystemKind, pinned};
use crate::search::mip::solve::SolveBudget;
use crate::search::outcome::Status;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use mix::SavedMix;

/// Maximum number of neighbouring fleets tried: each needs its own integer program.
const MOST_NEIGHBOURS: u64 = 300;

/// The problem of a saved fleet, and the result of a new search.
pub struct FleetRerun {
    pub problem: FleetProblem,
    pub fresh: FleetResult,
}

impl Rerun for FleetRerun {
    fn check(&self, saved: &Value, sample: RandomSample) -> Result<Verified, Error> {
        Ok(Verified::of(self.checks(&read(saved)?, sample), sample.seed))
    }
}

impl FleetRerun {
    pub fn solve(catalog: &Catalog, saved: FleetResult) -> Result<FleetRerun, Error> {
        let problem = build_problem(catalog, saved.question, saved.scenario, &UNCONTROLLED)?;
        let fresh = solved(&problem);
        let launches = launches(catalog, &fresh)?;
        let fresh = FleetResult { launches, ..fresh };
        Ok(FleetRerun { problem, fresh })
    }

    fn checks(&self, saved: &FleetResult, sample: RandomSample) -> Vec<CheckResult> {
        let mut resolved = differences("scenario", &saved.scenario, &self.fresh.scenario);
        resolved.extend(differences("question", &saved.question, &self.fresh.question));
        let mut checks = vec![question([faults(resolved), self.limits(saved)].concat())];
        let read = SavedMix::read(&self.problem, saved);
        let unread = read.as_ref().err().cloned().unwrap_or_default();
        // Without a fleet, the new search must confirm it.
        if !saved.systems.is_empty() {
            let what = "systems: of known kinds, in integer counts";
            checks.push(CheckResult::new(what, saved.systems.len(), unread));
            if let Ok(mix) = &read {
                checks.extend(self.of_fleet(saved, mix, sample));
            }
        }
        checks.push(search(saved, &self.fresh));
        checks
    }

    /// Checks the systems and the routes of a saved fleet.
    fn of_fleet(&self, saved: &FleetResult, mix: &SavedMix, sample: RandomSample) -> Vec<CheckResult> {
        let again = saved.clone().with_systems(&self.problem, &mix.systems, &mix.parts);
        let all = differences("", saved, &again);
        let (systems, others): (Vec<_>, Vec<FieldDifference>) =
            all.into_iter().partition(|one| one.path.starts_with("systems"));
        let (routes, sums): (Vec<_>, Vec<FieldDifference>) =
            others.into_iter().partition(|one| one.path.starts_with("routes"));
        let count = saved.routes.len();
        let (looked, better) = self.neighbours(saved, mix, sample);
        vec![
            CheckResult::new(
                "traffic: shares of every length sum to 1",
                count,
                [mix.unrouted.clone(), mix.shares(), faults(routes)].concat(),
            ),
            CheckResult::new(
                "load: devices, price and utilization of every system",
                mix.systems.len(),
                [mix.overloads(), faults(systems)].concat(),
            ),
            CheckResult::new("limits: every length on its systems, re-evaluated", count, mix.limits()),
            CheckResult::new(
                "bounds: budget, devices, availability of every offer",
                self.problem.fleet.supplies.len() + 2,
                mix.bounds(),
            ),
            CheckResult::new("sums: cost, devices and throughput add up", 4, faults(sums)),
            CheckResult::new(
                "certificate: objective, bounds and gap agree",
                1,
                self.certificate(saved, objective(&self.problem, &mix.systems, again.output_tok_s.0)),
            ),
            CheckResult::new(
                "sample: fleets with one system fewer or replaced are infeasible or no better",
                looked,
                better,
            ),
        ]
    }

    fn limits(&self, saved: &FleetResult) -> Vec<String> {
        let limits = saved.question.limits;
        let same = self.problem.scenario.limits(limits).is_ok_and(|again| again == limits);
        if same { vec![] } else { vec!["limits: differ from those of the scenario".to_string()] }
    }

    /// A bound for every fleet: each bucket alone, served at least cost.
    fn independent_bound(&self) -> f64 {
        let (fleet, aim) = (&self.problem.fleet, self.problem.inputs.aim);
        let value = |kind: &SystemKind| match aim {
            FleetObjective::Cost => kind.usd_per_hour,
            FleetObjective::Devices | FleetObjective::Throughput => kind.devices as f64,
        };
        let least = |(at, bucket): (usize, &Bucket)| {
            let serving = fleet.kinds.iter().filter(|kind| kind.model == bucket.model);
            let loads = serving.filter_map(|kind| Some(value(kind) * bucket.rate / kind.rates[at]?));
            loads.fold(f64::INFINITY, f64::min)
        };
        match aim {
            FleetObjective::Throughput => fleet.buckets.iter().map(Bucket::tokens).sum(),
            FleetObjective::Cost | FleetObjective::Devices => {
                fleet.buckets.iter().enumerate().map(least).sum()
            }
        }
    }

    /// Whether the objective value `a` is better than `b`.
    fn beyond(&self, a: f64, b: f64) -> bool {
        let margin = SUMMED.max(ROUNDED_LOAD) * b.abs();
        if self.problem.inputs.aim == FleetObjective::Throughput { a > b + margin } else { a < b - margin }
    }

    fn certificate(&self, saved: &FleetResult, objective: f64) -> Vec<String> {
        let proof = &saved.certificate;
        let (Some(claimed), Some(bound), Some(saved_gap)) = (proof.objective, proof.bound, proof.gap) else {
            return vec!["certificate: no objective, bound or gap is saved".to_string()];
        };
        let mut faults: Vec<String> =
            off("certificate.objective", claimed, objective, ROUNDED_LOAD).into_iter().collect();
        if self.beyond(claimed, bound) {
            faults.push(format!("certificate.bound: saved {bound}, the objective {claimed} is beyond it"));
        }
        let independent = self.independent_bound();
        if self.beyond(objective, independent) {
            faults.push(format!(
                "certificate.objective: {objective}, beyond the bound {independent} of independent lengths"
            ));
        }
        let gap = if claimed == 0.0 { 0.0 } else { (claimed - bound).abs() / claimed.abs() };
        if (saved_gap - gap).abs() > ROUNDED_LOAD {
            faults.push(format!("certificate.gap: saved {saved_gap}, recomputed {gap}"));
        }
        if proof.status == Status::Optimal && gap > ROUNDED_LOAD {
            faults.push(format!("certificate.status: saved optimal, the gap is {gap}"));
        }
        faults
    }

    /// Fleets near the saved one that are better than its bound: one system fewer, or some replaced.
    fn neighbours(&self, saved: &FleetResult, mix: &SavedMix, sample: RandomSample) -> (usize, Vec<String>) {
        let FleetProblem { fleet, inputs, bounds, .. } = &self.problem;
        let bound = saved.certificate.bound.unwrap_or(f64::NAN);
        let tried = mix.neighbours(sample);
        let mut faults = Vec::new();
        for counts in &tried {
            let systems: Vec<(usize, u64)> =
                counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
            // Feasibility is tested only for better fleets.
            let value = objective(&self.problem, &systems, 0.0);
            if inputs.aim != FleetObjective::Throughput && !self.beyond(value, bound) {
                continue;
            }
            let found = pinned(fleet, inputs.aim, bounds, counts, &SolveBudget::default());
            let value = objective(&self.problem, &systems, found.served(fleet));
            if found.solved.values.is_some() && self.beyond(value, bound) {
                let name = |(kind, count): &(usize, u64)| format!("{count} x {}", fleet.kinds[*kind].name);
                let names = systems.iter().map(name).collect::<Vec<_>>().join(", ");
                faults.push(format!("{names}: objective {value}, better than the saved bound {bound}"));
            }
        }
        (tried.len(), faults)
    }
}

/// The objective of systems that serve `served` output tokens per second.
fn objective(problem: &FleetProblem, systems: &[(usize, u64)], served: f64) -> f64 {
    use crate::search::fleet::MILLS;
    let sum = |of: &dyn Fn(&SystemKind) -> f64| {
        systems.iter().map(|(kind, count)| *count as f64 * of(&problem.fleet.kinds[*kind])).sum()
    };
    match problem.inputs.aim {
        // Cost is counted in whole thousandths of a dollar.
        FleetObjective::Cost => sum(&|kind| (kind.usd_per_hour * MILLS).ceil()) / MILLS,
        FleetObjective::Devices => sum(&|kind| kind.devices as f64),
        FleetObjective::Throughput => served,
    }
}
