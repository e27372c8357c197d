//! Binding constraints: each limit, and its value one step further, found by evaluating that step.

use crate::spec::role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::fits;
use super::breakdown::CLASSES;
use super::detail::PhaseTime;
use super::number::{
    count, digits, format_metric, gib, limit as spell, percent, plain, requests, time, word,
};
use super::reporter::Reporter;
use super::table::grouped;
use crate::plan::parallel::Phase;
use crate::search::candidate::{Candidate, PoolPlan, in_flight};
use crate::search::point::{Point, before, place, point};
use crate::search::problem::{Problem, Traffic};
use crate::spec::objective::Metric;

/// The limiting resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// The TTFT SLO.
    Ttft,
    /// The TPOT SLO.
    Tpot,
    /// The E2E SLO.
    E2e,
    /// Device memory.
    Memory,
    /// Prefill workers.
    PrefillPool,
    /// Decode workers.
    DecodePool,
    /// Devices of the system.
    Devices,
    /// The given traffic.
    Traffic,
    /// The context length that the model supports.
    Context,
    /// The time of a step.
    Step,
}

/// A constraint that may prevent a better deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Constraint {
    /// The limiting resource.
    pub resource: Resource,
    /// Whether one step further violates it, or more of it would improve the objective.
    pub binds: bool,
    /// Fraction in use, 0 to 1; null if not measurable.
    pub used: Option<f64>,
    /// Description with numbers.
    pub why: String,
}

struct Probe {
    candidate: Candidate,
    /// Mean number of requests in it.
    in_flight: f64,
    point: Point,
    /// Memory of the fullest device over all pools, bytes: held, usable.
    memory: (f64, f64),
    fits: bool,
}

impl Probe {
    fn of(reporter: &Reporter, candidate: Candidate) -> Probe {
        let instances = reporter.instances(&candidate);
        let evaluation = reporter.evaluate(&candidate, &instances, &mut ());
        let all = reporter.held(&candidate, &instances, &evaluation);
        let held = all.iter().map(|held| (held.total.value(), held.usable.value()));
        let held = held.max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1))).unwrap_or((0.0, f64::INFINITY));
        let fits = evaluation.spilled.is_some() || all.iter().all(fits);
        Probe {
            in_flight: in_flight(reporter.problem(), &evaluation),
            point: point(&evaluation.metrics),
            candidate,
            memory: held,
            fits,
        }
    }

    fn output(&self) -> f64 {
        self.point[place(Metric::OutputTokS)]
    }
}

/// The candidate with its pools changed; given requests are spread over the pools that decode.
fn with_pool_change(problem: &Problem, candidate: &Candidate, change: impl Fn(&mut PoolPlan)) -> Candidate {
    let mut other = candidate.clone();
    other.pools.iter_mut().for_each(change);
    if let Some(requests) = problem.traffic.requests() {
        let decodes = |pool: &PoolPlan| pool.role != Role::Prefill;
        let instances: u64 = other.pools.iter().filter(|pool| decodes(pool)).map(|pool| pool.replicas).sum();
        for pool in other.pools.iter_mut().filter(|pool| decodes(pool)) {
            pool.concurrency = requests.div_ceil(instances.max(1));
        }
    }
    other
}

/// Every constraint of `candidate`, and whether it binds.
pub fn constraints(reporter: &Reporter, candidate: &Candidate, phases: &[PhaseTime]) -> Vec<Constraint> {
    let problem = reporter.problem();
    let now = Probe::of(reporter, candidate.clone());
    let more = (problem.traffic == Traffic::Free).then(|| {
        let grow = |pool: &mut PoolPlan| {
            if pool.role != Role::Prefill {
                pool.concurrency += pool.plan.dp;
            }
        };
        Probe::of(reporter, with_pool_change(problem, candidate, grow))
    });
    let mut found: Vec<Constraint> = [Metric::Ttft, Metric::Tpot, Metric::E2e]
        .into_iter()
        .filter_map(|metric| latency(problem, metric, &now, more.as_ref()))
        .collect();
    found.push(memory(problem, &now, more.as_ref()));
    if candidate.pools[0].role == Role::Prefill && !matches!(problem.traffic, Traffic::Rate(_)) {
        found.extend([Role::Prefill, Role::Decode].map(|role| pool(reporter, &now, role)));
    }
    found.push(devices(reporter, &now));
    found.extend(traffic(problem, &now));
    found.extend(context(problem, &now));
    let alone = !found.iter().any(|constraint| constraint.binds);
    found.extend(step(problem, phases, alone));
    found
}

fn at(probe: &Probe) -> String {
    format!("at concurrency {}", requests(probe.in_flight))
}

fn latency(problem: &Problem, metric: Metric, now: &Probe, more: Option<&Probe>) -> Option<Constraint> {
    let limit = problem.limit(metric)?;
    let resource = match metric {
        Metric::Ttft => Resource::Ttft,
        Metric::Tpot => Resource::Tpot,
        _ => Resource::E2e,
    };
    let value = now.point[place(metric)];
    let breaks = more.filter(|more| more.point[place(metric)] > limit);
    let further = breaks
        .map_or_else(String::new, |more| format!("; {} {}", time(more.point[place(metric)] * 1e3), at(more)));
    Some(Constraint {
        resource,
        binds: breaks.is_some() || value > limit,
        used: Some(value / limit),
        why: format!("{} {} of {}{further}", word(metric), time(value * 1e3), spell(limit * 1e3)),
    })
}

fn memory(problem: &Problem, now: &Probe, more: Option<&Probe>) -> Constraint {
    let breaks = more.filter(|more| !more.fits);
    let (held, usable) = now.memory;
    let further = breaks.map_or_else(String::new, |more| format!("; {} {}", gib(more.memory.0), at(more)));
    let longest = problem.objective.first().is_some_and(|term| term.metric == Metric::MaxContext);
    let context = longest && !at_models_limit(problem, now);
    Constraint {
        resource: Resource::Memory,
        binds: breaks.is_some() || !now.fits || context,
        used: Some(held / usable),
        why: format!("memory {} of {} usable{further}", gib(held), gib(usable)),
    }
}

/// Relative throughput gain below which a change has no effect.
const GAIN: f64 = 0.01;

fn pool(reporter: &Reporter, now: &Probe, role: Role) -> Constraint {
    let problem = reporter.problem();
    let (resource, name) = match role {
        Role::Prefill => (Resource::PrefillPool, "prefill"),
        _ => (Resource::DecodePool, "decode"),
    };
    // Of several configurations, one more of the first.
    let first = now.candidate.pools.iter().find(|pool| pool.role == role);
    let has = first.map_or(1, |pool| pool.replicas);
    let one_more = |loaded: bool| {
        let grow = |pool: &mut PoolPlan| {
            if Some(&*pool) == first {
                pool.replicas += 1;
            } else if loaded && pool.role == Role::Decode {
                // The additional prompts are also decoded.
                let ranks = (pool.concurrency * (has + 1)).div_ceil(has * pool.plan.dp);
                pool.concurrency = ranks * pool.plan.dp;
            }
        };
        Probe::of(reporter, with_pool_change(problem, &now.candidate, grow))
    };
    let keeps =
        |probe: &Probe| probe.fits && problem.missed(&probe.point, probe.candidate.margin(problem)).is_none();
    let tries = [one_more(false), one_more(true)].into_iter().filter(keeps);
    let then = tries.max_by(|a, b| a.output().total_cmp(&b.output()));
    let gain = then.as_ref().map_or(0.0, |then| then.output() / now.output() - 1.0);
    let why = match &then {
        Some(then) if gain >= GAIN => format!(
            "one more {name} worker gives {} instead of {}, {}",
            format_metric(Metric::OutputTokS, then.output()),
            digits(now.output()),
            at(then)
        ),
        _ => format!("one more {name} worker alone gives no gain"),
    };
    let better = then.is_some_and(|then| before(&then.point, &now.point, &problem.objective));
    Constraint { resource, binds: better && gain >= GAIN, used: None, why }
}

fn devices(reporter: &Reporter, now: &Probe) -> Constraint {
    let problem = reporter.problem();
    let pools = &now.candidate.pools;
    let (used, all) = (now.candidate.devices(), problem.cluster.devices());
    let least = pools.iter().map(|pool| pool.plan.devices()).min().unwrap_or(1);
    let idle = all.saturating_sub(used);
    let alike = pools.len() == 1;
    let placed = !alike || pools[0].replicas < problem.capacity().most(pools[0].plan.devices());
    let fits_one_more = idle >= least && placed;
    let doubled = Probe::of(reporter, with_pool_change(problem, &now.candidate, |pool| pool.replicas *= 2));
    let wanted = before(&doubled.point, &now.point, &problem.objective);
    let why = match idle {
        0 if all == 1 => "the only device is in use".to_string(),
        0 => format!("all {} in use", count(all, "device")),
        _ if fits_one_more => {
            let better = pools.iter().enumerate().any(|(index, pool)| {
                let one = |other: &mut PoolPlan| other.replicas += u64::from(other == pool);
                let more = Probe::of(reporter, with_pool_change(problem, &now.candidate, one));
                pools[index].plan.devices() <= idle && before(&more.point, &now.point, &problem.objective)
            });
            let verdict = if better { "improves the objective" } else { "does not improve the objective" };
            format!("{used} of {all} devices in use; another replica {verdict}")
        }
        _ if idle < least => {
            format!("{used} of {all} devices in use; a replica needs {least}, {idle} idle")
        }
        _ => {
            let domain = problem.cluster.domain();
            format!(
                "{used} of {all} devices in use; no domain of {domain} devices has room for another replica"
            )
        }
    };
    Constraint {
        resource: Resource::Devices,
        binds: wanted && !fits_one_more,
        used: Some(used as f64 / all as f64),
        why,
    }
}

fn traffic(problem: &Problem, now: &Probe) -> Option<Constraint> {
    let (more, why) = match problem.traffic {
        Traffic::Free => return None,
        Traffic::InFlight(_) => {
            let requests = problem.traffic.requests()?;
            let why = format!("{}, as given", count(requests, "concurrent request"));
            (Traffic::InFlight((requests + 1).into()), why)
        }
        Traffic::Rate(rate) => (Traffic::Rate(rate * 1.01), format!("{} requests/s, as given", plain(rate))),
    };
    let mut busier = problem.clone();
    busier.traffic = more;
    let then = Probe::of(&Reporter::new(&busier), with_pool_change(&busier, &now.candidate, |_| {}));
    let binds = then.fits && busier.missed(&then.point, then.candidate.margin(&busier)).is_none();
    let binds = binds && before(&then.point, &now.point, &problem.objective);
    Some(Constraint { resource: Resource::Traffic, binds, used: None, why })
}

fn at_models_limit(problem: &Problem, now: &Probe) -> bool {
    let most = problem.longest_taken().map_or(f64::INFINITY, |most| most as f64);
    now.point[place(Metric::MaxContext)] >= most
}

fn context(problem: &Problem, now: &Probe) -> Option<Constraint> {
    let most = problem.graph.max_context?;
    let value = now.point[place(Metric::MaxContext)];
    let aimed = problem.objective.first().is_some_and(|term| term.metric == Metric::MaxContext);
    let why = format!("{}, the model supports {}", format_metric(Metric::MaxContext, value), grouped(most));
    aimed.then(|| Constraint {
        resource: Resource::Context,
        binds: at_models_limit(problem, now),
        used: Some(value / most as f64),
        why,
    })
}

/// The largest bottleneck of the step that the objective depends on.
fn step(problem: &Problem, phases: &[PhaseTime], alone: bool) -> Option<Constraint> {
    let objective = problem.objective.first()?.metric;
    let waits = matches!(objective, Metric::Ttft | Metric::Tpot | Metric::E2e | Metric::OutputTokSPerUser);
    let phase = if objective == Metric::Ttft { Phase::Prefill } else { Phase::Decode };
    let times = phases.iter().find(|times| times.phase == phase)?;
    let most = CLASSES.into_iter().max_by(|a, b| times.of(*a).total_cmp(&times.of(*b)))?;
    let share = times.of(most) / times.operators_ms;
    let what = if phase == Phase::Prefill { "a prefill" } else { "a decode step" };
    Some(Constraint {
        resource: Resource::Step,
        binds: waits || alone,
        used: Some(share),
        why: format!("{} takes {} of {what}", most.name(), percent(share)),
    })
}
