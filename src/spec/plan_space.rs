//! Limits on the plans that are searched.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::degree::Degree;
use super::evidence::KIND_DEGREES;

/// Where prefill and decode run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum ServingMode {
    /// Both on the same devices.
    Aggregated,
    /// On different ones.
    Disaggregated,
}

/// Degrees that are 1 in every plan that is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct UnusedDegrees([bool; KIND_DEGREES.len()]);

impl UnusedDegrees {
    /// Whether these degrees, in the order of [`KIND_DEGREES`], use none of them.
    pub fn admits(&self, degrees: [u64; KIND_DEGREES.len()]) -> bool {
        self.0.iter().zip(degrees).all(|(unused, degree)| !unused || degree == 1)
    }
}

impl FromStr for UnusedDegrees {
    type Err = String;

    fn from_str(text: &str) -> Result<UnusedDegrees, String> {
        let mut unused = UnusedDegrees::default();
        for word in text.split([',', ' ']).filter(|word| !word.is_empty()) {
            let at = KIND_DEGREES.iter().position(|degree| degree.key().eq_ignore_ascii_case(word));
            let known = || KIND_DEGREES.map(Degree::key).join(", ");
            unused.0[at.ok_or_else(|| format!("`{word}`: expected some of {}", known()))?] = true;
        }
        Ok(unused)
    }
}

impl TryFrom<String> for UnusedDegrees {
    type Error = String;

    fn try_from(text: String) -> Result<UnusedDegrees, String> {
        text.parse()
    }
}

impl From<UnusedDegrees> for String {
    fn from(one: UnusedDegrees) -> String {
        one.to_string()
    }
}

impl fmt::Display for UnusedDegrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unused = KIND_DEGREES.iter().zip(self.0).filter(|(_, unused)| *unused);
        f.write_str(&unused.map(|(degree, _)| degree.key()).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_are_read_as_they_are_written() {
        let unused: UnusedDegrees = "cp, PP".parse().unwrap();
        assert_eq!(unused.to_string(), "pp,cp");
        assert!(unused.admits([8, 1, 2, 1, 4]) && !unused.admits([1, 2, 1, 1, 1]));
        assert!("tp,qp".parse::<UnusedDegrees>().unwrap_err().contains("`qp`"));
    }
}
