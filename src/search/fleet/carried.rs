//! Maximum request rate of a system within the SLOs: for one plan, and for any plan that the search finds.
//!
//! Arrivals are random, as with `optimize --rate`. The rate is increased until the search proves that no plan
//! sustains more, to within [`BISECTED`].

use crate::quantity::tolerance::BISECTED;
use crate::spec::role::Role;
use std::sync::Arc;

use crate::quantity::read::Plain;
use crate::search::candidate::{Candidate, PoolPlan, evaluate};
use crate::search::hosting::on_node;
use crate::search::point::{Point, place, point};
use crate::search::problem::{Problem, Traffic};
use crate::search::run::{UNWATCHED, run};
use crate::search::shape::{filled_up, shape};
use crate::serving::instance::Instance;
use crate::spec::objective::Metric;

/// Capacity of a system with one plan for one request length.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    pub candidate: Candidate,
    /// Requests per second of the whole system.
    pub requests_per_s: f64,
    /// Metrics of the whole system at that rate.
    pub point: Point,
}

/// Maximum number of searches per rate: enough to bisect any range to [`BISECTED`].
const SEARCHES: u32 = 48;
/// Bisection steps between two loads of a plan.
const HALVINGS: u32 = 20;
/// A minimum rate that any feasible plan sustains, in requests per second.
const LEAST: f64 = 1e-3;

/// `problem` with random arrivals at the given rate, in requests per second.
pub fn at_rate(problem: &Problem, rate: f64) -> Problem {
    problem.with_tail(Default::default()).with_traffic(Traffic::Rate(rate))
}

/// A prepared plan, to be evaluated under many loads.
struct PreparedPlan<'q> {
    problem: &'q Problem,
    pools: Vec<PoolPlan>,
    instances: Vec<Instance>,
    plan: &'q Candidate,
    /// Maximum requests per rank of each pool.
    most: Vec<u64>,
}

impl<'q> PreparedPlan<'q> {
    fn new(problem: &'q Problem, plan: &'q Candidate) -> PreparedPlan<'q> {
        let instances = plan.instances(problem);
        let fits = |(pool, instance): (&PoolPlan, &Instance)| {
            let shared = (plan.offload, on_node(problem, pool.replicas));
            match pool.role {
                Role::Prefill => 0,
                _ => shape(problem, plan.formats, &Arc::new(instance.clone()), shared)
                    .map_or(0, |shape| shape.fits),
            }
        };
        let most = plan.pools.iter().zip(&instances).map(fits).collect();
        PreparedPlan { problem, pools: plan.pools.clone(), instances, plan, most }
    }

    /// The pools with up to `requests` on every decode rank.
    fn loaded(&self, requests: u64) -> Vec<PoolPlan> {
        let load = |(pool, most): (&PoolPlan, &u64)| match pool.role {
            Role::Prefill => pool.clone(),
            _ => PoolPlan { concurrency: requests.min(*most) * pool.plan.dp, ..pool.clone() },
        };
        self.pools.iter().zip(&self.most).map(load).collect()
    }

    /// Its metrics under the given traffic, and the largest ratio of a latency to its SLO.
    fn at(&self, pools: &[PoolPlan], traffic: Traffic) -> (Point, f64) {
        let problem = self.problem;
        let machine = problem.formats[self.plan.formats].plain();
        let parts = (machine, problem.terms(), &traffic.demand(&Plain));
        let found = evaluate(&Plain, pools, &self.instances, self.plan.offload, parts, &mut ());
        let point = point(&found.metrics);
        let margin = Candidate { pools: pools.to_vec(), ..self.plan.clone() }.margin(problem);
        let late = problem.missed_in_pools(&found, margin).next().is_some();
        let filled = if late { f64::INFINITY } else { problem.filled(&point, margin) };
        let sound = [Metric::Ttft, Metric::Tpot, Metric::E2e].into_iter().all(|metric| {
            let value = point[place(metric)];
            value.is_finite() && value > 0.0
        });
        (point, if sound { filled } else { f64::INFINITY })
    }

    /// Requests per second with closed-loop traffic.
    fn flow(&self, pools: &[PoolPlan]) -> f64 {
        self.at(pools, Traffic::Free).0[place(Metric::OutputTokS)] / self.problem.workload.lengths.osl as f64
    }

    fn carried(&self, pools: Vec<PoolPlan>, rate: f64) -> Option<Carried> {
        let (point, filled) = self.at(&pools, Traffic::Rate(rate));
        let candidate = Candidate { pools, ..self.plan.clone() };
        (filled <= 1.0 && rate > 0.0).then_some(Carried { candidate, requests_per_s: rate, point })
    }
}

/// The maximum rate of one plan, over all its loads; `None` where it meets no SLO or does not fit.
pub fn raised(problem: &Problem, plan: &Candidate) -> Option<Carried> {
    let problem = &at_rate(problem, LEAST);
    problem.context_fits().ok()?;
    let prepared = PreparedPlan::new(problem, plan);
    let decoding = prepared.pools.iter().zip(&prepared.most).filter(|(pool, _)| pool.role != Role::Prefill);
    if decoding.clone().any(|(_, most)| *most == 0) {
        return None;
    }
    let full = decoding.map(|(_, most)| *most).max()?;
    let at_flow = |requests: u64| {
        let pools = prepared.loaded(requests);
        let rate = prepared.flow(&pools);
        prepared.at(&pools, Traffic::Rate(rate)).1
    };
    let kept = filled_up(full, at_flow);
    let carried = |requests: u64| {
        let pools = prepared.loaded(requests);
        let rate = prepared.flow(&pools);
        prepared.carried(pools, rate)
    };
    // A pipeline has the highest throughput with equal micro-batches.
    let stages = plan.pools.iter().map(|pool| pool.plan.pp).max().unwrap_or(1);
    let even = kept - kept % stages;
    let whole = [kept, even].into_iter().filter(|requests| *requests > 0).filter_map(carried);
    let best = whole.reduce(|a, b| if b.requests_per_s > a.requests_per_s { b } else { a });
    if kept == full {
        return best;
    }
    // With one more request the SLOs are missed at the full rate, not at a lower one.
    let pools = prepared.loaded(kept + 1);
    let (mut low, mut high) = (best.as_ref().map_or(0.0, |best| best.requests_per_s), prepared.flow(&pools));
    let mut beyond = None;
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        match prepared.carried(pools.clone(), middle) {
            Some(found) => (low, beyond) = (middle, Some(found)),
            None => high = middle,
        }
    }
    beyond.or(best)
}

fn searched(problem: &Problem, rate: f64) -> Option<Carried> {
    let found = run(&at_rate(problem, rate).optimizing(Metric::E2e), &UNWATCHED).best?;
    Some(Carried { candidate: found.candidate, requests_per_s: rate, point: found.point })
}

/// The maximum rate of the system with any plan, to within [`BISECTED`]; `None` where no plan meets the SLOs.
pub fn most(problem: &Problem) -> Option<Carried> {
    problem.context_fits().ok()?;
    let more = |a: Carried, b: Carried| if b.requests_per_s > a.requests_per_s { b } else { a };
    let reach = |found: Carried| match raised(problem, &found.candidate) {
        Some(raised) => more(found, raised),
        None => found,
    };
    // The plan with the highest closed-loop throughput is a good start.
    let free = problem.with_traffic(Traffic::Free).optimizing(Metric::OutputTokS);
    let start = run(&free, &UNWATCHED).best.and_then(|best| raised(problem, &best.candidate));
    let mut low = start.or_else(|| searched(problem, LEAST).map(reach))?;
    let (mut high, mut step) = (f64::INFINITY, BISECTED);
    for _ in 0..SEARCHES {
        if high <= low.requests_per_s * (1.0 + BISECTED) {
            break;
        }
        let rate = if high.is_finite() {
            (low.requests_per_s * high).sqrt()
        } else {
            low.requests_per_s * (1.0 + step)
        };
        match searched(problem, rate) {
            Some(found) => {
                low = more(low, reach(found));
                step *= 4.0;
            }
            None => high = rate,
        }
    }
    Some(low)
}
