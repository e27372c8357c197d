//! `serve`: the HTTP server.

use super::access::{AccessArgs, not_bound, show_listening, stopped};
use super::request_limits::LimitArgs;
use super::{CliError, ExitStatus};
use crate::http::{ServerOptions, serve};
use crate::store::catalog::Catalog;

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
  mantile-opt serve --listen 0.0.0.0:8000 --token-file token.txt --allow-host mantile.example.org";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Serve {
    #[command(flatten)]
    pub access: AccessArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Let requests fetch `hf:` models
    #[arg(long)]
    pub allow_fetch: bool,
}

impl Serve {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let options = ServerOptions { access: self.access.access()?, limits: self.limits.limits() };
        let shown = |address| show_listening(address, "GET /openapi.json lists the routes");
        serve(catalog.closed(self.allow_fetch), &options, shown, stopped())
            .map_err(|error| not_bound(&error))?;
        Ok(ExitStatus::Success)
    }
}
