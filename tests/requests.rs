//! Every question has one door: the command line and the table of requests answer alike, byte for byte.

use std::process::Command as Process;

use clap::Parser;
use mantile::cli::Cli;
use mantile::report::comparison::ComparisonReport;
use mantile::report::diagnose::Diagnosis;
use mantile::report::fleet::FleetResult;
use mantile::report::nearest::NearestReport;
use mantile::report::place::PlacementResult;
use mantile::report::pretty::pretty as json;
use mantile::report::recommend::report::RecommendReport;
use mantile::report::result::{EstimateResult, OptimizeResult};
use mantile::report::simulate::SimulateReport;
use mantile::report::start::StartReport;
use mantile::report::sweep::SweepReport;
use mantile::request::explain::ExplainReport;
use mantile::request::{REQUESTS, UNCONTROLLED, entry, value};
use mantile::store::catalog::Catalog;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json as object};

/// A command line of every question.
pub const LINES: [&[&str]; 27] = [
    &["optimize", "--model", "Llama-3.1-8B", "--hardware", "2xl40s", "--why"],
    &["optimize", "--model", "Llama-3.3-70B", "--hardware", "1xh100", "--ttft", "1ms"],
    &["estimate", "--model", "Llama-3.1-8B", "--hardware", "2xh100", "--tp", "2", "--concurrency", "8"],
    &["estimate", "--hardware", "2xl40s", "--plan", "2 x tp1 @3", "--model", "gpt-oss-20b"],
    &["check", "--hardware", "2xl40s", "vllm serve Qwen/Qwen3-32B -tp 2 --max-model-len 65536"],
    &["place", "--model", "Llama-3.1-8B", "--hardware", "rtx-4090-3090"],
    &["explain", "--model", "Llama-3.1-8B", "--hardware", "1xh100", "--number", "ttft", "--depth", "4"],
    &[
        "sweep",
        "--model",
        "Llama-3.1-8B",
        "--hardware",
        "4xh100",
        "--vary",
        "tp=1,2,3",
        "--vary",
        "isl=1k..4k*2",
    ],
    &[
        "sweep",
        "--model",
        "Llama-3.1-8B",
        "--hardware",
        "1xh100",
        "--tp",
        "1",
        "--vary",
        "rate=2,4",
        "--simulate",
        "--requests",
        "120",
    ],
    &["compare", "--model", "Llama-3.1-8B", "--tp", "1", "--hardware", "1xl40s,2xh100"],
    &["recommend", "--model", "gpt-oss-20b", "--only", "nvidia-l40s", "--users", "3"],
    &["recommend", "--hardware", "rtx-4090-x2", "--target-tok-s", "30"],
    &["fleet", "--model", "Llama-3.1-8B", "--offers", "1xl40s,h100-sxm-x1"],
    &["deploy", "--model", "Qwen3-0.6B", "--hardware", "1xh100"],
    &["formulas", "roofline"],
    &["static", "--model", "Qwen3-0.6B", "--hardware", "2xh100", "--tp", "2", "--ffn-tp", "1"],
    &["audit", "--model", "Qwen3-0.6B", "--hardware", "1xh100", "--set", "device.memory.bandwidth=1 TB/s"],
    &["diagnose", "--model", "Qwen3-0.6B", "--hardware", "1xh100", "--measured-tpot-ms", "9"],
    &["nearest", "--model", "Llama-3.1-8B", "--hardware", "1xh100", "--most", "3"],
    &["inspect", "Qwen3-0.6B"],
    &["inspect", "--diff", "Llama-3.1-8B", "Qwen3-8B"],
    &["validate", "--left-out", "vllm"],
    &["catalog", "runtimes"],
    &["catalog", "devices", "l40s"],
    &["glossary"],
    &[
        "simulate",
        "--hardware",
        "2xl40s",
        "--plan",
        "2 x tp1 @8",
        "--model",
        "gpt-oss-20b",
        "--runtime",
        "sglang",
    ],
    &[
        "simulate",
        "--model",
        "Llama-3.1-8B",
        "--hardware",
        "1xh100",
        "--tp",
        "1",
        "--runtime",
        "vllm",
        "--rate",
        "6",
        "--requests",
        "300",
    ],
];

/// The request of a command line, as JSON.
pub fn request(line: &[&str]) -> Value {
    let mut cli = Cli::try_parse_from(["mantile-opt"].iter().chain(line)).unwrap();
    cli.request(&Catalog::default()).unwrap().1
}

fn alike(line: &[&str]) {
    alike_of(line);
}

/// The answer, which is the same both ways.
fn alike_of(line: &[&str]) -> String {
    let by_table = (entry(line[0]).unwrap().answer)(&Catalog::default(), &request(line), &UNCONTROLLED);
    let by_table = json(&by_table.unwrap_or_else(|fault| panic!("{line:?}: {fault}")));
    let by_command = Process::new(env!("CARGO_BIN_EXE_mantile-opt"))
        .args(line)
        .args(["--format", "json"])
        .arg("--no-config")
        .env_remove("MANTILE_HOME")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&by_command.stdout), by_table, "{line:?}");
    by_table
}

#[test]
fn the_command_line_answers_as_the_table_does() {
    LINES.iter().for_each(|line| alike(line));
}

/// Reads a report into its type and writes it again.
fn again<T: DeserializeOwned + Serialize>(report: &str) -> String {
    json(&value(&serde_json::from_str::<T>(report).unwrap()))
}

#[test]
fn a_report_reads_back_into_its_type_byte_for_byte() {
    // Beyond the lines above: each part that a report may have or leave out.
    let more: [&[&str]; 8] = [
        &[
            "optimize",
            "--model",
            "Mixtral-8x7B",
            "--hardware",
            "2xh100",
            "--rate",
            "2",
            "--percentile",
            "p90",
        ],
        &["optimize", "--model", "Llama-3.3-70B", "--hardware", "1xl40s", "--offload", "never"],
        &["estimate", "--model", "Llama-3.1-8B", "--hardware", "4xh100", "--tp", "3", "--concurrency", "8"],
        &["place", "--model", "Llama-3.3-70B", "--hardware", "rtx-4090-3090"],
        &["place", "--model", "Llama-3.1-8B", "--hardware", "rtx-4090-3090", "--objective", "request"],
        &["recommend", "--model", "Llama-3.3-70B", "--only", "nvidia-l40s", "--target-tok-s", "5000"],
        &["fleet", "--model", "Llama-3.1-8B", "--offers", "1xl40s", "--max-devices", "1"],
        &["explain", "--model", "Llama-3.3-70B", "--hardware", "1xh100", "--ttft", "1ms", "--number", "ttft"],
    ];
    for line in LINES.iter().chain(&more) {
        let report = (entry(line[0]).unwrap().answer)(&Catalog::default(), &request(line), &UNCONTROLLED);
        let mut report = report.unwrap_or_else(|fault| panic!("{line:?}: {fault}"));
        if let Some(fields) = report.as_object_mut() {
            let named = fields.shift_remove("answer");
            // An entry of the catalogue is its file, which a catalogue reads.
            assert!(named == Some(line[0].into()) || line[0] == "catalog", "{line:?} is named {named:?}");
        }
        let report = json(&report);
        let again = match line[0] {
            "optimize" => again::<OptimizeResult>(&report),
            "estimate" => again::<EstimateResult>(&report),
            "place" => again::<PlacementResult>(&report),
            "fleet" => again::<FleetResult>(&report),
            "sweep" => again::<SweepReport>(&report),
            "compare" => again::<ComparisonReport>(&report),
            "recommend" => again::<RecommendReport>(&report),
            "explain" => again::<ExplainReport>(&report),
            "diagnose" => again::<Diagnosis>(&report),
            "nearest" => again::<NearestReport>(&report),
            "simulate" => again::<SimulateReport>(&report),
            "check" => again::<StartReport>(&report),
            _ => continue,
        };
        assert_eq!(again, report, "{line:?}");
    }
}

#[test]
fn every_question_is_requested_both_ways_or_elsewhere() {
    // These need files or a machine, or print one of many schemas.
    const ELSEWHERE: [&str; 6] = ["verify", "diff", "calibrate", "detect", "permalink", "schema"];
    for entry in REQUESTS {
        let listed = LINES.iter().any(|line| line[0] == entry.name);
        assert_ne!(listed, ELSEWHERE.contains(&entry.name), "{}", entry.name);
    }
}

#[test]
fn files_and_schemas_answer_alike_too() {
    let folder = tempfile::tempdir().unwrap();
    let answer = folder.path().join("answer.json");
    let saved = alike_of(&["optimize", "--model", "Llama-3.1-8B", "--hardware", "1xl40s"]);
    std::fs::write(&answer, saved).unwrap();
    alike(&["verify", answer.to_str().unwrap(), "--sample", "20"]);
    alike(&["diff", answer.to_str().unwrap(), answer.to_str().unwrap()]);
    for name in mantile::request::reference::schema_names() {
        let schema = (entry("schema").unwrap().answer)(
            &Catalog::default(),
            &serde_json::json!({"name": name}),
            &UNCONTROLLED,
        );
        assert!(schema.unwrap().is_object(), "{name}");
    }
}

#[test]
fn every_request_fits_its_schema_and_a_faulty_one_names_its_key() {
    for line in LINES {
        let entry = entry(line[0]).unwrap();
        let schema = value(&(entry.request)());
        let faults: Vec<String> = jsonschema::validator_for(&schema)
            .unwrap()
            .iter_errors(&request(line))
            .map(|fault| fault.to_string())
            .collect();
        assert!(faults.is_empty(), "{line:?}: {faults:?}");
        let wrong = serde_json::json!({"scenarioo": {}});
        let fault = (entry.answer)(&Catalog::default(), &wrong, &UNCONTROLLED).unwrap_err();
        assert!(fault.to_string().contains("scenarioo"), "{}: {fault}", entry.name);
    }
    let fault = entry("optimise").err().unwrap().to_string();
    assert!(fault.contains("optimize, estimate"), "{fault}");
}

#[test]
fn the_requests_of_the_lines_are_kept_for_other_doors() {
    let rows = LINES.iter().map(|line| object!({"name": line[0], "line": line, "request": request(line)}));
    let rows: Vec<Value> = rows.collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doors/requests.json");
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(path, json(&rows)).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept == json(&rows), "run the test with INSTA_UPDATE=always and look at the difference");
}
