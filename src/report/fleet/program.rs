//! The programme behind a fleet, whole: unknowns with bounds, costs and values, conditions with coefficients. Solves
//! nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::search::mip::{MipColumn, MipModel, MipRow, MipValues, SHARE, Sense, VariableDomain};

/// What an unknown may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VariableKind {
    /// A whole number.
    Whole,
    /// Any number.
    Share,
}

/// An unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedVariable {
    /// What it is called.
    pub name: String,
    /// What it may be.
    pub kind: VariableKind,
    /// At least.
    pub least: i64,
    /// At most.
    pub most: i64,
    /// What one of it costs: thousandths of a dollar an hour, devices, or for throughput minus its tokens, the
    /// largest bucket's being a million.
    pub cost: i64,
    /// In the answer; shares to a billionth. Null where there is none.
    pub value: Option<f64>,
}

/// A condition: the sum of unknowns times their coefficients, against a bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedConstraint {
    /// What it is called.
    pub name: String,
    /// Indices of the unknowns.
    pub columns: Vec<usize>,
    /// The coefficient of each.
    pub coefficients: Vec<i64>,
    /// How the sum compares with the bound.
    pub sense: ConstraintSense,
    /// The right side.
    pub bound: i64,
}

/// How both sides of a condition compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConstraintSense {
    /// At most the bound.
    #[serde(rename = "<=")]
    AtMost,
    /// At least the bound.
    #[serde(rename = ">=")]
    AtLeast,
    /// The bound.
    #[serde(rename = "=")]
    Equal,
}

/// Unknowns, conditions, and a sum of costs that is made small.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedProgram {
    /// The unknowns.
    pub columns: Vec<ReportedVariable>,
    /// The conditions.
    pub rows: Vec<ReportedConstraint>,
}

/// `programme` with the values of an answer.
pub fn stated(programme: &MipModel, values: Option<&MipValues>) -> ReportedProgram {
    let column = |(at, column): (usize, &MipColumn)| {
        let value = values.and_then(|values| values.get(at)).map(|value| *value as f64);
        let (kind, (least, most), parts) = match column.domain {
            VariableDomain::Whole { least, most } => (VariableKind::Whole, (least, most), 1.0),
            VariableDomain::Share => (VariableKind::Share, (0, 1), SHARE as f64),
        };
        let value = value.map(|value| value / parts);
        ReportedVariable { name: column.name.clone(), kind, least, most, cost: column.cost, value }
    };
    let row = |row: &MipRow| ReportedConstraint {
        name: row.name.clone(),
        columns: row.terms.iter().map(|(at, _)| *at).collect(),
        coefficients: row.terms.iter().map(|(_, factor)| *factor).collect(),
        sense: match row.sense {
            Sense::AtMost => ConstraintSense::AtMost,
            Sense::AtLeast => ConstraintSense::AtLeast,
            Sense::Equal => ConstraintSense::Equal,
        },
        bound: row.bound,
    };
    ReportedProgram {
        columns: programme.columns.iter().enumerate().map(column).collect(),
        rows: programme.rows.iter().map(row).collect(),
    }
}
