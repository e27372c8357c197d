//! A simulated deployment in real time: a thread that takes each event of the simulation when its time has come.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::MockDeployment;
use super::figures::{MockFigures, MockLatencies};
use crate::traffic::engine::EngineRequest;
use crate::traffic::outcome::RequestRecord;
use crate::traffic::run::{RunListener, TrafficRun};
use crate::traffic::source::{Arrival, submitted};

/// A message to the thread.
pub(super) enum DriverMessage {
    /// A request that arrived at this time.
    Request(EngineRequest, Instant, mpsc::UnboundedSender<AnswerPart>),
    /// The figures of now are requested.
    Figures(oneshot::Sender<MockFigures>),
}

/// A part of an answer, at its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AnswerPart {
    /// The deployment takes the request.
    Accepted,
    /// No cache of the deployment holds it.
    Refused,
    /// This many tokens so far.
    Tokens(u32),
    /// All tokens.
    Answered(RequestRecord),
}

/// Longest wait for a message: the wait for a step of a slow deployment is in several of these.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Starts the thread. It ends when the last sender is dropped.
pub(super) fn started(deployment: MockDeployment) -> std::io::Result<Sender<DriverMessage>> {
    let (sender, inbox) = channel();
    std::thread::Builder::new().name("simulation".to_owned()).spawn(move || drive(&deployment, &inbox))?;
    Ok(sender)
}

/// A request that is being answered.
struct OpenAnswer {
    /// When it reaches the schedulers, in simulated seconds.
    arrives_s: f64,
    /// Tokens that its client has.
    given: u32,
    parts: mpsc::UnboundedSender<AnswerPart>,
}

/// Requests that are being answered, and the latencies of those that were.
struct OpenAnswers {
    answers: HashMap<u64, OpenAnswer>,
    latencies: MockLatencies,
    front_end_s: f64,
}

impl RunListener for OpenAnswers {
    fn answered(&mut self, record: &RequestRecord) {
        self.latencies.count(&record.at_client(self.front_end_s));
        if let Some(answer) = self.answers.remove(&record.id) {
            // A client that has left misses nothing.
            let _ = answer.parts.send(AnswerPart::Answered(*record));
        }
    }

    fn has_tokens(&mut self, id: u64, tokens: u32) {
        let Some(answer) = self.answers.get_mut(&id) else { return };
        if answer.given < tokens {
            answer.given = tokens;
            // A client that has left misses nothing.
            let _ = answer.parts.send(AnswerPart::Tokens(tokens));
        }
    }
}

impl OpenAnswers {
    /// Takes out the requests that have come by `now_s` and whose clients have left, in order.
    fn left(&mut self, now_s: f64) -> Vec<u64> {
        let has_left = |answer: &mut OpenAnswer| answer.parts.is_closed() && answer.arrives_s <= now_s;
        let mut left: Vec<u64> =
            self.answers.extract_if(|_, answer| has_left(answer)).map(|(id, _)| id).collect();
        left.sort_unstable();
        left
    }
}

fn drive(deployment: &MockDeployment, inbox: &Receiver<DriverMessage>) {
    let front_end_s = deployment.plan.clock().front_end_s();
    let mut run = TrafficRun::new(&deployment.settings, deployment.plan.clocks()).streamed();
    let mut source = submitted();
    let mut open = OpenAnswers { answers: HashMap::new(), latencies: MockLatencies::default(), front_end_s };
    let begun = Instant::now();
    let simulated_s = |at: Instant| at.saturating_duration_since(begun).as_secs_f64() * deployment.speed;
    // Until this time, all events are taken.
    let mut taken_s = 0.0;
    loop {
        let wait_s = run.next_s(&source).map(|next| (next - simulated_s(Instant::now())) / deployment.speed);
        let wait = wait_s.map(|wait| Duration::try_from_secs_f64(wait.max(0.0)).unwrap_or(LONGEST_WAIT));
        let message = match inbox.recv_timeout(wait.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT)) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let now_s = simulated_s(Instant::now());
        let mut requested = vec![];
        for message in message.into_iter().chain(inbox.try_iter()) {
            match message {
                DriverMessage::Figures(answer) => requested.push(answer),
                DriverMessage::Request(request, arrived, answer) => {
                    let accepted = run.can_take(&request);
                    let part = if accepted { AnswerPart::Accepted } else { AnswerPart::Refused };
                    if answer.send(part).is_ok() && accepted {
                        let time_s = (simulated_s(arrived) + front_end_s).max(taken_s);
                        let one = OpenAnswer { arrives_s: time_s, given: 0, parts: answer };
                        open.answers.insert(request.id, one);
                        source.submit(Arrival { time_s, request });
                    }
                }
            }
        }
        while run.advance(&mut source, now_s, &mut open).is_some() {}
        // A server aborts a request whose connection is closed: its scheduler hears of that before its next step.
        for id in open.left(now_s) {
            run.give_up(id, now_s, &mut source);
        }
        taken_s = now_s;
        for answer in requested {
            let figures = MockFigures::of(run.state(now_s), run.totals(), &open.latencies);
            // A client that has left needs none.
            let _ = answer.send(figures);
        }
    }
}
