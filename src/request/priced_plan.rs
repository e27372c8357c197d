//! A plan whose steps are priced one by one, for simulators of serving.

use std::sync::Arc;

use serde_json::Value;

use super::estimate::{EstimateRequest, estimate};
use super::given_plan::planned_problem;
use super::optimize::at;
use super::wording::Door;
use super::{RequestControl, posed};
use crate::plan::parallel::Phase;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::candidate::tier_of_caches;
use crate::search::simulated_pool::{
    InstanceClock, PlanClock, RankSums, SchedulerInputs, cache_tokens, pairs, tokens,
};
use crate::serving::instance::Instance;
use crate::serving::iteration::{DecodeLoad, decode, offloaded, prefill_among, read_by_prompts};
use crate::serving::step::StepTime;
use crate::serving::terms::{Lengths, WorkloadTerms};
use crate::spec::error::Error;
use crate::spec::nearness::Interval;
use crate::spec::objective::LatencyLimits;
use crate::spec::offload::Offload;
use crate::spec::role::Role;
use crate::spec::runtime::SchedulerPolicy;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::traffic::draft::DraftSettings;
use crate::traffic::operation::OperationSettings;
use crate::traffic::router::RoutePolicy;
use crate::traffic::run::{DeploymentSettings, PoolSettings};

/// A plan whose steps are priced one by one, by the formulas of [`estimate`]: for simulators of serving, which schedule
/// requests themselves. All numbers are those of one replica, or of one worker of each role.
#[derive(Clone, Debug)]
pub struct PricedPlan {
    /// The question, with the plan that was chosen for it.
    pub scenario: Scenario,
    /// The plan in one line.
    pub notation: String,
    /// Tokens that the KV cache holds in one decoding replica, all attention ranks together.
    pub kv_tokens: u64,
    /// Requests that the schedulers of a replica take at a time; none where the runtime has no such limit.
    pub most_requests: Option<u64>,
    /// New tokens that the scheduler of an attention rank puts into one step.
    pub most_step_tokens: u64,
    /// Requests that the plan has at the same time.
    pub(crate) clients: u64,
    /// Whether later prompts use the cached tokens of earlier ones.
    pub(crate) caches_prefixes: bool,
    /// By pool: its role, its replicas, and the requests that each has at the same time.
    pools: Vec<(Role, u64, u64)>,
    /// Its pools, the steps of each on its own.
    clocks: PlanClock,
    limits: LatencyLimits,
    /// Measured over predicted latencies.
    interval: Option<Interval>,
    lengths: Lengths,
    prefill: Instance,
    offload: Offload,
    clock: InstanceClock,
}

/// Time of a step, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PricedStep {
    /// Until every request of the step has its tokens.
    pub seconds: f64,
    /// Until one micro-batch has passed all pipeline stages; the same without a pipeline.
    pub pass_s: f64,
    /// For which the slowest pipeline stage is taken by a micro-batch.
    pub stage_s: f64,
    /// In which the arithmetic of a device is busy.
    pub compute_s: f64,
    /// In which the memory of a device is busy.
    pub memory_s: f64,
}

impl PricedStep {
    fn of(step: &StepTime<Qty<f64>>, whole: Qty<f64>) -> PricedStep {
        PricedStep {
            seconds: whole.value(),
            pass_s: step.total.value(),
            stage_s: step.slowest.value(),
            compute_s: step.compute_time.value(),
            memory_s: step.memory_time.value(),
        }
    }
}

impl PricedPlan {
    /// The plan of a request of `estimate`, its load chosen where it is open.
    ///
    /// # Errors
    /// The request is faulty, or its plan cannot run.
    pub fn new(
        catalog: &Catalog,
        request: &EstimateRequest,
        control: &RequestControl,
    ) -> Result<PricedPlan, Error> {
        let found = estimate(catalog, request, control)?;
        let why = || found.candidate.violations.first().cloned().unwrap_or_default();
        let cannot =
            || Error::new("plan", why(), "a plan that can run", "change the degrees, or the hardware");
        let stated =
            found.scenario.as_ref().filter(|_| found.candidate.metrics.is_some()).ok_or_else(cannot)?;
        let scenario = at(stated, &found.candidate);
        let (resolved, problem, candidate) = planned_problem(catalog, &scenario)?;
        let instances = candidate.instances(&problem);
        let of = |other: Role| candidate.pools.iter().position(|pool| pool.role != other).ok_or_else(cannot);
        let (prefill, decode) = (of(Role::Decode)?, of(Role::Prefill)?);
        let spilled = candidate.evaluate_on(&Plain, &problem, &instances, &mut ()).spilled;
        let streamed = spilled.filter(|_| matches!(candidate.offload, Offload::Streamed(_)));
        let machine = problem.formats[candidate.formats].plain().clone();
        let terms = problem.terms().clone();
        let pool = &candidate.pools[decode];
        let ranks = pool.plan.dp;
        let each = instances.iter().map(|instance| InstanceClock {
            instance: Arc::new(instance.clone()),
            machine: machine.clone(),
            terms: terms.clone(),
            streamed,
        });
        let clocks = PlanClock { pools: each.collect(), kv_tier: tier_of_caches(&candidate.pools, &machine) };
        let clients = candidate.pools.iter().map(|pool| pool.replicas.saturating_mul(pool.concurrency)).sum();
        Ok(PricedPlan {
            pools: candidate.pools.iter().map(|pool| (pool.role, pool.replicas, pool.concurrency)).collect(),
            clients: problem.traffic.requests().unwrap_or(clients),
            caches_prefixes: resolved.runtime.memory.shared_prefixes.is_some(),
            limits: problem.limits,
            interval: candidate.interval(&problem).cloned(),
            lengths: problem.workload.lengths,
            notation: found.candidate.notation.clone(),
            kv_tokens: cache_tokens((&instances[decode], Phase::Decode), &machine, streamed)
                .saturating_mul(ranks),
            most_requests: problem.most_sequences.map(|most| most.saturating_mul(ranks)),
            most_step_tokens: machine.of(Phase::Prefill).chip.max_batched_tokens.value() as u64,
            offload: candidate.offload,
            prefill: instances[prefill].clone(),
            clock: clocks.pools[decode].clone(),
            clocks,
            scenario,
        })
    }

    /// Lengths of a request.
    pub(crate) fn lengths(&self) -> Lengths {
        self.lengths
    }

    /// The latency SLOs.
    pub(crate) fn limits(&self) -> LatencyLimits {
        self.limits
    }

    /// Tokens of a request, at most.
    pub(crate) fn window(&self) -> u64 {
        self.clock.instance.max_context.unwrap_or(u64::MAX)
    }

    /// Its replicas, or workers of all roles.
    pub(crate) fn replicas(&self) -> u64 {
        self.pools.iter().map(|(_, replicas, _)| replicas).sum()
    }

    /// Measured over predicted latencies of the plan.
    pub(crate) fn interval(&self) -> Option<&Interval> {
        self.interval.as_ref()
    }

    /// The replicas with their schedulers, whose requests `router` spreads over them.
    ///
    /// # Errors
    /// Something about the plan is not simulated.
    pub(crate) fn deployment(&self, router: RoutePolicy, seed: u64) -> Result<DeploymentSettings, Error> {
        let not = |what: &str, expected: &str| {
            let fix =
                "simulate another plan, e.g. with --runtime vllm, or use `estimate`, whose formulas cover it";
            Error::new("plan", what, expected, fix)
        };
        let pool = |((role, replicas, concurrency), clock): (&(Role, u64, u64), &InstanceClock)| {
            let phase = if *role == Role::Prefill { Phase::Prefill } else { Phase::Decode };
            let of = (&*clock.instance, phase);
            let inputs = SchedulerInputs::of(of, &clock.machine, clock.streamed, *concurrency);
            let inputs = inputs.ok_or_else(|| {
                not(
                    "a runtime whose scheduler is not simulated",
                    "a runtime with a `policy` in its file: vllm, sglang, trtllm, llama.cpp",
                )
            })?;
            let draft = clock.instance.draft.as_ref().zip(clock.terms.acceptance);
            let draft = draft
                .map(|(draft, acceptance)| DraftSettings::of_share(tokens(draft.tokens), acceptance.value()));
            if draft.is_some() && inputs.policy.like == SchedulerPolicy::Llamacpp {
                return Err(not("speculative decoding of llama.cpp", "a plan without a draft"));
            }
            let inputs = SchedulerInputs { caches_prefixes: self.caches_prefixes, draft, ..inputs };
            let (ranks, scheduler) = (inputs.ranks as usize, inputs.settings());
            Ok(PoolSettings::untiered(*role, (*replicas as usize, ranks), scheduler))
        };
        let pools = self.pools.iter().zip(&self.clocks.pools).map(pool).collect::<Result<_, Error>>()?;
        Ok(DeploymentSettings { pools, router, seed, operation: OperationSettings::default() })
    }

    /// Times of all its pools.
    pub(crate) fn clocks(&self) -> &PlanClock {
        &self.clocks
    }

    /// Times of the steps of a decoding replica.
    pub(crate) fn clock(&self) -> &InstanceClock {
        &self.clock
    }

    /// The same for a request in JSON, which may carry files.
    ///
    /// # Errors
    /// As those of [`PricedPlan::new`], in words of the door.
    pub fn of_json(
        door: Door,
        catalog: &Catalog,
        request: &Value,
        control: &RequestControl,
    ) -> Result<PricedPlan, Error> {
        let planned = posed(catalog, request)
            .and_then(|(catalog, request)| PricedPlan::new(&catalog, &request, control));
        planned.map_err(|fault| door.fault(fault))
    }

    /// The prefill of `prompts` prompts at the same time, each of `tokens` new tokens after `cached` ones.
    pub fn prefill(&self, prompts: u64, tokens: f64, cached: f64) -> PricedStep {
        if prompts == 0 {
            return PricedStep::default();
        }
        let terms = WorkloadTerms {
            isl: Qty::from(cached + tokens),
            prefix: Qty::from(cached),
            ..self.clock.terms.clone()
        };
        let one = prefill_among(&Plain, (&self.prefill, prompts), &self.clock.machine, &terms, &mut ());
        let streamed = read_by_prompts(self.clock.streamed, self.offload);
        let one = offloaded(&Plain, &self.prefill, one, &terms, streamed);
        PricedStep::of(&one, one.total)
    }

    /// A decode step of `requests` requests with `cached` tokens each, their mean, before it.
    pub fn decode(&self, requests: u64, cached: f64) -> PricedStep {
        if requests == 0 {
            return PricedStep::default();
        }
        // The context of a step is that of a request halfway through its output: here it has none yet.
        let terms =
            WorkloadTerms { isl: Qty::from(cached + 1.0), osl: Qty::from(0.0), ..self.clock.terms.clone() };
        let load = DecodeLoad { concurrency: Qty::from(requests as f64), offload: self.offload };
        let round = decode(
            &Plain,
            &self.clock.instance,
            &self.clock.machine,
            &terms,
            &load,
            self.clock.streamed,
            &mut (),
        );
        PricedStep::of(&round.step, round.cycle)
    }

    /// A step of prompts, each with its new and its cached tokens, and of decoding requests, each with its cached
    /// tokens. They share the weights, the host and the launches of the step. Requests of several lengths count as that
    /// many of their mean: of prompts, the mean that has the same number of pairs of tokens.
    pub fn step(&self, prefill: &[(f64, f64)], decode: &[f64]) -> PricedStep {
        if decode.is_empty() {
            let (tokens, cached) = mean_prompt(prefill);
            return self.prefill(prefill.len() as u64, tokens, cached);
        }
        if prefill.is_empty() {
            return self.decode(decode.len() as u64, decode.iter().sum::<f64>() / decode.len() as f64);
        }
        let one = RankSums {
            decoding: decode.len() as f64,
            kv_tokens: decode.iter().sum(),
            prompts: prefill.len() as f64,
            new_tokens: prefill.iter().map(|(tokens, _)| tokens).sum(),
            pairs: prefill.iter().map(|(tokens, cached)| pairs(*tokens, *cached)).sum(),
        };
        let (step, whole) = self.clock.step(&one.load(&one));
        PricedStep::of(&step, whole)
    }
}

/// New and cached tokens of the prompts that have, in the same number, as many new tokens and pairs of tokens as these.
fn mean_prompt(prompts: &[(f64, f64)]) -> (f64, f64) {
    match prompts {
        [] => (0.0, 0.0),
        [first, rest @ ..] if rest.iter().all(|other| other == first) => *first,
        _ => {
            let tokens: f64 = prompts.iter().map(|(tokens, _)| tokens).sum();
            let all: f64 = prompts.iter().map(|(tokens, cached)| pairs(*tokens, *cached)).sum();
            let mean = tokens / prompts.len() as f64;
            (mean, (all / tokens - mean / 2.0).max(0.0))
        }
    }
}
