//! Analysis of the optimum: the best result of every strategy family, crossovers to the runner-up, and sensitivities.
//! All by searching again.

use rayon::prelude::*;

use super::change::Change;
use super::family::StrategyFamily;
use super::hint::run_with_hint;
use super::layouts::Layouts;
use super::outcome::{EvaluatedCandidate, Outcome};
use super::point::{before, place};
use super::problem::{OffloadPolicy, Problem, Traffic};
use super::run::{Control, run};
use crate::plan::infeasible::Infeasible;
use crate::spec::objective::Metric;

/// The best result of a family.
#[derive(Clone, Debug)]
pub struct FamilyResult {
    /// The family.
    pub family: StrategyFamily,
    /// Its best deployment.
    pub best: Option<EvaluatedCandidate>,
    /// The reason for infeasibility, if infeasible.
    pub none: Option<String>,
}

/// The effect of a change.
#[derive(Clone, Debug)]
pub struct ChangeResult {
    /// The change.
    pub change: Change,
    /// The best deployment with it.
    pub best: Option<EvaluatedCandidate>,
    /// The problem with it.
    pub problem: Problem,
}

/// The parameter along which two families are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Along {
    /// Concurrency.
    Concurrency,
    /// Prompt tokens.
    Prompt,
    /// Purchase price of a device, in USD.
    Purchase,
}

/// A crossover from one family to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossover {
    /// The last value before it.
    pub below: u64,
    /// The first value after it.
    pub at: u64,
    /// The better family before it.
    pub from: StrategyFamily,
    /// The better family after it.
    pub to: StrategyFamily,
}

/// A comparison of two families along a parameter.
#[derive(Clone, Debug)]
pub struct Duel {
    /// The parameter.
    pub along: Along,
    /// The smallest and the largest value tried.
    pub tried: (u64, u64),
    /// Every crossover between neighbouring powers of two.
    pub crossovers: Vec<Crossover>,
    /// The better family at the smallest value; `None` where neither is feasible at any value tried.
    pub leader: Option<StrategyFamily>,
}

/// The problem restricted to a family, without a front.
pub fn restricted_to(problem: &Problem, family: StrategyFamily) -> Problem {
    let mut held = problem.clone();
    held.axes.clear();
    held.family = family;
    held.split &= matches!(family, StrategyFamily::Any | StrategyFamily::Split);
    match family {
        StrategyFamily::Offload => held.offload = OffloadPolicy::Always,
        StrategyFamily::Any => {}
        _ => held.offload = OffloadPolicy::Never,
    }
    held
}

/// The best result of every family.
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
    if let Some((_, missed @ Infeasible::LimitMissed { .. })) = &outcome.nearest {
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

/// Whether `a` is better, of two results for the same problem.
fn leads(problem: &Problem, a: &Option<EvaluatedCandidate>, b: &Option<EvaluatedCandidate>) -> Option<bool> {
    match (a, b) {
        (None, None) => None,
        (Some(_), None) => Some(true),
        (None, Some(_)) => Some(false),
        (Some(a), Some(b)) => Some(!before(&b.point, &a.point, &problem.aims)),
    }
}

/// Powers of two that are tried below and above the current value.
const REACH: u32 = 4;

/// The best of both families.
type FamilyBests = [Option<EvaluatedCandidate>; 2];

/// Crossovers between `winner` and `other`, with their best deployments, along a parameter with the current value `now`.
pub fn duel(
    problem: &Problem,
    (along, now): (Along, u64),
    [(winner, won), (other, lost)]: [(StrategyFamily, &EvaluatedCandidate); 2],
    layouts: &Layouts,
    control: &Control,
) -> Option<Duel> {
    let known: FamilyBests = [Some(won.clone()), Some(lost.clone())];
    let at = |value: u64| -> Option<Problem> {
        problem.with_change(match along {
            Along::Concurrency => Change::InFlight(value),
            Along::Prompt => Change::Prompt(value),
            Along::Purchase => Change::Purchase(value as f64 / now as f64),
        })
    };
    let solve = |value: u64, hints: &FamilyBests| -> FamilyBests {
        let Some(problem) = at(value) else { return [None, None] };
        let best = |family, hint: &Option<EvaluatedCandidate>| {
            let hint = hint.as_ref().map(|hint| &hint.candidate);
            run_with_hint(&restricted_to(&problem, family), hint, layouts, control).best
        };
        let (a, b) = rayon::join(|| best(winner, &hints[0]), || best(other, &hints[1]));
        [a, b]
    };
    let leader = |value: u64, [a, b]: &FamilyBests| -> Option<StrategyFamily> {
        leads(&at(value)?, a, b).map(|first| if first { winner } else { other })
    };
    let powers = (0..=2 * REACH).map(|power| (now << power) >> REACH);
    let mut values: Vec<u64> = powers.filter(|value| *value > 0 && at(*value).is_some()).collect();
    values.dedup();
    let (first, last) = (*values.first()?, *values.last()?);
    // From the current value outwards: each value starts from what the one before it found.
    let outwards = |values: Vec<u64>| {
        let mut hints: FamilyBests = known.clone();
        let next = |value: u64| {
            let found = solve(value, &hints);
            hints = found.clone();
            (value, found)
        };
        values.into_iter().map(next).collect::<Vec<_>>()
    };
    let (above, below): (Vec<u64>, Vec<u64>) = values.into_iter().partition(|value| *value >= now);
    let (below, above) = rayon::join(|| outwards(below.into_iter().rev().collect()), || outwards(above));
    let known = below.into_iter().rev().chain(above);
    let serving: Vec<(u64, StrategyFamily, FamilyBests)> =
        known.filter_map(|(value, bests)| Some((value, leader(value, &bests)?, bests))).collect();
    let mut crossovers = Vec::new();
    for pair in serving.windows(2) {
        let ((mut below, from, hints), (mut above, to, _)) = (pair[0].clone(), pair[1].clone());
        if from == to {
            continue;
        }
        // To within 1 %: a finer crossover has no practical effect. A stopped search has no leader: the caller drops it.
        while !(control.stop)() && above - below > (above / 100).max(1) {
            let middle = below + (above - below) / 2;
            let found = solve(middle, &hints);
            if leader(middle, &found) == Some(from) { below = middle } else { above = middle }
        }
        crossovers.push(Crossover { below, at: above, from, to });
    }
    let leader = serving.first().map(|(_, family, _)| *family);
    Some(Duel { along, tried: (first, last), crossovers, leader })
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
            let best = match change {
                Change::Device => run(&problem, control),
                _ => run_with_hint(&problem, Some(&best.candidate), layouts, control),
            };
            let best = best.best;
            ChangeResult { change, best, problem }
        })
        .collect()
}

/// The parameters along which two families may cross over, with the current values.
pub fn stands(problem: &Problem, best: &EvaluatedCandidate) -> Vec<(Along, u64)> {
    let mut stands = Vec::new();
    if !matches!(problem.traffic, Traffic::Rate(_)) {
        stands.push((Along::Concurrency, best.candidate.concurrency(&problem.traffic)));
    }
    stands.push((Along::Prompt, problem.workload.lengths.isl));
    let paid = problem.aims.iter().any(|aim| aim.metric == Metric::UsdPerMtok);
    if let Some(crate::serving::economy::Bill::Owned(bill)) = &problem.workload.bill
        && paid
        && bill.purchase.value >= 1.0
    {
        stands.push((Along::Purchase, bill.purchase.value.round() as u64));
    }
    stands
}

/// Value of the first objective term of a deployment.
pub fn aimed(problem: &Problem, found: &EvaluatedCandidate) -> Option<f64> {
    let value = found.point[place(problem.aims.first()?.metric)];
    value.is_finite().then_some(value)
}
