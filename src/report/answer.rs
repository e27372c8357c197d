//! From the search's outcome to the result that leaves the house.

use super::breakdown::Breakdown;
use super::result::{
    Answer, Asked, Assumption, Feasibility, Figures, LowerFormat, Memory, Nearest, Plan, PoolReport, Reported,
};
use crate::plan::parallel::Phase;
use crate::quantity::datum::Grade;
use crate::quantity::ledger::Ledger;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::candidate::{Candidate, Duty, PoolPlan};
use crate::search::outcome::{Found, Outcome};
use crate::search::question::Question;
use crate::search::shape::short;
use crate::serving::evaluate::{Evaluation, residency};

/// The whole result.
pub fn answer(
    question: &Question,
    asked: Asked,
    outcome: &Outcome,
    lower_format: Option<LowerFormat>,
) -> Answer {
    let all = |found: &[Found]| found.iter().map(|found| reported(question, &found.candidate)).collect();
    let nearest = outcome.nearest.as_ref().map(|(found, reason)| Nearest {
        candidate: reported(question, &found.candidate),
        misses: reason.to_string(),
    });
    Answer {
        status: outcome.status,
        question: asked,
        best: outcome.best.as_ref().map(|found| reported(question, &found.candidate)),
        alternatives: all(&outcome.alternatives),
        front: all(&outcome.front),
        census: outcome.census.clone(),
        nearest,
        lower_format,
        assumptions: outcome.best.as_ref().map_or_else(Vec::new, |f| assumptions(question, &f.candidate)),
    }
}

/// A candidate with everything that is told of it. One that cannot run has no metrics.
pub fn reported(question: &Question, candidate: &Candidate) -> Reported {
    let evaluation = candidate.evaluate(&Plain, question, &mut ());
    let violations = violations(question, candidate, &evaluation);
    let fits = evaluation.memory.total.value() <= evaluation.memory.usable.value();
    let feasibility = match evaluation.spilled {
        Some(_) => Feasibility::WithOffload,
        None if fits && prompts_fit(question, candidate) => Feasibility::InVram,
        None => Feasibility::InsufficientMemory,
    };
    let runs = feasibility != Feasibility::InsufficientMemory;
    let devices = candidate.devices();
    let formats = &question.formats[candidate.formats];
    Reported {
        plan: plan(candidate),
        weight_format: formats.weights.clone(),
        kv_format: formats.kv.clone(),
        concurrency: candidate.concurrency(&question.traffic),
        devices,
        idle_devices: question.cluster.devices().saturating_sub(devices),
        feasibility,
        violations,
        memory: memory(&evaluation, question, candidate),
        bottleneck: Breakdown::of(question, candidate).by_class(Phase::Decode).largest().name().to_string(),
        metrics: runs.then(|| figures(&evaluation)),
    }
}

/// Limits and rules that a candidate breaks.
fn violations(question: &Question, candidate: &Candidate, evaluation: &Evaluation<Qty<f64>>) -> Vec<String> {
    let mut broken = Vec::new();
    for pool in &candidate.pools {
        let limits = question.legal_limits(&question.formats[candidate.formats]);
        if let Err(reason) = crate::plan::legal::check(&question.graph, &pool.plan, &limits) {
            broken.push(reason.to_string());
        }
    }
    broken.extend(question.context_fits().err().map(|reason| reason.to_string()));
    if evaluation.spilled.is_none() && evaluation.memory.total.value() > evaluation.memory.usable.value() {
        broken.push(short(&evaluation.memory).to_string());
    }
    let point = crate::search::point::point(&evaluation.metrics);
    broken.extend(question.missed(&point).map(|reason| reason.to_string()));
    broken
}

/// Whether a pool of prompts has room for one.
fn prompts_fit(question: &Question, candidate: &Candidate) -> bool {
    let machine = question.formats[candidate.formats].plain();
    let instances = candidate.instances(question);
    let mut prompts = candidate.pools.iter().zip(&instances).filter(|(pool, _)| pool.duty == Duty::Prefill);
    prompts.all(|(pool, instance)| {
        let held = residency(&Plain, instance, Phase::Prefill, machine, question.terms(), pool.concurrency);
        held.total.value() <= held.usable.value()
    })
}

fn memory(evaluation: &Evaluation<Qty<f64>>, question: &Question, candidate: &Candidate) -> Memory {
    let held = &evaluation.memory;
    Memory {
        weights_bytes: held.weights.value(),
        kv_cache_bytes: held.kv.value(),
        activations_bytes: held.activations.value(),
        buffers_bytes: held.buffers.value(),
        total_bytes: held.total.value(),
        usable_bytes: held.usable.value(),
        capacity_bytes: question.formats[candidate.formats].plain().chip.capacity.value(),
        offloaded_bytes: evaluation.spilled.map_or(0.0, Qty::value),
    }
}

fn figures(evaluation: &Evaluation<Qty<f64>>) -> Figures {
    let m = &evaluation.metrics;
    let known = |figure: Option<Qty<f64>>, scale: f64| figure.map(|figure| figure.value() * scale);
    Figures {
        ttft_ms: m.ttft.value() * 1e3,
        tpot_ms: m.tpot.value() * 1e3,
        e2e_ms: m.e2e.value() * 1e3,
        output_tok_s: m.output_tok_s.value(),
        output_tok_s_per_device: m.output_tok_s_per_device.value(),
        output_tok_s_per_user: m.output_tok_s_per_user.value(),
        usd_per_mtok: known(m.usd_per_token, 1e6),
        usd_per_mtok_total: known(m.usd_per_token_total, 1e6),
        watts: known(m.watts, 1.0),
        tok_per_joule: known(m.tok_per_joule, 1.0),
        max_context_tokens: m.max_context.value().floor(),
    }
}

fn pool(pool: &PoolPlan) -> PoolReport {
    let plan = pool.plan;
    PoolReport {
        duty: pool.duty,
        tp: plan.tp,
        pp: plan.pp,
        dp: plan.dp,
        cp: plan.cp,
        ep: plan.ep,
        moe_tp: plan.moe_tp,
        sp: plan.sp,
        stages: pool.stages.clone(),
        replicas: pool.replicas,
        devices: pool.replicas * plan.devices(),
        concurrency_per_replica: pool.concurrency,
    }
}

/// The plan in full and in short.
pub fn plan(candidate: &Candidate) -> Plan {
    let short = |pool: &PoolPlan| format!("{} x {}", pool.replicas, pool.plan.label());
    let all: Vec<String> = candidate.pools.iter().map(short).collect();
    let apart = candidate.pools[0].duty == Duty::Prefill;
    let (mode, label) = match (&all[..], apart) {
        ([front, back], true) => ("disaggregated", format!("prefill {front}, decode {back}")),
        (all, _) => ("aggregated", all.join(" + ")),
    };
    let reports: Vec<PoolReport> = candidate.pools.iter().map(pool).collect();
    let decode = if apart { 1 } else { 0 };
    Plan {
        mode: mode.to_string(),
        label,
        prefill: reports[0].clone(),
        decode: reports[decode].clone(),
        others: reports[decode + 1..].to_vec(),
    }
}

/// What the metrics of a candidate rest on that nobody measured or stated.
pub fn assumptions(question: &Question, candidate: &Candidate) -> Vec<Assumption> {
    let ledger = Ledger::new();
    let m = candidate.evaluate(&&ledger, question, &mut ()).metrics;
    let numbers = [Some(m.ttft), Some(m.tpot), Some(m.output_tok_s), m.usd_per_token, m.watts];
    let mut assumptions: Vec<Assumption> = Vec::new();
    for leaf in numbers.into_iter().flatten().flat_map(|number| ledger.leaves(number)) {
        let found = Assumption { symbol: leaf.symbol, value: leaf.text, why: leaf.source, grade: leaf.grade };
        if found.grade == Grade::Assumed && !assumptions.contains(&found) {
            assumptions.push(found);
        }
    }
    assumptions
}
