//! Converts a search outcome into the reported result.

use crate::spec::offload::Offload;
use crate::spec::role::Role;
use rayon::prelude::*;

use super::audit::section;
use super::detail::{detail, memory_detail};
use super::inputs::ReportInputs;
use super::number::{limit as spell, time, word};
use super::pool::PoolReport;
use super::proof::proof;
use super::ratio::split_ratio;
use super::reporter::Reporter;
use super::result::{
    EstimateResult, Feasibility, FrontThinning, LowerFormat, MemoryReport, NearestMiss, OptimizeResult, Plan,
    Quantiles, ReportedDeployment,
};
use super::robustness::CapacityOdds;
use super::shortage::{OUT_OF_MEMORY, weights_need};
use crate::cost::memory::Footprint;
use crate::plan::infeasible::Infeasible;
use crate::quantity::ledger::{Leaf, Ledger};
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::candidate::{Candidate, PoolPlan};
use crate::search::front_thinning::thinned;
use crate::search::hosting::{held_on_node, host_memory_for};
use crate::search::outcome::Outcome;
use crate::search::problem::{Problem, Traffic};
use crate::serving::evaluate::Evaluation;
use crate::spec::front_points::FrontPoints;

/// The whole result.
/// A front of more than `most` points is thinned.
pub fn optimize_result(
    problem: &Problem,
    inputs: ReportInputs,
    outcome: &Outcome,
    lower_format: Option<LowerFormat>,
    most: FrontPoints,
) -> OptimizeResult {
    let reporter = &Reporter::new(problem);
    let nearest = outcome.nearest.as_ref().map(|(found, reason)| NearestMiss {
        candidate: reporter.deployment(&found.candidate),
        misses: reason.to_string(),
    });
    let best = outcome.best.as_ref().map(|found| &found.candidate);
    let front = thinned(&outcome.front, &problem.distinct_axes(), outcome.best.as_ref(), most.most());
    let on_front = |candidate: &Candidate| {
        let chosen = best == Some(candidate);
        ReportedDeployment { chosen, ..reporter.deployment(candidate) }
    };
    let leaves = best.map_or_else(Vec::new, |best| leaves(reporter, best));
    // Where a configuration holds a request, memory is not what is short.
    let full =
        best.is_none() && outcome.census.shapes == 0 && outcome.census.illegal.contains_key(OUT_OF_MEMORY);
    OptimizeResult {
        theoretical: inputs.theoretical,
        plain: None,
        checked: None,
        formulas_best: None,
        untried: None,
        simpler: None,
        status: outcome.status,
        proof: proof(problem, outcome),
        scenario: None,
        question: inputs,
        best: best.map(|best| reporter.deployment(best)),
        detail: best.map(|best| detail(reporter, best, &leaves)),
        alternatives: outcome
            .alternatives
            .iter()
            .map(|found| reporter.deployment(&found.candidate))
            .collect(),
        front_points: outcome.front.len() as u64,
        front: front.listed.par_iter().map(|at| on_front(&outcome.front[*at].candidate)).collect(),
        front_thinning: (front.listed.len() < outcome.front.len())
            .then_some(FrontThinning { requested: most, tolerance: front.tolerance }),
        census: outcome.census.clone(),
        nearest,
        conflict: None,
        split_ratio: split_ratio(outcome),
        programs: outcome.ratio.as_ref().map_or_else(Vec::new, |ratio| ratio.programs.clone()),
        why: None,
        weights_need: if full { weights_need(problem) } else { vec![] },
        lower_format,
        runtimes: vec![],
        launch: None,
        audit: best.map(|best| section(reporter, best)),
    }
}

/// The estimate of a given deployment.
pub fn estimate_result(problem: &Problem, inputs: ReportInputs, candidate: &Candidate) -> EstimateResult {
    let reporter = &Reporter::new(problem);
    let reported = within_capacity(reporter, candidate);
    let legal = reported.feasibility != Feasibility::Illegal;
    let runs = reported.metrics.is_some();
    EstimateResult {
        theoretical: inputs.theoretical,
        scenario: None,
        detail: match (legal, runs) {
            (false, _) => None,
            (true, false) => {
                let fits = reported.feasibility != Feasibility::InsufficientMemory;
                Some(memory_detail(reporter, candidate, fits))
            }
            (true, true) => Some(detail(reporter, candidate, &leaves(reporter, candidate))),
        },
        audit: runs.then(|| section(reporter, candidate)),
        chosen_load: None,
        candidate: reported,
        question: inputs,
        launch: None,
        command: None,
    }
}

/// The report of a given deployment.
pub fn estimate_deployment(problem: &Problem, candidate: &Candidate) -> ReportedDeployment {
    within_capacity(&Reporter::new(problem), candidate)
}

/// The report of a deployment, without metrics where it cannot carry the given rate.
fn within_capacity(reporter: &Reporter, candidate: &Candidate) -> ReportedDeployment {
    let mut reported = reporter.deployment(candidate);
    let problem = reporter.problem();
    let rates = || overload(problem, candidate);
    if let Some((reason, rates)) = reported.metrics.as_ref().and_then(|_| rates()) {
        // The queue would grow without bound: no mean latency exists.
        let concurrency = candidate.concurrency(&problem.traffic) as f64;
        let capacity = CapacityOdds::of(problem, candidate, rates);
        let odds = capacity.map_or_else(String::new, |capacity| format!(": {}", capacity.words()));
        reported = ReportedDeployment {
            concurrency,
            bottleneck: None,
            metrics: None,
            intervals: None,
            slo_odds: None,
            price_bounds: None,
            capacity,
            ..reported
        };
        reported.violations.insert(0, format!("{reason}{odds}"));
    }
    reported
}

/// The given rate if it exceeds the capacity of a valid candidate with all slots always full: the reason, and both in
/// requests per second, the capacity first.
pub fn overload(problem: &Problem, candidate: &Candidate) -> Option<(Infeasible, [f64; 2])> {
    let Traffic::Rate(required) = problem.traffic else { return None };
    if !forbidden(problem, candidate).is_empty() {
        return None;
    }
    let carried = carried(&unbound(problem), candidate);
    // The lowest load that sustains the rate may sustain exactly that rate.
    (carried < required * (1.0 - 1e-9))
        .then_some((Infeasible::TooMuchTraffic { carried, required }, [carried, required]))
}

/// The same problem with unlimited traffic.
pub fn unbound(problem: &Problem) -> Problem {
    let mut problem = problem.clone();
    problem.traffic = Traffic::Free;
    problem
}

/// Requests per second of a candidate, for a problem without given traffic.
pub fn carried(unbound: &Problem, candidate: &Candidate) -> f64 {
    let output = candidate.evaluate(&Plain, unbound, &mut ()).metrics.output_tok_s.value();
    output / unbound.workload.lengths.osl as f64
}

/// Rules that a candidate violates regardless of load and memory.
pub fn forbidden(problem: &Problem, candidate: &Candidate) -> Vec<Infeasible> {
    Reporter::new(problem).forbidden(candidate)
}

/// The report of a candidate. One that cannot run has no metrics.
pub fn report_deployment(problem: &Problem, candidate: &Candidate) -> ReportedDeployment {
    Reporter::new(problem).deployment(candidate)
}

/// Memory of the fullest device of each pool, in order.
#[cfg(feature = "internals")]
pub fn holdings(problem: &Problem, candidate: &Candidate) -> Vec<Footprint<Qty<f64>>> {
    let reporter = Reporter::new(problem);
    let prepared = reporter.instances(candidate);
    let evaluation = reporter.evaluate(candidate, &prepared, &mut ());
    reporter.held(candidate, &prepared, &evaluation)
}

/// Whether the memory needed fits into the usable memory.
pub fn fits(held: &Footprint<Qty<f64>>) -> bool {
    held.total.value() <= held.usable.value()
}

/// Every missed latency SLO, or the odds of all that are too small.
pub(super) fn missed(
    problem: &Problem,
    candidate: &Candidate,
    evaluation: &Evaluation<Qty<f64>>,
) -> Vec<String> {
    let misses = problem.missed_in_pools(evaluation, candidate.margin(problem)).map(|reason| match reason {
        Infeasible::LimitMissed { metric, value, limit, confidence } => {
            let (value, limit) = (time(value * 1e3), spell(limit * 1e3));
            format!("{} is {value}{}, the SLO is {limit}", word(metric), confidence.words())
        }
        other => other.to_string(),
    });
    misses.collect()
}

/// p10, p50 and p90 of the bytes of a device that are in host memory: what those of its memory have beyond the part that
/// it holds. `None` where none are, where the plan states them, or without measurements.
pub(super) fn offloaded_quantiles(
    held: &Footprint<Qty<f64>>,
    spilled: Option<Qty<f64>>,
    problem: &Problem,
    candidate: &Candidate,
) -> Option<[f64; 3]> {
    let bytes = spilled.filter(|_| !matches!(candidate.offload, Offload::Host(_)))?.value();
    let totals = problem.formats[candidate.formats].memory_interval(held)?;
    Some(totals.map(|total| (bytes + total - held.total.value()).max(0.0)))
}

/// The report of a memory footprint.
pub fn memory(
    held: &Footprint<Qty<f64>>,
    spilled: Option<Qty<f64>>,
    problem: &Problem,
    candidate: &Candidate,
) -> MemoryReport {
    let formats = &problem.formats[candidate.formats];
    let chip = &formats.plain().chip;
    let hosted = matches!(candidate.offload, Offload::Host(_));
    let quantiles = formats.memory_interval(held);
    let interval = quantiles.map(|[p10, p50, p90]| Quantiles { p10, p50, p90 });
    let offloaded = offloaded_quantiles(held, spilled, problem, candidate);
    MemoryReport {
        weights_bytes: held.weights.value(),
        kv_cache_bytes: held.kv.value(),
        activations_bytes: held.activations.value(),
        buffers_bytes: held.buffers.value(),
        total_bytes: held.total.value(),
        interval,
        usable_bytes: held.usable.value(),
        capacity_bytes: chip.capacity.value(),
        utilization: chip.utilization.value(),
        offloaded_bytes: spilled.filter(|_| !hosted).map_or(0.0, Qty::value),
        offloaded_interval: offloaded.map(|[p10, p50, p90]| Quantiles { p10, p50, p90 }),
        host_bytes: spilled.filter(|_| hosted).map_or(0.0, Qty::value),
        least_host_bytes: host_memory_for(held_on_node(problem, candidate, spilled.map_or(0.0, Qty::value))),
    }
}

fn pool(pool: &PoolPlan) -> PoolReport {
    let plan = pool.plan;
    PoolReport {
        role: pool.role,
        label: plan.label(),
        plan,
        stages: pool.stages.clone(),
        replicas: pool.replicas,
        devices: pool.replicas * plan.devices(),
        concurrency_per_replica: pool.concurrency,
    }
}

/// The plan in full, with its label.
pub fn plan(candidate: &Candidate) -> Plan {
    let pools: Vec<PoolReport> = candidate.pools.iter().map(pool).collect();
    let of = |role| pools.iter().filter(move |pool| pool.role == role);
    let joined = |pools: &mut dyn Iterator<Item = &PoolReport>| {
        pools.map(|pool| format!("{} x {}", pool.replicas, pool.label)).collect::<Vec<_>>().join(" + ")
    };
    let all = |role| joined(&mut of(role));
    let disaggregated = of(Role::Prefill).next().zip(of(Role::Decode).next());
    let first = &pools[0];
    let (prefill, decode) = disaggregated.unwrap_or((first, first));
    let (mode, label) = match (disaggregated, of(Role::Aggregated).next()) {
        (None, _) => ("aggregated", joined(&mut pools.iter())),
        (Some(_), both) => {
            let aggregated = both.map_or_else(String::new, |_| format!(", both {}", all(Role::Aggregated)));
            (
                "disaggregated",
                format!("prefill {}, decode {}{aggregated}", all(Role::Prefill), all(Role::Decode)),
            )
        }
    };
    let others = pools.iter().filter(|pool| !std::ptr::eq(*pool, prefill) && !std::ptr::eq(*pool, decode));
    Plan {
        mode: mode.to_string(),
        label,
        prefill: prefill.clone(),
        decode: decode.clone(),
        others: others.cloned().collect(),
    }
}

/// Every input datum of a candidate's metrics, without duplicates.
pub fn leaves(reporter: &Reporter, candidate: &Candidate) -> Vec<Leaf> {
    let ledger = Ledger::new();
    let (problem, instances) = (reporter.problem(), reporter.instances(candidate));
    let m = candidate.evaluate_on(&&ledger, problem, &instances, &mut ()).metrics;
    let numbers =
        [Some(m.ttft), Some(m.tpot), Some(m.output_tok_s), m.usd_per_token, m.watts, Some(m.max_context)];
    let mut leaves: Vec<Leaf> = Vec::new();
    for leaf in numbers.into_iter().flatten().flat_map(|number| ledger.leaves(number)) {
        if !leaves.contains(&leaf) {
            leaves.push(leaf);
        }
    }
    leaves
}
