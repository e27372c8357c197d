//! An explanation as text: formula in symbols and numbers, result, binding side, source. Each is
//! printed once.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::plan;
use super::number::{count, digits, requests};
use super::result::Intervals;
use super::sheet;
use super::text::page::{BAD, BOLD, styled, wrap};
use crate::quantity::datum::Grade;
use crate::quantity::ledger::{Explanation, Leaf};
use crate::search::candidate::Candidate;
use crate::search::problem::Problem;
use crate::spec::nearness::{MeasuredAt, Nearness};
use crate::spec::objective::Metric;

/// Maximum line width, in characters.
const WIDTH: usize = 110;
/// Indent of the parts of a number, in characters.
const STEP: usize = 2;
/// Sources shorter than this are repeated.
const SHORT: usize = 40;

/// The 80 % interval of a number, and the measurements that it rests on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedInterval {
    /// 10th percentile, in the unit of the metric's column.
    pub p10: f64,
    /// 90th percentile.
    pub p90: f64,
    /// Column of the metric, with its unit.
    pub column: String,
    /// The distance of the problem from the measurements, which selects the interval.
    pub near: Nearness,
    /// That distance in words.
    pub why: String,
    /// The data, their number and the remaining error: quantiles of measured over predicted.
    pub source: String,
    /// Measured combinations of model, device and format on this device, the same model alone where it was measured.
    pub measured: Vec<MeasuredAt>,
}

/// A number with its interval.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedNumber {
    /// The number.
    #[serde(flatten)]
    pub number: Explanation,
    /// The deployment or the placement, in words.
    #[serde(default)]
    pub of: String,
    /// The constraints that the deployment violates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<String>,
    /// Every input of the number, also those below the depth of the tree.
    #[serde(default)]
    pub inputs: Vec<Leaf>,
    /// Its interval; absent for numbers without one and for terms of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<ExplainedInterval>,
}

/// The interval of a metric, if it has one.
pub fn interval_of(metric: Metric, all: &Intervals, measured: Vec<MeasuredAt>) -> Option<ExplainedInterval> {
    let ends = all.get(metric)?;
    Some(ExplainedInterval {
        p10: ends.p10,
        p90: ends.p90,
        column: metric.entry().column.to_owned(),
        near: all.near,
        why: all.near.words().to_owned(),
        source: all.source.clone(),
        measured,
    })
}

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

pub fn candidate_words(problem: &Problem, candidate: &Candidate) -> String {
    let formats = &problem.formats[candidate.formats];
    let requests = requests(candidate.in_flight(problem));
    let plan = plan(candidate).label;
    format!("{plan}, {} weights, {} KV, {requests} concurrent requests", formats.weights, formats.kv)
}

fn levels(tree: &Explanation) -> usize {
    tree.parts.iter().map(|part| 1 + levels(part)).max().unwrap_or(0)
}

/// The explanation of a number; violations come first.
pub fn explained(number: &ExplainedNumber) -> String {
    let explanation = &number.number;
    let Explanation { symbol, text, grade, .. } = explanation;
    let head = styled(BOLD, &format!("{symbol} = {text}"));
    let of = format!("of {}", number.of);
    let rests = format!("weakest source: {grade}; noted again only where a sub-term is better sourced");
    let interval = number.interval.as_ref().map(interval).unwrap_or_default();
    let broken: String = number
        .violations
        .iter()
        .map(|reason| styled(BAD, wrap(&format!("INFEASIBLE: {reason}"), WIDTH, 0, 2).trim_end()) + "\n")
        .collect();
    let mut writer = ExplanationWriter {
        numbers: BTreeSet::new(),
        sources: BTreeMap::new(),
        reasons: BTreeSet::new(),
        cut: 0,
        text: format!("{broken}{head}\n{}{}{interval}\n", wrap(&of, WIDTH, 2, 2), wrap(&rests, WIDTH, 2, 2)),
    };
    writer.term(explanation, 0, *grade);
    if writer.cut > 0 {
        let more = format!(
            "{} can be expanded: use --depth {}, or --path with a path in brackets",
            count(writer.cut, "term"),
            levels(explanation) + 1
        );
        writer.text.push('\n');
        writer.text.push_str(&wrap(&more, WIDTH, 0, 2));
    }
    writer.text
}

/// The interval of a number, and its measurements.
fn interval(interval: &ExplainedInterval) -> String {
    let ExplainedInterval { p10, p90, column, why, source, measured, .. } = interval;
    let ends = format!("p10–p90 of {column}: {} to {}", digits(*p10), digits(*p90));
    let text = wrap(&format!("{ends}; {why}; {source}"), WIDTH, 2, 4);
    let nearest = match &measured[..] {
        [] => return text,
        [one] => format!("measured here: {} in {}", one.model, one.weight_format),
        many => format!("measured here: {} combinations of model and format", many.len()),
    };
    text + &wrap(&format!("{nearest}; --format json lists the ranges"), WIDTH, 4, 4)
}

impl ExplanationWriter {
    fn line(&mut self, text: &str, level: usize) {
        // Deep levels keep a minimum width for text.
        let indent = (level * STEP).min(WIDTH / 2);
        self.text.push_str(&wrap(text, WIDTH, indent, indent + 2 * STEP));
    }

    fn term(&mut self, number: &Explanation, level: usize, above: Grade) {
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
        parts.iter().for_each(|part| self.term(part, level + 1, *grade));
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
