//! `validate` and `calibrate` as their users meet them, on tables made from our own predictions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mantile::request::calibrate::beyond_kernels::beyond_kernels;
use mantile::request::validate::predict::{ProfileFit, ready};
use mantile::request::validate::table::rows;
use mantile::store::catalog::Catalog;
use mantile::store::kind::measured_tables;
use mantile::validate::measured::MeasuredRow;
use serde_json::{Value, json};

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    command.args(args).env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR")).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

const HEADER: &str =
    "id,model,hardware,devices,runtime,weight_format,mode,isl,osl,concurrency,tp,ttft_ms,tpot_ms";

/// A table of servers under loads that all kinds of work show in; latencies as given.
fn table(folder: &Path, latencies: impl Fn(usize) -> (f64, f64)) -> PathBuf {
    let mut text = format!("{HEADER}\n");
    let mut number = 0;
    for (model, format) in [("meta-llama/Llama-3.1-8B", "bf16"), ("meta-llama/Llama-3.3-70B-Instruct", "fp8")]
    {
        for hardware in ["nvidia-h100-sxm", "nvidia-b200-sxm"] {
            for (isl, osl) in [(1024, 1024), (8192, 1024), (1024, 8192)] {
                for concurrency in [1, 4, 16, 64, 128, 256] {
                    for tp in [2, 4] {
                        let (ttft, tpot) = latencies(number);
                        text.push_str(&format!(
                            "r{number},{model},{hardware},{tp},vllm,{format},agg,{isl},{osl},{concurrency},{tp},{ttft},{tpot}\n"
                        ));
                        number += 1;
                    }
                }
            }
        }
    }
    let path = folder.join(format!("{number}.csv"));
    fs::write(&path, text).unwrap();
    path
}

/// What we predict for the table's rows.
fn predicted(folder: &Path) -> Vec<(f64, f64)> {
    let path = table(folder, |_| (1.0, 1.0));
    let rows = folder.join("rows.csv");
    let found = json(&run(&[
        "validate",
        path.to_str().unwrap(),
        "--format",
        "json",
        "--rows",
        rows.to_str().unwrap(),
    ]));
    assert_eq!(found["overall"]["unsupported"], 0);
    let mut reader = csv::Reader::from_path(rows).unwrap();
    let header = reader.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let (ttft, tpot) = (at("ttft_ms_predicted"), at("tpot_ms_predicted"));
    let number = |text: &str| text.parse::<f64>().unwrap();
    reader.records().map(Result::unwrap).map(|row| (number(&row[ttft]), number(&row[tpot]))).collect()
}

#[test]
fn predictions_held_against_themselves_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let own = predicted(folder.path());
    let path = table(folder.path(), |row| own[row]);
    let found =
        json(&run(&["validate", path.to_str().unwrap(), "--format", "json", "--by", "hardware,model"]));
    let overall = &found["overall"];
    for metric in ["tpot", "ttft"] {
        assert!(overall[metric]["p90"].as_f64().unwrap() < 1e-3, "{}", overall[metric]);
        assert_eq!(overall[metric]["coverage_80"], 1.0);
    }
    assert_eq!(found["groups"].as_array().unwrap().len(), 4);
    let decision = &overall["decision"];
    assert_eq!((decision["slo_met"].as_f64(), decision["regret"].as_f64()), (Some(1.0), Some(0.0)));
    assert_eq!(found["unscored"], serde_json::json!([]));
}

#[test]
fn a_version_that_was_measured_differs_and_any_other_is_their_mean() {
    let tpot = |version: &[&str]| {
        let requested =
            ["estimate", "--model", "Qwen3-32B", "--hardware", "4xh100", "--tp", "4", "--runtime", "vllm"];
        let rest = ["--concurrency", "64", "--format", "json"];
        let found = json(&run(&[&requested[..], &rest, version].concat()));
        let shown = found["question"]["runtime_version"].clone();
        assert_eq!(shown, version.last().map_or(Value::Null, |version| Value::from(*version)));
        found["metrics"]["tpot_ms"].as_f64().unwrap()
    };
    let mean = tpot(&[]);
    assert_eq!(tpot(&["--runtime-version", "0.0.never"]), mean);
    let measured = tpot(&["--runtime-version", "0.12.0"]);
    assert!((measured / mean - 1.0).abs() > 0.01 && (measured / mean - 1.0).abs() < 0.3, "{measured} {mean}");
}

#[test]
fn what_differs_evenly_is_found_and_carries_over() {
    let folder = tempfile::tempdir().unwrap();
    let own = predicted(folder.path());
    let slower = table(folder.path(), |row| (own[row].0 * 1.3, own[row].1 * 1.3));
    let profile = folder.path().join("vllm.json");
    let rows = folder.path().join("left_out.csv");
    let found = json(&run(&[
        "calibrate",
        slower.to_str().unwrap(),
        "--runtime",
        "vllm",
        "--format",
        "json",
        "--out",
        profile.to_str().unwrap(),
        "--rows",
        rows.to_str().unwrap(),
    ]));
    let mdape = |at: usize| found["errors"][at]["tpot"][0].as_f64().unwrap();
    assert!((mdape(0) - 0.3 / 1.3).abs() < 1e-3, "before: {found}");
    assert!(mdape(1) < 0.05, "after: {found}");
    assert!(mdape(2) < 0.12 && mdape(3) < 0.12, "left out: {found}");
    // Rows tell the same errors, fitted and left out.
    let mut reader = csv::Reader::from_path(rows).unwrap();
    let header = reader.headers().unwrap().clone();
    let shown: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(shown.len(), own.len());
    for (at, column) in [(1, "tpot_s_fitted"), (2, "tpot_s_without_fifth"), (3, "tpot_s_without_model")] {
        let place = |name: &str| header.iter().position(|known| known == name).unwrap();
        let number = |row: &csv::StringRecord, name| row[place(name)].parse::<f64>().unwrap();
        let mut off: Vec<f64> =
            shown.iter().map(|row| (number(row, column) / number(row, "tpot_s") - 1.0).abs()).collect();
        off.sort_by(f64::total_cmp);
        let middle = (off[off.len() / 2 - 1] + off[off.len() / 2]) / 2.0;
        assert!((middle - mdape(at)).abs() < 2e-3, "{column}: {middle} {}", mdape(at));
    }
    // The profile is one that can be used.
    let home = folder.path().join("home");
    fs::create_dir_all(home.join("hardware/runtimes")).unwrap();
    fs::copy(&profile, home.join("hardware/runtimes/vllm.json")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    command.args(["validate", slower.to_str().unwrap(), "--format", "json"]).env("MANTILE_HOME", &home);
    let again = json(&command.output().unwrap());
    assert!((again["overall"]["tpot"]["mdape"].as_f64().unwrap() - mdape(1)).abs() < 5e-3);
}

/// The answer of `calibrate` for a table in a folder, with what else is on its line.
fn calibrated(path: &Path, more: &[&str]) -> (Option<i32>, Value) {
    let line = [&["calibrate", path.to_str().unwrap(), "--format", "json"], more].concat();
    let output = run(&line);
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text);
    (output.status.code(), value.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))))
}

/// The columns of `validate --rows`, in a home of one's own or not.
fn all_validated(path: &Path, home: Option<&Path>, columns: &[&str]) -> Vec<Vec<f64>> {
    let rows = path.with_extension("rows.csv");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    command.args(["validate", path.to_str().unwrap(), "--rows", rows.to_str().unwrap()]);
    let home = home.unwrap_or(Path::new(env!("CARGO_TARGET_TMPDIR")));
    assert!(command.env("MANTILE_HOME", home).output().unwrap().status.success());
    let mut reader = csv::Reader::from_path(rows).unwrap();
    let header = reader.headers().unwrap().clone();
    let at = |name: &&str| header.iter().position(|column| column == *name).unwrap();
    let of = |row: csv::StringRecord| columns.iter().map(|name| row[at(name)].parse().unwrap()).collect();
    reader.records().map(|row| of(row.unwrap())).collect()
}

/// The same of the first row.
fn validated(path: &Path, home: Option<&Path>, columns: &[&str]) -> Vec<f64> {
    all_validated(path, home, columns).swap_remove(0)
}

const TIMES: [&str; 2] = ["ttft_ms_predicted", "tpot_ms_predicted"];

/// A row, and the same row planted 1.3 times as slow as predicted.
fn planted(folder: &Path, factor: f64) -> (PathBuf, Vec<f64>) {
    let path = folder.join("planted.csv");
    let row = |ttft: f64, tpot: f64| {
        format!("r,meta-llama/Llama-3.1-8B,nvidia-h100-sxm,1,vllm,bf16,agg,1024,1024,8,1,{ttft},{tpot}")
    };
    fs::write(&path, format!("{HEADER}\n{}\n", row(50.0, 8.0))).unwrap();
    let made = validated(&path, None, &TIMES);
    fs::write(&path, format!("{HEADER}\n{}\n", row(factor * made[0], factor * made[1]))).unwrap();
    (path, made)
}

#[test]
fn one_row_gives_a_shrunk_factor_that_applies() {
    let folder = tempfile::tempdir().unwrap();
    let (path, made) = planted(folder.path(), 1.3);
    let home = folder.path().join("home");
    let runtimes = home.join("hardware/runtimes");
    fs::create_dir_all(&runtimes).unwrap();
    let profile = runtimes.join("vllm.json");
    let (code, found) = calibrated(&path, &["--out", profile.to_str().unwrap(), "--gates"]);
    // A row alone is predicted without a factor, which is 30 % too fast; that is no gate that is met.
    assert_eq!(code, Some(2), "{found}");
    let gates = found["gates"].as_array().unwrap();
    assert_eq!(gates.len(), 2);
    for gate in gates {
        assert!((gate["median_error"].as_f64().unwrap() - 0.3 / 1.3).abs() < 1e-4, "{gate}");
        assert_eq!(gate["met"], false);
    }
    let time = &found["factors"][0]["correction"]["time"];
    let number = |key: &str| time[key].as_f64().unwrap();
    let expected = 1.3_f64.powf(1.0 / 1.5);
    assert!((number("times") / expected - 1.0).abs() < 1e-5, "{time} {expected}");
    assert!(number("low") < expected && expected < number("high"));
    assert_eq!((found["rows"].as_u64(), time["rows"].as_u64()), (Some(1), Some(1)));
    let after = validated(&path, Some(&home), &TIMES);
    for (before, after) in made.iter().zip(&after) {
        // No kernel exceeds its roofline, and the time of the bus is no constant.
        assert!((after / before / expected - 1.0).abs() < 0.02, "{before} {after}");
    }
    let width = |home| {
        let ends = validated(&path, home, &["tpot_ms_p10", "tpot_ms_p90"]);
        ends[1] / ends[0]
    };
    assert!(width(Some(home.as_path())) < width(None));
    let mut explain = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    let question =
        "explain --model Llama-3.1-8B --hardware 1xh100 --tp 1 --concurrency 8 --runtime vllm --number tpot";
    let shown = explain
        .args(question.split(' '))
        .args(["--format", "csv"])
        .env("MANTILE_HOME", &home)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("factor(own measurements)") && shown.contains("1 measured row"), "{shown}");
    // The factor is that of the shipped predictions, in a home that has it already too.
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    command.args(["calibrate", path.to_str().unwrap(), "--format", "json"]).env("MANTILE_HOME", &home);
    assert_eq!(json(&command.output().unwrap())["factors"], found["factors"]);
}

/// Law: rows of single requests that were made with one factor on computation and one on other times give both back, on a
/// GPU and on a processor.
#[test]
fn prompts_and_steps_of_single_requests_have_factors_of_their_own() {
    parts_come_back("nvidia-h100-sxm,1,vllm,bf16");
    parts_come_back("amd-epyc-9355,1,llama.cpp,gguf-q4_k_m");
}

fn parts_come_back(server: &str) {
    const PLANTED: [(&str, f64); 2] = [("compute", 1.5), ("time", 1.2)];
    let folder = tempfile::tempdir().unwrap();
    let (home, path) = (folder.path().join("home"), folder.path().join("rows.csv"));
    let profile = home.join(format!("hardware/runtimes/{}.json", server.split(',').nth(2).unwrap()));
    fs::create_dir_all(profile.parent().unwrap()).unwrap();
    let table = |latencies: &dyn Fn(usize) -> [f64; 2]| {
        let row = |(at, isl): (usize, u64)| {
            let [ttft, tpot] = latencies(at);
            format!("r{at},meta-llama/Llama-3.1-8B,{server},agg,{isl},256,1,1,{ttft},{tpot}\n")
        };
        let rows: String = (1..=10).map(|number| number * 1500).enumerate().map(row).collect();
        fs::write(&path, format!("{HEADER}\n{rows}")).unwrap();
    };
    table(&|_| [5000.0, 50.0]);
    calibrated(&path, &["--out", profile.to_str().unwrap()]);
    let mut changed: Value = serde_json::from_str(&fs::read_to_string(&profile).unwrap()).unwrap();
    for (name, times) in PLANTED {
        let factor = json!({"times": times, "low": times * 0.9, "high": times * 1.1, "rows": 10});
        changed["corrections"][0][name] = factor;
    }
    fs::write(&profile, changed.to_string()).unwrap();
    let [made, slower] = [None, Some(home.as_path())].map(|home| all_validated(&path, home, &TIMES));
    table(&|at| [slower[at][0], slower[at][1]]);
    let (_, found) = calibrated(&path, &["--out", profile.to_str().unwrap()]);
    for (name, times) in PLANTED {
        let one = &found["factors"][0]["correction"][name];
        // Ten rows weigh 10 / 10.5.
        let expected = f64::powf(times, 10.0 / 10.5);
        assert!((one["times"].as_f64().unwrap() / expected - 1.0).abs() < 0.01, "{name}: {found}");
        assert_eq!(one["rows"], 10);
    }
    let after = all_validated(&path, Some(&home), &TIMES);
    for ((before, measured), after) in made.iter().zip(&slower).zip(&after) {
        for at in 0..2 {
            assert!((after[at] / measured[at] - 1.0).abs() < 0.05, "{before:?} {measured:?} {after:?}");
            assert!((after[at] - measured[at]).abs() < (before[at] - measured[at]).abs());
        }
    }
}

#[test]
fn memory_has_a_factor_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let estimated = json(&run(&[
        "estimate",
        "--model",
        "Llama-3.1-8B",
        "--hardware",
        "1xh100",
        "--tp",
        "1",
        "--runtime",
        "vllm",
        "--concurrency",
        "1",
        "--weight-format",
        "bf16",
        "--gpu-memory-utilization",
        "0.9",
        "--format",
        "json",
    ]));
    let held = |key: &str| estimated["memory"][key].as_f64().unwrap();
    let rest = held("weights_bytes") + held("activations_bytes") + held("buffers_bytes");
    let free = held("usable_bytes") - rest;
    let gib = f64::from(1 << 30);
    let header = "id,model,hardware,devices,runtime,precision,mode,tp,mem_util,weights_gib_per_device,kv_gib_per_device,kv_tokens";
    let row = "r,meta-llama/Llama-3.1-8B,nvidia-h100-sxm,1,vllm,bf16,start-up,1,0.9";
    let more = 0.1 * rest;
    let path = folder.path().join("start.csv");
    fs::write(&path, format!("{header}\n{row},,,1000\n")).unwrap();
    let tokens = validated(&path, None, &["tokens_of_the_kv_cache_predicted"])[0];
    let cells = [
        (format!("{},,", (held("weights_bytes") + more) / gib), "by the weights"),
        (format!(",{},", (free - more) / gib), "by what is left"),
        (format!(",,{}", tokens * (1.0 - more / free)), "by its tokens"),
    ];
    for (cells, by) in cells {
        fs::write(&path, format!("{header}\n{row},{cells}\n")).unwrap();
        let (_, found) = calibrated(&path, &[]);
        let one = &found["factors"][0]["correction"];
        let times = one["memory"]["times"].as_f64().unwrap();
        assert!((times / 1.1_f64.powf(1.0 / 1.5) - 1.0).abs() < 1e-6, "{by}: {found}");
        assert!(one["memory"]["low"].as_f64() < one["memory"]["high"].as_f64());
        assert_eq!(one["time"], Value::Null);
    }
}

#[test]
fn gates_that_are_met_exit_with_success() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = planted(folder.path(), 1.04);
    let (code, found) = calibrated(&path, &["--gates"]);
    assert_eq!(code, Some(0), "{found}");
    assert!(found["gates"].as_array().unwrap().iter().all(|gate| gate["met"] == true));
    let output = run(&["calibrate", path.to_str().unwrap(), "--gates", "--format", "csv"]);
    let rows = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        rows.starts_with("gate,model,hardware,rows,")
            && rows.contains("decode,up to 10 B,datacenter,1,10.0,")
    );
}

#[test]
fn too_little_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.csv");
    let row = "r,meta-llama/Llama-3.1-8B,nvidia-h100-sxm,1,vllm,bf16,agg,1024,1024,8,1,50,8";
    fs::write(&path, format!("{HEADER}\n{row}\n")).unwrap();
    let output = run(&["calibrate", path.to_str().unwrap(), "--runtime", "vllm", "--whole"]);
    let shown = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(shown.contains("found:    1 rows") && shown.contains("fix:"), "{shown}");
    fs::write(&path, format!("{HEADER}\n{}\n", row.replace(",50,8", ",soon,8"))).unwrap();
    let output = run(&["validate", path.to_str().unwrap()]);
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(shown.contains("row 2: ttft_ms") && shown.contains("soon"), "{shown}");
}

#[test]
fn prompts_and_answers_timed_separately_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.csv");
    let mut text =
        String::from("id,model,hardware,runtime,weight_format,mode,isl,osl,concurrency,metric,value,notes\n");
    for (mode, requests) in [("single-stream", 1), ("llama-batched-bench", 4), ("server", 4)] {
        for metric in ["prefill_tok_s", "decode_tok_s_per_user"] {
            let row =
                format!("{mode}-{metric},meta-llama/Llama-3.1-8B,nvidia-rtx-4090,llama.cpp,q8_0,{mode}");
            text.push_str(&format!("{row},2048,64,{requests},{metric},100,\n"));
        }
    }
    fs::write(&path, text).unwrap();
    let rows = folder.path().join("rows.csv");
    json(&run(&["validate", path.to_str().unwrap(), "--format", "json", "--rows", rows.to_str().unwrap()]));
    let mut reader = csv::Reader::from_path(rows).unwrap();
    let header = reader.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let (ttft, tpot) = (at("ttft_ms_predicted"), at("tpot_ms_predicted"));
    let found: Vec<[f64; 2]> = reader
        .records()
        .map(Result::unwrap)
        .map(|row| [ttft, tpot].map(|column| row[column].parse().unwrap()))
        .collect();
    let [alone, _, batch, _, served, _] = found[..] else { panic!("{found:?}") };
    assert!((batch[0] / alone[0] - 4.0).abs() < 1e-3, "all prompts of a batch: {found:?}");
    // Four sequences share a step's weights; in a server the others' prompts come between besides.
    assert!(alone[1] < batch[1] && batch[1] < 2.0 * alone[1], "{found:?}");
    assert!(served[1] > 1.05 * batch[1], "{found:?}");
}

/// A table of one row each, as `validate` reads it; whatever its other columns.
fn held(folder: &Path, header: &str, rows: &[&str]) -> (Value, String) {
    let (path, out) = (folder.join("table.csv"), folder.join("rows.csv"));
    fs::write(&path, format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    let (path, rows) = (path.to_str().unwrap(), out.to_str().unwrap());
    let picture = folder.join("picture.svg");
    let args = ["validate", path, "--format", "json", "--rows", rows, "--plot", picture.to_str().unwrap()];
    let found = json(&run(&args));
    (found, fs::read_to_string(out).unwrap())
}

#[test]
fn what_a_table_does_not_say_is_not_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let header = format!("{HEADER},speculative,output_tok_s,note");
    let rows = [
        "a,meta-llama/Llama-3.1-8B,nvidia-h100-sxm,1,vllm,bf16,agg,1024,1024,8,1,50,8,none,900,x",
        "b,meta-llama/Llama-3.1-8B,nvidia-h100-sxm,4,vllm,bf16,agg,1024,1024,8,2,50,8,none,900,x",
        "c,meta-llama/Llama-3.1-8B,nvidia-h100-sxm,1,vllm,bf16,agg,1024,1024,8,2,50,8,none,900,x",
        "d,meta-llama/Llama-3.1-8B,nvidia-h100-sxm,4,vllm,bf16,agg,1024,1024,8,,50,8,none,900,x",
        "e,meta-llama/Llama-3.1-8B,nvidia-h100-sxm,1,vllm,bf16,agg,1024,1024,,1,50,8,none,,x",
        "f,meta-llama/Llama-3.1-8B,nvidia-h100-sxm,1,vllm,bf16,agg,1024,1024,8,1,50,8,mtp,,x",
    ];
    let (found, shown) = held(folder.path(), &header, &rows);
    assert_eq!(
        (found["overall"]["n"].as_u64(), found["overall"]["unsupported"].as_u64()),
        (Some(1), Some(5))
    );
    let reasons: Vec<&str> =
        found["unsupported"].as_array().unwrap().iter().map(|one| one["reason"].as_str().unwrap()).collect();
    let of = |start: &str| reasons.iter().filter(|reason| reason.starts_with(start)).count();
    assert_eq!((of("devices:"), of("concurrency:"), of("speculative:")), (3, 1, 1), "{reasons:?}");
    assert_eq!(found["unscored"].as_array().map(Vec::len), Some(0), "{}", found["unscored"]);
    let figures = found["overall"]["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 1, "{figures:?}");
    assert_eq!((figures[0]["figure"].as_str(), figures[0]["score"]["n"].as_u64()), (Some("output"), Some(1)));
    assert_eq!(shown.lines().count(), 7);
}

#[test]
fn no_number_that_leaves_is_endless() {
    let folder = tempfile::tempdir().unwrap();
    let row = |isl: &str, requests: &str, times: &str| {
        format!("r,meta-llama/Llama-3.1-8B,nvidia-h100-sxm,1,vllm,bf16,agg,{isl},{isl},{requests},1,{times}")
    };
    let rows = [
        row("100000000", "10000000", "1e-6,1e-6"),
        row("100000000", "1", "1e12,1e-6"),
        row("0", "0", "0,0"),
        row("1024", "8", "1e-6,1e12"),
    ];
    let (found, shown) = held(folder.path(), HEADER, &rows.each_ref().map(String::as_str));
    for text in [found.to_string(), shown, fs::read_to_string(folder.path().join("picture.svg")).unwrap()] {
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
    let path = folder.path().join("wrong.csv");
    fs::write(&path, format!("{HEADER}\n{}\n", row("1e300", "1", "1,1"))).unwrap();
    assert_eq!(run(&["validate", path.to_str().unwrap()]).status.code(), Some(2));
}

#[test]
fn an_estimate_of_one_request_is_what_validate_says_of_a_single_stream() {
    let folder = tempfile::tempdir().unwrap();
    let header = "id,model,hardware,runtime,weight_format,mode,isl,osl,concurrency,metric,value";
    for (hardware, runtime, format) in
        [("nvidia-rtx-4090", "llama.cpp", "gguf-q8_0"), ("apple-m3-max", "mlx", "mlx-4bit")]
    {
        let row = |metric: &str| {
            format!(
                "r,meta-llama/Llama-3.1-8B,{hardware},{runtime},{format},single-stream,2048,64,1,{metric},100"
            )
        };
        let rows = [row("prefill_tok_s"), row("decode_tok_s_per_user")];
        let (_, shown) = held(folder.path(), header, &rows.each_ref().map(String::as_str));
        let mut reader = csv::Reader::from_reader(shown.as_bytes());
        let header = reader.headers().unwrap().clone();
        let first = reader.records().next().unwrap().unwrap();
        let cell = |name: &str| {
            let at = header.iter().position(|column| column == name).unwrap();
            first[at].parse::<f64>().unwrap()
        };
        let hardware = format!("1x{hardware}");
        let requested =
            ["estimate", "--model", "Llama-3.1-8B", "--hardware", &hardware, "--runtime", runtime];
        let load =
            ["--weight-format", format, "--isl", "2048", "--osl", "64", "--concurrency", "1", "--tp", "1"];
        let found = json(&run(&[&requested[..], &load, &["--format", "json"]].concat()));
        for (ours, theirs) in [("ttft_ms", "ttft_ms_predicted"), ("tpot_ms", "tpot_ms_predicted")] {
            let (ours, theirs) = (found["metrics"][ours].as_f64().unwrap(), cell(theirs));
            assert!((ours / theirs - 1.0).abs() < 1e-4, "{runtime}: {ours} {theirs}");
        }
    }
}

#[test]
fn shipped_memory_intervals_are_what_published_peaks_tell() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let shown = run(&["calibrate", "tests/published/memory.csv", "--out", out]);
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    for name in ["hf-transformers", "llama.cpp", "mlx"] {
        let read = |folder: &Path| -> Value {
            serde_json::from_str(&fs::read_to_string(folder.join(format!("{name}.json"))).unwrap()).unwrap()
        };
        assert_eq!(read(folder.path()), read(Path::new("hardware/runtimes")), "{name}");
    }
    let found = json(&run(&["validate", "tests/published/memory.csv", "--format", "json"]));
    let held = &found["overall"]["memory"];
    assert!(held["n"].as_u64().unwrap() >= 150 && held["mdape"].as_f64().unwrap() < 0.16, "{held}");
    assert!((0.75..=0.95).contains(&held["coverage_80"].as_f64().unwrap()), "{held}");
}

/// Of the project's rows one series is faster than its kernels: Llama 3.1 8B under vLLM on H200, where up to 88 % of the
/// FP8 peak would have gone into matrices of prompts alone. Its own times, tripled, are those of a server.
#[test]
fn a_series_beyond_its_kernels_is_left_out_whole() {
    let catalog = Catalog::default();
    let mut measured: Vec<MeasuredRow> = measured_tables().flat_map(|table| rows(table).unwrap()).collect();
    measured.retain(|row| row.mode == "agg");
    let found = |rows: &[MeasuredRow]| {
        let beyond = beyond_kernels(rows, &ready(&catalog, rows, ProfileFit::KernelsOnly));
        rows.iter().zip(beyond).filter(|(_, beyond)| *beyond).map(|(row, _)| row.clone()).collect::<Vec<_>>()
    };
    let mut beyond = found(&measured);
    assert!(beyond.len() > 2, "{beyond:?}");
    for row in &beyond {
        let [model, hardware, runtime, _] = row.cell();
        assert!(
            model.contains("Llama-3.1-8B") && hardware == "nvidia-h200-sxm" && runtime == "vllm",
            "{row:?}"
        );
    }
    for row in &mut beyond {
        row.outcome.ttft_ms = row.outcome.ttft_ms.map(|ms| 3.0 * ms);
        row.outcome.tpot_ms = row.outcome.tpot_ms.map(|ms| 3.0 * ms);
    }
    assert!(found(&beyond).is_empty());
}
