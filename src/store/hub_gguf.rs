//! GGUF files of repositories: the one that a name means, and its header from the caches or the hub.

use std::path::Path;

use serde::Deserialize;

use super::fetch::{CONFIG, Fetch, FetchBudget, ModelFiles, missing};
use super::file;
use super::gguf::{self, ENDING};
use super::hub::{Repository, is_plain_path};
use crate::spec::error::Error;
use crate::spec::json_fault;
use crate::spec::model::gguf::GgufHeader;
use crate::spec::visible::without_secrets;

/// The rules of llama.cpp's `-hf`: `find_best_model` and `gguf_filename_is_model` in
/// <https://github.com/ggml-org/llama.cpp/blob/master/common/download.cpp>.
///
/// Quantizations of a name that states none, the first one first; then the first file counts.
const DEFAULT_QUANTIZATIONS: [&str; 2] = ["Q4_K_M", "Q8_0"];
/// Parts of the names of files that are no models: projectors, statistics, heads for drafts.
const NO_MODELS: [&str; 6] = ["mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-"];
/// Number of digits of a part's number in `-00001-of-00003.gguf`.
const DIGITS: usize = 5;
/// Maximum number of file names that a message lists.
const MOST_NAMES: usize = 12;
/// Levels of folders of the hub's cache in which files are found: quantizations in parts have one of their own.
const LEVELS: usize = 2;

/// The list of files of a repository in the download cache: `config.json` and GGUF files.
const LIST: &str = "files.json";

/// `GET /api/models/{repo_id}/revision/{revision}`, as `huggingface_hub.model_info` reads it:
/// <https://huggingface.co/docs/hub/api>.
#[derive(Deserialize)]
struct HubListing {
    siblings: Vec<HubSibling>,
}

#[derive(Deserialize)]
struct HubSibling {
    /// Its path in the repository.
    rfilename: String,
}

/// Whether a file is a model or the first part of one.
fn is_model(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some(stem) = name.strip_suffix(ENDING) else { return false };
    let is_number = |text: &str| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    let part = stem.rsplit_once("-of-").filter(|(_, parts)| is_number(parts));
    let part = part.and_then(|(rest, _)| rest.rsplit_once('-')).map(|(_, part)| part);
    let first = part.filter(|part| is_number(part)).is_none_or(|part| part.parse() == Ok(1));
    first && !NO_MODELS.iter().any(|word| name.contains(word))
}

/// Whether the path of a file states a quantization: in any case, before a `.` or `-`.
fn states(path: &str, quantization: &str) -> bool {
    let (path, wanted) = (path.to_lowercase(), quantization.to_lowercase());
    path.match_indices(&wanted).any(|(at, _)| path[at + wanted.len()..].starts_with(['.', '-']))
}

/// The file that llama.cpp's `-hf` chooses.
fn chosen<'a>(files: &'a [String], quantization: Option<&str>) -> Option<&'a String> {
    let mut models = files.iter().filter(|file| is_model(file));
    let of = |wanted: &str| models.clone().find(|file| states(file, wanted));
    match quantization {
        Some(wanted) => of(wanted),
        None => DEFAULT_QUANTIZATIONS.into_iter().find_map(of).or_else(|| models.next()),
    }
}

impl Fetch {
    /// The model of a GGUF file.
    pub(super) fn gguf(
        &self,
        repository: &Repository,
        file: &str,
        budget: &mut FetchBudget,
    ) -> Result<ModelFiles, Error> {
        let source = without_secrets(&repository.address(&self.endpoint, file)).into_owned();
        if !is_plain_path(file) {
            let expected = "a file name of letters, digits, `-`, `_` and `.`";
            let fix = "download it by hand, rename it and pass its path";
            return Err(Error::new("model", format!("`{file}`"), expected, fix).in_file(source));
        }
        let header = |part: &Path| self.header(repository, &part.to_string_lossy(), budget);
        let config = gguf::text_of(Path::new(file), &source, header)?;
        Ok(ModelFiles { config, hf_quant_config: None, source, gguf: Some(file.to_owned()) })
    }

    /// The model of the GGUF file that llama.cpp chooses of a quantization.
    pub(super) fn quantized(
        &self,
        repository: &Repository,
        quantization: &str,
        budget: &mut FetchBudget,
    ) -> Result<ModelFiles, Error> {
        let hub = || {
            let folder = repository.downloads(self.hub.as_deref()?).filter(|_| !self.refresh)?;
            chosen(&gguf_files(&folder, LEVELS), Some(quantization)).cloned()
        };
        let file = match self.kept_files(repository) {
            Some(files) => chosen(&files, Some(quantization)).cloned(),
            None => hub(),
        };
        if let Some(file) = file {
            return self.gguf(repository, &file, budget);
        }
        let address = repository.listing(&self.endpoint);
        let files = self.files(repository, budget)?;
        let Some(files) = files else { return Err(missing(repository, &address, "the GGUF files")) };
        match chosen(&files, Some(quantization)) {
            Some(file) => self.gguf(repository, file, budget),
            None => {
                Err(no_such_quantization(repository, quantization, &files).in_file(without_secrets(&address)))
            }
        }
    }

    /// The model of the GGUF file that llama.cpp chooses in a repository without `config.json`, where the cache has its
    /// list of files.
    pub(super) fn known_without_configuration(
        &self,
        repository: &Repository,
        budget: &mut FetchBudget,
    ) -> Option<Result<ModelFiles, Error>> {
        let files = self.kept_files(repository)?;
        let file = chosen(&files, None).filter(|_| !files.iter().any(|file| file == CONFIG))?;
        Some(self.gguf(repository, file, budget))
    }

    /// The same, from the hub.
    pub(super) fn default_gguf(
        &self,
        repository: &Repository,
        budget: &mut FetchBudget,
    ) -> Result<ModelFiles, Error> {
        let files = self.files(repository, budget)?.unwrap_or_default();
        match chosen(&files, None) {
            Some(file) => self.gguf(repository, file, budget),
            None => {
                let address = repository.address(&self.endpoint, CONFIG);
                Err(missing(repository, &address, &format!("{CONFIG} or a GGUF file")))
            }
        }
    }

    /// The header of a file: cached, or fetched and cached.
    fn header(
        &self,
        repository: &Repository,
        file: &str,
        budget: &mut FetchBudget,
    ) -> Result<GgufHeader, Error> {
        let own = self.own(repository).map(|folder| folder.join(file));
        let hub = || Some(repository.downloads(self.hub.as_deref()?)?.join(file));
        let kept = own.clone().into_iter().chain(hub()).filter(|_| !self.refresh);
        if let Some(header) = kept.filter_map(|path| gguf::read(&path).ok()).next() {
            return Ok(header);
        }
        let (header, bytes) = self.remote_header(repository, file, budget)?;
        if let Some(path) = own {
            // Without a cache the next run fetches again; this run still succeeds.
            let folder = path.parent().map_or(Ok(()), file::make_folder);
            let _ = folder.and_then(|()| file::write_bytes(&path, &bytes));
        }
        Ok(header)
    }

    /// The list of files in the download cache.
    fn kept_files(&self, repository: &Repository) -> Option<Vec<String>> {
        let path = self.own(repository).filter(|_| !self.refresh)?.join(LIST);
        serde_json::from_str(&file::read(&path).ok()?).ok()
    }

    /// `config.json` and the GGUF files of a repository, by the hub; `None` where there is no such repository.
    fn files(&self, repository: &Repository, budget: &FetchBudget) -> Result<Option<Vec<String>>, Error> {
        let Some(text) = self.listed(repository, budget)? else { return Ok(None) };
        let listing: HubListing = json_fault::read(&text, "the files of a repository").map_err(|fault| {
            let fix = format!("name the file: hf:{}/FILE{ENDING}", repository.id);
            Error { fix, ..fault }.in_file(without_secrets(&repository.listing(&self.endpoint)))
        })?;
        let names = listing.siblings.into_iter().map(|sibling| sibling.rfilename);
        let files: Vec<String> = names.filter(|name| name == CONFIG || name.ends_with(ENDING)).collect();
        if let Some(folder) = self.own(repository) {
            let text = serde_json::json!(files).to_string();
            // As with a header.
            let _ = file::write_in_folder(&folder.join(LIST), &text);
        }
        Ok(Some(files))
    }
}

fn no_such_quantization(repository: &Repository, quantization: &str, files: &[String]) -> Error {
    let models: Vec<&str> = files.iter().map(String::as_str).filter(|file| is_model(file)).collect();
    let more = match models.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = models.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
    let (expected, fix) = match models.first() {
        None => ("a repository with GGUF files".to_owned(), format!("name the model: hf:{}", repository.id)),
        Some(first) => {
            (format!("one of {names}{more}"), format!("name one of them, e.g. hf:{}/{first}", repository.id))
        }
    };
    Error::new("model", format!("no GGUF model of `{quantization}`"), expected, fix)
}

/// GGUF files in a folder and those below it, by their paths, sorted.
fn gguf_files(folder: &Path, levels: usize) -> Vec<String> {
    let names = file::names(folder).unwrap_or_default();
    let found = names.into_iter().flat_map(|name| {
        let path = folder.join(&name);
        if levels > 1 && path.is_dir() {
            let below = gguf_files(&path, levels - 1);
            return below.into_iter().map(|file| format!("{name}/{file}")).collect();
        }
        if name.ends_with(ENDING) { vec![name] } else { vec![] }
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_file_is_chosen_as_llama_cpp_chooses_it() {
        let all = files(&[
            "README.md",
            "BF16/m-BF16-00001-of-00002.gguf",
            "BF16/m-BF16-00002-of-00002.gguf",
            "imatrix_unsloth.gguf",
            "m-IQ4_XS.gguf",
            "m-Q4_K_M.gguf",
            "m-Q8_0.gguf",
            "m-UD-Q4_K_XL.gguf",
            "mmproj-F16.gguf",
        ]);
        for (quantization, expected) in [
            (None, Some("m-Q4_K_M.gguf")),
            (Some("q8_0"), Some("m-Q8_0.gguf")),
            (Some("iq4_xs"), Some("m-IQ4_XS.gguf")),
            (Some("UD-Q4_K_XL"), Some("m-UD-Q4_K_XL.gguf")),
            (Some("BF16"), Some("BF16/m-BF16-00001-of-00002.gguf")),
            // A whole quantization is stated, not the start of one.
            (Some("Q4_K"), None),
            (Some("Q2_K"), None),
            (Some("mmproj"), None),
        ] {
            assert_eq!(chosen(&all, quantization).map(String::as_str), expected, "{quantization:?}");
        }
        let without =
            |word: &str| -> Vec<String> { all.iter().filter(|file| !file.contains(word)).cloned().collect() };
        assert_eq!(chosen(&without("Q4_K_M"), None).map(String::as_str), Some("m-Q8_0.gguf"));
        let first = files(&["b-00002-of-00002.gguf", "b-00001-of-00002.gguf", "a-F16.gguf"]);
        assert_eq!(chosen(&first, None).map(String::as_str), Some("b-00001-of-00002.gguf"));
        assert_eq!(chosen(&files(&["mmproj-F16.gguf", "config.json"]), None), None);
    }

    #[test]
    fn an_absent_quantization_lists_the_others() {
        let repository = Repository { id: "a/b".into(), revision: "main".into() };
        let fault = no_such_quantization(&repository, "Q2_K", &files(&["m-Q8_0.gguf", "mmproj-F16.gguf"]));
        assert!(fault.expected.contains("m-Q8_0.gguf") && !fault.expected.contains("mmproj"), "{fault}");
        let many: Vec<String> = (0..20).map(|at| format!("m-{at}.gguf")).collect();
        assert!(no_such_quantization(&repository, "Q2_K", &many).expected.ends_with("8 more"));
        assert!(no_such_quantization(&repository, "Q2_K", &[]).fix.contains("hf:a/b"));
    }
}
