//! A front over stated axes is the nondominated set on them and nothing else, at every door.

use fastrand::Rng;
use mantile::report::format::Format;
use mantile::report::text::front::label;
use mantile::request::entry;
use mantile::spec::objective::{Direction, METRICS, Metric, MetricEntry};
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use super::{answer, problem};
use crate::draw::{cases, name};

const OBJECTIVES: [&str; 6] =
    ["throughput", "latency", "perf-per-dollar", "perf-per-watt", "min-chips", "max-context"];

/// Up to `most` different axes.
fn axes(random: &mut Rng, most: usize) -> Vec<&'static MetricEntry> {
    let mut all: Vec<_> = METRICS.iter().filter(|entry| entry.searched).collect();
    random.shuffle(&mut all);
    all.truncate(random.usize(1..=most));
    all
}

/// The figures of a row on axes, less being better; rounded, so that the last bits of a sum decide nothing.
fn costs(row: &Value, axes: &[&MetricEntry]) -> Vec<f64> {
    let cost = |entry: &&MetricEntry| {
        let value = match entry.metric {
            Metric::Devices => row["devices"].as_f64(),
            _ => row["metrics"][entry.column].as_f64(),
        };
        let value = value.unwrap_or_else(|| panic!("{} of {row}", entry.column));
        let value: f64 = format!("{value:.8e}").parse().unwrap();
        if entry.direction == Direction::Minimize { value } else { -value }
    };
    axes.iter().map(cost).collect()
}

/// Whether `a` is at least as good on every axis, and better on one.
fn beats(a: &[f64], b: &[f64]) -> bool {
    a != b && a.iter().zip(b).all(|(a, b)| a <= b)
}

/// What nothing of `rows` beats, each once.
fn undominated(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let open = rows.iter().filter(|row| !rows.iter().any(|other| beats(other, row)));
    let mut open: Vec<Vec<f64>> = open.cloned().collect();
    open.sort_by(|a, b| a.partial_cmp(b).unwrap());
    open.dedup();
    open
}

/// The whole front of a problem over axes.
fn front(scenario: &Value, axes: &[&MetricEntry]) -> Option<Value> {
    let mut scenario = scenario.clone();
    scenario["pareto"] = json!(axes.iter().map(|entry| entry.name).collect::<Vec<_>>());
    answer("optimize", &json!({ "scenario": scenario, "max_front_points": "all" }))
}

fn rows(found: &Value, axes: &[&MetricEntry]) -> Vec<Vec<f64>> {
    found["front"].as_array().unwrap().iter().map(|row| costs(row, axes)).collect()
}

/// The body in a format.
fn written(found: &Value, format: Format) -> String {
    let body = entry("optimize").unwrap().formatted(&Catalog::default(), found, format).unwrap().unwrap();
    String::from_utf8(body).unwrap()
}

/// The deployment that the proof and the front are of.
fn optimum(found: &Value) -> &Value {
    found.get("formulas_best").filter(|optimum| !optimum.is_null()).unwrap_or(&found["best"])
}

/// The optimum is marked once, on the front or as the row outside it.
fn marked(found: &Value, own: &[Vec<f64>], best: &[f64]) {
    let beaten = own.iter().any(|row| beats(row, best));
    let all = found["front"].as_array().unwrap();
    let chosen: Vec<&Value> = all.iter().filter(|row| row["chosen"] == true).collect();
    assert_eq!(chosen.len(), usize::from(!beaten));
    assert!(chosen.iter().all(|row| row["notation"] == optimum(found)["notation"]));
    let body = written(found, Format::Csv);
    let mut table = csv::Reader::from_reader(body.as_bytes());
    let header = table.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|one| one == name).unwrap();
    let (notation, chosen, on_front) = (column("notation"), column("chosen"), column("on_front"));
    let lines: Vec<_> = table.records().map(Result::unwrap).collect();
    assert_eq!(lines.len(), own.len() + usize::from(beaten));
    assert_eq!(lines.iter().filter(|line| &line[on_front] == "true").count(), own.len());
    let chosen: Vec<&str> =
        lines.iter().filter(|line| &line[chosen] == "true").map(|line| &line[notation]).collect();
    assert_eq!(chosen, [optimum(found)["notation"].as_str().unwrap()]);
}

#[test]
fn a_front_over_stated_axes_is_the_nondominated_set_on_them() {
    let mut random = Rng::with_seed(354);
    let (mut checked, mut outside, mut drawn, mut tried) = (0, 0, 0, 0);
    while checked < cases(5) || outside == 0 || drawn == 0 {
        tried += 1;
        assert!(tried < 100 * cases(5), "too few are feasible");
        let mut requested = problem(&mut random);
        requested["objective"] = json!(name(&mut random, &OBJECTIVES));
        let all = axes(&mut random, 6);
        let stated = &all[..random.usize(1..=all.len().min(4))];
        let (Some(found), Some(wide)) = (front(&requested, stated), front(&requested, &all)) else {
            continue;
        };
        if found["best"].is_null() {
            continue;
        }
        checked += 1;
        let names: Vec<&str> = stated.iter().map(|entry| entry.name).collect();
        assert_eq!(found["question"]["pareto"], json!(names), "{requested}");
        let mut own = rows(&found, stated);
        let best = costs(optimum(&found), stated);
        marked(&found, &own, &best);
        outside += u64::from(own.iter().any(|row| beats(row, &best)));
        // What is best on some of the axes is on the front over all of them, or equal to one that is.
        let listed = undominated(&rows(&wide, stated));
        own.sort_by(|a, b| a.partial_cmp(b).unwrap());
        assert_eq!(own, listed, "{names:?} of {requested}");
        if let [across, up, ..] = stated {
            let picture = written(&found, Format::Svg);
            drawn += 1;
            for axis in [across, up] {
                assert!(picture.contains(&label(axis.metric)), "{names:?} of {requested}");
            }
        }
    }
}
