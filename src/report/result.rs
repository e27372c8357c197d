//! The result as JSON. Field names carry units; the schema is generated from these types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audit::AuditSection;
use super::bounds::PriceBounds;
use super::checked::SimulatedCheck;
use super::compared::{PlainPlan, RuntimeTrial};
use super::detail::DeploymentDetail;
use super::evidence::{PlanEvidence, SimplerChoice, UntriedPlan};
use super::inputs::ReportInputs;
use super::launch::{CommandReport, LaunchReport};
use super::number::whole;
use super::pool::PoolReport;
use super::proof::Proof;
use super::ratio::SplitRatio;
use super::relax::ConflictReport;
use super::robustness::{CapacityOdds, SloOdds};
use super::why::Why;
use crate::quantity::num::Qty;
use crate::search::outcome::{Census, Status};
use crate::search::ratio::MixProgram;
use crate::serving::metrics::Metrics;
use crate::spec::front_points::FrontPoints;
use crate::spec::metric_table::metric_table;
use crate::spec::nearness::{Interval, Nearness};
use crate::spec::objective::Metric;
use crate::spec::odds::{LatencyErrors, PointLatencies};
use crate::spec::scenario::Scenario;

/// The result of an optimization.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OptimizeResult {
    /// Whether the rules of the runtime are lifted: it may not run the plans. Absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub theoretical: bool,
    /// Proof status: `optimal`, `feasible`, `infeasible`, `unknown`.
    pub status: Status,
    /// Bound on the objective, with its proof.
    pub proof: Proof,
    /// The flags and files of the request, so that the result can be verified; null if posed otherwise.
    pub scenario: Option<Scenario>,
    /// The problem, with every default filled in.
    pub question: ReportInputs,
    /// The optimum; null if there is none. Where `formulas_best` is there, the best of the simulated plans, or a plan that is
    /// simpler and equal within the error of the comparison (`simpler`).
    pub best: Option<ReportedDeployment>,
    /// The optimum of the formulas, to which `proof` and `front` belong, where another plan was chosen. Absent if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formulas_best: Option<ReportedDeployment>,
    /// The best plan of all, where it is of a kind that was never measured and `best` is inside its interval. Absent if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untried: Option<UntriedPlan>,
    /// How `best` compares with `formulas_best`, where it was chosen because it is simpler. Absent if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simpler: Option<SimplerChoice>,
    /// Details of the optimum; null if there is none.
    pub detail: Option<DeploymentDetail>,
    /// The best deployments of other strategies, best first.
    pub alternatives: Vec<ReportedDeployment>,
    /// Number of points of the Pareto front.
    pub front_points: u64,
    /// The Pareto front over the problem's axes, or the points that represent it; the optimum is `chosen`. A front over
    /// stated axes does not list an optimum that another point dominates on them.
    pub front: Vec<ReportedDeployment>,
    /// How the front was thinned. Absent where all of its points are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_thinning: Option<FrontThinning>,
    /// Counts of evaluated, pruned and rejected candidates.
    pub census: Census,
    /// When infeasible: the nearest deployment, and the limits it misses.
    pub nearest: Option<NearestMiss>,
    /// When infeasible: conflicting conditions, and the smallest changes that make the problem feasible.
    pub conflict: Option<ConflictReport>,
    /// Aggregated or disaggregated serving; null if throughput does not decide it.
    pub split_ratio: Option<SplitRatio>,
    /// The best plan of like workers, where the best needs a router with weights. Absent if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plain: Option<PlainPlan>,
    /// Why the best is the best, if requested.
    pub why: Option<Why>,
    /// The best plans as a simulation of single requests finds them, where that was requested or the SLOs are on a
    /// percentile of requests that come at a rate. Absent if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<SimulatedCheck>,
    /// When infeasible: memory of the weights alone.
    pub weights_need: Vec<WeightsNeed>,
    /// Gain of the next lower weight format, with its published quality.
    pub lower_format: Option<LowerFormat>,
    /// Commands and files that launch the optimum; null if there is none.
    #[serde(default)]
    pub launch: Option<LaunchReport>,
    /// Assumptions of the optimum by their effect, overrides, and what is left out; null if there is none.
    pub audit: Option<AuditSection>,
    /// The integer programs whose optima the mixes of `split_ratio` are, for `verify`.
    #[serde(skip)]
    pub programs: Vec<MixProgram>,
    /// With `--runtime any`: the result of each runtime.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runtimes: Vec<RuntimeTrial>,
}

/// How a front was thinned.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FrontThinning {
    /// The requested number of points.
    pub requested: FrontPoints,
    /// Every point that is left out has a listed one within this fraction of it on each axis; null if too few points
    /// are listed for such a bound.
    pub tolerance: Option<f64>,
}

impl EstimateResult {
    /// The risk that the SLOs are missed which it meets by the prediction itself.
    pub fn risk(&self) -> Option<String> {
        let odds = self.candidate.slo_odds.as_ref().filter(|_| self.candidate.violations.is_empty())?;
        odds.warning(self.question.risk)
    }
}

/// The estimate of a given deployment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EstimateResult {
    /// Whether the rules of the runtime are lifted: it may not run the plan. Absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub theoretical: bool,
    /// The flags and files of the request, so that the result can be verified; null if posed otherwise.
    #[serde(default)]
    pub scenario: Option<Scenario>,
    /// The deployment.
    #[serde(flatten)]
    pub candidate: ReportedDeployment,
    /// The problem, with every default filled in.
    pub question: ReportInputs,
    /// Details of the deployment; null if a rule forbids it.
    pub detail: Option<DeploymentDetail>,
    /// How the load was chosen; null where it is given, or the deployment cannot run.
    #[serde(default)]
    pub chosen_load: Option<String>,
    /// Commands and files that launch the deployment; null if it cannot run.
    #[serde(default)]
    pub launch: Option<LaunchReport>,
    /// The launch command that the deployment was read from. Absent if it was given otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandReport>,
    /// Assumptions by their effect, overrides, and what is left out; null if the deployment cannot run.
    pub audit: Option<AuditSection>,
}

/// A deployment and its metrics.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReportedDeployment {
    /// Parallelism and placement of the model on the devices.
    pub plan: Plan,
    /// The plan in one line with everything that determines its metrics: what `estimate --plan` reads.
    pub notation: String,
    /// Format of the weights.
    pub weight_format: String,
    /// Format of the weights of prefill workers, where it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill_weight_format: Option<String>,
    /// Format of keys and values.
    pub kv_format: String,
    /// Mean concurrency of the whole deployment: output rate times E2E over OSL.
    #[serde(serialize_with = "whole")]
    pub concurrency: f64,
    /// Devices in use.
    pub devices: u64,
    /// Idle devices of the system.
    pub idle_devices: u64,
    /// Whether it fits, and in which memory.
    pub feasibility: Feasibility,
    /// Violated limits and rules; empty if it may run.
    pub violations: Vec<String>,
    /// Memory of the fullest device; null if a rule forbids the plan.
    pub memory: Option<MemoryReport>,
    /// Largest contribution to the time per output token; null if it cannot run.
    pub bottleneck: Option<String>,
    /// Metrics; null if it cannot run.
    pub metrics: Option<MetricsReport>,
    /// The bound of the longest context; null if it cannot run.
    #[serde(default)]
    pub context_bound: Option<ContextBound>,
    /// Prediction intervals of the metrics; null without measurements to derive them from.
    pub intervals: Option<Intervals>,
    /// The odds that it meets its SLOs when measured. Absent without SLOs or intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo_odds: Option<SloOdds>,
    /// The measured runs of its kind.
    #[serde(default)]
    pub evidence: Option<PlanEvidence>,
    /// Its capacity, where the request rate is above it; absent if not, and without measurements to derive odds from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityOdds>,
    /// Cost at the lowest and the highest known price; null without price bounds.
    pub price_bounds: Option<PriceBounds>,
    /// Whether this point of a front is the optimum. Absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
}

/// The bound of the longest context of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextBound {
    /// The memory for KV caches at this load.
    Memory,
    /// The context that the model supports.
    Model,
    /// The longest request that the server takes, as stated.
    Server,
}

impl ContextBound {
    /// The bound of `tokens` of context, of a model that supports `most`, on a server that takes `taken`.
    pub fn of(tokens: f64, most: Option<u64>, taken: Option<u64>) -> ContextBound {
        let reaches = |limit: Option<u64>| limit.is_some_and(|limit| tokens >= limit as f64);
        match (reaches(most), reaches(taken)) {
            (true, _) => ContextBound::Model,
            (false, true) => ContextBound::Server,
            (false, false) => ContextBound::Memory,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            ContextBound::Memory => "memory",
            ContextBound::Model => "model",
            ContextBound::Server => "server",
        }
    }
}

/// Quantiles of a prediction: p10 to p90 is its 80 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// 10th percentile.
    pub p10: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
}

/// A metric with an interval, and the function that reads it; `None` where the metric is unknown.
pub type IntervalColumn = (Metric, fn(&Intervals) -> Option<Quantiles>);

/// Prediction intervals of the metrics.
///
/// All follow from the measured errors of TTFT, TPOT and the output rate. Power has none, and so neither have the energy
/// of a token and what it adds to the cost of an hour: no row of the calibration states one. The memory of a device has
/// its own; the longest context follows from it. Devices are exact, and `price_bounds` has the ends of the prices.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Intervals {
    /// Similarity of the deployment to the measured ones.
    pub near: Nearness,
    /// Time to first token.
    pub ttft_ms: Quantiles,
    /// Time per output token after the first.
    pub tpot_ms: Quantiles,
    /// Time of a request: TTFT and the time after it, whose errors are independent, as the odds of SLOs have them.
    #[serde(default)]
    pub e2e_ms: Option<Quantiles>,
    /// Output tokens per second of the deployment; exact at a request rate.
    pub output_tok_s: Quantiles,
    /// The same per device.
    #[serde(default)]
    pub output_tok_s_per_device: Option<Quantiles>,
    /// Output tokens per second of one user: 1 / TPOT.
    #[serde(default)]
    pub output_tok_s_per_user: Option<Quantiles>,
    /// Requests per second; exact at a request rate.
    #[serde(default)]
    pub requests_per_s: Option<Quantiles>,
    /// USD per million output tokens: the cost of an hour over the output rate.
    #[serde(default)]
    pub usd_per_mtok: Option<Quantiles>,
    /// The same per million tokens of prompt and output.
    #[serde(default)]
    pub usd_per_mtok_total: Option<Quantiles>,
    /// Output tokens per USD.
    #[serde(default)]
    pub tok_per_usd: Option<Quantiles>,
    /// Source of the intervals.
    pub source: String,
}

impl Quantiles {
    /// In other units.
    pub(crate) fn map(self, of: impl Fn(f64) -> f64) -> Quantiles {
        Quantiles { p10: of(self.p10), p50: of(self.p50), p90: of(self.p90) }
    }

    /// Those of a value whose measured / predicted has these.
    pub(super) fn around(value: f64, ends: [f64; 3]) -> Quantiles {
        let [p10, p50, p90] = ends.map(|end| value * end);
        Quantiles { p10, p50, p90 }
    }

    /// Those of a value that is inverse to one whose measured / predicted has these.
    fn inverse(value: f64, [low, middle, high]: [f64; 3]) -> Quantiles {
        Quantiles::around(value, [1.0 / high, 1.0 / middle, 1.0 / low])
    }
}

impl Intervals {
    /// The metrics that have an interval, each with the function that reads it.
    pub const COLUMNS: [IntervalColumn; 10] = [
        (Metric::Ttft, |intervals| Some(intervals.ttft_ms)),
        (Metric::Tpot, |intervals| Some(intervals.tpot_ms)),
        (Metric::E2e, |intervals| intervals.e2e_ms),
        (Metric::OutputTokS, |intervals| Some(intervals.output_tok_s)),
        (Metric::OutputTokSPerDevice, |intervals| intervals.output_tok_s_per_device),
        (Metric::OutputTokSPerUser, |intervals| intervals.output_tok_s_per_user),
        (Metric::RequestsPerS, |intervals| intervals.requests_per_s),
        (Metric::UsdPerMtok, |intervals| intervals.usd_per_mtok),
        (Metric::UsdPerMtokTotal, |intervals| intervals.usd_per_mtok_total),
        (Metric::TokPerUsd, |intervals| intervals.tok_per_usd),
    ];

    /// The function that reads the interval of a metric, if it has one.
    pub fn reader(metric: Metric) -> Option<fn(&Intervals) -> Option<Quantiles>> {
        Intervals::COLUMNS.into_iter().find(|(of, _)| *of == metric).map(|(_, read)| read)
    }

    /// The interval of a metric.
    pub fn get(&self, metric: Metric) -> Option<Quantiles> {
        Intervals::reader(metric).and_then(|read| read(self))
    }

    /// Quantiles of measured / predicted rates of requests and tokens: they are exact at a given rate.
    pub(super) fn of_rates(interval: &Interval, at_rate: bool) -> [f64; 3] {
        if at_rate { [1.0; 3] } else { interval.throughput }
    }

    /// The intervals around `figures`; output at a given rate is exact.
    pub fn of(interval: &Interval, figures: &MetricsReport, at_rate: bool) -> Intervals {
        let output = Intervals::of_rates(interval, at_rate);
        let errors = LatencyErrors::of(interval);
        let predicted = PointLatencies { ttft: figures.ttft_ms, tpot: figures.tpot_ms, e2e: figures.e2e_ms };
        let whole = |probability| errors.e2e(predicted, probability);
        let rate = |value| Some(Quantiles::around(value, output));
        let cost = |value: Option<f64>| value.map(|value| Quantiles::inverse(value, output));
        Intervals {
            near: interval.near,
            ttft_ms: Quantiles::around(figures.ttft_ms, interval.ttft),
            tpot_ms: Quantiles::around(figures.tpot_ms, interval.tpot),
            e2e_ms: Some(Quantiles { p10: whole(0.1), p50: whole(0.5), p90: whole(0.9) }),
            output_tok_s: Quantiles::around(figures.output_tok_s, output),
            output_tok_s_per_device: rate(figures.output_tok_s_per_device),
            output_tok_s_per_user: Some(Quantiles::inverse(figures.output_tok_s_per_user, interval.tpot)),
            requests_per_s: rate(figures.requests_per_s),
            usd_per_mtok: cost(figures.usd_per_mtok),
            usd_per_mtok_total: cost(figures.usd_per_mtok_total),
            // A deployment that costs nothing has no finite number of tokens for a dollar.
            tok_per_usd: figures.tok_per_usd.filter(|tokens| tokens.is_finite()).and_then(rate),
            source: interval.source.clone(),
        }
    }
}

/// Parallelism and placement of the model on the devices.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// `aggregated` or `disaggregated`.
    pub mode: String,
    /// Label, e.g. `2 x tp4`.
    pub label: String,
    /// Prefill workers; aggregated replicas if aggregated.
    pub prefill: PoolReport,
    /// Decode workers; aggregated replicas if aggregated.
    pub decode: PoolReport,
    /// Further workers or replicas with other parallelism.
    pub others: Vec<PoolReport>,
}

/// Whether a deployment fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Feasibility {
    /// In device memory.
    InVram,
    /// With a part in host memory, at the cost of time.
    WithOffload,
    /// Not at all.
    InsufficientMemory,
    /// A rule forbids the plan or the lengths, regardless of memory.
    Illegal,
}

/// Memory of the fullest device, in bytes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MemoryReport {
    /// Weights, all experts included.
    pub weights_bytes: f64,
    /// Keys and values.
    pub kv_cache_bytes: f64,
    /// Activations of the largest step.
    pub activations_bytes: f64,
    /// The runtime's own buffers.
    pub buffers_bytes: f64,
    /// Total.
    pub total_bytes: f64,
    /// Interval of the total: KV cache exact, the rest as measured on the runtime; null without measurements.
    pub interval: Option<Quantiles>,
    /// Usable memory of the device.
    pub usable_bytes: f64,
    /// Memory of the device visible to software.
    pub capacity_bytes: f64,
    /// Share of the capacity that the runtime may use.
    pub utilization: f64,
    /// Part in host memory, per device.
    pub offloaded_bytes: f64,
    /// Its interval: what the interval of the total has beyond the part on the device. Absent where none is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloaded_interval: Option<Quantiles>,
    /// Weights and KV cache in host memory that its processor computes with; not in the total.
    #[serde(default, skip_serializing_if = "super::number::is_zero")]
    pub host_bytes: f64,
    /// Least memory of the host: the part of the model in it on the fullest node, and 4 GiB that the operating system and
    /// the runtime's own process are assumed to take.
    #[serde(default)]
    pub least_host_bytes: f64,
}

impl MemoryReport {
    /// Bytes that lie on the device: the total without the part in host memory.
    pub fn on_device(&self) -> f64 {
        self.total_bytes - self.offloaded_bytes
    }
}

/// Makes [`MetricsReport`] from the rows of the table.
macro_rules! metrics_report {
    ($($metric:ident {
        name: $name:literal, column: $column:ident, scale: $scale:expr,
        direction: $direction:ident, format: $format:ident, needs: $needs:ident,
        word: $word:literal, heading: $heading:literal, formula: $formula:expr,
        meaning: $meaning:literal,
        $(reported_only: $why:literal,)?
        $(json: $json:ty,)?
    })*) => {
        /// Metrics of a deployment.
        #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
        pub struct MetricsReport {
            $($(
                #[doc = $meaning]
                pub $column: $json,
            )?)*
        }

        impl MetricsReport {
            /// Its metrics in order, each with its value in the unit of its column.
            pub const COLUMNS: &[MetricColumn] = &[$($(
                (Metric::$metric, |metrics| <$json as Into<Option<f64>>>::into(metrics.$column)),
            )?)*];

            /// The metrics of an evaluation.
            pub fn of(metrics: &Metrics<Qty<f64>>) -> MetricsReport {
                let known = |metric: Metric| Some(metric.entry().in_column(metrics.get(metric)?.value()));
                MetricsReport { $($($column: <$json as MetricField>::of(known(Metric::$metric)),)?)* }
            }
        }
    };
}

/// A metric of a report, and the function that reads its value; `None` where it is unknown.
pub type MetricColumn = (Metric, fn(&MetricsReport) -> Option<f64>);

/// The type of a metric in a report: a number, or null where an input is unknown.
trait MetricField {
    fn of(value: Option<f64>) -> Self;
}

impl MetricField for f64 {
    fn of(value: Option<f64>) -> f64 {
        value.unwrap_or(f64::NAN)
    }
}

impl MetricField for Option<f64> {
    fn of(value: Option<f64>) -> Option<f64> {
        value
    }
}

metric_table!(metrics_report);

impl MetricsReport {
    /// The value of `metric`; for the devices in use, which have a place of their own, `devices`.
    pub fn get(&self, metric: Metric, devices: Option<u64>) -> Option<f64> {
        let column = MetricsReport::COLUMNS.iter().find(|(column, _)| *column == metric);
        column.map_or(devices.map(|devices| devices as f64), |(_, value)| value(self))
    }
}

impl ReportedDeployment {
    /// The value of `metric` in the units of the result; none if unknown or if it cannot run.
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        self.metrics.as_ref()?.get(metric, Some(self.devices))
    }
}

/// Memory of the weights alone.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WeightsNeed {
    /// The format.
    pub weight_format: String,
    /// Bytes of the whole model in that format.
    pub weights_bytes: f64,
    /// Usable bytes per device.
    pub usable_bytes_per_device: f64,
    /// Smallest number of devices that holds the weights alone.
    pub least_devices: u64,
    /// Least memory of each host with which these devices hold the model and one request, a part of it in host memory;
    /// null where that does not make it fit, is not wanted, or the host is unknown.
    #[serde(default)]
    pub least_host_bytes: Option<f64>,
}

/// The deployment nearest to feasibility, and the limits it misses.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NearestMiss {
    /// The deployment.
    pub candidate: ReportedDeployment,
    /// The missed limits, in words.
    pub misses: String,
}

/// Gain of a lower weight format.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LowerFormat {
    /// The format.
    pub weight_format: String,
    /// Bits per weight, scales included.
    pub bits_per_weight: f64,
    /// The objective's first metric with it, as the result names it.
    pub metric: String,
    /// That metric now, if anything is feasible now.
    pub now: Option<f64>,
    /// That metric with it, if anything is feasible with it.
    pub then: Option<f64>,
    /// Published quality.
    pub quality: Option<crate::spec::format::Quality>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: MetricsReport = MetricsReport {
        ttft_ms: 200.0,
        tpot_ms: 20.0,
        e2e_ms: 2_200.0,
        output_tok_s: 1_000.0,
        output_tok_s_per_device: 250.0,
        output_tok_s_per_user: 50.0,
        requests_per_s: 10.0,
        usd_per_hour: Some(8.0),
        usd_per_mtok: Some(2.0),
        usd_per_mtok_total: None,
        usd_per_day: None,
        usd_per_month: None,
        tok_per_usd: Some(450_000.0),
        watts: Some(900.0),
        facility_watts: None,
        tok_per_joule: Some(1.0),
        max_context_tokens: 9_000.0,
    };

    fn intervals(at_rate: bool) -> Intervals {
        let interval = Interval {
            near: Nearness::Model,
            ttft: [0.5, 1.0, 2.0],
            tpot: [0.8, 1.0, 1.25],
            throughput: [0.9, 1.0, 1.2],
            source: String::new(),
        };
        Intervals::of(&interval, &FIGURES, at_rate)
    }

    #[test]
    fn one_law_makes_every_interval() {
        let found = intervals(false);
        let ends = |metric| found.get(metric).map(|ends| [ends.p10, ends.p90]);
        let near = |metric, expected: [f64; 2]| {
            let ends: [f64; 2] = ends(metric).unwrap();
            assert!(
                ends.iter().zip(expected).all(|(a, b)| (a / b - 1.0).abs() < 1e-12),
                "{metric:?} {ends:?}"
            );
        };
        near(Metric::OutputTokSPerDevice, [225.0, 300.0]);
        near(Metric::OutputTokSPerUser, [40.0, 62.5]);
        near(Metric::RequestsPerS, [9.0, 12.0]);
        near(Metric::UsdPerMtok, [2.0 / 1.2, 2.0 / 0.9]);
        near(Metric::TokPerUsd, [405_000.0, 540_000.0]);
        for metric in [Metric::UsdPerMtokTotal, Metric::UsdPerHour, Metric::Watts, Metric::TokPerJoule] {
            assert_eq!(found.get(metric), None);
        }
        // Independent errors: wider than that of either part alone, narrower than both at once.
        let [low, high] = ends(Metric::E2e).unwrap();
        assert!(low > 0.5 * 200.0 + 0.8 * 2_000.0 && low < 200.0 + 0.85 * 2_000.0, "{low}");
        assert!(high < 2.0 * 200.0 + 1.25 * 2_000.0 && high > 200.0 + 1.25 * 2_000.0, "{high}");
    }

    #[test]
    fn rates_that_are_given_have_no_error() {
        let found = intervals(true);
        for metric in [Metric::OutputTokS, Metric::RequestsPerS, Metric::UsdPerMtok, Metric::TokPerUsd] {
            let ends = found.get(metric).unwrap();
            assert_eq!((ends.p10, ends.p50), (ends.p90, ends.p90), "{metric:?}");
        }
        assert!(found.get(Metric::E2e).is_some_and(|ends| ends.p10 < ends.p90));
    }
}
