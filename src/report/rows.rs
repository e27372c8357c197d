//! Deployments as CSV: one row each, units in the names of the columns.

use super::result::Reported;

/// What a column is called, and its cell.
type Column = (&'static str, fn(&Reported) -> String);

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

macro_rules! figure {
    ($name:ident) => {
        (stringify!($name), |row| number(row.metrics.as_ref().map(|figures| figures.$name)))
    };
    ($name:ident?) => {
        (stringify!($name), |row| number(row.metrics.as_ref().and_then(|figures| figures.$name)))
    };
}

static COLUMNS: &[Column] = &[
    ("mode", |row| row.plan.mode.clone()),
    ("plan", |row| row.plan.label.clone()),
    ("weight_format", |row| row.weight_format.clone()),
    ("kv_format", |row| row.kv_format.clone()),
    ("concurrency", |row| row.concurrency.to_string()),
    ("devices", |row| row.devices.to_string()),
    figure!(ttft_ms),
    figure!(tpot_ms),
    figure!(e2e_ms),
    figure!(output_tok_s),
    figure!(output_tok_s_per_device),
    figure!(output_tok_s_per_user),
    figure!(usd_per_mtok?),
    figure!(usd_per_mtok_total?),
    figure!(watts?),
    figure!(tok_per_joule?),
    figure!(max_context_tokens),
    ("memory_total_bytes", |row| number(row.memory.as_ref().map(|memory| memory.total_bytes))),
    ("memory_usable_bytes", |row| number(row.memory.as_ref().map(|memory| memory.usable_bytes))),
    ("bottleneck", |row| row.bottleneck.clone().unwrap_or_default()),
];

/// One row a deployment, under a header.
pub fn csv(rows: &[Reported]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS.iter().map(|(name, _)| name)).expect("a vector takes every record");
    for row in rows {
        writer.write_record(COLUMNS.iter().map(|(_, cell)| cell(row))).expect("records are equally long");
    }
    let bytes = writer.into_inner().expect("a vector is flushed");
    String::from_utf8(bytes).expect("every cell is text")
}
