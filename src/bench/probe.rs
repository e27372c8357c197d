//! Facts that a server reports about itself: its model, runtime, version, settings and metrics.
//!
//! Only numbers, switches and names of methods are kept: no path, no address, no key and no text of a template.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::absent::AbsentServer;
use super::client::Endpoint;
use super::tls::tls_fault;
use crate::spec::error::Error;

/// Longest wait for a fact.
const WITHIN: Duration = Duration::from_secs(10);
/// The list of models, which every server has.
pub const MODELS: &str = "/v1/models";
/// Settings that are kept, at most.
const MOST_SETTINGS: usize = 400;

/// Texts that are kept: names of methods and of formats. Other texts may be paths, addresses or keys.
const METHODS: &str = "dtype kv_cache_dtype cache_dtype quantization attention_backend decode_attention_backend \
                       prefill_attention_backend sampling_backend moe_runner_backend schedule_policy \
                       schedule_conservativeness speculative_algorithm disaggregation_mode load_format \
                       chat_format cudagraph_mode runner_type tokenizer_mode version";
/// Numbers that say where a server is, not how it runs.
const PLACES: &str = "port nccl_port dist_init_addr pid seed random_seed id created";

/// Facts about a server.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerFacts {
    /// The name of its first model.
    pub(super) model: Option<String>,
    /// Its runtime, where it says so.
    pub(super) runtime: Option<&'static str>,
    pub(super) version: Option<String>,
    pub(super) settings: BTreeMap<String, Value>,
}

/// Where a runtime reports its version and settings, and how its lists of models name it.
struct RuntimeProbe {
    runtime: &'static str,
    owner: &'static str,
    version: (&'static str, &'static str),
    settings: &'static str,
}

const PROBES: [RuntimeProbe; 4] = [
    RuntimeProbe {
        runtime: "vllm",
        owner: "vllm",
        version: ("/version", "/version"),
        settings: "/server_info?config_format=json",
    },
    RuntimeProbe {
        runtime: "sglang",
        owner: "sglang",
        version: ("/get_server_info", "/version"),
        settings: "/get_server_info",
    },
    RuntimeProbe {
        runtime: "llama.cpp",
        owner: "llamacpp",
        version: ("/props", "/build_info"),
        settings: "/props",
    },
    RuntimeProbe { runtime: "ollama", owner: "library", version: ("/api/version", "/version"), settings: "" },
];

async fn object(endpoint: &Endpoint, path: &str) -> Option<Value> {
    let (status, text) = endpoint.answered(path, WITHIN).await.ok()?;
    serde_json::from_str(&text).ok().filter(|value: &Value| status == 200 && value.is_object())
}

/// The facts that a server reports; the inner fault is that of a server that is absent.
///
/// # Errors
/// Its encryption is not that of the address.
pub(super) async fn facts(endpoint: &Endpoint) -> Result<Result<ServerFacts, AbsentServer>, Error> {
    let (status, text) = match endpoint.answered(MODELS, WITHIN).await {
        Ok(answer) => answer,
        Err(fault) => return tls_fault(&fault).map_or_else(|| Ok(Err(AbsentServer::unreached(&fault))), Err),
    };
    if status == 401 || status == 403 {
        return Ok(Err(AbsentServer::refusing(status)));
    }
    let models: Value = serde_json::from_str(&text).unwrap_or_default();
    let listed = |key: &str| models.pointer(&format!("/data/0/{key}")).and_then(Value::as_str);
    let mut facts = ServerFacts { model: listed("id").map(str::to_owned), ..ServerFacts::default() };
    for probe in &PROBES {
        if listed("owned_by").is_some_and(|owner| owner != probe.owner) {
            continue;
        }
        let Some(version) = object(endpoint, probe.version.0).await else { continue };
        let version = version.pointer(probe.version.1).and_then(Value::as_str);
        if let Some(version) = version.filter(|version| version.len() <= MOST_TEXT) {
            facts.runtime = Some(probe.runtime);
            facts.version = Some(version.to_owned());
            if let Some(settings) = object(endpoint, probe.settings).await {
                keep(&mut facts.settings, "", &settings);
            }
            break;
        }
    }
    Ok(Ok(facts))
}

/// Whether a server does not answer any more.
pub(super) async fn is_gone(endpoint: &Endpoint) -> bool {
    endpoint.answered(MODELS, WITHIN).await.is_err()
}

/// Longest text that is kept.
const MOST_TEXT: usize = 60;

/// Keeps the numbers, switches and names of methods in `value`, under the path of their keys.
fn keep(settings: &mut BTreeMap<String, Value>, path: &str, value: &Value) {
    let key = path.rsplit('.').next().unwrap_or_default();
    let is_one_of = |list: &str| list.split_whitespace().any(|one| one == key);
    let kept = match value {
        Value::Bool(_) | Value::Number(_) => !is_one_of(PLACES),
        Value::String(text) => is_one_of(METHODS) && text.len() <= MOST_TEXT && !text.contains('/'),
        Value::Object(all) => {
            for (key, value) in all {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                keep(settings, &path, value);
            }
            false
        }
        Value::Null | Value::Array(_) => false,
    };
    if kept && settings.len() < MOST_SETTINGS {
        settings.insert(path.to_owned(), value.clone());
    }
}

/// The metrics that a server exports, summed over their labels: without buckets, under the names of a runtime.
pub(super) async fn scraped(endpoint: &Endpoint) -> BTreeMap<String, f64> {
    match endpoint.answered("/metrics", WITHIN).await {
        Ok((200, text)) => exported(&text),
        _ => BTreeMap::new(),
    }
}

const EXPORTED: [&str; 4] = ["vllm:", "sglang:", "llamacpp:", "ollama_"];

fn exported(text: &str) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    for line in text.lines().filter(|line| EXPORTED.iter().any(|prefix| line.starts_with(prefix))) {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        // A value may be followed by its time.
        let rest = line.rfind('}').map_or(&line[name.len()..], |end| &line[end + 1..]);
        let value = rest.split_whitespace().next().and_then(|value| value.parse::<f64>().ok());
        let value = value.filter(|value| value.is_finite());
        if let Some(value) = value.filter(|_| !name.ends_with("_bucket") && !name.ends_with("_created")) {
            *found.entry(name.to_owned()).or_insert(0.0) += value;
        }
    }
    found
}

/// The growth of counters from `before` on, and the gauges of `after`.
pub(super) fn grown(before: &BTreeMap<String, f64>, after: BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let counter = |name: &str| ["_total", "_sum", "_count"].iter().any(|ending| name.ends_with(ending));
    let of = |(name, value): (String, f64)| {
        let earlier = if counter(&name) { before.get(&name).copied().unwrap_or(0.0) } else { 0.0 };
        (name, value - earlier)
    };
    after.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_hold_no_path_address_or_key() {
        let mut kept = BTreeMap::new();
        let reported = json!({
            "model_path": "folder/model", "host": "10.0.0.1", "port": 8000, "api_key": "secret", "tp_size": 2,
            "attention_backend": "fa3", "quantization": "/a/b", "chat_template": "x", "random_seed": 5,
            "internal_states": [{"x": 1}], "nested": {"enable": true, "dtype": "auto", "name": "host-7"},
        });
        keep(&mut kept, "", &reported);
        let expected = [
            ("attention_backend", json!("fa3")),
            ("nested.dtype", json!("auto")),
            ("nested.enable", json!(true)),
            ("tp_size", json!(2)),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value));
        assert_eq!(kept.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn metrics_are_summed_over_labels_and_counters_grow() {
        let text = "# HELP x\nvllm:a_total{m=\"x y\",e=\"0\"} 3\nvllm:a_total{m=\"}\",e=\"1\"} 4.5\nvllm:kv 0.5\n\
                    vllm:t_bucket{le=\"1\"} 9\nprocess_id 7\nllamacpp:n 2 1700000000\n";
        let found = exported(text);
        assert_eq!(found["vllm:a_total"], 7.5);
        assert_eq!(found["vllm:kv"], 0.5);
        assert_eq!(found.len(), 3, "{found:?}");
        let later = exported(&text.replace(" 3\n", " 10\n").replace("kv 0.5", "kv 0.9"));
        let grown = grown(&found, later);
        assert_eq!((grown["vllm:a_total"], grown["vllm:kv"]), (7.0, 0.9));
    }
}
