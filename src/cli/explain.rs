//! `explain`: one number, down to its source data.

use super::estimate::PlannedArgs;
use super::output::OutputArgs;
use super::{CliError, ExitStatus};
use crate::request::UNCONTROLLED;
use crate::request::explain::{ExplainReport, ExplainRequest, Number, explain};
use crate::request::explained_placement::saved_placement;
use crate::spec::error::Error;
use crate::spec::limits::{DEPTH, whole};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

#[derive(Clone, Debug, Default, clap::Args)]
pub struct Explain {
    /// Number to explain.
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "NUMBER",
        hide_possible_values = true,
        help = format!("Number to explain: {}", Number::NAMES.join(", ")),
        help_heading = "Number to explain"
    )]
    pub number: Number,
    /// Show only the terms under this path, e.g. decode/layer/attention
    #[arg(long, value_name = "PATH", help_heading = "Number to explain")]
    pub path: Option<String>,
    /// Depth of the tree, in levels
    #[arg(long, value_name = "N", value_parser = whole(&DEPTH), help_heading = "Number to explain")]
    pub depth: Option<u64>,
    #[command(flatten)]
    pub planned: PlannedArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Explain {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let request = self.request()?;
        self.planned.problem.save(catalog, &request.scenario)?;
        let report = explain(catalog, &request, &UNCONTROLLED)?;
        self.output.answer(&report, false)?;
        Ok(ExitStatus::of(matches!(report, ExplainReport::Explained(_))))
    }

    pub fn request(&self) -> Result<ExplainRequest, Error> {
        let text = self.planned.saved.text()?;
        let placement = text.as_deref().map(saved_placement).transpose()?.flatten();
        let scenario = match &placement {
            Some(_) => Scenario::default(),
            None => self.planned.scenario_of(text)?,
        };
        Ok(ExplainRequest {
            scenario,
            placement,
            number: self.number,
            path: self.path.clone(),
            depth: self.depth,
        })
    }
}
