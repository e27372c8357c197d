//! Packs the catalogue for the program: one compressed file for each folder, so that a command unpacks only the kinds of
//! files that it reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The folders whose files are built in, each with the folders in it.
const FOLDERS: [&str; 3] = ["models", "hardware", "objectives"];

fn main() -> io::Result<()> {
    let (root, out) = (folder_of("CARGO_MANIFEST_DIR")?, folder_of("OUT_DIR")?);
    let mut packed = BTreeMap::new();
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={folder}");
        pack(&root, Path::new(folder), &mut packed)?;
    }
    let mut table = String::from("[\n");
    for (number, (folder, files)) in packed.iter().enumerate() {
        fs::write(out.join(format!("{number}.deflate")), miniz_oxide::deflate::compress_to_vec(files, 9))?;
        let bytes = format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{number}.deflate\"))");
        table.push_str(&format!("    ({folder:?}, {}, {bytes}),\n", files.len()));
    }
    fs::write(out.join("catalogue.rs"), table + "]\n")
}

fn folder_of(variable: &str) -> io::Result<PathBuf> {
    let set = env::var_os(variable).map(PathBuf::from);
    set.ok_or_else(|| io::Error::other(format!("{variable} is not set; cargo sets it for build scripts")))
}

/// Adds the files of `folder` to `packed`, and those of the folders in it: of each its name, a line end, its length in
/// bytes, a line end, its text. JSON and CSV alone; a README describes a folder to people.
fn pack(root: &Path, folder: &Path, packed: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    let mut entries = fs::read_dir(root.join(folder))?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            pack(root, &path, packed)?;
        } else if path.extension().is_some_and(|ending| ending == "json" || ending == "csv") {
            let text = fs::read(entry.path())?;
            let files = packed.entry(folder.to_string_lossy().replace('\\', "/")).or_default();
            files.extend(format!("{}\n{}\n", entry.file_name().to_string_lossy(), text.len()).bytes());
            files.extend(text);
        }
    }
    Ok(())
}
