//! Deployments, builds and operators as CSV: one row each, with units in the column names.

use super::breakdown::OperatorLine;
use super::detail::DeploymentDetail;
use super::inputs::ReportInputs;
use super::recommend::Build;
use super::result::{Intervals, MetricColumn, MetricsReport, OptimizeResult, ReportedDeployment};
use super::shard::Shard;
use super::sheet::{self, CsvColumn};
use crate::spec::degree::Degree;

/// The problem, equal in every row: tables of several problems can be joined.
static INPUTS: &[CsvColumn<ReportInputs>] = &[
    ("model", |inputs| inputs.model.clone()),
    ("hardware", |inputs| inputs.hardware.clone()),
    ("runtime", |inputs| inputs.runtime.clone()),
    ("isl", |inputs| inputs.isl.to_string()),
    ("osl", |inputs| inputs.osl.to_string()),
    ("objective", |inputs| inputs.objective.clone()),
];

/// A number, or an empty cell where it is unknown; only finite numbers are written.
pub(super) fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

macro_rules! degree {
    ($column:literal, $pool:ident, $degree:ident) => {
        ($column, |row| row.plan.$pool.plan.degree(Degree::$degree).to_string())
    };
}

macro_rules! held {
    ($column:literal, $at:ident) => {
        ($column, |row| number(row.memory.as_ref().and_then(|memory| Some(memory.interval?.$at))))
    };
}

static BEFORE_METRICS: &[CsvColumn<ReportedDeployment>] = &[
    ("mode", |row| row.plan.mode.clone()),
    ("plan", |row| row.plan.label.clone()),
    ("notation", |row| row.notation.clone()),
    degree!("tp", decode, Tp),
    degree!("pp", decode, Pp),
    degree!("dp", decode, Dp),
    degree!("cp", decode, Cp),
    degree!("dcp", decode, Dcp),
    degree!("ep", decode, Ep),
    ("replicas", |row| row.plan.decode.replicas.to_string()),
    degree!("prefill_tp", prefill, Tp),
    degree!("prefill_pp", prefill, Pp),
    degree!("prefill_dp", prefill, Dp),
    degree!("prefill_cp", prefill, Cp),
    degree!("prefill_ep", prefill, Ep),
    ("prefill_replicas", |row| row.plan.prefill.replicas.to_string()),
    ("weight_format", |row| row.weight_format.clone()),
    ("kv_format", |row| row.kv_format.clone()),
    ("concurrency", |row| row.concurrency.to_string()),
    ("devices", |row| row.devices.to_string()),
];

static AFTER_METRICS: &[CsvColumn<ReportedDeployment>] = &[
    ("context_bound", |row| row.context_bound.map_or_else(String::new, |bound| bound.words().to_owned())),
    ("memory_total_bytes", |row| number(row.memory.as_ref().map(|memory| memory.total_bytes))),
    held!("memory_total_bytes_p10", p10),
    held!("memory_total_bytes_p90", p90),
    ("memory_usable_bytes", |row| number(row.memory.as_ref().map(|memory| memory.usable_bytes))),
    ("least_host_bytes", |row| number(row.memory.as_ref().map(|memory| memory.least_host_bytes))),
    ("bottleneck", |row| row.bottleneck.clone().unwrap_or_default()),
];

/// Names of the metrics' columns; an interval follows its metric.
pub(super) fn metric_names() -> Vec<String> {
    let names = |(metric, _): &MetricColumn| {
        let column = metric.entry().column;
        let ends = Intervals::reader(*metric).map(|_| [format!("{column}_p10"), format!("{column}_p90")]);
        std::iter::once(column.to_string()).chain(ends.into_iter().flatten())
    };
    MetricsReport::COLUMNS.iter().flat_map(names).collect()
}

pub(super) fn metric_cells(metrics: Option<&MetricsReport>, intervals: Option<&Intervals>) -> Vec<String> {
    let cells = |(metric, value): &MetricColumn| {
        let value = number(metrics.and_then(value));
        let ends = Intervals::reader(*metric).map(|read| {
            let known = intervals.and_then(read);
            [number(known.map(|known| known.p10)), number(known.map(|known| known.p90))]
        });
        std::iter::once(value).chain(ends.into_iter().flatten())
    };
    MetricsReport::COLUMNS.iter().flat_map(cells).collect()
}

/// One row per deployment of a problem, under a header. Pools are aggregated replicas in both groups of degrees if the
/// plan is aggregated.
pub fn csv(rows: &[ReportedDeployment], inputs: &ReportInputs) -> String {
    table(rows.iter().map(|row| (row, true)), (&[], |_| vec![]), inputs)
}

/// A row, and whether it is on the front.
type FrontRow<'a> = (&'a ReportedDeployment, bool);

/// Columns of a front, and their cells.
const FRONT: [&str; 2] = ["chosen", "on_front"];

fn front_cells((row, on_front): FrontRow) -> Vec<String> {
    [row.chosen || !on_front, on_front].map(|cell| cell.to_string()).to_vec()
}

/// The front of a search, one row per deployment; before it the optimum where that is not on it.
pub fn front_csv(answer: &OptimizeResult) -> String {
    let outside = answer.outside_front().map(|best| (best, false));
    let front = answer.front.iter().map(|row| (row, true));
    table(outside.into_iter().chain(front), (&FRONT, front_cells), &answer.question)
}

fn table<'a>(
    rows: impl Iterator<Item = FrontRow<'a>>,
    (last, last_cells): (&[&'static str], fn(FrontRow) -> Vec<String>),
    inputs: &ReportInputs,
) -> String {
    let problem: Vec<String> = INPUTS.iter().map(|(_, cell)| cell(inputs)).collect();
    let cells = |row: FrontRow| {
        let own = |columns: &[CsvColumn<ReportedDeployment>]| -> Vec<String> {
            columns.iter().map(|(_, cell)| cell(row.0)).collect()
        };
        [
            problem.clone(),
            own(BEFORE_METRICS),
            metric_cells(row.0.metrics.as_ref(), row.0.intervals.as_ref()),
            own(AFTER_METRICS),
            last_cells(row),
        ]
        .concat()
    };
    let names = |columns: &'static [CsvColumn<ReportedDeployment>]| columns.iter().map(|(name, _)| *name);
    let metrics = metric_names();
    let header = INPUTS.iter().map(|(name, _)| *name).chain(names(BEFORE_METRICS));
    let header = header.chain(metrics.iter().map(String::as_str)).chain(names(AFTER_METRICS));
    sheet::csv(header.chain(last.iter().copied()), rows.map(cells))
}

static BUILDS: &[CsvColumn<Build>] = &[
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
    ("least_device_bytes", |row| number(row.each.memory.as_ref().map(|memory| memory.on_device()))),
    ("least_host_bytes", |row| number(row.each.memory.as_ref().map(|memory| memory.least_host_bytes))),
    ("watts", |row| number(row.watts)),
    ("price_basis", |row| row.money.basis.map_or_else(String::new, |basis| basis.name().into())),
    ("buy_usd", |row| number(row.money.buy_usd)),
    ("buy_usd_most", |row| number(row.money.most_usd())),
    ("devices_usd", |row| number(row.money.devices_usd)),
    ("hosts_usd", |row| number(row.money.hosts_usd)),
    ("network_usd", |row| number(row.money.network_usd)),
    ("usd_per_hour", |row| number(row.money.usd_per_hour)),
    ("usd_per_hour_most", |row| number(row.money.most_usd_per_hour())),
    ("usd_per_day", |row| number(row.money.usd_per_day)),
    ("usd_per_month", |row| number(row.money.usd_per_month)),
    ("tok_per_usd", |row| number(row.money.tok_per_usd)),
    ("usd_per_mtok", |row| number(row.money.usd_per_mtok)),
    ("usd_per_mtok_full", |row| number(row.money.usd_per_mtok_full)),
    ("standing", |row| row.standing.clone()),
    ("because", |row| row.because.clone().unwrap_or_default()),
];

/// One row per build, under a header.
pub fn builds<'a>(rows: impl IntoIterator<Item = &'a Build>) -> String {
    sheet::table(BUILDS, rows)
}

static OPERATORS: &[CsvColumn<OperatorLine>] = &[
    ("phase", |line| line.phase.name().to_string()),
    ("block", |line| line.block.clone()),
    ("operator", |line| line.module.clone()),
    ("part_of", |line| line.part_of.name().to_string()),
    ("layers", |line| line.layers.to_string()),
    ("bound_by", |line| line.class.name().to_string()),
    ("time_ms", |line| line.time_ms.to_string()),
    ("fused_ms", |line| sheet::known(line.fused_ms)),
    ("sol_ms", |line| line.speed_of_light_ms.to_string()),
    ("efficiency", |line| line.efficiency.to_string()),
    ("flops", |line| line.flops.to_string()),
    ("bytes", |line| line.bytes.to_string()),
    ("wire_bytes", |line| line.wire_bytes.to_string()),
    ("shard", |line| line.shard.as_ref().map(Shard::text).unwrap_or_default()),
    ("shards", |line| sheet::known(line.shard.as_ref().map(|shard| shard.shards))),
    ("replicas", |line| sheet::known(line.shard.as_ref().map(|shard| shard.replicas))),
];

/// The operators of prefill and decode, in order.
pub fn operators(detail: &DeploymentDetail) -> String {
    sheet::table(OPERATORS, detail.phases.iter().flat_map(|phase| &phase.operators))
}
