//! From values to shares of an axis: linear or logarithmic, with round ticks.

use crate::report::number::plain;

/// From this ratio of the largest to the least value on, an axis is logarithmic.
const WIDE: f64 = 30.0;
const MOST: usize = 7;
/// Values beyond are not drawn: sums and squares of them must stay finite.
const LARGEST: f64 = 1e150;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotScale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

/// Whether a value can be drawn on some scale.
pub fn drawable(value: f64) -> bool {
    value.is_finite() && value.abs() < LARGEST && (value == 0.0 || value.abs() > 1.0 / LARGEST)
}

impl PlotScale {
    /// A scale over `values`; logarithmic where they are positive and far from each other. `None` without any.
    pub fn over(values: impl Iterator<Item = f64>) -> Option<PlotScale> {
        let values: Vec<f64> = values.filter(|value| drawable(*value)).collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        Some(match low > 0.0 && high / low >= WIDE {
            true => PlotScale { low: round_down(low), high: round_up(high), logarithmic: true },
            false => PlotScale::linear(low, high),
        })
    }

    /// A logarithmic scale over positive `values`. `None` without any.
    pub fn of_factors(values: impl Iterator<Item = f64>) -> Option<PlotScale> {
        let values: Vec<f64> = values.filter(|value| drawable(*value) && *value > 0.0).collect();
        let (low, high) =
            (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
        let high = high.max(low * 2.0);
        Some(PlotScale { low: round_down(low), high: round_up(high), logarithmic: true })
    }

    pub fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// A scale from 0 to at least `high`.
    pub fn from_zero(high: f64) -> PlotScale {
        PlotScale::linear(0.0, if drawable(high) { high.max(0.0) } else { 1.0 })
    }

    fn linear(low: f64, high: f64) -> PlotScale {
        // Near 0 the axis begins at 0, so that lengths compare.
        let low = if low > 0.0 && low < high / 2.0 { 0.0 } else { low };
        let (low, high) = match high - low > (high.abs() + low.abs()) * 1e-9 {
            true => (low, high),
            false => (low - widening(low), high + widening(high)),
        };
        let step = step(high - low);
        PlotScale { low: (low / step).floor() * step, high: (high / step).ceil() * step, logarithmic: false }
    }

    pub fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// The place of a value, from 0 to 1; values outside are at the edge.
    pub fn share(&self, value: f64) -> f64 {
        let on = |value: f64| if self.logarithmic { libm::log(value.max(self.low)) } else { value };
        let share = (on(value) - on(self.low)) / (on(self.high) - on(self.low));
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Round values, from low to high.
    pub fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            let step = step(self.high - self.low);
            let first = (self.low / step).round();
            let count = ((self.high - self.low) / step).round().clamp(1.0, 20.0) as u64;
            return (0..=count).map(|at| tidy((first + at as f64) * step)).collect();
        }
        let (from, to) = (libm::log10(self.low).floor() as i32, libm::log10(self.high).ceil() as i32);
        let within = |value: &f64| *value >= self.low * 0.999 && *value <= self.high * 1.001;
        let of = |parts: &[f64]| -> Vec<f64> {
            let all =
                (from..=to).flat_map(|power| parts.iter().map(move |part| tidy(part * 10f64.powi(power))));
            all.filter(within).collect()
        };
        let all = of(&[1.0, 2.0, 5.0]);
        if all.len() <= MOST {
            return all;
        }
        let tens = of(&[1.0]);
        tens.iter().copied().step_by(tens.len().div_ceil(MOST).max(1)).collect()
    }
}

/// How far a scale of one value reaches to either side.
fn widening(value: f64) -> f64 {
    if value == 0.0 { 1.0 } else { value.abs() / 2.0 }
}

/// A round step: at most [`MOST`] of them in `span`.
fn step(span: f64) -> f64 {
    let rough = span / (MOST - 1) as f64;
    let power = 10f64.powi(libm::log10(rough).floor() as i32);
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// The next of 1, 2, 5 times a power of ten at or below `value`.
fn round_down(value: f64) -> f64 {
    let power = 10f64.powi(libm::log10(value).floor() as i32);
    let part = [5.0, 2.0].into_iter().find(|part| part * power <= value * 1.000_001).unwrap_or(1.0);
    tidy(part * power)
}

/// The next of 1, 2, 5 times a power of ten at or above `value`.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powi(libm::log10(value).floor() as i32);
    let part = [1.0, 2.0, 5.0].into_iter().find(|part| part * power >= value * 0.999_999).unwrap_or(10.0);
    tidy(part * power)
}

/// A value without the rounding errors of its steps.
fn tidy(value: f64) -> f64 {
    format!("{value:.9e}").parse().unwrap_or(value)
}

pub fn tick(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size == 0.0 => "0".to_owned(),
        _ if (1e-4..1e7).contains(&size) => plain(value),
        _ => format!("{value:e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_is_on_the_scale_and_ticks_are_few_and_ordered(
            values in prop::collection::vec((-12.0..12.0f64, any::<bool>()), 1..20), signed in any::<bool>(),
        ) {
            let number = |(power, negative): &(f64, bool)| {
                let size = libm::pow(10.0, *power);
                if signed && *negative { -size } else { size }
            };
            let values: Vec<f64> = values.iter().map(number).collect();
            let scale = PlotScale::over(values.iter().copied()).unwrap();
            let ticks = scale.ticks();
            prop_assert!(!ticks.is_empty() && ticks.len() <= MOST + 2, "{ticks:?}");
            prop_assert!(ticks.windows(2).all(|two| two[0] < two[1]), "{ticks:?}");
            for two in values.windows(2) {
                let shares = [scale.share(two[0]), scale.share(two[1])];
                prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
                prop_assert!((two[0] <= two[1]) == (shares[0] <= shares[1]) || (shares[0] - shares[1]).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn ends_and_ticks_are_round() {
        let ticks = |values: &[f64]| PlotScale::over(values.iter().copied()).map(|scale| scale.ticks());
        assert_eq!(ticks(&[3.0, 97.0]), Some(vec![2.0, 5.0, 10.0, 20.0, 50.0, 100.0]));
        assert_eq!(ticks(&[0.0, 97.0]), Some(vec![0.0, 20.0, 40.0, 60.0, 80.0, 100.0]));
        assert_eq!(ticks(&[1.0, 5000.0]), Some(vec![1.0, 10.0, 100.0, 1000.0]));
        assert_eq!(ticks(&[f64::NAN, f64::INFINITY]), None);
        assert!(
            PlotScale::over([7.0].into_iter()).is_some_and(|scale| (0.2..0.8).contains(&scale.share(7.0)))
        );
        assert_eq!(
            ["0", "0.25", "2,000", "1e7"],
            [0.0, 0.25, 2000.0, 1e7].map(tick).each_ref().map(String::as_str)
        );
    }
}
