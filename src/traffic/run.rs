//! A run: requests reach replicas, whose steps follow each other until all are answered.

mod stores;
mod sums;
mod upkeep;

use std::collections::VecDeque;

use self::upkeep::RunUpkeep;
use super::cache_tier::{CacheTierSettings, SharedStore, TierScope, TierTotals};
use super::engine::{EngineEvent, EngineRequest, SchedulerSettings};
use super::handover::Handovers;
use super::number_map::NumberMap;
use super::operation::OperationSettings;
use super::outcome::{Distribution, RequestOutcome, RequestRecord, RunTimeline, TimelinePoint};
use super::replica::{Replica, ReplicaEvent};
use super::replica_set::ReplicaSet;
use super::replica_use::PoolUse;
use super::router::{RequestRouter, Route, RoutePolicy, RouteTarget};
use super::source::{RequestSource, SessionCounts};
use super::step_load::DeploymentClock;
use super::unlimited_cache::UnlimitedCache;
use crate::spec::role::Role;

/// Identical replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolSettings {
    /// Their part of a request.
    pub role: Role,
    pub replicas: usize,
    /// Attention ranks of a replica.
    pub ranks: usize,
    pub scheduler: SchedulerSettings,
    /// Tiers of the KV cache behind that of the devices, of each rank; none for no such tiers.
    pub tiers: Option<CacheTierSettings>,
}

/// All replicas, and how requests are spread over them.
#[derive(Clone, Debug, PartialEq)]
pub struct DeploymentSettings {
    /// Those that prefill, alone or before they decode, take requests from the router.
    pub pools: Vec<PoolSettings>,
    pub router: RoutePolicy,
    /// Seed of a router that is random, and of drawn faults.
    pub seed: u64,
    /// Clients that give up, faults, and the scaler of replicas.
    pub operation: OperationSettings,
}

impl From<PoolSettings> for DeploymentSettings {
    fn from(pool: PoolSettings) -> DeploymentSettings {
        let (router, operation) = (RoutePolicy::default(), OperationSettings::default());
        DeploymentSettings { pools: vec![pool], router, seed: 0, operation }
    }
}

/// The totals of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTotals {
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that no cache holds, or that got an error in place of an answer.
    pub refused: u64,
    /// Requests that their clients gave up.
    pub aborted: u64,
    /// Requests that were lost in more faults than the router sends them again for.
    pub failed: u64,
    /// The numbers of the requests that were given up, or failed.
    pub unanswered: Vec<u64>,
    /// Faults of replicas.
    pub faults: u64,
    /// How often a request was lost in a fault.
    pub lost: u64,
    /// Tokens of output of requests that were given up or lost, which no client has.
    pub wasted: u64,
    /// When the run ended: with an answer, or with a request that was given up.
    pub lasted_s: f64,
    /// Seconds that replicas were held, all of them together.
    pub replica_seconds: f64,
    pub preemptions: u64,
    /// Steps of all replicas.
    pub steps: u64,
    /// When the last request was answered, in seconds.
    pub end_s: f64,
    /// Seconds times requests, from arrival to answer.
    pub request_seconds: f64,
    /// Tokens that steps gave, of requests that are not answered yet too.
    pub generated: u64,
    /// Of these, tokens of steps that decoded, and those of a draft among them.
    pub decoded: u64,
    pub accepted: u64,
    /// Tokens of prompts that steps computed, again after preemptions.
    pub computed_prompt_tokens: u64,
    pub prompt_tokens: u64,
    /// Tokens of prompts that were in the cache.
    pub cached_tokens: u64,
    /// Those that a cache without limits would have had.
    pub reusable_tokens: u64,
    pub output_tokens: u64,
    /// Loads from tiers of the cache.
    pub tiers: TierTotals,
    /// Sessions of the requests.
    pub sessions: SessionCounts,
    /// The use of the replicas, by pool.
    pub uses: Vec<PoolUse>,
    /// Times between the tokens of a request.
    pub itl: Distribution,
    pub timeline: RunTimeline,
}

struct RequestInRun {
    record: RequestRecord,
    route: Route,
    admitted: bool,
    /// Its first token has come.
    begun: bool,
    /// When it was preempted, while it waits for that.
    preempted_at_s: Option<f64>,
    /// The request, while a worker that prefills has it.
    to_decode: Option<EngineRequest>,
    /// Tokens that a worker that decodes keeps free for it.
    reserved: u64,
    /// The worker that its cache waits for, or is on the way to.
    receiver: Option<usize>,
}

/// A request that was given up, and its engine has it still.
struct LeavingRequest {
    target: RouteTarget,
    /// Tokens of output that the engine would give it; none from a worker that prefills.
    output: u32,
}

/// An event that concerns more than one replica.
enum RunEvent {
    /// Its prompt is computed, on a worker that does not decode.
    Prefilled(u64, f64),
    /// A worker that decodes gave a request the memory of this many tokens that was reserved for it.
    Placed(usize, u64),
    Answered(RequestRecord),
    /// It got an error.
    Failed(RequestRecord, f64),
    /// It has ended without an answer, and its source knows.
    Unanswered(RequestRecord, RequestOutcome),
}

/// The requests of a run that are not answered, and its totals.
struct RunLedger {
    running: NumberMap<u64, RequestInRun>,
    /// Requests that were given up, of which their schedulers have not heard.
    leaving: NumberMap<u64, LeavingRequest>,
    totals: RunTotals,
    router: RequestRouter,
    events: Vec<RunEvent>,
}

/// The side of a replica that decodes what others prefilled.
#[derive(Default)]
struct DecodeQueue {
    /// Prefilled requests that wait for memory, and the replicas that have their caches.
    waiting: VecDeque<(usize, EngineRequest)>,
    /// Tokens of caches that are on their way, or not yet placed.
    reserved: u64,
    /// Their requests.
    coming: usize,
}

/// A run in progress.
pub struct TrafficRun<'a, C> {
    replicas: ReplicaSet,
    /// By replica: its pool.
    pools: Vec<usize>,
    settings: &'a DeploymentSettings,
    clocks: &'a C,
    handovers: Handovers,
    /// By replica.
    decoding: Vec<DecodeQueue>,
    /// Replicas that decode what others prefilled.
    decoders: Vec<usize>,
    seen: UnlimitedCache,
    /// The store that all replicas have in common, if any.
    store: Option<SharedStore>,
    ledger: RunLedger,
    upkeep: RunUpkeep,
    /// Whether each token is heard of at its time.
    streams: bool,
    /// The replicas that a request may go to: memory for the next one.
    open: Vec<usize>,
}

/// The next event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextEvent {
    /// A request reaches the deployment.
    Arrival,
    /// The KV cache of a request reaches the worker that decodes.
    Handover,
    /// The steps of this replica end.
    Step(usize),
    /// A time of the operation: a fault, a start, a decision of the scaler, a client that gives up.
    Timer,
}

/// Hears of the requests of a run.
pub trait RunListener {
    /// A request was answered.
    fn answered(&mut self, record: &RequestRecord);
    /// A request ended without an answer.
    fn unanswered(&mut self, _record: &RequestRecord, _outcome: RequestOutcome) {}
    /// A request has this many tokens of its output; of a run that is streamed.
    fn has_tokens(&mut self, _id: u64, _tokens: u32) {}
}

impl<F: FnMut(&RequestRecord)> RunListener for F {
    fn answered(&mut self, record: &RequestRecord) {
        self(record);
    }
}

/// Runs `source` to its end on a deployment. `record` gets the requests in order of their ends; `stop` ends the run
/// early.
pub fn run(
    settings: &DeploymentSettings,
    source: RequestSource,
    clocks: &impl DeploymentClock,
    record: &mut impl FnMut(&RequestRecord),
    stop: &impl Fn() -> bool,
) -> RunTotals {
    run_heard(settings, source, clocks, record, stop)
}

/// The same, whose listener also hears of requests without an answer.
pub fn run_heard(
    settings: &DeploymentSettings,
    mut source: RequestSource,
    clocks: &impl DeploymentClock,
    listener: &mut impl RunListener,
    stop: &impl Fn() -> bool,
) -> RunTotals {
    let mut run = TrafficRun::new(settings, clocks);
    while let Some(event) = run.advance(&mut source, f64::INFINITY, listener) {
        if matches!(event, NextEvent::Step(_)) && stop() {
            break;
        }
    }
    run.ended(&source)
}

impl<'a, C: DeploymentClock> TrafficRun<'a, C> {
    /// A run in which nothing has come.
    pub fn new(settings: &'a DeploymentSettings, clocks: &'a C) -> TrafficRun<'a, C> {
        let serving = settings.pools.iter().map(|pool| pool.replicas).sum();
        let most = settings.operation.scaler.as_ref().map_or(0, |scaler| scaler.most).max(serving);
        let each = || {
            let numbered = settings.pools.iter().enumerate();
            let serving = numbered.flat_map(|(at, pool)| std::iter::repeat_n((at, pool), pool.replicas));
            let first = settings.pools.iter().take(1).map(|pool| (0, pool));
            // Those that a scaler may add.
            serving.chain(first.cycle().take(most)).take(most)
        };
        let ranks = || each().map(|(_, pool)| pool.ranks);
        let numbered = each().enumerate();
        let store = settings.pools.iter().find_map(|pool| pool.store(TierScope::Deployment));
        // Those that are absent have no memory either.
        let replica = |at: usize, pool: &PoolSettings| {
            Replica::new(pool, if at < serving { pool.stores(store.as_ref()) } else { vec![] })
        };
        let decoders = each().enumerate().filter(|(_, (_, pool))| pool.role == Role::Decode);
        TrafficRun {
            replicas: ReplicaSet::new(numbered.map(|(at, (_, pool))| replica(at, pool)).collect()),
            pools: each().map(|(at, _)| at).collect(),
            settings,
            clocks,
            handovers: Handovers::new(ranks()),
            decoding: each().map(|_| DecodeQueue::default()).collect(),
            ledger: RunLedger {
                running: NumberMap::default(),
                leaving: NumberMap::default(),
                totals: RunTotals {
                    uses: vec![PoolUse::default(); settings.pools.len()],
                    ..RunTotals::default()
                },
                router: RequestRouter::new(settings.router, settings.seed, ranks()),
                events: vec![],
            },
            seen: UnlimitedCache::default(),
            store: store.clone(),
            decoders: decoders.map(|(replica, _)| replica).collect(),
            upkeep: RunUpkeep::new(settings, (serving, most)),
            streams: false,
            open: vec![],
        }
    }

    /// The same, whose listener hears of every token at its time.
    #[must_use]
    pub fn streamed(self) -> TrafficRun<'a, C> {
        let replicas = self.replicas.each(Replica::by_single_steps);
        TrafficRun { replicas, streams: true, ..self }
    }

    /// The totals so far.
    pub fn totals(&self) -> &RunTotals {
        &self.ledger.totals
    }

    /// When the next event is, if there is one.
    pub fn next_s(&self, source: &RequestSource) -> Option<f64> {
        self.next(source).map(|(_, time_s)| time_s)
    }

    /// Takes the next event, unless it comes after `until_s`.
    pub fn advance(
        &mut self,
        source: &mut RequestSource,
        until_s: f64,
        listener: &mut impl RunListener,
    ) -> Option<NextEvent> {
        let (event, time_s) = self.next(source).filter(|(_, time_s)| *time_s <= until_s)?;
        self.upkeep.now_s = time_s;
        match event {
            NextEvent::Arrival => self.arrival(source),
            NextEvent::Handover => self.received(listener),
            NextEvent::Step(replica) => {
                self.step(replica);
                self.watch(time_s);
                self.update_replicas(time_s);
            }
            NextEvent::Timer => self.timer(source),
        }
        self.settle(source, listener);
        if let NextEvent::Step(replica) = event {
            self.stream(replica, listener);
        }
        Some(event)
    }

    /// The event that comes first, and its time; of several at one time an arrival, then a transfer, then a step.
    fn next(&self, source: &RequestSource) -> Option<(NextEvent, f64)> {
        let step = self.replicas.first_end();
        let handover = self.handovers.next_s();
        let not_after = |time: f64, other: Option<f64>| other.is_none_or(|other| time <= other);
        let end = step.map(|(_, end)| end);
        let others = [source.next_s(), handover, end].into_iter().flatten().min_by(f64::total_cmp);
        let is_open = others.is_some() || !self.ledger.running.is_empty() || self.upkeep.parked() > 0;
        let timer = self.upkeep.next_s(others.is_none()).filter(|_| is_open);
        if let Some(timer) = timer.filter(|timer| others.is_none_or(|other| *timer < other)) {
            return Some((NextEvent::Timer, timer));
        }
        match (source.next_s(), handover, step) {
            (Some(arrives), ..) if not_after(arrives, handover) && not_after(arrives, end) => {
                Some((NextEvent::Arrival, arrives))
            }
            (_, Some(sent), _) if not_after(sent, end) => Some((NextEvent::Handover, sent)),
            (_, _, Some((replica, end_s))) => Some((NextEvent::Step(replica), end_s)),
            _ => None,
        }
    }

    /// The listener hears of the tokens of a replica's requests, after a step of it.
    fn stream(&self, replica: usize, listener: &mut impl RunListener) {
        // A worker that does not decode keeps the first token for the one that does.
        if !self.streams || self.pool(replica).role == Role::Prefill {
            return;
        }
        for engine in self.replicas[replica].engines() {
            engine.lacking(&mut |id, lacking| {
                let Some(one) = self.ledger.running.get(&id) else { return };
                listener.has_tokens(id, one.record.output.saturating_sub(lacking));
            });
        }
    }

    /// Whether a replica can take a request at all.
    pub fn can_take(&self, request: &EngineRequest) -> bool {
        let mut open = vec![];
        self.open_to(request, &mut open);
        !open.is_empty()
    }

    fn pool(&self, replica: usize) -> &PoolSettings {
        &self.settings.pools[self.pools[replica]]
    }

    /// Whether a replica can hold a request at its end.
    fn can_ever_hold(&self, replica: usize, request: &EngineRequest) -> bool {
        self.replicas[replica].engines().first().is_some_and(|engine| engine.can_ever_hold(request))
    }

    fn arrival(&mut self, source: &mut RequestSource) {
        let Some(arrival) = source.take() else { return };
        let (time_s, mut request) = (arrival.time_s, arrival.request);
        let tiered = self.settings.pools.iter().any(|pool| pool.tiers.is_some());
        if self.settings.operation.faults.is_some() || tiered {
            // It may be sent again, or leave its tokens in a tier, and find its own.
            request.shared = u32::MAX;
        }
        let mut able = std::mem::take(&mut self.open);
        self.open_to(&request, &mut able);
        let Some(&first) = able.first() else {
            self.open = able;
            self.ledger.totals.refused += 1;
            source.refused(request.id, time_s);
            let record = RequestRecord::arrived(&request, time_s);
            self.ledger.events.push(RunEvent::Unanswered(record, RequestOutcome::Refused));
            return;
        };
        // Of requests that share nothing, none is kept in mind: their number is not limited.
        if source.shares() {
            let reused_tokens = self.pool(first).scheduler.reused_tokens();
            self.ledger.totals.reusable_tokens += u64::from(self.seen.found(&request, reused_tokens));
        }
        self.set_patience(request.id, time_s);
        self.upkeep.keep(self.settings, &request);
        let in_recovery = self.upkeep.states.recovers();
        let record = RequestRecord { in_recovery, ..RequestRecord::arrived(&request, time_s) };
        self.dispatch(request, record, able, time_s);
    }

    /// Sends a request to one of the replicas `open` that serves; without one it waits.
    fn dispatch(&mut self, request: EngineRequest, record: RequestRecord, mut open: Vec<usize>, time_s: f64) {
        open.retain(|at| self.upkeep.states.serves(*at));
        if open.is_empty() {
            self.upkeep.park(request, record);
            return;
        }
        let route = self.ledger.router.route(&self.replicas, &open, &request);
        self.open = open;
        let target = route.target;
        let prefills = self.pool(target.replica).role == Role::Prefill;
        let to_decode = (prefills && request.output > 1).then(|| request.clone());
        let one = RequestInRun {
            record,
            route,
            admitted: false,
            begun: false,
            preempted_at_s: None,
            to_decode,
            reserved: 0,
            receiver: None,
        };
        self.ledger.running.insert(request.id, one);
        let output = if prefills { 1 } else { request.output };
        self.submit(target.replica, target.rank, time_s, EngineRequest { output, ..request });
    }

    /// Sets `open` to the replicas that can take a request.
    fn open_to(&self, request: &EngineRequest, open: &mut Vec<usize>) {
        let decodes = self.decoders.iter().any(|at| self.can_ever_hold(*at, request));
        let takes = |at: usize| match self.pool(at).role {
            Role::Decode => false,
            Role::Prefill => decodes && self.can_ever_hold(at, &prompt_alone(request)),
            Role::Aggregated => self.can_ever_hold(at, request),
        };
        // Replicas of a pool are equal, where they are not absent.
        let mut last = None;
        let mut takes_too = |at: &usize| {
            let like = (self.pools[*at], self.replicas.ranks(*at));
            let (known, takes) = last.filter(|(of, _)| *of == like).unwrap_or_else(|| (like, takes(*at)));
            last = Some((known, takes));
            takes
        };
        open.clear();
        open.extend((0..self.replicas.count()).filter(|at| takes_too(at)));
    }

    fn submit(&mut self, replica: usize, rank: usize, time_s: f64, request: EngineRequest) {
        let (ledger, clock) = (&mut self.ledger, self.clocks.of(self.pools[replica]));
        self.replicas.change(replica, |one| {
            one.arrive(time_s, rank, request, clock, &mut |event| ledger.note(event));
        });
    }

    fn step(&mut self, replica: usize) {
        self.note_use(replica, f64::INFINITY);
        let (ledger, clock) = (&mut self.ledger, self.clocks.of(self.pools[replica]));
        self.replicas.change(replica, |one| one.step(clock, &mut |event| ledger.note(event)));
    }

    /// Deals with the events that concern more than one replica, in their order.
    fn settle(&mut self, source: &mut RequestSource, listener: &mut impl RunListener) {
        let mut events = std::mem::take(&mut self.ledger.events);
        for event in events.drain(..) {
            match event {
                RunEvent::Prefilled(id, time_s) => self.prefilled(id, time_s),
                RunEvent::Placed(replica, tokens) => {
                    let queue = &mut self.decoding[replica];
                    queue.reserved -= tokens;
                    queue.coming -= 1;
                }
                RunEvent::Answered(one) => {
                    source.answered(one.id, one.last_token_s);
                    self.upkeep.forget(one.id);
                    listener.answered(&one);
                    self.send_waiting(one.last_token_s);
                }
                RunEvent::Failed(one, time_s) => {
                    self.ledger.totals.refused += 1;
                    source.refused(one.id, time_s);
                    listener.unanswered(&one, RequestOutcome::Refused);
                    self.send_waiting(time_s);
                }
                RunEvent::Unanswered(one, outcome) => listener.unanswered(&one, outcome),
            }
        }
        self.ledger.events = events;
    }

    /// A prompt is computed: its cache goes to the worker with the fewest requests that can hold it.
    fn prefilled(&mut self, id: u64, time_s: f64) {
        let Some(one) = self.ledger.running.get_mut(&id) else { return };
        let Some(request) = one.to_decode.take() else { return };
        self.ledger.router.left(&mut one.route);
        let from = one.route.target.replica;
        let load = |at: &usize| {
            let queue = &self.decoding[*at];
            let load = self.replicas.load(*at) + queue.waiting.len() + queue.coming;
            (!self.upkeep.states.serves(*at), load)
        };
        let holds = self.decoders.iter().copied().filter(|at| self.can_ever_hold(*at, &request));
        let to = holds.min_by_key(load).expect("one was found at arrival");
        if let Some(one) = self.ledger.running.get_mut(&id) {
            one.receiver = Some(to);
        }
        self.decoding[to].waiting.push_back((from, request));
        self.send_waiting(time_s);
    }

    /// Sends the caches for which there is memory now.
    fn send_waiting(&mut self, now_s: f64) {
        for place in 0..self.decoders.len() {
            let to = self.decoders[place];
            if !self.upkeep.states.serves(to) {
                continue;
            }
            while let Some((from, request)) = self.decoding[to].waiting.front() {
                let (from, needed) = (*from, u64::from(request.prompt));
                let queue = &self.decoding[to];
                let engines = self.replicas[to].engines().iter();
                let free: u64 = engines.map(|engine| engine.cache() - engine.cache_used()).sum();
                let alone = self.replicas.load(to) == 0 && queue.coming == 0;
                if !alone && queue.reserved + needed > free {
                    break;
                }
                let Some((_, request)) = self.decoding[to].waiting.pop_front() else { break };
                let queue = &mut self.decoding[to];
                queue.reserved += needed;
                queue.coming += 1;
                if let Some(one) = self.ledger.running.get_mut(&request.id) {
                    one.reserved = needed;
                }
                let seconds = self.clocks.transfer_s(self.pools[from], self.pools[to], request.prompt);
                self.handovers.send(now_s, (from, to), seconds, request);
            }
        }
    }

    /// A cache has arrived: its request decodes from now on.
    fn received(&mut self, listener: &mut impl RunListener) {
        let Some((time_s, to, request)) = self.handovers.take() else { return };
        if !self.ledger.running.contains_key(&request.id) {
            // Its client has given it up.
            return;
        }
        let rank = self.replicas[to].emptiest_rank();
        let first = self.pool(to).scheduler.takes_first_token();
        self.ledger.sent(request.id, (to, rank), time_s, first);
        if self.streams && first {
            listener.has_tokens(request.id, 1);
        }
        self.submit(to, rank, time_s, decoded(request, first));
    }

    /// Adds the state at `time_s` to the timeline, where it is due.
    fn watch(&mut self, time_s: f64) {
        if self.ledger.totals.timeline.is_due(time_s) {
            let point = self.state(time_s);
            self.ledger.totals.timeline.add(point);
        }
    }

    /// The state at `time_s`, at which nothing has come and no step has ended that the run has not taken.
    pub fn state(&self, time_s: f64) -> TimelinePoint {
        let numbered = || self.replicas.iter().enumerate();
        let working = || numbered().filter(|(at, _)| self.upkeep.states.works(*at));
        let engines = || working().flat_map(|(_, replica)| replica.engines());
        let queued = engines().map(|engine| engine.queued());
        let (running, waiting) = queued.fold((0, 0), |(a, b), (c, d)| (a + c as u64, b + d as u64));
        let inboxes: usize = self.replicas.iter().map(Replica::unseen).sum();
        let between: usize = self.decoding.iter().map(|queue| queue.waiting.len()).sum();
        let (used, all) =
            engines().fold((0, 0), |sum, engine| (sum.0 + engine.cache_used(), sum.1 + engine.cache()));
        TimelinePoint {
            time_s,
            running,
            waiting: waiting + (inboxes + between + self.upkeep.parked()) as u64,
            kv_used: used as f64 / (all as f64).max(1.0),
            output_tokens: self.ledger.totals.generated,
            replicas: self.settings.operation.changes_replicas().then(|| working().count() as u64),
        }
    }
}

/// The part of a request that a worker computes which does not decode.
fn prompt_alone(request: &EngineRequest) -> EngineRequest {
    EngineRequest { runs: vec![], output: 1, ..*request }
}

/// The part of a request that a worker computes which got the cache of its prompt. Where the worker before it also gave
/// the `first` token, that is the last of its prompt; else the last token of the prompt is computed once more.
fn decoded(request: EngineRequest, first: bool) -> EngineRequest {
    let (prompt, output) =
        if first { (request.prompt + 1, request.output - 1) } else { (request.prompt, request.output) };
    EngineRequest { prompt, output, received: prompt - 1, ..request }
}

impl RunLedger {
    /// The cache of a request is on the rank of the replica that decodes it.
    fn sent(&mut self, id: u64, (replica, rank): (usize, usize), time_s: f64, first: bool) {
        let Some(one) = self.running.get_mut(&id) else { return };
        (one.route.target.replica, one.route.target.rank) = (replica, rank);
        one.receiver = None;
        // Until now, this was when the prompt was computed.
        one.record.transfer_s = time_s - one.record.first_token_s;
        if first {
            one.begun = true;
            one.record.first_token_s = time_s;
            self.totals.generated += 1;
        }
    }

    fn note(&mut self, event: ReplicaEvent) {
        let (id, event, time_s) = match event {
            ReplicaEvent::Request(id, event, time_s) => (id, event, time_s),
            ReplicaEvent::Steps { step_s, steps, decoding, accepted, prompt_tokens } => {
                let (totals, tokens) = (&mut self.totals, u64::from(steps) * u64::from(decoding));
                totals.steps += u64::from(steps);
                totals.computed_prompt_tokens += prompt_tokens;
                totals.generated += tokens + u64::from(accepted);
                totals.decoded += tokens + u64::from(accepted);
                totals.accepted += u64::from(accepted);
                totals.itl.add(step_s, tokens);
                return;
            }
            ReplicaEvent::Dropped(id, tokens) => {
                self.leaving.remove(&id);
                self.totals.wasted += u64::from(tokens);
                return;
            }
        };
        let Some(one) = self.running.get_mut(&id) else {
            self.note_leaving(id, event);
            return;
        };
        match event {
            EngineEvent::Loaded { host_tokens, store_tokens, seconds } => {
                self.totals.tiers.add(host_tokens + store_tokens, seconds);
                if !one.admitted {
                    (one.record.host_tokens, one.record.store_tokens) = (host_tokens, store_tokens);
                    one.record.load_s = seconds;
                }
            }
            EngineEvent::Admitted { cached_tokens } => {
                if let Some(since) = one.preempted_at_s.take() {
                    one.record.preempted_s += time_s - since;
                }
                if !one.admitted {
                    one.admitted = true;
                    one.record.admitted_s = time_s;
                    one.record.cached_tokens = cached_tokens;
                }
                if one.reserved > 0 {
                    let reserved = std::mem::take(&mut one.reserved);
                    self.events.push(RunEvent::Placed(one.route.target.replica, reserved));
                }
            }
            EngineEvent::Preempted => {
                one.record.preemptions += 1;
                one.preempted_at_s = Some(time_s);
                self.totals.preemptions += 1;
            }
            EngineEvent::FirstToken if one.to_decode.is_some() => one.record.first_token_s = time_s,
            EngineEvent::FirstToken => {
                if std::mem::replace(&mut one.begun, true) {
                    // The first one of a worker whose request came with its first token.
                    self.totals.itl.add(time_s - one.record.first_token_s, 1);
                } else {
                    one.record.first_token_s = time_s;
                    self.router.computed(&mut one.route);
                }
                self.totals.generated += 1;
            }
            EngineEvent::Finished if one.to_decode.is_some() => {
                self.events.push(RunEvent::Prefilled(id, time_s));
            }
            EngineEvent::Finished => self.finished(id, time_s),
            EngineEvent::Failed => self.failed(id, time_s),
        }
    }

    fn failed(&mut self, id: u64, time_s: f64) {
        let Some(mut one) = self.running.remove(&id) else { return };
        self.router.left(&mut one.route);
        self.events.push(RunEvent::Failed(one.record, time_s));
    }

    /// To a request that was given up, of which its scheduler has not heard.
    fn note_leaving(&mut self, id: u64, event: EngineEvent) {
        let Some(one) = self.leaving.get(&id).filter(|one| one.output > 0) else { return };
        match event {
            EngineEvent::FirstToken => self.totals.generated += 1,
            EngineEvent::Finished => {
                self.totals.wasted += u64::from(one.output);
                self.leaving.remove(&id);
            }
            EngineEvent::Failed => {
                self.leaving.remove(&id);
            }
            EngineEvent::Loaded { .. } | EngineEvent::Admitted { .. } | EngineEvent::Preempted => {}
        }
    }

    fn finished(&mut self, id: u64, time_s: f64) {
        let Some(mut one) = self.running.remove(&id) else { return };
        self.router.left(&mut one.route);
        let record = RequestRecord { last_token_s: time_s, ..one.record };
        let totals = &mut self.totals;
        totals.answered += 1;
        totals.end_s = totals.end_s.max(time_s);
        totals.request_seconds += record.e2e_s();
        totals.prompt_tokens += u64::from(record.prompt);
        totals.cached_tokens += u64::from(record.cached_tokens);
        totals.tiers.host_tokens += u64::from(record.host_tokens);
        totals.tiers.store_tokens += u64::from(record.store_tokens);
        totals.output_tokens += u64::from(record.output);
        self.events.push(RunEvent::Answered(record));
    }
}

#[cfg(test)]
mod tests;
