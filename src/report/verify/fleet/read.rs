//! Reads a saved fleet as system types and traffic shares, each checked against the formulas.

use serde_json::Value;

use super::super::{CLOSE, figure, off, rows};
use super::ROUNDED;
use crate::report::fleet::{FleetProblem, RateOrigin, SystemName};
use crate::search::fleet::{Bucket, FleetObjective, MILLS, SystemKind};
use crate::search::point::place;
use crate::serving::terms::Lengths;
use crate::spec::objective::Metric;

/// The systems of a saved fleet as system types of the problem.
pub(super) struct SavedFleet<'a> {
    pub(super) problem: &'a FleetProblem,
    /// System type and count of each saved entry.
    pub(super) systems: Vec<(usize, u64)>,
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

/// Number of systems of a type that the traffic routed to entry `at` keeps busy.
fn busy(posed: &FleetProblem, saved: &Value, (at, kind): (usize, usize)) -> f64 {
    let here = rows(saved, "routes").into_iter().filter(|row| row["systems"].as_u64() == Some(at as u64));
    let each = here.map(|row| {
        let like = |bucket: &usize| {
            let asked = &posed.asked.buckets[*bucket];
            (row["isl"].as_u64(), row["osl"].as_u64()) == (Some(asked.isl), Some(asked.osl))
                && posed.asked.models[posed.fleet.buckets[*bucket].model] == text(row, "model")
        };
        let bucket = (0..posed.asked.buckets.len()).find(like);
        bucket.map_or(f64::NAN, |bucket| posed.fleet.kinds[kind].busy(bucket, figure(row, "requests_per_s")))
    });
    each.sum()
}

/// Finds the type of every system.
pub(super) fn read<'a>(posed: &'a FleetProblem, saved: &Value) -> Result<SavedFleet<'a>, Vec<String>> {
    let (mut systems, mut faults): (Vec<(usize, u64)>, Vec<String>) = (Vec::new(), Vec::new());
    for (at, row) in rows(saved, "systems").into_iter().enumerate() {
        let of = |key| text(row, key).to_string();
        let name =
            SystemName { hardware: of("hardware"), offer: of("offer"), model: of("model"), plan: of("plan") };
        let Some(count) = row["count"].as_u64().filter(|count| *count > 0) else {
            faults.push(format!("systems.{at}.count: {} is not a positive integer", row["count"]));
            continue;
        };
        // Offers of the same hardware may differ in price alone.
        let like =
            |kind: &usize| posed.names[*kind] == name && systems.iter().all(|(other, _)| other != kind);
        let price = |kind: usize| {
            (count as f64 * posed.fleet.kinds[kind].usd_per_hour - figure(row, "usd_per_hour")).abs()
        };
        // Types differ in capacity, so that the same traffic keeps them busy for a different time.
        let busy = |kind: usize| (busy(posed, saved, (at, kind)) - figure(row, "busy")).abs();
        let kinds = (0..posed.names.len()).filter(like);
        match kinds.min_by(|a, b| price(*a).total_cmp(&price(*b)).then_with(|| busy(*a).total_cmp(&busy(*b))))
        {
            Some(kind) => systems.push((kind, count)),
            None => faults.push(format!(
                "systems.{at}: {} {} of {} as {} matches no offer",
                name.hardware, name.offer, name.model, name.plan
            )),
        }
    }
    if faults.is_empty() { Ok(SavedFleet { problem: posed, systems }) } else { Err(faults) }
}

/// A share of a bucket on a system.
pub(super) struct Route<'a> {
    pub(super) bucket: usize,
    system: usize,
    pub(super) share: f64,
    row: &'a Value,
}

impl<'a> SavedFleet<'a> {
    fn kind(&self, system: usize) -> &'a SystemKind {
        &self.problem.fleet.kinds[self.systems[system].0]
    }

    fn shaped(&self, system: usize) -> &'a RateOrigin {
        &self.problem.shapes[self.systems[system].0]
    }

    fn lengths(&self, bucket: usize) -> Lengths {
        let asked = &self.problem.asked.buckets[bucket];
        Lengths { isl: asked.isl, osl: asked.osl, prefix: asked.prefix }
    }

    /// The saved routes; equal buckets are matched in order.
    pub(super) fn routes<'v>(&self, saved: &'v Value) -> (Vec<Route<'v>>, Vec<String>) {
        let (mut routes, mut faults): (Vec<Route>, Vec<String>) = (Vec::new(), Vec::new());
        for (at, row) in rows(saved, "routes").into_iter().enumerate() {
            let (system, share) =
                (row["systems"].as_u64().unwrap_or(u64::MAX) as usize, figure(row, "share"));
            if system >= self.systems.len() {
                faults.push(format!(
                    "routes.{at}.systems: saved {}, only {} exist",
                    row["systems"],
                    self.systems.len()
                ));
                continue;
            }
            if !(share > 0.0 && share <= 1.0 + CLOSE) {
                faults.push(format!(
                    "routes.{at}.share: saved {}, expected more than 0 and at most 1",
                    row["share"]
                ));
            }
            let model = text(row, "model");
            let like = |bucket: &usize| {
                let asked = &self.problem.asked.buckets[*bucket];
                let its = &self.problem.asked.models[self.problem.fleet.buckets[*bucket].model];
                let lengths = (row["isl"].as_u64(), row["osl"].as_u64());
                let used = routes.iter().any(|other| other.bucket == *bucket && other.system == system);
                lengths == (Some(asked.isl), Some(asked.osl)) && its == model && !used
            };
            let rate = |bucket: usize| {
                (share * self.problem.fleet.buckets[bucket].rate - figure(row, "requests_per_s")).abs()
            };
            let buckets = (0..self.problem.fleet.buckets.len()).filter(like);
            match buckets.min_by(|a, b| rate(*a).total_cmp(&rate(*b))) {
                Some(bucket) => routes.push(Route { bucket, system, share, row }),
                None => faults.push(format!(
                    "routes.{at}: ISL {}, OSL {} of {model} is not part of the traffic",
                    row["isl"], row["osl"]
                )),
            }
        }
        (routes, faults)
    }

    /// Compares each saved system with its type and its routed traffic.
    pub(super) fn systems(&self, saved: &Value, routes: &[Route]) -> Vec<String> {
        let spare = f64::from(u8::from(self.problem.asked.spare));
        let mut faults = Vec::new();
        for (at, row) in rows(saved, "systems").into_iter().enumerate() {
            let (kind, count) = (self.kind(at), self.systems[at].1);
            let here = || routes.iter().filter(|route| route.system == at);
            let rate = |route: &Route| route.share * self.problem.fleet.buckets[route.bucket].rate;
            let busy: f64 = here().map(|route| kind.busy(route.bucket, rate(route))).sum();
            let told = [
                ("devices", (count * kind.devices) as f64, 0.0),
                ("usd_per_hour", count as f64 * kind.usd_per_hour, CLOSE),
                ("requests_per_s", here().map(rate).sum(), CLOSE),
                ("busy", busy, CLOSE),
            ];
            faults.extend(told.into_iter().filter_map(|(key, again, close)| {
                off(&format!("systems.{at}.{key}"), figure(row, key), again, close)
            }));
            if busy > count as f64 - spare + ROUNDED * count as f64 {
                faults.push(format!("systems.{at}: its traffic needs {busy} systems, saved {count}"));
            }
        }
        faults
    }

    /// Re-evaluates every share on its system at the load of its rate: limits, rate.
    pub(super) fn limits(&self, routes: &[Route]) -> Vec<String> {
        let limits = &self.problem.asked.limits;
        let mut faults = Vec::new();
        for (at, route) in routes.iter().enumerate() {
            let (shaped, kind) = (self.shaped(route.system), self.kind(route.system));
            let place_of = shaped.buckets.iter().position(|bucket| *bucket == route.bucket);
            let carried = place_of.and_then(|at| shaped.shape.carried[at].as_ref());
            let Some((carried, rate)) = carried.zip(kind.rates[route.bucket]) else {
                faults.push(format!("routes.{at}: {} does not meet the SLO for it", kind.name));
                continue;
            };
            let lengths = self.lengths(route.bucket);
            let (point, room) = carried.again(&shaped.problem, lengths);
            let again = point[place(Metric::OutputTokS)] / lengths.osl as f64;
            faults.extend(off(&format!("routes.{at}: requests/s of one system"), rate, again, CLOSE));
            if rate > room * (1.0 + CLOSE) {
                faults.push(format!("routes.{at}: {rate} requests/s of one system, its capacity is {room}"));
            }
            for (metric, limit) in
                [(Metric::Ttft, limits.ttft), (Metric::Tpot, limits.tpot), (Metric::E2e, limits.e2e)]
            {
                let found = point[place(metric)];
                if let Some(limit) = limit.filter(|limit| found > *limit) {
                    let name = metric.entry().name;
                    faults.push(format!("routes.{at}: {name} is {found} s, the SLO is {limit} s"));
                }
            }
        }
        faults
    }

    /// Sums of the shares of each bucket, and consistency of each share.
    pub(super) fn shares(&self, routes: &[Route]) -> Vec<String> {
        let mut faults = Vec::new();
        for (at, bucket) in self.problem.fleet.buckets.iter().enumerate() {
            let sum: f64 = routes.iter().filter(|route| route.bucket == at).map(|route| route.share).sum();
            let all = self.problem.asked.aim != FleetObjective::Throughput;
            if sum > 1.0 + ROUNDED || all && sum < 1.0 - ROUNDED {
                let most = if all { "" } else { "at most " };
                faults.push(format!("{}: its shares sum to {sum}, expected {most}1", bucket.name));
            }
        }
        for (at, route) in routes.iter().enumerate() {
            let bucket: &Bucket = &self.problem.fleet.buckets[route.bucket];
            let (told, again) = (figure(route.row, "requests_per_s"), route.share * bucket.rate);
            faults.extend(off(&format!("routes.{at}.requests_per_s"), told, again, CLOSE));
            if self.kind(route.system).model != bucket.model {
                faults.push(format!("routes.{at}: {} runs a different model", self.kind(route.system).name));
            }
        }
        faults
    }

    pub(super) fn sum(&self, of: impl Fn(&SystemKind) -> f64) -> f64 {
        (0..self.systems.len()).map(|at| self.systems[at].1 as f64 * of(self.kind(at))).sum()
    }

    /// Budget, devices, and availability of each offer.
    pub(super) fn bounds(&self) -> Vec<String> {
        let asked = &self.problem.asked;
        let mut faults = Vec::new();
        let mut most = |what: &str, found: f64, bound: Option<f64>| {
            if bound.is_some_and(|bound| found > bound * (1.0 + CLOSE)) {
                faults.push(format!("{what}: {found} used, at most {} allowed", bound.unwrap_or_default()));
            }
        };
        most("USD per hour", self.sum(|kind| kind.usd_per_hour), asked.budget_usd_per_hour);
        most("devices", self.sum(|kind| kind.devices as f64), asked.max_devices.map(|most| most as f64));
        for (at, supply) in self.problem.fleet.supplies.iter().enumerate() {
            let taken = self.sum(|kind| f64::from(u8::from(kind.supply_index == at)));
            most(&format!("available {}", supply.name), taken, supply.available.map(|there| there as f64));
        }
        faults
    }

    /// The objective.
    pub(super) fn objective(&self, served: f64) -> f64 {
        match self.problem.asked.aim {
            // Cost is counted in whole thousandths of a dollar.
            FleetObjective::Cost => self.sum(|kind| (kind.usd_per_hour * MILLS).ceil()) / MILLS,
            FleetObjective::Devices => self.sum(|kind| kind.devices as f64),
            FleetObjective::Throughput => served,
        }
    }

    /// Number of systems of every type.
    pub(super) fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.problem.fleet.kinds.len()];
        self.systems.iter().for_each(|(kind, count)| counts[*kind] += count);
        counts
    }
}
