//! A timeline in a file.

use std::path::PathBuf;

use super::CliError;
use crate::report::timeline::Timeline;
use crate::report::trace::trace;
use crate::spec::error::Error;
use crate::store::file;

/// Where the timeline is written.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TraceArgs {
    /// Write the timeline of a prefill and of a decode step to a file that Perfetto (ui.perfetto.dev) opens
    #[arg(long, value_name = "FILE.json", help_heading = "Output")]
    pub trace: Option<PathBuf>,
}

impl TraceArgs {
    /// Writes the timeline that `make` returns; `None` if there is no deployment.
    pub fn write(&self, make: impl FnOnce() -> Option<Result<Timeline, Error>>) -> Result<(), CliError> {
        let Some(path) = &self.trace else { return Ok(()) };
        let timeline = make().unwrap_or_else(|| {
            let fix = "omit --trace, or relax the limits until there is a deployment";
            Err(Error::new("trace", "no deployment", "a deployment that runs", fix))
        })?;
        Ok(file::write(path, &trace(&timeline).to_string())?)
    }
}
