//! Modules import only downward, by `use` or in place.

use super::none;
use super::source::{Source, files};

/// The floors, lowest first.
const FLOORS: [&[&str]; 13] = [
    &["quantity", "figures", "formulas", "rows_by_variant"],
    &["spec"],
    &["graph"],
    &["plan"],
    &["cost"],
    &["serving", "traffic"],
    &["search", "calibrate"],
    &["report", "validate", "launch"],
    &["store"],
    &["request"],
    &["site", "admission", "bench"],
    &["http", "mcp"],
    &["main", "lib", "cli", "prelude"],
];

/// The floor of a top module or of a macro that one declares.
pub fn of(module: &str) -> Option<usize> {
    FLOORS.iter().position(|modules| modules.contains(&module))
}

/// The top modules that a line of `source` reaches, as `crate::x`, or through enough `super`s.
fn reached(source: &Source, line: &str) -> Vec<String> {
    let mut found = names_after(line, "crate::");
    let up = "super::".repeat(source.module().len());
    found.extend(names_after(line, &up).into_iter().filter(|name| of(name).is_some()));
    found
}

/// The names that follow `prefix`, those in braces too.
fn names_after(line: &str, prefix: &str) -> Vec<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut names = Vec::new();
    for (at, _) in line.match_indices(prefix) {
        let rest = &line[at + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(list) => names.extend(list.split(',').map(|one| name(one.trim()))),
            None => names.push(name(rest)),
        }
    }
    names
}

fn upward(source: &Source) -> Vec<String> {
    let here = source.module()[0];
    let Some(floor) = of(here) else { return vec![format!("{}: `{here}` is on no floor", source.name)] };
    let mut faults = Vec::new();
    for (number, line) in source.code() {
        for name in reached(source, &line) {
            match of(&name) {
                Some(other) if other <= floor => {}
                Some(other) => faults.push(format!(
                    "{}:{number}: {here} (floor {floor}) imports {name} (floor {other})",
                    source.name
                )),
                None => faults.push(format!("{}:{number}: `crate::{name}` is on no floor", source.name)),
            }
        }
    }
    faults
}

#[test]
fn modules_import_only_downward() {
    let sources = files("src", "rs");
    assert!(sources.len() > 50, "the sources are where they are looked for");
    none(&sources.iter().flat_map(upward).collect::<Vec<_>>());
}

#[test]
fn an_upward_import_is_found_in_any_spelling() {
    let planted = |text: &str| {
        upward(&Source { name: "src/cost/linear.rs".into(), text: format!("//! x\n{text}\n") }).len()
    };
    assert_eq!(planted("use crate::serving::step;"), 1);
    assert_eq!(planted("let x = crate::search::point::WIDTH;"), 1);
    assert_eq!(planted("use super::super::report::table;"), 1);
    assert_eq!(planted("use crate::{quantity::num, serving::step};"), 1);
    assert_eq!(planted("use crate::{serving, quantity};"), 1);
    assert_eq!(planted("use crate::plan::group; // crate::serving"), 0);
    assert_eq!(planted("let x = \"crate::serving\";"), 0);
    assert_eq!(planted("use super::machine::Chip;"), 0);
}
