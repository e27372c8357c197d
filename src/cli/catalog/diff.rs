//! `catalog diff`: compares two entries of a kind, figure by figure.

use crate::cli::output::{OutputArgs, OutputFormat, csv};
use crate::cli::{CliError, ExitStatus};
use crate::report::diff::{Difference, text};
use crate::report::pretty::pretty;
use crate::request::catalog::diff::differences;
use crate::store::catalog::Catalog;
use crate::store::kind::CatalogKind;

/// The flags of `catalog diff`.
#[derive(Clone, Debug, clap::Args)]
pub struct DiffEntries {
    /// An entry by name, or a file
    #[arg(value_name = "A")]
    pub a: String,
    /// Another entry of the same kind
    #[arg(value_name = "B")]
    pub b: String,
    /// Kind of both, where a name matches entries of several kinds
    #[arg(long, value_enum, value_name = "KIND", hide_possible_values = true)]
    pub kind: Option<CatalogKind>,
    /// The output flags.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl DiffEntries {
    /// Compares the two entries.
    ///
    /// # Errors
    /// One is unknown, they are of different kinds, or the output cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let found = differences(catalog, self.kind, [&self.a, &self.b])?;
        self.output.found(&match self.output.format() {
            OutputFormat::Table => text([&self.a, &self.b], &found),
            OutputFormat::Json => pretty(&found),
            OutputFormat::Csv => {
                csv(&["key", &self.a, &self.b, "ratio"], found.into_iter().map(Difference::cells))?
            }
        })
    }
}
