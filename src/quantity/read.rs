//! How numbers from outside enter a reading: as themselves, or into a ledger.

use super::count::Count;
use super::datum::Datum;
use super::ledger::{Ledger, Traced};
use super::num::{Num, Qty};

/// Brings numbers from outside into one way of reading formulas.
pub trait Reading {
    /// The reading.
    type N: Num;
    /// Brings in a figure.
    fn datum(&self, datum: &Datum) -> Qty<Self::N>;
    /// Brings in an integer of the structure.
    fn count(&self, count: Count) -> Qty<Self::N>;
}

/// The plain reading: numbers as themselves, nothing remembered. The search uses it.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Reading for Plain {
    type N = f64;
    #[inline(always)]
    fn datum(&self, datum: &Datum) -> Qty<f64> {
        Qty(datum.value)
    }
    #[inline(always)]
    fn count(&self, count: Count) -> Qty<f64> {
        // One instruction, where u64 takes several; counts stay far below 2^63.
        Qty(count.value as i64 as f64)
    }
}

impl<'l> Reading for &'l Ledger {
    type N = Traced<'l>;
    fn datum(&self, datum: &Datum) -> Qty<Traced<'l>> {
        self.input(datum)
    }
    fn count(&self, count: Count) -> Qty<Traced<'l>> {
        self.input_count(count)
    }
}
