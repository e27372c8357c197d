//! What a question looks at besides pace: only that is computed, and only that keeps candidates alive.

use super::question::Problem;
use crate::spec::objective::Metric;

/// What the question looks at besides pace.
#[derive(Clone, Copy, Debug)]
pub struct RequiredMetrics {
    /// What devices draw, be it for its own sake or because it is paid for.
    pub energy: bool,
    /// Power itself: more requests draw more in the prompt pool, so a higher rate is not simply better.
    pub power: bool,
    /// The longest context that fits.
    pub context: bool,
}

impl RequiredMetrics {
    /// What `question` looks at.
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

    /// Nothing besides pace.
    pub fn pace_alone(&self) -> bool {
        !self.energy && !self.power && !self.context
    }
}
