//! The metrics that a problem requires in addition to latency and throughput. Only these are computed and compared.

use super::problem::Problem;
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
    pub fn of(problem: &Problem) -> RequiredMetrics {
        let at =
            |metric| problem.axes.contains(&metric) || problem.aims.iter().any(|aim| aim.metric == metric);
        let paid = problem.idle(1).owned && at(Metric::UsdPerMtok);
        let energy = at(Metric::Watts) || at(Metric::TokPerJoule) || paid;
        RequiredMetrics {
            energy: problem.workload.power_draw.is_some() && energy,
            power: at(Metric::Watts),
            context: at(Metric::MaxContext),
        }
    }

    /// No metric in addition to latency and throughput.
    pub fn rate_only(&self) -> bool {
        !self.energy && !self.power && !self.context
    }
}
