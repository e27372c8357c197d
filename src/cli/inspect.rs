//! `inspect`: a model laid open.

use super::output::{Format, Output, csv, json};
use super::{Fault, Verdict};
use crate::graph::inspect::Inspection;
use crate::graph::model::ModelGraph;
use crate::report::inspect::{Inspected, role, text};
use crate::store::catalog::Catalog;

/// The flags of `inspect`.
#[derive(Clone, Debug, clap::Args)]
pub struct Inspect {
    /// Catalogue name, Hugging Face id, path of a config.json or its folder, hf:ORG/NAME or URL
    #[arg(value_name = "MODEL")]
    pub model: String,
    /// Where the answer goes.
    #[command(flatten)]
    pub output: Output,
}

impl Inspect {
    /// Finds the model and lays it open.
    ///
    /// # Errors
    /// The model is not found or not understood, or the answer cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<Verdict, Fault> {
        let model = catalog.model(&self.model)?;
        let graph = ModelGraph::build(&model.config).map_err(|fault| fault.in_file(&model.source))?;
        let named = model.named.as_ref().map(|published| published.weight_format.as_str());
        let inspected = Inspected {
            weight_format: named.or(model.config.weight_format()).map(str::to_owned),
            // A checkpoint that is known by name only may be laid out in another way than this configuration says.
            inspection: match named {
                None => Inspection::of_checkpoint(&graph, &model.config),
                Some(_) => Inspection::of(&graph),
            },
            name: model.name,
            source: model.source,
        };
        self.output.found(&match self.output.format {
            Format::Table => text(&inspected),
            Format::Json => json(&inspected),
            Format::Csv => {
                let rows = inspected.inspection.tensors.iter().map(|tensor| {
                    let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
                    vec![tensor.name.clone(), shape.join("x"), role(tensor), tensor.buffer.to_string()]
                });
                csv(&["tensor", "shape", "role", "buffer"], rows)?
            }
        })
    }
}
