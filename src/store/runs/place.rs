//! Where the user's store is, and whether a file is one.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::APPLICATION_ID;
use crate::store::hub::named_folder;

/// The first bytes of every SQLite file, and where its application id is: <https://sqlite.org/fileformat.html>, 1.3.
const HEADER: &[u8; 16] = b"SQLite format 3\0";
const ID_AT: usize = 68;

/// `mantile/runs.sqlite` in the folder for data of the user: `$XDG_DATA_HOME`, else `%LOCALAPPDATA%` (Windows),
/// `~/Library/Application Support` (macOS), or `~/.local/share`.
pub fn user_store() -> Option<PathBuf> {
    let windows = || cfg!(windows).then(|| named_folder("LOCALAPPDATA")).flatten();
    let home = || {
        let below = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
        Some(named_folder("HOME")?.join(below))
    };
    let data = named_folder("XDG_DATA_HOME").or_else(windows).or_else(home)?;
    Some(data.join("mantile").join("runs.sqlite"))
}

/// Whether a file is a store of runs, by its first bytes.
pub fn is_store(path: &Path) -> bool {
    let mut head = [0; ID_AT + 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.starts_with(HEADER) && head[ID_AT..] == APPLICATION_ID.to_be_bytes()
}
