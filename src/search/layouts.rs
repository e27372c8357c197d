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
use crate::serving::instance::{Instance, PipelineCut};

/// Plans of one stage, in every number of stages and format pair.
struct StagePlans {
    stage: ParallelPlan,
    /// Place in the order of all plans, index of the format pair, and plan.
    plans: Vec<(usize, usize, ParallelPlan)>,
}

/// Instances that are yet to be laid out, stage by stage.
pub struct Layouts<'p> {
    problem: &'p Problem,
    stages: Vec<StagePlans>,
    /// The cuts of a pipeline, which depend only on its number of stages.
    cuts: BTreeMap<u64, Vec<PipelineCut>>,
    plans: usize,
}

/// The place of an instance in the order of all: plans, plainest first, formats and cuts.
pub type InstancePlace = usize;

/// More than the cuts of a pipeline.
const CUTS: usize = 4;

impl<'p> Layouts<'p> {
    /// Every legal plan. Illegal ones are counted.
    pub fn new(problem: &'p Problem, census: &mut Census) -> Layouts<'p> {
        let legal = legal(problem, census);
        let mut cuts_of = BTreeMap::new();
        let mut numbers: BTreeMap<ParallelPlan, usize> = BTreeMap::new();
        let mut stages: Vec<StagePlans> = Vec::new();
        let plans = legal.len();
        for (place, (formats, plan)) in legal.into_iter().enumerate() {
            let laid = |stages| PipelineCut::new(&problem.graph, stages);
            cuts_of.entry(plan.pp).or_insert_with(|| cuts(problem, plan).into_iter().map(laid).collect());
            let stage = ParallelPlan { pp: 1, ..plan };
            let number = *numbers.entry(stage).or_insert(stages.len());
            if number == stages.len() {
                stages.push(StagePlans { stage, plans: vec![] });
            }
            stages[number].plans.push((place, formats, plan));
        }
        Layouts { problem, stages, cuts: cuts_of, plans }
    }

    /// Number of stages.
    pub fn stages(&self) -> usize {
        self.stages.len()
    }

    /// More than the place of any instance.
    pub fn places(&self) -> InstancePlace {
        self.plans * CUTS
    }

    /// Number of instances of a stage.
    pub fn count(&self, stage: usize) -> usize {
        self.stages[stage].plans.iter().map(|(.., plan)| self.cuts[&plan.pp].len()).sum()
    }

    /// Lays out the instances of a stage, one after the other, with the index of their formats. Returns how many
    /// `each` took: it returns whether to go on.
    pub fn each(
        &self,
        stage: usize,
        mut each: impl FnMut(InstancePlace, usize, Instance) -> bool,
    ) -> usize {
        let (graph, tiers) = (&self.problem.graph, self.problem.tiers());
        let StagePlans { stage, plans } = &self.stages[stage];
        let whole = vec![graph.layer_block.len() as u32];
        let one = Instance::new(graph, *stage, whole, tiers);
        let mut taken = 0;
        for (place, formats, plan) in plans {
            for (at, cut) in self.cuts[&plan.pp].iter().enumerate() {
                let instance = one.piped(graph, cut, tiers);
                if !each(place * CUTS + at, *formats, instance) {
                    return taken;
                }
                taken += 1;
            }
        }
        taken
    }
}

/// The results of `make` for every instance, by index of its formats, ordered by plans, plainest first, formats and cuts.
/// Illegal plans are counted.
pub fn each<T: Send>(
    problem: &Problem,
    census: &mut Census,
    make: impl Fn(usize, Instance) -> T + Sync,
) -> Vec<T> {
    let layouts = Layouts::new(problem, census);
    let made = (0..layouts.stages()).into_par_iter().flat_map_iter(|stage| {
        let mut made = Vec::new();
        layouts.each(stage, |place, formats, instance| {
            made.push((place, make(formats, instance)));
            true
        });
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
    legal.sort_by_cached_key(|(formats, plan)| (plan.plainness(), *formats));
    legal
}
