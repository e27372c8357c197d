//! `calibrate`: refits calibration constants of runtimes to measurements.

mod errors;
mod left_out;
pub mod memory_ratios;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestControl;
use super::validate::predict::{PreparedRow, ProfileFit, ready, runtime};
use super::validate::table::{MeasuredTable, all_rows};
use crate::calibrate::cross::{HoldoutGroup, left_out};
use crate::calibrate::deployment::PredictedTimes;
use crate::calibrate::fit::{FitSolution, determined};
use crate::calibrate::levels::unknowns;
use crate::calibrate::profile::{JointFit, adjust, written};
use crate::calibrate::sample::CalibrationSample;
use crate::calibrate::settings::initial_guesses;
use crate::quantity::num::Qty;
use crate::report::sheet::csv;
use crate::spec::constant::{CONSTANTS, CalibratedConstant};
use crate::spec::error::Error;
use crate::spec::nearness::{LeftOut, MeasuredAt};
use crate::spec::runtime::Runtime;
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
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CalibrateReport {
    /// Of latencies.
    Latency(Box<LatencyFit>),
    /// Of memory.
    Memory(MemoryFit),
}

/// Constants fitted to latencies.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LatencyFit {
    /// Runtimes of the rows.
    pub runtimes: Vec<String>,
    /// Number of rows.
    pub rows: usize,
    /// Number of fitted unknowns.
    pub unknowns: usize,
    /// Number of constants that the rows determine.
    #[serde(alias = "constants_told")]
    pub constants_determined: usize,
    /// Constants that the rows do not determine; they stay unchanged.
    #[serde(alias = "constants_not_told")]
    pub constants_undetermined: Vec<String>,
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
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
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

pub fn calibrate(
    catalog: &Catalog,
    request: &CalibrateRequest,
    _: &RequestControl,
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
        let runtimes = distinct(&samples, |sample| &sample.runtime);
        self.one_fitted_runtime(catalog, &runtimes)?;
        let (order, undetermined) = determined_constants(&samples)?;
        let nothing = FitSolution::nothing(unknowns(&samples, &order));
        let before = errors("before", &samples, &nothing.predict(&samples));
        let fit = nothing.solve(&samples, GAIN);
        let after = errors("nothing: the fitted rows", &samples, &fit.predict(&samples));
        let fitted = FittedRows { samples, split, fit, order, holdouts: Vec::new() };
        let fitted = FittedRows { holdouts: fitted.held_out(self.whole), ..fitted };
        let strata: Vec<LeftOut> = fitted.holdouts.iter().map(|one| one.errors(&fitted.samples)).collect();
        let mut all = vec![tell(&before), tell(&after)];
        for (one, errors) in fitted.holdouts.iter().zip(&strata) {
            all.push(errors.clone());
            if matches!(one.holdout, HoldoutGroup::Model | HoldoutGroup::Device) {
                all.extend(each(&one.keys, &fitted.samples, &one.predictions).iter().map(tell));
            }
        }
        let left_out: Vec<LeftOut> = std::iter::once(tell(&after)).chain(strata).collect();
        let mut profiles = BTreeMap::new();
        for name in &runtimes {
            let profile = fitted.profile(profile(catalog, name)?, name, self.whole.then_some(&left_out));
            profiles.insert(name.clone(), profile);
        }
        let FittedRows { samples, fit, order, holdouts, .. } = &fitted;
        Ok(LatencyFit {
            rows: samples.len(),
            unknowns: fit.unknowns.len(),
            constants_determined: order.len(),
            constants_undetermined: undetermined,
            errors: all,
            profiles,
            rows_csv: rows(samples, &fit.predict(samples), holdouts),
            residuals_svg: picture(samples, holdouts),
            runtimes,
        })
    }

    /// Whether the rows are of one runtime that has a fit to adjust; a fit of whole profiles needs neither.
    fn one_fitted_runtime(&self, catalog: &Catalog, runtimes: &[String]) -> Result<(), Error> {
        if self.whole {
            return Ok(());
        }
        if runtimes.len() > 1 {
            let found = format!("rows of {}", runtimes.join(", "));
            let fix = "select one with --runtime, or fit all with --whole";
            return Err(Error::new("runtime", found, "rows of one runtime", fix));
        }
        let Some(name) = runtimes.first() else { return Ok(()) };
        if catalog.load::<Runtime>(name)?.serving_fit.is_none() {
            let found = format!("no fit in the profile of {name}");
            let fix = "fit all with --whole";
            return Err(Error::new("serving_fit", found, "a fitted profile", fix));
        }
        Ok(())
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
            // The fit is one of closed loops.
            let ready = ready.ok().filter(|ready| ready.simulated.is_none())?;
            let mut sample = sample(row, ready);
            sample.ttft = row.outcome.ttft_ms.map(|value| value / 1e3);
            sample.tpot = row.outcome.tpot_ms.map(|value| value / 1e3);
            if self.whole {
                for (entry, known) in initial_guesses() {
                    *sample.machine.chip.constant_mut(entry.of) = Qty::from(known.value);
                }
            }
            // A sample without a positive predicted time determines no constant.
            let PredictedTimes { ttft, tpot } = sample.times(&[0.0; CONSTANTS.len()]);
            let times = [ttft, tpot];
            times.iter().all(|time| time.is_finite() && *time > 0.0).then_some(sample)
        });
        made.collect()
    }
}

/// The constants that the rows determine, and the keys of those that they do not.
fn determined_constants(
    samples: &[&CalibrationSample],
) -> Result<(Vec<CalibratedConstant>, Vec<String>), Error> {
    let (known, unknown): (Vec<_>, Vec<_>) =
        CONSTANTS.iter().zip(determined(samples)).partition(|(_, is_determined)| *is_determined);
    let constants = known.len();
    if constants == 0 || samples.len() < ROWS_PER_CONSTANT * constants {
        let found = format!("{} rows, which affect {constants} constants", samples.len());
        return Err(too_few(found, format!("at least {ROWS_PER_CONSTANT} rows per constant")));
    }
    let unknown = unknown.into_iter().map(|(entry, _)| entry.key.to_owned()).collect();
    Ok((known.into_iter().map(|(entry, _)| entry.of).collect(), unknown))
}

fn too_few(found: String, expected: String) -> Error {
    Error::new("calibrate", found, expected, "add measurements, or keep the shipped profile")
}

/// Fitted rows, their fit, and the predictions of held-out rows.
struct FittedRows<'a> {
    samples: Vec<&'a CalibrationSample>,
    /// Disaggregated rows: they calibrate only the intervals.
    split: Vec<CalibrationSample>,
    fit: FitSolution,
    order: Vec<CalibratedConstant>,
    holdouts: Vec<HoldoutPredictions>,
}

impl FittedRows<'_> {
    /// Predictions of each group of rows by a fit without it.
    fn held_out(&self, whole: bool) -> Vec<HoldoutPredictions> {
        let groups: &[HoldoutGroup] = match whole {
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
        let without = |group: &HoldoutGroup| HoldoutPredictions {
            holdout: *group,
            keys: group.keys(&self.samples),
            predictions: left_out(&self.samples, &self.fit, *group),
        };
        // If all rows are of one kind, no rows remain to predict it from.
        let several =
            |group: &&HoldoutGroup| group.keys(&self.samples).windows(2).any(|pair| pair[0] != pair[1]);
        groups.iter().filter(several).map(without).collect()
    }

    /// The new profile of a runtime: of a whole fit with its held-out errors, else adjusted.
    fn profile(&self, mut profile: Value, name: &str, whole: Option<&Vec<LeftOut>>) -> String {
        let own: Vec<&CalibrationSample> =
            self.samples.iter().copied().filter(|sample| sample.runtime == name).collect();
        let source = source(name, &own, self.samples.len(), &errors("", &own, &self.fit.predict(&own)));
        match whole {
            Some(errors) => {
                let joint = JointFit {
                    found: &self.fit,
                    measured_anywhere: distinct(&self.samples, |sample| &sample.hardware),
                    determined: self.order.clone(),
                    models: distinct(&self.samples, |sample| &sample.model),
                    intervals: intervals(&self.samples, &self.holdouts, &self.split, &self.fit),
                    left_out: errors.clone(),
                };
                joint.replace(&mut profile, &measured_at(&own), &source);
            }
            None => adjust(&mut profile, &self.fit, &source),
        }
        written(&profile)
    }
}

/// The error of the predicted memory except the KV cache.
fn memory(catalog: &Catalog, rows: &[MeasuredRow]) -> Result<MemoryFit, Error> {
    let ready = ready(catalog, rows, ProfileFit::Shipped);
    let memory =
        memory_ratios(rows.iter().zip(&ready).filter_map(|(row, ready)| Some((row, ready.as_ref().ok()?))));
    if memory.is_empty() {
        let found = format!("{} rows, too few per runtime", rows.len());
        return Err(too_few(found, format!("at least {} runs on one device", memory_ratios::LEAST)));
    }
    let mut profiles = BTreeMap::new();
    for (name, one) in &memory {
        let mut profile = profile(catalog, name)?;
        one.state(&mut profile);
        profiles.insert(name.clone(), written(&profile));
    }
    Ok(MemoryFit { memory, profiles })
}

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

fn kind(samples: &[&CalibrationSample]) -> &'static str {
    match samples.iter().all(|sample| sample.deployment.timed_separately) {
        true => "prefill and decode rates of single streams",
        false => "aggregated serving points",
    }
}
