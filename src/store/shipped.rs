//! The files that are built into the program, as `build.rs` packs them: each compressed, and unpacked when it is read.

use std::sync::OnceLock;

// `static SHIPPED: [ShippedFile; _]`, in order of folders and names.
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
}

impl ShippedFile {
    const fn new(folder: &'static str, name: &'static str, length: usize, packed: &'static [u8]) -> Self {
        Self { folder, name, length, packed, text: OnceLock::new() }
    }

    /// Its text, unpacked on first use: a command reads few of the files.
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| {
            // The build packed it: it is whole.
            let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(self.packed, self.length);
            String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
        })
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
