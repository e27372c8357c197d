//! The defaults file: TOML or JSON with the keys of a scenario.

use std::env;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{OWNING, RENT, Values, values};
use crate::spec::error::Error;
use crate::spec::objective::LatencyLimits;
use crate::spec::scenario::Scenario;
use crate::spec::text::from_json;
use crate::store::file;
use crate::store::hub::user_folder;

/// The defaults file: `$MANTILE_CONFIG`, else `defaults.toml` or `defaults.json` in the user's folder, where it exists.
pub fn find() -> Result<Option<PathBuf>, Error> {
    if let Some(named) = env::var_os("MANTILE_CONFIG").filter(|name| !name.is_empty()) {
        return Ok(Some(PathBuf::from(named)));
    }
    let Some(folder) = user_folder() else { return Ok(None) };
    let [toml, json] = ["defaults.toml", "defaults.json"].map(|name| folder.join(name));
    match (toml.exists(), json.exists()) {
        (true, true) => {
            let found = "both defaults.toml and defaults.json";
            let fault =
                Error::new("", found, "one defaults file", "merge them into one, and delete the other");
            Err(fault.in_file(file::shown(&folder)))
        }
        (true, false) => Ok(Some(toml)),
        (false, true) => Ok(Some(json)),
        (false, false) => Ok(None),
    }
}

/// The values of a defaults file; the ending selects TOML or JSON.
pub fn read(path: &Path) -> Result<Values, Error> {
    let text = file::read(path)?;
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    let parsed = if is_json { from_json(&text, "a defaults file") } else { of_toml(&text) };
    parsed.and_then(of_file).map_err(|fault| fault.in_file(file::shown(path)))
}

fn of_toml(text: &str) -> Result<Value, Error> {
    toml::from_str(text).map_err(|fault| {
        let before = |end: usize| text.bytes().take(end).filter(|byte| *byte == b'\n').count();
        let line = fault.span().map(|span| before(span.start) + 1);
        let place = line.map_or(String::new(), |line| format!(" in line {line}"));
        let fix = "correct that line; a text is in quotes, e.g. ttft = \"500 ms\"";
        Error::new("", format!("{}{place}", fault.message()), "TOML with one `key = value` per line", fix)
    })
}

/// The keys of a scenario, checked.
fn of_file(content: Value) -> Result<Values, Error> {
    let Value::Object(content) = content else {
        return Err(Error::new("", "no object", "keys with values", "write e.g. {\"isl\": 4096}"));
    };
    let scenario: Scenario = from_json(&Value::Object(content).to_string(), "a scenario")?;
    if scenario.deployment.is_some() {
        let fix = "remove it; `estimate --plan-from FILE` reads a deployment";
        return Err(Error::new("deployment", "a deployment", "no deployment in a defaults file", fix));
    }
    checked(&scenario)?;
    let values = values(&scenario);
    if let Some(owning) = OWNING.iter().find(|key| values.contains_key(**key) && values.contains_key(RENT)) {
        let fix = "a rent includes power and building: set only the rent, or only the costs of owning";
        return Err(Error::new(*owning, format!("both {owning} and {RENT}"), "one of them", fix));
    }
    if values.contains_key("rate") && values.contains_key("concurrency") {
        let found = "both concurrency and rate";
        return Err(Error::new("concurrency", found, "one of them", "remove one"));
    }
    Ok(values)
}

/// Checks the values whose range needs no catalogue.
pub fn checked(scenario: &Scenario) -> Result<(), Error> {
    scenario.check()?;
    scenario.limits(LatencyLimits::default())?;
    scenario.axes().map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Values, Error> {
        of_toml(text).and_then(of_file)
    }

    #[test]
    fn toml_and_json_of_the_same_keys_are_the_same() {
        let toml = of("hardware = \"8xh100\"\nttft = \"500 ms\"\nhours_per_day = 6\nisl = 4096").unwrap();
        let json = r#"{"hardware": "8xh100", "ttft": "500 ms", "hours_per_day": 6, "isl": 4096}"#;
        assert_eq!(toml, of_file(from_json(json, "a defaults file").unwrap()).unwrap());
    }

    #[test]
    fn a_fault_names_its_key_or_its_line() {
        for (text, key) in [
            ("hardwear = \"8xh100\"", "hardwear"),
            ("isl = \"many\"", "isl"),
            ("isl = -1", "isl"),
            ("ttft = \"soon\"", "ttft"),
            ("pareto = [\"speed\"]", "pareto"),
            ("hours_per_day = 25", "hours_per_day"),
            ("hours_per_day = 24\nutilization = 1.0", "hours_per_day"),
            ("pue = 1.2\nusd_per_device_hour = 2.0", "pue"),
            ("rate = 1.0\nconcurrency = 2", "concurrency"),
            ("[deployment]\nplan = \"replica 1 x tp2 @1\"", "deployment"),
        ] {
            let fault = of(text).unwrap_err();
            assert_eq!(fault.key, key, "{text}: {fault}");
            assert!(!fault.fix.is_empty() && !fault.expected.is_empty(), "{fault}");
        }
        let fault = of("isl = 1\nosl = = 2").unwrap_err();
        assert!(fault.found.contains("line 2"), "{fault}");
    }
}
