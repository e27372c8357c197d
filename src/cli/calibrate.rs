//! `calibrate`: a runtime's factors refitted to measurements.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use super::output::{Format, Output, csv, json as pretty};
use super::validate::predict::{Ready, ready, runtime};
use super::validate::table;
use super::{Fault, Verdict};
use crate::calibrate::fit::{Fit, Sample, Times};
use crate::report::table::table as lines;
use crate::spec::error::Error;
use crate::spec::runtime::{Factor, Runtime};
use crate::store::catalog::Catalog;
use crate::store::file;
use crate::store::kind::Kind;
use crate::validate::measured::Measured;
use crate::validate::score::{Pair, Score, score};

const EXAMPLES: &str = "\
Examples:
  mantile-opt calibrate serving.csv --runtime vllm --profile vllm.json
  MANTILE_HOME=my mantile-opt validate serving.csv    with the profile as my/hardware/runtimes/vllm.json";

/// The flags of `calibrate`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Calibrate {
    /// Tables of measurements, as for validate; aggregated rows without a doubt count
    #[arg(required = true, value_name = "FILE.csv")]
    pub files: Vec<PathBuf>,
    /// The runtime whose profile is refitted
    #[arg(long, value_name = "R")]
    pub runtime: String,
    /// Write the refitted profile to a file
    #[arg(long, value_name = "FILE.json")]
    pub profile: Option<PathBuf>,
    /// Where the report goes.
    #[command(flatten)]
    pub output: Output,
}

/// Errors of both latencies.
#[derive(Clone, Debug, Serialize)]
pub struct Errors {
    /// Which predictions.
    pub name: String,
    /// Time per output token.
    pub tpot: Option<Score>,
    /// Time to first token.
    pub ttft: Option<Score>,
}

/// Fewer measurements than this for each factor that they tell about do not fix it.
const MEASUREMENTS_PER_FACTOR: usize = 2;

impl Calibrate {
    /// Refits, tells what it gained, and writes the profile.
    ///
    /// # Errors
    /// The tables do not tell enough, or something cannot be read or written.
    pub fn run(&self, catalog: &Catalog) -> Result<Verdict, Fault> {
        let file = catalog.find(Kind::Runtimes, &self.runtime).map_err(Error::from)?;
        let profile: Runtime = catalog.load(&self.runtime)?;
        let factors = profile.serving_fit.as_ref().map(|fit| fit.factors.clone()).unwrap_or_default();
        let mut rows = Vec::new();
        for path in &self.files {
            rows.extend(table::read(path)?);
        }
        rows.retain(|row| {
            row.pools.len() == 1
                && row.doubt.is_empty()
                && !row.single_stream
                && runtime(&row.runtime) == profile.id
        });
        let ready = ready(catalog, &rows);
        let found: Vec<(Measured, Sample)> = rows
            .into_iter()
            .zip(ready)
            .filter_map(|(row, ready)| Some((row.clone(), sample(&row, ready.ok()?))))
            .collect();
        let samples: Vec<&Sample> = found.iter().map(|(_, sample)| sample).collect();
        let fit = Fit::new(samples.clone(), &factors);
        let told = fit.told();
        let identified = told.iter().filter(|told| **told).count();
        if identified == 0 || 2 * samples.len() < MEASUREMENTS_PER_FACTOR * identified {
            let fault = Error::new(
                "calibrate",
                format!("{} rows of {}, which bear on {identified} factors", samples.len(), profile.name),
                format!("a row at least for each of {} factors", factors.len()),
                "give more measurements of this runtime, or keep the shipped profile",
            );
            return Err(fault.into());
        }
        let before = errors("before", &found, &fit.predictions());
        let fit = fit.solve();
        let after = errors("after", &found, &fit.predictions());
        let told_apart = vec![
            errors("models left out", &found, &left_out(&found, &factors, |row| &row.model)),
            errors("hardware left out", &found, &left_out(&found, &factors, |row| &row.hardware)),
        ];
        let all: Vec<Errors> = [before, after].into_iter().chain(told_apart).collect();
        if let Some(path) = &self.profile {
            file::write(path, &written(&file.text()?, &fit.found(), &told, &all, found.len())?)?;
        }
        let percent =
            |score: Option<Score>| score.map(|s| format!("{:.1}", 100.0 * s.mdape)).unwrap_or_default();
        let cells = |e: &Errors| vec![e.name.clone(), percent(e.tpot), percent(e.ttft)];
        let header = ["predictions", "TPOT", "TTFT"];
        self.output.found(&match self.output.format {
            Format::Table => format!(
                "{} rows of {}; {identified} of {} factors are told by them, the others stay\n\n{}\nMedian absolute errors in %\n",
                found.len(),
                profile.name,
                factors.len(),
                lines(&header, &all.iter().map(cells).collect::<Vec<_>>())
            ),
            Format::Json => pretty(&json!({
                "runtime": profile.id, "rows": found.len(), "factors": factors.len(), "identified": identified,
                "errors": all,
            })),
            Format::Csv => csv(&header, all.iter().map(cells))?,
        })
    }
}

fn sample(row: &Measured, ready: Ready) -> Sample {
    let formats = &ready.question.formats[0];
    let seconds = |milliseconds: Option<f64>| milliseconds.map(|value| value / 1e3);
    Sample {
        machine: formats.plain().clone(),
        family: ready.question.cluster.device.family.clone(),
        weight_format: formats.weights.clone(),
        traits: ready.traits,
        posed: ready.posed,
        ttft: seconds(row.outcome.ttft_ms),
        tpot: seconds(row.outcome.tpot_ms),
    }
}

fn errors(name: &str, rows: &[(Measured, Sample)], made: &[Times]) -> Errors {
    let pairs = |pick: fn(&Sample) -> Option<f64>, made_of: fn(&Times) -> f64| {
        let paired = rows.iter().zip(made).filter_map(|((_, sample), times)| {
            Some(Pair { predicted: made_of(times), measured: pick(sample)?, interval: None })
        });
        score(&paired.collect::<Vec<_>>())
    };
    Errors { name: name.into(), tpot: pairs(|s| s.tpot, |t| t.tpot), ttft: pairs(|s| s.ttft, |t| t.ttft) }
}

/// Predictions of each row from a fit without the rows that share its `key`.
fn left_out(rows: &[(Measured, Sample)], factors: &[Factor], key: fn(&Measured) -> &String) -> Vec<Times> {
    let mut made = vec![Times { ttft: f64::NAN, tpot: f64::NAN }; rows.len()];
    let mut keys: Vec<&String> = rows.iter().map(|(row, _)| key(row)).collect();
    keys.sort();
    keys.dedup();
    for out in keys {
        let of = |outside: bool| rows.iter().filter(move |(row, _)| (key(row) == out) == outside);
        let fit = Fit::new(of(false).map(|(_, sample)| sample).collect(), factors).solve();
        let there = fit.carried_over(of(true).map(|(_, sample)| sample).collect(), factors);
        let places = rows.iter().enumerate().filter(|(_, (row, _))| key(row) == out).map(|(at, _)| at);
        places.zip(there).for_each(|(at, times)| made[at] = times);
    }
    made
}

/// The profile with its factors as found.
fn written(text: &str, times: &[f64], told: &[bool], all: &[Errors], rows: usize) -> Result<String, Error> {
    let broken = |why: &str| Error::new("serving_fit", why, "a runtime's profile", "mend the file");
    let mut profile: Value = serde_json::from_str(text).map_err(|fault| broken(&fault.to_string()))?;
    let fit = profile.get_mut("serving_fit").ok_or_else(|| broken("none"))?;
    let factors = fit.get_mut("factors").and_then(Value::as_array_mut).ok_or_else(|| broken("no factors"))?;
    for ((factor, times), _) in factors.iter_mut().zip(times).zip(told).filter(|(_, told)| **told) {
        let was = factor["times"].as_f64().unwrap_or(1.0);
        factor["times"] = json!((was * times * 1e4).round() / 1e4);
    }
    let tell = |e: &Errors| {
        let percent = |score: Option<Score>| score.map_or(f64::NAN, |s| 100.0 * s.mdape);
        format!("{} {:.1} % on TPOT, {:.1} % on TTFT", e.name, percent(e.tpot), percent(e.ttft))
    };
    let told: Vec<String> = all.iter().map(tell).collect();
    fit["source"] = json!(format!("calibrated on {rows} rows; median errors: {}", told.join("; ")));
    Ok(pretty(&profile))
}
