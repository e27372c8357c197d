//! The requests of a run one by one, and the figures over them.

use serde_json::{Value, json};

use super::fields::set_latency;
use crate::spec::error::Error;
use crate::spec::limits::{MILLISECONDS, REQUESTS};
use crate::spec::percentile::Percentile;
use crate::spec::run::{BenchMetrics, RunLatency, RunRecord, RunRequests, RunStatistic};

/// An answered request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RequestSample {
    pub(super) isl: f64,
    pub(super) osl: f64,
    /// When it was sent, in seconds from any time.
    pub(super) sent_s: Option<f64>,
    pub(super) ttft_ms: Option<f64>,
    pub(super) tpot_ms: Option<f64>,
    pub(super) e2e_ms: Option<f64>,
    /// Times between the chunks of its answer.
    pub(super) chunks_ms: Vec<f64>,
}

impl RequestSample {
    /// The time per output token after the first, where it is not stated.
    pub(super) fn with_tpot(mut self) -> RequestSample {
        let after = self.osl - 1.0;
        let made = self.e2e_ms.zip(self.ttft_ms).filter(|_| after >= 1.0);
        self.tpot_ms = self.tpot_ms.or(made.map(|(e2e, ttft)| (e2e - ttft) / after)).filter(|ms| *ms > 0.0);
        self
    }
}

/// The `part` quantile of sorted values, between two of them in proportion: the default of NumPy
/// (<https://numpy.org/doc/stable/reference/generated/numpy.percentile.html>), with which these tools state theirs.
fn between(sorted: &[f64], part: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = last as f64 * part;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    Some(sorted[low] + (sorted[high] - sorted[low]) * (place - place.floor()))
}

/// Sets the statistics of a latency that are not set.
pub(super) fn set_statistics(
    metrics: &mut BenchMetrics,
    latency: RunLatency,
    mut values: Vec<f64>,
) -> Result<(), Error> {
    values.retain(|value| *value > 0.0);
    if values.is_empty() {
        return Ok(());
    }
    values.sort_by(f64::total_cmp);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    set_latency(metrics, latency, RunStatistic::Mean, mean, "mean latency")?;
    for part in Percentile::ALL {
        if let Some(value) = between(&values, part.part()) {
            set_latency(metrics, latency, RunStatistic::At(part), value, part.name())?;
        }
    }
    Ok(())
}

/// The mean of values; 0 of none.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (number, sum) = values.fold((0.0, 0.0), |(number, sum), value| (number + 1.0, sum + value));
    if number > 0.0 { sum / number } else { 0.0 }
}

/// Fills a run with the figures of its answered requests; `failed` were not answered.
pub(super) fn fill(run: &mut RunRecord, samples: &[RequestSample], failed: u64) -> Result<(), Error> {
    let all = samples.len() as u64 + failed;
    if all > 0 {
        REQUESTS.check_whole("requests", all)?;
    }
    for (latency, of) in [
        (RunLatency::Ttft, (|one| one.ttft_ms) as fn(&RequestSample) -> Option<f64>),
        (RunLatency::Tpot, |one| one.tpot_ms),
        (RunLatency::E2e, |one| one.e2e_ms),
    ] {
        set_statistics(&mut run.metrics, latency, samples.iter().filter_map(of).collect())?;
    }
    let chunks = samples.iter().flat_map(|one| one.chunks_ms.iter().copied());
    set_statistics(&mut run.metrics, RunLatency::Itl, chunks.collect())?;
    run.context_tokens = mean(samples.iter().map(|one| one.isl)).round() as u64;
    run.output_tokens = mean(samples.iter().map(|one| one.osl)).round() as u64;
    run.requests = Some(counted(samples.len() as u64, failed));
    let ends = samples.iter().filter_map(|one| Some(one.sent_s? + one.e2e_ms? / 1e3));
    let to = ends.fold(f64::NEG_INFINITY, f64::max);
    let from = samples.iter().filter_map(|one| one.sent_s).fold(f64::INFINITY, f64::min);
    let lasted_s = to - from;
    if lasted_s.is_finite() && lasted_s > 0.0 {
        MILLISECONDS.check("duration", 1e3 * lasted_s)?;
        let tokens: f64 = samples.iter().map(|one| one.osl).sum();
        let in_flight: f64 = samples.iter().filter_map(|one| one.e2e_ms).sum();
        run.metrics.decode_toks_sec.get_or_insert(tokens / lasted_s);
        run.metrics.requests_sec.get_or_insert(samples.len() as f64 / lasted_s);
        run.metrics.mean_concurrency.get_or_insert(in_flight / 1e3 / lasted_s);
    }
    Ok(())
}

/// Rate and variation of arrivals, in requests per second; `None` of fewer than two, or of all at once.
pub(super) fn arrivals(samples: &[RequestSample]) -> Option<(f64, f64)> {
    let mut times: Vec<f64> = samples.iter().filter_map(|one| one.sent_s).collect();
    times.sort_by(f64::total_cmp);
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let gap = mean(gaps.iter().copied());
    let spread = mean(gaps.iter().map(|one| (one - gap).powi(2))).sqrt();
    let found = (1.0 / gap, spread / gap);
    (gap > 0.0 && found.0.is_finite() && found.1.is_finite()).then_some(found)
}

/// Share of the stated rate below which the requests that were answered show that the limit of clients held others back.
const HELD_BACK: f64 = 0.95;

/// Whether a limit of clients held back requests of this rate.
pub(super) fn is_held_back(rate: f64, run: &RunRecord) -> bool {
    run.metrics.requests_sec.is_some_and(|answered| answered < HELD_BACK * rate)
}

/// A run whose server had a draft, of which this many tokens of a step were accepted. The method is not stated.
pub(super) fn with_draft(run: &mut RunRecord, acceptance_length: f64) {
    run.env.insert("speculative".to_owned(), Value::String("a draft".to_owned()));
    run.env.insert("acceptance_length".to_owned(), json!(acceptance_length));
}

/// Requests of a run of which some failed. Reasons are not kept: they may name hosts.
pub(super) fn counted(answered: u64, failed: u64) -> RunRequests {
    let errors = (failed > 0).then(|| ("failed".to_owned(), failed)).into_iter().collect();
    RunRequests { sent: answered.saturating_add(failed), answered, errors, ..RunRequests::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_values() {
        // numpy.percentile([1, 2, 3, 4], [50, 90, 99]) == [2.5, 3.7, 3.97]
        let sorted = [1.0, 2.0, 3.0, 4.0];
        let near = |part: f64, expected: f64| (between(&sorted, part).unwrap() - expected).abs() < 1e-12;
        assert!(near(0.5, 2.5) && near(0.9, 3.7) && near(0.99, 3.97));
        assert_eq!((between(&[], 0.5), between(&[7.0], 0.99)), (None, Some(7.0)));
    }

    #[test]
    fn arrivals_have_a_rate_and_a_variation() {
        let at = |times: &[f64]| {
            let one = |sent| RequestSample { sent_s: Some(sent), ..RequestSample::default() };
            arrivals(&times.iter().copied().map(one).collect::<Vec<_>>())
        };
        assert_eq!(at(&[0.0, 0.5, 1.0]), Some((2.0, 0.0)));
        assert_eq!((at(&[1.0, 1.0]), at(&[3.0]), at(&[])), (None, None, None));
    }
}
