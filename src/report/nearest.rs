//! The published measurements that are nearest to a deployment, each with its own prediction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inputs::ReportInputs;
use super::number::{change, digits, time};
use super::sheet::{self, CsvColumn, known};
use super::table::table;
use crate::spec::scenario::Scenario;

/// A published measurement with its prediction.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NearestRow {
    /// Distance from the deployment: 0 is the same deployment at the same load.
    pub distance: f64,
    /// Id of the row in its table.
    pub id: String,
    /// Hugging Face id of the model.
    pub model: String,
    /// Id of the device.
    pub hardware: String,
    /// Number of devices.
    pub devices: u64,
    /// Runtime, with its version where given.
    pub runtime: String,
    /// Weight format.
    pub weight_format: String,
    /// `agg`, `disagg`, or the mode of a single stream.
    pub mode: String,
    /// Parallelism of each pool.
    pub plan: String,
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Concurrency.
    pub concurrency: Option<u64>,
    /// Measured median TTFT, ms.
    pub ttft_ms: Option<f64>,
    /// TTFT predicted for the row, ms; null without a prediction.
    pub predicted_ttft_ms: Option<f64>,
    /// Measured median TPOT, ms.
    pub tpot_ms: Option<f64>,
    /// TPOT predicted for the row, ms; null without a prediction.
    pub predicted_tpot_ms: Option<f64>,
    /// Publisher of the row.
    pub source: String,
}

/// A report of `nearest`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NearestReport {
    /// The flags and files of the request; null if posed otherwise.
    pub scenario: Option<Scenario>,
    /// The problem, with every default filled in.
    pub question: ReportInputs,
    /// The deployment.
    pub notation: String,
    /// Published rows that were compared: of this model on this device, or of every model on every device.
    pub known: u64,
    /// The nearest of them, nearest first.
    pub rows: Vec<NearestRow>,
}

impl NearestReport {
    /// The number of rows in words.
    pub fn sentence(&self) -> String {
        let ReportInputs { model, hardware, .. } = &self.question;
        match self.known {
            0 => format!("no published measurement of {model} on the device of {hardware} is shipped"),
            known => format!("the {} nearest of {known} published measurements", self.rows.len()),
        }
    }
}

/// `measured, predicted (change)`.
fn compared(measured: Option<f64>, predicted: Option<f64>) -> String {
    match (measured, predicted) {
        (Some(measured), Some(predicted)) => {
            format!("{}, predicted {} ({})", time(measured), time(predicted), change(measured, predicted))
        }
        (Some(measured), None) => format!("{}, no prediction", time(measured)),
        (None, _) => "-".to_owned(),
    }
}

impl NearestReport {
    /// The report as text.
    pub fn text(&self) -> String {
        let mut header =
            vec!["distance", "runtime", "weights", "plan", "ISL/OSL", "concurrency", "TTFT", "TPOT"];
        let of = |row: &NearestRow| format!("{} on {}", row.model, row.hardware);
        // Runs of one model on one device are those of the question.
        let several = self.rows.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]));
        if several {
            header.insert(1, "run");
        }
        let rows = self.rows.iter().map(|row| {
            let mut cells = vec![
                digits(row.distance),
                row.runtime.clone(),
                row.weight_format.clone(),
                row.plan.clone(),
                format!("{}/{}", row.isl, row.osl),
                row.concurrency.map_or_else(|| "-".to_owned(), |number| number.to_string()),
                compared(row.ttft_ms, row.predicted_ttft_ms),
                compared(row.tpot_ms, row.predicted_tpot_ms),
            ];
            if several {
                cells.insert(1, of(row));
            }
            cells
        });
        let mut text = format!("{}\n{}\n", self.notation, self.sentence());
        if !self.rows.is_empty() {
            text.push_str(&table(&header, rows));
        }
        let mut sources: Vec<&str> = self.rows.iter().map(|row| row.source.as_str()).collect();
        sources.dedup();
        for source in sources {
            text.push_str(&format!("source: {source}\n"));
        }
        text
    }
    /// A row for each measurement, under a header.
    pub fn csv(&self) -> String {
        let columns: [CsvColumn<NearestRow>; 17] = [
            ("distance", |row| row.distance.to_string()),
            ("id", |row| row.id.clone()),
            ("model", |row| row.model.clone()),
            ("hardware", |row| row.hardware.clone()),
            ("devices", |row| row.devices.to_string()),
            ("runtime", |row| row.runtime.clone()),
            ("weight_format", |row| row.weight_format.clone()),
            ("mode", |row| row.mode.clone()),
            ("plan", |row| row.plan.clone()),
            ("isl", |row| row.isl.to_string()),
            ("osl", |row| row.osl.to_string()),
            ("concurrency", |row| known(row.concurrency)),
            ("ttft_ms", |row| known(row.ttft_ms)),
            ("predicted_ttft_ms", |row| known(row.predicted_ttft_ms)),
            ("tpot_ms", |row| known(row.tpot_ms)),
            ("predicted_tpot_ms", |row| known(row.predicted_tpot_ms)),
            ("source", |row| row.source.clone()),
        ];
        sheet::table(&columns, &self.rows)
    }
}
