//! `validate`: compares predictions with measurements.

mod figures;
pub mod given;
mod home_machine;
mod kinds;
mod layout;
pub mod predict;
pub mod simulated;
pub mod table;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use crate::spec::error::Error;
use crate::spec::evidence::MeasuredKind;
use crate::spec::nearness::LeftOut;
use crate::store::catalog::Catalog;
use crate::validate::peers::{PeerPrediction, peer_scores};
use crate::validate::summary::{DroppedRow, GroupBy, ScoredRow, Validation, validation};
use given::GivenRunFacts;
use kinds::measured_kinds;
use table::{MeasuredTable, ReadTables, usable_rows};

/// A request of `validate`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ValidateRequest {
    /// Tables of measurements.
    pub tables: Vec<MeasuredTable>,
    /// Facts that runs of `bench` and benchmark files of other tools do not state.
    #[serde(skip_serializing_if = "GivenRunFacts::is_empty")]
    pub given: GivenRunFacts,
    /// Uses no table: reports the held-out errors stored in the profile of this runtime.
    pub left_out: Option<String>,
    /// Grouping keys.
    pub by: Vec<GroupBy>,
    /// Reports the kinds of deployments that the rows measured, in place of errors: those of `hardware/measured/kinds.json`.
    pub kinds: bool,
    /// Uses only rows of this mode: `agg`, `disagg`, `single-stream` …
    pub mode: Option<String>,
}

/// A report of `validate`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ValidateReport {
    /// Errors of predictions.
    Validation(Box<Validation>),
    /// Held-out errors of a runtime's profile.
    LeftOut(Vec<LeftOut>),
    /// Kinds of deployments.
    Kinds(Vec<MeasuredKind>),
}

/// Predicts every row and reports the errors.
///
/// # Errors
/// A table has no usable row, or the runtime has no fitted profile.
pub fn validate(
    catalog: &Catalog,
    request: &ValidateRequest,
    _: &RequestControl,
) -> Result<ValidateReport, Error> {
    Ok(match &request.left_out {
        Some(runtime) => ValidateReport::LeftOut(left_out(catalog, runtime)?),
        None if request.kinds => ValidateReport::Kinds(measured_kinds(catalog, &selected(request)?.rows)),
        None => scored(catalog, request)?.report(&request.by),
    })
}

/// The rows of a request with their predictions, and what else was read.
pub struct ScoredTables {
    pub rows: Vec<ScoredRow>,
    dropped: Vec<DroppedRow>,
    peers: Vec<PeerPrediction>,
}

impl ScoredTables {
    /// The errors, by groups.
    pub fn report(self, by: &[GroupBy]) -> ValidateReport {
        let found = validation(&self.rows, by);
        let peers = peer_scores(&self.peers);
        ValidateReport::Validation(Box::new(Validation { dropped: self.dropped, peers, ..found }))
    }
}

pub fn scored(catalog: &Catalog, request: &ValidateRequest) -> Result<ScoredTables, Error> {
    let ReadTables { rows, dropped, peers } = selected(request)?;
    Ok(ScoredTables { rows: predict::predict(catalog, rows), dropped, peers })
}

fn selected(request: &ValidateRequest) -> Result<ReadTables, Error> {
    let mut read = usable_rows(&request.tables, &request.given)?;
    if let Some(mode) = &request.mode {
        read.rows.retain(|row| row.mode == *mode);
    }
    Ok(read)
}

fn left_out(catalog: &Catalog, name: &str) -> Result<Vec<LeftOut>, Error> {
    let (runtime, _) = catalog.runtime_by_id(name)?;
    let errors = runtime.serving_fit.as_ref().map(|fit| fit.left_out.clone()).unwrap_or_default();
    if errors.is_empty() {
        let found = format!("none in the profile of {}", runtime.id);
        let fix = "name a fitted runtime: `mantile-opt validate --left-out vllm`";
        return Err(Error::new("left_out", found, "held-out errors of a fit", fix));
    }
    Ok(errors)
}
