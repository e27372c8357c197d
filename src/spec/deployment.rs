//! One given deployment: the degrees of its replicas, as flags or as a file.

use crate::spec::offload::OffloadPart;
use crate::spec::role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::degree::{Degree, Degrees};
use super::error::Error;
use super::limits::DEGREE;
use super::notation::{PlanText, PoolText};

/// A given deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Deployment {
    /// Aggregated replicas.
    #[serde(skip_serializing_if = "is_default")]
    pub both: Degrees,
    /// Prefill workers.
    #[serde(skip_serializing_if = "is_default")]
    pub prefill: Degrees,
    /// Decode workers.
    #[serde(skip_serializing_if = "is_default")]
    pub decode: Degrees,
    /// Whole plan in one line, as in `plan.notation` of a result
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Offloaded part, as far as device memory is too small: layers, experts or kv
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload_part: Option<OffloadPart>,
}

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
        let disaggregated = self.prefill.is_stated() || self.decode.is_stated();
        if let Some(plan) = &self.plan {
            if disaggregated || self.both.is_stated() {
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
        if disaggregated && self.both.is_stated() {
            return Err(Error::new(
                "deployment",
                "degrees of aggregated replicas and of a disaggregated pool",
                "one or the other",
                "set --prefill-… and --decode-… degrees, or only --tp …",
            ));
        }
        if disaggregated && !(self.prefill.is_stated() && self.decode.is_stated()) {
            let (there, missing) =
                if self.prefill.is_stated() { ("prefill", "decode") } else { ("decode", "prefill") };
            return Err(Error::new(
                "deployment",
                format!("only a {there} pool"),
                "a prefill pool and a decode pool",
                format!("add --{missing}-tp"),
            ));
        }
        let pool = |(role, degrees): (Role, &Degrees)| -> Result<PoolText, Error> {
            positive(role, degrees)?;
            Ok(PoolText { role, degrees: degrees.clone(), concurrency: None })
        };
        let stated = match disaggregated {
            true => vec![(Role::Prefill, &self.prefill), (Role::Decode, &self.decode)],
            false => vec![(Role::Aggregated, &self.both)],
        };
        let pools = stated.into_iter().map(pool).collect::<Result<_, _>>()?;
        Ok(PlanText { pools, offload: self.offload_part, ..PlanText::default() })
    }
}

fn positive(role: Role, degrees: &Degrees) -> Result<(), Error> {
    let stated = Degree::stated().map(|degree| (degree.flag(), degrees.get(degree)));
    for (name, value) in stated.chain([("replicas".to_owned(), degrees.replicas)]) {
        let Some(value) = value else { continue };
        DEGREE.check_whole(&format!("{}{name}", role.flag_prefix()), value)?;
    }
    Ok(())
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
        let prefill = Degrees { tp: tp(2), ..Degrees::default() };
        let decode = Degrees { tp: tp(8), ..Degrees::default() };
        let of = |both: &Degrees, prefill: &Degrees, decode: &Degrees| {
            let (both, prefill, decode) = (both.clone(), prefill.clone(), decode.clone());
            Deployment { both, prefill, decode, ..Deployment::default() }.text()
        };
        let (b, p, d) = (Degrees::default(), Degrees::default(), Degrees::default());
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
            let decode = Degrees { pp: tp(wrong), ..Degrees::default() };
            let prefill = Degrees { pp: tp(1), ..Degrees::default() };
            let error = Deployment { decode, prefill, ..Deployment::default() }.text().unwrap_err();
            assert_eq!(error.key, "decode-pp");
        }
    }
}
