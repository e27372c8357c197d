//! `catalog`: lists the catalogue, checks user files, compares entries.

pub mod check;
pub mod diff;
pub mod versions;

use super::output::OutputArgs;
use super::{CliError, ExitStatus};
use crate::request::UNCONTROLLED;
use crate::request::catalog::{self as request, CatalogRequest};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::kind::CatalogKind;

#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ListCatalog {
    #[command(subcommand)]
    pub action: Option<Action>,
    /// Kind of catalogue entries
    #[arg(value_enum, value_name = "KIND", required = true)]
    pub kind: Option<CatalogKind>,
    /// One entry, with every figure and its source
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Clone, Debug, clap::Subcommand)]
pub enum Action {
    /// Check catalogue files: report their content, doubtful figures and faults
    Check(check::CheckFiles),
    /// Compare two entries of one kind: figures that differ, with their ratio
    Diff(diff::DiffEntries),
    /// Check a file and put it into your own folder; a version that it replaces is kept
    Save(versions::SaveEntry),
    /// List the versions of an entry of your own, with what changed
    History(versions::EntryHistory),
    /// Make a version of an entry of your own the current one again
    Restore(versions::RestoreEntry),
}

impl ListCatalog {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        match &self.action {
            Some(Action::Check(check)) => check.run(catalog),
            Some(Action::Diff(diff)) => diff.run(catalog),
            Some(Action::Save(save)) => save.run(catalog),
            Some(Action::History(history)) => history.run(catalog),
            Some(Action::Restore(restore)) => restore.run(catalog),
            None => self.output.answer(&request::catalog(catalog, &self.request()?, &UNCONTROLLED)?, false),
        }
    }

    pub fn request(&self) -> Result<CatalogRequest, Error> {
        let kind = self.kind.ok_or_else(|| {
            let fix = "write e.g. `mantile-opt catalog devices`, `catalog check` or `catalog diff`";
            Error::new("KIND", "nothing", "a kind of catalogue entries", fix)
        })?;
        Ok(CatalogRequest { kind, name: self.name.clone() })
    }
}
