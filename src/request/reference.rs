//! Reference: schemas and glossary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{REQUESTS, RequestControl, value};
use crate::report::formulas::{self, FormulaEntry};
use crate::report::help::{self, GlossaryTerm};
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

/// Names of all schemas: files, results, and requests.
pub fn schema_names() -> impl Iterator<Item = String> {
    let files = schema::SCHEMAS.iter().map(|(name, _)| (*name).to_owned());
    files.chain(REQUESTS.iter().map(|entry| format!("{}{REQUEST}", entry.name)))
}

/// The JSON Schema called `name`.
///
/// # Errors
/// There is none.
pub fn schema(
    _catalog: &Catalog,
    request: &SchemaRequest,
    _control: &RequestControl,
) -> Result<Value, Error> {
    let name = request.name.as_str();
    let of_request = || {
        let entry = name.strip_suffix(REQUEST).and_then(|name| super::entry(name).ok())?;
        Some((entry.request)())
    };
    let known = schema::schema(name).or_else(of_request);
    known.map(|schema| value(&schema)).ok_or_else(|| {
        let names: Vec<String> = schema_names().collect();
        Error::new("schema", format!("`{name}`"), format!("one of {}", names.join(", ")), "correct the name")
    })
}

/// The terms of the reports.
///
/// # Errors
/// None.
pub fn glossary(
    _catalog: &Catalog,
    _request: &GlossaryRequest,
    _control: &RequestControl,
) -> Result<Vec<GlossaryTerm>, Error> {
    Ok(help::glossary())
}

/// The formulas of the model.
///
/// # Errors
/// None.
pub fn formulas(
    _catalog: &Catalog,
    request: &FormulasRequest,
    _control: &RequestControl,
) -> Result<Vec<FormulaEntry>, Error> {
    Ok(formulas::formulas(request.word.as_deref()))
}
