//! The metrics that a problem requires in addition to latency and throughput. Only these are computed and compared.

use super::problem::Problem;
use crate::spec::objective::{Metric, MetricInput};

/// Required metrics in addition to latency and throughput.
#[derive(Clone, Copy, Debug)]
pub struct RequiredMetrics {
    /// Energy, as a metric or as part of the bill.
    pub energy: bool,
    /// Power itself: a higher rate draws more power in the prefill pool, so it is not always better.
    pub power: bool,
    /// Longest context that fits.
    pub context: bool,
    /// TPOT itself, or the speed that a user sees: a heavier load is worse, though requests wait less for it.
    pub tpot: bool,
    /// TTFT in a closed loop: requests that do not decode wait for their first token, so that a slower decode shortens it.
    pub queue: bool,
}

impl RequiredMetrics {
    pub fn of(problem: &Problem) -> RequiredMetrics {
        let wanted = || problem.axes.iter().copied().chain(problem.objective.iter().map(|term| term.metric));
        let at = |metric| wanted().any(|one| one == metric);
        let needs = |input| wanted().any(|metric| metric.entry().needs == input);
        // The bill of an owned device has its energy in it.
        let paid = problem.idle(1).owned && needs(MetricInput::Price);
        let energy = needs(MetricInput::Power) || paid;
        RequiredMetrics {
            energy: problem.workload.power_draw.is_some() && energy,
            power: at(Metric::Watts),
            context: at(Metric::MaxContext),
            tpot: at(Metric::Tpot) || at(Metric::OutputTokSPerUser),
            queue: problem.traffic.in_flight().is_some()
                && (problem.limits.ttft.is_some() || at(Metric::Ttft)),
        }
    }

    /// Whether a lower TPOT and a higher rate are never worse, and nothing else counts.
    pub fn rate_only(&self) -> bool {
        !self.energy && !self.power && !self.context && !self.queue
    }
}
