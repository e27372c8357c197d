//! One given deployment: the degrees of its replicas, as flags or as a file.

use crate::spec::offload::OffloadPart;
use crate::spec::role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::limits::DEGREE;
#[cfg(feature = "cli")]
use super::limits::whole;
use super::notation::{PlanText, PoolText};

/// Declares the flags of one pool; the pools differ only in their prefix.
macro_rules! degrees {
    ($(#[$doc:meta])* $Name:ident, $prefix:literal, $heading:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[cfg_attr(feature = "cli", derive(clap::Args))]
        #[serde(deny_unknown_fields, default)]
        pub struct $Name {
            /// Tensor parallelism: attention heads and dense layers
            #[cfg_attr(feature = "cli", arg(id = concat!($prefix, "tp"), long = concat!($prefix, "tp"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub tp: Option<u64>,
            /// Pipeline parallelism: layers
            #[cfg_attr(feature = "cli", arg(id = concat!($prefix, "pp"), long = concat!($prefix, "pp"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub pp: Option<u64>,
            /// Attention data parallelism: sequences
            #[cfg_attr(feature = "cli", arg(id = concat!($prefix, "dp"), long = concat!($prefix, "dp"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub dp: Option<u64>,
            /// Context parallelism: tokens of the prompt and of the KV cache
            #[cfg_attr(feature = "cli", arg(id = concat!($prefix, "cp"), long = concat!($prefix, "cp"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub cp: Option<u64>,
            /// Decode context parallelism: tokens of the KV cache, inside the tp ranks
            #[cfg_attr(feature = "cli", arg(id = concat!($prefix, "dcp"), long = concat!($prefix, "dcp"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub dcp: Option<u64>,
            /// Expert parallelism: experts
            #[cfg_attr(feature = "cli", arg(id = concat!($prefix, "ep"), long = concat!($prefix, "ep"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub ep: Option<u64>,
            /// Tensor parallelism inside experts [default: tp x cp x dp / ep]
            #[cfg_attr(feature = "cli", arg(id = concat!($prefix, "moe-tp"), long = concat!($prefix, "moe-tp"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub moe_tp: Option<u64>,
            /// Tensor parallelism of dense feed-forward layers and shared experts [default: tp]
            #[cfg_attr(feature = "cli", arg(id = concat!($prefix, "ffn-tp"), long = concat!($prefix, "ffn-tp"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub ffn_tp: Option<u64>,
            /// Tensor parallelism of the embedding and the LM head [default: tp]
            #[cfg_attr(feature = "cli", arg(id = concat!($prefix, "vocab-tp"), long = concat!($prefix, "vocab-tp"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub vocab_tp: Option<u64>,
            /// Sequence parallelism: norms and residuals sharded by token over the tp ranks
            #[cfg_attr(feature = "cli", arg(id = concat!($prefix, "sp"), long = concat!($prefix, "sp"), num_args = 0..=1, default_missing_value = "true", value_name = "true|false", help_heading = $heading))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub sp: Option<bool>,
            /// Layers of each pipeline stage, first to last, e.g. 20,12 [default: balanced]
            #[cfg_attr(feature = "cli", arg(id = concat!($prefix, "stages"), long = concat!($prefix, "stages"), value_name = "N,N,...", value_delimiter = ',', help_heading = $heading))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub stages: Option<Vec<u32>>,
            /// Number of replicas or workers
            #[cfg_attr(feature = "cli", arg(id = concat!($prefix, "replicas"), long = concat!($prefix, "replicas"), value_name = "N", value_parser = whole(&DEGREE), allow_negative_numbers = true, help_heading = $heading))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub replicas: Option<u64>,
        }

        impl $Name {
            /// Whether any degree is set.
            pub fn is_stated(&self) -> bool {
                *self != $Name::default()
            }

            /// These degrees; unset ones come from `other`.
            pub fn or(self, other: $Name) -> $Name {
                $Name {
                    tp: self.tp.or(other.tp),
                    pp: self.pp.or(other.pp),
                    dp: self.dp.or(other.dp),
                    cp: self.cp.or(other.cp),
                    dcp: self.dcp.or(other.dcp),
                    ep: self.ep.or(other.ep),
                    moe_tp: self.moe_tp.or(other.moe_tp),
                    ffn_tp: self.ffn_tp.or(other.ffn_tp),
                    vocab_tp: self.vocab_tp.or(other.vocab_tp),
                    sp: self.sp.or(other.sp),
                    stages: self.stages.or(other.stages),
                    replicas: self.replicas.or(other.replicas),
                }
            }
        }
    };
}

degrees!(
    /// Aggregated replicas.
    Degrees, "", "Deployment"
);
degrees!(
    /// Prefill workers.
    PrefillDegrees, "prefill-", "Prefill pool (disaggregated)"
);
degrees!(
    /// Decode workers.
    DecodeDegrees, "decode-", "Decode pool (disaggregated)"
);

impl From<PrefillDegrees> for Degrees {
    fn from(pool: PrefillDegrees) -> Degrees {
        let PrefillDegrees { tp, pp, dp, cp, dcp, ep, moe_tp, ffn_tp, vocab_tp, sp, stages, replicas } = pool;
        Degrees { tp, pp, dp, cp, dcp, ep, moe_tp, ffn_tp, vocab_tp, sp, stages, replicas }
    }
}

impl From<DecodeDegrees> for Degrees {
    fn from(pool: DecodeDegrees) -> Degrees {
        let DecodeDegrees { tp, pp, dp, cp, dcp, ep, moe_tp, ffn_tp, vocab_tp, sp, stages, replicas } = pool;
        Degrees { tp, pp, dp, cp, dcp, ep, moe_tp, ffn_tp, vocab_tp, sp, stages, replicas }
    }
}

impl From<Degrees> for PrefillDegrees {
    fn from(pool: Degrees) -> PrefillDegrees {
        let Degrees { tp, pp, dp, cp, dcp, ep, moe_tp, ffn_tp, vocab_tp, sp, stages, replicas } = pool;
        PrefillDegrees { tp, pp, dp, cp, dcp, ep, moe_tp, ffn_tp, vocab_tp, sp, stages, replicas }
    }
}

impl From<Degrees> for DecodeDegrees {
    fn from(pool: Degrees) -> DecodeDegrees {
        let Degrees { tp, pp, dp, cp, dcp, ep, moe_tp, ffn_tp, vocab_tp, sp, stages, replicas } = pool;
        DecodeDegrees { tp, pp, dp, cp, dcp, ep, moe_tp, ffn_tp, vocab_tp, sp, stages, replicas }
    }
}

/// A given deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Deployment {
    /// Aggregated replicas.
    #[cfg_attr(feature = "cli", command(flatten))]
    #[serde(skip_serializing_if = "is_default")]
    pub both: Degrees,
    /// Prefill workers.
    #[cfg_attr(feature = "cli", command(flatten))]
    #[serde(skip_serializing_if = "is_default")]
    pub prefill: PrefillDegrees,
    /// Decode workers.
    #[cfg_attr(feature = "cli", command(flatten))]
    #[serde(skip_serializing_if = "is_default")]
    pub decode: DecodeDegrees,
    /// Whole plan in one line, as in `plan.notation` of a result
    #[cfg_attr(feature = "cli", arg(long, value_name = "PLAN", help_heading = HEADING))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Offloaded part, as far as device memory is too small: layers, experts or kv
    #[cfg_attr(feature = "cli", arg(long, value_enum, value_name = "layers|experts|kv", hide_possible_values = true, help_heading = HEADING))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload_part: Option<OffloadPart>,
}

#[cfg(feature = "cli")]
const HEADING: &str = "Deployment";

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Deployment {
    /// Whether anything is set.
    pub fn is_stated(&self) -> bool {
        *self != Deployment::default()
    }

    /// This deployment; unset fields come from `other`.
    pub fn or(self, other: Deployment) -> Deployment {
        Deployment {
            both: self.both.or(other.both),
            prefill: self.prefill.or(other.prefill),
            decode: self.decode.or(other.decode),
            plan: self.plan.or(other.plan),
            offload_part: self.offload_part.or(other.offload_part),
        }
    }

    /// The plan of the deployment; an empty one is one replica on one device.
    ///
    /// # Errors
    /// The deployment is contradictory, has only one of the two pools, or a number is out of range.
    pub fn text(&self) -> Result<PlanText, Error> {
        let apart = self.prefill.is_stated() || self.decode.is_stated();
        if let Some(plan) = &self.plan {
            if apart || self.both.is_stated() {
                let fix = "omit --plan, or the degrees: the plan contains them";
                return Err(Error::new("plan", "both a plan and degrees", "one or the other", fix));
            }
            let plan: PlanText = plan.parse()?;
            if self.offload_part.is_some() && plan.offload.is_some() && self.offload_part != plan.offload {
                let found = "an offload in the plan, and another as a flag";
                return Err(Error::new("offload-part", found, "one of them", "omit --offload-part"));
            }
            return Ok(PlanText { offload: plan.offload.or(self.offload_part), ..plan });
        }
        if apart && self.both.is_stated() {
            return Err(Error::new(
                "deployment",
                "degrees of aggregated replicas and of a disaggregated pool",
                "one or the other",
                "set --prefill-… and --decode-… degrees, or only --tp …",
            ));
        }
        if apart && !(self.prefill.is_stated() && self.decode.is_stated()) {
            let (there, missing) =
                if self.prefill.is_stated() { ("prefill", "decode") } else { ("decode", "prefill") };
            return Err(Error::new(
                "deployment",
                format!("only a {there} pool"),
                "a prefill pool and a decode pool",
                format!("add --{missing}-tp"),
            ));
        }
        let pool = |work, degrees| PoolText { role: work, degrees, concurrency: None };
        let pools = if apart {
            let prefill = positive(self.prefill.clone().into(), "prefill-")?;
            let decode = positive(self.decode.clone().into(), "decode-")?;
            vec![pool(Role::Prefill, prefill), pool(Role::Decode, decode)]
        } else {
            vec![pool(Role::Aggregated, positive(self.both.clone(), "")?)]
        };
        Ok(PlanText { pools, offload: self.offload_part, ..PlanText::default() })
    }
}

fn positive(degrees: Degrees, prefix: &str) -> Result<Degrees, Error> {
    let Degrees { tp, pp, dp, cp, dcp, ep, moe_tp, ffn_tp, vocab_tp, replicas, .. } = degrees;
    let all = [
        ("tp", tp),
        ("pp", pp),
        ("dp", dp),
        ("cp", cp),
        ("dcp", dcp),
        ("ep", ep),
        ("moe-tp", moe_tp),
        ("ffn-tp", ffn_tp),
        ("vocab-tp", vocab_tp),
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
            let (both, prefill, decode) = (both.clone(), prefill.clone(), decode.clone());
            Deployment { both, prefill, decode, ..Deployment::default() }.text()
        };
        let (b, p, d) = (Degrees::default(), PrefillDegrees::default(), DecodeDegrees::default());
        let works = |plan: Result<PlanText, Error>| -> Vec<Role> {
            plan.unwrap().pools.iter().map(|pool| pool.role).collect()
        };
        assert_eq!(works(of(&both, &p, &d)), [Role::Aggregated]);
        assert_eq!(works(of(&b, &prefill, &decode)), [Role::Prefill, Role::Decode]);
        assert!(of(&both, &prefill, &decode).unwrap_err().found.contains("aggregated replicas"));
        assert!(of(&b, &prefill, &d).unwrap_err().fix.contains("--decode-tp"));
        assert!(of(&b, &p, &decode).unwrap_err().fix.contains("--prefill-tp"));
    }

    #[test]
    fn a_plan_is_in_one_line_or_in_degrees() {
        let plan = Some("2 x tp4, offload kv".to_string());
        let line = Deployment { plan, ..Deployment::default() };
        let text = line.text().unwrap();
        assert_eq!((text.pools[0].degrees.replicas, text.offload), (Some(2), Some(OffloadPart::Kv)));
        let both = Degrees { tp: tp(4), ..Degrees::default() };
        assert_eq!(Deployment { both, ..line.clone() }.text().unwrap_err().key, "plan");
        let other = Deployment { offload_part: Some(OffloadPart::Layers), ..line };
        assert_eq!(other.text().unwrap_err().key, "offload-part");
    }

    #[test]
    fn a_degree_is_at_least_one_and_believable() {
        for wrong in [0, u64::MAX] {
            let decode = DecodeDegrees { pp: tp(wrong), ..DecodeDegrees::default() };
            let prefill = PrefillDegrees { pp: tp(1), ..PrefillDegrees::default() };
            let error = Deployment { decode, prefill, ..Deployment::default() }.text().unwrap_err();
            assert_eq!(error.key, "decode-pp");
        }
    }
}
