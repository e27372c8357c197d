//! A plan whose steps are priced one by one, for simulators of serving.

use serde_json::Value;

use super::estimate::{EstimateRequest, estimate};
use super::given_plan::planned_problem;
use super::optimize::at;
use super::wording::Door;
use super::{RequestControl, posed};
use crate::cost::machine::Machine;
use crate::plan::parallel::Phase;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::serving::instance::Instance;
use crate::serving::iteration::{DecodeLoad, decode, offloaded, prefill_among, read_by_prompts};
use crate::serving::residency::CachedSequences;
use crate::serving::stage_memory::InstanceMemory;
use crate::serving::step::StepTime;
use crate::serving::terms::WorkloadTerms;
use crate::spec::error::Error;
use crate::spec::offload::Offload;
use crate::spec::role::Role;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

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
    machine: Machine<Qty<f64>>,
    terms: WorkloadTerms<Qty<f64>>,
    prefill: Instance,
    decode: Instance,
    offload: Offload,
    streamed: Option<Qty<f64>>,
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

    /// Both in one step: the prompts delay it by their time, as `estimate` counts those that share a decode step.
    fn with(self, prompts: PricedStep) -> PricedStep {
        PricedStep {
            seconds: self.seconds + prompts.stage_s,
            pass_s: self.pass_s + prompts.stage_s,
            stage_s: self.stage_s + prompts.stage_s,
            compute_s: self.compute_s + prompts.compute_s,
            memory_s: self.memory_s + prompts.memory_s,
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
        let (_, problem, candidate) = planned_problem(catalog, &scenario)?;
        let instances = candidate.instances(&problem);
        let of = |other: Role| candidate.pools.iter().position(|pool| pool.role != other).ok_or_else(cannot);
        let (prefill, decode) = (of(Role::Decode)?, of(Role::Prefill)?);
        let spilled = candidate.evaluate_on(&Plain, &problem, &instances, &mut ()).spilled;
        let streamed = spilled.filter(|_| matches!(candidate.offload, Offload::Streamed(_)));
        let machine = problem.formats[candidate.formats].plain().clone();
        let terms = problem.terms().clone();
        let (decoding, ranks) = (&instances[decode], candidate.pools[decode].plan.dp);
        Ok(PricedPlan {
            notation: found.candidate.notation.clone(),
            kv_tokens: cache_tokens(decoding, &machine, streamed).saturating_mul(ranks),
            most_requests: problem.most_sequences.map(|most| most.saturating_mul(ranks)),
            most_step_tokens: machine.of(Phase::Prefill).chip.max_batched_tokens.value() as u64,
            streamed,
            offload: candidate.offload,
            prefill: instances[prefill].clone(),
            decode: decoding.clone(),
            scenario,
            machine,
            terms,
        })
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
            ..self.terms.clone()
        };
        let one = prefill_among(&Plain, (&self.prefill, prompts), &self.machine, &terms, &mut ());
        let streamed = read_by_prompts(self.streamed, self.offload);
        let one = offloaded(&Plain, &self.prefill, one, &terms, streamed);
        PricedStep::of(&one, one.total)
    }

    /// A decode step of `requests` requests with `cached` tokens each, their mean, before it.
    pub fn decode(&self, requests: u64, cached: f64) -> PricedStep {
        if requests == 0 {
            return PricedStep::default();
        }
        // The context of a step is that of a request halfway through its output: here it has none yet.
        let terms = WorkloadTerms { isl: Qty::from(cached + 1.0), osl: Qty::from(0.0), ..self.terms.clone() };
        let load = DecodeLoad { concurrency: Qty::from(requests as f64), offload: self.offload };
        let round = decode(&Plain, &self.decode, &self.machine, &terms, &load, self.streamed, &mut ());
        PricedStep::of(&round.step, round.cycle)
    }

    /// A step of prompts, each with its new and its cached tokens, and of decoding requests, each with its cached
    /// tokens. Requests of several lengths count as that many of their mean: of prompts, the mean that has the same
    /// number of pairs of tokens.
    pub fn step(&self, prefill: &[(f64, f64)], decode: &[f64]) -> PricedStep {
        let prompts = match prefill {
            [] => PricedStep::default(),
            [first, rest @ ..] if rest.iter().all(|other| other == first) => {
                self.prefill(prefill.len() as u64, first.0, first.1)
            }
            _ => {
                let (tokens, cached) = mean_prompt(prefill);
                self.prefill(prefill.len() as u64, tokens, cached)
            }
        };
        if decode.is_empty() {
            return prompts;
        }
        let held = decode.iter().sum::<f64>() / decode.len() as f64;
        self.decode(decode.len() as u64, held).with(prompts)
    }
}

/// New and cached tokens of the prompts that have, in the same number, as many new tokens and pairs of tokens as these.
fn mean_prompt(prompts: &[(f64, f64)]) -> (f64, f64) {
    let tokens: f64 = prompts.iter().map(|(tokens, _)| tokens).sum();
    let pairs: f64 = prompts.iter().map(|(tokens, cached)| tokens * (cached + tokens / 2.0)).sum();
    let mean = tokens / prompts.len() as f64;
    (mean, (pairs / tokens - mean / 2.0).max(0.0))
}

/// Tokens that the KV cache of an attention rank holds, where `spilled` bytes of a device are in host memory.
fn cache_tokens(instance: &Instance, machine: &Machine<Qty<f64>>, spilled: Option<Qty<f64>>) -> u64 {
    let one = CachedSequences::whole(Qty::from(1.0), Qty::from(1.0));
    let memory = InstanceMemory::of(&Plain, instance, Phase::Decode, one, machine);
    memory.longest(&Plain, (instance, Phase::Decode), one, machine, spilled).value().max(0.0) as u64
}
