//! The answer of `/v1/estimate`: one deployment, its metrics with the error of the prediction, and its alternatives.

use crate::spec::offload::OffloadPart;
use schemars::JsonSchema;
use serde::Serialize;

use super::bottlenecks::{BottleneckCode, BottleneckShare, bottlenecks};
use super::question::EstimatorRequest;
use crate::quantity::unit::{BYTE, humanize};
use crate::report::constraint::{Constraint, Resource};
use crate::report::detail::{DeploymentDetail, Latencies};
use crate::report::inputs::ReportInputs;
use crate::report::launch::LaunchReport;
use crate::report::recommend::report::RecommendReport;
use crate::report::result::{
    EstimateResult, Feasibility, MemoryReport, OptimizeResult, Quantiles, ReportedDeployment,
};
use crate::report::text::infeasible::gain_words;
use crate::request::RequestControl;
use crate::request::estimate::{EstimateRequest, estimate};
use crate::request::optimize::{OptimizeRequest, optimize};
use crate::request::recommend::{RecommendRequest, recommend};
use crate::request::stepped_down::stepped_down;
use crate::search::outcome::Status;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::limits::TARGET;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// The answer of `/v1/estimate`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EstimatorAnswer {
    /// `in_vram`, `with_offload`, `insufficient_memory`, or `illegal` where a rule forbids the degrees.
    pub feasibility: Feasibility,
    /// The model, where the objective chose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// The metrics; null where nothing runs.
    pub estimates: Option<Estimates>,
    /// The limits of decode, largest first.
    pub bottlenecks: Vec<BottleneckCode>,
    /// Shares of the time per output token, largest first.
    pub bottleneck_shares: Vec<BottleneckShare>,
    /// The best deployment, then the best of other strategies.
    pub recommended_configs: Vec<RecommendedConfig>,
    /// The answer in sentences.
    pub explanations: Vec<String>,
    /// Stable codes of what the answer rests on.
    pub reason_codes: Vec<String>,
}

/// Metrics of a deployment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Estimates {
    /// Output tokens per second of all requests.
    pub decode_toks_sec: EstimatedMetric,
    /// Prompt tokens per second of one replica at its load; their error is that of the output rate.
    pub prefill_toks_sec: EstimatedMetric,
    /// Time to first token, ms.
    pub ttft_ms: EstimatedLatency,
    /// Time per output token, ms.
    pub tpot_ms: EstimatedMetric,
    /// Time of a request, ms.
    pub latency_ms: EstimatedMetric,
    /// Device memory in use, all devices, GB.
    pub vram_peak_gb: EstimatedMetric,
    /// Host memory in use, GB.
    pub ram_peak_gb: EstimatedMetric,
    /// Cost of the devices in use; null where their price is unknown.
    pub cost: Option<EstimatedCost>,
    /// Percentiles over requests that arrive at random at the rate of these requests; empty where such arrivals overload
    /// the deployment.
    pub request_percentiles: Vec<Latencies>,
}

/// Cost of a deployment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EstimatedCost {
    /// US dollars per hour.
    pub usd_per_hour: f64,
    /// US dollars per day, of the hours in which it serves.
    pub usd_per_day: Option<f64>,
    /// US dollars per month.
    pub usd_per_month: Option<f64>,
    /// US dollars per million output tokens.
    pub usd_per_mtok: Option<f64>,
    /// Output tokens per US dollar.
    pub tok_per_usd: Option<f64>,
}

/// A predicted metric. p10 and p90 are quantiles of the prediction's error, not of requests.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct EstimatedMetric {
    /// The median of the prediction.
    pub p50: Option<f64>,
    /// Lower end of the 80 % interval; null where no measurement gives one.
    pub p10: Option<f64>,
    /// Upper end of the 80 % interval; null where no measurement gives one.
    pub p90: Option<f64>,
}

/// A predicted latency of requests. p50 and p95 are percentiles of requests, the others quantiles of the prediction's
/// error.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct EstimatedLatency {
    /// The median request.
    pub p50: Option<f64>,
    /// The 95th percentile of requests that arrive at random; null where they would overload the deployment.
    pub p95: Option<f64>,
    /// Lower end of the 80 % interval of p50; null where no measurement gives one.
    pub prediction_p10: Option<f64>,
    /// Its upper end; null where no measurement gives one.
    pub prediction_p90: Option<f64>,
}

/// A deployment that runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecommendedConfig {
    /// Weight format.
    pub quant: String,
    /// Tensor parallelism.
    pub tensor_parallel: u64,
    /// Pipeline parallelism.
    pub pipeline_parallel: u64,
    /// Output tokens per second.
    pub expected_decode_toks_sec: Option<f64>,
    /// The plan in one line, as `estimate --plan` reads it.
    pub plan: String,
    /// Launch commands, where the runtime can launch it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

/// The deployment that answers, with its details.
struct Found {
    question: ReportInputs,
    scenario: Scenario,
    deployment: ReportedDeployment,
    detail: Option<DeploymentDetail>,
    alternatives: Vec<ReportedDeployment>,
    launch: Option<LaunchReport>,
}

pub(super) fn answered(
    known: &Catalog,
    request: &EstimatorRequest,
    control: &RequestControl,
) -> Result<EstimatorAnswer, Error> {
    let idle = request.hardware.without_effect(known)?;
    let mut answer = answer_of_profile(known, request, control)?;
    answer.explanations.extend(idle);
    Ok(answer)
}

fn answer_of_profile(
    known: &Catalog,
    request: &EstimatorRequest,
    control: &RequestControl,
) -> Result<EstimatorAnswer, Error> {
    if request.seeks_largest_model() {
        return largest_model(known, request, control);
    }
    let scenario = request.scenario(known)?;
    if scenario.deployment.is_some() {
        let (scenario, result) = given_degrees(known, scenario, control)?;
        return Found::of(scenario, result).answer(known, control);
    }
    let scenario = stepped_down(known, &scenario, control)?;
    let result =
        optimize(known, &OptimizeRequest { scenario: scenario.clone(), ..Default::default() }, control)?;
    match result.best {
        Some(deployment) => {
            let OptimizeResult { question, detail, alternatives, launch, .. } = result;
            Found { question, scenario, deployment, detail, alternatives, launch }.answer(known, control)
        }
        None if result.status == Status::Infeasible => Ok(nothing(&result)),
        None => Err(late()),
    }
}

/// The answer for the largest model of the catalogue that runs, in any of the formats that `recommend` tries.
fn largest_model(
    known: &Catalog,
    request: &EstimatorRequest,
    control: &RequestControl,
) -> Result<EstimatorAnswer, Error> {
    let named = |key: &str| {
        let found = format!("{key} together with the objective that chooses it");
        Error::new(key, found, "a request without it", format!("omit {key}, or name another objective"))
    };
    if !request.model_id.is_empty() {
        return Err(named("model_id"));
    }
    if request.parallelism.is_some() {
        return Err(named("parallelism"));
    }
    let scenario = Scenario { model: None, objective: None, ..request.scenario(known)? };
    let sought = RecommendRequest {
        users: scenario.concurrency.unwrap_or(1),
        target_tok_s: Some(TARGET.least),
        scenario: Scenario { concurrency: None, tpot: None, ..scenario.clone() },
        ..RecommendRequest::default()
    };
    let RecommendReport::Models(found) = recommend(known, &sought, control)? else { return Err(late()) };
    let Some(largest) = found.models.iter().max_by_key(|served| served.parameters) else {
        let fix = "shorten the context, or choose larger hardware";
        return Err(Error::new("hardware", "no model of the catalogue runs", "memory for one", fix));
    };
    let build = &largest.build;
    let deployment = Deployment { plan: Some(build.each.notation.clone()), ..Deployment::default() };
    let scenario = Scenario {
        model: Some(build.model.clone()),
        runtime: Some(build.runtime.clone()),
        weight_format: Some(build.each.weight_format.clone()),
        kv_format: Some(build.each.kv_format.clone()),
        deployment: Some(deployment),
        ..scenario
    };
    let result = estimate(known, &EstimateRequest::of(scenario.clone()), control)?;
    let found = Found::of(scenario, result);
    Ok(EstimatorAnswer { model_id: Some(build.model.clone()), ..found.answer(known, control)? })
}

/// The estimate on given degrees; where device memory is too small, with layers in host memory.
fn given_degrees(
    known: &Catalog,
    scenario: Scenario,
    control: &RequestControl,
) -> Result<(Scenario, EstimateResult), Error> {
    let result = estimate(known, &EstimateRequest::of(scenario.clone()), control)?;
    if result.candidate.feasibility != Feasibility::InsufficientMemory {
        return Ok((scenario, result));
    }
    let deployment = scenario.deployment.clone().unwrap_or_default();
    let deployment = Deployment { offload_part: Some(OffloadPart::Layers), ..deployment };
    let offloaded = Scenario { deployment: Some(deployment), ..scenario.clone() };
    match estimate(known, &EstimateRequest::of(offloaded.clone()), control) {
        Ok(other) if other.candidate.feasibility == Feasibility::WithOffload => Ok((offloaded, other)),
        _ => Ok((scenario, result)),
    }
}

fn late() -> Error {
    let fix = "name quant and parallelism, or use a server with a longer time limit";
    Error::new("estimate", "no answer within the time limit", "a search that ends", fix)
}

/// The answer where nothing runs.
fn nothing(result: &OptimizeResult) -> EstimatorAnswer {
    let refused: Vec<(&String, &String)> =
        result.census.illegal.iter().map(|(code, count)| (code, &count.example)).collect();
    let too_large = refused.is_empty() || refused.iter().any(|(code, _)| *code == "out_of_memory");
    let conflict = result.conflict.iter();
    let mut explanations: Vec<String> =
        conflict.clone().flat_map(|conflict| &conflict.conflicts).filter_map(|one| one.why.clone()).collect();
    let remedies = conflict.flat_map(|conflict| &conflict.remedies);
    explanations.extend(remedies.map(|remedy| {
        let now = if remedy.now.is_empty() { String::new() } else { format!(" instead of {}", remedy.now) };
        let gives = remedy.gives.as_ref().map_or_else(String::new, |gain| format!(": {}", gain_words(gain)));
        format!("It runs with {}{now}{gives}.", remedy.flags)
    }));
    explanations.extend(refused.iter().map(|(_, example)| (*example).clone()));
    explanations.extend(of_version(&result.question));
    let explanations = explanations.iter().map(|text| sentence(text)).collect();
    EstimatorAnswer {
        feasibility: if too_large { Feasibility::InsufficientMemory } else { Feasibility::Illegal },
        model_id: None,
        estimates: None,
        bottlenecks: if too_large { vec![BottleneckCode::VramCapacity] } else { vec![] },
        bottleneck_shares: vec![],
        recommended_configs: vec![],
        explanations,
        reason_codes: refused.iter().map(|(code, _)| (*code).clone()).collect(),
    }
}

impl EstimatedMetric {
    fn of(value: f64, interval: Option<Quantiles>) -> EstimatedMetric {
        match interval {
            Some(Quantiles { p10, p50, p90 }) => {
                EstimatedMetric { p50: Some(p50), p10: Some(p10), p90: Some(p90) }
            }
            None => EstimatedMetric { p50: value.is_finite().then_some(value), ..EstimatedMetric::default() },
        }
    }
}

/// That a version was not measured, where one is named.
fn of_version(question: &ReportInputs) -> Option<String> {
    question.version_counts_as_mean.then(|| {
        let version = question.runtime_version.as_deref().unwrap_or_default();
        format!(
            "Version {version} of {} was not measured: it counts as the mean of all versions.",
            question.runtime
        )
    })
}

/// A text as a sentence: it begins with a capital, unless a name in code begins it, and ends with a full stop.
fn sentence(text: &str) -> String {
    let text = text.trim_end();
    let first = text.split_whitespace().next().unwrap_or_default();
    let plain = first.len() > 1 && first.chars().all(|letter| letter.is_ascii_lowercase());
    let word = plain && !NAMES.contains(&first);
    let mut letters = text.chars();
    let start: String = letters
        .next()
        .into_iter()
        .flat_map(|first| match word {
            true => first.to_uppercase().collect::<Vec<char>>(),
            false => vec![first],
        })
        .collect();
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{start}{}{end}", letters.as_str())
}

/// Runtimes, whose names have no capital.
const NAMES: [&str; 6] = ["vllm", "sglang", "trtllm", "atom", "mlx", "exo"];

/// Bytes of a GB.
const GB: f64 = 1e9;

/// Device memory in use, of which no part is in host memory.
fn resident(memory: &MemoryReport, devices: u64) -> EstimatedMetric {
    let here = |bytes: f64| (bytes - memory.offloaded_bytes).min(memory.usable_bytes) * devices as f64 / GB;
    let interval =
        memory.interval.map(|of| Quantiles { p10: here(of.p10), p50: here(of.p50), p90: here(of.p90) });
    EstimatedMetric::of(here(memory.total_bytes), interval)
}

impl Found {
    fn of(scenario: Scenario, result: EstimateResult) -> Found {
        let EstimateResult { question, candidate: deployment, detail, launch, .. } = result;
        Found { question, scenario, deployment, detail, alternatives: vec![], launch }
    }

    fn answer(self, known: &Catalog, control: &RequestControl) -> Result<EstimatorAnswer, Error> {
        let estimates = self.estimates(known, control);
        let shares = match &self.detail {
            Some(detail) => bottlenecks(known, &self.scenario, &self.deployment, detail)?,
            None => vec![],
        };
        let memory = self.deployment.memory.as_ref();
        let offloaded = memory.map(|memory| memory.offloaded_bytes).filter(|bytes| *bytes > 0.0);
        let full = |one: &Constraint| one.binds && one.resource == Resource::Memory;
        let binds = self.detail.iter().flat_map(|detail| &detail.constraints).any(full);
        let first = shares.first().map_or(0.0, |share| share.percent);
        let named = shares.iter().filter(|share| share.percent >= first.min(NAMED_PERCENT));
        let mut codes: Vec<BottleneckCode> = named.map(|share| share.code).collect();
        if binds || offloaded.is_some() || self.deployment.feasibility == Feasibility::InsufficientMemory {
            codes.push(BottleneckCode::VramCapacity);
        }
        let mut explanations: Vec<String> = Vec::new();
        explanations.extend(offloaded.map(|bytes| {
            let bytes = humanize(bytes, BYTE);
            format!("The model exceeds the memory of each device by {bytes}, which lie in host memory.")
        }));
        let constraints = self.detail.iter().flat_map(|detail| &detail.constraints);
        explanations.extend(constraints.map(|constraint| constraint.why.clone()));
        explanations.extend(self.deployment.violations.iter().cloned());
        let unsupported = self.launch.iter().flat_map(|launch| &launch.unsupported);
        explanations.extend(unsupported.cloned());
        explanations
            .extend(shares.iter().filter(|share| codes.contains(&share.code)).map(BottleneckShare::words));
        explanations.extend(of_version(&self.question));
        let explanations = explanations.iter().map(|text| sentence(text)).collect();
        let others = self.alternatives.iter().map(|one| config(one, None));
        let runs = self.deployment.metrics.is_some() && self.deployment.violations.is_empty();
        let best = runs.then(|| config(&self.deployment, self.launch.as_ref()));
        let mut reason_codes = vec![match (&self.deployment.bottleneck, self.deployment.feasibility) {
            (Some(part), _) => format!("bound_by_{part}"),
            (None, Feasibility::InsufficientMemory) => "out_of_memory".to_owned(),
            (None, Feasibility::Illegal) => "illegal".to_owned(),
            (None, Feasibility::InVram | Feasibility::WithOffload) => "too_much_traffic".to_owned(),
        }];
        if offloaded.is_some() {
            reason_codes.push("offload".to_owned());
        }
        Ok(EstimatorAnswer {
            feasibility: self.deployment.feasibility,
            model_id: None,
            estimates,
            bottlenecks: codes,
            bottleneck_shares: shares,
            recommended_configs: best.into_iter().chain(others).collect(),
            explanations,
            reason_codes,
        })
    }

    fn estimates(&self, known: &Catalog, control: &RequestControl) -> Option<Estimates> {
        let (metrics, detail) = (self.deployment.metrics.as_ref()?, self.detail.as_ref()?);
        let memory = self.deployment.memory.as_ref()?;
        let intervals = self.deployment.intervals.as_ref();
        let ttft = intervals.map(|all| all.ttft_ms);
        let prefill_tok_s = detail.prefill_tok_s?;
        let hosted = detail.host_memory_interval.map(|of| of.map(|bytes| bytes / GB));
        let request_percentiles = self.percentiles(known, control, metrics.requests_per_s);
        let p95 = request_percentiles.iter().find(|one| one.percentile.name() == "p95");
        let EstimatedMetric { p10, p50, p90 } = EstimatedMetric::of(metrics.ttft_ms, ttft);
        let p95 = p95.map(|one| one.ttft_ms);
        Some(Estimates {
            decode_toks_sec: EstimatedMetric::of(metrics.output_tok_s, intervals.map(|all| all.output_tok_s)),
            prefill_toks_sec: EstimatedMetric::of(prefill_tok_s, detail.prefill_interval),
            ttft_ms: EstimatedLatency { p50, p95, prediction_p10: p10, prediction_p90: p90 },
            tpot_ms: EstimatedMetric::of(metrics.tpot_ms, intervals.map(|all| all.tpot_ms)),
            latency_ms: EstimatedMetric::of(metrics.e2e_ms, intervals.and_then(|all| all.e2e_ms)),
            vram_peak_gb: resident(memory, self.deployment.devices),
            ram_peak_gb: EstimatedMetric::of(detail.host_memory_peak_bytes / GB, hosted),
            cost: metrics.usd_per_hour.map(|usd_per_hour| EstimatedCost {
                usd_per_hour,
                usd_per_day: metrics.usd_per_day,
                usd_per_month: metrics.usd_per_month,
                usd_per_mtok: metrics.usd_per_mtok,
                tok_per_usd: metrics.tok_per_usd,
            }),
            request_percentiles,
        })
    }

    /// Percentiles of the same deployment under random arrivals at the same rate.
    fn percentiles(&self, known: &Catalog, control: &RequestControl, rate: f64) -> Vec<Latencies> {
        let deployment = Deployment { plan: Some(self.deployment.notation.clone()), ..Deployment::default() };
        let scenario = Scenario {
            concurrency: None,
            rate: Some(rate),
            deployment: Some(deployment),
            ..self.scenario.clone()
        };
        let result = estimate(known, &EstimateRequest::of(scenario), control);
        let detail = result.ok().and_then(|result| result.detail);
        detail.map(|detail| detail.percentiles).unwrap_or_default()
    }
}

/// The largest share is named, and every share from this one on.
const NAMED_PERCENT: f64 = 33.0;

fn config(deployment: &ReportedDeployment, launch: Option<&LaunchReport>) -> RecommendedConfig {
    let pool = &deployment.plan.decode;
    let launch = launch.filter(|launch| launch.unsupported.is_empty());
    RecommendedConfig {
        quant: deployment.weight_format.clone(),
        tensor_parallel: pool.plan.tp,
        pipeline_parallel: pool.plan.pp,
        expected_decode_toks_sec: deployment.metrics.as_ref().map(|metrics| metrics.output_tok_s),
        plan: deployment.notation.clone(),
        commands: launch
            .iter()
            .flat_map(|launch| &launch.workers)
            .map(|worker| worker.command.clone())
            .collect(),
    }
}
