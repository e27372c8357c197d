//! Predicted figures of a measured row: of closed loops, of simulations, and of servers that start.

use super::predict::{PreparedRow, reason};
use super::simulated::SimulatedLatencies;
use crate::calibrate::deployment::MeasuredDeployment;
use crate::plan::parallel::Phase;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::candidate::Candidate;
use crate::search::front_sampling::sampled;
use crate::search::problem::Traffic;
use crate::search::shape::largest;
use crate::search::simulated_pool::cache_tokens;
use crate::serving::evaluate::Evaluation;
use crate::spec::error::Error;
use crate::spec::offload::Offload;
use crate::spec::role::Role;
use crate::validate::figures::{Figures, RunFigure};
use crate::validate::measured::MeasuredRow;
use crate::validate::run_kind::RunKind;
use crate::validate::summary::Prediction;

/// Sequences of an attention rank at most, where its server sets no limit: that of SGLang, kv_cache_configurator.py.
const MOST_SEQUENCES: u64 = 4096;
/// Loads that are tried between one and its double.
const LOADS_PER_DOUBLE: u64 = 8;

/// A deployment under its load, evaluated in closed form.
pub(super) struct ServedRow {
    pub ttft_ms: f64,
    pub tpot_ms: f64,
    e2e_ms: f64,
    output_tok_s: f64,
    prefill_tok_s: f64,
    pub requests_per_rank: u64,
}

impl ServedRow {
    /// Evaluates the row under its own load, or at the best one of a saturated run.
    pub(super) fn of(measured: &MeasuredRow, ready: &PreparedRow) -> Result<ServedRow, String> {
        let best = match measured.kind {
            RunKind::Saturated => Some(best_load(ready)?),
            _ => None,
        };
        let deployment = best.as_ref().unwrap_or(&ready.deployment);
        let machine = ready.problem.formats[0].plain();
        let (made, times) = match measured.speculative {
            Some(_) => (drafted(deployment, ready), None),
            None => (deployment.evaluate(machine, &mut ()), Some(deployment.times(machine))),
        };
        let metrics = made.metrics;
        let ttft = times.map_or(metrics.ttft.value(), |times| times.ttft);
        let tpot = times.map_or(metrics.tpot.value(), |times| times.tpot);
        let (requests, osl) = (deployment.concurrency as f64, measured.osl as f64);
        let e2e = match measured.timed_separately {
            true => ttft + (osl - 1.0) * tpot,
            false => metrics.e2e.value(),
        };
        let output_tok_s = match () {
            () if measured.has_answers_alone() => requests / tpot,
            () if measured.timed_separately => requests * osl / e2e,
            () => metrics.output_tok_s.value(),
        };
        // Each rank of the pool that computes prompts has one of its own.
        let prompts = deployment.pools.iter().filter(|pool| pool.role != Role::Decode);
        let ranks: u64 = prompts.map(|pool| pool.replicas * pool.plan.dp).sum();
        Ok(ServedRow {
            ttft_ms: 1e3 * ttft,
            tpot_ms: 1e3 * tpot,
            e2e_ms: 1e3 * e2e,
            output_tok_s,
            prefill_tok_s: ranks as f64 * measured.isl as f64 / made.prefill.total.value(),
            requests_per_rank: deployment.requests(),
        })
    }

    /// Those that the row has.
    pub(super) fn figures(&self, measured: &MeasuredRow) -> Figures {
        let all = [
            (RunFigure::Itl, self.tpot_ms),
            (RunFigure::E2e, self.e2e_ms),
            (RunFigure::Prefill, self.prefill_tok_s),
            (RunFigure::Output, self.output_tok_s),
        ];
        let mut figures = Figures::default();
        // Workers that only compute prompts answer none, and the other way around.
        let has = |figure| match measured.kind {
            RunKind::Prompts => figure == RunFigure::Prefill,
            RunKind::Saturated => figure == RunFigure::Output,
            _ => true,
        };
        for (figure, value) in all.into_iter().filter(|(figure, value)| has(*figure) && value.is_finite()) {
            figures.set(figure, measured.outcome.more.get(figure).map(|_| value));
        }
        figures
    }
}

/// The deployment with its draft.
fn drafted(deployment: &MeasuredDeployment, ready: &PreparedRow) -> Evaluation<Qty<f64>> {
    let mut problem = (*ready.problem).clone();
    problem.workload.lengths = deployment.lengths;
    problem.traffic = Traffic::InFlight(deployment.concurrency.into());
    let candidate = Candidate { formats: 0, pools: deployment.pools.clone(), offload: Offload::Nothing };
    candidate.evaluate(&Plain, &problem, &mut ())
}

/// The deployment under the load with the most output tokens per second, of those that its memory holds.
fn best_load(ready: &PreparedRow) -> Result<MeasuredDeployment, String> {
    let deployment = &ready.deployment;
    let machine = ready.problem.formats[0].plain();
    let replicas: u64 = deployment.pools.iter().map(|pool| pool.replicas).sum::<u64>().max(1);
    let ranks = deployment.pools.iter().map(|pool| pool.plan.dp).max().unwrap_or(1).max(1);
    let slots = machine.max_sequences.map_or(MOST_SEQUENCES, |most| most.value() as u64);
    let under = |per_replica: u64| {
        let mut loaded = deployment.clone();
        loaded.concurrency = per_replica.saturating_mul(replicas);
        loaded.pools.iter_mut().for_each(|pool| pool.concurrency = per_replica);
        loaded
    };
    let made = |load: u64| under(load).evaluate(machine, &mut ());
    let fits = |load: u64| {
        let memory = made(load).memory;
        memory.total.value() <= memory.usable.value()
    };
    let most = largest(slots.clamp(1, MOST_SEQUENCES).saturating_mul(ranks), fits);
    let rated = sampled(most, LOADS_PER_DOUBLE).map(|load| (made(load).metrics.output_tok_s.value(), load));
    let best = rated.max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, load)| under(load)).ok_or_else(|| "memory: holds no request of these lengths".to_owned())
}

/// Figures of a simulated run that the row has; `output_tok_s` where its throughput is predicted.
pub(super) fn simulated_figures(
    measured: &MeasuredRow,
    found: &SimulatedLatencies,
    output_tok_s: Option<f64>,
) -> Figures {
    let mut figures = Figures::default();
    for (figure, values, part) in [
        (RunFigure::TtftP90, &found.ttft, 0.9),
        (RunFigure::TtftP95, &found.ttft, 0.95),
        (RunFigure::TpotP90, &found.tpot, 0.9),
        (RunFigure::TpotP99, &found.tpot, 0.99),
        (RunFigure::E2e, &found.e2e, 0.5),
        (RunFigure::E2eP90, &found.e2e, 0.9),
        (RunFigure::E2eP99, &found.e2e, 0.99),
    ] {
        figures.set(figure, values.percentile(part).map(|seconds| 1e3 * seconds));
    }
    // Every token after the first counts once, so that long answers weigh more: the mean over requests is near it.
    figures.set(RunFigure::Itl, found.tpot.mean().map(|seconds| 1e3 * seconds));
    figures.set(RunFigure::Output, output_tok_s);
    let unmeasured =
        RunFigure::EACH.into_iter().filter(|figure| measured.outcome.more.get(*figure).is_none());
    unmeasured.for_each(|figure| figures.set(figure, None));
    figures
}

/// The memory of a server that starts: its weights, and what these leave to the KV cache of the fraction that it may use.
pub(super) fn started(measured: &MeasuredRow, ready: &PreparedRow) -> Result<Prediction, String> {
    let held = ready.footprint();
    let mut more = Figures::default();
    let stated = measured.outcome.more;
    let machine = ready.problem.formats[0].plain();
    if stated.get(RunFigure::Weights).is_some() {
        more.set(RunFigure::Weights, Some(held.weights.value()));
    }
    if measured.memory_share.is_some() {
        let state = held.state.map_or(0.0, |state| state.value());
        let taken = held.weights.value() + held.activations.value() + held.buffers.value() + state;
        let free = held.usable.value() - taken;
        if free <= 0.0 {
            return Err("memory: none is predicted to be left for the KV cache".to_owned());
        }
        let instance = &ready.deployment.instances[0];
        let tokens = cache_tokens((instance, Phase::Decode), machine, None) as f64;
        for (figure, value) in [(RunFigure::KvMemory, free), (RunFigure::KvTokens, tokens)] {
            more.set(figure, stated.get(figure).map(|_| value));
        }
    }
    if more.is_empty() {
        let fault = Error::new("mem_util", "not stated, so the memory of the KV cache is unknown", "", "");
        return Err(reason(&fault));
    }
    // Of one short request: no start states these.
    let ServedRow { ttft_ms, tpot_ms, .. } = ServedRow::of(measured, ready)?;
    Ok(Prediction {
        ttft_ms,
        tpot_ms,
        more,
        fits: true,
        devices: ready.deployment.devices(),
        ..Prediction::default()
    })
}
