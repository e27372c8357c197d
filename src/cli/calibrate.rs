//! `calibrate`: refits calibration constants of runtimes to measurements.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::output::{OutputArgs, OutputFormat, csv};
use super::validate::tables;
use super::{CliError, ExitStatus};
use crate::report::left_out::{HEADER, cells};
use crate::report::table::table as lines;
use crate::request::UNCONTROLLED;
use crate::request::calibrate::{
    CalibrateReport, CalibrateRequest, LatencyFit, MemoryFit, calibrate, memory_ratios,
};
use crate::request::wording::answer_text;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::file;

const EXAMPLES: &str = "\
Examples:
  mantile-opt calibrate mine.csv --out vllm.json                     the profile of one runtime, adjusted to my servers
  MANTILE_HOME=my mantile-opt validate mine.csv                      with that profile as my/hardware/runtimes/vllm.json
  mantile-opt calibrate serving.csv --whole --out hardware/runtimes  how the servers' profiles of this version were made
  mantile-opt calibrate memory.csv --out hardware/runtimes           how far memory beside the cache is off
  mantile-opt calibrate singlestream.csv --whole --runtime llama.cpp,mlx,mistral.rs,mlc-llm --out hardware/runtimes";

/// The flags of `calibrate`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
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
        let text = match calibrate(catalog, &self.request()?, &UNCONTROLLED)? {
            CalibrateReport::Latency(fit) => self.latency(&fit)?,
            CalibrateReport::Memory(fit) => self.memory(&fit)?,
        };
        OutputArgs { format: self.format.into(), ..OutputArgs::default() }.found(&text)
    }

    /// The request of the flags and files.
    ///
    /// # Errors
    /// A table cannot be read.
    pub fn request(&self) -> Result<CalibrateRequest, Error> {
        Ok(CalibrateRequest {
            tables: tables(&self.files)?,
            runtime: self.runtime.clone(),
            whole: self.whole,
        })
    }

    fn latency(&self, fit: &LatencyFit) -> Result<String, CliError> {
        if let Some(path) = &self.rows {
            file::write(path, &fit.rows_csv)?;
        }
        if let Some(path) = &self.residuals {
            file::write(path, &fit.residuals_svg)?;
        }
        self.profiles(&fit.profiles, self.whole)?;
        Ok(match self.format {
            OutputFormat::Table => report(fit),
            OutputFormat::Json => answer_text(fit),
            OutputFormat::Csv => csv(&HEADER, fit.errors.iter().map(cells))?,
        })
    }

    /// Reports the error of the predicted memory except the KV cache.
    fn memory(&self, fit: &MemoryFit) -> Result<String, CliError> {
        let folder = fit.profiles.len() > 1 || self.out.as_ref().is_some_and(|path| path.is_dir());
        self.profiles(&fit.profiles, folder)?;
        let cells: Vec<Vec<String>> = fit.memory.iter().map(|(name, one)| one.cells(name)).collect();
        Ok(match self.format {
            OutputFormat::Table => format!(
                "Memory except the KV cache, measured / predicted\n\n{}",
                lines(&memory_ratios::HEADER, &cells)
            ),
            OutputFormat::Json => answer_text(fit),
            OutputFormat::Csv => csv(&memory_ratios::HEADER, cells)?,
        })
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

fn report(fit: &LatencyFit) -> String {
    let kept = match &fit.constants_not_told[..] {
        [] => String::new(),
        names => format!("Not determined by these rows, unchanged: {}\n", names.join(", ")),
    };
    format!(
        "{} rows of {}; {} unknowns\n{kept}\n{}\nAbsolute errors in %: median and p90. Choices under a \
         TPOT SLO: the share in % that meets\nthe SLO as measured, and the median throughput regret in %. In 80 %: the \
         share of rows between p10 and\np90 of the other held-out groups.\n",
        fit.rows,
        fit.runtimes.join(", "),
        fit.unknowns,
        lines(&HEADER, &fit.errors.iter().map(cells).collect::<Vec<_>>()),
    )
}
