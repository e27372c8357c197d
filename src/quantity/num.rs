//! The arithmetic of formulas, and the trait of its readings.

use std::ops::{Add, Div, Mul, Sub};

use super::formula::Formula;
use super::unit::{COUNT, Literal, Unit};

/// A reading of a formula. The search reads with `f64`.
pub trait Num: Copy {
    /// A constant of the formula itself.
    fn literal(value: f64, unit: Unit) -> Self;
    /// The number.
    fn value(self) -> f64;
    /// `self + other`
    fn add(self, other: Self) -> Self;
    /// `self − other`
    fn sub(self, other: Self) -> Self;
    /// `self × other`
    fn mul(self, other: Self) -> Self;
    /// `self ÷ other`
    fn div(self, other: Self) -> Self;
    /// The larger.
    fn max(self, other: Self) -> Self;
    /// The smaller.
    fn min(self, other: Self) -> Self;
    /// `(self⁴ + other⁴)^¼`: a smooth maximum, to which both sides contribute where they are close.
    fn smax(self, other: Self) -> Self;
    /// `self^exponent`, both dimensionless.
    fn pow(self, exponent: Self) -> Self;
    /// The number rounded up.
    fn ceil(self) -> Self;
    /// The natural logarithm of a dimensionless number.
    fn ln(self) -> Self;
    /// Whether it is larger than `other`. A formula that takes one of two ways compares here, so that a trace records it.
    fn exceeds(self, other: Self) -> bool;
    /// Names the number as the result of `formula`.
    fn is(self, formula: &'static Formula) -> Self;
    /// Marks the number as the result of the current scope.
    fn result(self) -> Self;
}

impl Num for f64 {
    #[inline(always)]
    fn literal(value: f64, _: Unit) -> f64 {
        value
    }
    #[inline(always)]
    fn value(self) -> f64 {
        self
    }
    #[inline(always)]
    fn add(self, other: f64) -> f64 {
        self + other
    }
    #[inline(always)]
    fn sub(self, other: f64) -> f64 {
        self - other
    }
    #[inline(always)]
    fn mul(self, other: f64) -> f64 {
        self * other
    }
    #[inline(always)]
    fn div(self, other: f64) -> f64 {
        self / other
    }
    #[inline(always)]
    fn max(self, other: f64) -> f64 {
        if self < other { other } else { self }
    }
    #[inline(always)]
    fn min(self, other: f64) -> f64 {
        if other < self { other } else { self }
    }
    #[inline(always)]
    fn smax(self, other: f64) -> f64 {
        let (a, b) = (self * self, other * other);
        (a * a + b * b).sqrt().sqrt()
    }
    #[inline(always)]
    fn pow(self, exponent: f64) -> f64 {
        // The square root has its own instruction.
        if exponent == 0.5 { self.sqrt() } else { libm::pow(self, exponent) }
    }
    #[inline(always)]
    fn ceil(self) -> f64 {
        f64::ceil(self)
    }
    #[inline(always)]
    fn ln(self) -> f64 {
        libm::log(self)
    }
    #[inline(always)]
    fn exceeds(self, other: f64) -> bool {
        self > other
    }
    #[inline(always)]
    fn is(self, _: &'static Formula) -> f64 {
        self
    }
    #[inline(always)]
    fn result(self) -> f64 {
        self
    }
}

/// A physical quantity: the type of formulas.
///
/// Comparison operators are not available. A formula branches on values through `max`, `min`, `smax` and `ceil`, which
/// the trace of one reading covers for all readings, or through `exceeds`, which the trace records.
#[derive(Clone, Copy, Debug)]
pub struct Qty<N>(pub N);

impl<N: Num> From<f64> for Qty<N> {
    #[inline(always)]
    fn from(count: f64) -> Self {
        Qty(N::literal(count, COUNT))
    }
}

impl<N: Num> From<Literal> for Qty<N> {
    #[inline(always)]
    fn from(literal: Literal) -> Self {
        Qty(N::literal(literal.0, literal.1))
    }
}

impl<N: Num> Qty<N> {
    /// A constant of a formula, with its unit: `Qty::literal(0.0 * SECOND)`.
    #[inline(always)]
    pub fn literal(literal: Literal) -> Self {
        Qty::from(literal)
    }
    /// The number, in base units.
    #[inline(always)]
    pub fn value(self) -> f64 {
        self.0.value()
    }
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        Qty(self.0.max(other.0))
    }
    #[inline(always)]
    pub fn min(self, other: Self) -> Self {
        Qty(self.0.min(other.0))
    }
    #[inline(always)]
    pub fn smax(self, other: Self) -> Self {
        Qty(self.0.smax(other.0))
    }
    #[inline(always)]
    pub fn pow(self, exponent: Self) -> Self {
        Qty(self.0.pow(exponent.0))
    }
    #[inline(always)]
    pub fn ceil(self) -> Self {
        Qty(self.0.ceil())
    }
    #[inline(always)]
    pub fn ln(self) -> Self {
        Qty(self.0.ln())
    }
    /// Whether it is larger than `other`: where a formula takes one of two ways.
    #[inline(always)]
    pub fn exceeds(self, other: Self) -> bool {
        self.0.exceeds(other.0)
    }
    #[inline(always)]
    pub fn is(self, formula: &'static Formula) -> Self {
        Qty(self.0.is(formula))
    }
    /// Marks the number as the result of the current scope of [`super::read::Reading::within`].
    #[inline(always)]
    pub fn result(self) -> Self {
        Qty(self.0.result())
    }
}

/// `a op b` for every mix of quantity, plain number and literal with a unit.
macro_rules! operator {
    ($Trait:ident, $method:ident) => {
        operator!($Trait, $method: Qty<N> => Qty<N>, Qty<N> => f64, Qty<N> => Literal, f64 => Qty<N>, Literal => Qty<N>);
    };
    ($Trait:ident, $method:ident: $($Left:ty => $Right:ty),*) => {$(
        impl<N: Num> $Trait<$Right> for $Left {
            type Output = Qty<N>;
            #[inline(always)]
            fn $method(self, other: $Right) -> Qty<N> {
                Qty(Qty::<N>::from(self).0.$method(Qty::<N>::from(other).0))
            }
        }
    )*};
}

operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);
operator!(Div, div);
