//! The user's own catalogue files: saved with a check, and every replaced version kept.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use chrono::DateTime;
use serde::Serialize;
use serde_json::Value;

use super::catalog::Catalog;
use super::check::{FileChecker, recognise};
use super::file;
use super::kind::CatalogKind;
use crate::report::diff::{Difference, difference};
use crate::spec::error::Error;
use crate::spec::near::suggest;
use crate::spec::text::from_json;

/// Folder of replaced versions, in the user's folder.
const VERSIONS: &str = "versions";

#[derive(Clone, Debug, Serialize)]
pub struct SavedEntry {
    pub file: String,
    pub kind: &'static str,
    pub id: String,
    /// Number of the version that it replaced; absent where there was none.
    pub replaced: Option<u64>,
    /// Changes from that version.
    pub changes: Vec<Difference>,
}

#[derive(Clone, Debug, Serialize)]
pub struct EntryVersion {
    /// Its number, from 1; absent for the current one.
    pub version: Option<u64>,
    pub file: String,
    /// When it was saved or replaced, in UTC.
    pub time: Option<String>,
    /// Changes from the version before it.
    pub changes: Vec<Difference>,
}

struct OwnEntry {
    current: PathBuf,
    versions: PathBuf,
}

impl Catalog {
    fn own(&self, kind: CatalogKind, id: &str) -> Result<OwnEntry, Error> {
        let home = self.home.as_ref().ok_or_else(|| {
            let fix = "set MANTILE_HOME to a folder";
            Error::new("catalog", "no folder of your own", "a folder for your files", fix)
        })?;
        if id.is_empty() || id.starts_with('.') || id.contains(['/', '\\']) {
            let fix = "use letters, digits, dots and hyphens";
            return Err(Error::new("id", format!("`{id}`"), "a name of a file without a folder", fix));
        }
        let name = format!("{id}.json");
        Ok(OwnEntry {
            current: home.join(kind.folder()).join(name),
            versions: home.join(VERSIONS).join(kind.folder()).join(id),
        })
    }

    /// Checks a file and puts it into the user's folder, where it takes precedence over a shipped entry of its id. A
    /// file that it replaces is kept.
    pub fn save_entry(&self, path: &Path, kind: Option<CatalogKind>) -> Result<SavedEntry, Error> {
        let checker = FileChecker { catalog: self, neighbours: BTreeSet::new() };
        checker.file(path, kind)?;
        let (found, map) = recognise(path)?;
        let kind = kind.unwrap_or(found);
        let stem = || path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
        let id = map.get("id").and_then(Value::as_str).map(str::to_owned).or_else(stem).unwrap_or_default();
        self.write_entry(kind, &id, &file::read_plain(path)?)
    }

    fn write_entry(&self, kind: CatalogKind, id: &str, text: &str) -> Result<SavedEntry, Error> {
        let own = self.own(kind, id)?;
        let mut saved = SavedEntry {
            file: file::shown(&own.current),
            kind: kind.singular(),
            id: id.to_owned(),
            replaced: None,
            changes: vec![],
        };
        if own.current.exists() {
            let old = file::read_plain(&own.current)?;
            if old == text {
                return Ok(saved);
            }
            let number = own.numbers()?.last().map_or(1, |last| last + 1);
            file::write_in_folder(&own.version(number), &old)?;
            saved.replaced = Some(number);
            saved.changes = changes(&old, text);
        }
        file::write_in_folder(&own.current, text)?;
        Ok(saved)
    }

    /// Every version of a user's entry, the first one first and the current one last.
    ///
    /// # Errors
    /// The user has no such entry, or a file cannot be read.
    pub fn entry_versions(&self, kind: CatalogKind, id: &str) -> Result<Vec<EntryVersion>, Error> {
        let own = self.own(kind, id)?;
        let numbers = own.numbers()?;
        if numbers.is_empty() && !own.current.exists() {
            let entries = self.entries(kind);
            let known = entries.values().filter(|entry| entry.user).map(|entry| entry.id.as_str());
            let fix = suggest(id, known, "mantile-opt catalog KIND");
            let expected = format!("{} of your own", kind.article());
            return Err(Error::new("NAME", format!("`{id}`"), expected, fix));
        }
        let files = numbers.into_iter().map(|number| (Some(number), own.version(number)));
        let current = own.current.exists().then(|| (None, own.current.clone()));
        let (mut before, mut found) = (None, Vec::new());
        for (version, path) in files.chain(current) {
            let text = file::read_plain(&path)?;
            let changes = before.as_ref().map_or_else(Vec::new, |before: &String| changes(before, &text));
            found.push(EntryVersion { version, file: file::shown(&path), time: time(&path), changes });
            before = Some(text);
        }
        Ok(found)
    }

    /// Makes a version the current one again; the current one is kept as a version.
    ///
    /// # Errors
    /// There is no such version, or the folder is not writable.
    pub fn restore_entry(&self, kind: CatalogKind, id: &str, number: u64) -> Result<SavedEntry, Error> {
        let own = self.own(kind, id)?;
        let path = own.version(number);
        if !path.exists() {
            let known: Vec<String> = own.numbers()?.iter().map(u64::to_string).collect();
            let expected = if known.is_empty() {
                "a version, of which there is none".to_owned()
            } else {
                known.join(", ")
            };
            let fix = "`mantile-opt catalog history KIND NAME` lists the versions";
            return Err(Error::new("VERSION", number.to_string(), expected, fix));
        }
        self.write_entry(kind, id, &file::read_plain(&path)?)
    }
}

impl OwnEntry {
    fn version(&self, number: u64) -> PathBuf {
        self.versions.join(format!("{number:04}.json"))
    }

    /// Numbers of the versions that are kept.
    fn numbers(&self) -> Result<Vec<u64>, Error> {
        if !self.versions.exists() {
            return Ok(vec![]);
        }
        let entries = fs::read_dir(&self.versions).map_err(|error| {
            let fix = "make the folder readable";
            Error::new("catalog", file::spell(&error), "a folder of versions", fix)
                .in_file(file::shown(&self.versions))
        })?;
        let number = |path: PathBuf| path.file_stem()?.to_str()?.parse().ok();
        let mut numbers: Vec<u64> = entries.flatten().filter_map(|entry| number(entry.path())).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// Differences between the texts of two files; none where one is no JSON.
fn changes(old: &str, new: &str) -> Vec<Difference> {
    let read = |text: &str| from_json::<Value>(text, "a catalogue file");
    read(old).ok().zip(read(new).ok()).map_or_else(Vec::new, |(old, new)| difference(&old, &new))
}

/// When a file was written, in UTC.
fn time(path: &Path) -> Option<String> {
    let since = fs::metadata(path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let at = DateTime::from_timestamp(i64::try_from(since.as_secs()).ok()?, 0)?;
    Some(at.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}
