//! What a formula states, once, beside its arithmetic.

use super::unit::Unit;

/// The statement that goes with the arithmetic: symbol, unit, why, citation.
#[derive(Debug)]
pub struct Formula {
    /// Its name in explanations.
    pub symbol: &'static str,
    /// What it comes out in.
    pub unit: Unit,
    /// Why it holds, in one line.
    pub why: &'static str,
    /// Where it was taken from.
    pub cite: &'static str,
}

/// Declares formulas, a line of statement each, and the list of them.
#[macro_export]
macro_rules! formulas {
    ($($NAME:ident { symbol: $symbol:expr, unit: $unit:expr, why: $why:expr, cite: $cite:expr $(,)? })*) => {
        $(static $NAME: $crate::quantity::formula::Formula =
            $crate::quantity::formula::Formula { symbol: $symbol, unit: $unit, why: $why, cite: $cite };)*
        /// Formulas of this file.
        pub static FORMULAS: &[&$crate::quantity::formula::Formula] = &[$(&$NAME),*];
    };
}
