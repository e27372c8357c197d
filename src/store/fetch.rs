//! Fetches a model's configuration from Hugging Face or a mirror of it, and keeps it.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use ureq::Agent;
use ureq::config::RedirectAuthHeaders;

use super::file;
use super::hub::{Repository, hub_cache, user_cache};
use crate::cli::threads::can_start;
use crate::spec::error::Error;

const CONFIG: &str = "config.json";
const QUANT: &str = "hf_quant_config.json";
/// A configuration is a few kB; what is larger is something else.
const MOST_BYTES: u64 = 16 << 20;

/// Where configurations are fetched from and kept.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// `$HF_ENDPOINT`, else Hugging Face.
    pub endpoint: String,
    /// `$HF_TOKEN`.
    pub token: Option<String>,
    /// The hub's own cache, which is read.
    pub hub: Option<PathBuf>,
    /// The folder for what was fetched.
    pub cache: Option<PathBuf>,
}

/// The files of a model.
#[derive(Clone, Debug)]
pub struct ModelFiles {
    /// Text of `config.json`.
    pub config: String,
    /// Text of `hf_quant_config.json`, where there is one.
    pub hf_quant_config: Option<String>,
    /// Where they come from.
    pub source: String,
}

impl Fetch {
    /// As the environment says.
    pub fn from_env() -> Fetch {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
        let endpoint = set("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".into());
        Fetch {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            token: set("HF_TOKEN").map(|token| token.trim().to_owned()),
            hub: hub_cache(),
            cache: user_cache().map(|cache| cache.join("mantile/models")),
        }
    }

    /// The configuration of `repository`: from a cache, or fetched and kept.
    ///
    /// # Errors
    /// It cannot be fetched; the fault says what to do instead.
    pub fn model(&self, repository: &Repository) -> Result<ModelFiles, Error> {
        let own = self.cache.as_ref().map(|cache| {
            let revision = repository.revision.replace('/', "--");
            cache.join(format!("{}@{revision}", repository.id.replace('/', "--")))
        });
        let kept = own.clone().filter(|folder| folder.join(CONFIG).is_file());
        let kept = kept.or_else(|| repository.snapshot(self.hub.as_deref()?));
        if let Some(folder) = kept {
            return read_folder(&folder);
        }
        let agent = agent();
        // Looking a host up takes a thread of its own.
        if !can_start() {
            let found = "a process that may start no thread more";
            let fix = format!("raise its limits; or {}", by_hand(repository));
            return Err(Error::new("model", found, "a thread to look the host up on", fix));
        }
        let address = repository.address(&self.endpoint, CONFIG);
        let config = match self.get(&agent, &address, repository)? {
            Some(text) => text,
            None => return Err(self.missing(&address, repository)),
        };
        check_object(&config, &address, repository)?;
        let beside = repository.address(&self.endpoint, QUANT);
        let hf_quant_config = self.get(&agent, &beside, repository)?;
        if let Some(text) = &hf_quant_config {
            check_object(text, &beside, repository)?;
        }
        if let Some(folder) = own {
            // Without a cache the next run fetches again; that is no reason to fail this one.
            let _ = keep(&folder, &config, hf_quant_config.as_deref());
        }
        Ok(ModelFiles { config, hf_quant_config, source: address })
    }

    /// The text at `address`, or `None` where there is no such file.
    fn get(&self, agent: &Agent, address: &str, repository: &Repository) -> Result<Option<String>, Error> {
        let mut request = agent.get(address);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let refuse = |found: String, fix: String| {
            Err(Error::new("model", found, format!("{CONFIG} of {}", repository.id), fix).in_file(address))
        };
        let by_hand = by_hand(repository);
        let mut response = match request.call() {
            Ok(response) => response,
            Err(fault) => {
                return refuse(format!("no answer: {fault}"), format!("check the network; or {by_hand}"));
            }
        };
        match response.status().as_u16() {
            200 => {}
            404 => return Ok(None),
            status @ (401 | 403) => {
                let fix = match &self.token {
                    None => "if it is gated, accept its terms on its page and set HF_TOKEN",
                    Some(_) => "HF_TOKEN does not open it: accept its terms on its page, or renew the token",
                };
                return refuse(format!("access denied (HTTP {status})"), format!("{fix}; or {by_hand}"));
            }
            status @ 300..=399 => {
                let fix = format!("check HF_ENDPOINT and the name; or {by_hand}");
                return refuse(format!("a redirection that leads nowhere (HTTP {status})"), fix);
            }
            429 => {
                return refuse("too many requests (HTTP 429)".into(), format!("wait a minute; or {by_hand}"));
            }
            status => return refuse(format!("HTTP {status}"), format!("try again later; or {by_hand}")),
        }
        match response.body_mut().with_config().limit(MOST_BYTES).read_to_string() {
            Ok(text) => Ok(Some(text)),
            Err(fault) => {
                refuse(format!("an answer that breaks off: {fault}"), format!("try again; or {by_hand}"))
            }
        }
    }

    fn missing(&self, address: &str, repository: &Repository) -> Error {
        let fix = format!(
            "check the name and the revision `{}`, and that HF_ENDPOINT holds it",
            repository.revision
        );
        Error::new("model", "no such file (HTTP 404)", format!("{CONFIG} of {}", repository.id), fix)
            .in_file(address)
    }
}

fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(5)
        .max_redirects_will_error(false)
        .redirect_auth_headers(RedirectAuthHeaders::SameHost)
        .timeout_connect(Some(Duration::from_secs(10)))
        .timeout_global(Some(Duration::from_secs(60)))
        .user_agent(concat!("mantile-opt/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

fn by_hand(repository: &Repository) -> String {
    format!(
        "download {CONFIG} by hand (https://huggingface.co/{}/blob/{}/{CONFIG}) and pass its path",
        repository.id, repository.revision
    )
}

/// A portal or proxy may answer with a page of its own.
fn check_object(text: &str, address: &str, repository: &Repository) -> Result<(), Error> {
    if serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok() {
        return Ok(());
    }
    let start: String = text.trim().chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let fix = format!("check HF_ENDPOINT and whatever stands between; or {}", by_hand(repository));
    Err(Error::new("model", format!("no JSON object: `{start}`"), "the JSON object of a configuration", fix)
        .in_file(address))
}

fn read_folder(folder: &Path) -> Result<ModelFiles, Error> {
    let beside = folder.join(QUANT);
    Ok(ModelFiles {
        config: file::read(&folder.join(CONFIG))?,
        hf_quant_config: if beside.is_file() { Some(file::read(&beside)?) } else { None },
        source: folder.join(CONFIG).display().to_string(),
    })
}

/// Writes `config.json` last: where it is, all is.
fn keep(folder: &Path, config: &str, hf_quant_config: Option<&str>) -> Result<(), Error> {
    let made = fs::create_dir_all(folder);
    made.map_err(|fault| {
        Error::new("", fault.to_string(), "a folder", "").in_file(folder.display().to_string())
    })?;
    if let Some(text) = hf_quant_config {
        file::write(&folder.join(QUANT), text)?;
    }
    file::write(&folder.join(CONFIG), config)
}
