//! `detect`: this machine as devices, host and a file that `--hardware` reads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use crate::report::machine::MachineReport;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

/// A request of `detect`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DetectRequest {
    /// Measure the memory bandwidth of the host, for about a second.
    pub stream: bool,
}

/// Detects the machine that the catalogue has access to.
///
/// # Errors
/// It has access to none, or a file of the catalogue is faulty.
pub fn detect(
    catalog: &Catalog,
    request: &DetectRequest,
    _: &RequestControl,
) -> Result<MachineReport, Error> {
    catalog.detect(request.stream)
}
