//! Converts a search outcome into the reported result.

use std::sync::Arc;

use rayon::prelude::*;

use super::audit::section;
use super::bounds::price_bounds;
use super::breakdown::Breakdown;
use super::detail::detail;
use super::inputs::ReportInputs;
use super::notation::notation;
use super::number::{gib, limit as spell, time, word};
use super::pool::PoolReport;
use super::proof::proof;
use super::ratio::split_ratio;
use super::result::{
    EstimateResult, Feasibility, FrontThinning, Intervals, LowerFormat, MemoryReport, MetricsReport,
    NearestMiss, OptimizeResult, Plan, Quantiles, ReportedDeployment,
};
use super::shortage::{OUT_OF_MEMORY, weights_need};
use crate::cost::memory::Footprint;
use crate::plan::infeasible::Infeasible;
use crate::plan::legal::check;
use crate::plan::parallel::Phase;
use crate::quantity::ledger::{Leaf, Ledger};
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::candidate::{Candidate, PoolPlan, PoolRole, whole};
use crate::search::front_thinning::thinned;
use crate::search::hosting::{most_replicas, refused};
use crate::search::outcome::{EvaluatedCandidate, Outcome};
use crate::search::problem::{Problem, Traffic};
use crate::search::shape::{largest_part, shape};
use crate::serving::admission::residency;
use crate::serving::evaluate::Evaluation;
use crate::serving::instance::Instance;
use crate::serving::terms::OffloadTarget;
use crate::spec::front_points::FrontPoints;

/// The whole result.
/// A front of more than `most` points is thinned.
pub fn optimize_result(
    problem: &Problem,
    asked: ReportInputs,
    outcome: &Outcome,
    lower_format: Option<LowerFormat>,
    most: FrontPoints,
) -> OptimizeResult {
    let all = |found: &[EvaluatedCandidate]| {
        found.iter().map(|found| report_deployment(problem, &found.candidate)).collect()
    };
    let nearest = outcome.nearest.as_ref().map(|(found, reason)| NearestMiss {
        candidate: report_deployment(problem, &found.candidate),
        misses: reason.to_string(),
    });
    let best = outcome.best.as_ref().map(|found| &found.candidate);
    let front = thinned(&outcome.front, &problem.distinct_axes(), outcome.best.as_ref(), most.most());
    let leaves = best.map_or_else(Vec::new, |best| leaves(problem, best));
    let full = best.is_none() && outcome.census.illegal.contains_key(OUT_OF_MEMORY);
    OptimizeResult {
        theoretical: asked.theoretical,
        plain: None,
        status: outcome.status,
        proof: proof(problem, outcome),
        scenario: None,
        question: asked,
        best: best.map(|best| report_deployment(problem, best)),
        detail: best.map(|best| detail(problem, best, &leaves)),
        alternatives: all(&outcome.alternatives),
        front_points: outcome.front.len() as u64,
        front: front
            .listed
            .par_iter()
            .map(|at| report_deployment(problem, &outcome.front[*at].candidate))
            .collect(),
        front_thinning: (front.listed.len() < outcome.front.len())
            .then_some(FrontThinning { requested: most, tolerance: front.tolerance }),
        census: outcome.census.clone(),
        nearest,
        conflict: None,
        split_ratio: split_ratio(outcome),
        why: None,
        weights_need: if full { weights_need(problem) } else { vec![] },
        lower_format,
        runtimes: vec![],
        launch: None,
        audit: best.map(|best| section(problem, best)),
    }
}

/// The estimate of a given deployment.
pub fn estimate_result(problem: &Problem, asked: ReportInputs, candidate: &Candidate) -> EstimateResult {
    let reported = estimate_deployment(problem, candidate);
    let legal = reported.feasibility != Feasibility::Illegal;
    let leaves = if legal { leaves(problem, candidate) } else { vec![] };
    EstimateResult {
        theoretical: asked.theoretical,
        scenario: None,
        detail: legal.then(|| detail(problem, candidate, &leaves)),
        audit: legal.then(|| section(problem, candidate)),
        candidate: reported,
        question: asked,
        launch: None,
        command: None,
    }
}

/// The report of a given deployment.
pub fn estimate_deployment(problem: &Problem, candidate: &Candidate) -> ReportedDeployment {
    let mut reported = report_deployment(problem, candidate);
    if let Some(reason) = overload(problem, candidate).filter(|_| reported.metrics.is_some()) {
        // The queue would grow without bound: no mean latency exists.
        (reported.metrics, reported.bottleneck) = (None, None);
        reported.violations.insert(0, reason.to_string());
    }
    reported
}

/// The given rate if it exceeds the capacity of a valid candidate with all slots always full.
pub fn overload(problem: &Problem, candidate: &Candidate) -> Option<Infeasible> {
    let Traffic::Rate(asked) = problem.traffic else { return None };
    if !forbidden(problem, candidate).is_empty() {
        return None;
    }
    let carried = carried(&unbound(problem), candidate);
    // The lowest load that sustains the rate may sustain exactly that rate.
    (carried < asked * (1.0 - 1e-9)).then_some(Infeasible::TooMuchTraffic { carried, asked })
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

/// Why a pool cannot have its part in host memory.
fn not_hosted(problem: &Problem, candidate: &Candidate) -> impl Iterator<Item = Infeasible> {
    candidate.pools.iter().filter_map(|pool| match candidate.offload {
        OffloadTarget::Host(part) => {
            let many = pool.replicas > most_replicas(problem, pool.plan.devices(), candidate.offload);
            let why = "replicas on one host share its processor: one replica per node";
            let many = many.then_some(Infeasible::NotHosted { why });
            refused(problem, candidate.formats, &pool.plan, part).or(many)
        }
        OffloadTarget::Nothing | OffloadTarget::Layers | OffloadTarget::Experts | OffloadTarget::Kv => None,
    })
}

/// Rules that a candidate violates regardless of load and memory.
pub fn forbidden(problem: &Problem, candidate: &Candidate) -> Vec<Infeasible> {
    let limits = problem.legal_limits(&problem.formats[candidate.formats]);
    let plans = candidate.pools.iter().map(|pool| check(&problem.graph, &pool.plan, &limits));
    let kv = &problem.formats[candidate.formats].kv;
    let split = candidate.is_disaggregated() && !problem.runtime.has("disagg");
    let unsupported =
        || Infeasible::NotSupported { runtime: problem.runtime.id.clone(), degree: "disaggregation" };
    let rules =
        [problem.runtime.check(kv, &candidate.workers()), if split { Err(unsupported()) } else { Ok(()) }];
    let mut broken: Vec<Infeasible> = Vec::new();
    let streamed = candidate.offload.streamed().filter(|part| !problem.runtime.streams.contains(part));
    let streamed = streamed.map(|part| {
        Err(Infeasible::NotSupported { runtime: problem.runtime.id.clone(), degree: part.in_host_memory() })
    });
    let rules = rules
        .into_iter()
        .chain(streamed)
        .chain(plans)
        .chain([problem.context_fits()])
        .filter_map(Result::err);
    for reason in rules.chain(not_hosted(problem, candidate)) {
        if !broken.contains(&reason) {
            broken.push(reason);
        }
    }
    broken
}

/// The report of a candidate. One that cannot run has no metrics.
pub fn report_deployment(problem: &Problem, candidate: &Candidate) -> ReportedDeployment {
    let formats = &problem.formats[candidate.formats];
    let devices = candidate.devices();
    let bare = ReportedDeployment {
        plan: plan(candidate),
        notation: notation(problem, candidate).to_string(),
        weight_format: formats.weights.clone(),
        kv_format: formats.kv.clone(),
        concurrency: candidate.concurrency(&problem.traffic) as f64,
        devices,
        idle_devices: problem.cluster.devices().saturating_sub(devices),
        feasibility: Feasibility::Illegal,
        violations: forbidden(problem, candidate).iter().map(Infeasible::to_string).collect(),
        memory: None,
        bottleneck: None,
        metrics: None,
        intervals: None,
        price_bounds: None,
    };
    if !bare.violations.is_empty() {
        return bare;
    }
    let evaluation = candidate.evaluate(&Plain, problem, &mut ());
    let in_flight = match problem.traffic {
        Traffic::InFlight(requests) => requests as f64,
        _ => whole(evaluation.metrics.in_flight.value()),
    };
    let short = shortages(problem, candidate);
    let feasibility = match evaluation.spilled {
        _ if !short.is_empty() => Feasibility::InsufficientMemory,
        Some(_) => Feasibility::WithOffload,
        None => Feasibility::InVram,
    };
    let runs = short.is_empty();
    let intervals =
        formats.interval(candidate.is_disaggregated(), candidate.requests_per_rank()).filter(|_| runs);
    let bound = || Breakdown::of(problem, candidate).by_class(Phase::Decode).largest().name().to_string();
    ReportedDeployment {
        feasibility,
        concurrency: in_flight,
        violations: if runs { missed(problem, &evaluation) } else { short },
        memory: Some(memory(&evaluation.memory, evaluation.spilled, problem, candidate)),
        bottleneck: runs.then(bound),
        metrics: runs.then(|| MetricsReport::of(&evaluation.metrics)),
        price_bounds: price_bounds(problem, &evaluation).filter(|_| runs),
        intervals: intervals.map(|interval| {
            let at_rate = matches!(problem.traffic, Traffic::Rate(_));
            Intervals::of(interval, &MetricsReport::of(&evaluation.metrics), problem.confidence, at_rate)
        }),
        ..bare
    }
}

/// Memory of the fullest device of each pool, in order.
pub fn holdings(problem: &Problem, candidate: &Candidate) -> Vec<Footprint<Qty<f64>>> {
    let machine = problem.formats[candidate.formats].plain();
    let instances = candidate.instances(problem);
    let held = |(pool, instance): (&PoolPlan, &Instance)| {
        let phase = if pool.role == PoolRole::Prefill { Phase::Prefill } else { Phase::Decode };
        residency(&Plain, instance, phase, machine, problem.terms(), pool.concurrency)
    };
    candidate.pools.iter().zip(&instances).map(held).collect()
}

/// Whether the memory needed fits into the usable memory.
pub fn fits(held: &Footprint<Qty<f64>>) -> bool {
    held.total.value() <= held.usable.value()
}

/// Whether host memory holds the part that exceeds the devices of a pool.
fn spills(problem: &Problem, candidate: &Candidate, pool: &PoolPlan) -> bool {
    let lay = || Instance::new(&problem.graph, pool.plan, pool.stages.clone(), problem.tiers());
    let held = || shape(problem, candidate.formats, &Arc::new(lay()), candidate.offload);
    let requests = pool.concurrency.div_ceil(pool.plan.dp);
    candidate.offload != OffloadTarget::Nothing && held().is_ok_and(|shape| requests <= shape.fits)
}

/// The memory shortage of every pool that does not fit.
fn shortages(problem: &Problem, candidate: &Candidate) -> Vec<String> {
    let pools = candidate.pools.iter().zip(holdings(problem, candidate));
    let told = |(pool, held): (&PoolPlan, Footprint<Qty<f64>>)| {
        let whose = match pool.role {
            PoolRole::Aggregated => "",
            PoolRole::Prefill => "prefill pool: ",
            PoolRole::Decode => "decode pool: ",
        };
        let (needed, usable) = (held.total.value(), held.usable.value());
        let beyond =
            if candidate.offload == OffloadTarget::Nothing { "" } else { ", beyond the host memory" };
        if matches!(candidate.offload, OffloadTarget::Host(_)) && fits(&held) {
            let short = "the part in host memory exceeds it".to_string();
            return (!spills(problem, candidate, pool)).then_some(short);
        }
        (!fits(&held) && !spills(problem, candidate, pool)).then(|| {
            format!(
                "{whose}{} needed on the fullest device, {} usable: {} short (mostly {}){beyond}",
                gib(needed),
                gib(usable),
                gib(needed - usable),
                largest_part(&held)
            )
        })
    };
    pools.filter_map(told).collect()
}

/// Every missed latency SLO.
fn missed(problem: &Problem, evaluation: &Evaluation<Qty<f64>>) -> Vec<String> {
    let misses = problem.missed_in_pools(evaluation).filter_map(|reason| match reason {
        Infeasible::LimitMissed { metric, value, limit } => {
            let (value, limit) = (time(value * 1e3), spell(limit * 1e3));
            Some(format!("{} is {value}, the SLO is {limit}", word(metric)))
        }
        _ => None,
    });
    misses.collect()
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
    let hosted = matches!(candidate.offload, OffloadTarget::Host(_));
    let interval = formats.memory_interval(held).map(|[p10, p50, p90]| Quantiles { p10, p50, p90 });
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
        host_bytes: spilled.filter(|_| hosted).map_or(0.0, Qty::value),
    }
}

fn pool(pool: &PoolPlan) -> PoolReport {
    let plan = pool.plan;
    PoolReport {
        duty: pool.role,
        label: plan.label(),
        tp: plan.tp,
        pp: plan.pp,
        dp: plan.dp,
        cp: plan.cp,
        dcp: plan.dcp,
        ep: plan.ep,
        moe_tp: plan.moe_tp,
        ffn_tp: plan.ffn_tp,
        vocab_tp: plan.vocab_tp,
        sp: plan.sp,
        stages: pool.stages.clone(),
        replicas: pool.replicas,
        devices: pool.replicas * plan.devices(),
        concurrency_per_replica: pool.concurrency,
    }
}

/// The plan in full, with its label.
pub fn plan(candidate: &Candidate) -> Plan {
    let short = |pool: &&PoolPlan| format!("{} x {}", pool.replicas, pool.plan.label());
    let of = |duty| candidate.pools.iter().filter(move |pool| pool.role == duty);
    let all = |duty| of(duty).map(|pool| short(&pool)).collect::<Vec<_>>().join(" + ");
    let apart = of(PoolRole::Prefill).next().zip(of(PoolRole::Decode).next());
    let first = &candidate.pools[0];
    let (prefill, decode) = apart.unwrap_or((first, first));
    let (mode, label) = match (apart, of(PoolRole::Aggregated).next()) {
        (None, _) => {
            let all: Vec<String> = candidate.pools.iter().map(|pool| short(&pool)).collect();
            ("aggregated", all.join(" + "))
        }
        (Some(_), both) => {
            let beside = both.map_or_else(String::new, |_| format!(", both {}", all(PoolRole::Aggregated)));
            (
                "disaggregated",
                format!("prefill {}, decode {}{beside}", all(PoolRole::Prefill), all(PoolRole::Decode)),
            )
        }
    };
    let others =
        candidate.pools.iter().filter(|pool| !std::ptr::eq(*pool, prefill) && !std::ptr::eq(*pool, decode));
    Plan {
        mode: mode.to_string(),
        label,
        prefill: pool(prefill),
        decode: pool(decode),
        others: others.map(pool).collect(),
    }
}

/// Every input datum of a candidate's metrics, without duplicates.
pub fn leaves(problem: &Problem, candidate: &Candidate) -> Vec<Leaf> {
    let ledger = Ledger::new();
    let m = candidate.evaluate(&&ledger, problem, &mut ()).metrics;
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
