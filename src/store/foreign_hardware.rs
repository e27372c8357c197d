//! Hardware files of other planners as systems: those of NVIDIA AIConfigurator (YAML) and BLIS (`hardware_config.json`).
//!
//! Both give a device a few figures under a name. The device of the catalogue with that name supplies what they leave
//! out: links, host, prices. The efficiencies and overheads that BLIS assumes replace those of the runtime; those of
//! AIConfigurator are not read.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use super::catalog::Catalog;
use super::hardware::Shorthand;
use crate::spec::cluster::System;
use crate::spec::device::Device;
use crate::spec::error::Error;

/// A figure of a foreign file: its path there, its factor to base units and unit, and where it goes in a system file.
#[derive(Deserialize)]
struct ForeignFigure {
    from: String,
    factor: f64,
    unit: String,
    to: Vec<String>,
}

/// The figures of each planner, in `foreign_hardware.json`.
#[derive(Deserialize)]
struct ForeignFigures {
    aiconfigurator: Vec<ForeignFigure>,
    /// The first form (`TFlopsEff` and `BwEffTBs` are the peaks of the datasheet in spite of their names) and today's:
    /// <https://github.com/inference-sim/inference-sim> (README.md, sim/roofline_step.go, hardware_config.json).
    /// `perLayerOverhead` is all that a layer takes in addition to its work, so that no kernel adds to it.
    blis: Vec<ForeignFigure>,
}

static FIGURES: LazyLock<ForeignFigures> = LazyLock::new(|| {
    serde_json::from_str(include_str!("foreign_hardware.json")).expect("the figures are JSON")
});

struct ForeignDevice<'a> {
    name: String,
    figures: &'static [ForeignFigure],
    values: &'a Value,
    planner: &'static str,
}

/// The keys by which a device of BLIS is known.
const PEAKS: [&str; 2] = ["TFlopsPeak", "TFlopsEff"];

/// Separates a file from the name of one of its devices.
pub const ENTRY: char = '#';

fn fault(found: String, expected: &str, fix: &str) -> Error {
    Error::new("hardware", found, expected, fix)
}

fn at<'a>(values: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(values, |value, key| value.get(key))
}

impl Catalog {
    /// The system that the text of a file of another planner describes, as the text of a system file; none where it is
    /// no such file. `path` is its name, with the device after a `#` where it has several.
    pub(super) fn foreign_system(&self, path: &str, text: &str) -> Result<Option<String>, Error> {
        let (file, entry) = path.split_once(ENTRY).map_or((path, None), |(file, entry)| (file, Some(entry)));
        let Ok(values): Result<Value, _> = serde_json::from_str(text) else { return Ok(None) };
        let of_blis = |(_, value): &(&String, &Value)| PEAKS.iter().any(|key| value.get(key).is_some());
        let is_aiconfigurator =
            ["gpu.mem_bw", "node.num_gpus_per_node"].iter().all(|key| at(&values, key).is_some());
        let device = if is_aiconfigurator {
            let stem = file.rsplit(['/', '\\']).next().unwrap_or(file);
            let name = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem).replace('_', "-");
            ForeignDevice {
                name,
                figures: &FIGURES.aiconfigurator,
                values: &values,
                planner: "AIConfigurator",
            }
        } else {
            let named: Vec<(&String, &Value)> = match values.as_object() {
                Some(object) => object.iter().filter(of_blis).collect(),
                None => vec![],
            };
            let found = match (entry, &named[..]) {
                (_, []) => return Ok(None),
                (Some(entry), named) => named.iter().find(|(name, _)| name.eq_ignore_ascii_case(entry)),
                (None, [one]) => Some(one),
                (None, _) => None,
            };
            let names = || named.iter().map(|(name, _)| name.as_str());
            let (name, values) = found.ok_or_else(|| {
                let fix = format!("write {file}{ENTRY}{}", names().next().unwrap_or_default());
                let found = entry.map_or("several devices".to_owned(), |entry| format!("`{entry}`"));
                let expected = format!("one of {}", names().collect::<Vec<_>>().join(", "));
                fault(found, &expected, &fix).in_file(file)
            })?;
            ForeignDevice { name: (*name).clone(), figures: &FIGURES.blis, values, planner: "BLIS" }
        };
        self.filled(&device, file).map(Some).map_err(|fault| fault.in_file(file))
    }

    /// The system of the device's name in the catalogue, with the figures of the file.
    fn filled(&self, foreign: &ForeignDevice, file: &str) -> Result<String, Error> {
        let device: Device = self.device(&foreign.name).map_err(|miss| {
            let fault: Error = miss.into();
            let expected = "the name of a device of the catalogue, which supplies links, host and prices";
            Error { key: "hardware".into(), expected: expected.into(), ..fault }
        })?;
        let short = Shorthand { nodes: 1, by_node: false, count: 1, device: &foreign.name };
        // A whole node, where the device is sold in nodes.
        let mut system = json!(match &device.system {
            Some(node) => self.load::<System>(node)?,
            None => self.host(&device, &short)?,
        });
        system["device"] =
            json!(Device { name: format!("{} ({} file)", device.name, foreign.planner), ..device.clone() });
        if let Some(count) = at(foreign.values, "node.num_gpus_per_node").and_then(Value::as_u64) {
            system["devices_per_node"] = json!(count);
            if let Some(tier) = system.pointer_mut("/tiers/0/devices") {
                *tier = json!(count);
            }
        }
        system["nodes"] = json!(1);
        system["device"]["constants"] = json!({});
        let count = system["devices_per_node"].as_u64().unwrap_or(1);
        let short_file = file.rsplit(['/', '\\']).next().unwrap_or(file);
        system["name"] = json!(format!("{count} x {} of {short_file}", device.name));
        for one in foreign.figures {
            let Some(value) = at(foreign.values, &one.from).filter(|value| !value.is_null()) else {
                continue;
            };
            let number = value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
            let number = number.ok_or_else(|| {
                let found = format!("{value}");
                Error::new(&one.from, found, "a number of at least 0", "correct the figure")
            })?;
            let source = format!("{} of {file}, a file of {}", one.from, foreign.planner);
            for to in &one.to {
                // A peak of 0 says that the device has no such arithmetic.
                set(
                    &mut system,
                    to,
                    (number > 0.0).then(|| {
                        let value = format!("{} {}", number * one.factor, one.unit);
                        json!({"value": value.trim(), "source": source, "grade": "stated"})
                    }),
                );
            }
        }
        Ok(system.to_string())
    }
}

/// Sets or removes the figure at a path whose outer part exists; another path is left out.
fn set(system: &mut Value, path: &str, figure: Option<Value>) {
    let Some((outer, last)) = path.rsplit_once('.') else { return };
    let inside = system.pointer_mut(&format!("/{}", outer.replace('.', "/")));
    let Some(inside) = inside.and_then(Value::as_object_mut) else { return };
    match figure {
        Some(figure) => inside.insert(last.to_owned(), figure),
        None => inside.remove(last),
    };
}
