//! `calibrate`: refits calibration constants of runtimes to measurements.

mod errors;
mod left_out;
mod memory_ratios;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::output::{OutputArgs, OutputFormat, csv, json as pretty};
use super::validate::predict::{PreparedRow, ProfileFit, ready, runtime};
use super::validate::table;
use super::{CliError, ExitStatus};
use crate::calibrate::cross::{HoldoutGroup, left_out};
use crate::calibrate::deployment::PredictedTimes;
use crate::calibrate::fit::{FitSolution, determined};
use crate::calibrate::levels::unknowns;
use crate::calibrate::profile::{BEGINNINGS, JointFit, adjust, written};
use crate::calibrate::sample::{CalibrationSample, ORDER, set};
use crate::report::left_out::{HEADER, cells};
use crate::report::table::table as lines;
use crate::spec::error::Error;
use crate::spec::nearness::{LeftOut, MeasuredAt};
use crate::spec::runtime::{CalibratedConstant, Runtime};
use crate::store::catalog::Catalog;
use crate::store::file;
use crate::store::kind::CatalogKind;
use crate::store::prediction_intervals::model_key;
use crate::validate::measured::MeasuredRow;
use errors::{Errors, each, errors, medians};
use left_out::{HoldoutPredictions, intervals, left_out as tell, picture, rows};
use memory_ratios::beside;

const EXAMPLES: &str = "\
Examples:
  mantile-opt calibrate mine.csv --out vllm.json                     the profile of one runtime, adjusted to my servers
  MANTILE_HOME=my mantile-opt validate mine.csv                      with that profile as my/hardware/runtimes/vllm.json
  mantile-opt calibrate serving.csv --whole --out hardware/runtimes  how the servers' profiles of this version were made
  mantile-opt calibrate memory.csv --out hardware/runtimes           how far memory beside the cache is off
  mantile-opt calibrate singlestream.csv --whole --runtime llama.cpp,mlx,mistral.rs,mlc-llm --out hardware/runtimes";

/// The flags of `calibrate`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Calibrate {
    /// Tables of measurements, as for validate, of latencies or of memory; rows flagged doubtful are skipped;
    /// disaggregated rows calibrate only the intervals
    #[arg(required = true, value_name = "FILE.csv")]
    pub files: Vec<PathBuf>,
    /// Use only rows of these runtimes
    #[arg(long, value_delimiter = ',', value_name = "R,R")]
    pub runtime: Vec<String>,
    /// Fit all runtimes of the tables jointly, starting from kernel microbenchmarks only, intervals included
    #[arg(long)]
    pub whole: bool,
    /// Write the profile to a file; with --whole, write each runtime's profile into a folder
    #[arg(long, value_name = "FILE.json|FOLDER")]
    pub out: Option<PathBuf>,
    /// Plot held-out residuals by runtime, hardware and model (SVG)
    #[arg(long, value_name = "FILE", requires = "whole")]
    pub residuals: Option<PathBuf>,
    /// Write the held-out prediction of each row (CSV)
    #[arg(long, value_name = "FILE.csv")]
    pub rows: Option<PathBuf>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "table|json|csv", hide_possible_values = true)]
    pub format: OutputFormat,
}

/// Minimum number of measurements per constant that they determine.
const ROWS_PER_CONSTANT: usize = 2;

/// Fitted values are rounded to four digits.
const GAIN: f64 = 1e-4;

impl Calibrate {
    /// Refits, reports the gain, and writes the profiles.
    ///
    /// # Errors
    /// The tables do not determine the constants, or a file cannot be read or written.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        // A fit takes minutes: a folder that cannot be written is reported before it.
        if let Some(folder) = self.out.as_deref().filter(|_| self.whole) {
            file::make_folder(folder)?;
        }
        let measured = self.measured()?;
        let timed = |row: &MeasuredRow| row.outcome.ttft_ms.is_some() || row.outcome.tpot_ms.is_some();
        if !measured.iter().any(timed) && measured.iter().any(|row| row.outcome.memory_bytes.is_some()) {
            return self.memory(catalog, &measured);
        }
        let (split, found): (Vec<CalibrationSample>, Vec<CalibrationSample>) =
            self.samples(catalog, &measured).into_iter().partition(|sample| sample.posed.pools.len() > 1);
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
            )
            .into());
        }
        if let Some(name) = runtimes.first().filter(|_| !self.whole)
            && catalog.load::<Runtime>(name)?.serving_fit.is_none()
        {
            return Err(Error::new(
                "serving_fit",
                format!("no fit in the profile of {name}"),
                "a fitted profile",
                "add --whole, and set a folder with --out",
            )
            .into());
        }
        let determined = determined(&samples);
        let constants = determined.iter().filter(|is_determined| **is_determined).count();
        if constants == 0 || samples.len() < ROWS_PER_CONSTANT * constants {
            return Err(Error::new(
                "calibrate",
                format!("{} rows, which affect {constants} constants", samples.len()),
                format!("at least {ROWS_PER_CONSTANT} rows per constant"),
                "add measurements, or keep the shipped profile",
            )
            .into());
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
                HoldoutGroup::Maker,
            ],
            false => &[HoldoutGroup::Fifth, HoldoutGroup::Model, HoldoutGroup::Device],
        };
        let without = |out: &HoldoutGroup| HoldoutPredictions {
            out: *out,
            keys: out.keys(&samples),
            made: left_out(&samples, &fit, *out),
        };
        // If all rows are of one kind, no rows remain to predict it from.
        let several = |one: &HoldoutGroup| one.keys(&samples).windows(2).any(|pair| pair[0] != pair[1]);
        let held_out: Vec<HoldoutPredictions> = outs.iter().filter(|one| several(one)).map(without).collect();
        let strata: Vec<LeftOut> = held_out.iter().map(|one| one.errors(&samples)).collect();
        let fitted = tell(&after);
        let mut all = vec![tell(&before), fitted.clone()];
        for (one, errors) in held_out.iter().zip(&strata) {
            all.push(errors.clone());
            if matches!(one.out, HoldoutGroup::Model | HoldoutGroup::Device) {
                all.extend(each(&one.keys, &samples, &one.made).iter().map(tell));
            }
        }
        if let Some(path) = &self.rows {
            file::write(path, &rows(&samples, &fit.predict(&samples), &held_out)?)?;
        }
        if let Some(path) = &self.residuals {
            file::write(path, &picture(&samples, &held_out))?;
        }
        if let Some(path) = &self.out {
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
                    file::write(&path.join(format!("{name}.json")), &written(&profile))?;
                } else {
                    adjust(&mut profile, &fit, &source);
                    file::write(path, &written(&profile))?;
                }
            }
        }
        let untold: Vec<String> = ORDER
            .iter()
            .zip(determined)
            .filter(|(_, is_determined)| !is_determined)
            .map(|(of, _)| spell(*of))
            .collect();
        let output = OutputArgs { format: self.format, out: None };
        output.found(&match self.format {
            OutputFormat::Table => report(&samples, &runtimes, &fit, &untold, &all),
            OutputFormat::Json => pretty(&json!({
                "runtimes": runtimes, "rows": samples.len(), "unknowns": fit.unknowns.len(),
                "constants_told": constants, "constants_not_told": untold, "errors": all,
            })),
            OutputFormat::Csv => csv(&HEADER, all.iter().map(cells))?,
        })
    }

    /// Rows of the selected runtimes, without rows flagged doubtful.
    fn measured(&self) -> Result<Vec<MeasuredRow>, CliError> {
        let mut rows = Vec::new();
        for path in &self.files {
            rows.extend(table::read(path)?);
        }
        let wanted: Vec<String> = self.runtime.iter().map(|name| runtime(name)).collect();
        rows.retain(|row| {
            let asked = wanted.is_empty() || wanted.contains(&runtime(&row.runtime));
            row.doubt.is_empty() && asked
        });
        Ok(rows)
    }

    /// Reports the error of the predicted memory except the KV cache, and writes it into the profiles.
    fn memory(&self, catalog: &Catalog, rows: &[MeasuredRow]) -> Result<ExitStatus, CliError> {
        let ready = ready(catalog, rows, ProfileFit::Shipped);
        let found =
            beside(rows.iter().zip(&ready).filter_map(|(row, ready)| Some((row, ready.as_ref().ok()?))));
        if found.is_empty() {
            return Err(Error::new(
                "calibrate",
                format!("{} rows, too few per runtime", rows.len()),
                format!("at least {} runs on one device", memory_ratios::LEAST),
                "add measurements, or keep the shipped profile",
            )
            .into());
        }
        for (name, one) in &found {
            let Some(path) = &self.out else { break };
            let mut profile = profile(catalog, name)?;
            one.state(&mut profile);
            let alone = found.len() == 1 && !path.is_dir();
            let path = if alone { path.clone() } else { path.join(format!("{name}.json")) };
            file::write(&path, &written(&profile))?;
        }
        let cells: Vec<Vec<String>> = found.iter().map(|(name, one)| one.cells(name)).collect();
        let output = OutputArgs { format: self.format, out: None };
        output.found(&match self.format {
            OutputFormat::Table => format!(
                "Memory except the KV cache, measured / predicted\n\n{}",
                lines(&memory_ratios::HEADER, &cells)
            ),
            OutputFormat::Json => pretty(&json!({"memory": found})),
            OutputFormat::Csv => csv(&memory_ratios::HEADER, cells)?,
        })
    }

    fn samples(&self, catalog: &Catalog, rows: &[MeasuredRow]) -> Vec<CalibrationSample> {
        let fit = if self.whole { ProfileFit::Without } else { ProfileFit::Shipped };
        let ready = ready(catalog, rows, fit);
        let made = rows.iter().zip(ready).filter_map(|(row, ready)| {
            let mut sample = sample(row, ready.ok()?);
            sample.ttft = row.outcome.ttft_ms.map(|value| value / 1e3);
            sample.tpot = row.outcome.tpot_ms.map(|value| value / 1e3);
            if self.whole {
                BEGINNINGS.iter().for_each(|known| set(&mut sample.machine, known.of, known.value));
            }
            // A sample without a positive predicted time determines no constant.
            let PredictedTimes { ttft, tpot } = sample.times(&[0.0; ORDER.len()]);
            let times = [ttft, tpot];
            times.iter().all(|time| time.is_finite() && *time > 0.0).then_some(sample)
        });
        made.collect()
    }
}

/// The current profile of a runtime.
fn profile(catalog: &Catalog, name: &str) -> Result<Value, Error> {
    let text = catalog.find(CatalogKind::Runtimes, name).map_err(Error::from)?.text()?;
    Ok(serde_json::from_str(&text).expect("rows were made ready with it, so it was read as a runtime"))
}

fn sample(row: &MeasuredRow, ready: PreparedRow) -> CalibrationSample {
    let formats = &ready.question.formats[0];
    let graph = &ready.question.graph;
    CalibrationSample {
        id: row.id.clone(),
        runtime: ready.runtime,
        model: model_key(graph),
        hardware: row.hardware.clone(),
        machine: formats.plain().clone(),
        class: ready.question.cluster.device.class.clone(),
        family: ready.question.cluster.device.family.clone(),
        weight_format: formats.weights.clone(),
        traits: ready.traits,
        posed: ready.posed,
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
        let (lengths, requests) = (sample.posed.lengths, sample.posed.requests());
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
    match samples.iter().all(|sample| sample.posed.timed_separately) {
        true => "prefill and decode rates of single streams",
        false => "aggregated serving points",
    }
}

fn report(
    samples: &[&CalibrationSample],
    runtimes: &[String],
    fit: &FitSolution,
    untold: &[String],
    all: &[LeftOut],
) -> String {
    let kept = match untold {
        [] => String::new(),
        untold => format!("Not determined by these rows, unchanged: {}\n", untold.join(", ")),
    };
    format!(
        "{} rows of {}; {} unknowns\n{kept}\n{}\nAbsolute errors in %: median and p90. Choices under a \
         TPOT SLO: the share in % that meets\nthe SLO as measured, and the median throughput regret in %. In 80 %: the \
         share of rows between p10 and\np90 of the other held-out groups.\n",
        samples.len(),
        runtimes.join(", "),
        fit.unknowns.len(),
        lines(&HEADER, &all.iter().map(cells).collect::<Vec<_>>()),
    )
}
