//! Writes several files of a folder: all of them or none.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir};

use super::file::{shown, spell};
use super::interrupt;
use crate::spec::error::Error;

/// Writes `files` by their paths below `folder`, which is made where it does not exist, and removes `stale` ones. Where
/// one cannot be written, everything is as before.
pub fn write_all(folder: &Path, files: &[(String, String)], stale: &[String]) -> Result<(), Error> {
    written(folder, files, stale).map_err(|error| {
        let fix = "choose a new folder, or one in which every file can be replaced";
        Error::new("", spell(&error), "a folder that can be written", fix).in_file(shown(folder))
    })
}

fn written(folder: &Path, files: &[(String, String)], stale: &[String]) -> io::Result<()> {
    let exists = folder.exists();
    let around = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !exists {
        fs::create_dir_all(around)?;
    }
    // In the folder itself, which may be another file system than what is around it.
    let staged =
        Builder::new().prefix(".mantile-").suffix(".tmp").tempdir_in(if exists { folder } else { around })?;
    let fresh = staged.path().join("new");
    fs::create_dir(&fresh)?;
    for (path, text) in files {
        let place = fresh.join(path);
        place.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(place, text)?;
    }
    // A signal that ends the program waits for the end of this.
    interrupt::made(
        || if exists { replaced(folder, &staged, files, stale) } else { fs::rename(&fresh, folder) },
    )
}

/// Puts the new files into their places; on a fault, the old ones back into theirs.
fn replaced(folder: &Path, staged: &TempDir, files: &[(String, String)], stale: &[String]) -> io::Result<()> {
    let mut moved: Vec<(PathBuf, PathBuf)> = Vec::new();
    let done = (|| {
        let paths = || files.iter().map(|(path, _)| path);
        for path in paths().chain(stale) {
            let place = folder.join(path);
            let Ok(metadata) = fs::symlink_metadata(&place) else { continue };
            if metadata.is_dir() {
                return Err(ErrorKind::IsADirectory.into());
            }
            if metadata.permissions().readonly() {
                return Err(ErrorKind::PermissionDenied.into());
            }
            step(place, staged.path().join("old").join(path), &mut moved)?;
        }
        paths().try_for_each(|path| step(staged.path().join("new").join(path), folder.join(path), &mut moved))
    })();
    if done.is_err() {
        for (from, to) in moved.iter().rev() {
            // The first fault is reported; what cannot be moved back stays where it is.
            let _ = fs::rename(to, from);
        }
    }
    done
}

fn step(from: PathBuf, to: PathBuf, moved: &mut Vec<(PathBuf, PathBuf)>) -> io::Result<()> {
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::rename(&from, &to)?;
    moved.push((from, to));
    Ok(())
}
