//! One stated deployment: the degrees of its instances, as flags or as a file. Knows nothing of what they split.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::limits::{DEGREE, whole};

/// Declares the flags of one pool of instances; they differ in their prefix alone.
macro_rules! degrees {
    ($(#[$doc:meta])* $Name:ident, $prefix:literal, $heading:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
        #[serde(deny_unknown_fields, default)]
        pub struct $Name {
            /// Tensor parallel: heads and dense widths
            #[arg(id = concat!($prefix, "tp"), long = concat!($prefix, "tp"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading)]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub tp: Option<u64>,
            /// Pipeline parallel: layers
            #[arg(id = concat!($prefix, "pp"), long = concat!($prefix, "pp"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading)]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub pp: Option<u64>,
            /// Attention data parallel: sequences
            #[arg(id = concat!($prefix, "dp"), long = concat!($prefix, "dp"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading)]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub dp: Option<u64>,
            /// Context parallel: tokens of the prompt and of the cache
            #[arg(id = concat!($prefix, "cp"), long = concat!($prefix, "cp"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading)]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub cp: Option<u64>,
            /// Expert parallel: experts
            #[arg(id = concat!($prefix, "ep"), long = concat!($prefix, "ep"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading)]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub ep: Option<u64>,
            /// Tensor parallel inside experts [default: tp x cp x dp / ep]
            #[arg(id = concat!($prefix, "moe-tp"), long = concat!($prefix, "moe-tp"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading)]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub moe_tp: Option<u64>,
            /// Sequence parallel: norms and residuals split by token between the tp ranks
            #[arg(id = concat!($prefix, "sp"), long = concat!($prefix, "sp"), num_args = 0..=1, default_missing_value = "true", value_name = "true|false", help_heading = $heading)]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub sp: Option<bool>,
            /// Instances of that shape
            #[arg(id = concat!($prefix, "replicas"), long = concat!($prefix, "replicas"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading)]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub replicas: Option<u64>,
        }

        impl $Name {
            /// Whether anything is stated.
            pub fn is_stated(&self) -> bool {
                *self != $Name::default()
            }

            /// These degrees, and where one is unset, the other's.
            pub fn or(self, other: $Name) -> $Name {
                $Name {
                    tp: self.tp.or(other.tp),
                    pp: self.pp.or(other.pp),
                    dp: self.dp.or(other.dp),
                    cp: self.cp.or(other.cp),
                    ep: self.ep.or(other.ep),
                    moe_tp: self.moe_tp.or(other.moe_tp),
                    sp: self.sp.or(other.sp),
                    replicas: self.replicas.or(other.replicas),
                }
            }
        }
    };
}

degrees!(
    /// Instances that prefill and decode.
    Degrees, "", "The deployment"
);
degrees!(
    /// Instances that only prefill.
    PrefillDegrees, "prefill-", "Its prefill pool, where prefill and decode are apart"
);
degrees!(
    /// Instances that only decode.
    DecodeDegrees, "decode-", "Its decode pool, where prefill and decode are apart"
);

impl From<PrefillDegrees> for Degrees {
    fn from(pool: PrefillDegrees) -> Degrees {
        let PrefillDegrees { tp, pp, dp, cp, ep, moe_tp, sp, replicas } = pool;
        Degrees { tp, pp, dp, cp, ep, moe_tp, sp, replicas }
    }
}

impl From<DecodeDegrees> for Degrees {
    fn from(pool: DecodeDegrees) -> Degrees {
        let DecodeDegrees { tp, pp, dp, cp, ep, moe_tp, sp, replicas } = pool;
        Degrees { tp, pp, dp, cp, ep, moe_tp, sp, replicas }
    }
}

/// A deployment as it is stated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct Deployment {
    /// Instances that prefill and decode.
    #[command(flatten)]
    #[serde(skip_serializing_if = "is_default")]
    pub both: Degrees,
    /// Instances that only prefill.
    #[command(flatten)]
    #[serde(skip_serializing_if = "is_default")]
    pub prefill: PrefillDegrees,
    /// Instances that only decode.
    #[command(flatten)]
    #[serde(skip_serializing_if = "is_default")]
    pub decode: DecodeDegrees,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// How prefill and decode share the devices.
#[derive(Clone, Debug, PartialEq)]
pub enum Pools {
    /// The same instances do both.
    Aggregated(Degrees),
    /// Instances of their own.
    Disaggregated {
        /// Those that prefill.
        prefill: Degrees,
        /// Those that decode.
        decode: Degrees,
    },
}

impl Deployment {
    /// Whether anything is stated.
    pub fn is_stated(&self) -> bool {
        *self != Deployment::default()
    }

    /// This deployment, and where it says nothing, the other.
    pub fn or(self, other: Deployment) -> Deployment {
        Deployment {
            both: self.both.or(other.both),
            prefill: self.prefill.or(other.prefill),
            decode: self.decode.or(other.decode),
        }
    }

    /// The pools that it amounts to.
    ///
    /// # Errors
    /// Degrees of both kinds are stated, or of one pool only, or a degree is zero.
    pub fn pools(&self) -> Result<Pools, Error> {
        let apart = self.prefill.is_stated() || self.decode.is_stated();
        if apart && self.both.is_stated() {
            return Err(Error::new(
                "deployment",
                "degrees of instances that do both, and of a pool of their own",
                "one or the other",
                "state --prefill-… and --decode-… degrees, or --tp … alone",
            ));
        }
        if apart && !(self.prefill.is_stated() && self.decode.is_stated()) {
            let (there, missing) =
                if self.prefill.is_stated() { ("prefill", "decode") } else { ("decode", "prefill") };
            return Err(Error::new(
                "deployment",
                format!("a {there} pool alone"),
                "a prefill pool and a decode pool",
                format!("state --{missing}-tp and the like as well"),
            ));
        }
        if apart {
            let prefill = positive(self.prefill.clone().into(), "prefill-")?;
            let decode = positive(self.decode.clone().into(), "decode-")?;
            return Ok(Pools::Disaggregated { prefill, decode });
        }
        Ok(Pools::Aggregated(positive(self.both.clone(), "")?))
    }
}

fn positive(degrees: Degrees, prefix: &str) -> Result<Degrees, Error> {
    let Degrees { tp, pp, dp, cp, ep, moe_tp, replicas, .. } = degrees;
    let all = [
        ("tp", tp),
        ("pp", pp),
        ("dp", dp),
        ("cp", cp),
        ("ep", ep),
        ("moe-tp", moe_tp),
        ("replicas", replicas),
    ];
    for (name, value) in all {
        value.map_or(Ok(()), |value| DEGREE.check_whole(&format!("{prefix}{name}"), value))?;
    }
    Ok(degrees)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tp(tp: u64) -> Option<u64> {
        Some(tp)
    }

    #[test]
    fn one_pool_or_two_but_no_mixture() {
        let both = Degrees { tp: tp(4), ..Degrees::default() };
        let prefill = PrefillDegrees { tp: tp(2), ..PrefillDegrees::default() };
        let decode = DecodeDegrees { tp: tp(8), ..DecodeDegrees::default() };
        let of = |both: &Degrees, prefill: &PrefillDegrees, decode: &DecodeDegrees| {
            Deployment { both: both.clone(), prefill: prefill.clone(), decode: decode.clone() }.pools()
        };
        let (b, p, d) = (Degrees::default(), PrefillDegrees::default(), DecodeDegrees::default());
        assert_eq!(of(&both, &p, &d), Ok(Pools::Aggregated(both.clone())));
        assert!(matches!(of(&b, &prefill, &decode), Ok(Pools::Disaggregated { .. })));
        assert!(of(&both, &prefill, &decode).unwrap_err().found.contains("both"));
        assert!(of(&b, &prefill, &d).unwrap_err().fix.contains("--decode-tp"));
        assert!(of(&b, &p, &decode).unwrap_err().fix.contains("--prefill-tp"));
    }

    #[test]
    fn a_degree_is_at_least_one_and_believable() {
        for wrong in [0, u64::MAX] {
            let decode = DecodeDegrees { pp: tp(wrong), ..DecodeDegrees::default() };
            let prefill = PrefillDegrees { pp: tp(1), ..PrefillDegrees::default() };
            let error = Deployment { decode, prefill, ..Deployment::default() }.pools().unwrap_err();
            assert_eq!(error.key, "decode-pp");
        }
    }
}
