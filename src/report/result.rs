//! The result as JSON: what leaves the house. Field names carry units; the schema is made from these types.

use schemars::JsonSchema;
use serde::Serialize;

use super::bounds::PriceBounds;
use super::detail::DeploymentDetail;
use super::inputs::ReportInputs;
use super::proof::Proof;
use super::ratio::SplitRatio;
use super::relax::ConflictReport;
use super::why::Why;
use crate::quantity::datum::Grade;
use crate::search::candidate::PoolRole;
use crate::search::outcome::{Census, Status};
use crate::spec::nearness::{Interval, Nearness};
use crate::spec::objective::Metric;
use crate::spec::percentile::Confidence;
use crate::spec::scenario::Scenario;

/// The answer to a question.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OptimizeResult {
    /// How far it is proved: `optimal`, `feasible`, `infeasible`, `unknown`.
    pub status: Status,
    /// What nothing is better than, and who says so.
    pub proof: Proof,
    /// The flags and files that asked it, so that the answer can be checked; null where it was put otherwise.
    pub scenario: Option<Scenario>,
    /// What was asked, every default filled in.
    pub question: ReportInputs,
    /// The optimum, or the stated deployment; null when there is none.
    pub best: Option<ReportedDeployment>,
    /// The optimum laid open; null when there is none.
    pub detail: Option<DeploymentDetail>,
    /// The best of other strategies, best first.
    pub alternatives: Vec<ReportedDeployment>,
    /// Points of the Pareto front.
    pub front_points: u64,
    /// The Pareto front over the question's axes: all of it in JSON and CSV.
    pub front: Vec<ReportedDeployment>,
    /// What became of every candidate.
    pub census: Census,
    /// When infeasible: what came nearest, and what it misses.
    pub nearest: Option<NearestMiss>,
    /// When infeasible: conditions that conflict, and the least changes that help.
    pub conflict: Option<ConflictReport>,
    /// Prompts and answers apart or not; null where that is not a choice of throughput.
    pub split_ratio: Option<SplitRatio>,
    /// Why the best is the best, where it was asked for.
    pub why: Option<Why>,
    /// When infeasible: what the weights alone take.
    pub weights_need: Vec<WeightsNeed>,
    /// What the next lower weight format would gain, and what is published about its quality.
    pub lower_format: Option<LowerFormat>,
    /// What the answer rests on that nobody measured or stated.
    pub assumptions: Vec<Assumption>,
}

/// A stated deployment, and what comes of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EstimateResult {
    /// The deployment.
    #[serde(flatten)]
    pub candidate: ReportedDeployment,
    /// What was asked, every default filled in.
    pub question: ReportInputs,
    /// The deployment laid open; null when no rule lets it be.
    pub detail: Option<DeploymentDetail>,
    /// What it rests on that nobody measured or stated.
    pub assumptions: Vec<Assumption>,
}

/// A number that is mostly whole, without a point where it is.
pub fn whole<S: serde::Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const MOST: f64 = 9e15;
    if number.fract() == 0.0 && (0.0..MOST).contains(number) {
        serializer.serialize_u64(*number as u64)
    } else {
        serializer.serialize_f64(*number)
    }
}

/// A deployment and what comes of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReportedDeployment {
    /// How the model lies on the devices.
    pub plan: Plan,
    /// The plan in one line with everything that determines its metrics: what `estimate --plan` reads.
    pub notation: String,
    /// Format of the weights.
    pub weight_format: String,
    /// Format of keys and values.
    pub kv_format: String,
    /// Requests in flight over the whole deployment, on average: output times E2E over OSL.
    #[serde(serialize_with = "whole")]
    pub concurrency: f64,
    /// Devices in use.
    pub devices: u64,
    /// Devices of the system that it leaves idle.
    pub idle_devices: u64,
    /// Whether it fits, and where.
    pub feasibility: Feasibility,
    /// Limits and rules that it breaks; empty when it may run.
    pub violations: Vec<String>,
    /// What the fullest device holds; null when a rule forbids the plan.
    pub memory: Option<MemoryReport>,
    /// What takes most of the time per output token; null when it cannot run.
    pub bottleneck: Option<String>,
    /// What it is judged by; null when it cannot run.
    pub metrics: Option<MetricsReport>,
    /// How far off they may be; null where nothing was measured to tell by.
    pub intervals: Option<Intervals>,
    /// What it costs at the lowest and the highest price found; null where no bounds are known.
    pub price_bounds: Option<PriceBounds>,
}

/// Quantiles of a prediction: p10 to p90 is its 80 % interval.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Quantiles {
    /// One in ten lies below.
    pub p10: f64,
    /// Half lie below.
    pub p50: f64,
    /// One in ten lies above.
    pub p90: f64,
}

/// How far off the metrics may be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Intervals {
    /// How near the deployment is to what was measured.
    pub near: Nearness,
    /// Time to first token.
    pub ttft_ms: Quantiles,
    /// Time per output token after the first.
    pub tpot_ms: Quantiles,
    /// Output tokens per second of the deployment.
    pub output_tok_s: Quantiles,
    /// What the intervals were taken from.
    pub source: String,
}

impl Intervals {
    /// The intervals around `figures`, which may be the worse ends already; what comes out at a stated rate is sure.
    pub fn of(interval: &Interval, figures: &MetricsReport, risk: Confidence, at_rate: bool) -> Intervals {
        let around = |value: f64, ends: [f64; 3], worse: usize| {
            let told = if risk == Confidence::P90 { ends[worse] } else { 1.0 };
            let [p10, p50, p90] = ends.map(|end| value * end / told);
            Quantiles { p10, p50, p90 }
        };
        Intervals {
            near: interval.near,
            ttft_ms: around(figures.ttft_ms, interval.ttft, 2),
            tpot_ms: around(figures.tpot_ms, interval.tpot, 2),
            output_tok_s: around(
                figures.output_tok_s,
                if at_rate { [1.0; 3] } else { interval.throughput },
                0,
            ),
            source: interval.source.clone(),
        }
    }
}

/// How the model lies on the devices.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Plan {
    /// `aggregated` or `disaggregated`.
    pub mode: String,
    /// In short, e.g. `2 x tp4`.
    pub label: String,
    /// Instances that work on prompts.
    pub prefill: PoolReport,
    /// Instances that work on answers; the same ones when aggregated.
    pub decode: PoolReport,
    /// Instances of other shapes beside them.
    pub others: Vec<PoolReport>,
}

/// Like instances.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PoolReport {
    /// What they do.
    pub duty: PoolRole,
    /// The degrees above 1, e.g. `tp4 pp2`.
    pub label: String,
    /// Tensor parallel.
    pub tp: u64,
    /// Pipeline parallel.
    pub pp: u64,
    /// Attention data parallel.
    pub dp: u64,
    /// Context parallel.
    pub cp: u64,
    /// Expert parallel.
    pub ep: u64,
    /// Tensor parallel inside experts.
    pub moe_tp: u64,
    /// Sequence parallel.
    pub sp: bool,
    /// Layers of each pipeline stage.
    pub stages: Vec<u32>,
    /// Instances.
    pub replicas: u64,
    /// Devices of all of them.
    pub devices: u64,
    /// Requests in flight of each.
    pub concurrency_per_replica: u64,
}

/// Whether a deployment fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Feasibility {
    /// In device memory.
    InVram,
    /// With something in host memory, paid for in time.
    WithOffload,
    /// Not at all.
    InsufficientMemory,
    /// A rule forbids the plan or the lengths, whatever the memory.
    Illegal,
}

/// Memory of the fullest device, in bytes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MemoryReport {
    /// Weights, all experts included.
    pub weights_bytes: f64,
    /// Keys and values.
    pub kv_cache_bytes: f64,
    /// Activations of the largest step.
    pub activations_bytes: f64,
    /// The runtime's own buffers.
    pub buffers_bytes: f64,
    /// All of it.
    pub total_bytes: f64,
    /// How far off that may be: the cache is exact, the rest as measured on the runtime; null where nothing was.
    pub interval: Option<Quantiles>,
    /// What the runtime may use of the device.
    pub usable_bytes: f64,
    /// What software sees of the device.
    pub capacity_bytes: f64,
    /// Share of the capacity that the runtime may use.
    pub utilization: f64,
    /// What is in host memory instead, per device.
    pub offloaded_bytes: f64,
}

/// What a deployment is judged by.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MetricsReport {
    /// Time to first token.
    pub ttft_ms: f64,
    /// Time per output token after the first.
    pub tpot_ms: f64,
    /// Time of a whole request.
    pub e2e_ms: f64,
    /// Output tokens per second of the deployment.
    pub output_tok_s: f64,
    /// The same per device in use.
    pub output_tok_s_per_device: f64,
    /// What one user sees.
    pub output_tok_s_per_user: f64,
    /// US dollars per million output tokens, the prompts' work included; null where no price is known.
    pub usd_per_mtok: Option<f64>,
    /// The same money per million tokens of prompt and output.
    pub usd_per_mtok_total: Option<f64>,
    /// Power of the devices; null where none is known.
    pub watts: Option<f64>,
    /// Output tokens per joule.
    pub tok_per_joule: Option<f64>,
    /// Longest prompt plus answer that fits at this concurrency.
    pub max_context_tokens: f64,
}

impl ReportedDeployment {
    /// The figure of `metric` as the results give it; none where it is unknown or nothing runs.
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        let figures = self.metrics.as_ref()?;
        match metric {
            Metric::Ttft => Some(figures.ttft_ms),
            Metric::Tpot => Some(figures.tpot_ms),
            Metric::E2e => Some(figures.e2e_ms),
            Metric::OutputTokS => Some(figures.output_tok_s),
            Metric::OutputTokSPerDevice => Some(figures.output_tok_s_per_device),
            Metric::OutputTokSPerUser => Some(figures.output_tok_s_per_user),
            Metric::UsdPerMtok => figures.usd_per_mtok,
            Metric::Watts => figures.watts,
            Metric::TokPerJoule => figures.tok_per_joule,
            Metric::Devices => Some(self.devices as f64),
            Metric::MaxContext => Some(figures.max_context_tokens),
        }
    }
}

/// What the weights take, whatever else must lie beside them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WeightsNeed {
    /// The format.
    pub weight_format: String,
    /// The whole model in it.
    pub weights_bytes: f64,
    /// What the runtime may use of one device.
    pub usable_bytes_per_device: f64,
    /// Devices under which the weights alone do not fit.
    pub least_devices: u64,
}

/// The deployment that came nearest, and what it misses.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NearestMiss {
    /// The deployment.
    pub candidate: ReportedDeployment,
    /// What it misses, in words.
    pub misses: String,
}

/// What a lower weight format would gain.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LowerFormat {
    /// The format.
    pub weight_format: String,
    /// Bits of a weight, scales included.
    pub bits_per_weight: f64,
    /// The objective's first metric with it, as the result names it.
    pub metric: String,
    /// That metric now, if anything is feasible now.
    pub now: Option<f64>,
    /// That metric with it, if anything is feasible with it.
    pub then: Option<f64>,
    /// What is published about its quality.
    pub quality: Option<crate::spec::format::Quality>,
}

/// A figure that the answer rests on and that was assumed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Assumption {
    /// The figure's name.
    pub symbol: String,
    /// Its value.
    pub value: String,
    /// Why it was assumed.
    pub why: String,
    /// How far to trust it.
    pub grade: Grade,
}
