//! A measured row, as the simulation of traffic repeats it: requests under a rate, of clients, or of sessions.

use std::cell::Cell;
use std::sync::Arc;

use super::layout::draft;
use crate::calibrate::deployment::MeasuredDeployment;
use crate::calibrate::measured_run::MeasuredRun;
use crate::plan::parallel::Phase;
use crate::request::simulate::{DEFAULT_SEED, REQUESTS_SENT};
use crate::search::problem::Problem;
use crate::search::simulated_pool::{InstanceClock, SchedulerInputs, tokens};
use crate::spec::role::Role;
use crate::traffic::agents::AgentPlay;
use crate::traffic::engine::SchedulerSettings;
use crate::traffic::outcome::{Distribution, RequestRecord};
use crate::traffic::router::RoutePolicy;
use crate::traffic::run::{DeploymentSettings, PoolSettings, RunTotals, run};
use crate::traffic::source::{Arrivals, DrawnTraffic, LengthDistribution, RequestSource, played};
use crate::validate::measured::{DRAWN_LENGTHS, MEAN_OF_DRAWN, MeasuredRow};
use crate::validate::measured_traffic::{MeasuredArrivals, MeasuredTraffic};
use crate::validate::replayed::AgentSessions;

/// A row with a traffic, ready to be simulated.
#[derive(Clone, Debug)]
pub struct SimulatedRow {
    /// Times of the steps of a replica.
    pub clock: InstanceClock,
    /// The replicas and their schedulers.
    pub pool: PoolSettings,
    router: RoutePolicy,
    requests: RowRequests,
    /// Requests at the start that no figure counts: those of an earlier stage that fill the caches.
    pub warm_up: u64,
}

/// Requests as a row describes them.
#[derive(Clone, Debug)]
enum RowRequests {
    Drawn(DrawnTraffic),
    /// Of this many clients.
    Sessions(AgentSessions, u64),
}

/// Latencies of the counted requests as their clients see them, in seconds.
#[derive(Clone, Debug, Default)]
pub struct SimulatedLatencies {
    pub ttft: Distribution,
    pub tpot: Distribution,
    pub e2e: Distribution,
    /// Tokens of their prompts, and those of them that the cache had.
    prompts: u64,
    cached: u64,
}

impl SimulatedLatencies {
    fn count(&mut self, one: &RequestRecord) {
        self.ttft.add(one.ttft_s(), 1);
        self.e2e.add(one.e2e_s(), 1);
        if let Some(tpot) = one.tpot_s() {
            self.tpot.add(tpot, 1);
        }
        self.prompts += u64::from(one.prompt);
        self.cached += u64::from(one.cached_tokens);
    }

    /// Share of the prompt tokens that the cache had.
    pub fn hit_rate(&self) -> Option<f64> {
        (self.prompts > 0).then(|| self.cached as f64 / self.prompts as f64)
    }
}

/// Requests of each client in the benchmarks of InferenceX (benchmarks/benchmark_lib.sh, num_prompts).
const REQUESTS_PER_CLIENT: u64 = 10;
/// Requests of each client of sessions before the figures begin: one for what it had in its context, and ten more, of one
/// token each; when all clients have theirs, all go on (AgentX methodology, warm-up).
const WARM_UP_PER_CLIENT: usize = 11;
/// The part of its first session at which a client begins, at least and at most (AgentX methodology, warm-up).
const BEGINS_WITHIN: [f64; 2] = [0.25, 0.75];

impl SimulatedRow {
    /// The simulation of `row`, whose only pool is `deployed`; or the reason why there is none. `caches_prefixes` says
    /// whether later prompts use the cached tokens of earlier ones.
    pub(super) fn new(
        problem: &Problem,
        caches_prefixes: bool,
        deployed: &MeasuredDeployment,
        (row, traffic): (&MeasuredRow, &MeasuredTraffic),
    ) -> Result<SimulatedRow, String> {
        let (pool, instance) = (&deployed.pools[0], &deployed.instances[0]);
        let machine = problem.formats[0].plain().clone();
        let inputs = SchedulerInputs::of((instance, Phase::Decode), &machine, None, pool.concurrency)
            .ok_or("rate: the scheduler of this runtime is not simulated")?;
        let inputs = SchedulerInputs { caches_prefixes, ..inputs };
        // A server of clients was started for as many of them, unless the row states its slots.
        let as_started = !traffic.is_under_a_rate() && traffic.max_num_seqs.is_none();
        let inputs = SchedulerInputs {
            max_sequences: inputs.max_sequences.filter(|_| !as_started),
            rank_tokens: traffic.cache_tokens.map_or(inputs.rank_tokens, tokens),
            draft: draft(row)?,
            ..inputs
        };
        let (requests, warm_up) = requests(row, traffic, deployed.concurrency)?;
        Ok(SimulatedRow {
            pool: PoolSettings {
                role: Role::Aggregated,
                replicas: pool.replicas as usize,
                ranks: pool.plan.dp as usize,
                scheduler: flagged(inputs.settings(), traffic, pool.plan.dp)?,
                tiers: None,
            },
            router: match requests {
                RowRequests::Sessions(..) => RoutePolicy::Session,
                RowRequests::Drawn(_) => RoutePolicy::default(),
            },
            requests,
            warm_up,
            clock: InstanceClock {
                instance: Arc::clone(instance),
                machine,
                terms: problem.terms().clone(),
                streamed: None,
            },
        })
    }

    /// The run of one of its replicas, as a fit needs it, which has means or medians of its latencies; `None` of sessions
    /// and of speculative decoding.
    pub fn of_one_replica(&self, means: bool) -> Option<MeasuredRun> {
        let RowRequests::Drawn(traffic) = &self.requests else { return None };
        let mut traffic = traffic.clone();
        match &mut traffic.arrivals {
            Arrivals::Rate { per_s, .. } if self.pool.scheduler.draft().is_none() => {
                *per_s /= self.pool.replicas as f64;
            }
            _ => return None,
        }
        traffic.requests = traffic.requests.min(ENOUGH);
        let pool = PoolSettings { replicas: 1, ..self.pool.clone() };
        Some(MeasuredRun { clock: self.clock.clone(), pool, traffic, warm_up: self.warm_up, means })
    }

    /// Whether it sends this many requests.
    #[cfg(feature = "internals")]
    pub fn sends(&self, requests: u64) -> bool {
        matches!(&self.requests, RowRequests::Drawn(traffic) if traffic.requests == requests)
    }

    fn source(&self) -> (RequestSource, f64) {
        match &self.requests {
            RowRequests::Drawn(traffic) => (RequestSource::new(traffic.clone()), f64::INFINITY),
            RowRequests::Sessions(AgentSessions { traffic, lasted_s }, clients) => {
                let play = AgentPlay {
                    clients: *clients,
                    begins: BEGINS_WITHIN,
                    warm_up: WARM_UP_PER_CLIENT,
                    lasts_s: *lasted_s,
                    seed: DEFAULT_SEED,
                };
                let source = played(traffic.sessions(&play), Some(*clients));
                (source.lined_up(*clients, WARM_UP_PER_CLIENT), *lasted_s)
            }
        }
    }

    /// Sends all requests, as long as the run was measured; or says why no figure counts any of them.
    pub fn latencies(&self) -> Result<(SimulatedLatencies, RunTotals), String> {
        let front_end_s = self.clock.front_end_s();
        let mut found = SimulatedLatencies::default();
        let (source, lasted_s) = self.source();
        let (begun, now) = (Cell::new(f64::INFINITY), Cell::new(0.0));
        let mut record = |one: &RequestRecord| {
            now.set(one.last_token_s);
            if one.id < self.warm_up {
                return;
            }
            begun.set(begun.get().min(one.arrived_s));
            if now.get() - begun.get() <= lasted_s {
                found.count(&one.at_client(front_end_s));
            }
        };
        let settings =
            DeploymentSettings { router: self.router, seed: DEFAULT_SEED, ..self.pool.clone().into() };
        let stop = || now.get() - begun.get() > lasted_s;
        let totals = run(&settings, source, &self.clock, &mut record, &stop);
        match found.e2e.count() {
            0 if totals.answered > 0 => {
                Err(format!("traffic: no request is answered in the {lasted_s} s that were measured"))
            }
            0 => Err("rate: the KV cache holds no request of these lengths".to_owned()),
            _ => Ok((found, totals)),
        }
    }

    /// Requests per second that its servers answer when all come at once, where the rate of the row is above that.
    pub fn exceeded_capacity(&self, totals: &RunTotals) -> Option<f64> {
        let RowRequests::Drawn(traffic) = &self.requests else { return None };
        let Arrivals::Rate { per_s, variation } = traffic.arrivals else { return None };
        if totals.answered as f64 >= KEPT_UP * per_s * totals.end_s {
            return None;
        }
        let arrivals = Arrivals::Rate { per_s: per_s * AT_ONCE, variation };
        let requests = traffic.requests.max(ENOUGH);
        let burst = DrawnTraffic { arrivals, requests, ..traffic.clone() };
        let burst = SimulatedRow { requests: RowRequests::Drawn(burst), ..self.clone() };
        let (_, found) = burst.latencies().ok()?;
        let capacity = found.answered as f64 / found.end_s.max(f64::MIN_POSITIVE);
        (capacity < per_s).then_some(capacity)
    }
}

/// The share of a rate that a run answers from its first arrival to its last answer where its servers keep up with it.
const KEPT_UP: f64 = 0.9;
/// A rate at which all requests come before any is answered, over the rate of the row.
const AT_ONCE: f64 = 1e6;
/// More requests than these change no mean of a steady run.
const ENOUGH: u64 = 2000;

/// The requests of a row, and those of them that no figure counts.
fn requests(
    row: &MeasuredRow,
    traffic: &MeasuredTraffic,
    clients: u64,
) -> Result<(RowRequests, u64), String> {
    match &traffic.arrivals {
        MeasuredArrivals::Rate { per_s, variation } => {
            let sent = traffic.requests.unwrap_or(REQUESTS_SENT);
            // In the stage before, each prompt came at least once, if it comes again at all.
            let again = traffic.distinct_prompts.filter(|distinct| traffic.goes_on && *distinct < sent);
            let warm_up = again.unwrap_or(0);
            let arrivals = Arrivals::Rate { per_s: *per_s, variation: *variation };
            let drawn = drawn(row, traffic, (arrivals, sent.saturating_add(warm_up)));
            Ok((RowRequests::Drawn(drawn), warm_up))
        }
        MeasuredArrivals::Clients => {
            let all = traffic.requests.unwrap_or(clients.saturating_mul(REQUESTS_PER_CLIENT));
            let sent = (Arrivals::Clients(clients), all);
            Ok((RowRequests::Drawn(drawn(row, traffic, sent)), 0))
        }
        MeasuredArrivals::Sessions(sessions) => {
            let requests = RowRequests::Sessions(sessions.clone(), clients);
            Ok((requests, clients.saturating_mul(WARM_UP_PER_CLIENT as u64)))
        }
        MeasuredArrivals::Trace(name) => Err(format!("traffic: `{name}` is not in the table")),
    }
}

/// The scheduler with the flags of its server that a row states.
fn flagged(
    settings: SchedulerSettings,
    traffic: &MeasuredTraffic,
    ranks: u64,
) -> Result<SchedulerSettings, String> {
    let (interval, longest) = (traffic.prefill_interval, traffic.long_prompt_threshold);
    match settings {
        SchedulerSettings::Vllm(mut vllm) => {
            // Engines without attention data parallelism ignore it: `DPEngineCoreProc._should_throttle_prefills`.
            vllm.prefill_interval = interval.filter(|_| ranks > 1).map(tokens);
            vllm.long_prompt_threshold = longest.map(tokens).or(vllm.long_prompt_threshold);
            vllm.chunked_prefill &= !traffic.whole_prompts;
            Ok(SchedulerSettings::Vllm(vllm))
        }
        _ if interval.or(longest).is_some() => {
            Err("prefill_schedule_interval, long_prefill_token_threshold: flags of vLLM alone".to_owned())
        }
        SchedulerSettings::Sglang(mut sglang) => {
            // Its own chunk is for all ranks together (`chunked_prefill_size //= dp_size`, parallel_hook.py).
            let of_all = traffic.max_num_batched_tokens.is_none();
            sglang.chunk_tokens =
                sglang.chunk_tokens.map(|most| if of_all { (most / tokens(ranks)).max(1) } else { most });
            sglang.delayed_passes = traffic.delayed_passes.map(tokens);
            sglang.decodes_after_prefill = traffic.decodes_after_prefill.map_or(0, tokens);
            Ok(SchedulerSettings::Sglang(sglang))
        }
        other => Ok(other),
    }
}

/// Lengths of this mean, all equal or as benchmarks draw them.
pub fn length(mean: u64, equal: bool) -> LengthDistribution {
    if equal {
        return LengthDistribution::Fixed(tokens(mean));
    }
    let [least, most] =
        DRAWN_LENGTHS.map(|part| (mean as f64 * part / MEAN_OF_DRAWN).round().max(1.0) as u32);
    LengthDistribution::Uniform(least, most)
}

/// This many requests of a row.
fn drawn(
    row: &MeasuredRow,
    traffic: &MeasuredTraffic,
    (arrivals, requests): (Arrivals, u64),
) -> DrawnTraffic {
    DrawnTraffic {
        arrivals,
        requests,
        prompt: length(row.isl, row.equal_lengths),
        output: length(row.osl, row.equal_lengths),
        prefix: tokens(traffic.prefix.unwrap_or(0)),
        prefix_groups: traffic.prefix_groups.unwrap_or(1),
        distinct_prompts: traffic.distinct_prompts.unwrap_or(0),
        sessions: None,
        seed: DEFAULT_SEED,
    }
}
