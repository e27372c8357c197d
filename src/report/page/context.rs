//! The context of a template: sentences, rows and pictures that other reports have too, next to the JSON of the answer.

use minijinja::value::Serde;
use minijinja::{Value as TemplateValue, context};
use serde_json::Value;

use super::{bars, embedded};
use crate::report::breakdown::OperatorLine;
use crate::report::checked::SimulatedCheck;
use crate::report::detail::DeploymentDetail;
use crate::report::inputs::ReportInputs;
use crate::report::number::format_metric;
use crate::report::result::{EstimateResult, OptimizeResult, ReportedDeployment};
use crate::report::svg::deployment::detail_panels;
use crate::report::svg::front::front;
use crate::report::svg::layout::layout;
use crate::report::svg::why::why_panels;
use crate::report::text::front::axes;
use crate::report::text::screen::{SLO_HEADINGS, estimate_facts, optimum_facts, slo_rows};
use crate::report::text::{checked, head, infeasible};
use crate::spec::objective::{Direction, LatencyLimits, Metric};
use crate::spec::scenario::Scenario;

/// The title of an answer, where it has a problem.
pub fn title(answer: &Value) -> Option<String> {
    let inputs = answer.get("question")?;
    let part = |key: &str| inputs.get(key).and_then(Value::as_str);
    Some(format!("{} on {}", part("model")?, part("hardware").or_else(|| part("rig"))?))
}

/// Of an optimum, or of the reasons why there is none.
pub fn optimize(answer: &OptimizeResult) -> TemplateValue {
    let flags = answer.scenario.as_ref().map(Scenario::flags);
    let problem = head::problem(&answer.question);
    let Some(best) = &answer.best else {
        let remedies = answer.conflict.iter().flat_map(|conflict| &conflict.remedies);
        let remedies: Vec<_> =
            remedies.map(|one| (one.typed(), &one.flags, infeasible::change(one))).collect();
        return context! {
            verdict => infeasible::verdict(answer),
            problem,
            flags,
            reasons => TemplateValue::from(Serde(infeasible::sorted(&answer.census))),
            remedies => TemplateValue::from(Serde(remedies)),
        };
    };
    let warnings = [head::lifted(&answer.question), head::unproved(answer)];
    let why = answer.why.iter().flat_map(why_panels).map(|panel| embedded(&panel, "the decision"));
    let families = answer.why.iter().flat_map(|why| &why.strategies).map(|one| one.family.name());
    context! {
        proof => head::proof(answer),
        problem,
        flags,
        warnings => warnings.into_iter().flatten().collect::<Vec<_>>(),
        facts => optimum_facts(answer, best),
        across => axes(answer).map(|(across, _)| across.entry().name),
        front => front(answer).map(|panel| embedded(&panel, "Pareto front")),
        why => why.collect::<Vec<_>>(),
        families => families.collect::<Vec<_>>(),
        simulated => answer.checked.as_ref().map(simulated),
        ..deployment(best, &answer.question, answer.detail.as_ref())
    }
}

/// The plans that were simulated.
fn simulated(check: &SimulatedCheck) -> TemplateValue {
    context! {
        headings => checked::HEADINGS,
        rows => checked::rows(check).collect::<Vec<_>>(),
    }
}

pub fn estimate(answer: &EstimateResult) -> TemplateValue {
    let EstimateResult { candidate, question: inputs, detail, .. } = answer;
    context! {
        verdict => head::verdict(candidate),
        problem => head::problem(inputs),
        flags => answer.scenario.as_ref().map(Scenario::flags),
        warnings => head::lifted(inputs)
            .into_iter()
            .chain(answer.risk())
            .collect::<Vec<_>>(),
        facts => estimate_facts(answer),
        ..deployment(candidate, inputs, detail.as_ref())
    }
}

/// Metrics with intervals and SLOs, pictures, and the slowest operators first.
fn deployment(
    of: &ReportedDeployment,
    inputs: &ReportInputs,
    detail: Option<&DeploymentDetail>,
) -> TemplateValue {
    let panels = detail.map(detail_panels).unwrap_or_default();
    let pictures = panels.iter().map(|panel| embedded(panel, "time and memory")).collect::<Vec<_>>();
    let layout = detail.and_then(|detail| layout(of, inputs, detail));
    // As `explain` names them.
    let names = NUMBERS.map(|metric| metric.entry().name);
    let bands = names.into_iter().zip(NUMBERS.map(|metric| band(of, &inputs.limits, metric)));
    let objective = inputs.optimize.first().map(|term| term.metric);
    context! {
        plan => head::plan(of),
        served => head::served(of, inputs),
        expected => head::yielded(of, inputs),
        relied => relied(of, inputs),
        objective => objective.map(|metric| metric.entry().name),
        times => detail.and_then(|detail| bars::times(of, inputs, detail)),
        memory => of.memory.as_ref().map(bars::memory),
        layout => layout.map(|panel| embedded(&panel, "devices")),
        headings => SLO_HEADINGS,
        rows => slo_rows(of, inputs).into_iter().zip(names).collect::<Vec<_>>(),
        bands => bands.collect::<Vec<_>>(),
        pictures,
        operators => TemplateValue::from(Serde(detail.map(slowest).unwrap_or_default())),
    }
}

/// The value of the objective that nine measurements of ten reach; none without measurements to derive it from.
fn relied(of: &ReportedDeployment, inputs: &ReportInputs) -> Option<String> {
    let term = inputs.optimize.first()?;
    let ends = of.intervals.as_ref()?.get(term.metric)?;
    let end = match term.direction {
        Direction::Maximize => ends.p10,
        Direction::Minimize => ends.p90,
    };
    (ends.p10 < ends.p90).then(|| format_metric(term.metric, end))
}

/// Metrics of the rows of [`slo_rows`].
const NUMBERS: [Metric; 4] = [Metric::Ttft, Metric::Tpot, Metric::E2e, Metric::OutputTokS];

/// A number on a line from 0 to 100: its interval, itself and its SLO, as far as each is known.
fn band(of: &ReportedDeployment, limits: &LatencyLimits, metric: Metric) -> Option<TemplateValue> {
    let value = of.figure(metric)?;
    let ends = of.intervals.as_ref()?.get(metric)?;
    let limit = match metric {
        Metric::Ttft => limits.ttft,
        Metric::Tpot => limits.tpot,
        Metric::E2e => limits.e2e,
        _ => None,
    };
    let limit = limit.map(|seconds| seconds * 1e3);
    let most = ends.p90.max(limit.unwrap_or(0.0)).max(value) * 1.2;
    let at = |value: f64| (value / most * 100.0).clamp(0.0, 100.0);
    Some(context! {
        low => at(ends.p10), high => at(ends.p90), value => at(value), limit => limit.map(at),
    })
}

/// Operators of all phases, the slowest first.
fn slowest(detail: &DeploymentDetail) -> Vec<&OperatorLine> {
    let mut all: Vec<&OperatorLine> = detail.phases.iter().flat_map(|phase| &phase.operators).collect();
    all.sort_by(|a, b| b.time_ms.total_cmp(&a.time_ms));
    all
}
