//! The drill-down: a number as a calculation, down to its inputs. Data, not text.

use serde::{Deserialize, Serialize};

use super::spell::{name, name_from};
use super::{Id, Ledger, Op, Traced};
use crate::quantity::datum::Grade;
use crate::quantity::num::Qty;
use crate::quantity::unit::{COUNT, Unit, humanize};

/// A number with its formula and its operands.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Explanation {
    /// Its name.
    pub symbol: String,
    /// Its path in the computation, e.g. `decode/dense_layer/attention`.
    pub path: String,
    /// The formula in symbols; absent for an input.
    pub formula: Option<String>,
    /// The formula with numbers in place of symbols.
    pub substituted: Option<String>,
    /// The number, in base units.
    pub value: f64,
    /// Its base unit.
    pub unit: String,
    /// The number, formatted.
    pub text: String,
    /// The side that decides each `max` or `min` in the formula.
    pub bound: Vec<String>,
    /// The reason for the formula, or empty.
    pub why: String,
    /// The citation of the formula, or the source of the input.
    pub source: String,
    /// The weakest grade of all its inputs.
    pub grade: Grade,
    /// Its operands; empty where shown earlier or below the requested depth.
    pub parts: Vec<Explanation>,
}

/// An input of a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Leaf {
    /// Its name.
    pub symbol: String,
    /// Its value, formatted.
    pub text: String,
    /// Its source.
    pub source: String,
    /// Its grade.
    pub grade: Grade,
}

impl Ledger {
    /// The number as a tree, at most `depth` levels deep. Each part is shown once.
    pub fn explain(&self, number: Qty<Traced>, depth: usize) -> Explanation {
        match number.0.id() {
            Some(id) => self.explain_once(id, depth, &mut vec![]),
            None => self.literal(number.value(), COUNT),
        }
    }

    /// The formula of an entry in symbols, as seen from its scope.
    pub fn formula_text(&self, id: Id) -> String {
        let path = self.entry(id).path;
        self.render(id, &|_, entry| name_from(&path, entry), false)
    }

    /// All inputs of the number, in order of first use.
    pub fn leaves(&self, number: Qty<Traced>) -> Vec<Leaf> {
        let Some(root) = number.0.id() else { return vec![] };
        let entries = self.entries.borrow();
        let mut seen = vec![false; entries.len()];
        let (mut pending, mut leaves) = (vec![root], Vec::new());
        while let Some(id) = pending.pop() {
            if std::mem::replace(&mut seen[id as usize], true) {
                continue;
            }
            let entry = &entries[id as usize];
            if let Op::Input(datum) = &entry.op {
                leaves.push(Leaf {
                    symbol: datum.symbol.to_string(),
                    text: humanize(entry.value, entry.unit),
                    source: datum.source.text.to_string(),
                    grade: datum.source.grade,
                });
            }
            pending.extend(entry.op.operands().into_iter().rev());
        }
        leaves
    }

    /// The result of the scope at `path`, or of the outermost scope whose path ends in it.
    pub fn find(&self, path: &str) -> Option<Qty<Traced<'_>>> {
        let results = self.results.borrow();
        let suffix = format!("/{path}");
        let inner = || {
            let ending = results.iter().filter(|(scope, _)| scope.ends_with(&suffix));
            ending.min_by_key(|(scope, _)| (scope.matches('/').count(), (*scope).clone())).map(|(_, id)| *id)
        };
        let found = results.get(path).copied().or_else(inner)?;
        Some(Qty(Traced::Entry(self, found)))
    }

    /// The paths of all results, in the order of their numbers.
    pub fn paths(&self) -> Vec<String> {
        let results = self.results.borrow();
        let mut paths: Vec<(Id, String)> =
            results.iter().map(|(scope, id)| (*id, scope.to_string())).collect();
        paths.sort();
        paths.into_iter().map(|(_, path)| path).collect()
    }

    fn literal(&self, value: f64, unit: Unit) -> Explanation {
        Explanation {
            symbol: String::new(),
            path: String::new(),
            formula: None,
            substituted: None,
            value,
            unit: unit.to_string(),
            text: humanize(value, unit),
            bound: vec![],
            why: String::new(),
            source: "constant of the formula".into(),
            grade: Grade::Stated,
            parts: vec![],
        }
    }

    fn explain_once(&self, id: Id, depth: usize, shown: &mut Vec<Id>) -> Explanation {
        let entry = self.entry(id);
        let first = !shown.contains(&id);
        shown.push(id);
        let base = Explanation {
            symbol: name(&entry).unwrap_or_default().into(),
            ..self.literal(entry.value, entry.unit)
        };
        match (&entry.op, entry.formula) {
            (Op::Input(datum), None) => {
                Explanation { source: datum.source.text.to_string(), grade: datum.source.grade, ..base }
            }
            (_, formula) => {
                let symbols = self.render(id, &|_, e| name_from(&entry.path, e), false);
                let number = |_, e: &super::LedgerEntry| name(e).map(|_| humanize(e.value, e.unit));
                let parts = if depth > 0 && first { self.parts(id) } else { vec![] };
                Explanation {
                    path: entry.path.to_string(),
                    formula: Some(symbols),
                    substituted: Some(self.render(id, &number, false)),
                    bound: self.bounds(id),
                    why: formula.map_or_else(String::new, |f| f.why.into()),
                    source: formula.map_or_else(String::new, |f| f.cite.into()),
                    grade: self.weakest(id),
                    parts: parts.into_iter().map(|part| self.explain_once(part, depth - 1, shown)).collect(),
                    ..base
                }
            }
        }
    }

    fn weakest(&self, id: Id) -> Grade {
        self.leaves(Qty(Traced::Entry(self, id))).iter().map(|leaf| leaf.grade).max().unwrap_or(Grade::Stated)
    }

    /// Walks the formula of `id` down to its named operands.
    fn inside(&self, id: Id, mut visit: impl FnMut(Id, &super::LedgerEntry)) {
        let mut pending = self.entry(id).op.operands();
        visit(id, &self.entry(id));
        pending.reverse();
        while let Some(id) = pending.pop() {
            let entry = self.entry(id);
            visit(id, &entry);
            if name(&entry).is_none() {
                pending.extend(entry.op.operands().into_iter().rev());
            }
        }
    }

    /// The named operands in the formula of `id`.
    fn parts(&self, root: Id) -> Vec<Id> {
        let mut parts = Vec::new();
        self.inside(root, |id, entry| {
            if id != root && name(entry).is_some() && !parts.contains(&id) {
                parts.push(id);
            }
        });
        parts
    }

    /// The deciding side of each `max` and `min` in the formula of `root`.
    fn bounds(&self, root: Id) -> Vec<String> {
        let mut bounds = Vec::new();
        let path = self.entry(root).path;
        self.inside(root, |id, entry| {
            if id != root && name(entry).is_some() {
                return;
            }
            let (word, a, b, first_wins) = match entry.op {
                Op::Max(a, b) => ("max", a, b, self.entry(a).value >= self.entry(b).value),
                Op::Smax(a, b) => ("smax", a, b, self.entry(a).value >= self.entry(b).value),
                Op::Min(a, b) => ("min", a, b, self.entry(a).value <= self.entry(b).value),
                _ => return,
            };
            let winner = if first_wins { a } else { b };
            let text = self.render(winner, &|_, e| name_from(&path, e), true);
            bounds.push(format!("{word} is decided by {text}"));
        });
        bounds
    }
}
