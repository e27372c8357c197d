//! The run that would narrow the intervals of a deployment most for its cost: one replica of it, measured once.
//!
//! All plans of a model on a device in a format share the factor of their cell, so the smallest of them teaches as much as
//! the whole deployment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number::time;
use super::result::{Quantiles, ReportedDeployment};
use crate::spec::correction::narrowed_by_one;
use crate::spec::notation::PlanText;
use crate::spec::role::Role;
use crate::spec::scenario::Scenario;
use crate::spec::writer::shell_word;

/// Rounds of all requests in flight that `bench` sends: ten repeats after a warm-up.
pub const ROUNDS: f64 = 11.0;

/// p10 and p90 of a figure, now and after the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NarrowedInterval {
    /// Now.
    pub now: [f64; 2],
    /// Expected after the run, around the same prediction.
    pub then: [f64; 2],
}

/// A run that would teach most, and its expected effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NextRun {
    /// The command that starts the server, measures it and stops it.
    pub command: String,
    /// Devices that it uses.
    pub devices: u64,
    /// Predicted duration without the start of the server, in seconds.
    pub seconds: f64,
    /// Cost of these devices for that time; absent without a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// TTFT, ms.
    pub ttft_ms: NarrowedInterval,
    /// TPOT, ms.
    pub tpot_ms: NarrowedInterval,
    /// Output tokens per second of the whole deployment.
    pub output_tok_s: NarrowedInterval,
}

impl NextRun {
    /// The run for `reported`, whose cell has `rows` measurements of one's own; `question` has its model, hardware, runtime
    /// and lengths. None where a replica has no interval, or several kinds of workers.
    pub fn of(reported: &ReportedDeployment, rows: usize, question: Scenario) -> Option<NextRun> {
        let (metrics, intervals) = (reported.metrics.as_ref()?, reported.intervals.as_ref()?);
        let mut plan: PlanText = reported.notation.parse().ok()?;
        let [pool] = &mut plan.pools[..] else { return None };
        let replicas = pool.degrees.replicas.unwrap_or(1).max(1);
        if pool.role != Role::Aggregated {
            return None;
        }
        pool.degrees.replicas = Some(1);
        let concurrency = (reported.concurrency / replicas as f64).ceil().max(1.0);
        let question = Scenario { concurrency: Some(concurrency as u64), ..question };
        let plan = plan.without_loads().to_string();
        let seconds = ROUNDS * metrics.e2e_ms / 1e3;
        let narrowed = |value: f64, of: Quantiles| {
            let [low, _, high] = narrowed_by_one([of.p10 / value, 1.0, of.p90 / value], rows);
            NarrowedInterval { now: [of.p10, of.p90], then: [value * low, value * high] }
        };
        Some(NextRun {
            command: format!("mantile-opt bench --launch {} --plan {}", question.flags(), shell_word(&plan)),
            devices: reported.devices / replicas,
            seconds,
            usd: metrics.usd_per_hour.map(|usd| usd / replicas as f64 * seconds / 3600.0),
            ttft_ms: narrowed(metrics.ttft_ms, intervals.ttft_ms),
            tpot_ms: narrowed(metrics.tpot_ms, intervals.tpot_ms),
            output_tok_s: narrowed(metrics.output_tok_s, intervals.output_tok_s),
        })
    }

    /// Its effect in words.
    pub fn words(&self) -> String {
        let [low, high] = self.tpot_ms.then;
        format!("measure it: TPOT {} then", super::text::screen::ends(&time(low), &time(high)))
    }
}
