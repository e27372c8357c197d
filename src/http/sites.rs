//! Who may reach the server through a browser: the names that it answers to, and the pages whose scripts it answers.
//!
//! A page of a stranger can send a browser's requests to this machine: under a name of its own that leads here (`Host`),
//! or from another origin (`Origin`). Both are refused unless the operator allows them.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower_http::cors::CorsLayer;

use super::connections::LocalAddress;
use super::problem::{ProblemDocument, Refusal};
use super::search::{PREFER, PREFERENCE_APPLIED};
use super::state::AccessGuards;

/// Names and origins that are allowed in addition to the server's own.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    /// Names of hosts, without ports.
    pub hosts: Vec<String>,
    /// Origins, e.g. `https://tools.example.org`.
    pub origins: Vec<String>,
}

/// Refuses requests to foreign hosts and from foreign origins.
pub(super) async fn known(State(guards): State<Arc<AccessGuards>>, request: Request, next: Next) -> Response {
    let local = request.extensions().get::<LocalAddress>().map(|address| address.0);
    let sites = &guards.access.sites;
    let checked = sites.host(&request, local).and_then(|host| sites.origin(request.headers(), &host));
    match checked {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

impl Sites {
    fn host(&self, request: &Request, local: Option<IpAddr>) -> Result<Authority, Refusal> {
        let mut named = request.headers().get_all(header::HOST).into_iter();
        let (Some(named), None) = (named.next(), named.next()) else {
            let wrong = ProblemDocument::new(StatusCode::BAD_REQUEST, "a request names its host once");
            return Err(wrong.field("Host").into());
        };
        let named = named.to_str().ok().and_then(|text| text.parse::<Authority>().ok());
        let of_path = request.uri().authority();
        match named {
            // A request to `http://host/path` names its host twice.
            Some(named) if of_path.into_iter().chain([&named]).all(|host| self.admits(host, local)) => {
                Ok(named)
            }
            _ => {
                let detail = "the server does not answer to this host";
                let fix =
                    "send the request to an address of the server; its operator can allow further names";
                Err(ProblemDocument::new(StatusCode::MISDIRECTED_REQUEST, detail)
                    .field("Host")
                    .expected("this machine, the address of the server, or a name that it allows")
                    .fix(fix)
                    .into())
            }
        }
    }

    /// Whether the server answers to a host: this machine, the address that the connection reached, an allowed name.
    fn admits(&self, host: &Authority, local: Option<IpAddr>) -> bool {
        let name = folded(host.host());
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let own =
            address.is_some_and(|address| address.is_loopback() || Some(address.to_canonical()) == local);
        is_plain(host)
            && (own || name == "localhost" || self.hosts.iter().any(|allowed| folded(allowed) == name))
    }

    fn origin(&self, headers: &HeaderMap, host: &Authority) -> Result<(), Refusal> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let same = origin.to_str().is_ok_and(|origin| is_same_origin(origin, host));
        if same || self.origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()) {
            return Ok(());
        }
        Err(ProblemDocument::new(StatusCode::FORBIDDEN, "the server does not answer pages of other origins")
            .field("Origin")
            .expected("a page of this server, or an origin that it allows")
            .fix("use the page of this server; its operator can allow further origins")
            .into())
    }

    /// Lets browsers give the answers to pages of allowed origins; none where no origin is allowed.
    pub(super) fn shared(&self) -> Option<CorsLayer> {
        const SENT: [HeaderName; 4] = [header::ACCEPT, header::AUTHORIZATION, header::CONTENT_TYPE, PREFER];
        let origins: Vec<HeaderValue> = self.origins.iter().filter_map(|text| text.parse().ok()).collect();
        (!origins.is_empty()).then(|| {
            CorsLayer::new()
                .allow_origin(origins)
                .allow_methods([Method::GET, Method::POST])
                .allow_headers(SENT)
                .expose_headers([PREFERENCE_APPLIED])
        })
    }
}

/// A name of a host, without case and without the dot of the root.
fn folded(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Whether an authority is a host alone or with a port: no user, and no text in place of a port.
fn is_plain(authority: &Authority) -> bool {
    let port = authority.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    authority.as_str().strip_prefix(authority.host()) == Some(port.as_str())
}

/// Whether a page of `origin` came from `host`; the port of a scheme may be left out.
fn is_same_origin(origin: &str, host: &Authority) -> bool {
    let usual = [("http://", 80), ("https://", 443)];
    usual.iter().any(|(scheme, port)| {
        let authority = origin.strip_prefix(scheme).and_then(|rest| rest.parse::<Authority>().ok());
        authority.filter(is_plain).is_some_and(|authority| {
            folded(authority.host()) == folded(host.host())
                && authority.port_u16().unwrap_or(*port) == host.port_u16().unwrap_or(*port)
        })
    })
}
