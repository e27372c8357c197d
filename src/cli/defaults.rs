//! The user's defaults: environment variables, then a defaults file, for keys that no flag and no scenario file sets.
//!
//! Only the command line reads them; the library knows flags and files as one scenario.

mod file;

use std::collections::BTreeSet;
use std::env;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use clap::{Args, FromArgMatches};
use serde_json::{Map, Value};

use super::clap_error::of_clap;
use super::terminal::width;
use crate::report::number::count;
use crate::report::text::page::wrap;
use crate::spec::error::Error;
use crate::spec::price::PriceBasis;
use crate::spec::scenario::Scenario;

/// Keys and their values, as in a scenario file.
type Values = Map<String, Value>;

/// Costs of owning, which a rent includes.
const OWNING: &[&str] = &["electricity_usd_per_kwh", "pue", "amortization_months", "utilization"];
const RENT: &str = "usd_per_device_hour";
const BASIS: &str = "price_basis";
const HOURS: &str = "hours_per_day";

/// A key set by a stronger source, and the weaker keys that it replaces: they exclude it or depend on it.
const REPLACED_BY: &[(&str, &[&str])] = &[
    ("model", &["draft", "draft_tokens", "acceptance"]),
    ("draft", &["draft_tokens", "acceptance"]),
    ("hardware", &[RENT]),
    ("runtime", &["runtime_version"]),
    ("rate", &["concurrency"]),
    ("concurrency", &["rate", "percentile"]),
    (RENT, OWNING),
    (RENT, &[BASIS]),
    ("electricity_usd_per_kwh", &[RENT, BASIS]),
    ("pue", &[RENT, BASIS]),
    ("amortization_months", &[RENT, BASIS]),
    ("utilization", &[RENT, BASIS, HOURS]),
    (HOURS, &["utilization"]),
];

/// The weaker keys that a price basis replaces: the costs of the other one.
fn replaced_by_basis(basis: Option<PriceBasis>) -> &'static [&'static str] {
    match basis {
        Some(PriceBasis::Owned) => &[RENT],
        Some(PriceBasis::Rented) => OWNING,
        None => &[],
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct UserDefault {
    pub key: String,
    pub value: Value,
    /// The environment variable, or the file.
    pub source: String,
}

/// The defaults that a command added to its flags, and its overrides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppliedInputs {
    pub defaults: Vec<UserDefault>,
    /// Overrides of values in catalogue files, of the flags and of the scenario file.
    pub overrides: Vec<String>,
}

/// The inputs that a command applied, once it has.
pub type AppliedDefaults = Arc<OnceLock<AppliedInputs>>;

#[derive(Clone, Debug, Default)]
pub struct UserDefaults {
    /// Strongest first.
    sources: Vec<Vec<UserDefault>>,
    pub file: Option<PathBuf>,
    pub applied: AppliedDefaults,
}

impl UserDefaults {
    pub fn from_env() -> Result<UserDefaults, Error> {
        let found = file::find()?;
        let filed = found.as_deref().map(file::read).transpose()?.unwrap_or_default();
        let name = found.as_deref().map(crate::store::file::shown).unwrap_or_default();
        let filed =
            filed.into_iter().map(|(key, value)| UserDefault { key, value, source: name.clone() }).collect();
        Ok(UserDefaults {
            sources: vec![environment()?, filed],
            file: found,
            applied: AppliedDefaults::default(),
        })
    }

    /// `stronger`, with these defaults for its absent keys, as far as the command takes them.
    pub fn under(&self, stronger: Scenario, taken: impl Fn(&str) -> bool) -> Scenario {
        let mut set: BTreeSet<String> = values(&stronger).into_iter().map(|(key, _)| key).collect();
        let mut applied: Vec<UserDefault> = Vec::new();
        for source in &self.sources {
            let replaced: BTreeSet<&str> = REPLACED_BY
                .iter()
                .filter(|(key, _)| set.contains(*key))
                .flat_map(|(_, keys)| keys.iter().copied())
                .chain(replaced_by_basis(stronger.price_basis).iter().copied())
                .collect();
            let free = |one: &&UserDefault| {
                taken(&one.key) && !set.contains(&one.key) && !replaced.contains(one.key.as_str())
            };
            let new: Vec<UserDefault> = source.iter().filter(free).cloned().collect();
            set.extend(new.iter().map(|one| one.key.clone()));
            applied.extend(new);
        }
        // A percentile is one of requests at a rate.
        applied.retain(|one| one.key != "percentile" || set.contains("rate"));
        let of_defaults: Values = applied.iter().map(|one| (one.key.clone(), one.value.clone())).collect();
        // The values were read as a scenario before.
        let of_defaults = serde_json::from_value(Value::Object(of_defaults)).unwrap_or_default();
        let merged = stronger.or(of_defaults);
        let overrides = merged.set.clone().unwrap_or_default();
        // A command poses one problem; a second reading of it applies the same.
        let _ = self.applied.set(AppliedInputs { defaults: applied, overrides });
        merged
    }

    /// No defaults, for a problem that has all its inputs; its overrides are recorded all the same.
    pub fn without(&self) -> UserDefaults {
        UserDefaults { applied: self.applied.clone(), ..UserDefaults::default() }
    }

    /// All of these defaults, without applying them.
    pub fn peek(&self) -> Scenario {
        UserDefaults { applied: AppliedDefaults::default(), ..self.clone() }
            .under(Scenario::default(), |_| true)
    }

    /// Each default that applies without flags, with its source.
    pub fn all(&self) -> Vec<UserDefault> {
        let unapplied = UserDefaults { applied: AppliedDefaults::default(), ..self.clone() };
        unapplied.under(Scenario::default(), |_| true);
        unapplied.applied.get().map(|inputs| inputs.defaults.clone()).unwrap_or_default()
    }

    /// The fault with its file or variable, if a default caused it.
    pub fn located(&self, fault: Error) -> Error {
        // A device is named by the hardware.
        let key = match fault.key.replace('-', "_") {
            key if key == "device" => "hardware".to_owned(),
            key => key,
        };
        match self.applied.get().into_iter().flat_map(|inputs| &inputs.defaults).find(|one| one.key == key) {
            Some(one) => fault.in_file(&one.source),
            None => fault,
        }
    }
}

/// Names the applied defaults and their sources, in lines of the terminal's width; empty if there are none.
pub fn footer(applied: &AppliedDefaults) -> String {
    let applied = applied.get().map_or(&[][..], |inputs| &inputs.defaults);
    let mut sources: Vec<&str> = applied.iter().map(|one| one.source.as_str()).collect();
    sources.dedup();
    let keys = |source: &str| {
        let keys = applied.iter().filter(|one| one.source == source).map(|one| one.key.as_str());
        keys.collect::<Vec<_>>().join(", ")
    };
    match sources.is_empty() {
        true => String::new(),
        false => {
            let parts: Vec<String> =
                sources.iter().map(|source| format!("{} from {source}", keys(source))).collect();
            wrap(&format!("Your defaults: {}", parts.join("; ")), width(), 0, 2)
        }
    }
}

/// The number of overrides and their list, as the first lines of a text; empty if there are none.
pub fn overrides_line(applied: &AppliedDefaults) -> String {
    let overrides = applied.get().map_or(&[][..], |inputs| &inputs.overrides);
    match overrides.len() as u64 {
        0 => String::new(),
        number => wrap(&format!("{}: {}", count(number, "override"), overrides.join("; ")), width(), 0, 2),
    }
}

fn values(scenario: &Scenario) -> Values {
    match serde_json::to_value(scenario) {
        Ok(Value::Object(values)) => values,
        _ => Values::new(),
    }
}

/// The variable of a key: `MANTILE_MODEL`.
fn variable(key: &str) -> String {
    format!("MANTILE_{}", key.to_uppercase())
}

/// The defaults of the environment: each variable is read as its flag.
fn environment() -> Result<Vec<UserDefault>, Error> {
    let flags = Scenario::augment_args(clap::Command::new("environment").no_binary_name(true));
    let set = |name: &str| env::var_os(name).map(|text| text.to_string_lossy().into_owned());
    let set = |name: &str| set(name).filter(|text| !text.trim().is_empty());
    let mut found = Vec::new();
    for (key, long) in flags.get_arguments().filter_map(|arg| Some((arg.get_id().as_str(), arg.get_long()?)))
    {
        let source = variable(key);
        let Some(text) = set(&source) else { continue };
        let parsed = flags.clone().try_get_matches_from([format!("--{long}={text}")]);
        let parsed = parsed.and_then(|matches| Scenario::from_arg_matches(&matches));
        let parsed = parsed.map_err(|fault| Error { file: source.clone(), ..of_clap(&fault) })?;
        file::checked(&parsed).map_err(|fault| fault.in_file(&source))?;
        let of_flag = values(&parsed).into_iter();
        found.extend(of_flag.map(|(key, value)| UserDefault { key, value, source: source.clone() }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn defaults(sources: &[Value]) -> UserDefaults {
        let source = |(at, values): (usize, &Value)| {
            let each = values.as_object().cloned().unwrap_or_default().into_iter();
            each.map(|(key, value)| UserDefault { key, value, source: at.to_string() }).collect()
        };
        UserDefaults { sources: sources.iter().enumerate().map(source).collect(), ..UserDefaults::default() }
    }

    fn scenario(values: Value) -> Scenario {
        serde_json::from_value(values).unwrap()
    }

    proptest! {
        #[test]
        fn the_strongest_source_of_a_key_counts(isl in prop::collection::vec(prop::option::of(1u64..9), 3)) {
            let of = |isl: Option<u64>| isl.map_or_else(|| json!({}), |isl| json!({"isl": isl}));
            let merged = defaults(&[of(isl[1]), of(isl[2])]).under(scenario(of(isl[0])), |_| true);
            prop_assert_eq!(merged.isl, isl[0].or(isl[1]).or(isl[2]));
        }
    }

    #[test]
    fn a_key_replaces_the_weaker_keys_that_exclude_it_or_depend_on_it() {
        let file = json!({"hardware": "8xh100", "usd_per_device_hour": 2.0, "rate": 3.0, "percentile": "p90",
                          "runtime": "sglang", "runtime_version": "1"});
        let of = |flags: Value| defaults(std::slice::from_ref(&file)).under(scenario(flags), |_| true);
        let all = of(json!({}));
        assert_eq!((all.usd_per_device_hour, all.rate), (Some(2.0), Some(3.0)));
        let other = of(json!({"hardware": "4xl40s", "concurrency": 5, "runtime": "vllm"}));
        assert_eq!((other.usd_per_device_hour, other.rate, other.percentile), (None, None, None));
        assert_eq!((other.concurrency, other.runtime_version), (Some(5), None));
        assert_eq!(of(json!({"pue": 1.2})).usd_per_device_hour, None);
        assert_eq!(of(json!({"price_basis": "owned"})).usd_per_device_hour, None);
        assert_eq!(of(json!({"price_basis": "rented"})).usd_per_device_hour, Some(2.0));
        let without = defaults(&[json!({"percentile": "p90"})]).under(Scenario::default(), |_| true);
        assert_eq!(without, Scenario::default(), "no rate, no percentile");
    }

    #[test]
    fn every_replaced_key_is_a_key_of_a_scenario() {
        let flags = Scenario::augment_args(clap::Command::new("flags"));
        let known: Vec<&str> = flags.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        for (key, replaced) in REPLACED_BY {
            assert!(known.contains(key) && replaced.iter().all(|key| known.contains(key)), "{key}");
        }
    }

    #[test]
    fn applied_defaults_and_their_faults_name_the_source() {
        let user = defaults(&[json!({"model": "a"}), json!({"ttft": "1 s", "tpot": "9 ms"})]);
        user.under(scenario(json!({"tpot": "8 ms"})), |_| true);
        assert_eq!(footer(&user.applied), "Your defaults: model from 0; ttft from 1\n");
        let fault = |key: &str| user.located(Error::new(key, "a", "b", "c")).file;
        assert_eq!((fault("ttft").as_str(), fault("tpot").as_str()), ("1", ""));
    }
}
