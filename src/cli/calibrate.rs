//! `calibrate`: refits calibration constants of runtimes to measurements.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::output::{OutputArgs, parser};
use super::validate::tables;
use super::{CliError, ExitStatus};
use crate::report::format::Format;
use crate::report::rendered::EVERY;
use crate::request::UNCONTROLLED;
use crate::request::calibrate::{CalibrateReport, CalibrateRequest, LatencyFit, calibrate};
use crate::request::validate::given::GivenRunFacts;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::file;

const EXAMPLES: &str = "\
Examples:
  mantile-opt calibrate mine.csv --out vllm.json                     the profile of one runtime, adjusted to my servers
  mantile-opt calibrate mine.csv --gates                             exit code 2 where the errors are not as stated
  MANTILE_HOME=my mantile-opt validate mine.csv                      with that profile as my/hardware/runtimes/vllm.json
  mantile-opt calibrate serving.csv --whole --out hardware/runtimes  how the servers' profiles of this version were made
  mantile-opt calibrate memory.csv --out hardware/runtimes           how far memory beside the cache is off
  mantile-opt calibrate singlestream.csv --whole --runtime llama.cpp,mlx,mistral.rs,mlc-llm --out hardware/runtimes";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Calibrate {
    /// Tables of measurements, as for validate, of latencies or of memory; rows flagged doubtful are skipped;
    /// disaggregated rows calibrate only the intervals
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Use only rows of these runtimes; a single one is that of benchmark files that state none
    #[arg(long, value_delimiter = ',', value_name = "R,R")]
    pub runtime: Vec<String>,
    /// Fit all runtimes of the tables jointly, starting from kernel microbenchmarks only, intervals included
    #[arg(long)]
    pub whole: bool,
    /// Report whether the median errors of the rows, each predicted without it, are within the stated ones: decode 10 %,
    /// prefill 12 %, TTFT 15 %, memory 5 %, by size of model and class of device. Exit code 2 where one is not
    #[arg(long)]
    pub gates: bool,
    /// Write the profile to a file; with --whole, write each runtime's profile into a folder
    #[arg(long, value_name = "FILE.json|FOLDER")]
    pub out: Option<PathBuf>,
    /// Plot held-out residuals by runtime, hardware and model (SVG)
    #[arg(long, value_name = "FILE", requires = "whole")]
    pub residuals: Option<PathBuf>,
    /// Write the held-out prediction of each row (CSV)
    #[arg(long, value_name = "FILE.csv")]
    pub rows: Option<PathBuf>,
    #[command(flatten)]
    pub given: GivenRunFacts,
    /// Format of the report
    #[arg(long, value_parser = parser(EVERY), value_name = "FORMAT", hide_possible_values = true)]
    pub format: Option<Format>,
}

impl Calibrate {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        // A fit takes minutes: a folder that cannot be written is reported before it.
        if let Some(folder) = self.out.as_deref().filter(|_| self.whole) {
            file::make_folder(folder)?;
        }
        let report = calibrate(catalog, &self.request()?, &UNCONTROLLED)?;
        match &report {
            CalibrateReport::Latency(fit) => self.latency(fit)?,
            CalibrateReport::Memory(_) | CalibrateReport::Corrections(_) => {
                let profiles = report.profiles();
                let folder = profiles.len() > 1 || self.out.as_ref().is_some_and(|path| path.is_dir());
                self.profiles(profiles, folder)?;
            }
        }
        OutputArgs { format: self.format, ..OutputArgs::default() }.answer(&report, false)?;
        let is_missed = report.gates().is_some_and(|gates| gates.iter().any(|gate| !gate.met));
        Ok(if is_missed { ExitStatus::CheckFailed } else { ExitStatus::Success })
    }

    pub fn request(&self) -> Result<CalibrateRequest, Error> {
        Ok(CalibrateRequest {
            tables: tables(&self.files)?,
            given: self.given.clone(),
            runtime: self.runtime.clone(),
            whole: self.whole,
            gates: self.gates,
        })
    }

    fn latency(&self, fit: &LatencyFit) -> Result<(), Error> {
        if let Some(path) = &self.rows {
            file::write(path, &fit.rows_csv)?;
        }
        if let Some(path) = &self.residuals {
            file::write(path, &fit.residuals_svg)?;
        }
        self.profiles(&fit.profiles, self.whole)
    }

    /// Writes the profiles: into a folder, or the only one to a file.
    fn profiles(&self, profiles: &BTreeMap<String, String>, folder: bool) -> Result<(), Error> {
        let Some(path) = &self.out else { return Ok(()) };
        profiles.iter().try_for_each(|(name, profile)| match folder {
            true => file::write(&path.join(format!("{name}.json")), profile),
            false => file::write(path, profile),
        })
    }
}
