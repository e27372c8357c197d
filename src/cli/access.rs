//! Access to a server: the same flags for every one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::token::token;
use crate::http::{ConnectionLimits, ServerAccess, Sites};
use crate::spec::error::Error;
use crate::spec::limits::{BODY_TIME, CONNECTIONS, HEADER_TIME, STOP_TIME, number, whole};

#[derive(Clone, Debug, clap::Args)]
pub struct AccessArgs {
    /// Address and port
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = LOOPBACK)]
    pub listen: SocketAddr,
    /// A file with the bearer token that requests carry; required for an address beyond this machine
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A name that the server answers to, in addition to its address and the names of this machine
    #[arg(long, value_name = "NAME", value_parser = host)]
    pub allow_host: Vec<String>,
    /// An origin whose pages may use the server, e.g. `https://tools.example.org`
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub allow_origin: Vec<String>,
    /// Connections at the same time; further ones wait. The default leaves half of the usual 1024 open files to the rest
    #[arg(long, value_name = "N", default_value = "512", value_parser = whole(&CONNECTIONS), allow_negative_numbers = true)]
    pub connections: u64,
    /// Longest time until the header of a request is read, and the longest idle time of a connection. The default is
    /// twice that of a packet lost three times (RFC 6298: 1 + 2 + 4 s)
    #[arg(long, value_name = "S", default_value = "15", value_parser = number(&HEADER_TIME), allow_negative_numbers = true)]
    pub header_time: f64,
    /// Longest time until a body is read, and in which a client reads no part of its answer. The default is that of the
    /// largest body at 4.5 Mbit/s
    #[arg(long, value_name = "S", default_value = "30", value_parser = number(&BODY_TIME), allow_negative_numbers = true)]
    pub body_time: f64,
    /// Longest time that answers have at Ctrl-C and SIGTERM. The default is less than the 30 s of Kubernetes
    #[arg(long, value_name = "S", default_value = "25", value_parser = number(&STOP_TIME), allow_negative_numbers = true)]
    pub stop_time: f64,
    /// Write a line of JSON to standard error for every response: time, method, route, status, duration
    #[arg(long)]
    pub log: bool,
}

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8000);

impl AccessArgs {
    pub(super) fn access(&self) -> Result<ServerAccess, Error> {
        let token = self.token_file.as_deref().map(token).transpose()?;
        if token.is_none() && !self.listen.ip().is_loopback() {
            let fix = "set --token-file, or listen on 127.0.0.1";
            let found = format!("{} without a token", self.listen);
            return Err(Error::new("listen", found, "a token beyond this machine", fix));
        }
        let connections = ConnectionLimits {
            most: self.connections as usize,
            header: Duration::from_secs_f64(self.header_time),
            body: Duration::from_secs_f64(self.body_time),
            stop: Duration::from_secs_f64(self.stop_time),
        };
        let sites = Sites { hosts: self.allow_host.clone(), origins: self.allow_origin.clone() };
        let log = self.log.then_some(log_line as fn(&str));
        Ok(ServerAccess { listen: self.listen, token, sites, connections, log })
    }
}

/// Writes to standard error that a server listens, and `hint`.
pub(super) fn show_listening(address: SocketAddr, hint: &str) {
    // A closed standard error needs no note.
    let line = format!("listening on http://{address}; {hint}\n");
    let _ = std::io::Write::write_all(&mut anstream::stderr(), line.as_bytes());
}

/// The fault of an address that is not free.
pub(super) fn not_bound(error: &std::io::Error) -> Error {
    Error::new("listen", error.to_string(), "an address that is free", "choose another --listen")
}

/// A name of a host.
fn host(text: &str) -> Result<String, String> {
    let name = |c: char| c.is_ascii_alphanumeric() || "-_.:[]".contains(c);
    let bare = text.parse::<std::net::Ipv6Addr>().map_or(text.to_owned(), |address| format!("[{address}]"));
    let port = !bare.starts_with('[') && bare.contains(':');
    match !bare.is_empty() && !port && bare.chars().all(name) {
        true => Ok(bare),
        false => {
            Err("expected the name of a host without scheme, port and path, e.g. mantile.example.org"
                .to_owned())
        }
    }
}

/// An origin: scheme, host and port.
fn origin(text: &str) -> Result<String, String> {
    let text = text.trim_end_matches('/').to_ascii_lowercase();
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let name = |c: char| c.is_ascii_alphanumeric() || "-_.:[]".contains(c);
    match host.is_some_and(|host| !host.is_empty() && host.chars().all(name)) {
        true => Ok(text),
        false => Err("expected scheme, host and port of a page, e.g. `https://tools.example.org`".to_owned()),
    }
}

/// Writes a line of the log; a closed standard error ends no request.
fn log_line(line: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
}

/// Resolves at Ctrl-C or SIGTERM.
pub(super) async fn stopped() {
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
