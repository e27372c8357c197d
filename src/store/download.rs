//! Requests to a model hub. Only the endpoint receives the token.

use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::http::{Response, Uri};

use super::fetch::{CONFIG, Fetch, FetchBudget, QUANT, by_hand};
use super::file::{self, FileSizeLimit, bounded};
use super::gguf::ENDING;
use super::hub::Repository;
use crate::spec::error::Error;
use crate::spec::model::is_object;
use crate::spec::text::each_key_once;
use crate::spec::visible::{elided, without_secrets};

impl Fetch {
    /// The texts of `config.json` and, where the repository has one, of `hf_quant_config.json`; `None` where it has no
    /// `config.json`.
    pub(super) fn download(
        &self,
        repository: &Repository,
        budget: &FetchBudget,
    ) -> Result<Option<(String, Option<String>)>, Error> {
        let agent = agent(&by_hand(repository, CONFIG))?;
        let text = |file: &str| {
            let mut requested = HubFile::new(self, &agent, repository, (file, budget.until));
            // Both state the configuration.
            requested.expected = format!("{CONFIG} of {}", repository.id);
            requested.by_hand = by_hand(repository, CONFIG);
            requested.object()
        };
        let Some(config) = text(CONFIG)? else { return Ok(None) };
        Ok(Some((config, text(QUANT)?)))
    }

    /// The list of a repository's files, as the hub's API has it; `None` where there is none.
    pub(super) fn listed(
        &self,
        repository: &Repository,
        budget: &FetchBudget,
    ) -> Result<Option<String>, Error> {
        let by_hand = format!("name the file: hf:{}/FILE{ENDING}", repository.id);
        let listing = HubFile {
            fetch: self,
            agent: &agent(&by_hand)?,
            address: repository.listing(&self.endpoint),
            expected: format!("the files of {}", repository.id),
            by_hand,
            until: budget.until,
        };
        listing.object()
    }
}

/// A file of a hub, as it is requested.
pub(super) struct HubFile<'a> {
    fetch: &'a Fetch,
    agent: &'a Agent,
    address: String,
    /// Its name in faults.
    expected: String,
    /// The way without a download.
    by_hand: String,
    /// The end of the time for its requests.
    until: Instant,
}

/// A response, and the address that it came from.
pub(super) type PlacedResponse = (Response<ureq::Body>, Uri);

impl<'a> HubFile<'a> {
    pub fn new(
        fetch: &'a Fetch,
        agent: &'a Agent,
        repository: &Repository,
        (file, until): (&str, Instant),
    ) -> HubFile<'a> {
        HubFile {
            fetch,
            agent,
            address: repository.address(&fetch.endpoint, file),
            expected: format!("{file} of {}", repository.id),
            by_hand: by_hand(repository, file),
            until,
        }
    }

    /// The fault of a response.
    pub fn refuse(&self, found: impl Into<String>, fix: &str) -> Error {
        let found = found.into();
        let found = match &self.fetch.token {
            Some(token) => found.replace(token.as_str(), "…"),
            None => found,
        };
        Error::new("model", found, &self.expected, format!("{fix}; or {}", self.by_hand))
            .in_file(without_secrets(&self.address))
    }

    /// Its text, which is a JSON object; `None` where there is no such file.
    fn object(&self) -> Result<Option<String>, Error> {
        let Some((mut response, _)) = self.response(None, None)? else { return Ok(None) };
        // The limit applies to the decompressed text.
        let most = FileSizeLimit::Configuration.bytes();
        let text = match bounded(response.body_mut().as_reader(), most) {
            Ok(Some(text)) => text,
            Ok(None) => {
                let found = format!("a response of more than {most} bytes");
                return Err(self.refuse(found, "check HF_ENDPOINT and any proxy"));
            }
            Err(fault) => return Err(self.incomplete(&file::spell(&fault))),
        };
        if is_object(&text) {
            return each_key_once(&text)
                .map(|()| Some(text))
                .map_err(|fault| fault.in_file(without_secrets(&self.address)));
        }
        // A portal or proxy may respond with a page of its own.
        let found = format!("not a JSON object: `{}`", elided(text.trim(), 40));
        Err(self.refuse(found, "check HF_ENDPOINT and any proxy"))
    }

    /// The fault of a response that ends before its end.
    pub fn incomplete(&self, fault: &str) -> Error {
        self.refuse(format!("an incomplete response: {fault}"), "try again")
    }

    /// The response with the whole file, or with a range of it (first and last byte), which a server may ignore. `place`
    /// is the address that an earlier range came from. `None` where there is no such file.
    pub fn response(
        &self,
        range: Option<(u64, u64)>,
        place: Option<&Uri>,
    ) -> Result<Option<PlacedResponse>, Error> {
        let (response, place) = self
            .answer(range, place)
            .map_err(|fault| self.refuse(format!("no response: {fault}"), "check the network"))?;
        let status = response.status().as_u16();
        let (found, fix) = match status {
            200 => return Ok(Some((response, place))),
            206 if range.is_some() => return Ok(Some((response, place))),
            404 => return Ok(None),
            401 | 403 => {
                let fix = match &self.fetch.token {
                    None => "if it is gated, accept its terms on its page and set HF_TOKEN",
                    Some(_) => "HF_TOKEN has no access: accept its terms on its page, or renew the token",
                };
                (format!("access denied (HTTP {status})"), fix)
            }
            300..=399 => (format!("an invalid redirect (HTTP {status})"), "check HF_ENDPOINT and the name"),
            416 => ("a file that ends before its header (HTTP 416)".to_owned(), "check the file on its page"),
            429 => ("too many requests (HTTP 429)".to_owned(), "wait a minute"),
            status => (format!("HTTP {status}"), "try again later"),
        };
        Err(self.refuse(found, fix))
    }

    /// The response, redirects followed: for a range, whose file may be on a host for data, to any host, else on the
    /// host of the endpoint. The token goes only to the endpoint.
    fn answer(&self, range: Option<(u64, u64)>, place: Option<&Uri>) -> Result<PlacedResponse, String> {
        let start: Uri = self.address.parse().map_err(|_| "not a server address")?;
        let home = origin(&start).ok_or("not a server address")?;
        let (mut place, mut redirected) = (place.unwrap_or(&start).clone(), 0);
        loop {
            let response = self.call(&place, range, &home)?;
            let moved = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
            let next = response.headers().get("location").and_then(|location| location.to_str().ok());
            let next = next.filter(|_| moved && redirected < MOST_REDIRECTIONS);
            let Some(next) = next.and_then(|location| joined(&place, location)) else {
                return Ok((response, place));
            };
            let host = next.host().unwrap_or_default();
            if range.is_some() && !is_as_private(&home, &next) {
                return Err(format!("a redirect to `{host}` without encryption"));
            }
            if range.is_none() && !stays(&home, &next) {
                return Err(format!(
                    "a redirect to another host, `{host}`; its answer would not be the hub's"
                ));
            }
            place = if origin(&next).as_ref() == Some(&home) { at_home(&start, next) } else { next };
            redirected += 1;
        }
    }

    /// The response of `place`; `home` is the origin of the endpoint.
    fn call(
        &self,
        place: &Uri,
        range: Option<(u64, u64)>,
        home: &HubOrigin,
    ) -> Result<Response<ureq::Body>, String> {
        let left = self.until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        let left = left.ok_or("it took too long")?;
        let mut request = self.agent.get(place.clone()).config().timeout_global(Some(left)).build();
        if let Some(token) = self.fetch.token.as_ref().filter(|_| origin(place).as_ref() == Some(home)) {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some((first, last)) = range {
            // A range of the file itself, not of a compressed one.
            request = request.header("range", format!("bytes={first}-{last}"));
            request = request.header("accept-encoding", "identity");
        }
        request.call().map_err(|fault| match fault {
            ureq::Error::Io(fault) => file::spell(&fault),
            fault => fault.to_string(),
        })
    }
}

const MOST_REDIRECTIONS: usize = 5;

/// Scheme, host and port of a web address.
type HubOrigin = (String, String, u16);

fn origin(place: &Uri) -> Option<HubOrigin> {
    let scheme = place.scheme_str()?.to_lowercase();
    let usual = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    Some((scheme, place.host()?.to_lowercase(), place.port_u16().unwrap_or(usual)))
}

/// Whether an address is of the host of the endpoint: the same origin, or the encrypted one of a plain endpoint.
fn stays((scheme, host, port): &HubOrigin, next: &Uri) -> bool {
    let Some((next_scheme, next_host, next_port)) = origin(next) else { return false };
    let encrypted =
        (scheme.as_str(), *port) == ("http", 80) && (next_scheme.as_str(), next_port) == ("https", 443);
    next_host == *host && (encrypted || (&next_scheme, next_port) == (scheme, *port))
}

/// Whether an address is encrypted, or the endpoint is not either.
fn is_as_private((scheme, ..): &HubOrigin, next: &Uri) -> bool {
    scheme == "http" || next.scheme_str() == Some("https")
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

/// A client; `by_hand` is the way without one.
pub(super) fn agent(by_hand: &str) -> Result<Agent, Error> {
    // Looking up a host needs a thread.
    if !can_start() {
        let found = "a process that cannot start another thread";
        let fix = format!("increase its limits; or {by_hand}");
        return Err(Error::new("model", found, "a thread to look up the host", fix));
    }
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // Redirects are followed here, to protect the token.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(Duration::from_secs(10)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .user_agent(concat!("mantile-opt/", env!("CARGO_PKG_VERSION")));
    Ok(config.build().new_agent())
}

/// Whether another thread can be started now.
fn can_start() -> bool {
    std::thread::Builder::new().spawn(|| {}).is_ok_and(|started| started.join().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str) -> Uri {
        address.parse().expect("an address")
    }

    #[test]
    fn redirects_stay_on_the_host_or_at_least_encrypted() {
        for (home, next, same_host, as_private) in [
            ("https://huggingface.co/a", "https://huggingface.co/b", true, true),
            ("https://huggingface.co/a", "https://cdn.hf.co/b?signature=s", false, true),
            ("https://huggingface.co/a", "http://cdn.hf.co/b", false, false),
            ("https://huggingface.co/a", "http://huggingface.co/b", false, false),
            ("http://mirror/a", "https://mirror/b", true, true),
            ("http://mirror:8080/a", "http://mirror:8081/b", false, true),
        ] {
            let home = origin(&of(home)).expect("a web address");
            assert_eq!(
                (stays(&home, &of(next)), is_as_private(&home, &of(next))),
                (same_host, as_private),
                "{next}"
            );
        }
    }

    #[test]
    fn a_relative_redirect_has_no_user_and_no_other_scheme() {
        let place = of("https://somebody:s3cr3t@hub/a/b");
        for (location, next) in [
            ("/c?d=1", Some("https://hub/c?d=1")),
            ("c", Some("https://hub/a/c")),
            ("//cdn/c", Some("https://cdn/c")),
            ("https://cdn/c#part", Some("https://cdn/c")),
            ("ftp://cdn/c", None),
            ("file:///etc/passwd", None),
        ] {
            assert_eq!(joined(&place, location).map(|next| next.to_string()).as_deref(), next, "{location}");
        }
    }
}
