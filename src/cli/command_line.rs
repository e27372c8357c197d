//! The command line of this process: the words after the program's name.

use std::ffi::OsString;
use std::sync::OnceLock;

static LINE: OnceLock<Vec<OsString>> = OnceLock::new();

/// Keeps the command line; the first one counts, since a process has one.
pub fn set(line: Vec<OsString>) -> &'static [OsString] {
    LINE.get_or_init(|| line)
}

pub fn words() -> Vec<String> {
    let line = LINE.get().map_or(&[][..], Vec::as_slice);
    line.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}
