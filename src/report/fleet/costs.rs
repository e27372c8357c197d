//! The costs of a fleet: by day, month and year, by token of prompt and output, and by traffic bucket.

use crate::spec::role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FleetProblem, Routed, Systems};
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::search::fleet::carried::{Carried, at_rate};
use crate::serving::economy::{usd_per_day, usd_per_month, usd_per_phase_token};
use crate::serving::terms::Lengths;
use crate::serving::utilization::prompt_load;
use crate::spec::defaults::HOUR;
use crate::spec::price::HOURS_OF_A_DAY;

const MONTHS_OF_A_YEAR: f64 = 12.0;
const MILLION: f64 = 1e6;

/// The costs of a fleet.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FleetCosts {
    /// Hours a day that the fleet runs.
    pub hours_per_day: f64,
    /// US dollars per hour in which it runs.
    pub usd_per_hour: f64,
    /// US dollars per day.
    pub usd_per_day: f64,
    /// US dollars per month, a twelfth of a year.
    pub usd_per_month: f64,
    /// US dollars per year.
    pub usd_per_year: f64,
    /// Output tokens per US dollar.
    #[serde(default)]
    pub tok_per_usd: f64,
    /// US dollars per million tokens of prompt and output.
    pub usd_per_mtok: f64,
    /// US dollars per million prompt tokens: the time that prefill takes.
    pub usd_per_mtok_in: f64,
    /// US dollars per million output tokens: the rest of the time.
    pub usd_per_mtok_out: f64,
    /// By bucket, in the order of the traffic.
    pub buckets: Vec<BucketCosts>,
}

/// The costs of a bucket.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BucketCosts {
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// The model.
    pub model: String,
    /// Requests per second that are served.
    pub requests_per_s: f64,
    /// US dollars per hour: its share of the busy time of its systems, with the same share of their idle time.
    pub usd_per_hour: f64,
    /// US dollars per thousand requests.
    pub usd_per_1k_requests: f64,
    /// US dollars per million prompt tokens.
    pub usd_per_mtok_in: f64,
    /// US dollars per million output tokens.
    pub usd_per_mtok_out: f64,
}

/// A part of a bucket on one kind of system.
struct RoutedCost<'a> {
    route: &'a Routed,
    /// US dollars per hour.
    usd_per_hour: f64,
    /// US dollars per hour of prefill.
    prefill: f64,
}

/// The costs of `systems`, which serve `routes`; `busy` are the systems that each route keeps busy. `kinds` has the kind
/// and the bucket of each route.
pub fn costs(
    problem: &FleetProblem,
    systems: &[Systems],
    routes: &[Routed],
    parts: &[(usize, usize, f64)],
) -> FleetCosts {
    let hours_per_day = problem.inputs.hours_per_day.unwrap_or(HOURS_OF_A_DAY);
    let usd_per_hour: f64 = systems.iter().map(|one| one.usd_per_hour).sum();
    let a_day = usd_per_day(Qty(usd_per_hour / HOUR), Qty(hours_per_day * HOUR));
    let a_month = usd_per_month(a_day).value();
    let routed: Vec<RoutedCost> = routes
        .iter()
        .zip(parts)
        .map(|(route, &(kind, bucket, busy))| {
            let of = &systems[route.systems as usize];
            let usd_per_hour = if of.busy > 0.0 { of.usd_per_hour * busy / of.busy } else { 0.0 };
            RoutedCost { route, usd_per_hour, prefill: usd_per_hour * prefill_share(problem, kind, bucket) }
        })
        .collect();
    let of_buckets = problem.inputs.buckets.iter().enumerate().map(|(at, bucket)| {
        let own = || routed.iter().zip(parts).filter(|(_, part)| part.1 == at).map(|(one, _)| one);
        let requests_per_s: f64 = own().map(|one| one.route.requests_per_s).sum();
        let (usd, prefill) = (own().map(|one| one.usd_per_hour).sum(), own().map(|one| one.prefill).sum());
        let per_token = mtok((usd, prefill), requests_per_s, (bucket.isl as f64, bucket.osl as f64));
        BucketCosts {
            isl: bucket.isl,
            osl: bucket.osl,
            model: problem.inputs.models[problem.fleet.buckets[at].model].clone(),
            requests_per_s,
            usd_per_hour: usd,
            usd_per_1k_requests: each(usd * 1e3, requests_per_s * HOUR),
            usd_per_mtok_in: per_token.0,
            usd_per_mtok_out: per_token.1,
        }
    });
    let buckets: Vec<BucketCosts> = of_buckets.collect();
    let tokens = |of: fn(&Routed) -> u64| -> f64 {
        routes.iter().map(|route| route.requests_per_s * of(route) as f64).sum::<f64>() * HOUR
    };
    let (inputs, outputs) = (tokens(|route| route.isl), tokens(|route| route.osl));
    let prefill: f64 = routed.iter().map(|one| one.prefill).sum();
    FleetCosts {
        hours_per_day,
        usd_per_hour,
        usd_per_day: a_day.value(),
        usd_per_month: a_month,
        usd_per_year: a_month * MONTHS_OF_A_YEAR,
        tok_per_usd: each(outputs, usd_per_hour),
        usd_per_mtok: each(usd_per_hour * MILLION, inputs + outputs),
        usd_per_mtok_in: each(prefill * MILLION, inputs),
        usd_per_mtok_out: each((usd_per_hour - prefill) * MILLION, outputs),
        buckets,
    }
}

/// A ratio; 0 of nothing.
fn each(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// US dollars per million prompt and output tokens of a bucket.
fn mtok((usd, prefill): (f64, f64), requests_per_s: f64, (isl, osl): (f64, f64)) -> (f64, f64) {
    if requests_per_s <= 0.0 || usd <= 0.0 {
        return (0.0, 0.0);
    }
    let one = |number: f64| Qty(number);
    let (prompts, outputs) =
        usd_per_phase_token(one(usd / HOUR), one(prefill / usd), one(requests_per_s), (one(isl), one(osl)));
    (prompts.value() * MILLION, outputs.value() * MILLION)
}

/// The share of the time of a kind of system at the capacity of a bucket that prefill takes: the devices of prefill
/// workers, or the time of prompts on replicas.
fn prefill_share(problem: &FleetProblem, kind: usize, bucket: usize) -> f64 {
    let origin = &problem.shapes[kind];
    let carried = origin.buckets.iter().position(|at| *at == bucket);
    let carried = carried.and_then(|at| origin.shape.carried[at].as_ref());
    carried.map_or(0.0, |carried| share_of(problem, kind, bucket, carried))
}

fn share_of(problem: &FleetProblem, kind: usize, bucket: usize, carried: &Carried) -> f64 {
    let pools = &carried.candidate.pools;
    let devices = |role: Option<Role>| -> f64 {
        let of = pools.iter().filter(|pool| role.is_none_or(|role| pool.role == role));
        of.map(|pool| (pool.replicas * pool.plan.devices()) as f64).sum()
    };
    if carried.candidate.is_disaggregated() {
        return devices(Some(Role::Prefill)) / devices(None);
    }
    let inputs = &problem.inputs.buckets[bucket];
    let lengths = Lengths { isl: inputs.isl, osl: inputs.osl, prefix: inputs.prefix };
    let own = at_rate(&problem.shapes[kind].problem.with_lengths(lengths), carried.requests_per_s);
    let prompt = carried.candidate.evaluate(&Plain, &own, &mut ()).prefill;
    let ranks: u64 = pools.iter().map(|pool| pool.replicas * pool.plan.dp).sum();
    let load = prompt_load(Qty(carried.requests_per_s), prompt.slowest, Qty(ranks as f64));
    load.value().min(1.0)
}
