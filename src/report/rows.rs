//! Deployments as CSV: one row each, with units in the column names.

use super::inputs::ReportInputs;
use super::recommend::Build;
use super::result::ReportedDeployment;
use super::sheet;

/// Column name, and the function of its cell.
type CsvColumn = (&'static str, fn(&ReportedDeployment) -> String);

/// Column name, and the function of the problem's cell.
type InputColumn = (&'static str, fn(&ReportInputs) -> String);

/// The problem, equal in every row: tables of several problems can be joined.
static INPUTS: &[InputColumn] = &[
    ("model", |inputs| inputs.model.clone()),
    ("hardware", |inputs| inputs.hardware.clone()),
    ("runtime", |inputs| inputs.runtime.clone()),
    ("isl", |inputs| inputs.isl.to_string()),
    ("osl", |inputs| inputs.osl.to_string()),
    ("objective", |inputs| inputs.objective.clone()),
];

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

macro_rules! interval {
    ($column:literal, $name:ident, $at:ident) => {
        ($column, |row| number(row.intervals.as_ref().map(|intervals| intervals.$name.$at)))
    };
}

macro_rules! degree {
    ($column:literal, $pool:ident, $degree:ident) => {
        ($column, |row| row.plan.$pool.$degree.to_string())
    };
}

macro_rules! held {
    ($column:literal, $at:ident) => {
        ($column, |row| number(row.memory.as_ref().and_then(|memory| Some(memory.interval?.$at))))
    };
}

static COLUMNS: &[CsvColumn] = &[
    ("mode", |row| row.plan.mode.clone()),
    ("plan", |row| row.plan.label.clone()),
    ("notation", |row| row.notation.clone()),
    degree!("tp", decode, tp),
    degree!("pp", decode, pp),
    degree!("dp", decode, dp),
    degree!("cp", decode, cp),
    degree!("ep", decode, ep),
    degree!("replicas", decode, replicas),
    degree!("prefill_tp", prefill, tp),
    degree!("prefill_pp", prefill, pp),
    degree!("prefill_dp", prefill, dp),
    degree!("prefill_cp", prefill, cp),
    degree!("prefill_ep", prefill, ep),
    degree!("prefill_replicas", prefill, replicas),
    ("weight_format", |row| row.weight_format.clone()),
    ("kv_format", |row| row.kv_format.clone()),
    ("concurrency", |row| row.concurrency.to_string()),
    ("devices", |row| row.devices.to_string()),
    figure!(ttft_ms),
    interval!("ttft_ms_p10", ttft_ms, p10),
    interval!("ttft_ms_p90", ttft_ms, p90),
    figure!(tpot_ms),
    interval!("tpot_ms_p10", tpot_ms, p10),
    interval!("tpot_ms_p90", tpot_ms, p90),
    figure!(e2e_ms),
    figure!(output_tok_s),
    interval!("output_tok_s_p10", output_tok_s, p10),
    interval!("output_tok_s_p90", output_tok_s, p90),
    figure!(output_tok_s_per_device),
    figure!(output_tok_s_per_user),
    figure!(requests_per_s),
    figure!(usd_per_hour?),
    figure!(usd_per_mtok?),
    figure!(usd_per_mtok_total?),
    figure!(watts?),
    figure!(tok_per_joule?),
    figure!(max_context_tokens),
    ("memory_total_bytes", |row| number(row.memory.as_ref().map(|memory| memory.total_bytes))),
    held!("memory_total_bytes_p10", p10),
    held!("memory_total_bytes_p90", p90),
    ("memory_usable_bytes", |row| number(row.memory.as_ref().map(|memory| memory.usable_bytes))),
    ("bottleneck", |row| row.bottleneck.clone().unwrap_or_default()),
];

/// One row per deployment of a problem, under a header. Pools are aggregated replicas in both groups of degrees if the
/// plan is aggregated.
pub fn csv(rows: &[ReportedDeployment], inputs: &ReportInputs) -> String {
    let problem: Vec<String> = INPUTS.iter().map(|(_, cell)| cell(inputs)).collect();
    let cells = |row: &ReportedDeployment| {
        let own = COLUMNS.iter().map(|(_, cell)| cell(row));
        problem.iter().cloned().chain(own).collect()
    };
    let header = INPUTS.iter().map(|(name, _)| *name).chain(COLUMNS.iter().map(|(name, _)| *name));
    sheet::csv(header, rows.iter().map(cells))
}

/// Column name of builds, and the function of its cell.
type BuildColumn = (&'static str, fn(&Build) -> String);

static BUILD_COLUMNS: &[BuildColumn] = &[
    ("build", |row| row.name.clone()),
    ("system", |row| row.system.clone()),
    ("model", |row| row.model.clone()),
    ("copies", |row| row.copies.to_string()),
    ("devices", |row| row.devices.to_string()),
    ("device", |row| row.device.clone()),
    ("runtime", |row| row.runtime.clone()),
    ("weight_format", |row| row.each.weight_format.clone()),
    ("keeps_quality", |row| row.keeps_quality.to_string()),
    ("plan", |row| row.each.plan.label.clone()),
    ("tok_s_per_user", |row| row.tok_s_per_user.to_string()),
    ("ttft_ms", |row| number(row.each.metrics.as_ref().map(|figures| figures.ttft_ms))),
    ("tpot_ms", |row| number(row.each.metrics.as_ref().map(|figures| figures.tpot_ms))),
    ("output_tok_s", |row| row.output_tok_s.to_string()),
    ("most_users", |row| row.most_users.to_string()),
    ("most_output_tok_s", |row| row.most_output_tok_s.to_string()),
    ("max_context_tokens", |row| row.max_context_tokens.to_string()),
    ("watts", |row| number(row.watts)),
    ("buy_usd", |row| number(row.money.buy_usd)),
    ("owned_usd_per_hour", |row| number(row.money.owned_usd_per_hour)),
    ("rent_usd_per_hour", |row| number(row.money.rent_usd_per_hour)),
    ("usd_per_hour", |row| number(row.money.usd_per_hour)),
    ("usd_per_day", |row| number(row.money.usd_per_day)),
    ("usd_per_month", |row| number(row.money.usd_per_month)),
    ("usd_per_mtok", |row| number(row.money.usd_per_mtok)),
    ("usd_per_mtok_full", |row| number(row.money.usd_per_mtok_full)),
    ("standing", |row| row.standing.clone()),
    ("because", |row| row.because.clone().unwrap_or_default()),
];

/// One row per build, under a header.
pub fn builds(rows: &[Build]) -> String {
    let cells = |row: &Build| BUILD_COLUMNS.iter().map(|(_, cell)| cell(row)).collect();
    sheet::csv(BUILD_COLUMNS.iter().map(|(name, _)| *name), rows.iter().map(cells))
}
