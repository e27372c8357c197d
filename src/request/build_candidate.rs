//! From a typed plan to a candidate of a problem: implied degrees, pipeline cuts, concurrency.

use crate::spec::offload::{Offload, OffloadPolicy};
use crate::spec::role::Role;
use std::sync::Arc;

use crate::graph::model::ModelGraph;
use crate::plan::legal::has_experts;
use crate::plan::parallel::ParallelPlan;
use crate::quantity::read::Plain;
use crate::report::answer::{carried, forbidden, unbound};
use crate::search::best_load::{OpenPool, put, set_best_load};
use crate::search::candidate::{Candidate, PoolPlan};
use crate::search::hosting::on_node;
use crate::search::point::point;
use crate::search::problem::{Problem, Traffic};
use crate::search::shape::{largest, shape, usual_cut};
use crate::search::shortage::shortage;
use crate::serving::instance::Instance;
use crate::spec::degree::{Degree, Degrees};
use crate::spec::error::Error;
use crate::spec::notation::{PlanText, PoolText};

/// The candidate of a plan. Pipelines are cut into balanced stages unless the plan gives the cut. Concurrency per
/// replica: the plan's, else a share of the total concurrency, or the best within the SLOs. Under a request rate it follows
/// from that (Little's law): the least that sustains it, up to that of the plan. Where a plan holds nothing in device memory
/// and does not state everything, a part of it may lie in host memory.
///
/// # Errors
/// Its degrees contradict each other or the model, or it needs more devices than available.
pub fn candidate(problem: &Problem, text: &PlanText) -> Result<Candidate, Error> {
    let mut candidate = Candidate {
        formats: formats(problem, text)?,
        pools: text.pools.iter().map(|pool| pool_plan(problem, pool)).collect::<Result<_, _>>()?,
        offload: match (text.offload, text.host) {
            (None, None) => Offload::Nothing,
            (None, Some(part)) => Offload::Host(part),
            (Some(part), None) => Offload::Streamed(part),
            (Some(_), Some(_)) => {
                let fix = "keep one: `offload` streams over the host link, `host` computes there";
                return Err(Error::new("plan", "both offload and host", "one of them", fix));
            }
        },
    };
    let order = [Role::Prefill, Role::Decode, Role::Aggregated];
    let mut open: Vec<(PoolPlan, bool)> =
        candidate.pools.drain(..).zip(text.pools.iter().map(|pool| pool.concurrency.is_none())).collect();
    open.sort_by_key(|(pool, _)| order.iter().position(|role| *role == pool.role));
    let (pools, open): (Vec<PoolPlan>, Vec<bool>) = open.into_iter().unzip();
    candidate.pools = pools;
    let (there, used) = (problem.cluster.devices(), candidate.devices());
    if used > there {
        let expected = format!("at most {there}, the devices of {}", problem.cluster.name);
        let fix = "lower a degree or the replicas, or set more hardware";
        return Err(Error::new("deployment", format!("{used} devices"), expected, fix));
    }
    let has = |role| candidate.pools.iter().any(|pool| pool.role == role);
    if has(Role::Prefill) != has(Role::Decode) {
        let found = if has(Role::Prefill) { "only a prefill pool" } else { "only a decode pool" };
        let expected = "a prefill pool and a decode pool";
        return Err(Error::new("plan", found, expected, "add the other pool, or omit the pool name"));
    }
    if candidate.offload != Offload::Nothing && has(Role::Prefill) {
        let expected = "aggregated pools: transferred KV caches must lie in device memory";
        let fix = "omit the offload, or the disaggregation";
        return Err(Error::new("plan", "offload in disaggregated pools", expected, fix));
    }
    // A plan that no rule allows cannot be sharded.
    if forbidden(problem, &candidate).is_empty() {
        load(problem, &mut candidate, &open);
        if !text.states_all() && holds_none(problem, &candidate) {
            candidate = with_host_memory(problem, &candidate, &open).unwrap_or(candidate);
        }
        enough(problem, &candidate)?;
    }
    Ok(candidate)
}

/// Whether a pool holds no request in device memory.
fn holds_none(problem: &Problem, candidate: &Candidate) -> bool {
    candidate.offload == Offload::Nothing
        && (0..candidate.pools.len()).any(|at| fits(problem, candidate, at) == 0)
}

/// The same plan with the best part of it in host memory, as the search chooses it where nothing fits without; none where no
/// part makes it fit, or the scenario rules it out.
fn with_host_memory(problem: &Problem, candidate: &Candidate, open: &[bool]) -> Option<Candidate> {
    let allowed = match problem.offload {
        OffloadPolicy::Never => false,
        OffloadPolicy::Auto | OffloadPolicy::Always => shortage(problem).is_some(),
    };
    if !allowed || candidate.is_disaggregated() {
        return None;
    }
    let first = candidate.pools.first()?;
    let whole = Instance::new(&problem.graph, first.plan, first.stages.clone(), problem.tiers());
    let parts = problem.offloads(candidate.formats, &whole, false).into_iter().filter_map(|offload| {
        let mut hosted = Candidate { offload, ..candidate.clone() };
        let legal = forbidden(problem, &hosted).is_empty();
        if !legal || (0..hosted.pools.len()).any(|at| fits(problem, &hosted, at) == 0) {
            return None;
        }
        load(problem, &mut hosted, open);
        let evaluation = hosted.evaluate(&Plain, problem, &mut ());
        let misses = problem.missed_in_pools(&evaluation, hosted.margin(problem)).count();
        Some((misses, point(&evaluation.metrics), hosted))
    });
    let best = parts.min_by(|a, b| a.0.cmp(&b.0).then_with(|| problem.compare(&a.1, &b.1)));
    best.map(|(.., hosted)| hosted)
}

fn formats(problem: &Problem, text: &PlanText) -> Result<usize, Error> {
    let is = |named: &Option<String>, id: &str| named.as_ref().is_none_or(|named| named == id);
    let fits =
        problem.formats.iter().position(|one| is(&text.weights, &one.weights) && is(&text.kv, &one.kv));
    fits.ok_or_else(|| {
        let known = problem.formats.iter().map(|one| format!("weights {}, kv {}", one.weights, one.kv));
        let name = |id: &Option<String>| id.clone().unwrap_or_else(|| "any".to_string());
        let found = format!("weights {}, kv {}", name(&text.weights), name(&text.kv));
        let fix = "omit them from the plan, or set --weight-format and --kv-format";
        Error::new("plan", found, known.collect::<Vec<_>>().join("; "), fix)
    })
}

/// Equal replicas; their concurrency is still open.
fn pool_plan(problem: &Problem, text: &PoolText) -> Result<PoolPlan, Error> {
    let prefix = text.role.flag_prefix();
    let plan = plan(&text.degrees, &problem.graph, prefix)?;
    let stages = match &text.degrees.stages {
        Some(stages) => cut(problem, &plan, stages, prefix)?,
        None => vec![],
    };
    let concurrency = text.concurrency.unwrap_or(plan.dp);
    Ok(PoolPlan { role: text.role, plan, stages, replicas: text.degrees.replicas.unwrap_or(1), concurrency })
}

/// Pipeline stages that hold all layers of the model.
fn cut(problem: &Problem, plan: &ParallelPlan, stages: &[u32], prefix: &str) -> Result<Vec<u32>, Error> {
    let layers = problem.graph.layer_block.len() as u64;
    let sum: u64 = stages.iter().map(|layers| u64::from(*layers)).sum();
    let wrong = |found: String, expected: String| {
        let fix = "give the layers of each stage, first to last, or omit them for a balanced cut";
        Err(Error::new(format!("{prefix}stages"), found, expected, fix))
    };
    if stages.len() as u64 != plan.pp {
        return wrong(format!("{} stages", stages.len()), format!("{}, the pipeline degree", plan.pp));
    }
    if stages.contains(&0) {
        return wrong("a stage without layers".to_string(), "at least one layer in each stage".to_string());
    }
    if sum != layers {
        return wrong(format!("{sum} layers in total"), format!("{layers}, the layers of the model"));
    }
    Ok(stages.to_vec())
}

/// Fills in the implied degrees: expert layers use the devices of attention.
fn plan(degrees: &Degrees, graph: &ModelGraph, prefix: &str) -> Result<ParallelPlan, Error> {
    let one = |degree: Option<u64>| degree.unwrap_or(1);
    let (tp, pp, dp, cp) = (one(degrees.tp), one(degrees.pp), one(degrees.dp), one(degrees.cp));
    let dcp = one(degrees.dcp);
    let sp = degrees.sp.unwrap_or(false);
    let other = |degree: Option<u64>| degree.filter(|degree| *degree != tp);
    let whole = ParallelPlan {
        tp,
        pp,
        dp,
        cp,
        dcp,
        sp,
        ffn_tp: other(degrees.ffn_tp),
        vocab_tp: other(degrees.vocab_tp),
        ..ParallelPlan::SINGLE
    }
    .without_experts();
    let stage = whole.stage_devices();
    let product = [stage, pp, one(degrees.replicas)].iter().try_fold(1u64, |all, n| all.checked_mul(*n));
    if product.is_none_or(|devices| devices > 1 << 20) {
        let found = format!("{stage} devices of a stage x pp {pp} x replicas {}", one(degrees.replicas));
        return Err(Error::new("deployment", found, "at most 1048576 devices", "lower the degrees"));
    }
    if !has_experts(graph) {
        let cuts = |degree: &Degree| degrees.get(*degree).is_some_and(|n| n > 1);
        if let Some(degree) = [Degree::Ep, Degree::MoeTp].into_iter().find(cuts) {
            let found = format!("{} for a model without experts", one(degrees.get(degree)));
            let key = format!("{prefix}{}", degree.flag());
            return Err(Error::new(key, found, "1, or no value", "omit it"));
        }
        return Ok(whole);
    }
    let ep = match (degrees.ep, degrees.get(Degree::MoeTp)) {
        (None, None) => 1,
        (Some(ep), None) if stage.is_multiple_of(ep) => ep,
        (None, Some(inside)) if stage.is_multiple_of(inside) => stage / inside,
        (Some(ep), Some(inside)) if ep.checked_mul(inside) == Some(stage) => ep,
        (ep, inside) => {
            let spell = |degree: Option<u64>| degree.map_or("unset".to_owned(), |n| n.to_string());
            let found = format!("ep {}, moe-tp {}", spell(ep), spell(inside));
            let expected = format!("ep x moe-tp = {stage}, the devices of a stage");
            let fix = "set one of them to a divisor";
            return Err(Error::new(format!("{prefix}ep"), found, expected, fix));
        }
    };
    Ok(whole.with_experts(ep))
}

/// Cuts pipelines and sets the concurrency of the pools that are `open`.
fn load(problem: &Problem, candidate: &mut Candidate, open: &[bool]) {
    for pool in candidate.pools.iter_mut().filter(|pool| pool.stages.is_empty()) {
        pool.stages = usual_cut(&problem.graph, pool.plan.pp);
    }
    let generates = |pool: &PoolPlan| pool.role != Role::Prefill;
    let capped: Vec<usize> =
        (0..open.len()).filter(|at| !open[*at] && generates(&candidate.pools[*at])).collect();
    let open: Vec<usize> =
        (0..open.len()).filter(|at| open[*at] && generates(&candidate.pools[*at])).collect();
    if let Traffic::Rate(rate) = problem.traffic {
        return at_rate(problem, candidate, rate, (&open, &capped));
    }
    if open.is_empty() {
        return;
    }
    if let Some(requests) = problem.traffic.requests() {
        let fixed = |(at, pool): (usize, &PoolPlan)| match open.contains(&at) || !generates(pool) {
            true => 0,
            false => pool.replicas.saturating_mul(pool.concurrency),
        };
        let there: u64 = candidate.pools.iter().enumerate().map(fixed).fold(0, u64::saturating_add);
        let instances: u64 = open.iter().map(|at| candidate.pools[*at].replicas).sum();
        let each = requests.saturating_sub(there).div_ceil(instances.max(1)).max(1);
        open.iter().for_each(|at| candidate.pools[*at].concurrency = each);
        return;
    }
    let open: Vec<OpenPool> = open.into_iter().map(|at| (at, fits(problem, candidate, at))).collect();
    set_best_load(problem, candidate, &open);
}

/// Sets the smallest concurrency that sustains a request rate: up to what fits in the pools that are `open`, and up to
/// that of the plan in the others, in whole requests per attention rank.
fn at_rate(problem: &Problem, candidate: &mut Candidate, rate: f64, (open, capped): (&[usize], &[usize])) {
    let fitting = open.iter().map(|at| (*at, fits(problem, candidate, *at)));
    let ranks = |pool: &PoolPlan| pool.concurrency.div_ceil(pool.plan.dp);
    let given = capped.iter().map(|at| (*at, ranks(&candidate.pools[*at])));
    let most: Vec<OpenPool> = fitting.chain(given).collect();
    let full = most.iter().map(|(_, most)| *most).max().unwrap_or(1);
    let (unbound, mut probe) = (unbound(problem), candidate.clone());
    let too_few = largest(full, |requests| {
        put(&mut probe.pools, &most, requests);
        carried(&unbound, &probe) < rate
    });
    put(&mut candidate.pools, &most, (too_few + 1).min(full));
}

/// Requests per rank that fit in a replica of a pool; 0 where not even one fits.
fn fits(problem: &Problem, candidate: &Candidate, at: usize) -> u64 {
    let pool = &candidate.pools[at];
    let instance = Instance::new(&problem.graph, pool.plan, pool.stages.clone(), problem.tiers());
    let shared = (candidate.offload, on_node(problem, pool.replicas));
    shape(problem, candidate.formats, &Arc::new(instance), shared).map_or(0, |shape| shape.fits)
}

/// Checks that aggregated pools hold the whole requested concurrency.
fn enough(problem: &Problem, candidate: &Candidate) -> Result<(), Error> {
    if let Some(most) = problem.most_sequences.filter(|most| candidate.requests_per_rank() > *most) {
        let found = format!("{} requests per scheduler", candidate.requests_per_rank());
        let fix = "lower --concurrency, or raise --max-num-seqs or the replicas";
        return Err(Error::new("concurrency", found, format!("at most {most}, --max-num-seqs"), fix));
    }
    let Some(requests) = problem.traffic.requests() else { return Ok(()) };
    let each = candidate.pools.iter().map(|pool| pool.replicas.saturating_mul(pool.concurrency));
    let there = each.fold(0, u64::saturating_add);
    if candidate.is_disaggregated() || there >= requests {
        return Ok(());
    }
    let fix = "raise @ of a pool, or omit it";
    let expected = format!("at least {requests}, the requested concurrency");
    Err(Error::new("plan", format!("a concurrency of {there} over all replicas"), expected, fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::deployment::Deployment;
    use crate::spec::scenario::Scenario;
    use crate::store::catalog::Catalog;
    use crate::store::resolved_scenario::ResolvedScenario;

    fn question(model: &str, hardware: &str) -> Problem {
        let (model, hardware) = (Some(model.into()), Some(hardware.into()));
        let scenario = Scenario { model, hardware, ..Scenario::default() };
        ResolvedScenario::resolve(&Catalog::default(), &scenario).unwrap().problem().unwrap()
    }

    fn of(problem: &Problem, both: Degrees) -> Result<Candidate, Error> {
        candidate(problem, &Deployment { both, ..Deployment::default() }.text()?)
    }

    fn typed(problem: &Problem, plan: &str) -> Result<Candidate, Error> {
        candidate(problem, &plan.parse()?)
    }

    #[test]
    fn expert_degrees_follow_from_the_others() {
        let degrees = |tp, dp, ep, inside| {
            let mut degrees = Degrees { tp, dp, ep, ..Degrees::default() };
            *degrees.get_mut(Degree::MoeTp).unwrap() = inside;
            degrees
        };
        let split = |found: Result<Candidate, Error>| {
            let plan = found.unwrap().pools[0].plan;
            (plan.ep, plan.degree(Degree::MoeTp))
        };
        let experts = question("DeepSeek-V3", "8xh200");
        let moe = |degrees| of(&experts, degrees);
        assert_eq!(split(moe(degrees(Some(8), None, None, None))), (1, 8));
        assert_eq!(split(moe(degrees(Some(1), Some(8), Some(8), None))), (8, 1));
        assert_eq!(split(moe(degrees(Some(4), Some(2), None, Some(2)))), (4, 2));
        assert_eq!(moe(degrees(Some(4), Some(2), Some(3), None)).unwrap_err().key, "ep");
        let dense = question("Llama-3.1-8B", "8xh100");
        assert_eq!(split(of(&dense, degrees(Some(4), None, None, None))), (1, 4));
        assert!(of(&dense, degrees(None, None, Some(8), None)).is_err());
    }

    #[test]
    fn a_deployment_takes_no_more_devices_than_there_are() {
        let degrees = Degrees { tp: Some(4), replicas: Some(3), ..Degrees::default() };
        let error = of(&question("Llama-3.1-8B", "8xh100"), degrees).unwrap_err();
        assert_eq!(error.found, "12 devices");
        let degrees =
            Degrees { tp: Some(1 << 20), dp: Some(1 << 20), pp: Some(1 << 20), ..Degrees::default() };
        assert!(of(&question("DeepSeek-V3", "8xh100"), degrees).is_err());
    }

    #[test]
    fn a_plan_in_one_line_has_pools_cuts_and_loads_of_its_own() {
        let dense = question("Llama-3.1-8B", "8xh100");
        let found = typed(&dense, "both 1 x tp1 @3, decode 1 x tp2 @24, prefill 2 x pp2[20,12] @1").unwrap();
        let pools: Vec<_> =
            found.pools.iter().map(|pool| (pool.role, pool.replicas, pool.concurrency)).collect();
        assert_eq!(pools, [(Role::Prefill, 2, 1), (Role::Decode, 1, 24), (Role::Aggregated, 1, 3)]);
        assert_eq!(found.pools[0].stages, [20, 12]);
        let mix = typed(&dense, "1 x tp4 + 2 x tp1, weights fp8").unwrap();
        assert_eq!(dense.formats[mix.formats].weights, "fp8");
        assert!(mix.pools[0].concurrency > mix.pools[1].concurrency, "each as many as fit: {mix:?}");
    }

    #[test]
    fn what_contradicts_the_model_or_the_traffic_is_refused() {
        let mut dense = question("Llama-3.1-8B", "8xh100");
        for (plan, key) in [
            ("pp2[20,20]", "stages"),
            ("pp2[8,8,16]", "stages"),
            ("pp2[32,0]", "plan"),
            ("prefill tp1", "plan"),
            ("tp1, weights q9", "plan"),
            ("prefill tp1, decode tp1, offload kv", "plan"),
            ("ep8", "ep"),
        ] {
            assert_eq!(typed(&dense, plan).unwrap_err().key, key, "{plan}");
        }
        dense.traffic = Traffic::InFlight(40.into());
        assert_eq!(typed(&dense, "2 x tp1 @19").unwrap_err().key, "plan");
        assert_eq!(typed(&dense, "1 x tp2 @19 + 3 x tp1").unwrap().pools[1].concurrency, 7);
    }
}
