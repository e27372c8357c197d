//! One table of metrics: every list of them agrees with it.

use std::collections::BTreeSet;

use mantile::prelude::*;
use mantile::report::number::format_metric;
use mantile::report::result::{Intervals, MetricsReport};
use mantile::report::rows;
use mantile::search::point::{WIDTH, place};
use mantile::spec::objective::{METRICS, MetricFormat, MetricInput, ObjectiveTerm};
use serde_json::{Value, json};

/// A deployment with a price and a power: every metric is known.
fn scenario() -> Scenario {
    let weight_format = Some("bf16".into());
    Scenario { concurrency: Some(8), weight_format, ..Scenario::of("Llama-3.1-8B", "1xh100") }
}

fn estimated() -> EstimateResult {
    estimate(&Catalog::default(), &EstimateRequest::of(scenario()), &UNCONTROLLED).unwrap()
}

#[test]
fn every_metric_is_reported_in_its_unit_and_explained() {
    let report = estimated().candidate;
    for entry in METRICS {
        let number = serde_json::from_value(json!(entry.name)).unwrap();
        let request = ExplainRequest { scenario: scenario(), number, ..Default::default() };
        let ExplainReport::Explained(explained) =
            explain(&Catalog::default(), &request, &UNCONTROLLED).unwrap()
        else {
            panic!("{}: not explained", entry.name)
        };
        let expected = match entry.format {
            MetricFormat::Tokens => explained.number.value.floor(),
            MetricFormat::Time | MetricFormat::Number | MetricFormat::Count => {
                explained.number.value / entry.scale
            }
        };
        let found = report.figure(entry.metric).unwrap_or_else(|| panic!("{}: unknown", entry.name));
        assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{}: {found}, {expected}", entry.name);
        let formula = explained.number.formula.is_some().then_some(explained.number.symbol.as_str());
        assert!(entry.formula.is_none() || entry.formula == formula, "{}: {formula:?}", entry.name);
    }
}

#[test]
fn the_report_and_its_rows_have_the_metrics_in_the_order_of_the_table() {
    let report = estimated();
    let value = serde_json::to_value(&report.candidate.metrics).unwrap();
    let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let columns: Vec<&str> =
        METRICS.iter().map(|entry| entry.column).filter(|column| *column != "devices").collect();
    assert_eq!(keys, columns);
    assert_eq!(keys.len(), MetricsReport::COLUMNS.len());

    let written = rows::csv(std::slice::from_ref(&report.candidate), &report.question);
    let mut table = csv::Reader::from_reader(written.as_bytes());
    let header = table.headers().unwrap().clone();
    let row = table.records().next().unwrap().unwrap();
    let cells: Vec<(&str, &str)> = header.iter().zip(row.iter()).collect();
    let at =
        |name: &str| cells.iter().position(|(column, _)| *column == name).unwrap_or_else(|| panic!("{name}"));
    for (metric, read) in MetricsReport::COLUMNS {
        let column = metric.entry().column;
        let figure = read(report.candidate.metrics.as_ref().unwrap()).unwrap();
        assert_eq!(cells[at(column)].1, figure.to_string(), "{column}");
    }
    for (metric, read) in Intervals::COLUMNS {
        let column = metric.entry().column;
        let interval = read(report.candidate.intervals.as_ref().unwrap()).unwrap();
        assert_eq!(at(&format!("{column}_p10")), at(column) + 1);
        assert_eq!(cells[at(&format!("{column}_p90"))].1, interval.p90.to_string(), "{column}");
    }
}

#[test]
fn a_metric_is_null_exactly_where_its_input_is_unknown() {
    let value = serde_json::to_value(schemars::schema_for!(MetricsReport)).unwrap();
    for (metric, _) in MetricsReport::COLUMNS {
        let entry = metric.entry();
        let kind = &value["properties"][entry.column]["type"];
        let nullable = kind.as_array().is_some_and(|kinds| kinds.contains(&json!("null")));
        assert_eq!(nullable, entry.needs != MetricInput::Nothing, "{}: {kind}", entry.name);
    }
}

#[test]
fn the_search_numbers_its_metrics_from_zero_and_takes_no_others() {
    let searched: BTreeSet<usize> =
        METRICS.iter().filter(|entry| entry.searched).map(|entry| place(entry.metric)).collect();
    assert_eq!(searched, (0..WIDTH).collect());
    for entry in METRICS {
        let term = json!({"metric": entry.name, "direction": entry.direction});
        assert_eq!(serde_json::from_value::<ObjectiveTerm>(term).is_ok(), entry.searched, "{}", entry.name);
        assert_eq!(Metric::parse(entry.name).is_ok(), entry.searched, "{}", entry.name);
        assert_eq!(Metric::parse(entry.column).is_ok(), entry.searched, "{}", entry.column);
        assert_eq!(serde_json::to_value(entry.metric).unwrap(), Value::from(entry.name));
    }
}

#[test]
fn the_reason_of_a_best_plan_shows_its_metric_in_the_unit_of_the_report() {
    for objective in ["latency", "throughput", "max-context"] {
        let scenario =
            Scenario { objective: Some(objective.to_string()), ..Scenario::of("Llama-3.1-8B", "2xl40s") };
        let request = OptimizeRequest { scenario, why: true, ..Default::default() };
        let report = optimize(&Catalog::default(), &request, &UNCONTROLLED).unwrap();
        let metric = report.question.optimize[0].metric;
        let shown = format_metric(metric, report.best.unwrap().figure(metric).unwrap());
        let sentence = report.why.unwrap().sentence;
        assert!(sentence.contains(&shown), "{objective}: {shown}: {sentence}");
    }
}
