//! `verify`: checks a saved result against its own problem.

pub mod rerun;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestControl;
use crate::report::verify::Verified;
use crate::spec::error::Error;
use crate::spec::limits::{SAMPLE, SEED};
use crate::store::catalog::Catalog;
use rerun::Rerun;

/// Default number of random deployments.
pub const DEFAULT_SAMPLE: u64 = 2000;
/// Default seed.
pub const DEFAULT_SEED: u64 = 1;

/// A request of `verify`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyRequest {
    /// The saved result of `optimize`, `place`, `fleet` or `recommend`.
    pub result: Value,
    /// Number of random deployments.
    #[serde(default = "sample")]
    pub sample: u64,
    /// Seed of the random deployments.
    #[serde(default = "seed")]
    pub seed: u64,
}

fn sample() -> u64 {
    DEFAULT_SAMPLE
}

fn seed() -> u64 {
    DEFAULT_SEED
}

/// Solves the problem of the result again and checks every row.
///
/// # Errors
/// It is not a result, or its problem no longer resolves.
pub fn verify(
    catalog: &Catalog,
    request: &VerifyRequest,
    _control: &RequestControl,
) -> Result<Verified, Error> {
    SAMPLE.check_whole("sample", request.sample)?;
    SEED.check_whole("seed", request.seed)?;
    let again = Rerun::of(catalog, &request.result)?;
    Ok(again.check(catalog, &request.result, (request.sample, request.seed)))
}
