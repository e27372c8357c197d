//! The programme behind a fleet, whole: unknowns with bounds, costs and values, conditions with coefficients. Solves
//! nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::search::programme::{Column, Domain, Programme, Row, SHARE, Sense, Values};

/// What an unknown may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A whole number.
    Whole,
    /// Any number.
    Share,
}

/// An unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unknown {
    /// What it is called.
    pub name: String,
    /// What it may be.
    pub kind: Kind,
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
pub struct Condition {
    /// What it is called.
    pub name: String,
    /// Indices of the unknowns.
    pub columns: Vec<usize>,
    /// The coefficient of each.
    pub coefficients: Vec<i64>,
    /// How the sum compares with the bound.
    pub sense: Compared,
    /// The right side.
    pub bound: i64,
}

/// How both sides of a condition compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Compared {
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
pub struct Stated {
    /// The unknowns.
    pub columns: Vec<Unknown>,
    /// The conditions.
    pub rows: Vec<Condition>,
}

/// `programme` with the values of an answer.
pub fn stated(programme: &Programme, values: Option<&Values>) -> Stated {
    let column = |(at, column): (usize, &Column)| {
        let value = values.and_then(|values| values.get(at)).map(|value| *value as f64);
        let (kind, (least, most), parts) = match column.domain {
            Domain::Whole { least, most } => (Kind::Whole, (least, most), 1.0),
            Domain::Share => (Kind::Share, (0, 1), SHARE as f64),
        };
        let value = value.map(|value| value / parts);
        Unknown { name: column.name.clone(), kind, least, most, cost: column.cost, value }
    };
    let row = |row: &Row| Condition {
        name: row.name.clone(),
        columns: row.terms.iter().map(|(at, _)| *at).collect(),
        coefficients: row.terms.iter().map(|(_, factor)| *factor).collect(),
        sense: match row.sense {
            Sense::AtMost => Compared::AtMost,
            Sense::AtLeast => Compared::AtLeast,
            Sense::Equal => Compared::Equal,
        },
        bound: row.bound,
    };
    Stated {
        columns: programme.columns.iter().enumerate().map(column).collect(),
        rows: programme.rows.iter().map(row).collect(),
    }
}
