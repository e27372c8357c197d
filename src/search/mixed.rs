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
use super::decode_loads::LoadGap;
use super::decode_options::{DecodeOption, DecodeOptionList, DecodeOptions, kv_transfer, reload};
use super::error_margin::ErrorMargin;
use super::fills::{Fill, fills};
use super::outcome::EvaluatedCandidate;
use super::point::{Point, place};
use super::prefill_options::{PrefillOption, PrefillOptions, Sides, sides};
use super::problem::{Problem, Traffic};
use super::ratio::{self, Goal, MixProgram, Roles, Worker, WorkerMix, check, one_each};
use super::shape_cache::ShapeCache;
use crate::serving::economy::Bill;
use crate::spec::nearness::ErrorClass;
use crate::spec::objective::Metric;

#[derive(Clone, Debug)]
pub struct MixResult {
    /// The best mix that is disaggregated at least in part, with aggregated replicas where they improve it; `None`
    /// where a purely aggregated deployment is better than any disaggregated one.
    pub best: Option<EvaluatedCandidate>,
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
    match problem.objective.first()?.metric {
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
        let Roles { prefill, decode, aggregated } = &self.roles;
        let mut sizes: Vec<u64> =
            prefill.iter().chain(decode).chain(aggregated).map(|worker| worker.devices).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// Finds the best mix from the configurations that were examined already.
pub fn mixed<'q>(
    cache: &ShapeCache<'q>,
    (prefill_options, decode_options): (&PrefillOptions<'q>, &DecodeOptions),
    incumbents: &aggregated::Incumbents,
) -> Option<MixResult> {
    let problem = cache.problem;
    let goal = goal(problem)?;
    let all = problem.cluster.devices();
    let mut best: [Option<(WorkerMix, MixProgram, Candidate)>; 2] = [None, None];
    let compared = problem.custom_router && goal == Goal::Total;
    let mut one_shape: f64 = 0.0;
    for formats in 0..problem.formats.len() {
        let sides = sides((problem, cache.shapes), formats, prefill_options, decode_options);
        for choice in sides.iter().flat_map(|sides| choices(cache, formats, sides, incumbents)) {
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
                    let better = slot.as_ref().is_none_or(|(known, ..)| mix.before(known, goal));
                    if better {
                        let candidate = deployed(cache, &choice, &mix, formats);
                        let program = MixProgram { roles, devices, mix: one, goal };
                        *slot = Some((mix, program, candidate));
                    }
                }
            }
        }
    }
    let (mut rows_checked, mut programs) = (0, Vec::new());
    let [best, disaggregated] = best.map(|found| {
        let (mix, program, candidate) = found.filter(|(mix, ..)| mix.disaggregated_rate > 0.0)?;
        rows_checked += check(&program.roles, all, &mix).ok()?;
        programs.push(if problem.custom_router { program } else { program.used() });
        EvaluatedCandidate::within_limits(problem, candidate)
    });
    let osl = problem.workload.lengths.osl as f64;
    let one_shape_each = (compared && one_shape > 0.0).then_some(one_shape * osl);
    Some(MixResult { best, disaggregated, one_shape_each, rows_checked, programs })
}

/// The workers of one format pair, one selection for each set of prefill options whose KV transfer is fast enough. A
/// larger KV cache per device takes longer to transfer, so the feasible decode options depend on the prefill options.
/// With an E2E SLO, or odds of all SLOs at once, the slowest prefill option bounds the TPOT.
fn choices<'a, 'q>(
    cache: &ShapeCache<'q>,
    formats: usize,
    (prefill_options, lists): &Sides<'a, 'q>,
    incumbents: &aggregated::Incumbents,
) -> Vec<MixOptions<'a, 'q>> {
    let problem = cache.problem;
    let margin = problem.margin(formats, ErrorClass::Disaggregated, 0);
    let limit = problem.limits.ttft.map_or(f64::INFINITY, |limit| limit / margin.ttft);
    let in_time = |list: &DecodeOptionList| -> Vec<(usize, f64)> {
        let ttft = |at: usize| cache.at(prefill_options[at], 1, &list.options[0], 1)[place(Metric::Ttft)];
        (0..prefill_options.len()).map(|at| (at, ttft(at))).filter(|(_, ttft)| *ttft <= limit).collect()
    };
    let both = aggregated_workers(cache, formats, incumbents);
    // For every KV cache size: the number of lists with that size or a smaller one, and the prefill options fast
    // enough for it.
    let mut cutoffs: Vec<(usize, Vec<(usize, f64)>)> = Vec::new();
    for alike in lists.chunk_by(|a, b| a.received == b.received) {
        let upto = cutoffs.last().map_or(0, |(upto, _)| *upto) + alike.len();
        let fast_enough = in_time(alike[0]);
        // Where the same prefill options can send to more lists, that selection is better.
        let same = |(_, before): &(usize, Vec<(usize, f64)>)| before.len() == fast_enough.len();
        match cutoffs.last_mut().filter(|last| !problem.couples_latencies() && same(last)) {
            Some(last) => *last = (upto, fast_enough),
            None => cutoffs.push((upto, fast_enough)),
        }
    }
    let mut choices: Vec<MixOptions> = Vec::new();
    let mut known = HighestRates::default();
    for (upto, fast_enough) in cutoffs.into_iter().filter(|(_, fast_enough)| !fast_enough.is_empty()) {
        let mut before: Vec<usize> = Vec::new();
        for (slowest, tpot_limit) in latency_limits(problem, margin, &fast_enough) {
            let mut prefill_by_size: BTreeMap<u64, &'a PrefillOption<'q>> = BTreeMap::new();
            for (at, _) in fast_enough.iter().filter(|(_, ttft)| *ttft <= slowest) {
                let prefill = prefill_options[*at];
                let slot = prefill_by_size.entry(prefill.prepared.shape.plan.devices()).or_insert(prefill);
                if (prefill.rate, slot.index) > (slot.rate, prefill.index) {
                    *slot = prefill;
                }
            }
            // A slower prefill option without a better configuration only leaves less time for decode.
            let now: Vec<usize> = prefill_by_size.values().map(|prefill| prefill.index).collect();
            if now == before {
                continue;
            }
            before = now;
            let mut decode_by_size: BTreeMap<u64, DecodeOption> = BTreeMap::new();
            for option in (0..upto).filter_map(|at| known.at(cache, (at, lists[at]), tpot_limit)) {
                let better = |known: &DecodeOption| {
                    option.rate > known.rate || (option.rate == known.rate && option.tpot < known.tpot)
                };
                if decode_by_size.get(&option.devices).is_none_or(better) {
                    decode_by_size.insert(option.devices, option);
                }
            }
            let roles = Roles {
                prefill: prefill_by_size.values().map(|prefill| prefill_worker(prefill)).collect(),
                decode: decode_by_size.values().map(|option| decode_worker(cache, option)).collect(),
                aggregated: both.iter().map(|(worker, _)| *worker).collect(),
            };
            choices.push(MixOptions {
                prefill: prefill_by_size.into_values().collect(),
                decode: decode_by_size.into_values().collect(),
                aggregated: both.iter().map(|(.., key)| *key).collect(),
                roles,
            });
        }
    }
    choices
}

/// TTFT bounds and the TPOT that each leaves. Where the SLOs are independent of each other, there is one pair without
/// bounds; otherwise one pair for every TTFT that occurs.
fn latency_limits(problem: &Problem, margin: ErrorMargin, fast_enough: &[(usize, f64)]) -> Vec<(f64, f64)> {
    if !problem.couples_latencies() {
        return vec![(f64::INFINITY, f64::INFINITY)];
    }
    let tokens = (problem.workload.lengths.osl - 1) as f64;
    let mut times: Vec<f64> = fast_enough.iter().map(|(_, ttft)| *ttft).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let left = |ttft: f64| margin.tpot_within(ttft, tokens, &problem.limits) * (1.0 - ROUNDING);
    times.into_iter().map(|ttft| (ttft, left(ttft))).filter(|(_, left)| *left > 0.0).collect()
}

fn prefill_worker(prefill: &PrefillOption) -> Worker {
    Worker { devices: prefill.prepared.shape.plan.devices(), works: prefill.planned, carries: prefill.links }
}

fn decode_worker(cache: &ShapeCache, option: &DecodeOption) -> Worker {
    let (_, carries) = kv_transfer(cache.get(option.shape));
    Worker { devices: option.devices, works: option.rate, carries }
}

/// Aggregated replicas, the best of each size.
fn aggregated_workers(
    cache: &ShapeCache,
    formats: usize,
    incumbents: &aggregated::Incumbents,
) -> Vec<(Worker, aggregated::AggregatedKey)> {
    let osl = cache.problem.workload.lengths.osl as f64;
    let held = |key: &aggregated::AggregatedKey| cache.shapes[key.shape].offload == Offload::Nothing;
    let of_formats = incumbents.best.iter().filter(|(of, (_, key))| of.formats == formats && held(key));
    let worker = |devices, point: &Point| Worker {
        devices,
        works: point[place(Metric::OutputTokS)] / osl,
        carries: f64::INFINITY,
    };
    of_formats.map(|(of, (point, key))| (worker(of.devices, point), *key)).collect()
}

/// The load with the highest rate of each list, by the TPOT bound that it was searched for.
#[derive(Default)]
struct HighestRates {
    known: BTreeMap<usize, BTreeMap<u64, Option<DecodeOption>>>,
}

impl HighestRates {
    /// [`highest_rate`] of the list at index `at`: the result of a looser TPOT bound where it is fast enough.
    fn at(
        &mut self,
        cache: &ShapeCache,
        (at, list): (usize, &DecodeOptionList),
        tpot_limit: f64,
    ) -> Option<DecodeOption> {
        let known = self.known.entry(at).or_default();
        // TPOT bounds are positive, so their bits sort as they do.
        let slower = known.range(tpot_limit.to_bits()..).next().map(|(_, option)| *option);
        match slower {
            Some(option) if option.is_none_or(|option| option.tpot <= tpot_limit) => option,
            _ => *known.entry(tpot_limit.to_bits()).or_insert_with(|| highest_rate(cache, list, tpot_limit)),
        }
    }
}

/// The load of a list, listed or not, with the highest request rate at no more than `tpot_limit` seconds per token.
fn highest_rate(cache: &ShapeCache, list: &DecodeOptionList, tpot_limit: f64) -> Option<DecodeOption> {
    let more = |a: DecodeOption, b: DecodeOption| if b.rate > a.rate { b } else { a };
    let mut best = list.options.iter().copied().filter(|one| one.tpot <= tpot_limit).reduce(more);
    let at = |option: &DecodeOption, load| reload(cache.get(option.shape), option, load);
    let mut open: Vec<LoadGap> = list.gaps.clone();
    while let Some(gap) = open.pop() {
        let beaten = best.is_some_and(|best| gap.ideal(0.0).rate <= best.rate);
        if beaten || gap.bound.tpot > tpot_limit {
            continue;
        }
        if gap.count() == 1 {
            let there = at(&gap.bound, gap.loads.0);
            if there.tpot <= tpot_limit {
                best = Some(best.map_or(there, |best| more(best, there)));
            }
        } else {
            open.extend(gap.halves(at));
        }
    }
    best
}

/// The full mix, with decode workers loaded no more than the prefill workers can feed.
fn deployed(cache: &ShapeCache, choice: &MixOptions, mix: &WorkerMix, formats: usize) -> Candidate {
    let mut pools = Vec::new();
    for (prefill, count) in choice.prefill.iter().zip(&mix.prefill) {
        let shape = &prefill.prepared.shape;
        pools.push(shape.pool(Role::Prefill, *count, shape.plan.dp));
    }
    let decode_options: Vec<(DecodeOption, u64)> = choice
        .decode
        .iter()
        .copied()
        .zip(mix.decode.iter().copied())
        .filter(|(_, count)| *count > 0)
        .collect();
    for (option, count) in reduced_loads(cache, decode_options, mix.disaggregated_rate) {
        pools.push(cache.shapes[option.shape].pool(Role::Decode, count, option.concurrency));
    }
    for (key, count) in choice.aggregated.iter().zip(&mix.aggregated) {
        pools.push(cache.shapes[key.shape].pool(Role::Aggregated, *count, key.concurrency));
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
fn reduced_loads(
    cache: &ShapeCache,
    decode_options: Vec<(DecodeOption, u64)>,
    rate: f64,
) -> Vec<(DecodeOption, u64)> {
    let at = |option: &DecodeOption, load| reload(cache.get(option.shape), option, load);
    let within = |tpot_limit: f64| -> Vec<(DecodeOption, u64)> {
        let reduced = |(option, count): &(DecodeOption, u64)| {
            let prepared = cache.get(option.shape);
            let most = option.concurrency / prepared.shape.plan.dp;
            let requests = super::shape::largest(most, |requests| {
                at(option, prepared.concurrency(requests)).tpot <= tpot_limit
            });
            (at(option, prepared.concurrency(requests.max(1))), *count)
        };
        decode_options.iter().map(reduced).collect()
    };
    let enough = |decode_options: &[(DecodeOption, u64)]| {
        decode_options.iter().map(|(option, count)| option.rate * *count as f64).sum::<f64>() >= rate
    };
    let slowest = decode_options.iter().map(|(option, _)| option.tpot).fold(0.0, f64::max);
    let (mut low, mut high, mut kept) = (0.0, slowest, decode_options.clone());
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        let tried = within(middle);
        if enough(&tried) { (high, kept) = (middle, tried) } else { low = middle }
    }
    kept
}
