//! Every instance that a problem allows, prepared. The stage layouts of a pipeline are shared by all stage counts,
//! cuts and formats.
//!
//! Independent of load: [`super::shape`] checks whether an instance holds any requests.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::outcome::Census;
use super::problem::{Problem, Traffic};
use super::shape::cuts;
use crate::plan::enumerate::{Plans, enumerate_until};
use crate::plan::parallel::ParallelPlan;
use crate::serving::instance::{Instance, PipelineCut};

/// Plans of one stage, in every number of stages and format pair.
struct StagePlans {
    stage: ParallelPlan,
    /// Place in the order of all plans, index of the format pair, and plan.
    plans: Vec<(usize, usize, ParallelPlan)>,
}

/// A cut of a pipeline, and the formats in which it is searched, by their index.
struct FormatCut {
    cut: PipelineCut,
    formats: Vec<bool>,
}

/// The legal instances of a problem, sharded stage by stage as they are needed. They depend on the model, the devices, the
/// formats and the rules of the runtime, so that searches that differ in nothing else share them.
pub struct Layouts {
    stages: Vec<StagePlans>,
    /// The cuts of a pipeline by its number of stages, of all formats.
    cuts: BTreeMap<u64, Vec<FormatCut>>,
    plans: usize,
    illegal: Census,
    /// The instance of each stage alone, where it is kept for other searches.
    kept: Option<Vec<OnceLock<Arc<Instance>>>>,
    shared: bool,
    /// Whether these are all: no stop ended the enumeration.
    whole: bool,
    /// The layouts of one unit of each tier below the outermost.
    units: Vec<OnceLock<Layouts>>,
}

/// The place of an instance in the order of all: plans, plainest first, formats and cuts.
pub type InstancePlace = usize;

/// More than the cuts of a pipeline.
const CUTS: usize = 5;
/// Maximum number of stages that are kept for other searches: some 40 kB each.
const MOST_KEPT: usize = 512;

impl Layouts {
    pub fn new(problem: &Problem) -> Layouts {
        Layouts::until(problem, &|| false)
    }

    /// Every legal plan; none of them where `stop` ends the enumeration.
    pub fn until(problem: &Problem, stop: &dyn Fn() -> bool) -> Layouts {
        let mut illegal = Census::default();
        let found = legal(problem, &mut illegal, stop);
        let (legal, whole) = found.map_or((vec![], false), |legal| (legal, true));
        let mut cuts_of = BTreeMap::new();
        let mut numbers: BTreeMap<ParallelPlan, usize> = BTreeMap::new();
        let mut stages: Vec<StagePlans> = Vec::new();
        let plans = legal.len();
        for (place, (formats, plan)) in legal.into_iter().enumerate() {
            cuts_of.entry(plan.pp).or_insert_with(|| format_cuts(problem, plan.pp));
            let stage = ParallelPlan { pp: 1, ..plan };
            let number = *numbers.entry(stage).or_insert(stages.len());
            if number == stages.len() {
                stages.push(StagePlans { stage, plans: vec![] });
            }
            stages[number].plans.push((place, formats, plan));
        }
        let units = problem.cluster.tiers.iter().skip(1).map(|_| OnceLock::new()).collect();
        Layouts { stages, cuts: cuts_of, plans, illegal, kept: None, shared: false, whole, units }
    }

    /// The sharded stages are kept for other searches, if they are not too many.
    pub fn shared(problem: &Problem) -> Layouts {
        Layouts::shared_until(problem, &|| false)
    }

    /// None of them where `stop` ends the enumeration.
    pub fn shared_until(problem: &Problem, stop: &dyn Fn() -> bool) -> Layouts {
        let layouts = Layouts::until(problem, stop);
        let few = layouts.stages() <= MOST_KEPT;
        let kept = few.then(|| layouts.stages.iter().map(|_| OnceLock::new()).collect());
        Layouts { kept, shared: true, ..layouts }
    }

    /// The layouts of one unit of a tier, of which `problem` is the problem. Each share of given traffic is a search.
    pub fn unit(&self, tier: usize, problem: &Problem, stop: &dyn Fn() -> bool) -> &Layouts {
        let shared = self.shared || problem.traffic != Traffic::Free;
        let lay =
            || if shared { Layouts::shared_until(problem, stop) } else { Layouts::until(problem, stop) };
        self.units[tier].get_or_init(lay)
    }

    pub fn is_whole(&self) -> bool {
        self.whole
    }

    pub fn count_illegal(&self, census: &mut Census) {
        census.add(self.illegal.clone());
    }

    pub fn stages(&self) -> usize {
        self.stages.len()
    }

    /// More than the place of any instance.
    pub fn places(&self) -> InstancePlace {
        self.plans * CUTS
    }

    /// Number of instances of a stage.
    pub fn count(&self, stage: usize) -> usize {
        let cuts = |(_, formats, plan): &(usize, usize, ParallelPlan)| {
            self.cuts[&plan.pp].iter().filter(|cut| cut.formats[*formats]).count()
        };
        self.stages[stage].plans.iter().map(cuts).sum()
    }

    /// Lays out the instances of a stage that the family of the problem admits, one after the other, with the index of
    /// their formats. `each` returns whether to go on; where it did not, the number of those before is returned.
    pub fn each(
        &self,
        problem: &Problem,
        stage: usize,
        mut each: impl FnMut(InstancePlace, usize, Arc<Instance>) -> bool,
    ) -> Option<usize> {
        let (graph, tiers) = (&problem.graph, problem.tiers());
        let StagePlans { stage: plan, plans } = &self.stages[stage];
        let whole = || Arc::new(Instance::new(graph, *plan, vec![graph.layer_block.len() as u32], tiers));
        let one = match &self.kept {
            Some(kept) => kept[stage].get_or_init(whole).clone(),
            None => whole(),
        };
        let piped = |pp: u64| {
            let piped = |of: &FormatCut| Arc::new(one.piped(graph, &of.cut, tiers));
            self.cuts[&pp].iter().map(piped).collect::<Vec<_>>()
        };
        // Plans of one stage differ in the number of stages; all formats share the instances.
        let mut current: (u64, Vec<Arc<Instance>>) = (0, vec![]);
        let mut taken = 0;
        for (place, formats, plan) in plans.iter().filter(|(.., plan)| problem.family.admits(plan)) {
            if current.0 != plan.pp {
                current = (plan.pp, piped(plan.pp));
            }
            let cuts = current.1.iter().zip(&self.cuts[&plan.pp]);
            for (at, (instance, _)) in cuts.filter(|(_, cut)| cut.formats[*formats]).enumerate() {
                if !each(place * CUTS + at, *formats, instance.clone()) {
                    return Some(taken);
                }
                taken += 1;
            }
        }
        None
    }

    /// The results of `make` for every instance, by index of its formats, ordered by plans, plainest first, formats and
    /// cuts. Illegal plans are counted.
    pub fn all<T: Send>(
        &self,
        problem: &Problem,
        census: &mut Census,
        make: impl Fn(usize, Arc<Instance>) -> T + Sync,
    ) -> Vec<T> {
        self.count_illegal(census);
        let made = (0..self.stages()).into_par_iter().flat_map_iter(|stage| {
            let mut made = Vec::new();
            self.each(problem, stage, |place, formats, instance| {
                made.push((place, make(formats, instance)));
                true
            });
            made
        });
        let mut made: Vec<(usize, T)> = made.collect();
        made.sort_by_key(|(place, _)| *place);
        made.into_iter().map(|(_, one)| one).collect()
    }
}

/// The cuts into `pp` stages that any format of the problem has.
fn format_cuts(problem: &Problem, pp: u64) -> Vec<FormatCut> {
    let mut all: Vec<(Vec<u32>, Vec<bool>)> = Vec::new();
    for (index, formats) in problem.formats.iter().enumerate() {
        for stages in cuts(&problem.graph, formats, pp) {
            let at = all.iter().position(|(known, _)| *known == stages).unwrap_or_else(|| {
                all.push((stages, vec![false; problem.formats.len()]));
                all.len() - 1
            });
            all[at].1[index] = true;
        }
    }
    let format_cut = |(stages, formats)| FormatCut { cut: PipelineCut::new(&problem.graph, stages), formats };
    all.into_iter().map(format_cut).collect()
}

/// The results of `make` for every instance, by index of its formats, ordered by plans, plainest first, formats and cuts.
/// Illegal plans are counted.
pub fn each<T: Send>(
    problem: &Problem,
    census: &mut Census,
    make: impl Fn(usize, Arc<Instance>) -> T + Sync,
) -> Vec<T> {
    Layouts::new(problem).all(problem, census, make)
}

/// Every legal plan in every format pair, the plainest first: of equal deployments the first is kept. `None` where `stop`
/// ended it.
fn legal(
    problem: &Problem,
    census: &mut Census,
    stop: &dyn Fn() -> bool,
) -> Option<Vec<(usize, ParallelPlan)>> {
    let mut known: Vec<(usize, Plans)> = Vec::new();
    let mut legal: Vec<(usize, ParallelPlan)> = Vec::new();
    for (index, formats) in problem.formats.iter().enumerate() {
        let same = |other: usize| {
            let other = &problem.formats[other];
            // Plans that scales of one block size allow, by the same rules of the runtime.
            let scales = other.block == formats.block
                && (other.block.is_none() || other.weights == formats.weights)
                && other.machine.quantised == formats.machine.quantised;
            scales && (other.kv == formats.kv || !problem.runtime.read_kv())
        };
        let alike = known.iter().position(|(other, _)| same(*other));
        let at = match alike {
            Some(at) => at,
            None => {
                let plans = enumerate_until(&problem.graph, &problem.legal_limits(formats), stop)?;
                census.add_refused(plans.illegal.clone());
                known.push((index, plans));
                known.len() - 1
            }
        };
        legal.extend(known[at].1.legal.iter().map(|plan| (index, *plan)));
    }
    if stop() {
        return None;
    }
    legal.sort_by_cached_key(|(formats, plan)| (plan.plainness(), *formats));
    Some(legal)
}
