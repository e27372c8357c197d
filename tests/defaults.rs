//! The user's defaults, and other inputs of the command line from outside its flags.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The command with `home` as the user's folder, and no variable of a developer.
fn mantile(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    let own = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MANTILE_"));
    for (name, _) in own {
        command.env_remove(name);
    }
    command.args(args).env("MANTILE_HOME", home).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn error(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
    serde_json::from_slice::<Value>(&output.stderr).unwrap()["error"].take()
}

/// Value and source of each default.
fn config(command: &mut Command) -> Vec<(String, Value, String)> {
    let output = command.output().unwrap();
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let rows = report["defaults"].as_array().unwrap().iter();
    let of = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.map(|row| (of(row, "key"), row["value"].clone(), of(row, "source"))).collect()
}

#[test]
fn a_flag_precedes_a_scenario_a_variable_and_the_file() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("defaults.toml");
    fs::write(&file, "model = \"Llama-3.1-8B\"\nhardware = \"1xl40s\"\nisl = 11\nosl = 12\nttft = \"9 s\"\n")
        .unwrap();
    let scenario = home.path().join("scenario.json");
    fs::write(&scenario, r#"{"isl": 21, "ttft": "8 s"}"#).unwrap();
    let args = ["--isl", "31", "--scenario", scenario.to_str().unwrap(), "--time-limit", "60", "--json"];
    let output =
        mantile(home.path(), &args).env("MANTILE_OSL", "1k").env("MANTILE_TTFT", "7 s").output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let posed = &answer["scenario"];
    assert_eq!((&posed["isl"], &posed["osl"], &posed["ttft"]), (&31.into(), &1000.into(), &"8 s".into()));
    assert_eq!((&posed["hardware"], &posed["model"]), (&"1xl40s".into(), &"Llama-3.1-8B".into()));
    let note = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    let named = format!("osl from MANTILE_OSL; hardware, model from {}", file.display());
    let ordered = format!("osl from MANTILE_OSL; model, hardware from {}", file.display());
    assert!(note.contains(&named) || note.contains(&ordered), "{note}");
}

#[test]
fn the_command_shows_defaults_and_their_sources() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("defaults.toml");
    fs::write(&file, "hardware = \"1xl40s\"\nhours_per_day = 12\n").unwrap();
    let show = ["config", "--json"];
    let mut command = mantile(home.path(), &show);
    let found = config(command.env("MANTILE_OBJECTIVE", "latency"));
    let source = |key: &str| found.iter().find(|row| row.0 == key).map(|row| (row.1.clone(), row.2.as_str()));
    let path = file.to_str().unwrap();
    assert_eq!(source("hardware"), Some(("1xl40s".into(), path)));
    assert_eq!(source("hours_per_day"), Some((12.0.into(), path)));
    assert_eq!(source("objective"), Some(("latency".into(), "MANTILE_OBJECTIVE")));
    assert_eq!(source("model").map(|row| row.1), Some("program"));
    let without = config(&mut mantile(home.path(), &["config", "--json", "--no-config"]));
    assert!(without.iter().all(|row| row.2.starts_with("program")), "{without:?}");
    let elsewhere = home.path().join("mine.json");
    fs::write(&elsewhere, r#"{"hardware": "2xh100"}"#).unwrap();
    let found = config(mantile(home.path(), &show).env("MANTILE_CONFIG", &elsewhere));
    assert!(
        found.contains(&("hardware".into(), "2xh100".into(), elsewhere.display().to_string())),
        "{found:?}"
    );
}

#[test]
fn a_faulty_default_names_file_or_variable_and_key() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("defaults.toml");
    fs::write(&file, "hardwear = \"1xl40s\"\n").unwrap();
    let run = |args: &[&str]| mantile(home.path(), args).output().unwrap();
    let fault = error(&run(&["--json"]));
    assert_eq!((fault["file"].as_str(), fault["key"].as_str()), (file.to_str(), Some("hardwear")));
    assert!(fault["fix"].as_str().unwrap().contains("hardware"), "{fault}");
    assert_ne!(run(&["config", "--no-config"]).status.code(), Some(2));
    assert!(run(&["catalog", "runtimes"]).status.success(), "a command without a problem reads no defaults");
    // A name that no catalogue has is found only with the problem.
    fs::write(&file, "hardware = \"9xnothing\"\n").unwrap();
    let fault = error(&run(&["--json"]));
    assert_eq!(fault["file"].as_str(), file.to_str(), "{fault}");
    fs::remove_file(&file).unwrap();
    let fault = error(&mantile(home.path(), &["--json"]).env("MANTILE_ISL", "many").output().unwrap());
    assert_eq!((fault["file"].as_str(), fault["found"].as_str()), (Some("MANTILE_ISL"), Some("`many`")));
}

#[test]
fn a_faulty_command_line_is_json_where_the_answer_would_be() {
    let home = tempfile::tempdir().unwrap();
    for args in [["--json", "--isl", "many"].as_slice(), &["estimate", "--format", "json", "--isl", "many"]] {
        let fault = error(&mantile(home.path(), args).output().unwrap());
        assert_eq!((fault["key"].as_str(), fault["found"].as_str()), (Some("isl"), Some("`many`")));
        assert!(fault["expected"].as_str().unwrap().contains("whole number"), "{fault}");
    }
}

/// A model of a few layers, with one more key.
fn model(more: &str) -> String {
    format!(
        r#"{{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 128,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96{more}}}"#
    )
}

fn piped(home: &Path, args: &[&str], input: &str) -> Output {
    let mut command = mantile(home, args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_model_comes_from_standard_input() {
    let home = tempfile::tempdir().unwrap();
    let estimate = ["estimate", "--model", "-", "--hardware", "1xl40s", "--tp", "1", "--json"];
    let output = piped(home.path(), &estimate, &model(""));
    let answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    assert_eq!(answer["question"]["model"], "-");
    assert_eq!(error(&piped(home.path(), &estimate, "{"))["file"], "standard input");
}

#[test]
fn an_unknown_key_of_a_model_warns_or_fails() {
    let home = tempfile::tempdir().unwrap();
    let estimate = ["estimate", "--model", "-", "--hardware", "1xl40s", "--tp", "1", "--json"];
    let harmless = model(r#", "video_pad_id": 7"#);
    let output = piped(home.path(), &estimate, &harmless);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let warning = answer["question"]["warnings"][0].as_str().unwrap();
    assert!(warning.contains("video_pad_id") && text(&output.stderr).contains(warning), "{warning}");
    let strict = [&estimate[..], &["--strict"]].concat();
    assert_eq!(error(&piped(home.path(), &strict, &harmless))["key"], "video_pad_id");
    assert_eq!(error(&piped(home.path(), &estimate, &model(r#", "hyper_width": 7"#)))["key"], "hyper_width");
    let plain: Value = serde_json::from_slice(&piped(home.path(), &strict, &model("")).stdout).unwrap();
    assert!(plain["question"].get("warnings").is_none());
}
