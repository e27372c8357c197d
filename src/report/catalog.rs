//! Catalogue entries as tables: one line each, or one entry figure by figure with its sources.
//!
//! Independent of where entries are stored.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::table::{grouped, table};
use crate::spec::cluster::System;
use crate::spec::device::{Arithmetic, Device};
use crate::spec::format::NumberFormat;
use crate::spec::launch::Launch;
use crate::spec::link::Link;
use crate::spec::model::file::ModelFile;
use crate::spec::objective::{Direction, LatencyLimits, Objective, Workload};
use crate::spec::option_table::OptionTable;
use crate::spec::rig::Rig;
use crate::spec::runtime::Runtime;

/// One line of a catalogue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
}

/// Name and summary of an entry; the caller fills in id and origin.
pub trait Listed {
    /// The line of the entry.
    fn line(&self) -> CatalogLine;
}

fn line(name: &str, aliases: &[String], summary: String) -> CatalogLine {
    CatalogLine { id: String::new(), name: name.to_owned(), aliases: aliases.to_vec(), summary, user: false }
}

impl Listed for ModelFile {
    fn line(&self) -> CatalogLine {
        let kind = self.config.get("model_type").and_then(Value::as_str).unwrap_or("no model_type");
        let mut formats: Vec<&str> = Vec::new();
        for published in &self.published {
            if !formats.contains(&published.weight_format.as_str()) {
                formats.push(&published.weight_format);
            }
        }
        let formats =
            if formats.is_empty() { String::new() } else { format!(", also {}", formats.join(" ")) };
        line(&self.name, &self.aliases, format!("{kind}, {} parameters{formats}", grouped(self.parameters)))
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
        line(&self.name, &self.aliases, summary)
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
        let aims: Vec<String> = self
            .optimize
            .iter()
            .map(|aim| {
                let way = match aim.direction {
                    Direction::Minimize => "min",
                    Direction::Maximize => "max",
                };
                format!("{way} {}", aim.metric.entry().name)
            })
            .collect();
        line(
            &self.description,
            &[],
            format!("{}; {}{}", aims.join(", "), self.workload, limits(&self.limits)),
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

/// The lines of a catalogue.
pub fn list(lines: &[CatalogLine]) -> String {
    let row = |line: &CatalogLine| {
        let id = if line.user { format!("{} *", line.id) } else { line.id.clone() };
        vec![id, line.name.clone(), line.summary.clone()]
    };
    let mut text = table(&["id", "name", "description"], &lines.iter().map(row).collect::<Vec<_>>());
    if lines.iter().any(|line| line.user) {
        text.push_str("* from your own catalogue folder\n");
    }
    text
}

/// One entry: a line for every value, with the source of every figure.
pub fn entry(value: &Value) -> String {
    let mut rows = Vec::new();
    flatten(String::new(), value, &mut rows);
    table(&["key", "value [grade: source]"], &rows)
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
