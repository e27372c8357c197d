//! Factors on predicted time and memory from rows that are too few for a fit.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::validate::predict::{PreparedRow, ProfileFit, prediction, ready};
use super::gates::{Gate, GatePair, GateResult, SizeClass, gate_results};
use super::{profile, too_few};
use crate::calibrate::fit::UNCHANGED;
use crate::calibrate::profile::{rounded, written};
use crate::calibrate::sample::{LogMultipliers, with_multipliers};
use crate::report::table::table;
use crate::spec::constant::{CONSTANTS, ConstantKind};
use crate::spec::correction::{CellCorrection, ShrunkFactor};
use crate::spec::error::Error;
use crate::spec::nearness::{Interval, Nearness, around_prediction};
use crate::spec::runtime::Runtime;
use crate::store::catalog::Catalog;
use crate::store::kind::CatalogKind;
use crate::store::prediction_intervals::model_key;
use crate::validate::figures::RunFigure;
use crate::validate::measured::MeasuredRow;
use crate::validate::summary::Prediction;

/// Factors from few rows.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CorrectionFit {
    /// Number of rows that state a time or a memory that is predicted.
    pub rows: usize,
    /// Rows that are not used, with the reasons.
    pub skipped: Vec<String>,
    /// The factors of each cell of the rows, on predictions without any.
    pub factors: Vec<FittedCorrection>,
    /// Whether the predictions of each row, by factors of the other rows, are as good as stated; null unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<GateResult>>,
    /// New profile of each runtime, as a file.
    #[serde(skip)]
    pub profiles: BTreeMap<String, String>,
}

/// The factors of a cell.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FittedCorrection {
    /// The runtime.
    pub runtime: String,
    /// Where they apply, and the factors.
    pub correction: CellCorrection,
    /// Similarity of the cell to the measurements of the fit: the factor helps most where they are far.
    pub near: Option<Nearness>,
    /// Measured / predicted time: geometric mean of the rows, before it is shrunk.
    pub time_ratio: Option<f64>,
    /// The same of computation, where rows of single requests determine it.
    #[serde(default)]
    pub compute_ratio: Option<f64>,
    /// The same of the memory except the KV cache.
    pub memory_ratio: Option<f64>,
}

/// Columns of [`FittedCorrection::rows`].
pub const HEADER: [&str; 10] =
    ["runtime", "model", "hardware", "weights", "of", "rows", "measured / predicted", "factor", "p10", "p90"];

/// Of the rows of hardware/measured/serving.csv in such cells.
const KNOWN_CELL: &str = "\nThe fit of the runtime has rows of this model on this device. There, one published row raises the median\nTPOT \
                          error of the others from 5 to 6 or 7 %: check the factor with --gates.\n";

/// The logarithm of measured / predicted of a row, and p10 and p90 of that ratio before any row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LogRatio {
    log: f64,
    prior: [f64; 2],
}

/// A row and its ratios.
struct CorrectedRow<'a> {
    runtime: &'a str,
    cell: [String; 3],
    size: SizeClass,
    class: String,
    near: Option<Nearness>,
    time: Option<LogRatio>,
    /// The parts of that time, where the row determines both.
    parts: Option<TimeParts>,
    memory: Option<LogRatio>,
    /// Errors by gate: measured / predicted, and whether it is a memory.
    gated: Vec<(Gate, f64)>,
}

/// How much slower computation and everything else were than predicted: TTFT and TPOT of a request without others.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TimeParts {
    compute: LogRatio,
    rest: LogRatio,
}

/// Largest logarithm of a factor that a row can determine: a prompt that hardly computes would need more.
const LARGEST_LOG: f64 = 3.0;
/// Rounds after which a row is one that does not determine both factors: each round brings both latencies nearer where
/// prompts mostly compute and steps mostly read.
const MOST_ROUNDS: usize = 60;
/// Error of both latencies with the parts, as logarithms, at most.
const SOLVED: f64 = 0.005;

/// The logarithms of the factors on computation and on other times that give both latencies of a row with one request in
/// flight: prompts compute, steps read. `None` where they do not, or where the prompt waits for something else.
fn solved(ready: &PreparedRow, [ttft, tpot]: [f64; 2]) -> Option<[f64; 2]> {
    let changed = |[compute, rest]: [f64; 2]| -> LogMultipliers {
        let mut changes = UNCHANGED;
        for (change, entry) in changes.iter_mut().zip(CONSTANTS) {
            *change = match entry.kind {
                ConstantKind::Count => 0.0,
                _ if entry.of.is_of_compute() => compute,
                _ => rest,
            };
        }
        changes
    };
    let plain = ready.problem.formats[0].plain();
    let mut parts = [0.0; 2];
    for _ in 0..MOST_ROUNDS {
        let made = ready.deployment.times(&with_multipliers(plain, &changed(parts)));
        let left = [libm::log(ttft / made.ttft), libm::log(tpot / made.tpot)];
        if left.iter().all(|left| left.abs() < SOLVED) {
            return Some(parts);
        }
        for (part, left) in parts.iter_mut().zip(left) {
            *part += left;
        }
        // A change without an effect only grows.
        if !parts.iter().all(|part| part.abs() < LARGEST_LOG) {
            return None;
        }
    }
    None
}

/// The parts of the time of a row, with p10 and p90 before any row.
fn time_parts(row: &MeasuredRow, ready: &PreparedRow, interval: &Interval) -> Option<TimeParts> {
    if ready.deployment.requests() > 1 || row.traffic.is_some() {
        return None;
    }
    let [compute, rest] = solved(ready, [row.outcome.ttft_ms? / 1e3, row.outcome.tpot_ms? / 1e3])?;
    let of = |log: f64, quantiles| {
        let [low, _, high] = around_prediction(quantiles);
        LogRatio { log, prior: [low, high] }
    };
    Some(TimeParts { compute: of(compute, interval.ttft), rest: of(rest, interval.tpot) })
}

/// A measured figure in the terms of its prediction: the logarithm of the ratio of both times.
fn slower(measured: Option<f64>, predicted: Option<f64>) -> Option<f64> {
    let log = libm::log(measured? / predicted?);
    log.is_finite().then_some(log)
}

/// How much slower a row was than predicted: by TPOT and TTFT, each with the weight of its certainty; else by the first
/// of its other times and rates. Queues under a rate do not grow as steps do, so that its TTFT does not count.
fn time_ratio(row: &MeasuredRow, made: &Prediction, interval: &Interval) -> Option<LogRatio> {
    let ends = |[low, _, high]: [f64; 3]| [low, high];
    let outcome = &row.outcome;
    let of = |figure: RunFigure| (outcome.more.get(figure), made.more.get(figure));
    let rate = |figure: RunFigure| slower(of(figure).0, of(figure).1).map(|log| -log);
    let time = |figure: RunFigure| slower(of(figure).0, of(figure).1);
    let [ttft, tpot, throughput] = [interval.ttft, interval.tpot, interval.throughput]
        .map(|quantiles| ends(around_prediction(quantiles)));
    let step = slower(outcome.tpot_ms, Some(made.tpot_ms)).or_else(|| time(RunFigure::Itl));
    let first = outcome.ttft_ms.filter(|_| row.traffic.is_none());
    let both = [(step, tpot), (slower(first, Some(made.ttft_ms)), ttft)];
    let known: Vec<LogRatio> =
        both.into_iter().filter_map(|(log, prior)| Some(LogRatio { log: log?, prior })).collect();
    if !known.is_empty() {
        return Some(weighted(&known));
    }
    let whole = slower(outcome.e2e_ms, made.e2e_ms).or_else(|| time(RunFigure::E2e));
    let others = [(whole, tpot), (rate(RunFigure::Output), throughput), (rate(RunFigure::Prefill), ttft)];
    others.into_iter().find_map(|(log, prior)| Some(LogRatio { log: log?, prior }))
}

/// The mean of ratios, each weighted by the inverse square of the width of its interval; with the interval of the most
/// certain one.
fn weighted(ratios: &[LogRatio]) -> LogRatio {
    let width = |[low, high]: [f64; 2]| libm::log(high / low).max(1e-6);
    let weights: Vec<f64> = ratios.iter().map(|one| width(one.prior).powi(-2)).collect();
    let sum: f64 = weights.iter().sum();
    let log = ratios.iter().zip(&weights).map(|(one, weight)| one.log * weight).sum::<f64>() / sum;
    let surest = ratios.iter().map(|one| one.prior).min_by(|a, b| width(*a).total_cmp(&width(*b)));
    LogRatio { log, prior: surest.unwrap_or([1.0, 1.0]) }
}

/// Measured / predicted memory except the KV cache: by a peak, by what is left for the KV cache, or by the weights.
fn memory_ratio(row: &MeasuredRow, made: &Prediction, ready: &PreparedRow) -> Option<f64> {
    let held = ready.footprint();
    let cache = held.kv.value();
    let rest = held.total.value() - cache;
    let stated = |figure| row.outcome.more.get(figure).zip(made.more.get(figure));
    // The bytes for the cache and the rest share what the server may use.
    let left = stated(RunFigure::KvMemory).map(|(measured, predicted)| rest + predicted - measured);
    let tokens = || {
        let (measured, predicted) = stated(RunFigure::KvTokens)?;
        let state = held.state.map_or(0.0, |state| state.value());
        let free = held.usable.value() - rest - state;
        Some(rest + free * (1.0 - measured / predicted))
    };
    let weights = || {
        let (measured, predicted) = stated(RunFigure::Weights)?;
        Some(rest - predicted + measured)
    };
    let peak = row.outcome.memory_bytes.map(|bytes| bytes - cache);
    let measured = peak.or(left).or_else(tokens).or_else(weights)?;
    Some(measured / rest).filter(|ratio| *ratio > 0.0)
}

/// p10 and p90 of measured / predicted memory: of the runtime, else the widest of any.
fn memory_prior(catalog: &Catalog, ready: &PreparedRow) -> [f64; 2] {
    let own = ready.problem.formats[0].memory_quantiles.as_ref().map(|known| known.quantiles);
    let ids = catalog.entries(CatalogKind::Runtimes).into_keys();
    let widest = || {
        let all =
            ids.filter_map(|id| catalog.load::<Runtime>(&id).ok()?.memory.measured.map(|one| one.quantiles));
        all.reduce(|a, b| [a[0].min(b[0]), a[1], a[2].max(b[2])])
    };
    let [low, _, high] = around_prediction(own.or_else(widest).unwrap_or([1.0; 3]));
    [low, high]
}

impl<'a> CorrectedRow<'a> {
    fn of(catalog: &Catalog, row: &MeasuredRow, ready: &'a PreparedRow) -> Result<CorrectedRow<'a>, String> {
        let made = prediction(row, ready)?;
        let formats = &ready.problem.formats[0];
        let requests = ready.deployment.requests();
        let interval = ready.interval(requests);
        let time = interval.and_then(|interval| time_ratio(row, &made, interval));
        let parts = interval.and_then(|interval| time_parts(row, ready, interval));
        let memory = memory_ratio(row, &made, ready)
            .map(|ratio| LogRatio { log: libm::log(ratio), prior: memory_prior(catalog, ready) });
        if time.is_none() && memory.is_none() {
            return Err("no time, rate or memory that is predicted".to_owned());
        }
        let device = &ready.problem.cluster.device;
        let outcome = &row.outcome;
        let both = [
            (Gate::Decode, outcome.tpot_ms.map(|measured| measured / made.tpot_ms)),
            (Gate::of_first(row.timed_separately), outcome.ttft_ms.map(|measured| measured / made.ttft_ms)),
            (Gate::Memory, memory.map(|one| libm::exp(one.log))),
        ];
        Ok(CorrectedRow {
            runtime: &ready.runtime,
            cell: [model_key(&ready.problem.graph), device.id.clone(), formats.weights.clone()],
            size: SizeClass::of(ready.problem.graph.unique_parameters()),
            class: device.class.clone(),
            near: interval.map(|interval| interval.near),
            time,
            parts,
            memory,
            gated: both.into_iter().filter_map(|(gate, ratio)| Some((gate, ratio?))).collect(),
        })
    }

    fn key(&self) -> (&str, &[String; 3]) {
        (self.runtime, &self.cell)
    }

    /// Errors of its predictions with the factors of the other rows of its cell.
    fn errors(&self, all: &[CorrectedRow]) -> Vec<GatePair> {
        let others = || all.iter().filter(|one| one.key() == self.key() && !std::ptr::eq(*one, self));
        let times = |found: Option<(ShrunkFactor, f64)>| found.map(|(factor, _)| factor.times);
        let [time, compute] = time_factors(others()).map(times);
        let memory = times(shrunk(others().filter_map(|one| one.memory)));
        let pair = |(gate, ratio): &(Gate, f64)| GatePair {
            gate: *gate,
            size: self.size,
            class: self.class.clone(),
            ratio: ratio
                / match gate {
                    Gate::Memory => memory,
                    Gate::Decode => time,
                    _ => compute.or(time),
                }
                .unwrap_or(1.0),
        };
        self.gated.iter().map(pair).collect()
    }
}

/// The factor of ratios, and their geometric mean.
fn shrunk(ratios: impl Iterator<Item = LogRatio>) -> Option<(ShrunkFactor, f64)> {
    let ratios: Vec<LogRatio> = ratios.collect();
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let end = |at: usize| libm::exp(mean(ratios.iter().map(|one| libm::log(one.prior[at])).collect()));
    let logs: Vec<f64> = ratios.iter().map(|one| one.log).collect();
    let factor = ShrunkFactor::of(&logs, [end(0), end(1)])?;
    Some((factor, libm::exp(mean(logs))))
}

/// The factors on time and on computation: one for both, unless rows determine each.
fn time_factors<'a, 'b: 'a>(
    rows: impl Iterator<Item = &'a CorrectedRow<'b>> + Clone,
) -> [Option<(ShrunkFactor, f64)>; 2] {
    let compute = shrunk(rows.clone().filter_map(|row| Some(row.parts?.compute)));
    let time =
        |row: &CorrectedRow| row.parts.filter(|_| compute.is_some()).map(|parts| parts.rest).or(row.time);
    [shrunk(rows.filter_map(time)), compute]
}

/// The factors of rows. Each row alone is enough for one.
pub(super) fn corrections(
    catalog: &Catalog,
    measured: &[MeasuredRow],
    gated: bool,
) -> Result<CorrectionFit, Error> {
    let prepared = ready(catalog, measured, ProfileFit::Uncorrected);
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    for (row, ready) in measured.iter().zip(&prepared) {
        let made = ready.as_ref().map_err(Clone::clone);
        match made.and_then(|ready| CorrectedRow::of(catalog, row, ready)) {
            Ok(made) => rows.push(made),
            Err(why) => skipped.push(format!("{}: {why}", row.id)),
        }
    }
    if rows.is_empty() {
        let found = match skipped.first() {
            Some(first) => format!("{} rows without a factor; the first: {first}", measured.len()),
            None => "no row that a fit may take".to_owned(),
        };
        return Err(too_few(found, "a row with a time, a rate or a memory".to_owned()));
    }
    let mut factors: Vec<FittedCorrection> = Vec::new();
    let mut cells: Vec<(&str, &[String; 3])> = rows.iter().map(CorrectedRow::key).collect();
    cells.sort();
    cells.dedup();
    for cell in cells {
        factors.push(FittedCorrection::of(&rows, cell));
    }
    let pairs = || rows.iter().flat_map(|row| row.errors(&rows)).collect::<Vec<_>>();
    let gates = gated.then(|| gate_results(&pairs()));
    let profiles = profiles(catalog, &factors)?;
    Ok(CorrectionFit { rows: rows.len(), skipped, factors, gates, profiles })
}

impl FittedCorrection {
    fn of(rows: &[CorrectedRow], cell: (&str, &[String; 3])) -> FittedCorrection {
        let own = || rows.iter().filter(|row| row.key() == cell);
        let [time, compute] = time_factors(own());
        let memory = shrunk(own().filter_map(|row| row.memory));
        let (runtime, [model, hardware, weight_format]) = cell;
        FittedCorrection {
            runtime: runtime.to_owned(),
            correction: CellCorrection {
                model: model.clone(),
                hardware: hardware.clone(),
                weight_format: weight_format.clone(),
                time: time.map(|(factor, _)| factor),
                compute: compute.map(|(factor, _)| factor),
                memory: memory.map(|(factor, _)| factor),
                source: format!(
                    "{} of one's own (mantile-opt calibrate), shrunk to 1",
                    counted(own().count())
                ),
            },
            near: own().filter_map(|row| row.near).min(),
            time_ratio: time.map(|(_, mean)| mean),
            compute_ratio: compute.map(|(_, mean)| mean),
            memory_ratio: memory.map(|(_, mean)| mean),
        }
    }

    /// The rows of [`HEADER`]: one for each factor.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let one = &self.correction;
        let of = |(name, factor, ratio): (&str, Option<ShrunkFactor>, Option<f64>)| {
            let factor = factor?;
            let names = [&self.runtime, &one.model, &one.hardware, &one.weight_format].map(String::clone);
            let numbers =
                [ratio?, factor.times, factor.low, factor.high].map(|value| rounded(value).to_string());
            Some([&names[..], &[name.to_owned(), factor.rows.to_string()], &numbers].concat())
        };
        let each = [
            ("time", one.time, self.time_ratio),
            ("compute", one.compute, self.compute_ratio),
            ("memory", one.memory, self.memory_ratio),
        ];
        each.into_iter().filter_map(of).collect()
    }
}

/// The profiles with the factors in place of those of the same cells.
fn profiles(catalog: &Catalog, factors: &[FittedCorrection]) -> Result<BTreeMap<String, String>, Error> {
    let mut found = BTreeMap::<String, Value>::new();
    for one in factors {
        if !found.contains_key(&one.runtime) {
            found.insert(one.runtime.clone(), profile(catalog, &one.runtime)?);
        }
        let known = found.get_mut(&one.runtime).map(|profile| &mut profile["corrections"]);
        let Some(known) = known else { continue };
        let mut kept: Vec<Value> = known.as_array().cloned().unwrap_or_default();
        let cell = &one.correction;
        let same = |value: &Value| {
            ["model", "hardware", "weight_format"].map(|key| value[key].as_str().unwrap_or_default())
                == [&cell.model, &cell.hardware, &cell.weight_format].map(String::as_str)
        };
        kept.retain(|value| !same(value));
        kept.push(json!(cell));
        *known = Value::Array(kept);
    }
    Ok(found.into_iter().map(|(name, profile)| (name, written(&profile))).collect())
}

fn counted(rows: usize) -> String {
    format!("{rows} measured {}", if rows == 1 { "row" } else { "rows" })
}

impl CorrectionFit {
    /// The factors as a text for people.
    pub fn text(&self) -> String {
        let rows: Vec<Vec<String>> = self.factors.iter().flat_map(FittedCorrection::rows).collect();
        let skipped: String = self.skipped.iter().map(|why| format!("  {why}\n")).collect();
        let has_fit = |one: &FittedCorrection| matches!(one.near, Some(Nearness::Measured | Nearness::Load));
        let known = if self.factors.iter().any(|one| has_fit(one) && one.correction.time.is_some()) {
            KNOWN_CELL
        } else {
            ""
        };
        let skipped = if skipped.is_empty() { skipped } else { format!("\nNot used:\n{skipped}") };
        let counted = counted(self.rows);
        format!(
            "{counted}: too few for the constants of a runtime. One factor for time and one for memory except the KV \
             cache,\nshrunk to 1: k rows of a model on a device in a weight format weigh k / (k + 0.5)\n\n{}{known}{skipped}",
            table(&HEADER, &rows),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surer_figure_weighs_more() {
        let of = |log: f64, prior: [f64; 2]| LogRatio { log, prior };
        let both = weighted(&[of(0.1, [0.9, 1.1]), of(0.7, [0.5, 2.0])]);
        assert!(both.log > 0.1 && both.log < 0.2, "{both:?}");
        assert_eq!(both.prior, [0.9, 1.1]);
        let equal = weighted(&[of(0.3, [0.9, 1.1]), of(0.3, [0.5, 2.0])]);
        assert!((equal.log - 0.3).abs() < 1e-12);
    }
}
