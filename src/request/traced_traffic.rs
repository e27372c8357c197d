//! Requests and sessions of a trace, as a simulation sends them.

use crate::search::simulated_pool::tokens;
use crate::spec::error::Error;
use crate::spec::fleet::{CONTENT_TOKENS, TracedRequest, buckets, sending_times};
use crate::spec::traced_session::{TracedLink, TracedSession, TracedTurn};
use crate::store::traffic_trace::read_trace;
use crate::traffic::content::{TokenRun, mixed};
use crate::traffic::engine::EngineRequest;
use crate::traffic::session::{Session, SessionTurn, TurnLink};
use crate::traffic::source::{Arrival, RequestSource, played};

/// The requests in the text of a trace, which make buckets.
///
/// # Errors
/// The format is unknown, a line is faulty, or all requests come at once.
pub fn traced_in(text: &str) -> Result<Vec<TracedRequest>, Error> {
    let requests = read_trace(text)?;
    buckets(&requests)?;
    Ok(requests)
}

/// The requests of a trace, the first at once, `speed` times as fast.
pub(super) fn arrivals(trace: &[TracedRequest], speed: f64) -> Vec<Arrival> {
    let one = |(number, (request, time_s)): (usize, (&TracedRequest, f64))| {
        let number = number as u64;
        let (prompt, output) = (tokens(request.isl).max(1), tokens(request.osl).max(1));
        let mut runs = prompt_runs((7, CONTENT_TOKENS), &request.content, prompt, mixed(8, number));
        runs.push(TokenRun { id: mixed(9, number), tokens: output });
        Arrival { time_s, request: EngineRequest::new(number, runs, prompt, output) }
    };
    trace.iter().zip(sending_times(trace, speed)).enumerate().map(one).collect()
}

/// The sessions of a trace, the first at once, `speed` times as fast.
pub(super) fn sessions(trace: &[TracedSession], speed: f64) -> Vec<Session> {
    let first = trace.iter().map(|session| session.start).fold(f64::INFINITY, f64::min);
    let one = |(number, session): (usize, &TracedSession)| {
        let number = number as u64;
        let space = if session.own_content { mixed(11, number) } else { 7 };
        let turn = |(turn, one): (usize, &TracedTurn)| {
            let place = mixed(number, turn as u64);
            let (prompt, output) = (tokens(one.isl).max(1), tokens(one.osl).max(1));
            let link = |link: &TracedLink| TurnLink {
                turn: link.turn as usize,
                of_sending: link.of_sending,
                wait_s: link.wait / speed,
            };
            SessionTurn {
                new: prompt_runs((space, session.content_tokens), &one.content, prompt, mixed(12, place)),
                continues: one.continues,
                output: TokenRun { id: mixed(13, place), tokens: output },
                after: one.after.iter().map(link).collect(),
                start_s: one.start / speed,
            }
        };
        let turns = session.turns.iter().enumerate().map(turn).collect();
        Session { start_s: (session.start - first) / speed, turns }
    };
    trace.iter().enumerate().map(one).collect()
}

/// The first requests of a trace, `most` at least where it has them: one after the other, or a session after the other.
pub(super) fn one_by_one(
    trace: &[TracedRequest],
    of_sessions: &[TracedSession],
    most: usize,
) -> RequestSource {
    let single = |arrival: Arrival| {
        let EngineRequest { mut runs, output, .. } = arrival.request;
        let output = runs.pop().unwrap_or(TokenRun { id: 0, tokens: output });
        let turn = SessionTurn { new: runs, continues: false, output, after: vec![], start_s: 0.0 };
        Session { start_s: 0.0, turns: vec![turn] }
    };
    let mut all: Vec<Session> = match of_sessions.is_empty() {
        true => arrivals(&trace[..trace.len().min(most)], 1.0).into_iter().map(single).collect(),
        false => sessions(of_sessions, 1.0),
    };
    let mut turns = 0;
    all.retain(|session| {
        let is_due = turns < most;
        turns += session.turns.len();
        is_due
    });
    played(all, Some(1))
}

/// A prompt whose pieces of `size` tokens have these identities within `space`; what is left of it is `own`. Pieces with
/// rising identities are one run, from the first on.
fn prompt_runs((space, size): (u64, u32), content: &[u64], prompt: u32, own: u64) -> Vec<TokenRun> {
    let mut left = prompt;
    let mut runs: Vec<TokenRun> = vec![];
    let mut next = None;
    for &id in content {
        let tokens = left.min(size);
        left -= tokens;
        match runs.last_mut().filter(|_| next == Some(id)) {
            Some(run) => run.tokens += tokens,
            None => runs.push(TokenRun { id: mixed(space, id), tokens }),
        }
        next = id.checked_add(1);
    }
    runs.push(TokenRun { id: own, tokens: left });
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::content::BlockChain;

    /// Blocks that two prompts have in common are those of their pieces, one by one.
    #[test]
    fn runs_of_rising_identities_share_what_their_pieces_share() {
        let cases: [(&[u64], &[u64], usize); 6] = [
            (&[1, 2, 3, 9], &[1, 2, 3, 4], 3),
            (&[1, 2, 3], &[1, 2, 3, 4, 5], 3),
            (&[7, 1, 2], &[8, 1, 2], 0),
            (&[1, 2, 2, 3], &[1, 2, 2, 4], 3),
            (&[5, 4, 3], &[5, 4, 3, 1], 3),
            (&[u64::MAX, 0], &[u64::MAX, 1], 1),
        ];
        for (one, other, common) in cases {
            let blocks = |content: &[u64], own| {
                let runs = prompt_runs((7, 64), content, 64 * content.len() as u32, own);
                let mut chain = BlockChain::default();
                std::iter::from_fn(move || chain.next(&runs, 64)).collect::<Vec<_>>()
            };
            let (one, other) = (blocks(one, 1), blocks(other, 2));
            let found = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
            assert_eq!(found, common, "{one:?} {other:?}");
        }
    }
}
