//! The integer program of a fleet: variables with bounds, costs and values, constraints with coefficients. Solves
//! nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::search::mip::{MipColumn, MipModel, MipRow, MipValues, SHARE, Sense, VariableKind};

/// A variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedVariable {
    /// Name.
    pub name: String,
    /// Domain.
    pub kind: VariableKind,
    /// Lower bound.
    pub least: i64,
    /// Upper bound.
    pub most: i64,
    /// Cost per unit: thousandths of a dollar per hour, devices, or for throughput minus its tokens, the
    /// largest bucket's being a million.
    pub cost: i64,
    /// Value in the solution, shares rounded to 1e-9; null without a solution.
    pub value: Option<f64>,
}

/// A constraint: the sum of variables times their coefficients, compared with a bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedConstraint {
    /// Name.
    pub name: String,
    /// Indices of the variables.
    pub columns: Vec<usize>,
    /// The coefficient of each.
    pub coefficients: Vec<i64>,
    /// Comparison of the sum with the bound.
    pub sense: Sense,
    /// The right side.
    pub bound: i64,
}

/// Variables, constraints, and a sum of costs to minimise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedProgram {
    /// The variables.
    pub columns: Vec<ReportedVariable>,
    /// The constraints.
    pub rows: Vec<ReportedConstraint>,
}

/// `program` with the values of a solution.
pub fn report_program(program: &MipModel, values: Option<&MipValues>) -> ReportedProgram {
    let column = |(at, column): (usize, &MipColumn)| {
        let value = values.and_then(|values| values.get(at)).map(|value| *value as f64);
        let ((least, most), parts) = match column.kind {
            VariableKind::Whole => (column.bounds, 1.0),
            VariableKind::Share => ((0, 1), SHARE as f64),
        };
        let value = value.map(|value| value / parts);
        ReportedVariable {
            name: column.name.clone(),
            kind: column.kind,
            least,
            most,
            cost: column.cost,
            value,
        }
    };
    let row = |row: &MipRow| ReportedConstraint {
        name: row.name.clone(),
        columns: row.terms.iter().map(|(at, _)| *at).collect(),
        coefficients: row.terms.iter().map(|(_, factor)| *factor).collect(),
        sense: row.sense,
        bound: row.bound,
    };
    ReportedProgram {
        columns: program.columns.iter().enumerate().map(column).collect(),
        rows: program.rows.iter().map(row).collect(),
    }
}
