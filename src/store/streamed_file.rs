//! A file that is written piece by piece: it has its name once it is whole.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::file::{fresh_file, is_open, keep_owner, shown, spell, target};
use super::interrupt;
use crate::spec::error::Error;

/// A file under way. Dropped before its end, it leaves nothing, and what had its name as it was.
#[derive(Debug)]
pub struct StreamedFile {
    /// As the user named it.
    named: PathBuf,
    to: StreamTarget,
    /// The first fault; nothing is written after it.
    fault: Option<io::Error>,
}

#[derive(Debug)]
enum StreamTarget {
    /// Under a random name in the same folder, then renamed to this.
    Replaced(BufWriter<NamedTempFile>, PathBuf),
    /// A pipe or a terminal.
    Direct(BufWriter<File>),
}

impl StreamedFile {
    /// Begins a file.
    ///
    /// # Errors
    /// No file can be written there.
    pub fn begun(path: &Path) -> Result<StreamedFile, Error> {
        let to = target_of(path).map_err(|error| unwritten(path, &error))?;
        Ok(StreamedFile { named: path.to_owned(), to, fault: None })
    }

    /// Adds a piece. A fault is reported at the end.
    pub fn write(&mut self, text: &str) {
        if self.fault.is_some() {
            return;
        }
        let written = match &mut self.to {
            StreamTarget::Replaced(file, _) => file.write_all(text.as_bytes()),
            StreamTarget::Direct(file) => file.write_all(text.as_bytes()),
        };
        self.fault = written.err();
    }

    /// The file is whole.
    ///
    /// # Errors
    /// A piece could not be written, or the file has no place under its name.
    pub fn finish(self) -> Result<(), Error> {
        let StreamedFile { named, to, fault } = self;
        let done = match (fault, to) {
            (Some(fault), _) => Err(fault),
            (None, StreamTarget::Direct(mut file)) => file.flush(),
            (None, StreamTarget::Replaced(file, path)) => persisted(file, &path),
        };
        done.map_err(|error| unwritten(&named, &error))
    }
}

fn target_of(path: &Path) -> io::Result<StreamTarget> {
    let path = target(path)?;
    match OpenOptions::new().write(true).open(&path) {
        Ok(file) => {
            let metadata = file.metadata()?;
            if !metadata.is_file() || is_open(&path) {
                return Ok(StreamTarget::Direct(BufWriter::new(file)));
            }
            // For a privileged user this is the only protection of a read-only file.
            if metadata.permissions().readonly() {
                return Err(io::Error::from(io::ErrorKind::PermissionDenied));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let (file, path) = fresh_file(&path)?;
    Ok(StreamTarget::Replaced(BufWriter::new(file), path))
}

fn persisted(file: BufWriter<NamedTempFile>, path: &Path) -> io::Result<()> {
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    if let Ok(old) = std::fs::metadata(path) {
        keep_owner(file.as_file(), &old);
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    interrupt::made(|| file.persist(path).map(|_| ()).map_err(|fault| fault.error))
}

fn unwritten(path: &Path, error: &io::Error) -> Error {
    let fix = "choose a path in an existing, writable folder";
    Error::new("", spell(error), "a file that can be written", fix).in_file(shown(path))
}
