//! A bearer token in a file.

use std::path::Path;

use crate::spec::error::Error;
use crate::store::file;

/// The token in a file.
///
/// # Errors
/// The file cannot be read, or holds no token.
pub(super) fn token(path: &Path) -> Result<String, Error> {
    let text = file::read_plain(path)?;
    let token = text.trim();
    let fix = "write one line of visible ASCII characters into the file, e.g. with `openssl rand -hex 32`";
    let wrong = |found: &str| Error::new("", found, "a bearer token", fix).in_file(file::shown(path));
    match token {
        "" => Err(wrong("an empty file")),
        token if token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(token.to_owned()),
        // A header carries no other character.
        _ => Err(wrong("a text with spaces, line breaks or other characters")),
    }
}
