//! The part of an operator on one device.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::graph::operator::Operator;
use crate::plan::parallel::ParallelPlan;
use crate::plan::shard::Task;
use crate::plan::sharding::TokenShare;
use crate::quantity::count::{Count, Origin};

/// A dimension of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShardDimension {
    /// Its name in the operator.
    pub name: String,
    /// In the whole model.
    pub whole: u64,
    /// On one device.
    pub here: u64,
}

/// The part of an operator on one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shard {
    /// Dimensions of the operator.
    pub shape: Vec<ShardDimension>,
    /// Number of different shards.
    pub shards: u64,
    /// Devices of a pipeline stage with the same shard.
    pub replicas: u64,
    /// Of these, the devices that divide the tokens of an attention rank, or 1.
    pub token_shards: u64,
    /// Attention ranks whose tokens a device works on.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub attention_ranks: u64,
}

fn one() -> u64 {
    1
}

fn is_one(ranks: &u64) -> bool {
    *ranks == 1
}

impl Shard {
    /// The shard of a computation; `None` for a collective.
    pub fn of(task: &Task, plan: &ParallelPlan) -> Option<Shard> {
        let Task::Compute { operator, tokens, .. } = task else { return None };
        let dims = operator.dims();
        let (shape, parts): (Vec<_>, Vec<u64>) =
            dims.iter().map(|(name, count)| divided(name, count)).unzip();
        // Experts are divided twice, by different ranks; of other operators, the same ranks divide all dimensions.
        let twice = matches!(operator, Operator::Experts(_));
        let shards = if twice { parts.iter().product() } else { parts.into_iter().max().unwrap_or(1) };
        Some(Shard {
            shape,
            shards,
            replicas: plan.stage_devices() / shards.max(1),
            token_shards: if let TokenShare::Divided(ranks) = *tokens { ranks } else { 1 },
            attention_ranks: if let TokenShare::Pooled(ranks) = *tokens { ranks } else { 1 },
        })
    }

    /// Whether all dimensions of the operator are on each device.
    pub fn is_whole(&self) -> bool {
        self.shape.iter().all(|dim| dim.whole == dim.here)
    }

    /// `8192x28672 -> 8192x3584` for a matrix; for other operators, the dimensions that are divided, or `whole`.
    pub fn text(&self) -> String {
        if let [rows, columns] = &self.shape[..]
            && MATRIX.contains(&[rows.name.as_str(), columns.name.as_str()])
        {
            let whole = format!("{}x{}", rows.whole, columns.whole);
            let here = format!("{}x{}", rows.here, columns.here);
            let matrix = if self.is_whole() { whole } else { format!("{whole} -> {here}") };
            return [matrix].into_iter().chain(self.tokens()).collect::<Vec<_>>().join(", ");
        }
        let divided = self.shape.iter().filter(|dim| dim.whole != dim.here);
        let one = |dim: &ShardDimension| format!("{} {} -> {}", dim.name, dim.whole, dim.here);
        let mut parts: Vec<String> = divided.map(one).collect();
        if self.is_whole() {
            parts.push("whole".to_string());
        }
        parts.extend(self.tokens());
        parts.join(", ")
    }

    /// `tokens / 4` or `tokens x 2`, where they are not those of the attention rank.
    fn tokens(&self) -> Option<String> {
        match (self.token_shards, self.attention_ranks) {
            (1, 1) => None,
            (1, ranks) => Some(format!("tokens x {ranks}")),
            (shards, _) => Some(format!("tokens / {shards}")),
        }
    }
}

/// Dimensions of operators that are one matrix.
const MATRIX: [[&str; 2]; 2] = [["input", "output"], ["vocab", "hidden"]];

/// A dimension with the number of ranks that divide it.
pub fn divided(name: &str, count: &Count) -> (ShardDimension, u64) {
    let (whole, parts) = match count.origin {
        Origin::Split { whole, parts, .. } => (whole, parts),
        Origin::Config(_)
        | Origin::ClassDefault(_)
        | Origin::Derived(_)
        | Origin::Plan(_)
        | Origin::Workload(_) => (count.value, 1),
    };
    (ShardDimension { name: name.to_string(), whole, here: count.value }, parts)
}
