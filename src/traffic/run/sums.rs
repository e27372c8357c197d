//! Sums over a run: how long replicas were held, and how far they were in use.

use super::{DeploymentClock, RequestSource, RunTotals, TrafficRun};

impl<C: DeploymentClock> TrafficRun<'_, C> {
    /// Counts the use of a replica by its steps, until `time_s` at most.
    pub(super) fn note_use(&mut self, replica: usize, time_s: f64) {
        if let Some(steps) = self.replicas[replica].in_use(time_s) {
            self.ledger.totals.uses[self.pools[replica]].add(steps);
        }
    }

    /// The totals at the end of a run of `source`.
    pub(super) fn ended(self, source: &RequestSource) -> RunTotals {
        let (mut totals, states, now_s) = (self.ledger.totals, self.upkeep.states, self.upkeep.now_s);
        totals.sessions = source.counts();
        totals.lasted_s = now_s;
        totals.replica_seconds = states.held_s(now_s);
        for (replica, &pool) in self.pools.iter().enumerate() {
            totals.uses[pool].held_s += states.held_by_s(replica, now_s);
        }
        totals
    }
}
