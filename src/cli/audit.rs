//! `audit`: the assumptions of a prediction, by their effect.

use super::deadline::with_deadline;
use super::estimate::PlannedArgs;
use super::output::OutputArgs;
use super::plot::PlotArgs;
use super::{CliError, ExitStatus};
use crate::report::svg::tornado::audit_picture;
use crate::report::text::audit::markdown;
use crate::request::audit::{AuditRequest, audit};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

const AFTER: &str = "\
Without a plan, the best one is audited. Every input that is neither on a data sheet nor in the configuration is listed \
with its source and with the change of each metric where it is 10 % larger; JSON and CSV have elasticities of every \
metric. --set changes an input; the audit shows the metrics without it.

Examples:
  mantile-opt audit --model Llama-3.1-8B --hardware 1xh100
  mantile-opt audit --plan-from answer.json --markdown --out audit.md
  mantile-opt audit --set device.memory.bandwidth='3 TB/s' --set model.num_hidden_layers=40
  mantile-opt audit --model Qwen3-32B --hardware 4xl40s --tp 4 --format csv";

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Audit {
    #[command(flatten)]
    pub planned: PlannedArgs,
    /// Show every input
    #[arg(long, help_heading = "Output")]
    pub detail: bool,
    /// Write Markdown, every input with its source
    #[arg(long, conflicts_with_all = ["format", "json"], help_heading = "Output")]
    pub markdown: bool,
    #[command(flatten)]
    pub plot: PlotArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Audit {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let request = self.request()?;
        self.plot.check()?;
        self.planned.problem.save(catalog, &request.scenario)?;
        let report = with_deadline(None, |control| audit(catalog, &request, control))?;
        self.plot.write(|| audit_picture(&report))?;
        match self.markdown {
            true => self.output.write(&markdown(&report)),
            false => self.output.answer(&report, self.detail),
        }
    }

    pub fn request(&self) -> Result<AuditRequest, Error> {
        Ok(AuditRequest { scenario: self.planned.scenario()? })
    }
}
