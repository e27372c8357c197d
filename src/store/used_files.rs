//! The files that an answer rests on: recorded while it is made, and given back to make it again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::catalog::{Catalog, OutsideAccess};
use super::file;
use super::gguf;
use super::kind::KINDS;
use crate::spec::error::Error;
use crate::spec::text::json_text;

/// Folder of a recorded file: that of its kind in the catalogue, or one of these.
pub const PATHS: &str = "path";
pub const DOWNLOADS: &str = "hf";
pub(super) const DEFAULTS: (&str, &str) = ("hardware", "defaults");

pub type FileKey = (String, String);

#[derive(Clone, Debug, Default)]
pub struct UsedFiles(Arc<Mutex<BTreeMap<FileKey, String>>>);

impl UsedFiles {
    /// Records a file; the first text of a name counts.
    pub(super) fn note(&self, (folder, name): (&str, &str), text: &str) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.entry((folder.to_owned(), name.to_owned())).or_insert_with(|| text.to_owned());
    }

    pub fn files(&self) -> BTreeMap<FileKey, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Catalog {
    /// The catalogue that records the files that it reads.
    pub fn recording(&self) -> (Catalog, UsedFiles) {
        let used = UsedFiles::default();
        let mut catalog = self.clone();
        catalog.used = Some(used.clone());
        (catalog, used)
    }

    /// A catalogue of these files alone.
    pub fn sealed(files: impl IntoIterator<Item = (FileKey, String)>) -> Catalog {
        let given = files.into_iter().map(|(key, text)| (key, text.into())).collect();
        let mut catalog = Catalog::default();
        (catalog.given, catalog.sealed) = (given, true);
        catalog
    }

    /// The text of a file outside the catalogue: a given one, or the one at this path.
    pub(super) fn outside(&self, path: &str) -> Result<String, Error> {
        let text = match self.given(PATHS, path) {
            Some(text) => text,
            None if self.sealed => return Err(self.absent(path)),
            None if self.outside != OutsideAccess::All => return Err(closed_path(path)),
            None if path.ends_with(gguf::ENDING) => gguf::model_text(Path::new(path))?,
            None => file::read(Path::new(path))?,
        };
        let text = json_text(path, text)?;
        self.note((PATHS, path), &text);
        Ok(text)
    }

    /// The text of a file of the catalogue.
    pub fn text_of(&self, folder: &str, name: &str) -> Option<String> {
        if (folder, name) == DEFAULTS {
            return Some(self.defaults_text().ok()?.0.into_owned());
        }
        let kind = KINDS.into_iter().find(|kind| kind.folder() == folder)?;
        self.entries(kind).get(name)?.text().ok()
    }

    pub(super) fn given(&self, folder: &str, name: &str) -> Option<String> {
        self.given.get(&(folder.to_owned(), name.to_owned())).map(|given| given.text().to_owned())
    }

    /// Records a file, if files are recorded.
    pub(super) fn note(&self, key: (&str, &str), text: &str) {
        if let Some(used) = &self.used {
            used.note(key, text);
        }
    }

    /// The fault of a file that a sealed catalogue does not have.
    pub(super) fn absent(&self, name: &str) -> Error {
        let fix = "make the bundle again";
        Error::new("files", format!("no `{name}`"), "every file that the answer rests on", fix)
    }
}

/// The fault of a path in a catalogue that opens none.
pub(super) fn closed_path(path: &str) -> Error {
    let fix = "name an entry of the catalogue, or send the file's content where the request takes it";
    Error::new("path", format!("the path `{path}`"), "a name: paths are not opened here", fix)
}
