//! Disaggregated deployments that repeat inside units of an inner tier, such as nodes: the KV cache of a request stays
//! inside its unit.
//!
//! Search space: the best disaggregated deployment of one unit, in any number of units. Each tier below the outermost
//! is searched once per share of the traffic that a unit carries. Where the units do not divide a concurrency, every unit
//! has slots for the largest share, and is timed at the mean share, as the whole deployment is.

use crate::spec::offload::OffloadPolicy;
use std::collections::BTreeSet;

use super::candidate::Candidate;
use super::family::StrategyFamily;
use super::front_sampling::sampled;
use super::hint::above;
use super::layouts::Layouts;
use super::mixed::MixResult;
use super::outcome::{Census, EvaluatedCandidate, Outcome, Status};
use super::point::{Point, place};
use super::problem::{Problem, Traffic};
use super::run::{Control, run_with};
use crate::serving::instance::Instance;
use crate::spec::cluster::Cluster;
use crate::spec::objective::Metric;

/// The best deployment that repeats.
#[derive(Default)]
pub struct Repeated {
    pub best: Option<EvaluatedCandidate>,
    /// The Pareto fronts of a unit, repeated as often.
    pub front: Vec<EvaluatedCandidate>,
    /// The mixes of a unit, repeated as often, where the best is one of them.
    pub ratio: Option<MixResult>,
    pub census: Census,
    pub stopped: bool,
}

/// Searches every tier below the outermost. The `layouts` are those of the problem. Where only the optimum is needed, results
/// worse than `known` may be left out.
pub fn repeated(problem: &Problem, layouts: &Layouts, known: Option<&Point>, control: &Control) -> Repeated {
    let mut found = Repeated::default();
    let cluster = &problem.cluster;
    for tier in 0..cluster.tiers.len().saturating_sub(1) {
        let mut one = problem.with_cluster(unit(cluster, tier));
        let most = cluster.devices() / one.cluster.devices();
        one.family = StrategyFamily::Split;
        one.offload = OffloadPolicy::Never;
        let unwatched = Control { progress: &|_, _| {}, ..*control };
        let shown: BTreeSet<u64> = sampled(most, problem.front_sampling.count_steps).collect();
        let shares: Vec<(u64, Traffic)> =
            (1..=most).map_while(|times| Some((times, problem.traffic.shared(times)?))).collect();
        // A unit that does not serve the smallest share serves none.
        if let (Some((_, greatest)), Some((_, least))) = (shares.first(), shares.last())
            && greatest != least
            && let Some(census) = unserved(&one, *least, layouts.unit(tier, &one, control.stop), &unwatched)
        {
            found.census.add(census);
            continue;
        }
        for alike in shares.chunk_by(|(_, one), (_, next)| one == next) {
            one.traffic = alike[0].1;
            let times = (alike[0].0, alike[alike.len() - 1].0);
            let floor = known.and_then(|known| floor_of_unit(problem, known, times.1));
            let mut outcome = above(&one, floor.as_ref(), layouts.unit(tier, &one, control.stop), &unwatched);
            found.census.add(std::mem::take(&mut outcome.census));
            found.stopped |= matches!(outcome.status, Status::Feasible | Status::Unknown);
            found.offer(problem, &outcome, times, shown.range(times.0..=times.1));
        }
    }
    found
}

impl Repeated {
    /// Offers the best of a unit, repeated any number of times from the first to the last of `times`, and its front,
    /// repeated as often as `shown` says.
    fn offer<'t>(
        &mut self,
        problem: &Problem,
        outcome: &Outcome,
        times: (u64, u64),
        shown: impl Iterator<Item = &'t u64> + Clone,
    ) {
        for one in &outcome.front {
            let instances = one.candidate.instances(problem);
            let all = shown.clone().map(|times| repeat(problem, &one.candidate, &instances, *times));
            self.front.extend(
                all.filter(|one| problem.missed(&one.point, one.candidate.margin(problem)).is_none()),
            );
        }
        let Some(best) = &outcome.best else { return };
        let instances = best.candidate.instances(problem);
        // Without a given load, every metric grows with the number of units or does not depend on it.
        let inner = problem.traffic == Traffic::Free && times.1 > times.0;
        let tried = if inner { vec![times.0, times.1] } else { (times.0..=times.1).collect() };
        for times in tried {
            let found = repeat(problem, &best.candidate, &instances, times);
            let within = problem.missed(&found.point, found.candidate.margin(problem)).is_none();
            let better = self.best.as_ref().is_none_or(|best| problem.is_better(&found.point, &best.point));
            if within && better {
                let all = |one: &EvaluatedCandidate| {
                    repeat(problem, &one.candidate, &one.candidate.instances(problem), times)
                };
                self.ratio = outcome.ratio.as_ref().map(|ratio| MixResult {
                    best: ratio.best.as_ref().map(all),
                    disaggregated: ratio.disaggregated.as_ref().map(all),
                    one_shape_each: ratio.one_shape_each.map(|output| output * times as f64),
                    rows_checked: ratio.rows_checked,
                    programs: ratio.programs.clone(),
                });
                self.best = Some(found);
            }
        }
    }
}

/// The counts of a unit that does not serve a share of the traffic; `None` where it does, and where that is open.
fn unserved(unit: &Problem, share: Traffic, layouts: &Layouts, control: &Control) -> Option<Census> {
    let outcome = run_with(&unit.feasibility().with_traffic(share), layouts, control);
    (outcome.status == Status::Infeasible).then_some(outcome.census)
}

/// The least that a unit has to reach for at most `times` units to be as good as `known`; `None` where that is open.
fn floor_of_unit(problem: &Problem, known: &Point, times: u64) -> Option<Point> {
    let mut floor = *known;
    match problem.objective.first()?.metric {
        Metric::OutputTokS => floor[place(Metric::OutputTokS)] /= times as f64,
        Metric::OutputTokSPerDevice | Metric::OutputTokSPerUser => {}
        Metric::Ttft | Metric::Tpot | Metric::E2e => {}
        _ => return None,
    }
    Some(floor)
}

fn unit(cluster: &Cluster, tier: usize) -> Cluster {
    let tiers = cluster.tiers[..=tier].to_vec();
    let devices = tiers[tier].devices;
    let devices_per_node = devices.min(cluster.devices_per_node);
    Cluster { nodes: devices / devices_per_node, devices_per_node, tiers, ..cluster.clone() }
}

/// A deployment of a unit in `times` units; its `instances` are prepared.
fn repeat(
    problem: &Problem,
    candidate: &Candidate,
    instances: &[Instance],
    times: u64,
) -> EvaluatedCandidate {
    let mut candidate = candidate.clone();
    candidate.pools.iter_mut().for_each(|pool| pool.replicas *= times);
    EvaluatedCandidate { point: candidate.measure(problem, instances), candidate }
}
