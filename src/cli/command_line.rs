//! The command line of this process: the words after the program's name.

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

use super::stdin;
use crate::spec::error::Error;
use crate::store::file;

static LINE: OnceLock<Vec<OsString>> = OnceLock::new();

/// The flag whose file has further words.
const ARGUMENTS_FILE: &str = "--arguments-file";

/// Keeps the command line; the first one counts, since a process has one.
pub fn set(line: Vec<OsString>) -> &'static [OsString] {
    LINE.get_or_init(|| line)
}

pub fn words() -> Vec<String> {
    let line = LINE.get().map_or(&[][..], Vec::as_slice);
    line.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The command line with the words of each `--arguments-file` in its place.
///
/// # Errors
/// A file cannot be read, a quote in it has no end, or it names another file of words.
pub fn with_files(line: &[OsString]) -> Result<Vec<OsString>, Error> {
    let mut words = Vec::new();
    let mut rest = line.iter();
    while let Some(word) = rest.next() {
        let path = match word.to_str().and_then(|word| word.strip_prefix(ARGUMENTS_FILE)) {
            Some("") => rest.next().cloned(),
            Some(named) => named.strip_prefix('=').map(OsString::from),
            None => None,
        };
        match path {
            Some(path) => words.extend(words_of(Path::new(&path))?),
            None => words.push(word.clone()),
        }
        if word == "--" {
            break;
        }
    }
    words.extend(rest.cloned());
    Ok(words)
}

/// The words of a file as a shell splits them, on any number of lines. Nothing in it is expanded or run.
fn words_of(path: &Path) -> Result<Vec<OsString>, Error> {
    let expected = "flags with their values, quoted as for a shell";
    let (place, text) = match path.to_str() {
        Some(stdin::STDIN) => {
            let fix = "write e.g. `mantile-opt estimate --arguments-file - < flags.txt`";
            ("standard input".to_owned(), stdin::text("arguments-file", expected, fix)?)
        }
        _ => (file::shown(path), file::read(path)?),
    };
    let fault =
        |found: &str, fix: &str| Error::new("arguments-file", found, expected, fix).in_file(place.clone());
    let unfinished = "a quote without its end, or a backslash at the end of the text";
    // A continued line ends a word, and never a comment of the line before it.
    let text = text.replace("\r\n", "\n").replace("\\\n", "\n");
    let words = shlex::split(&text).ok_or_else(|| {
        fault(unfinished, "close every quote; write a quote that is meant as \\', a backslash as \\\\")
    })?;
    if words.iter().any(|word| word.starts_with(ARGUMENTS_FILE)) {
        return Err(fault("another --arguments-file in it", "name both files on the command line"));
    }
    Ok(words.into_iter().map(OsString::from).collect())
}
