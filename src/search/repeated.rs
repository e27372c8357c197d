//! Disaggregated deployments that repeat inside units of an inner tier, such as nodes: the KV cache of a request stays
//! inside its unit.
//!
//! Search space: the best disaggregated deployment of one unit, in any number of units. Each tier below the outermost
//! is searched once per share of the traffic that a unit carries. A concurrency that the units do not divide is rounded
//! up: every unit is sized for the largest share.

use super::aggregated::measure;
use super::candidate::Candidate;
use super::family::StrategyFamily;
use super::mixed::MixResult;
use super::outcome::{Census, EvaluatedCandidate, Outcome, Status};
use super::problem::{OffloadPolicy, Problem, Traffic};
use super::run::{Control, run};
use crate::spec::cluster::Cluster;

/// The best deployment that repeats.
#[derive(Default)]
pub struct Repeated {
    /// The deployment.
    pub best: Option<EvaluatedCandidate>,
    /// The Pareto fronts of a unit, repeated as often.
    pub front: Vec<EvaluatedCandidate>,
    /// The mixes of a unit, repeated as often, where the best is one of them.
    pub ratio: Option<MixResult>,
    /// Counts of evaluated, pruned and rejected candidates.
    pub census: Census,
    /// Whether the search was stopped.
    pub stopped: bool,
}

/// Searches every tier below the outermost.
pub fn repeated(problem: &Problem, control: &Control) -> Repeated {
    let mut found = Repeated::default();
    let cluster = &problem.cluster;
    for tier in 0..cluster.tiers.len().saturating_sub(1) {
        let mut one = problem.with_cluster(unit(cluster, tier));
        let most = cluster.devices() / one.cluster.devices();
        one.family = StrategyFamily::Split;
        one.offload = OffloadPolicy::Never;
        let unwatched = Control { progress: &|_, _| {}, ..*control };
        let mut known: Option<Outcome> = None;
        for times in 1..=most {
            let Some(traffic) = share(problem.traffic, times) else { break };
            if known.is_none() || one.traffic != traffic {
                one.traffic = traffic;
                let mut outcome = run(&one, &unwatched);
                found.census.add(std::mem::take(&mut outcome.census));
                found.stopped |= matches!(outcome.status, Status::Feasible | Status::Unknown);
                known = Some(outcome);
            }
            found.offer(problem, known.as_ref().expect("it was solved"), times);
        }
    }
    found
}

impl Repeated {
    /// Offers the best of a unit, repeated `times` times.
    fn offer(&mut self, problem: &Problem, outcome: &Outcome, times: u64) {
        let all = |one: &EvaluatedCandidate| {
            let candidate = repeat(&one.candidate, times);
            EvaluatedCandidate { point: measure(problem, &candidate), candidate }
        };
        self.front.extend(outcome.front.iter().map(all).filter(|one| problem.missed(&one.point).is_none()));
        let Some(found) = outcome.best.as_ref().map(all) else { return };
        let within = problem.missed(&found.point).is_none();
        let ahead = self.best.as_ref().is_none_or(|best| problem.is_better(&found.point, &best.point));
        if within && ahead {
            self.ratio = outcome.ratio.as_ref().map(|ratio| MixResult {
                best: ratio.best.as_ref().map(all),
                disaggregated: ratio.disaggregated.as_ref().map(all),
                one_shape_each: ratio.one_shape_each.map(|output| output * times as f64),
                rows_checked: ratio.rows_checked,
            });
            self.best = Some(found);
        }
    }
}

/// One unit of a tier.
fn unit(cluster: &Cluster, tier: usize) -> Cluster {
    let tiers = cluster.tiers[..=tier].to_vec();
    let devices = tiers[tier].devices;
    let devices_per_node = devices.min(cluster.devices_per_node);
    Cluster { nodes: devices / devices_per_node, devices_per_node, tiers, ..cluster.clone() }
}

/// The largest share of the traffic that one of `times` units carries; `None` where a unit would have none.
fn share(traffic: Traffic, times: u64) -> Option<Traffic> {
    match traffic {
        Traffic::Free => Some(Traffic::Free),
        Traffic::InFlight(requests) => {
            (times <= requests).then(|| Traffic::InFlight(requests.div_ceil(times)))
        }
        Traffic::Rate(rate) => Some(Traffic::Rate(rate / times as f64)),
    }
}

fn repeat(candidate: &Candidate, times: u64) -> Candidate {
    let mut candidate = candidate.clone();
    candidate.pools.iter_mut().for_each(|pool| pool.replicas *= times);
    candidate
}
