//! Why the best is the best: what every family of strategies comes to, where the runner-up takes over, and what one
//! more of anything would be worth. All of it by searching again.

use rayon::prelude::*;

use super::change::Change;
use super::family::StrategyFamily;
use super::outcome::{EvaluatedCandidate, Outcome};
use super::point::{before, place};
use super::question::{OffloadPolicy, Problem, Traffic};
use super::run::{UNWATCHED, run};
use crate::plan::infeasible::Infeasible;
use crate::spec::objective::Metric;

/// What a family comes to.
#[derive(Clone, Debug)]
pub struct FamilyResult {
    /// The family.
    pub family: StrategyFamily,
    /// Its best.
    pub best: Option<EvaluatedCandidate>,
    /// Why it has none, where it has none.
    pub none: Option<String>,
}

/// What a change comes to.
#[derive(Clone, Debug)]
pub struct ChangeResult {
    /// The change.
    pub change: Change,
    /// The best with it.
    pub best: Option<EvaluatedCandidate>,
    /// The question with it.
    pub question: Problem,
}

/// Along which figure two families change places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Along {
    /// Requests in flight.
    Concurrency,
    /// Prompt tokens.
    Prompt,
    /// Price of buying a device, US dollars.
    Purchase,
}

/// Where one family takes over from another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossover {
    /// The last value at which it does not.
    pub below: u64,
    /// The first at which it does.
    pub at: u64,
    /// Who leads up to there.
    pub from: StrategyFamily,
    /// Who leads from there.
    pub to: StrategyFamily,
}

/// Two families along a figure.
#[derive(Clone, Debug)]
pub struct Duel {
    /// The figure.
    pub along: Along,
    /// The least and the largest value that was tried.
    pub tried: (u64, u64),
    /// Every change of places between neighbouring powers of two.
    pub crossovers: Vec<Crossover>,
    /// Who leads at the least value; none where neither serves anything tried.
    pub leader: Option<StrategyFamily>,
}

/// The question held to a family, without a front.
pub fn held_to(question: &Problem, family: StrategyFamily) -> Problem {
    let mut held = question.clone();
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

/// What every family comes to.
pub fn families(question: &Problem) -> Vec<FamilyResult> {
    let each =
        StrategyFamily::EACH.into_iter().filter(|family| *family != StrategyFamily::Split || question.split);
    each.collect::<Vec<_>>()
        .into_par_iter()
        .map(|family| {
            let outcome = run(&held_to(question, family), &UNWATCHED);
            // Where all fits into device memory nothing is kept elsewhere.
            let spills =
                |found: &EvaluatedCandidate| family != StrategyFamily::Offload || spilled(question, found);
            let best = outcome.best.clone().filter(spills);
            let none = best.is_none().then(|| reason(&outcome, family));
            FamilyResult { family, best, none }
        })
        .collect()
}

fn spilled(question: &Problem, found: &EvaluatedCandidate) -> bool {
    found.candidate.evaluate(&crate::quantity::read::Plain, question, &mut ()).spilled.is_some()
}

fn reason(outcome: &Outcome, family: StrategyFamily) -> String {
    if outcome.best.is_some() {
        return "all fits without it".into();
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
        StrategyFamily::Offload => "no host memory or host link is known, or it is too small".into(),
        _ if census.shapes == 0 => "no such plan is legal here".into(),
        _ => "no load keeps the limits".into(),
    }
}

/// Whether `a` is better, of two bests under the same question.
fn leads(question: &Problem, a: &Option<EvaluatedCandidate>, b: &Option<EvaluatedCandidate>) -> Option<bool> {
    match (a, b) {
        (None, None) => None,
        (Some(_), None) => Some(true),
        (None, Some(_)) => Some(false),
        (Some(a), Some(b)) => Some(!before(&b.point, &a.point, &question.aims)),
    }
}

/// Powers of two that are tried on both sides of where the question stands.
const REACH: u32 = 4;

/// Where `other` takes over from `winner` or the other way round, along a figure that stands at `now`.
pub fn duel(
    question: &Problem,
    along: Along,
    now: u64,
    (winner, other): (StrategyFamily, StrategyFamily),
) -> Option<Duel> {
    let at = |value: u64| -> Option<Problem> {
        question.changed(match along {
            Along::Concurrency => Change::InFlight(value),
            Along::Prompt => Change::Prompt(value),
            Along::Purchase => Change::Purchase(value as f64 / now as f64),
        })
    };
    let leader = |value: u64| -> Option<StrategyFamily> {
        let question = at(value)?;
        let best = |family| run(&held_to(&question, family), &UNWATCHED).best;
        let (a, b) = rayon::join(|| best(winner), || best(other));
        leads(&question, &a, &b).map(|first| if first { winner } else { other })
    };
    let powers = (0..=2 * REACH).map(|power| (now << power) >> REACH);
    let mut values: Vec<u64> = powers.filter(|value| *value > 0 && at(*value).is_some()).collect();
    values.dedup();
    let (first, last) = (*values.first()?, *values.last()?);
    let known: Vec<(u64, Option<StrategyFamily>)> =
        values.into_par_iter().map(|value| (value, leader(value))).collect();
    let serving: Vec<(u64, StrategyFamily)> =
        known.iter().filter_map(|(value, leader)| Some((*value, (*leader)?))).collect();
    let mut crossovers = Vec::new();
    for pair in serving.windows(2) {
        let ((mut below, from), (mut above, to)) = (pair[0], pair[1]);
        if from == to {
            continue;
        }
        // To one part in a hundred: a step of one is no crossover of anything that is felt.
        while above - below > (above / 100).max(1) {
            let middle = below + (above - below) / 2;
            if leader(middle) == Some(from) { below = middle } else { above = middle }
        }
        crossovers.push(Crossover { below, at: above, from, to });
    }
    let leader = serving.first().map(|(_, family)| *family);
    Some(Duel { along, tried: (first, last), crossovers, leader })
}

/// Changes whose worth is told: a little more of everything.
fn changes(question: &Problem) -> Vec<Change> {
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
        if question.limit(metric).is_some() {
            changes.push(Change::Limit(metric, more));
        }
    }
    changes
}

/// What a little more of everything would be worth, each by a search of its own.
pub fn worths(question: &Problem) -> Vec<ChangeResult> {
    let changed = changes(question).into_iter().filter_map(|change| {
        let mut question = question.changed(change)?;
        question.axes.clear();
        Some((change, question))
    });
    changed
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|(change, question)| {
            let best = run(&question, &UNWATCHED).best;
            ChangeResult { change, best, question }
        })
        .collect()
}

/// The figures along which two families may change places, and where the question stands on each.
pub fn stands(question: &Problem, best: &EvaluatedCandidate) -> Vec<(Along, u64)> {
    let mut stands = Vec::new();
    if !matches!(question.traffic, Traffic::Rate(_)) {
        stands.push((Along::Concurrency, best.candidate.concurrency(&question.traffic)));
    }
    stands.push((Along::Prompt, question.stated.lengths.isl));
    let paid = question.aims.iter().any(|aim| aim.metric == Metric::UsdPerMtok);
    if let Some(crate::serving::economy::Bill::Owned(bill)) = &question.stated.bill
        && paid
        && bill.purchase.value >= 1.0
    {
        stands.push((Along::Purchase, bill.purchase.value.round() as u64));
    }
    stands
}

/// The objective's first figure of a deployment.
pub fn aimed(question: &Problem, found: &EvaluatedCandidate) -> Option<f64> {
    let value = found.point[place(question.aims.first()?.metric)];
    value.is_finite().then_some(value)
}
