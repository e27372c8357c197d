//! Metrics of a candidate as plain numbers, and their comparison.

use std::cmp::Ordering;

use crate::quantity::num::Qty;
use crate::quantity::tolerance::{ROUNDING, TIED_BITS};
use crate::serving::metrics::Metrics;
use crate::spec::metric_table::metric_table;
use crate::spec::objective::{Direction, Metric, ObjectiveTerm, SEARCHED_METRICS};

pub const WIDTH: usize = SEARCHED_METRICS;

/// Every searched metric in base units, by its number; NaN where unknown.
pub type Point = [f64; WIDTH];

/// Index of a searched `metric` in a point.
#[inline(always)]
pub fn place(metric: Metric) -> usize {
    metric as usize
}

/// Makes [`point`] from the rows of the table.
macro_rules! points {
    ($($metric:ident { $($row:tt)* })*) => {
        /// The metrics of an evaluation as a point.
        #[inline(always)]
        pub fn point(metrics: &Metrics<Qty<f64>>) -> Point {
            let mut point = [f64::NAN; WIDTH];
            $(
                if let Some(number) = point.get_mut(place(Metric::$metric)) {
                    *number = metrics.get(Metric::$metric).map_or(f64::NAN, Qty::value);
                }
            )*
            point
        }
    };
}

metric_table!(points);

/// The value of `metric` with its sign chosen so that lower is better; unknown values are worst. Rounded to eleven
/// digits, so that rounding errors do not break ties.
#[inline(always)]
pub fn cost(point: &Point, metric: Metric, direction: Direction) -> f64 {
    cost_of(point[place(metric)], direction)
}

/// The same in the metric's own direction.
#[inline(always)]
pub fn rank(point: &Point, metric: Metric) -> f64 {
    cost(point, metric, metric.entry().direction)
}

/// The same of one value.
#[inline(always)]
pub fn cost_of(value: f64, direction: Direction) -> f64 {
    match direction {
        _ if value.is_nan() => f64::INFINITY,
        Direction::Minimize => eleven_digits(value),
        Direction::Maximize => eleven_digits(-value),
    }
}

/// Rounds to the bits that decide a comparison.
#[inline(always)]
fn eleven_digits(value: f64) -> f64 {
    const DROPPED: u64 = 1 << TIED_BITS;
    f64::from_bits((value.to_bits() + DROPPED / 2) & !(DROPPED - 1))
}

/// Whether `a` is before `b` under `objective`; the first term that differs decides.
#[inline(always)]
pub fn before(a: &Point, b: &Point, objective: &[ObjectiveTerm]) -> bool {
    compare(a, b, objective).is_lt()
}

/// Orders two points, better first; the first of `objective` that differs decides.
#[inline(always)]
pub fn compare(a: &Point, b: &Point, objective: &[ObjectiveTerm]) -> Ordering {
    for term in objective {
        let (x, y) = (cost(a, term.metric, term.direction), cost(b, term.metric, term.direction));
        if x != y {
            return x.total_cmp(&y);
        }
    }
    Ordering::Equal
}

/// Cost of devices independent of load.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    /// Minimum power in W; NaN where unknown.
    pub watts: f64,
    /// Energy is billed in addition to the devices.
    pub owned: bool,
}

/// Upper bound for any load between two loads of one instance configuration: latencies of the lower load, `gain`
/// times its throughput (at most that of the higher concurrency at the latency of the lower load), energy of the lower load. A request takes at most
/// `longest` seconds.
///
/// Requires that neither latencies nor the energy of a token step beyond idle power decrease with load; tests check this
/// property of `serving`.
#[inline(always)]
pub fn ideal(low: &Point, gain: f64, idle: f64, longest: f64) -> Point {
    let mut best = *low;
    best[place(Metric::OutputTokS)] *= gain;
    best[place(Metric::OutputTokSPerDevice)] *= gain;
    best[place(Metric::UsdPerMtok)] /= gain;
    let watts = best[place(Metric::Watts)];
    if !watts.is_nan() {
        let busy = (watts - idle).max(0.0) * low[place(Metric::E2e)] / longest;
        best[place(Metric::Watts)] = (idle + busy) * (1.0 - ROUNDING);
        best[place(Metric::TokPerJoule)] *= gain * (1.0 + ROUNDING);
    }
    best
}
