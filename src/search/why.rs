//! Analysis of the optimum: the best result of every strategy family, and sensitivities. All by searching again.

use crate::spec::offload::OffloadPolicy;
use rayon::prelude::*;

use super::change::Change;
use super::family::StrategyFamily;
use super::hint::run_with_hint;
use super::layouts::Layouts;
use super::outcome::{EvaluatedCandidate, Outcome};
use super::problem::Problem;
use super::run::Control;
use crate::spec::objective::Metric;

#[derive(Clone, Debug)]
pub struct FamilyResult {
    pub family: StrategyFamily,
    pub best: Option<EvaluatedCandidate>,
    pub none: Option<String>,
}

#[derive(Clone, Debug)]
pub struct ChangeResult {
    pub change: Change,
    pub best: Option<EvaluatedCandidate>,
    pub problem: Problem,
}

/// The problem restricted to a family, without a front.
pub fn restricted_to(problem: &Problem, family: StrategyFamily) -> Problem {
    let mut held = problem.clone();
    held.axes.clear();
    held.family = family;
    held.split &= matches!(family, StrategyFamily::Any | StrategyFamily::Split);
    match family {
        StrategyFamily::Offload => held.offload = OffloadPolicy::Auto,
        StrategyFamily::Any => {}
        _ => held.offload = OffloadPolicy::Never,
    }
    held
}

pub fn families(
    problem: &Problem,
    (best, layouts): (&EvaluatedCandidate, &Layouts),
    control: &Control,
) -> Vec<FamilyResult> {
    let each =
        StrategyFamily::EACH.into_iter().filter(|family| *family != StrategyFamily::Split || problem.split);
    each.collect::<Vec<_>>()
        .into_par_iter()
        .map(|family| {
            let known = Some(&best.candidate).filter(|known| family == StrategyFamily::of(known));
            let outcome = run_with_hint(&restricted_to(problem, family), known, layouts, control);
            // Where everything fits in device memory, nothing is offloaded.
            let spills =
                |found: &EvaluatedCandidate| family != StrategyFamily::Offload || spilled(problem, found);
            let best = outcome.best.clone().filter(spills);
            let none = best.is_none().then(|| reason(&outcome, family));
            FamilyResult { family, best, none }
        })
        .collect()
}

fn spilled(problem: &Problem, found: &EvaluatedCandidate) -> bool {
    found.candidate.evaluate(&crate::quantity::read::Plain, problem, &mut ()).spilled.is_some()
}

fn reason(outcome: &Outcome, family: StrategyFamily) -> String {
    if outcome.best.is_some() {
        return "the model fits without offloading".into();
    }
    if let Some((_, missed)) = outcome.nearest.as_ref().filter(|(_, missed)| missed.filled().is_some()) {
        return missed.to_string();
    }
    let census = &outcome.census;
    if census.shapes == 0
        && let Some(refusal) = census.illegal.get("out_of_memory")
    {
        return refusal.example.clone();
    }
    match family {
        StrategyFamily::Offload => "host memory or host link is unknown or too small".into(),
        _ if census.shapes == 0 => "no legal plan of this family".into(),
        _ => "no load meets the SLOs".into(),
    }
}

/// The changes of the sensitivity analysis: a small increase of everything.
fn changes(problem: &Problem) -> Vec<Change> {
    const GB: f64 = 1e9;
    const TENTH: f64 = 1.1;
    const TEN_MS: f64 = 0.01;
    const ONE_MS: f64 = 0.001;
    let mut changes = vec![
        Change::Memory(GB),
        Change::Bandwidth(TENTH),
        Change::Compute(TENTH),
        Change::Links(TENTH),
        Change::Device,
    ];
    for (metric, more) in [(Metric::Ttft, TEN_MS), (Metric::Tpot, ONE_MS), (Metric::E2e, TEN_MS)] {
        if problem.limit(metric).is_some() {
            changes.push(Change::Limit(metric, more));
        }
    }
    changes
}

/// The sensitivity to a small increase of everything, each by its own search.
pub fn change_results(
    problem: &Problem,
    (best, layouts): (&EvaluatedCandidate, &Layouts),
    control: &Control,
) -> Vec<ChangeResult> {
    let changed = changes(problem).into_iter().filter_map(|change| {
        let mut problem = problem.with_change(change)?;
        problem.axes.clear();
        Some((change, problem))
    });
    changed
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|(change, problem)| {
            // More devices have other plans.
            let own = (change == Change::Device).then(|| Layouts::new(&problem));
            let layouts = own.as_ref().unwrap_or(layouts);
            let best = run_with_hint(&problem, Some(&best.candidate), layouts, control).best;
            ChangeResult { change, best, problem }
        })
        .collect()
}
