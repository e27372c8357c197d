//! Every deployment of a small question, one by one: what the search must agree with.

use mantile::spec::offload::Offload;
use mantile::spec::role::Role;
use std::sync::Arc;

use mantile::plan::legal::{check, has_experts};
use mantile::plan::locality::kv_tier;
use mantile::plan::parallel::{ParallelPlan, Phase};
use mantile::quantity::read::Plain;
use mantile::search::candidate::{Candidate, PoolPlan};
use mantile::search::mixed::goal;
use mantile::search::point::{Point, cost, place, point};
use mantile::search::problem::{Problem, Share, Traffic};
use mantile::search::ratio::Goal;
use mantile::search::shape::{InstanceConfig, PreparedShape, cuts};
use mantile::serving::admission::residency;
use mantile::serving::disaggregated::{decode_performance, link_rate, prefill_rate, split};
use mantile::serving::instance::Instance;
use mantile::serving::residency::cache_per_sequence;
use mantile::spec::nearness::ErrorClass;
use mantile::spec::objective::Metric;

use super::headroom::{headroom, sizes};

/// A deployment that meets the limits.
pub struct Known {
    pub candidate: Candidate,
    pub point: Point,
    /// In the space that the front is said to show: like instances.
    pub shown: bool,
    /// Of unlike workers with prompts and answers apart: only the first aim is proved of these.
    pub unlike: bool,
}

/// Every legal plan, by trying all degrees.
pub fn plans(problem: &Problem, formats: usize) -> Vec<ParallelPlan> {
    let limits = problem.legal_limits(&problem.formats[formats]);
    let (all, experts) = (problem.cluster.devices(), has_experts(&problem.graph));
    let mut plans = Vec::new();
    for_each_split(all, |[tp, pp, dp, cp]| {
        for (ep, dcp) in (1..=tp * dp * cp).flat_map(|ep| (1..=tp).map(move |dcp| (ep, dcp))) {
            for sp in [false, true] {
                let stage = tp * dp * cp;
                let moe_tp = if experts { stage / ep } else { tp };
                let plan = ParallelPlan { tp, pp, dp, cp, dcp, ep, moe_tp, sp, ffn_tp: None, vocab_tp: None };
                // Data parallelism of a dense model is another number of replicas.
                let twice = (sp && tp == 1) || (!experts && dp > 1);
                if !twice && check(&problem.graph, &plan, &limits).is_ok() {
                    plans.push(plan);
                }
            }
        }
    });
    plans
}

fn for_each_split(all: u64, mut visit: impl FnMut([u64; 4])) {
    for tp in 1..=all {
        for pp in 1..=all / tp {
            for dp in 1..=all / tp / pp {
                for cp in 1..=all / tp / pp / dp {
                    visit([tp, pp, dp, cp]);
                }
            }
        }
    }
}

/// Whether `load` requests of full length fit.
fn holds(problem: &Problem, placed: &PreparedShape, phase: Phase, load: u64) -> bool {
    let machine = problem.formats[placed.shape.formats].plain();
    let held = residency(&Plain, &placed.instance, phase, machine, problem.terms(), load);
    held.total.value() <= held.usable.value()
}

/// Whether it may serve as a prefill worker.
fn prefills(problem: &Problem, placed: &PreparedShape) -> bool {
    placed.shape.roles.prefill && holds(problem, placed, Phase::Prefill, placed.shape.plan.dp)
}

/// The most requests of an instance that fit, found by trying one after another.
pub fn fits(problem: &Problem, placed: &PreparedShape) -> u64 {
    let most = (1..).find(|&load| !holds(problem, placed, Phase::Decode, load));
    most.expect("memory ends") - 1
}

/// Every shape of the question; `fits` counts the requests of an instance here, not of a rank.
pub fn shapes(problem: &Problem) -> Vec<InstanceConfig> {
    let mut shapes = Vec::new();
    for formats in 0..problem.formats.len() {
        for plan in plans(problem, formats) {
            for stages in cuts(&problem.graph, &problem.formats[formats], plan.pp) {
                let instance = Instance::new(&problem.graph, plan, stages.clone(), problem.tiers());
                let mut shape = InstanceConfig {
                    instance: Arc::new(instance),
                    formats,
                    plan,
                    stages,
                    offload: Offload::Nothing,
                    from: 1,
                    fits: 0,
                    per_node: None,
                    roles: problem.runtime.roles(&problem.formats[formats].kv, &plan),
                };
                let placed = PreparedShape::of(problem, Arc::new(shape.clone()));
                shape.fits = fits(problem, &placed);
                shapes.push(shape);
            }
        }
    }
    shapes
}

fn pool(placed: &PreparedShape, role: Role, replicas: u64, concurrency: u64) -> PoolPlan {
    let InstanceConfig { plan, stages, .. } = &*placed.shape;
    PoolPlan { role, plan: *plan, stages: stages.clone(), replicas, concurrency }
}

fn candidate(placed: &PreparedShape, pools: Vec<PoolPlan>) -> Candidate {
    Candidate { formats: placed.shape.formats, pools, offload: Offload::Nothing }
}

/// Every deployment of one shape that prefills and decodes, within the limits.
pub fn together(problem: &Problem, placed: &[PreparedShape]) -> Vec<Known> {
    let mut known = Vec::new();
    for placed in placed.iter().filter(|placed| placed.shape.roles.aggregated) {
        let devices = placed.shape.plan.devices();
        let most = problem.cluster.devices() / devices;
        for replicas in (1..=most).filter(|count| headroom(problem, &sizes(&[(devices, *count)]))) {
            // Under a rate no more requests are in flight than it takes to carry it.
            let mut carried = false;
            for load in 1..=placed.shape.fits {
                let point = placed.at(replicas, load);
                let requested = match problem.traffic {
                    Traffic::Free => load.is_multiple_of(placed.shape.plan.dp),
                    Traffic::InFlight(Share { requests, .. }) => {
                        load == requests.div_ceil(replicas) && replicas <= requests
                    }
                    // As many on every attention rank.
                    Traffic::Rate(_) if !load.is_multiple_of(placed.shape.plan.dp) => false,
                    Traffic::Rate(rate) => {
                        let before = carried;
                        carried |= replicas as f64 * load as f64 / point[place(Metric::E2e)] >= rate;
                        carried && !before
                    }
                };
                if requested && placed.missed(&point, load).is_none() {
                    let pools = vec![pool(placed, Role::Aggregated, replicas, load)];
                    known.push(Known {
                        candidate: candidate(placed, pools),
                        point,
                        shown: true,
                        unlike: false,
                    });
                }
            }
        }
    }
    known
}

fn size(placed: &PreparedShape) -> u64 {
    placed.shape.plan.devices()
}

/// Whether a size of instance may be in a mix over several units: it fills them without gaps.
fn even(problem: &Problem, devices: u64) -> bool {
    let (unit, all) = (problem.cluster.domain(), problem.cluster.devices());
    all == unit || unit.is_multiple_of(devices) || devices.is_multiple_of(unit)
}

/// Every deployment of a prompt pool and an answer pool, within the limits.
pub fn separate(problem: &Problem, placed: &[PreparedShape]) -> Vec<Known> {
    let mut known = Vec::new();
    if !problem.split {
        return known;
    }
    let all = problem.cluster.devices();
    for front in placed.iter().filter(|placed| prefills(problem, placed)) {
        let decodes = |placed: &&PreparedShape| {
            placed.shape.roles.decode && !placed.shape.plan.sp && placed.shape.fits > 0
        };
        for back in placed.iter().filter(decodes) {
            let (one, other) = (front.shape.plan.devices(), back.shape.plan.devices());
            let pairs = problem.runtime.pairs(&front.shape.plan, &back.shape.plan);
            if front.shape.formats != back.shape.formats || !pairs {
                continue;
            }
            for backs in 1..=all.saturating_sub(one) / other {
                let most = (all - backs * other) / one;
                let fits = |prefill_options: &u64| {
                    headroom(problem, &sizes(&[(one, *prefill_options), (other, backs)]))
                };
                for load in 1..=back.shape.fits {
                    for prefill_options in (1..=most).filter(fits) {
                        let pair = Pair { problem, front, prefill_options, back, backs, load };
                        known.extend(pair.known());
                    }
                }
            }
        }
    }
    known
}

/// A prompt pool and an answer pool at a load.
struct Pair<'a, 'q> {
    problem: &'q Problem,
    front: &'a PreparedShape<'q>,
    prefill_options: u64,
    back: &'a PreparedShape<'q>,
    backs: u64,
    load: u64,
}

impl Pair<'_, '_> {
    /// The tier that carries the KV cache.
    fn tier(&self) -> usize {
        let size = |placed: &PreparedShape, count| (placed.shape.plan.devices(), count);
        kv_tier(self.problem.tiers(), &[size(self.front, self.prefill_options), size(self.back, self.backs)])
    }

    /// Requests per second of one prompt instance, and of all answers.
    fn rates(&self) -> (f64, f64) {
        let machine = self.problem.formats[self.front.shape.formats].plain();
        let load = self.back.pool(self.backs, self.load).load;
        let terms = self.problem.terms();
        let each = decode_performance(&Plain, &self.back.instance, machine, terms, &load, &mut ()).rate;
        let prompts = prefill_rate(&Plain, &self.front.instance, machine, &self.front.prompt);
        let links = |placed: &PreparedShape, phase| {
            let bytes = cache_per_sequence(&Plain, &placed.instance, phase, terms.isl, machine);
            link_rate(&Plain, &placed.instance, (machine, self.tier()), bytes)
        };
        let (sent, received) = (links(self.front, Phase::Prefill), links(self.back, Phase::Decode));
        (prompts.min(sent).value(), each.min(received).value() * self.backs as f64)
    }

    fn known(&self) -> Option<Known> {
        let Pair { problem, front, prefill_options, back, backs, load } = *self;
        let machine = problem.formats[front.shape.formats].plain();
        let demand = problem.traffic.demand(&Plain);
        let dp = front.shape.plan.dp;
        let (first, second) = (front.pool(prefill_options, dp), back.pool(backs, load));
        let pools_of = (&[first][..], &[second][..], &[][..]);
        let joined = (machine, self.tier());
        let evaluation = split(&Plain, pools_of, joined, problem.terms(), &demand, &mut ());
        let point = point(&evaluation.metrics);
        let requested = match problem.traffic {
            // Loads that lie evenly on the attention ranks; others only leave one waiting.
            Traffic::Free => load.is_multiple_of(back.shape.plan.dp),
            Traffic::InFlight(Share { requests, .. }) => {
                load.is_multiple_of(back.shape.plan.dp)
                    && backs <= requests
                    && load <= requests.next_multiple_of(back.shape.plan.dp)
            }
            Traffic::Rate(rate) => {
                let (prompts, answers) = self.rates();
                answers >= rate && prompts * prefill_options as f64 >= rate
            }
        };
        let pools =
            || vec![pool(front, Role::Prefill, prefill_options, dp), pool(back, Role::Decode, backs, load)];
        let margin = problem.margin(front.shape.formats, ErrorClass::Disaggregated, 0);
        let met = requested && problem.missed(&point, margin).is_none();
        // Of so many in flight those count that wait for no more than the queue that is planned for.
        let free = Traffic::Free.demand(&Plain);
        let planned = split(&Plain, pools_of, joined, problem.terms(), &free, &mut ()).metrics.ttft.value();
        let crowded = matches!(problem.traffic, Traffic::InFlight(_));
        let shown = !crowded || point[place(Metric::Ttft)] <= planned * (1.0 + 1e-9);
        met.then(|| Known { candidate: candidate(front, pools()), point, shown, unlike: false })
    }
}

/// Every mix of shapes that prefill, of shapes that decode at the load that makes way for most, and of instances that do
/// both, each at its best. Of two with the same workers a lighter load never lets more through.
pub fn unlike(problem: &Problem, placed: &[PreparedShape], singles: &[Known]) -> Vec<Known> {
    let mut known = Vec::new();
    let Some(goal) = goal(problem).filter(|_| problem.custom_router) else { return known };
    for formats in 0..problem.formats.len() {
        let of: Vec<&PreparedShape> = placed
            .iter()
            .filter(|placed| placed.shape.formats == formats && even(problem, size(placed)))
            .collect();
        let prefill_options = of.iter().filter(|placed| prefills(problem, placed));
        let mut kinds: Vec<PoolPlan> =
            prefill_options.map(|placed| pool(placed, Role::Prefill, 0, placed.shape.plan.dp)).collect();
        let machine = problem.formats[formats].plain();
        for placed in of.iter().filter(|placed| placed.shape.roles.decode && !placed.shape.plan.sp) {
            let loads = (1..=placed.shape.fits).filter(|load| load.is_multiple_of(placed.shape.plan.dp));
            let paced = loads.map(|load| {
                let at = placed.pool(1, load).load;
                (load, decode_performance(&Plain, &placed.instance, machine, problem.terms(), &at, &mut ()))
            });
            let limit = problem.limits.tpot.unwrap_or(f64::INFINITY);
            let within = paced.filter(|(_, one)| one.tpot.value() <= limit);
            let most = within.max_by(|a, b| a.1.rate.value().total_cmp(&b.1.rate.value()));
            kinds.extend(most.map(|(load, _)| pool(placed, Role::Decode, 0, load)));
        }
        if goal == Goal::Total {
            for devices in 1..=problem.cluster.domain() {
                let same = singles.iter().filter(|known| {
                    let one = &known.candidate.pools[0];
                    known.candidate.formats == formats && one.replicas == 1 && one.plan.devices() == devices
                });
                let yielded = |known: &&Known| known.point[place(Metric::OutputTokS)];
                let best = same.max_by(|a, b| yielded(a).total_cmp(&yielded(b)));
                let nests = problem.cluster.devices() == problem.cluster.domain()
                    || problem.cluster.domain().is_multiple_of(devices);
                kinds.extend(best.filter(|_| nests).map(|known| known.candidate.pools[0].clone()));
            }
        }
        let bare = Candidate { formats, pools: vec![], offload: Offload::Nothing };
        deploy(problem, (&bare, &kinds), 0, problem.cluster.devices(), &mut Vec::new(), &mut known);
    }
    known
}

fn deploy(
    problem: &Problem,
    (bare, kinds): (&Candidate, &[PoolPlan]),
    from: usize,
    headroom: u64,
    pools: &mut Vec<PoolPlan>,
    known: &mut Vec<Known>,
) {
    let Some(kind) = kinds.get(from) else {
        let has = |role| pools.iter().any(|pool| pool.role == role);
        if has(Role::Prefill) && has(Role::Decode) {
            let candidate = Candidate { pools: pools.clone(), ..bare.clone() };
            let evaluation = candidate.evaluate(&Plain, problem, &mut ());
            let point = point(&evaluation.metrics);
            let kv = &problem.formats[candidate.formats].kv;
            let runs = problem.runtime.forbids(kv, &candidate.workers()).is_none();
            if runs && problem.missed_in_pools(&evaluation, candidate.margin(problem)).next().is_none() {
                known.push(Known { candidate, point, shown: false, unlike: true });
            }
        }
        return;
    };
    let devices = kind.plan.devices();
    deploy(problem, (bare, kinds), from + 1, headroom, pools, known);
    for count in 1..=headroom / devices {
        pools.push(PoolPlan { replicas: count, ..kind.clone() });
        deploy(problem, (bare, kinds), from + 1, headroom - count * devices, pools, known);
        pools.pop();
    }
}

/// Every mix of like sizes, each at its best: instances side by side that together yield the most.
pub fn mixes(problem: &Problem, singles: &[Known]) -> Vec<Known> {
    let mut known = Vec::new();
    for formats in 0..problem.formats.len() {
        let mut best: Vec<&Known> = Vec::new();
        for devices in 1..=problem.cluster.domain() {
            let same = singles.iter().filter(|known| {
                let one = &known.candidate.pools[0];
                known.candidate.formats == formats && one.replicas == 1 && one.plan.devices() == devices
            });
            let yielded = |known: &&Known| known.point[place(Metric::OutputTokS)];
            best.extend(same.max_by(|a, b| yielded(a).total_cmp(&yielded(b))));
        }
        let mut counts = vec![0; best.len()];
        fill(problem, &best, 0, problem.cluster.devices(), &mut counts, &mut known);
    }
    known
}

fn fill(
    problem: &Problem,
    best: &[&Known],
    from: usize,
    headroom: u64,
    counts: &mut Vec<u64>,
    known: &mut Vec<Known>,
) {
    if from == best.len() {
        let pools = best.iter().zip(counts.iter()).filter(|(_, count)| **count > 0);
        let pools: Vec<_> = pools
            .map(|(known, &replicas)| PoolPlan { replicas, ..known.candidate.pools[0].clone() })
            .collect();
        if !pools.is_empty() {
            let candidate = Candidate { pools, ..best[0].candidate.clone() };
            let evaluation = candidate.evaluate(&Plain, problem, &mut ());
            let point = point(&evaluation.metrics);
            if problem.missed_in_pools(&evaluation, candidate.margin(problem)).next().is_none() {
                known.push(Known { candidate, point, shown: false, unlike: false });
            }
        }
        return;
    }
    let devices = best[from].candidate.devices();
    for count in 0..=headroom / devices {
        counts[from] = count;
        fill(problem, best, from + 1, headroom - count * devices, counts, known);
    }
    counts[from] = 0;
}

/// The figures along the axes of the front, less being better.
pub fn ranks(problem: &Problem, point: &Point) -> Vec<f64> {
    problem.axes.iter().map(|metric| cost(point, *metric, metric.entry().direction)).collect()
}
