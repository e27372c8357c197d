//! Scenarios put to the built-in catalogues.

use std::sync::LazyLock;

use mantile::search::problem::Problem;
use mantile::spec::error::Error;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::resolved_scenario::ResolvedScenario;

/// The built-in catalogues, read once.
pub static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::default);

/// The question that a scenario puts.
pub fn ask(scenario: &Scenario) -> Result<Problem, Error> {
    ResolvedScenario::resolve(&CATALOG, scenario)?.problem()
}

/// A model on some hardware, nothing else stated.
pub fn on(model: &str, hardware: &str) -> Scenario {
    Scenario { model: Some(model.into()), hardware: Some(hardware.into()), ..Scenario::default() }
}
