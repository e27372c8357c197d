//! The checks of a saved result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sheet::{CsvColumn, table};

/// The checks of a saved result.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// Whether every check passed.
    pub holds: bool,
    /// The checks.
    pub checks: Vec<CheckResult>,
    /// Seed of the sample; null without one.
    pub seed: Option<u64>,
    /// Remarks that are no faults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A check.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// Description of the check.
    pub what: String,
    /// Number of items checked.
    pub of: u64,
    /// Faults; empty if the check passes.
    pub faults: Vec<String>,
}

/// Maximum number of faults listed per check.
const LISTED: usize = 5;

impl Verified {
    /// The report of `checks`.
    pub fn of(checks: Vec<CheckResult>, seed: impl Into<Option<u64>>) -> Verified {
        let holds = checks.iter().all(|check| check.faults.is_empty());
        Verified { holds, checks, seed: seed.into(), notes: vec![] }
    }

    /// A row for each check.
    pub fn csv(&self) -> String {
        let columns: [CsvColumn<CheckResult>; 4] = [
            ("check", |check| check.what.clone()),
            ("of", |check| check.of.to_string()),
            ("holds", |check| check.faults.is_empty().to_string()),
            ("faults", |check| check.faults.join("; ")),
        ];
        table(&columns, &self.checks)
    }
}

impl CheckResult {
    /// The check of `of` items with its faults; only the first of many are listed.
    pub fn new(what: impl Into<String>, of: usize, mut faults: Vec<String>) -> CheckResult {
        let more = faults.len().saturating_sub(LISTED);
        faults.truncate(LISTED);
        if more > 0 {
            faults.push(format!("and {more} more"));
        }
        CheckResult { what: what.into(), of: of as u64, faults }
    }
}
