//! The headline of a result: plan, formats, runtime, objective value, optimality.

use anstyle::Style;

use super::launch::start_faults;
use super::page::{BAD, BOLD, GOOD, styled, wrap};
use crate::report::host_part;
use crate::report::inputs::ReportInputs;
use crate::report::number::{count, format_metric, percent};
use crate::report::pool::PoolReport;
use crate::report::proof::StoppedBy;
use crate::report::result::{EstimateResult, Feasibility, OptimizeResult, ReportedDeployment};
use crate::report::table::grouped;
use crate::search::outcome::Status;
use crate::spec::objective::{Direction, Metric, MetricInput};
use crate::spec::percentile::{Confidence, OddsLevel};
use crate::spec::role::Role;

/// The pools of a deployment: prefill workers first, aggregated replicas last.
pub fn pools(best: &ReportedDeployment) -> Vec<&PoolReport> {
    let plan = &best.plan;
    let prefill = (plan.prefill.role == Role::Prefill).then_some(&plan.prefill);
    let mut pools: Vec<&PoolReport> = prefill.into_iter().chain([&plan.decode]).chain(&plan.others).collect();
    let order = [Role::Prefill, Role::Decode, Role::Aggregated];
    pools.sort_by_key(|pool| order.iter().position(|role| *role == pool.role));
    pools
}

/// The plan in words: `2 prefill (pp2) + 1 decode (tp4) workers`.
pub fn plan(best: &ReportedDeployment) -> String {
    let pools = pools(best);
    let disaggregated = pools[0].role == Role::Prefill;
    let worker = |pool: &&PoolReport| {
        let role = match pool.role {
            Role::Aggregated if !disaggregated => String::new(),
            role => format!(" {}", role.name()),
        };
        format!("{}{role} ({})", grouped(pool.replicas), pool.label)
    };
    match pools[..] {
        [one] => format!("{} ({})", count(one.replicas, "replica"), one.label),
        _ => format!("{} workers", pools.iter().map(worker).collect::<Vec<_>>().join(" + ")),
    }
}

/// The model and the hardware.
fn subject(inputs: &ReportInputs) -> String {
    let read_as = inputs.read_as.as_ref().map_or_else(String::new, |base| format!(" (read as {base})"));
    format!("{}{read_as} on {}", inputs.model, inputs.hardware)
}

/// The problem: model, hardware, traffic, latency SLOs, objective.
pub fn problem(inputs: &ReportInputs) -> String {
    format!("{}, {}; {}", subject(inputs), count(inputs.devices, "device"), conditions(inputs))
}

/// Traffic, latency SLOs, objective.
fn conditions(inputs: &ReportInputs) -> String {
    let ReportInputs { workload, isl, osl, prefix, .. } = inputs;
    let cached = if *prefix > 0 { format!(" ({} cached)", grouped(*prefix)) } else { String::new() };
    let images = inputs.images.map_or(String::new(), |images| {
        let each = count(images.tokens, "token");
        format!(
            " and {} of {each}{}",
            count(images.number, "image"),
            if images.number > 1 { " each" } else { "" }
        )
    });
    let flow = match (inputs.concurrency, inputs.rate) {
        (Some(requests), _) => format!(", {}", count(requests, "concurrent request")),
        (None, Some(rate)) => {
            let part = inputs.percentile.unwrap_or_default().name();
            format!(", {} requests/s, latencies of {part} requests", crate::report::number::plain(rate))
        }
        (None, None) => String::new(),
    };
    let speculation = inputs.speculation.as_ref().map_or_else(String::new, |found| {
        let tokens = count(found.tokens, "token");
        match &found.unstated {
            Some(range) => format!("; {} drafts {tokens}, {range}", found.draft),
            None => format!("; {} drafts {tokens}, acceptance {}", found.draft, percent(found.acceptance)),
        }
    });
    let limits = super::metrics::limits(&inputs.limits);
    let risk = match inputs.risk {
        Confidence::Odds(level) if !limits.is_empty() && level != OddsLevel::DEFAULT => {
            format!(" with odds ≥ {}", percent(level.probability()))
        }
        _ => String::new(),
    };
    let limits = if limits.is_empty() { "no latency SLO".to_string() } else { limits.join(", ") };
    format!(
        "{workload}: {} tokens in{cached}{images}, {} out{flow}{speculation}; {limits}{risk}; objective {}",
        grouped(*isl),
        grouped(*osl),
        inputs.objective
    )
}

/// The measured runs of the kind of a plan that can run.
fn evidence(best: &ReportedDeployment) -> Option<String> {
    best.evidence.filter(|_| best.metrics.is_some()).map(|evidence| evidence.words())
}

/// Whether the plan is proved optimal, over how many plans, and how many runs of its kind were measured.
pub fn proof(answer: &OptimizeResult) -> String {
    let evidence =
        answer.best.as_ref().and_then(evidence).map_or_else(String::new, |text| format!("; {text}"));
    let plans = || format!("{}{evidence}", count(answer.proof.space.plans, "plan"));
    match (answer.status, &answer.formulas_best) {
        (Status::Optimal, None) if answer.proof.space.measured_kinds_only => {
            format!("optimal among plans of measured kinds ({})", plans())
        }
        (Status::Optimal, None) => format!("optimal under the model ({})", plans()),
        (Status::Optimal, Some(_)) if answer.simpler.is_some() => {
            format!("simpler than the optimum and equal to it within the error ({})", plans())
        }
        (Status::Optimal, Some(optimum)) => {
            let value =
                yielded(optimum, &answer.question).map_or_else(String::new, |text| format!(", {text}"));
            format!(
                "chosen by simulation (optimal by the formulas, of {}: {}{value})",
                plans(),
                plan(optimum)
            )
        }
        _ => "not proved optimal".to_string(),
    }
}

/// A warning before the headline if optimality is not proved; otherwise none.
pub fn unproved(answer: &OptimizeResult) -> Option<String> {
    if answer.status == Status::Optimal {
        return None;
    }
    let by = match answer.proof.stopped_by {
        Some(StoppedBy::TimeLimit) => "time limit reached",
        Some(StoppedBy::Interrupt) => "interrupted",
        Some(StoppedBy::Memory) => "stopped for lack of memory",
        None => "stopped",
    };
    let gap = match answer.proof.gap {
        Some(gap) => format!("gap at most {}", percent(gap)),
        None => "gap unknown".to_string(),
    };
    Some(format!("NOT PROVED OPTIMAL: {by}; {gap}"))
}

/// A warning before the headline if the rules of the runtime are lifted; otherwise none.
pub fn lifted(inputs: &ReportInputs) -> Option<String> {
    let text =
        || format!("THEORETICAL: the rules of {} are lifted; it may not run this plan", inputs.runtime);
    inputs.theoretical.then(text)
}

/// The same as a line; otherwise empty.
pub fn theoretical(inputs: &ReportInputs) -> String {
    warning(lifted(inputs))
}

/// A warning as a line; otherwise empty.
fn warning(text: Option<String>) -> String {
    text.map_or_else(String::new, |text| styled(BAD, &text) + "\n")
}

/// The runtime, with its version if given.
fn runtime(inputs: &ReportInputs) -> String {
    let mean = if inputs.version_counts_as_mean { " (counts as the mean of all versions)" } else { "" };
    let version =
        inputs.runtime_version.as_ref().map_or_else(String::new, |version| format!(" {version}{mean}"));
    format!("{}{version}", inputs.runtime)
}

/// The value of the objective's first metric.
pub fn yielded(best: &ReportedDeployment, inputs: &ReportInputs) -> Option<String> {
    let term = inputs.optimize.first()?;
    Some(format_metric(term.metric, best.figure(term.metric)?))
}

fn offloaded(best: &ReportedDeployment, inputs: &ReportInputs) -> String {
    if let Some(hosted) = host_part::words(best, &inputs.runtime) {
        return hosted;
    }
    let offload = best.feasibility == Feasibility::WithOffload;
    let bytes = best.memory.as_ref().map_or(0.0, |memory| memory.offloaded_bytes);
    if !offload {
        return String::new();
    }
    format!(", with {} per device in host memory", crate::report::number::gib(bytes))
}

/// Format of the weights and runtime, and what is in host memory.
pub fn served(best: &ReportedDeployment, inputs: &ReportInputs) -> String {
    format!("{} weights on {}{}", weights(best), runtime(inputs), offloaded(best, inputs))
}

/// The figures of the headline: of the objective, throughput and cost, each with what can be counted on, and the odds.
fn figures(best: &ReportedDeployment, inputs: &ReportInputs) -> Vec<String> {
    let Some(metrics) = &best.metrics else { return vec![] };
    let objective = inputs.optimize.first().map(|term| term.metric);
    let first = objective.filter(|metric| *metric != Metric::OutputTokS);
    let figure = |metric: Metric| {
        let value = format_metric(metric, best.figure(metric)?);
        let sure = counted_on(best, metric).map(|end| format_metric(metric, end));
        // Words after the number are those of the value.
        let sure = sure.map(|end| match (end.split_once(' '), value.split_once(' ')) {
            (Some((number, unit)), Some((_, of_value))) if unit == of_value => {
                format!(" (count on {number})")
            }
            _ => format!(" (count on {end})"),
        });
        Some(value + &sure.unwrap_or_default())
    };
    let cost = metrics
        .usd_per_mtok
        .filter(|_| objective.is_none_or(|metric| metric.entry().needs != MetricInput::Price));
    let odds = best.slo_odds.as_ref().map(|odds| format!("SLO odds {}", percent(odds.all)));
    // The first ones are the last that a narrow terminal leaves out.
    [
        first.and_then(figure),
        figure(Metric::OutputTokS),
        odds,
        cost.map(|usd| format_metric(Metric::UsdPerMtok, usd)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The figures of a headline that have an end to count on.
const COUNTED: [Metric; 4] = [Metric::OutputTokS, Metric::Ttft, Metric::Tpot, Metric::E2e];

/// The end of the interval that nine measurements of ten are as good as; none without an interval.
fn counted_on(best: &ReportedDeployment, metric: Metric) -> Option<f64> {
    let ends = best.intervals.as_ref()?.get(metric).filter(|_| COUNTED.contains(&metric))?;
    Some(match metric.entry().direction {
        Direction::Maximize => ends.p10,
        Direction::Minimize => ends.p90,
    })
}

/// Lines of the headline, at most: the rest is below it.
const HEADLINE: usize = 2;

/// Model, hardware, plan, formats and runtime in lines, with as many figures as two lines have space for.
fn in_words(best: &ReportedDeployment, inputs: &ReportInputs, formats: &str, width: usize) -> String {
    let plan = format!("{}: {}, {formats}, {}", subject(inputs), plan(best), runtime(inputs));
    let plan = plan + &offloaded(best, inputs);
    let figures = figures(best, inputs);
    let with = |known: usize| {
        let parts = std::iter::once(&plan).chain(&figures[..known]).map(String::as_str);
        wrap(&parts.collect::<Vec<_>>().join(", "), width, 0, 2)
    };
    let fits = (0..=figures.len()).rev().map(with).find(|lines| lines.lines().count() <= HEADLINE);
    fits.unwrap_or_else(|| with(figures.len().min(1)))
}

/// The result in one line, its proof in the next, then the problem.
pub fn answer(answer: &OptimizeResult, best: &ReportedDeployment, width: usize) -> String {
    let inputs = &answer.question;
    let line = in_words(best, inputs, &weights(best), width);
    let style = if answer.status == Status::Optimal { GOOD } else { BOLD };
    let warnings = theoretical(inputs) + &warning(unproved(answer));
    let below = format!("{}; {}", proof(answer), conditions(inputs));
    warnings + &headline(style, &line) + &wrap(&below, width, 0, 2)
}

/// Lines of which the first is in a style.
fn headline(style: Style, lines: &str) -> String {
    let (first, rest) = lines.split_once('\n').unwrap_or((lines, ""));
    format!("{}\n{rest}", styled(style, first))
}

/// Why a given deployment cannot run or misses an SLO; none if it does neither.
pub fn verdict(candidate: &ReportedDeployment) -> Option<&'static str> {
    (!candidate.violations.is_empty()).then(|| match candidate.feasibility {
        Feasibility::Illegal => "CANNOT RUN: invalid plan",
        Feasibility::InsufficientMemory => "CANNOT RUN: out of memory",
        _ if candidate.metrics.is_none() => {
            match candidate.capacity.is_some_and(|capacity| capacity.is_open()) {
                true => "NEAR CAPACITY: the request rate may be too high",
                false => "CANNOT RUN: capacity below the request rate",
            }
        }
        Feasibility::InVram | Feasibility::WithOffload => "SLO VIOLATED",
    })
}

/// The weight format, or those of both phases.
fn weights(of: &ReportedDeployment) -> String {
    match &of.prefill_weight_format {
        Some(prefill) => format!("{prefill} (prefill) and {} (decode)", of.weight_format),
        None => of.weight_format.clone(),
    }
}

/// The risk that a given deployment misses its SLOs, as a line; otherwise empty.
pub fn risk(report: &EstimateResult, width: usize) -> String {
    let risk = report.risk();
    risk.map_or_else(String::new, |risk| headline(BAD, &wrap(&risk, width, 0, 2)))
}

/// A given deployment, with its violations first.
pub fn estimate(report: &EstimateResult, width: usize) -> String {
    let EstimateResult { candidate, question: inputs, .. } = report;
    let (weights, kv_format) = (weights(candidate), &candidate.kv_format);
    let faults = report.command.as_ref().map_or_else(String::new, |command| start_faults(command, width));
    let refused = !faults.is_empty() && candidate.metrics.is_none();
    let mut text = faults + &theoretical(inputs);
    if let Some(verdict) = verdict(candidate).filter(|_| !refused) {
        text.push_str(&format!("{}\n", styled(BAD, verdict)));
        text.extend(candidate.violations.iter().map(|reason| wrap(&format!("- {reason}"), width, 2, 4)));
    }
    let line = in_words(candidate, inputs, &format!("{weights} weights, {kv_format} KV"), width);
    let below: Vec<String> = evidence(candidate).into_iter().chain([conditions(inputs)]).collect();
    text + &headline(BOLD, &line) + &wrap(&below.join("; "), width, 0, 2)
}
