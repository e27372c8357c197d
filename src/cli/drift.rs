//! `drift`: errors of the predictions of stored runs, with alarms.

use serde::Serialize;

use super::output::OutputArgs;
use super::runs::StoreArgs;
use super::{CliError, ExitStatus};
use crate::request::drift::{DriftReport, drift};
use crate::request::retrain::{RetrainedRuntime, published, retrain, retrained_text};
use crate::store::catalog::Catalog;
use crate::store::runs::RunStore;

const AFTER: &str = "\
Each run of the store is predicted as `validate` does, with the newest version of its runtime's calibration in the store, \
else with the profile of the catalogue. Medians are those of the newest 30 runs of a runtime on a device with models of a \
size. From 10 runs on, a median error above 12 % of decode, 18 % of TTFT or 7 % of memory raises an alarm.

Exit code 2 where an alarm is on, after a retraining too.

Examples:
  mantile-opt drift
  mantile-opt drift --store runs.sqlite --json
  mantile-opt drift --retrain
  mantile-opt runs versions";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct DriftArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Fit each runtime to its newest runs; a fit becomes a new version in the store where the errors of runs that it did not
    /// see fall, and none rises
    #[arg(long)]
    pub retrain: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The drift of a store, and the outcome of a retraining.
#[derive(Serialize)]
struct DriftAnswer {
    #[serde(flatten)]
    drift: DriftReport,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retrained: Vec<RetrainedRuntime>,
}

impl DriftArgs {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let mut store = RunStore::existing(&self.store.path()?)?;
        let runs = store.runs()?;
        let retrained = match self.retrain {
            true => {
                let outcomes = retrain(catalog, &store.in_force(catalog)?, &runs);
                published(&mut store, outcomes)?
            }
            false => vec![],
        };
        let drift = drift(&store.in_force(catalog)?, &runs);
        let text = format!("{}{}", drift.text(), retrained_text(&retrained));
        let is_alarm = drift.alarm;
        self.output.plain(&text, &DriftAnswer { drift, retrained }, None)?;
        Ok(if is_alarm { ExitStatus::CheckFailed } else { ExitStatus::Success })
    }
}
