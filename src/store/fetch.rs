//! A model's configuration from Hugging Face or a mirror: from the cache, or downloaded and cached.

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::{Deserialize, Serialize};

use super::file;
use super::hub::{Repository, hub_cache, user_cache};
use crate::spec::error::Error;
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
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ModelFiles {
    /// Text of `config.json`.
    pub config: String,
    /// Text of `hf_quant_config.json`, if the repository has one.
    pub hf_quant_config: Option<String>,
    pub source: String,
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
        }
    }

    /// Without network there is no download.
    #[cfg(not(feature = "cli"))]
    fn download(&self, repository: &Repository) -> Result<(String, Option<String>), Error> {
        let fix = format!("build with the feature `cli`; or {}", by_hand(repository));
        Err(Error::new("model", "a library built without network", "a cached configuration", fix))
    }

    /// The configuration of `repository`: cached, or downloaded and cached. An unreadable cache entry is downloaded
    /// again.
    pub fn model(&self, repository: &Repository) -> Result<ModelFiles, Error> {
        let own =
            self.cache.as_ref().map(|cache| cache.join(folder(&self.endpoint)).join(repository.folder()));
        let hub = || repository.snapshot(self.hub.as_deref()?);
        let kept = own.clone().into_iter().chain(hub()).filter(|_| !self.refresh);
        if let Some(files) = kept.filter_map(|folder| read_folder(&folder).ok()).next() {
            return Ok(files);
        }
        let (config, hf_quant_config) = self.download(repository)?;
        if let Some(folder) = own {
            // Without a cache the next run downloads again; this run still succeeds.
            let _ = keep(&folder, &config, hf_quant_config.as_deref());
        }
        Ok(ModelFiles {
            config,
            hf_quant_config,
            source: without_secrets(&repository.address(&self.endpoint, CONFIG)).into_owned(),
        })
    }
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

pub(super) fn by_hand(repository: &Repository) -> String {
    format!(
        "download {CONFIG} by hand (https://huggingface.co/{}/blob/{}/{CONFIG}) and pass its path",
        repository.id, repository.revision
    )
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
    })
}

/// Writes `config.json` last: if it exists, all files do.
fn keep(folder: &Path, config: &str, hf_quant_config: Option<&str>) -> Result<(), Error> {
    fs::create_dir_all(folder)
        .map_err(|fault| Error::new("", file::spell(&fault), "a folder", "").in_file(file::shown(folder)))?;
    match hf_quant_config {
        Some(text) => file::write(&folder.join(QUANT), text)?,
        // Files of an earlier revision are removed.
        None => {
            let _ = fs::remove_file(folder.join(QUANT));
        }
    }
    file::write(&folder.join(CONFIG), config)
}
