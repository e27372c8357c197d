//! A saved fleet as counts of system kinds and shares of the traffic.

use super::super::{RandomSample, off};
use super::MOST_NEIGHBOURS;
use crate::quantity::tolerance::{ROUNDED_LOAD, SUMMED};
use crate::report::fleet::{FleetProblem, FleetResult, Routed, SystemName, Systems};
use crate::search::fleet::{BucketShare, FleetObjective, SystemKind};
use crate::search::point::place;
use crate::serving::terms::Lengths;
use crate::spec::objective::Metric;

/// A saved fleet as counts of system kinds and shares of the traffic.
pub(super) struct SavedMix<'a> {
    problem: &'a FleetProblem,
    /// Kind and count of each saved entry.
    pub(super) systems: Vec<(usize, u64)>,
    /// The saved routes; equal buckets are matched in order.
    pub(super) parts: Vec<BucketShare>,
    /// Routes that are not part of the problem.
    pub(super) unrouted: Vec<String>,
}

/// Whether a route may be of bucket `bucket`.
fn is_of(problem: &FleetProblem, route: &Routed, bucket: usize) -> bool {
    let traffic = &problem.inputs.buckets[bucket];
    let model = &problem.inputs.models[problem.fleet.buckets[bucket].model];
    (route.isl, route.osl, &route.model) == (traffic.isl, traffic.osl, model)
}

/// Number of systems of a kind that the traffic routed to entry `at` keeps busy.
fn busy(problem: &FleetProblem, saved: &FleetResult, at: usize, kind: usize) -> f64 {
    let here = saved.routes.iter().filter(|route| route.systems == at as u64);
    let each = here.map(|route| {
        let bucket = (0..problem.inputs.buckets.len()).find(|bucket| is_of(problem, route, *bucket));
        bucket.map_or(f64::NAN, |bucket| problem.fleet.kinds[kind].busy(bucket, route.requests_per_s))
    });
    each.sum()
}

impl<'a> SavedMix<'a> {
    /// Finds the kind of every system and the bucket of every route.
    pub(super) fn read(problem: &'a FleetProblem, saved: &FleetResult) -> Result<SavedMix<'a>, Vec<String>> {
        let mut mix = SavedMix { problem, systems: vec![], parts: vec![], unrouted: vec![] };
        let mut faults = Vec::new();
        for (at, entry) in saved.systems.iter().enumerate() {
            match mix.kind_of(saved, at, entry) {
                _ if entry.count == 0 => {
                    faults.push(format!("systems.{at}.count: 0 is not a positive integer"));
                }
                Some(kind) => mix.systems.push((kind, entry.count)),
                None => faults.push(format!(
                    "systems.{at}: {} {} of {} as {} matches no offer",
                    entry.hardware, entry.offer, entry.model, entry.plan
                )),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        for (at, route) in saved.routes.iter().enumerate() {
            match mix.part(route) {
                Ok(part) => mix.parts.push(part),
                Err(why) => mix.unrouted.push(format!("routes.{at}: {why}")),
            }
        }
        Ok(mix)
    }

    /// The kind of an entry. Offers of the same hardware may differ in price alone, and kinds in capacity, so that the
    /// same traffic keeps them busy for a different time.
    fn kind_of(&self, saved: &FleetResult, at: usize, entry: &Systems) -> Option<usize> {
        let Systems { hardware, offer, model, plan, .. } = entry.clone();
        let name = SystemName { hardware, offer, model, plan };
        let price = |kind: usize| {
            let usd = entry.count as f64 * self.problem.fleet.kinds[kind].usd_per_hour;
            (usd - entry.usd_per_hour).abs()
        };
        let load = |kind: usize| (busy(self.problem, saved, at, kind) - entry.busy).abs();
        let unused = |kind: &usize| self.systems.iter().all(|(other, _)| other != kind);
        let alike = (0..self.problem.names.len()).filter(|kind| self.problem.names[*kind] == name);
        alike
            .filter(unused)
            .min_by(|a, b| price(*a).total_cmp(&price(*b)).then_with(|| load(*a).total_cmp(&load(*b))))
    }

    fn part(&self, route: &Routed) -> Result<BucketShare, String> {
        let Some(&(kind, _)) = self.systems.get(route.systems as usize) else {
            let count = self.systems.len();
            return Err(format!("saved systems {}, only {count} exist", route.systems));
        };
        let share = route.share;
        if !(share > 0.0 && share <= 1.0 + SUMMED) {
            return Err(format!("saved share {share}, expected more than 0 and at most 1"));
        }
        let buckets = &self.problem.fleet.buckets;
        let far = |bucket: usize| (share * buckets[bucket].rate - route.requests_per_s).abs();
        let unused =
            |bucket: &usize| !self.parts.iter().any(|other| (other.bucket, other.kind) == (*bucket, kind));
        let alike = (0..buckets.len()).filter(|bucket| is_of(self.problem, route, *bucket));
        let bucket = alike.filter(unused).min_by(|a, b| far(*a).total_cmp(&far(*b))).ok_or_else(|| {
            format!("ISL {}, OSL {} of {} is not part of the traffic", route.isl, route.osl, route.model)
        })?;
        Ok(BucketShare { bucket, kind, share })
    }

    fn kind(&self, kind: usize) -> &'a SystemKind {
        &self.problem.fleet.kinds[kind]
    }

    /// Sums of the shares of each bucket, and the model of each share.
    pub(super) fn shares(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let all = self.problem.inputs.aim != FleetObjective::Throughput;
        for (at, bucket) in self.problem.fleet.buckets.iter().enumerate() {
            let sum: f64 = self.parts.iter().filter(|part| part.bucket == at).map(|part| part.share).sum();
            if sum > 1.0 + ROUNDED_LOAD || all && sum < 1.0 - ROUNDED_LOAD {
                let most = if all { "" } else { "at most " };
                faults.push(format!("{}: its shares sum to {sum}, expected {most}1", bucket.name));
            }
        }
        let other =
            |part: &&BucketShare| self.kind(part.kind).model != self.problem.fleet.buckets[part.bucket].model;
        let wrong = self.parts.iter().filter(other);
        faults.extend(wrong.map(|part| format!("{} runs a different model", self.kind(part.kind).name)));
        faults
    }

    /// Systems that do not suffice for their traffic.
    pub(super) fn overloads(&self) -> Vec<String> {
        let spare = f64::from(u8::from(self.problem.inputs.spare));
        let mut faults = Vec::new();
        for (at, &(kind, count)) in self.systems.iter().enumerate() {
            let rate = |part: &BucketShare| part.share * self.problem.fleet.buckets[part.bucket].rate;
            let here = self.parts.iter().filter(|part| part.kind == kind);
            let busy: f64 = here.map(|part| self.kind(kind).busy(part.bucket, rate(part))).sum();
            if busy > count as f64 - spare + ROUNDED_LOAD * count as f64 {
                faults.push(format!("systems.{at}: its traffic needs {busy} systems, saved {count}"));
            }
        }
        faults
    }

    /// Evaluates every share on its system at the load of its rate again: limits, rate.
    pub(super) fn limits(&self) -> Vec<String> {
        let all = self.parts.iter().enumerate();
        all.flat_map(|(at, part)| self.limits_of(&format!("routes.{at}"), part)).collect()
    }

    fn limits_of(&self, route: &str, part: &BucketShare) -> Vec<String> {
        let (origin, kind) = (&self.problem.shapes[part.kind], self.kind(part.kind));
        let index = origin.buckets.iter().position(|bucket| *bucket == part.bucket);
        let carried = index.and_then(|at| origin.shape.carried[at].as_ref());
        let Some((carried, rate)) = carried.zip(kind.rates[part.bucket]) else {
            return vec![format!("{route}: {} does not meet the SLO for it", kind.name)];
        };
        let traffic = &self.problem.inputs.buckets[part.bucket];
        let lengths = Lengths { isl: traffic.isl, osl: traffic.osl, prefix: traffic.prefix };
        let (point, capacity) = carried.again(&origin.problem, lengths);
        let again = point[place(Metric::OutputTokS)] / lengths.osl as f64;
        let what = format!("{route}: requests/s of one system");
        let mut faults: Vec<String> = off(&what, rate, again, SUMMED).into_iter().collect();
        if rate > capacity * (1.0 + SUMMED) {
            faults.push(format!("{route}: {rate} requests/s of one system, its capacity is {capacity}"));
        }
        let limits = &self.problem.inputs.limits;
        let limits = [(Metric::Ttft, limits.ttft), (Metric::Tpot, limits.tpot), (Metric::E2e, limits.e2e)];
        for (metric, limit) in limits {
            let found = point[place(metric)];
            if let Some(limit) = limit.filter(|limit| found > *limit) {
                let name = metric.entry().name;
                faults.push(format!("{route}: {name} is {found} s, the SLO is {limit} s"));
            }
        }
        faults
    }

    /// Budget, devices, and availability of each offer.
    pub(super) fn bounds(&self) -> Vec<String> {
        let inputs = &self.problem.inputs;
        let sum = |of: &dyn Fn(&SystemKind) -> f64| {
            self.systems.iter().map(|(kind, count)| *count as f64 * of(self.kind(*kind))).sum()
        };
        let mut bounds: Vec<(String, f64, Option<f64>)> = vec![
            ("USD per hour".into(), sum(&|kind| kind.usd_per_hour_most), inputs.budget_usd_per_hour),
            ("devices".into(), sum(&|kind| kind.devices as f64), inputs.max_devices.map(|most| most as f64)),
        ];
        for (at, supply) in self.problem.fleet.supplies.iter().enumerate() {
            let taken = sum(&|kind| f64::from(u8::from(kind.supply_index == at)));
            let available = supply.available.map(|available| available as f64);
            bounds.push((format!("available {}", supply.name), taken, available));
        }
        let broken = |(what, found, most): (String, f64, Option<f64>)| {
            let most = most.filter(|most| found > most * (1.0 + SUMMED))?;
            Some(format!("{what}: {found} used, at most {most} allowed"))
        };
        bounds.into_iter().filter_map(broken).collect()
    }

    /// Counts of every kind near these: one system fewer of each, and random replacements.
    pub(super) fn neighbours(&self, sample: RandomSample) -> Vec<Vec<u64>> {
        let mut counts = vec![0; self.problem.fleet.kinds.len()];
        self.systems.iter().for_each(|(kind, count)| counts[*kind] += count);
        let used: Vec<usize> = (0..counts.len()).filter(|kind| counts[*kind] > 0).collect();
        let fewer = |kind: &usize| {
            let mut fewer = counts.clone();
            fewer[*kind] -= 1;
            fewer
        };
        let mut tried: Vec<Vec<u64>> = used.iter().map(fewer).collect();
        let mut random = fastrand::Rng::with_seed(sample.seed);
        for _ in 0..sample.count.min(MOST_NEIGHBOURS) {
            let mut other = counts.clone();
            let from = used[random.usize(0..used.len())];
            other[from] -= random.u64(1..=other[from].min(2));
            for _ in 0..random.usize(1..=2) {
                other[random.usize(0..counts.len())] += 1;
            }
            if !tried.contains(&other) {
                tried.push(other);
            }
        }
        tried
    }
}
