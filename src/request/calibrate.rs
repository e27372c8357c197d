//! `calibrate`: refits calibration constants of runtimes to measurements.

mod errors;
mod left_out;
pub mod memory_ratios;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::RequestControl;
use super::validate::predict::{PreparedRow, ProfileFit, ready, runtime};
use super::validate::table::{MeasuredTable, all_rows};
use crate::calibrate::cross::{HoldoutGroup, left_out};
use crate::calibrate::deployment::PredictedTimes;
use crate::calibrate::fit::{FitSolution, determined};
use crate::calibrate::levels::unknowns;
use crate::calibrate::profile::{BEGINNINGS, JointFit, adjust, written};
use crate::calibrate::sample::{CalibrationSample, ORDER, set};
use crate::report::sheet::csv;
use crate::spec::error::Error;
use crate::spec::nearness::{LeftOut, MeasuredAt};
use crate::spec::runtime::{CalibratedConstant, Runtime};
use crate::store::catalog::Catalog;
use crate::store::kind::CatalogKind;
use crate::store::prediction_intervals::model_key;
use crate::validate::measured::MeasuredRow;
use errors::{Errors, each, errors, medians};
use left_out::{HoldoutPredictions, intervals, left_out as tell, picture, rows};
use memory_ratios::{MemoryRatios, memory_ratios};

/// A request of `calibrate`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CalibrateRequest {
    /// Tables of measurements, of latencies or of memory. Rows flagged doubtful are skipped; disaggregated rows
    /// calibrate only the intervals.
    pub tables: Vec<MeasuredTable>,
    /// Uses only rows of these runtimes.
    pub runtime: Vec<String>,
    /// Fits all runtimes of the tables jointly, starting from kernel microbenchmarks only, intervals included.
    pub whole: bool,
}

/// A report of `calibrate`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum CalibrateReport {
    /// Of latencies.
    Latency(Box<LatencyFit>),
    /// Of memory.
    Memory(MemoryFit),
}

/// Constants fitted to latencies.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LatencyFit {
    /// Runtimes of the rows.
    pub runtimes: Vec<String>,
    /// Number of rows.
    pub rows: usize,
    /// Number of fitted unknowns.
    pub unknowns: usize,
    /// Number of constants that the rows determine.
    pub constants_told: usize,
    /// Constants that the rows do not determine; they stay unchanged.
    pub constants_not_told: Vec<String>,
    /// Errors before and after the fit, and of held-out rows.
    pub errors: Vec<LeftOut>,
    /// New profile of each runtime, as a file.
    #[serde(skip)]
    pub profiles: BTreeMap<String, String>,
    /// Each row as measured, as fitted, and as held-out prediction, in CSV.
    #[serde(skip)]
    pub rows_csv: String,
    /// Held-out residuals by runtime, hardware and model, in SVG.
    #[serde(skip)]
    pub residuals_svg: String,
}

/// Intervals fitted to memory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MemoryFit {
    /// Measured / predicted memory except the KV cache, by runtime.
    pub memory: BTreeMap<String, MemoryRatios>,
    /// New profile of each runtime, as a file.
    #[serde(skip)]
    pub profiles: BTreeMap<String, String>,
}

/// Minimum number of measurements per constant that they determine.
const ROWS_PER_CONSTANT: usize = 2;

/// Fitted values are rounded to four digits.
const GAIN: f64 = 1e-4;

/// Refits the constants and reports the gain.
///
/// # Errors
/// The tables do not determine the constants.
pub fn calibrate(
    catalog: &Catalog,
    request: &CalibrateRequest,
    _control: &RequestControl,
) -> Result<CalibrateReport, Error> {
    let measured = request.measured()?;
    let timed = |row: &MeasuredRow| row.outcome.ttft_ms.is_some() || row.outcome.tpot_ms.is_some();
    if !measured.iter().any(timed) && measured.iter().any(|row| row.outcome.memory_bytes.is_some()) {
        return Ok(CalibrateReport::Memory(memory(catalog, &measured)?));
    }
    Ok(CalibrateReport::Latency(Box::new(request.latency(catalog, &measured)?)))
}

impl CalibrateRequest {
    fn latency(&self, catalog: &Catalog, measured: &[MeasuredRow]) -> Result<LatencyFit, Error> {
        let (split, found): (Vec<CalibrationSample>, Vec<CalibrationSample>) =
            self.samples(catalog, measured).into_iter().partition(|sample| sample.deployment.pools.len() > 1);
        let samples: Vec<&CalibrationSample> = found.iter().collect();
        let mut runtimes: Vec<String> = found.iter().map(|sample| sample.runtime.clone()).collect();
        runtimes.sort();
        runtimes.dedup();
        if !self.whole && runtimes.len() > 1 {
            return Err(Error::new(
                "runtime",
                format!("rows of {}", runtimes.join(", ")),
                "rows of one runtime",
                "select one with --runtime, or fit all with --whole",
            ));
        }
        if let Some(name) = runtimes.first().filter(|_| !self.whole)
            && catalog.load::<Runtime>(name)?.serving_fit.is_none()
        {
            return Err(Error::new(
                "serving_fit",
                format!("no fit in the profile of {name}"),
                "a fitted profile",
                "add --whole, and set a folder with --out",
            ));
        }
        let determined = determined(&samples);
        let constants = determined.iter().filter(|is_determined| **is_determined).count();
        if constants == 0 || samples.len() < ROWS_PER_CONSTANT * constants {
            return Err(Error::new(
                "calibrate",
                format!("{} rows, which affect {constants} constants", samples.len()),
                format!("at least {ROWS_PER_CONSTANT} rows per constant"),
                "add measurements, or keep the shipped profile",
            ));
        }
        let order: Vec<CalibratedConstant> = ORDER
            .into_iter()
            .zip(determined)
            .filter(|(_, is_determined)| *is_determined)
            .map(|(of, _)| of)
            .collect();
        let nothing = FitSolution::nothing(unknowns(&samples, &order));
        let before = errors("before", &samples, &nothing.predict(&samples));
        let fit = nothing.solve(&samples, GAIN);
        let after = errors("nothing: the fitted rows", &samples, &fit.predict(&samples));
        let outs: &[HoldoutGroup] = match self.whole {
            true => &[
                HoldoutGroup::Fifth,
                HoldoutGroup::Combination,
                HoldoutGroup::Load,
                HoldoutGroup::Model,
                HoldoutGroup::Device,
                HoldoutGroup::DeviceAndRuntime,
                HoldoutGroup::Vendor,
            ],
            false => &[HoldoutGroup::Fifth, HoldoutGroup::Model, HoldoutGroup::Device],
        };
        let without = |out: &HoldoutGroup| HoldoutPredictions {
            holdout: *out,
            keys: out.keys(&samples),
            predictions: left_out(&samples, &fit, *out),
        };
        // If all rows are of one kind, no rows remain to predict it from.
        let several = |one: &HoldoutGroup| one.keys(&samples).windows(2).any(|pair| pair[0] != pair[1]);
        let held_out: Vec<HoldoutPredictions> = outs.iter().filter(|one| several(one)).map(without).collect();
        let strata: Vec<LeftOut> = held_out.iter().map(|one| one.errors(&samples)).collect();
        let fitted = tell(&after);
        let mut all = vec![tell(&before), fitted.clone()];
        for (one, errors) in held_out.iter().zip(&strata) {
            all.push(errors.clone());
            if matches!(one.holdout, HoldoutGroup::Model | HoldoutGroup::Device) {
                all.extend(each(&one.keys, &samples, &one.predictions).iter().map(tell));
            }
        }
        let mut profiles = BTreeMap::new();
        for name in &runtimes {
            let own: Vec<&CalibrationSample> =
                found.iter().filter(|sample| sample.runtime == *name).collect();
            let source = source(name, &own, samples.len(), &errors("", &own, &fit.predict(&own)));
            let mut profile = profile(catalog, name)?;
            if self.whole {
                let whole = JointFit {
                    found: &fit,
                    measured_anywhere: distinct(&samples, |sample| &sample.hardware),
                    determined: order.clone(),
                    models: distinct(&samples, |sample| &sample.model),
                    intervals: intervals(&samples, &held_out, &split, &fit),
                    left_out: std::iter::once(&fitted).chain(&strata).cloned().collect(),
                };
                whole.replace(&mut profile, &measured_at(&own), &source);
            } else {
                adjust(&mut profile, &fit, &source);
            }
            profiles.insert(name.clone(), written(&profile));
        }
        let undetermined = ORDER.iter().zip(determined).filter(|(_, is_determined)| !is_determined);
        Ok(LatencyFit {
            rows: samples.len(),
            unknowns: fit.unknowns.len(),
            constants_told: constants,
            constants_not_told: undetermined.map(|(of, _)| spell(*of)).collect(),
            errors: all,
            profiles,
            rows_csv: rows(&samples, &fit.predict(&samples), &held_out),
            residuals_svg: picture(&samples, &held_out),
            runtimes,
        })
    }

    /// Rows of the selected runtimes, without rows flagged doubtful.
    fn measured(&self) -> Result<Vec<MeasuredRow>, Error> {
        let mut rows = all_rows(&self.tables)?;
        let wanted: Vec<String> = self.runtime.iter().map(|name| runtime(name)).collect();
        rows.retain(|row| {
            let selected = wanted.is_empty() || wanted.contains(&runtime(&row.runtime));
            row.warning.is_empty() && selected
        });
        Ok(rows)
    }

    fn samples(&self, catalog: &Catalog, rows: &[MeasuredRow]) -> Vec<CalibrationSample> {
        let fit = if self.whole { ProfileFit::KernelsOnly } else { ProfileFit::Shipped };
        let ready = ready(catalog, rows, fit);
        let made = rows.iter().zip(ready).filter_map(|(row, ready)| {
            let mut sample = sample(row, ready.ok()?);
            sample.ttft = row.outcome.ttft_ms.map(|value| value / 1e3);
            sample.tpot = row.outcome.tpot_ms.map(|value| value / 1e3);
            if self.whole {
                BEGINNINGS.iter().for_each(|known| set(&mut sample.machine, known.constant, known.value));
            }
            // A sample without a positive predicted time determines no constant.
            let PredictedTimes { ttft, tpot } = sample.times(&[0.0; ORDER.len()]);
            let times = [ttft, tpot];
            times.iter().all(|time| time.is_finite() && *time > 0.0).then_some(sample)
        });
        made.collect()
    }
}

/// The error of the predicted memory except the KV cache.
fn memory(catalog: &Catalog, rows: &[MeasuredRow]) -> Result<MemoryFit, Error> {
    let ready = ready(catalog, rows, ProfileFit::Shipped);
    let memory =
        memory_ratios(rows.iter().zip(&ready).filter_map(|(row, ready)| Some((row, ready.as_ref().ok()?))));
    if memory.is_empty() {
        return Err(Error::new(
            "calibrate",
            format!("{} rows, too few per runtime", rows.len()),
            format!("at least {} runs on one device", memory_ratios::LEAST),
            "add measurements, or keep the shipped profile",
        ));
    }
    let mut profiles = BTreeMap::new();
    for (name, one) in &memory {
        let mut profile = profile(catalog, name)?;
        one.state(&mut profile);
        profiles.insert(name.clone(), written(&profile));
    }
    Ok(MemoryFit { memory, profiles })
}

/// The current profile of a runtime.
fn profile(catalog: &Catalog, name: &str) -> Result<Value, Error> {
    let text = catalog.find(CatalogKind::Runtimes, name).map_err(Error::from)?.text()?;
    Ok(serde_json::from_str(&text).expect("rows were made ready with it, so it was read as a runtime"))
}

fn sample(row: &MeasuredRow, ready: PreparedRow) -> CalibrationSample {
    let formats = &ready.problem.formats[0];
    let graph = &ready.problem.graph;
    CalibrationSample {
        id: row.id.clone(),
        runtime: ready.runtime,
        model: model_key(graph),
        hardware: row.hardware.clone(),
        machine: formats.plain().clone(),
        class: ready.problem.cluster.device.class.clone(),
        family: ready.problem.cluster.device.family.clone(),
        weight_format: formats.weights.clone(),
        calibration_key: ready.calibration_key,
        deployment: ready.deployment,
        ttft: None,
        tpot: None,
    }
}

fn spell(of: CalibratedConstant) -> String {
    json!(of).as_str().unwrap_or_default().to_owned()
}

fn distinct(samples: &[&CalibrationSample], of: fn(&CalibrationSample) -> &String) -> Vec<String> {
    let mut found: Vec<String> = samples.iter().map(|sample| of(sample).clone()).collect();
    found.sort();
    found.dedup();
    found
}

/// The measured range of each model on each device in each format.
fn measured_at(own: &[&CalibrationSample]) -> Vec<MeasuredAt> {
    let mut found = BTreeMap::<(&String, &String, &String), MeasuredAt>::new();
    for sample in own {
        let key = (&sample.model, &sample.hardware, &sample.weight_format);
        let (lengths, requests) = (sample.deployment.lengths, sample.deployment.requests());
        let one = found.entry(key).or_insert_with(|| MeasuredAt {
            model: sample.model.clone(),
            hardware: sample.hardware.clone(),
            weight_format: sample.weight_format.clone(),
            isl: [lengths.isl; 2],
            osl: [lengths.osl; 2],
            requests: [requests; 2],
        });
        for (range, value) in
            [(&mut one.isl, lengths.isl), (&mut one.osl, lengths.osl), (&mut one.requests, requests)]
        {
            *range = [range[0].min(value), range[1].max(value)];
        }
    }
    found.into_values().collect()
}

fn source(name: &str, own: &[&CalibrationSample], all: usize, errors: &Errors) -> String {
    format!(
        "hierarchical robust least squares (mantile-opt calibrate) on {all} published {}, {} of them of {name}; median \
         error on these {}",
        kind(own),
        own.len(),
        medians(errors)
    )
}

/// The kind of measurement.
fn kind(samples: &[&CalibrationSample]) -> &'static str {
    match samples.iter().all(|sample| sample.deployment.timed_separately) {
        true => "prefill and decode rates of single streams",
        false => "aggregated serving points",
    }
}
