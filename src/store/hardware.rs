//! From `--hardware` to a cluster: a system, a number of devices, or a file.

use serde_json::{Map, Value};

use super::catalog::{Catalog, LookupError, is_path};
use super::foreign_hardware::ENTRY;
use super::host::{layout, unit};
use super::instances::instance;
use super::kind::CatalogKind;
use super::lookup::is_labelled;
use super::resolved_scenario::DEFAULT_HARDWARE;
use crate::spec::cluster::{Cluster, System};
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::limits::DEVICES;
use crate::spec::near::suggest;
use crate::spec::placing::{PlacementObjective, PlacementScenario};
use crate::spec::ranges;
use crate::spec::scenario::Scenario;
use crate::spec::text::{entry_from_json, from_json};

/// `[NODESx]COUNTxDEVICE`, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Shorthand<'a> {
    /// Number of nodes, or factor on the count.
    pub nodes: u64,
    /// Whether the number of nodes is given: each node holds the count.
    pub by_node: bool,
    /// Devices per node.
    pub count: u64,
    pub device: &'a str,
}

impl<'a> Shorthand<'a> {
    /// Parses `text`; a device without a count is one device.
    pub fn parse(text: &'a str) -> Result<Shorthand<'a>, Error> {
        let (first, rest) = leading_count(text)?;
        let alone = Shorthand { nodes: 1, by_node: false, count: 1, device: text };
        let Some(first) = first else { return Ok(alone) };
        Ok(match leading_count(rest)? {
            (Some(second), device) => Shorthand { nodes: first, by_node: true, count: second, device },
            (None, device) => Shorthand { count: first, device, ..alone },
        })
    }
}

/// `8xh100` → 8 and `h100`; a text without such a number remains whole.
fn leading_count(text: &str) -> Result<(Option<u64>, &str), Error> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = text.split_at(digits);
    let Some(rest) = rest.strip_prefix(['x', 'X']).filter(|rest| digits > 0 && !rest.is_empty()) else {
        return Ok((None, text));
    };
    // `2x-rtx-3090`, `2x rtx 3090`
    let rest = rest.strip_prefix(['-', ' ']).filter(|rest| !rest.is_empty()).unwrap_or(rest);
    let count = number.parse::<u64>().ok().filter(|count| DEVICES.holds(*count as f64));
    let count = count.ok_or_else(|| DEVICES.fault("hardware", &format!("`{number}` devices or nodes")))?;
    Ok((Some(count), rest))
}

/// Keys of faults that another number of devices resolves.
const UNSEATED: [&str; 2] = ["devices_per_node", "tiers"];
/// Maximum number of nodes over which devices are spread evenly, to find a valid shorthand.
const MOST_NODES: u64 = 1 << 16;

/// The devices of `short` in hosts like `host`.
fn seat(host: &System, device: &Device, short: &Shorthand<'_>) -> Result<Cluster, Error> {
    let (nodes, per_node) = layout(host, device, short);
    let shipped_whole = (host.nodes, host.devices_per_node) == (nodes, per_node);
    let name = match (shipped_whole, nodes) {
        (true, _) => host.name.clone(),
        (false, 1) => format!("{per_node} x {}", device.name),
        (false, nodes) => format!("{nodes} nodes of {per_node} x {}", device.name),
    };
    Ok(Cluster { name, ..Cluster::build(host, device.clone(), nodes, per_node)? })
}

impl Catalog {
    /// The cluster that `text` refers to.
    ///
    /// # Errors
    /// It is not a system, shorthand or file, or its system cannot be built.
    pub fn hardware(&self, text: &str) -> Result<Cluster, Error> {
        let text = text.trim();
        if is_path(text) {
            return self.cluster_from_file(text);
        }
        if self.is_local(text, CatalogKind::Systems) {
            return self.local_cluster();
        }
        // Most shorthands name no system: near names are searched only if they name no device either.
        let systems = self.matching(CatalogKind::Systems, text, is_labelled)?;
        let system = |systems| self.only(CatalogKind::Systems, text, systems, "a unique name");
        if !systems.is_empty() {
            return self.whole(&*self.read::<System>(&system(systems)?)?);
        }
        if let Some(parts) = self.joined_devices(text) {
            return match self.like(&parts) {
                Some(like) => self.hardware(&like),
                None => Err(for_place(format!("the unlike devices `{text}`"), &named_alone(text, parts))),
            };
        }
        let short = Shorthand::parse(text)?;
        if let Some(one) = instance(short.device).filter(|_| !short.by_node) {
            let many = if short.count > 1 { format!("{}x", short.count) } else { String::new() };
            let cluster = self.hardware(&format!("{many}{}", one.hardware))?;
            let name = format!("{} {}: {}", one.cloud, one.name, cluster.name);
            return Ok(Cluster { id: text.to_owned(), name, for_sale: false, ..cluster });
        }
        let device = match self.device(short.device) {
            Ok(device) => device,
            // A text with a count is a shorthand; any other is a misspelt system.
            Err(LookupError::Unknown(_)) if short.device == text => {
                return match system(vec![]) {
                    Err(LookupError::Unknown(unknown)) => Err(self.neither(text, unknown)),
                    Err(miss) => Err(miss.into()),
                    Ok(file) => self.whole(&*self.read::<System>(&file)?),
                };
            }
            Err(miss) => return Err(miss.into()),
        };
        let cluster = self.seated(&device, &short).map_err(|fault| fault.in_file(text))?;
        Ok(Cluster { id: text.to_owned(), ..cluster })
    }

    /// The cluster of a shorthand, or valid shorthands in its place.
    fn seated(&self, device: &Device, short: &Shorthand<'_>) -> Result<Cluster, Error> {
        let host = self.with_usual_network(self.host(device, short)?, device)?;
        let seated = seat(&host, device, short);
        match seated {
            Err(fault) if UNSEATED.contains(&fault.key.as_str()) => {
                let others = self.in_its_place(device, short, &host);
                if others.is_empty() {
                    return Err(fault);
                }
                Err(Error { fix: format!("use {}", others.join(" or ")), ..fault })
            }
            other => other,
        }
    }

    /// Valid shorthands of about as many devices in `host`: the same number in equal nodes, else whole nodes or racks,
    /// one unit less and one more.
    fn in_its_place(&self, device: &Device, short: &Shorthand<'_>, host: &System) -> Vec<String> {
        let wanted = short.nodes.saturating_mul(short.count).min(DEVICES.most_whole());
        let (held, unit) = (host.devices_per_node.max(1), unit(host));
        let spell = |nodes: u64, count: u64| {
            let nodes = if nodes == 1 { String::new() } else { format!("{nodes}x") };
            format!("{nodes}{count}x{}", device.id)
        };
        let equal =
            (wanted.div_ceil(held)..=wanted.min(MOST_NODES)).find(|nodes| wanted.is_multiple_of(*nodes));
        let equal =
            equal.filter(|nodes| unit == held && *nodes < wanted).map(|nodes| (nodes, wanted / nodes));
        let whole = [wanted / unit, wanted.div_ceil(unit)].map(|units| (units.max(1), unit));
        let mut tried: Vec<(u64, u64)> = equal.map_or_else(|| whole.to_vec(), |equal| vec![equal]);
        tried.push((1, unit));
        tried.dedup();
        let does = |(nodes, count): &(u64, u64)| {
            let short = Shorthand { nodes: *nodes, by_node: *nodes > 1, count: *count, device: short.device };
            let host = self.host(device, &short).and_then(|host| self.with_usual_network(host, device));
            host.and_then(|host| seat(&host, device, &short)).is_ok()
        };
        let found = tried.into_iter().filter(does).take(2);
        found.map(|(nodes, count)| format!("`{}`", spell(nodes, count))).collect()
    }

    /// A system as in its file.
    fn whole(&self, system: &System) -> Result<Cluster, Error> {
        let named = |fault: Error| fault.at_name(format!("hardware/systems/{}.json", system.id), "device");
        let device = self.load::<Device>(&system.device).map_err(named)?;
        Cluster::build(system, device, system.nodes, system.devices_per_node)
            .map_err(|fault| fault.in_file(format!("hardware/systems/{}.json", system.id)))
    }

    /// A system file, which may contain its device inline.
    fn cluster_from_file(&self, path: &str) -> Result<Cluster, Error> {
        let file = path.split_once(ENTRY).map_or(path, |(file, _)| file);
        let text = self.outside(file)?;
        let text = self.foreign_system(path, &text)?.map_or(text, Into::into);
        let mut map: Map<String, Value> =
            entry_from_json(&text, "a system").map_err(|fault| fault.in_file(path))?;
        let within = |fault: Error| {
            let key = if fault.key.is_empty() { "device".into() } else { format!("device.{}", fault.key) };
            Error { key, ..fault }.in_file(path)
        };
        let device = match map.get("device") {
            Some(inline @ Value::Object(_)) => {
                let device: Device = from_json(&inline.to_string(), "a device").map_err(within)?;
                device.check().map_err(within)?;
                Some(device)
            }
            _ => None,
        };
        if let Some(device) = &device {
            map.insert("device".into(), Value::String(device.id.clone()));
        }
        let text = Value::Object(map).to_string();
        let system: System = from_json(&text, "a system").map_err(|fault| fault.in_file(path))?;
        ranges::system(&system).map_err(|fault| fault.in_file(path))?;
        let device = match device {
            Some(device) => device,
            None => self
                .device(&system.device)
                .map_err(|miss| within(Error { key: String::new(), ..miss.into() }))?,
        };
        Cluster::build(&system, device, system.nodes, system.devices_per_node)
            .map_err(|fault| fault.in_file(path))
    }

    /// The fault of a text that is neither a system nor a device, with near names of both.
    fn neither(&self, text: &str, unknown: Error) -> Error {
        if self.has_rig(text) {
            return for_place(format!("the rig `{text}` of unlike devices"), &named_alone(text, vec![]));
        }
        let mut known: Vec<String> = Vec::new();
        for kind in [CatalogKind::Systems, CatalogKind::Devices] {
            for one in self.labelled(kind).iter() {
                known.extend(one.label.as_ref().map(|label| label.aliases.clone()).unwrap_or_default());
                known.push(one.id().to_owned());
            }
        }
        let fix = suggest(text, known.iter().map(String::as_str), "mantile-opt catalog systems");
        Error { key: "hardware".into(), fix, ..unknown }
    }

    /// The cluster of a scenario. Unlike devices are refused with the command of `place` that has its model and
    /// options.
    pub fn cluster_of(&self, scenario: &Scenario) -> Result<Cluster, Error> {
        let text = scenario.hardware.as_deref().unwrap_or(DEFAULT_HARDWARE);
        self.hardware(text).map_err(|fault| {
            if fault.key != "hardware" || is_path(text) || !self.has_rig(text) {
                return fault;
            }
            let devices = if self.names_rig(text) { vec![] } else { self.unlike(text).unwrap_or_default() };
            let hardware = scenario.hardware.clone().filter(|_| devices.is_empty());
            let placing = PlacementScenario::of(scenario.clone(), PlacementObjective::default());
            for_place(fault.found, &PlacementScenario { hardware, device: devices, ..placing })
        })
    }

    /// The parts of `1xrtx-4090+1xrtx-3090` or `4090,3090`; `None` where it is no such text.
    fn joined_devices(&self, text: &str) -> Option<Vec<String>> {
        let parts: Vec<&str> = text.split(['+', ',']).map(str::trim).collect();
        let known = |part: &&str| Shorthand::parse(part).is_ok_and(|one| self.device(one.device).is_ok());
        (parts.len() > 1 && parts.iter().all(known)).then(|| parts.into_iter().map(str::to_owned).collect())
    }

    /// The shorthand of parts that are all one device.
    fn like(&self, parts: &[String]) -> Option<String> {
        let shorts: Vec<Shorthand> = parts.iter().filter_map(|part| Shorthand::parse(part).ok()).collect();
        let id = |short: &Shorthand| self.device(short.device).ok().map(|device| device.id);
        let first = shorts.first()?;
        let same = shorts.iter().all(|short| id(short) == id(first) && short.nodes == 1);
        let count: u64 = shorts.iter().map(|short| short.count).sum();
        same.then(|| format!("{count}x{}", first.device))
    }

    /// The devices of `1xrtx-4090+1xrtx-3090` or `4090,3090`, which are a rig; `None` where it is no such text.
    pub fn unlike(&self, text: &str) -> Option<Vec<String>> {
        self.joined_devices(text).filter(|parts| self.like(parts).is_none())
    }
}

/// A placement on what `text` names: a rig, or these devices.
fn named_alone(text: &str, device: Vec<String>) -> PlacementScenario {
    let hardware = device.is_empty().then(|| text.to_owned());
    PlacementScenario { hardware, device, ..PlacementScenario::default() }
}

/// The fault of unlike devices, with the command that answers for them.
fn for_place(found: String, placing: &PlacementScenario) -> Error {
    let expected = "a system of like devices, or [NODESx]COUNTxDEVICE such as 8xh100-sxm";
    let fix = format!("`{}` places the layers of a model on them", placing.command());
    Error::new("hardware", found, expected, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorthand_is_split_from_the_left() {
        let of = |text| Shorthand::parse(text).map(|s| (s.nodes, s.count, s.device));
        assert!(Shorthand::parse("2x8xa").unwrap().by_node && !Shorthand::parse("8xa").unwrap().by_node);
        assert_eq!(of("8xh100-sxm"), Ok((1, 8, "h100-sxm")));
        assert_eq!(of("128x8xh100-sxm"), Ok((128, 8, "h100-sxm")));
        assert_eq!(of("2x4090"), Ok((1, 2, "4090")));
        assert_eq!(of("2X8Xmi300x"), Ok((2, 8, "mi300x")));
        assert_eq!(of("mi300x"), Ok((1, 1, "mi300x")));
        assert_eq!(of("8x"), Ok((1, 1, "8x")));
        assert!(of("99999999999999999999xh100").is_err());
    }

    fn shape(text: &str) -> (u64, u64, Vec<u64>) {
        let cluster = Catalog::default().hardware(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        (cluster.nodes, cluster.devices_per_node, cluster.tiers.iter().map(|tier| tier.devices).collect())
    }

    /// Where no system says how, the device's own links do.
    #[test]
    fn numbers_of_devices_find_their_hosts() {
        let expected: [(&str, u64, u64, &[u64]); 24] = [
            ("8xh100-sxm", 1, 8, &[8]),
            ("4xh100", 1, 4, &[4]),
            ("1xb200", 1, 1, &[]),
            ("2x8xb200", 2, 8, &[8, 16]),
            ("128x8xh100-sxm", 128, 8, &[8, 1024]),
            ("2xrtx-4090", 1, 2, &[2]),
            ("2x2xrtx-4090", 2, 2, &[2, 4]),
            ("72xnvidia-gb200", 18, 4, &[72]),
            ("8xgb200", 2, 4, &[8]),
            ("2x72xgb200", 36, 4, &[72, 144]),
            ("3xmi300x", 1, 3, &[3]),
            ("h200", 1, 1, &[]),
            ("2x1xdgx-spark", 2, 1, &[2]),
            ("4xrtx-4070", 1, 4, &[4]),      // over PCIe
            ("2x4xrtx-4070", 2, 4, &[4, 8]), // and over a network
            ("8xrtx-a6000", 1, 8, &[2, 8]),  // bridged pairs in a PCIe host
            ("2xh100-nvl", 1, 2, &[2]),
            ("8xv100", 1, 8, &[8]),
            ("2xm5-max", 2, 1, &[2]), // a machine that is one device is a node
            ("4xstrix-halo", 4, 1, &[4]),
            ("3x1xm2-max", 3, 1, &[3]),
            ("32xh200-sxm", 4, 8, &[8, 32]),
            ("16xrtx-4090", 2, 8, &[8, 16]),
            ("144xgb200", 36, 4, &[72, 144]),
        ];
        for (text, nodes, per_node, tiers) in expected {
            assert_eq!(shape(text), (nodes, per_node, tiers.to_vec()), "{text}");
        }
        assert_eq!(shape("16xh100-sxm"), shape("2x8xh100-sxm"));
    }

    #[test]
    fn a_device_without_a_needed_figure_names_it() {
        for (text, key) in
            [("1xthreadripper-7000", "memory.capacity"), ("sn40l", "memory.bandwidth"), ("p100a", "peak")]
        {
            let error = Catalog::default().hardware(text).unwrap_err();
            assert_eq!(error.key, key, "{error}");
            assert!(error.fix.contains("hardware/devices/"), "{error}");
        }
    }

    #[test]
    fn part_of_a_node_keeps_its_tiers_though_one_may_not_be_whole() {
        assert_eq!(shape("8xh200-nvl").2, [4, 8]);
        assert_eq!(shape("6xh200-nvl").2, [4, 6]);
        assert_eq!(shape("3xh200-nvl").2, [3]);
    }

    #[test]
    fn what_no_host_holds_says_how_to_write_it() {
        for (text, fix) in [
            ("12xnvidia-h100-sxm", "`2x6xnvidia-h100-sxm`"),
            ("2x32xh200-sxm", "`8x8xnvidia-h200-sxm`"),
            ("13xh100-sxm", "`8xnvidia-h100-sxm`"),
            ("256x4xgb200", "`14x72xnvidia-gb200` or `15x72xnvidia-gb200`"),
        ] {
            let error = Catalog::default().hardware(text).unwrap_err();
            assert!(error.fix.contains(fix), "{text}: {error}");
            assert_eq!(error.file, text);
        }
    }

    /// The law behind: whatever is refused names a shorthand that is not.
    #[test]
    fn every_number_of_every_device_resolves_or_names_one_that_does() {
        let catalog = Catalog::default();
        for id in catalog.entries(CatalogKind::Devices).into_keys() {
            if catalog.hardware(&id).is_err() {
                continue;
            }
            for count in
                ["3", "7", "9", "12", "13", "16", "24", "32", "96", "100", "144", "2x32", "256x4", "3x5"]
            {
                let text = format!("{count}x{id}");
                let Err(error) = catalog.hardware(&text) else { continue };
                let named: Vec<&str> = error.fix.split('`').filter(|part| part.contains(&id)).collect();
                assert!(!named.is_empty(), "{text}: {error}");
                for other in named {
                    catalog.hardware(other).unwrap_or_else(|fault| panic!("{text}: {other}: {fault}"));
                }
            }
        }
    }

    #[test]
    fn unclear_and_unknown_devices_are_refused_with_candidates() {
        let error = Catalog::default().hardware("8xrtx").unwrap_err();
        assert!(error.found.contains("nvidia-rtx-2060") && error.fix.contains("catalog devices"), "{error}");
        let error = Catalog::default().hardware("8xrtx-4080-s").unwrap_err();
        assert!(error.fix.contains("nvidia-rtx-4080-super"), "{error}");
        let error = Catalog::default().hardware("8xh1000").unwrap_err();
        assert!(error.fix.contains("h100"), "{error}");
        let error = Catalog::default().hardware("dgx-h10").unwrap_err();
        assert!(error.fix.contains("dgx-h100"), "{error}");
        for wrong in ["", "x", "0xh100", "8x0xh100", "1048577xh100", "99999999xb200", "-8xh100"] {
            assert!(Catalog::default().hardware(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_share_of_a_node_has_a_share_of_its_price_and_power() {
        let whole = Catalog::default().hardware("8xh100").unwrap();
        let part = Catalog::default().hardware("4xnvidia-h100-sxm").unwrap();
        let rent = |cluster: &Cluster| cluster.price.rent.as_ref().unwrap().value;
        assert_eq!(rent(&whole), rent(&part));
        let overhead = |cluster: &Cluster| cluster.power.as_ref().unwrap().overhead.as_ref().unwrap().value;
        assert_eq!(overhead(&whole), 2.0 * overhead(&part));
    }
}
