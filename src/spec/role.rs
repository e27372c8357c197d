//! The role of a pool of workers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Role of a pool of workers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Prefill and decode.
    #[default]
    Aggregated,
    /// Prefill only.
    Prefill,
    /// Decode only.
    Decode,
}

impl Role {
    /// Every role, aggregated first.
    pub const EACH: [Role; 3] = [Role::Aggregated, Role::Prefill, Role::Decode];

    /// Its name in files and paths.
    pub fn name(self) -> &'static str {
        match self {
            Role::Aggregated => "aggregated",
            Role::Prefill => "prefill",
            Role::Decode => "decode",
        }
    }

    /// The beginning of its flags.
    pub fn flag_prefix(self) -> &'static str {
        match self {
            Role::Aggregated => "",
            Role::Prefill => "prefill-",
            Role::Decode => "decode-",
        }
    }
}
