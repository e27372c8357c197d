//! One replica: the engines of its attention ranks, which take their steps together.

use super::cache_tier::{CacheTiers, SharedStore};
use super::engine::{EngineEvent, EngineRequest, JointPrompts, RankTurn, SchedulerEngine};
use super::replica_use::StepsUse;
use super::run::PoolSettings;
use super::step_load::{StepClock, StepLoad};
use std::collections::VecDeque;

/// Equal steps, one after the other, of which each takes a little longer: its requests have one token more.
#[derive(Clone, Copy, Debug)]
struct EqualSteps {
    start_s: f64,
    steps: u32,
    first_s: f64,
    growth_s: f64,
}

impl EqualSteps {
    /// When the step of this number ends, from 1.
    fn end_of(&self, step: u32) -> f64 {
        let steps = f64::from(step);
        self.start_s + steps * self.first_s + self.growth_s * steps * (steps - 1.0) / 2.0
    }

    fn end_s(&self) -> f64 {
        self.end_of(self.steps)
    }

    /// The first step that ends at `time_s` or later.
    fn step_at(&self, time_s: f64) -> u32 {
        let (mut early, mut late) = (0, self.steps);
        while late - early > 1 {
            let middle = early + (late - early) / 2;
            if self.end_of(middle) < time_s { early = middle } else { late = middle }
        }
        late
    }
}

/// Times in a row that a scheduler with requests may make up no step; after those it never will.
const MOST_EMPTY: u32 = 100_000;
/// The same, where requests wait for their cache: until that has come.
const EMPTY_BEFORE_LOAD: u32 = 100;

/// An event in a replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplicaEvent {
    /// To the request of this number, at this time.
    Request(u64, EngineEvent, f64),
    /// Steps of this length, on average, each gave these requests a token, and tokens of a draft on top.
    Steps { step_s: f64, steps: u32, decoding: u32, accepted: u32, prompt_tokens: u64 },
    /// The request of this number ends without an answer, after this many tokens of its output.
    Dropped(u64, u32),
}

/// A replica, and the requests that reached it.
pub struct Replica {
    engines: Vec<Box<dyn SchedulerEngine + Send>>,
    /// Requests that the scheduler has not seen.
    inbox: VecDeque<(f64, usize, EngineRequest)>,
    /// Requests that were given up, of which the scheduler has not heard.
    aborts: VecDeque<(f64, usize, u64)>,
    current: Option<EqualSteps>,
    loads: Vec<StepLoad>,
    /// When the scheduler made up the step that follows: with asynchronous scheduling, at the start of the one before.
    ahead: bool,
    /// Whether requests that come at one moment are in the first step together.
    empties_queue: bool,
    /// Whether equal steps are taken one by one, so that each token has its own time.
    single: bool,
    last_start_s: f64,
    joint: Option<JointPrompts>,
    /// Passes in a row in which prompts waited for other ranks.
    delayed: u32,
    /// The stores behind its ranks, if any. They outlast its failures.
    stores: Vec<Option<SharedStore>>,
    /// When it makes up its next step: no request has its cache before that, or more may come until then.
    wakes_s: Option<f64>,
}

impl Replica {
    /// A replica with one attention rank for each of `stores`.
    pub fn new(pool: &PoolSettings, stores: Vec<Option<SharedStore>>) -> Replica {
        let (settings, ranks) = (&pool.scheduler, stores.len());
        let engine = |store: &Option<SharedStore>| {
            let of = |tiers| CacheTiers::new(tiers, settings.block_tokens(), store.clone());
            settings.tiered_engine(pool.tiers.clone().map(of))
        };
        Replica {
            engines: stores.iter().map(engine).collect(),
            inbox: VecDeque::new(),
            aborts: VecDeque::new(),
            current: None,
            loads: vec![StepLoad::default(); ranks],
            ahead: settings.is_asynchronous(),
            empties_queue: settings.empties_queue(),
            single: false,
            last_start_s: f64::NEG_INFINITY,
            joint: settings.joint_prompts().filter(|_| ranks > 1),
            delayed: 0,
            stores,
            wakes_s: None,
        }
    }

    /// The same, one step at a time.
    #[must_use]
    pub fn by_single_steps(self) -> Replica {
        Replica { single: true, ..self }
    }

    /// Its engines.
    pub fn engines(&self) -> &[Box<dyn SchedulerEngine + Send>] {
        &self.engines
    }

    /// Requests that it has not finished.
    pub fn load(&self) -> usize {
        let queued = self.engines.iter().map(|engine| engine.queued());
        self.inbox.len() + queued.map(|(running, waiting)| running + waiting).sum::<usize>()
    }

    /// Requests that no scheduler has seen.
    pub fn unseen(&self) -> usize {
        self.inbox.len()
    }

    /// When its current steps end, or a cache comes that all its requests wait for; `None` while it is idle.
    pub fn end_s(&self) -> Option<f64> {
        self.current.map(|steps| steps.end_s()).or(self.wakes_s)
    }

    /// The use of its schedulers and its cache by the current steps, until `time_s` at most; `None` while it is idle.
    pub fn in_use(&self, time_s: f64) -> Option<StepsUse> {
        let steps = self.current?;
        let ended = if steps.end_s() <= time_s { steps.steps } else { steps.step_at(time_s) };
        let busy = self.loads.iter().filter(|load| !load.is_empty()).count();
        // Each step after the first adds a token to every request that decodes.
        let added: u64 = self.loads.iter().map(|load| u64::from(load.decoding) * u64::from(ended - 1)).sum();
        let used: u64 = self.engines.iter().map(|engine| engine.cache_used()).sum();
        let all: u64 = self.engines.iter().map(|engine| engine.cache()).sum();
        let share = |tokens: u64| (tokens as f64 / all.max(1) as f64).min(1.0);
        Some(StepsUse {
            lasted_s: steps.end_s().min(time_s) - steps.start_s,
            busy: busy as f64 / self.loads.len().max(1) as f64,
            kv_used: [share(used), share(used + added)],
        })
    }

    /// The attention rank with the fewest requests.
    pub fn emptiest_rank(&self) -> usize {
        let unseen = |rank: usize| self.inbox.iter().filter(|(_, to, _)| *to == rank).count();
        let fewest = (0..self.engines.len()).min_by_key(|&rank| {
            let (running, waiting) = self.engines[rank].queued();
            running + waiting + unseen(rank)
        });
        fewest.unwrap_or(0)
    }

    /// A request reaches an attention rank.
    pub fn arrive(
        &mut self,
        time_s: f64,
        rank: usize,
        request: EngineRequest,
        clock: &impl StepClock,
        note: &mut impl FnMut(ReplicaEvent),
    ) {
        self.inbox.push_back((time_s, rank, request));
        if self.current.is_some() {
            self.interrupt(time_s);
        } else if self.empties_queue {
            // Steps come after the arrivals of their time.
            self.wakes_s = Some(time_s);
        } else {
            self.last_start_s = time_s;
            self.begin(time_s, clock, note);
        }
    }

    /// The current steps end as soon as the scheduler can hear of something that happened at `time_s`.
    fn interrupt(&mut self, time_s: f64) {
        if let Some(steps) = &mut self.current {
            let heard = steps.step_at(time_s) + u32::from(self.ahead);
            steps.steps = steps.steps.min(heard);
        }
    }

    /// The client of a request on an attention rank has given it up. The scheduler hears of that as of an arrival.
    pub fn abort(&mut self, time_s: f64, (rank, id): (usize, u64), note: &mut impl FnMut(ReplicaEvent)) {
        if let Some(place) = self.inbox.iter().position(|(.., request)| request.id == id) {
            self.inbox.remove(place);
            note(ReplicaEvent::Dropped(id, 0));
            return;
        }
        self.aborts.push_back((time_s, rank, id));
        self.wakes_s = self.wakes_s.map(|wakes_s| wakes_s.min(time_s));
        self.interrupt(time_s);
    }

    /// The replica fails: the steps that have ended count; all requests are `lost`, by rank and number, with its cache.
    pub fn fail(
        &mut self,
        time_s: f64,
        (pool, clock): (&PoolSettings, &impl StepClock),
        lost: &[(usize, u64)],
        note: &mut impl FnMut(ReplicaEvent),
    ) {
        if let Some(current) = self.current.take() {
            let ended = current.step_at(time_s) - 1;
            if ended > 0 {
                clock.taken(current.start_s, current.end_of(ended), ended, &self.loads);
                self.completed(EqualSteps { steps: ended, ..current }, note);
            }
        }
        for &(rank, id) in lost {
            note(ReplicaEvent::Dropped(id, self.engines[rank].abort(id).unwrap_or(0)));
        }
        *self = Replica::new(pool, std::mem::take(&mut self.stores));
    }

    /// The current steps end.
    pub fn step(&mut self, clock: &impl StepClock, note: &mut impl FnMut(ReplicaEvent)) {
        let Some(steps) = self.current.take() else {
            if let Some(now) = self.wakes_s {
                self.last_start_s = now;
                self.begin(now, clock, note);
            }
            return;
        };
        let now = steps.end_s();
        clock.taken(steps.start_s, now, steps.steps, &self.loads);
        self.completed(steps, note);
        self.last_start_s = if steps.steps > 1 { steps.end_of(steps.steps - 1) } else { steps.start_s };
        self.begin(now, clock, note);
    }

    /// The requests of these steps get their tokens.
    fn completed(&mut self, steps: EqualSteps, note: &mut impl FnMut(ReplicaEvent)) {
        let now = steps.end_s();
        let step_s = (now - steps.start_s) / f64::from(steps.steps);
        for engine in &mut self.engines {
            let load = engine.load();
            if load.is_empty() {
                engine.go_round(steps.steps - 1);
                continue;
            }
            let prompt_tokens = load.prompts.iter().map(|chunk| u64::from(chunk.new_tokens)).sum();
            let (decoding, accepted) = (load.decoding - load.ended, load.accepted);
            note(ReplicaEvent::Steps { step_s, steps: steps.steps, decoding, accepted, prompt_tokens });
            engine.complete(steps.steps, &mut |id, event| note(ReplicaEvent::Request(id, event, now)));
        }
    }

    /// Makes up the next step, if there is something to do.
    fn begin(&mut self, now: f64, clock: &impl StepClock, note: &mut impl FnMut(ReplicaEvent)) {
        self.wakes_s = None;
        for empty in 0..MOST_EMPTY {
            self.take_arrivals(now, note);
            // Also an idle scheduler goes round once: SGLang's then forgets its estimate of the outputs.
            let idle = self.engines.iter().all(|engine| engine.is_idle());
            let steps = self.choose(now, note);
            if self.loads.iter().any(|load| !load.is_empty()) {
                self.current = Some(self.timed(now, steps, clock));
                self.end_at_load(now);
                return;
            }
            if idle {
                return;
            }
            let next_s = self.next_load_s().filter(|_| empty >= EMPTY_BEFORE_LOAD);
            if next_s.is_some() {
                self.wakes_s = next_s;
                return;
            }
            // With asynchronous scheduling, all that ran has ended: what waits, or has come, is seen now.
            self.last_start_s = now;
        }
    }

    /// When the next cache comes that a waiting request needs.
    fn next_load_s(&self) -> Option<f64> {
        self.engines.iter().filter_map(|engine| engine.next_load_s()).min_by(f64::total_cmp)
    }

    /// The current steps, which start now, end as soon as the scheduler can hear of the next cache that comes.
    fn end_at_load(&mut self, now: f64) {
        let Some(next_s) = self.next_load_s() else { return };
        self.interrupt(next_s);
        if let Some(steps) = self.current.as_mut().filter(|_| next_s <= now) {
            steps.steps = 1;
        }
    }

    /// The schedulers get the requests that came before they make up the step that starts now.
    fn take_arrivals(&mut self, now: f64, note: &mut impl FnMut(ReplicaEvent)) {
        let idle = self.engines.iter().all(|engine| engine.is_idle());
        let seen = if self.ahead && !idle { self.last_start_s } else { now };
        self.engines.iter_mut().for_each(|engine| engine.set_time(now, seen));
        while self.inbox.front().is_some_and(|(at, ..)| *at <= seen) {
            let Some((_, rank, request)) = self.inbox.pop_front() else { break };
            self.engines[rank].submit(request);
        }
        while self.aborts.front().is_some_and(|(at, ..)| *at <= seen) {
            let Some((_, rank, id)) = self.aborts.pop_front() else { break };
            if let Some(tokens) = self.engines[rank].abort(id) {
                note(ReplicaEvent::Dropped(id, tokens));
            }
        }
    }

    /// Ranks with prompts wait for those without, for some passes; then all with prompts compute them.
    fn agree(&mut self) {
        let Some(JointPrompts { most_passes, alone }) = self.joint else { return };
        let waiting = self.engines.iter().filter(|engine| engine.has_waiting_prompt()).count();
        let some = waiting > 0 && waiting < self.engines.len();
        let delays = some && most_passes.is_some_and(|most| self.delayed + 1 < most);
        self.delayed = if delays { self.delayed + 1 } else { 0 };
        let begun = self.engines.iter().any(|engine| engine.has_begun_prompt());
        let prompts = begun || (waiting > 0 && !delays);
        for engine in &mut self.engines {
            // One that finds no memory for its prompt decodes, so that there will be some.
            let has_one = engine.has_begun_prompt() || (!delays && engine.has_waiting_prompt());
            engine.restrict(RankTurn { new_prompts: !delays, decodes: !alone || !prompts || has_one });
        }
    }

    /// All ranks make up their batches. Returns the number of equal steps.
    fn choose(&mut self, now: f64, note: &mut impl FnMut(ReplicaEvent)) -> u32 {
        let heard = self.inbox.is_empty() && self.aborts.is_empty();
        let mut steps = if heard && !self.single { u32::MAX } else { 1 };
        self.agree();
        for (engine, load) in self.engines.iter_mut().zip(&mut self.loads) {
            engine.choose(&mut |id, event| note(ReplicaEvent::Request(id, event, now)));
            engine.settle();
            load.copy(engine.load());
            // A step may also have been made up for requests that are found to have ended.
            if !engine.is_idle() || !load.is_empty() {
                steps = steps.min(engine.equal_steps());
            }
        }
        steps
    }

    fn timed(&mut self, now: f64, steps: u32, clock: &impl StepClock) -> EqualSteps {
        let alone_s = clock.seconds(&self.loads);
        let with_loads = self.engines.iter().map(|engine| engine.with_loads(alone_s));
        let first_s = with_loads.fold(alone_s, f64::max);
        let growth_s = if steps > 1 {
            let added = |load: &StepLoad| u64::from(load.decoding) * u64::from(steps - 1);
            self.loads.iter_mut().for_each(|load| load.kv_tokens += added(load));
            let last_s = clock.seconds(&self.loads);
            self.loads.iter_mut().for_each(|load| load.kv_tokens -= added(load));
            (last_s - alone_s) / f64::from(steps - 1)
        } else {
            0.0
        };
        EqualSteps { start_s: now, steps, first_s, growth_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::role::Role;
    use crate::traffic::content::TokenRun;
    use crate::traffic::draft::DraftSettings;
    use crate::traffic::engine::SchedulerSettings;
    use crate::traffic::sglang::{SglangPolicy, SglangSettings};

    fn settings(delayed_passes: Option<u32>) -> SchedulerSettings {
        SchedulerSettings::Sglang(SglangSettings {
            prefill_tokens: 16_384,
            chunk_tokens: Some(8192),
            max_requests: 64,
            cache_tokens: 1_000_000,
            page_tokens: 1,
            context_tokens: 100_000,
            policy: SglangPolicy::Fcfs,
            conservativeness: 1.0,
            prefix_caching: false,
            mixed_chunk: false,
            overlap: false,
            output_limit: None,
            exact_output: true,
            prefill_requests: None,
            min_free_slots: None,
            decodes_after_prefill: 0,
            decodes_min_requests: 0,
            delayed_passes,
            receive_interval: 1,
            draft: Some(DraftSettings { tokens: 3, acceptance: 0.5 }),
        })
    }

    fn request(id: u64) -> EngineRequest {
        let run = |id, tokens| TokenRun { id, tokens };
        EngineRequest::new(id, vec![run(id, 1000), run(100 + id, 400)], 1000, 400)
    }

    /// The steps, up to `until_s`, as the prompts and the decoding requests of either rank: of requests that come to the
    /// first rank at once, and to the second one after 50 steps of a millisecond.
    fn steps(delayed_passes: Option<u32>, until_s: f64) -> Vec<[(usize, u32); 2]> {
        let pool = PoolSettings::untiered(Role::Aggregated, (1, 2), settings(delayed_passes));
        let mut replica = Replica::new(&pool, vec![None, None]);
        let clock = |_: &[StepLoad]| 1e-3;
        let quiet = &mut |_: ReplicaEvent| {};
        replica.arrive(0.0, 0, request(0), &clock, quiet);
        let (mut seen, mut sent) = (vec![], false);
        while let Some(end_s) = replica.end_s().filter(|end_s| *end_s < until_s) {
            let of = |load: &StepLoad| (load.prompts.len(), load.decoding);
            seen.push([of(&replica.loads[0]), of(&replica.loads[1])]);
            if !sent && end_s > 0.05 {
                replica.arrive(end_s, 1, request(1), &clock, quiet);
                sent = true;
            }
            replica.step(&clock, quiet);
        }
        seen
    }

    #[test]
    fn no_rank_decodes_while_another_one_computes_prompts() {
        let seen = steps(None, 0.08);
        assert_eq!(seen[0], [(1, 0), (0, 0)]);
        let prompt = seen.iter().position(|step| step[1].0 > 0).unwrap();
        assert_eq!(seen[prompt], [(0, 0), (1, 0)]);
        assert_eq!(seen[prompt + 1], [(0, 1), (0, 1)]);
    }

    /// A rank with a prompt waits for the other one, but not longer than it may.
    #[test]
    fn prompts_wait_for_other_ranks() {
        let (at_once, later) = (steps(None, 0.1), steps(Some(30), 0.1));
        let prompt = |seen: &[[(usize, u32); 2]]| seen.iter().position(|step| step[1].0 > 0).unwrap();
        assert_eq!(prompt(&later), prompt(&at_once) + 29);
        assert!(later[prompt(&at_once)..prompt(&later)].iter().all(|step| step == &[(0, 1), (0, 0)]));
    }
}
