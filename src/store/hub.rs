//! Names and cache layout of Hugging Face repositories. No network access.

use std::env;
use std::path::{Path, PathBuf};

use super::fetch::CONFIG;
use super::file;
use super::gguf::ENDING;
use crate::spec::error::Error;
use crate::spec::visible::without_secrets;

/// A model in a repository, as a name states it.
#[derive(Clone, Debug, PartialEq)]
pub struct HubName {
    pub repository: Repository,
    pub part: HubPart,
}

/// The part of a repository that states the model.
#[derive(Clone, Debug, PartialEq)]
pub enum HubPart {
    /// `config.json`, or in a repository without one the GGUF file that llama.cpp chooses.
    Whole,
    /// The GGUF file that llama.cpp chooses of this quantization.
    Quantized(String),
    /// This GGUF file, with its folder in the repository.
    File(String),
}

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

impl HubName {
    /// `hf:ORG/NAME[@REVISION]`, the same with `:QUANT` or `/FILE.gguf`, or an address under the endpoint; `None` where
    /// `text` is neither.
    pub fn parse(text: &str, endpoint: &str) -> Result<Option<HubName>, Error> {
        if let Some(rest) = text.strip_prefix("hf:") {
            return HubName::short(text, rest).map(Some);
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
        let (revision, file) = match (parts.next(), parts.next()) {
            (None, _) => (MAIN, None),
            (Some("tree"), Some(revision)) => (revision, None),
            (Some("blob" | "resolve" | "raw"), Some(rest)) => {
                rest.split_once('/').map_or((rest, None), |(revision, file)| (revision, Some(file)))
            }
            _ => return Err(refuse(text, "ORG/NAME, optionally with /tree/REVISION")),
        };
        let file = file.filter(|file| file.ends_with(ENDING));
        // Addresses of the hub escape the `/` of a revision.
        HubName::of(text, (&id, &revision.replace("%2F", "/")), file).map(Some)
    }

    /// The form after `hf:`.
    fn short(text: &str, rest: &str) -> Result<HubName, Error> {
        if let Some((name, quantization)) = rest.split_once(':') {
            if !is_plain(quantization) {
                return Err(refuse(text, "a quantization after `:`, such as Q4_K_M"));
            }
            let (id, revision) = name.split_once('@').unwrap_or((name, MAIN));
            let name = HubName::of(text, (id, revision), None)?;
            return Ok(HubName { part: HubPart::Quantized(quantization.to_owned()), ..name });
        }
        // Revisions of the hub itself have three parts: refs/pr/1. Others before a file have one.
        let parts = |text: &str| if text.starts_with("refs/") { 3 } else { 1 };
        match rest.split_once('@') {
            Some((id, rest)) => {
                let (revision, file) = with_file(rest, parts(rest));
                HubName::of(text, (id, revision), file)
            }
            None => {
                let (id, file) = with_file(rest, 2);
                HubName::of(text, (id, MAIN), file)
            }
        }
    }

    fn of(text: &str, (id, revision): (&str, &str), file: Option<&str>) -> Result<HubName, Error> {
        let repository = Repository::new(text, id, revision)?;
        let part = match file {
            None => HubPart::Whole,
            Some(file) if is_plain_path(file) => HubPart::File(file.to_owned()),
            Some(_) => {
                return Err(refuse(text, "the path of a GGUF file of letters, digits, `-`, `_` and `.`"));
            }
        };
        Ok(HubName { repository, part })
    }

    /// The name without `hf:`; another model has another one.
    pub fn key(&self) -> String {
        let Repository { id, revision } = &self.repository;
        let revision = if revision == MAIN { String::new() } else { format!("@{revision}") };
        match &self.part {
            HubPart::Whole => format!("{id}{revision}"),
            HubPart::Quantized(quantization) => format!("{id}{revision}:{quantization}"),
            HubPart::File(file) => format!("{id}{revision}/{file}"),
        }
    }
}

/// `text` as its first parts and the GGUF file after them, if it names one.
fn with_file(text: &str, parts: usize) -> (&str, Option<&str>) {
    let slash = text.match_indices('/').nth(parts - 1).filter(|_| text.ends_with(ENDING));
    slash.map_or((text, None), |(at, _)| (&text[..at], Some(&text[at + 1..])))
}

impl Repository {
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

    /// The address of the list of its files, by the API of the hub.
    pub fn listing(&self, endpoint: &str) -> String {
        format!("{endpoint}/api/models/{}/revision/{}", self.id, self.revision.replace('/', "%2F"))
    }

    /// Its folder in the hub's own cache, if `config.json` was downloaded there.
    pub fn snapshot(&self, hub: &Path) -> Option<PathBuf> {
        self.downloads(hub).filter(|folder| folder.join(CONFIG).is_file())
    }

    /// Its folder in the hub's own cache, if it was downloaded there in part.
    pub fn downloads(&self, hub: &Path) -> Option<PathBuf> {
        let repository = hub.join(format!("models--{}", self.id.replace('/', "--")));
        let named = file::read(&repository.join("refs").join(&self.revision)).ok();
        let commit = named.map_or_else(|| self.revision.clone(), |text| text.trim().to_owned());
        // The content of a cache entry names a folder in it, never elsewhere.
        if !commit.split('/').all(is_plain) {
            return None;
        }
        let folder = repository.join("snapshots").join(commit);
        folder.is_dir().then_some(folder)
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

/// Whether a file of a repository has a path that stays in its folder, of plain names.
pub(super) fn is_plain_path(path: &str) -> bool {
    path.split('/').all(is_plain)
}

fn refuse(text: &str, expected: &str) -> Error {
    let fix = "write e.g. hf:Qwen/Qwen3-8B, hf:Qwen/Qwen3-8B@main or hf:Qwen/Qwen3-8B-GGUF:Q4_K_M";
    Error::new("model", format!("`{text}`"), expected, fix)
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

    const ENDPOINT: &str = "http://localhost:8080";

    fn parse(text: &str) -> Result<Option<(String, String)>, Error> {
        let found = HubName::parse(text, ENDPOINT)?;
        Ok(found.map(|HubName { repository, .. }| (repository.id, repository.revision)))
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
    fn files_and_quantizations_of_a_repository_have_names() {
        let is = |text: &str, revision: &str, part: HubPart, key: &str| {
            let name = HubName::parse(text, ENDPOINT).unwrap().unwrap();
            assert_eq!((name.repository.id.as_str(), name.repository.revision.as_str()), ("a/b", revision));
            assert_eq!((&name.part, name.key().as_str()), (&part, key), "{text}");
        };
        let file = |path: &str| HubPart::File(path.to_owned());
        is("hf:a/b/x.gguf", "main", file("x.gguf"), "a/b/x.gguf");
        is("hf:a/b/c/d/x.gguf", "main", file("c/d/x.gguf"), "a/b/c/d/x.gguf");
        is("hf:a/b@v1/c/x.gguf", "v1", file("c/x.gguf"), "a/b@v1/c/x.gguf");
        is("hf:a/b@refs/pr/1/x.gguf", "refs/pr/1", file("x.gguf"), "a/b@refs/pr/1/x.gguf");
        is("hf:a/b@x.gguf", "x.gguf", HubPart::Whole, "a/b@x.gguf");
        is("https://huggingface.co/a/b/blob/main/c/x.gguf", "main", file("c/x.gguf"), "a/b/c/x.gguf");
        is(
            "http://localhost:8080/a/b/resolve/v1/x.gguf?download=true",
            "v1",
            file("x.gguf"),
            "a/b@v1/x.gguf",
        );
        is("huggingface.co/a/b/blob/main/x.gguf", "main", file("x.gguf"), "a/b/x.gguf");
        let first = "https://hf.co/a/b/resolve/refs%2Fpr%2F1/x.gguf";
        is(first, "refs/pr/1", file("x.gguf"), "a/b@refs/pr/1/x.gguf");
        is("https://huggingface.co/a/b/blob/main/config.json", "main", HubPart::Whole, "a/b");
        is("hf:a/b:Q4_K_M", "main", HubPart::Quantized("Q4_K_M".into()), "a/b:Q4_K_M");
        is("hf:a/b@v1:q8_0", "v1", HubPart::Quantized("q8_0".into()), "a/b@v1:q8_0");
        assert_eq!(parse("hf:a/b.gguf"), Ok(Some(("a/b.gguf".into(), "main".into()))));
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
            "hf:a/b/../x.gguf",
            "hf:a/b//x.gguf",
            "hf:a/b/.gguf",
            "hf:a/b/c d.gguf",
            "hf:a/b/%2e%2e/x.gguf",
            "hf:a/b:",
            "hf:a/b:../x",
            "hf:a/b/x.gguf:Q4_K_M",
            "https://huggingface.co/a/b/blob/main/../x.gguf",
            "https://example.com/a/b",
            "https://example.com/a/b/resolve/main/x.gguf",
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
