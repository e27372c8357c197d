//! Measured numbers next to the prediction: possible or not, slow or not, and the operators that could explain a gap.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::breakdown::{Class, OperatorLine};
use super::detail::DeploymentDetail;
use super::inputs::ReportInputs;
use super::number::{change, digits, percent, time};
use super::result::{EstimateResult, Quantiles, ReportedDeployment};
use super::sheet::{CsvColumn, known, table};
use super::suspect::{SuspectCause, suspect_causes};
use crate::plan::parallel::Phase;
use crate::spec::run::RunRecord;
use crate::spec::scenario::Scenario;

/// Measured numbers of a deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MeasuredNumbers {
    /// Median time to first token, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<f64>,
    /// Median time per output token, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpot_ms: Option<f64>,
    /// Output tokens per second of the deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tok_s: Option<f64>,
}

/// Place of a measured number in the prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MeasuredStanding {
    /// Faster than the roofline of its operators: impossible for this plan at this load.
    Impossible,
    /// Faster than nine of ten measurements around such a prediction.
    Fast,
    /// Within the 80 % interval.
    Expected,
    /// Slower than nine of ten measurements.
    Slow,
}

impl MeasuredStanding {
    pub fn words(self) -> &'static str {
        match self {
            MeasuredStanding::Impossible => "impossible: faster than the roofline of its operators",
            MeasuredStanding::Fast => "faster than the 80 % interval",
            MeasuredStanding::Expected => "within the 80 % interval",
            MeasuredStanding::Slow => "slower than the 80 % interval",
        }
    }
}

/// A measured number next to its prediction.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosedMetric {
    /// Column of the metric, with its unit.
    pub metric: String,
    /// The measured number.
    pub measured: f64,
    /// The prediction.
    pub predicted: f64,
    /// Its interval; null without measurements to derive it from.
    pub interval: Option<Quantiles>,
    /// No deployment of this plan at this load is better: the roofline of the operators on a device, without
    /// communication and overhead.
    pub limit: f64,
    /// Place of the measured number.
    pub standing: MeasuredStanding,
    /// The comparison in words.
    pub words: String,
}

/// An operator that could explain a gap, if it alone does.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SuspectOperator {
    /// Prefill or decode.
    pub phase: Phase,
    /// Block of the operator.
    pub block: String,
    /// Name of the operator in the block.
    pub module: String,
    /// Its bottleneck.
    pub class: Class,
    /// Predicted time over all layers, ms.
    pub time_ms: f64,
    /// Speed of light, ms.
    pub speed_of_light_ms: f64,
    /// Predicted share of the roofline.
    pub efficiency: f64,
    /// The share of the roofline that it reaches if it alone explains the gap.
    pub efficiency_if_alone: f64,
}

/// A report of `diagnose`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// The flags and files of the request; null if posed otherwise.
    pub scenario: Option<Scenario>,
    /// The problem, with every default filled in.
    pub question: ReportInputs,
    /// The deployment.
    pub notation: String,
    /// Reasons why the deployment cannot run; then nothing is compared.
    pub violations: Vec<String>,
    /// Measured numbers.
    pub metrics: Vec<DiagnosedMetric>,
    /// Operators of the slow phases, the longest first.
    pub suspects: Vec<SuspectOperator>,
    /// Causes that the readings of the machine show during the run, where a number is slow: that with the largest share of
    /// the time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<SuspectCause>,
}

const MOST_SUSPECTS: usize = 8;

/// Operators of a phase on a device: collectives and overhead may be hidden, so that a limit leaves them out.
fn on_device(detail: &DeploymentDetail, phase: Phase) -> impl Iterator<Item = &OperatorLine> {
    let all = detail.phases.iter().filter(move |one| one.phase == phase).flat_map(|one| &one.operators);
    all.filter(|line| matches!(line.class, Class::Compute | Class::Memory))
}

fn limit(detail: &DeploymentDetail, phase: Phase) -> f64 {
    on_device(detail, phase).map(|line| line.speed_of_light_ms).sum()
}

/// Compares measured numbers with an estimate. `run` is the run that they are of, where it is known.
pub fn diagnosis(estimate: EstimateResult, measured: MeasuredNumbers, run: Option<&RunRecord>) -> Diagnosis {
    let EstimateResult { scenario, candidate, question, detail, .. } = estimate;
    let metrics = detail.as_ref().map(|detail| compared(&candidate, detail, measured)).unwrap_or_default();
    let suspects = detail.as_ref().map(|detail| suspects(detail, &metrics)).unwrap_or_default();
    let slow = metrics.iter().any(|one| one.standing == MeasuredStanding::Slow);
    let causes = run.filter(|_| slow).map(suspect_causes).unwrap_or_default();
    let ReportedDeployment { notation, violations, .. } = candidate;
    Diagnosis { scenario, question, notation, violations, metrics, suspects, causes }
}

fn compared(
    of: &ReportedDeployment,
    detail: &DeploymentDetail,
    measured: MeasuredNumbers,
) -> Vec<DiagnosedMetric> {
    let Some(figures) = &of.metrics else { return vec![] };
    let [prefill, decode] = [Phase::Prefill, Phase::Decode].map(|phase| limit(detail, phase));
    let intervals = of.intervals.as_ref();
    let time = |metric: &str,
                measured: Option<f64>,
                predicted: f64,
                interval: Option<Quantiles>,
                limit: f64| {
        let measured = measured?;
        let late = interval.is_some_and(|ends| measured > ends.p90);
        let early = interval.is_some_and(|ends| measured < ends.p10);
        Some(diagnosed(metric, [measured, predicted, limit], interval, [measured < limit, early, late], time))
    };
    let rate = measured.output_tok_s.map(|rate| {
        let interval = intervals.map(|known| known.output_tok_s);
        // Every request in flight gets a token per step, and no step is faster.
        let limit = if decode > 0.0 { of.concurrency / decode * 1e3 } else { f64::MAX };
        let late = interval.is_some_and(|ends| rate < ends.p10);
        let early = interval.is_some_and(|ends| rate > ends.p90);
        let words = [rate > limit, early, late];
        diagnosed("output_tok_s", [rate, figures.output_tok_s, limit], interval, words, digits)
    });
    let times = [
        time("ttft_ms", measured.ttft_ms, figures.ttft_ms, intervals.map(|known| known.ttft_ms), prefill),
        time("tpot_ms", measured.tpot_ms, figures.tpot_ms, intervals.map(|known| known.tpot_ms), decode),
    ];
    times.into_iter().chain([rate]).flatten().collect()
}

/// A number with its standing: beyond the limit, before and behind the interval.
fn diagnosed(
    metric: &str,
    [measured, predicted, limit]: [f64; 3],
    interval: Option<Quantiles>,
    [beyond, early, late]: [bool; 3],
    spell: impl Fn(f64) -> String,
) -> DiagnosedMetric {
    let standing = match () {
        () if beyond => MeasuredStanding::Impossible,
        () if early => MeasuredStanding::Fast,
        () if late => MeasuredStanding::Slow,
        () => MeasuredStanding::Expected,
    };
    let words = format!(
        "measured {}, predicted {} ({}), roofline {}: {}",
        spell(measured),
        spell(predicted),
        change(predicted, measured),
        spell(limit),
        standing.words()
    );
    DiagnosedMetric { metric: metric.to_owned(), measured, predicted, interval, limit, standing, words }
}

/// The longest operators of the phases whose time is slow or impossible.
fn suspects(detail: &DeploymentDetail, metrics: &[DiagnosedMetric]) -> Vec<SuspectOperator> {
    let phases = [("ttft_ms", Phase::Prefill), ("tpot_ms", Phase::Decode)];
    let mut found: Vec<SuspectOperator> = Vec::new();
    for (name, phase) in phases {
        let odd = |one: &&DiagnosedMetric| one.metric == name && one.standing != MeasuredStanding::Expected;
        let Some(metric) = metrics.iter().find(odd) else { continue };
        let gap = metric.measured - metric.predicted;
        let all = detail.phases.iter().filter(|one| one.phase == phase).flat_map(|one| &one.operators);
        found.extend(all.filter(|line| line.time_ms > 0.0).map(|line| suspect(line, gap)));
    }
    found.sort_by(|a, b| b.time_ms.total_cmp(&a.time_ms));
    found.truncate(MOST_SUSPECTS);
    found
}

fn suspect(line: &OperatorLine, gap: f64) -> SuspectOperator {
    let alone = line.time_ms + gap;
    SuspectOperator {
        phase: line.phase,
        block: line.block.clone(),
        module: line.module.clone(),
        class: line.class,
        time_ms: line.time_ms,
        speed_of_light_ms: line.speed_of_light_ms,
        efficiency: line.efficiency,
        efficiency_if_alone: if alone > 0.0 { line.speed_of_light_ms / alone } else { 0.0 },
    }
}

impl Diagnosis {
    /// The report as text.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.notation);
        for reason in &self.violations {
            text.push_str(&format!("! {reason}\n"));
        }
        for one in &self.metrics {
            text.push_str(&format!("{}: {}\n", one.metric, one.words));
        }
        if !self.suspects.is_empty() {
            text.push_str(
                "\nOperators, the longest first, with the efficiency that alone explains the gap:\n",
            );
        }
        for one in &self.suspects {
            text.push_str(&format!(
                "  {} {}/{}: {}, {} at best, efficiency {} -> {}\n",
                one.phase.name(),
                one.block,
                one.module,
                time(one.time_ms),
                time(one.speed_of_light_ms),
                percent(one.efficiency),
                percent(one.efficiency_if_alone)
            ));
        }
        if !self.causes.is_empty() {
            text.push_str("\nCauses that the readings of the machine show, the longest first:\n");
        }
        self.causes.iter().for_each(|cause| text.push_str(&cause.text()));
        text
    }

    /// A row for each measured number, under a header.
    pub fn csv(&self) -> String {
        let columns: [CsvColumn<DiagnosedMetric>; 7] = [
            ("metric", |one| one.metric.clone()),
            ("measured", |one| one.measured.to_string()),
            ("predicted", |one| one.predicted.to_string()),
            ("p10", |one| known(one.interval.map(|ends| ends.p10))),
            ("p90", |one| known(one.interval.map(|ends| ends.p90))),
            ("limit", |one| one.limit.to_string()),
            ("standing", |one| one.standing.words().to_owned()),
        ];
        table(&columns, &self.metrics)
    }

    /// Whether nothing is impossible or slow.
    pub fn is_expected(&self) -> bool {
        let wrong = [MeasuredStanding::Impossible, MeasuredStanding::Slow];
        !self.metrics.iter().any(|one| wrong.contains(&one.standing))
    }
}
