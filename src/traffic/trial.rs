//! A run as a trial: the share of its requests within the SLOs, and how its queue grows.

use std::cell::Cell;

use super::outcome::{Distribution, RequestRecord};
use super::run::{DeploymentSettings, RunTotals, run};
use super::source::RequestSource;
use super::step_load::DeploymentClock;
use crate::spec::objective::LatencyLimits;

/// The requests of a trial, and what they are judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRules {
    pub limits: LatencyLimits,
    /// Seconds that a front end has a request for, before the scheduler.
    pub front_end_s: f64,
    /// Requests at the start that do not count.
    pub warm_up: u64,
    /// Requests in total, at most.
    pub requests: u64,
    /// Whether the run goes on where most of its requests miss the SLOs.
    pub is_whole: bool,
}

/// The figures of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialOutcome {
    /// Share of the requests within the SLOs, of those too that were given up or failed; `None` of a run that ended early
    /// because most of them missed.
    pub within: Option<f64>,
    /// The time that the last tenth of the requests waited, over the time from the first arrival to theirs.
    pub waited: f64,
    /// Requests answered per second.
    pub requests_per_s: f64,
    /// TTFT, TPOT and E2E.
    pub times: [Distribution; 3],
    pub hit_rate: f64,
    /// The same of a cache without limits.
    pub unlimited_hit_rate: f64,
    /// Seconds that replicas were held, all of them together.
    pub replica_seconds: f64,
    /// When the run ended.
    pub lasted_s: f64,
}

/// The part of the requests, from the last one back, whose waiting shows whether the queue grows.
const LAST: f64 = 0.1;

/// The requests that were answered.
#[derive(Default)]
struct Judged {
    counted: u64,
    within: u64,
    times: [Distribution; 3],
    /// Number, arrival and time without a step of each.
    waits: Vec<(u64, f64, f64)>,
    first_s: Option<f64>,
    last_s: f64,
}

impl Judged {
    /// Counts a request, and says whether it misses the SLOs.
    fn count(&mut self, one: &RequestRecord, rules: &TrialRules) -> bool {
        let waited = one.admitted_s - one.arrived_s + one.transfer_s + one.preempted_s;
        self.waits.push((one.id, one.arrived_s, waited));
        if one.id < rules.warm_up {
            return false;
        }
        let seen = one.at_client(rules.front_end_s);
        let [ttft, tpot, e2e] = &mut self.times;
        ttft.add(seen.ttft_s(), 1);
        seen.tpot_s().into_iter().for_each(|seconds| tpot.add(seconds, 1));
        e2e.add(seen.e2e_s(), 1);
        self.counted += 1;
        self.first_s = Some(self.first_s.map_or(one.arrived_s, |first| first.min(one.arrived_s)));
        self.last_s = self.last_s.max(seen.last_token_s);
        let is_within = seen.is_within(&rules.limits);
        self.within += u64::from(is_within);
        !is_within
    }

    /// A queue in front of a server for 100 requests per second that gets 101 grows by one each second, and a request that
    /// comes after t seconds waits for t/101 seconds.
    fn waited(&mut self) -> f64 {
        self.waits.sort_unstable_by_key(|(id, ..)| *id);
        let start_s = self.waits.first().map_or(0.0, |(_, arrived_s, _)| *arrived_s);
        let count = libm::ceil(self.waits.len() as f64 * LAST) as usize;
        let last = &self.waits[self.waits.len() - count..];
        let waited: f64 = last.iter().map(|(.., waited_s)| waited_s).sum();
        let passed: f64 = last.iter().map(|(_, arrived_s, _)| arrived_s - start_s).sum();
        if waited <= 0.0 { 0.0 } else { waited / passed.max(f64::MIN_POSITIVE) }
    }

    fn outcome(mut self, totals: &RunTotals, rules: &TrialRules, is_over: bool) -> TrialOutcome {
        let unanswered = totals.unanswered.iter().filter(|id| **id >= rules.warm_up).count() as u64;
        let share = self.within as f64 / (self.counted + unanswered).max(1) as f64;
        let lasted = self.last_s - self.first_s.unwrap_or(0.0);
        let of_prompts = |tokens: u64| tokens as f64 / totals.prompt_tokens.max(1) as f64;
        TrialOutcome {
            within: is_over.then_some(share),
            waited: self.waited(),
            requests_per_s: if lasted > 0.0 { self.counted as f64 / lasted } else { 0.0 },
            times: self.times,
            hit_rate: of_prompts(totals.cached_tokens),
            unlimited_hit_rate: of_prompts(totals.reusable_tokens),
            replica_seconds: totals.replica_seconds,
            lasted_s: totals.lasted_s,
        }
    }
}

/// Runs `source` on a deployment; `None` where `stop` ended the run.
pub fn tried(
    (settings, clocks): (&DeploymentSettings, &impl DeploymentClock),
    source: RequestSource,
    rules: &TrialRules,
    stop: &impl Fn() -> bool,
) -> Option<TrialOutcome> {
    // More than half of the requests: then no percentile of them is within the SLOs, whatever comes.
    let most_misses = rules.requests.saturating_sub(rules.warm_up) / 2;
    let (misses, stopped, is_lost) = (Cell::new(0), Cell::new(false), Cell::new(false));
    let ends = || {
        stopped.set(stop());
        is_lost.set(!rules.is_whole && misses.get() > most_misses);
        stopped.get() || is_lost.get()
    };
    let mut judged = Judged::default();
    let mut record = |one: &RequestRecord| misses.set(misses.get() + u64::from(judged.count(one, rules)));
    let totals = run(settings, source, clocks, &mut record, &ends);
    (!stopped.get()).then(|| judged.outcome(&totals, rules, !is_lost.get()))
}
