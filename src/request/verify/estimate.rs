//! Verification of a saved estimate: the same deployment, evaluated again.

use serde_json::Value;

use super::{CheckResult, RandomSample, Rerun, differences, faults, no_problem, question, read};
use crate::report::result::EstimateResult;
use crate::report::verify::Verified;
use crate::request::UNCONTROLLED;
use crate::request::estimate::{EstimateRequest, estimate};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

/// The estimate of the same deployment, made again.
pub struct EstimateRerun {
    fresh: EstimateResult,
}

impl EstimateRerun {
    pub fn solve(catalog: &Catalog, saved: &EstimateResult) -> Result<EstimateRerun, Error> {
        let scenario = saved.scenario.clone().ok_or_else(no_problem)?;
        Ok(EstimateRerun { fresh: estimate(catalog, &EstimateRequest::of(scenario), &UNCONTROLLED)? })
    }
}

impl Rerun for EstimateRerun {
    fn check(&self, saved: &Value, sample: RandomSample) -> Result<Verified, Error> {
        let saved: EstimateResult = read(saved)?;
        // The better plans next to a launch command are the answer of another question.
        let saved = EstimateResult { command: None, ..saved };
        let fresh = &self.fresh;
        let same = |what: &str, found| CheckResult::new(what, 1, faults(found));
        let row = differences("", &saved.candidate, &fresh.candidate);
        let detail = differences("detail", &saved.detail, &fresh.detail);
        let checks = vec![
            question(faults(differences("question", &saved.question, &fresh.question))),
            same("deployment: plan, metrics, memory and intervals, from the formulas", row),
            same("detail: operators, memory, constraints, from the formulas", detail),
            same("launch: commands and files", differences("launch", &saved.launch, &fresh.launch)),
            same(
                "audit: assumptions, overrides and their effects",
                differences("audit", &saved.audit, &fresh.audit),
            ),
        ];
        Ok(Verified::of(checks, sample.seed))
    }
}
