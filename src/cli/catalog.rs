//! `catalog`: lists the catalogue, checks user files, compares entries.

pub mod check;
pub mod diff;

use super::output::{OutputArgs, OutputFormat, csv, json};
use super::{CliError, ExitStatus};
use crate::report::catalog::{CatalogLine, Listed, entry, list};
use crate::spec::cluster::System;
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::format;
use crate::spec::link::Link;
use crate::spec::model::file::ModelFile;
use crate::spec::objective::{Objective, Workload};
use crate::spec::rig::Rig;
use crate::spec::runtime::Runtime;
use crate::store::catalog::{Catalog, read_entry};
use crate::store::kind::{CatalogKind, Entry};

/// The flags of `catalog`.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ListCatalog {
    /// A subcommand.
    #[command(subcommand)]
    pub action: Option<Action>,
    /// Kind of catalogue entries
    #[arg(value_enum, value_name = "KIND", required = true)]
    pub kind: Option<CatalogKind>,
    /// One entry, with every figure and its source
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// The output flags.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The subcommands of `catalog`.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Action {
    /// Check catalogue files: report their content, doubtful figures and faults
    Check(check::CheckFiles),
    /// Compare two entries of one kind: figures that differ, with their ratio
    Diff(diff::DiffEntries),
}

impl ListCatalog {
    /// Lists a kind of entries, or shows one entry.
    ///
    /// # Errors
    /// The entry does not exist, a file is faulty, or the output cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        match (&self.action, self.kind, &self.name) {
            (Some(Action::Check(check)), ..) => check.run(catalog),
            (Some(Action::Diff(diff)), ..) => diff.run(catalog),
            (None, Some(kind), Some(name)) => self.one(catalog, kind, name),
            (None, Some(kind), None) => self.all(catalog, kind),
            (None, None, _) => {
                let fix = "write e.g. `mantile-opt catalog devices`, `catalog check` or `catalog diff`";
                Err(Error::new("KIND", "nothing", "a kind of catalogue entries", fix).into())
            }
        }
    }

    fn one(&self, catalog: &Catalog, kind: CatalogKind, name: &str) -> Result<ExitStatus, CliError> {
        let shelved = match kind {
            CatalogKind::Models => catalog.known_model(name),
            kind => catalog.find(kind, name),
        };
        let shelved = shelved.map_err(Error::from)?;
        line_of(kind, &shelved)?;
        let text = shelved.text()?;
        let value: serde_json::Value = crate::spec::text::from_json(&text, kind.article())?;
        self.output.found(&match self.output.format {
            OutputFormat::Table => entry(&value),
            OutputFormat::Json => json(&value),
            OutputFormat::Csv => {
                let fix = "use --format table or json for one entry";
                return Err(Error::new("format", "csv", "table or json", fix).into());
            }
        })
    }

    fn all(&self, catalog: &Catalog, kind: CatalogKind) -> Result<ExitStatus, CliError> {
        let shelf = catalog.shelf(kind);
        let lines: Vec<CatalogLine> =
            shelf.values().map(|shelved| line_of(kind, shelved)).collect::<Result<_, Error>>()?;
        self.output.found(&match self.output.format {
            OutputFormat::Table => list(&lines),
            OutputFormat::Json => json(&lines),
            OutputFormat::Csv => {
                let row = |line: CatalogLine| vec![line.id, line.name, line.aliases.join(" "), line.summary];
                csv(&["id", "name", "aliases", "summary"], lines.into_iter().map(row))?
            }
        })
    }
}

/// The line of a file, which is read whole: every listed entry can be used.
fn line_of(kind: CatalogKind, shelved: &crate::store::catalog::CatalogEntry) -> Result<CatalogLine, Error> {
    fn of<T: Entry + Listed>(shelved: &crate::store::catalog::CatalogEntry) -> Result<CatalogLine, Error> {
        let line = read_entry::<T>(shelved)?.line();
        Ok(CatalogLine { id: shelved.id.clone(), user: shelved.user, ..line })
    }
    match kind {
        CatalogKind::Models => of::<ModelFile>(shelved),
        CatalogKind::Devices => of::<Device>(shelved),
        CatalogKind::Systems => of::<System>(shelved),
        CatalogKind::Rigs => of::<Rig>(shelved),
        CatalogKind::Links => of::<Link>(shelved),
        CatalogKind::Formats => of::<format::NumberFormat>(shelved),
        CatalogKind::Runtimes => of::<Runtime>(shelved),
        CatalogKind::Objectives => of::<Objective>(shelved),
        CatalogKind::Workloads => of::<Workload>(shelved),
    }
}
