//! The flags of a problem, and its scenario file.

use std::path::PathBuf;

use super::defaults::UserDefaults;
use super::output::write_document;
use crate::request::permalink::{decode, is_link};
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::file::{self, FileSizeLimit};
use crate::store::resolved_scenario::ResolvedScenario;

#[derive(Clone, Debug, Default, clap::Args)]
pub struct ProblemArgs {
    #[command(flatten)]
    pub scenario: Scenario,
    /// Read the problem from a scenario file or a permalink; flags override it
    #[arg(id = "scenario", long = "scenario", value_name = "FILE|LINK", help_heading = "Scenario files")]
    pub file: Option<PathBuf>,
    /// Write the problem, flags and file merged, to a scenario file
    #[arg(long, value_name = "FILE", help_heading = "Scenario files")]
    pub save_scenario: Option<PathBuf>,
    /// The user's defaults for keys that neither sets.
    #[arg(skip)]
    pub defaults: UserDefaults,
}

impl ProblemArgs {
    /// Writes the scenario to the requested file, once its names resolve.
    pub fn save(&self, catalog: &Catalog, scenario: &Scenario) -> Result<(), Error> {
        let Some(path) = &self.save_scenario else { return Ok(()) };
        ResolvedScenario::resolve(catalog, scenario)?;
        write_document(path, scenario)
    }

    /// Flags merged over the file, and both over the user's defaults.
    pub fn scenario(&self, deployment: &Deployment) -> Result<Scenario, Error> {
        let filed: Scenario = match &self.file {
            Some(path) if !path.exists() && path.to_str().is_some_and(is_link) => {
                decode(path.to_str().unwrap_or_default())?.scenario
            }
            Some(path) => {
                let text = file::read_json(path, FileSizeLimit::Configuration)?;
                from_json(&text, "a scenario").map_err(|e| e.in_file(file::shown(path)))?
            }
            None => Scenario::default(),
        };
        let deployment = deployment.clone().or(filed.deployment.clone().unwrap_or_default());
        let merged = self.defaults.under(self.scenario.clone().or(filed), |_| true);
        Ok(Scenario { deployment: deployment.is_stated().then_some(deployment), ..merged })
    }
}
