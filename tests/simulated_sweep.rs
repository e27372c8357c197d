//! Sweeps under traffic: a row is the simulation of its plan, and rows of other traffic are those of another sweep.

use std::process::Command;
use std::sync::LazyLock;

use mantile::report::simulated_point::SIMULATED_FIGURES;
use mantile::report::svg::sweep::sweep_picture;
use mantile::report::sweep::{PointStatus, ShardNumber, SweepReport, columns};
use mantile::request::simulate::{SimulateRequest, SimulatedTraffic, simulate};
use mantile::request::sweep::merge::RowFormat;
use mantile::request::sweep::{SweepRequest, sweep};
use mantile::request::{UNCONTROLLED, value};
use mantile::spec::error::Error;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::json;

use super::vary::{file, merged};

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::default);

fn traffic(seed: u64) -> SimulatedTraffic {
    let (requests, seed) = (Some(150), Some(seed));
    SimulatedTraffic { requests, seed, isl_variation: Some(0.5), ..SimulatedTraffic::default() }
}

fn request(vary: &[&str], traffic: Option<SimulatedTraffic>) -> SweepRequest {
    let limits = json!({"ttft": "300ms", "tpot": "40ms", "isl": 500, "osl": 60});
    let of: Scenario = serde_json::from_value(limits).unwrap();
    let scenario = Scenario { model: Some("Qwen3-14B".into()), hardware: Some("2xh100".into()), ..of };
    let vary = vary.iter().map(|axis| (*axis).to_owned()).collect();
    SweepRequest { scenario, vary, shard: None, traffic }
}

fn swept(request: &SweepRequest) -> SweepReport {
    sweep(&CATALOG, request, &UNCONTROLLED).unwrap()
}

const PLANS: [&str; 2] = ["plan=2 x tp1;1 x tp2", "rate=3,12"];

#[test]
fn a_simulated_row_is_the_simulation_of_its_plan() {
    let request = request(&PLANS, Some(traffic(3)));
    let (found, plain) = (swept(&request), swept(&SweepRequest { traffic: None, ..request.clone() }));
    assert_eq!(found.traffic, Some(value(&traffic(3))));
    for (row, other) in found.rows.iter().zip(&plain.rows) {
        let mut scenario = value(&request.scenario);
        scenario["rate"] = row.vary["rate"].clone();
        scenario["deployment"] = json!({"plan": row.vary["plan"]});
        let scenario: Scenario = serde_json::from_value(scenario).unwrap();
        let alone = SimulateRequest { scenario, traffic: traffic(3), ..SimulateRequest::default() };
        let alone = simulate(&CATALOG, &alone, &UNCONTROLLED).unwrap();
        let point = row.simulated.as_ref().unwrap();
        assert_eq!(value(&point.latencies), value(&alone.latencies));
        assert_eq!(
            [point.output_tok_s, point.requests_per_s],
            [Some(alone.output_tok_s), Some(alone.requests_per_s)]
        );
        assert_eq!([point.goodput, point.hit_rate], [alone.goodput, Some(alone.hit_rate)]);
        assert!(point.goodput.is_some() && point.reason.is_none() && point.sampled_replicas.is_none());
        // The formulas' part of the row is that of a sweep without traffic.
        assert_eq!(value(&row.metrics), value(&other.metrics));
        assert_eq!((row.point, &row.notation, row.status), (other.point, &other.notation, other.status));
    }
    // Every figure has a value of its own.
    let figures = |at: usize| {
        let row = &found.rows[at];
        SIMULATED_FIGURES.iter().filter_map(|one| row.simulated_figure(one)).collect::<Vec<f64>>()
    };
    assert_eq!(figures(0).len(), SIMULATED_FIGURES.len());
    assert!(figures(0).windows(2).take(3).all(|pair| pair[0] <= pair[1]), "percentiles of TTFT rise");
    assert!(figures(0) != figures(1));
}

#[test]
fn a_point_without_a_plan_is_the_simulation_of_the_best_one() {
    let request = request(&["rate=1,4"], Some(traffic(1)));
    for row in swept(&request).rows {
        let scenario = Scenario { rate: row.vary["rate"].as_f64(), ..request.scenario.clone() };
        let alone = SimulateRequest { scenario, traffic: traffic(1), ..SimulateRequest::default() };
        let alone = simulate(&CATALOG, &alone, &UNCONTROLLED).unwrap();
        assert_eq!(row.notation, Some(alone.notation));
        assert_eq!(value(&row.simulated.unwrap().latencies), value(&alone.latencies));
    }
}

#[test]
fn a_point_that_is_not_simulated_has_the_reason() {
    let found = swept(&request(&["tp=2,3", "rate=2", "isl=500,1000000"], Some(traffic(1))));
    for row in &found.rows {
        let point = row.simulated.as_ref().unwrap();
        let runs = row.vary["tp"] == 2 && row.vary["isl"] == 500;
        assert_eq!(point.reason.is_none(), runs, "{:?}: {:?}", row.vary, point.reason);
        assert_eq!(point.latencies.is_empty(), !runs);
        assert!(runs || [PointStatus::Infeasible, PointStatus::Invalid].contains(&row.status));
    }
    let text = file(RowFormat::Csv, &found);
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<String> = rows.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(names, columns(&found.vary, true).into_iter().map(|(name, _)| name).collect::<Vec<_>>());
    let place = |name: &str| names.iter().position(|known| known == name).unwrap();
    for (cells, row) in rows.records().map(Result::unwrap).zip(&found.rows) {
        let point = row.simulated.as_ref().unwrap();
        assert_eq!(cells[place("simulated_reason")], point.reason.clone().unwrap_or_default());
        assert_eq!(cells[place("simulated_ttft_p99_ms")].is_empty(), point.reason.is_some());
    }
}

/// The fault of a request, at once and not row by row.
#[test]
fn faulty_traffic_is_refused_before_any_point() {
    let faulty = SimulatedTraffic { turn_isl: Some(5), ..SimulatedTraffic::default() };
    let fault = sweep(&CATALOG, &request(&PLANS, Some(faulty)), &UNCONTROLLED).unwrap_err();
    assert_eq!(fault.key, "turn_isl");
}

#[test]
fn rows_without_traffic_have_no_part_of_it() {
    let plain = swept(&request(&PLANS, None));
    let text = value(&plain).to_string() + &file(RowFormat::Csv, &plain);
    assert!(!text.contains("simulated") && !text.contains("traffic"));
    let names: Vec<String> = [None, Some(traffic(1)), Some(traffic(2)), Some(SimulatedTraffic::default())]
        .into_iter()
        .map(|traffic| swept(&request(&["tp=2", "rate=2"], traffic)).sweep)
        .collect();
    let once: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(once.len(), names.len(), "a fingerprint each: {names:?}");
}

#[test]
fn simulated_shards_merge_to_the_whole_byte_for_byte() {
    let request = request(&PLANS, Some(traffic(2)));
    let whole = swept(&request);
    for format in [RowFormat::Csv, RowFormat::JsonLines] {
        let part = |number, traffic| {
            let shard = Some(ShardNumber { number, of: 3 });
            file(format, &swept(&SweepRequest { shard, traffic: Some(traffic), ..request.clone() }))
        };
        let parts = [part(2, traffic(2)), part(1, traffic(2)), part(3, traffic(2))];
        assert_eq!(merged(format, &parts).unwrap(), file(format, &whole));
        let mixed = [part(2, traffic(2)), part(1, traffic(7)), part(3, traffic(2))];
        let fault: Error = merged(format, &mixed).unwrap_err();
        assert_eq!(fault.key, "sweep");
    }
}

#[test]
fn a_file_is_continued_only_under_the_same_traffic() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let run = |out: &str, more: &[&str]| {
        let line = ["sweep", "--model", "Qwen3-14B", "--hardware", "1xh100", "--tp", "1", "--isl", "300"];
        let vary = ["--osl", "30", "--vary", "rate=1..4+1", "--requests", "60", "--no-config", "--out", out];
        let output = Command::new(env!("CARGO_BIN_EXE_mantile-opt"))
            .args([&line[..], &vary, more].concat())
            .env_remove("MANTILE_HOME")
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for ending in ["csv", "jsonl"] {
        let (whole, part) = (path(&format!("whole.{ending}")), path(&format!("part.{ending}")));
        assert_eq!(run(&whole, &["--seed", "1"]), (Some(0), String::new()));
        let text = std::fs::read_to_string(&whole).unwrap();
        let cut = &text[..text.len() * 2 / 3];
        std::fs::write(&part, cut).unwrap();
        for other in [&["--seed", "2"][..], &["--isl-variation", "1", "--seed", "1"], &["--simulate"]] {
            let (code, fault) = run(&part, &[other, &["--resume"]].concat());
            assert!(code == Some(2) && fault.contains("another sweep"), "{code:?} {fault}");
            assert_eq!(std::fs::read_to_string(&part).unwrap(), cut, "a refused file stays");
        }
        assert_eq!(run(&part, &["--seed", "1", "--resume"]), (Some(0), String::new()));
        assert_eq!(std::fs::read_to_string(&part).unwrap(), text);
    }
    let table = path("whole.parquet");
    assert_eq!(run(&table, &["--seed", "1"]), (Some(0), String::new()));
    let table = SerializedFileReader::new(std::fs::File::open(table).unwrap()).unwrap();
    let columns = table.metadata().file_metadata().schema_descr().columns().to_vec();
    let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    let text = std::fs::read_to_string(path("whole.csv")).unwrap();
    assert_eq!(names, text.lines().next().unwrap().split(',').collect::<Vec<_>>());
}

#[test]
fn a_picture_of_simulated_points_has_their_goodput() {
    let report = swept(&request(&["plan=2 x tp1;1 x tp2", "rate=2..8*2"], Some(traffic(1))));
    let picture = sweep_picture(&report, None);
    let svg = picture.svg(mantile::report::svg::palette::SvgTheme::Adaptive);
    assert!(svg.contains("goodput") && svg.contains("TTFT p99 ms"));
    let plain = sweep_picture(&swept(&request(&["plan=2 x tp1;1 x tp2", "rate=2..8*2"], None)), None);
    assert!(!plain.svg(mantile::report::svg::palette::SvgTheme::Adaptive).contains("goodput"));
}
