//! Why the best is the best, from the plans that the search tried.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::plan;
use super::breakdown::{Breakdown, CLASSES};
use super::number::{
    change as signed, count, digits, format_metric, limit as spell, plain, requests, time, word,
};
use super::reporter::Reporter;
use super::result::Quantiles;
use super::robustness::{Robustness, robustness};
use super::split_case::{SplitCase, split_case};
use crate::plan::parallel::Phase;
use crate::quantity::read::Plain;
use crate::search::change::Change;
use crate::search::duel::{Along, Crossover, Duel};
use crate::search::family::StrategyFamily;
use crate::search::outcome::EvaluatedCandidate;
use crate::search::point::{before, place};
use crate::search::problem::Problem;
use crate::search::why::{ChangeResult, FamilyResult};
use crate::spec::objective::{Direction, Metric};

/// Why the best is the best.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// Whether disaggregated serving is worth it; null on one device.
    #[serde(default)]
    pub split: Option<SplitCase>,
    /// Summary in one or two sentences.
    pub sentence: String,
    /// The objective's first metric, as named in results.
    pub metric: String,
    /// The best of every family of strategies, the best first; families without one last.
    pub strategies: Vec<Strategy>,
    /// Crossovers between the best and the runner-up.
    pub crossovers: Vec<Crossing>,
    /// Sensitivity: the gain of single changes, each re-optimized.
    pub worth: Vec<Gain>,
    /// How often the best stays the best inside the prediction intervals; null without intervals.
    #[serde(default)]
    pub robustness: Option<Robustness>,
}

/// The best of a family.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Strategy {
    /// The family.
    pub family: StrategyFamily,
    /// Its best plan; null where it has none.
    pub plan: Option<String>,
    /// The same with its load and formats, as `--plan` reads it.
    #[serde(default)]
    pub notation: Option<String>,
    /// Format of the weights.
    pub weight_format: Option<String>,
    /// Concurrency.
    pub concurrency: Option<f64>,
    /// The objective's first metric.
    pub value: Option<f64>,
    /// Its interval; null for metrics and plans without one.
    #[serde(default)]
    pub interval: Option<Quantiles>,
    /// Odds that measured latencies meet all SLOs; null without SLOs or intervals.
    #[serde(default)]
    pub slo_odds: Option<f64>,
    /// Time to first token.
    pub ttft_ms: Option<f64>,
    /// Time per output token.
    pub tpot_ms: Option<f64>,
    /// Reason if it has none.
    pub none: Option<String>,
}

/// Two families along one parameter.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Crossing {
    /// The parameter.
    pub along: Along,
    /// Its value in the problem.
    pub now: u64,
    /// The smallest value tried.
    pub least: u64,
    /// The largest value tried.
    pub most: u64,
    /// The leader at the smallest value; null if neither is feasible at any value tried.
    pub leader: Option<StrategyFamily>,
    /// Every crossover between neighbouring powers of two.
    pub changes: Vec<Handover>,
}

/// A crossover.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Handover {
    /// The last value at which `from` leads.
    pub below: u64,
    /// The first at which `to` does.
    pub at: u64,
    /// The leader below.
    pub from: StrategyFamily,
    /// The leader above.
    pub to: StrategyFamily,
}

/// The gain of a change.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Gain {
    /// The change, in words.
    pub what: String,
    /// The objective's first metric with it; null if infeasible.
    pub value: Option<f64>,
    /// The plan with it.
    pub plan: Option<String>,
    /// Whether it improves the result.
    pub helps: bool,
}

pub(super) fn figure(metric: Metric, value: f64) -> f64 {
    value / metric.entry().scale
}

fn strategy(reporter: &Reporter<'_>, metric: Metric, tried: &FamilyResult) -> Strategy {
    let problem = reporter.problem();
    let best = tried.best.as_ref();
    let reported = best.map(|found| reporter.deployment(&found.candidate));
    let reported = reported.as_ref();
    let at = |metric: Metric| best.map(|found| found.point[place(metric)] * 1e3);
    Strategy {
        family: tried.family,
        plan: reported.map(|found| found.plan.label.clone()),
        notation: reported.map(|found| found.notation.clone()),
        weight_format: reported.map(|found| found.weight_format.clone()),
        concurrency: best.map(|found| found.candidate.in_flight(problem)),
        value: best
            .and_then(|found| problem.objective_value(&found.point))
            .map(|value| figure(metric, value)),
        interval: reported.and_then(|found| found.intervals.as_ref()?.get(metric)),
        slo_odds: reported.and_then(|found| Some(found.slo_odds.as_ref()?.all)),
        ttft_ms: at(Metric::Ttft),
        tpot_ms: at(Metric::Tpot),
        none: tried.none.clone(),
    }
}

/// The explanation of `best` from the plans tried.
pub fn why(
    problem: &Problem,
    best: &EvaluatedCandidate,
    mut tried: Vec<FamilyResult>,
    duels: &[(u64, Duel)],
    changes: &[ChangeResult],
    front: &[EvaluatedCandidate],
) -> Option<Why> {
    let metric = problem.objective.first()?.metric;
    tried.sort_by(|a, b| match (&a.best, &b.best) {
        (Some(x), Some(y)) => problem.by_objective(&x.point, &y.point),
        (x, y) => y.is_some().cmp(&x.is_some()),
    });
    let reporter = Reporter::new(problem);
    let winner = StrategyFamily::of(&best.candidate);
    let runner = tried.iter().filter(|one| one.family != winner).find_map(|one| one.best.as_ref());
    let crossovers: Vec<Crossing> = duels.iter().map(|(now, duel)| crossing(*now, duel)).collect();
    Some(Why {
        split: split_case(problem, metric, best, &tried, &crossovers),
        sentence: sentence(problem, metric, best, runner),
        metric: metric.entry().column.to_string(),
        strategies: tried.iter().map(|one| strategy(&reporter, metric, one)).collect(),
        crossovers,
        worth: changes.iter().map(|tried| gain(problem, metric, best, tried)).collect(),
        robustness: robustness(problem, best, front),
    })
}

fn crossing(now: u64, duel: &Duel) -> Crossing {
    let handover = |one: &Crossover| Handover { below: one.below, at: one.at, from: one.from, to: one.to };
    Crossing {
        along: duel.along,
        now,
        least: duel.tried.0,
        most: duel.tried.1,
        leader: duel.leader,
        changes: duel.crossovers.iter().map(handover).collect(),
    }
}

fn spoken(problem: &Problem, change: Change) -> String {
    let tenth = |factor: f64| format!("{} % more", plain((factor - 1.0) * 100.0));
    match change {
        Change::Memory(bytes) => format!("{} GB more memory per device", plain(bytes / 1e9)),
        Change::Bandwidth(factor) => format!("{} memory bandwidth", tenth(factor)),
        Change::Compute(factor) => format!("{} compute", tenth(factor)),
        Change::Links(factor) => format!("{} interconnect bandwidth", tenth(factor)),
        Change::Device if problem.cluster.nodes > 1 => "one more node".into(),
        Change::Device => "one more device".into(),
        Change::Limit(metric, more) => {
            let limit = problem.limit(metric).unwrap_or(0.0);
            format!("{} ≤ {} (+{})", word(metric), spell((limit + more) * 1e3), spell(more * 1e3))
        }
        Change::InFlight(requests) => count(requests, "concurrent request"),
        Change::Prompt(tokens) => format!("ISL of {}", count(tokens, "token")),
        Change::Purchase(factor) => format!("{} times the purchase price", plain(factor)),
    }
}

fn gain(problem: &Problem, metric: Metric, best: &EvaluatedCandidate, tried: &ChangeResult) -> Gain {
    let then = tried.best.as_ref();
    Gain {
        what: spoken(problem, tried.change),
        value: then
            .and_then(|found| tried.problem.objective_value(&found.point))
            .map(|value| figure(metric, value)),
        plan: then.map(|found| plan(&found.candidate).label),
        helps: then.is_some_and(|found| before(&found.point, &best.point, &problem.objective)),
    }
}

/// The advantage in words: `24 % more`, `12 % less`.
fn advantage(metric: Metric, winner: f64, other: f64) -> String {
    let share = match metric.entry().direction {
        Direction::Maximize => winner / other - 1.0,
        Direction::Minimize => 1.0 - winner / other,
    };
    let more = if metric.entry().direction == Direction::Maximize { "more" } else { "less" };
    // A ratio to 0 is undefined: two free plans are equal.
    if share.is_nan() || share < 0.0005 {
        "as much".to_string()
    } else {
        format!("{} % {more}", digits(share * 100.0))
    }
}

fn sentence(
    problem: &Problem,
    metric: Metric,
    best: &EvaluatedCandidate,
    runner: Option<&EvaluatedCandidate>,
) -> String {
    let scale = |found: &EvaluatedCandidate| problem.objective_value(&found.point).unwrap_or(f64::NAN);
    let name = |found: &EvaluatedCandidate| plan(&found.candidate).label;
    let unit = |value: f64| format_metric(metric, figure(metric, value));
    let gives = format!("{} gives {}", name(best), unit(scale(best)));
    let Some(runner) = runner else { return format!("{gives}; no other strategy is feasible.") };
    let (a, b) = (scale(best), scale(runner));
    // A plan that was simulated, or is simpler, may lead the optimum of the formulas.
    let lead = match (advantage(metric, a, b).as_str(), advantage(metric, b, a).as_str()) {
        ("as much", "as much") => format!("equal to the runner-up {}; later objectives decide", name(runner)),
        ("as much", _) => format!("the optimum of the formulas, {}, {}", name(runner), unit(b)),
        (share, _) => format!("{share} than the runner-up {} ({})", name(runner), unit(b)),
    };
    let step = |found: &EvaluatedCandidate| {
        let evaluation = found.candidate.evaluate(&Plain, problem, &mut ());
        let tpot = found.point[place(Metric::Tpot)];
        (evaluation.decode.total.value().min(tpot), tpot)
    };
    let ((own, tpot), (other, slower)) = (step(best), step(runner));
    let by = |found: &EvaluatedCandidate| Breakdown::of(problem, &found.candidate).by_class(Phase::Decode);
    let (mine, theirs) = (by(best), by(runner));
    let difference = |class| (mine.of(class) - theirs.of(class)).abs();
    let most = CLASSES.into_iter().max_by(|x, y| difference(*x).total_cmp(&difference(*y)));
    let class = most.map_or_else(String::new, |class| {
        format!(
            "; decode steps differ most in {} ({} against {})",
            class.name(),
            time(mine.of(class) * 1e3),
            time(theirs.of(class) * 1e3)
        )
    });
    format!(
        "{gives}, {lead}. With {}, TPOT is {}, {} of it prefill interference; the runner-up, with {}, \
         has {} and {}{class}.",
        format_args!("{} concurrent requests", requests(best.candidate.in_flight(problem))),
        time(tpot * 1e3),
        time((tpot - own) * 1e3),
        format_args!("{} concurrent requests", requests(runner.candidate.in_flight(problem))),
        time(slower * 1e3),
        time((slower - other) * 1e3),
    )
}

/// Change of the objective's metric, as signed percent.
pub fn moved(from: Option<f64>, to: Option<f64>) -> String {
    from.zip(to).map_or_else(|| "infeasible".to_string(), |(from, to)| signed(from, to))
}
