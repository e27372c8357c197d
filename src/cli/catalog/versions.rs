//! `catalog save`, `catalog history`, `catalog restore`: the user's own files and their versions.

use std::path::PathBuf;

use crate::cli::output::OutputArgs;
use crate::cli::{CliError, ExitStatus};
use crate::report::diff::{Difference, text as differences};
use crate::report::number::count;
use crate::report::sheet::csv;
use crate::store::catalog::Catalog;
use crate::store::kind::CatalogKind;
use crate::store::versions::{EntryVersion, SavedEntry};

#[derive(Clone, Debug, clap::Args)]
pub struct SaveEntry {
    /// A catalogue file
    #[arg(value_name = "FILE.json")]
    pub path: PathBuf,
    /// Kind of the file, where its keys do not determine it
    #[arg(long, value_enum, value_name = "KIND", hide_possible_values = true)]
    pub kind: Option<CatalogKind>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub struct EntryHistory {
    /// Kind of the entry
    #[arg(value_enum, value_name = "KIND", hide_possible_values = true)]
    pub kind: CatalogKind,
    /// Id of an entry of your own
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub struct RestoreEntry {
    /// Kind of the entry
    #[arg(value_enum, value_name = "KIND", hide_possible_values = true)]
    pub kind: CatalogKind,
    /// Id of an entry of your own
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Number of the version, as `catalog history` lists it
    #[arg(value_name = "VERSION")]
    pub version: u64,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl SaveEntry {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        report(&catalog.save_entry(&self.path, self.kind)?, &self.output)
    }
}

impl RestoreEntry {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        report(&catalog.restore_entry(self.kind, &self.name, self.version)?, &self.output)
    }
}

fn report(saved: &SavedEntry, output: &OutputArgs) -> Result<ExitStatus, CliError> {
    let SavedEntry { file, kind, id, replaced, changes } = saved;
    let mut text = format!("{file}: saved, {kind} `{id}`\n");
    if let Some(number) = replaced {
        text.push_str(&format!("version {number} is kept; changes from it:\n"));
        text.push_str(&differences([&format!("version {number}"), "saved"], changes));
    }
    let rows = csv(["key", "before", "now", "ratio"], changes.iter().cloned().map(Difference::cells));
    output.plain(&text, saved, Some(rows))
}

impl EntryHistory {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let versions = catalog.entry_versions(self.kind, &self.name)?;
        let text = versions.iter().map(spell).collect::<Vec<_>>().join("\n");
        self.output.plain(&text, &versions, None)
    }
}

fn spell(version: &EntryVersion) -> String {
    let name = version.version.map_or("current".to_owned(), |number| format!("version {number}"));
    let time = version.time.as_ref().map(|time| format!(", written {time}")).unwrap_or_default();
    let head = format!("{name}: {}{time}", version.file);
    match &version.changes[..] {
        [] => format!("{head}\n"),
        changes => {
            let changed = count(changes.len() as u64, "change");
            format!("{head}; {changed}\n{}", differences(["before", &name], changes))
        }
    }
}
