//! The files that are built into the program, as `build.rs` packs them: each compressed, and unpacked when it is read.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

// `static SHIPPED: [ShippedFile; _]`, in order of folders and names; `static HEADS`, the length and packed text of what is
// in front of the configurations of models.
include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// A file that is built into the program.
#[derive(Debug)]
pub struct ShippedFile {
    folder: &'static str,
    /// Name in its folder.
    pub name: &'static str,
    /// Length of its text in bytes.
    length: usize,
    packed: &'static [u8],
    text: OnceLock<String>,
    /// Its part of the heads; empty of other files than models.
    head: Range<usize>,
}

static HEAD_TEXT: LazyLock<String> = LazyLock::new(|| unpacked(HEADS.1, HEADS.0));

/// A text of `length` bytes. The build packed it: it is whole.
fn unpacked(packed: &[u8], length: usize) -> String {
    let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, length);
    String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
}

impl ShippedFile {
    const fn new(
        folder: &'static str,
        name: &'static str,
        length: usize,
        packed: &'static [u8],
        head: Range<usize>,
    ) -> Self {
        Self { folder, name, length, packed, text: OnceLock::new(), head }
    }

    /// Its text, unpacked on first use: a command reads few of the files.
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| unpacked(self.packed, self.length))
    }

    /// Its text without the configuration of a model: enough for all names.
    pub fn head(&self) -> &str {
        HEAD_TEXT.get(self.head.clone()).filter(|head| !head.is_empty()).unwrap_or_else(|| self.text())
    }
}

/// The built-in files of a folder, those of folders in it not included, in order of their names.
pub fn shipped_files(folder: &str) -> &'static [ShippedFile] {
    let start = SHIPPED.partition_point(|file| file.folder < folder);
    let end = SHIPPED.partition_point(|file| file.folder <= folder);
    &SHIPPED[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_a_file_without_its_configuration() {
        for file in shipped_files("models") {
            let read = |text: &str| -> serde_json::Map<String, serde_json::Value> {
                serde_json::from_str(text).unwrap_or_else(|fault| panic!("{}: {fault}", file.name))
            };
            let mut whole = read(file.text());
            assert!(whole.remove("config").is_some(), "{}: its last key is `config`", file.name);
            assert_eq!(read(file.head()), whole, "{}", file.name);
        }
    }

    #[test]
    fn every_file_unpacks_to_what_was_packed() {
        assert!(SHIPPED.is_sorted_by_key(|file| (file.folder, file.name)));
        for file in &SHIPPED {
            let at = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file.folder).join(file.name);
            assert_eq!(std::fs::read_to_string(&at).unwrap(), file.text(), "{}", at.display());
            assert!(
                shipped_files(file.folder).iter().any(|found| std::ptr::eq(found, file)),
                "{}",
                at.display()
            );
        }
        assert!(shipped_files("hardware/none").is_empty());
    }
}
