//! The tracing reading: records every number with its formula, unit and sources.

mod explain;
mod spell;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Arguments;
use std::rc::Rc;

pub use explain::{Explanation, Leaf};
use spell::name;

use super::count::{Count, Origin};
use super::datum::{Datum, Grade, Source};
use super::formula::Formula;
use super::num::{Num, Qty};
use super::unit::{COUNT, Unit};

/// Numbers in the order of computation. An entry refers only to earlier ones.
#[derive(Default)]
pub struct Ledger {
    entries: RefCell<Vec<LedgerEntry>>,
    /// The current scope, and the path of whatever has none.
    scope: RefCell<Rc<str>>,
    nowhere: Rc<str>,
    /// The number that each scope is about.
    results: RefCell<HashMap<Rc<str>, Id>>,
    unit_errors: RefCell<Vec<String>>,
    counts: RefCell<HashMap<Count, Id>>,
    comparisons: RefCell<Vec<BranchComparison>>,
    inputs: RefCell<HashMap<(String, u64), Vec<Id>>>,
}

/// One number.
#[derive(Clone, Debug)]
pub struct LedgerEntry {
    /// Its expression.
    pub op: Op,
    /// In base units.
    pub value: f64,
    pub unit: Unit,
    /// Its formula, if it has a name.
    pub formula: Option<&'static Formula>,
    /// The scope that it was made in; empty for an input.
    pub path: Rc<str>,
}

/// A comparison that decided which way a formula took. No expression shows it.
#[derive(Clone, Debug)]
pub struct BranchComparison {
    /// The left side.
    pub left: Id,
    /// The right side.
    pub right: Id,
    /// Whether the left side exceeds the right one.
    pub exceeds: bool,
    /// The scope that it was made in.
    pub path: Rc<str>,
}

/// Index of an entry in the ledger.
pub type Id = u32;

/// Expression of a number.
#[derive(Clone, Debug)]
pub enum Op {
    Input(Rc<Datum>),
    /// A constant of a formula.
    Literal,
    /// `a + b`
    Add(Id, Id),
    /// `a − b`
    Sub(Id, Id),
    /// `a × b`
    Mul(Id, Id),
    /// `a ÷ b`
    Div(Id, Id),
    /// The larger.
    Max(Id, Id),
    /// The smaller.
    Min(Id, Id),
    /// `(a⁴ + b⁴)^¼`
    Smax(Id, Id),
    /// `a^b`
    Pow(Id, Id),
    /// The number rounded up.
    Ceil(Id),
    /// `ln a`
    Ln(Id),
    /// Another name for an earlier entry.
    Same(Id),
}

impl Op {
    /// The operands, in order.
    pub fn operands(&self) -> Vec<Id> {
        match *self {
            Op::Input(_) | Op::Literal => vec![],
            Op::Add(a, b) | Op::Sub(a, b) | Op::Mul(a, b) | Op::Div(a, b) => vec![a, b],
            Op::Max(a, b) | Op::Min(a, b) | Op::Smax(a, b) | Op::Pow(a, b) => vec![a, b],
            Op::Ceil(a) | Op::Ln(a) | Op::Same(a) => vec![a],
        }
    }
}

/// A traced number. Literals join the ledger when they meet a traced number.
#[derive(Clone, Copy)]
pub enum Traced<'l> {
    /// A constant of a formula, not yet in any ledger.
    Literal(f64, Unit),
    /// A number in a ledger.
    Entry(&'l Ledger, Id),
}

impl Ledger {
    /// An empty ledger.
    pub fn new() -> Ledger {
        Ledger::default()
    }

    /// Records an input. The same input is recorded once.
    pub fn input(&self, datum: &Datum) -> Qty<Traced<'_>> {
        let key = (datum.symbol.to_string(), datum.value.to_bits());
        if let Some(known) = self.inputs.borrow().get(&key) {
            let entries = self.entries.borrow();
            let same = |&&id: &&Id| matches!(&entries[id as usize].op, Op::Input(d) if **d == *datum);
            if let Some(&id) = known.iter().find(same) {
                return Qty(Traced::Entry(self, id));
            }
        }
        let id = self.push(Op::Input(Rc::new(datum.clone())), datum.value, datum.unit);
        self.inputs.borrow_mut().entry(key).or_default().push(id);
        Qty(Traced::Entry(self, id))
    }

    /// Records an integer of the model structure. The same integer is recorded once.
    pub fn input_count(&self, count: Count) -> Qty<Traced<'_>> {
        if let Some(&id) = self.counts.borrow().get(&count) {
            return Qty(Traced::Entry(self, id));
        }
        let source = Source { grade: Grade::Stated, text: count.origin.to_string().into() };
        let datum = Datum { symbol: count.symbol.into(), value: count.value as f64, unit: COUNT, source };
        let id = self.push(Op::Input(Rc::new(datum)), count.value as f64, COUNT);
        self.counts.borrow_mut().insert(count, id);
        Qty(Traced::Entry(self, id))
    }

    /// Unit errors: numbers added, compared or named with mismatched units.
    pub fn unit_errors(&self) -> Vec<String> {
        self.unit_errors.borrow().clone()
    }

    /// A copy of every entry, in order.
    pub fn entries(&self) -> Vec<LedgerEntry> {
        self.entries.borrow().clone()
    }

    /// The comparisons that decided which way a formula took, in order.
    pub fn comparisons(&self) -> Vec<BranchComparison> {
        self.comparisons.borrow().clone()
    }

    /// Where each integer of the model structure came from.
    pub fn origins(&self) -> HashMap<Id, Origin> {
        self.counts.borrow().iter().map(|(count, id)| (*id, count.origin)).collect()
    }

    fn compare(&self, left: Traced, right: Traced, exceeds: bool) {
        let (left, right) = (self.enter(left), self.enter(right));
        let path = self.scope.borrow().clone();
        self.comparisons.borrow_mut().push(BranchComparison { left, right, exceeds, path });
    }

    fn entry(&self, id: Id) -> LedgerEntry {
        self.entries.borrow()[id as usize].clone()
    }

    fn push(&self, op: Op, value: f64, unit: Unit) -> Id {
        let path = match op {
            Op::Input(_) | Op::Literal => self.nowhere.clone(),
            _ => self.scope.borrow().clone(),
        };
        let mut entries = self.entries.borrow_mut();
        entries.push(LedgerEntry { op, value, unit, formula: None, path });
        entries.len() as Id - 1
    }

    /// Enters a scope inside the current one, which it returns.
    pub(super) fn enter_scope(&self, scope: Arguments<'_>) -> Rc<str> {
        let outer = self.scope.borrow().clone();
        let inner: Rc<str> = match (outer.is_empty(), scope.to_string()) {
            (_, name) if name.is_empty() => outer.clone(),
            (true, name) => name.into(),
            (false, name) => format!("{outer}/{name}").into(),
        };
        self.scope.replace(inner);
        outer
    }

    /// Returns to an outer scope.
    pub(super) fn leave_scope(&self, outer: Rc<str>) {
        self.scope.replace(outer);
    }

    fn complain(&self, error: String) {
        let mut errors = self.unit_errors.borrow_mut();
        if !errors.contains(&error) {
            errors.push(error);
        }
    }

    fn apply(&self, a: Traced, b: Traced, op: fn(Id, Id) -> Op, value: fn(f64, f64) -> f64) -> Id {
        let (a, b) = (self.enter(a), self.enter(b));
        let (left, right) = (self.entry(a), self.entry(b));
        let op = op(a, b);
        let unit = match op {
            Op::Mul(..) => left.unit.times(right.unit),
            Op::Div(..) => left.unit.per(right.unit),
            _ => left.unit,
        };
        let alike = match op {
            Op::Mul(..) | Op::Div(..) => true,
            Op::Pow(..) => left.unit == COUNT && right.unit == COUNT,
            _ => left.unit == right.unit,
        };
        if !alike {
            let text = |id| self.render(id, &|_, entry| name(entry).map(str::to_string), true);
            self.complain(format!("{} [{}] meets {} [{}]", text(a), left.unit, text(b), right.unit));
        }
        self.push(op, value(left.value, right.value), unit)
    }

    fn enter(&self, number: Traced) -> Id {
        match number {
            Traced::Entry(_, id) => id,
            Traced::Literal(value, unit) => self.push(Op::Literal, value, unit),
        }
    }

    fn name(&self, id: Id, formula: &'static Formula) -> Id {
        let entry = self.entry(id);
        if entry.unit != formula.unit {
            self.complain(format!(
                "{} is declared in {} but evaluates to {}",
                formula.symbol, formula.unit, entry.unit
            ));
        }
        let here = *entry.path == **self.scope.borrow();
        let target = match (&entry.op, entry.formula) {
            (Op::Input(_) | Op::Literal, _) | (_, Some(_)) => {
                self.push(Op::Same(id), entry.value, entry.unit)
            }
            _ if here => id,
            _ => self.push(Op::Same(id), entry.value, entry.unit),
        };
        self.entries.borrow_mut()[target as usize].formula = Some(formula);
        target
    }
}

impl<'l> Traced<'l> {
    fn alone(self, op: fn(Id) -> Op, of: fn(f64) -> f64) -> Self {
        match self {
            Traced::Literal(value, unit) => Traced::Literal(of(value), unit),
            Traced::Entry(ledger, id) => {
                let entry = ledger.entry(id);
                Traced::Entry(ledger, ledger.push(op(id), of(entry.value), entry.unit))
            }
        }
    }

    fn with(self, other: Self, op: fn(Id, Id) -> Op, value: fn(f64, f64) -> f64) -> Self {
        match (self, other) {
            (Traced::Entry(ledger, _), _) | (_, Traced::Entry(ledger, _)) => {
                Traced::Entry(ledger, ledger.apply(self, other, op, value))
            }
            _ => {
                let scratch = Ledger::new();
                let entry = scratch.entry(scratch.apply(self, other, op, value));
                Traced::Literal(entry.value, entry.unit)
            }
        }
    }

    /// Its index in the ledger; `None` for a bare constant.
    pub fn id(self) -> Option<Id> {
        match self {
            Traced::Entry(_, id) => Some(id),
            Traced::Literal(..) => None,
        }
    }
}

impl Num for Traced<'_> {
    fn literal(value: f64, unit: Unit) -> Self {
        Traced::Literal(value, unit)
    }
    fn value(self) -> f64 {
        match self {
            Traced::Literal(value, _) => value,
            Traced::Entry(ledger, id) => ledger.entries.borrow()[id as usize].value,
        }
    }
    fn add(self, other: Self) -> Self {
        match (self, other) {
            // A sum starts from its first term, not from the zero of its fold.
            (Traced::Literal(0.0, unit), Traced::Entry(ledger, id)) if ledger.entry(id).unit == unit => other,
            (Traced::Entry(ledger, id), Traced::Literal(0.0, unit)) if ledger.entry(id).unit == unit => self,
            _ => self.with(other, Op::Add, Num::add),
        }
    }
    fn sub(self, other: Self) -> Self {
        self.with(other, Op::Sub, Num::sub)
    }
    fn mul(self, other: Self) -> Self {
        self.with(other, Op::Mul, Num::mul)
    }
    fn div(self, other: Self) -> Self {
        self.with(other, Op::Div, Num::div)
    }
    fn max(self, other: Self) -> Self {
        self.with(other, Op::Max, Num::max)
    }
    fn min(self, other: Self) -> Self {
        self.with(other, Op::Min, Num::min)
    }
    fn smax(self, other: Self) -> Self {
        self.with(other, Op::Smax, Num::smax)
    }
    fn pow(self, exponent: Self) -> Self {
        self.with(exponent, Op::Pow, Num::pow)
    }
    fn ceil(self) -> Self {
        self.alone(Op::Ceil, f64::ceil)
    }
    fn ln(self) -> Self {
        if let Traced::Entry(ledger, id) = self
            && ledger.entry(id).unit != COUNT
        {
            ledger.complain(format!("the logarithm of a value in {}", ledger.entry(id).unit));
        }
        self.alone(Op::Ln, libm::log)
    }
    fn exceeds(self, other: Self) -> bool {
        let exceeds = self.value() > other.value();
        if let (Traced::Entry(ledger, _), _) | (_, Traced::Entry(ledger, _)) = (self, other) {
            ledger.compare(self, other, exceeds);
        }
        exceeds
    }
    fn is(self, formula: &'static Formula) -> Self {
        match self {
            Traced::Entry(ledger, id) => Traced::Entry(ledger, ledger.name(id, formula)),
            literal => literal,
        }
    }
    fn result(self) -> Self {
        if let Traced::Entry(ledger, id) = self {
            let scope = ledger.scope.borrow().clone();
            if !scope.is_empty() {
                ledger.results.borrow_mut().insert(scope, id);
            }
        }
        self
    }
}
