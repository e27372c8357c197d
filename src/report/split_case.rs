//! Whether disaggregated serving is worth it: the best disaggregated plan against the best aggregated one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::plan;
use super::number::{digits, format_metric, percent};
use super::robustness::robustness;
use super::table::grouped;
use super::why::{Crossing, figure, moved};
use crate::search::family::StrategyFamily;
use crate::search::outcome::EvaluatedCandidate;
use crate::search::problem::Problem;
use crate::search::why::FamilyResult;
use crate::spec::objective::Metric;

/// Whether to disaggregate, as far as the errors of predictions let it be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SplitWorth {
    /// The best disaggregated plan is ahead in 90 % of draws of the errors and more.
    Yes,
    /// It is ahead in 10 % of them and less, or there is none.
    No,
    /// The errors of both plans are too large to know.
    NotProvably,
}

/// The case for disaggregated serving.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SplitCase {
    /// Whether it is worth it.
    pub worth: SplitWorth,
    /// The same in sentences, with the figures that decide.
    pub sentence: String,
    /// The best disaggregated plan; null if there is none.
    pub split_plan: Option<String>,
    /// The best aggregated plan; null if there is none.
    pub aggregated_plan: Option<String>,
    /// The objective's first metric of the disaggregated plan over that of the aggregated one.
    pub ratio: Option<f64>,
    /// Share of draws of the errors in which the disaggregated plan is the better of both and meets the SLOs.
    pub odds_split: Option<f64>,
}

/// Share of draws from which one of two plans is ahead for certain, as far as 80 % intervals say.
const CERTAIN: f64 = 0.9;

/// The best of some families, and the reason of the first of them that has none.
fn best_of<'a>(
    problem: &Problem,
    best: &'a EvaluatedCandidate,
    tried: &'a [FamilyResult],
    split: bool,
) -> Result<&'a EvaluatedCandidate, Option<&'a str>> {
    if best.candidate.is_disaggregated() == split {
        return Ok(best);
    }
    let of = || tried.iter().filter(|one| (one.family == StrategyFamily::Split) == split);
    let plans = of().filter_map(|one| one.best.as_ref());
    let first = plans.min_by(|a, b| problem.by_objective(&a.point, &b.point));
    first.ok_or_else(|| of().find_map(|one| one.none.as_deref()))
}

/// The ranges of one parameter in which disaggregated plans lead, of those that were tried.
fn leads(one: &Crossing) -> Vec<String> {
    let mut from = one.least;
    let mut leader = one.leader;
    let mut found = vec![];
    let ends = one.changes.iter().map(|change| (change.below, change.at, Some(change.to)));
    for (end, next, to) in ends.chain([(one.most, one.most, None)]) {
        if leader == Some(StrategyFamily::Split) {
            found.push(format!("{} to {}", grouped(from), grouped(end)));
        }
        (from, leader) = (next, to);
    }
    found
}

/// Where disaggregated plans lead, in a sentence; empty where no crossover with them was searched for.
fn crossover_words(crossovers: &[Crossing]) -> String {
    let split = StrategyFamily::Split;
    let with_split = crossovers.iter().filter(|one| {
        one.leader == Some(split)
            || one.changes.iter().any(|change| change.from == split || change.to == split)
    });
    let words = with_split.map(|one| format!("{} {}", leads(one).join(" and "), one.along.unit()));
    let words: Vec<String> = words.collect();
    if words.is_empty() { String::new() } else { format!(" It leads with {}.", words.join(", and with ")) }
}

/// The case for disaggregated serving on several devices; `None` on one.
pub(super) fn split_case(
    problem: &Problem,
    metric: Metric,
    best: &EvaluatedCandidate,
    tried: &[FamilyResult],
    crossovers: &[Crossing],
) -> Option<SplitCase> {
    if problem.cluster.devices() < 2 {
        return None;
    }
    let label = |found: &EvaluatedCandidate| plan(&found.candidate).label;
    let none = |worth, sentence| SplitCase {
        worth,
        sentence,
        split_plan: None,
        aggregated_plan: None,
        ratio: None,
        odds_split: None,
    };
    let (split, aggregated) =
        match (best_of(problem, best, tried, true), best_of(problem, best, tried, false)) {
            (Ok(split), Ok(aggregated)) => (split, aggregated),
            (Ok(split), Err(_)) => {
                let sentence = "Yes: no aggregated plan meets the limits.".to_owned();
                return Some(SplitCase { split_plan: Some(label(split)), ..none(SplitWorth::Yes, sentence) });
            }
            (Err(reason), aggregated) => {
                let sentence = format!("No: {}.", reason.unwrap_or("no disaggregated plan meets the limits"));
                let aggregated_plan = aggregated.ok().map(label);
                return Some(SplitCase { aggregated_plan, ..none(SplitWorth::No, sentence) });
            }
        };
    let value = |found: &EvaluatedCandidate| problem.objective_value(&found.point);
    let (with, without) = (value(split)?, value(aggregated)?);
    let drawn = robustness(problem, aggregated, std::slice::from_ref(split));
    let odds_split = drawn.map(|drawn| drawn.rival.map_or(0.0, |rival| rival.wins));
    let worth = match odds_split {
        Some(odds) if odds >= CERTAIN => SplitWorth::Yes,
        Some(odds) if odds > 1.0 - CERTAIN => SplitWorth::NotProvably,
        Some(_) => SplitWorth::No,
        None if problem.by_objective(&split.point, &aggregated.point).is_lt() => SplitWorth::Yes,
        None => SplitWorth::No,
    };
    let word = match worth {
        SplitWorth::Yes => "Yes",
        SplitWorth::No => "No",
        SplitWorth::NotProvably => "Not provably",
    };
    let odds = odds_split.map_or_else(
        || "by the prediction itself".to_owned(),
        |odds| {
            format!(
                "it is the better of both, within the SLOs, in {} of draws of their errors",
                percent(odds)
            )
        },
    );
    let sentence = format!(
        "{word}: {} instead of {} ({}) by {} instead of {}; {odds}.{}",
        format_metric(metric, figure(metric, with)),
        digits(figure(metric, without)),
        moved(Some(without), Some(with)),
        label(split),
        label(aggregated),
        crossover_words(crossovers)
    );
    Some(SplitCase {
        worth,
        sentence,
        split_plan: Some(label(split)),
        aggregated_plan: Some(label(aggregated)),
        ratio: Some(with / without).filter(|ratio| ratio.is_finite()),
        odds_split,
    })
}
