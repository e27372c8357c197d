//! The description of a formula, next to its arithmetic.

use super::unit::Unit;

/// The description: symbol, unit, reason, citation.
#[derive(Debug)]
pub struct Formula {
    /// Its name in explanations.
    pub symbol: &'static str,
    /// Unit of its result.
    pub unit: Unit,
    /// The reason for its form, in one line.
    pub why: &'static str,
    /// Its citation.
    pub cite: &'static str,
    /// The module with its arithmetic.
    pub module: &'static str,
}

/// Declares formulas and their list.
#[macro_export]
macro_rules! formulas {
    ($($NAME:ident { symbol: $symbol:expr, unit: $unit:expr, why: $why:expr, cite: $cite:expr $(,)? })*) => {
        $(static $NAME: $crate::quantity::formula::Formula =
            $crate::quantity::formula::Formula {
                symbol: $symbol,
                unit: $unit,
                why: $why,
                cite: $cite,
                module: module_path!(),
            };)*
        /// Formulas of this file.
        pub static FORMULAS: &[&$crate::quantity::formula::Formula] = &[$(&$NAME),*];
    };
}
