//! Rows of a saved result, each estimated again from its plan.

use super::laws::laws;
use super::{CheckResult, differences, faults};
use crate::report::reporter::Reporter;
use crate::report::result::ReportedDeployment;
use crate::request::build_candidate::candidate;
use crate::search::outcome::EvaluatedCandidate;
use crate::search::problem::Problem;

/// The deployment of a row, or its differences from the saved values.
pub(super) fn again(
    reporter: &Reporter,
    row: &ReportedDeployment,
) -> Result<EvaluatedCandidate, Vec<String>> {
    let problem = reporter.problem();
    let read = row.notation.parse().and_then(|plan| candidate(problem, &plan));
    let candidate =
        read.map_err(|fault| vec![format!("notation: saved {}; {} expected", fault.found, fault.expected)])?;
    // Which row of a front is the optimum is checked with the front.
    let fresh = ReportedDeployment { chosen: row.chosen, ..reporter.deployment(&candidate) };
    let mut all = laws(problem, row);
    all.extend(faults(differences("", row, &fresh)));
    all.extend(fresh.violations);
    if !all.is_empty() {
        return Err(all);
    }
    let point = candidate.measure(problem, &reporter.instances(&candidate));
    Ok(EvaluatedCandidate { candidate, point })
}

/// Re-evaluates rows: the valid ones, and a check.
pub(super) fn evaluated<'a>(
    problem: &Problem,
    what: &str,
    rows: impl IntoIterator<Item = &'a ReportedDeployment>,
) -> (Vec<EvaluatedCandidate>, CheckResult) {
    let reporter = Reporter::new(problem);
    let (mut count, mut found, mut faults) = (0, Vec::new(), Vec::new());
    for row in rows {
        match again(&reporter, row) {
            Ok(one) => found.push(one),
            Err(why) => faults.extend(why.into_iter().map(|why| format!("{what} {count}: {why}"))),
        }
        count += 1;
    }
    let check = format!("{what}: re-evaluated, valid, fits in memory, meets the SLOs");
    (found, CheckResult::new(check, count, faults))
}
