//! From `--model` to a configuration: a catalogue name, a file or folder, or a repository to download.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::catalog::{Catalog, LookupError, OutsideAccess, is_path};
use super::fetch::{Fetch, ModelFiles, QUANT};
use super::file;
use super::gguf::ENDING;
use super::hub::{HubName, HubPart};
use super::model_lookup::{NamedModel, StatedFormat};
use super::used_files::{DOWNLOADS, PATHS, closed_path};
use crate::graph::checkpoint::Checkpoint;
use crate::graph::model::ModelGraph;
use crate::spec::error::Error;
use crate::spec::model::ModelConfig;
use crate::spec::model::file::{ModelFile, Published, PublishedTotal, Release};
use crate::spec::precision::CheckpointLayout;
use crate::spec::text::{entry_from_json, from_json, shown_name};

#[derive(Clone, Debug)]
pub struct ResolvedModel {
    /// Hugging Face id, or its path.
    pub name: String,
    pub config: Arc<ModelConfig>,
    pub published: Vec<Published>,
    /// The published checkpoint that was named instead of the model.
    pub named: Option<Published>,
    pub published_total: Option<PublishedTotal>,
    /// When it was released, and in which family.
    pub release: Option<Release>,
    /// The model of the catalogue, or the file of the repository, and its format, that another name was read as.
    pub read_as: Option<String>,
    /// The repository that was named, where it is another one with the same shapes.
    pub repository: Option<String>,
    pub source: String,
    /// Whether the repositories of its checkpoints have code that a server runs.
    pub has_code: bool,
    /// Sizes of its checkpoint, computed when first needed.
    layout: Arc<OnceLock<Option<CheckpointLayout>>>,
}

impl ResolvedModel {
    /// A model of which only the configuration is known.
    fn of(name: String, config: ModelConfig, source: String) -> ResolvedModel {
        // Its classes are in the repository.
        let has_code = config.value(&["auto_map".to_owned()]).is_some();
        ResolvedModel {
            name,
            has_code,
            config: config.into(),
            published: vec![],
            named: None,
            published_total: None,
            release: None,
            read_as: None,
            repository: None,
            source,
            layout: Arc::default(),
        }
    }

    /// The model of a file in the format of the catalogue's.
    fn of_file(text: &str, source: String) -> Result<ResolvedModel, Error> {
        let file = model_file(text).map_err(|fault| fault.in_file(&source))?;
        let config = file.model_config().map_err(|fault| fault.in_file(&source))?;
        Ok(ResolvedModel {
            // A GGUF file is its own checkpoint.
            named: file.published.first().filter(|_| source.ends_with(ENDING)).cloned(),
            published: file.published,
            published_total: file.published_total,
            release: file.release,
            has_code: file.code.is_some(),
            ..ResolvedModel::of(file.name, config, source)
        })
    }

    /// Weight bytes by role in the formats of the checkpoint; `graph` is its own.
    pub(super) fn layout(&self, graph: &ModelGraph) -> Option<CheckpointLayout> {
        let of = || Checkpoint::layout(graph, &self.config);
        // Images may change blocks.
        if graph.image_inputs.is_some() { of() } else { self.layout.get_or_init(of).clone() }
    }
}

impl Catalog {
    /// The model that `text` refers to.
    ///
    /// # Errors
    /// It is not a name, path or repository, or its configuration is faulty.
    pub fn model(&self, text: &str) -> Result<ResolvedModel, Error> {
        self.changed(text, self.unchanged_model(text)?)
    }

    fn unchanged_model(&self, text: &str) -> Result<ResolvedModel, Error> {
        let fetch = Fetch { refresh: self.refresh, ..Fetch::from_env() };
        let text = text.trim();
        if let Some(name) = HubName::parse(text, &fetch.endpoint)? {
            return self.fetched(&name, &fetch);
        }
        if is_path(text) {
            let read = self.read_model(text);
            return read.or_else(|fault| self.model_by_file(text).ok_or(fault));
        }
        match self.named_model(text) {
            Ok(named) => from_catalog(&named, text),
            Err(LookupError::Unknown(_)) if self.is_outside(text) => self.read_model(text),
            Err(LookupError::Unknown(fault)) if text.contains('/') => {
                let fix = format!(
                    "{}; or write `hf:{text}` to fetch it, or the path of its config.json",
                    fault.fix
                );
                Err(Error { fix, ..fault })
            }
            Err(miss) => Err(miss.into()),
        }
    }

    /// A model and its graph.
    pub fn built(&self, name: &str) -> Result<(ResolvedModel, ModelGraph), Error> {
        let model = self.model(name)?;
        let graph = ModelGraph::build(&model.config).map_err(|fault| fault.in_file(&model.source))?;
        self.unknown_keys.check(&model.source, &graph.ignored_keys)?;
        Ok((model, graph))
    }

    /// Names of the catalogue's models, the largest first.
    pub fn models_by_size(&self) -> Result<Vec<String>, Error> {
        let mut models = self.all::<ModelFile>()?;
        models.sort_by(|a, b| b.parameters.cmp(&a.parameters).then(a.name.cmp(&b.name)));
        Ok(models.into_iter().map(|model| model.name).collect())
    }

    /// A downloaded model; published checkpoints in the catalogue are added.
    fn fetched(&self, name: &HubName, fetch: &Fetch) -> Result<ResolvedModel, Error> {
        let files = self.downloaded(name, fetch)?;
        if let Some(gguf) = &files.gguf {
            let model = ResolvedModel::of_file(&files.config, files.source)?;
            let chosen = |named: &Published| format!("{gguf} in {}", named.weight_format);
            let read_as =
                model.named.as_ref().filter(|_| name.part != HubPart::File(gguf.clone())).map(chosen);
            let named = model.named.map(|named| Published { id: name.key(), ..named });
            return Ok(ResolvedModel { name: name.key(), named, read_as, ..model });
        }
        let repository = &name.repository;
        let quant = files.hf_quant_config.as_deref();
        let config = ModelConfig::parse_with_quant(&files.config, quant)
            .map_err(|fault| fault.in_file(&files.source))?;
        let known =
            self.named_model(&repository.id).ok().and_then(|named| from_catalog(&named, &repository.id).ok());
        let known = known.filter(|known| known.named.is_none() && known.read_as.is_none());
        let fetched = ResolvedModel::of(repository.id.clone(), config, files.source);
        let Some(ResolvedModel { published_total, release, published, has_code, .. }) = known else {
            return Ok(fetched);
        };
        let has_code = fetched.has_code || has_code;
        Ok(ResolvedModel { published_total, release, published, has_code, ..fetched })
    }

    /// The model that the name of a file or folder states, which is not on this machine: commands for other machines
    /// name theirs by it.
    fn model_by_file(&self, text: &str) -> Option<ResolvedModel> {
        let named = (text.ends_with(ENDING) || !text.ends_with(".json")) && !Path::new(text).exists();
        let named = self.named_model(text).ok().filter(|_| named)?;
        from_catalog(&named, text).ok()
    }

    /// Whether a text is the path of a model's file or folder.
    fn is_outside(&self, text: &str) -> bool {
        (self.outside == OutsideAccess::All && Path::new(text).exists())
            || self.given(PATHS, text).is_some()
            || self.given(PATHS, &within(text)).is_some()
    }

    /// A `config.json` or its folder, or a file in the format of the catalogue's.
    fn read_model(&self, text: &str) -> Result<ResolvedModel, Error> {
        if self.outside != OutsideAccess::All && self.given(PATHS, text).is_none() {
            return Err(Error { key: "model".into(), ..closed_path(text) });
        }
        let folder = Path::new(text).is_dir() || self.given(PATHS, &within(text)).is_some();
        let path: PathBuf = if folder { within(text).into() } else { text.into() };
        let text = self.outside(&path.to_string_lossy())?;
        let source = file::shown(&path);
        if is_entry(&text) {
            return ResolvedModel::of_file(&text, source);
        }
        let quant = path.with_file_name(QUANT);
        let name = quant.to_string_lossy();
        let known = quant.exists() || self.given(PATHS, &name).is_some();
        let quant = if known { Some(self.outside(&name)?) } else { None };
        let config =
            ModelConfig::parse_with_quant(&text, quant.as_deref()).map_err(|fault| fault.in_file(&source))?;
        let named = match path.file_name().and_then(|name| name.to_str()) {
            Some("config.json") => path.parent().and_then(Path::file_name),
            _ => path.file_stem(),
        };
        let name = named.map_or_else(|| source.clone(), |name| name.to_string_lossy().into_owned());
        shown_name("model", &name).map_err(|fault| fault.in_file(&source))?;
        Ok(ResolvedModel::of(name, config, source))
    }

    /// The files of a download: given, or fetched.
    fn downloaded(&self, name: &HubName, fetch: &Fetch) -> Result<ModelFiles, Error> {
        let key = name.key();
        let files = match self.given(DOWNLOADS, &key) {
            Some(text) => from_json(&text, "a downloaded model")?,
            None if self.sealed => return Err(self.absent(&key)),
            None if self.outside == OutsideAccess::Nothing => {
                let fix = "name a model of the catalogue";
                let found = format!("`hf:{key}`");
                return Err(Error::new("model", found, "a model that needs no download", fix));
            }
            None => fetch.model(name)?,
        };
        if self.used.is_some() {
            self.note((DOWNLOADS, &key), &serde_json::json!(files).to_string());
        }
        Ok(files)
    }
}

fn within(folder: &str) -> String {
    Path::new(folder).join("config.json").to_string_lossy().into_owned()
}

/// A file of the catalogue; `text` is the name in the user's input.
fn from_catalog(found: &NamedModel, text: &str) -> Result<ResolvedModel, Error> {
    let shelved = &found.entry;
    let content = shelved.text()?;
    shelved.note_use();
    shown_name("model", &shelved.id).map_err(|fault| fault.in_file(&shelved.file))?;
    shown_name("model", text)?;
    if shelved.user && !is_entry(&content) {
        let config = ModelConfig::parse(&content).map_err(|fault| fault.in_file(&shelved.file))?;
        return Ok(ResolvedModel::of(shelved.id.clone(), config, shelved.file.clone()));
    }
    let file = if shelved.user { model_file(&content) } else { ModelFile::parse(&content) };
    let file = file.map_err(|fault| fault.in_file(&shelved.file))?;
    let config = file.model_config().map_err(|fault| fault.in_file(&shelved.file))?;
    if let (true, StatedFormat::Own, Some(base)) = (found.varied, &found.format, &found.base)
        && let Some(own) = config.quantization.as_ref().map(|quantized| &quantized.method)
    {
        // Kimi-K2-Thinking has the shapes of Kimi-K2-Instruct in another format.
        let found = format!("`{text}`, a variant of {base}, whose checkpoint is quantized ({own})");
        let fix = format!("use --model {base}, or add the format to the name, e.g. {base}-BF16");
        return Err(Error::new("model", found, "a checkpoint whose format is known", fix));
    }
    let (named, read_as) = checkpoint(found, &file, config.weight_format(), text);
    let config = match &named {
        Some(named) if !named.config.is_empty() => {
            file.config_of(Some(named)).map_err(|fault| fault.in_file(&shelved.file))?
        }
        _ => config,
    };
    let repository = file.repository_of(text).filter(|_| named.is_none() && read_as.is_none());
    let repository = repository.map(str::to_owned);
    let of = repository.clone().unwrap_or_else(|| file.name.clone());
    let published = file.published.into_iter().filter(|one| one.is_of(&of)).collect();
    let name = named.as_ref().map_or(file.name, |published| published.id.clone());
    Ok(ResolvedModel {
        published_total: file.published_total.filter(|_| named.is_none()),
        published,
        repository,
        release: file.release,
        has_code: file.code.is_some(),
        named,
        read_as,
        ..ResolvedModel::of(name, config, format!("{} ({})", shelved.file, file.source))
    })
}

/// The checkpoint that `text` names, and what it is read as; `own` is the format of the model's configuration.
fn checkpoint(
    found: &NamedModel,
    file: &ModelFile,
    own: Option<&'static str>,
    text: &str,
) -> (Option<Published>, Option<String>) {
    if let StatedFormat::Published(id) = &found.format {
        return (file.published.iter().find(|one| one.id == *id).cloned(), None);
    }
    let Some(base) = &found.base else { return (None, None) };
    let format = found.format(own);
    let read_as = match format {
        Some((id, differs)) => {
            format!("{base} in {id}{}", differs.map_or(String::new(), |how| format!(", {how}")))
        }
        None => base.clone(),
    };
    let named = format.map(|(id, _)| Published {
        id: text.to_owned(),
        weight_format: id.to_owned(),
        config: serde_json::Map::new(),
        source: format!("its name, read as {base}"),
    });
    (named, Some(read_as))
}

/// A model file that is not built in.
fn model_file(text: &str) -> Result<ModelFile, Error> {
    let file = ModelFile::parse(text)?;
    entry_from_json::<Value>(text, "a model file")?;
    Ok(file)
}

/// Whether the text is a file of the catalogue, not a `config.json`.
fn is_entry(text: &str) -> bool {
    let value: Option<Value> = serde_json::from_str(text).ok();
    value.is_some_and(|value| {
        value.get("config").is_some_and(Value::is_object) && value.get("source").is_some()
    })
}
