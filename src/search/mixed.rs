//! Mixed deployments: several configurations of prefill and decode workers, and aggregated replicas on the leftover
//! devices.
//!
//! Search space: any numbers of prefill options, of decode workers at any load and of aggregated replicas, all in the
//! same formats, every prefill/decode pair within the SLOs and the rules of the runtime. Without a router that has
//! weights, one kind of prefill worker and one kind of decode worker. Over several units of the innermost tier, sizes divide
//! each other or every unit holds the same mix. The optimum of the first objective term is exact; ties go to fewer
//! devices. Latency objectives are left to pairs of uniform pools: the mean over a mix is never below that of its
//! fastest part, which is a candidate on its own.

use crate::quantity::tolerance::ROUNDING;
use crate::spec::offload::Offload;
use crate::spec::role::Role;
use std::collections::BTreeMap;

use super::aggregated;
use super::candidate::{Candidate, PoolPlan};
use super::decode_options::{DecodeOption, DecodeOptionList, DecodeOptions, receipt, reload};
use super::error_margin::ErrorMargin;
use super::fills::{Fill, fills};
use super::load_gap::LoadGap;
use super::outcome::EvaluatedCandidate;
use super::point::{Point, place};
use super::prefill_options::{PrefillOption, PrefillOptions};
use super::problem::{Problem, Traffic};
use super::ratio::{self, Goal, MixProgram, Roles, Worker, WorkerMix, check, one_each};
use super::shape::InstanceConfig;
use super::shape_cache::ShapeCache;
use super::sides::{Sides, sides};
use crate::serving::economy::Bill;
use crate::spec::objective::Metric;

/// Result of mixing.
#[derive(Clone, Debug)]
pub struct MixResult {
    /// The best mix that is disaggregated at least in part, with aggregated replicas where they improve it; `None`
    /// where a purely aggregated deployment is better than any disaggregated one.
    pub best: Option<EvaluatedCandidate>,
    /// The best fully disaggregated mix.
    pub disaggregated: Option<EvaluatedCandidate>,
    /// Output tokens per second of the best disaggregated deployment with one configuration per pool, where
    /// throughput is the objective.
    pub one_shape_each: Option<f64>,
    /// Number of rows of the checked integer program, all of them satisfied.
    pub rows_checked: u64,
    /// The integer programs whose optima these mixes are.
    pub programs: Vec<MixProgram>,
}

/// The goal that mixing can improve, if any, for unlimited traffic.
pub fn goal(problem: &Problem) -> Option<Goal> {
    if problem.traffic != Traffic::Free || !problem.split {
        return None;
    }
    match problem.aims.first()?.metric {
        Metric::OutputTokS => Some(Goal::Total),
        Metric::OutputTokSPerDevice => Some(Goal::PerDevice),
        // The cost of rented devices does not depend on their load.
        Metric::UsdPerMtok if matches!(problem.workload.bill, Some(Bill::Rented(_))) => Some(Goal::PerDevice),
        _ => None,
    }
}

/// Workers of some sizes, with the options that they represent.
#[derive(Default)]
struct MixOptions<'a, 'q> {
    prefill: Vec<&'a PrefillOption<'q>>,
    decode: Vec<DecodeOption>,
    aggregated: Vec<aggregated::AggregatedKey>,
    roles: Roles,
}

impl MixOptions<'_, '_> {
    /// The workers of these sizes alone.
    fn of_sizes(&self, sizes: &[u64]) -> Roles {
        // A worker larger than the capacity stays, so that indices stay valid.
        let of = |workers: &[Worker]| {
            let idle = |worker: &Worker| Worker { works: 0.0, ..*worker };
            let kept = |worker: &Worker| sizes.contains(&worker.devices);
            workers.iter().map(|worker| if kept(worker) { *worker } else { idle(worker) }).collect()
        };
        Roles {
            prefill: of(&self.roles.prefill),
            decode: of(&self.roles.decode),
            aggregated: of(&self.roles.aggregated),
        }
    }

    fn sizes(&self) -> Vec<u64> {
        let Roles { prefill: prompts, decode: answers, aggregated: both } = &self.roles;
        let mut sizes: Vec<u64> =
            prompts.iter().chain(answers).chain(both).map(|worker| worker.devices).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// Finds the best mix from the configurations that were examined already.
pub fn mixed<'q>(
    bench: &ShapeCache<'q>,
    (fronts, answers): (&PrefillOptions<'q>, &DecodeOptions),
    together: &aggregated::Incumbents,
) -> Option<MixResult> {
    let problem = bench.problem;
    let goal = goal(problem)?;
    let all = problem.cluster.devices();
    let mut best: [Option<(WorkerMix, MixProgram, Candidate)>; 2] = [None, None];
    let compared = problem.custom_router && goal == Goal::Total;
    let mut one_shape: f64 = 0.0;
    for formats in 0..problem.formats.len() {
        let sides = sides(bench, formats, fronts, answers);
        for choice in sides.iter().flat_map(|sides| choices(bench, formats, sides, together)) {
            for Fill { sizes, devices, times } in fills(problem.capacity(), &choice.sizes()) {
                let roles = choice.of_sizes(&sizes);
                if compared {
                    one_shape = one_shape.max(one_each(&roles, all));
                }
                let alone = Roles { aggregated: vec![], ..roles.clone() };
                for (slot, roles) in best.iter_mut().zip([roles, alone]) {
                    let best = if problem.custom_router { ratio::best } else { ratio::best_pair };
                    let Some(one) = best(&roles, devices, goal) else { continue };
                    let mix = one.clone().times(times);
                    let ahead = slot.as_ref().is_none_or(|(known, ..)| mix.before(known, goal));
                    if ahead {
                        let candidate = deployed(bench, &choice, &mix, formats);
                        let program = MixProgram { roles, devices, mix: one, goal };
                        *slot = Some((mix, program, candidate));
                    }
                }
            }
        }
    }
    let (mut rows_checked, mut programs) = (0, Vec::new());
    let [best, apart] = best.map(|found| {
        let (mix, program, candidate) = found.filter(|(mix, ..)| mix.disaggregated_rate > 0.0)?;
        rows_checked += check(&program.roles, all, &mix).ok()?;
        programs.push(if problem.custom_router { program } else { program.used() });
        EvaluatedCandidate::within_limits(problem, candidate)
    });
    let osl = problem.workload.lengths.osl as f64;
    let one_shape_each = (compared && one_shape > 0.0).then_some(one_shape * osl);
    Some(MixResult { best, disaggregated: apart, one_shape_each, rows_checked, programs })
}

/// The workers of one format pair, one selection for each set of prefill options whose KV transfer is fast enough. A
/// larger KV cache per device takes longer to transfer, so the feasible decode options depend on the prefill options.
/// With an E2E SLO, the slowest prefill option bounds the TPOT.
fn choices<'a, 'q>(
    bench: &ShapeCache<'q>,
    formats: usize,
    (fronts, lists): &Sides<'a, 'q>,
    together: &aggregated::Incumbents,
) -> Vec<MixOptions<'a, 'q>> {
    let problem = bench.problem;
    let margin = problem.margin(formats, true, 0);
    let limit = problem.limits.ttft.map_or(f64::INFINITY, |limit| limit / margin.ttft);
    let in_time = |list: &DecodeOptionList| -> Vec<(usize, f64)> {
        let ttft = |at: usize| bench.at(fronts[at], 1, &list.options[0], 1)[place(Metric::Ttft)];
        (0..fronts.len()).map(|at| (at, ttft(at))).filter(|(_, ttft)| *ttft <= limit).collect()
    };
    let both = aggregated_workers(bench, formats, together);
    // For every KV cache size: the number of lists with that size or a smaller one, and the prefill options fast
    // enough for it.
    let mut cutoffs: Vec<(usize, Vec<(usize, f64)>)> = Vec::new();
    for alike in lists.chunk_by(|a, b| a.received == b.received) {
        let upto = cutoffs.last().map_or(0, |(upto, _)| *upto) + alike.len();
        let senders = in_time(alike[0]);
        // Where the same prefill options can send to more lists, that selection is better.
        let same = |(_, before): &(usize, Vec<(usize, f64)>)| before.len() == senders.len();
        match cutoffs.last_mut().filter(|last| problem.limits.e2e.is_none() && same(last)) {
            Some(last) => *last = (upto, senders),
            None => cutoffs.push((upto, senders)),
        }
    }
    let mut choices: Vec<MixOptions> = Vec::new();
    let mut known = RichestLoads::default();
    for (upto, senders) in cutoffs.into_iter().filter(|(_, senders)| !senders.is_empty()) {
        let mut before: Vec<usize> = Vec::new();
        for (slowest, pace) in paces(problem, margin, &senders) {
            let mut sending: BTreeMap<u64, &'a PrefillOption<'q>> = BTreeMap::new();
            for (at, _) in senders.iter().filter(|(_, ttft)| *ttft <= slowest) {
                let front = fronts[*at];
                let slot = sending.entry(front.prepared.shape.plan.devices()).or_insert(front);
                if (front.rate, slot.index) > (slot.rate, front.index) {
                    *slot = front;
                }
            }
            // A slower prefill option without a better configuration only leaves less time for decode.
            let now: Vec<usize> = sending.values().map(|front| front.index).collect();
            if now == before {
                continue;
            }
            before = now;
            let mut answering: BTreeMap<u64, DecodeOption> = BTreeMap::new();
            let mut at_pace = |at: usize| known.at(bench, (at, lists[at]), pace);
            for richest in (0..upto).filter_map(&mut at_pace) {
                let better = |one: &DecodeOption| {
                    richest.rate > one.rate || (richest.rate == one.rate && richest.tpot < one.tpot)
                };
                if answering.get(&richest.devices).is_none_or(better) {
                    answering.insert(richest.devices, richest);
                }
            }
            let roles = Roles {
                prefill: sending.values().map(|front| sender(front)).collect(),
                decode: answering.values().map(|answer| receiver(bench, answer)).collect(),
                aggregated: both.iter().map(|(worker, _)| *worker).collect(),
            };
            choices.push(MixOptions {
                prefill: sending.into_values().collect(),
                decode: answering.into_values().collect(),
                aggregated: both.iter().map(|(.., key)| *key).collect(),
                roles,
            });
        }
    }
    choices
}

/// TTFT bounds and the TPOT that each leaves. Without an E2E SLO there is one pair without bounds; otherwise one pair
/// for every TTFT that occurs.
fn paces(problem: &Problem, margin: ErrorMargin, senders: &[(usize, f64)]) -> Vec<(f64, f64)> {
    let Some(limit) = problem.limits.e2e else { return vec![(f64::INFINITY, f64::INFINITY)] };
    let tokens = (problem.workload.lengths.osl - 1) as f64;
    let mut times: Vec<f64> =
        senders.iter().map(|(_, ttft)| *ttft).filter(|ttft| *ttft * margin.ttft < limit).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let left = |ttft: f64| (limit - ttft * margin.ttft) / margin.tpot / tokens * (1.0 - ROUNDING);
    times.into_iter().map(|ttft| (ttft, left(ttft))).collect()
}

fn sender(front: &PrefillOption) -> Worker {
    Worker { devices: front.prepared.shape.plan.devices(), works: front.planned, carries: front.links }
}

fn receiver(bench: &ShapeCache, answer: &DecodeOption) -> Worker {
    let (_, carries) = receipt(bench.problem, bench.get(answer.shape));
    Worker { devices: answer.devices, works: answer.rate, carries }
}

/// Aggregated replicas, the best of each size.
fn aggregated_workers(
    bench: &ShapeCache,
    formats: usize,
    together: &aggregated::Incumbents,
) -> Vec<(Worker, aggregated::AggregatedKey)> {
    let osl = bench.problem.workload.lengths.osl as f64;
    let held = |key: &aggregated::AggregatedKey| bench.shapes[key.shape].offload == Offload::Nothing;
    let of_formats = together.best.iter().filter(|(of, (_, key))| of.formats == formats && held(key));
    let worker = |devices, point: &Point| Worker {
        devices,
        works: point[place(Metric::OutputTokS)] / osl,
        carries: f64::INFINITY,
    };
    of_formats.map(|(of, (point, key))| (worker(of.devices, point), *key)).collect()
}

/// The load with the highest rate of each list, by the TPOT bound that it was searched for.
#[derive(Default)]
struct RichestLoads {
    known: BTreeMap<usize, BTreeMap<u64, Option<DecodeOption>>>,
}

impl RichestLoads {
    /// [`richest`] of the list at index `at`: the result of a looser TPOT bound where it is fast enough.
    fn at(
        &mut self,
        bench: &ShapeCache,
        (at, list): (usize, &DecodeOptionList),
        pace: f64,
    ) -> Option<DecodeOption> {
        let known = self.known.entry(at).or_default();
        // TPOT bounds are positive, so their bits sort as they do.
        let slower = known.range(pace.to_bits()..).next().map(|(_, answer)| *answer);
        match slower {
            Some(answer) if answer.is_none_or(|answer| answer.tpot <= pace) => answer,
            _ => *known.entry(pace.to_bits()).or_insert_with(|| richest(bench, list, pace)),
        }
    }
}

/// The load of a list, listed or not, with the highest request rate at no more than `pace` seconds per token.
fn richest(bench: &ShapeCache, list: &DecodeOptionList, pace: f64) -> Option<DecodeOption> {
    let more = |a: DecodeOption, b: DecodeOption| if b.rate > a.rate { b } else { a };
    let mut best = list.options.iter().copied().filter(|one| one.tpot <= pace).reduce(more);
    let at = |answer: &DecodeOption, load| reload(bench.problem, bench.get(answer.shape), answer, load);
    let mut open: Vec<LoadGap> = list.gaps.clone();
    while let Some(gap) = open.pop() {
        let beaten = best.is_some_and(|best| gap.ideal(0.0).rate <= best.rate);
        if beaten || gap.bound.tpot > pace {
            continue;
        }
        if gap.count() == 1 {
            let there = at(&gap.bound, gap.loads.0);
            if there.tpot <= pace {
                best = Some(best.map_or(there, |best| more(best, there)));
            }
        } else {
            open.extend(gap.halves(at));
        }
    }
    best
}

/// The full mix, with decode workers loaded no more than the prefill workers can feed.
fn deployed(bench: &ShapeCache, choice: &MixOptions, mix: &WorkerMix, formats: usize) -> Candidate {
    let pool = |role, shape: &InstanceConfig, replicas, concurrency| PoolPlan {
        role,
        plan: shape.plan,
        stages: shape.stages.clone(),
        replicas,
        concurrency,
    };
    let mut pools = Vec::new();
    for (front, count) in choice.prefill.iter().zip(&mix.prefill) {
        let shape = &front.prepared.shape;
        pools.push(pool(Role::Prefill, shape, *count, shape.plan.dp));
    }
    let answers: Vec<(DecodeOption, u64)> = choice
        .decode
        .iter()
        .copied()
        .zip(mix.decode.iter().copied())
        .filter(|(_, count)| *count > 0)
        .collect();
    for (answer, count) in lighter(bench, answers, mix.disaggregated_rate) {
        pools.push(pool(Role::Decode, &bench.shapes[answer.shape], count, answer.concurrency));
    }
    for (key, count) in choice.aggregated.iter().zip(&mix.aggregated) {
        pools.push(pool(Role::Aggregated, &bench.shapes[key.shape], *count, key.concurrency));
    }
    pools.retain(|pool| pool.replicas > 0);
    // Prefill, decode, aggregated; larger instances first.
    let order = [Role::Prefill, Role::Decode, Role::Aggregated];
    let kind = |pool: &PoolPlan| order.iter().position(|role| *role == pool.role);
    pools.sort_by_key(|pool| (kind(pool), std::cmp::Reverse(pool.plan.devices())));
    Candidate { formats, pools, offload: Offload::Nothing }
}

/// Bisection steps of the TPOT bound: down to printed precision.
const HALVINGS: u32 = 20;

/// The same decode workers, each loaded no more than the given request rate needs, at the lowest possible TPOT of the
/// slowest.
fn lighter(bench: &ShapeCache, answers: Vec<(DecodeOption, u64)>, rate: f64) -> Vec<(DecodeOption, u64)> {
    let at = |answer: &DecodeOption, load| reload(bench.problem, bench.get(answer.shape), answer, load);
    let within = |pace: f64| -> Vec<(DecodeOption, u64)> {
        let lightened = |(answer, count): &(DecodeOption, u64)| {
            let laid = bench.get(answer.shape);
            let most = answer.concurrency / laid.shape.plan.dp;
            let requests =
                super::shape::largest(most, |requests| at(answer, laid.concurrency(requests)).tpot <= pace);
            (at(answer, laid.concurrency(requests.max(1))), *count)
        };
        answers.iter().map(lightened).collect()
    };
    let enough = |answers: &[(DecodeOption, u64)]| {
        answers.iter().map(|(answer, count)| answer.rate * *count as f64).sum::<f64>() >= rate
    };
    let slowest = answers.iter().map(|(answer, _)| answer.tpot).fold(0.0, f64::max);
    let (mut low, mut high, mut kept) = (0.0, slowest, answers.clone());
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        let tried = within(middle);
        if enough(&tried) { (high, kept) = (middle, tried) } else { low = middle }
    }
    kept
}
