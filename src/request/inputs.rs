//! From a resolved problem to its report: the problem as understood, lower weight formats, why.

use crate::quantity::datum::Grade;
use crate::quantity::num::Qty;
use crate::report::inputs::{ReportImages, ReportInputs, ReportedTier, Speculation};
use crate::report::result::LowerFormat;
use crate::report::why::{Why, why as why_report};
use crate::search::candidate::Candidate;
use crate::search::duel::{duel, parameters};
use crate::search::family::StrategyFamily;
use crate::search::hint::run_with_hint;
use crate::search::layouts::Layouts;
use crate::search::outcome::{EvaluatedCandidate, Outcome, Status};
use crate::search::point::place;
use crate::search::problem::Problem;
use crate::search::run::Control;
use crate::search::why::{change_results, families};
use crate::serving::economy::Bill;
use crate::serving::speculative::accepted;
use crate::spec::cluster::{Cluster, Tier};
use crate::spec::defaults::{HOUR, MONTH};
use crate::spec::error::Error;
use crate::spec::precision::FormatOption;
use crate::store::resolved_scenario::ResolvedScenario;
use crate::store::unknown_keys::warning;

/// The problem as understood, every default filled in.
pub fn report_inputs(resolved: &ResolvedScenario, problem: &Problem) -> ReportInputs {
    let formats = |choices: &[FormatOption]| {
        choices.iter().map(|choice| format!("{} ({})", choice.format.id, choice.why)).collect()
    };
    let (workload, objective) = (&resolved.workload, &resolved.objective);
    let bill = problem.workload.bill.as_ref();
    let owned = bill.and_then(Bill::as_owned);
    let name = &resolved.model.name;
    let repository = &resolved.model.repository;
    ReportInputs {
        model: repository.as_ref().unwrap_or(name).clone(),
        read_as: resolved.model.read_as.clone().or_else(|| repository.as_ref().map(|_| name.clone())),
        hardware: resolved.cluster.name.clone(),
        devices: resolved.cluster.devices(),
        interconnect: resolved.cluster.tiers.iter().map(|of| tier(of, &resolved.cluster)).collect(),
        runtime: resolved.runtime.id.clone(),
        runtime_version: resolved.runtime_version.clone(),
        version_counts_as_mean: resolved
            .runtime_version
            .as_ref()
            .is_some_and(|version| !resolved.runtime.is_fitted_to(version)),
        theoretical: resolved.theoretical,
        workload: workload.id.clone(),
        isl: workload.isl,
        osl: workload.osl,
        prefix: workload.prefix,
        images: resolved.graph.image_inputs.as_ref().map(|seen| ReportImages {
            number: seen.images.value,
            size: workload.image_size,
            tokens: seen.tokens.value,
        }),
        concurrency: workload.concurrency,
        rate: workload.rate,
        percentile: problem.workload.tail,
        risk: resolved.confidence,
        speculation: problem.graph.draft.as_ref().zip(resolved.acceptance).map(|(draft, acceptance)| {
            let unstated = unstated_acceptance(resolved);
            Speculation { draft: draft.name.clone(), tokens: draft.tokens, acceptance, unstated }
        }),
        limits: objective.limits,
        objective: objective.id.clone(),
        optimize: objective.optimize.clone(),
        pareto: problem.axes.iter().map(|metric| metric.entry().name.to_string()).collect(),
        weight_formats: formats(&resolved.weight_formats),
        kv_formats: formats(&resolved.kv_formats),
        price_basis: bill.map(|_| resolved.economics.basis),
        amortization_months: owned.map(|owned| owned.amortization.value / MONTH),
        utilization: owned.map(|owned| owned.utilization.value),
        hours_per_day: bill.map(|_| resolved.economics.serving_time.value / HOUR),
        warnings: warning(&resolved.model.source, &resolved.graph.ignored_keys).into_iter().collect(),
    }
}

/// The range of figures under an unknown acceptance rate.
fn unstated_acceptance(resolved: &ResolvedScenario) -> Option<String> {
    let tokens = resolved.graph.draft.as_ref().filter(|_| resolved.unstated_acceptance)?.tokens;
    let typical = &resolved.defaults.typical_acceptance;
    let rate = typical.value;
    let yields = accepted(Qty::<f64>::from(rate), tokens).value();
    Some(format!(
        "acceptance: not stated, so every time and rate here counts no draft token as accepted, the least a step \
         yields; with {:.0} % accepted ({}) a step yields {yields:.2} tokens: TPOT is {yields:.2} times shorter. \
         Memory does not depend on it. Set --acceptance (accepted / drafted, which servers report)",
        rate * 100.0,
        typical.source.text
    ))
}

fn tier(of: &Tier, cluster: &Cluster) -> ReportedTier {
    let between = cluster.networked && of.devices > cluster.devices_per_node;
    ReportedTier {
        name: of.name.clone(),
        devices: of.devices,
        link: of.link.clone(),
        bandwidth_bytes_per_s: of.bandwidth.value,
        p2p: of.peer_to_peer,
        assumed_network: between && of.bandwidth.source.grade == Grade::Assumed,
    }
}

/// The gain of the next lower weight format, found by the same search.
pub fn lower_format(
    resolved: &ResolvedScenario,
    (now, outcome): (&Problem, &Outcome),
    control: &Control,
) -> Result<Option<LowerFormat>, Error> {
    let Some(lower) = resolved.lower_formats.first() else { return Ok(None) };
    // An interrupted search waits for no other.
    if matches!(outcome.status, Status::Feasible | Status::Unknown) {
        return Ok(None);
    }
    let with = ResolvedScenario { weight_formats: vec![lower.clone()], ..resolved.clone() };
    // Only the optimum is needed: without axes the search keeps no front.
    let mut problem = with.problem()?;
    problem.axes.clear();
    let known = outcome.best.as_ref().and_then(|best| {
        let kv = &now.formats[best.candidate.formats].kv;
        let formats = problem.formats.iter().position(|pair| pair.kv == *kv)?;
        Some(Candidate { formats, ..best.candidate.clone() })
    });
    let then = run_with_hint(&problem, known.as_ref(), &Layouts::until(&problem, control.stop), control);
    if matches!(then.status, Status::Feasible | Status::Unknown) {
        return Ok(None);
    }
    let Some(metric) = problem.objective.first().map(|aim| aim.metric) else { return Ok(None) };
    let figure = |outcome: &Outcome| {
        let value = outcome.best.as_ref()?.point[place(metric)] / metric.entry().scale;
        value.is_finite().then_some(value)
    };
    Ok(Some(LowerFormat {
        weight_format: lower.format.id.clone(),
        bits_per_weight: lower.format.bits_per_element.value * 8.0,
        metric: metric.entry().column.to_string(),
        now: figure(outcome),
        then: figure(&then),
        quality: lower.format.quality.clone(),
    }))
}

/// Explains why `best` is the best, by further searches; none if they are stopped.
pub fn why(
    problem: &Problem,
    (best, front): (&EvaluatedCandidate, &[EvaluatedCandidate]),
    layouts: &Layouts,
    control: &Control,
) -> Option<Why> {
    // The progress of each would go back to its start.
    let control = &Control { progress: &|_, _| {}, ..*control };
    let tried = families(problem, (best, layouts), control);
    let winner = StrategyFamily::of(&best.candidate);
    // The best of the other families, in the same order as everywhere.
    let others = tried.iter().filter(|one| one.family != winner);
    let runner = others.filter_map(|one| Some((one.family, one.best.as_ref()?)));
    let runner =
        runner.reduce(|a, b| if problem.by_objective(&b.1.point, &a.1.point).is_lt() { b } else { a });
    let duels: Vec<_> = match runner {
        Some((other, lost)) => parameters(problem, best)
            .into_iter()
            .filter_map(|(along, now)| {
                let both = [(winner, best), (other, lost)];
                Some((now, duel(problem, (along, now), both, layouts, control)?))
            })
            .collect(),
        None => vec![],
    };
    let changes = change_results(problem, (best, layouts), control);
    if (control.stop)() {
        return None;
    }
    why_report(problem, best, tried.clone(), &duels, &changes, front)
}
