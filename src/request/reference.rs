//! Reference: schemas and glossary.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{REQUESTS, RequestControl, value};
use crate::report::comparison::ComparisonReport;
use crate::report::fleet::FleetResult;
use crate::report::formulas::{self, FormulaEntry};
use crate::report::help::{self, GlossaryTerm};
use crate::report::place::PlacementResult;
use crate::report::recommend::report::RecommendReport;
use crate::report::rendered::Answer;
use crate::report::result::OptimizeResult;
use crate::report::schema;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

/// A request of `schema`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SchemaRequest {
    /// Name of the schema.
    pub name: String,
}

/// A request of `glossary`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlossaryRequest {}

/// A request of `formulas`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FormulasRequest {
    /// A word that the symbol, unit, reason, citation or module contains; every formula if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<String>,
}

/// Ending of the name of a request's schema.
const REQUEST: &str = "-request";
/// Ending of the name of an answer's schema; it may be left out where no file has the name.
const ANSWER: &str = "-answer";

/// Earlier names of schemas of answers, and their questions.
const EARLIER: [(&str, &str); 5] = [
    ("result", OptimizeResult::QUESTION),
    ("comparison", ComparisonReport::QUESTION),
    ("recommend-hardware", RecommendReport::QUESTION),
    ("fleet-result", FleetResult::QUESTION),
    ("placement", PlacementResult::QUESTION),
];

pub fn schema_names() -> impl Iterator<Item = String> {
    let files = schema::SCHEMAS.iter().map(|(name, _)| (*name).to_owned());
    let of_questions = |ending| REQUESTS.iter().map(move |entry| format!("{}{ending}", entry.name));
    files.chain(of_questions(REQUEST)).chain(of_questions(ANSWER))
}

/// Further names that [`schema_of`] takes: answers by their question alone, and earlier names.
pub fn other_schema_names() -> impl Iterator<Item = &'static str> {
    REQUESTS.iter().map(|entry| entry.name).chain(EARLIER.into_iter().map(|(name, _)| name))
}

pub fn schema_of(name: &str) -> Option<Schema> {
    let known = |name: &str| super::entry(name).ok();
    let of_request = || Some((known(name.strip_suffix(REQUEST)?)?.request)());
    let of_answer = || {
        let name = name.strip_suffix(ANSWER).unwrap_or(name);
        let earlier = EARLIER.iter().find(|(earlier, _)| *earlier == name).map(|(_, question)| *question);
        Some((known(earlier.unwrap_or(name))?.report)())
    };
    schema::schema(name).or_else(of_request).or_else(of_answer)
}

pub fn schema(_: &Catalog, request: &SchemaRequest, _: &RequestControl) -> Result<Value, Error> {
    let name = request.name.as_str();
    schema_of(name).map(|schema| value(&schema)).ok_or_else(|| {
        let names: Vec<String> = schema_names().collect();
        Error::new("schema", format!("`{name}`"), format!("one of {}", names.join(", ")), "correct the name")
    })
}

pub fn glossary(
    _: &Catalog,
    _request: &GlossaryRequest,
    _: &RequestControl,
) -> Result<Vec<GlossaryTerm>, Error> {
    Ok(help::glossary())
}

pub fn formulas(
    _: &Catalog,
    request: &FormulasRequest,
    _: &RequestControl,
) -> Result<Vec<FormulaEntry>, Error> {
    Ok(formulas::formulas(request.word.as_deref()))
}
