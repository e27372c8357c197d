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
        let resolved = faults(differences("question", &saved.question, &self.fresh.question));
        let row = faults(differences("", &saved.candidate, &self.fresh.candidate));
        let detail = faults(differences("detail", &saved.detail, &self.fresh.detail));
        let launch = faults(differences("launch", &saved.launch, &self.fresh.launch));
        let assumed = faults(differences("audit", &saved.audit, &self.fresh.audit));
        let checks = vec![
            question(resolved),
            CheckResult::new("deployment: plan, metrics, memory and intervals, from the formulas", 1, row),
            CheckResult::new("detail: operators, memory, constraints, from the formulas", 1, detail),
            CheckResult::new("launch: commands and files", 1, launch),
            CheckResult::new("audit: assumptions, overrides and their effects", 1, assumed),
        ];
        Ok(Verified::of(checks, sample.seed))
    }
}
