//! Rebuilds when a file of the embedded catalogues comes or goes; their contents the compiler tracks itself.

fn main() {
    for folder in ["models", "hardware", "objectives"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
