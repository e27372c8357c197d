//! How many points of a Pareto front a result lists.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of points without a request. More make a file that few programs draw.
pub const DEFAULT_FRONT_POINTS: usize = 1000;

/// Maximum number of listed points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "another value than a number of points or `all`")]
pub enum FrontPoints {
    /// At most this number.
    AtMost(usize),
    /// All of them.
    Every(Every),
}

/// The word for all points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Every {
    /// All of them.
    All,
}

impl FrontPoints {
    pub fn most(self) -> usize {
        match self {
            FrontPoints::AtMost(most) => most,
            FrontPoints::Every(Every::All) => usize::MAX,
        }
    }
}

impl From<usize> for FrontPoints {
    fn from(most: usize) -> FrontPoints {
        FrontPoints::AtMost(most)
    }
}

impl FromStr for FrontPoints {
    type Err = String;

    fn from_str(text: &str) -> Result<FrontPoints, String> {
        match text {
            "all" => Ok(FrontPoints::Every(Every::All)),
            _ => text.parse().map(FrontPoints::AtMost).map_err(|_| "a whole number, or `all`".to_string()),
        }
    }
}
