//! A deployment as a workbook: live formulas down to inputs that can be changed.

use serde_json::Value;

use super::build_candidate::candidate;
use super::given_plan::with_plan;
use super::inputs::report_inputs;
use super::overrides::override_effects;
use crate::report::answer::estimate_deployment;
use crate::report::workbook::workbook as written;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;

/// The workbook of the plan in one line `notation`, as the bytes of an `.xlsx` file.
///
/// # Errors
/// The problem or the plan is faulty, or the plan cannot run.
pub fn workbook(catalog: &Catalog, scenario: &Scenario, notation: &str) -> Result<Vec<u8>, Error> {
    let plan = Deployment { plan: Some(notation.to_owned()), ..Deployment::default() };
    let scenario = Scenario { deployment: Some(plan), ..scenario.clone() };
    let (resolved, plan) = with_plan(catalog, &scenario)?;
    let problem = resolved.problem()?;
    let candidate = candidate(&problem, &plan)?;
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

/// The workbook of an answer to the request `name`; none where it has no workbook or no deployment.
///
/// # Errors
/// As [`workbook`].
pub fn workbook_of_answer(catalog: &Catalog, name: &str, answer: &Value) -> Result<Option<Vec<u8>>, Error> {
    let pointer = match name {
        "optimize" => "/best/notation",
        "estimate" => "/notation",
        _ => return Ok(None),
    };
    let (scenario, notation) = (answer.get("scenario"), answer.pointer(pointer).and_then(Value::as_str));
    let (Some(scenario), Some(notation)) = (scenario, notation) else { return Ok(None) };
    let scenario: Scenario = from_json(&scenario.to_string(), "a scenario")?;
    workbook(catalog, &scenario, notation).map(Some)
}
