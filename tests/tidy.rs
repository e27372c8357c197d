//! The house rules that a compiler does not know: floors, sizes, sources, and what stands nowhere.

use std::collections::BTreeSet;

use mantile::quantity::formula::Formula;
use mantile::spec::constant::CONSTANTS;
use serde_json::Value;

#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/floors.rs"]
mod floors;
#[path = "tidy/language.rs"]
mod language;
#[path = "tidy/versions.rs"]
mod versions;
use crate::source;

use source::{Source, files};

/// No file is longer.
const MOST_LINES: usize = 800;

/// Fails with every fault on a line of its own.
fn none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Every line of `lines` that `is_fault`, as `file:line: code`.
fn lines<'a>(
    source: &'a Source,
    lines: Vec<(usize, String)>,
    is_fault: impl Fn(&str) -> bool + 'a,
) -> impl Iterator<Item = String> + 'a {
    let bad = lines.into_iter().filter(move |(_, line)| is_fault(line));
    bad.map(|(number, line)| format!("{}:{number}: {}", source.name, line.trim()))
}

/// Whether `word` stands in `line` by itself.
fn has_word(line: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word)
        .any(|(at, _)| !part(line[..at].chars().next_back()) && !part(line[at + word.len()..].chars().next()))
}

fn rust() -> Vec<Source> {
    ["src", "tests", "benches", "examples"].into_iter().flat_map(|folder| files(folder, "rs")).collect()
}

#[test]
fn no_file_is_long() {
    let long = rust().into_iter().map(|source| (source.text.lines().count(), source.name));
    let long = long.filter(|(lines, _)| *lines > MOST_LINES);
    none(
        &long.map(|(lines, name)| format!("{name}: {lines} lines, at most {MOST_LINES}")).collect::<Vec<_>>(),
    );
}

/// A file that the suite does not name is never compiled.
#[test]
fn the_suite_has_every_test_file() {
    let suite = include_str!("suite.rs");
    let absent = files("tests", "rs").into_iter().filter_map(|source| {
        let name = source.name.strip_prefix("tests/")?.strip_suffix(".rs")?.to_string();
        let is_absent = !name.contains('/') && name != "suite" && !suite.contains(&format!("mod {name};"));
        is_absent.then(|| format!("{}: not in tests/suite.rs", source.name))
    });
    none(&absent.collect::<Vec<_>>());
}

#[test]
fn every_file_says_what_it_is() {
    let modules = rust().into_iter().filter(|source| !source.name.starts_with("examples/"));
    let silent = modules.filter(|source| !source.text.starts_with("//! "));
    none(&silent.map(|source| format!("{}: no `//!` at its head", source.name)).collect::<Vec<_>>());
}

#[test]
fn below_the_shell_nothing_touches_the_world() {
    const WORLD: [&str; 13] = [
        "std::fs",
        "std::net",
        "std::env",
        "std::process",
        "std::path",
        "println!",
        "eprintln!",
        "print!",
        "dbg!",
        "Instant",
        "SystemTime",
        "stdout",
        "File",
    ];
    let below = files("src", "rs").into_iter().filter(|source| floors::of(source.module()[0]) < Some(8));
    let faults: Vec<String> = below
        .flat_map(|source| {
            let found =
                lines(&source, source.product(), |line| WORLD.iter().any(|word| has_word(line, word)));
            found.collect::<Vec<_>>()
        })
        .collect();
    none(&faults);
}

/// People read messages: `Some(2048)` and `Os { code: 2 }` are Rust's words.
#[test]
fn no_message_is_in_the_form_of_a_debugger() {
    // Dot of `petgraph` is written by its `Debug`, which is Graphviz; a fingerprint is of all fields, and no message.
    const EXEMPT: [&str; 2] = ["src/report/graph/notation.rs", "src/request/sweep/grid.rs"];
    let mut faults = Vec::new();
    for source in files("src", "rs").iter().filter(|source| !EXEMPT.contains(&source.name.as_str())) {
        let product = source.text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
        for (number, line) in product.enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            if line.contains(":?}") || line.contains(":#?}") {
                faults.push(format!("{}:{}: {}", source.name, number + 1, line.trim()));
            }
        }
    }
    none(&faults);
}

#[test]
fn nothing_unwraps() {
    let faults: Vec<String> = files("src", "rs")
        .iter()
        .flat_map(|source| {
            let unwraps = |line: &str| line.contains(".unwrap()") || line.contains(".unwrap_err()");
            lines(source, source.product(), unwraps).collect::<Vec<_>>()
        })
        .collect();
    none(&faults);
}

/// Structure is integers. The reasons against a plan tell bytes and seconds as they were computed elsewhere.
#[test]
fn graph_and_plan_have_no_floating_point() {
    const REASONS: &str = "src/plan/infeasible.rs";
    let structure = files("src/graph", "rs").into_iter().chain(files("src/plan", "rs"));
    let float = |line: &str| {
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let literal = line.match_indices('.').any(|(at, _)| {
            digit(line[..at].chars().next_back())
                && digit(line[at + 1..].chars().next())
                && !line.contains("0..")
        });
        has_word(line, "f64") || has_word(line, "f32") || literal
    };
    let faults: Vec<String> = structure
        .filter(|source| source.name != REASONS)
        .flat_map(|source| lines(&source, source.product(), float).collect::<Vec<_>>())
        .collect();
    none(&faults);
}

/// One name, one path: what is re-exported is a private child's.
#[test]
fn nothing_has_two_paths() {
    let mut faults = Vec::new();
    for source in files("src", "rs") {
        let code = source.product();
        for (number, line) in &code {
            let Some(rest) = line.trim().strip_prefix("pub use ") else { continue };
            let child = rest.split(':').next().unwrap();
            // The prelude is a second path on purpose.
            if source.name.ends_with("src/prelude.rs") {
                continue;
            }
            if !code.iter().any(|(_, line)| line.trim() == format!("mod {child};")) {
                faults.push(format!("{}:{number}: {}", source.name, line.trim()));
            }
        }
    }
    none(&faults);
}

fn formulas() -> Vec<&'static Formula> {
    [mantile::cost::formulas(), mantile::serving::formulas()].concat()
}

#[test]
fn every_formula_says_why_and_after_whom() {
    let faults = formulas().into_iter().filter(|formula| {
        [formula.symbol, formula.why, formula.cite].iter().any(|text| text.trim().is_empty())
    });
    none(&faults.map(|formula| format!("{formula:?}")).collect::<Vec<_>>());
}

/// A file that states formulas and is not in its floor's list would escape the tests.
#[test]
fn every_file_of_formulas_is_listed() {
    let mut stated = 0;
    let mut faults = Vec::new();
    for floor in ["cost", "serving"] {
        let lists =
            files("src", "rs").into_iter().find(|source| source.name == format!("src/{floor}.rs")).unwrap();
        for source in files(&format!("src/{floor}"), "rs") {
            let code = source.product();
            if let Some(from) = code.iter().position(|(_, line)| line.contains("crate::formulas!")) {
                stated += code[from..].iter().filter(|(_, line)| line.trim().starts_with("symbol:")).count();
                let name = source.module()[1..].join("::");
                if !lists.text.contains(&format!(" {name}::FORMULAS")) {
                    faults.push(format!("{}: not in `{floor}::formulas`", source.name));
                }
            }
        }
    }
    none(&faults);
    // Each calibrated constant has a formula that follows from its table.
    let listed = formulas().len() - CONSTANTS.len();
    assert_eq!(stated, listed, "formulas stated in the sources, and in the lists");
    let elsewhere = files("src", "rs").into_iter().filter(|source| {
        !["cost", "serving"].contains(&source.module()[0])
            && source.product().iter().any(|(_, line)| line.contains("crate::formulas!"))
    });
    none(
        &elsewhere
            .map(|source| format!("{}: formulas outside cost and serving", source.name))
            .collect::<Vec<_>>(),
    );
}

fn without_source(value: &Value, path: &str, faults: &mut Vec<String>) -> usize {
    let mut figures = 0;
    match value {
        Value::Object(fields) => {
            if fields.contains_key("value") {
                figures += 1;
                let source = fields.get("source").and_then(Value::as_str).unwrap_or_default();
                if source.trim().is_empty() {
                    faults.push(format!("{path}: {} has no source", fields["value"]));
                }
            }
            for (key, inner) in fields {
                figures += without_source(inner, &format!("{path}/{key}"), faults);
            }
        }
        Value::Array(items) => {
            for (number, inner) in items.iter().enumerate() {
                figures += without_source(inner, &format!("{path}/{number}"), faults);
            }
        }
        _ => {}
    }
    figures
}

#[test]
fn every_figure_has_a_source() {
    let mut faults = Vec::new();
    for file in files("hardware", "json") {
        let value: Value = serde_json::from_str(&file.text).unwrap_or_else(|e| panic!("{}: {e}", file.name));
        // Launches, options and their effects have one source for all.
        let options = ["hardware/launches/", "hardware/options/", "hardware/effects/", "hardware/measured/"]
            .iter()
            .any(|folder| file.name.starts_with(folder));
        let source = value["source"].as_str().is_some_and(|source| !source.trim().is_empty());
        if options && source {
            continue;
        }
        let figures = without_source(&value, &file.name, &mut faults);
        if figures == 0 {
            faults.push(format!("{}: states no figure", file.name));
        }
    }
    for file in files("models", "json").into_iter().chain(files("objectives/workloads", "json")) {
        let value: Value = serde_json::from_str(&file.text).unwrap_or_else(|e| panic!("{}: {e}", file.name));
        if value["source"].as_str().is_none_or(|source| source.trim().is_empty()) {
            faults.push(format!("{}: no source", file.name));
        }
    }
    none(&faults);
}

#[test]
fn no_formula_is_stated_twice() {
    let mut seen = BTreeSet::new();
    let twice: Vec<_> = formulas().into_iter().filter(|f| !seen.insert((f.symbol, f.why))).collect();
    assert!(twice.is_empty(), "stated twice: {twice:?}");
}

/// A file that declares formulas is in the list of its layer, so that `formulas` and the readings know them.
#[test]
fn every_declared_formula_is_listed() {
    let faults: Vec<String> = files("src", "rs")
        .into_iter()
        .filter(|source| source.text.contains("pub static FORMULAS") || source.text.contains("::formulas! {"))
        .filter_map(|source| {
            let (folder, file) = source.name.rsplit_once('/')?;
            let (stem, listed) = (file.strip_suffix(".rs")?, std::fs::read_to_string(format!("{folder}.rs")));
            let listed = listed.is_ok_and(|text| text.contains(&format!("{stem}::FORMULAS")));
            (!listed && file != "formula.rs").then(|| format!("{}: not in {folder}.rs", source.name))
        })
        .collect();
    none(&faults);
}
