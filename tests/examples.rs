//! The examples of the library: short, and they run.

use std::path::Path;
use std::process::Command;

use super::source::files;

/// Lines of an example.
const MOST_LINES: usize = 30;

#[test]
fn every_example_is_short_and_prints_an_answer() {
    let binaries = Path::new(env!("CARGO_BIN_EXE_mantile-opt")).with_file_name("examples");
    let examples = files("examples", "rs");
    assert!(examples.len() >= 6, "{} examples", examples.len());
    for example in examples {
        assert!(example.text.lines().count() < MOST_LINES, "{}", example.name);
        let name = Path::new(&example.name).file_stem().unwrap();
        let output = Command::new(binaries.join(name)).output();
        let output = output.unwrap_or_else(|fault| panic!("{name:?}: {fault}; `cargo test` builds it"));
        assert!(output.status.success(), "{name:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "{name:?} prints nothing");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!text.contains("NaN"), "{name:?}: {text}");
    }
}
