//! Files as they come and go: what is read is bounded, what is written is whole, and no name does anything.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use mantile::spec::visible::acts;

#[path = "files/names.rs"]
mod names;
#[cfg(unix)]
#[path = "files/read.rs"]
mod read;
#[cfg(unix)]
#[path = "files/write.rs"]
mod write;

const MANTILE: &str = env!("CARGO_BIN_EXE_mantile-opt");

/// The command with an empty catalogue of one's own.
fn mantile(args: &[&str]) -> Command {
    let mut command = Command::new(MANTILE);
    command.args(args).env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR")).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    mantile(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Standard error of a command that must have refused its input in words.
fn refused(output: &Output) -> String {
    let fault = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{fault}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    for words in ["Some(", "None", "Os {", "kind:", "panicked", "os error"] {
        assert!(!fault.contains(words), "{words}: {fault}");
    }
    assert!(!fault.chars().any(|c| acts(c) && c != '\n'), "{fault:?}");
    fault
}

/// What a folder holds.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
