//! The answer of `check` as text.

use super::devices::rows;
use super::launch::words_without_setting;
use super::page::{BAD, GOOD, bullets, heading, join, paragraph, styled};
use crate::report::start::StartReport;
use crate::report::table::grouped;

/// The verdict, the memory at the start, and the corrections.
pub fn start(report: &StartReport, width: usize) -> String {
    let head = match report.starts {
        true => styled(GOOD, "STARTS"),
        false => styled(BAD, "WILL NOT START"),
    };
    let plan = format!("{}, {} {}", report.plan, report.runtime, report.runtime_version);
    join([
        format!("{head}\n") + &bullets(&report.reasons) + &paragraph(&plan),
        capacity(report),
        memory(report),
        corrections(report),
        words_without_setting(&report.unread, width)
            + &report.notes.iter().map(|note| paragraph(&format!("Note: {note}."))).collect::<String>(),
    ])
}

/// The KV cache, the context and the requests.
fn capacity(report: &StartReport) -> String {
    let rows = [
        ("KV cache", report.kv_tokens, "tokens a replica"),
        ("context", report.context, "tokens: the longest request that the server takes"),
        ("largest context", report.largest_context, "tokens that the memory holds"),
        ("requests", report.most_requests, "at a time in a replica, at most"),
    ];
    let known = rows
        .into_iter()
        .filter_map(|(name, value, words)| Some(format!("  {name:<16} {} {words}\n", grouped(value?))));
    let known: Vec<String> = known.collect();
    known.concat()
}

fn memory(report: &StartReport) -> String {
    let heading = heading("Memory of the fullest device", "% of the memory that software sees");
    report.memory.as_ref().map_or_else(String::new, |memory| heading + &rows(memory))
}

fn corrections(report: &StartReport) -> String {
    let each = report.corrections.iter().map(|one| {
        let lines: String = one.command.lines().map(|line| format!("    {line}\n")).collect();
        format!("  {}\n{lines}", one.change)
    });
    let all: String = each.collect();
    if all.is_empty() { all } else { format!("It starts with one of these changes:\n{all}") }
}
