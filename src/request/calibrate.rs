//! `calibrate`: refits calibration constants of runtimes to measurements.

pub mod beyond_kernels;
mod closed_loop;
pub mod corrections;
mod errors;
pub mod gates;
mod left_out;
pub mod memory_ratios;

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestControl;
use super::validate::given::GivenRunFacts;
use super::validate::predict::{PreparedRow, ProfileFit, ready, runtime};
use super::validate::table::{MeasuredTable, all_rows};
use crate::calibrate::cross::{HoldoutGroup, left_out};
use crate::calibrate::deployment::PredictedTimes;
use crate::calibrate::fit::{UNCHANGED, determined};
use crate::calibrate::profile::{JointFit, adjust, written};
use crate::calibrate::sample::{CalibrationSample, FitStage};
use crate::calibrate::settings::initial_guesses;
use crate::calibrate::staged::{self, StagedFit};
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
use crate::validate::run_kind::RunKind;
use beyond_kernels::beyond_kernels;
use closed_loop::closed_loop;
use corrections::{CorrectionFit, corrections};
use errors::{Errors, each, errors, medians};
use gates::{Gate, GatePair, GateResult, SizeClass, gate_results};
use left_out::{HoldoutPredictions, intervals, left_out as tell, picture, rows};
use memory_ratios::{MemoryRatios, memory_ratios};

/// A request of `calibrate`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CalibrateRequest {
    /// Tables of measurements, of latencies or of memory. Rows flagged doubtful are skipped; disaggregated rows
    /// calibrate only the intervals.
    pub tables: Vec<MeasuredTable>,
    /// Facts that runs of `bench` and benchmark files of other tools do not state.
    #[serde(skip_serializing_if = "GivenRunFacts::is_empty")]
    pub given: GivenRunFacts,
    /// Uses only rows of these runtimes. A single one is that of benchmark files that state none.
    pub runtime: Vec<String>,
    /// Fits all runtimes of the tables jointly, starting from kernel microbenchmarks only, intervals included.
    pub whole: bool,
    /// Reports whether the median errors of the rows, each predicted without it, are within the stated ones.
    pub gates: bool,
}

/// A report of `calibrate`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CalibrateReport {
    /// Of latencies.
    Latency(Box<LatencyFit>),
    /// Of memory.
    Memory(MemoryFit),
    /// Factors from rows that are too few for constants.
    Corrections(Box<CorrectionFit>),
}

impl CalibrateReport {
    /// The gates, where they were requested.
    pub(crate) fn gates(&self) -> Option<&[GateResult]> {
        let gates = match self {
            CalibrateReport::Latency(fit) => &fit.gates,
            CalibrateReport::Memory(fit) => &fit.gates,
            CalibrateReport::Corrections(fit) => &fit.gates,
        };
        gates.as_deref()
    }

    /// New profile of each runtime, as a file.
    pub(crate) fn profiles(&self) -> &BTreeMap<String, String> {
        match self {
            CalibrateReport::Latency(fit) => &fit.profiles,
            CalibrateReport::Memory(fit) => &fit.profiles,
            CalibrateReport::Corrections(fit) => &fit.profiles,
        }
    }
}

/// Constants fitted to latencies.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LatencyFit {
    /// Runtimes of the rows.
    pub runtimes: Vec<String>,
    /// Number of rows.
    pub rows: usize,
    /// Ids of rows that are left out: they, or others of their series, were served faster than the kernels of their
    /// devices compute, so that some prompts were not computed.
    #[serde(default)]
    pub beyond_kernels: Vec<String>,
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
    /// Whether the predictions of each row, by a fit without its fifth, are as good as stated; null unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<GateResult>>,
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
    /// Whether the predictions of the rows are as good as stated; null unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<GateResult>>,
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
    let rows = request.rows()?;
    let measured: Vec<MeasuredRow> = rows.iter().filter(|row| row.is_for_fits()).cloned().collect();
    let few =
        || corrections(catalog, &rows, request.gates).map(|fit| CalibrateReport::Corrections(Box::new(fit)));
    let timed = |row: &MeasuredRow| row.outcome.ttft_ms.is_some() || row.outcome.tpot_ms.is_some();
    if !measured.iter().any(timed) && measured.iter().any(|row| row.outcome.memory_bytes.is_some()) {
        return memory(catalog, &measured, request.gates)?
            .map_or_else(few, |fit| Ok(CalibrateReport::Memory(fit)));
    }
    let mut samples = request.samples(catalog, &measured);
    samples.fitted.par_iter_mut().for_each(|sample| sample.simulate(&UNCHANGED));
    if !request.whole && samples.are_few(catalog)? {
        return few();
    }
    Ok(CalibrateReport::Latency(Box::new(request.latency(catalog, samples)?)))
}

impl CalibrateRequest {
    /// Constants from samples that were simulated.
    fn latency(&self, catalog: &Catalog, samples: Samples) -> Result<LatencyFit, Error> {
        let Samples { split, fitted: mut found, beyond_kernels } = samples;
        let runtimes = distinct(&found.iter().collect::<Vec<_>>(), |sample| &sample.runtime);
        self.one_fitted_runtime(catalog, &runtimes)?;
        let (order, undetermined) = determined_constants(&found.iter().collect::<Vec<_>>())?;
        let before = {
            let samples: Vec<&CalibrationSample> = found.iter().collect();
            errors("before", &samples, &StagedFit::nothing(&samples, &order).predict(&samples))
        };
        let fit = staged::fit(&mut found, &order, GAIN);
        let samples: Vec<&CalibrationSample> = found.iter().collect();
        let holdouts = held_out(&samples, &fit, self.whole);
        let open = Rows::of(&samples, &holdouts, CalibrationSample::is_open);
        let closed = Rows::of(&samples, &holdouts, |sample| !sample.is_open());
        let after = errors("nothing: the fitted rows", &closed.samples, &fit.predict(&closed.samples));
        let strata: Vec<LeftOut> = closed.holdouts.iter().map(|one| one.errors(&closed.samples)).collect();
        let mut all = vec![tell(&before), tell(&after)];
        for (one, errors) in closed.holdouts.iter().zip(&strata) {
            all.push(errors.clone());
            if matches!(one.holdout, HoldoutGroup::Model | HoldoutGroup::Device) {
                all.extend(each(&one.keys, &closed.samples, &one.predictions).iter().map(tell));
            }
        }
        let under_a_rate = open.under_a_rate(&fit);
        all.extend(under_a_rate.iter().cloned());
        let left_out: Vec<LeftOut> =
            std::iter::once(tell(&after)).chain(strata).chain(under_a_rate).collect();
        let fitted = FittedRows { rows: closed, fitted: samples.len(), split, fit, order };
        let mut profiles = BTreeMap::new();
        for name in &runtimes {
            let profile = fitted.profile(profile(catalog, name)?, name, self.whole.then_some(&left_out));
            profiles.insert(name.clone(), profile);
        }
        let FittedRows { rows: Rows { samples, holdouts }, fit, order, .. } = &fitted;
        let gates = self.gates.then(|| gates_of(samples, holdouts, fit));
        Ok(LatencyFit {
            gates,
            rows: fitted.fitted,
            beyond_kernels,
            unknowns: fit.joined().unknowns.len(),
            constants_determined: order.len(),
            constants_undetermined: undetermined,
            errors: all,
            profiles,
            rows_csv: rows(samples, [&fit.simulated(samples), &fit.predict(samples)], holdouts),
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

    /// Rows of the selected runtimes, without rows flagged doubtful, and without those of sessions and published points:
    /// validation alone sees these.
    fn rows(&self) -> Result<Vec<MeasuredRow>, Error> {
        let only = self.runtime.first().filter(|_| self.runtime.len() == 1).cloned();
        let given = GivenRunFacts { runtime: self.given.runtime.clone().or(only), ..self.given.clone() };
        let mut rows = all_rows(&self.tables, &given)?;
        let wanted: Vec<String> = self.runtime.iter().map(|name| runtime(name)).collect();
        rows.retain(|row| {
            let selected = wanted.is_empty() || wanted.contains(&runtime(&row.runtime));
            let is_sure = row.warning.is_empty() && row.unknown_cache.is_none() && row.speculative.is_none();
            selected && is_sure && !row.is_replayed() && !matches!(row.kind, RunKind::Home(_))
        });
        Ok(rows)
    }

    fn samples(&self, catalog: &Catalog, rows: &[MeasuredRow]) -> Samples {
        let of_kernels = ready(catalog, rows, ProfileFit::KernelsOnly);
        let beyond = beyond_kernels(rows, &of_kernels);
        let ready = if self.whole { of_kernels } else { ready(catalog, rows, ProfileFit::Uncorrected) };
        let left_out = rows.iter().zip(&beyond).filter(|(_, beyond)| **beyond);
        let beyond_kernels = left_out.map(|(row, _)| row.id.clone()).collect();
        let possible = rows.iter().zip(ready).zip(beyond).filter(|(_, beyond)| !beyond);
        let made = possible.filter_map(|((row, ready), _)| {
            let ready = ready.ok()?;
            // A processor has the efficiencies of its runtime's host, which no fit changes: its rows have factors.
            let on_host = ready.problem.cluster.device.is_processor() || row.host_part.is_some();
            if !self.whole && on_host {
                return None;
            }
            let run = match &ready.simulated {
                Some(simulated) if !row.is_of_own_clients() => simulated.of_one_replica(row.outcome.means),
                _ => closed_loop(row, &ready),
            };
            let mut sample = sample(row, ready);
            sample.ttft = row.outcome.ttft_ms.map(|value| value / 1e3);
            sample.tpot = row.outcome.tpot_ms.map(|value| value / 1e3);
            sample.run = run.map(Arc::new);
            if self.whole {
                for (entry, known) in initial_guesses() {
                    *sample.machine.chip.constant_mut(entry.of) = Qty::from(known.value);
                }
            }
            // A sample without a positive predicted time determines no constant.
            let PredictedTimes { ttft, tpot } = sample.times(FitStage::Waits, &UNCHANGED);
            let times = [ttft, tpot];
            times.iter().all(|time| time.is_finite() && *time > 0.0).then_some(sample)
        });
        let (split, fitted) = made.partition(|sample| sample.deployment.pools.len() > 1);
        Samples { split, fitted, beyond_kernels }
    }
}

/// Measured rows as samples.
struct Samples {
    /// Disaggregated rows.
    split: Vec<CalibrationSample>,
    fitted: Vec<CalibrationSample>,
    /// Ids of rows that are left out.
    beyond_kernels: Vec<String>,
}

impl Samples {
    /// Whether they are too few for constants, or of a runtime that has no fit to adjust.
    fn are_few(&self, catalog: &Catalog) -> Result<bool, Error> {
        let samples: Vec<&CalibrationSample> = self.fitted.iter().collect();
        let constants = both_stages(&samples).into_iter().filter(|is_determined| *is_determined).count();
        if samples.len() < ROWS_PER_CONSTANT * constants.max(1) {
            return Ok(true);
        }
        let [only] = &distinct(&samples, |sample| &sample.runtime)[..] else { return Ok(false) };
        Ok(catalog.load::<Runtime>(only)?.serving_fit.is_none())
    }
}

/// The gates of rows: each predicted by a fit without its fifth.
fn gates_of(
    samples: &[&CalibrationSample],
    holdouts: &[HoldoutPredictions],
    fit: &StagedFit,
) -> Vec<GateResult> {
    let fifth = holdouts.iter().find(|one| one.holdout == HoldoutGroup::Fifth);
    let made = fifth.map_or_else(|| fit.predict(samples), |one| one.predictions.clone());
    let of = |(sample, times): (&&CalibrationSample, &PredictedTimes)| {
        // The key of a model ends in its number of parameters.
        let parameters = sample.model.rsplit(' ').next().and_then(|number| number.parse().ok());
        let pair = |gate, measured: Option<f64>, predicted: f64| GatePair {
            gate,
            size: SizeClass::of(parameters.unwrap_or_default()),
            class: sample.class.clone(),
            ratio: measured.unwrap_or(f64::NAN) / predicted,
        };
        let first = Gate::of_first(sample.deployment.timed_separately);
        let both = [pair(Gate::Decode, sample.tpot, times.tpot), pair(first, sample.ttft, times.ttft)];
        both.into_iter().filter(|pair| pair.ratio.is_finite()).collect::<Vec<_>>()
    };
    gate_results(&samples.iter().zip(&made).flat_map(of).collect::<Vec<_>>())
}

/// The constants that the rows determine, and the keys of those that they do not.
fn determined_constants(
    samples: &[&CalibrationSample],
) -> Result<(Vec<CalibratedConstant>, Vec<String>), Error> {
    let (known, unknown): (Vec<_>, Vec<_>) =
        CONSTANTS.iter().zip(both_stages(samples)).partition(|(_, is_determined)| *is_determined);
    let constants = known.len();
    if constants == 0 || samples.len() < ROWS_PER_CONSTANT * constants {
        let found = format!("{} rows, which affect {constants} constants", samples.len());
        return Err(too_few(found, format!("at least {ROWS_PER_CONSTANT} rows per constant")));
    }
    let unknown = unknown.into_iter().map(|(entry, _)| entry.key.to_owned()).collect();
    Ok((known.into_iter().map(|(entry, _)| entry.of).collect(), unknown))
}

/// The constants that a stage of the fit identifies.
fn both_stages(samples: &[&CalibrationSample]) -> [bool; CONSTANTS.len()] {
    let [steps, waits] = [FitStage::Steps, FitStage::Waits].map(|stage| determined(stage, samples));
    std::array::from_fn(|at| steps[at] || waits[at])
}

fn too_few(found: String, expected: String) -> Error {
    Error::new("calibrate", found, expected, "add measurements, or keep the shipped profile")
}

/// Rows of a fit, and the predictions of fits without some of them.
struct Rows<'a> {
    samples: Vec<&'a CalibrationSample>,
    holdouts: Vec<HoldoutPredictions>,
}

impl<'a> Rows<'a> {
    /// The rows that are `wanted`.
    fn of(
        samples: &[&'a CalibrationSample],
        holdouts: &[HoldoutPredictions],
        wanted: impl Fn(&CalibrationSample) -> bool,
    ) -> Rows<'a> {
        let kept: Vec<usize> = (0..samples.len()).filter(|at| wanted(samples[*at])).collect();
        let of = |one: &HoldoutPredictions| HoldoutPredictions {
            holdout: one.holdout,
            keys: kept.iter().map(|at| one.keys[*at].clone()).collect(),
            predictions: kept.iter().map(|at| one.predictions[*at]).collect(),
        };
        Rows {
            samples: kept.iter().map(|at| samples[*at]).collect(),
            holdouts: holdouts.iter().map(of).collect(),
        }
    }

    /// Errors of rows under a request rate, whose predictions are simulations: in sample, and without their models.
    fn under_a_rate(&self, fit: &StagedFit) -> Vec<LeftOut> {
        if self.samples.is_empty() {
            return vec![];
        }
        let inside = "under a request rate: nothing, the fitted rows";
        let models = self.holdouts.iter().find(|one| one.holdout == HoldoutGroup::Model);
        let without = |one: &HoldoutPredictions| {
            errors("under a request rate: other models", &self.samples, &one.predictions)
        };
        let inside = errors(inside, &self.samples, &fit.predict(&self.samples));
        std::iter::once(inside).chain(models.map(without)).map(|one| tell(&one)).collect()
    }
}

/// Predictions of each group of rows by a fit without it.
fn held_out(samples: &[&CalibrationSample], fit: &StagedFit, whole: bool) -> Vec<HoldoutPredictions> {
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
        keys: group.keys(samples),
        predictions: left_out(samples, fit, *group),
    };
    // If all rows are of one kind, no rows remain to predict it from.
    let several = |group: &&HoldoutGroup| group.keys(samples).windows(2).any(|pair| pair[0] != pair[1]);
    groups.iter().filter(several).map(without).collect()
}

/// Fitted rows, their fit, and the predictions of held-out rows.
struct FittedRows<'a> {
    /// Those in a closed loop.
    rows: Rows<'a>,
    /// Number of all.
    fitted: usize,
    /// Disaggregated rows: they calibrate only the intervals.
    split: Vec<CalibrationSample>,
    fit: StagedFit,
    order: Vec<CalibratedConstant>,
}

impl FittedRows<'_> {
    /// The new profile of a runtime: of a whole fit with its held-out errors, else adjusted.
    fn profile(&self, mut profile: Value, name: &str, whole: Option<&Vec<LeftOut>>) -> String {
        let own: Vec<&CalibrationSample> =
            self.rows.samples.iter().copied().filter(|sample| sample.runtime == name).collect();
        let source = source(name, &own, self.fitted, &errors("", &own, &self.fit.predict(&own)));
        match whole {
            Some(errors) => {
                let joint = JointFit {
                    found: &self.fit.joined(),
                    measured_anywhere: distinct(&self.rows.samples, |sample| &sample.hardware),
                    determined: self.order.clone(),
                    models: distinct(&self.rows.samples, |sample| &sample.model),
                    intervals: intervals(&self.rows.samples, &self.rows.holdouts, &self.split, &self.fit),
                    left_out: errors.clone(),
                };
                joint.replace(&mut profile, &measured_at(&own), &source);
            }
            None => adjust(&mut profile, &self.fit.joined(), &source),
        }
        // The constants have them now.
        if let Some(profile) = profile.as_object_mut() {
            profile.remove("corrections");
        }
        written(&profile)
    }
}

/// The error of the predicted memory except the KV cache; `None` of rows that are too few for an interval.
fn memory(catalog: &Catalog, rows: &[MeasuredRow], gated: bool) -> Result<Option<MemoryFit>, Error> {
    let ready = ready(catalog, rows, ProfileFit::Uncorrected);
    let memory =
        memory_ratios(rows.iter().zip(&ready).filter_map(|(row, ready)| Some((row, ready.as_ref().ok()?))));
    if memory.is_empty() {
        return Ok(None);
    }
    let mut profiles = BTreeMap::new();
    for (name, one) in &memory {
        let mut profile = profile(catalog, name)?;
        one.state(&mut profile);
        profiles.insert(name.clone(), written(&profile));
    }
    let held = |(row, ready): (&MeasuredRow, &Result<PreparedRow, String>)| {
        let ready = ready.as_ref().ok()?;
        let ratio = memory_ratios::ratio(row, ready)?;
        let (size, class) = (
            SizeClass::of(ready.problem.graph.unique_parameters()),
            ready.problem.cluster.device.class.clone(),
        );
        Some(GatePair { gate: Gate::Memory, size, class, ratio })
    };
    let pairs = || rows.iter().zip(&ready).filter_map(held).collect::<Vec<_>>();
    let gates = gated.then(|| gate_results(&pairs()));
    Ok(Some(MemoryFit { memory, gates, profiles }))
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
        run: None,
        expansion: None,
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
