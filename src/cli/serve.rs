//! `serve`: the HTTP server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::{CliError, ExitStatus};
use crate::http::{ServerLimits, ServerOptions, serve};
use crate::spec::error::Error;
use crate::spec::limits::{RUNNING, TIME_LIMIT, WAITING, number, whole};
use crate::store::catalog::Catalog;
use crate::store::file;

const AFTER: &str = "\
Every request of the command line is a route, with the same request and answer: POST /v2/optimize with the JSON that \
`mantile-opt schema request` describes. `Accept: text/event-stream` gives progress, then the answer; `text/csv`, \
`image/svg+xml` and `text/html` give other formats. GET /openapi.json describes all routes, GET /healthz and GET \
/metrics serve operations.

A request opens no path and fetches no address. Beyond this machine a token is required.

Examples:
  mantile-opt serve
  curl -s localhost:8000/v2/estimate -d '{\"scenario\": {\"model\": \"Llama-3.1-8B\", \"hardware\": \"1xh100\"}}'
  mantile-opt serve --listen 0.0.0.0:8000 --token-file token.txt";

/// The flags of `serve`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Serve {
    /// Address and port
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = LOOPBACK)]
    pub listen: SocketAddr,
    /// A file with the bearer token that requests carry; required for an address beyond this machine
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Requests that are answered at the same time
    #[arg(long, value_name = "N", default_value = "4", value_parser = whole(&RUNNING), allow_negative_numbers = true)]
    pub running: u64,
    /// Requests that wait; further ones are refused with status 429
    #[arg(long, value_name = "N", default_value = "64", value_parser = whole(&WAITING), allow_negative_numbers = true)]
    pub waiting: u64,
    /// Longest search; its best answer so far is returned then
    #[arg(long, value_name = "S", default_value = "60", value_parser = number(&TIME_LIMIT), allow_negative_numbers = true)]
    pub time_limit: f64,
    /// Write a line of JSON to standard error for every response: time, method, route, status, duration
    #[arg(long)]
    pub log: bool,
    /// Let requests fetch `hf:` models
    #[arg(long)]
    pub allow_fetch: bool,
}

/// The default address.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8000);
/// Largest body: a saved answer that is to be verified.
const BODY_BYTES: usize = 16 << 20;

impl Serve {
    /// Serves until Ctrl-C or SIGTERM.
    ///
    /// # Errors
    /// The address is in use, or a token is missing.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let token = self.token_file.as_deref().map(file::read_plain).transpose()?;
        let token = token.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        if token.is_none() && !self.listen.ip().is_loopback() {
            let fix = "set --token-file, or listen on 127.0.0.1";
            let found = format!("{} without a token", self.listen);
            return Err(Error::new("listen", found, "a token beyond this machine", fix).into());
        }
        let limits = ServerLimits {
            body_bytes: BODY_BYTES,
            running: self.running as usize,
            waiting: self.waiting as usize,
            time: Duration::try_from_secs_f64(self.time_limit).ok(),
        };
        let options = ServerOptions { listen: self.listen, token, limits, log: self.log.then_some(log_line) };
        let shown = |address: SocketAddr| {
            // A closed standard error needs no note.
            let _ = std::io::Write::write_all(
                &mut anstream::stderr(),
                format!("listening on http://{address}; GET /openapi.json lists the routes\n").as_bytes(),
            );
        };
        serve(catalog.closed(self.allow_fetch), &options, shown, stopped()).map_err(|error| {
            let fix = "choose another --listen";
            Error::new("listen", error.to_string(), "an address that is free", fix)
        })?;
        Ok(ExitStatus::Success)
    }
}

/// Writes a line of the log; a closed standard error ends no request.
fn log_line(line: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
}

/// Resolves at Ctrl-C or SIGTERM.
async fn stopped() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
