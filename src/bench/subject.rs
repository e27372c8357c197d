//! The deployment that a server runs, as far as it is known, and its prediction at each load.

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::points::{LoadPoint, PointLoad};
use super::probe::ServerFacts;
use super::{environment, fresh_id};
use crate::report::result::{EstimateResult, Quantiles};
use crate::request::UNCONTROLLED;
use crate::request::estimate::{EstimateRequest, estimate};
use crate::request::optimize::at;
use crate::request::simulate::{SimulateRequest, SimulatedTraffic, simulate};
use crate::spec::degree::Degree;
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::notation::PlanText;
use crate::spec::objective::Metric;
use crate::spec::run::{
    BenchMetrics, EQUAL_LENGTHS, OF_SYSTEM, RunDegrees, RunOrigin, RunOutcome, RunPrediction, RunRecord,
    UNKNOWN_RUNTIME,
};
use crate::spec::scenario::Scenario;
use crate::spec::telemetry::RunTelemetry;
use crate::spec::text::in_utc;
use crate::store::catalog::{Catalog, is_path};
use crate::store::hardware::Shorthand;
use crate::store::resolved_scenario::ResolvedScenario;

/// The deployment that a server runs.
pub struct BenchSubject<'a> {
    catalog: &'a Catalog,
    scenario: Scenario,
    /// Its device, where the hardware is stated.
    device: Option<String>,
    /// Whether the processors of the host serve.
    on_processors: bool,
}

/// Why a load was not measured.
pub(super) struct UnmeasuredRun {
    pub(super) outcome: RunOutcome,
    pub(super) failure: Value,
    /// When it failed.
    pub(super) stage: String,
}

impl UnmeasuredRun {
    /// Adds the reason to the record of a run.
    pub(super) fn explain(&self, run: &mut RunRecord) {
        let stage = self.stage.clone().into();
        let reasons = [("failure", self.failure.clone()), ("failure_stage", stage)];
        run.env.extend(reasons.map(|(key, reason)| (key.to_owned(), reason)));
    }
}

/// The program with its version.
fn program() -> String {
    format!("{} {}", env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
}

impl<'a> BenchSubject<'a> {
    /// A deployment as the scenario states it; without hardware there is no prediction.
    ///
    /// # Errors
    /// The scenario is faulty.
    pub fn of(catalog: &'a Catalog, scenario: Scenario) -> Result<BenchSubject<'a>, Error> {
        let resolved =
            scenario.hardware.as_ref().map(|_| ResolvedScenario::resolve(catalog, &scenario)).transpose()?;
        let device = resolved.map(|found| found.cluster.device);
        let on_processors = device.as_ref().is_some_and(Device::is_processor);
        Ok(BenchSubject { catalog, scenario, device: device.map(|device| device.id), on_processors })
    }

    /// The host as the scenario states it; where it is that of a system, only the system says more.
    fn host(&self) -> Option<String> {
        let of_system = || {
            let hardware = self.scenario.hardware.as_deref()?;
            let is_device =
                Shorthand::parse(hardware).is_ok_and(|found| self.catalog.device(found.device).is_ok());
            (!is_device).then(|| OF_SYSTEM.to_owned())
        };
        self.scenario.host.clone().or_else(of_system)
    }

    /// The model, where the scenario states one.
    pub fn model(&self) -> Option<&str> {
        self.scenario.model.as_deref()
    }

    /// Tokens of a prompt and of an answer, and the load, as the scenario states them.
    pub fn point(&self, variation: f64) -> LoadPoint {
        let Scenario { isl, osl, concurrency, rate, .. } = &self.scenario;
        let load = match rate {
            Some(per_s) => PointLoad::Rate { per_s: *per_s, variation },
            None => PointLoad::Clients(concurrency.unwrap_or(1)),
        };
        LoadPoint { isl: isl.unwrap_or(256), osl: osl.unwrap_or(128), load }
    }

    /// The estimate of the deployment at a load, of a trace at its means; `None` where the hardware is not stated.
    ///
    /// # Errors
    /// The deployment has no estimate at this load.
    pub fn estimate(&self, point: &LoadPoint) -> Result<Option<EstimateResult>, Error> {
        if self.device.is_none() {
            return Ok(None);
        }
        let trace = point.trace();
        let longest = trace.and_then(|trace| trace.longest());
        let mut scenario = Scenario {
            rate: point.rate_per_s().or_else(|| trace?.means().rate),
            // A server that is started takes the longest request.
            max_model_len: self.scenario.max_model_len.or(longest),
            ..self.under(point)
        };
        if let Some(deployment) = scenario.deployment.as_mut()
            && let Some(plan) = &deployment.plan
        {
            deployment.plan = Some(plan.parse::<PlanText>()?.without_loads().to_string());
        }
        estimate(self.catalog, &EstimateRequest::of(scenario), &UNCONTROLLED).map(Some)
    }

    /// The question of a load.
    fn under(&self, point: &LoadPoint) -> Scenario {
        let equal = || point.trace().is_none().then(|| EQUAL_LENGTHS.to_owned());
        Scenario {
            isl: Some(point.isl),
            osl: Some(point.osl),
            concurrency: point.clients(),
            rate: point.rate_per_s(),
            workload: self.scenario.workload.clone().or_else(equal),
            ..self.scenario.clone()
        }
    }

    /// The prediction of a load with several requests at a time: the medians of a simulation of its requests, where the
    /// scheduler of the runtime is simulated. The closed form is that of requests which come independently; those of a
    /// benchmark have equal lengths, and clients that wait for their answers keep in step.
    pub(super) fn simulated(
        &self,
        point: &LoadPoint,
        counted: &Range<u64>,
        found: &EstimateResult,
    ) -> Option<RunPrediction> {
        let sent = || SimulatedTraffic {
            requests: Some(counted.end),
            warm_up: Some(counted.start),
            ..SimulatedTraffic::default()
        };
        let (question, traffic) = match &point.load {
            PointLoad::Clients(0 | 1) => return None,
            PointLoad::Clients(_) => (self.under(point), sent()),
            PointLoad::Rate { variation, .. } => {
                (self.under(point), SimulatedTraffic { arrival_variation: Some(*variation), ..sent() })
            }
            PointLoad::Trace(trace) => {
                let own =
                    Scenario { isl: None, osl: None, concurrency: None, rate: None, ..self.scenario.clone() };
                (own, trace.simulated(counted))
            }
        };
        let request = SimulateRequest {
            scenario: at(&question, &found.candidate),
            traffic,
            ..SimulateRequest::default()
        };
        let report = simulate(self.catalog, &request, &UNCONTROLLED).ok()?;
        let median = |metric: &str| report.latencies.iter().find(|row| row.metric == metric)?.p50_ms;
        // The estimate of a trace is that of its means.
        let closed = point.trace().is_none().then(|| prediction(found)).flatten().unwrap_or_default();
        let [ttft_ms, tpot_ms] = ["ttft", "tpot"].map(median);
        Some(RunPrediction {
            version: program(),
            ttft_ms,
            tpot_ms,
            latency_ms: median("e2e"),
            decode_toks_sec: Some(report.output_tok_s),
            ttft_ms_interval: moved(closed.ttft_ms_interval, closed.ttft_ms, ttft_ms),
            tpot_ms_interval: moved(closed.tpot_ms_interval, closed.tpot_ms, tpot_ms),
            joules_per_token: closed.joules_per_token,
        })
    }

    /// The record of a load of which nothing was measured.
    pub(super) fn unmeasured(
        &self,
        point: &LoadPoint,
        (model, found): (&str, Option<&EstimateResult>),
        why: UnmeasuredRun,
    ) -> RunRecord {
        let mut run = self.record(&ServerFacts::default(), model, found);
        why.explain(&mut run);
        RunRecord {
            timestamp_utc: in_utc(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
            outcome: why.outcome,
            context_tokens: point.isl,
            output_tokens: point.osl,
            concurrency: point.clients(),
            rate_per_s: point.rate_per_s(),
            // The estimate of a trace is that of its means.
            prediction: run.prediction.take().filter(|_| point.trace().is_none()),
            ..run
        }
    }

    /// Readings with the energy of an output token.
    pub(super) fn with_energy(
        &self,
        found: RunTelemetry,
        devices: Option<u64>,
        metrics: &BenchMetrics,
    ) -> RunTelemetry {
        let watts = found.device_watts(devices, self.on_processors);
        let rate = metrics.decode_toks_sec.filter(|rate| *rate > 0.0);
        let joules_per_token = watts.zip(rate).map(|(watts, rate)| watts / rate);
        RunTelemetry { joules_per_token, ..found }
    }

    /// Whether a run is of this deployment, as far as the question states it.
    pub(super) fn is_of(&self, run: &RunRecord, found: Option<&EstimateResult>) -> bool {
        let Some(found) = found else { return true };
        identity(run) == identity(&self.record(&ServerFacts::default(), "", Some(found)))
    }

    /// The record of a run of the deployment, without figures.
    pub(super) fn record(
        &self,
        facts: &ServerFacts,
        model: &str,
        found: Option<&EstimateResult>,
    ) -> RunRecord {
        let stated = |text: &Option<String>| text.clone();
        // A path would say where files are on this machine; the server's name for the model does not.
        let named = self.scenario.model.as_deref().filter(|name| !is_path(name));
        let runtime = found.map(|found| found.question.runtime.clone()).or(stated(&self.scenario.runtime));
        let plan = found.map(|found| found.candidate.notation.clone());
        let parsed = plan.as_deref().and_then(|plan| plan.parse::<PlanText>().ok());
        let host = parsed.as_ref().and_then(|plan| plan.host).and_then(|_| self.host());
        let mut env = environment();
        env.extend(host.map(|host| ("host".to_owned(), host.into())));
        RunRecord {
            run_id: fresh_id(),
            origin: RunOrigin::Own,
            source: Some(program()),
            env,
            model_id: found
                .map_or_else(|| named.unwrap_or(model).to_owned(), |found| found.question.model.clone()),
            runtime_id: runtime
                .or(facts.runtime.map(str::to_owned))
                .unwrap_or_else(|| UNKNOWN_RUNTIME.to_owned()),
            runtime_version: stated(&self.scenario.runtime_version).or(facts.version.clone()),
            hardware_id: self.device.clone().or(stated(&self.scenario.hardware)),
            devices: found.map(|found| found.candidate.devices),
            quant: found.map(|found| found.candidate.weight_format.clone()),
            kv_format: found.map(|found| found.candidate.kv_format.clone()),
            parallelism: parsed.as_ref().and_then(degrees).unwrap_or_default(),
            plan,
            prediction: found.and_then(prediction),
            ..RunRecord::default()
        }
    }
}

/// The deployment of a run: model and runtime, hardware, formats, plan, and the number of devices.
fn identity(run: &RunRecord) -> ([&str; 2], [Option<&str>; 4], Option<u64>) {
    let stated = [&run.hardware_id, &run.quant, &run.kv_format, &run.plan].map(|text| text.as_deref());
    ([&run.model_id, &run.runtime_id], stated, run.devices)
}

/// The degrees of a plan with equal replicas.
fn degrees(plan: &PlanText) -> Option<RunDegrees> {
    let [pool] = &plan.pools[..] else { return None };
    let of = |degree| pool.degrees.get(degree);
    Some(RunDegrees {
        tensor_parallel: of(Degree::Tp),
        pipeline_parallel: of(Degree::Pp),
        data_parallel: of(Degree::Dp),
        expert_parallel: of(Degree::Ep),
        replicas: pool.degrees.replicas,
    })
}

/// The interval around one prediction, around another: the ratios of its ends are errors of the runtime's model.
fn moved(interval: Option<[f64; 2]>, from: Option<f64>, to: Option<f64>) -> Option<[f64; 2]> {
    let factor = to? / from?;
    Some(interval?.map(|end| end * factor)).filter(|_| factor.is_finite())
}

fn prediction(found: &EstimateResult) -> Option<RunPrediction> {
    let metrics = found.candidate.metrics.as_ref()?;
    let of = |metric| metrics.get(metric, None);
    let ends = |of: Option<Quantiles>| of.map(|interval| [interval.p10, interval.p90]);
    let intervals = found.candidate.intervals.as_ref();
    Some(RunPrediction {
        version: program(),
        ttft_ms: of(Metric::Ttft),
        ttft_ms_interval: ends(intervals.map(|intervals| intervals.ttft_ms)),
        tpot_ms: of(Metric::Tpot),
        tpot_ms_interval: ends(intervals.map(|intervals| intervals.tpot_ms)),
        latency_ms: of(Metric::E2e),
        decode_toks_sec: of(Metric::OutputTokS),
        joules_per_token: of(Metric::TokPerJoule).filter(|tokens| *tokens > 0.0).map(|tokens| 1.0 / tokens),
    })
}
