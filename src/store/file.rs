//! Reading and writing files whole, with faults that say what to do.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::spec::error::Error;

/// No file that is read here is larger; what is, was meant for something else.
const MOST_BYTES: u64 = 64 << 20;

/// Reads a text file.
///
/// # Errors
/// It is missing, may not be read, is no file, is too large or no text.
pub fn read(path: &Path) -> Result<String, Error> {
    let fault = |found: String, fix: &str| {
        Error::new("", found, "a text file that can be read", fix).in_file(path.display().to_string())
    };
    let metadata = fs::metadata(path).map_err(|error| fault(spell(&error), "check the path"))?;
    if metadata.is_dir() {
        return Err(fault("a folder".into(), "name the file inside it"));
    }
    if metadata.len() > MOST_BYTES {
        let found = format!("{} bytes", metadata.len());
        return Err(fault(found, "name a configuration file, not weights"));
    }
    fs::read_to_string(path).map_err(|error| fault(spell(&error), "check the path and its permissions"))
}

/// Writes a file whole or not at all: under another name first, then renamed.
///
/// # Errors
/// The folder is missing or may not be written to.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    // What is no plain file (a pipe, `/dev/stdout`) is written to, not replaced.
    let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
    let written = if special { fs::write(path, text) } else { replace(path, text) };
    written.map_err(|error| {
        let fix = "choose a path in a folder that exists and may be written to";
        Error::new("", spell(&error), "a file that can be written", fix).in_file(path.display().to_string())
    })
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?);
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = fs::File::create(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&temporary, path)).inspect_err(|_| {
        // The write has failed already; a leftover that cannot be removed changes nothing about that.
        let _ = fs::remove_file(&temporary);
    })
}

/// An I/O fault in words that do not depend on the system's.
fn spell(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::InvalidData => "bytes that are not UTF-8 text".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_replaces_the_whole_file_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write(&path, "a longer first text").unwrap();
        write(&path, "second").unwrap();
        assert_eq!(read(&path).unwrap(), "second");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn faults_name_the_file_and_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none/a.json");
        assert_eq!(read(&missing).unwrap_err().found, "no such file or folder");
        assert_eq!(write(&missing, "").unwrap_err().found, "no such file or folder");
        assert_eq!(read(folder.path()).unwrap_err().found, "a folder");
        let binary = folder.path().join("b");
        fs::write(&binary, [0xff, 0xfe]).unwrap();
        assert!(read(&binary).unwrap_err().found.contains("UTF-8"));
    }
}
