//! The best placement of all, and the best that software starts.

use super::launch::{PlacedSolution, divides_freely, refusals};
use crate::report::place::build::placement_report;
use crate::search::placement::PlacementInfeasible;
use crate::search::placement::chain::Stage;
use crate::search::placement::evaluate::PlacementEvaluator;
use crate::search::placement::price::PlacementProblem;
use crate::search::placement::solve::{PlacementTime, SolvedPlacement, could_improve, solve_one};
use crate::search::run::Control;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::rig::ResolvedRig;

/// Maximum number of members whose orders are all tried: 13,699 of seven.
const MOST_ORDERED: usize = 7;
/// Maximum number of placements that are tried in the order of their objective until one is started.
const MOST_TRIED: usize = 64;

pub(super) struct FoundPlacement<'a> {
    /// Index of the rig, which differs from others in its runtimes.
    pub(super) rig: usize,
    pub(super) problem: &'a PlacementProblem,
    pub(super) solved: SolvedPlacement,
    /// Why no software starts it; empty where some does.
    pub(super) refused: Vec<String>,
}

/// The result of a search over every choice of runtimes and every way to share layers.
pub(super) struct FoundPlacements<'a> {
    /// The best that software starts; the best of all where it starts none.
    pub(super) chosen: FoundPlacement<'a>,
    /// The best of all, where no software starts it and another is chosen.
    pub(super) theoretical: Option<FoundPlacement<'a>>,
}

pub(super) struct PlacementSearch<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) aim: PlacementTime,
    pub(super) control: &'a Control<'a>,
}

/// Lower bounds over several searches, and their states.
#[derive(Clone, Copy)]
struct Bounds {
    bound: f64,
    cheap: f64,
    states: u64,
}

impl Bounds {
    const NONE: Bounds = Bounds { bound: f64::INFINITY, cheap: f64::INFINITY, states: 0 };

    fn add(&mut self, solved: &SolvedPlacement) {
        self.bound = self.bound.min(solved.bound);
        self.cheap = self.cheap.min(solved.cheap_bound);
        self.states += solved.states;
    }

    /// `solved` with these bounds.
    fn of(self, solved: SolvedPlacement) -> SolvedPlacement {
        let Bounds { bound, cheap, states } = self;
        SolvedPlacement {
            bound: bound.min(solved.seconds),
            cheap_bound: cheap.min(solved.seconds),
            states,
            ..solved
        }
    }
}

/// Problems without and with host memory that differ in nothing else.
fn questions(rigged: &ResolvedRig) -> impl Iterator<Item = [Option<&PlacementProblem>; 2]> {
    let each = rigged.problems.iter().enumerate();
    each.map(|(way, problem)| {
        let hosted = problem.members.iter().any(|member| member.host.is_some());
        [Some(problem), rigged.offloaded.get(way).filter(|_| !hosted)]
    })
}

/// Every placement in up to `most` stages of equally many layers, on the members in every order.
fn equal_stages(problem: &PlacementProblem, most: usize) -> Vec<Vec<Stage>> {
    let layers = problem.graph.layer_block.len();
    let counts = (1..=most.min(layers)).filter(|count| layers.is_multiple_of(*count));
    let placed = |members: Vec<usize>| {
        let each = layers / members.len();
        let stage = |(at, member): (usize, usize)| Stage { member, from: at * each, to: (at + 1) * each };
        members.into_iter().enumerate().map(stage).collect()
    };
    counts.flat_map(|count| orders(problem.members.len(), count)).map(placed).collect()
}

/// Every choice of `count` of `all` members, in every order.
fn orders(all: usize, count: usize) -> Vec<Vec<usize>> {
    (0..count).fold(vec![vec![]], |shorter: Vec<Vec<usize>>, _| {
        let longer = |order: Vec<usize>| {
            let others: Vec<usize> = (0..all).filter(|member| !order.contains(member)).collect();
            others.into_iter().map(move |member| [order.as_slice(), &[member]].concat())
        };
        shorter.into_iter().flat_map(longer).collect()
    })
}

/// Whether all its members are equally many devices.
fn is_even(problem: &PlacementProblem) -> bool {
    problem.members.windows(2).all(|pair| pair[0].devices == pair[1].devices)
}

impl<'a> PlacementSearch<'a> {
    /// The best placements on `rigs`, which differ in their runtimes.
    ///
    /// # Errors
    /// The outer error: a file of the catalogue is faulty. The inner one: nothing fits, and why on the first rig.
    pub(super) fn best(
        &self,
        rigs: &'a [ResolvedRig],
    ) -> Result<Result<FoundPlacements<'a>, PlacementInfeasible>, Error> {
        let (mut all, mut fault, mut stopped) = (Vec::new(), None, false);
        for (rig, rigged) in rigs.iter().enumerate() {
            for (way, pair) in questions(rigged).enumerate() {
                let mut least = f64::INFINITY;
                for problem in pair.into_iter().flatten() {
                    if !could_improve(problem, self.aim, least) {
                        continue;
                    }
                    match solve_one(problem, self.aim, true, self.control) {
                        Ok(solved) => {
                            least = solved.seconds;
                            all.push(FoundPlacement { rig, problem, solved, refused: vec![] });
                        }
                        Err(why) => {
                            stopped |= matches!(why, PlacementInfeasible::Stopped { .. });
                            // The reason is that of the first problem, with host memory where there is any.
                            if (rig, way) == (0, 0) || fault.is_none() {
                                fault = Some(why);
                            }
                        }
                    }
                }
            }
        }
        let undecided = if stopped { 0.0 } else { f64::INFINITY };
        all.sort_by(|a, b| a.solved.seconds.total_cmp(&b.solved.seconds));
        if all.is_empty() {
            let why = fault.unwrap_or(PlacementInfeasible::WholeLayers { held: None });
            return Ok(Err(if stopped { PlacementInfeasible::Stopped { bound: 0 } } else { why }));
        }
        self.divided(rigs, all, Bounds { bound: undecided, ..Bounds::NONE }).map(Ok)
    }

    /// The best of `all`, which come in the order of their objective, and the best that software starts.
    fn divided(
        &self,
        rigs: &[ResolvedRig],
        all: Vec<FoundPlacement<'a>>,
        none: Bounds,
    ) -> Result<FoundPlacements<'a>, Error> {
        let (mut every, mut started) = (none, none);
        all.iter().for_each(|found| every.add(&found.solved));
        let mut best: Option<FoundPlacement<'a>> = None;
        let mut chosen: Option<FoundPlacement<'a>> = None;
        for mut found in all {
            // A placement that software starts has one runtime and one degree: other problems have none that these lack.
            let uniform = rigs[found.rig].has_one_runtime() && is_even(found.problem);
            let beaten = chosen.as_ref().is_some_and(|known| known.solved.seconds <= found.solved.seconds);
            if beaten {
                if uniform {
                    started.add(&found.solved);
                }
                continue;
            }
            found.refused = self.refused(rigs, &found)?;
            if found.refused.is_empty() {
                started.add(&found.solved);
                chosen = Some(found);
                continue;
            }
            let nearest = if uniform { self.nearest(rigs, &found, &mut started)? } else { None };
            let better = |near: &FoundPlacement| {
                chosen.as_ref().is_none_or(|known| near.solved.seconds < known.solved.seconds)
            };
            chosen = nearest.filter(better).or(chosen);
            best.get_or_insert(found);
        }
        let bounded = |bounds: Bounds, found: FoundPlacement<'a>| FoundPlacement {
            solved: bounds.of(found.solved),
            ..found
        };
        Ok(match (chosen, best) {
            (Some(chosen), None) => FoundPlacements { chosen: bounded(every, chosen), theoretical: None },
            (Some(chosen), Some(best)) => {
                FoundPlacements { chosen: bounded(started, chosen), theoretical: Some(bounded(every, best)) }
            }
            (None, Some(best)) => FoundPlacements { chosen: bounded(every, best), theoretical: None },
            (None, None) => return Err(Error::new("placement", "none", "one", "name another rig")),
        })
    }

    /// The best placement of a problem that software starts, where it does not start the best of all: without devices
    /// that hold the same layers, else in equal stages, else on one device. Adds its lower bound to `bounds`.
    fn nearest(
        &self,
        rigs: &[ResolvedRig],
        found: &FoundPlacement<'a>,
        bounds: &mut Bounds,
    ) -> Result<Option<FoundPlacement<'a>>, Error> {
        let mut least = found.solved.clone();
        if found.solved.copies.iter().any(|copies| !copies.is_empty())
            && let Ok(solved) = solve_one(found.problem, self.aim, false, self.control)
        {
            least = solved.clone();
            let mut single =
                FoundPlacement { rig: found.rig, problem: found.problem, solved, refused: vec![] };
            single.refused = self.refused(rigs, &single)?;
            if single.refused.is_empty() {
                bounds.add(&least);
                return Ok(Some(single));
            }
        }
        let evaluator = PlacementEvaluator::new(found.problem, self.aim);
        let free = divides_freely(self.catalog, &rigs[found.rig])?;
        let members = found.problem.members.len();
        let (stages, complete) = match (free, members <= MOST_ORDERED) {
            (true, _) => (equal_stages(found.problem, 1), false),
            (false, true) => (equal_stages(found.problem, members), true),
            (false, false) => (equal_stages(found.problem, 1), false),
        };
        let solved = stages.iter().filter_map(|stages| evaluator.to_solved(stages, None, None).ok());
        let mut solved: Vec<SolvedPlacement> = solved.collect();
        solved.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        // All that the runtime starts was listed: the first is the optimum.
        let bound =
            if complete { solved.first().map_or(f64::INFINITY, |first| first.seconds) } else { least.bound };
        bounds.add(&SolvedPlacement { bound, ..least.clone() });
        for one in solved.into_iter().take(MOST_TRIED) {
            let solved = SolvedPlacement { kinds: least.kinds, others: least.others.clone(), ..one };
            let mut near = FoundPlacement { rig: found.rig, problem: found.problem, solved, refused: vec![] };
            near.refused = self.refused(rigs, &near)?;
            if near.refused.is_empty() {
                return Ok(Some(near));
            }
        }
        Ok(None)
    }

    fn refused(&self, rigs: &[ResolvedRig], found: &FoundPlacement) -> Result<Vec<String>, Error> {
        let report = placement_report(found.problem, &found.solved);
        let solution = PlacedSolution { problem: found.problem, solved: &found.solved, report: &report };
        refusals(self.catalog, &rigs[found.rig], &solution)
    }
}
