//! What is wrong with the user's text: file, key, what was found, what was expected, how to fix it.

use std::fmt;

use super::visible::{elided, visible, without_secrets};

/// Characters of a text as it was found that an error shows, at most.
const MOST_FOUND: usize = 400;
/// Characters of a path, and of what is expected and how to get there.
const MOST_ELSE: usize = 2000;

/// A part of an error as it may be shown: on one line, bounded, without what a terminal obeys and without passwords.
fn shown(text: &str, most: usize) -> String {
    visible(&elided(&without_secrets(text), most)).into_owned()
}

/// A fault in what the user stated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// File or flag that holds it.
    pub file: String,
    /// Path of the key inside the file, e.g. `text_config.num_attention_heads`; may be empty.
    pub key: String,
    /// What stands there.
    pub found: String,
    /// What should.
    pub expected: String,
    /// What to do about it.
    pub fix: String,
}

impl Error {
    /// States a fault; `file` is filled in by whoever knows it.
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
            // What was found as it stands may be nothing to see, or a file of its own.
            found: match found.as_str() {
                "" => "an empty text".to_owned(),
                found => elided(&without_secrets(found), MOST_FOUND).into_owned(),
            },
            expected: expected.into(),
            fix: fix.into(),
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
