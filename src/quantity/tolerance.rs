//! Tolerances: by how much two numbers that mean the same may differ. All are relative.

/// Sums and products of the same few terms in another order: some thousand units in the last place of a double, whose
/// unit roundoff is 1.1e-16 (IEEE 754). Bounds give way by it, so that rounding never cuts an optimum.
pub const ROUNDING: f64 = 1e-12;

/// Bits at the end of a double that say nothing when two plans are compared: with equal others, two figures are equal.
/// The 36 that are left of 52 are eleven decimal digits; sixteen are above [`ROUNDING`], so that it breaks no tie.
pub const TIED_BITS: u32 = 16;

/// Long sums in another order, and numbers that were written, read and divided again.
pub const SUMMED: f64 = 1e-9;

/// A concurrency that is whole except for rounding: a quotient of three numbers, each within [`SUMMED`].
pub const WHOLE: f64 = 3e-9;

/// Integers as a linear program returns them: above its own rounding, which is 1e-10 a pivot (microlp, `EPS`).
pub const INTEGRAL: f64 = 1e-7;

/// Sums of times of which each is a whole number of picoseconds, and differences of two large numbers.
pub const QUANTIZED: f64 = 1e-6;

/// Optima of an integer program and of a search: branch and bound ends within a millionth of each.
pub const OPTIMA: f64 = 2e-6;

/// Loads that are written rounded up to one part in a hundred thousand.
pub const ROUNDED_LOAD: f64 = 1e-5;

/// A maximum that bisection approaches from below.
pub const BISECTED: f64 = 1e-4;
