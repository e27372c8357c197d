//! Traces of sessions in the formats in which they are published, recognised by their keys.
//!
//! | format | a JSON object is | times |
//! |---|---|---|
//! | block hashes of agents (Weka, AgentX) | a session with `requests`, sub-agents within them | seconds |
//! | agentic Mooncake, with and without a header | a request with `request_id` and what it waits for | milliseconds |
//! | Mooncake with sessions, whole or `mooncake-delta` | a turn with `session_id` | milliseconds |
//!
//! <https://github.com/ai-dynamo/aiperf/blob/main/docs/tutorials/weka-trace.md> and the trace formats of Dynamo describe
//! them.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::Value;

use super::agent_trace::{AgentSession, sessions};
use super::traffic_trace::{at_line, json};
use crate::spec::error::Error;
use crate::spec::fleet::CONTENT_TOKENS;
use crate::spec::traced_session::{TracedLink, TracedSession, TracedTurn};

const EXPECTED: &str = "sessions with requests, or requests with request_id or session_id";

/// The sessions in the text of a trace, in its order; `None` where it is not one of sessions.
///
/// # Errors
/// A line is faulty; the error names it.
pub fn read_sessions(text: &str) -> Result<Option<Vec<TracedSession>>, Error> {
    if !text.trim_start().starts_with('{') {
        return Ok(None);
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let (mut line, mut counted) = (1, 0);
    let (mut agents, mut rows, mut header) = (vec![], vec![], None);
    loop {
        let rest = text[values.byte_offset()..].trim_start();
        let start = text.len() - rest.len();
        line += text.as_bytes()[counted..start].iter().filter(|&&byte| byte == b'\n').count() as u64;
        counted = start;
        let Some(value) = values.next() else { break };
        let Ok(value) = value else {
            let fault = |fault: serde_json::Error| at_line(line, fault.to_string(), EXPECTED);
            return if agents.len() + rows.len() > 0 { value.map(|_| None).map_err(fault) } else { Ok(None) };
        };
        if value.get("requests").is_some_and(Value::is_array) {
            agents.push((line, json::<AgentSession>(value, line)?));
        } else if value.get("schema").is_some() {
            header = Some(json::<MooncakeHeader>(value, line)?);
        } else if ["request_id", "session_id"].iter().any(|key| value.get(key).is_some()) {
            rows.push((line, json::<MooncakeTurn>(value, line)?));
        } else if agents.len() + rows.len() == 0 {
            return Ok(None);
        } else {
            return Err(at_line(line, "another object".into(), EXPECTED));
        }
    }
    match (agents.is_empty(), rows.is_empty()) {
        (false, true) => sessions(&agents).map(Some),
        (true, false) => of_mooncake(rows, header).map(Some),
        (true, true) => Ok(None),
        (false, false) => Err(at_line(line, "two formats".into(), "one of them")),
    }
}

/// The first line of agentic Mooncake.
#[derive(Deserialize)]
struct MooncakeHeader {
    block_size: u32,
}

/// A line of Mooncake with sessions, or of agentic Mooncake.
#[derive(Deserialize)]
struct MooncakeTurn {
    request_id: Option<String>,
    #[serde(default)]
    session_id: String,
    /// Where there is a header: requests that belong together, and share the identities of pieces.
    play_id: Option<String>,
    input_length: Option<u64>,
    output_length: u64,
    #[serde(default)]
    hash_ids: Vec<u64>,
    /// Milliseconds, as all that follow.
    #[serde(alias = "not_before_ms")]
    timestamp: Option<f64>,
    #[serde(alias = "delay_ms")]
    delay: Option<f64>,
    #[serde(default)]
    tool_wait_ms: f64,
    #[serde(default)]
    wait_for: Vec<String>,
    #[serde(default)]
    dependencies: Vec<MooncakeDependency>,
}

#[derive(Deserialize)]
struct MooncakeDependency {
    request_id: String,
    trigger: MooncakeTrigger,
    #[serde(default)]
    delay_ms: f64,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum MooncakeTrigger {
    Dispatch,
    Completion,
}

/// A row with the rows that it waits for.
struct MooncakeNode {
    line: u64,
    row: MooncakeTurn,
    /// Place of the other row, whether from its sending, and milliseconds.
    after: Vec<(usize, bool, f64)>,
}

fn of_mooncake(
    rows: Vec<(u64, MooncakeTurn)>,
    header: Option<MooncakeHeader>,
) -> Result<Vec<TracedSession>, Error> {
    let content_tokens = match &header {
        Some(header) => header.block_size,
        None => piece_tokens(&rows)?,
    };
    let nodes = linked(rows)?;
    let states_new = states_new_tokens(&nodes);
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, group) in components(&nodes).into_iter().enumerate() {
        groups.entry(group).or_default().push(at);
    }
    let session = |group: &Vec<usize>| -> Result<TracedSession, Error> {
        let order = in_order(&nodes, group)?;
        let place: HashMap<usize, usize> = order.iter().enumerate().map(|(turn, &at)| (at, turn)).collect();
        let roots = order.iter().filter(|&&at| nodes[at].after.is_empty());
        let start = roots.filter_map(|&at| nodes[at].row.timestamp).fold(f64::INFINITY, f64::min);
        let start = if start.is_finite() { start } else { 0.0 };
        let turn = |&at: &usize| {
            let row = &nodes[at].row;
            let link = |&(other, of_sending, wait): &(usize, bool, f64)| {
                let wait = wait.max(0.0) / 1e3;
                TracedLink { turn: place[&other] as u64, of_sending, wait }
            };
            let first = if nodes[at].after.is_empty() { row.timestamp.unwrap_or(start) - start } else { 0.0 };
            TracedTurn {
                isl: row.input_length.unwrap_or(row.hash_ids.len() as u64 * u64::from(content_tokens)),
                osl: row.output_length,
                continues: states_new && !nodes[at].after.is_empty(),
                content: row.hash_ids.clone(),
                after: nodes[at].after.iter().map(link).collect(),
                start: first.max(0.0) / 1e3,
            }
        };
        let turns = order.iter().map(turn).collect();
        Ok(TracedSession { start: start / 1e3, content_tokens, own_content: header.is_some(), turns })
    };
    groups.values().map(session).collect()
}

/// Tokens of a piece, which no key states: 512 as Mooncake has it, else the power of two that fits all prompts.
fn piece_tokens(rows: &[(u64, MooncakeTurn)]) -> Result<u32, Error> {
    let fits = |size: u32, row: &MooncakeTurn| {
        let pieces = row.hash_ids.len() as u64;
        row.input_length.is_none_or(|tokens| pieces == 0 || tokens.div_ceil(u64::from(size)) == pieces)
    };
    let sizes = std::iter::once(CONTENT_TOKENS).chain((0..=13).map(|power| 1 << power));
    let found = sizes.into_iter().find(|&size| rows.iter().all(|(_, row)| fits(size, row)));
    found.ok_or_else(|| {
        let expected = "pieces of the same number of tokens, a power of two, in all prompts";
        Error::new("hash_ids", "other numbers of pieces than input_length has", expected, "state all pieces")
    })
}

/// The rows with what each waits for: what it names, else the row before of its session.
fn linked(rows: Vec<(u64, MooncakeTurn)>) -> Result<Vec<MooncakeNode>, Error> {
    let by_id: HashMap<String, usize> =
        rows.iter().enumerate().filter_map(|(at, (_, row))| Some((row.request_id.clone()?, at))).collect();
    let mut last_of: HashMap<String, (usize, f64)> = HashMap::new();
    let mut nodes = Vec::with_capacity(rows.len());
    for (at, (line, row)) in rows.into_iter().enumerate() {
        let place = |id: &String| {
            by_id
                .get(id)
                .copied()
                .ok_or_else(|| at_line(line, format!("`{id}`"), "a request_id of the trace"))
        };
        let wait = row.delay.unwrap_or(0.0) + row.tool_wait_ms;
        let mut after = vec![];
        for id in &row.wait_for {
            after.push((place(id)?, false, wait));
        }
        for other in &row.dependencies {
            let of_sending = other.trigger == MooncakeTrigger::Dispatch;
            after.push((place(&other.request_id)?, of_sending, other.delay_ms));
        }
        if row.request_id.is_none() {
            if let Some(&(before, time)) = last_of.get(&row.session_id) {
                after.push((before, false, row.delay.or(row.timestamp.map(|now| now - time)).unwrap_or(0.0)));
            }
            let known = last_of.get(&row.session_id).map_or(0.0, |(_, time)| *time);
            last_of.insert(row.session_id.clone(), (at, row.timestamp.unwrap_or(known)));
        }
        nodes.push(MooncakeNode { line, row, after });
    }
    Ok(nodes)
}

/// Whether rows state what is new in a turn, and not its whole prompt: no turn begins as the one before does.
fn states_new_tokens(nodes: &[MooncakeNode]) -> bool {
    let later = nodes.iter().filter(|node| node.row.request_id.is_none() && !node.after.is_empty());
    let begins = |node: &MooncakeNode| {
        let before = &nodes[node.after[0].0].row.hash_ids;
        before.is_empty() || before.first() == node.row.hash_ids.first()
    };
    later.clone().next().is_some() && !later.into_iter().any(begins)
}

/// The group of each row: of its play, else of its session and of all rows that it waits for.
fn components(nodes: &[MooncakeNode]) -> Vec<usize> {
    let mut group: Vec<usize> = (0..nodes.len()).collect();
    fn root(group: &mut [usize], mut at: usize) -> usize {
        while group[at] != at {
            group[at] = group[group[at]];
            at = group[at];
        }
        at
    }
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        let name = node.row.play_id.as_deref().unwrap_or(&node.row.session_id);
        let known = if name.is_empty() { at } else { *first.entry(name).or_insert(at) };
        for other in node.after.iter().map(|(other, ..)| *other).chain([known]) {
            let (one, two) = (root(&mut group, at), root(&mut group, other));
            group[one.max(two)] = one.min(two);
        }
    }
    (0..nodes.len()).map(|at| root(&mut group, at)).collect()
}

/// The rows of a group, each after those that it waits for, else in the order of the file.
fn in_order(nodes: &[MooncakeNode], group: &[usize]) -> Result<Vec<usize>, Error> {
    let mut left: HashMap<usize, usize> = group.iter().map(|&at| (at, nodes[at].after.len())).collect();
    let mut followers: HashMap<usize, Vec<usize>> = HashMap::new();
    for &at in group {
        nodes[at].after.iter().for_each(|(other, ..)| followers.entry(*other).or_default().push(at));
    }
    let mut ready: std::collections::BTreeSet<usize> =
        group.iter().copied().filter(|at| left[at] == 0).collect();
    let mut order = Vec::with_capacity(group.len());
    while let Some(at) = ready.pop_first() {
        order.push(at);
        for &follower in followers.get(&at).into_iter().flatten() {
            if let Some(count) = left.get_mut(&follower) {
                *count -= 1;
                if *count == 0 {
                    ready.insert(follower);
                }
            }
        }
    }
    match group.iter().find(|at| !order.contains(at)).filter(|_| order.len() < group.len()) {
        Some(&at) => Err(at_line(nodes[at].line, "a request that waits for itself".into(), "an order")),
        None => Ok(order),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<TracedSession> {
        let sessions = read_sessions(text).unwrap_or_else(|fault| panic!("{fault}"));
        let sessions = sessions.unwrap_or_else(|| panic!("not sessions: {text}"));
        sessions.iter().for_each(|one| one.check("sessions").unwrap());
        sessions
    }

    fn links(session: &TracedSession) -> Vec<Vec<(u64, bool, f64)>> {
        let of = |link: &TracedLink| (link.turn, link.of_sending, link.wait);
        session.turns.iter().map(|turn| turn.after.iter().map(of).collect()).collect()
    }

    #[test]
    fn turns_of_mooncake_follow_each_other() {
        let text = "{\"session_id\": \"a\", \"timestamp\": 1000, \"input_length\": 100, \"output_length\": 5, \"hash_ids\": [1, 2]}\n\
            {\"session_id\": \"b\", \"timestamp\": 1500, \"input_length\": 60, \"output_length\": 6, \"hash_ids\": [3]}\n\
            {\"session_id\": \"a\", \"delay\": 250, \"input_length\": 140, \"output_length\": 7, \"hash_ids\": [1, 2, 4]}\n\
            {\"session_id\": \"b\", \"timestamp\": 2500, \"input_length\": 70, \"output_length\": 6, \"hash_ids\": [3, 5]}\n";
        let found = read(text);
        assert_eq!(found.iter().map(|one| one.start).collect::<Vec<_>>(), [1.0, 1.5]);
        assert_eq!(found[0].content_tokens, 64);
        assert_eq!(links(&found[0]), [vec![], vec![(0, false, 0.25)]]);
        assert_eq!(links(&found[1]), [vec![], vec![(0, false, 1.0)]]);
        assert_eq!(found[0].turns[1].content, [1, 2, 4]);
        assert!(!found[0].turns[1].continues);
        let new = text.replace(
            "140, \"output_length\": 7, \"hash_ids\": [1, 2, 4]",
            "40, \"output_length\": 7, \"hash_ids\": [4]",
        );
        let new = read(&new.replace(
            "70, \"output_length\": 6, \"hash_ids\": [3, 5]",
            "10, \"output_length\": 6, \"hash_ids\": [5]",
        ));
        assert_eq!((new[0].turns[1].isl, new[0].turns[1].continues), (40, true));
        assert!(!new[0].turns[0].continues);
    }

    #[test]
    fn requests_of_agentic_mooncake_wait_for_those_that_they_name() {
        let plain = "{\"request_id\": \"r1\", \"session_id\": \"a\", \"timestamp\": 4000, \"output_length\": 5, \"hash_ids\": [1]}\n\
            {\"request_id\": \"r3\", \"session_id\": \"a\", \"wait_for\": [\"r1\", \"r2\"], \"delay\": 10, \"tool_wait_ms\": 90, \"output_length\": 5, \"hash_ids\": [1, 2]}\n\
            {\"request_id\": \"r2\", \"session_id\": \"child\", \"wait_for\": [\"r1\"], \"output_length\": 5, \"hash_ids\": [1, 3]}\n";
        let found = read(plain);
        assert_eq!((found.len(), found[0].start, found[0].content_tokens), (1, 4.0, CONTENT_TOKENS));
        assert_eq!(
            links(&found[0]),
            [vec![], vec![(0, false, 0.0)], vec![(0, false, 0.1), (1, false, 0.1)]],
            "a request comes after those that it waits for"
        );
        let headed = "{\"schema\": \"dynamo.agentic_mooncake\", \"version\": 2, \"block_size\": 64, \"hash_id_scope\": \"local\", \"source\": {}}\n\
            {\"request_id\": \"r1\", \"play_id\": \"p\", \"session_id\": \"a\", \"model\": \"m\", \"input_length\": 60, \"output_length\": 5, \"hash_ids\": [1], \"not_before_ms\": 500}\n\
            {\"request_id\": \"r2\", \"play_id\": \"p\", \"session_id\": \"b\", \"model\": \"m\", \"input_length\": 90, \"output_length\": 5, \"hash_ids\": [1, 3], \"not_before_ms\": 700,\
             \"dependencies\": [{\"request_id\": \"r1\", \"trigger\": \"dispatch\", \"delay_ms\": 200, \"relation\": \"spawn\"}]}\n";
        let found = read(headed);
        assert!(found[0].own_content && found[0].content_tokens == 64);
        assert_eq!(links(&found[0]), [vec![], vec![(0, true, 0.2)]]);
    }

    #[test]
    fn a_faulty_line_is_named_and_other_traces_are_not_sessions() {
        for other in [
            "arrival,isl,osl\n1,2,3\n",
            "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 2}\n",
            "{\"duration\": 1.0, \"input_lens\": [1], \"output_lens\": []}",
            "{",
        ] {
            assert_eq!(read_sessions(other).unwrap(), None, "{other}");
        }
        for (text, key) in [
            ("{\"session_id\": \"a\", \"output_length\": 5}\n{\"session_id\": \"a\"}\n", "line 2"),
            ("{\"session_id\": \"a\", \"output_length\": 5}\n{\"session\n", "line 2"),
            (
                "{\"request_id\": \"a\", \"output_length\": 5, \"wait_for\": [\"b\"]}\n\
                 {\"request_id\": \"b\", \"output_length\": 5, \"wait_for\": [\"a\"]}\n",
                "line 1",
            ),
            ("{\"request_id\": \"a\", \"output_length\": 5, \"wait_for\": [\"c\"]}\n", "line 1"),
            (
                "{\"session_id\": \"a\", \"output_length\": 5, \"input_length\": 100, \"hash_ids\": [1, 2, 3]}\n",
                "hash_ids",
            ),
        ] {
            assert_eq!(read_sessions(text).unwrap_err().key, key, "{text}");
        }
    }
}
