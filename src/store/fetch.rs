//! A model of Hugging Face or a mirror, its configuration or a GGUF file: from the cache, or downloaded and cached.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

use serde::{Deserialize, Serialize};

use super::file;
use super::hub::{HubName, HubPart, Repository, hub_cache, user_cache};
use crate::spec::error::Error;
#[cfg(not(feature = "cli"))]
use crate::spec::model::gguf::GgufHeader;
use crate::spec::model::gguf::MOST_BYTES;
use crate::spec::model::is_object;
use crate::spec::visible::without_secrets;

pub(super) const CONFIG: &str = "config.json";
pub(super) const QUANT: &str = "hf_quant_config.json";

#[derive(Clone, Debug)]
pub struct Fetch {
    /// `$HF_ENDPOINT`, else Hugging Face. A user and a password in it are sent to it and never printed.
    pub endpoint: String,
    /// `$HF_TOKEN`. It is sent only to the endpoint: no other scheme, host or port receives it.
    pub token: Option<String>,
    /// The hub's own cache, read-only.
    pub hub: Option<PathBuf>,
    /// The download cache, with a folder per endpoint.
    pub cache: Option<PathBuf>,
    pub refresh: bool,
    /// Time for all requests of one model.
    pub patience: Duration,
}

/// Time for all requests of one model: a header of 10 MB at 1 Mbit/s.
const PATIENCE: Duration = Duration::from_secs(120);

/// The rest of time and bytes for the requests of one model.
pub(super) struct FetchBudget {
    pub until: Instant,
    /// Of headers, those of all parts of a file.
    pub bytes: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ModelFiles {
    /// Text of `config.json`, or of the model file made from a GGUF file.
    pub config: String,
    /// Text of `hf_quant_config.json`, if the repository has one.
    pub hf_quant_config: Option<String>,
    pub source: String,
    /// The GGUF file that was read, with its folder in the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gguf: Option<String>,
}

impl Fetch {
    pub fn from_env() -> Fetch {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
        let endpoint = set("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".into());
        Fetch {
            endpoint: endpoint.trim().trim_end_matches('/').to_owned(),
            token: set("HF_TOKEN").map(|token| token.trim().to_owned()),
            hub: hub_cache(),
            cache: user_cache().map(|cache| cache.join("mantile/models")),
            refresh: false,
            patience: PATIENCE,
        }
    }

    /// The model that `name` states: cached, or downloaded and cached. An unreadable cache entry is downloaded again.
    pub fn model(&self, name: &HubName) -> Result<ModelFiles, Error> {
        let mut budget = FetchBudget { until: Instant::now() + self.patience, bytes: MOST_BYTES };
        let repository = &name.repository;
        match &name.part {
            HubPart::Whole => self.whole(repository, &mut budget),
            HubPart::Quantized(quantization) => self.quantized(repository, quantization, &mut budget),
            HubPart::File(file) => self.gguf(repository, file, &mut budget),
        }
    }

    /// The configuration of a repository, or where it has none the GGUF file that llama.cpp chooses.
    fn whole(&self, repository: &Repository, budget: &mut FetchBudget) -> Result<ModelFiles, Error> {
        let own = self.own(repository);
        let hub = || repository.snapshot(self.hub.as_deref()?);
        let kept = own.clone().into_iter().chain(hub()).filter(|_| !self.refresh);
        if let Some(files) = kept.filter_map(|folder| read_folder(&folder).ok()).next() {
            return Ok(files);
        }
        if let Some(files) = self.known_without_configuration(repository, budget) {
            return files;
        }
        let Some((config, hf_quant_config)) = self.download(repository, budget)? else {
            return self.default_gguf(repository, budget);
        };
        if let Some(folder) = own {
            // Without a cache the next run downloads again; this run still succeeds.
            let _ = keep(&folder, &config, hf_quant_config.as_deref());
        }
        let source = without_secrets(&repository.address(&self.endpoint, CONFIG)).into_owned();
        Ok(ModelFiles { config, hf_quant_config, source, gguf: None })
    }

    /// Its folder in the download cache.
    pub(super) fn own(&self, repository: &Repository) -> Option<PathBuf> {
        Some(self.cache.as_ref()?.join(folder(&self.endpoint)).join(repository.folder()))
    }
}

/// Without network there is no download.
#[cfg(not(feature = "cli"))]
impl Fetch {
    pub(super) fn download(
        &self,
        repository: &Repository,
        _: &FetchBudget,
    ) -> Result<Option<(String, Option<String>)>, Error> {
        without_network(repository, CONFIG)
    }

    pub(super) fn listed(&self, repository: &Repository, _: &FetchBudget) -> Result<Option<String>, Error> {
        without_network(repository, "a GGUF file")
    }

    pub(super) fn remote_header(
        &self,
        repository: &Repository,
        file: &str,
        _: &mut FetchBudget,
    ) -> Result<(GgufHeader, Vec<u8>), Error> {
        without_network(repository, file)
    }
}

#[cfg(not(feature = "cli"))]
fn without_network<T>(repository: &Repository, file: &str) -> Result<T, Error> {
    let fix = format!("build with the feature `cli`; or {}", by_hand(repository, file));
    Err(Error::new("model", "a library built without network", "a cached model", fix))
}

/// Folder name for an endpoint: its address without user and password; each character other than letters, digits, `-`
/// and `.` is replaced by its code, so that no two endpoints share a folder.
fn folder(endpoint: &str) -> String {
    let mut name = String::new();
    for byte in without_user(endpoint).bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' => name.push(byte.into()),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name
}

fn without_user(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{}://{}{path}", scheme.to_lowercase(), host.to_lowercase())
}

pub(super) fn by_hand(repository: &Repository, file: &str) -> String {
    format!(
        "download {file} by hand (https://huggingface.co/{}/blob/{}/{file}) and pass its path",
        repository.id, repository.revision
    )
}

/// The fault of a repository or a file that is not there; `expected` is what it would have.
pub(super) fn missing(repository: &Repository, address: &str, expected: &str) -> Error {
    let revision = &repository.revision;
    let fix = format!("check the name and the revision `{revision}`, and that HF_ENDPOINT serves it");
    Error::new("model", "no such file (HTTP 404)", format!("{expected} of {}", repository.id), fix)
        .in_file(without_secrets(address))
}

fn read_folder(folder: &Path) -> Result<ModelFiles, Error> {
    let whole = |path: PathBuf| {
        let text = file::read(&path)?;
        match is_object(&text) {
            true => Ok(text),
            false => {
                Err(Error::new("", "not a JSON object", "a JSON object", "").in_file(file::shown(&path)))
            }
        }
    };
    let quant_path = folder.join(QUANT);
    Ok(ModelFiles {
        config: whole(folder.join(CONFIG))?,
        hf_quant_config: if quant_path.exists() { Some(whole(quant_path)?) } else { None },
        source: file::shown(&folder.join(CONFIG)),
        gguf: None,
    })
}

/// Writes `config.json` last: if it exists, all files do.
fn keep(folder: &Path, config: &str, hf_quant_config: Option<&str>) -> Result<(), Error> {
    file::make_folder(folder)?;
    match hf_quant_config {
        Some(text) => file::write(&folder.join(QUANT), text)?,
        // Files of an earlier revision are removed.
        None => {
            let _ = fs::remove_file(folder.join(QUANT));
        }
    }
    file::write(&folder.join(CONFIG), config)
}
