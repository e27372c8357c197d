//! Predictions held against published serving measurements. A part of these lies in `tests/published`; all of them lie
//! beside the project: where they are absent this says so and passes, except in CI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mantile::request::UNCONTROLLED;
use mantile::request::calibrate::beyond_kernels::beyond_kernels;
use mantile::request::validate::predict::{ProfileFit, predict, ready, runtime};
use mantile::request::validate::table::{MeasuredTable, rows as table_rows};
use mantile::request::validate::{ValidateReport, ValidateRequest, validate};
use mantile::spec::evidence::MeasuredKind;
use mantile::spec::nearness::Interval;
use mantile::spec::percentile::OddsLevel;
use mantile::spec::runtime::Runtime;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use mantile::validate::measured::MeasuredRow;
use mantile::validate::summary::{GroupBy, ScoredRow, Validation, validation};

const SERVING: &str = "../shared/validation/serving.csv";
const SINGLE: &str = "../shared/validation/singlestream.csv";

/// The aggregated rows, predicted.
fn aggregated() -> Option<Vec<ScoredRow>> {
    rows(SERVING, |row| row.mode == "agg")
}

/// The rows of a file that are wanted, predicted.
fn rows(file: &str, wanted: fn(&MeasuredRow) -> bool) -> Option<Vec<ScoredRow>> {
    if !Path::new(file).exists() {
        assert!(std::env::var("CI").is_err(), "{file} is missing in CI");
        eprintln!("SKIPPED: {file} is not there, so predictions were held against nothing");
        return None;
    }
    let mut rows = table_rows(&std::fs::read_to_string(file).unwrap()).unwrap();
    rows.retain(wanted);
    Some(predict(&Catalog::default(), rows))
}

/// The default odds are enough for models, hardware and runtimes that were not measured together.
#[test]
fn choices_at_the_default_odds_meet_their_limit() {
    let (runtime, _) = Catalog::default().runtime_by_id("vllm").unwrap();
    let left_out = &runtime.serving_fit.as_ref().unwrap().left_out;
    let combinations = left_out.iter().find(|one| one.name.starts_with("other combinations")).unwrap();
    let level = OddsLevel::DEFAULT.probability();
    let found = combinations.at_odds.iter().find(|one| one.odds == level).unwrap();
    assert!(found.limit_met >= 0.92, "{found:?}");
    assert!(combinations.at_odds.is_sorted_by(|a, b| a.odds < b.odds && a.limit_met <= b.limit_met));
}

/// The tables whose kinds of deployments are in `hardware/measured/kinds.json`.
const TABLES: [&str; 7] =
    ["serving", "singlestream", "offline", "open_loop", "open_loop2", "prefix", "speculative"];

fn kinds(tables: Vec<MeasuredTable>) -> Vec<MeasuredKind> {
    let request = ValidateRequest { tables, kinds: true, ..ValidateRequest::default() };
    match validate(&Catalog::default(), &request, &UNCONTROLLED).unwrap() {
        ValidateReport::Kinds(kinds) => kinds,
        _ => panic!("kinds were requested"),
    }
}

/// The shipped kinds are those of the whole tables; each kind of the samples of these is among them.
#[test]
fn measured_kinds_are_those_of_the_tables() {
    let file: serde_json::Value =
        serde_json::from_str(&fs::read_to_string("hardware/measured/kinds.json").unwrap()).unwrap();
    let shipped: Vec<MeasuredKind> = serde_json::from_value(file["kinds"].clone()).unwrap();
    let samples = ["rates", "serving", "singlestream"].map(|name| format!("hardware/measured/{name}.csv"));
    let read = |name: String| MeasuredTable { csv: fs::read_to_string(&name).unwrap(), name };
    for found in kinds(samples.map(read).into()) {
        let same = |known: &&MeasuredKind| {
            let used = |one: &MeasuredKind| one.largest().map(|degree| degree > 1);
            let of =
                |one: &MeasuredKind| (one.runtime.clone(), one.vendor.clone(), one.class.clone(), one.role);
            let flags = |one: &MeasuredKind| (one.experts, one.drafts, used(one));
            of(known) == of(&found) && flags(known) == flags(&found)
        };
        let known = shipped.iter().find(same).unwrap_or_else(|| panic!("{found:?} is missing"));
        let larger = found.largest().into_iter().zip(known.largest()).any(|(own, most)| own > most);
        assert!(known.rows >= found.rows && !larger, "{found:?} against {known:?}");
    }
    let whole = TABLES.map(|name| format!("../shared/validation/{name}.csv"));
    if !Path::new(&whole[0]).exists() {
        assert!(std::env::var("CI").is_err(), "{} is missing in CI", whole[0]);
        return eprintln!("SKIPPED: {} is not there, so the kinds were not counted again", whole[0]);
    }
    assert_eq!(kinds(whole.map(read).into()), shipped);
}

fn errors(found: &Validation) -> (f64, f64) {
    (found.overall.tpot.unwrap().mdape, found.overall.ttft.unwrap().mdape)
}

#[test]
fn median_errors_are_below_the_documented_limits() {
    let Some(rows) = aggregated() else { return };
    let found = validation(&rows, &[GroupBy::Hardware, GroupBy::Runtime]);
    println!("{}", mantile::report::validation::text(&found));
    let (tpot, ttft) = errors(&found);
    assert!(found.overall.n >= 1_700 && found.overall.unsupported * 100 <= 3 * found.overall.n);
    assert!(tpot <= 0.055, "median TPOT error {tpot:.3}");
    assert!(ttft <= 0.24, "median TTFT error {ttft:.3}");
    let decision = found.overall.decision.unwrap();
    assert!(decision.spearman >= 0.9 && decision.regret.unwrap() <= 0.05, "{decision:?}");
    // The rows were fitted, so more of them lie inside than of others.
    for score in [found.overall.tpot.unwrap(), found.overall.ttft.unwrap()] {
        let covered = score.coverage_80.unwrap();
        assert!((0.75..0.92).contains(&covered), "{covered:.2} lie in the interval of four in five");
    }
}

/// What a profile says of the rows that it was fitted on is what they are predicted as.
fn as_the_profile_says(found: &Validation, runtime: &str) {
    let profile = Catalog::default().load::<Runtime>(runtime).unwrap();
    let shown = profile.serving_fit.unwrap().left_out.remove(0);
    let (tpot, ttft) = errors(found);
    // Factors are written to four digits.
    let near = |said: Option<[f64; 2]>, made: f64| (said.unwrap()[0] - made).abs() <= 1.5e-3;
    assert_eq!(shown.rows, found.overall.n);
    assert!(near(shown.tpot, tpot) && near(shown.ttft, ttft), "{shown:?}: {tpot} {ttft}");
    let chosen = found.overall.decision.map(|chosen| chosen.slo_met);
    let same = shown.limit_met.zip(chosen).is_none_or(|(said, made)| (said - made).abs() <= 0.01);
    assert!(same, "{shown:?}: {chosen:?}");
}

#[test]
fn the_profiles_state_what_they_reach() {
    let Some(rows) = rows(SERVING, |row| row.mode == "agg" && row.warning.is_empty()) else { return };
    let measured: Vec<MeasuredRow> = rows.iter().map(|row| row.measured.clone()).collect();
    let ready = ready(&Catalog::default(), &measured, ProfileFit::KernelsOnly);
    let beyond = beyond_kernels(&measured, &ready);
    assert!(beyond.iter().any(|beyond| *beyond));
    let fitted: Vec<ScoredRow> =
        rows.into_iter().zip(beyond).filter(|(_, beyond)| !beyond).map(|(row, _)| row).collect();
    as_the_profile_says(&validation(&fitted, &[]), "vllm");
}

/// Models that the catalogue knows since the fit of single streams: their rows are no part of it.
const SINCE_THE_FIT: [&str; 5] = [
    "Qwen/Qwen3.5-2B",
    "Qwen/Qwen3.5-4B",
    "Qwen/Qwen3.5-9B",
    "google/Gemma3-4B",
    "mistralai/Ministral-3-14B-Instruct-2512",
];

/// Rows that no fit has seen are about as far off as those that one has.
#[test]
fn rows_of_models_since_the_fit_are_not_much_further_off() {
    let Some(rows) = rows(SINGLE, |row| SINCE_THE_FIT.contains(&&*row.model)) else { return };
    let (tpot, ttft) = errors(&validation(&rows, &[]));
    println!("{} rows: TPOT {tpot:.3}, TTFT {ttft:.3}", rows.len());
    assert!(rows.len() >= 25 && tpot <= 0.15 && ttft <= 0.4, "{}: {tpot:.3} {ttft:.3}", rows.len());
}

#[test]
fn single_streams_are_as_far_off_as_their_profiles_say() {
    let fitted = |row: &MeasuredRow| {
        row.warning.is_empty()
            && !SINCE_THE_FIT.contains(&&*row.model)
            && ["llama.cpp", "mlx", "mistral.rs", "mlc-llm"].contains(&&*runtime(&row.runtime))
    };
    let Some(rows) = rows(SINGLE, fitted) else { return };
    as_the_profile_says(&validation(&rows, &[]), "llama.cpp");
}

/// What was measured ran: the share that memory is predicted to refuse.
#[test]
fn what_ran_is_seldom_said_not_to_fit() {
    let Some(rows) = aggregated() else { return };
    let found = validation(&rows, &[]).overall;
    assert!(found.too_small * 100 <= 4 * found.n, "{} of {}", found.too_small, found.n);
}

/// EXO Labs, October 2025, <https://blog.exolabs.net/nvidia-dgx-spark>: the document's comparison, by its own command.
#[test]
fn the_document_of_placement_says_what_a_spark_gains_a_mac() {
    let document = include_str!("../docs/placement.md");
    let requested =
        "place --model Llama-3.1-8B --hardware exo-spark-mac --objective request --isl 8192 --osl 32";
    assert!(document.contains(requested));
    let arguments = requested.split(' ').chain(["--format", "json"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    let output = command.args(arguments).env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR")).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let alone = found["alone"].as_array().unwrap();
    let mac = number(&alone.iter().find(|one| one[0] == "mac").unwrap()[1]);
    let separate = &found["disaggregated"];
    let [request, prompt, token] = ["request_ms", "prefill_ms", "token_ms"].map(|key| number(&separate[key]));
    // The first token comes with the prompt.
    let prefill = (mac - 31.0 * token) / prompt;
    let generation = number(&found["placement"]["token_ms"]) / token;
    let gains = format!("Mantile predicts {:.2}, {prefill:.1} and {generation:.1} times.", mac / request);
    assert!(document.contains(&gains), "{gains}");
}

#[test]
fn disaggregated_errors_are_below_the_documented_limits() {
    let Some(rows) = rows(SERVING, |row| row.mode == "disagg") else { return };
    let found = validation(&rows, &[]);
    let (tpot, ttft) = errors(&found);
    assert!(found.overall.n >= 130, "{}", found.overall.n);
    assert!(tpot <= 0.12 && ttft <= 0.78, "median errors: TPOT {tpot:.3}, TTFT {ttft:.3}");
}

#[test]
fn no_group_of_rows_is_far_off() {
    let Some(rows) = aggregated() else { return };
    let found = validation(&rows, &[GroupBy::Hardware, GroupBy::Runtime]);
    for group in found.groups.iter().filter(|group| group.n >= 10) {
        let tpot = group.tpot.unwrap().mdape;
        assert!(tpot <= 0.15, "{}: median TPOT error {tpot:.3}", group.name);
    }
}

/// Every document with tables that commands write.
fn documents() -> Vec<PathBuf> {
    let folder = fs::read_dir("docs").unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = folder.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    found.push("README.md".into());
    found.sort();
    found
}

/// The rows and columns of a table that a marker chooses (`; rows 2 3; columns 1 4`); all where it chooses none.
fn chosen(table: &str, choice: &str) -> String {
    let numbers = |key: &str| -> Option<Vec<usize>> {
        let list = choice.split(';').find_map(|part| part.trim().strip_prefix(key))?;
        Some(list.split_whitespace().map(|number| number.parse().unwrap()).collect())
    };
    let columns = numbers("columns ");
    let lines: Vec<&str> = table.lines().collect();
    let wanted: Vec<&str> = match numbers("rows ") {
        // Two lines of header come before row 1.
        Some(rows) => [0, 1].into_iter().chain(rows.iter().map(|row| row + 1)).map(|at| lines[at]).collect(),
        None => lines,
    };
    let mut written = String::new();
    for line in wanted {
        // A second table follows.
        if line.is_empty() {
            written.push('\n');
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let kept = match &columns {
            Some(columns) => columns.iter().map(|column| cells[column - 1]).collect(),
            None => cells,
        };
        written.push_str(&format!("|{}|\n", kept.join("|")));
    }
    written
}

/// A document with each table after `<!-- mantile-opt … -->` as that command writes it.
fn refilled(document: &str) -> String {
    let mut parts = document.split("<!-- mantile-opt ");
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (marker, rest) = part.split_once(" -->\n").expect("a marker ends");
        let (_, after) = rest.split_once("<!-- end -->").expect("a table ends");
        let (arguments, choice) = marker.split_once(';').unwrap_or((marker, ""));
        let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
        let output = command
            .args(arguments.split_whitespace())
            .env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .output()
            .unwrap();
        let table = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && table.lines().count() > 2, "{marker}: {table}");
        written.push_str(&format!(
            "<!-- mantile-opt {marker} -->\n{}<!-- end -->{after}",
            chosen(&table, choice)
        ));
    }
    written
}

/// Whether files are written anew, as for console sessions.
fn overwrite() -> bool {
    std::env::var("TRYCMD").is_ok_and(|wish| wish == "overwrite")
}

/// What borrows its constants is as unsure as anything that was ever left out of a fit.
#[test]
fn what_is_borrowed_has_the_widest_interval_of_all_profiles() {
    let catalog = Catalog::default();
    let stated = catalog.defaults().unwrap().unmeasured;
    let fits = catalog.entries(CatalogKind::Runtimes).into_keys();
    let fits = fits.filter_map(|name| catalog.load::<Runtime>(&name).unwrap().serving_fit);
    let all: Vec<Interval> = fits.flat_map(|fit| fit.intervals).collect();
    let ends = |of: fn(&Interval) -> [f64; 3]| {
        let low = all.iter().map(|one| of(one)[0]).fold(f64::INFINITY, f64::min);
        let high = all.iter().map(|one| of(one)[2]).fold(0.0, f64::max);
        [low, of(&stated)[1], high]
    };
    let widest = [
        ("ttft", stated.ttft, ends(|one| one.ttft)),
        ("tpot", stated.tpot, ends(|one| one.tpot)),
        ("throughput", stated.throughput, ends(|one| one.throughput)),
    ];
    let mut text = fs::read_to_string("hardware/defaults.json").unwrap();
    for (name, stands, comes) in widest {
        if overwrite() {
            let line = |ends: [f64; 3]| format!("\"{name}\": [{}, {}, {}]", ends[0], ends[1], ends[2]);
            text = text.replace(&line(stands), &line(comes));
        } else {
            assert_eq!(stands, comes, "{name}: TRYCMD=overwrite cargo test published writes it anew");
        }
    }
    if overwrite() {
        fs::write("hardware/defaults.json", text).unwrap();
    }
}

#[test]
fn documents_have_the_tables_that_the_commands_write() {
    let mut tables = 0;
    for path in documents() {
        let document = fs::read_to_string(&path).unwrap();
        let written = refilled(&document);
        tables += written.matches("<!-- end -->").count();
        if overwrite() {
            fs::write(&path, &written).unwrap();
            continue;
        }
        let path = path.display();
        for (present, expected) in document.lines().zip(written.lines()) {
            let fix = "TRYCMD=overwrite cargo test published writes the table anew";
            assert_eq!(present, expected, "{path}: {fix}");
        }
        assert_eq!(document.len(), written.len(), "{path}");
    }
    assert!(tables >= 5, "{tables} tables: a marker was lost");
}

/// The README shows errors of predictions whose rows were left out of the fit, none of fitted rows.
#[test]
fn the_readme_has_no_error_of_fitted_rows() {
    let readme = fs::read_to_string("README.md").unwrap();
    let document = fs::read_to_string("docs/accuracy.md").unwrap();
    let fitted = "the fitted rows |";
    assert!(document.contains(fitted) && !readme.contains(fitted));
    assert!(!readme.contains("<!-- mantile-opt validate tests/"), "shipped constants saw these rows");
}
