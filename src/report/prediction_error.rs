//! Draws of the error of a prediction: measured over predicted, from the quantiles of an interval.

use crate::spec::percentile::Percentile;

/// Independent standard normal errors of TTFT and of the decode speed, by the method of Box and Muller (1958).
#[derive(Clone, Copy, Debug)]
pub struct PlanErrors {
    radius: f64,
    angle: f64,
}

impl PlanErrors {
    /// The next draw.
    pub fn drawn(random: &mut fastrand::Rng) -> PlanErrors {
        PlanErrors {
            radius: (-2.0 * libm::log(1.0 - random.f64())).sqrt(),
            angle: std::f64::consts::TAU * random.f64(),
        }
    }

    /// That of TTFT.
    pub fn ttft(self) -> f64 {
        self.radius * libm::cos(self.angle)
    }

    /// That of the decode speed.
    pub fn decode(self) -> f64 {
        self.radius * libm::sin(self.angle)
    }
}

/// Measured over predicted: log-normal on both sides of the median, with the p10 and the p90 of an interval.
#[derive(Clone, Copy, Debug)]
pub struct ErrorCurve {
    middle: f64,
    /// Logarithms per standard deviation, below and above the median.
    slopes: [f64; 2],
}

impl ErrorCurve {
    /// The curve through these quantiles.
    pub fn new([low, middle, high]: [f64; 3]) -> ErrorCurve {
        let slope = |end: f64| libm::log(end) / Percentile::P90.deviations();
        ErrorCurve { middle, slopes: [slope(middle / low), slope(high / middle)] }
    }

    /// The ratio at `error` standard deviations.
    pub fn at(&self, error: f64) -> f64 {
        self.middle * libm::exp(self.slopes[usize::from(error > 0.0)] * error)
    }

    /// The probability of a ratio above `ratio`.
    pub fn above(&self, ratio: f64) -> f64 {
        let distance = libm::log(ratio / self.middle);
        let slope = self.slopes[usize::from(distance > 0.0)];
        match slope > 0.0 {
            true => 0.5 * libm::erfc(distance / slope * std::f64::consts::FRAC_1_SQRT_2),
            false => f64::from(u8::from(distance < 0.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_quantiles_of_the_interval() {
        let ends = [0.7, 0.95, 1.6];
        let z = Percentile::P90.deviations();
        for (error, expected) in [(-z, 0.7), (0.0, 0.95), (z, 1.6)] {
            assert!((ErrorCurve::new(ends).at(error) - expected).abs() < 1e-12);
        }
        // The normal quantile has five digits.
        for (ratio, expected) in [(0.7, 0.9), (0.95, 0.5), (1.6, 0.1)] {
            assert!((ErrorCurve::new(ends).above(ratio) - expected).abs() < 2e-5);
        }
        let point = ErrorCurve::new([1.0; 3]);
        assert_eq!([point.above(0.9), point.above(1.1)], [1.0, 0.0]);
        let mut random = fastrand::Rng::with_seed(7);
        let drawn: Vec<PlanErrors> = (0..40_000).map(|_| PlanErrors::drawn(&mut random)).collect();
        let share = |below: f64| drawn.iter().filter(|one| one.decode() < below).count() as f64 / 40_000.0;
        assert!(
            (share(-z) - 0.1).abs() < 0.01
                && (share(0.0) - 0.5).abs() < 0.01
                && (share(z) - 0.9).abs() < 0.01
        );
    }
}
