//! Reads and writes whole files; faults name a fix.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::closed_output::check_stdout;
use super::interrupt;
use crate::spec::error::Error;
use crate::spec::text::json_text;
use crate::spec::visible::visible;

/// Maximum size of a file by kind, whatever length it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSizeLimit {
    /// A model's configuration, a catalogue file, a scenario, a rig, a fleet: the largest known are under 2 MB.
    Configuration,
    Answer,
    /// A table of measurements or a trace of requests.
    Table,
}

impl FileSizeLimit {
    pub const fn bytes(self) -> u64 {
        match self {
            FileSizeLimit::Configuration => 16 << 20,
            FileSizeLimit::Answer | FileSizeLimit::Table => 64 << 20,
        }
    }

    /// Description of a valid file of the kind.
    fn expected(self) -> String {
        let what = match self {
            FileSizeLimit::Configuration => "a configuration file",
            FileSizeLimit::Answer => "a saved result",
            FileSizeLimit::Table => "a table",
        };
        format!("{what} as text, of at most {} MiB", self.bytes() >> 20)
    }
}

/// A path in printable form.
pub fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy()).into_owned()
}

pub fn read(path: &Path) -> Result<String, Error> {
    read_most(path, FileSizeLimit::Configuration)
}

/// Reads a file in JSON, or in YAML by its ending, as JSON.
pub fn read_json(path: &Path, most: FileSizeLimit) -> Result<String, Error> {
    json_text(&shown(path), read_most(path, most)?)
}

/// Reads a configuration from a plain file: pipes and devices in a folder must not block.
pub fn read_plain(path: &Path) -> Result<String, Error> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        let fix = "keep plain files in the folder";
        return Err(Error::new("", "a pipe or a device", "a plain file", fix).in_file(shown(path)));
    }
    read(path)
}

/// Reads a text file, a pipe or a device, without a leading byte order mark.
///
/// # Errors
/// It is missing, not readable, a folder, too large, or not text.
pub fn read_most(path: &Path, most: FileSizeLimit) -> Result<String, Error> {
    let fault = |found: String, fix: &str| Error::new("", found, most.expected(), fix).in_file(shown(path));
    let wrong = |error: io::Error| fault(spell(&error), "check the path and its permissions");
    let file = File::open(path).map_err(wrong)?;
    // The open file is inspected, not the path, whose target may have changed.
    let metadata = file.metadata().map_err(wrong)?;
    if metadata.is_dir() {
        return Err(fault("a folder".into(), "name the file inside it"));
    }
    let large = |found: String| fault(found, "name a file of this kind, not weights or a device");
    if metadata.len() > most.bytes() {
        return Err(large(format!("{} bytes", metadata.len())));
    }
    match bounded(file, most.bytes()).map_err(wrong)? {
        Some(text) => Ok(text),
        None => Err(large(format!("more than {} bytes", most.bytes()))),
    }
}

/// The text of `reader`, without a byte order mark; `None` if it is longer than `most` bytes.
pub fn bounded(reader: impl Read, most: u64) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Ok(None);
    }
    let mut text = String::from_utf8(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(Some(text))
}

/// Writes a file atomically; `-` is standard output.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    write_bytes(path, text.as_bytes())
}

/// Writes bytes as [`write()`] does a text.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    written(path, bytes).map_err(|error| {
        let fix = "choose a path in an existing, writable folder";
        Error::new("", spell(&error), "a file that can be written", fix).in_file(shown(path))
    })
}

/// Makes a folder, and those it lies in, where they do not exist.
pub fn make_folder(path: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(path).map_err(|error| {
        let fix = "choose a folder that exists, or a path where one can be made";
        Error::new("", spell(&error), "a writable folder", fix).in_file(shown(path))
    })
}

/// Writes a file as [`write()`], in a folder that is made where it does not exist.
pub fn write_in_folder(path: &Path, text: &str) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    write(path, text)
}

/// Whether two paths are one place, through links and dots, also where nothing is there yet.
pub fn is_same(one: &Path, other: &Path) -> bool {
    place(one) == place(other)
}

/// Whether a path is in a folder, or below it.
pub fn is_in(path: &Path, folder: &Path) -> bool {
    place(path).starts_with(place(folder))
}

/// A path without links and dots.
fn place(path: &Path) -> PathBuf {
    let path = target(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(whole) = path.canonicalize() {
        return whole;
    }
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if !folder.as_os_str().is_empty() => place(folder).join(name),
        (Some(_), Some(name)) => place(Path::new(".")).join(name),
        _ => path,
    }
}

/// Names of what is in a folder, sorted.
pub fn names(path: &Path) -> Result<Vec<String>, Error> {
    let entries = fs::read_dir(path).map_err(|error| {
        let fix = "choose a folder that can be read";
        Error::new("", spell(&error), "a folder", fix).in_file(shown(path))
    })?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

fn written(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if path.as_os_str() == "-" {
        check_stdout()?;
        let mut out = io::stdout().lock();
        let all = out.write_all(bytes).and_then(|()| out.flush());
        // A closed pipe is no error: the reader has read enough.
        return all.or_else(|error| if closed(&error) { Ok(()) } else { Err(error) });
    }
    let path = target(path)?;
    let existing = match OpenOptions::new().write(true).open(&path) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let Some(mut file) = existing else { return replace(&path, bytes, None) };
    let metadata = file.metadata()?;
    // Pipes, terminals and open files are written to, not replaced.
    if !metadata.is_file() || is_open(&path) {
        return file.write_all(bytes);
    }
    // For a privileged user this is the only protection of a read-only file.
    if metadata.permissions().readonly() {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    drop(file);
    replace(&path, bytes, Some(&metadata))
}

/// Whether the reader of a pipe has closed it.
fn closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Whether a path refers to an open file, which has another path or none: `/dev/stdout`, `/dev/fd/3`.
pub(super) fn is_open(path: &Path) -> bool {
    ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"].iter().any(|open| path.starts_with(open))
}

/// Maximum number of symbolic links on a path, as on Linux.
const MOST_LINKS: usize = 40;

/// Target of symbolic links: the target is replaced, not the link.
pub(super) fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if is_open(&path) || !fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink()) {
            return Ok(path);
        }
        let next = fs::read_link(&path)?;
        path = path.parent().map_or_else(|| next.clone(), |folder| folder.join(&next));
    }
    Err(io::Error::other("a ring of symbolic links"))
}

/// A file under a random name in the folder of `path`, and the path that it is to be renamed to.
pub(super) fn fresh_file(path: &Path) -> io::Result<(NamedTempFile, PathBuf)> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".mantile-").suffix(".tmp");
    let fresh = fresh_permissions();
    if let Some(permissions) = &fresh {
        builder.permissions(permissions.clone());
    }
    Ok((interrupt::making(&builder, folder)?, folder.join(name)))
}

/// Writes under a random name in the same folder, then renames; `old` is the metadata of the previous file.
fn replace(path: &Path, bytes: &[u8], old: Option<&fs::Metadata>) -> io::Result<()> {
    let (mut file, target) = fresh_file(path)?;
    let filled = fill(file.as_file_mut(), bytes, old);
    interrupt::made(|| match filled {
        Ok(()) => file.persist(target).map(|_| ()).map_err(|fault| fault.error),
        // The write has already failed; a leftover file changes nothing.
        Err(error) => file.close().and(Err(error)),
    })
}

fn fill(file: &mut File, bytes: &[u8], old: Option<&fs::Metadata>) -> io::Result<()> {
    file.write_all(bytes)?;
    if let Some(old) = old {
        keep_owner(file, old);
        file.set_permissions(old.permissions())?;
    }
    file.sync_all()
}

/// Permissions of a new file, before the user's mask.
#[cfg(unix)]
fn fresh_permissions() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Some(Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn fresh_permissions() -> Option<Permissions> {
    None
}

/// Gives a file the owner of the one that it replaces, where permitted.
#[cfg(unix)]
pub(super) fn keep_owner(file: &File, old: &fs::Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let own = file.metadata().map(|now| (now.uid(), now.gid()));
    if own.is_ok_and(|own| own != (old.uid(), old.gid())) {
        // Without permission to keep the owner, the file is still written.
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
}

#[cfg(not(unix))]
pub(super) fn keep_owner(_: &File, _: &fs::Metadata) {}

/// An I/O fault in words independent of the system's.
pub fn spell(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::InvalidData => "bytes that are not UTF-8 text".into(),
        io::ErrorKind::IsADirectory => "a folder".into(),
        io::ErrorKind::NotADirectory => "a file where a folder is expected".into(),
        io::ErrorKind::StorageFull => "no room left on the disk".into(),
        _ => {
            let text = error.to_string();
            match text.split_once(" (os error") {
                // A ring of links has no stable error kind.
                Some((message, _)) if message.starts_with("Too many levels") => {
                    "a ring of symbolic links".into()
                }
                Some((message, _)) => message.to_lowercase(),
                None => text,
            }
        }
    }
}
