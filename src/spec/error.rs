//! What is wrong with the user's text: file, key, what was found, what was expected, how to fix it.

use std::fmt;

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
            // What was found as it stands may be nothing to see.
            found: if found.is_empty() { "an empty text".to_owned() } else { found },
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
        match (self.file.as_str(), self.key.as_str()) {
            ("", "") => write!(f, "bad input")?,
            (file, "") => write!(f, "{file}")?,
            ("", key) => write!(f, "`{key}`")?,
            (file, key) => write!(f, "{file}: `{key}`")?,
        }
        write!(f, "\n  found:    {}\n  expected: {}\n  fix:      {}", self.found, self.expected, self.fix)
    }
}
