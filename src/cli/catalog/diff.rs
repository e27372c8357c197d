//! `catalog diff`: compares two entries of a kind, figure by figure.

use crate::cli::output::OutputArgs;
use crate::cli::{CliError, ExitStatus};
use crate::report::diff::{Difference, text};
use crate::report::sheet::csv;
use crate::request::catalog::diff::differences;
use crate::store::catalog::Catalog;
use crate::store::kind::CatalogKind;

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
    #[command(flatten)]
    pub output: OutputArgs,
}

impl DiffEntries {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let found = differences(catalog, self.kind, [&self.a, &self.b])?;
        let rows = csv(["key", &self.a, &self.b, "ratio"], found.iter().cloned().map(Difference::cells));
        self.output.plain(&text([&self.a, &self.b], &found), &found, Some(rows))
    }
}
