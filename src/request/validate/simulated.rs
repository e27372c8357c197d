//! A measured row under a rate, as the simulation of traffic repeats it.

use std::sync::Arc;

use crate::calibrate::deployment::MeasuredDeployment;
use crate::calibrate::measured_run::MeasuredRun;
use crate::plan::parallel::Phase;
use crate::request::simulate::{DEFAULT_SEED, REQUESTS_SENT};
use crate::search::problem::Problem;
use crate::search::simulated_pool::{InstanceClock, SchedulerInputs, tokens};
use crate::spec::role::Role;
use crate::traffic::outcome::{Distribution, RequestRecord};
use crate::traffic::run::{PoolSettings, RunTotals, run};
use crate::traffic::source::{Arrivals, DrawnTraffic, LengthDistribution, RequestSource};
use crate::validate::measured::{MeasuredRow, MeasuredTraffic};

/// A row under a rate, ready to be simulated.
#[derive(Clone, Debug)]
pub struct SimulatedRow {
    /// Times of the steps of a replica.
    pub clock: InstanceClock,
    /// The replicas and their schedulers.
    pub pool: PoolSettings,
    /// Requests as the row describes them.
    pub traffic: DrawnTraffic,
    /// Requests at the start that no figure counts: those of an earlier stage that fill the caches.
    pub warm_up: u64,
}

/// Latencies of the counted requests as their clients see them, in seconds.
#[derive(Clone, Debug, Default)]
pub struct SimulatedLatencies {
    pub ttft: Distribution,
    pub tpot: Distribution,
    pub e2e: Distribution,
}

impl SimulatedLatencies {
    fn count(&mut self, one: &RequestRecord) {
        self.ttft.add(one.ttft_s(), 1);
        self.e2e.add(one.e2e_s(), 1);
        if let Some(tpot) = one.tpot_s() {
            self.tpot.add(tpot, 1);
        }
    }
}

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
        let sent = traffic.requests.unwrap_or(REQUESTS_SENT);
        // In the stage before, each prompt came at least once, if it comes again at all.
        let again = traffic.distinct_prompts.filter(|distinct| traffic.goes_on && *distinct < sent);
        let warm_up = again.unwrap_or(0);
        Ok(SimulatedRow {
            pool: PoolSettings {
                role: Role::Aggregated,
                replicas: pool.replicas as usize,
                ranks: pool.plan.dp as usize,
                scheduler: inputs.settings(),
            },
            traffic: drawn(row, traffic, sent.saturating_add(warm_up)),
            warm_up,
            clock: InstanceClock {
                instance: Arc::clone(instance),
                machine,
                terms: problem.terms().clone(),
                streamed: None,
            },
        })
    }

    /// The run of one of its replicas, as a fit needs it, which has means or medians of its latencies.
    pub fn of_one_replica(&self, means: bool) -> MeasuredRun {
        let mut traffic = self.traffic.clone();
        if let Arrivals::Rate { per_s, .. } = &mut traffic.arrivals {
            *per_s /= self.pool.replicas as f64;
        }
        traffic.requests = traffic.requests.min(ENOUGH);
        let pool = PoolSettings { replicas: 1, ..self.pool.clone() };
        MeasuredRun { clock: self.clock.clone(), pool, traffic, warm_up: self.warm_up, means }
    }

    /// Sends all requests; or says why no figure counts any of them.
    pub fn latencies(&self) -> Result<(SimulatedLatencies, RunTotals), String> {
        let front_end_s = self.clock.front_end_s();
        let mut found = SimulatedLatencies::default();
        let mut record = |one: &RequestRecord| {
            if one.id >= self.warm_up {
                found.count(&one.at_client(front_end_s));
            }
        };
        let source = RequestSource::new(self.traffic.clone());
        let totals = run(&self.pool.clone().into(), source, &self.clock, &mut record, &|| false);
        match found.e2e.count() {
            0 => Err("rate: the KV cache holds no request of these lengths".to_owned()),
            _ => Ok((found, totals)),
        }
    }
}

/// More requests than these change no mean of a steady run.
const ENOUGH: u64 = 2000;

/// This many requests of a row, of equal lengths.
fn drawn(row: &MeasuredRow, traffic: &MeasuredTraffic, requests: u64) -> DrawnTraffic {
    DrawnTraffic {
        arrivals: Arrivals::Rate { per_s: traffic.rate_per_s, variation: traffic.variation },
        requests,
        prompt: LengthDistribution::Fixed(tokens(row.isl)),
        output: LengthDistribution::Fixed(tokens(row.osl)),
        prefix: tokens(traffic.prefix.unwrap_or(0)),
        prefix_groups: 1,
        distinct_prompts: traffic.distinct_prompts.unwrap_or(0),
        sessions: None,
        seed: DEFAULT_SEED,
    }
}
