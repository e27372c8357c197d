//! Sessions: the requests of a conversation, or of an agent and its sub-agents, of which each waits for others.

use super::content::{TokenRun, mixed};
use super::engine::EngineRequest;
use super::source::{DrawnTraffic, LengthDistribution, log_normal};

/// A turn that another one of its session waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnLink {
    /// The place of the other turn in its session.
    pub turn: usize,
    /// From its sending on, not from its answer.
    pub of_sending: bool,
    /// Seconds from there.
    pub wait_s: f64,
}

/// A request of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionTurn {
    /// Its prompt, or the part of it that is new.
    pub new: Vec<TokenRun>,
    /// Whether its prompt begins with that of the turn before and its output.
    pub continues: bool,
    /// Its output.
    pub output: TokenRun,
    /// Turns that it waits for: it is sent when all of that has come.
    pub after: Vec<TurnLink>,
    /// Seconds from the start of its session, where it waits for nothing.
    pub start_s: f64,
}

/// A session.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Seconds from the start of the run, where no client plays it.
    pub start_s: f64,
    /// Its turns. Each waits for earlier ones of this list alone.
    pub turns: Vec<SessionTurn>,
}

/// Sessions drawn from distributions, around the lengths of single requests: those are of their first turns.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnSessions {
    /// Mean number of turns, at least 1.
    pub turns: f64,
    /// Its coefficient of variation.
    pub turns_variation: f64,
    /// Tokens that a later turn adds to all that came before it.
    pub new: LengthDistribution,
    /// Mean seconds from an answer to the next turn.
    pub think_s: f64,
    /// Its coefficient of variation.
    pub think_variation: f64,
}

/// Turns of a session, at most.
const MOST_TURNS: f64 = 100_000.0;
/// Uses of random numbers in each turn of a session.
const USES: u64 = 8;

impl DrawnSessions {
    /// The session of this number. The first turn is the request that would come without sessions.
    pub(super) fn session(&self, traffic: &DrawnTraffic, number: u64) -> Session {
        let first = traffic.request(number);
        let output = TokenRun { id: mixed(6, number), tokens: first.output };
        let mut new = first.runs;
        new.pop();
        let mut turns = vec![SessionTurn { new, continues: false, output, after: vec![], start_s: 0.0 }];
        for turn in 1..self.turns(traffic, number) {
            let rng = |use_of| traffic.rng(number, USES * turn + use_of);
            let new =
                TokenRun { id: mixed(mixed(10, number), turn), tokens: self.new.draw(&mut rng(1)).max(1) };
            let output = TokenRun {
                id: mixed(mixed(6, number), turn),
                tokens: traffic.output.draw(&mut rng(2)).max(1),
            };
            let wait_s = match self.think_variation {
                0.0 => self.think_s,
                _ if self.think_s == 0.0 => 0.0,
                variation => log_normal(&mut rng(4), self.think_s, variation),
            };
            let link = TurnLink { turn: turn as usize - 1, of_sending: false, wait_s };
            turns.push(SessionTurn {
                new: vec![new],
                continues: true,
                output,
                after: vec![link],
                start_s: 0.0,
            });
        }
        Session { start_s: 0.0, turns }
    }

    /// The turns of the session of this number: the first, and a log-normal number of others, rounded so that the mean is
    /// the stated one. Turns of coding agents are so distributed: a median of 65, a 90th percentile of 330 and a mean of
    /// 145 (semianalysisai/cc-traces-weka-062126) are those of a log-normal number with a variation of 2.
    fn turns(&self, traffic: &DrawnTraffic, number: u64) -> u64 {
        let more = self.turns - 1.0;
        if more <= 0.0 {
            return 1;
        }
        let rng = &mut traffic.rng(number, 3);
        let drawn = match self.turns_variation {
            0.0 => more,
            variation => log_normal(rng, more, variation * self.turns / more),
        };
        1 + (drawn.min(MOST_TURNS) + rng.f64()) as u64
    }
}

/// A session of which turns are on their way.
pub(super) struct SessionInFlight {
    turns: Vec<SessionTurn>,
    /// Of each turn: how much it waits for, and when the last of that came.
    waits: Vec<(usize, f64)>,
    /// The turns that wait for each.
    followers: Vec<Vec<usize>>,
    /// Prompt and output of the turn that was sent last, where others continue it.
    context: Vec<TokenRun>,
    context_tokens: u64,
    /// Turns that are not answered.
    open: usize,
    /// Those of them that are sent.
    sent: usize,
    /// Whether no other turn is sent.
    pub(super) cut: bool,
}

/// Turns, and when they are due.
pub(super) type DueTurns = Vec<(usize, f64)>;

impl SessionInFlight {
    /// A session that starts at `start_s`, and its first turns.
    pub(super) fn new(session: Session, start_s: f64) -> (SessionInFlight, DueTurns) {
        let turns = session.turns;
        let mut followers = vec![vec![]; turns.len()];
        for (at, turn) in turns.iter().enumerate() {
            turn.after.iter().for_each(|link| followers[link.turn].push(at));
        }
        let waits = turns.iter().map(|turn| (turn.after.len(), start_s + turn.start_s)).collect();
        let first = (0..turns.len()).filter(|&at| turns[at].after.is_empty());
        let due = first.map(|at| (at, start_s + turns[at].start_s)).collect();
        let (open, context) = (turns.len(), vec![]);
        let one = SessionInFlight {
            turns,
            waits,
            followers,
            context,
            context_tokens: 0,
            open,
            sent: 0,
            cut: false,
        };
        (one, due)
    }

    /// The request of a turn that is sent now, if its context is within `window` tokens; else the session is cut.
    pub(super) fn request(&mut self, turn: usize, window: u64) -> Option<EngineRequest> {
        let SessionTurn { new, continues, output, .. } = &self.turns[turn];
        let added: u64 = new.iter().map(|run| u64::from(run.tokens)).sum();
        let prompt = added + if *continues { self.context_tokens } else { 0 };
        let all = prompt + u64::from(output.tokens);
        self.cut |= all > u64::from(u32::MAX) || (!self.is_unsent() && all > window);
        if self.cut {
            return None;
        }
        let mut runs = if *continues { std::mem::take(&mut self.context) } else { vec![] };
        runs.extend(new);
        runs.push(*output);
        if self.turns.get(turn + 1).is_some_and(|next| next.continues) {
            (self.context, self.context_tokens) = (runs.clone(), all);
        }
        self.sent += 1;
        Some(EngineRequest::new(0, runs, prompt as u32, self.turns[turn].output.tokens))
    }

    /// Tokens that another request may begin with, of a drawn turn with `prompt` tokens: all, where a turn continues it.
    pub(super) fn shared(&self, turn: usize, prompt: u32, traffic: &DrawnTraffic) -> u32 {
        let of = &self.turns[turn];
        if turn + 1 < self.turns.len() {
            return u32::MAX;
        }
        let new = of.new.iter().map(|run| run.tokens).sum();
        if of.continues { prompt.saturating_sub(new) } else { traffic.shared(prompt) }
    }

    /// Turns that wait for nothing more, after `turn` was sent, or was answered, at `time_s`.
    pub(super) fn next(&mut self, turn: usize, of_sending: bool, time_s: f64) -> DueTurns {
        if !of_sending {
            self.open -= 1;
            self.sent -= 1;
        }
        let mut due = vec![];
        for &follower in &self.followers[turn] {
            let links = self.turns[follower].after.iter();
            for link in links.filter(|link| link.turn == turn && link.of_sending == of_sending) {
                let (left, at) = &mut self.waits[follower];
                *at = at.max(time_s + link.wait_s);
                *left -= 1;
                if *left == 0 {
                    due.push((follower, *at));
                }
            }
        }
        due
    }

    /// Whether none of its turns was sent.
    pub(super) fn is_unsent(&self) -> bool {
        self.open == self.turns.len() && self.sent == 0
    }

    /// Whether nothing of it is to come.
    pub(super) fn is_over(&self) -> bool {
        self.sent == 0 && (self.cut || self.open == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::source::Arrivals;

    fn drawn(turns: f64, turns_variation: f64) -> DrawnTraffic {
        DrawnTraffic {
            arrivals: Arrivals::Clients(1),
            requests: 1,
            prompt: LengthDistribution::Fixed(50),
            output: LengthDistribution::LogNormal { mean: 20.0, variation: 0.5 },
            prefix: 10,
            prefix_groups: 1,
            distinct_prompts: 0,
            sessions: Some(DrawnSessions {
                turns,
                turns_variation,
                new: LengthDistribution::LogNormal { mean: 30.0, variation: 1.0 },
                think_s: 2.0,
                think_variation: 1.5,
            }),
            seed: 5,
        }
    }

    #[test]
    fn turns_have_their_mean_and_variation() {
        for (turns, variation) in [(1.0, 0.0), (2.5, 0.0), (3.0, 0.5), (12.0, 2.0), (60.0, 1.0)] {
            let traffic = drawn(turns, variation);
            let sessions = traffic.sessions.as_ref().unwrap();
            let drawn: Vec<f64> = (0..40_000).map(|number| sessions.turns(&traffic, number) as f64).collect();
            let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
            assert!((mean / turns - 1.0).abs() < 0.04, "{mean} for {turns}");
            let variance =
                drawn.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / drawn.len() as f64;
            // Rounding adds a variance of a quarter at most.
            let expected = variation * turns;
            assert!(
                (variance.sqrt() - expected).abs() < 0.12 * expected + 0.51,
                "{} for {expected}",
                variance.sqrt()
            );
        }
    }

    #[test]
    fn a_turn_begins_with_all_that_came_before() {
        let traffic = drawn(4.0, 0.0);
        let session = traffic.sessions.as_ref().unwrap().session(&traffic, 7);
        let (mut play, due) = SessionInFlight::new(session.clone(), 3.0);
        assert_eq!(due, [(0, 3.0)]);
        let mut before: Option<EngineRequest> = None;
        for turn in 0..4 {
            let request = play.request(turn, u64::MAX).unwrap();
            if let Some(before) = before {
                assert_eq!(request.runs[..before.runs.len()], before.runs[..]);
                let new = session.turns[turn].new[0].tokens;
                assert_eq!(request.prompt, before.prompt + before.output + new);
            } else {
                assert_eq!((request.runs[0].tokens, request.prompt), (10, 50));
            }
            assert!(!play.is_over());
            assert_eq!(play.next(turn, true, 1.0), []);
            let due = play.next(turn, false, 10.0);
            let waits = session.turns.get(turn + 1).map(|next| (turn + 1, 10.0 + next.after[0].wait_s));
            assert_eq!(due, Vec::from_iter(waits));
            before = Some(request);
        }
        assert!(play.is_over());
    }

    #[test]
    fn a_turn_waits_for_all_that_it_follows() {
        let turn = |after: Vec<TurnLink>, start_s| {
            let run = |id| TokenRun { id, tokens: 5 };
            SessionTurn { new: vec![run(1)], continues: false, output: run(2), after, start_s }
        };
        let link = |turn, of_sending, wait_s| TurnLink { turn, of_sending, wait_s };
        let turns = vec![
            turn(vec![], 0.5),
            turn(vec![link(0, true, 0.25)], 0.0),
            turn(vec![link(0, false, 1.0), link(1, false, 2.0)], 0.0),
        ];
        let (mut play, due) = SessionInFlight::new(Session { start_s: 0.0, turns }, 1.0);
        assert_eq!(due, [(0, 1.5)]);
        assert!(play.request(0, 10).is_some());
        assert_eq!(play.next(0, true, 1.5), [(1, 1.75)]);
        assert!(play.request(1, 10).is_some());
        assert_eq!(play.next(1, true, 1.75), []);
        assert_eq!(play.next(1, false, 2.0), []);
        assert_eq!(play.next(0, false, 8.0), [(2, 9.0)]);
        // A context beyond the window ends the session.
        assert!(play.request(2, 9).is_none());
        assert!(play.is_over() && play.cut);
    }
}
