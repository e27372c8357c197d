//! A deployment as a workbook: live formulas down to inputs that can be changed.

use super::given_plan::planned_problem;
use super::inputs::report_inputs;
use super::overrides::override_effects;
use crate::report::answer::estimate_deployment;
use crate::report::workbook::workbook as written;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// The workbook of the plan in one line `notation`, as the bytes of an `.xlsx` file.
///
/// # Errors
/// The problem or the plan is faulty, or the plan cannot run.
pub fn workbook(catalog: &Catalog, scenario: &Scenario, notation: &str) -> Result<Vec<u8>, Error> {
    let plan = Deployment { plan: Some(notation.to_owned()), ..Deployment::default() };
    let scenario = Scenario { deployment: Some(plan), ..scenario.clone() };
    let (resolved, problem, candidate) = planned_problem(catalog, &scenario)?;
    let question = report_inputs(&resolved, &problem);
    let with = estimate_deployment(&problem, &candidate);
    if with.metrics.is_none() {
        let found = with.violations.first().map_or("a plan that cannot run", String::as_str);
        let fix = "answer it in another format to see every reason";
        return Err(Error::new("plan", found, "a plan that can run", fix));
    }
    let overrides = override_effects(catalog, &scenario, &with);
    written(&problem, &question, &candidate, overrides).map_err(|fault| {
        let fix = "use JSON, and report this";
        Error::new("format", fault.to_string(), "a workbook within the limits of the file format", fix)
    })
}
