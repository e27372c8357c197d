//! The catalogues: built-in files and the user's own, which take precedence. Files are parsed on demand.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::detect::tools::MachineProbe;
use super::file;
use super::foreign_hardware::ENTRY;
use super::gguf::ENDING;
use super::hub::{named_folder, user_folder};
use super::kind::{CatalogKind, Entry, KINDS, shipped_defaults};
use super::parsed::{Parsed, SHIPPED};
use super::shipped::ShippedFile;
use super::unknown_keys::UnknownKeys;
use super::used_files::{DEFAULTS, FileKey, UsedFiles};
use crate::spec::defaults::Defaults;
use crate::spec::error::Error;
use crate::spec::format::NameSuffix;
use crate::spec::json_fault;
use crate::spec::overrides::Override;
use crate::spec::ranges;
use crate::spec::text::{entry_from_json, from_json, shown_name};

/// The sources of files.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// The user's folder, with the same sub-folders as the repository.
    pub home: Option<PathBuf>,
    /// Downloads cached models again.
    pub refresh: bool,
    /// Unknown keys of models' configurations.
    pub unknown_keys: UnknownKeys,
    /// Access to this machine, which `local` names.
    pub(super) machine: Option<Arc<dyn MachineProbe>>,
    pub(super) given: BTreeMap<FileKey, GivenText>,
    /// Whether there are no other files than the given ones.
    pub(super) sealed: bool,
    /// Whether files outside the catalogue may be read, and models be fetched.
    pub(super) outside: OutsideAccess,
    pub(super) used: Option<UsedFiles>,
    /// Overrides of configurations, by the id of the model, or its name where the catalogue has none.
    pub(super) changed_models: BTreeMap<String, Vec<Override>>,
}

/// The sources beyond its own files that a catalogue may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OutsideAccess {
    /// Paths, the model hub, this machine.
    #[default]
    All,
    Hub,
    Nothing,
}

/// A file of a catalogue, not yet parsed.
#[derive(Clone, Debug)]
pub struct CatalogEntry {
    /// File name without `.json`.
    pub id: String,
    pub file: String,
    /// Whether it is in the user's folder.
    pub user: bool,
    text: Text,
    folder: &'static str,
    used: Option<UsedFiles>,
}

/// A text in the place of a file, with what it was parsed to: it cannot change.
#[derive(Clone, Debug)]
pub(super) struct GivenText {
    content: Arc<GivenContent>,
    parsed: Parsed,
}

#[derive(Debug)]
enum GivenContent {
    Text(String),
    /// A value, and its text once it is needed.
    Value(Value, OnceLock<String>),
}

impl From<String> for GivenText {
    fn from(text: String) -> GivenText {
        GivenText::of(GivenContent::Text(text))
    }
}

impl GivenText {
    fn of(content: GivenContent) -> GivenText {
        GivenText { content: Arc::new(content), parsed: Parsed::default() }
    }

    pub(super) fn text(&self) -> &str {
        match &*self.content {
            GivenContent::Text(text) => text,
            GivenContent::Value(value, text) => text.get_or_init(|| value.to_string()),
        }
    }
}

#[derive(Clone, Debug)]
enum Text {
    Shipped(&'static ShippedFile),
    Given(GivenText),
    At(PathBuf),
}

impl CatalogEntry {
    /// A file anywhere.
    pub fn at(path: &Path) -> Result<CatalogEntry, Error> {
        let file = file::shown(path);
        let id = path.file_stem().and_then(|stem| stem.to_str()).ok_or_else(|| {
            Error::new("", format!("`{file}`"), "the path of a file", "name a .json file").in_file(&file)
        })?;
        Ok(CatalogEntry {
            id: id.to_owned(),
            file,
            user: true,
            text: Text::At(path.to_owned()),
            folder: "",
            used: None,
        })
    }

    /// Its text.
    pub fn text(&self) -> Result<String, Error> {
        match &self.text {
            Text::Shipped(file) => Ok(file.text().to_owned()),
            Text::Given(given) => Ok(given.text().to_owned()),
            Text::At(path) => file::read_plain(path),
        }
    }

    /// Its content as JSON, which is parsed once if the file cannot change.
    pub(super) fn value(&self) -> Result<Arc<Value>, Error> {
        let read = |text: &str| {
            serde_json::from_str(text).map_err(|error| {
                Error::new("", format!("a file that is not JSON: {error}"), "JSON", "correct it")
                    .in_file(&self.file)
            })
        };
        match &self.text {
            Text::Shipped(file) => SHIPPED.once(&self.file, || read(file.text())),
            Text::Given(given) => given.parsed.once(&self.file, || read(given.text())),
            Text::At(path) => read(&file::read_plain(path)?).map(Arc::new),
        }
    }

    /// Records that an answer rests on it.
    pub(super) fn note_use(&self) {
        if let Some(used) = &self.used
            && let Ok(text) = self.text()
        {
            used.note((self.folder, &self.id), &text);
        }
    }

    /// Its content, parsed as `what`.
    fn parsed<T: DeserializeOwned>(&self, what: &str) -> Result<T, Error> {
        self.read(what, ShippedFile::text)
    }

    /// Its content, parsed as `what`; of a built-in file the text that `shipped` gives.
    fn read<T: DeserializeOwned>(
        &self,
        what: &str,
        shipped: fn(&'static ShippedFile) -> &'static str,
    ) -> Result<T, Error> {
        let own = |text: &str| shown_name("id", &self.id).and_then(|()| entry_from_json(text, what));
        let read = match &self.text {
            // No built-in file has a key twice.
            Text::Shipped(file) => json_fault::read(shipped(file), what),
            Text::Given(given) => match &*given.content {
                GivenContent::Text(text) => own(text),
                // Its texts were checked before.
                GivenContent::Value(value, _) => json_fault::read_value(value, what),
            },
            Text::At(path) => own(&file::read_plain(path)?),
        };
        read.map_err(|fault| fault.in_file(&self.file))
    }
}

/// Checks that a folder can be read, if it exists or is required.
fn readable(folder: &Path, must: bool) -> Result<(), Error> {
    match fs::read_dir(folder) {
        Ok(_) => Ok(()),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound && !must => Ok(()),
        Err(fault) => {
            let fix =
                "create the folder and make it readable, or set MANTILE_HOME to another folder, or unset it";
            let expected = "a folder with catalogue files";
            Err(Error::new("MANTILE_HOME", file::spell(&fault), expected, fix).in_file(file::shown(folder)))
        }
    }
}

/// The identifying keys of a file.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct EntryLabel {
    /// Name for people; a model's Hugging Face id.
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Vendors that a runtime is the default for.
    #[serde(default)]
    pub default_for: Vec<String>,
    /// Vendors for whose home devices a runtime is the default.
    #[serde(default)]
    pub default_at_home: Vec<String>,
    #[serde(default)]
    pub device: String,
    #[serde(default)]
    pub published: Vec<PublishedId>,
    /// Ends of the names of checkpoints in a format.
    #[serde(default)]
    pub suffixes: Vec<NameSuffix>,
    #[serde(default)]
    pub memory: LabelledMemory,
}

/// The memory of a device, for its name.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct LabelledMemory {
    #[serde(default)]
    pub marketed: Option<LabelledSize>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct LabelledSize {
    #[serde(default)]
    pub value: Value,
}

impl LabelledSize {
    /// `80 GB`.
    pub fn gigabytes(&self) -> Option<u64> {
        self.value.as_str()?.strip_suffix("GB")?.trim().parse().ok()
    }
}

#[derive(Clone, Debug, Deserialize)]
pub struct PublishedId {
    /// Hugging Face id.
    pub id: String,
    #[serde(default)]
    pub weight_format: String,
}

/// The reason that a name matches no file.
#[derive(Clone, Debug)]
pub enum LookupError {
    Unknown(Error),
    /// Several files have it, or no file has it but an unreadable one might.
    Unclear(Error),
}

impl From<LookupError> for Error {
    fn from(miss: LookupError) -> Error {
        match miss {
            LookupError::Unknown(fault) | LookupError::Unclear(fault) => fault,
        }
    }
}

impl Catalog {
    /// The catalogues with a user's folder.
    pub fn at(home: Option<PathBuf>) -> Catalog {
        Catalog { home, ..Catalog::default() }
    }

    /// The catalogues with one more entry, as the text of its file. It replaces an entry of this id. For a model the
    /// text may also be a `config.json`.
    pub fn with_entry(self, kind: CatalogKind, id: &str, text: &str) -> Catalog {
        self.with_given(kind, id, GivenContent::Text(text.to_owned()))
    }

    /// The same as a value, whose texts are shown as they are.
    pub(super) fn with_value(self, kind: CatalogKind, id: &str, value: Value) -> Catalog {
        self.with_given(kind, id, GivenContent::Value(value, OnceLock::new()))
    }

    fn with_given(mut self, kind: CatalogKind, id: &str, content: GivenContent) -> Catalog {
        self.given.insert((kind.folder().to_owned(), id.to_owned()), GivenText::of(content));
        self
    }

    /// The catalogue for requests of strangers: they open no path and learn nothing of this machine; they fetch models
    /// only if `hub`.
    pub fn closed(&self, hub: bool) -> Catalog {
        let outside = if hub { OutsideAccess::Hub } else { OutsideAccess::Nothing };
        Catalog { outside, machine: None, ..self.clone() }
    }

    /// The catalogues with the user's folder, where there is one.
    ///
    /// # Errors
    /// `$MANTILE_HOME` is not a folder, or its content cannot be read.
    pub fn from_env() -> Result<Catalog, Error> {
        let Some(home) = user_folder() else { return Ok(Catalog::default()) };
        readable(&home, named_folder("MANTILE_HOME").is_some())?;
        KINDS.iter().try_for_each(|kind| readable(&home.join(kind.folder()), false))?;
        Ok(Catalog::at(Some(home)))
    }

    fn entry(&self, kind: CatalogKind, id: &str, file: String, text: Text) -> CatalogEntry {
        let user = !matches!(text, Text::Shipped(_));
        CatalogEntry { id: id.to_owned(), file, user, text, folder: kind.folder(), used: self.used.clone() }
    }

    /// A file as one of this catalogue, which records its uses.
    pub(super) fn using(&self, entry: &CatalogEntry) -> CatalogEntry {
        CatalogEntry { used: self.used.clone(), ..entry.clone() }
    }

    /// The user's files of a kind, where there may be any.
    fn own_folder(&self, kind: CatalogKind) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(kind.folder())).filter(|folder| folder.is_dir())
    }

    /// The built-in file with exactly this id, where no other file can replace it: without a list of all.
    pub(super) fn shipped_entry(&self, kind: CatalogKind, id: &str) -> Option<CatalogEntry> {
        if !self.is_shipped(kind) {
            return None;
        }
        let files = kind.shipped();
        let (_, file) = files[files.binary_search_by_key(&id, |(id, _)| id).ok()?];
        let name = format!("{}/{id}.json", kind.folder());
        Some(self.entry(kind, id, name, Text::Shipped(file)))
    }

    /// Whether no other file than the built-in ones can be of this kind.
    pub(super) fn is_shipped(&self, kind: CatalogKind) -> bool {
        let given = self.given.keys().any(|(folder, _)| folder == kind.folder());
        !self.sealed && !given && self.own_folder(kind).is_none()
    }

    /// All files of a kind by id; the user's files replace built-in ones.
    pub fn entries(&self, kind: CatalogKind) -> BTreeMap<String, CatalogEntry> {
        let entry = |id: &str, file: String, text: Text| self.entry(kind, id, file, text);
        let named = |id: &str| format!("{}/{id}.json", kind.folder());
        let shipped = kind.shipped().iter().filter(|_| !self.sealed);
        let shipped = shipped.map(|(id, file)| entry(id, named(id), Text::Shipped(file)));
        let own = self.own_folder(kind).and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
        let own = own.filter_map(|found| {
            let path = found.ok()?.path();
            let id = path.file_name()?.to_str()?.strip_suffix(".json")?.to_owned();
            Some(entry(&id, file::shown(&path), Text::At(path)))
        });
        let given = self.given.iter().filter(|((folder, _), _)| *folder == kind.folder());
        let given = given.map(|((_, id), given)| {
            // Files of a bundle have the names of the catalogue.
            let name = if self.sealed { named(id) } else { id.clone() };
            entry(id, name, Text::Given(given.clone()))
        });
        shipped.chain(own).chain(given).map(|file| (file.id.clone(), file)).collect()
    }

    /// The entry with this name.
    ///
    /// # Errors
    /// It does not exist, or its file is faulty.
    pub fn load<T: Entry>(&self, name: &str) -> Result<T, Error> {
        self.shared(name).map(Arc::unwrap_or_clone)
    }

    /// Every entry of a type, in the order of the ids.
    pub(super) fn all<T: Entry>(&self) -> Result<Vec<T>, Error> {
        self.entries(T::KIND).values().map(read_entry).collect()
    }

    /// The same, without a copy.
    pub(super) fn all_shared<T: Entry>(&self) -> Result<Vec<Arc<T>>, Error> {
        self.entries(T::KIND).keys().map(|id| self.shared(id)).collect()
    }

    /// The entry with this name, without a copy.
    pub(super) fn shared<T: Entry>(&self, name: &str) -> Result<Arc<T>, Error> {
        self.read(&self.find(T::KIND, name)?)
    }

    /// The content of a file, without a copy.
    pub(super) fn read<T: Entry>(&self, entry: &CatalogEntry) -> Result<Arc<T>, Error> {
        entry.note_use();
        self.once(entry, read_entry)
    }

    /// The result of `parse` for a file: made once, if the file cannot change.
    fn once<T: Send + Sync + 'static>(
        &self,
        file: &CatalogEntry,
        parse: impl FnOnce(&CatalogEntry) -> Result<T, Error>,
    ) -> Result<Arc<T>, Error> {
        match &file.text {
            Text::Shipped(_) => SHIPPED.once(&file.file, || parse(file)),
            Text::Given(given) => given.parsed.once(&file.file, || parse(file)),
            Text::At(_) => parse(file).map(Arc::new),
        }
    }

    /// The identifying keys of a file.
    pub fn label(&self, file: &CatalogEntry) -> Result<Arc<EntryLabel>, Error> {
        self.once(file, label)
    }

    /// The entry that `text` refers to: the path of a file, or a name.
    ///
    /// # Errors
    /// It does not exist, or its file is faulty.
    pub fn load_or_read<T: Entry>(&self, text: &str) -> Result<T, Error> {
        if !is_path(text) {
            return self.load(text);
        }
        let read = entry_from_json(&self.outside(text)?, T::KIND.article());
        let entry: T = read.map_err(|fault| fault.in_file(text))?;
        entry.check().map_err(|fault| fault.in_file(text))?;
        Ok(entry)
    }

    /// `hardware/defaults.json`.
    pub fn defaults(&self) -> Result<Defaults, Error> {
        let (text, name) = self.defaults_text()?;
        self.note(DEFAULTS, &text);
        let read = || {
            let defaults: Defaults = from_json(&text, "defaults").map_err(|fault| fault.in_file(&name))?;
            ranges::defaults(&defaults).map_err(|fault| fault.in_file(&name))?;
            Ok(defaults)
        };
        match &text {
            Cow::Borrowed(_) => SHIPPED.once(&name, read).map(Arc::unwrap_or_clone),
            Cow::Owned(_) => read(),
        }
    }

    /// The text of the defaults and the name of their file.
    pub(super) fn defaults_text(&self) -> Result<(Cow<'static, str>, String), Error> {
        let own =
            self.home.as_ref().map(|home| home.join("hardware/defaults.json")).filter(|path| path.exists());
        Ok(match (self.given(DEFAULTS.0, DEFAULTS.1), own) {
            (Some(text), _) => (text.into(), "hardware/defaults.json".to_owned()),
            (None, Some(path)) => (file::read_plain(&path)?.into(), file::shown(&path)),
            (None, None) => (shipped_defaults().into(), "hardware/defaults.json".to_owned()),
        })
    }
}

/// Parses a file and checks it.
pub fn read_entry<T: Entry>(shelved: &CatalogEntry) -> Result<T, Error> {
    shelved.note_use();
    let entry: T = shelved.parsed(T::KIND.article())?;
    if let Some(id) = entry.id().filter(|id| *id != shelved.id) {
        let fix = format!("rename the file to {id}.json, or write \"id\": \"{}\"", shelved.id);
        let fault =
            Error::new("id", format!("`{id}`"), format!("`{}`, the name of the file", shelved.id), fix);
        return Err(fault.in_file(&shelved.file));
    }
    entry.check().map_err(|fault| fault.in_file(&shelved.file))?;
    Ok(entry)
}

/// The identifying keys of a file.
pub fn label(shelved: &CatalogEntry) -> Result<EntryLabel, Error> {
    shelved.read("a catalogue file", ShippedFile::head)
}

/// Whether a text is a path, not a name.
pub fn is_path(text: &str) -> bool {
    let file = text.split_once(ENTRY).map_or(text, |(file, _)| file);
    [".json", ".yaml", ".yml", ENDING].iter().any(|ending| file.ends_with(ending))
        || text.starts_with(['.', '/', '~'])
        || text.contains('\\')
}
