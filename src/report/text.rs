//! Answers as text for people: the answer first, then what it rests on.

use super::result::{Answer, Asked, Reported};
use crate::search::candidate::Candidate;
use crate::search::outcome::Outcome;
use crate::search::question::Question;

/// A search's answer.
pub fn table(question: &Question, outcome: &Outcome, answer: &Answer) -> String {
    let _ = (question, outcome);
    match &answer.best {
        Some(best) => line(best),
        None => "infeasible\n".to_string(),
    }
}

/// A stated deployment.
pub fn estimate(question: &Question, candidate: &Candidate, reported: &Reported, asked: &Asked) -> String {
    let _ = (question, candidate, asked);
    line(reported)
}

fn line(best: &Reported) -> String {
    match &best.metrics {
        Some(m) => format!(
            "{}: {:.0} output tokens/s on {} devices, TTFT {:.0} ms, TPOT {:.1} ms\n",
            best.plan.label, m.output_tok_s, best.devices, m.ttft_ms, m.tpot_ms
        ),
        None => format!("{}: does not fit\n", best.plan.label),
    }
}
