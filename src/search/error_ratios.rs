//! Metrics with the errors of a prediction.

use super::point::{Point, place};
use super::problem::{Problem, Traffic};
use crate::spec::nearness::Interval;
use crate::spec::objective::Metric;
use crate::spec::odds::ErrorCurve;

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

/// The errors of a plan's predictions, by standard deviations of TTFT and of the decode speed.
pub struct ErrorCurves {
    ttft: ErrorCurve,
    tpot: ErrorCurve,
    /// Of the throughput; none where traffic gives it.
    output: Option<ErrorCurve>,
}

impl ErrorCurves {
    pub fn of(interval: &Interval, problem: &Problem) -> ErrorCurves {
        let given = matches!(problem.traffic, Traffic::Rate(_));
        ErrorCurves {
            ttft: ErrorCurve::new(interval.ttft),
            tpot: ErrorCurve::new(interval.tpot),
            output: (!given).then(|| ErrorCurve::new(interval.throughput)),
        }
    }

    /// Of TTFT at this error.
    pub fn ttft(&self, error: f64) -> f64 {
        self.ttft.at(error)
    }

    /// Of TPOT at this error of the decode speed.
    pub fn tpot(&self, error: f64) -> f64 {
        self.tpot.at(error)
    }

    /// Of the throughput at this error of the decode speed: slower steps give less.
    pub fn output(&self, error: f64) -> f64 {
        self.output.map_or(1.0, |curve| curve.at(-error))
    }

    /// All of them.
    pub fn at(&self, [ttft, decode]: [f64; 2]) -> ErrorRatios {
        ErrorRatios { ttft: self.ttft(ttft), tpot: self.tpot(decode), output: self.output(decode) }
    }
}
