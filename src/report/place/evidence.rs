//! The measurements behind a placement: its interval, and runs of its kind.
//!
//! No table has runs over unlike devices with their times, so that a placement is as sure as the least sure of its devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PlacementReport, PlacementResult};
use crate::report::evidence::PlanEvidence;
use crate::report::number::time;
use crate::report::result::Quantiles;
use crate::report::text::screen::ends;
use crate::spec::evidence::MemberRecord;
use crate::spec::nearness::{ErrorClass, Interval, Nearness};
use crate::spec::role::Role;

/// Prediction intervals of a placement: the widest of its devices.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlacementIntervals {
    /// Similarity to the measured deployments, of the device that is the least similar.
    pub near: Nearness,
    /// A decode step through all stages, ms.
    pub token_ms: Quantiles,
    /// A prefill, ms.
    pub prefill_ms: Quantiles,
    /// End-to-end time of a single request, ms.
    pub request_ms: Quantiles,
    /// Output tokens per second of all requests, decode only.
    pub decode_tok_s: Quantiles,
    /// Source of the intervals.
    pub source: String,
}

impl PlacementIntervals {
    fn of(interval: &Interval, placed: &PlacementReport) -> PlacementIntervals {
        let quantiles = |[p10, p50, p90]: [f64; 3]| Quantiles { p10, p50, p90 };
        let around = |value: f64, ends: [f64; 3]| quantiles(ends.map(|end| value * end));
        let (prefill, decode) = (placed.prefill_ms, placed.request_ms - placed.prefill_ms);
        let whole = [0, 1, 2].map(|at| prefill * interval.ttft[at] + decode * interval.tpot[at]);
        PlacementIntervals {
            near: interval.near,
            token_ms: around(placed.token_ms, interval.tpot),
            prefill_ms: around(prefill, interval.ttft),
            request_ms: quantiles(whole),
            decode_tok_s: around(placed.decode_tok_s, interval.throughput),
            source: interval.source.clone(),
        }
    }

    /// Nine measurements in ten are between the ends of each, in one line.
    pub fn words(&self) -> String {
        let times = |of: &Quantiles| ends(&time(of.p10), &time(of.p90));
        let [step, prompt, whole] = [&self.token_ms, &self.prefill_ms, &self.request_ms].map(times);
        format!("decode step {step}, prefill {prompt}, E2E {whole}")
    }
}

impl PlacementResult {
    /// The result with the intervals and the evidence of its placement, from the records of the devices.
    pub fn with_evidence(self, members: &[MemberRecord]) -> PlacementResult {
        let Some(placed) = &self.placement else { return self };
        let mut used: Vec<&MemberRecord> = members.iter().filter(|one| placed.uses(&one.name)).collect();
        // The order in which devices are named changes nothing, not even a source.
        used.sort_by(|a, b| (&a.device, &a.name).cmp(&(&b.device, &b.name)));
        let requests = self.question.concurrency;
        let intervals = used.iter().map(|one| one.intervals.at(ErrorClass::Aggregated, requests).clone());
        let widest = intervals.reduce(|a, b| a.widest(&b));
        let intervals = widest.map(|interval| PlacementIntervals::of(&interval, placed));
        let evidence = Some(evidence(placed, &used));
        PlacementResult { intervals, evidence, ..self }
    }
}

impl PlacementReport {
    /// Whether a device holds layers.
    fn uses(&self, name: &str) -> bool {
        self.stages.iter().any(|stage| stage.member == name || stage.copies.iter().any(|copy| copy == name))
    }

    /// The degrees of its workers, in the order of [`crate::spec::evidence::KIND_DEGREES`]; `None` where a part of the
    /// model is outside device memory.
    fn kind_degrees(&self) -> Option<[u64; 5]> {
        let inside = self.stages.iter().all(|stage| stage.offloaded_bytes == 0.0);
        let tp = self.stages.iter().map(|stage| stage.devices.max(1)).max()?;
        let copies = self.stages.iter().map(|stage| 1 + stage.copies.len() as u64).max()?;
        inside.then_some([tp, self.stages.len() as u64, copies, 1, 1])
    }
}

/// The measured runs with stages like those of a placement, of the device with the fewest; none over unlike devices.
fn evidence(placed: &PlacementReport, used: &[&MemberRecord]) -> PlanEvidence {
    let scope = used.iter().filter_map(|one| one.kinds.as_ref()).map(|kinds| kinds.scope).max();
    let same = used.windows(2).all(|pair| pair[0].device == pair[1].device);
    let degrees = placed.kind_degrees().filter(|_| same);
    let rows = |one: &&MemberRecord| {
        let known = one.kinds.as_ref().zip(degrees);
        known.map_or(0, |(kinds, degrees)| kinds.rows(Role::Aggregated, degrees))
    };
    PlanEvidence { rows: used.iter().map(rows).min().unwrap_or(0), scope }
}
