//! `sweep`: the metrics of every combination of varied keys.
//!
//! Points are evaluated in parallel, in parts of fixed size, and handed on in order: memory does not grow with their
//! number.

pub mod grid;
pub mod merge;
pub(super) mod point;
mod shared;

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::simulate::SimulatedTraffic;
use super::{RequestControl, posed, value};
use crate::report::simulated_point::SimulatedPoint;
use crate::report::sweep::{PointOutcome, ShardNumber, SweepReport, SweepRow};
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use grid::SweepGrid;
use point::PointEvaluator;

/// A request of `sweep`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SweepRequest {
    /// The problem; with a `deployment`, each point is an estimate of it, else the best deployment.
    pub scenario: Scenario,
    /// Varied keys as `KEY=VALUES`: `tp=1,2,4,8`, `isl=1k..64k*2`, `rate=1..10+1`.
    pub vary: Vec<String>,
    /// A part of the points; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardNumber>,
    /// Traffic under which every point is also simulated, as by `simulate` with this traffic; none is if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<SimulatedTraffic>,
}

/// Points that are evaluated before any of them is handed on: of given deployments, and of searches.
const PARTS: [usize; 2] = [512, 16];

/// A sweep whose keys and names are checked.
pub struct PreparedSweep<'a> {
    grid: SweepGrid,
    shard: Option<ShardNumber>,
    traffic: Option<SimulatedTraffic>,
    evaluator: PointEvaluator<'a>,
    fingerprint: String,
}

impl<'a> PreparedSweep<'a> {
    /// Reads the varied keys and checks the names of models, hardware and runtimes.
    ///
    /// # Errors
    /// A key, a value, a name or the shard is faulty.
    pub fn new(catalog: &'a Catalog, request: &SweepRequest) -> Result<PreparedSweep<'a>, Error> {
        let grid = SweepGrid::new(&request.scenario, &request.vary)?;
        request.shard.map_or(Ok(()), ShardNumber::check)?;
        let traffic = request.traffic.as_ref().map(SimulatedTraffic::with_trace).transpose()?;
        traffic.as_ref().map_or(Ok(()), SimulatedTraffic::check)?;
        let evaluator = PointEvaluator::new(catalog);
        grid.named().try_for_each(|scenario| evaluator.check_names(&scenario?))?;
        let resolved =
            |scenario: &Scenario, part: &mut dyn FnMut(&dyn fmt::Debug)| evaluator.hand_on(scenario, part);
        let fingerprint = grid.fingerprint(traffic.as_ref(), resolved)?;
        Ok(PreparedSweep { grid, shard: request.shard, traffic, evaluator, fingerprint })
    }

    /// Fingerprint of the resolved problem, the varied keys, the traffic and the version: rows of one fingerprint belong together.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    pub fn head(&self) -> SweepReport {
        SweepReport {
            sweep: self.fingerprint.clone(),
            scenario: self.grid.scenario().clone(),
            vary: self.grid.axes().to_vec(),
            points: self.grid.points(),
            shard: self.shard,
            traffic: self.traffic.as_ref().map(value),
            rows: vec![],
        }
    }

    pub fn count(&self) -> u64 {
        let ShardNumber { number, of } = self.shard.unwrap_or(ShardNumber { number: 1, of: 1 });
        (self.grid.points() + of - number) / of
    }

    /// Number of the point in the place `at` of the shard.
    pub fn point(&self, at: u64) -> u64 {
        let ShardNumber { number, of } = self.shard.unwrap_or(ShardNumber { number: 1, of: 1 });
        at * of + number - 1
    }

    /// Hands the rows from place `first` of the shard on to `write`, in order. Returns whether all are; a stop of
    /// `control` ends it early, after whole rows.
    pub fn rows<E>(
        &self,
        first: u64,
        control: &RequestControl,
        mut write: impl FnMut(Vec<SweepRow>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let (all, done) = (self.count(), AtomicUsize::new(first as usize));
        // Simulations take as long as searches.
        let part = PARTS[usize::from(!self.grid.is_pinned() || self.traffic.is_some())];
        let row = |at: u64| {
            let point = self.point(at);
            let outcome = self.outcome(point, control);
            // A point that a stop cut short is no point.
            let finished = !(control.search.stop)();
            (control.search.progress)(done.fetch_add(1, Relaxed) + 1, all as usize);
            finished.then(|| self.row(point, outcome))
        };
        let mut at = first;
        while at < all {
            let next = all.min(at + part as u64);
            let numbers: Vec<u64> = (at..next).collect();
            let found: Vec<Option<SweepRow>> = numbers.into_par_iter().with_max_len(1).map(row).collect();
            let rows: Vec<SweepRow> = found.into_iter().map_while(|row| row).collect();
            let whole = rows.len() as u64 == next - at;
            write(rows)?;
            if !whole {
                return Ok(false);
            }
            at = next;
        }
        Ok(true)
    }

    /// The outcome of a point, and the same under the traffic of the sweep.
    fn outcome(&self, point: u64, control: &RequestControl) -> (PointOutcome, Option<SimulatedPoint>) {
        match self.grid.at(point) {
            Ok(scenario) => {
                let outcome = self.evaluator.outcome(&scenario, control);
                let under = |traffic| self.evaluator.simulated(&scenario, traffic, &outcome, control);
                let simulated = self.traffic.as_ref().map(under);
                (outcome, simulated)
            }
            Err(fault) => {
                let outcome = point::invalid(&fault);
                let reason = outcome.reason.clone().unwrap_or_default();
                (outcome, self.traffic.as_ref().map(|_| SimulatedPoint::without(reason)))
            }
        }
    }

    fn row(&self, point: u64, (outcome, simulated): (PointOutcome, Option<SimulatedPoint>)) -> SweepRow {
        let PointOutcome { status, reason, deployment } = outcome;
        let runs = deployment.as_ref().is_some_and(|found| found.metrics.is_some());
        SweepRow {
            sweep: self.fingerprint.clone(),
            point,
            points: self.grid.points(),
            vary: self.grid.values(point),
            status,
            reason,
            notation: deployment.as_ref().map(|found| found.notation.clone()),
            devices: deployment.as_ref().map(|found| found.devices),
            mean_concurrency: deployment.as_ref().filter(|_| runs).map(|found| found.concurrency),
            bottleneck: deployment.as_ref().and_then(|found| found.bottleneck.clone()),
            metrics: deployment.as_ref().and_then(|found| found.metrics.clone()),
            intervals: deployment.and_then(|found| found.intervals),
            simulated,
        }
    }
}

/// The fingerprint of a sweep and of each of its shards, which name their rows and files: of the version, the varied keys,
/// the traffic and the resolved problem, in hexadecimal digits. The request is in JSON, and may carry files.
///
/// # Errors
/// A key, a value or a name is faulty.
pub fn sweep_fingerprint(catalog: &Catalog, request: &Value) -> Result<String, Error> {
    let (catalog, request) = posed(catalog, request)?;
    Ok(PreparedSweep::new(&catalog, &request)?.fingerprint)
}

/// Evaluates every point.
///
/// # Errors
/// A key, a value, a name or the shard is faulty. A point that does not run is a row with its reason.
pub fn sweep(
    catalog: &Catalog,
    request: &SweepRequest,
    control: &RequestControl,
) -> Result<SweepReport, Error> {
    let prepared = PreparedSweep::new(catalog, request)?;
    let mut report = prepared.head();
    prepared.rows(0, control, |rows| {
        report.rows.extend(rows);
        Ok::<(), Error>(())
    })?;
    Ok(report)
}
