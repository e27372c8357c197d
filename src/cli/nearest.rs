//! `nearest`: published measurements next to a deployment.

use super::deadline::with_deadline;
use super::estimate::PlannedArgs;
use super::output::OutputArgs;
use super::{CliError, ExitStatus};
use crate::request::nearest::{NearestRequest, nearest};
use crate::spec::error::Error;
use crate::spec::limits::{LISTED, whole};
use crate::store::catalog::Catalog;

const AFTER: &str = "\
The program contains published measurements of servers and of single users, each with its source. Those of the same \
model and device are sorted by their distance: the sum of the absolute logarithms of the ratios of ISL, OSL, devices of \
a replica and concurrency per device; another runtime, weight format or mode counts as much as a ratio of e each. With --any, those of every model and \
device are listed, and another model or device counts as much. Most serving rows were fitted: cross-validated errors are in docs/accuracy.md.

Examples:
  mantile-opt nearest --model Llama-3.1-8B --hardware 2xh100
  mantile-opt nearest --model DeepSeek-V3 --hardware 8xh200 --plan '1 x tp8 @64' --most 10
  mantile-opt nearest --model Llama-3.1-8B --hardware 2xh100 --any --most 1000 --format csv
  mantile-opt nearest --plan-from answer.json --format csv";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Nearest {
    #[command(flatten)]
    pub planned: PlannedArgs,
    /// Number of measurements
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole(&LISTED))]
    pub most: u64,
    /// Measurements of every model on every device
    #[arg(long)]
    pub any: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Nearest {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let request = self.request()?;
        self.planned.problem.save(catalog, &request.scenario)?;
        let report = with_deadline(None, |control| nearest(catalog, &request, control))?;
        self.output.answer(&report, false)
    }

    pub fn request(&self) -> Result<NearestRequest, Error> {
        let scenario = self.planned.scenario()?;
        Ok(NearestRequest { scenario, most: self.most, any: self.any })
    }
}
