//! Draws of the error of a prediction.

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

    /// That of TTFT, and that of the decode speed.
    pub fn each(self) -> [f64; 2] {
        [self.ttft(), self.decode()]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::percentile::Percentile;

    #[test]
    fn draws_are_normal() {
        let z = Percentile::P90.deviations();
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
