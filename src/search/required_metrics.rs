//! The metrics that a problem requires in addition to latency and throughput. Only these are computed and compared.

use super::question::Problem;
use crate::spec::objective::Metric;

/// Required metrics in addition to latency and throughput.
#[derive(Clone, Copy, Debug)]
pub struct RequiredMetrics {
    /// Energy, as a metric or as part of the bill.
    pub energy: bool,
    /// Power itself: a higher rate draws more power in the prefill pool, so it is not always better.
    pub power: bool,
    /// Longest context that fits.
    pub context: bool,
}

impl RequiredMetrics {
    /// The metrics that `question` requires.
    pub fn of(question: &Problem) -> RequiredMetrics {
        let at =
            |metric| question.axes.contains(&metric) || question.aims.iter().any(|aim| aim.metric == metric);
        let paid = question.idle(1).owned && at(Metric::UsdPerMtok);
        let energy = at(Metric::Watts) || at(Metric::TokPerJoule) || paid;
        RequiredMetrics {
            energy: question.stated.draw.is_some() && energy,
            power: at(Metric::Watts),
            context: at(Metric::MaxContext),
        }
    }

    /// No metric in addition to latency and throughput.
    pub fn pace_alone(&self) -> bool {
        !self.energy && !self.power && !self.context
    }
}
