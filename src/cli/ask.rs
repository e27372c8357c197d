//! From a resolved problem to the question that the search answers.

use crate::cost::drive::Drive;
use crate::plan::parallel::ParallelPlan;
use crate::quantity::datum::Datum;
use crate::search::candidate::{Candidate, Duty, PoolPlan};
use crate::search::question::{Formats, OffloadPolicy, Question, Traffic};
use crate::search::shape::{MOST_REQUESTS_PER_RANK, cuts, largest};
use crate::serving::economy::{Bill, Owned, PowerDraw};
use crate::serving::terms::{Lengths, Offload, Stated};
use crate::spec::error::Error;
use crate::spec::scenario::Offload as Policy;
use crate::store::problem::Problem;

/// Puts the question together.
///
/// # Errors
/// The device computes none of the formats, or the runtime has no constants for it.
pub fn question(problem: &Problem) -> Result<Question, Error> {
    let mut formats = Vec::new();
    for weights in &problem.weight_formats {
        for kv in &problem.kv_formats {
            let drive = Drive {
                cluster: &problem.cluster,
                runtime: &problem.runtime,
                weights: &weights.format,
                kv: &kv.format,
                native: &problem.native.format,
            };
            formats.push(Formats::new(&weights.format, &kv.format, drive.machine()?));
        }
    }
    let workload = &problem.workload;
    let traffic = match (workload.concurrency, workload.rate) {
        (Some(requests), _) => Traffic::InFlight(requests),
        (None, Some(rate)) => Traffic::Rate(rate),
        (None, None) => Traffic::Free,
    };
    let mut question = Question::new(
        problem.graph.clone(),
        problem.cluster.clone(),
        &problem.runtime,
        formats,
        stated(problem),
        traffic,
        problem.objective.limits,
        (problem.objective.optimize.clone(), problem.objective.pareto.clone()),
    );
    question.offload = match problem.offload {
        Policy::Auto => OffloadPolicy::Auto,
        Policy::Never => OffloadPolicy::Never,
        Policy::Always => OffloadPolicy::Always,
    };
    Ok(question)
}

/// Lengths, power and prices.
fn stated(problem: &Problem) -> Stated {
    let (workload, economics, device) = (&problem.workload, &problem.economics, &problem.cluster.device);
    let draw = device.power.as_ref().map(|power| PowerDraw {
        tdp: power.tdp.datum("tdp"),
        idle: economics.idle_power.datum("idle_power"),
        compute_bound: economics.compute_bound_power.datum("compute_bound_power"),
        memory_bound: economics.memory_bound_power.datum("memory_bound_power"),
    });
    let owned = |purchase: Datum| {
        Bill::Owned(Owned {
            purchase,
            amortization: economics.amortization.datum("amortization"),
            utilization: economics.utilization.datum("utilization"),
            electricity: economics.electricity.datum("electricity"),
            pue: economics.pue.datum("pue"),
        })
    };
    let rent = economics.rent.as_ref().map(|rent| Bill::Rented(rent.datum("rent_per_device")));
    let purchase = economics.purchase.as_ref().map(|price| owned(price.datum("purchase_price")));
    Stated {
        lengths: Lengths { isl: workload.isl, osl: workload.osl, prefix: workload.prefix },
        draw,
        bill: rent.or(purchase),
        host_link: device.host_link.as_ref().map(|link| link.bandwidth.datum("host_link_bandwidth")),
    }
}

/// A stated deployment as a candidate: the pipeline cut where stages hold alike, the concurrency as
/// stated, or the largest that fits.
pub fn candidate(question: &Question, pools: &[(Duty, ParallelPlan, u64)]) -> Candidate {
    let pool = |&(duty, plan, replicas): &(Duty, ParallelPlan, u64)| {
        let stages = cuts(question, plan).swap_remove(0);
        PoolPlan { duty, plan, stages, replicas, concurrency: plan.dp }
    };
    let mut candidate =
        Candidate { formats: 0, pools: pools.iter().map(pool).collect(), offload: Offload::Nothing };
    let answering: u64 = candidate.pools.iter().filter(|p| p.duty != Duty::Prefill).map(|p| p.replicas).sum();
    let load = |candidate: &mut Candidate, concurrency: u64| {
        candidate.pools.iter_mut().filter(|p| p.duty != Duty::Prefill).for_each(|p| p.concurrency = concurrency);
    };
    let fits = |candidate: &Candidate| {
        let held = candidate.evaluate(&crate::quantity::read::Plain, question, &mut ()).memory;
        held.total.value() <= held.usable.value()
    };
    match question.traffic {
        Traffic::InFlight(requests) => load(&mut candidate, requests.div_ceil(answering.max(1))),
        _ => {
            let dp = candidate.pools.last().map_or(1, |pool| pool.plan.dp);
            let mut probe = candidate.clone();
            let most = largest(MOST_REQUESTS_PER_RANK, |requests| {
                load(&mut probe, requests * dp);
                fits(&probe)
            });
            load(&mut candidate, most.max(1) * dp);
        }
    }
    candidate
}
