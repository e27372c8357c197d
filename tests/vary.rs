//! Sweeps: laws of their rows, and of files that are cut into shards, merged and continued.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

use mantile::report::sweep::{ShardNumber, SweepReport, SweepRow, columns, csv_header, csv_line};
use mantile::request::compare::{CompareRequest, ComparedEntry, compare};
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::request::sweep::merge::{RowFormat, ShardLines, merge};
use mantile::request::sweep::{SweepRequest, sweep};
use mantile::request::{UNCONTROLLED, value};
use mantile::spec::error::Error;
use mantile::spec::objective::METRICS;
use mantile::spec::scenario::Scenario;
use mantile::spec::vary::keys;
use mantile::store::catalog::Catalog;
use mantile::store::kind::{CatalogKind, shipped_defaults};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::Value;

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::default);

/// Keys with values, some of which contradict each other, the model or the hardware.
const AXES: [&str; 9] = [
    "tp=1,2,3,4,16",
    "replicas=1,2",
    "concurrency=1,8,100k",
    "isl=100..900*3",
    "osl=1,200",
    "hardware=4xl40s,2xh100",
    "prefix=0,500",
    "ttft=1ms,none",
    "weight_format=bf16,fp8,q8_0",
];

fn request(vary: &[&str]) -> SweepRequest {
    let mut scenario = Scenario::of("Llama-3.1-8B", "4xl40s");
    scenario.deployment = serde_json::from_value(serde_json::json!({"both": {"sp": false}})).unwrap();
    SweepRequest {
        scenario,
        vary: vary.iter().map(|axis| (*axis).to_owned()).collect(),
        shard: None,
        traffic: None,
    }
}

fn ask(request: &SweepRequest) -> Result<SweepReport, Error> {
    sweep(&CATALOG, request, &UNCONTROLLED)
}

/// The rows as a file.
pub fn file(format: RowFormat, report: &SweepReport) -> String {
    let line = |row: &SweepRow| match format {
        RowFormat::Csv => csv_line(row),
        RowFormat::JsonLines => format!("{}\n", serde_json::to_string(row).unwrap()),
    };
    let header = if format == RowFormat::Csv {
        csv_header(&report.vary, report.traffic.is_some())
    } else {
        String::new()
    };
    header + &report.rows.iter().map(line).collect::<String>()
}

pub fn merged(format: RowFormat, files: &[String]) -> Result<String, Error> {
    let mut text = String::new();
    let lines =
        |file: &String| -> Vec<Result<String, Error>> { file.lines().map(|l| Ok(l.to_owned())).collect() };
    let shard = |(at, file)| ShardLines { name: format!("{at}"), lines: Box::new(lines(file).into_iter()) };
    merge(format, files.iter().enumerate().map(shard).collect(), |line| {
        text.push_str(line);
        Ok::<(), Error>(())
    })?;
    Ok(text)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shards_merge_to_the_whole_sweep_byte_for_byte(
        axes in subsequence(AXES.to_vec(), 1..4).prop_shuffle(), of in 1u64..6, first in 0usize..6,
    ) {
        let whole = ask(&request(&axes)).unwrap();
        prop_assert_eq!(whole.rows.len() as u64, whole.points);
        for format in [RowFormat::Csv, RowFormat::JsonLines] {
            let part = |number| {
                let shard = Some(ShardNumber { number, of });
                file(format, &ask(&SweepRequest { shard, ..request(&axes) }).unwrap())
            };
            let mut parts: Vec<String> = (1..=of).map(part).collect();
            parts.rotate_left(first % of as usize);
            prop_assert_eq!(merged(format, &parts).unwrap(), file(format, &whole));
            if of > 1 && whole.points >= of {
                parts.pop();
                prop_assert!(merged(format, &parts).unwrap_err().found.starts_with("point"));
                let again = [parts.clone(), vec![parts[0].clone()]].concat();
                prop_assert!(merged(format, &again).is_err());
            }
        }
    }

    #[test]
    fn the_order_of_keys_changes_only_the_order_of_rows(axes in subsequence(AXES.to_vec(), 2..4)) {
        let plain = |report: SweepReport| {
            let row = |row: SweepRow| {
                let mut row = value(&row);
                let keys = row.as_object_mut().unwrap();
                keys.retain(|key, _| !["sweep", "point"].contains(&key.as_str()));
                // Objects compare whatever the order of their keys.
                row
            };
            let mut rows: Vec<serde_json::Value> = report.rows.into_iter().map(row).collect();
            rows.sort_by_key(|row| {
                let mut values: Vec<String> =
                    row["vary"].as_object().unwrap().iter().map(|(key, value)| format!("{key}={value}")).collect();
                values.sort();
                values
            });
            rows
        };
        let back: Vec<&str> = axes.iter().rev().copied().collect();
        prop_assert_eq!(plain(ask(&request(&axes)).unwrap()), plain(ask(&request(&back)).unwrap()));
    }

    /// Also for many points at once, whose problems share their parts.
    #[test]
    fn a_point_is_the_estimate_of_its_scenario(axes in subsequence(AXES.to_vec(), 1..4)) {
        let request = request(&axes);
        for row in ask(&request).unwrap().rows {
            let mut scenario = value(&request.scenario);
            for (key, value) in &row.vary {
                let degree = ["tp", "replicas"].contains(&key.as_str());
                let place = if degree { &mut scenario["deployment"]["both"] } else { &mut scenario };
                place[key] = value.clone();
            }
            let scenario: Scenario = serde_json::from_value(scenario).unwrap();
            let alone = estimate(&CATALOG, &EstimateRequest::of(scenario), &UNCONTROLLED);
            match alone {
                Ok(alone) => {
                    prop_assert_eq!(row.notation.as_ref(), Some(&alone.candidate.notation));
                    prop_assert_eq!(value(&row.metrics), value(&alone.candidate.metrics));
                    prop_assert_eq!(value(&row.intervals), value(&alone.candidate.intervals));
                }
                Err(fault) => prop_assert!(row.reason.unwrap().contains(&fault.found)),
            }
        }
    }
}

#[test]
fn a_point_without_a_deployment_is_the_optimum() {
    let vary = ["hardware=1xl40s,2xl40s", "tpot=10ms,50ms"];
    let request = SweepRequest { scenario: Scenario::of("Llama-3.1-8B", "1xl40s"), ..request(&vary) };
    for row in ask(&request).unwrap().rows {
        let text = |key: &str| row.vary[key].as_str().map(str::to_owned);
        let scenario =
            Scenario { hardware: text("hardware"), tpot: text("tpot"), ..request.scenario.clone() };
        let alone = OptimizeRequest { scenario, ..OptimizeRequest::default() };
        let alone = optimize(&CATALOG, &alone, &UNCONTROLLED).unwrap();
        assert_eq!(row.notation, alone.best.as_ref().map(|best| best.notation.clone()));
        assert_eq!(value(&row.metrics), value(&alone.best.and_then(|best| best.metrics)));
        assert_eq!(row.status.name(), value(&alone.status).as_str().unwrap());
    }
}

#[test]
fn a_parquet_file_has_the_cells_of_the_csv_file_in_typed_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for out in [path("sweep.csv"), path("sweep.parquet")] {
        let line = ["sweep", "--model", "Llama-3.1-8B", "--hardware", "2xh100", "--vary", "tp=1,2,3"];
        let more = ["--vary", "concurrency=4,8", "--vary", "kv_format=bf16,fp8", "--out", &out];
        let run = command(&[&line[..], &more].concat());
        assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    }
    let mut csv = csv::Reader::from_path(path("sweep.csv")).unwrap();
    let names: Vec<String> = csv.headers().unwrap().iter().map(str::to_owned).collect();
    let expected: Vec<Vec<String>> =
        csv.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
    let file = SerializedFileReader::new(std::fs::File::open(path("sweep.parquet")).unwrap()).unwrap();
    let text = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Long(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        other => panic!("{other}"),
    };
    let mut rows = Vec::new();
    for row in file.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let columns: Vec<&String> = row.get_column_iter().map(|(name, _)| name).collect();
        assert_eq!(columns, names.iter().collect::<Vec<_>>());
        let of = |name: &str| row.get_column_iter().find(|(known, _)| *known == name).unwrap().1;
        assert!(matches!(of("tp"), Field::Long(_)) && matches!(of("kv_format"), Field::Str(_)));
        assert!(matches!(of("tpot_ms"), Field::Double(_) | Field::Null));
        rows.push(row.get_column_iter().map(|(_, field)| text(field)).collect::<Vec<_>>());
    }
    assert_eq!(rows, expected);
    assert_eq!(rows.len(), 12);
}

#[test]
fn no_key_that_can_be_varied_is_another_column() {
    let fixed: Vec<String> = columns(&[], true).into_iter().map(|(name, _)| name).collect();
    let twice: Vec<String> = keys().into_iter().filter(|key| fixed.contains(key)).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert!(METRICS.iter().all(|entry| fixed.iter().any(|column| column == entry.column)));
}

#[test]
fn a_faulty_sweep_names_its_key() {
    let fault = |vary: &[&str]| ask(&request(vary)).unwrap_err();
    assert_eq!(fault(&[]).key, "vary");
    assert!(fault(&["tp=1", "tp=2"]).found.contains("twice"));
    assert!(fault(&["rate=1", "concurrency=2"]).found.contains("both"));
    assert!(fault(&["hardware=8xh1oo"]).to_string().contains("h1oo"));
    assert!(fault(&["isl=1..10000+1", "osl=1..10000+1"]).expected.contains("points"));
    let shard = Some(ShardNumber { number: 3, of: 2 });
    assert_eq!(ask(&SweepRequest { shard, ..request(&["tp=1"]) }).unwrap_err().key, "shard");
}

fn command(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    command.args(args).arg("--no-config").env_remove("MANTILE_HOME").output().unwrap()
}

#[test]
fn an_interrupted_file_is_continued_and_another_sweeps_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let line = |tp: &'static str, out: &str, more: &[&str]| {
        let vary = ["sweep", "--model", "Llama-3.1-8B", "--hardware", "4xl40s", "--vary", tp];
        let output = command(&[&vary[..], &["--vary", "concurrency=1..64*2", "--out", out], more].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for ending in ["csv", "jsonl"] {
        let (whole, part) = (path(&format!("whole.{ending}")), path(&format!("part.{ending}")));
        assert_eq!(line("tp=1,2,4", &whole, &[]).0, Some(0));
        let text = std::fs::read_to_string(&whole).unwrap();
        for cut in [0, 5, text.len() / 2, text.len() - 1, text.len()] {
            std::fs::write(&part, &text[..cut]).unwrap();
            let (code, fault) = line("tp=1,2,4", &part, &["--resume"]);
            assert_eq!(code, Some(0), "{fault}");
            assert_eq!(std::fs::read_to_string(&part).unwrap(), text, "cut at {cut}");
        }
        let (code, fault) = line("tp=1,2", &part, &["--resume"]);
        assert!(code == Some(2) && fault.contains("another sweep"), "{fault}");
        assert_eq!(std::fs::read_to_string(&part).unwrap(), text, "a refused file stays");
    }
    let (code, fault) = line("tp=1,2", &path("whole.json"), &["--resume"]);
    assert!(code == Some(2) && fault.contains("sweep.jsonl"), "{fault}");
    let json: Vec<String> = (1..=2)
        .map(|number| {
            let part = path(&format!("part-{number}.json"));
            assert_eq!(line("tp=1,2", &part, &["--shard", &format!("{number}/2")]).0, Some(0));
            part
        })
        .collect();
    assert_eq!(line("tp=1,2", &path("whole.json"), &[]).0, Some(0));
    let merged = command(&["merge", &json[1], &json[0]]);
    assert_eq!(merged.stdout, std::fs::read(Path::new(&path("whole.json"))).unwrap());
    assert_eq!(command(&["merge", &json[0]]).status.code(), Some(2));
}

/// The same names, another problem: a file that a sweep read was edited between two runs.
#[test]
fn a_sweep_is_continued_only_where_every_file_is_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let path = |name: &str| home.join(name).to_str().unwrap().to_owned();
    let shipped =
        |kind: CatalogKind, id: &str| kind.shipped().iter().find(|one| one.0 == id).unwrap().1.text();
    let own = |kind: CatalogKind, id: &str, text: &str| {
        std::fs::create_dir_all(home.join(kind.folder())).unwrap();
        std::fs::write(home.join(kind.folder()).join(format!("{id}.json")), text).unwrap();
    };
    let config: Value =
        serde_json::from_str(shipped(CatalogKind::Models, "meta-llama--Llama-3.1-8B")).unwrap();
    let config = config["config"].to_string();
    std::fs::write(path("config.json"), &config).unwrap();
    let files = [
        (CatalogKind::Systems, "dgx-h100", "450 GB/s", "400 GB/s"),
        (CatalogKind::Devices, "nvidia-h100-sxm", "3.35 TB/s", "3.3 TB/s"),
        (CatalogKind::Runtimes, "vllm", "17.56 ms", "17.6 ms"),
        (CatalogKind::Objectives, "throughput", "\"limits\": {}", "\"limits\": {\"ttft\": \"3 s\"}"),
        (CatalogKind::Workloads, "chat", "2048", "2047"),
        (CatalogKind::Formats, "fp8", "8 bit", "9 bit"),
    ];
    for (kind, id, ..) in files {
        own(kind, id, shipped(kind, id));
    }
    let run = |out: &str, resume: bool| {
        let model = path("config.json");
        let mut line = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
        line.env("MANTILE_HOME", home).args(["sweep", "--model", &model, "--hardware", "dgx-h100"]);
        line.args(["--vary", "weight_format=bf16,fp8", "--vary", "tp=1,2", "--out", out]);
        let output = line.args(resume.then_some("--resume")).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let out = path("sweep.csv");
    std::fs::write(path("hardware/defaults.json"), shipped_defaults()).unwrap();
    assert_eq!(run(&out, false), (Some(0), String::new()));
    let whole = std::fs::read_to_string(&out).unwrap();
    let cut = &whole[..whole.lines().take(3).map(|line| line.len() + 1).sum()];
    let wider = config.replace("14336", "14080");
    let mut edits = vec![(path("config.json"), config, wider)];
    let defaults = shipped_defaults();
    edits.push((
        path("hardware/defaults.json"),
        defaults.to_owned(),
        defaults.replacen("0.09 USD", "0.1 USD", 1),
    ));
    for (kind, id, now, then) in files {
        let text = shipped(kind, id);
        edits.push((
            path(&format!("{}/{id}.json", kind.folder())),
            text.to_owned(),
            text.replacen(now, then, 1),
        ));
    }
    for (file, before, after) in edits {
        assert_ne!(before, after, "{file}");
        std::fs::write(&out, cut).unwrap();
        // What changes no value changes no row.
        std::fs::write(&file, format!("{before}\n\n")).unwrap();
        assert_eq!(run(&out, true), (Some(0), String::new()), "{file}");
        assert_eq!(std::fs::read_to_string(&out).unwrap(), whole, "{file}");
        std::fs::write(&out, cut).unwrap();
        std::fs::write(&file, &after).unwrap();
        let (code, fault) = run(&out, true);
        assert!(code == Some(2) && fault.contains("another sweep"), "{file}: {code:?} {fault}");
        assert_eq!(std::fs::read_to_string(&out).unwrap(), cut, "a refused file stays");
        std::fs::write(&file, &before).unwrap();
    }
}

#[test]
fn compared_answers_have_ratios_to_the_first_however_they_are_given() {
    let scenario = Scenario::of("Llama-3.1-8B", "1xl40s");
    let result = optimize(
        &CATALOG,
        &OptimizeRequest { scenario: scenario.clone(), ..OptimizeRequest::default() },
        &UNCONTROLLED,
    );
    let entries = vec![
        ComparedEntry { name: "saved".into(), result: Some(value(&result.unwrap())), scenario: None },
        ComparedEntry { name: "now".into(), result: None, scenario: Some(scenario.clone()) },
    ];
    let hardware = vec!["2xl40s".to_owned()];
    let request = CompareRequest { entries, hardware, scenario };
    let rows = compare(&CATALOG, &request, &UNCONTROLLED).unwrap().rows;
    assert_eq!(value(&rows[0].metrics), value(&rows[1].metrics));
    assert_eq!([&rows[0].model, &rows[0].hardware], [&rows[1].model, &rows[1].hardware]);
    assert!(rows[0].ratios.values().chain(rows[1].ratios.values()).all(|ratio| *ratio == 1.0));
    assert!((rows[2].ratios["usd_per_hour"] - 2.0).abs() < 1e-12 && rows[2].ratios["output_tok_s"] >= 2.0);
    let alone = CompareRequest { entries: vec![], ..request };
    assert_eq!(compare(&CATALOG, &alone, &UNCONTROLLED).unwrap_err().key, "entries");
}
