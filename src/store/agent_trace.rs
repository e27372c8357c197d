//! Sessions of coding agents as block hashes (Weka, AgentX): what each request waited for follows from its times.
//!
//! A request follows all requests of its agent that had been answered when it started and that no other follows, or the
//! one that was answered last, and all sub-agents that had ended; it is sent as long after the last of these answers as it
//! was. A sub-agent starts after the request of its parent that was answered last before it, or with the one that was sent
//! last where none was. Requests that started while all others of their agent ran were sent in parallel.

use serde::Deserialize;

use super::traffic_trace::at_line;
use crate::spec::error::Error;
use crate::spec::traced_session::{TracedLink, TracedSession, TracedTurn};

/// A session.
#[derive(Deserialize)]
pub(super) struct AgentSession {
    block_size: u32,
    /// `local` where identities mean something in the session only, else `global`.
    #[serde(default)]
    hash_id_scope: HashScope,
    requests: Vec<AgentEntry>,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum HashScope {
    #[default]
    Local,
    Global,
}

/// A request, or a sub-agent with its own.
#[derive(Deserialize)]
struct AgentEntry {
    /// Seconds from the start of the session; in some traces, from the start of the sub-agent.
    t: f64,
    /// `s` (streamed), `n` (not streamed) or `subagent`.
    #[serde(rename = "type", default)]
    kind: EntryKind,
    /// A sub-agent has neither.
    #[serde(rename = "in")]
    prompt: Option<u64>,
    #[serde(rename = "out")]
    output: Option<u64>,
    #[serde(default)]
    hash_ids: Vec<u64>,
    /// Seconds that the request took.
    api_time: Option<f64>,
    /// Seconds that its client waited before it.
    think_time: Option<f64>,
    #[serde(default)]
    requests: Vec<AgentEntry>,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum EntryKind {
    #[default]
    S,
    N,
    Subagent,
}

/// A request with its times in the session.
struct TimedRequest<'a> {
    start: f64,
    end: f64,
    agent: usize,
    entry: &'a AgentEntry,
}

/// The agent itself, or a sub-agent.
#[derive(Default)]
struct TracedAgent {
    parent: usize,
    /// Requests so far, by place in the session.
    requests: Vec<usize>,
    /// Those that no other request of it follows.
    open: Vec<usize>,
    /// When the last request of it ended.
    end: f64,
    joined: bool,
}

/// Times are stated to a millisecond.
const EQUAL_S: f64 = 1e-3;

/// The sessions of a trace, with their lines.
pub(super) fn sessions(all: &[(u64, AgentSession)]) -> Result<Vec<TracedSession>, Error> {
    // One producer states times of sub-agents from the start of the session, another from that of the sub-agent.
    let is_absolute = all.iter().all(|(_, session)| are_absolute(&session.requests));
    all.iter().map(|(line, session)| of_session(*line, session, is_absolute)).collect()
}

fn are_absolute(entries: &[AgentEntry]) -> bool {
    entries.iter().all(|entry| {
        let inner = entry.requests.iter().all(|inner| inner.t >= entry.t - EQUAL_S);
        inner && are_absolute(&entry.requests)
    })
}

fn of_session(line: u64, session: &AgentSession, is_absolute: bool) -> Result<TracedSession, Error> {
    let mut agents = vec![TracedAgent::default()];
    let mut requests = vec![];
    timed(&session.requests, (0, 0.0), is_absolute, &mut agents, &mut requests);
    if requests.is_empty() {
        return Err(at_line(line, "no request".into(), "a session with requests"));
    }
    requests.sort_by(|one, other| one.start.total_cmp(&other.start));
    for request in &requests {
        let agent = &mut agents[request.agent];
        agent.end = agent.end.max(request.end);
    }
    let start = requests[0].start;
    let mut turns = Vec::with_capacity(requests.len());
    for at in 0..requests.len() {
        let after = links(at, &requests, &mut agents);
        let TimedRequest { start: own, agent, entry, .. } = requests[at];
        let (Some(isl), Some(osl)) = (entry.prompt, entry.output) else {
            let found = format!("no `{}` of a request", if entry.prompt.is_none() { "in" } else { "out" });
            return Err(at_line(line, found, "`in` and `out`, its tokens"));
        };
        agents[agent].requests.push(at);
        agents[agent].open.push(at);
        turns.push(TracedTurn {
            isl,
            osl: osl.max(1),
            content: entry.hash_ids.clone(),
            continues: false,
            start: if after.is_empty() { own - start } else { 0.0 },
            after,
        });
    }
    let own_content = session.hash_id_scope == HashScope::Local;
    Ok(TracedSession { start, content_tokens: session.block_size, own_content, turns })
}

/// All requests of `entries`, of an agent whose times count from `origin`, and of its sub-agents.
fn timed<'a>(
    entries: &'a [AgentEntry],
    (agent, origin): (usize, f64),
    is_absolute: bool,
    agents: &mut Vec<TracedAgent>,
    requests: &mut Vec<TimedRequest<'a>>,
) {
    for entry in entries {
        let start = origin + entry.t;
        if entry.kind == EntryKind::Subagent {
            agents.push(TracedAgent { parent: agent, ..TracedAgent::default() });
            let origin = if is_absolute { 0.0 } else { start };
            timed(&entry.requests, (agents.len() - 1, origin), is_absolute, agents, requests);
        } else {
            let end = start + entry.api_time.unwrap_or(0.0).max(0.0);
            requests.push(TimedRequest { start, end, agent, entry });
        }
    }
}

/// The requests that the one at this place waited for.
fn links(at: usize, requests: &[TimedRequest<'_>], agents: &mut [TracedAgent]) -> Vec<TracedLink> {
    let TimedRequest { start, agent, entry, .. } = requests[at];
    let has_ended = |other: &usize| requests[*other].end <= start + EQUAL_S;
    let ended = |of: &TracedAgent| {
        let ended = of.requests.iter().copied().filter(has_ended);
        ended.max_by(|&one, &other| requests[one].end.total_cmp(&requests[other].end))
    };
    let is_first = agents[agent].requests.is_empty();
    let source = if is_first { agents[agent].parent } else { agent };
    let mut after = Vec::from_iter(ended(&agents[source]));
    if after.is_empty() {
        // All that its agent, or its parent, had sent was still running.
        let last = agents[source].requests.last();
        let link = |&other: &usize| {
            let wait = (start - requests[other].start).max(0.0);
            TracedLink { turn: other as u64, of_sending: true, wait }
        };
        return last.map(link).into_iter().collect();
    }
    if !is_first {
        let open = std::mem::take(&mut agents[agent].open);
        let (closed, open): (Vec<usize>, Vec<usize>) = open.into_iter().partition(has_ended);
        agents[agent].open = open;
        if !closed.is_empty() {
            after = closed;
        }
    }
    let thought = entry.think_time.filter(|think| think.is_finite() && *think >= 0.0 && !is_first);
    for (child, of) in agents.iter_mut().enumerate() {
        if child > 0 && of.parent == agent && !of.joined && of.end <= start + EQUAL_S {
            after.extend(ended(of));
            of.joined = true;
        }
    }
    let last = after.iter().map(|&other| requests[other].end).fold(f64::NEG_INFINITY, f64::max);
    let wait = thought.filter(|_| after.len() == 1).unwrap_or((start - last).max(0.0));
    let link = |other: usize| TracedLink { turn: other as u64, of_sending: false, wait };
    after.into_iter().map(link).collect()
}

#[cfg(test)]
mod tests {
    use crate::spec::traced_session::TracedSession;
    use crate::store::session_trace::read_sessions;

    fn read(requests: &str) -> TracedSession {
        let head =
            "{\"id\":\"x\",\"models\":[\"m\"],\"block_size\":64,\"hash_id_scope\":\"local\",\"requests\":";
        let sessions =
            read_sessions(&format!("{head}[{requests}]}}\n")).unwrap_or_else(|fault| panic!("{fault}"));
        let [session] = sessions.unwrap().try_into().unwrap();
        TracedSession::check(&session, "session").unwrap();
        session
    }

    fn links(session: &TracedSession) -> Vec<Vec<(u64, bool, i64)>> {
        let of = |link: &crate::spec::traced_session::TracedLink| {
            (link.turn, link.of_sending, (link.wait * 1e3).round() as i64)
        };
        session.turns.iter().map(|turn| turn.after.iter().map(of).collect()).collect()
    }

    fn request(t: f64, api: f64) -> String {
        format!(
            "{{\"t\":{t},\"type\":\"s\",\"model\":\"m\",\"in\":128,\"out\":20,\"hash_ids\":[0,1],\"api_time\":{api},\"ttft\":0.4}}"
        )
    }

    fn sub_agent(t: f64, requests: &[String]) -> String {
        format!(
            "{{\"t\":{t},\"type\":\"subagent\",\"agent_id\":\"a\",\"requests\":[{}]}}",
            requests.join(",")
        )
    }

    #[test]
    fn a_turn_waits_for_the_answer_before_it() {
        let thought = request(5.0, 1.0).replace("\"ttft\"", "\"think_time\":0.75,\"ttft\"");
        let found = read(&[request(2.0, 1.0), request(3.5, 1.0), thought].join(","));
        assert_eq!(links(&found), [vec![], vec![(0, false, 500)], vec![(1, false, 750)]]);
        assert_eq!((found.start, found.turns[0].start, found.content_tokens), (2.0, 0.0, 64));
        assert!(found.own_content);
    }

    #[test]
    fn a_parent_waits_for_the_sub_agents_that_had_ended() {
        let inner = [request(2.5, 1.0), request(4.0, 1.0)];
        let found = read(&[request(0.0, 2.0), sub_agent(2.5, &inner), request(6.0, 1.0)].join(","));
        assert_eq!(
            links(&found),
            [vec![], vec![(0, false, 500)], vec![(1, false, 500)], vec![(0, false, 1000), (2, false, 1000)]]
        );
        // A longer one runs while its parent goes on.
        let inner = [request(2.5, 1.0), request(4.0, 9.0)];
        let found = read(&[request(0.0, 2.0), sub_agent(2.5, &inner), request(6.0, 1.0)].join(","));
        assert_eq!(links(&found)[3], [(0, false, 4000)]);
    }

    #[test]
    fn times_of_a_sub_agent_may_count_from_its_start() {
        let absolute = [request(0.0, 2.0), sub_agent(2.5, &[request(2.5, 1.0), request(4.0, 1.0)])].join(",");
        let relative = [request(0.0, 2.0), sub_agent(2.5, &[request(0.0, 1.0), request(1.5, 1.0)])].join(",");
        assert_eq!(read(&absolute), read(&relative));
    }

    #[test]
    fn requests_at_the_same_time_are_sent_in_parallel() {
        let found = read(&[request(0.0, 2.0), request(0.25, 1.0), request(3.0, 1.0)].join(","));
        assert_eq!(links(&found), [vec![], vec![(0, true, 250)], vec![(0, false, 1000), (1, false, 1000)]]);
    }

    #[test]
    fn a_request_has_its_tokens() {
        for (key, other) in [("in", "imn"), ("out", "owt")] {
            let faulty = request(0.0, 1.0).replace(&format!("\"{key}\""), &format!("\"{other}\""));
            let text = format!("{{\"block_size\":64,\"requests\":[{faulty}]}}\n");
            let fault = read_sessions(&text).unwrap_err();
            assert_eq!(fault.found, format!("no `{key}` of a request"));
        }
    }
}
