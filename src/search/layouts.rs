//! Every instance that a problem allows, prepared. The stage layouts of a pipeline are shared by all stage counts,
//! cuts and formats.
//!
//! Independent of load: [`super::shape`] checks whether an instance holds any requests.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::outcome::Census;
use super::problem::Problem;
use super::shape::{cuts, same_plans};
use crate::plan::enumerate::{Plans, enumerate};
use crate::plan::parallel::ParallelPlan;
use crate::serving::instance::Instance;

/// The results of `make` for every instance, by index of its formats, ordered by plans, plainest first, formats and cuts. Illegal
/// plans are counted.
pub fn each<T: Send>(
    problem: &Problem,
    census: &mut Census,
    make: impl Fn(usize, Instance) -> T + Sync,
) -> Vec<T> {
    each_until(problem, census, &|| false, make)
}

/// The same until `stop`; what is left out then is neither made nor counted.
pub fn each_until<T: Send>(
    problem: &Problem,
    census: &mut Census,
    stop: &(dyn Fn() -> bool + Sync),
    make: impl Fn(usize, Instance) -> T + Sync,
) -> Vec<T> {
    let mut stages: BTreeMap<ParallelPlan, Vec<(usize, usize, ParallelPlan)>> = BTreeMap::new();
    for (place, (formats, plan)) in legal(problem, census).into_iter().enumerate() {
        stages.entry(ParallelPlan { pp: 1, ..plan }).or_default().push((place, formats, plan));
    }
    // The cuts of a pipeline depend only on its number of stages.
    let mut cut: BTreeMap<u64, Vec<Vec<u32>>> = BTreeMap::new();
    for (_, _, plan) in stages.values().flatten() {
        cut.entry(plan.pp).or_insert_with(|| cuts(problem, *plan));
    }
    let (graph, tiers) = (&problem.graph, problem.tiers());
    let whole = vec![graph.layer_block.len() as u32];
    let stages: Vec<_> = stages.into_iter().collect();
    let made = stages.into_par_iter().flat_map_iter(|(stage, members)| {
        let one = Instance::new(graph, stage, whole.clone(), tiers);
        let (make, cut) = (&make, &cut);
        let mut made = Vec::new();
        for (place, formats, plan) in members {
            if stop() {
                break;
            }
            for cut in &cut[&plan.pp] {
                made.push((place, make(formats, one.piped(graph, plan.pp, cut.clone(), tiers))));
            }
        }
        made
    });
    let mut made: Vec<(usize, T)> = made.collect();
    made.sort_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, one)| one).collect()
}

/// Every legal plan in every format pair, the plainest first: of equal deployments the first is kept.
fn legal(problem: &Problem, census: &mut Census) -> Vec<(usize, ParallelPlan)> {
    let mut known: Vec<(usize, Plans)> = Vec::new();
    let mut legal: Vec<(usize, ParallelPlan)> = Vec::new();
    for (index, formats) in problem.formats.iter().enumerate() {
        let same = |other: usize| {
            let other = &problem.formats[other];
            same_plans(other, formats) && (other.kv == formats.kv || !problem.runtime.read_kv())
        };
        let alike = known.iter().position(|(other, _)| same(*other));
        let at = alike.unwrap_or_else(|| {
            let plans = enumerate(&problem.graph, &problem.legal_limits(formats));
            plans.illegal.iter().for_each(|(kind, (count, example))| census.refuse(kind, *count, example));
            known.push((index, plans));
            known.len() - 1
        });
        let admitted = known[at].1.legal.iter().filter(|plan| problem.family.admits(plan));
        legal.extend(admitted.map(|plan| (index, *plan)));
    }
    legal.sort_by_key(|(formats, plan)| (plan.plainness(), *formats));
    legal
}
