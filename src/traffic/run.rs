//! A run: requests reach replicas, whose steps follow each other until all are answered.

use std::collections::HashMap;

use super::engine::{EngineEvent, SchedulerSettings};
use super::outcome::{Distribution, RequestRecord, RunTimeline, TimelinePoint};
use super::replica::{Replica, ReplicaEvent};
use super::source::{RequestSource, SessionCounts};
use super::step_load::StepClock;
use super::unlimited_cache::UnlimitedCache;

/// Identical replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolSettings {
    pub replicas: usize,
    /// Attention ranks of a replica.
    pub ranks: usize,
    pub scheduler: SchedulerSettings,
}

/// The totals of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTotals {
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that no cache holds.
    pub refused: u64,
    pub preemptions: u64,
    /// Steps of all replicas.
    pub steps: u64,
    /// When the last request was answered, in seconds.
    pub end_s: f64,
    /// Seconds times requests, from arrival to answer.
    pub request_seconds: f64,
    /// Tokens that steps gave, of requests that are not answered yet too.
    pub generated: u64,
    /// Tokens of prompts that steps computed, again after preemptions.
    pub computed_prompt_tokens: u64,
    pub prompt_tokens: u64,
    /// Tokens of prompts that were in the cache.
    pub cached_tokens: u64,
    /// Those that a cache without limits would have had.
    pub reusable_tokens: u64,
    pub output_tokens: u64,
    /// Sessions of the requests.
    pub sessions: SessionCounts,
    /// Times between the tokens of a request.
    pub itl: Distribution,
    pub timeline: RunTimeline,
}

struct RequestInRun {
    record: RequestRecord,
    admitted: bool,
    /// When it was preempted, while it waits for that.
    preempted_at_s: Option<f64>,
}

/// A run in progress.
struct Run<'a, C> {
    replicas: Vec<Replica>,
    clock: &'a C,
    running: HashMap<u64, RequestInRun>,
    seen: UnlimitedCache,
    reused_tokens: u32,
    totals: RunTotals,
}

/// Runs `source` to its end on a pool. `record` gets the requests in order of their ends; `stop` ends the run early.
pub fn run(
    settings: &PoolSettings,
    mut source: RequestSource,
    clock: &impl StepClock,
    record: &mut impl FnMut(&RequestRecord),
    stop: &impl Fn() -> bool,
) -> RunTotals {
    let one = |_| Replica::new(&settings.scheduler, settings.ranks);
    let replicas = (0..settings.replicas).map(one).collect();
    let mut run = Run {
        replicas,
        clock,
        running: HashMap::new(),
        seen: UnlimitedCache::default(),
        reused_tokens: settings.scheduler.reused_tokens(),
        totals: RunTotals::default(),
    };
    let mut answered = vec![];
    loop {
        let next = run.next_replica();
        match (source.next_s(), next) {
            (Some(arrives), step) if step.is_none_or(|(_, end)| arrives <= end) => run.arrival(&mut source),
            (_, Some((replica, end_s))) => {
                run.step(replica, &mut answered);
                run.watch(end_s);
                for one in answered.drain(..) {
                    source.answered(one.id, one.last_token_s);
                    record(&one);
                }
                if stop() {
                    break;
                }
            }
            (_, None) => break,
        }
    }
    run.totals.sessions = source.counts();
    run.totals
}

impl<C: StepClock> Run<'_, C> {
    /// The replica whose steps end first.
    fn next_replica(&self) -> Option<(usize, f64)> {
        let ends = self.replicas.iter().enumerate().filter_map(|(at, replica)| Some((at, replica.end_s()?)));
        ends.min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)))
    }

    fn arrival(&mut self, source: &mut RequestSource) {
        let Some(arrival) = source.take() else { return };
        let (time_s, request) = (arrival.time_s, arrival.request);
        if !self.replicas[0].engines()[0].can_ever_hold(&request) {
            self.totals.refused += 1;
            source.refused(request.id, time_s);
            return;
        }
        self.totals.reusable_tokens += u64::from(self.seen.found(&request, self.reused_tokens));
        let record = RequestRecord {
            id: request.id,
            arrived_s: time_s,
            admitted_s: time_s,
            first_token_s: time_s,
            last_token_s: time_s,
            prompt: request.prompt,
            output: request.output,
            cached_tokens: 0,
            preemptions: 0,
            preempted_s: 0.0,
        };
        self.running.insert(request.id, RequestInRun { record, admitted: false, preempted_at_s: None });
        let fewest = (0..self.replicas.len()).min_by_key(|&at| self.replicas[at].load()).unwrap_or(0);
        let (running, totals) = (&mut self.running, &mut self.totals);
        self.replicas[fewest].arrive(time_s, request, self.clock, &mut |event| {
            noted(event, running, totals, &mut vec![]);
        });
    }

    /// Adds the state at `time_s` to the timeline, where it is due.
    fn watch(&mut self, time_s: f64) {
        if !self.totals.timeline.is_due(time_s) {
            return;
        }
        let engines = || self.replicas.iter().flat_map(|replica| replica.engines());
        let queued = engines().map(|engine| engine.queued());
        let (running, waiting) = queued.fold((0, 0), |(a, b), (c, d)| (a + c as u64, b + d as u64));
        let inboxes: usize = self.replicas.iter().map(Replica::unseen).sum();
        let (used, all) =
            engines().fold((0, 0), |sum, engine| (sum.0 + engine.cache_used(), sum.1 + engine.cache()));
        self.totals.timeline.add(TimelinePoint {
            time_s,
            running,
            waiting: waiting + inboxes as u64,
            kv_used: used as f64 / (all as f64).max(1.0),
            output_tokens: self.totals.generated,
        });
    }

    fn step(&mut self, replica: usize, answered: &mut Vec<RequestRecord>) {
        let (running, totals) = (&mut self.running, &mut self.totals);
        self.replicas[replica].step(self.clock, &mut |event| noted(event, running, totals, answered));
    }
}

fn noted(
    event: ReplicaEvent,
    running: &mut HashMap<u64, RequestInRun>,
    totals: &mut RunTotals,
    answered: &mut Vec<RequestRecord>,
) {
    let (id, event, time_s) = match event {
        ReplicaEvent::Request(id, event, time_s) => (id, event, time_s),
        ReplicaEvent::Steps { step_s, steps, decoding, prompt_tokens } => {
            totals.steps += u64::from(steps);
            totals.computed_prompt_tokens += prompt_tokens;
            totals.generated += u64::from(steps) * u64::from(decoding);
            totals.itl.add(step_s, u64::from(steps) * u64::from(decoding));
            return;
        }
    };
    let Some(one) = running.get_mut(&id) else { return };
    match event {
        EngineEvent::Admitted { cached_tokens } => {
            if let Some(since) = one.preempted_at_s.take() {
                one.record.preempted_s += time_s - since;
            }
            if !one.admitted {
                one.admitted = true;
                one.record.admitted_s = time_s;
                one.record.cached_tokens = cached_tokens;
            }
        }
        EngineEvent::Preempted => {
            one.record.preemptions += 1;
            one.preempted_at_s = Some(time_s);
            totals.preemptions += 1;
        }
        EngineEvent::FirstToken => {
            one.record.first_token_s = time_s;
            totals.generated += 1;
        }
        EngineEvent::Finished => {
            one.record.last_token_s = time_s;
            let record = one.record;
            running.remove(&id);
            totals.answered += 1;
            totals.end_s = totals.end_s.max(time_s);
            totals.request_seconds += record.e2e_s();
            totals.prompt_tokens += u64::from(record.prompt);
            totals.cached_tokens += u64::from(record.cached_tokens);
            totals.output_tokens += u64::from(record.output);
            answered.push(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::sglang::{SglangPolicy, SglangSettings};
    use crate::traffic::source::{Arrivals, DrawnTraffic, LengthDistribution};
    use crate::traffic::step_load::StepLoad;

    fn sglang(overlap: bool, decodes_after_prefill: u32, chunk_tokens: Option<u32>) -> SchedulerSettings {
        SchedulerSettings::Sglang(SglangSettings {
            prefill_tokens: 2048,
            chunk_tokens,
            max_requests: 32,
            cache_tokens: 4000,
            page_tokens: 16,
            context_tokens: 4096,
            policy: SglangPolicy::Lpm,
            conservativeness: 0.1,
            prefix_caching: true,
            mixed_chunk: false,
            overlap,
            output_limit: Some(300),
            exact_output: false,
            prefill_requests: None,
            min_free_slots: None,
            decodes_after_prefill,
            decodes_min_requests: 0,
        })
    }

    fn totals(
        scheduler: SchedulerSettings,
        arrivals: Arrivals,
        ranks: usize,
    ) -> (RunTotals, Vec<RequestRecord>) {
        let traffic = DrawnTraffic {
            arrivals,
            requests: 300,
            prompt: LengthDistribution::LogNormal { mean: 150.0, variation: 1.0 },
            output: LengthDistribution::LogNormal { mean: 150.0, variation: 0.5 },
            prefix: 50,
            prefix_groups: 3,
            distinct_prompts: 0,
            sessions: None,
            seed: 11,
        };
        let clock = |ranks: &[StepLoad]| {
            let tokens = |load: &StepLoad| {
                let prompts: u32 = load.prompts.iter().map(|chunk| chunk.new_tokens).sum();
                f64::from(prompts + load.decoding) * 1e-4 + load.kv_tokens as f64 * 1e-7
            };
            5e-3 + ranks.iter().map(tokens).fold(0.0, f64::max)
        };
        let mut records = vec![];
        let mut record = |one: &RequestRecord| records.push(*one);
        let settings = PoolSettings { replicas: 1, ranks, scheduler };
        let totals = run(&settings, RequestSource::new(traffic), &clock, &mut record, &|| false);
        (totals, records)
    }

    /// Also where a loop makes up no step for a while: its requests have ended and it has not read that, or prompts are
    /// put off.
    #[test]
    fn sglang_answers_every_request() {
        for overlap in [false, true] {
            for (deferred, chunk) in [(0, None), (0, Some(64)), (5, Some(64)), (5, None)] {
                for ranks in [1, 2] {
                    for arrivals in [
                        Arrivals::Clients(1),
                        Arrivals::Clients(30),
                        Arrivals::Rate { per_s: 1.0, variation: 1.0 },
                        Arrivals::Rate { per_s: 50.0, variation: 1.0 },
                    ] {
                        let (totals, records) = totals(sglang(overlap, deferred, chunk), arrivals, ranks);
                        assert_eq!(totals.answered + totals.refused, 300);
                        assert!(totals.refused < 30);
                        for one in records {
                            assert!(one.arrived_s <= one.admitted_s && one.admitted_s < one.first_token_s);
                            assert!(one.first_token_s <= one.last_token_s);
                            assert!(one.output == 1 || one.first_token_s < one.last_token_s);
                        }
                    }
                }
            }
        }
    }
}
