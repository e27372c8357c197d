//! A model as in its Hugging Face `config.json`: keys by name, dtype, quantization.
//!
//! Independent of graphs: builders in `graph::arch` interpret the keys.

pub mod file;
pub mod gguf;
pub mod keys;
pub mod neutral;
pub mod parts;
pub mod quantization;
pub mod scheme;
pub mod value;

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::spec::error::Error;
use crate::spec::json_fault::kind_of;
use crate::spec::text::each_key_once;
use keys::Keys;
use quantization::Quantization;

/// A `config.json`, parsed as far as all architectures share it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// `model_type`, e.g. `llama`; absent in a few old files, which name a class in `architectures`.
    pub model_type: Option<String>,
    /// Classes in `architectures`, e.g. `LlamaForCausalLM`.
    pub architectures: Vec<String>,
    /// `dtype` (or `torch_dtype`) as written, e.g. `bfloat16`.
    pub dtype: Option<String>,
    /// `max_position_embeddings`, in tokens.
    pub max_context: Option<u64>,
    pub quantization: Option<Quantization>,
    map: Map<String, Value>,
}

impl ModelConfig {
    /// Reads the text of a `config.json`.
    pub fn parse(text: &str) -> Result<ModelConfig, Error> {
        ModelConfig::parse_with_quant(text, None)
    }

    /// Reads the text of a `config.json`, and that of its `hf_quant_config.json`, if there is one.
    pub fn parse_with_quant(text: &str, hf_quant_config: Option<&str>) -> Result<ModelConfig, Error> {
        let quant = hf_quant_config.map(object).transpose()?;
        ModelConfig::from_map(object(text)?, quant.as_ref())
    }

    /// The value under `path`, if it has one.
    pub fn value(&self, path: &[String]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.map.get(first)?, |inside, key| inside.get(key))
    }

    /// Takes the parsed object of a `config.json`, and that of an `hf_quant_config.json`.
    pub fn from_map(
        map: Map<String, Value>,
        hf_quant_config: Option<&Map<String, Value>>,
    ) -> Result<ModelConfig, Error> {
        let keys = Keys::new(&map);
        let model_type = keys.text("model_type")?;
        let architectures = keys.texts("architectures")?.unwrap_or_default();
        let text = language(&map);
        let inside = Keys::new(text);
        let mut dtype = None;
        for (keys, key) in
            [(&keys, "dtype"), (&keys, "torch_dtype"), (&inside, "dtype"), (&inside, "torch_dtype")]
        {
            if dtype.is_none() {
                dtype = keys.text(key)?;
            }
        }
        let max_context = match inside.count_or_none("max_position_embeddings")? {
            Some(count) => Some(count.value),
            None => keys.count_or_none("max_position_embeddings")?.map(|count| count.value),
        };
        let max_context = max_context.map(|tokens| yarn_context(text).map_or(tokens, |far| far.max(tokens)));
        let stated = |map: &Map<String, Value>| quantization::KEYS.iter().any(|key| map.contains_key(*key));
        let quantization = Quantization::find(if stated(&map) { &map } else { text }, hf_quant_config)?;
        Ok(ModelConfig { model_type, architectures, dtype, max_context, quantization, map })
    }

    /// The same with `value` at `path`, a key or keys joined by dots, in place of the file's value.
    pub fn with(&self, path: &str, value: Value) -> Result<ModelConfig, Error> {
        let mut map = self.map.clone();
        let mut keys: Vec<&str> = path.split('.').collect();
        let last = keys.pop().unwrap_or_default();
        let mut section = Some(&mut map);
        for key in &keys {
            section = section.and_then(|map| map.get_mut(*key)).and_then(Value::as_object_mut);
        }
        let Some(section) = section.filter(|_| !last.is_empty()) else {
            let fix = "name the key as the file does, e.g. sliding_window or text_config.sliding_window";
            return Err(Error::new(
                path,
                "an object that the file does not have",
                "a key, with the keys of its enclosing objects",
                fix,
            ));
        };
        section.insert(last.to_owned(), value);
        let config = ModelConfig::from_map(map, None)?;
        let restated = path.split('.').any(|key| quantization::KEYS.contains(&key));
        // The keys of `hf_quant_config.json` are not in this file and remain.
        let kept = self.quantization.clone().filter(|_| !restated);
        Ok(ModelConfig { quantization: config.quantization.or(kept), ..config })
    }

    /// The keys, for a builder to read and account for.
    pub fn keys(&self) -> Keys<'_> {
        Keys::new(&self.map)
    }

    /// Number format of the checkpoint's weights: the quantization if given, else the dtype.
    ///
    /// `None` where the file has neither, or a dtype that no accelerator computes.
    pub fn weight_format(&self) -> Option<&'static str> {
        match (&self.quantization, self.dtype.as_deref().map(|dtype| dtype.trim_start_matches("torch."))) {
            (Some(quantization), _) => quantization.weight_format,
            (None, Some("bfloat16")) => Some("bf16"),
            (None, Some("float16")) => Some("fp16"),
            _ => None,
        }
    }
}

/// The context that YaRN reaches, where the configuration has it: `factor` times the trained one, as vLLM and SGLang take
/// it (<https://github.com/vllm-project/vllm>, vllm/config/model.py, `_get_and_verify_max_len`).
fn yarn_context(text: &Map<String, Value>) -> Option<u64> {
    let scaling = ["rope_parameters", "rope_scaling"].iter().find_map(|key| text.get(*key)?.as_object())?;
    let kind = ["rope_type", "type"].iter().find_map(|key| scaling.get(*key)?.as_str())?;
    let trained = scaling.get("original_max_position_embeddings")?.as_u64()?;
    let factor = scaling.get("factor")?.as_f64().filter(|factor| (1.0..=MOST_FACTOR).contains(factor))?;
    (kind == "yarn").then_some((trained as f64 * factor) as u64)
}

/// The most that YaRN lengthens a context: beyond any published factor.
const MOST_FACTOR: f64 = 1e4;

/// Keys of the language model's configuration in multimodal models.
const LANGUAGE: &[&[&str]] =
    &[&["text_config"], &["llm_config"], &["language_config"], &["thinker_config", "text_config"]];

/// The object of the language model: one of [`LANGUAGE`], else the file itself.
fn language(map: &Map<String, Value>) -> &Map<String, Value> {
    let inside = |map, key: &&str| Map::get(map, *key).and_then(Value::as_object);
    LANGUAGE.iter().find_map(|path| path.iter().try_fold(map, inside)).unwrap_or(map)
}

/// The text with `null` for the infinities that Python writes into JSON, e.g. in `time_step_limit`.
fn without_infinities(text: &str) -> Cow<'_, str> {
    if !text.contains("Infinity") {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    // Every other piece between quotes is a string; a quote after an odd number of backslashes is part of one.
    let (mut inside, mut rest) = (false, text);
    while let Some(at) = rest.find('"') {
        let (piece, after) = rest.split_at(at);
        let escaped = inside && (piece.len() - piece.trim_end_matches('\\').len()) % 2 == 1;
        clean.push_str(&if inside { Cow::Borrowed(piece) } else { nulls(piece) });
        clean.push('"');
        inside = inside == escaped;
        rest = &after[1..];
    }
    clean.push_str(&nulls(rest));
    Cow::Owned(clean)
}

fn nulls(piece: &str) -> Cow<'_, str> {
    Cow::Owned(piece.replace("-Infinity", "null").replace("Infinity", "null"))
}

/// Whether `text` is a JSON object, as configurations are.
pub fn is_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(&without_infinities(text)).is_ok()
}

fn object(text: &str) -> Result<Map<String, Value>, Error> {
    let fix = "use the model's config.json as downloaded from its repository";
    let text = without_infinities(text);
    each_key_once(&text)?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(map)) => Ok(map),
        // The text may be that of any file, which a fault does not quote.
        Ok(_) => Err(Error::new("", kind_of(&text), "a JSON object", fix)),
        Err(error) => Err(Error::new("", format!("text that is not JSON: {error}"), "a JSON object", fix)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_and_the_new_name_of_dtype_say_the_same() {
        let old = ModelConfig::parse(r#"{"torch_dtype": "bfloat16"}"#).unwrap();
        let new = ModelConfig::parse(r#"{"dtype": "bfloat16"}"#).unwrap();
        assert_eq!(old.weight_format(), Some("bf16"));
        assert_eq!(old.dtype, new.dtype);
    }

    #[test]
    fn what_a_multimodal_file_says_of_its_language_model_is_found() {
        for text in [
            r#"{"text_config": {"dtype": "bfloat16", "max_position_embeddings": 7}}"#,
            r#"{"torch_dtype": "bfloat16", "llm_config": {"dtype": "float16", "max_position_embeddings": 7}}"#,
            r#"{"thinker_config": {"text_config": {"torch_dtype": "bfloat16", "max_position_embeddings": 7}}}"#,
        ] {
            let config = ModelConfig::parse(text).unwrap();
            assert_eq!((config.weight_format(), config.max_context), (Some("bf16"), Some(7)), "{text}");
        }
        let text =
            r#"{"dtype": "bfloat16", "text_config": {"quantization_config": {"quant_method": "mxfp4"}}}"#;
        assert_eq!(ModelConfig::parse(text).unwrap().weight_format(), Some("mxfp4"));
    }

    #[test]
    fn quantization_wins_over_dtype() {
        let text = r#"{"torch_dtype": "bfloat16", "quantization_config": {"quant_method": "mxfp4"}}"#;
        assert_eq!(ModelConfig::parse(text).unwrap().weight_format(), Some("mxfp4"));
    }

    #[test]
    fn infinities_of_python_are_read_as_null_outside_strings() {
        let text = r#"{"time_step_limit": [0.0, Infinity, -Infinity], "model_type": "\"Infinity\\"}"#;
        let config = ModelConfig::parse(text).unwrap();
        assert_eq!(config.model_type.as_deref(), Some("\"Infinity\\"));
        assert_eq!(config.map["time_step_limit"], serde_json::json!([0.0, null, null]));
    }

    #[test]
    fn text_that_is_no_object_is_refused() {
        for text in ["", "[]", "3", "{\"a\": NaN}", "{\"a\": 1e999}", "{\"model_type\": 7}"] {
            assert!(ModelConfig::parse(text).is_err(), "{text}");
        }
    }
}
