//! Catalogue entries as tables: one line each, or one entry figure by figure with its sources.
//!
//! Independent of where entries are stored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::table::{grouped, table};
use crate::graph::model::ModelGraph;
use crate::spec::cluster::System;
use crate::spec::device::{Arithmetic, Device};
use crate::spec::figure::{Figure, Ratio};
use crate::spec::format::NumberFormat;
use crate::spec::launch::Launch;
use crate::spec::link::Link;
use crate::spec::model::file::ModelFile;
use crate::spec::objective::{Direction, LatencyLimits, Objective, Workload};
use crate::spec::option_table::OptionTable;
use crate::spec::rig::Rig;
use crate::spec::runtime::Runtime;
use crate::spec::runtime_id::RuntimeId;

/// One line of a catalogue.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CatalogLine {
    /// Id.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// Summary that distinguishes it from other entries.
    pub summary: String,
    /// Whether it comes from the user's folder.
    pub user: bool,
    /// Facts of a model or a runtime; those that no file states are absent.
    #[serde(flatten)]
    pub facts: CatalogFacts,
}

/// Facts of a model or a runtime.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CatalogFacts {
    /// Layers of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<u64>,
    /// Attention of a model: `full`, `sliding` or `latent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention: Option<String>,
    /// Base of the rotary position encoding, as the model's configuration has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rope_theta: Option<f64>,
    /// Weight formats: published ones of a model, supported ones of a runtime.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<String>,
    /// KV cache formats of a runtime.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kv_formats: Vec<String>,
    /// Scheduler of a runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerFacts>,
    /// Builds of a runtime with ids of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<RuntimeBuild>,
}

/// The limits of a runtime's scheduler, with their sources.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SchedulerFacts {
    /// Maximum number of tokens per step.
    pub max_batched_tokens: Figure<Ratio>,
    /// Number of sequences that it prepares for, where fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_sequences: Option<Figure<Ratio>>,
}

/// A build of a runtime.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeBuild {
    /// Its id.
    pub id: String,
    /// Version of the runtime.
    pub version: String,
    /// CUDA version that it was built for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda_version: Option<String>,
}

/// Name and summary of an entry; the caller fills in id and origin.
pub trait Listed {
    fn line(&self) -> CatalogLine;
}

fn line(name: &str, aliases: &[String], summary: String) -> CatalogLine {
    CatalogLine {
        id: String::new(),
        name: name.to_owned(),
        aliases: aliases.to_vec(),
        summary,
        user: false,
        facts: CatalogFacts::default(),
    }
}

/// The base of the rotary encoding in a configuration: its own, or that of its language model.
fn rope_theta(config: &Map<String, Value>) -> Option<f64> {
    let own = config.get("rope_theta").and_then(Value::as_f64);
    let inside = ["rope_parameters", "full_attention", "text_config", "language_config", "llm_config"];
    own.or_else(|| inside.iter().find_map(|key| rope_theta(config.get(*key)?.as_object()?)))
}

/// The formats of a model's checkpoints, its own first, each once.
fn with_published(own: Option<String>, model: &ModelFile) -> Vec<String> {
    let mut formats: Vec<String> = own.into_iter().collect();
    for published in &model.published {
        if !formats.contains(&published.weight_format) {
            formats.push(published.weight_format.clone());
        }
    }
    formats
}

impl Listed for ModelFile {
    fn line(&self) -> CatalogLine {
        let kind = self.config.get("model_type").and_then(Value::as_str).unwrap_or("no model_type");
        let formats = with_published(None, self);
        let also = if formats.is_empty() { String::new() } else { format!(", also {}", formats.join(" ")) };
        let summary = format!("{kind}, {} parameters{also}", grouped(self.parameters));
        let config = self.model_config().ok();
        let graph = config.as_ref().and_then(|config| ModelGraph::build(config).ok());
        let own = config.as_ref().and_then(|config| config.weight_format()).map(str::to_owned);
        let facts = CatalogFacts {
            layers: graph.as_ref().map(|graph| graph.layers.value),
            attention: graph.as_ref().and_then(|graph| Some(graph.attention_kind()?.name().to_owned())),
            rope_theta: rope_theta(&self.config),
            formats: with_published(own, self),
            ..CatalogFacts::default()
        };
        CatalogLine { facts, ..line(&self.name, &self.aliases, summary) }
    }
}

impl Listed for Device {
    fn line(&self) -> CatalogLine {
        let wide =
            if self.peak.contains_key(&Arithmetic::Bf16) { Arithmetic::Bf16 } else { Arithmetic::Fp16 };
        let narrowest = [wide, Arithmetic::Fp8, Arithmetic::Fp4];
        let peaks = narrowest.iter().filter_map(|a| Some(format!("{} {}", a.name(), self.peak.get(a)?)));
        let capacity = self.memory.capacity.as_ref().map(ToString::to_string);
        let rate = self.memory.bandwidth.as_ref().map(|rate| format!("at {rate}"));
        let memory: Vec<String> = capacity.into_iter().chain(rate).collect();
        let missing = self.missing();
        let missing = (!missing.is_empty()).then(|| format!("not given: {}", missing.join(" ")));
        let parts = (!memory.is_empty()).then(|| memory.join(" ")).into_iter().chain(peaks).chain(missing);
        let summary = parts.collect::<Vec<_>>().join(", ");
        line(&self.name, &self.aliases, summary)
    }
}

impl Listed for System {
    fn line(&self) -> CatalogLine {
        let tiers: Vec<String> = self
            .tiers
            .iter()
            .map(|tier| format!("{} x {} {}", tier.devices, tier.link, tier.bandwidth))
            .collect();
        let nodes = if self.nodes == 1 { String::new() } else { format!("{} nodes of ", self.nodes) };
        let joined = if tiers.is_empty() { String::new() } else { format!("; {}", tiers.join(", ")) };
        line(&self.name, &self.aliases, format!("{nodes}{} x {}{joined}", self.devices_per_node, self.device))
    }
}

impl Listed for Rig {
    fn line(&self) -> CatalogLine {
        let one = |device: &str, count: u64| match count {
            1 => device.to_owned(),
            count => format!("{count} x {device}"),
        };
        let members: Vec<String> = self.members.iter().map(|post| one(&post.device, post.count)).collect();
        let joined = self.members.iter().filter_map(|post| post.joined.as_ref());
        let mut links: Vec<&str> = joined.chain(&self.links).map(|wire| wire.link.as_str()).collect();
        links.dedup();
        line(&self.name, &self.aliases, format!("{}; {}", members.join(" + "), links.join(", ")))
    }
}

impl Listed for Link {
    fn line(&self) -> CatalogLine {
        let latency = self.latency.as_ref().map(|latency| format!(", {latency}")).unwrap_or_default();
        line(&self.name, &self.aliases, format!("{} each way{latency}", self.bandwidth))
    }
}

impl Listed for NumberFormat {
    fn line(&self) -> CatalogLine {
        let uses: Vec<&str> = [(self.weights, "weights"), (self.kv, "KV")]
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, what)| *what)
            .collect();
        let computes: Vec<&str> = self.computes_in.iter().map(|arithmetic| arithmetic.name()).collect();
        let bits = 8.0 * self.bits_per_element.value;
        line(
            &self.name,
            &self.aliases,
            format!("{bits} bits; {}; computed in {}", uses.join(" and "), computes.join(", ")),
        )
    }
}

impl Listed for Runtime {
    fn line(&self) -> CatalogLine {
        let summary = format!(
            "{}; {}; {}",
            self.vendors.join(" "),
            self.parallelism.join(" "),
            self.weight_formats.join(" ")
        );
        let builds = self.aliases.iter().filter_map(|alias| {
            let parts = RuntimeId::parse(alias).next()?;
            let cuda_version = parts.cuda.map(str::to_owned);
            Some(RuntimeBuild { id: alias.clone(), version: parts.version.to_owned(), cuda_version })
        });
        let facts = CatalogFacts {
            formats: self.weight_formats.clone(),
            kv_formats: self.kv_formats.clone(),
            scheduler: Some(SchedulerFacts {
                max_batched_tokens: self.max_batched_tokens.clone(),
                max_sequences: self.max_sequences.clone(),
            }),
            builds: builds.collect(),
            ..CatalogFacts::default()
        };
        CatalogLine { facts, ..line(&self.name, &self.aliases, summary) }
    }
}

impl Listed for Launch {
    fn line(&self) -> CatalogLine {
        let summary = format!("{}; {} settings", self.table, self.settings.len());
        line(&self.id, &[], summary)
    }
}

impl Listed for OptionTable {
    fn line(&self) -> CatalogLine {
        let summary = format!("{}; {} options", self.program.join(" "), self.options.len());
        line(&format!("{} {}", self.runtime, self.version), &[], summary)
    }
}

impl Listed for Objective {
    fn line(&self) -> CatalogLine {
        let terms: Vec<String> = self
            .optimize
            .iter()
            .map(|term| {
                let way = match term.direction {
                    Direction::Minimize => "min",
                    Direction::Maximize => "max",
                };
                format!("{way} {}", term.metric.entry().name)
            })
            .collect();
        line(
            &self.description,
            &[],
            format!("{}; {}{}", terms.join(", "), self.workload, limits(&self.limits)),
        )
    }
}

impl Listed for Workload {
    fn line(&self) -> CatalogLine {
        let lengths = format!("ISL {}, OSL {}", self.isl, self.osl);
        line(&self.description, &[], format!("{lengths}{}", limits(&self.limits)))
    }
}

/// `, TTFT ≤ 2 s`, for each given limit.
fn limits(limits: &LatencyLimits) -> String {
    let all = [("TTFT", limits.ttft), ("TPOT", limits.tpot), ("E2E", limits.e2e)];
    let stated = all.iter().filter_map(|(name, limit)| {
        let limit = crate::quantity::unit::humanize((*limit)?, crate::quantity::unit::SECOND);
        Some(format!(", {name} ≤ {limit}"))
    });
    stated.collect()
}

pub fn list(lines: &[CatalogLine]) -> String {
    let row = |line: &CatalogLine| {
        let id = if line.user { format!("{} *", line.id) } else { line.id.clone() };
        vec![id, line.name.clone(), line.summary.clone()]
    };
    let mut text = table(&["id", "name", "description"], lines.iter().map(row));
    if lines.iter().any(|line| line.user) {
        text.push_str("* from your own catalogue folder\n");
    }
    text
}

/// One entry: a line for every value, with the source of every figure.
pub fn entry(value: &Value) -> String {
    table(&["key", "value [grade: source]"], key_rows(value))
}

/// A row for every value: its key with those around it, and the value.
pub fn key_rows(value: &Value) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    flatten(String::new(), value, &mut rows);
    rows
}

fn flatten(path: String, value: &Value, rows: &mut Vec<Vec<String>>) {
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let within = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) if map.contains_key("value") && map.contains_key("source") => {
            let source = map.get("source").map(plain).unwrap_or_default();
            let grade = map.get("grade").map_or("datasheet".into(), plain);
            let date = map.get("date").map(|date| format!(" ({})", plain(date))).unwrap_or_default();
            let value = map.get("value").map(plain).unwrap_or_default();
            rows.push(vec![path, format!("{value} [{grade}: {source}{date}]")]);
        }
        Value::Object(map) => {
            for (key, value) in map {
                flatten(within(key), value, rows);
            }
        }
        Value::Array(values) if values.iter().any(|value| value.is_object()) => {
            for (at, value) in values.iter().enumerate() {
                flatten(format!("{path}[{at}]"), value, rows);
            }
        }
        Value::Array(values) => {
            rows.push(vec![path, values.iter().map(plain).collect::<Vec<_>>().join(", ")]);
        }
        other => rows.push(vec![path, plain(other)]),
    }
}
