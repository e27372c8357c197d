//! Sessions of a trace: requests of a conversation or of an agent, of which each waits for others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::fleet::CONTENT_TOKENS;
use super::limits::{ARRIVAL, CONTENT, ISL, OSL, REQUESTS, THINK_TIME};
use super::objective::is_zero;

/// A session of a trace.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracedSession {
    /// Its start, in seconds.
    pub start: f64,
    /// Tokens of a piece of its prompts.
    #[serde(default = "usual_tokens")]
    pub content_tokens: u32,
    /// Whether identities of pieces mean something in this session only.
    #[serde(default)]
    pub own_content: bool,
    /// Its requests. Each waits for earlier ones of this list alone.
    pub turns: Vec<TracedTurn>,
}

fn usual_tokens() -> u32 {
    CONTENT_TOKENS
}

/// A request of a session.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracedTurn {
    /// Prompt tokens, or those that are new.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Identities of the pieces of its prompt: equal ones after equal ones are equal tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<u64>,
    /// Whether its prompt begins with that of the request before it in the list, and its output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// Requests that it waits for: it is sent when all of that has come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<TracedLink>,
    /// Seconds from the start of its session, where it waits for nothing.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub start: f64,
}

fn is_nothing(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// A request of the session that another one waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracedLink {
    /// The place of the other request in the list, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turn: u64,
    /// From its sending on, not from its answer.
    #[serde(default)]
    pub of_sending: bool,
    /// Seconds from there.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub wait: f64,
}

impl TracedSession {
    /// Tokens of the prompt and of the output of each request.
    pub fn lengths(&self) -> Vec<[u64; 2]> {
        let mut lengths: Vec<[u64; 2]> = vec![];
        for turn in &self.turns {
            let before =
                lengths.last().filter(|_| turn.continues).map_or(0, |[isl, osl]| isl.saturating_add(*osl));
            lengths.push([before.saturating_add(turn.isl), turn.osl]);
        }
        lengths
    }

    /// Whether its numbers are within their limits, and whether each request waits for earlier ones.
    ///
    /// # Errors
    /// They are not, or one does not.
    pub fn check(&self, key: &str) -> Result<(), Error> {
        ARRIVAL.check(&format!("{key}.start"), self.start)?;
        CONTENT.check_whole(&format!("{key}.content_tokens"), u64::from(self.content_tokens))?;
        REQUESTS.check_whole(&format!("{key}.turns"), self.turns.len() as u64)?;
        for (at, turn) in self.turns.iter().enumerate() {
            let of = |name: &str| format!("{key}.turns[{at}].{name}");
            ISL.check_whole(&of("isl"), turn.isl)?;
            OSL.check_whole(&of("osl"), turn.osl)?;
            THINK_TIME.check(&of("start"), turn.start)?;
            let follows = |link: &TracedLink| link.turn + 1 == at as u64 && !link.of_sending;
            if turn.continues && !turn.after.iter().any(follows) {
                let fix = "let it wait for the answer before it";
                return Err(Error::new(
                    of("continues"),
                    "true",
                    "a request that waits for the one before",
                    fix,
                ));
            }
            for link in &turn.after {
                THINK_TIME.check(&of("after.wait"), link.wait)?;
                if link.turn >= at as u64 {
                    let fix = "list a request after those that it waits for";
                    return Err(Error::new(
                        of("after.turn"),
                        link.turn.to_string(),
                        "an earlier request",
                        fix,
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_of_a_turn_that_continues_begins_with_all_before() {
        let turn = |isl, continues| TracedTurn { isl, osl: 5, continues, ..TracedTurn::default() };
        let turns = vec![turn(100, false), turn(20, true), turn(7, true), turn(50, false)];
        let session = TracedSession { turns, ..TracedSession::default() };
        assert_eq!(session.lengths(), [[100, 5], [125, 5], [137, 5], [50, 5]]);
    }

    #[test]
    fn a_request_waits_for_earlier_ones() {
        let link = |turn| TracedLink { turn, ..TracedLink::default() };
        let turn = |after| TracedTurn { isl: 5, osl: 5, after, ..TracedTurn::default() };
        let of = |turns| TracedSession { content_tokens: 64, turns, ..TracedSession::default() };
        let right = of(vec![turn(vec![]), turn(vec![link(0)]), turn(vec![link(0), link(1)])]);
        assert_eq!(right.check("sessions[0]"), Ok(()));
        let wrong = of(vec![turn(vec![]), turn(vec![link(1)])]).check("sessions[0]").unwrap_err();
        assert_eq!(wrong.key, "sessions[0].turns[1].after.turn");
        let new = of(vec![TracedTurn { continues: true, ..turn(vec![]) }]).check("sessions[0]").unwrap_err();
        assert_eq!(new.key, "sessions[0].turns[0].continues");
        let empty = of(vec![]).check("sessions[0]").unwrap_err();
        assert_eq!(empty.key, "sessions[0].turns");
    }
}
