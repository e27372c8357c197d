//! A shipped or user-written model file: a configuration with name, source and parameter count.
//!
//! Independent of the file's folder.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ModelConfig;
use crate::spec::error::Error;
use crate::spec::json_fault::read;
use crate::spec::text::each_key_once;

/// `models/<org>--<name>.json`.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// Source of the configuration: an address or repository, with its revision.
    pub source: String,
    /// Hugging Face id, e.g. `meta-llama/Llama-3.1-8B`.
    pub name: String,
    /// Other names of the same architecture, e.g. its instruction-tuned variants.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// When the model was released, and in which family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// Unique parameters: a tied head once, no buffers, no multi-token prediction.
    pub parameters: u64,
    /// Published number of elements of its checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_total: Option<PublishedTotal>,
    /// Code in the repositories of its checkpoints that a server runs, as in its published recipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<RepositoryCode>,
    /// Checkpoints of this model in other number formats.
    #[serde(default)]
    pub published: Vec<Published>,
    /// The architecture keys of `config.json`.
    pub config: Map<String, Value>,
}

/// The release of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Models of one name in several sizes or versions, e.g. `Qwen3`.
    pub family: String,
    /// Month of the release of its weights, `YYYY-MM`.
    pub date: String,
    /// Source.
    pub source: String,
}

/// Code in a repository, next to the weights, that a server runs where it is trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepositoryCode {
    /// Source.
    pub source: String,
}

/// Number of elements of a checkpoint, as published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedTotal {
    /// Elements of all tensors.
    pub elements: u64,
    /// Source.
    pub source: String,
}

/// A published checkpoint of a model in a number format of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Hugging Face id, e.g. `Qwen/Qwen3-32B-FP8`.
    pub id: String,
    /// Its weight format, e.g. `fp8-block`.
    pub weight_format: String,
    /// Keys in which its configuration differs from the model's, e.g. a `quantization_config` with several formats.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// Source.
    pub source: String,
}

/// Words of names that do not say which model it is.
const UNSPECIFIC: [&str; 7] = ["instruct", "it", "chat", "base", "hf", "meta", "bf16"];

impl Published {
    /// Whether its name is that of `model` with more at the end: models of equal shapes share a file.
    pub fn is_of(&self, model: &str) -> bool {
        let words = |id: &str| -> Vec<String> {
            let end = id.rsplit('/').next().unwrap_or(id).to_lowercase().replace('_', "-");
            end.split('-').filter(|word| !UNSPECIFIC.contains(word)).map(str::to_owned).collect()
        };
        words(&self.id).starts_with(&words(model))
    }
}

impl ModelFile {
    /// Reads the text of a model file.
    pub fn parse(text: &str) -> Result<ModelFile, Error> {
        each_key_once(text)?;
        read(text, "a model file").map_err(|fault| Error {
            fix: "write source, name, parameters, config; optional: aliases, release, code, published"
                .to_owned(),
            ..fault
        })
    }

    /// The repository that `text` names, by its id or by the end of it, where it is not the file's own: an alias.
    pub fn repository_of(&self, text: &str) -> Option<&str> {
        let end = |id: &str| id.rsplit('/').next().unwrap_or(id).to_owned();
        let is = |id: &str| {
            let known = if text.contains('/') { id.to_owned() } else { end(id) };
            known.eq_ignore_ascii_case(text)
        };
        let aliases = self.aliases.iter().filter(|alias| alias.contains('/') && !is(&self.name));
        aliases.map(String::as_str).find(|alias| is(alias))
    }

    /// The configuration in the file.
    pub fn model_config(&self) -> Result<ModelConfig, Error> {
        self.config_of(None)
    }

    /// The configuration of a published checkpoint, or of the model.
    pub fn config_of(&self, published: Option<&Published>) -> Result<ModelConfig, Error> {
        let mut map = self.config.clone();
        for (key, value) in published.iter().flat_map(|one| &one.config) {
            // Keys of the language model are in a part of their own where there are encoders.
            let inner = map.get_mut("text_config").and_then(Value::as_object_mut);
            match inner.filter(|inner| inner.contains_key(key)) {
                Some(inner) => inner.insert(key.clone(), value.clone()),
                None => map.insert(key.clone(), value.clone()),
            };
        }
        ModelConfig::from_map(map, None).map_err(|mut error| {
            error.key = format!("config.{}", error.key);
            error
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_of_the_model_whose_name_it_begins_with() {
        let of = |id: &str, model: &str| {
            let published = Published {
                id: id.to_owned(),
                weight_format: String::new(),
                config: Map::new(),
                source: String::new(),
            };
            published.is_of(model)
        };
        assert!(of("nvidia/Qwen3.6-27B-NVFP4", "Qwen/Qwen3.6-27B"));
        assert!(!of("nvidia/Qwen3.6-27B-NVFP4", "Qwen/Qwen3.5-27B"));
        assert!(of("hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "meta-llama/Llama-3.1-8B"));
        assert!(of("solidrust/Mistral-7B-Instruct-v0.3-AWQ", "mistralai/Mistral-7B-v0.3"));
        assert!(!of("nvidia/Llama-3.3-70B-Instruct-FP8", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B"));
        assert!(!of("QuantTrio/Qwen3-VL-32B-Instruct-AWQ", "Qwen/Qwen3-VL-32B-Thinking"));
    }

    #[test]
    fn an_alias_names_a_repository_of_its_own() {
        let text = r#"{"source": "s", "name": "a/b-1", "parameters": 1, "config": {},
                       "aliases": ["a/b-2", "short", "c/b-1"]}"#;
        let file = ModelFile::parse(text).unwrap();
        for (named, repository) in [
            ("a/b-2", Some("a/b-2")),
            ("B-2", Some("a/b-2")),
            ("short", None),
            ("a/b-1", None),
            ("b-1", None),
        ] {
            assert_eq!(file.repository_of(named), repository, "{named}");
        }
        assert_eq!(file.repository_of("c/b-1"), Some("c/b-1"));
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_place() {
        let text = r#"{"source": "s", "name": "a/b", "parameters": 1, "config": {},
            "published": [{"id": "a/c", "format": "fp8", "source": "s"}]}"#;
        let error = ModelFile::parse(text).unwrap_err();
        assert!(error.key.starts_with("published[0]"), "{error}");
        assert!(error.found.contains("format"), "{error}");
    }

    #[test]
    fn a_fault_in_the_configuration_says_that_it_lies_there() {
        let text = r#"{"source": "s", "name": "a/b", "parameters": 1, "config": {"model_type": 3}}"#;
        let error = ModelFile::parse(text).unwrap().model_config().unwrap_err();
        assert_eq!(error.key, "config.model_type");
    }
}
