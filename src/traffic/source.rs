//! Where requests come from: arrivals, lengths, and the tokens that they share.

use std::collections::{BinaryHeap, VecDeque};

use fastrand::Rng;

use super::content::{TokenRun, mixed};
use super::due::Due;
use super::engine::EngineRequest;
use super::number_map::NumberMap;
use super::session::{DrawnSessions, DueTurns, Session, SessionInFlight};
use crate::spec::limits::ISL;

/// When requests arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Gaps of a gamma distribution with this mean rate and coefficient of variation: 1 for Poisson arrivals, 0 for even
    /// gaps. Of sessions, these are their starts, at a rate by which as many requests come on average.
    Rate { per_s: f64, variation: f64 },
    /// This many clients, each of which sends its next request, or starts its next session, when it has the last answer.
    Clients(u64),
}

/// Lengths of prompts or outputs.
#[derive(Clone, Debug, PartialEq)]
pub enum LengthDistribution {
    /// All equal.
    Fixed(u32),
    /// Uniform between these, both included.
    Uniform(u32, u32),
    /// Log-normal with this mean and coefficient of variation, at least 1.
    LogNormal { mean: f64, variation: f64 },
}

/// The longest drawn length: the limit of stated ones.
const MOST_TOKENS: f64 = ISL.most;

impl LengthDistribution {
    pub(super) fn draw(&self, rng: &mut Rng) -> u32 {
        match *self {
            LengthDistribution::Fixed(tokens) => tokens,
            LengthDistribution::Uniform(least, most) => rng.u32(least..=most.max(least)),
            LengthDistribution::LogNormal { mean, variation } => {
                log_normal(rng, mean, variation).round().clamp(1.0, MOST_TOKENS) as u32
            }
        }
    }
}

/// A log-normal number of this mean and coefficient of variation.
pub(super) fn log_normal(rng: &mut Rng, mean: f64, variation: f64) -> f64 {
    let spread = libm::log(1.0 + variation * variation);
    libm::exp(libm::log(mean) - spread / 2.0 + libm::sqrt(spread) * normal(rng))
}

/// A standard normal number: Box and Muller 1958.
fn normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.f64()));
    radius * libm::cos(2.0 * std::f64::consts::PI * rng.f64())
}

/// A gamma number of this shape and mean 1: Marsaglia and Tsang 2000.
fn gamma(rng: &mut Rng, shape: f64) -> f64 {
    if shape < 1.0 {
        let boost = libm::pow(1.0 - rng.f64(), 1.0 / shape);
        return gamma(rng, shape + 1.0) * (shape + 1.0) * boost / shape;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normal(rng);
        let v = libm::pow(1.0 + c * x, 3.0);
        if v > 0.0 && libm::log(1.0 - rng.f64()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v / shape;
        }
    }
}

/// Requests drawn from distributions.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnTraffic {
    pub arrivals: Arrivals,
    /// Requests in total.
    pub requests: u64,
    pub prompt: LengthDistribution,
    pub output: LengthDistribution,
    /// Tokens at the start of each prompt that it shares with those of its group.
    pub prefix: u32,
    /// Different prefixes.
    pub prefix_groups: u64,
    /// Different prompts, where the same ones come again and again; 0 where all differ.
    pub distinct_prompts: u64,
    /// The sessions of which these are the first turns; `None` where each request is on its own.
    pub sessions: Option<DrawnSessions>,
    pub seed: u64,
}

/// A request with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Seconds from the start of the run.
    pub time_s: f64,
    pub request: EngineRequest,
}

impl DrawnTraffic {
    /// A generator of its own for each request and use, so that the same request comes whatever happens to the others.
    pub(super) fn rng(&self, number: u64, use_of: u64) -> Rng {
        Rng::with_seed(mixed(mixed(self.seed, number), use_of))
    }

    /// The request of this number.
    pub(super) fn request(&self, number: u64) -> EngineRequest {
        let distinct = if self.distinct_prompts == 0 { number } else { number % self.distinct_prompts };
        let mut rng = self.rng(distinct, 1);
        let prompt = self.prompt.draw(&mut rng).max(1);
        let output = self.output.draw(&mut self.rng(number, 2)).max(1);
        let prefix = self.prefix.min(prompt);
        let group = mixed(distinct, 3) % self.prefix_groups.max(1);
        let run = |id, tokens| TokenRun { id, tokens };
        let runs = vec![
            run(mixed(4, group), prefix),
            run(mixed(5, distinct), prompt - prefix),
            run(mixed(6, number), output),
        ];
        let shared = self.shared(prompt);
        EngineRequest { shared, ..EngineRequest::new(number, runs, prompt, output) }
    }

    /// Tokens of a prompt of `prompt` tokens that another request on its own may begin with.
    pub(super) fn shared(&self, prompt: u32) -> u32 {
        if self.distinct_prompts == 0 { self.prefix.min(prompt) } else { prompt }
    }

    /// The time from the arrival before to that of this number.
    pub(super) fn gap_s(&self, number: u64, per_s: f64, variation: f64) -> f64 {
        let rng = &mut self.rng(number, 0);
        if variation == 0.0 {
            return 1.0 / per_s;
        }
        if variation == 1.0 {
            return -libm::log(1.0 - rng.f64()) / per_s;
        }
        gamma(rng, 1.0 / (variation * variation)) / per_s
    }
}

/// Sessions of a run, for its figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Sessions that sent a request.
    pub started: u64,
    /// Those that ended early: the cache, or the model's window, does not hold what came next.
    pub cut: u64,
    /// Those that ended early: their client gave a request up, or one failed.
    pub given_up: u64,
}

/// How a request ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestEnd {
    Answered,
    Refused,
    GivenUp,
}

/// Requests that are to come, in order of their times.
pub struct RequestSource {
    arrivals: Arrivals,
    script: Script,
    /// Requests in total, at most.
    most: u64,
    /// Tokens of a context, at most.
    window: u64,
    /// Requests that came.
    sent: u64,
    /// Requests or sessions that were begun.
    begun: u64,
    clock_s: f64,
    /// Seconds from an answer to the next request of its client.
    pause_s: f64,
    coming: BinaryHeap<Coming>,
    /// Sessions by number.
    sessions: NumberMap<u64, SessionInFlight>,
    /// Session and turn of requests that are not answered.
    turns: NumberMap<u64, (u64, usize)>,
    counts: SessionCounts,
    start_line: Option<StartLine>,
}

/// The place in the first sessions at which each waits until all have come there, or have ended.
struct StartLine {
    /// Sessions, the first ones.
    sessions: u64,
    /// The turn before which they wait.
    turn: usize,
    /// Those that wait, and how long each goes on to wait.
    held: Vec<(u64, f64)>,
    /// Sessions that have neither come there nor ended.
    missing: u64,
}

/// Requests or sessions that are yet to begin.
enum Script {
    Drawn(DrawnTraffic),
    Listed(VecDeque<Session>),
    /// They come from outside, while the run goes on.
    Submitted,
}

enum Next {
    Request(EngineRequest),
    /// A turn of a session, by its number.
    Turn(u64, usize),
}

/// Requests, and turns, that are to come.
type Coming = Due<Next>;

impl Coming {
    fn request(arrival: Arrival) -> Coming {
        let order = (arrival.request.id, 0);
        Due { time_s: arrival.time_s, order, what: Next::Request(arrival.request) }
    }
}

impl RequestSource {
    /// The requests of `traffic`.
    pub fn new(traffic: DrawnTraffic) -> RequestSource {
        let first = match traffic.arrivals {
            Arrivals::Rate { .. } => 1,
            Arrivals::Clients(clients) => clients,
        };
        let (arrivals, most) = (traffic.arrivals.clone(), traffic.requests);
        let mut source = RequestSource::of(arrivals, most, Script::Drawn(traffic));
        (0..first).for_each(|_| source.begin(0.0));
        source
    }

    fn of(arrivals: Arrivals, most: u64, script: Script) -> RequestSource {
        RequestSource {
            arrivals,
            script,
            most,
            window: u64::MAX,
            sent: 0,
            begun: 0,
            clock_s: 0.0,
            pause_s: 0.0,
            coming: BinaryHeap::new(),
            sessions: NumberMap::default(),
            turns: NumberMap::default(),
            counts: SessionCounts::default(),
            start_line: None,
        }
    }

    /// Whether a request can begin as an earlier one does.
    pub fn shares(&self) -> bool {
        match &self.script {
            Script::Drawn(traffic) => {
                traffic.prefix > 0 || traffic.distinct_prompts > 0 || traffic.sessions.is_some()
            }
            Script::Listed(_) => true,
            // Their number has no limit.
            Script::Submitted => false,
        }
    }

    /// A request comes from outside, not before any that was taken.
    pub fn submit(&mut self, arrival: Arrival) {
        self.coming.push(Coming::request(arrival));
    }

    /// The same, where a client's next request reaches the scheduler `pause_s` seconds after the answer before.
    #[must_use]
    pub fn pausing(self, pause_s: f64) -> RequestSource {
        RequestSource { pause_s, ..self }
    }

    /// The same, where a session ends before a turn with more than `tokens` tokens of prompt and output.
    #[must_use]
    pub fn within(self, tokens: u64) -> RequestSource {
        RequestSource { window: tokens, ..self }
    }

    /// The same, where the first `sessions` sessions send their turn number `turn` when all of them have their answers to
    /// those before.
    #[must_use]
    pub fn lined_up(self, sessions: u64, turn: usize) -> RequestSource {
        let start_line = Some(StartLine { sessions, turn, held: vec![], missing: sessions });
        RequestSource { start_line, ..self }
    }

    /// The sessions so far.
    pub fn counts(&self) -> SessionCounts {
        self.counts
    }

    /// When the next request arrives, if one does.
    pub fn next_s(&self) -> Option<f64> {
        let coming = self.coming.peek().map(|coming| coming.time_s);
        coming.filter(|_| self.sent < self.most)
    }

    /// The next request, unless the session ends that it is of.
    pub fn take(&mut self) -> Option<Arrival> {
        let Due { time_s, what, .. } = self.coming.pop()?;
        let (request, is_first) = match what {
            Next::Request(request) => (Some(request), true),
            Next::Turn(number, turn) => (self.turn(number, turn, time_s), turn == 0),
        };
        if is_first && let Arrivals::Rate { .. } = self.arrivals {
            self.begin(time_s);
        }
        self.sent += u64::from(request.is_some());
        request.map(|request| Arrival { time_s, request })
    }

    /// A turn of a session is sent, if its session goes on.
    fn turn(&mut self, number: u64, turn: usize, time_s: f64) -> Option<EngineRequest> {
        let session = self.sessions.get_mut(&number)?;
        if session.cut {
            return None;
        }
        let is_first = session.is_unsent();
        let Some(request) = session.request(turn, self.window) else {
            self.counts.cut += 1;
            self.ended(number, time_s);
            return None;
        };
        self.counts.started += u64::from(is_first);
        let due = session.next(turn, true, time_s);
        let shared = match &self.script {
            Script::Drawn(traffic) => session.shared(turn, request.prompt, traffic),
            Script::Listed(_) | Script::Submitted => u32::MAX,
        };
        self.schedule(number, due, time_s);
        self.turns.insert(self.sent, (number, turn));
        Some(EngineRequest { id: self.sent, session: number, shared, ..request })
    }

    /// The request of this number was answered.
    pub fn answered(&mut self, id: u64, time_s: f64) {
        self.closed(id, time_s, RequestEnd::Answered);
    }

    /// The request of this number was refused.
    pub fn refused(&mut self, id: u64, time_s: f64) {
        self.closed(id, time_s, RequestEnd::Refused);
    }

    /// The client of the request of this number has given it up, or it failed: its session ends, and the client sends
    /// what comes next.
    pub fn given_up(&mut self, id: u64, time_s: f64) {
        self.closed(id, time_s, RequestEnd::GivenUp);
    }

    fn closed(&mut self, id: u64, time_s: f64, how: RequestEnd) {
        let Some((number, turn)) = self.turns.remove(&id) else {
            self.client_is_free(time_s);
            return;
        };
        let Some(session) = self.sessions.get_mut(&number) else { return };
        if how != RequestEnd::Answered && !session.cut {
            session.cut = true;
            match how {
                RequestEnd::GivenUp => self.counts.given_up += 1,
                _ => self.counts.cut += 1,
            }
        }
        let due = session.next(turn, false, time_s + self.pause_s);
        self.schedule(number, due, time_s);
        self.ended(number, time_s);
    }

    /// Removes a session that is over.
    fn ended(&mut self, number: u64, time_s: f64) {
        if self.sessions.get(&number).is_some_and(SessionInFlight::is_over) {
            self.sessions.remove(&number);
            self.passes_the_line(number, time_s, None);
            self.client_is_free(time_s);
        }
    }

    fn client_is_free(&mut self, time_s: f64) {
        if let Arrivals::Clients(_) = self.arrivals {
            self.begin(time_s + self.pause_s);
        }
    }

    /// The next request, or the next session, begins.
    fn begin(&mut self, now: f64) {
        let number = self.begun;
        let Script::Drawn(traffic) = &self.script else {
            self.begin_listed(now);
            return;
        };
        if traffic.sessions.is_none() && self.begun == self.most {
            return;
        }
        let turns = traffic.sessions.as_ref().map_or(1.0, |sessions| sessions.turns);
        let time_s = match self.arrivals {
            Arrivals::Rate { per_s, variation } => {
                self.clock_s += traffic.gap_s(number, per_s / turns, variation);
                self.clock_s
            }
            Arrivals::Clients(_) => now,
        };
        match &traffic.sessions {
            None => {
                let request = traffic.request(number);
                self.coming.push(Coming::request(Arrival { time_s, request }));
                self.begun += 1;
            }
            Some(sessions) => {
                let session = sessions.session(traffic, number);
                self.play(session, time_s);
            }
        }
    }

    fn begin_listed(&mut self, now: f64) {
        if let Script::Listed(sessions) = &mut self.script
            && let Some(session) = sessions.pop_front()
        {
            self.play(session, now);
        }
    }

    /// A session starts.
    fn play(&mut self, session: Session, start_s: f64) {
        let number = self.begun;
        self.begun += 1;
        let (session, due) = SessionInFlight::new(session, start_s);
        self.sessions.insert(number, session);
        self.schedule(number, due, start_s);
    }

    fn schedule(&mut self, number: u64, due: DueTurns, now: f64) {
        let goes_on = self.sessions.get(&number).is_some_and(|session| !session.cut);
        for (turn, time_s) in due {
            let waits = |line: &StartLine| goes_on && number < line.sessions && turn == line.turn;
            if self.start_line.as_ref().is_some_and(waits) {
                self.passes_the_line(number, now, Some(time_s - now));
            } else {
                self.send_turn(number, turn, time_s);
            }
        }
    }

    fn send_turn(&mut self, number: u64, turn: usize, time_s: f64) {
        self.coming.push(Coming { time_s, order: (number, turn), what: Next::Turn(number, turn) });
    }

    /// A session is at the line, and goes on `wait_s` seconds after the last one has; or it has ended before.
    fn passes_the_line(&mut self, number: u64, now: f64, wait_s: Option<f64>) {
        let Some(line) = self.start_line.as_mut().filter(|line| number < line.sessions) else { return };
        line.missing = line.missing.saturating_sub(1);
        line.held.extend(wait_s.map(|wait_s| (number, wait_s)));
        if line.missing > 0 {
            return;
        }
        let Some(StartLine { turn, held, .. }) = self.start_line.take() else { return };
        held.into_iter().for_each(|(number, wait_s)| self.send_turn(number, turn, now + wait_s));
    }
}

/// Requests with stated times, in order.
pub fn replayed(arrivals: Vec<Arrival>) -> RequestSource {
    let mut source = RequestSource::of(Arrivals::Clients(0), u64::MAX, Script::Listed(VecDeque::new()));
    source.coming.extend(arrivals.into_iter().map(Coming::request));
    source
}

/// Requests that are submitted while the run goes on.
pub fn submitted() -> RequestSource {
    RequestSource::of(Arrivals::Clients(0), u64::MAX, Script::Submitted)
}

/// Sessions at their own times, or one after the other by this many clients.
pub fn played(sessions: Vec<Session>, clients: Option<u64>) -> RequestSource {
    let count = sessions.len() as u64;
    let stated = Arrivals::Clients(clients.unwrap_or(0));
    let mut source = RequestSource::of(stated, u64::MAX, Script::Listed(sessions.into()));
    for _ in 0..clients.unwrap_or(count).min(count) {
        let start_s = match &source.script {
            Script::Listed(sessions) if clients.is_none() => sessions.front().map(|first| first.start_s),
            _ => None,
        };
        source.begin_listed(start_s.unwrap_or(0.0));
    }
    source
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::session::{SessionTurn, TurnLink};

    fn gaps(variation: f64) -> Vec<f64> {
        let traffic = DrawnTraffic {
            arrivals: Arrivals::Rate { per_s: 4.0, variation },
            requests: 20_000,
            prompt: LengthDistribution::LogNormal { mean: 500.0, variation: 0.8 },
            output: LengthDistribution::Fixed(10),
            prefix: 0,
            prefix_groups: 1,
            distinct_prompts: 0,
            sessions: None,
            seed: 7,
        };
        let mut source = RequestSource::new(traffic);
        let mut before = 0.0;
        std::iter::from_fn(|| source.take())
            .map(|arrival| arrival.time_s - std::mem::replace(&mut before, arrival.time_s))
            .collect()
    }

    #[test]
    fn gaps_have_their_mean_and_variation() {
        for variation in [0.0, 0.5, 1.0, 2.0] {
            let gaps = gaps(variation);
            assert_eq!(gaps.len(), 20_000);
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance =
                gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64;
            assert!((mean * 4.0 - 1.0).abs() < 0.04, "{variation}: mean {mean}");
            assert!(
                (variance.sqrt() / mean - variation).abs() < 0.06,
                "{variation}: {}",
                variance.sqrt() / mean
            );
        }
    }

    #[test]
    fn a_client_pauses_after_an_answer() {
        let traffic = DrawnTraffic {
            arrivals: Arrivals::Clients(1),
            requests: 2,
            prompt: LengthDistribution::Fixed(5),
            output: LengthDistribution::Fixed(5),
            prefix: 0,
            prefix_groups: 1,
            distinct_prompts: 0,
            sessions: None,
            seed: 7,
        };
        let mut source = RequestSource::new(traffic).pausing(0.5);
        assert_eq!(source.take().map(|arrival| arrival.time_s), Some(0.0));
        source.answered(0, 2.0);
        assert_eq!(source.next_s(), Some(2.5));
    }

    #[test]
    fn lengths_have_their_mean_and_variation() {
        let lengths = LengthDistribution::LogNormal { mean: 500.0, variation: 0.8 };
        let rng = &mut Rng::with_seed(3);
        let drawn: Vec<f64> = (0..40_000).map(|_| f64::from(lengths.draw(rng))).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / drawn.len() as f64;
        assert!((mean / 500.0 - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / mean - 0.8).abs() < 0.05, "{}", variance.sqrt() / mean);
    }

    /// Sessions of two turns, of which the second comes a second after the answer to the first, or after the last of
    /// these.
    #[test]
    fn sessions_that_line_up_go_on_together() {
        let session = |number: u64| {
            let run = |id| TokenRun { id, tokens: 5 };
            let link = TurnLink { turn: 0, of_sending: false, wait_s: 1.0 };
            let turn = |after| SessionTurn {
                new: vec![run(number)],
                continues: false,
                output: run(9),
                after,
                start_s: 0.0,
            };
            Session { start_s: 0.0, turns: vec![turn(vec![]), turn(vec![link])] }
        };
        let mut source = played((0..4).map(session).collect(), Some(3)).lined_up(3, 1);
        let first: Vec<u64> = (0..3).filter_map(|_| source.take()).map(|one| one.request.id).collect();
        assert_eq!((first.as_slice(), source.next_s()), ([0, 1, 2].as_slice(), None));
        source.answered(0, 10.0);
        // Its session ends, and its client plays the fourth one.
        source.given_up(1, 12.0);
        let fourth = source.take().unwrap();
        assert_eq!((fourth.time_s, fourth.request.session), (12.0, 3));
        source.answered(2, 20.0);
        // Its own second turn does not come: it ended.
        assert!(source.take().is_none());
        let times: Vec<f64> = std::iter::from_fn(|| source.take()).map(|one| one.time_s).collect();
        assert_eq!(times, [21.0, 21.0]);
    }
}
