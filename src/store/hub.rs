//! Names and cache layout of Hugging Face repositories. No network access.

use std::env;
use std::path::{Path, PathBuf};

use super::file;
use crate::spec::error::Error;
use crate::spec::visible::without_secrets;

#[derive(Clone, Debug, PartialEq)]
pub struct Repository {
    /// `ORG/NAME`.
    pub id: String,
    /// Branch, tag or commit.
    pub revision: String,
}

const MAIN: &str = "main";
const HOSTS: [&str; 4] =
    ["https://huggingface.co", "http://huggingface.co", "https://hf.co", "huggingface.co"];

impl Repository {
    /// `hf:ORG/NAME`, `hf:ORG/NAME@REVISION` or an address under the endpoint; `None` where `text` is neither.
    pub fn parse(text: &str, endpoint: &str) -> Result<Option<Repository>, Error> {
        if let Some(rest) = text.strip_prefix("hf:") {
            let (id, revision) = rest.split_once('@').unwrap_or((rest, MAIN));
            return Repository::new(text, id, revision).map(Some);
        }
        let hosts = HOSTS.into_iter().chain([endpoint]);
        let path = hosts.filter_map(|host| text.strip_prefix(host)?.strip_prefix('/')).next();
        let Some(path) = path else {
            if text.starts_with("http://") || text.starts_with("https://") {
                return Err(refuse(text, &format!("an address under {}", without_secrets(endpoint))));
            }
            return Ok(None);
        };
        let path = path.split(['?', '#']).next().unwrap_or(path).trim_end_matches('/');
        let mut parts = path.splitn(4, '/');
        let id = match (parts.next(), parts.next()) {
            (Some(org), Some(name)) => format!("{org}/{name}"),
            _ => path.to_owned(),
        };
        let revision = match (parts.next(), parts.next()) {
            (None, _) => MAIN,
            (Some("tree"), Some(revision)) => revision,
            (Some("blob" | "resolve" | "raw"), Some(rest)) => rest.split('/').next().unwrap_or(MAIN),
            _ => return Err(refuse(text, "ORG/NAME, optionally with /tree/REVISION")),
        };
        Repository::new(text, &id, revision).map(Some)
    }

    fn new(text: &str, id: &str, revision: &str) -> Result<Repository, Error> {
        let parts: Vec<&str> = id.split('/').collect();
        if parts.len() > 2 || !parts.iter().all(|part| is_plain(part)) {
            return Err(refuse(text, "ORG/NAME of letters, digits, `-`, `_` and `.`"));
        }
        if !revision.split('/').all(is_plain) {
            return Err(refuse(text, "a branch, tag or commit after `@`"));
        }
        Ok(Repository { id: id.to_owned(), revision: revision.to_owned() })
    }

    pub fn address(&self, endpoint: &str, file: &str) -> String {
        format!("{endpoint}/{}/resolve/{}/{file}", self.id, self.revision.replace('/', "%2F"))
    }

    /// Its folder in the cache of one endpoint. Another repository or revision has another folder: `@` and `%` occur in
    /// no name.
    pub fn folder(&self) -> PathBuf {
        let revision = self.revision.replace('/', "%2F");
        PathBuf::from(format!("{}@{revision}", self.id))
    }

    /// Its folder in the hub's own cache, if it was downloaded there.
    pub fn snapshot(&self, hub: &Path) -> Option<PathBuf> {
        let repository = hub.join(format!("models--{}", self.id.replace('/', "--")));
        let named = file::read(&repository.join("refs").join(&self.revision)).ok();
        let commit = named.map_or_else(|| self.revision.clone(), |text| text.trim().to_owned());
        // The content of a cache entry names a folder in it, never elsewhere.
        if !commit.split('/').all(is_plain) {
            return None;
        }
        let folder = repository.join("snapshots").join(commit);
        folder.join("config.json").is_file().then_some(folder)
    }
}

/// Whether a name is that of a repository: `ORG/NAME`. Paths and other names are not.
pub fn is_repository(name: &str) -> bool {
    name.split_once('/').is_some_and(|(organisation, name)| is_plain(organisation) && is_plain(name))
}

/// Whether a part of a name is a valid file name on every system, without a path.
fn is_plain(part: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !part.is_empty()
        && part.len() <= 128
        && part.chars().all(known)
        && !part.starts_with('.')
        && !part.contains("..")
}

fn refuse(text: &str, expected: &str) -> Error {
    Error::new("model", format!("`{text}`"), expected, "write e.g. hf:Qwen/Qwen3-8B or hf:Qwen/Qwen3-8B@main")
}

/// The hub's own cache: `$HF_HUB_CACHE`, else `hub` in `$HF_HOME`, else in `huggingface` of the user's cache.
pub fn hub_cache() -> Option<PathBuf> {
    named_folder("HF_HUB_CACHE")
        .or_else(|| Some(named_folder("HF_HOME")?.join("hub")))
        .or_else(|| Some(user_cache()?.join("huggingface/hub")))
}

/// `$XDG_CACHE_HOME`, else `~/.cache`.
pub fn user_cache() -> Option<PathBuf> {
    named_folder("XDG_CACHE_HOME").or_else(|| Some(named_folder("HOME")?.join(".cache")))
}

/// The user's folder: `$MANTILE_HOME`, else `mantile` in `$XDG_CONFIG_HOME`, `%APPDATA%` (Windows) or `~/.config`.
pub fn user_folder() -> Option<PathBuf> {
    let windows = || cfg!(windows).then(|| named_folder("APPDATA")).flatten();
    let config = || {
        let unix = || Some(named_folder("HOME")?.join(".config"));
        named_folder("XDG_CONFIG_HOME").or_else(windows).or_else(unix)
    };
    named_folder("MANTILE_HOME").or_else(|| Some(config()?.join("mantile")))
}

/// The folder in an environment variable.
pub(super) fn named_folder(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn parse(text: &str) -> Result<Option<(String, String)>, Error> {
        let found = Repository::parse(text, "http://localhost:8080")?;
        Ok(found.map(|repository| (repository.id, repository.revision)))
    }

    #[test]
    fn names_and_addresses_mean_repositories() {
        let is = |text: &str, id: &str, revision: &str| {
            assert_eq!(parse(text), Ok(Some((id.into(), revision.into()))), "{text}");
        };
        is("hf:Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "main");
        is("hf:gpt2@abc123", "gpt2", "abc123");
        is("hf:a/b@refs/pr/1", "a/b", "refs/pr/1");
        is("https://huggingface.co/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "main");
        is("https://huggingface.co/Qwen/Qwen3-8B/tree/v1.0/", "Qwen/Qwen3-8B", "v1.0");
        is("https://huggingface.co/Qwen/Qwen3-8B/blob/dev/config.json?x=1", "Qwen/Qwen3-8B", "dev");
        is("http://localhost:8080/a/b", "a/b", "main");
        assert_eq!(parse("Qwen/Qwen3-8B"), Ok(None));
    }

    #[test]
    fn what_would_leave_its_folder_is_refused() {
        for text in [
            "hf:",
            "hf:a/",
            "hf:../b",
            "hf:a/b/c",
            "hf:a/b@../../x",
            "hf:a/b@",
            "hf:a b/c",
            "https://example.com/a/b",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_hubs_own_cache_is_read_by_its_layout() {
        let hub = tempfile::tempdir().unwrap();
        let repository = Repository { id: "a/b".into(), revision: "main".into() };
        assert_eq!(repository.snapshot(hub.path()), None);
        let root = hub.path().join("models--a--b");
        fs::create_dir_all(root.join("refs")).unwrap();
        fs::create_dir_all(root.join("snapshots/c0ffee")).unwrap();
        fs::write(root.join("refs/main"), "c0ffee\n").unwrap();
        fs::write(root.join("snapshots/c0ffee/config.json"), "{}").unwrap();
        assert_eq!(repository.snapshot(hub.path()), Some(root.join("snapshots/c0ffee")));
    }

    #[test]
    fn a_slash_in_a_revision_is_escaped() {
        let repository = Repository { id: "a/b".into(), revision: "refs/pr/1".into() };
        assert_eq!(
            repository.address("http://h", "config.json"),
            "http://h/a/b/resolve/refs%2Fpr%2F1/config.json"
        );
    }
}
