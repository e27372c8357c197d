//! Waiting times under random (Poisson) arrivals: prefill queues and concurrency percentiles.
//!
//! Works on rates and service times alone.

use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::{COUNT, SECOND};
use crate::spec::percentile::Percentile;

/// The percentile at which latencies are reported.
#[derive(Clone, Copy, Debug)]
pub struct Tail<T> {
    pub percentile: Percentile,
    /// The percentile as a fraction.
    pub part: T,
    /// Its standard normal quantile.
    pub deviations: T,
}

/// Utilisation is capped here, since the queue diverges at 1.
const FULL: f64 = 0.999;

/// Mean wait for a server with utilisation `load` and service time `service`.
pub fn queue<N: Num>(service: Qty<N>, load: Qty<N>) -> Qty<N> {
    (service * load / (2.0 * (Qty::from(1.0) - load))).is(&QUEUE)
}

/// The mean wait under random arrivals at any utilisation.
pub fn mean_wait<N: Num>(service: Qty<N>, load: Qty<N>) -> Qty<N> {
    queue(service, load.min(Qty::from(FULL)))
}

/// The wait at percentile `part` under random arrivals. Conservative by up to 20 % at light loads, as waits with
/// constant service times fall off faster than exponentially.
pub fn wait<N: Num>(service: Qty<N>, load: Qty<N>, part: Qty<N>) -> Qty<N> {
    let load = load.min(Qty::from(FULL));
    let rest = Qty::from(1.0) - part;
    // If fewer requests wait at all than may exceed the percentile, the wait is zero.
    let times = (load / rest).max(Qty::from(1.0)).ln();
    (queue(service, load) / load * times).is(&WAIT)
}

impl<N: Num> Tail<Qty<N>> {
    /// The concurrency, averaged over the life of one request, that the fraction `part` of requests does not exceed at
    /// mean concurrency `mean`, which is at least 1.
    ///
    /// The concurrency is Poisson, and its covariance decreases to zero over the life of a request. The variance of
    /// the average over a life is two thirds of the variance at one moment. The request itself is always there: only
    /// the others vary.
    pub fn crowd(&self, mean: Qty<N>) -> Qty<N> {
        let spread = ((mean - 1.0) * 2.0 / 3.0).pow(Qty::from(0.5));
        (mean + (self.deviations * spread).ceil()).is(&CROWD)
    }
}

crate::formulas! {
    QUEUE {
        symbol: "prefill_queue",
        unit: SECOND,
        why: "random arrivals with equal service times wait load / (2 (1 - load)) service times on average",
        cite: "Pollaczek 1930, Khinchine 1932: M/D/1",
    }
    CROWD {
        symbol: "crowded_concurrency",
        unit: COUNT,
        why: "the other requests are Poisson; averaged over the life of a request, their variance is two thirds of that at one moment",
        cite: "Eick, Massey, Whitt 1993: M/D/infinity",
    }
    WAIT {
        symbol: "prompt_wait",
        unit: SECOND,
        why: "the fraction load of requests waits at all; their waits fall off exponentially about the mean",
        cite: "Kingman 1961 (heavy traffic); exact for M/M/1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(load: f64, part: f64) -> f64 {
        wait(Qty::<f64>::from(2.0), Qty::from(load), Qty::from(part)).value()
    }

    /// Waits for a server that takes 2 s each, simulated by Lindley's recursion.
    fn simulated(load: f64) -> Vec<f64> {
        let (mut state, mut wait, mut waits) = (88_172_645_463_325_252u64, 0.0f64, vec![]);
        for _ in 0..400_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let uniform = (state >> 11) as f64 / (1u64 << 53) as f64;
            wait = (wait + 2.0 + libm::log(1.0 - uniform) * 2.0 / load).max(0.0);
            waits.push(wait);
        }
        waits.sort_by(f64::total_cmp);
        waits
    }

    #[test]
    fn waits_are_those_of_a_simulated_queue() {
        for load in [0.5, 0.8, 0.9] {
            let waits = simulated(load);
            let mean = waits.iter().sum::<f64>() / waits.len() as f64;
            let estimate = queue(Qty::<f64>::from(2.0), Qty::from(load)).value();
            assert!((mean / estimate - 1.0).abs() < 0.06, "mean at {load}: {mean} for {estimate}");
            for part in [0.9, 0.95, 0.99] {
                let found = waits[(waits.len() as f64 * part) as usize];
                let estimate = of(load, part);
                // Waits with constant service times fall off faster than exponentially, so the prediction is
                // conservative.
                let safe = 0.95 * found - 0.1 <= estimate && estimate <= 1.2 * found + 0.3;
                assert!(safe, "{part} at {load}: {found} for {estimate}");
            }
        }
    }

    #[test]
    fn who_need_not_wait_waits_for_nothing() {
        assert_eq!(of(0.05, 0.9), 0.0);
        assert!(of(0.999, 0.5).is_finite() && of(1.5, 0.5).is_finite());
    }

    #[test]
    fn the_crowd_of_a_percentile_follows_the_normal_quantile() {
        let crowd = |percentile: Percentile, mean: f64| {
            let [part, deviations] = [percentile.part(), percentile.deviations()].map(Qty::<f64>::from);
            Tail { percentile, part, deviations }.crowd(Qty::from(mean)).value()
        };
        assert_eq!((crowd(Percentile::P50, 600.0), crowd(Percentile::P99, 600.0)), (600.0, 647.0));
        assert_eq!(crowd(Percentile::P99, 1.0), 1.0);
    }
}
