//! Every formula of the model: symbol, unit, reason, citation, and the module with its arithmetic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sheet;
use super::text::page::{BOLD, styled, wrap};
use crate::quantity::formula::Formula;

/// Unit of ratios and counts.
const DIMENSIONLESS: &str = "1";
/// Maximum line width, in characters.
const WIDTH: usize = 100;

/// A formula.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FormulaEntry {
    /// Its symbol, as `explain` shows it.
    pub symbol: String,
    /// Unit of its result.
    pub unit: String,
    /// The reason for its form.
    pub why: String,
    /// Its citation.
    pub source: String,
    /// The module with its arithmetic, e.g. `cost::collective`.
    pub module: String,
}

impl FormulaEntry {
    fn of(formula: &Formula) -> FormulaEntry {
        let module = formula.module.split_once("::").map_or(formula.module, |(_, inside)| inside);
        FormulaEntry {
            symbol: formula.symbol.to_owned(),
            unit: formula.unit.to_string(),
            why: formula.why.to_owned(),
            source: formula.cite.to_owned(),
            module: module.to_owned(),
        }
    }

    fn holds(&self, word: &str) -> bool {
        let all = [&self.symbol, &self.unit, &self.why, &self.source, &self.module];
        all.iter().any(|text| text.to_lowercase().contains(word))
    }
}

/// The formulas whose texts contain `word`, all if absent.
pub fn formulas(word: Option<&str>) -> Vec<FormulaEntry> {
    let all = [crate::cost::formulas(), crate::serving::formulas()].concat();
    let word = word.unwrap_or_default().to_lowercase();
    all.into_iter().map(FormulaEntry::of).filter(|one| one.holds(&word)).collect()
}

/// The formulas as text, by module.
pub fn formulas_text(formulas: &[FormulaEntry]) -> String {
    let mut text = String::new();
    for of_module in formulas.chunk_by(|a, b| a.module == b.module) {
        text.push_str(&format!("{}\n", styled(BOLD, &of_module[0].module)));
        for one in of_module {
            let head = if one.unit == DIMENSIONLESS { String::new() } else { format!(" [{}]", one.unit) };
            text.push_str(&wrap(&format!("{}{head}: {} ({})", one.symbol, one.why, one.source), WIDTH, 2, 6));
        }
    }
    text
}

pub fn formulas_csv(formulas: &[FormulaEntry]) -> String {
    let rows = formulas
        .iter()
        .map(|one| [&one.symbol, &one.unit, &one.why, &one.source, &one.module].map(String::clone).to_vec());
    sheet::csv(["symbol", "unit", "why", "source", "module"], rows)
}
