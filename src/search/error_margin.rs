//! The prediction error that a deployment's SLOs must allow for at the chosen confidence. Metrics never include it.

use super::problem::Problem;
use crate::spec::nearness::Interval;
use crate::spec::objective::Metric;
use crate::spec::percentile::Confidence;

/// Upper ends of measured / predicted TTFT and TPOT; 1 where the SLOs apply to the prediction itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorMargin {
    pub ttft: f64,
    /// Of the time after the first token.
    pub tpot: f64,
}

impl ErrorMargin {
    /// The SLOs apply to the prediction itself.
    pub const NONE: ErrorMargin = ErrorMargin { ttft: 1.0, tpot: 1.0 };

    /// One measurement in ten is above.
    pub fn p90(interval: &Interval) -> ErrorMargin {
        ErrorMargin { ttft: interval.ttft[2], tpot: interval.tpot[2] }
    }

    /// Latencies with this error. E2E is TTFT and the time after it.
    #[inline(always)]
    pub fn latencies(self, ttft: f64, tpot: f64, e2e: f64) -> [(Metric, f64); 3] {
        let whole = if self == ErrorMargin::NONE { e2e } else { ttft * self.ttft + (e2e - ttft) * self.tpot };
        [(Metric::Ttft, ttft * self.ttft), (Metric::Tpot, tpot * self.tpot), (Metric::E2e, whole)]
    }
}

impl Problem {
    /// The margin of deployments in a format pair, disaggregated or not, with a number of requests per attention rank. Never
    /// less with more requests.
    #[inline(always)]
    pub fn margin(&self, formats: usize, split: bool, requests: u64) -> ErrorMargin {
        // Replicas of several shapes have one margin, whatever their loads.
        let requests = if self.custom_router { u64::MAX } else { requests };
        match self.confidence {
            Confidence::P50 => ErrorMargin::NONE,
            Confidence::P90 => {
                self.formats[formats].interval(split, requests).map_or(ErrorMargin::NONE, ErrorMargin::p90)
            }
        }
    }

    pub fn least_margin(&self) -> ErrorMargin {
        let all = (0..self.formats.len()).flat_map(|at| [false, true].map(|split| self.margin(at, split, 0)));
        let least = |a: ErrorMargin, b: ErrorMargin| ErrorMargin {
            ttft: a.ttft.min(b.ttft),
            tpot: a.tpot.min(b.tpot),
        };
        all.reduce(least).unwrap_or(ErrorMargin::NONE)
    }

    /// The TPOT SLO of predictions with this margin; infinite without one.
    pub fn tpot_limit(&self, margin: ErrorMargin) -> f64 {
        self.limits.tpot.map_or(f64::INFINITY, |limit| limit / margin.tpot)
    }
}
