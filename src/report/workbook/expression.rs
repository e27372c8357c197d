//! The expression of a number in the language of spreadsheets.

use super::cells::{CellKind, WorkbookCells};
use super::page::{CellNumber, WorkbookSheet, digits};
use crate::quantity::ledger::{Id, Op, Traced};
use crate::quantity::num::Num;

/// How tightly an operator binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Any,
    Sum,
    Product,
    Divisor,
    Atom,
}

pub(super) fn constant(value: f64) -> String {
    let text = digits(value);
    if value < 0.0 { format!("({text})") } else { text }
}

impl WorkbookCells<'_> {
    pub(super) fn formula(&self, id: Id, from: WorkbookSheet) -> String {
        self.expression(id, from).1
    }

    /// A number as another cell uses it: a reference where it has a cell, else its expression.
    pub(super) fn text(&self, id: Id, from: WorkbookSheet) -> String {
        self.operand(id, from, Binding::Any)
    }

    pub(super) fn traced(&self, number: Traced, from: WorkbookSheet) -> CellNumber {
        match number.id() {
            None => CellNumber::Constant(number.value()),
            Some(id) => CellNumber::Formula(self.text(id, from), number.value()),
        }
    }

    fn operand(&self, id: Id, from: WorkbookSheet, floor: Binding) -> String {
        match self.kind(id) {
            CellKind::At(address) => address.reference(from),
            CellKind::Unused | CellKind::Inline => {
                let (binding, text) = self.expression(id, from);
                if binding < floor { format!("({text})") } else { text }
            }
        }
    }

    fn expression(&self, id: Id, from: WorkbookSheet) -> (Binding, String) {
        let go = |id, floor| self.operand(id, from, floor);
        let call = |name: &str, a, b| {
            (Binding::Atom, format!("{name}({},{})", go(a, Binding::Any), go(b, Binding::Any)))
        };
        let entry = &self.entries[id as usize];
        match entry.op {
            Op::Input(_) | Op::Literal => (Binding::Atom, constant(entry.value)),
            Op::Add(a, b) => (Binding::Sum, format!("{}+{}", go(a, Binding::Sum), go(b, Binding::Sum))),
            Op::Sub(a, b) => (Binding::Sum, format!("{}-{}", go(a, Binding::Sum), go(b, Binding::Product))),
            Op::Mul(a, b) => {
                (Binding::Product, format!("{}*{}", go(a, Binding::Product), go(b, Binding::Divisor)))
            }
            Op::Div(a, b) => {
                (Binding::Product, format!("{}/{}", go(a, Binding::Product), go(b, Binding::Divisor)))
            }
            Op::Max(a, b) => call("MAX", a, b),
            Op::Min(a, b) => call("MIN", a, b),
            Op::Smax(a, b) => {
                let (a, b) = (go(a, Binding::Atom), go(b, Binding::Atom));
                (Binding::Atom, format!("SQRT(SQRT({a}^4+{b}^4))"))
            }
            Op::Pow(a, b) => self.power((a, b), from),
            Op::Ceil(a) => (Binding::Atom, format!("ROUNDUP({},0)", go(a, Binding::Any))),
            Op::Ln(a) => (Binding::Atom, format!("LN({})", go(a, Binding::Any))),
            Op::Same(a) => (Binding::Any, go(a, Binding::Any)),
        }
    }

    fn power(&self, (base, exponent): (Id, Id), from: WorkbookSheet) -> (Binding, String) {
        let [a, b] = [base, exponent].map(|id| self.operand(id, from, Binding::Atom));
        let plain = format!("{a}^{b}");
        match self.entries[exponent as usize].op {
            Op::Literal => (Binding::Divisor, plain),
            // Some spreadsheets call a number that is too small for them an error: x^n <= exp(-n (1 - x)).
            _ => (Binding::Atom, format!("IF({b}*(1-{a})>{VANISHES},0,{plain})")),
        }
    }
}

/// Above this negative exponent of e, a power is nothing next to one.
const VANISHES: u32 = 100;
