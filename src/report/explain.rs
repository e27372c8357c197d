//! An explanation as text: formula in symbols and numbers, result, binding side, source. Each is
//! printed once.

use std::collections::{BTreeMap, BTreeSet};

use super::answer::plan;
use super::number::{count, requests};
use super::sheet;
use super::text::page::{BAD, BOLD, styled, wrap};
use crate::quantity::datum::Grade;
use crate::quantity::ledger::{Explanation, Leaf};
use crate::search::candidate::Candidate;
use crate::search::problem::Problem;

/// Maximum line width, in characters.
const WIDTH: usize = 110;
/// Indent of the parts of a number, in characters.
const STEP: usize = 2;
/// Sources shorter than this are repeated.
const SHORT: usize = 40;

/// Text written so far, and the items already in it.
struct ExplanationWriter {
    /// Numbers: path, symbol, formula, value.
    numbers: BTreeSet<[String; 4]>,
    /// Long sources, with the datum that printed each first.
    sources: BTreeMap<String, String>,
    /// Justifications of formulas.
    reasons: BTreeSet<String>,
    /// Numbers whose formula is printed and whose parts are cut off.
    cut: u64,
    text: String,
}

/// The explanation of a number of a candidate, `depth` levels deep; violations come first.
pub fn explained(
    candidate: &Candidate,
    problem: &Problem,
    explanation: &Explanation,
    depth: usize,
    violations: &[String],
) -> String {
    let formats = &problem.formats[candidate.formats];
    let requests = format!("{} concurrent requests", requests(candidate.in_flight(problem)));
    let (plan, Explanation { symbol, text, grade, .. }) = (plan(candidate).label, explanation);
    let head = styled(BOLD, &format!("{symbol} = {text}"));
    let of = format!("of {plan}, {} weights, {} KV, {requests}", formats.weights, formats.kv);
    let rests = format!("weakest source: {grade}; noted again only where a sub-term is better sourced");
    let broken: String = violations
        .iter()
        .map(|reason| styled(BAD, wrap(&format!("INFEASIBLE: {reason}"), WIDTH, 0, 2).trim_end()) + "\n")
        .collect();
    let mut told = ExplanationWriter {
        numbers: BTreeSet::new(),
        sources: BTreeMap::new(),
        reasons: BTreeSet::new(),
        cut: 0,
        text: format!("{broken}{head}\n{}{}\n", wrap(&of, WIDTH, 2, 2), wrap(&rests, WIDTH, 2, 2)),
    };
    told.number(explanation, 0, *grade);
    if told.cut > 0 {
        let more = format!(
            "{} can be expanded: use --depth {}, or --path with a path in brackets",
            count(told.cut, "term"),
            depth + 1
        );
        told.text.push('\n');
        told.text.push_str(&wrap(&more, WIDTH, 0, 2));
    }
    told.text
}

impl ExplanationWriter {
    fn line(&mut self, text: &str, level: usize) {
        // Deep levels keep a minimum width for text.
        let indent = (level * STEP).min(WIDTH / 2);
        self.text.push_str(&wrap(text, WIDTH, indent, indent + 2 * STEP));
    }

    fn number(&mut self, number: &Explanation, level: usize, above: Grade) {
        let Explanation {
            symbol, path, formula, substituted, text, bound, why, source, grade, parts, ..
        } = number;
        let Some(formula) = formula else { return self.datum(number, level) };
        let place = if path.is_empty() { String::new() } else { format!(" [{path}]") };
        let key = [path.clone(), symbol.clone(), formula.clone(), text.clone()];
        if !self.numbers.insert(key) {
            return self.line(&format!("{symbol}{place} = {text}, as above"), level);
        }
        let better = if *grade < above { format!("  (weakest source: {grade})") } else { String::new() };
        let inserted = substituted.as_ref().filter(|inserted| *inserted != text);
        match inserted {
            // One line suffices: `x = y = 3 ms`.
            None => self.line(&format!("{symbol}{place} = {formula} = {text}{better}"), level),
            Some(inserted) => {
                self.line(&format!("{symbol}{place} = {formula}"), level);
                self.line(&format!("= {inserted}"), level + 1);
                self.line(&format!("= {text}{better}"), level + 1);
            }
        }
        bound.iter().for_each(|bound| self.line(&format!("| {bound}"), level + 1));
        if !why.is_empty() && self.reasons.insert(format!("{why} {source}")) {
            self.line(&format!("| {why} ({source})"), level + 1);
        }
        if parts.is_empty() && formula.contains(char::is_alphabetic) {
            self.cut += 1;
        }
        parts.iter().for_each(|part| self.number(part, level + 1, *grade));
    }

    fn datum(&mut self, datum: &Explanation, level: usize) {
        let Explanation { symbol, text, source, grade, .. } = datum;
        let key = [String::new(), symbol.clone(), source.clone(), text.clone()];
        if !self.numbers.insert(key) {
            return self.line(&format!("{symbol} = {text}"), level);
        }
        // `plan: pp` of pp is `plan`.
        let brief = source.strip_suffix(symbol.as_str()).and_then(|start| start.strip_suffix(": "));
        let source = brief.unwrap_or(source);
        let from = match self.sources.get(source) {
            Some(first) if source.chars().count() >= SHORT => format!("same source as {first}"),
            _ => source.to_string(),
        };
        self.sources.entry(source.to_string()).or_insert_with(|| symbol.clone());
        self.line(&format!("{symbol} = {text}  <- {grade}: {from}"), level);
    }
}

/// Every input datum of a number, as CSV.
pub fn leaves(leaves: &[Leaf]) -> String {
    let rows = leaves.iter().map(|leaf| {
        vec![leaf.symbol.clone(), leaf.text.clone(), leaf.grade.to_string(), leaf.source.clone()]
    });
    sheet::csv(["symbol", "value", "grade", "source"], rows)
}
