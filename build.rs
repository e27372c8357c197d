//! Packs the catalogue for the program: each file compressed, so that a command unpacks only those that it reads. A module
//! has them as they are: it is compressed as a whole on its way to a browser, which more than halves their size once more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The folders whose files are built in, each with the folders in it.
const FOLDERS: [&str; 3] = ["models", "hardware", "objectives"];
/// The last key of a model file. All that names a model is in front of it.
const CONFIG: &str = ",\n  \"config\": {";

fn main() -> io::Result<()> {
    let (root, out) = (folder_of("CARGO_MANIFEST_DIR")?, folder_of("OUT_DIR")?);
    let is_module = env::var_os("CARGO_CFG_TARGET_ARCH").is_some_and(|arch| arch == "wasm32");
    let packed = |text: &[u8]| miniz_oxide::deflate::compress_to_vec(text, if is_module { 0 } else { 9 });
    let mut files = BTreeSet::new();
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={folder}");
        list(&root, Path::new(folder), &mut files)?;
    }
    let mut table = format!("static SHIPPED: [ShippedFile; {}] = [\n", files.len());
    // A name is sought in all models: their heads are unpacked at once, without the configurations.
    let mut heads = String::new();
    for (number, (folder, name)) in files.iter().enumerate() {
        let text = fs::read(root.join(folder).join(name))?;
        fs::write(out.join(format!("{number}.deflate")), packed(&text))?;
        let bytes = format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{number}.deflate\"))");
        let start = heads.len();
        if let Some((head, _)) = std::str::from_utf8(&text).ok().and_then(|text| text.split_once(CONFIG)) {
            heads.push_str(&format!("{head}\n}}\n"));
        }
        let head = format!("{start}..{}", heads.len());
        table.push_str(&format!(
            "    ShippedFile::new({folder:?}, {name:?}, {}, {bytes}, {head}),\n",
            text.len()
        ));
    }
    fs::write(out.join("heads.deflate"), packed(heads.as_bytes()))?;
    let bytes = "include_bytes!(concat!(env!(\"OUT_DIR\"), \"/heads.deflate\"))";
    table.push_str(&format!("];\nstatic HEADS: (usize, &[u8]) = ({}, {bytes});\n", heads.len()));
    fs::write(out.join("catalogue.rs"), table)
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
