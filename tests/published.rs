//! Predictions held against published serving measurements. A part of these lies in `tests/published`; all of them lie
//! beside the project: where they are absent this says so and passes, except in CI.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::fs;
use std::path::Path;
use std::process::Command;

use mantile::cli::validate::predict::{predict, runtime};
use mantile::cli::validate::table::read;
use mantile::store::catalog::Catalog;
use mantile::validate::measured::Measured;
use mantile::validate::summary::{Held, Key, Validation, validation};

const SERVING: &str = "../shared/validation/serving.csv";
const SINGLE: &str = "../shared/validation/singlestream.csv";

/// The aggregated rows, predicted.
fn aggregated() -> Option<Vec<Held>> {
    rows(SERVING, |row| row.mode == "agg")
}

/// The rows of a file that are wanted, predicted.
fn rows(file: &str, wanted: fn(&Measured) -> bool) -> Option<Vec<Held>> {
    if !Path::new(file).exists() {
        assert!(std::env::var("CI").is_err(), "{file} is missing in CI");
        eprintln!("SKIPPED: {file} is not there, so predictions were held against nothing");
        return None;
    }
    let mut rows = read(Path::new(file)).unwrap();
    rows.retain(wanted);
    Some(predict(&Catalog::default(), rows))
}

fn errors(found: &Validation) -> (f64, f64) {
    (found.overall.tpot.unwrap().mdape, found.overall.ttft.unwrap().mdape)
}

#[test]
fn median_errors_are_what_the_readme_says() {
    let Some(rows) = aggregated() else { return };
    let found = validation(&rows, &[Key::Hardware, Key::Runtime]);
    println!("{}", mantile::report::validation::text(&found));
    let (tpot, ttft) = errors(&found);
    assert!(found.overall.n >= 1_700 && found.overall.unsupported * 100 <= 3 * found.overall.n);
    assert!(tpot <= 0.055, "median TPOT error {tpot:.3}");
    assert!(ttft <= 0.24, "median TTFT error {ttft:.3}");
    let decision = found.overall.decision.unwrap();
    assert!(decision.spearman >= 0.9 && decision.regret <= 0.05, "{decision:?}");
    // The rows were fitted, so more of them lie inside than of others.
    for score in [found.overall.tpot.unwrap(), found.overall.ttft.unwrap()] {
        let covered = score.coverage_80.unwrap();
        assert!((0.75..0.92).contains(&covered), "{covered:.2} lie in the interval of four in five");
    }
}

#[test]
fn the_readme_states_what_the_profiles_reach() {
    let Some(rows) = aggregated() else { return };
    let found = validation(&rows, &[]);
    let (tpot, ttft) = errors(&found);
    let row = format!("fitted on them | {:.1} % | {:.1} % |", 100.0 * tpot, 100.0 * ttft);
    let readme = include_str!("../README.md");
    assert!(readme.contains(&row), "{row}");
    let overall = found.overall;
    let (chosen, careful) = (overall.decision.unwrap(), overall.decision_p90.unwrap());
    let choices = format!("{:.1} % of {} meet the limit", 100.0 * chosen.slo_met, chosen.choices);
    assert!(readme.contains(&choices), "{choices}");
    let careful_met = format!("(`--risk p90`) {:.1} % meet it", 100.0 * careful.slo_met);
    assert!(readme.contains(&careful_met), "{careful_met}");
    assert!(chosen.regret <= 0.001 && careful.regret <= 0.001 && careful.slo_met > chosen.slo_met);
}

#[test]
fn single_streams_are_as_far_off_as_the_readme_says() {
    let fitted =
        |row: &Measured| ["llama.cpp", "mlx", "mistral.rs", "mlc-llm"].contains(&&*runtime(&row.runtime));
    let Some(rows) = rows(SINGLE, fitted) else { return };
    let found = validation(&rows, &[]);
    assert!(found.overall.n >= 840, "{}", found.overall.n);
    let (tpot, ttft) = errors(&found);
    let row = format!("fitted on them | {:.1} % | {:.1} % |", 100.0 * tpot, 100.0 * ttft);
    assert!(include_str!("../README.md").contains(&row), "{row}");
}

#[test]
fn pools_apart_are_as_far_off_as_the_readme_says() {
    let Some(rows) = rows(SERVING, |row| row.mode == "disagg") else { return };
    let found = validation(&rows, &[]);
    let (tpot, ttft) = errors(&found);
    assert!(found.overall.n >= 160, "{}", found.overall.n);
    assert!(tpot <= 0.16 && ttft <= 0.71, "median errors: TPOT {tpot:.3}, TTFT {ttft:.3}");
}

#[test]
fn no_group_of_rows_is_far_off() {
    let Some(rows) = aggregated() else { return };
    let found = validation(&rows, &[Key::Hardware, Key::Runtime]);
    for group in found.groups.iter().filter(|group| group.n >= 10) {
        let tpot = group.tpot.unwrap().mdape;
        assert!(tpot <= 0.15, "{}: median TPOT error {tpot:.3}", group.name);
    }
}

/// The README with each table after `<!-- mantile-opt … -->` as that command writes it.
fn refilled(readme: &str) -> String {
    let mut parts = readme.split("<!-- mantile-opt ");
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (arguments, rest) = part.split_once(" -->\n").expect("a marker ends");
        let (_, after) = rest.split_once("<!-- end -->").expect("a table ends");
        let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
        let output = command
            .args(arguments.split(' '))
            .env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .output()
            .unwrap();
        let table = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && table.lines().count() > 10, "{table}");
        written.push_str(&format!("<!-- mantile-opt {arguments} -->\n{table}<!-- end -->{after}"));
    }
    written
}

#[test]
fn the_readme_has_the_tables_that_the_command_writes() {
    let readme = fs::read_to_string("README.md").unwrap();
    let written = refilled(&readme);
    assert_eq!(written.matches("<!-- end -->").count(), 2);
    // As for console sessions.
    if std::env::var("TRYCMD").is_ok_and(|wish| wish == "overwrite") {
        fs::write("README.md", &written).unwrap();
        return;
    }
    for (stands, comes) in readme.lines().zip(written.lines()) {
        assert_eq!(stands, comes, "TRYCMD=overwrite cargo test --test published writes the table anew");
    }
    assert_eq!(readme.len(), written.len());
}
