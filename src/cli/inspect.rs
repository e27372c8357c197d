//! `inspect`: a model's layers, operators and tensors as tables, a drawing, or a comparison.

use serde_json::Value;

use super::output::{OutputArgs, OutputFormat, csv, json};
use super::{CliError, ExitStatus};
use crate::graph::inspect::Inspection;
use crate::graph::model::ModelGraph;
use crate::report::diff::Difference;
use crate::report::graph::{GraphDrawing, notation, svg};
use crate::report::inspect::compare::{self, Comparison};
use crate::report::inspect::total::Reconciliation;
use crate::report::inspect::{Inspected, role, text};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

/// The flags of `inspect`.
#[derive(Clone, Debug, clap::Args)]
pub struct Inspect {
    // The help shows brackets, which are not a link.
    #[allow(rustdoc::broken_intra_doc_links)]
    /// Catalogue name, Hugging Face id, path of a config.json or its folder, hf:ORG/NAME[@REVISION] or URL
    #[arg(value_name = "MODEL", required_unless_present = "diff")]
    pub model: Option<String>,
    /// Draw the operator graph, equal layers folded, with elements per token on the edges
    #[arg(long, value_enum, value_name = "svg|dot|mermaid", hide_possible_values = true)]
    pub graph: Option<Notation>,
    /// Compare two models or revisions: values, parameter counts, KV cache, operators
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["model", "graph", "overrides"])]
    pub diff: Option<Vec<String>>,
    /// Override a key of config.json, e.g. sliding_window=null (repeatable)
    #[arg(long = "override", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// The output flags.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Format of a graph drawing.
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
    /// Finds the model and reports its structure.
    ///
    /// # Errors
    /// The model is not found or not supported, or the output cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        if let Some([a, b]) = self.diff.as_deref() {
            return self.differences(catalog, [a.as_str(), b.as_str()]);
        }
        let inspected = inspected(catalog, self.model.as_deref().unwrap_or_default(), &self.overrides)?;
        if let Some(notation) = self.graph {
            let view = GraphDrawing::of(&inspected);
            return self.output.found(&match notation {
                Notation::Svg => svg::svg(&view),
                Notation::Dot => notation::dot(&view),
                Notation::Mermaid => notation::mermaid(&view),
            });
        }
        self.output.found(&match self.output.format {
            OutputFormat::Table => text(&inspected),
            OutputFormat::Json => json(&inspected),
            OutputFormat::Csv => {
                let rows = inspected.inspection.tensors.iter().map(|tensor| {
                    let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
                    vec![tensor.name.clone(), shape.join("x"), role(tensor), tensor.buffer.to_string()]
                });
                csv(&["tensor", "shape", "role", "buffer"], rows)?
            }
        })
    }

    fn differences(&self, catalog: &Catalog, names: [&str; 2]) -> Result<ExitStatus, CliError> {
        let (a, b) = (inspected(catalog, names[0], &[])?, inspected(catalog, names[1], &[])?);
        let comparison = Comparison::of(names, [&a, &b]);
        self.output.found(&match self.output.format {
            OutputFormat::Table => compare::text(&comparison),
            OutputFormat::Json => json(&comparison),
            OutputFormat::Csv => {
                let row = |difference: Difference| {
                    let ratio = difference.ratio.map(|ratio| ratio.to_string()).unwrap_or_default();
                    vec![
                        difference.key,
                        difference.a.unwrap_or_default(),
                        difference.b.unwrap_or_default(),
                        ratio,
                    ]
                };
                csv(&["key", names[0], names[1], "ratio"], comparison.differences.into_iter().map(row))?
            }
        })
    }
}

/// The structure of the model that `name` refers to.
fn inspected(catalog: &Catalog, name: &str, overrides: &[String]) -> Result<Inspected, CliError> {
    let model = catalog.model(name)?;
    let in_file = |fault: Error| fault.in_file(&model.source);
    let (mut config, mut keys) = (model.config.clone(), vec![]);
    for stated in overrides {
        let Some((key, value)) = stated.split_once('=') else {
            let fix = "write e.g. --override sliding_window=4096";
            return Err(Error::new("override", stated.as_str(), "KEY=VALUE", fix).into());
        };
        // Values that are not JSON are texts.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        config = config.with(key, value).map_err(in_file)?;
        keys.push(key.to_owned());
    }
    let graph = ModelGraph::build(&config).map_err(in_file)?;
    let named = model.named.as_ref().map(|published| published.weight_format.as_str());
    // A checkpoint known only by name may have another layout than this configuration.
    let inspection = match named {
        None => Inspection::of_checkpoint(&graph, &config),
        Some(_) => Inspection::of(&graph),
    };
    // The published count is that of the unmodified file.
    let total = model.published_total.as_ref().filter(|_| keys.is_empty());
    Ok(Inspected {
        weight_format: named.or(config.weight_format()).map(str::to_owned),
        published_total: total.map(|total| Reconciliation::of(&inspection, total)),
        inspection: inspection.overridden(&keys),
        name: model.name,
        source: model.source,
    })
}
