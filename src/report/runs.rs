//! Runs as a table: their figures, and measured over predicted.

use super::number::digits;
use super::table::table;
use crate::spec::run::RunRecord;

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

/// Runs, a line each: times in ms, and measured over predicted. `doubt` says why a run is not learned from.
pub fn runs_table(runs: &[RunRecord]) -> String {
    let predicted = runs.iter().any(|run| run.prediction.is_some());
    let shown = |column: usize| predicted || !(11..=13).contains(&column);
    let header: Vec<&str> =
        HEADER.iter().enumerate().filter(|(column, _)| shown(*column)).map(|(_, name)| *name).collect();
    let rows = runs.iter().map(|run| {
        let cells = cells(run).into_iter().enumerate();
        cells.filter(|(column, _)| shown(*column)).map(|(_, cell)| cell).collect::<Vec<_>>()
    });
    table(&header, rows)
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
}
