//! A simulation that is set up: it runs on any clock, with the same traffic each time.

use std::collections::BTreeMap;

use super::priced_plan::PricedPlan;
use super::simulate::{Measured, SimulateRequest};
use crate::plan::locality::gcd;
use crate::report::simulated_records::SimulatedRequest;
use crate::traffic::outcome::{RequestOutcome, RequestRecord};
use crate::traffic::run::{DeploymentSettings, PoolSettings, RunListener, RunTotals, run_heard};
use crate::traffic::source::DrawnTraffic;
use crate::traffic::step_load::DeploymentClock;

/// How often a deployment has its least proportion of replicas of its pools.
pub(super) fn units(pools: &[PoolSettings]) -> u64 {
    pools.iter().fold(0, |units, pool| gcd(units, pool.replicas as u64)).max(1)
}

/// Takes the records of a run, one after the other.
pub type RecordSink<'a> = &'a mut dyn FnMut(&SimulatedRequest);

/// The traffic of a request of `simulate`, and the replicas that it reaches.
#[derive(Clone, Copy)]
pub(super) struct PreparedRun<'a> {
    pub(super) request: &'a SimulateRequest,
    pub(super) plan: &'a PricedPlan,
    pub(super) settings: &'a DeploymentSettings,
    pub(super) traffic: &'a DrawnTraffic,
    pub(super) stop: &'a (dyn Fn() -> bool + Sync),
}

impl PreparedRun<'_> {
    /// One run, in which a request has passed the front end after `front_end_s` seconds; `each` gets the counted requests
    /// in the order of their numbers.
    pub(super) fn run<'e>(
        &self,
        clocks: &impl DeploymentClock,
        front_end_s: f64,
        each: Option<RecordSink<'e>>,
    ) -> (RunTotals, Measured) {
        let warm_up = self.request.traffic.warm_up(self.traffic);
        let source = self.request.traffic.source(self.traffic, &self.request.scenario);
        let source = source.within(self.plan.window());
        let records = each.map(|each| OrderedRecords { next: warm_up, waiting: BTreeMap::new(), each });
        let mut counted =
            CountedRequests { measured: Measured::of(warm_up, self.plan.limits()), front_end_s, records };
        let source = source.pausing(front_end_s);
        let totals = run_heard(self.settings, source, clocks, &mut counted, &|| (self.stop)());
        if let Some(records) = counted.records {
            records.finish();
        }
        (totals, counted.measured)
    }
}

/// The requests of a run that figures count.
struct CountedRequests<'e> {
    measured: Measured,
    front_end_s: f64,
    records: Option<OrderedRecords<'e>>,
}

impl RunListener for CountedRequests<'_> {
    fn answered(&mut self, one: &RequestRecord) {
        let seen = one.at_client(self.front_end_s);
        self.measured.count(&seen);
        if let Some(records) = &mut self.records {
            records.add(SimulatedRequest::answered(&seen));
        }
    }

    fn unanswered(&mut self, one: &RequestRecord, outcome: RequestOutcome) {
        if let Some(records) = &mut self.records {
            records.add(SimulatedRequest::unanswered(one, outcome));
        }
    }
}

/// Records in the order of their numbers, so that a trace of them has requests of equal times in their order: those that
/// overtook an earlier request wait for it, and no others are kept.
struct OrderedRecords<'e> {
    next: u64,
    waiting: BTreeMap<u64, SimulatedRequest>,
    each: RecordSink<'e>,
}

impl OrderedRecords<'_> {
    fn add(&mut self, one: SimulatedRequest) {
        // Those before are of the warm-up.
        if one.id < self.next {
            return;
        }
        self.waiting.insert(one.id, one);
        while let Some(one) = self.waiting.remove(&self.next) {
            (self.each)(&one);
            self.next += 1;
        }
    }

    /// The run has ended, perhaps early.
    fn finish(self) {
        self.waiting.values().for_each(self.each);
    }
}
