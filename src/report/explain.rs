//! The drill-down as text: formula in symbols, with numbers, the result, which side decided, the source.

use std::fmt::Write as _;

use super::answer::plan;
use crate::quantity::ledger::{Explanation, Leaf};
use crate::search::candidate::Candidate;
use crate::search::question::Question;

/// The explanation of a number of a candidate.
pub fn explained(candidate: &Candidate, question: &Question, explanation: &Explanation) -> String {
    let formats = &question.formats[candidate.formats];
    let mut text = format!(
        "{} of {}, {} weights, {} KV, {} in flight\n\n",
        explanation.symbol,
        plan(candidate).label,
        formats.weights,
        formats.kv,
        candidate.concurrency(&question.traffic),
    );
    tell(&mut text, explanation, 0);
    text
}

fn tell(text: &mut String, explanation: &Explanation, level: usize) {
    let pad = "  ".repeat(level);
    let Explanation {
        symbol, path, formula, substituted, text: value, bound, why, source, grade, parts, ..
    } = explanation;
    // Writing to a String does not fail.
    let Some(formula) = formula else {
        let _ = writeln!(text, "{pad}{symbol} = {value}    <- {grade}: {source}");
        return;
    };
    let place = if path.is_empty() { String::new() } else { format!(" [{path}]") };
    let _ = writeln!(text, "{pad}{symbol}{place} = {formula}");
    if let Some(substituted) = substituted {
        let _ = writeln!(text, "{pad}  = {substituted}");
    }
    let _ = writeln!(text, "{pad}  = {value}");
    bound.iter().for_each(|bound| {
        let _ = writeln!(text, "{pad}  | {bound}");
    });
    if !why.is_empty() {
        let _ = writeln!(text, "{pad}  | {why} ({source})");
    }
    let _ = writeln!(text, "{pad}  | rests on what is {grade} at worst");
    parts.iter().for_each(|part| tell(text, part, level + 1));
}

/// Every datum that a number rests on, as CSV.
pub fn leaves(leaves: &[Leaf]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["symbol", "value", "grade", "source"]).expect("a vector takes every record");
    for leaf in leaves {
        let row = [leaf.symbol.clone(), leaf.text.clone(), leaf.grade.to_string(), leaf.source.clone()];
        writer.write_record(row).expect("records are equally long");
    }
    String::from_utf8(writer.into_inner().expect("a vector is flushed")).expect("every cell is text")
}
