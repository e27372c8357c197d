//! A fault in the user's input: file, key, found, expected, fix.

use std::fmt;

use super::visible::{elided, visible, without_secrets};

/// Maximum number of characters of found text that an error shows.
const MOST_FOUND: usize = 400;
/// Maximum number of characters of a path, of the expected value and of the fix.
const MOST_ELSE: usize = 2000;

/// A part of an error in printable form: one line, bounded, without control sequences and passwords.
fn shown(text: &str, most: usize) -> String {
    visible(&elided(&without_secrets(text), most)).into_owned()
}

/// A fault in the user's input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize)]
pub struct Error {
    /// File or flag that contains it.
    pub file: String,
    /// Path of the key inside the file, e.g. `text_config.num_attention_heads`; may be empty.
    pub key: String,
    /// The found value.
    pub found: String,
    /// The expected value.
    pub expected: String,
    /// How to fix it.
    pub fix: String,
}

impl Error {
    /// A fault; the caller that knows the file fills in `file`.
    pub fn new(
        key: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
        fix: impl Into<String>,
    ) -> Error {
        let found = found.into();
        Error {
            file: String::new(),
            key: key.into(),
            // The found value may be empty or very long.
            found: match found.as_str() {
                "" => "an empty text".to_owned(),
                found => elided(&without_secrets(found), MOST_FOUND).into_owned(),
            },
            expected: expected.into(),
            fix: fix.into(),
        }
    }

    /// The same fault at the key of a file whose name leads nowhere; one inside the file that is named keeps its place.
    pub fn at_name(self, file: impl Into<String>, key: &str) -> Error {
        match self.file.is_empty() {
            true => Error { file: file.into(), key: key.into(), ..self },
            false => self,
        }
    }

    /// The same fault, in `file`.
    pub fn in_file(mut self, file: impl Into<String>) -> Error {
        if self.file.is_empty() {
            self.file = file.into();
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (shown(&self.file, MOST_ELSE).as_str(), shown(&self.key, MOST_FOUND).as_str()) {
            ("", "") => write!(f, "bad input")?,
            (file, "") => write!(f, "{file}")?,
            ("", key) => write!(f, "`{key}`")?,
            (file, key) => write!(f, "{file}: `{key}`")?,
        }
        let found = shown(&self.found, MOST_FOUND);
        let [expected, fix] = [&self.expected, &self.fix].map(|text| shown(text, MOST_ELSE));
        write!(f, "\n  found:    {found}\n  expected: {expected}\n  fix:      {fix}")
    }
}
