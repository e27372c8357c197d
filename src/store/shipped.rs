//! The files that are built into the program, as `build.rs` packs them: by folder, compressed.

use std::sync::OnceLock;

/// Folder, length of its files in bytes, and its files, compressed.
const PACKED: &[(&str, usize, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

type Files = Vec<(&'static str, &'static str)>;

/// Names and texts of the files of each folder, unpacked on first use.
static UNPACKED: [OnceLock<Files>; PACKED.len()] = [const { OnceLock::new() }; PACKED.len()];

/// Names and texts of the built-in files of a folder, those of folders in it not included, in order of their names.
pub fn shipped_files(folder: &str) -> &'static [(&'static str, &'static str)] {
    let Some(number) = PACKED.iter().position(|(name, ..)| *name == folder) else { return &[] };
    UNPACKED[number].get_or_init(|| {
        let (_, length, packed) = PACKED[number];
        // The build packed it: it is whole.
        let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, length).unwrap_or_default();
        files(String::from_utf8(bytes).unwrap_or_default().leak())
    })
}

/// The files in an unpacked text: of each its name, its length and its text.
fn files(mut text: &'static str) -> Files {
    let mut files = Vec::new();
    while let Some((name, rest)) = text.split_once('\n')
        && let Some((length, rest)) = rest.split_once('\n')
        && let Some((file, rest)) = length.parse().ok().and_then(|length| rest.split_at_checked(length))
    {
        files.push((name, file));
        text = rest;
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_unpacks_to_the_files_that_were_packed() {
        for (folder, length, _) in PACKED {
            let at = |name: &str| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name);
            let files = shipped_files(folder);
            let mut heads = 0;
            for (name, text) in files {
                assert_eq!(std::fs::read_to_string(at(name)).unwrap(), *text, "{folder}/{name}");
                heads += format!("{name}\n{}\n", text.len()).len() + text.len();
            }
            assert_eq!(heads, *length, "{folder}");
        }
        assert_eq!(shipped_files("hardware/none"), []);
    }
}
