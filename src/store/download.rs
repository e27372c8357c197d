//! Downloads a model's configuration. Only the endpoint receives the token.

use std::time::Duration;

use ureq::Agent;
use ureq::http::{Response, Uri};

use super::fetch::{CONFIG, Fetch, QUANT, by_hand};
use super::file::{self, FileSizeLimit, bounded};
use super::hub::Repository;
use crate::spec::error::Error;
use crate::spec::model::is_object;
use crate::spec::text::each_key_once;
use crate::spec::visible::{elided, without_secrets};

impl Fetch {
    /// The texts of `config.json` and, where the repository has one, of `hf_quant_config.json`.
    pub(super) fn download(&self, repository: &Repository) -> Result<(String, Option<String>), Error> {
        let agent = agent();
        // Looking up a host needs a thread.
        if !can_start() {
            let found = "a process that cannot start another thread";
            let fix = format!("increase its limits; or {}", by_hand(repository));
            return Err(Error::new("model", found, "a thread to look up the host", fix));
        }
        let address = repository.address(&self.endpoint, CONFIG);
        let config = match self.get(&agent, &address, repository)? {
            Some(text) => text,
            None => return Err(self.missing(&address, repository)),
        };
        check_object(&config, &address, repository)?;
        let quant_address = repository.address(&self.endpoint, QUANT);
        let hf_quant_config = self.get(&agent, &quant_address, repository)?;
        if let Some(text) = &hf_quant_config {
            check_object(text, &quant_address, repository)?;
        }
        Ok((config, hf_quant_config))
    }

    /// The text at `address`, or `None` where there is no such file.
    fn get(&self, agent: &Agent, address: &str, repository: &Repository) -> Result<Option<String>, Error> {
        let refuse = |found: String, fix: String| {
            let found = match &self.token {
                Some(token) => found.replace(token.as_str(), "…"),
                None => found,
            };
            Err(Error::new("model", found, format!("{CONFIG} of {}", repository.id), fix)
                .in_file(without_secrets(address)))
        };
        let by_hand = by_hand(repository);
        let mut response = match self.answer(agent, address) {
            Ok(response) => response,
            Err(fault) => {
                return refuse(format!("no response: {fault}"), format!("check the network; or {by_hand}"));
            }
        };
        match response.status().as_u16() {
            200 => {}
            404 => return Ok(None),
            status @ (401 | 403) => {
                let fix = match &self.token {
                    None => "if it is gated, accept its terms on its page and set HF_TOKEN",
                    Some(_) => "HF_TOKEN has no access: accept its terms on its page, or renew the token",
                };
                return refuse(format!("access denied (HTTP {status})"), format!("{fix}; or {by_hand}"));
            }
            status @ 300..=399 => {
                let fix = format!("check HF_ENDPOINT and the name; or {by_hand}");
                return refuse(format!("an invalid redirect (HTTP {status})"), fix);
            }
            429 => {
                return refuse("too many requests (HTTP 429)".into(), format!("wait a minute; or {by_hand}"));
            }
            status => return refuse(format!("HTTP {status}"), format!("try again later; or {by_hand}")),
        }
        // The limit applies to the decompressed text.
        let most = FileSizeLimit::Configuration.bytes();
        match bounded(response.body_mut().as_reader(), most) {
            Ok(Some(text)) => Ok(Some(text)),
            Ok(None) => {
                let fix = format!("check HF_ENDPOINT and any proxy; or {by_hand}");
                refuse(format!("a response of more than {most} bytes"), fix)
            }
            Err(fault) => {
                let fault = file::spell(&fault);
                refuse(format!("an incomplete response: {fault}"), format!("try again; or {by_hand}"))
            }
        }
    }

    /// The response at `address`, redirects on its host followed. The token goes only to the endpoint.
    fn answer(&self, agent: &Agent, address: &str) -> Result<Response<ureq::Body>, String> {
        let start: Uri = address.parse().map_err(|_| "not a server address")?;
        let home = origin(&start).ok_or("not a server address")?;
        let (mut place, mut redirected) = (start.clone(), 0);
        loop {
            let mut request = agent.get(place.clone());
            if let Some(token) = self.token.as_ref().filter(|_| origin(&place).as_ref() == Some(&home)) {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            let response = request.call().map_err(|fault| match fault {
                ureq::Error::Io(fault) => file::spell(&fault),
                fault => fault.to_string(),
            })?;
            let moved = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
            let next = response.headers().get("location").and_then(|location| location.to_str().ok());
            let next = next.filter(|_| moved && redirected < MOST_REDIRECTIONS);
            let Some(next) = next.and_then(|location| joined(&place, location)) else { return Ok(response) };
            if !stays(&home, &next) {
                let host = next.host().unwrap_or_default();
                return Err(format!(
                    "a redirect to another host, `{host}`; its answer would not be the hub's"
                ));
            }
            place = if origin(&next).as_ref() == Some(&home) { at_home(&start, next) } else { next };
            redirected += 1;
        }
    }

    fn missing(&self, address: &str, repository: &Repository) -> Error {
        let fix = format!(
            "check the name and the revision `{}`, and that HF_ENDPOINT serves it",
            repository.revision
        );
        Error::new("model", "no such file (HTTP 404)", format!("{CONFIG} of {}", repository.id), fix)
            .in_file(without_secrets(address))
    }
}

const MOST_REDIRECTIONS: usize = 5;

/// Scheme, host and port of a web address.
fn origin(place: &Uri) -> Option<(String, String, u16)> {
    let scheme = place.scheme_str()?.to_lowercase();
    let usual = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    Some((scheme, place.host()?.to_lowercase(), place.port_u16().unwrap_or(usual)))
}

/// Whether an address is of the host of the endpoint: the same origin, or the encrypted one of a plain endpoint.
fn stays((scheme, host, port): &(String, String, u16), next: &Uri) -> bool {
    let Some((next_scheme, next_host, next_port)) = origin(next) else { return false };
    let encrypted =
        (scheme.as_str(), *port) == ("http", 80) && (next_scheme.as_str(), next_port) == ("https", 443);
    next_host == *host && (encrypted || (&next_scheme, next_port) == (scheme, *port))
}

/// The target of `location` in a response from `place`, without `place`'s user and password.
fn joined(place: &Uri, location: &str) -> Option<Uri> {
    let scheme = place.scheme_str()?;
    let authority = place.authority()?.as_str();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let location = location.split('#').next().unwrap_or_default();
    let absolute = location.split(['/', '?']).next().is_some_and(|first| first.ends_with(':'));
    let text = if absolute {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{host}{location}")
    } else {
        let folder = place.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{host}{folder}/{location}")
    };
    let next: Uri = text.parse().ok()?;
    origin(&next).map(|_| next)
}

/// An address of the endpoint itself, with its user and password.
fn at_home(home: &Uri, place: Uri) -> Uri {
    let mut parts = place.clone().into_parts();
    parts.authority = home.authority().cloned();
    Uri::from_parts(parts).unwrap_or(place)
}

fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        // Redirects are followed here, to protect the token.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(Duration::from_secs(10)))
        .timeout_global(Some(Duration::from_secs(60)))
        .user_agent(concat!("mantile-opt/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

/// A portal or proxy may respond with a page of its own.
fn check_object(text: &str, address: &str, repository: &Repository) -> Result<(), Error> {
    if is_object(text) {
        return each_key_once(text).map_err(|fault| fault.in_file(without_secrets(address)));
    }
    let fix = format!("check HF_ENDPOINT and any proxy; or {}", by_hand(repository));
    let found = format!("not a JSON object: `{}`", elided(text.trim(), 40));
    Err(Error::new("model", found, "the JSON object of a configuration", fix)
        .in_file(without_secrets(address)))
}

/// Whether another thread can be started now.
fn can_start() -> bool {
    std::thread::Builder::new().spawn(|| {}).is_ok_and(|started| started.join().is_ok())
}
