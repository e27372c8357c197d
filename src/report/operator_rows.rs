//! Operators as CSV: one row each, with units in the column names.

use super::breakdown::OperatorLine;
use super::detail::DeploymentDetail;
use super::shard::Shard;
use super::sheet;

/// Column name, and the function of its cell.
type OperatorColumn = (&'static str, fn(&OperatorLine) -> String);

static COLUMNS: &[OperatorColumn] = &[
    ("phase", |line| line.phase.name().to_string()),
    ("block", |line| line.block.clone()),
    ("operator", |line| line.module.clone()),
    ("part_of", |line| line.part_of.name().to_string()),
    ("layers", |line| line.layers.to_string()),
    ("bound_by", |line| line.class.name().to_string()),
    ("time_ms", |line| line.time_ms.to_string()),
    ("fused_ms", |line| line.fused_ms.map_or_else(String::new, |time| time.to_string())),
    ("sol_ms", |line| line.speed_of_light_ms.to_string()),
    ("efficiency", |line| line.efficiency.to_string()),
    ("flops", |line| line.flops.to_string()),
    ("bytes", |line| line.bytes.to_string()),
    ("wire_bytes", |line| line.wire_bytes.to_string()),
    ("shard", |line| line.shard.as_ref().map(Shard::text).unwrap_or_default()),
    ("shards", |line| shard(line, |shard| shard.shards)),
    ("replicas", |line| shard(line, |shard| shard.replicas)),
];

fn shard(line: &OperatorLine, of: fn(&Shard) -> u64) -> String {
    line.shard.as_ref().map_or_else(String::new, |shard| of(shard).to_string())
}

/// The operators of prefill and decode, in order.
pub fn operator_rows(detail: &DeploymentDetail) -> String {
    let lines = detail.phases.iter().flat_map(|phase| &phase.operators);
    let rows = lines.map(|line| COLUMNS.iter().map(|(_, cell)| cell(line)).collect());
    sheet::csv(COLUMNS.iter().map(|(name, _)| *name), rows)
}
