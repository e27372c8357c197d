//! Entry of inputs into a reading: as plain numbers, or into a ledger.

use std::fmt::Arguments;

use super::count::Count;
use super::datum::Datum;
use super::ledger::{Ledger, Traced};
use super::num::{Num, Qty};

/// Converts inputs into one reading of formulas.
pub trait Reading {
    /// The reading.
    type N: Num;
    /// Converts an input.
    fn datum(&self, datum: &Datum) -> Qty<Self::N>;
    /// Converts an integer of the model structure.
    fn count(&self, count: Count) -> Qty<Self::N>;
    /// The result of `make`, in a scope inside the current one: numbers that it makes are filed under
    /// `outer/scope`, e.g. `decode/moe_layer/attention`. An empty scope is the current one. A reading without a trace has
    /// no scopes.
    #[inline(always)]
    fn within<T>(&self, _scope: Arguments<'_>, make: impl FnOnce() -> T) -> T {
        make()
    }

    /// The number that `make` computes in a scope, as the result of the scope.
    #[inline(always)]
    fn result_of(&self, scope: &str, make: impl FnOnce() -> Qty<Self::N>) -> Qty<Self::N> {
        self.within(format_args!("{scope}"), || make().result())
    }
}

/// The plain reading: numbers without a trace. The search uses it.
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
        // One instruction, where u64 needs several. Counts stay far below 2^63.
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
    fn within<T>(&self, scope: Arguments<'_>, make: impl FnOnce() -> T) -> T {
        let outer = self.enter_scope(scope);
        let made = make();
        self.leave_scope(outer);
        made
    }
}
