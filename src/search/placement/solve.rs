//! From questions to the best placement with its certificate: one programme for each aim.
//!
//! Knows which programme answers what, not how they work.

use super::baseline::{self, Rule};
use super::chain::{Hosts, Stage};
use super::price::{Priced, Prices, Question, Work};
use super::sum::Sum;
use super::{Placement, Refusal, groups, least_slowest, least_sum, refusal};
use crate::search::placement::peak::{MOST_LAYERS, Peak};

/// What is sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// The least time of a decode step, all requests in it together.
    Latency,
    /// The least time of one request: its prompt and its answer.
    Request,
    /// The most tokens a second, requests in as many micro-batches as there are stages.
    Throughput,
}

/// A placement that nothing beats, or by how much something might.
#[derive(Clone, Debug)]
pub struct Solved {
    /// Which of the questions it answers.
    pub way: usize,
    /// Where the layers are.
    pub stages: Vec<Stage>,
    /// Seconds: of a step, a request, or the cycle in which every request gets a token.
    pub seconds: f64,
    /// No placement takes less, by the programme.
    pub bound: f64,
    /// Nor less than this, by an argument of its own; none is known for cycles shorter than their requests.
    pub cheap_bound: f64,
    /// Micro-batches in flight, and requests in each.
    pub batches: (u64, u64),
    /// States that the programmes looked at.
    pub states: u64,
    /// Unlike kinds of members.
    pub kinds: usize,
    /// What splits by memory alone would take.
    pub others: Vec<(Rule, Option<(f64, Vec<Stage>)>)>,
}

impl Solved {
    /// Whether the bound is met.
    pub fn is_optimal(&self) -> bool {
        self.seconds <= self.bound * (1.0 + 1e-12)
    }
}

/// Rules that an optimum is compared with.
const RULES: [Rule; 3] = [Rule::Fewest, Rule::All, Rule::BackToFront];

/// The best placement over all `questions`, which differ in how members are put together.
///
/// # Errors
/// None has any; why the first has none.
pub fn solve(questions: &[Question], aim: Aim) -> Result<Solved, Refusal> {
    let mut best: Option<Solved> = None;
    let (mut states, mut first, mut bound, mut cheap) = (0, None, f64::INFINITY, f64::INFINITY);
    for (way, question) in questions.iter().enumerate() {
        let prices = Prices::new(question);
        match one(&prices, aim) {
            Ok(found) => {
                states += found.states;
                bound = bound.min(found.bound);
                cheap = cheap.min(found.cheap_bound);
                if best.as_ref().is_none_or(|best| found.seconds < best.seconds) {
                    best = Some(Solved { way, ..found });
                }
            }
            Err(why) => {
                first.get_or_insert(why);
            }
        }
    }
    let found = best.ok_or_else(|| first.unwrap_or(Refusal::WholeLayers { held: None }))?;
    Ok(Solved { states, bound, cheap_bound: cheap, ..found })
}

fn one(prices: &Prices<'_>, aim: Aim) -> Result<Solved, Refusal> {
    let concurrency = prices.question.concurrency;
    match aim {
        Aim::Latency => whole(prices, Work::Token(concurrency), (1, concurrency)),
        Aim::Request => whole(prices, Work::Request, (1, 1)),
        Aim::Throughput => cycle(prices),
    }
}

/// The least sum.
fn whole(prices: &Prices<'_>, work: Work, batches: (u64, u64)) -> Result<Solved, Refusal> {
    let priced = prices.chain(work);
    let Placement { stages, ticks, bound, cheap_bound, states, kinds } = least_sum(&priced.chain)?;
    let cost = |stages: &[Stage]| priced.chain.sum(stages).ok();
    let other = |rule: Rule| {
        let held = baseline::held(&priced.chain, rule, cost);
        (rule, held.map(|(ticks, stages)| (priced.seconds(ticks), stages)))
    };
    Ok(Solved {
        way: 0,
        stages,
        seconds: priced.seconds(ticks),
        bound: priced.seconds(bound),
        cheap_bound: priced.seconds(cheap_bound),
        batches,
        states,
        kinds,
        others: RULES.into_iter().map(other).collect(),
    })
}

/// Micro-batches that so many stages keep in flight, and requests in each.
fn batches(concurrency: u64, stages: usize) -> (u64, u64) {
    let flying = concurrency.min(stages as u64).max(1);
    (flying, concurrency.div_ceil(flying))
}

/// Seconds in which every request gets a token.
fn cycle_of(priced: &Priced, stages: &[Stage], flying: u64) -> Option<f64> {
    let each = priced.chain.slowest(stages).ok()?;
    let sum = priced.chain.sum(stages).ok()?;
    Some(priced.seconds(sum.max(flying * each)))
}

/// The shortest cycle, over every number of stages.
fn cycle(prices: &Prices<'_>) -> Result<Solved, Refusal> {
    let question = prices.question;
    let layers = question.graph.layer_block.len();
    let most = question.offers.len().min(layers);
    let mut best: Option<Solved> = None;
    let (mut bound, mut cheap, mut looked, mut other) = (f64::INFINITY, f64::INFINITY, 0, Vec::new());
    let mut chains: Vec<(u64, Priced)> = Vec::new();
    for stages in 1..=most {
        let (flying, each) = batches(question.concurrency, stages);
        if !chains.iter().any(|(of, _)| *of == each) {
            chains.push((each, prices.chain(Work::Token(each))));
        }
        let Some((_, priced)) = chains.iter().find(|(of, _)| *of == each) else { continue };
        other.extend(RULES.iter().flat_map(|&rule| {
            let placed = baseline::placements(&priced.chain, rule);
            let of_size = placed.into_iter().filter(move |placed| placed.len() == stages);
            of_size.filter_map(move |placed| Some((rule, cycle_of(priced, &placed, flying)?, placed)))
        }));
        cheap = cheap.min(priced.seconds(super::bound::slowest(&priced.chain, Some(stages))) * flying as f64);
        let short = flying < stages as u64;
        let below = match (&best, short) {
            (Some(best), false) => (best.seconds / priced.tick / flying as f64).ceil() as u64,
            _ => u64::MAX,
        };
        let found = least_slowest(&priced.chain, stages, below)?;
        let kinds = found.as_ref().map(|found| found.kinds);
        looked += found.as_ref().map_or(0, |found| found.states);
        let mut candidates: Vec<Vec<Stage>> = found.iter().map(|found| found.stages.clone()).collect();
        let mut least = found.map_or(f64::INFINITY, |found| priced.seconds(flying * found.ticks));
        if short && least < f64::INFINITY {
            // Fewer requests than stages: a request's own way may be longer than what the slowest stage asks for.
            let groups = groups(&priced.chain)?;
            let programme = Sum::new(&priced.chain, &groups, u64::MAX);
            let sized = (1..groups.states).filter(|&state| groups.total(state) == stages);
            let shortest = sized.filter_map(|state| Some((programme.whole(state)?.0, state))).min();
            if let Some((ticks, state)) = shortest {
                candidates.push(programme.stages(state));
                least = least.max(priced.seconds(ticks));
            }
            looked += programme.looked;
        }
        bound = bound.min(least);
        for stages in candidates {
            let Some(seconds) = cycle_of(priced, &stages, flying) else { continue };
            if best.as_ref().is_none_or(|best| seconds < best.seconds) {
                best = Some(Solved {
                    way: 0,
                    stages,
                    seconds,
                    bound: seconds,
                    cheap_bound: 0.0,
                    batches: (flying, each),
                    states: 0,
                    kinds: kinds.unwrap_or_default(),
                    others: vec![],
                });
            }
        }
    }
    let Some(best) = best else {
        let priced = prices.chain(Work::Token(1));
        return Err(refusal(&priced.chain, &groups(&priced.chain)?));
    };
    let others = RULES.map(|rule| {
        let held = other.iter().find(|(of, ..)| *of == rule);
        (rule, held.map(|(_, seconds, stages)| (*seconds, stages.clone())))
    });
    let bound = bound.min(best.seconds);
    Ok(Solved { bound, cheap_bound: cheap.min(best.seconds), states: looked, others: others.into(), ..best })
}

/// Whether anything fits at all.
pub fn fits(question: &Question) -> bool {
    let priced = Prices::new(question).chain(Work::Token(question.concurrency));
    match groups(&priced.chain) {
        Ok(groups) if priced.chain.layers <= MOST_LAYERS => Peak::new(&priced.chain, &groups).any().is_some(),
        _ => least_sum(&priced.chain).is_ok(),
    }
}

/// Seconds of each stage of a placement with its way onward.
pub fn stage_seconds(priced: &Priced, stages: &[Stage], hosts: Hosts) -> Option<Vec<f64>> {
    let ticks = priced.chain.stages(stages, hosts).ok()?;
    Some(ticks.into_iter().map(|ticks| priced.seconds(ticks)).collect())
}
