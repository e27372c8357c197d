//! Prediction errors, and the quality of choices based on predictions.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::calibrate::deployment::PredictedTimes;
use crate::calibrate::sample::CalibrationSample;
use crate::validate::decision::{Decision, DecisionOption, decision};
use crate::validate::score::{PredictionPair, Score, score};

/// Errors of both latencies.
#[derive(Clone, Debug, Serialize)]
pub struct Errors {
    pub name: String,
    pub rows: usize,
    pub tpot: Option<Score>,
    pub ttft: Option<Score>,
    /// Choices among the rows with the same devices and lengths.
    pub decision: Option<Decision>,
}

pub(super) fn errors(name: &str, samples: &[&CalibrationSample], made: &[PredictedTimes]) -> Errors {
    let pairs = |pick: fn(&CalibrationSample) -> Option<f64>, of: fn(&PredictedTimes) -> f64| {
        let paired = samples.iter().zip(made).filter_map(|(sample, times)| {
            Some(PredictionPair { predicted: of(times), measured: pick(sample)?, interval: None })
        });
        score(&paired.collect::<Vec<_>>())
    };
    Errors {
        name: name.into(),
        rows: samples.len(),
        tpot: pairs(|s| s.tpot, |t| t.tpot),
        ttft: pairs(|s| s.ttft, |t| t.ttft),
        decision: choices(samples, made, &made.iter().map(|times| times.tpot).collect::<Vec<_>>()),
    }
}

/// Quality of choices among a server's configurations by predictions; the SLO holds where `limited` does.
pub(super) fn choices(
    samples: &[&CalibrationSample],
    made: &[PredictedTimes],
    limited: &[f64],
) -> Option<Decision> {
    let mut comparable = BTreeMap::<_, Vec<DecisionOption>>::new();
    for ((sample, times), limited) in samples.iter().zip(made).zip(limited) {
        let posed = &sample.deployment;
        let (Some(ttft), Some(tpot), false) = (sample.ttft, sample.tpot, posed.timed_separately) else {
            continue;
        };
        let key =
            (&sample.model, &sample.hardware, &sample.weight_format, posed.lengths.isl, posed.lengths.osl);
        let load = (posed.concurrency, posed.lengths.osl, posed.devices());
        let ms = |ttft: f64, tpot: f64| (ttft * 1e3, tpot * 1e3);
        let choice = DecisionOption::new(load, limited * 1e3, ms(times.ttft, times.tpot), ms(ttft, tpot));
        comparable.entry(key).or_default().push(choice);
    }
    decision(&comparable.into_values().collect::<Vec<_>>())
}

pub(super) fn each(keys: &[String], samples: &[&CalibrationSample], made: &[PredictedTimes]) -> Vec<Errors> {
    let mut groups = BTreeMap::<String, (Vec<&CalibrationSample>, Vec<PredictedTimes>)>::new();
    for ((key, sample), times) in keys.iter().zip(samples).zip(made) {
        let group = groups.entry(key.clone()).or_default();
        group.0.push(sample);
        group.1.push(*times);
    }
    groups.iter().map(|(key, (samples, made))| errors(&format!("  without {key}"), samples, made)).collect()
}

/// The median, in %.
fn percent(score: Option<Score>) -> String {
    score.map(|score| format!("{:.1}", 100.0 * score.mdape)).unwrap_or_default()
}

/// The median errors of the measured latencies.
pub(super) fn medians(errors: &Errors) -> String {
    [("TPOT", errors.tpot), ("TTFT", errors.ttft)]
        .into_iter()
        .filter(|(_, score)| score.is_some())
        .map(|(name, score)| format!("of {name} {} %", percent(score)))
        .collect::<Vec<_>>()
        .join(", ")
}
