//! Available hardware: every system of the catalogue, partial nodes, multi-node builds, and devices that no system
//! lists. Independent of speed and value.

use super::catalog::Catalog;
use super::model::ResolvedModel;
use super::resolved_scenario::ResolvedScenario;
use crate::graph::model::ModelGraph;
use crate::spec::cluster::{Cluster, System};
use crate::spec::device::{Device, Vendor};
use crate::spec::error::Error;
use crate::spec::precision::{ANY, EIGHT_BITS, FOUR_BITS, FormatOption};
use crate::spec::runtime::Runtime;
use crate::spec::scenario::Scenario;

/// Devices that are available as one deployment; a build may have several copies.
#[derive(Clone, Debug)]
pub struct SystemOption {
    /// Its `--hardware` name, if it has one; else the part of its system.
    pub id: String,
    pub cluster: Cluster,
    /// Whether it competes for the recommended builds: some runtime was measured on such devices of its vendor, or the
    /// user names its vendor, generation, device or system.
    pub competes: bool,
}

/// Available hardware, and catalogue entries that cannot be built, with the reason.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    pub systems: Vec<SystemOption>,
    /// Not available: id and fault.
    pub rejected: Vec<(String, Error)>,
}

/// Numbers of nodes for multi-node builds.
const NODES: [u64; 2] = [2, 4];
/// Numbers of devices that no system lists.
const LOOSE: [u64; 3] = [1, 2, 4];

/// Whether a device matches the filter: by vendor, class, generation or id, in any case.
fn wanted(device: &Device, id: &str, only: &[String]) -> bool {
    let class = || only.iter().any(|word| device.class.eq_ignore_ascii_case(word));
    only.is_empty() || class() || is_named(device, id, only)
}

/// Whether a word names the device itself; a class names none.
fn is_named(device: &Device, id: &str, only: &[String]) -> bool {
    let names = [device.vendor.name(), &device.family, &device.id, id];
    only.iter().any(|word| names.iter().any(|name| name.eq_ignore_ascii_case(word)))
}

/// Whether `system` is only several nodes of `base` over `base`'s network, at the same price.
fn repeats(system: &System, base: &System) -> bool {
    let price = |system: &System| {
        let devices = (system.nodes * system.devices_per_node).max(1) as f64;
        let rent = system.price.rent.as_ref().map(|figure| (figure.value / devices).to_bits());
        let purchase = system.price.purchase.as_ref().map(|figure| (figure.value / devices).to_bits());
        (rent, purchase)
    };
    let joined = system.tiers.last().map(|tier| &tier.link);
    system.device == base.device
        && system.devices_per_node == base.devices_per_node
        && base.nodes < system.nodes
        && joined.is_some()
        && joined == base.network.as_ref().map(|tier| &tier.link)
        && price(system) == price(base)
}

/// Vendors of the measured devices, and whether these are processors.
struct MeasuredDevices(Vec<(Vendor, bool)>);

impl MeasuredDevices {
    /// Whether devices of this vendor and kind were measured.
    fn covers(&self, device: &Device) -> bool {
        self.0.contains(&(device.vendor, device.is_processor()))
    }
}

impl Catalog {
    /// Available hardware that matches `only`; everything if `only` is empty.
    ///
    /// # Errors
    /// A file of the catalogue is faulty, or a word of `only` matches nothing.
    pub fn inventory(&self, only: &[String]) -> Result<Inventory, Error> {
        let (systems, devices) = (self.all::<System>()?, self.all::<Device>()?);
        self.known(only, &systems, &devices)?;
        let measured = self.measured_devices(&devices)?;
        let competes = |device: &Device, id: &str| measured.covers(device) || is_named(device, id, only);
        let mut market = Inventory::default();
        for system in &systems {
            let Some(device) = devices.iter().find(|device| device.id == system.device) else { continue };
            if !wanted(device, &system.id, only) || systems.iter().any(|base| repeats(system, base)) {
                continue;
            }
            for (id, nodes, per_node) in sizes(system, &systems) {
                match Cluster::build(system, device.clone(), nodes, per_node) {
                    Ok(cluster) => {
                        let cluster = with_name(cluster, system, nodes, per_node);
                        market.systems.push(SystemOption {
                            id,
                            cluster,
                            competes: competes(device, &system.id),
                        });
                    }
                    Err(fault) => market.rejected.push((id, fault)),
                }
            }
        }
        for device in
            devices.iter().filter(|device| !device.is_processor() && wanted(device, &device.id, only))
        {
            if systems.iter().any(|system| system.device == device.id) {
                continue;
            }
            for count in LOOSE {
                let id = format!("{count}x{}", device.id);
                match self.hardware(&id) {
                    Ok(cluster) => {
                        let cluster = Cluster { name: format!("{count} x {}", device.name), ..cluster };
                        market.systems.push(SystemOption {
                            id,
                            cluster,
                            competes: competes(device, &device.id),
                        });
                    }
                    Err(fault) if count == 1 => {
                        market.rejected.push((device.id.clone(), fault));
                        break;
                    }
                    // No host has that many slots.
                    Err(_) => {}
                }
            }
        }
        Ok(market)
    }

    /// The one machine of `hardware`, as its own inventory.
    pub fn one(&self, hardware: &str) -> Result<Inventory, Error> {
        let cluster = self.hardware(hardware)?;
        let lot = SystemOption { id: hardware.to_owned(), cluster, competes: true };
        Ok(Inventory { systems: vec![lot], rejected: vec![] })
    }

    /// The devices that some runtime was measured on.
    fn measured_devices(&self, devices: &[Device]) -> Result<MeasuredDevices, Error> {
        let mut found = Vec::new();
        let fits = self.all::<Runtime>()?.into_iter().filter_map(|runtime| runtime.serving_fit);
        for id in fits.flat_map(|fit| fit.measured_on) {
            let device = devices.iter().find(|device| device.id == id);
            found.extend(device.map(|device| (device.vendor, device.is_processor())));
        }
        Ok(MeasuredDevices(found))
    }

    /// Rejects a word that matches no device and no system.
    fn known(&self, only: &[String], systems: &[System], devices: &[Device]) -> Result<(), Error> {
        let ids: Vec<&str> = systems.iter().map(|system| system.id.as_str()).collect();
        let fields = devices.iter().flat_map(|d| [d.vendor.name(), &d.class, &d.family, &d.id]);
        let names: Vec<&str> = fields.chain(ids).collect();
        for word in only {
            if !names.iter().any(|name| name.eq_ignore_ascii_case(word)) {
                let fix =
                    crate::spec::near::suggest(word, names.iter().copied(), "mantile-opt catalog devices");
                return Err(Error::new(
                    "only",
                    format!("`{word}`"),
                    "vendors, classes, generations, devices or systems of the catalogue",
                    fix,
                ));
            }
        }
        Ok(())
    }
}

/// Sizes that `system` is offered in, as id, nodes, devices per node: parts of its node, itself, several nodes.
fn sizes(system: &System, all: &[System]) -> Vec<(String, u64, u64)> {
    let (id, nodes, held) = (&system.id, system.nodes, system.devices_per_node);
    let alike = || all.iter().filter(|other| other.device == system.device);
    // Clouds rent parts of a node; a listed machine of that size replaces the part.
    let listed = |count: u64| alike().any(|other| other.nodes * other.devices_per_node == count);
    let parts = [2, 4].into_iter().filter(|count| nodes == 1 && *count < held && !listed(*count));
    let mut found: Vec<_> = parts.map(|count| (format!("{count} devices of {id}"), 1, count)).collect();
    found.push((id.clone(), nodes, held));
    let largest = alike().all(|other| other.devices_per_node <= held);
    if system.network.is_some() && nodes == 1 && largest {
        found.extend(NODES.map(|nodes| (format!("{nodes} of {id}"), nodes, held)));
    }
    found
}

/// The cluster, named by its part of the system.
fn with_name(cluster: Cluster, system: &System, nodes: u64, per_node: u64) -> Cluster {
    let name = match (nodes / system.nodes, per_node < system.devices_per_node) {
        (_, true) => format!("{per_node} of {} in {}", system.devices_per_node, system.name),
        (1, _) => return cluster,
        (times, _) => format!("{times} nodes of {}", system.name),
    };
    Cluster { name, ..cluster }
}

/// The problems of a model on a system: for the default runtime, and unless the scenario names one, for every other one
/// that is measured on its devices; for each the qualities of its weights.
pub fn qualities(
    catalog: &Catalog,
    scenario: &Scenario,
    built: (&ResolvedModel, &ModelGraph),
    cluster: &Cluster,
) -> Result<Vec<(ResolvedScenario, bool)>, Error> {
    // No runtime and no format changes the host.
    let hosted = &catalog.with_host(cluster.clone(), scenario);
    if scenario.runtime.as_deref().is_some_and(|name| name != ANY) {
        return on_runtime(catalog, scenario, built, hosted);
    }
    let unnamed = Scenario { runtime: None, ..scenario.clone() };
    let mut problems = on_runtime(catalog, &unnamed, built, hosted);
    let usual = &catalog.chosen_runtime(&unnamed, cluster)?.id;
    for id in catalog.compared_runtimes(cluster)?.into_iter().filter(|id| id != usual) {
        let named = Scenario { runtime: Some(id), ..scenario.clone() };
        match (&mut problems, on_runtime(catalog, &named, built, hosted)) {
            (Ok(known), Ok(others)) => known.extend(others),
            (Err(_), Ok(others)) => problems = Ok(others),
            // The fault of the default runtime is the one to report.
            (_, Err(_)) => {}
        }
    }
    problems
}

/// A problem for each quality of weights, with whether it counts as that of the checkpoint: the checkpoint's own format,
/// published ones and one of 8 bits, and lower ones (the runtime's default at home, or one of 4 bits). A requested format replaces
/// both.
fn on_runtime(
    catalog: &Catalog,
    scenario: &Scenario,
    (model, graph): (&ResolvedModel, &ModelGraph),
    hosted: &Result<Cluster, Error>,
) -> Result<Vec<(ResolvedScenario, bool)>, Error> {
    let cluster = hosted.as_ref().map_err(Clone::clone)?;
    let found = || (model.clone(), graph.clone());
    let first = ResolvedScenario::on_host(catalog, scenario, found(), cluster.clone());
    let problem = match first {
        // The checkpoint's own format does not run here; a conversion may.
        Err(fault) if scenario.weight_format.is_none() && fault.key == "weight-format" => {
            let any = Scenario { weight_format: Some("any".into()), ..scenario.clone() };
            let any = ResolvedScenario::on_host(catalog, &any, found(), cluster.clone())?;
            let (kept, lower): (Vec<FormatOption>, Vec<FormatOption>) =
                any.weight_formats.iter().cloned().partition(is_full);
            if any.weight_formats.is_empty() {
                return Err(fault);
            }
            ResolvedScenario { weight_formats: kept, lower_formats: lower, ..any }
        }
        other => other?,
    };
    let whole = problem.checkpoint_bits();
    let quality = |choice: &FormatOption| choice.quality(whole);
    let (mut full, mut lower): (Vec<FormatOption>, Vec<FormatOption>) =
        problem.weight_formats.iter().cloned().partition(is_full);
    if scenario.weight_format.is_none() {
        // Weights that somebody published, or that the runtime or its usual tool makes.
        let runtime = &problem.runtime;
        let available = |choice: &&FormatOption| {
            choice.checkpoint.is_some()
                || !runtime.weights_at_home.is_empty()
                || runtime.weights_at_start.contains(&choice.format.id)
        };
        let others: Vec<&FormatOption> = problem.lower_formats.iter().filter(available).collect();
        for band in [EIGHT_BITS, FOUR_BITS] {
            let is_within = |choice: &FormatOption| quality(choice).is_within(band);
            if full.iter().chain(&lower).any(is_within) {
                continue;
            }
            let found = others.iter().copied().find(|choice| is_within(choice)).cloned();
            let Some(found) = found else { continue };
            if is_full(&found) { full.push(found) } else { lower.push(found) }
        }
    }
    let of = |weight_formats: Vec<FormatOption>| {
        let keeps = weight_formats.iter().all(|choice| quality(choice).is_kept);
        let some = !weight_formats.is_empty();
        some.then(|| (ResolvedScenario { weight_formats, ..problem.clone() }, keeps))
    };
    Ok([of(full), of(lower)].into_iter().flatten().collect())
}

/// Whether a format is that of the checkpoint, or one of 8 bits and up.
fn is_full(choice: &FormatOption) -> bool {
    choice.own || choice.bits() >= EIGHT_BITS.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(only: &[&str]) -> Vec<String> {
        let only: Vec<String> = only.iter().map(|word| (*word).to_owned()).collect();
        Catalog::default().inventory(&only).unwrap().systems.into_iter().map(|lot| lot.id).collect()
    }

    #[test]
    fn every_system_is_offered_once() {
        let all = ids(&[]);
        for id in [
            "dgx-h100",
            "h100-sxm-x1",
            "4 devices of dgx-h100",
            "gb200-nvl72",
            "2 of dgx-h100",
            "4xnvidia-rtx-5080",
        ] {
            assert!(all.iter().any(|known| known == id), "{id} in {all:?}");
        }
        assert!(!all.iter().any(|id| id == "dgx-h100x16"), "two nodes of dgx-h100");
        let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn only_what_is_named_is_offered() {
        let apple = ids(&["Apple"]);
        assert!(apple.iter().any(|id| id == "mac-studio-m3-ultra-512"));
        assert!(apple.iter().all(|id| id.contains("mac-") || id.contains("apple")), "{apple:?}");
        assert!(apple.iter().any(|id| id == "2 of mac-studio-m3-ultra-512"), "{apple:?}");
        let fault = Catalog::default().inventory(&["nvida".into()]).unwrap_err();
        assert!(fault.fix.contains("nvidia"), "{fault}");
    }
}
