//! A fleet in one screen: systems, traffic, proof; or the conflicting constraints and what would help.

use super::super::fleet::{costs, head, hint, proof, systems};
use super::super::launch::first_command;
use super::super::page::{bullet_within, heading, join, remainder, section, shorten};
use super::{lines, more};
use crate::report::fleet::FleetResult;
use crate::report::number::{count, digits};

const SYSTEMS: usize = 6;
const ENTRIES: usize = 3;

/// The result in lines of at most `width` characters; `command` is the one that posed the problem.
pub fn fleet(answer: &FleetResult, command: &str, width: usize) -> String {
    join([
        head(answer, width),
        systems(answer, SYSTEMS, width),
        facts(answer, width),
        conflict(answer, width),
        more(command, "routing, certificate, defaults", width)
            + &first_command(answer.launches.first(), width),
    ])
}

/// Systems beyond the table, routes, traffic without a system, proof.
fn facts(answer: &FleetResult, width: usize) -> String {
    let mut facts = Vec::new();
    if answer.systems.len() > SYSTEMS {
        facts.push(("systems", remainder(answer.systems.len(), SYSTEMS, "kinds with --detail")));
    }
    if !answer.routes.is_empty() {
        let buckets = count(answer.question.buckets.len() as u64, "bucket");
        facts.push(("traffic", format!("{buckets} in {}", count(answer.routes.len() as u64, "route"))));
    }
    if let Some(line) = answer.unserved.first() {
        let number = count(answer.unserved.len() as u64, "entry").replace("entrys", "entries");
        facts.push(("not served", format!("{number}, e.g. {}", shorten(line, 2 * width))));
    }
    facts.extend(costs(answer).map(|text| ("costs", text)));
    facts.push(("proof", proof(answer)));
    lines(&facts, width)
}

fn conflict(answer: &FleetResult, width: usize) -> String {
    if answer.conflict.is_empty() {
        return String::new();
    }
    let bullet = |text: &str| bullet_within(&shorten(text, 2 * width), width);
    let mut text = heading("Conflicting constraints", "");
    text.extend(answer.conflict.iter().take(ENTRIES).map(|group| bullet(group)));
    if let Some(most) = answer.most_output_tok_s {
        text.push_str(&bullet(&format!(
            "at most {} of {} output tok/s can be served",
            digits(most),
            digits(answer.output_tok_s.1)
        )));
    }
    let helps: String = answer.helps.iter().take(ENTRIES).map(|help| bullet(&hint(help))).collect();
    text + &section("Smallest changes that make it feasible", "", helps)
}
