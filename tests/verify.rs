//! Saved answers of every command that finds something: what is saved holds, and whatever is spoilt is told.

#[path = "verify/fleet.rs"]
mod fleet;
#[path = "verify/optimize.rs"]
mod optimize;
#[path = "verify/place.rs"]
mod place;
#[path = "verify/random.rs"]
mod random;
#[path = "verify/recommend.rs"]
mod recommend;

use std::process::Command;

use mantile::report::verify::Verified;
use serde_json::Value;

/// What the command answers as JSON, and that the answer holds where it is checked from a file.
fn saved(args: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answer.json");
    let mantile = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
        command.args(args).env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR")).output().unwrap()
    };
    let answered = mantile(&[args, &["--format", "json"]].concat());
    std::fs::write(&file, &answered.stdout).unwrap();
    let checked = mantile(&["verify", file.to_str().unwrap(), "--sample", "300"]);
    let (shown, fault) = (String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
    assert!(checked.status.success(), "{args:?}: {shown}{fault}");
    serde_json::from_slice(&answered.stdout).unwrap()
}

/// A way to spoil an answer, and what its check begins with.
type Spoiling<'a> = (&'a str, &'a str, &'a dyn Fn(&mut Value));

/// Each spoiling is told by its own check, not by the search done again alone.
fn caught(value: &Value, spoilings: &[Spoiling], check: impl Fn(&Value) -> Verified) {
    for (what, by, spoil) in spoilings {
        let mut spoilt = value.clone();
        spoil(&mut spoilt);
        assert_ne!(&spoilt, value, "{what}: nothing is spoilt");
        let found = check(&spoilt);
        let failed: Vec<_> = found.checks.iter().filter(|check| !check.faults.is_empty()).collect();
        let shown: Vec<_> = failed.iter().map(|check| (&check.what, &check.faults)).collect();
        assert!(!found.holds && failed.iter().any(|check| check.what.starts_with(by)), "{what}: {shown:#?}");
    }
}

/// The number at `pointer` times a factor.
fn times(value: &mut Value, pointer: &str, factor: f64) {
    let number = value.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}"));
    *number = (number.as_f64().unwrap() * factor).into();
}

/// The whole number at `pointer` and so many more.
fn more(value: &mut Value, pointer: &str, by: i64) {
    let number = value.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}"));
    *number = (number.as_i64().unwrap() + by).into();
}
