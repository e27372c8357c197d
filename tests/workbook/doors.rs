//! The workbook at the command line: a file, never a terminal, and only where there is one.

use std::path::Path;
use std::process::{Command, Output};

use super::{Book, same};

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    command.args(args).env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR")).env("NO_COLOR", "1");
    command.output().unwrap()
}

const ESTIMATE: [&str; 7] =
    ["estimate", "--model", "Llama-3.1-8B", "--hardware", "1xh100", "--plan", "1 x tp1 @64"];

fn estimate(more: &[&str]) -> Output {
    run(&[&ESTIMATE[..], more].concat())
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn flag_and_ending_give_the_same_workbook() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("answer.XLSX");
    let written = estimate(&["--out", path.to_str().unwrap()]);
    assert!(written.status.success() && written.stdout.is_empty(), "{written:?}");
    let piped = estimate(&["--format", "xlsx"]);
    assert!(piped.status.success());
    assert_eq!(std::fs::read(&path).unwrap(), piped.stdout);
    let json: serde_json::Value = serde_json::from_slice(&estimate(&["--json"]).stdout).unwrap();
    let book = Book::read(&piped.stdout);
    for (name, key) in [("ttft_ms", "ttft_ms"), ("tpot_ms", "tpot_ms"), ("usd_per_mtok", "usd_per_mtok")] {
        let (shown, reported) = (book.named(name).unwrap(), json["metrics"][key].as_f64().unwrap());
        assert!(same(shown, reported), "{name}: {shown}, reported {reported}");
    }
}

#[test]
fn optimize_writes_the_workbook_of_its_best_deployment() {
    let question = ["--model", "Llama-3.1-8B", "--hardware", "1xh100"];
    let output = run(&[&question[..], &["--format", "xlsx"]].concat());
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value =
        serde_json::from_slice(&run(&[&question[..], &["--json"]].concat()).stdout).unwrap();
    let shown = Book::read(&output.stdout).named("output_tok_s").unwrap();
    assert!(same(shown, json["best"]["metrics"]["output_tok_s"].as_f64().unwrap()), "{shown}");
    let none = run(&[&question[..], &["--ttft", "1us", "--format", "xlsx"]].concat());
    assert!(none.status.code() == Some(3) && none.stdout.is_empty(), "{none:?}");
}

#[test]
fn what_is_no_workbook_is_refused() {
    let fault = refused(&estimate(&["--json", "--out", "answer.xlsx"]));
    assert!(fault.contains("answer.xlsx") && !Path::new("answer.xlsx").exists(), "{fault}");
    let fault = refused(&run(&["inspect", "Llama-3.1-8B", "--format", "xlsx"]));
    assert!(fault.contains("table, json, yaml, csv"), "{fault}");
    let fault = refused(&run(&["inspect", "Llama-3.1-8B", "--out", "model.xlsx"]));
    assert!(fault.contains("a format of `inspect`") && !Path::new("model.xlsx").exists(), "{fault}");
}
