//! Held-out predictions: the width of prediction intervals, and a plot of the gaps in the data.

use std::collections::BTreeMap;

use super::errors::{Errors, choices};
use super::{CalibrationSample, PredictedTimes, csv, errors, kind, medians};
use crate::calibrate::cross::HoldoutGroup;
use crate::calibrate::profile::rounded;
use crate::calibrate::staged::StagedFit;
use crate::report::residuals::{Strip, residuals};
use crate::spec::nearness::{ChoicesAtOdds, Interval, LeftOut, Nearness, around_prediction};
use crate::spec::odds::{ErrorCurve, deviations};

/// Nearness of a problem, by the kind of the held-out group.
const NEARNESS: [(Nearness, HoldoutGroup); 7] = [
    (Nearness::Measured, HoldoutGroup::Fifth),
    (Nearness::HardwareAndRuntime, HoldoutGroup::Combination),
    (Nearness::Load, HoldoutGroup::Load),
    (Nearness::Model, HoldoutGroup::Model),
    (Nearness::Hardware, HoldoutGroup::DeviceAndRuntime),
    (Nearness::Vendor, HoldoutGroup::Device),
    (Nearness::Nothing, HoldoutGroup::Vendor),
];

/// Odds of meeting an SLO at which choices are judged.
const LEVELS: [f64; 7] = [0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95];

/// Held-out predictions of rows.
pub(super) struct HoldoutPredictions {
    pub(super) holdout: HoldoutGroup,
    /// For each row: the key of its group, which was held out with it.
    pub(super) keys: Vec<String>,
    pub(super) predictions: Vec<PredictedTimes>,
}

/// Measured / predicted of one figure: index of the row, and the ratio.
type Ratios = Vec<(usize, f64)>;

fn ratios(
    samples: &[&CalibrationSample],
    made: &[PredictedTimes],
    of: impl Fn(&CalibrationSample, &PredictedTimes) -> Option<f64>,
) -> Ratios {
    let all = samples.iter().zip(made).enumerate();
    all.filter_map(|(at, (sample, times))| Some((at, of(sample, times)?))).collect()
}

fn ttft(sample: &CalibrationSample, times: &PredictedTimes) -> Option<f64> {
    Some(sample.ttft? / times.ttft)
}

fn tpot(sample: &CalibrationSample, times: &PredictedTimes) -> Option<f64> {
    Some(sample.tpot? / times.tpot)
}

fn throughput(sample: &CalibrationSample, times: &PredictedTimes) -> Option<f64> {
    let whole = |ttft: f64, tpot: f64| ttft + (sample.deployment.lengths.osl as f64 - 1.0) * tpot;
    let tpot = sample.tpot?;
    Some(match sample.ttft {
        Some(ttft) => whole(times.ttft, times.tpot) / whole(ttft, tpot),
        // Runs that measure only decode.
        None => times.tpot / tpot,
    })
}

/// p10, p50 and p90 of `ratios`. Every group of rows has the same weight, whatever its number of rows, because the next
/// problem belongs to a new group. Excludes the group `but`, if given.
fn quantiles(ratios: &Ratios, keys: &[String], but: Option<&str>) -> Option<[f64; 3]> {
    let kept = || ratios.iter().filter(|(at, _)| but.is_none_or(|but| keys[*at] != but));
    let mut rows = BTreeMap::<&str, f64>::new();
    kept().for_each(|(at, _)| *rows.entry(&keys[*at]).or_default() += 1.0);
    let mut weighed: Vec<(f64, f64)> = kept().map(|(at, ratio)| (*ratio, 1.0 / rows[&*keys[*at]])).collect();
    weighed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = rows.len() as f64;
    let at = |part: f64| {
        let mut sum = 0.0;
        let found = weighed.iter().find(|(_, weight)| {
            sum += weight;
            // Weights of a group add up to 1 up to rounding.
            sum >= part * all - 1e-9
        });
        found.or(weighed.last()).map(|(ratio, _)| *ratio)
    };
    Some([at(0.1)?, at(0.5)?, at(0.9)?])
}

impl HoldoutPredictions {
    fn intervals(&self, ratios: &Ratios) -> BTreeMap<&str, [f64; 3]> {
        let mut different: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        different.sort_unstable();
        different.dedup();
        let each = different.into_iter();
        each.filter_map(|key| Some((key, quantiles(ratios, &self.keys, Some(key))?))).collect()
    }

    /// Share of rows between p10 and p90 of the other groups.
    fn covered(&self, ratios: &Ratios) -> Option<f64> {
        let others = self.intervals(ratios);
        let known: Vec<bool> = ratios
            .iter()
            .filter_map(|(at, ratio)| {
                let [low, _, high] = others.get(&*self.keys[*at])?;
                Some((low..=high).contains(&ratio))
            })
            .collect();
        let inside = known.iter().filter(|inside| **inside).count();
        (!known.is_empty()).then(|| inside as f64 / known.len() as f64)
    }

    /// The interval in the form that a profile stores.
    pub(super) fn errors(&self, samples: &[&CalibrationSample]) -> LeftOut {
        let ratios = [tpot as fn(&CalibrationSample, &PredictedTimes) -> _, ttft]
            .map(|of| ratios(samples, &self.predictions, of));
        let at_odds = self.at_odds(samples, &self.intervals(&ratios[0]));
        let errors = errors(self.holdout.name(), samples, &self.predictions);
        let [tpot_covered, ttft_covered] = ratios.map(|ratios| self.covered(&ratios));
        LeftOut {
            tpot_covered: tpot_covered.map(rounded),
            ttft_covered: ttft_covered.map(rounded),
            at_odds,
            ..left_out(&errors)
        }
    }

    /// Choices at each level of the odds; `late` has the TPOT errors of the other groups. As in an answer, the median of
    /// these is the prediction.
    fn at_odds(&self, samples: &[&CalibrationSample], late: &BTreeMap<&str, [f64; 3]>) -> Vec<ChoicesAtOdds> {
        let at = |odds: f64| {
            let error = deviations(odds);
            let end = |ends: &[f64; 3]| ErrorCurve::new(around_prediction(*ends)).at(error);
            let limited: Vec<f64> = (self.predictions.iter().zip(&self.keys))
                .map(|(times, key)| times.tpot * late.get(&**key).map_or(f64::INFINITY, end))
                .collect();
            let found = choices(samples, &self.predictions, &limited)?;
            Some(ChoicesAtOdds { odds, limit_met: rounded(found.slo_met), regret: found.regret.map(rounded) })
        };
        LEVELS.into_iter().filter_map(at).collect()
    }
}

/// Errors in the form that a profile stores.
pub(super) fn left_out(errors: &Errors) -> LeftOut {
    let ends =
        |score: Option<crate::validate::score::Score>| score.map(|s| [rounded(s.mdape), rounded(s.p90)]);
    LeftOut {
        name: errors.name.clone(),
        rows: errors.rows,
        tpot: ends(errors.tpot),
        ttft: ends(errors.ttft),
        tpot_covered: None,
        ttft_covered: None,
        choices: errors.decision.map(|found| found.choices),
        limit_met: errors.decision.map(|found| rounded(found.slo_met)),
        regret: errors.decision.and_then(|found| found.regret).map(rounded),
        at_odds: vec![],
    }
}

/// Quantiles of measured / predicted for held-out groups, and for disaggregated rows, which are in no fit.
pub(super) fn intervals(
    samples: &[&CalibrationSample],
    held_out: &[HoldoutPredictions],
    split: &[CalibrationSample],
    fit: &StagedFit,
) -> Vec<Interval> {
    let of = |(near, out): (Nearness, HoldoutGroup)| {
        let found = held_out.iter().find(|known| known.holdout == out)?;
        let how = format!("{}, each predicted from {}", kind(samples), out.name());
        around(near, samples, &found.predictions, &found.keys, &how)
    };
    let mut found: Vec<Interval> = NEARNESS.into_iter().filter_map(of).collect();
    let split: Vec<&CalibrationSample> = split.iter().collect();
    if !split.is_empty() {
        let how = "disaggregated serving points, on which no constant was fitted";
        let keys = HoldoutGroup::Combination.keys(&split);
        found.extend(around(Nearness::Split, &split, &fit.predict(&split), &keys, how));
    }
    found
}

fn around(
    near: Nearness,
    samples: &[&CalibrationSample],
    made: &[PredictedTimes],
    keys: &[String],
    how: &str,
) -> Option<Interval> {
    let of = |of: fn(&CalibrationSample, &PredictedTimes) -> Option<f64>| {
        quantiles(&ratios(samples, made, of), keys, None).map(|found| found.map(rounded))
    };
    Some(Interval {
        near,
        ttft: of(ttft)?,
        tpot: of(tpot)?,
        throughput: of(throughput)?,
        source: format!(
            "quantiles of measured / predicted on {} published {how}, equal weight per held-out group: \
             median error {}",
            samples.len(),
            medians(&errors("", samples, made))
        ),
    })
}

/// Each row as measured, as fitted, and as held-out prediction.
pub(super) fn rows(
    samples: &[&CalibrationSample],
    [simulated, fitted]: [&[PredictedTimes]; 2],
    held_out: &[HoldoutPredictions],
) -> String {
    let made: Vec<(String, &[PredictedTimes])> =
        [("simulated".to_owned(), simulated), ("fitted".to_owned(), fitted)]
            .into_iter()
            .chain(
                held_out
                    .iter()
                    .map(|one| (format!("without_{}", one.holdout.key_name()), &one.predictions[..])),
            )
            .collect();
    let mut header =
        vec!["id".to_owned(), "runtime".into(), "hardware".into(), "model".into(), "weight_format".into()];
    for time in ["ttft_s", "tpot_s"] {
        header.push(time.into());
        header.extend(made.iter().map(|(name, _)| format!("{time}_{name}")));
    }
    let number = |value: Option<f64>| value.map(|value| format!("{value:.6e}")).unwrap_or_default();
    let cells = samples.iter().enumerate().map(|(at, sample)| {
        let CalibrationSample { id, runtime, hardware, model, weight_format, .. } = sample;
        let mut cells: Vec<String> = [id, runtime, hardware, model, weight_format].map(Clone::clone).into();
        cells.push(number(sample.ttft));
        cells.extend(made.iter().map(|(_, times)| number(Some(times[at].ttft))));
        cells.push(number(sample.tpot));
        cells.extend(made.iter().map(|(_, times)| number(Some(times[at].tpot))));
        cells
    });
    csv(header.iter().map(String::as_str), cells)
}

/// Error of each group of model, hardware and runtime when it is held out.
pub(super) fn picture(samples: &[&CalibrationSample], held_out: &[HoldoutPredictions]) -> String {
    let made = held_out
        .iter()
        .find(|known| known.holdout == HoldoutGroup::Combination)
        .map(|known| &known.predictions);
    let mut strips = BTreeMap::<String, Strip>::new();
    for (sample, times) in samples.iter().zip(made.into_iter().flatten()) {
        let name = format!("{}, {}, {}", sample.runtime, sample.hardware, short(&sample.model));
        let strip = strips.entry(name).or_default();
        strip.tpot.extend(sample.tpot.map(|measured| times.tpot / measured));
        strip.ttft.extend(sample.ttft.map(|measured| times.ttft / measured));
    }
    let strips: Vec<Strip> = strips
        .into_iter()
        .map(|(name, strip)| Strip {
            name: format!("{name} ({})", strip.tpot.len().max(strip.ttft.len())),
            ..strip
        })
        .collect();
    residuals(
        "Each combination of runtime, hardware and model (rows) predicted from all others; orange: medians",
        &strips,
    )
}

/// `llama 70553706496` → `llama 71B`.
fn short(model: &str) -> String {
    let (family, count) = model.split_once(' ').unwrap_or((model, ""));
    let billions = count.parse::<f64>().map_or(f64::NAN, |count| count / 1e9);
    if billions < 10.0 { format!("{family} {billions:.1}B") } else { format!("{family} {billions:.0}B") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_weighs_the_same_however_many_rows_it_has() {
        let keys: Vec<String> = ["a"; 98].into_iter().chain(["b", "c"]).map(str::to_owned).collect();
        let ratios: Ratios = (0..100).map(|at| (at, if at < 98 { 1.0 } else { at as f64 })).collect();
        assert_eq!(quantiles(&ratios, &keys, None), Some([1.0, 98.0, 99.0]));
        assert_eq!(quantiles(&ratios, &keys, Some("c")), Some([1.0, 1.0, 98.0]));
        assert_eq!(quantiles(&ratios[..98].to_vec(), &keys, Some("a")), None);
    }

    #[test]
    fn models_are_distinguished_by_size() {
        assert_eq!(short("llama 70553706496"), "llama 71B");
        assert_eq!(short("qwen3 751632384"), "qwen3 0.8B");
    }
}
