//! The flags of a problem, and its scenario file.

use std::path::PathBuf;

use super::output::json;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::file;
use crate::store::resolved_scenario::ResolvedScenario;

/// A problem as flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct QuestionArgs {
    /// The flags.
    #[command(flatten)]
    pub stated: Scenario,
    /// Read the problem from a scenario file; flags override it
    #[arg(id = "scenario", long = "scenario", value_name = "FILE", help_heading = "Scenario files")]
    pub file: Option<PathBuf>,
    /// Write the problem, flags and file merged, to a scenario file
    #[arg(long, value_name = "FILE", help_heading = "Scenario files")]
    pub save_scenario: Option<PathBuf>,
}

impl QuestionArgs {
    /// The problem, with `deployment` from the flags.
    ///
    /// # Errors
    /// A file or a name in it is faulty.
    pub fn resolve(&self, catalog: &Catalog, deployment: &Deployment) -> Result<ResolvedScenario, Error> {
        self.resolved(catalog, &self.scenario(deployment)?)
    }

    /// The problem of flags and a file that are already read: a pipe is read once.
    ///
    /// # Errors
    /// A name is faulty, or the scenario cannot be written.
    pub fn resolved(&self, catalog: &Catalog, scenario: &Scenario) -> Result<ResolvedScenario, Error> {
        let problem = ResolvedScenario::resolve(catalog, scenario)?;
        if let Some(path) = &self.save_scenario {
            file::write(path, &json(scenario))?;
        }
        Ok(problem)
    }

    /// Flags merged over the file.
    ///
    /// # Errors
    /// The file is faulty.
    pub fn scenario(&self, deployment: &Deployment) -> Result<Scenario, Error> {
        let filed: Scenario = match &self.file {
            Some(path) => {
                from_json(&file::read(path)?, "a scenario").map_err(|e| e.in_file(file::shown(path)))?
            }
            None => Scenario::default(),
        };
        let deployment = deployment.clone().or(filed.deployment.clone().unwrap_or_default());
        let together = self.stated.clone().or(filed);
        Ok(Scenario { deployment: deployment.is_stated().then_some(deployment), ..together })
    }
}
