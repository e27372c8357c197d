//! A GGUF header as a `config.json` of transformers: its keys are derived by the tables of `gguf.json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::spec::error::Error;
use crate::spec::model::gguf::{GgufHeader, GgufTensor, GgufValue, MOST_LAYERS};

/// A value of `config.json`, derived from a header. The keys of the metadata are those after the architecture; a tensor
/// of a layer is named with `*` for its number, and is the first that there is.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum KeyDerivation {
    /// The whole number at a key; of a list, the number that all its entries are.
    Key(String),
    Rule(Box<DerivationRule>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DerivationRule {
    /// A value that the architecture implies.
    Is(Value),
    /// A number for each layer.
    Each(String),
    /// The largest number of a list.
    Largest(String),
    /// A number as a flag.
    Flag(KeyDerivation),
    /// The side of a tensor, the innermost being 0.
    Dim(String, usize),
    Has(String),
    Lacks(String),
    /// Number of the layers that have a tensor.
    Count(String),
    /// Numbers of the layers that have a tensor; that of the first layer is the second of these.
    Indices(String, u64),
    /// The first layer that has a tensor, from 0.
    FirstLayer(String),
    /// Layers from one that has a tensor to the next that has it; all layers where there is only one.
    Period(String),
    /// The number of a list at the first layer whose flag in another list is this.
    Among(String, String, bool),
    /// For each layer, what the first of these tensors that it has means.
    Layers(Vec<(String, Value)>),
    /// For each layer, what a flag of a list means: not set, set. A number n instead: each n-th is not set.
    Pattern(String, Value, Value),
    /// The first of these that the header has.
    First(Vec<KeyDerivation>),
    /// The second where the first is set, else the third.
    Where(KeyDerivation, KeyDerivation, KeyDerivation),
    Plus(KeyDerivation, KeyDerivation),
    Minus(KeyDerivation, KeyDerivation),
    Times(KeyDerivation, KeyDerivation),
    Over(KeyDerivation, KeyDerivation),
    /// A section of keys.
    Section(BTreeMap<String, KeyDerivation>),
}

/// Keys of `config.json`; a key that ends in `?` is left out where the header does not have its value, and one without a
/// derivation always.
pub type Derivations = BTreeMap<String, Option<KeyDerivation>>;

/// An architecture of llama.cpp as a class of transformers.
#[derive(Deserialize)]
pub struct GgufArchitecture {
    /// `general.architecture`.
    name: String,
    /// The condition on headers of this class; one name may mean several.
    #[serde(default)]
    when: Vec<KeyDerivation>,
    model_type: String,
    class: String,
    /// Its keys in addition to the common ones; `null` for a common key that it does not have.
    #[serde(default)]
    keys: Derivations,
}

/// A header, as the derivations read it.
pub struct DerivedConfig<'a> {
    header: &'a GgufHeader,
    tensors: BTreeMap<&'a str, &'a [u64]>,
    /// `general.architecture`.
    name: &'a str,
    layers: u64,
}

impl<'a> DerivedConfig<'a> {
    pub fn new(header: &'a GgufHeader, tensors: &'a [GgufTensor]) -> DerivedConfig<'a> {
        let name = header.text("general.architecture").unwrap_or_default();
        let count = |suffix: &str| header.whole(&format!("{name}.{suffix}")).unwrap_or(0);
        let layers = count("block_count").saturating_sub(count("nextn_predict_layers"));
        let tensors = tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.dims.as_slice())).collect();
        DerivedConfig { header, tensors, name, layers: layers.min(MOST_LAYERS) }
    }

    /// Number of layers, without those of multi-token prediction.
    pub fn layers(&self) -> u64 {
        self.layers
    }

    /// The architecture keys of `config.json`.
    pub fn config(
        &self,
        common: &Derivations,
        known: &[GgufArchitecture],
    ) -> Result<Map<String, Value>, Error> {
        let is =
            |one: &&GgufArchitecture| one.name == self.name && one.when.iter().all(|rule| self.set(rule));
        let architecture = known.iter().find(is).ok_or_else(|| self.unknown(known))?;
        let mut config = Map::new();
        config.insert("architectures".into(), json!([architecture.class]));
        config.insert("model_type".into(), json!(architecture.model_type));
        let own = &architecture.keys;
        let bare = |key: &str| key.trim_end_matches('?').to_owned();
        let common = common.iter().filter(|(key, _)| !own.keys().any(|one| bare(one) == bare(key)));
        for (key, derivation) in common.chain(own) {
            let Some(derivation) = derivation else { continue };
            match self.value(derivation) {
                Some(value) => config.insert(bare(key), value),
                None if key.ends_with('?') => None,
                None => return Err(self.missing(derivation, key)),
            };
        }
        config.insert("torch_dtype".into(), json!("bfloat16"));
        Ok(config)
    }

    fn unknown(&self, known: &[GgufArchitecture]) -> Error {
        let fix = "name the model itself with --weight-format, e.g. gguf-q4_k_m";
        let named: Vec<&str> =
            known.iter().filter(|one| one.name == self.name).map(|one| &*one.class).collect();
        if !named.is_empty() {
            let expected = format!("the tensors and metadata of {}", named.join(" or "));
            let found = format!("`{}` of another class", self.name);
            return Error::new("general.architecture", found, expected, fix);
        }
        let mut names: Vec<&str> = known.iter().map(|one| one.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let found = format!("`{}`", self.name);
        Error::new("general.architecture", found, format!("one of {}", names.join(", ")), fix)
    }

    fn missing(&self, derivation: &KeyDerivation, key: &str) -> Error {
        if let KeyDerivation::Rule(rule) = derivation
            && let DerivationRule::Dim(tensor, _) = rule.as_ref()
        {
            let fix = "name the first part of the file, or its config.json";
            return Error::new(tensor, "no such tensor", format!("the tensor that has {key}"), fix);
        }
        let name = match derivation {
            KeyDerivation::Key(suffix) => self.key(suffix),
            KeyDerivation::Rule(_) => key.to_owned(),
        };
        let fix = "convert the model again, or name its config.json";
        Error::new(name, "no whole number", "the number that the class needs", fix)
    }

    fn key(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.name)
    }

    fn list(&self, suffix: &str) -> Option<&'a [u64]> {
        match self.header.metadata.get(&self.key(suffix))? {
            GgufValue::Wholes(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// The sides of a tensor, the `*` in whose name is this layer.
    fn at(&self, name: &str, layer: u64) -> Option<&'a [u64]> {
        self.tensors.get(name.replace('*', &layer.to_string()).as_str()).copied()
    }

    fn dims(&self, name: &str) -> Option<&'a [u64]> {
        match name.contains('*') {
            true => (0..self.layers).find_map(|layer| self.at(name, layer)),
            false => self.at(name, 0),
        }
    }

    fn each(&self, of: impl Fn(u64) -> Option<Value>) -> Option<Value> {
        (0..self.layers).map(of).collect::<Option<Vec<Value>>>().map(Value::Array)
    }

    /// Numbers of the layers that have a tensor.
    fn having<'b>(&'b self, name: &'b str) -> impl Iterator<Item = u64> + 'b {
        (0..self.layers).filter(move |layer| self.at(name, *layer).is_some())
    }

    fn among(&self, numbers: &str, flags: &str, flag: bool) -> Option<u64> {
        let at = self.list(flags)?.iter().position(|one| (*one != 0) == flag)?;
        match self.list(numbers) {
            Some(list) => list.get(at).copied(),
            None => self.header.whole(&self.key(numbers)),
        }
    }

    fn number(&self, derivation: &KeyDerivation) -> Option<u64> {
        self.value(derivation)?.as_u64()
    }

    /// Whether a derivation has a value other than 0 and no.
    fn set(&self, derivation: &KeyDerivation) -> bool {
        !matches!(self.value(derivation), None | Some(Value::Bool(false) | Value::Null))
            && self.number(derivation) != Some(0)
    }

    fn value(&self, derivation: &KeyDerivation) -> Option<Value> {
        match derivation {
            KeyDerivation::Key(suffix) => self.header.whole(&self.key(suffix)).map(Value::from),
            KeyDerivation::Rule(rule) => self.derived(rule),
        }
    }

    fn derived(&self, rule: &DerivationRule) -> Option<Value> {
        match rule {
            DerivationRule::Is(value) => Some(value.clone()),
            DerivationRule::First(several) => several.iter().find_map(|one| self.value(one)),
            DerivationRule::Where(one, yes, no) => self.value(if self.set(one) { yes } else { no }),
            DerivationRule::Flag(one) => self.number(one).map(|number| json!(number != 0)),
            DerivationRule::Plus(a, b) => self.computed(a, b, u64::checked_add),
            DerivationRule::Minus(a, b) => self.computed(a, b, u64::checked_sub),
            DerivationRule::Times(a, b) => self.computed(a, b, u64::checked_mul),
            DerivationRule::Over(a, b) => self.computed(a, b, u64::checked_div),
            DerivationRule::Section(keys) => {
                let values = keys.iter().map(|(key, one)| Some((key.clone(), self.value(one)?)));
                values.collect::<Option<Map<String, Value>>>().map(Value::Object)
            }
            DerivationRule::Each(suffix) => match (self.list(suffix), self.header.whole(&self.key(suffix))) {
                (Some(numbers), _) => Some(json!(numbers)),
                (None, number) => self.each(|_| number.map(Value::from)),
            },
            DerivationRule::Largest(suffix) => {
                let largest = self.list(suffix).and_then(|numbers| numbers.iter().max().copied());
                largest.or_else(|| self.header.whole(&self.key(suffix))).map(Value::from)
            }
            DerivationRule::Among(numbers, flags, flag) => self.among(numbers, flags, *flag).map(Value::from),
            DerivationRule::Pattern(suffix, no, yes) => self.pattern(suffix, no, yes),
            rule => self.of_tensors(rule),
        }
    }

    fn computed(
        &self,
        a: &KeyDerivation,
        b: &KeyDerivation,
        of: fn(u64, u64) -> Option<u64>,
    ) -> Option<Value> {
        of(self.number(a)?, self.number(b)?).map(Value::from)
    }

    fn pattern(&self, suffix: &str, no: &Value, yes: &Value) -> Option<Value> {
        let flags = self.list(suffix);
        let period = self.header.whole(&self.key(suffix)).filter(|period| *period > 0);
        let is = |layer: u64| match flags {
            Some(flags) => flags.get(usize::try_from(layer).ok()?).map(|flag| *flag != 0),
            None => period.map(|period| !(layer + 1).is_multiple_of(period)),
        };
        self.each(|layer| is(layer).map(|set| if set { yes.clone() } else { no.clone() }))
    }

    fn of_tensors(&self, rule: &DerivationRule) -> Option<Value> {
        match rule {
            DerivationRule::Dim(name, side) => self.dims(name)?.get(*side).copied().map(Value::from),
            DerivationRule::Has(name) => Some(json!(self.dims(name).is_some())),
            DerivationRule::Lacks(name) => Some(json!(self.dims(name).is_none())),
            DerivationRule::Count(name) => Some(json!(self.having(name).count())),
            DerivationRule::Indices(name, base) => {
                Some(json!(self.having(name).map(|layer| layer.saturating_add(*base)).collect::<Vec<u64>>()))
            }
            DerivationRule::FirstLayer(name) => self.having(name).next().map(Value::from),
            DerivationRule::Period(name) => {
                let mut having = self.having(name);
                let first = having.next()?;
                Some(json!(having.next().map_or(self.layers, |second| second - first)))
            }
            DerivationRule::Layers(meanings) => self.each(|layer| {
                meanings
                    .iter()
                    .find(|(name, _)| self.at(name, layer).is_some())
                    .map(|(_, value)| value.clone())
            }),
            _ => None,
        }
    }
}
