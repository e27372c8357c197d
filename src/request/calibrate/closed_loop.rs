//! The run behind a measured row with clients that wait for their answers.

use std::sync::Arc;

use crate::calibrate::measured_run::MeasuredRun;
use crate::plan::parallel::Phase;
use crate::request::simulate::DEFAULT_SEED;
use crate::request::validate::predict::PreparedRow;
use crate::request::validate::simulated::length;
use crate::search::simulated_pool::{InstanceClock, SchedulerInputs};
use crate::spec::role::Role;
use crate::spec::runtime::SchedulerPolicy;
use crate::traffic::run::PoolSettings;
use crate::traffic::source::{Arrivals, DrawnTraffic};
use crate::validate::measured::{MeasuredRow, REQUESTS_PER_CLIENT};

/// More requests than these, and than some of each client, change no median.
const ENOUGH: u64 = 600;
const LEAST_PER_CLIENT: u64 = 3;

/// The run of one replica; `None` where its scheduler is not simulated, or where prompts and answers were timed one after
/// the other.
pub(super) fn closed_loop(row: &MeasuredRow, ready: &PreparedRow) -> Option<MeasuredRun> {
    let deployed = &ready.deployment;
    let ([pool], [instance]) = (&deployed.pools[..], &deployed.instances[..]) else { return None };
    let machine = ready.problem.formats[0].plain().clone();
    if deployed.timed_separately || instance.draft.is_some() || instance.hosted.is_some() {
        return None;
    }
    let inputs = SchedulerInputs::of((instance, Phase::Decode), &machine, None, pool.concurrency)?;
    // The closed form of llama.cpp does not follow its scheduler.
    inputs.policy.in_formulas()?;
    // Requests of equal lengths keep the order in which the first wave came in, and that follows from the token budget.
    // TensorRT-LLM has no usual one: planners set it for each plan, and the tables do not state it.
    if row.equal_lengths && inputs.policy.like == SchedulerPolicy::Trtllm {
        return None;
    }
    // A server under that many requests was started for them.
    let inputs = SchedulerInputs { max_sequences: None, ..inputs };
    let clients = pool.concurrency.max(1);
    let most = clients.saturating_mul(REQUESTS_PER_CLIENT);
    let traffic = DrawnTraffic {
        arrivals: Arrivals::Clients(clients),
        requests: match row.from_start {
            Some(_) => most,
            None => most.min(ENOUGH.max(clients.saturating_mul(LEAST_PER_CLIENT))),
        },
        prompt: length(deployed.lengths.isl, row.equal_lengths),
        output: length(deployed.lengths.osl, row.equal_lengths),
        prefix: 0,
        prefix_groups: 1,
        distinct_prompts: 0,
        sessions: None,
        seed: DEFAULT_SEED,
    };
    let (ranks, scheduler) = (pool.plan.dp as usize, inputs.settings());
    let pool = PoolSettings::untiered(Role::Aggregated, (1, ranks), scheduler);
    let terms = ready.problem.terms().clone();
    let clock = InstanceClock { instance: Arc::clone(instance), machine, terms, streamed: None };
    Some(MeasuredRun { clock, pool, traffic, warm_up: 0, means: row.from_start.is_some() })
}
