//! `static`: a static batch on given degrees.

use super::estimate::PlannedArgs;
use super::output::OutputArgs;
use super::plot::PlotArgs;
use super::{CliError, ExitStatus};
use crate::report::svg::static_batch::static_picture;
use crate::request::UNCONTROLLED;
use crate::request::static_batch::{NativeLayers, StaticRequest, static_batch};
use crate::spec::error::Error;
use crate::spec::limits::{BATCH, whole};
use crate::store::catalog::Catalog;

const AFTER: &str = "\
All requests of the batch start together and take every step together: the whole prompts in one prefill step, then one \
token each in every decode step. No scheduler, no queue, no chunks. The formulas are those of `estimate`. Degrees that \
the runtime does not run are evaluated and marked theoretical.

Examples:
  mantile-opt static --model Llama-3.3-70B --hardware 8xh100 --tp 8 --batch 8 --isl 2048 --osl 128
  mantile-opt static --model Llama-3.3-70B --hardware 8xh100 --tp 4 --dp 2 --ffn-tp 8 --vocab-tp 8 --batch 16
  mantile-opt static --model Llama-3.3-70B --hardware 8xh200 --prefill-tp 8 --decode-tp 4 --prefill-batch 1 --decode-batch 64
  mantile-opt static --model Qwen3-32B --hardware 4xl40s --tp 4 --weight-format fp8 --native-layers attention --detail";

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Static {
    /// Requests of the batch [default: 1]
    #[arg(long, value_name = "N", value_parser = whole(&BATCH), allow_negative_numbers = true, help_heading = "Batch")]
    pub batch: Option<u64>,
    /// Requests of the prefill batch [default: --batch]
    #[arg(long, value_name = "N", value_parser = whole(&BATCH), allow_negative_numbers = true, help_heading = "Batch")]
    pub prefill_batch: Option<u64>,
    /// Requests of the decode batch [default: --batch]
    #[arg(long, value_name = "N", value_parser = whole(&BATCH), allow_negative_numbers = true, help_heading = "Batch")]
    pub decode_batch: Option<u64>,
    /// Layer types that stay in the model's own dtype: attention, feed-forward, experts, vocabulary
    #[arg(
        long,
        value_enum,
        value_name = "TYPES",
        value_delimiter = ',',
        hide_possible_values = true,
        help_heading = "Batch"
    )]
    pub native_layers: Vec<NativeLayers>,
    /// Show every operator
    #[arg(long, help_heading = "Output")]
    pub detail: bool,
    #[command(flatten)]
    pub planned: PlannedArgs,
    #[command(flatten)]
    pub plot: PlotArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Static {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        self.plot.check()?;
        let request = self.request()?;
        self.planned.problem.save(catalog, &request.scenario)?;
        let report = static_batch(catalog, &request, &UNCONTROLLED)?;
        self.plot.write(|| static_picture(&report))?;
        self.output.answer(&report, self.detail)?;
        let fits = report.phases.iter().all(|phase| phase.fits);
        Ok(ExitStatus::of(fits))
    }

    pub fn request(&self) -> Result<StaticRequest, Error> {
        Ok(StaticRequest {
            scenario: self.planned.scenario()?,
            batch: self.batch,
            prefill_batch: self.prefill_batch,
            decode_batch: self.decode_batch,
            native_layers: self.native_layers.clone(),
        })
    }
}
