//! Options of servers that were measured and published, which an answer has beyond those of its plan: back ends of
//! attention and experts, graphs, intervals.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::spec::option_effect::OptionEffects;

/// Servers with one model, runtime and set of options.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedServer {
    pub runtime: String,
    /// The model that it served, by its id of a hub.
    pub model: String,
    pub model_type: String,
    /// Device ids.
    pub devices: Vec<String>,
    /// Bits of the published weight format: 4, 8 or 16.
    pub weight_bits: u64,
    /// Options with their values, or keys of the runtime's own file.
    #[serde(default)]
    pub flags: Vec<String>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Scripts that start them, below the folder of the source.
    pub scripts: Vec<String>,
}

/// Servers that were measured, with the folder of their scripts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedServers {
    pub source: String,
    pub servers: Vec<PublishedServer>,
}

/// The servers that are known.
pub static PUBLISHED: LazyLock<PublishedServers> = LazyLock::new(|| {
    serde_json::from_str(include_str!("published_flags.json"))
        .unwrap_or(PublishedServers { source: String::new(), servers: vec![] })
});

/// The kind of a server that published ones are compared with.
#[derive(Clone, Copy, Debug)]
pub struct ServerKind<'a> {
    pub runtime: &'a str,
    pub device: &'a str,
    /// Name of the model.
    pub model: &'a str,
    pub model_type: &'a str,
    /// Bits of an element of its weights, with scales.
    pub weight_bits: f64,
}

impl PublishedServer {
    /// The nearest: the same runtime, device, architecture and width of weights; of these, the same model first.
    pub fn nearest(of: &ServerKind) -> Option<&'static PublishedServer> {
        let near = PUBLISHED.servers.iter().filter(|one| {
            one.runtime == of.runtime
                && one.model_type == of.model_type
                && one.weight_bits as f64 == of.weight_bits.floor()
                && one.devices.iter().any(|device| device == of.device)
        });
        near.max_by_key(|one| one.model == of.model)
    }

    /// The file that states its options on the device.
    pub fn source(&self, device: &str) -> String {
        let at = self.devices.iter().position(|one| one == device).and_then(|at| self.scripts.get(at));
        at.map_or(PUBLISHED.source.clone(), |script| format!("{}: {script}", PUBLISHED.source))
    }

    /// Its options but those that a command has too, each with what it changes.
    pub fn beyond(&self, has: impl Fn(&str) -> bool, effects: &OptionEffects) -> Vec<(String, String)> {
        let name = |words: &str| words.split(' ').next().unwrap_or_default().to_owned();
        let reason = |option: &str| match effects.of(option) {
            Some(Ok(why)) => why.to_owned(),
            Some(Err(matters)) => matters.words(),
            None => UNKNOWN.to_owned(),
        };
        let flags = self.flags.iter().map(|words| (name(words), words.clone()));
        let variables = self.environment.iter();
        let variables = variables.map(|(variable, value)| (variable.clone(), format!("{variable}={value}")));
        let new = flags.chain(variables).filter(|(option, _)| !has(option));
        new.map(|(option, words)| (words, reason(&option))).collect()
    }
}

const UNKNOWN: &str = "its effect is not known";
