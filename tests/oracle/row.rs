//! A row of a table of oracles: what was given, what came out, in which convention.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A case that somebody worked out.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// Its name.
    pub id: String,
    /// Where it comes from.
    pub source: String,
    /// Dimensions, `name=value` between semicolons.
    pub input: String,
    /// What was worked out.
    pub metric: String,
    /// The number, checked independently.
    pub independent_value: String,
    /// Whether it is right, and in which convention.
    pub verdict: String,
}

/// The table beside this file, and the shared one where it is.
///
/// Under `CI=true` the shared one must be there only where its folder is.
pub fn table(path: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows = reader.deserialize().map(|row| row.unwrap_or_else(|e| panic!("{}: {e}", path.display())));
    rows.collect()
}

/// The folder of shared oracles, if it is there.
pub fn shared(file: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/oracles").join(file);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: {} is not there", path.display());
    None
}

impl Row {
    /// Worked out as our formulas would.
    pub fn is_right(&self) -> bool {
        self.verdict.starts_with("right")
    }

    /// Every query attends to every key, as if nothing were masked.
    pub fn non_causal(&self) -> bool {
        self.verdict.contains("non-causal")
    }

    /// The dimensions. `as 2` stands for those of the second attention case.
    pub fn given(&self) -> Given {
        const SECOND: &str = "MHA d=4096;h=32;dh=128;B=1;S_past=2048;decode;";
        let input = self.input.replacen("as 2,", SECOND, 1);
        let parts = input.split([';', ' ']).map(str::trim).filter(|part| !part.is_empty());
        let pair = |part: &str| match part.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (part.to_owned(), String::new()),
        };
        Given(parts.map(pair).collect())
    }

    /// The number, and half of its last digit.
    pub fn value(&self) -> (f64, f64) {
        let value: f64 = self.independent_value.parse().unwrap();
        let decimals = self.independent_value.split_once('.').map_or(0, |(_, digits)| digits.len());
        let last = if decimals == 0 { 0.0 } else { 0.501 * 10f64.powi(-(decimals as i32)) };
        (value, last)
    }
}

/// Dimensions by name.
pub struct Given(BTreeMap<String, String>);

impl Given {
    /// One that may be left out.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(|value| value.parse().ok())
    }

    /// One that is 1 where it is left out.
    pub fn or_one(&self, name: &str) -> f64 {
        self.get(name).unwrap_or(1.0)
    }

    /// The first that is there.
    pub fn any(&self, names: &[&str]) -> f64 {
        let found = names.iter().find_map(|name| self.get(name));
        found.unwrap_or_else(|| panic!("none of {names:?} among {:?}", self.0))
    }

    /// Whether a word stands there, by itself or as a value.
    pub fn says(&self, word: &str) -> bool {
        self.0.contains_key(word) || self.0.values().any(|value| value == word)
    }
}
