//! `inspect`: a model's layers, operators and tensors as tables, a drawing, or a comparison.

use super::defaults::AppliedInputs;
use super::output::OutputArgs;
use super::{CliError, ExitStatus};
use crate::report::graph::{GraphDrawing, notation, svg};
use crate::request::UNCONTROLLED;
use crate::request::inspect::{InspectReport, InspectRequest, inspect};
use crate::search::outcome::Status;
use crate::spec::deployment::Deployment;
use crate::store::catalog::Catalog;

#[derive(Clone, Debug, clap::Args)]
pub struct Inspect {
    // The help shows brackets, which are not a link.
    #[allow(rustdoc::broken_intra_doc_links)]
    /// Catalogue name, Hugging Face id, path of a config.json, its folder or a GGUF file, hf:ORG/NAME[@REVISION][:QUANT|/FILE.gguf] or URL
    #[arg(value_name = "MODEL", required_unless_present = "diff")]
    pub model: Option<String>,
    /// Draw the operator graph, equal layers folded, with elements per token on the edges
    #[arg(long, value_enum, value_name = "svg|dot|mermaid", hide_possible_values = true)]
    pub graph: Option<Notation>,
    /// Compare two models or revisions: values, parameter counts, KV cache, operators
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["model", "graph", "overrides"])]
    pub diff: Option<Vec<String>>,
    /// Override a key of config.json, e.g. model.sliding_window=null (repeatable)
    #[arg(long = "set", alias = "override", value_name = "model.KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Show the model as it is parallelised on this hardware: shards, collectives, KV cache, pipeline stages
    #[arg(long, value_name = "SYSTEM", conflicts_with_all = ["diff", "graph"])]
    pub hardware: Option<String>,
    #[command(flatten)]
    pub deployment: Deployment,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Notation {
    /// An SVG picture.
    Svg,
    /// For Graphviz.
    Dot,
    /// For Markdown.
    Mermaid,
}

impl Inspect {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        if self.graph.is_none() {
            let inputs = AppliedInputs { defaults: vec![], overrides: self.overrides.clone() };
            // No defaults apply to this command.
            let _ = self.output.applied.set(inputs);
        }
        let report = inspect(catalog, &self.request(), &UNCONTROLLED)?;
        match (&report, self.graph) {
            (InspectReport::Model(inspected), Some(notation)) => {
                self.output.write(&notation.drawn(&GraphDrawing::of(inspected)))?
            }
            _ => self.output.answer(&report, false)?,
        };
        Ok(match report {
            InspectReport::Parallel(graph) if !graph.violations.is_empty() => {
                ExitStatus::Searched(Status::Infeasible)
            }
            _ => ExitStatus::Success,
        })
    }

    pub fn request(&self) -> InspectRequest {
        let (model, compared_with) = match self.diff.as_deref() {
            Some([a, b]) => (a.clone(), Some(b.clone())),
            _ => (self.model.clone().unwrap_or_default(), None),
        };
        let deployment = (self.deployment != Deployment::default()).then(|| self.deployment.clone());
        let (hardware, overrides) = (self.hardware.clone(), self.overrides.clone());
        InspectRequest { model, compared_with, overrides, hardware, deployment }
    }
}

impl Notation {
    fn drawn(self, view: &GraphDrawing) -> String {
        match self {
            Notation::Svg => svg::svg(view),
            Notation::Dot => notation::dot(view),
            Notation::Mermaid => notation::mermaid(view),
        }
    }
}
