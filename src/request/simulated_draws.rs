//! Intervals of simulated figures: the same traffic again, with step times as uncertain as the prediction.

use super::RequestControl;
use super::simulate::report;
use super::simulated_run::PreparedRun;
use crate::report::result::Quantiles;
use crate::report::simulate::{LatencyRow, SimulateReport, TrafficReport};
use crate::report::simulated_figures::{LatencyIntervals, SimulatedIntervals};
use crate::search::prediction_error::PlanErrors;
use crate::search::scaled_clock::{ScaledClock, StepFactors};
use crate::spec::error::Error;
use crate::spec::nearness::Interval;
use crate::spec::odds::ErrorCurve;

/// The intervals of `draws` runs.
///
/// # Errors
/// No measurement gives the errors of the prediction.
pub(super) fn intervals(
    prepared: PreparedRun,
    draws: u64,
    control: &RequestControl,
) -> Result<SimulatedIntervals, Error> {
    let errors = prepared.plan.interval().ok_or_else(|| {
        let fix = "leave `draws` out, or name a runtime with measurements";
        Error::new("draws", "a plan without prediction intervals", "a plan with measurements near it", fix)
    })?;
    let factors = drawn_factors(errors, prepared.traffic.seed, draws);
    let front_end_s = prepared.plan.clock().front_end_s();
    let runs: Vec<SimulateReport> = control.each(&factors, |factors| {
        let clocks = ScaledClock::of(prepared.plan.clocks(), *factors);
        let (totals, measured) = prepared.run(&clocks, front_end_s * factors.prefill, None);
        let load = TrafficReport::default();
        report(prepared.plan, (prepared.settings, load), (&totals, measured), None)
    });
    let of = |value: fn(&SimulateReport) -> f64| Quantiles::of_draws(runs.iter().map(value).collect());
    let none = || Error::new("draws", "0", "a run at least", "leave `draws` out, or raise it");
    let goodput: Option<Vec<f64>> = runs.iter().map(|run| run.goodput).collect();
    Ok(SimulatedIntervals {
        draws,
        near: errors.near,
        latencies: latencies(&runs),
        output_tok_s: of(|run| run.output_tok_s).ok_or_else(none)?,
        requests_per_s: of(|run| run.requests_per_s).ok_or_else(none)?,
        goodput: goodput.and_then(Quantiles::of_draws),
        source: errors.source.clone(),
    })
}

/// Measured over predicted time of steps, of as many draws: at low load, that of a prompt is the error of TTFT, and that
/// of a decode step the error of TPOT. Further draws leave the first ones as they are.
fn drawn_factors(errors: &Interval, seed: u64, draws: u64) -> Vec<StepFactors> {
    let [ttft, tpot] = [errors.ttft, errors.tpot].map(ErrorCurve::new);
    let mut random = fastrand::Rng::with_seed(seed);
    let one = |_| {
        let errors = PlanErrors::drawn(&mut random);
        StepFactors { prefill: ttft.at(errors.ttft()), decode: tpot.at(errors.decode()) }
    };
    (0..draws).map(one).collect()
}

fn latencies(runs: &[SimulateReport]) -> Vec<LatencyIntervals> {
    let rows = runs.first().map_or(0, |run| run.latencies.len());
    let row = |at: usize| {
        let of = |value: fn(&LatencyRow) -> Option<f64>| {
            let values: Option<Vec<f64>> = runs.iter().map(|run| value(&run.latencies[at])).collect();
            values.and_then(Quantiles::of_draws)
        };
        LatencyIntervals {
            metric: runs[0].latencies[at].metric.clone(),
            mean_ms: of(|row| row.mean_ms),
            p50_ms: of(|row| row.p50_ms),
            p90_ms: of(|row| row.p90_ms),
            p95_ms: of(|row| row.p95_ms),
            p99_ms: of(|row| row.p99_ms),
        }
    };
    (0..rows).map(row).collect()
}
