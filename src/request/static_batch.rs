//! `static`: a static batch on given degrees, without a scheduler: prefill and decode, layer type by layer type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::given_plan::{planned_problem, with_plan};
use crate::cost::machine::Machine;
use crate::graph::tensor::TensorRole;
use crate::plan::enumerate::{Plans, enumerate};
use crate::plan::legal::LegalLimits;
use crate::plan::legal_degrees::legal_degrees;
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::plan::shard::{ShardedBlock, Task};
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::quantity::unit::{BYTE, humanize};
use crate::report::answer::{forbidden, memory};
use crate::report::breakdown::{Breakdown, Module, shown};
use crate::report::number::count;
use crate::report::static_batch::{FewestDevices, StaticPhase, StaticReport, devices_why, layer_types};
use crate::search::candidate::Candidate;
use crate::search::problem::Problem;
use crate::search::shape::usual_cut;
use crate::serving::instance::Instance;
use crate::serving::metrics::e2e;
use crate::serving::static_batch::{StaticStep, static_step};
use crate::serving::utilization::{mbu, mfu};
use crate::spec::error::Error;
use crate::spec::limits::BATCH;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// A request of `static`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StaticRequest {
    /// Model, hardware, lengths, formats, and the `deployment`; a prefill and a decode pool may have different degrees.
    pub scenario: Scenario,
    /// Requests of the batch; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// Requests of the prefill batch, if different.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill_batch: Option<u64>,
    /// Requests of the decode batch, if different.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode_batch: Option<u64>,
    /// Layer types that stay in the model's own dtype.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub native_layers: Vec<NativeLayers>,
}

/// A layer type with a weight format of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum NativeLayers {
    /// Attention projections
    Attention,
    /// Dense feed-forward layers
    FeedForward,
    /// Routed and shared experts
    Experts,
    /// Embedding and LM head
    Vocabulary,
}

impl NativeLayers {
    fn roles(self) -> &'static [TensorRole] {
        match self {
            NativeLayers::Attention => &[TensorRole::Attention, TensorRole::Indexer],
            NativeLayers::FeedForward => &[TensorRole::Mlp],
            NativeLayers::Experts => &[TensorRole::Expert, TensorRole::SharedExpert, TensorRole::Router],
            NativeLayers::Vocabulary => &[TensorRole::Embedding, TensorRole::LmHead],
        }
    }
}

/// One phase of the request, resolved.
struct PhaseCase {
    problem: Problem,
    candidate: Candidate,
    machine: Machine<Qty<f64>>,
    batch: u64,
    theoretical: Vec<String>,
}

/// Evaluates a static batch.
///
/// # Errors
/// The model, hardware, degrees or formats are faulty, or no device count allows the degrees.
pub fn static_batch(
    catalog: &Catalog,
    request: &StaticRequest,
    _: &RequestControl,
) -> Result<StaticReport, Error> {
    if request.scenario.draft.is_some() {
        let fix = "omit --draft; `estimate` predicts speculative decoding";
        return Err(Error::new("draft", "speculative decoding", "a plain static batch", fix));
    }
    let prefill = request.case(catalog, Phase::Prefill)?;
    let decode = request.case(catalog, Phase::Decode)?;
    let mut theoretical = prefill.theoretical.clone();
    theoretical.extend(decode.theoretical.iter().filter(|one| !prefill.theoretical.contains(one)).cloned());
    let (first, first_time) = phase(&prefill, Phase::Prefill);
    let (next, next_time) = phase(&decode, Phase::Decode);
    let problem = &prefill.problem;
    let whole = e2e(first_time, next_time, problem.terms().osl);
    Ok(StaticReport {
        scenario: request.scenario.clone(),
        model: request.scenario.model.clone().unwrap_or_default(),
        hardware: problem.cluster.name.clone(),
        runtime: problem.runtime.id.clone(),
        theoretical,
        isl: problem.workload.lengths.isl,
        osl: problem.workload.lengths.osl,
        legal_degrees: legal_degrees(&problem.graph, &prefill.limits(), &prefill.plans()),
        ttft_ms: first.time_ms,
        tpot_ms: next.time_ms,
        e2e_ms: whole.value() * 1e3,
        phases: vec![first, next],
    })
}

impl StaticRequest {
    /// The case of a phase. The rules of the runtime are lifted, and those that it breaks are listed.
    fn case(&self, catalog: &Catalog, phase: Phase) -> Result<PhaseCase, Error> {
        let (batch, format) = match phase {
            Phase::Prefill => (self.prefill_batch, &self.scenario.prefill_weight_format),
            Phase::Decode => (self.decode_batch, &self.scenario.decode_weight_format),
        };
        let batch = batch.or(self.batch).unwrap_or(1);
        BATCH.check_whole("batch", batch)?;
        let weight_format = format.clone().or(self.scenario.weight_format.clone());
        let stated = Scenario {
            concurrency: None,
            rate: None,
            weight_format,
            prefill_weight_format: None,
            decode_weight_format: None,
            ..self.scenario.clone()
        };
        let lifted = Scenario { theoretical: Some(true), ..stated.clone() };
        let (_, problem, candidate) = planned_problem(catalog, &lifted)?;
        if let Some(reason) = forbidden(&problem, &candidate).first() {
            let fix = "change the degrees, or the hardware";
            return Err(Error::new("deployment", reason.to_string(), "degrees that the model allows", fix));
        }
        let strict = with_plan(catalog, &stated)?.0.problem()?;
        let theoretical = forbidden(&strict, &candidate).iter().map(ToString::to_string).collect();
        let mut machine = problem.formats[candidate.formats].plain().clone();
        let native = self.native_layers.iter().flat_map(|layers| layers.roles());
        native.for_each(|role| machine.quantised[*role as usize] = false);
        Ok(PhaseCase { problem, candidate, machine, batch, theoretical })
    }
}

impl PhaseCase {
    fn limits(&self) -> LegalLimits<'_> {
        self.problem.legal_limits(&self.problem.formats[self.candidate.formats])
    }

    fn plans(&self) -> Plans {
        enumerate(&self.problem.graph, &self.limits())
    }

    fn instance(&self, plan: ParallelPlan, stages: Vec<u32>) -> Instance {
        Instance::new(&self.problem.graph, plan, stages, self.problem.tiers())
    }

    /// The step of this batch on `instance`.
    fn step(&self, instance: &Instance, phase: Phase) -> StaticStep<Qty<f64>> {
        static_step(&Plain, (instance, phase), self.batch, self.problem.terms(), &self.machine, &mut ())
    }

    /// Bytes of the weights that a task reads and its device stores.
    fn weight_bytes(&self, block: &ShardedBlock, task: &Task) -> f64 {
        let Task::Compute { role, matrix, vectors, .. } = task else { return 0.0 };
        let bytes = |quantised| self.machine.chip.weight_bytes(quantised).value();
        // A tied head reads the embedding.
        let stored = if block.weights[*role as usize] > 0 { *matrix } else { 0 };
        stored as f64 * bytes(self.machine.quantised[*role as usize]) + *vectors as f64 * bytes(false)
    }
}

/// A phase, and the time of its step.
fn phase(case: &PhaseCase, phase: Phase) -> (StaticPhase, Qty<f64>) {
    let pool = shown(&case.candidate)[phase as usize];
    let instance = case.instance(pool.plan, pool.stages.clone());
    let found = case.step(&instance, phase);
    let breakdown = Breakdown::collected([pool.plan; 2], |watch| {
        let terms = case.problem.terms();
        static_step(&Plain, (&instance, phase), case.batch, terms, &case.machine, watch);
    });
    let types = layer_types(&breakdown, phase, &instance, |block, task| case.weight_bytes(block, task));
    let sum = |of: fn(&crate::report::breakdown::OperatorLine) -> f64| -> f64 {
        breakdown.lines(phase).map(of).sum()
    };
    let (flops, bytes, chip) = (sum(|line| line.flops), sum(|line| line.bytes), &case.machine.chip);
    let formats = &case.problem.formats[case.candidate.formats];
    let report = StaticPhase {
        phase,
        label: pool.plan.label(),
        devices: pool.plan.devices(),
        devices_why: devices_why(&pool.plan),
        batch: case.batch,
        weight_format: formats.weights.clone(),
        kv_format: formats.kv.clone(),
        time_ms: found.step.total.value() * 1e3,
        tok_s: found.tok_s.value(),
        bound_by: breakdown.by_class(phase).largest(),
        flops,
        bytes,
        wire_bytes: breakdown.wire_bytes(phase),
        mfu: mfu(Qty(flops), chip, found.step.total).value(),
        mbu: mbu(Qty(bytes), chip, found.step.total).value(),
        memory: memory(&found.memory, None, &case.problem, &case.candidate),
        fits: found.memory.total.value() <= found.memory.usable.value(),
        fewest_devices: fewest(case, phase),
        layer_types: types.into_iter().filter(|one| one.layer_type != Module::Communication).collect(),
    };
    (report, found.step.total)
}

/// The fewest devices of the system whose memory holds the batch, by any legal plan.
fn fewest(case: &PhaseCase, phase: Phase) -> FewestDevices {
    let problem = &case.problem;
    let mut plans = case.plans().legal;
    plans.sort_by_key(|plan| (plan.devices(), plan.plainness()));
    let held = |plan: &ParallelPlan| {
        let stages = usual_cut(&problem.graph, plan.pp);
        case.step(&case.instance(*plan, stages), phase).memory
    };
    let number = |devices: u64| count(devices, "device");
    // The least need of a device in each number of devices that has a legal plan.
    let mut before: Option<(u64, f64)> = None;
    for plans in plans.chunk_by(|a, b| a.devices() == b.devices()) {
        let sized = plans.iter().map(|plan| (plan, held(plan)));
        let Some((plan, memory)) = sized.min_by(|a, b| a.1.total.value().total_cmp(&b.1.total.value()))
        else {
            continue;
        };
        let (needed, usable) = (memory.total.value(), memory.usable.value());
        if needed <= usable {
            let text = |bytes: f64| humanize(bytes, BYTE);
            let why = match before {
                None => format!("one device holds it: {} of {} usable", text(needed), text(usable)),
                Some((devices, short)) => format!(
                    "on {} each needs at least {} of {} usable",
                    number(devices),
                    text(short),
                    text(usable)
                ),
            };
            return FewestDevices {
                devices: Some(plan.devices()),
                label: Some(plan.label()),
                bytes_per_device: Some(needed),
                why,
            };
        }
        before = Some((plan.devices(), needed));
    }
    let why = match before {
        Some((devices, needed)) => {
            let needed = humanize(needed, BYTE);
            format!("even on {} each needs at least {needed}; add hardware", number(devices))
        }
        None => "no legal plan on this system".to_owned(),
    };
    FewestDevices { devices: None, label: None, bytes_per_device: None, why }
}
