//! Texts that identify a machine or a person, as hashes with the salt of a store.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::chain::hex;
use crate::spec::run::RunRecord;

/// Words of keys whose texts identify a machine: serial numbers and UUIDs of devices, names and addresses of hosts.
const IDENTIFYING: [&str; 14] = [
    "serial", "uuid", "guid", "host", "hostname", "node", "nodename", "mac", "ip", "address", "user",
    "machine", "bus", "fqdn",
];
/// The beginning of a text that is a hash already.
const SALTED: &str = "salted:";
/// Digits of a hash that are kept: equal ones by chance are as likely as 2^-64 for a pair.
const DIGITS: usize = 16;

/// The run with the identifiers of its environment hashed; the same run always becomes the same.
pub(super) fn without_identifiers(run: &RunRecord, salt: &[u8]) -> RunRecord {
    let mut run = run.clone();
    for settings in [&mut run.env, &mut run.resolved_settings] {
        for (key, value) in settings {
            replace(key, value, salt);
        }
    }
    run
}

fn replace(key: &str, value: &mut Value, salt: &[u8]) {
    match value {
        Value::String(text) if is_identifying(key) && !text.starts_with(SALTED) => {
            let digest = Sha256::new().chain_update(salt).chain_update(text.as_bytes()).finalize();
            *text = format!("{SALTED}{}", &hex(digest)[..DIGITS]);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(key, item, salt)),
        Value::Object(fields) => fields.iter_mut().for_each(|(inner, item)| {
            let key = if is_identifying(key) { key } else { inner.as_str() };
            replace(key, item, salt);
        }),
        _ => {}
    }
}

fn is_identifying(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| IDENTIFYING.contains(&word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn identifiers_are_hashed_once_and_the_rest_is_kept() {
        let mut run = RunRecord::default();
        let env = json!({"driver": "550.120", "gpu_serial": "132", "gpus": [{"uuid": "GPU-1", "name": "L40S"}], "hosts": 2});
        run.env = serde_json::from_value(env).unwrap();
        let hashed = without_identifiers(&run, b"salt");
        let text = serde_json::to_string(&hashed.env).unwrap();
        assert!(!text.contains("132") && !text.contains("GPU-1"), "{text}");
        assert!(text.contains("550.120") && text.contains("L40S"), "{text}");
        assert_eq!(without_identifiers(&hashed, b"salt"), hashed);
        assert_ne!(without_identifiers(&run, b"other"), hashed);
    }
}
