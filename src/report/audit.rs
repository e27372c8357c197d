//! The audit of a prediction: its assumptions by their effect, its overrides, and the parts that it leaves out.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inputs::ReportInputs;
use super::reporter::Reporter;
use super::sheet;
use crate::quantity::datum::{Datum, Grade};
use crate::quantity::dual::{Scaled, Slope};
use crate::quantity::ledger::{Ledger, Op};
use crate::quantity::num::Qty;
use crate::quantity::read::{Plain, Reading};
use crate::quantity::tolerance::ROUNDING;
use crate::quantity::unit::humanize;
use crate::search::candidate::Candidate;
use crate::search::prepared::PreparedInstance;
use crate::search::problem::Problem;
use crate::serving::metrics::Metrics;
use crate::spec::objective::{METRICS, Metric};
use crate::spec::scenario::Scenario;

/// The relative change of an input whose effect is reported. A common size makes effects comparable; the elasticity is
/// independent of it.
pub const CHANGE: f64 = 0.1;

/// The effect of an input on a metric, at the same plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputEffect {
    /// Name of the metric.
    pub metric: String,
    /// Relative change of the metric per relative change of the input.
    pub elasticity: f64,
    /// Relative change of the metric where the input is 10 % larger.
    pub at_10_percent_more: f64,
}

/// An input, with its effect on every metric that it changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditedInput {
    /// Its name in formulas.
    pub symbol: String,
    /// The first number with a formula that it enters.
    pub enters: String,
    /// Its value, formatted.
    pub value: String,
    /// Its grade.
    pub grade: Grade,
    /// Its source.
    pub source: String,
    /// The effects.
    pub effects: Vec<InputEffect>,
}

/// The metrics that order the inputs.
pub const ORDERING: [Metric; 4] = [Metric::Ttft, Metric::Tpot, Metric::OutputTokS, Metric::UsdPerMtok];

impl AuditedInput {
    /// Its name; a multiplier has that of the number that it multiplies.
    pub fn name(&self) -> String {
        match self.symbol.strip_prefix("multiplier(").and_then(|rest| rest.strip_suffix(')')) {
            Some(of) => format!("{} ({of})", self.enters),
            None => self.symbol.clone(),
        }
    }

    /// Its largest effect on a metric of [`ORDERING`], as a fraction of the metric.
    pub fn largest(&self) -> f64 {
        let effects = ORDERING.iter().filter_map(|metric| self.on(*metric));
        effects.map(|effect| effect.at_10_percent_more.abs()).fold(0.0, f64::max)
    }

    pub fn on(&self, metric: Metric) -> Option<&InputEffect> {
        self.effects.iter().find(|effect| effect.metric == metric.entry().name)
    }
}

/// A metric with and without an override.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverrideEffect {
    /// The column of the metric, with its unit.
    pub column: String,
    /// Its value with the override.
    pub with: f64,
    /// Its value without; null where the plan does not run without.
    pub without: Option<f64>,
}

/// An override of the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditedOverride {
    /// The override, as given.
    pub set: String,
    /// The metrics that it changes.
    pub effects: Vec<OverrideEffect>,
}

/// Something that the model leaves out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutPart {
    /// Its name.
    pub part: String,
    /// The reason, or the number that contains it.
    pub why: String,
}

/// Parts of serving without a formula of their own.
static LEFT_OUT: LazyLock<Vec<LeftOutPart>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("left_out.json")).expect("the file is a list of parts")
});

/// The assumptions behind an answer, with their effect on the metrics that order them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditSection {
    /// The weakest grade of all inputs.
    pub grade: Grade,
    /// Inputs that are neither on a data sheet nor in the configuration, largest effect first.
    pub assumptions: Vec<AuditedInput>,
    /// Overrides of the scenario.
    pub overrides: Vec<AuditedOverride>,
    /// Parts of serving that the model leaves out.
    pub left_out: Vec<LeftOutPart>,
}

/// The audit of a prediction.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AuditReport {
    /// The flags and files of the request, with the plan.
    pub scenario: Scenario,
    /// The problem, with every default filled in.
    pub question: ReportInputs,
    /// The plan.
    pub notation: String,
    /// Assumptions, overrides and what is left out.
    #[serde(flatten)]
    pub section: AuditSection,
    /// Inputs of data sheets and read from devices, largest effect first.
    pub known: Vec<AuditedInput>,
}

/// Every input datum of an evaluation, each once.
#[cfg(feature = "internals")]
pub fn inputs(problem: &Problem, candidate: &Candidate) -> Vec<Datum> {
    let reporter = Reporter::new(problem);
    AuditCase::of(&reporter, candidate).inputs().into_iter().map(|(datum, _)| datum).collect()
}

struct AuditCase<'a> {
    problem: &'a Problem,
    candidate: &'a Candidate,
    instances: Vec<PreparedInstance>,
}

impl<'a> AuditCase<'a> {
    fn of(reporter: &Reporter<'a>, candidate: &'a Candidate) -> Self {
        AuditCase { problem: reporter.problem(), candidate, instances: reporter.instances(candidate) }
    }

    fn metrics<R: Reading>(&self, read: &R) -> Metrics<Qty<R::N>> {
        self.candidate.evaluate_on(read, self.problem, &self.instances, &mut ()).metrics
    }

    /// Every input datum, with the symbol of the first formula that it enters.
    fn inputs(&self) -> Vec<(Datum, &'static str)> {
        let ledger = Ledger::new();
        self.metrics(&&ledger);
        let entries = ledger.entries();
        // For each entry without a formula, the first formula that it enters: entries refer only to earlier ones.
        let mut enters: Vec<&'static str> = vec![""; entries.len()];
        for (at, entry) in entries.iter().enumerate().rev() {
            let symbol = entry.formula.map_or(enters[at], |formula| formula.symbol);
            entry.op.operands().into_iter().for_each(|id| enters[id as usize] = symbol);
        }
        let mut found: Vec<(Datum, &'static str)> = Vec::new();
        for (entry, symbol) in entries.iter().zip(enters) {
            if let Op::Input(datum) = &entry.op
                && !found.iter().any(|(known, _)| known == &**datum)
            {
                found.push(((**datum).clone(), symbol));
            }
        }
        found
    }

    /// The effects of an input on those of `metrics` that it changes; `before` has their values.
    fn effects(&self, before: &Metrics<Qty<f64>>, input: &Datum, metrics: &[Metric]) -> Vec<InputEffect> {
        let after = self.metrics(&Scaled { input, factor: 1.0 + CHANGE });
        let slopes = self.metrics(&Slope(input));
        let each = metrics.iter().filter_map(|metric| {
            let (before, after) = (before.get(*metric)?.value(), after.get(*metric)?.value());
            let elasticity = slopes.get(*metric)?.0.elasticity();
            let change = if before == 0.0 { 0.0 } else { after / before - 1.0 };
            let acts = elasticity.abs() > ROUNDING || change.abs() > ROUNDING;
            let finite = elasticity.is_finite() && change.is_finite();
            (acts && finite).then(|| InputEffect {
                metric: metric.entry().name.to_owned(),
                elasticity,
                at_10_percent_more: change,
            })
        });
        each.collect()
    }

    /// The inputs that act on any of `metrics`, largest effect first.
    fn audited(&self, inputs: Vec<(Datum, &'static str)>, metrics: &[Metric]) -> Vec<AuditedInput> {
        let before = self.metrics(&Plain);
        let audited = inputs.iter().map(|(input, enters)| AuditedInput {
            symbol: input.symbol.to_string(),
            enters: (*enters).to_owned(),
            value: humanize(input.value, input.unit),
            grade: input.source.grade,
            source: input.source.text.to_string(),
            effects: self.effects(&before, input, metrics),
        });
        let mut audited: Vec<AuditedInput> = audited.filter(|input| !input.effects.is_empty()).collect();
        audited.sort_by(|a, b| b.largest().total_cmp(&a.largest()).then(a.symbol.cmp(&b.symbol)));
        audited
    }
}

/// Whether an input is neither on a data sheet nor in the configuration nor read from a device.
fn is_assumption(grade: Grade) -> bool {
    grade > Grade::Datasheet
}

fn weakest(inputs: &[(Datum, &'static str)]) -> Grade {
    inputs.iter().map(|(input, _)| input.source.grade).max().unwrap_or(Grade::Stated)
}

/// The section of assumptions whose inputs are `grade` at the weakest; the caller adds the overrides.
fn section_of(grade: Grade, assumptions: Vec<AuditedInput>) -> AuditSection {
    AuditSection { grade, assumptions, overrides: vec![], left_out: LEFT_OUT.clone() }
}

/// The assumptions of a candidate, with their effects on the metrics of [`ORDERING`]; the caller adds the overrides.
pub fn section(reporter: &Reporter, candidate: &Candidate) -> AuditSection {
    let case = AuditCase::of(reporter, candidate);
    let mut inputs = case.inputs();
    let grade = weakest(&inputs);
    inputs.retain(|(input, _)| is_assumption(input.source.grade));
    section_of(grade, case.audited(inputs, &ORDERING))
}

/// The audit of a candidate, with the effects on every metric; the caller adds the overrides.
pub fn audit(
    problem: &Problem,
    candidate: &Candidate,
    (scenario, question, notation): (Scenario, ReportInputs, String),
) -> AuditReport {
    let reporter = Reporter::new(problem);
    let case = AuditCase::of(&reporter, candidate);
    let mut inputs = case.inputs();
    let grade = weakest(&inputs);
    inputs.retain(|(input, _)| input.source.grade != Grade::Stated);
    let all: Vec<Metric> = METRICS.iter().map(|entry| entry.metric).collect();
    let audited = case.audited(inputs, &all);
    let (assumptions, known) = audited.into_iter().partition(|input| is_assumption(input.grade));
    AuditReport { scenario, question, notation, section: section_of(grade, assumptions), known }
}

/// Columns of [`csv()`], before the metrics.
const COLUMNS: [&str; 6] = ["kind", "symbol", "enters", "value", "grade", "source"];

/// Every input as a row, with its elasticities.
pub fn csv(report: &AuditReport) -> String {
    let metrics = METRICS.iter().map(|entry| entry.name);
    let kinds = [("assumption", &report.section.assumptions), ("known", &report.known)];
    let rows = kinds.into_iter().flat_map(|(kind, inputs)| {
        inputs.iter().map(move |input| {
            let head = [
                kind.to_owned(),
                input.symbol.clone(),
                input.enters.clone(),
                input.value.clone(),
                input.grade.to_string(),
                input.source.clone(),
            ];
            let effect =
                |metric: Metric| input.on(metric).map_or(0.0, |effect| effect.elasticity).to_string();
            head.into_iter().chain(METRICS.iter().map(|entry| effect(entry.metric))).collect()
        })
    });
    sheet::csv(COLUMNS.into_iter().chain(metrics), rows)
}
