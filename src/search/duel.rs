//! Crossovers between two strategy families along a parameter: which of them leads at each value.
//!
//! Only the order of the two is needed, so a family that is behind a known deployment of the other is not solved.

use super::candidate::Candidate;
use super::change::Change;
use super::family::StrategyFamily;
use super::hint::{above, known_point};
use super::layouts::Layouts;
use super::outcome::EvaluatedCandidate;
use super::point::{Point, before};
use super::problem::{Problem, Traffic};
use super::run::Control;
use super::why::restricted_to;
use crate::spec::objective::Metric;

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

impl Along {
    /// The unit of its values, in words.
    pub fn unit(self) -> &'static str {
        match self {
            Along::Concurrency => "concurrent requests",
            Along::Prompt => "prompt tokens",
            Along::Purchase => "USD purchase price per device",
        }
    }

    /// The change of a problem with the current value `now` to another value.
    pub fn change(self, now: u64, value: u64) -> Change {
        match self {
            Along::Concurrency => Change::InFlight(value),
            Along::Prompt => Change::Prompt(value),
            Along::Purchase => Change::Purchase(value as f64 / now as f64),
        }
    }
}

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
    pub along: Along,
    pub tried: (u64, u64),
    /// Every crossover between neighbouring powers of two.
    pub crossovers: Vec<Crossover>,
    /// The better family at the smallest value; `None` where neither is feasible at any value tried.
    pub leader: Option<StrategyFamily>,
}

/// Powers of two that are tried below and above the current value.
const REACH: u32 = 4;

/// A deployment of each family that was good at a value nearby; `None` where none is known.
type KnownDeployments = [Option<Candidate>; 2];

/// Two families, and what their searches share.
struct Contest<'a> {
    families: [StrategyFamily; 2],
    layouts: &'a Layouts,
    control: &'a Control<'a>,
}

impl Contest<'_> {
    /// The index of the family with the better optimum, the first of equals; `None` where neither is feasible. Replaces what
    /// is known by what is found.
    fn leader(&self, problem: &Problem, known: &mut KnownDeployments) -> Option<usize> {
        let restricted = self.families.map(|family| restricted_to(problem, family));
        let mut points = [0, 1].map(|of| known_point(&restricted[of], known[of].as_ref()?));
        let mut search = |of: usize, floor: Option<&Point>| {
            let found = above(&restricted[of], floor, self.layouts, self.control).best?;
            known[of] = Some(found.candidate);
            Some(found.point)
        };
        let leading = first(problem, &points).unwrap_or(0);
        let trailing = 1 - leading;
        // A family without a deployment as good as a known one of the other is behind its optimum too.
        points[trailing] = search(trailing, points[leading].as_ref());
        if points[leading].is_none() || first(problem, &points) != Some(leading) {
            points[leading] = search(leading, points[trailing].as_ref());
        }
        first(problem, &points)
    }
}

/// The index of the better of two points, the first of equals.
fn first(problem: &Problem, points: &[Option<Point>; 2]) -> Option<usize> {
    match points {
        [None, None] => None,
        [Some(_), None] => Some(0),
        [None, Some(_)] => Some(1),
        [Some(a), Some(b)] => Some(usize::from(before(b, a, &problem.objective))),
    }
}

/// Crossovers between two families along a parameter with the current value `now`, where `bests` are their best deployments.
pub fn duel(
    problem: &Problem,
    (along, now): (Along, u64),
    bests: [(StrategyFamily, &EvaluatedCandidate); 2],
    layouts: &Layouts,
    control: &Control,
) -> Option<Duel> {
    let families = bests.map(|(family, _)| family);
    let contest = Contest { families, layouts, control };
    let at = |value: u64| problem.with_change(along.change(now, value));
    let powers = (0..=2 * REACH).map(|power| (now << power) >> REACH);
    let mut values: Vec<u64> = powers.filter(|value| *value > 0 && at(*value).is_some()).collect();
    values.dedup();
    let tried = (*values.first()?, *values.last()?);
    // More requests need more memory, and latencies never fall with the load. A longer prompt needs more memory too.
    let stays_infeasible = match along {
        Along::Concurrency => true,
        Along::Prompt => problem.limits.is_empty() && !matches!(problem.traffic, Traffic::Rate(_)),
        Along::Purchase => false,
    };
    // From the current value outwards: each value starts from what the one before it found.
    let outwards = |values: Vec<u64>| {
        let mut known: KnownDeployments = bests.map(|(_, best)| Some(best.candidate.clone()));
        let mut led = Vec::new();
        for value in values {
            match at(value).and_then(|problem| contest.leader(&problem, &mut known)) {
                Some(leader) => led.push((value, leader, known.clone())),
                None if stays_infeasible && value > now => break,
                None => {}
            }
        }
        led
    };
    let (above, below): (Vec<u64>, Vec<u64>) = values.into_iter().partition(|value| *value >= now);
    let (below, above) = rayon::join(|| outwards(below.into_iter().rev().collect()), || outwards(above));
    let feasible: Vec<_> = below.into_iter().rev().chain(above).collect();
    let mut crossovers = Vec::new();
    for pair in feasible.windows(2) {
        let ((mut below, from, mut known), (mut above, to, _)) = (pair[0].clone(), pair[1].clone());
        if from == to {
            continue;
        }
        // To within 1 %: a finer crossover has no practical effect. A stopped search has no leader: the caller drops it.
        while !(control.stop)() && above - below > (above / 100).max(1) {
            let middle = below + (above - below) / 2;
            let leader = at(middle).and_then(|problem| contest.leader(&problem, &mut known));
            if leader == Some(from) { below = middle } else { above = middle }
        }
        crossovers.push(Crossover { below, at: above, from: families[from], to: families[to] });
    }
    let leader = feasible.first().map(|(_, leader, _)| families[*leader]);
    Some(Duel { along, tried, crossovers, leader })
}

/// The parameters along which two families may cross over, with the current values.
pub fn parameters(problem: &Problem, best: &EvaluatedCandidate) -> Vec<(Along, u64)> {
    let mut parameters = Vec::new();
    if !matches!(problem.traffic, Traffic::Rate(_)) {
        parameters.push((Along::Concurrency, best.candidate.concurrency(&problem.traffic)));
    }
    parameters.push((Along::Prompt, problem.workload.lengths.isl));
    let paid = problem.objective.iter().any(|term| term.metric == Metric::UsdPerMtok);
    if let Some(crate::serving::economy::Bill::Owned(bill)) = &problem.workload.bill
        && paid
        && bill.purchase.value >= 1.0
    {
        parameters.push((Along::Purchase, bill.purchase.value.round() as u64));
    }
    parameters
}
