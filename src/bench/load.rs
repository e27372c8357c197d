//! A load of requests: clients in a loop, or arrivals at times that do not wait for answers, drawn or of a trace.
//!
//! Requests before the counted ones warm the server up, and further ones keep the load until the last counted one has
//! ended, so that no counted request meets a server that empties.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::client::{Exchange, ExchangeEnd, KeptConnection, RunContext};
use super::points::PointLoad;
use crate::traffic::source::{Arrivals, DrawnTraffic, LengthDistribution, RequestSource};

/// Makes the body of the request of a number.
pub(super) type BodyMaker = Arc<dyn Fn(u64) -> String + Send + Sync>;

/// Requests of a run, as they were sent and answered.
#[derive(Debug, Default)]
pub(super) struct LoadRun {
    /// All of them, by number.
    pub(super) exchanges: Vec<Exchange>,
    /// Delays between an event and its handling in the client, in seconds.
    pub(super) delays_s: Vec<f64>,
    /// When it began: times of exchanges count from here.
    pub(super) begun: Option<Instant>,
}

/// A run under way.
#[derive(Clone)]
struct RunState {
    context: RunContext,
    bodies: BodyMaker,
    /// Numbers of the requests that figures count.
    counted: Range<u64>,
    next: Arc<AtomicU64>,
    /// Counted requests that have ended.
    ended: Arc<AtomicU64>,
    stop: Arc<watch::Sender<bool>>,
    /// Requests in a row for which no connection was made.
    refused: Arc<AtomicU64>,
    progress: Arc<dyn Fn() + Send + Sync>,
}

/// Pause of a client after a request that failed: a server that refuses all is not flooded.
const AFTER_FAILURE: Duration = Duration::from_millis(50);
/// Requests in a row without a connection after which the run is over: its server is gone.
const MOST_REFUSED: u64 = 100;
/// Time between two measurements of the client's delay.
const DELAY_EVERY: Duration = Duration::from_millis(5);
/// Connections that are kept between requests under a rate, at most.
const MOST_KEPT: usize = 4096;

impl RunState {
    /// A request has ended.
    fn count(&self, exchange: &Exchange) {
        if !exchange.end.is_unconnected() {
            self.refused.store(0, Relaxed);
        } else if self.refused.fetch_add(1, Relaxed) + 1 >= MOST_REFUSED {
            // All tasks may have ended already.
            let _ = self.stop.send(true);
        }
        if self.counted.contains(&exchange.number) {
            (self.progress)();
            if self.ended.fetch_add(1, Relaxed) + 1 == self.counted.end - self.counted.start {
                // All tasks may have ended already.
                let _ = self.stop.send(true);
            }
        }
    }

    fn has_stopped(&self) -> bool {
        *self.context.stop.borrow()
    }

    /// A client in a loop.
    async fn client(self) -> Vec<Exchange> {
        let (mut kept, mut exchanges) = (KeptConnection::None, vec![]);
        while !self.has_stopped() {
            let number = self.next.fetch_add(1, Relaxed);
            let body = (self.bodies)(number);
            let exchange = self.context.exchange(&mut kept, (number, self.context.now_s()), body).await;
            self.count(&exchange);
            let failed = matches!(exchange.end, ExchangeEnd::Failed(_));
            exchanges.push(exchange);
            if failed {
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
        exchanges
    }

    /// A request that arrives by itself, on a connection that is free.
    async fn arrival(self, free: Arc<Mutex<Vec<KeptConnection>>>, at: (u64, f64), body: String) -> Exchange {
        let mut kept = free.lock().unwrap_or_else(PoisonError::into_inner).pop().flatten();
        let exchange = self.context.exchange(&mut kept, at, body).await;
        self.count(&exchange);
        let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_some() && free.len() < MOST_KEPT {
            free.push(kept);
        }
        exchange
    }
}

/// Runs a load until all counted requests have ended. `progress` is called at the end of each of these.
pub(super) async fn run(
    load: &PointLoad,
    seed: u64,
    counted: Range<u64>,
    bodies: BodyMaker,
    made: impl FnOnce(watch::Receiver<bool>) -> RunContext,
    progress: Arc<dyn Fn() + Send + Sync>,
) -> LoadRun {
    let (stop, stopped) = watch::channel(false);
    let state = RunState {
        context: made(stopped),
        bodies,
        counted,
        next: Arc::default(),
        ended: Arc::default(),
        stop: Arc::new(stop),
        refused: Arc::default(),
        progress,
    };
    let over = Arc::new(AtomicBool::new(false));
    let delays = tokio::task::spawn_blocking({
        let (handle, over) = (Handle::current(), over.clone());
        move || measured_delays(&handle, &over)
    });
    let mut exchanges = match load {
        PointLoad::Clients(clients) => closed(&state, *clients).await,
        PointLoad::Rate { .. } | PointLoad::Trace(_) => open(&state, load.clone(), seed).await,
    };
    over.store(true, Relaxed);
    exchanges.sort_unstable_by_key(|exchange| exchange.number);
    LoadRun { exchanges, delays_s: delays.await.unwrap_or_default(), begun: Some(state.context.begun) }
}

async fn closed(state: &RunState, clients: u64) -> Vec<Exchange> {
    let mut tasks = JoinSet::new();
    (0..clients).for_each(|_| drop(tasks.spawn(state.clone().client())));
    tasks.join_all().await.into_iter().flatten().collect()
}

/// The times of requests under a rate, as those of `simulate`.
fn arrivals(per_s: f64, variation: f64, seed: u64) -> RequestSource {
    RequestSource::new(DrawnTraffic {
        arrivals: Arrivals::Rate { per_s, variation },
        requests: u64::MAX,
        prompt: LengthDistribution::Fixed(1),
        output: LengthDistribution::Fixed(1),
        prefix: 0,
        prefix_groups: 1,
        distinct_prompts: 0,
        sessions: None,
        seed,
    })
}

/// The numbers of the requests of an open loop with their times: those of a trace, or under a rate those of `simulate`.
fn planned(load: &PointLoad, seed: u64) -> Box<dyn Iterator<Item = (u64, f64)> + '_> {
    match load {
        PointLoad::Rate { per_s, variation } => {
            let mut source = arrivals(*per_s, *variation, seed);
            let taken = std::iter::from_fn(move || source.take());
            Box::new(taken.map(|arrival| (arrival.request.id, arrival.time_s)))
        }
        PointLoad::Trace(trace) => Box::new(trace.times()),
        PointLoad::Clients(_) => Box::new(std::iter::empty()),
    }
}

async fn open(state: &RunState, load: PointLoad, seed: u64) -> Vec<Exchange> {
    let (handle, state) = (Handle::current(), state.clone());
    // A thread of its own: the timer of the tasks has a resolution of a millisecond.
    let sending = tokio::task::spawn_blocking(move || {
        let mut tasks = JoinSet::new();
        let free = Arc::new(Mutex::new(vec![]));
        for (number, time_s) in planned(&load, seed) {
            let body = (state.bodies)(number);
            if !wait_until(&state, time_s) {
                break;
            }
            let request = state.clone().arrival(free.clone(), (number, time_s), body);
            tasks.spawn_on(request, &handle);
        }
        tasks
    });
    match sending.await {
        Ok(tasks) => tasks.join_all().await,
        Err(_) => vec![],
    }
}

/// Longest wait between two checks whether the run is over.
const LONGEST_WAIT: Duration = Duration::from_millis(20);

/// Waits for a time of the run; whether it came before the end of the run.
fn wait_until(state: &RunState, time_s: f64) -> bool {
    loop {
        if state.has_stopped() {
            return false;
        }
        let wait = Duration::try_from_secs_f64(time_s - state.context.now_s()).unwrap_or_default();
        if wait.is_zero() {
            return true;
        }
        std::thread::sleep(wait.min(LONGEST_WAIT));
    }
}

/// How long events wait for the client, measured until `over`.
fn measured_delays(handle: &Handle, over: &AtomicBool) -> Vec<f64> {
    let delays = Arc::new(Mutex::new(vec![]));
    while !over.load(Relaxed) {
        let (sent, delays) = (Instant::now(), delays.clone());
        handle.spawn(async move {
            let delay = sent.elapsed().as_secs_f64();
            delays.lock().unwrap_or_else(PoisonError::into_inner).push(delay);
        });
        std::thread::sleep(DELAY_EVERY);
    }
    let mut delays = delays.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut *delays)
}
