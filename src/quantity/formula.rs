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
