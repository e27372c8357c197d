//! The sources of the crate as text, without comments and, where asked, without their unit tests.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file.
pub struct Source {
    /// From the crate's root, e.g. `src/cost/linear.rs`.
    pub name: String,
    /// As it is on disk.
    pub text: String,
}

/// The crate's root.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file under `folder` whose name ends in `.ending`, sorted.
pub fn files(folder: &str, ending: &str) -> Vec<Source> {
    let mut found = Vec::new();
    collect(&root().join(folder), ending, &mut found);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn collect(folder: &Path, ending: &str, found: &mut Vec<Source>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(&path, ending, found);
        } else if path.extension().is_some_and(|e| e == ending) {
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
            found.push(Source { name, text: fs::read_to_string(&path).unwrap() });
        }
    }
}

impl Source {
    /// The module under `src`: `src/cost/linear.rs` is `["cost", "linear"]`.
    pub fn module(&self) -> Vec<&str> {
        let path = self.name.strip_prefix("src/").unwrap_or(&self.name);
        path.strip_suffix(".rs").unwrap_or(path).split('/').collect()
    }

    /// Lines of code with their numbers: comments and what stands in quotes are blanked.
    pub fn code(&self) -> Vec<(usize, String)> {
        blank(&self.text).lines().map(str::to_owned).enumerate().map(|(i, line)| (i + 1, line)).collect()
    }

    /// The same without the unit tests, which stand last.
    pub fn product(&self) -> Vec<(usize, String)> {
        let code = self.code().into_iter();
        code.take_while(|(_, line)| line.trim() != "#[cfg(test)]").collect()
    }
}

/// Blanks comments, strings and characters; line ends stay.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut last = ' ';
    while let Some(c) = rest.next() {
        match c {
            '/' if rest.peek() == Some(&'/') => {
                while rest.peek().is_some_and(|&c| c != '\n') {
                    rest.next();
                }
            }
            'r' if !last.is_alphanumeric() && matches!(rest.peek(), Some('"' | '#')) => {
                let mut hashes = 0;
                while rest.peek() == Some(&'#') {
                    hashes += 1;
                    rest.next();
                }
                rest.next();
                let mut tail = 0;
                let mut open = true;
                while let Some(c) = rest.next_if(|_| open) {
                    tail = match c {
                        '"' => 1,
                        '#' if tail > 0 => tail + 1,
                        _ => 0,
                    };
                    open = tail != hashes + 1;
                    if c == '\n' {
                        out.push('\n');
                    }
                }
                out.push_str("\"\"");
            }
            '"' => {
                out.push('"');
                while let Some(c) = rest.next() {
                    match c {
                        // What is escaped is passed over, but for the end of a line.
                        '\\' => out.extend(rest.next().filter(|&c| c == '\n')),
                        '"' => break,
                        '\n' => out.push('\n'),
                        _ => {}
                    }
                }
                out.push('"');
            }
            // A character, not a lifetime.
            '\'' => {
                let ahead: Vec<char> = rest.clone().take(2).collect();
                let escaped = ahead.first() == Some(&'\\');
                if escaped || ahead.get(1) == Some(&'\'') {
                    rest.next();
                    if escaped {
                        rest.next();
                    }
                    while rest.next().is_some_and(|c| c != '\'') {}
                    out.push_str("' '");
                } else {
                    out.push(c);
                }
            }
            c => out.push(c),
        }
        last = c;
    }
    out
}

#[test]
fn comments_and_quotes_are_blanked() {
    let text = "a // crate::x\nlet b = \"crate::y \\\" // \"; 'c' '\\n' &'a r#\"crate::\"z\"# end\n";
    assert_eq!(blank(text), "a \nlet b = \"\"; ' ' ' ' &'a \"\" end\n");
}
