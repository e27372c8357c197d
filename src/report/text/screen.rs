//! A result in one screen: plan, metrics against SLOs, cost, bottleneck, gains, and commands for more.
//!
//! [`super::table`] has the rest.

mod fleet;
mod place;
mod recommend;

use super::checked;
use super::head;
pub use fleet::fleet;
pub use place::place;
pub use recommend::{models, recommend};

use super::infeasible;
use super::launch::{first_command, read_back};
use super::page::{BOLD, join, styled_within, wrap};
use super::why;
use crate::report::bounds::PriceBounds;
use crate::report::constraint::Constraint;
use crate::report::cost::CostReport;
use crate::report::inputs::ReportInputs;
use crate::report::launch::LaunchReport;
use crate::report::number::{
    change, digits, format_metric, gib_number, limit, percent, requests, time, word,
};
use crate::report::result::{EstimateResult, OptimizeResult, Quantiles, ReportedDeployment};
use crate::report::table::table_within;
use crate::spec::nearness::Nearness;
use crate::spec::objective::Metric;
use crate::spec::precision::OWN;
use crate::spec::role::Role;
use crate::spec::scenario::Scenario;
use crate::spec::visible::visible;
use crate::spec::writer::shell_word;

/// Column of the values after a label.
const INDENT: usize = 15;

/// The result of a search in lines of at most `width` characters.
pub fn optimize(answer: &OptimizeResult, width: usize) -> String {
    let flags = answer.scenario.as_ref().map_or_else(String::new, Scenario::flags);
    let Some(best) = &answer.best else {
        return join([
            infeasible::head(answer, width),
            infeasible::nearest(answer, width),
            infeasible::conflict(answer, width),
            infeasible::weights(answer, width),
            next(&[(line(&[&flags, "--detail"]), "all reasons")], width),
        ]);
    };
    if answer.why.is_some() {
        let rest = (line(&[&flags, "--why", "--detail"]), "the answer's other sections");
        return join([head::answer(answer, best, width), why::why(answer, width), next(&[rest], width)]);
    }
    let plan = format!("--plan {}", shell_word(&best.notation));
    let measured = next_run(best, answer.launch.as_ref());
    let explained = (line(&["explain", &flags, &plan, "--number tpot"]), SOURCES.to_owned());
    let (second, effect) = measured.unwrap_or(explained);
    let commands = [(line(&[&flags, "--detail"]), "breakdown and Pareto front"), (second, &effect)];
    join([
        head::answer(answer, best, width),
        slo_table(best, &answer.question, width),
        lines(&optimum_facts(answer, best), width),
        next(&commands, width) + &first_command(answer.launch.as_ref(), width),
    ])
}

/// Facts of the optimum: its own, gains over others, and the defaults that decided.
pub fn optimum_facts(answer: &OptimizeResult, best: &ReportedDeployment) -> Vec<Fact> {
    let constraints = answer.detail.as_ref().map_or(&[][..], |detail| &detail.constraints);
    let applied = answer.scenario.as_ref().and_then(|scenario| defaults(scenario, &answer.question, best));
    let own = facts(best, &answer.question, constraints);
    let untried = answer.untried.iter().map(|untried| ("may be better", untried.words()));
    let closer = answer.simpler.zip(answer.formulas_best.as_ref());
    let closer = closer.map(|(choice, optimum)| ("may be better", choice.words(optimum)));
    untried.chain(closer).chain(own).chain(gains(answer, best)).chain(applied).collect()
}

/// The estimate of a given deployment in lines of at most `width` characters.
pub fn estimate(report: &EstimateResult, width: usize) -> String {
    let EstimateResult { candidate, question: inputs, .. } = report;
    let read = report.command.as_ref().map(|command| &command.scenario);
    let scenario = read.or(report.scenario.as_ref()).cloned().unwrap_or_default();
    let flags = Scenario { deployment: None, ..scenario }.flags();
    let plan = format!("--plan {}", shell_word(&candidate.notation));
    let mut commands = vec![(line(&["estimate", &flags, &plan, "--detail"]), "memory, breakdown, sources")];
    let explained = candidate
        .metrics
        .is_some()
        .then(|| (line(&["explain", &flags, &plan, "--number ttft"]), SOURCES.to_owned()));
    let second = next_run(candidate, report.launch.as_ref()).or(explained);
    commands.extend(second.as_ref().map(|(command, effect)| (command.clone(), effect.as_str())));
    commands.push((flags, "the best plan for this"));
    let (head, table) = (head::estimate(report, width), slo_table(candidate, inputs, width));
    // The risk is in place of the empty line, so that the screen is not longer.
    let (head, table) = match head::risk(report, width) {
        risk if risk.is_empty() => (head, table),
        risk => (String::new(), head + &risk + &table),
    };
    join([
        head,
        table,
        lines(&estimate_facts(report), width),
        report.command.as_ref().map_or_else(String::new, |command| read_back(command, candidate, width)),
        next(&commands, width) + &first_command(report.launch.as_ref(), width),
    ])
}

/// Facts of a given deployment, its chosen load and formats first.
pub fn estimate_facts(report: &EstimateResult) -> Vec<Fact> {
    let constraints = report.detail.as_ref().map_or(&[][..], |detail| &detail.constraints);
    let load = report.chosen_load.iter().map(|text| ("load", text.clone()));
    let own = facts(&report.candidate, &report.question, constraints);
    load.chain(chosen_format(report)).chain(own).collect()
}

/// The weight format with the reason for it, where no flag sets it and it is not the checkpoint's own.
fn chosen_format(report: &EstimateResult) -> Option<Fact> {
    let stated = report.scenario.as_ref().is_some_and(|scenario| scenario.weight_format.is_some());
    let (id, considered) = (&report.candidate.weight_format, &report.question.weight_formats);
    let named = considered.iter().find(|one| one.split_once(' ').is_some_and(|(name, _)| name == id))?;
    (!stated && !named.contains(OWN)).then(|| ("weights", named.clone()))
}

pub const SLO_HEADINGS: [&str; 6] = ["metric", "value", "count on", "p10–p90", "SLO", "odds"];

/// Latencies and throughput with intervals and SLOs; empty if the deployment cannot run.
fn slo_table(best: &ReportedDeployment, inputs: &ReportInputs, width: usize) -> String {
    let rows = slo_rows(best, inputs);
    if rows.is_empty() { String::new() } else { table_within(&SLO_HEADINGS, &rows, width) }
}

/// Latencies and throughput with intervals and SLOs; empty if the deployment cannot run.
pub fn slo_rows(best: &ReportedDeployment, inputs: &ReportInputs) -> Vec<Vec<String>> {
    let Some(m) = &best.metrics else { return vec![] };
    let interval = |quantiles: Option<Quantiles>, spell: fn(f64) -> String| {
        let known = quantiles.filter(|q| q.p10 < q.p90);
        known.map_or_else(|| "-".into(), |q| ends(&spell(q.p10), &spell(q.p90)))
    };
    // Nine measurements in ten are at least as good.
    let count_on = |end: Option<f64>, spell: fn(f64) -> String| end.map_or_else(|| "-".into(), spell);
    let odds = best.slo_odds.as_ref();
    let share = |odds: Option<f64>| odds.map_or_else(|| "-".into(), percent);
    let row = |name: &str, value: f64, quantiles: Option<Quantiles>, metric: Metric| {
        let slo = inputs.limits.of(metric);
        vec![
            name.to_owned(),
            time(value),
            count_on(quantiles.map(|q| q.p90), time),
            interval(quantiles, time),
            slo.map_or_else(|| "none".into(), |slo| format!("≤ {}", limit(slo * 1e3))),
            share(odds.and_then(|odds| odds.of_metric(metric))),
        ]
    };
    let intervals = best.intervals.as_ref();
    let output = intervals.map(|known| known.output_tok_s);
    // One SLO has the odds of all.
    let all = odds.filter(|odds| odds.slos() > 1).map(|odds| odds.all);
    vec![
        row("TTFT", m.ttft_ms, intervals.map(|known| known.ttft_ms), Metric::Ttft),
        row("TPOT", m.tpot_ms, intervals.map(|known| known.tpot_ms), Metric::Tpot),
        row("E2E", m.e2e_ms, intervals.and_then(|known| known.e2e_ms), Metric::E2e),
        vec![
            "throughput".into(),
            format!("{} tok/s", digits(m.output_tok_s)),
            count_on(output.map(|q| q.p10), digits),
            interval(output, digits),
            all.map_or("-", |_| "all").into(),
            share(all),
        ],
    ]
}

/// Both ends of an interval; a unit that they share is written once.
pub fn ends(low: &str, high: &str) -> String {
    let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
    let number = low.split_once(' ').map_or(low, |(number, _)| number);
    format!("{}–{high}", if unit(low) == unit(high) { number } else { low })
}

pub type Fact = (&'static str, String);

fn lines(facts: &[Fact], width: usize) -> String {
    facts.iter().map(|(label, text)| fact(label, text, width)).collect()
}

/// Rates, cost, memory and bottleneck.
pub fn facts(best: &ReportedDeployment, inputs: &ReportInputs, constraints: &[Constraint]) -> Vec<Fact> {
    let mut lines = Vec::new();
    if let Some(m) = &best.metrics {
        lines.push((
            "rates",
            format!(
                "{} requests/s; {} tok/s/GPU, {} tok/s/user; concurrency {}",
                digits(m.requests_per_s),
                digits(m.output_tok_s_per_device),
                digits(m.output_tok_s_per_user),
                requests(best.concurrency)
            ),
        ));
        let range = best.price_bounds.as_ref().map_or_else(String::new, |PriceBounds { low, high }| {
            format!(" ({} to {})", digits(low.usd_per_mtok), digits(high.usd_per_mtok))
        });
        let cost = CostReport::of(best, inputs);
        let unknown = || "unknown: no price on this basis; set --usd-per-device-hour".to_owned();
        let label = cost.as_ref().map_or("cost", CostReport::label);
        let cost = cost.map_or_else(unknown, |cost| cost.row("", &range));
        let power = m.watts.map_or_else(String::new, |watts| format!("; {} W of devices", digits(watts)));
        lines.push((label, cost + &power));
    }
    if let Some(memory) = &best.memory {
        let free = memory.usable_bytes - memory.on_device();
        let (free_text, usable) = (gib_number(free.abs()), gib_number(memory.usable_bytes));
        // A plan that runs is short of nothing but a rounding error.
        let free_text = match free < 0.0 && best.metrics.is_none() {
            true => format!("{free_text} GiB short of the {usable} GiB usable on the fullest device"),
            false => format!("{free_text} GiB free of {usable} GiB usable on the fullest device"),
        };
        let idle = best.devices < inputs.devices;
        let used = format!("; {} of {} devices in use", best.devices, inputs.devices);
        lines.push(("memory", if idle { free_text + &used } else { free_text }));
    }
    let binding = constraints.iter().find(|one| one.binds).map(|one| one.why.clone());
    let part = best.bottleneck.as_ref().map(|part| format!("decode is bound by {part}"));
    let limit: Vec<String> = binding.into_iter().chain(part).collect();
    if best.metrics.is_some() && !limit.is_empty() {
        lines.push(("bottleneck", limit.join("; ")));
    }
    lines
}

fn fact(label: &str, text: &str, width: usize) -> String {
    let wrapped = wrap(text, width, INDENT, INDENT);
    let (_, rest) = wrapped.split_at(INDENT.min(wrapped.len()));
    format!("{label:<INDENT$}{rest}")
}

/// The gain over the runner-up, and over aggregated serving; the plan with the lowest latency; runtimes that were
/// compared.
pub fn gains(answer: &OptimizeResult, best: &ReportedDeployment) -> Vec<Fact> {
    let simulated = answer.checked.as_ref().map(|check| ("simulated", checked::verdict(check)));
    let others = [fastest(answer, best), simulated, runtimes(answer)].into_iter().flatten();
    over_others(answer, best).into_iter().chain(others).collect()
}

/// The gain over the runner-up, and over aggregated serving.
fn over_others(answer: &OptimizeResult, best: &ReportedDeployment) -> Vec<Fact> {
    let Some(objective) = answer.question.optimize.first().map(|term| term.metric) else { return vec![] };
    let against = |other: &ReportedDeployment| {
        // With a given rate the objective may be equal: then the first metric that differs counts.
        let metrics = [objective, Metric::UsdPerMtok, Metric::Tpot, Metric::Ttft].into_iter();
        let mut changes = metrics.filter_map(|metric| {
            let (from, to) = best.figure(metric).zip(other.figure(metric))?;
            (from != to).then(|| format!("{} {}", word(metric), change(from, to)))
        });
        Some(format!("{}: {}", head::plan(other), changes.next()?))
    };
    let mut facts = Vec::new();
    // The optimum that a simpler plan replaces has its own line.
    let replaced = answer.formulas_best.as_ref().filter(|_| answer.simpler.is_some());
    let replaced = |one: &&ReportedDeployment| replaced.is_some_and(|known| known.notation == one.notation);
    let runner = answer.alternatives.iter().find(|one| !replaced(one));
    facts.extend(runner.and_then(against).map(|line| ("runner-up", line)));
    let split = best.plan.prefill.role == Role::Prefill;
    let aggregated = answer.alternatives.iter().find(|other| other.plan.prefill.role != Role::Prefill);
    let shown = runner.zip(aggregated).is_some_and(|(a, b)| a.notation == b.notation);
    let aggregated = aggregated.filter(|_| split && !shown);
    facts.extend(aggregated.and_then(against).map(|line| ("aggregated", line)));
    facts.extend(router(answer).map(|line| ("custom router", line)));
    facts
}

/// At a given rate and by cost, the plan of the front with the lowest latency.
fn fastest(answer: &OptimizeResult, best: &ReportedDeployment) -> Option<Fact> {
    let by_cost = answer.question.optimize.first().is_some_and(|term| term.metric == Metric::UsdPerMtok);
    let latency = |one: &&ReportedDeployment| one.figure(Metric::E2e).unwrap_or(f64::INFINITY);
    let fastest = answer.front.iter().min_by(|a, b| latency(a).total_cmp(&latency(b)));
    let fastest =
        fastest.filter(|one| by_cost && answer.question.rate.is_some() && latency(one) < latency(&best))?;
    let metrics = [Metric::Ttft, Metric::Tpot, Metric::UsdPerMtok].into_iter();
    let figures = metrics.filter_map(|metric| {
        let (from, to) = best.figure(metric).zip(fastest.figure(metric))?;
        Some(format!("{} {}", word(metric), change(from, to)))
    });
    let line = format!("{}: {}", head::plan(fastest), figures.collect::<Vec<_>>().join(", "));
    Some(("lowest latency", line))
}

/// The runtimes that were compared, by the objective.
fn runtimes(answer: &OptimizeResult) -> Option<Fact> {
    let term = answer.question.optimize.first().filter(|_| !answer.runtimes.is_empty())?;
    let spelled = answer.runtimes.iter().map(|trial| match (trial.objective, &trial.reason) {
        (Some(value), _) => format!("{} {}", trial.runtime, format_metric(term.metric, value)),
        (None, Some(reason)) => format!("{}: {reason}", trial.runtime),
        (None, None) => format!("{} infeasible", trial.runtime),
    });
    Some(("runtimes", spelled.collect::<Vec<_>>().join("; ")))
}

/// The format `id` with its reason, among those that were considered.
fn reason_of<'a>(id: &str, considered: &'a [String]) -> Option<&'a str> {
    considered.iter().find(|text| text.split(' ').next() == Some(id)).map(String::as_str)
}

/// The defaults that decide the answer, as flags to change, with the reasons of the formats.
pub fn defaults(scenario: &Scenario, inputs: &ReportInputs, best: &ReportedDeployment) -> Option<Fact> {
    let limit = |given: &Option<String>, seconds: Option<f64>| {
        seconds.filter(|_| given.is_none()).map(|seconds| limit(seconds * 1e3).replace(' ', ""))
    };
    let lengths = scenario.workload.is_none() && scenario.isl.is_none() && scenario.osl.is_none();
    let network = inputs.interconnect.iter().find(|tier| tier.assumed_network);
    let bus = inputs.interconnect.iter().find_map(|tier| tier.p2p);
    let flags: Vec<String> = [
        (scenario.objective.is_none(), format!("--objective {}", shell_word(&inputs.objective))),
        (scenario.runtime.is_none(), format!("--runtime {}", shell_word(&inputs.runtime))),
        (scenario.weight_format.is_none(), format!("--weight-format {}", shell_word(&best.weight_format))),
        (lengths, format!("--isl {} --osl {}", inputs.isl, inputs.osl)),
    ]
    .into_iter()
    .filter_map(|(unset, flag)| unset.then_some(flag))
    .chain(bus.filter(|_| scenario.p2p.is_none()).map(|stated| format!("--p2p {}", stated.name())))
    .chain(network.filter(|_| scenario.network.is_none()).map(|tier| format!("--network {}", tier.link)))
    .chain(limit(&scenario.ttft, inputs.limits.ttft).map(|text| format!("--ttft {text}")))
    .chain(limit(&scenario.tpot, inputs.limits.tpot).map(|text| format!("--tpot {text}")))
    .chain(money(scenario, inputs))
    .chain(
        inputs
            .concurrency
            .filter(|_| scenario.concurrency.is_none())
            .map(|requests| format!("--concurrency {requests}")),
    )
    .collect();
    let whys = [
        ("weights", &scenario.weight_format, &best.weight_format, &inputs.weight_formats),
        ("KV cache", &scenario.kv_format, &best.kv_format, &inputs.kv_formats),
    ];
    let whys = whys.into_iter().filter(|(_, stated, ..)| stated.is_none());
    let whys: Vec<String> =
        whys.filter_map(|(part, _, id, all)| Some(format!("{part} {}", reason_of(id, all)?))).collect();
    let reasons = if whys.is_empty() { String::new() } else { format!("; {}", whys.join(", ")) };
    (!flags.is_empty()).then(|| ("defaults", flags.join(" ") + &reasons))
}

/// The price basis, amortization and utilization that no flag sets.
fn money(scenario: &Scenario, inputs: &ReportInputs) -> Vec<String> {
    let basis = inputs.price_basis.filter(|_| scenario.price_basis.is_none());
    let months = inputs.amortization_months.filter(|_| scenario.amortization_months.is_none());
    let used = inputs.utilization.filter(|_| scenario.utilization.or(scenario.hours_per_day).is_none());
    let flags = [
        basis.map(|basis| format!("--price-basis {}", basis.name())),
        months.map(|months| format!("--amortization-months {}", digits(months))),
        used.map(|used| format!("--utilization {}", digits(used))),
    ];
    flags.into_iter().flatten().collect()
}

/// The gain of a router with weights over the best plan of like workers.
pub(super) fn router(answer: &OptimizeResult) -> Option<String> {
    let plain = answer.plain.as_ref()?;
    let metric = answer.question.optimize.first()?.metric;
    let gain = change(plain.value, plain.best);
    Some(format!("{} {gain} over the best plan of like workers, {}", word(metric), plain.label))
}

/// The words of a command; empty ones are omitted.
fn line(words: &[&str]) -> String {
    words.iter().filter(|word| !word.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

/// The commands for all of an answer and for a file of it; none where no command posed its question.
fn more(command: &str, contents: &str, width: usize) -> String {
    if command.is_empty() {
        return String::new();
    }
    let file = (line(&[command, "--json --out answer.json"]), "a file to `verify`");
    next(&[(line(&[command, "--detail"]), contents), file], width)
}

/// Deployments of which neither the devices nor the kind of plan were measured under their runtime.
const FAR: [Nearness; 6] = [
    Nearness::Hardware,
    Nearness::Vendor,
    Nearness::Processor,
    Nearness::Split,
    Nearness::Hosts,
    Nearness::Nothing,
];

/// The effect of the command that explains a number.
const SOURCES: &str = "formulas and sources";

/// The run that would narrow the intervals, and its effect, where nothing like the deployment was measured.
fn next_run(of: &ReportedDeployment, launch: Option<&LaunchReport>) -> Option<(String, String)> {
    let is_far = of.intervals.as_ref().is_some_and(|known| FAR.contains(&known.near));
    let is_new = of.evidence.is_none_or(|evidence| evidence.rows == 0);
    let run = launch?.next_run.as_ref().filter(|_| is_far || is_new)?;
    Some((run.command.trim_start_matches("mantile-opt ").to_owned(), run.words()))
}

/// Commands to copy, never wrapped.
fn next(commands: &[(String, &str)], width: usize) -> String {
    let contents: Vec<&str> = commands.iter().map(|(_, contents)| *contents).collect();
    let typed = |(command, _): &(String, &str)| format!("  {}\n", visible(&line(&["mantile-opt", command])));
    let title = format!("Next: {}", contents.join("; "));
    styled_within(BOLD, &title, width) + &commands.iter().map(typed).collect::<String>()
}
