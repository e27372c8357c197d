//! Packs the catalogue for the program: each file compressed, so that a command unpacks only those that it reads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The folders whose files are built in, each with the folders in it.
const FOLDERS: [&str; 3] = ["models", "hardware", "objectives"];

fn main() -> io::Result<()> {
    let (root, out) = (folder_of("CARGO_MANIFEST_DIR")?, folder_of("OUT_DIR")?);
    let mut files = BTreeSet::new();
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={folder}");
        list(&root, Path::new(folder), &mut files)?;
    }
    let mut table = format!("static SHIPPED: [ShippedFile; {}] = [\n", files.len());
    for (number, (folder, name)) in files.iter().enumerate() {
        let text = fs::read(root.join(folder).join(name))?;
        fs::write(out.join(format!("{number}.deflate")), miniz_oxide::deflate::compress_to_vec(&text, 9))?;
        let bytes = format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{number}.deflate\"))");
        table.push_str(&format!("    ShippedFile::new({folder:?}, {name:?}, {}, {bytes}),\n", text.len()));
    }
    fs::write(out.join("catalogue.rs"), table + "];\n")
}

fn folder_of(variable: &str) -> io::Result<PathBuf> {
    let set = env::var_os(variable).map(PathBuf::from);
    set.ok_or_else(|| io::Error::other(format!("{variable} is not set; cargo sets it for build scripts")))
}

/// Adds the files in `folder` and in the folders in it, each as its folder and its name. JSON and CSV alone; a README
/// describes a folder to people.
fn list(root: &Path, folder: &Path, files: &mut BTreeSet<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            list(root, &path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "json" || ending == "csv") {
            let folder = folder.to_string_lossy().replace('\\', "/");
            files.insert((folder, entry.file_name().to_string_lossy().into_owned()));
        }
    }
    Ok(())
}
