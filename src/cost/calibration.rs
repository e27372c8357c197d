//! Calibration of a constant: the figure of the runtime's file times the multipliers whose conditions hold.

use crate::quantity::datum::Datum;
use crate::quantity::formula::Formula;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::spec::constant::{CalibratedConstant, ConstantKind, calibrated_constants};

/// The multipliers of one constant. Without any, an efficiency is only limited to the roofline.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantMultipliers {
    pub of: CalibratedConstant,
    /// Multipliers on its time.
    pub multipliers: Vec<Datum>,
}

impl ConstantMultipliers {
    /// The constant with its multipliers, from its figure in the file.
    pub fn apply<R: Reading>(&self, read: &R, base: Qty<R::N>) -> Qty<R::N> {
        let product = self.multipliers.iter().map(|datum| read.datum(datum)).reduce(|a, b| a * b);
        read.within(format_args!("constants/{}", self.of.entry().key), || {
            calibrated(self.of, base, product).result()
        })
    }
}

/// The constant `base` whose time takes `multiplier` times as long.
pub fn calibrated<N: Num>(of: CalibratedConstant, base: Qty<N>, multiplier: Option<Qty<N>>) -> Qty<N> {
    let number = match of.entry().kind {
        ConstantKind::Efficiency => multiplier.map_or(base, |times| base / times).min(Qty::from(1.0)),
        ConstantKind::Time | ConstantKind::Count => multiplier.map_or(base, |times| base * times),
    };
    number.is(FORMULAS[of as usize])
}

impl ConstantKind {
    /// The reason for the form of a calibrated constant.
    const fn why(self) -> &'static str {
        match self {
            ConstantKind::Efficiency => {
                "a multiplier applies to time, so the achieved fraction of the peak is divided by it; no kernel exceeds the roofline"
            }
            ConstantKind::Time => "every multiplier whose condition holds applies to the time",
            ConstantKind::Count => {
                "every multiplier whose condition holds applies to the time, and so to its count"
            }
        }
    }
}

/// Multipliers are fitted to published measurements.
const CITE: &str = "Gelman, Hill 2007 (hierarchical models), chapter 12; mantile-opt calibrate";

macro_rules! formulas_of_constants {
    ($($Name:ident $key:ident $Kind:ident $Section:ident,)*) => {
        /// Formulas of this file: one for each constant of the table.
        pub static FORMULAS: &[&Formula] = &[$(&Formula {
            symbol: stringify!($key),
            unit: ConstantKind::$Kind.unit(),
            why: ConstantKind::$Kind.why(),
            cite: CITE,
            module: module_path!(),
        },)*];
    };
}
calibrated_constants!(formulas_of_constants);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::ledger::Ledger;
    use crate::quantity::read::Plain;
    use crate::quantity::unit::COUNT;
    use crate::spec::constant::CONSTANTS;
    use proptest::prelude::*;

    fn given(symbol: &'static str, value: f64, of: CalibratedConstant) -> Datum {
        Datum::stated(symbol, value, if symbol == "base" { of.entry().kind.unit() } else { COUNT }, "test")
    }

    proptest! {
        #[test]
        fn every_multiplier_is_a_factor_of_the_number(
            place in 0..CONSTANTS.len(), base in 1e-6..1.0, factors in prop::collection::vec(0.5..2.0, 0..6),
        ) {
            let of = CONSTANTS[place].of;
            let multipliers = factors.iter().map(|value| given("multiplier", *value, of)).collect();
            let known = ConstantMultipliers { of, multipliers };
            let base = given("base", base, of);
            let plain = known.apply(&Plain, Plain.datum(&base)).value();
            let product: f64 = factors.iter().product();
            let closed = match of.entry().kind {
                ConstantKind::Efficiency => (base.value / product).min(1.0),
                ConstantKind::Time | ConstantKind::Count => base.value * product,
            };
            prop_assert_eq!(plain.to_bits(), closed.to_bits());
            let ledger = Ledger::new();
            let traced = known.apply(&&ledger, ledger.input(&base));
            prop_assert_eq!(traced.value().to_bits(), plain.to_bits());
            prop_assert_eq!(ledger.unit_errors(), Vec::<String>::new());
            let explanation = ledger.explain(traced, 1);
            prop_assert_eq!(explanation.symbol, CONSTANTS[place].key);
            let mut distinct = factors;
            distinct.sort_by(f64::total_cmp);
            distinct.dedup();
            prop_assert_eq!(explanation.parts.len(), distinct.len() + 1);
        }
    }
}
