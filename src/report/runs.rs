//! Runs as a table: their figures, and measured over predicted.

// Without a store of runs, its tables have no user.
#![cfg_attr(not(feature = "runs"), allow(dead_code))]

use serde::Serialize;
use serde_json::Value;

use super::number::digits;
use super::table::table;
use super::telemetry::telemetry_lines;
use crate::spec::run::RunRecord;
use crate::spec::visible::visible;

fn ms(value: Option<f64>) -> String {
    value.map_or(String::new(), digits)
}

fn ratio(measured: Option<f64>, predicted: Option<f64>) -> String {
    let pair = measured.zip(predicted).filter(|(_, predicted)| *predicted > 0.0);
    pair.map_or(String::new(), |(measured, predicted)| format!("{:.2}", measured / predicted))
}

const HEADER: [&str; 15] = [
    "ISL",
    "OSL",
    "load",
    "TTFT p50",
    "p95",
    "p99",
    "TPOT p50",
    "p95",
    "E2E p50",
    "p95",
    "tok/s",
    "TTFT m/p",
    "TPOT m/p",
    "tok/s m/p",
    "note",
];

/// Columns that distinguish runs of several deployments, before their loads.
const DEPLOYMENT: [(&str, fn(&RunRecord) -> String); 5] = [
    ("model", |run| visible(&run.model_id).into_owned()),
    ("runtime", |run| visible(&run.runtime_id).into_owned()),
    ("hardware", |run| visible(run.hardware_id.as_deref().unwrap_or_default()).into_owned()),
    ("weights", |run| visible(run.quant.as_deref().unwrap_or_default()).into_owned()),
    ("plan", |run| visible(run.plan.as_deref().unwrap_or_default()).into_owned()),
];

/// Runs, a line each: times in ms, and measured over predicted; before these what their deployments differ by. `doubt` says why a run is not learned from. Below are the
/// readings of the machine, under the load of each where there are several.
pub fn runs_table(runs: &[RunRecord]) -> String {
    let predicted = runs.iter().any(|run| run.prediction.is_some());
    let shown = |column: usize| predicted || !(11..=13).contains(&column);
    let differs = |of: fn(&RunRecord) -> String| runs.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]));
    let differing: Vec<_> = DEPLOYMENT.into_iter().filter(|(_, of)| differs(*of)).collect();
    let figures = HEADER.iter().enumerate().filter(|(column, _)| shown(*column)).map(|(_, name)| *name);
    let header: Vec<&str> = differing.iter().map(|(name, _)| *name).chain(figures).collect();
    let rows = runs.iter().map(|run| {
        let cells = cells(run).into_iter().enumerate();
        let figures = cells.filter(|(column, _)| shown(*column)).map(|(_, cell)| cell);
        differing.iter().map(|(_, of)| of(run)).chain(figures).collect::<Vec<_>>()
    });
    let mut text = table(&header, rows);
    for run in runs.iter().filter(|run| run.telemetry.is_some()) {
        let (isl, osl, load) = (run.context_tokens, run.output_tokens, run.load());
        text += &if runs.len() > 1 { format!("\nISL {isl}, OSL {osl}, {load}\n") } else { "\n".to_owned() };
        text += &telemetry_lines(run);
    }
    text
}

fn cells(run: &RunRecord) -> [String; HEADER.len()] {
    let (metrics, prediction) = (&run.metrics, run.prediction.clone().unwrap_or_default());
    [
        run.context_tokens.to_string(),
        run.output_tokens.to_string(),
        run.load(),
        ms(metrics.ttft_ms_p50),
        ms(metrics.ttft_ms_p95),
        ms(metrics.ttft_ms_p99),
        ms(metrics.tpot_ms_p50),
        ms(metrics.tpot_ms_p95),
        ms(metrics.latency_ms_p50),
        ms(metrics.latency_ms_p95),
        ms(metrics.decode_toks_sec),
        ratio(metrics.ttft_ms_p50, prediction.ttft_ms),
        ratio(metrics.tpot_ms_p50, prediction.tpot_ms),
        ratio(metrics.decode_toks_sec, prediction.decode_toks_sec),
        run.doubt().unwrap_or_default(),
    ]
}

/// Columns of [`listed_runs`].
const LISTED: [&str; 12] = [
    "run", "time", "model", "runtime", "hardware", "weights", "ISL", "OSL", "load", "TTFT p50", "TPOT p50",
    "outcome",
];
/// Characters of an id that are shown: the first group of a UUID.
const SHOWN_ID: usize = 8;

/// Runs of a store, a line each.
pub fn listed_runs(runs: &[RunRecord]) -> String {
    let rows = runs.iter().map(|run| {
        let given = |text: &Option<String>| text.clone().unwrap_or_default();
        let devices = run.devices.map_or(String::new(), |devices| format!("{devices}x"));
        vec![
            run.run_id.chars().take(SHOWN_ID).collect(),
            run.timestamp_utc.clone(),
            run.model_id.clone(),
            [&run.runtime_id, " ", &given(&run.runtime_version)].concat().trim_end().to_owned(),
            run.hardware_id.as_ref().map_or(String::new(), |hardware| format!("{devices}{hardware}")),
            given(&run.quant),
            run.context_tokens.to_string(),
            run.output_tokens.to_string(),
            run.load(),
            ms(run.metrics.ttft_ms_p50),
            ms(run.metrics.tpot_ms_p50),
            run.doubt().unwrap_or_else(|| "measured".to_owned()),
        ]
    });
    table(&LISTED, rows)
}

/// Figures of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRuns {
    /// Ids of both.
    pub runs: [String; 2],
    /// The properties in which they differ.
    pub differences: Vec<RunDifference>,
    /// The figures that either has.
    pub figures: Vec<ComparedRunFigure>,
}

/// A property in which two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunDifference {
    pub key: String,
    pub values: [Value; 2],
}

/// A figure of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRunFigure {
    pub figure: String,
    pub values: [Option<f64>; 2],
    /// The second over the first.
    pub ratio: Option<f64>,
    /// The prediction that was made before each.
    pub predicted: [Option<f64>; 2],
}

/// Keys of a record that differ between any two runs, or that are compared as figures.
const NO_PROPERTY: [&str; 8] =
    ["run_id", "timestamp_utc", "metrics", "prediction", "server_metrics", "client", "repeats", "telemetry"];
/// Figures that a prediction has, and its keys.
const PREDICTED: [(&str, &str); 4] = [
    ("ttft_ms_p50", "ttft_ms"),
    ("tpot_ms_p50", "tpot_ms"),
    ("latency_ms_p50", "latency_ms"),
    ("decode_toks_sec", "decode_toks_sec"),
];

/// Two runs side by side.
pub fn compared_runs(runs: [&RunRecord; 2]) -> ComparedRuns {
    let records = runs.map(|run| serde_json::to_value(run).expect("runs have only text keys"));
    let keys = |within: Option<&str>| {
        let mut keys: Vec<String> = vec![];
        for record in &records {
            let fields = within.map_or(Some(record), |key| record.get(key)).and_then(Value::as_object);
            for key in fields.into_iter().flat_map(|fields| fields.keys()) {
                if !keys.contains(key) {
                    keys.push(key.clone());
                }
            }
        }
        keys
    };
    let properties = keys(None);
    let properties = properties.into_iter().filter(|key| !NO_PROPERTY.contains(&key.as_str()));
    let differences = properties.map(|key| RunDifference {
        values: [0, 1].map(|at: usize| records[at].get(&key).cloned().unwrap_or_default()),
        key,
    });
    let figures = keys(Some("metrics")).into_iter().map(|figure| {
        let values = [0, 1].map(|at: usize| records[at]["metrics"][&figure].as_f64());
        let predicted = PREDICTED.iter().find(|(key, _)| *key == figure).map(|(_, key)| *key);
        ComparedRunFigure {
            ratio: values[1].zip(values[0]).map(|(b, a)| b / a).filter(|ratio| ratio.is_finite()),
            predicted: [0, 1].map(|at: usize| records[at]["prediction"][predicted?].as_f64()),
            values,
            figure,
        }
    });
    ComparedRuns {
        runs: runs.map(|run| run.run_id.clone()),
        differences: differences.filter(|one| one.values[0] != one.values[1]).collect(),
        figures: figures.collect(),
    }
}

impl ComparedRuns {
    /// The runs as a text for people.
    pub fn text(&self) -> String {
        let [a, b] = self.runs.each_ref().map(|id| id.chars().take(SHOWN_ID).collect::<String>());
        let figures = self.figures.iter().map(|one| {
            let ratio = one.ratio.map_or(String::new(), |ratio| format!("{ratio:.3}"));
            let [from, to] = one.values.map(ms);
            let [before, after] = one.predicted.map(ms);
            vec![one.figure.clone(), from, to, ratio, before, after]
        });
        let of = |id: &str| format!("{id} predicted");
        let header = ["figure", &a, &b, "ratio", &of(&a), &of(&b)];
        let figures = table(&header, figures);
        let differences = self.differences.iter().map(|one| {
            let shown = one
                .values
                .each_ref()
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            [vec![one.key.clone()], shown.to_vec()].concat()
        });
        match self.differences.is_empty() {
            true => figures,
            false => format!("{figures}\n{}", table(&["differs", &a, &b], differences)),
        }
    }
}

/// A run with everything that it has, a line each.
pub fn shown_run(run: &RunRecord) -> String {
    let mut rows = vec![];
    let record = serde_json::to_value(run).expect("runs have only text keys");
    flatten("", &record, &mut rows);
    let text = table(&["key", "value"], rows);
    match run.telemetry {
        Some(_) => format!("{text}\n{}", telemetry_lines(run)),
        None => text,
    }
}

fn flatten(key: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(fields) => {
            let dot = if key.is_empty() { "" } else { "." };
            fields.iter().for_each(|(name, value)| flatten(&format!("{key}{dot}{name}"), value, rows));
        }
        // Lists of objects, such as GPUs, are numbered.
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().enumerate().for_each(|(at, value)| flatten(&format!("{key}.{at}"), value, rows));
        }
        Value::String(text) => rows.push(vec![key.to_owned(), text.clone()]),
        other => rows.push(vec![key.to_owned(), other.to_string()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::run::RunPrediction;

    #[test]
    fn a_run_has_its_prediction_next_to_it() {
        let mut run = RunRecord { concurrency: Some(8), context_tokens: 256, ..RunRecord::default() };
        run.metrics.ttft_ms_p50 = Some(55.0);
        assert!(!runs_table(&[run.clone()]).contains("m/p"));
        run.prediction = Some(RunPrediction { ttft_ms: Some(50.0), ..RunPrediction::default() });
        let text = runs_table(&[run]);
        assert!(text.contains("8 clients") && text.contains("1.10") && text.contains("TTFT m/p"), "{text}");
    }

    #[test]
    fn two_runs_have_their_ratio_and_what_differs() {
        let mut a =
            RunRecord { run_id: "aaaaaaaa-1".to_owned(), concurrency: Some(8), ..RunRecord::default() };
        a.metrics.tpot_ms_p50 = Some(10.0);
        a.prediction = Some(RunPrediction { tpot_ms: Some(9.0), ..RunPrediction::default() });
        let mut b = RunRecord { run_id: "b".to_owned(), concurrency: Some(16), ..a.clone() };
        b.metrics.tpot_ms_p50 = Some(15.0);
        let found = compared_runs([&a, &b]);
        let [figure] = &found.figures[..] else { panic!("{found:?}") };
        assert_eq!((figure.ratio, figure.predicted), (Some(1.5), [Some(9.0), Some(9.0)]));
        assert_eq!(found.differences.iter().map(|one| one.key.as_str()).collect::<Vec<_>>(), ["concurrency"]);
        assert!(
            found.text().contains("1.500") && shown_run(&a).contains("metrics.tpot_ms_p50"),
            "{}",
            found.text()
        );
        assert!(listed_runs(&[a]).starts_with("run"));
    }
}
