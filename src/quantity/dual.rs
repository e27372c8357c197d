//! Derivatives and changed inputs as readings of the formulas.

use super::count::Count;
use super::datum::Datum;
use super::formula::Formula;
use super::num::{Num, Qty};
use super::read::Reading;
use super::unit::Unit;

/// A number with its derivative with respect to the logarithm of one input.
#[derive(Clone, Copy, Debug)]
pub struct Dual {
    pub value: f64,
    /// The change of the number per relative change of the input.
    pub slope: f64,
}

impl Dual {
    /// A number that does not depend on the input.
    fn constant(value: f64) -> Dual {
        Dual { value, slope: 0.0 }
    }

    /// Relative change of the number per relative change of the input; 0 for a number that is 0.
    pub fn elasticity(self) -> f64 {
        if self.value == 0.0 { 0.0 } else { self.slope / self.value }
    }
}

impl Num for Dual {
    fn literal(value: f64, _: Unit) -> Dual {
        Dual::constant(value)
    }
    fn value(self) -> f64 {
        self.value
    }
    fn add(self, other: Dual) -> Dual {
        Dual { value: self.value + other.value, slope: self.slope + other.slope }
    }
    fn sub(self, other: Dual) -> Dual {
        Dual { value: self.value - other.value, slope: self.slope - other.slope }
    }
    fn mul(self, other: Dual) -> Dual {
        Dual { value: self.value * other.value, slope: self.slope * other.value + self.value * other.slope }
    }
    fn div(self, other: Dual) -> Dual {
        let value = self.value / other.value;
        Dual { value, slope: (self.slope - value * other.slope) / other.value }
    }
    fn max(self, other: Dual) -> Dual {
        if self.value < other.value { other } else { self }
    }
    fn min(self, other: Dual) -> Dual {
        if other.value < self.value { other } else { self }
    }
    fn smax(self, other: Dual) -> Dual {
        let value = Num::smax(self.value, other.value);
        // d(a⁴ + b⁴)^¼ = (a³ da + b³ db) ÷ value³
        let part = |one: Dual| if value == 0.0 { 0.0 } else { (one.value / value).powi(3) * one.slope };
        Dual { value, slope: part(self) + part(other) }
    }
    fn pow(self, exponent: Dual) -> Dual {
        let value = Num::pow(self.value, exponent.value);
        // d(a^b) = b a^(b-1) da + a^b ln a db
        let base = if self.slope == 0.0 {
            0.0
        } else {
            exponent.value * libm::pow(self.value, exponent.value - 1.0) * self.slope
        };
        let power = if exponent.slope == 0.0 { 0.0 } else { value * libm::log(self.value) * exponent.slope };
        Dual { value, slope: base + power }
    }
    fn ceil(self) -> Dual {
        Dual::constant(self.value.ceil())
    }
    fn ln(self) -> Dual {
        Dual { value: libm::log(self.value), slope: self.slope / self.value }
    }
    fn exceeds(self, other: Dual) -> bool {
        self.value > other.value
    }
    fn is(self, _: &'static Formula) -> Dual {
        self
    }
    fn result(self) -> Dual {
        self
    }
}

/// The reading with derivatives with respect to one input.
#[derive(Clone, Copy, Debug)]
pub struct Slope<'a>(pub &'a Datum);

impl Reading for Slope<'_> {
    type N = Dual;
    fn datum(&self, datum: &Datum) -> Qty<Dual> {
        let slope = if datum == self.0 { datum.value } else { 0.0 };
        Qty(Dual { value: datum.value, slope })
    }
    fn count(&self, count: Count) -> Qty<Dual> {
        Qty(Dual::constant(count.value as f64))
    }
}

/// The plain reading with one input times a factor.
#[derive(Clone, Copy, Debug)]
pub struct Scaled<'a> {
    pub input: &'a Datum,
    pub factor: f64,
}

impl Reading for Scaled<'_> {
    type N = f64;
    fn datum(&self, datum: &Datum) -> Qty<f64> {
        Qty(if datum == self.input { datum.value * self.factor } else { datum.value })
    }
    fn count(&self, count: Count) -> Qty<f64> {
        Qty(count.value as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A formula with every operation.
    fn every<N: Num>(a: N, b: N) -> N {
        let sum = a.add(b).mul(a).sub(b.div(a));
        sum.max(b).smax(a.min(b)).mul(a.pow(b.div(a.add(b)))).add(a.ln())
    }

    proptest! {
        #[test]
        fn the_slope_is_the_difference_quotient(a in 1.1f64..50.0, b in 0.1f64..50.0) {
            // Away from the kinks of max and min.
            let plain = |a: f64| every(a, b);
            let step = 1e-6;
            let (up, down) = (plain(a * (1.0 + step)), plain(a * (1.0 - step)));
            let quotient = (up - down) / (2.0 * step);
            let dual = every(Dual { value: a, slope: a }, Dual::constant(b));
            prop_assert!((dual.value - plain(a)).abs() <= 1e-12 * plain(a).abs());
            let near_kink = (a - b).abs() < 1e-3 * a || {
                let sum = (a + b) * a - b / a;
                (sum - b).abs() < 1e-3 * sum.abs()
            };
            prop_assert!(near_kink || (dual.slope - quotient).abs() <= 1e-5 * quotient.abs().max(1.0), "{} {}", dual.slope, quotient);
        }
    }
}
