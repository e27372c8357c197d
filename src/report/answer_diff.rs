//! Two answers compared: the inputs that differ, and the part of each metric's change that each explains.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sheet::{CsvColumn, known, table};

/// The effect of one difference on a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DifferenceEffect {
    /// The column of the metric, with its unit.
    pub column: String,
    /// Change of the metric where only this input is that of B; null where this does not run.
    pub alone: Option<f64>,
    /// Its part of the whole change: the mean over all orders of the differences (Shapley value). The parts add up.
    /// Null for many differences, or where a mixture does not run.
    pub part: Option<f64>,
}

/// An input that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputDifference {
    /// Keys of the scenario that act only as one, e.g. `hardware`, `plan`.
    #[serde(alias = "keys")]
    pub names: Vec<String>,
    /// Their values in A; empty where absent.
    pub a: Vec<String>,
    /// Their values in B.
    pub b: Vec<String>,
    /// The effects.
    pub effects: Vec<DifferenceEffect>,
}

/// A metric of both answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricDifference {
    /// The column of the metric, with its unit.
    pub column: String,
    /// Its value in A; null where unknown.
    pub a: Option<f64>,
    /// Its value in B.
    pub b: Option<f64>,
}

/// Two answers compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerDiff {
    /// The inputs that differ.
    pub inputs: Vec<InputDifference>,
    /// The plans of A and B.
    pub plans: [String; 2],
    /// Whether every mixture of the inputs has its own best plan; else the plan is an input like the others.
    pub searched: bool,
    /// Every metric.
    pub metrics: Vec<MetricDifference>,
    /// Files of the catalogue that differ between two bundles.
    pub files: Vec<String>,
}

impl AnswerDiff {
    /// Every effect as a row of CSV.
    pub fn csv(&self) -> String {
        let columns: [CsvColumn<(&InputDifference, &DifferenceEffect)>; 6] = [
            ("input", |(input, _)| input.names.join(" + ")),
            ("a", |(input, _)| input.a.join(" + ")),
            ("b", |(input, _)| input.b.join(" + ")),
            ("metric", |(_, effect)| effect.column.clone()),
            ("alone", |(_, effect)| known(effect.alone)),
            ("part", |(_, effect)| known(effect.part)),
        ];
        let rows = self.inputs.iter().flat_map(|one| one.effects.iter().map(move |effect| (one, effect)));
        table(&columns, rows)
    }
}
