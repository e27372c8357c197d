//! The glossary.

use std::borrow::Cow;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::table::table;
use crate::spec::objective::{METRICS, MetricEntry};

/// A term and its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GlossaryTerm {
    /// The term.
    pub term: Cow<'static, str>,
    /// Its meaning.
    pub meaning: Cow<'static, str>,
}

/// Terms other than metrics.
static WORDS: LazyLock<Vec<GlossaryTerm>> =
    LazyLock::new(|| serde_json::from_str(include_str!("help.json")).expect("the file is a list of terms"));

/// Every term, metrics first.
pub fn glossary() -> Vec<GlossaryTerm> {
    let metric = |entry: &MetricEntry| GlossaryTerm {
        term: Cow::Borrowed(entry.column),
        meaning: Cow::Borrowed(entry.meaning),
    };
    METRICS.iter().map(metric).chain(WORDS.iter().cloned()).collect()
}

pub fn glossary_text(terms: &[GlossaryTerm]) -> String {
    table(&["word", "meaning"], terms.iter().map(|term| [term.term.to_string(), term.meaning.to_string()]))
}
