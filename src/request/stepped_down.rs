//! The scenario that runs with the least loss: in device memory with the usual weight formats, else in fewer bits, else
//! with a part in host memory.

use super::RequestControl;
use crate::search::run::run;
use crate::spec::error::Error;
use crate::spec::format::NumberFormat;
use crate::spec::offload::OffloadPolicy;
use crate::spec::precision::{EIGHT_BITS, FOUR_BITS};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::ResolvedScenario;

/// The first scenario that runs; the last one tried where none does. A stated weight format stays.
pub fn stepped_down(
    catalog: &Catalog,
    scenario: &Scenario,
    control: &RequestControl,
) -> Result<Scenario, Error> {
    let with = |format: Option<&str>, offload| Scenario {
        weight_format: format.map(str::to_owned).or_else(|| scenario.weight_format.clone()),
        offload: Some(offload),
        ..scenario.clone()
    };
    let plain = with(None, OffloadPolicy::Never);
    let resolved = ResolvedScenario::resolve(catalog, &plain)?;
    let mut smaller: Vec<(f64, &str)> = Vec::new();
    if scenario.weight_format.is_none() {
        for id in &resolved.runtime.weight_formats {
            let bits = catalog.load::<NumberFormat>(id)?.bits_per_element.value * 8.0;
            if (FOUR_BITS.0..EIGHT_BITS.0).contains(&bits) {
                smaller.push((bits, id));
            }
        }
    }
    // Equal bits in the order of the runtime: sorting is stable.
    smaller.sort_by(|a, b| a.0.total_cmp(&b.0));
    let offloaded: Vec<Scenario> =
        smaller.iter().map(|(_, id)| with(Some(id), OffloadPolicy::Always)).collect();
    smaller.sort_by(|a, b| b.0.total_cmp(&a.0));
    let in_memory = smaller.iter().map(|(_, id)| with(Some(id), OffloadPolicy::Never));
    let last = with(None, OffloadPolicy::Always);
    let attempts = std::iter::once(plain).chain(in_memory).chain(offloaded);
    for attempt in attempts {
        if runs(catalog, &attempt, control)? {
            return Ok(attempt);
        }
    }
    Ok(last)
}

/// Whether a deployment exists. A format that the model or the devices refuse does not run.
fn runs(catalog: &Catalog, scenario: &Scenario, control: &RequestControl) -> Result<bool, Error> {
    match ResolvedScenario::resolve(catalog, scenario).and_then(|resolved| resolved.problem()) {
        Ok(problem) => Ok(run(&problem, &control.search).best.is_some()),
        Err(fault) if fault.key == "weight-format" => Ok(false),
        Err(fault) => Err(fault),
    }
}
