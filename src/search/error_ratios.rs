//! Metrics with the errors of a prediction.

use super::point::{Point, place};
use crate::spec::nearness::Interval;
use crate::spec::objective::Metric;

/// Measured over predicted figures of a deployment.
#[derive(Clone, Copy, Debug)]
pub struct ErrorRatios {
    pub ttft: f64,
    pub tpot: f64,
    /// Of the throughput.
    pub output: f64,
}

/// Metrics that errors change.
const WITH_ERRORS: [Metric; 8] = [
    Metric::Ttft,
    Metric::Tpot,
    Metric::E2e,
    Metric::OutputTokSPerUser,
    Metric::OutputTokS,
    Metric::OutputTokSPerDevice,
    Metric::TokPerJoule,
    Metric::UsdPerMtok,
];

impl ErrorRatios {
    /// The predictions are exact.
    pub const NONE: ErrorRatios = ErrorRatios { ttft: 1.0, tpot: 1.0, output: 1.0 };

    /// The worse end of an 80 % interval.
    pub fn worse_end(interval: &Interval) -> ErrorRatios {
        ErrorRatios { ttft: interval.ttft[2], tpot: interval.tpot[2], output: interval.throughput[0] }
    }

    /// A metric of `point` with these errors. A slower decode is a lower output rate, and a higher cost per token.
    pub fn metric(self, point: &Point, metric: Metric) -> f64 {
        let of = |metric: Metric| point[place(metric)];
        let value = of(metric);
        match metric {
            Metric::Ttft => value * self.ttft,
            Metric::Tpot => value * self.tpot,
            Metric::E2e => of(Metric::Ttft) * self.ttft + (value - of(Metric::Ttft)) * self.tpot,
            Metric::OutputTokSPerUser => value / self.tpot,
            Metric::OutputTokS | Metric::OutputTokSPerDevice | Metric::TokPerJoule => value * self.output,
            Metric::UsdPerMtok => value / self.output,
            _ => value,
        }
    }

    /// All metrics of `point` with these errors.
    pub fn at(self, point: &Point) -> Point {
        let mut found = *point;
        for metric in WITH_ERRORS {
            found[place(metric)] = self.metric(point, metric);
        }
        found
    }
}
