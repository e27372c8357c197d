//! `serve`: the HTTP server.

use std::path::PathBuf;

use super::access::{AccessArgs, not_bound, show_listening, stopped};
use super::request_limits::LimitArgs;
use super::{CliError, ExitStatus};
use crate::http::stored::StoredRuns;
use crate::http::{ServerOptions, serve};
use crate::store::catalog::Catalog;
use crate::store::runs::RunStore;

const AFTER: &str = "\
Every request of the command line is a route, with the same request and answer: POST /v2/optimize with the JSON that \
`mantile-opt schema NAME-request` describes. `Accept: text/event-stream` gives progress, then the answer; `text/plain`, `text/markdown`, `text/csv`, \
`image/svg+xml` and `text/html` give other formats. GET /openapi.json describes all routes, GET /healthz and GET \
/metrics serve operations.

A request opens no path and fetches no address. Beyond this machine a token is required. A browser reaches the server \
under the address that it listens on, the names of this machine, and those of `--allow-host`; pages of other sites are \
refused.

Examples:
  mantile-opt serve
  curl -s localhost:8000/v2/estimate --json '{\"scenario\": {\"model\": \"Llama-3.1-8B\", \"hardware\": \"1xh100\"}}'
  mantile-opt serve --store runs.sqlite
  mantile-opt serve --listen 0.0.0.0:8000 --token-file token.txt --allow-host mantile.example.org";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Serve {
    #[command(flatten)]
    pub access: AccessArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Keep the runs of POST /v1/calibrate in a store, which `runs` and `drift` read; a median error above its limit makes a
    /// new version of the calibration there
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// Let requests fetch `hf:` models
    #[arg(long)]
    pub allow_fetch: bool,
}

impl Serve {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let mut catalog = catalog.closed(self.allow_fetch);
        let mut stored = None;
        if let Some(path) = &self.store {
            let store = RunStore::open(path)?;
            // The newest version of each runtime's calibration is in force from the start.
            let in_force = store.in_force(&catalog)?;
            stored = Some(StoredRuns::new(store, std::mem::replace(&mut catalog, in_force)));
        }
        let options =
            ServerOptions { access: self.access.access()?, limits: self.limits.limits(), store: stored };
        let shown = |address| show_listening(address, "GET /openapi.json lists the routes");
        serve(catalog, &options, shown, stopped()).map_err(|error| not_bound(&error))?;
        Ok(ExitStatus::Success)
    }
}
