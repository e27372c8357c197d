//! Events from outside of a run: clients give up, replicas fail and start, and a scaler adds and removes some.

use std::collections::{BinaryHeap, VecDeque};

use super::{
    DeploymentClock, DeploymentSettings, EngineRequest, LeavingRequest, Replica, RequestInRun,
    RequestOutcome, RequestRecord, RequestSource, RunEvent, TrafficRun,
};
use crate::spec::role::Role;
use crate::traffic::due::Due;
use crate::traffic::number_map::NumberMap;
use crate::traffic::replica_state::{ReplicaState, ReplicaStates};
use crate::traffic::scaler::{Autoscaler, ScaleSignal};

/// A thing that is due at a time.
#[derive(Clone, Copy)]
enum RunTimer {
    /// The client of a request gives it up, if it has no answer.
    GivesUp(u64),
    /// A replica serves from now on.
    Starts(usize),
    /// A replica fails, in the life of this number; in any without one.
    Fails(usize, Option<u64>),
    /// The scaler reads its signal.
    Scales,
}

impl RunTimer {
    /// Whether a run waits for it, where nothing else is to come.
    fn is_awaited(self) -> bool {
        matches!(self, RunTimer::GivesUp(_) | RunTimer::Starts(_))
    }
}

/// The part of a run that happens to it from outside.
pub(super) struct RunUpkeep {
    pub(super) states: ReplicaStates,
    timers: BinaryHeap<Due<RunTimer>>,
    /// Timers that were set, and those to come that the run waits for.
    set: u64,
    awaited: usize,
    /// Requests that wait for a replica to serve.
    parked: VecDeque<(EngineRequest, RequestRecord)>,
    /// Requests that may be lost, by number.
    kept: NumberMap<u64, EngineRequest>,
    scaler: Option<Autoscaler>,
    /// Whether the operation has any settings.
    is_active: bool,
    /// The time of the last event.
    pub(super) now_s: f64,
}

impl RunUpkeep {
    /// The first `serving` of `all` replicas serve.
    pub(super) fn new(settings: &DeploymentSettings, (serving, all): (usize, usize)) -> RunUpkeep {
        let operation = &settings.operation;
        let scaler = operation.scaler.clone().map(|scaler| Autoscaler::new(scaler, serving));
        let mut upkeep = RunUpkeep {
            states: ReplicaStates::new(serving, all),
            timers: BinaryHeap::new(),
            set: 0,
            awaited: 0,
            parked: VecDeque::new(),
            kept: NumberMap::default(),
            scaler,
            is_active: operation.client_timeout_s.is_some() || operation.changes_replicas(),
            now_s: 0.0,
        };
        (0..serving).for_each(|replica| upkeep.set_faults(settings, replica, 0.0));
        if let Some(scaler) = &operation.scaler {
            upkeep.set(scaler.interval_s, RunTimer::Scales);
        }
        upkeep
    }

    fn set(&mut self, time_s: f64, timer: RunTimer) {
        self.awaited += usize::from(timer.is_awaited());
        self.timers.push(Due { time_s, order: (self.set, 0), what: timer });
        self.set += 1;
    }

    fn take(&mut self) -> Option<(f64, RunTimer)> {
        let Due { time_s, what, .. } = self.timers.pop()?;
        self.awaited -= usize::from(what.is_awaited());
        Some((time_s, what))
    }

    /// A replica begins to serve: when it fails.
    fn set_faults(&mut self, settings: &DeploymentSettings, replica: usize, time_s: f64) {
        let Some(faults) = &settings.operation.faults else { return };
        let life = self.states.life(replica);
        for fault_s in faults.of_life(settings.seed, (replica, life), time_s) {
            let life = (!faults.outlast_life()).then_some(life);
            self.set(fault_s, RunTimer::Fails(replica, life));
        }
    }

    /// The time of the next timer, where requests are not answered and it may matter to them; `waits` says whether
    /// nothing else is to come.
    pub(super) fn next_s(&self, waits: bool) -> Option<f64> {
        let next = self.timers.peek().map(|timer| timer.time_s);
        next.filter(|_| !waits || self.awaited > 0)
    }

    /// Requests that wait for a replica to serve.
    pub(super) fn parked(&self) -> usize {
        self.parked.len()
    }

    /// No replica serves that can hold the request.
    pub(super) fn park(&mut self, request: EngineRequest, record: RequestRecord) {
        self.parked.push_back((request, record));
    }

    /// Keeps a request as long as it may be lost.
    pub(super) fn keep(&mut self, settings: &DeploymentSettings, request: &EngineRequest) {
        if settings.operation.faults.is_some() {
            self.kept.insert(request.id, request.clone());
        }
    }

    /// A request has ended.
    pub(super) fn forget(&mut self, id: u64) {
        self.kept.remove(&id);
    }
}

impl<C: DeploymentClock> TrafficRun<'_, C> {
    /// Sets when the client of a request gives it up.
    pub(super) fn set_patience(&mut self, id: u64, time_s: f64) {
        if let Some(patience_s) = self.settings.operation.client_timeout_s {
            self.upkeep.set(time_s + patience_s, RunTimer::GivesUp(id));
        }
    }

    /// The next timer is due.
    pub(super) fn timer(&mut self, source: &mut RequestSource) {
        let Some((time_s, timer)) = self.upkeep.take() else { return };
        match timer {
            RunTimer::GivesUp(id) => {
                let waited_s = self.settings.operation.client_timeout_s;
                self.gives_up((id, waited_s), time_s, source);
            }
            RunTimer::Starts(replica) => self.started(replica, time_s),
            RunTimer::Fails(replica, life) => {
                if life.is_none_or(|life| life == self.upkeep.states.life(replica)) {
                    self.fails(replica, time_s, source);
                }
            }
            RunTimer::Scales => self.scales(time_s),
        }
        self.update_replicas(time_s);
        if !matches!(timer, RunTimer::GivesUp(_)) {
            self.watch(time_s);
        }
    }

    /// After an event: replicas that are emptied go, and caches are sent for which there is memory now.
    pub(super) fn update_replicas(&mut self, time_s: f64) {
        if !self.upkeep.is_active {
            return;
        }
        self.send_waiting(time_s);
        for replica in 0..self.replicas.count() {
            let one = &self.replicas[replica];
            let is_empty = || one.end_s().is_none() && one.load() == 0;
            if self.upkeep.states.of(replica) == ReplicaState::Draining && is_empty() {
                self.removed(replica, time_s);
            }
        }
    }

    /// The client of a request leaves at `time_s`, up to which all events are taken; nothing, where the request has not
    /// come, or has ended.
    pub fn give_up(&mut self, id: u64, time_s: f64, source: &mut RequestSource) {
        // From now on, memory becomes free without an answer.
        self.upkeep.is_active = true;
        self.upkeep.now_s = self.upkeep.now_s.max(time_s);
        self.gives_up((id, None), time_s, source);
        self.update_replicas(time_s);
    }

    /// A client gives up a request that it waited for this long, if it has no answer; where that is not known, since it
    /// came.
    fn gives_up(&mut self, (id, waited_s): (u64, Option<f64>), time_s: f64, source: &mut RequestSource) {
        let record = if let Some(mut one) = self.ledger.running.remove(&id) {
            self.ledger.router.left(&mut one.route);
            let target = one.route.target;
            let on_its_way = one.receiver.is_some();
            self.take_back(id, &mut one);
            if !on_its_way {
                let output = if one.to_decode.is_some() { 0 } else { one.record.output };
                let ledger = &mut self.ledger;
                ledger.leaving.insert(id, LeavingRequest { target, output });
                let note = &mut |event| ledger.note(event);
                let aborted = (target.rank, id);
                self.replicas.change(target.replica, |one| one.abort(time_s, aborted, note));
            }
            one.record
        } else {
            let place = self.upkeep.parked.iter().position(|(request, _)| request.id == id);
            let Some((_, record)) = place.and_then(|place| self.upkeep.parked.remove(place)) else { return };
            record
        };
        self.ledger.totals.aborted += 1;
        self.ledger.totals.request_seconds += waited_s.unwrap_or(time_s - record.arrived_s);
        self.unanswered((record, RequestOutcome::GivenUp), time_s, source);
    }

    /// A request ends without an answer.
    fn unanswered(
        &mut self,
        (record, outcome): (RequestRecord, RequestOutcome),
        time_s: f64,
        source: &mut RequestSource,
    ) {
        self.upkeep.forget(record.id);
        self.ledger.totals.unanswered.push(record.id);
        source.given_up(record.id, time_s);
        self.ledger.events.push(RunEvent::Unanswered(record, outcome));
    }

    /// A request no longer waits for a worker that decodes, nor keeps memory there.
    fn take_back(&mut self, id: u64, one: &mut RequestInRun) {
        let receiver = one.receiver.take();
        if let Some(to) = receiver {
            self.decoding[to].waiting.retain(|(_, request)| request.id != id);
        }
        if one.reserved > 0 {
            let queue = &mut self.decoding[receiver.unwrap_or(one.route.target.replica)];
            queue.reserved -= std::mem::take(&mut one.reserved);
            queue.coming -= 1;
        }
    }

    /// A replica fails: all requests that it has a part of are sent again, to others.
    fn fails(&mut self, replica: usize, time_s: f64, source: &mut RequestSource) {
        if !self.upkeep.states.works(replica) {
            return;
        }
        let has_part =
            |one: &RequestInRun| one.route.target.replica == replica || one.receiver == Some(replica);
        let running = &mut self.ledger.running;
        let mut lost: Vec<_> = running.extract_if(|_, one| has_part(one)).collect();
        lost.sort_by_key(|(id, _)| *id);
        let there = lost.iter().map(|(id, one)| (*id, one.route.target));
        let leaving = self.ledger.leaving.iter().map(|(id, one)| (*id, one.target));
        let there = there.chain(leaving).filter(|(_, target)| target.replica == replica);
        let mut there: Vec<_> = there.map(|(id, target)| (target.rank, id)).collect();
        there.sort_unstable();
        self.note_use(replica, time_s);
        let ledger = &mut self.ledger;
        let at = self.pools[replica];
        let of = (&self.settings.pools[at], self.clocks.of(at));
        let note = &mut |event| ledger.note(event);
        self.replicas.change(replica, |one| one.fail(time_s, of, &there, note));
        self.ledger.totals.faults += 1;
        if self.upkeep.states.of(replica) == ReplicaState::Draining {
            self.removed(replica, time_s);
        } else {
            self.start(replica, time_s, true);
        }
        for (id, one) in &mut lost {
            self.ledger.router.left(&mut one.route);
            self.take_back(*id, one);
        }
        let is_lost = |id: u64| lost.binary_search_by_key(&id, |(other, _)| *other).is_ok();
        self.handovers.retain(|id| !is_lost(id));
        self.ledger.totals.lost += lost.len() as u64;
        for (id, one) in lost {
            self.send_again(id, &one.record, time_s, source);
        }
    }

    /// The router sends a lost request to another replica, or gives it up.
    fn send_again(&mut self, id: u64, lost: &RequestRecord, time_s: f64, source: &mut RequestSource) {
        let again = lost.retries < self.settings.operation.retries;
        let Some(request) = self.upkeep.kept.get(&id).filter(|_| again).cloned() else {
            self.ledger.totals.failed += 1;
            self.ledger.totals.request_seconds += time_s - lost.arrived_s;
            return self.unanswered((*lost, RequestOutcome::Failed), time_s, source);
        };
        let record = RequestRecord {
            retries: lost.retries + 1,
            in_recovery: lost.in_recovery,
            ..RequestRecord::arrived(&request, lost.arrived_s)
        };
        let mut able = std::mem::take(&mut self.open);
        self.open_to(&request, &mut able);
        self.dispatch(request, record, able, time_s);
    }

    fn start(&mut self, replica: usize, time_s: f64, after_fault: bool) {
        let until_s = time_s + self.settings.operation.startup_s;
        self.upkeep.states.start(replica, (time_s, until_s), after_fault);
        self.upkeep.set(until_s, RunTimer::Starts(replica));
    }

    /// A replica serves from now on: also the requests that waited for one.
    fn started(&mut self, replica: usize, time_s: f64) {
        if !self.upkeep.states.started(replica, time_s) {
            return;
        }
        self.upkeep.set_faults(self.settings, replica, time_s);
        for (request, record) in std::mem::take(&mut self.upkeep.parked) {
            let mut able = std::mem::take(&mut self.open);
            self.open_to(&request, &mut able);
            self.dispatch(request, record, able, time_s);
        }
    }

    /// The scaler adds or removes replicas.
    fn scales(&mut self, time_s: f64) {
        let Some(settings) = &self.settings.operation.scaler else { return };
        let held = self.upkeep.states.wanted();
        let parked = match settings.signal {
            ScaleSignal::KvCache => 0,
            ScaleSignal::Queue | ScaleSignal::Requests => self.upkeep.parked.len(),
        };
        let serving = (0..self.replicas.count()).filter(|at| self.upkeep.states.serves(*at));
        let signals = serving.map(|at| signal(settings.signal, &self.replicas[at]));
        let sum = parked as f64 + signals.sum::<f64>();
        let Some(scaler) = &mut self.upkeep.scaler else { return };
        let wanted = scaler.wanted(time_s, held, sum);
        (held..wanted).for_each(|_| self.add_replica(time_s));
        (wanted..held).for_each(|_| self.remove_replica(time_s));
        self.upkeep.set(time_s + settings.interval_s, RunTimer::Scales);
    }

    /// Adds a replica where one is absent: those that are emptied keep their devices.
    fn add_replica(&mut self, time_s: f64) {
        let is_absent = |at: &usize| {
            self.upkeep.states.of(*at) == ReplicaState::Absent && self.pool(*at).role == Role::Aggregated
        };
        let Some(replica) = (0..self.replicas.count()).find(is_absent) else { return };
        let pool = self.pool(replica);
        let added = Replica::new(pool, pool.stores(self.store.as_ref()));
        self.replicas.change(replica, |one| *one = added);
        self.start(replica, time_s, false);
    }

    fn removed(&mut self, replica: usize, time_s: f64) {
        self.upkeep.states.remove(replica, time_s);
        let absent = Replica::new(self.pool(replica), vec![]);
        self.replicas.change(replica, |one| *one = absent);
    }

    fn remove_replica(&mut self, time_s: f64) {
        let Some(replica) = self.upkeep.states.removed_first() else { return };
        if self.upkeep.states.serves(replica) {
            self.upkeep.states.drain(replica);
        } else {
            self.removed(replica, time_s);
        }
    }
}

/// The signal of one replica.
fn signal(of: ScaleSignal, replica: &Replica) -> f64 {
    let engines = replica.engines().iter();
    match of {
        ScaleSignal::Requests => replica.load() as f64,
        ScaleSignal::Queue => {
            let waiting: usize = engines.map(|engine| engine.queued().1).sum();
            (waiting + replica.unseen()) as f64
        }
        ScaleSignal::KvCache => {
            let sum = engines.fold((0, 0), |sum, one| (sum.0 + one.cache_used(), sum.1 + one.cache()));
            sum.0 as f64 / (sum.1 as f64).max(1.0)
        }
    }
}
