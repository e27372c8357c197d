//! `catalog`: what is known, whether one's own files are in order, and how two entries differ.

pub mod check;
pub mod diff;

use super::output::{Format, Output, csv, json};
use super::{Fault, Verdict};
use crate::report::catalog::{Line, Listed, entry, list};
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
use crate::store::kind::{Entry, Kind};

/// The flags of `catalog`.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ListCatalog {
    /// What else to do with it.
    #[command(subcommand)]
    pub action: Option<Action>,
    /// Which catalogue
    #[arg(value_enum, value_name = "KIND", required = true)]
    pub kind: Option<Kind>,
    /// One entry of it, figure by figure, with sources
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Where the answer goes.
    #[command(flatten)]
    pub output: Output,
}

/// What else to do with a catalogue.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Action {
    /// Are these files in order? What was understood, what is doubtful, or what to mend
    Check(check::CheckFiles),
    /// Two entries of one kind: the figures that differ, and how many times
    Diff(diff::DiffEntries),
}

impl ListCatalog {
    /// Lists a catalogue, or lays one entry open.
    ///
    /// # Errors
    /// There is no such entry, a file is faulty, or the answer cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<Verdict, Fault> {
        match (&self.action, self.kind, &self.name) {
            (Some(Action::Check(check)), ..) => check.run(catalog),
            (Some(Action::Diff(diff)), ..) => diff.run(catalog),
            (None, Some(kind), Some(name)) => self.one(catalog, kind, name),
            (None, Some(kind), None) => self.all(catalog, kind),
            (None, None, _) => {
                let fix = "write `mantile-opt catalog devices`, or check or diff";
                Err(Error::new("KIND", "nothing", "a catalogue", fix).into())
            }
        }
    }

    fn one(&self, catalog: &Catalog, kind: Kind, name: &str) -> Result<Verdict, Fault> {
        let shelved = match kind {
            Kind::Models => catalog.known_model(name),
            kind => catalog.find(kind, name),
        };
        let shelved = shelved.map_err(Error::from)?;
        line_of(kind, &shelved)?;
        let text = shelved.text()?;
        let value: serde_json::Value = crate::spec::text::from_json(&text, kind.article())?;
        self.output.found(&match self.output.format {
            Format::Table => entry(&value),
            Format::Json => json(&value),
            Format::Csv => {
                let fix = "take --format table or json for one entry";
                return Err(Error::new("format", "csv", "table or json", fix).into());
            }
        })
    }

    fn all(&self, catalog: &Catalog, kind: Kind) -> Result<Verdict, Fault> {
        let shelf = catalog.shelf(kind);
        let lines: Vec<Line> =
            shelf.values().map(|shelved| line_of(kind, shelved)).collect::<Result<_, Error>>()?;
        self.output.found(&match self.output.format {
            Format::Table => list(&lines),
            Format::Json => json(&lines),
            Format::Csv => {
                let row = |line: Line| vec![line.id, line.name, line.aliases.join(" "), line.summary];
                csv(&["id", "name", "aliases", "summary"], lines.into_iter().map(row))?
            }
        })
    }
}

/// The line of a file, which is read whole: what is listed can be used.
fn line_of(kind: Kind, shelved: &crate::store::catalog::Shelved) -> Result<Line, Error> {
    fn of<T: Entry + Listed>(shelved: &crate::store::catalog::Shelved) -> Result<Line, Error> {
        let line = read_entry::<T>(shelved)?.line();
        Ok(Line { id: shelved.id.clone(), user: shelved.user, ..line })
    }
    match kind {
        Kind::Models => of::<ModelFile>(shelved),
        Kind::Devices => of::<Device>(shelved),
        Kind::Systems => of::<System>(shelved),
        Kind::Rigs => of::<Rig>(shelved),
        Kind::Links => of::<Link>(shelved),
        Kind::Formats => of::<format::Format>(shelved),
        Kind::Runtimes => of::<Runtime>(shelved),
        Kind::Objectives => of::<Objective>(shelved),
        Kind::Workloads => of::<Workload>(shelved),
    }
}
