//! Systems as in their files: devices, interconnect, hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::constant::LinkKind;
use super::device::{Device, Price, PriceRange};
use super::error::Error;
use super::figure::{ByteRate, Bytes, Dimension, Figure, Seconds, Watts};
use super::host_part::HostProcessor;
use crate::quantity::datum::{Grade, Source};

/// Topology of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Topology {
    /// Through switches: any device to any other at full rate.
    Switch,
    /// A link between every two devices: a group has the links between its own members.
    Mesh,
    /// A ring: each device to its two neighbours.
    Ring,
    /// Over the host's PCIe.
    Pcie,
}

/// Whether devices on PCIe read each other's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum PeerToPeer {
    /// Yes, through the processors' PCIe ports.
    Yes,
    /// No: data is staged through the host's memory.
    No,
    /// Yes, through PCIe switches.
    Switch,
}

impl PeerToPeer {
    pub fn name(self) -> &'static str {
        match self {
            PeerToPeer::Yes => "yes",
            PeerToPeer::No => "no",
            PeerToPeer::Switch => "switch",
        }
    }
}

/// One level of the interconnect.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// `nvlink domain`, `node`, `network` …
    pub name: String,
    /// Id of the link.
    pub link: String,
    /// Number of devices in one unit of this tier.
    #[serde(default)]
    pub devices: u64,
    /// Bandwidth per direction and device: over all its links in a mesh of `devices`, over one link without a number.
    pub bandwidth: Figure<ByteRate>,
    /// Latency of a small message.
    pub latency: Figure<Seconds>,
    /// In-network reduction in the switches (NVLS, SHARP).
    #[serde(default)]
    pub in_switch_reduction: bool,
    /// Topology.
    pub topology: Topology,
    /// Whether devices on PCIe read each other's memory, where its figures assume that.
    #[serde(default, rename = "p2p", skip_serializing_if = "Option::is_none")]
    pub peer_to_peer: Option<PeerToPeer>,
}

impl Tier {
    /// The tier where it joins this number of devices. In a mesh each has one link to every other, so that the rate of a
    /// device follows from its peers; without a number of its own, the rate is that of one link.
    pub fn joining(&self, devices: u64) -> Tier {
        let (links, of) = (devices.saturating_sub(1), self.devices.saturating_sub(1).max(1));
        let whole = Tier { devices, ..self.clone() };
        if self.topology != Topology::Mesh || links == of {
            return whole;
        }
        let text = match self.devices {
            0..=2 => format!("{links} links, one to every other"),
            all => format!("{links} of the {of} links of a mesh of {all}"),
        };
        Tier { bandwidth: share(&self.bandwidth, links, of, &text), ..whole }
    }
}

/// The host of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its processor.
    pub cpu: Option<String>,
    /// Memory size.
    pub memory: Option<Figure<Bytes>>,
    /// Memory bandwidth.
    pub memory_bandwidth: Option<Figure<ByteRate>>,
    /// Storage bandwidth.
    pub storage_read: Option<Figure<ByteRate>>,
    /// Storage space for a model, in bytes.
    pub storage: Option<Figure<Bytes>>,
}

/// Power of components other than devices.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodePower {
    /// Per node, except its devices.
    pub overhead: Option<Figure<Watts>>,
}

/// A system as in its file.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// File name without `.json`.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Id of the device, or an inline device.
    #[schemars(with = "DeviceInPlace")]
    pub device: String,
    /// Devices per node.
    pub devices_per_node: u64,
    /// Nodes.
    pub nodes: u64,
    /// Interconnect, innermost first.
    pub tiers: Vec<Tier>,
    /// The network between such nodes, for systems with more nodes.
    pub network: Option<Tier>,
    /// The host of a node.
    pub host: Option<Host>,
    /// Power of components other than devices.
    pub power: Option<NodePower>,
    /// Price of the whole system, hosts included; absent where only its devices have a price.
    #[serde(default)]
    pub price: Price,
    /// Whether it is an instance of a cloud, which is never sold.
    #[serde(default)]
    pub rented_only: bool,
    /// Remarks.
    pub notes: Option<String>,
}

/// The device of a system file.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code)]
enum DeviceInPlace {
    /// Id of the device.
    Id(String),
    /// An inline device.
    Device(Box<Device>),
}

/// Devices with their interconnect: the hardware of a problem.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Name in the user's input.
    pub id: String,
    pub name: String,
    /// The device; the same everywhere.
    pub device: Device,
    pub devices_per_node: u64,
    pub nodes: u64,
    /// Interconnect, innermost first; each tier's `devices` is a multiple of the tier inside, except in part of a node.
    pub tiers: Vec<Tier>,
    pub host: Option<Host>,
    /// The processor of the host, where its figures are known.
    pub processor: Option<HostProcessor>,
    /// Power per node of components other than devices.
    pub power: Option<NodePower>,
    /// Price of one device with its share of the system, where the system's price is known.
    pub price: Price,
    /// Whether it can be bought: no instance of a cloud, and no part of a board or of a system that is sold whole.
    pub for_sale: bool,
    /// Whether a network between hosts joins it, which no price of a system includes.
    pub networked: bool,
}

/// Larger numbers of devices are rejected as typing errors.
const MOST_DEVICES: u64 = 1 << 20;

impl Cluster {
    pub fn devices(&self) -> u64 {
        self.nodes * self.devices_per_node
    }

    /// Devices of the innermost tier: a replica is inside one unit, or takes whole units.
    pub fn domain(&self) -> u64 {
        self.tiers.first().map_or(1, |tier| tier.devices.max(1))
    }

    /// Devices of a node if it holds several units of the innermost tier, else of that tier. Inside it a replica may
    /// have any size; larger replicas take whole units.
    pub fn block(&self) -> u64 {
        self.domain().max(self.devices_per_node)
    }

    /// Whether some of its devices meet over PCIe.
    pub fn has_bus(&self) -> bool {
        self.tiers.iter().any(|tier| tier.topology == Topology::Pcie)
    }

    /// The kind of the links between neighbouring devices. A device alone has none of its own: a rig joins it to others over
    /// a bus or a network.
    pub fn link_kind(&self) -> LinkKind {
        let own = self.tiers.first().is_some_and(|tier| tier.topology != Topology::Pcie);
        if own { LinkKind::Fabric } else { LinkKind::Bus }
    }

    pub fn rents(&self) -> bool {
        self.price.rent.is_some() || self.device.price.rent.is_some()
    }

    /// Whether it can be bought at a known price.
    pub fn sells(&self) -> bool {
        self.for_sale && (self.price.purchase.is_some() || self.device.price.purchase.is_some())
    }

    /// The system with `nodes` nodes of `per_node` devices.
    ///
    /// # Errors
    /// A figure of the device is missing, a node does not hold that number of devices, or no network joins the nodes.
    pub fn build(system: &System, device: Device, nodes: u64, per_node: u64) -> Result<Cluster, Error> {
        device.complete()?;
        check_counts(system, &device, nodes, per_node)?;
        let partial = per_node < system.devices_per_node;
        let whole = nodes * per_node;
        let mut tiers = system.tiers_of(per_node, whole);
        let beyond = tiers.last().map_or(1, |last| last.devices) < whole;
        if beyond {
            let network = system.network.as_ref().ok_or_else(|| {
                Error::new(
                    "network",
                    format!("{nodes} nodes of {}", system.name),
                    "a system file with a `network` between its nodes",
                    "add `network` (link, bandwidth, latency) to a copy of the system file",
                )
            })?;
            tiers.push(network.joining(whole));
        }
        check_tiers(&tiers, if partial { per_node } else { 0 })?;
        let unsold = partial && (device.is_module() || system.price.purchase.is_some());
        Ok(Cluster {
            networked: beyond || networked(&tiers, per_node),
            for_sale: !system.rented_only && !unsold,
            id: system.id.clone(),
            name: system.name.clone(),
            device,
            devices_per_node: per_node,
            nodes,
            tiers,
            host: system.host.clone(),
            processor: None,
            power: system.power_of(per_node),
            price: system.price_per_device(),
        })
    }
}

/// Whether an outer tier joins nodes: a scale-up domain of several nodes is the innermost tier.
fn networked(tiers: &[Tier], per_node: u64) -> bool {
    tiers.iter().skip(1).any(|tier| tier.devices > per_node)
}

/// The numbers of nodes and devices are plausible and fit the system.
fn check_counts(system: &System, device: &Device, nodes: u64, per_node: u64) -> Result<(), Error> {
    let held = system.devices_per_node;
    let counts = [("nodes", nodes), ("devices_per_node", per_node), ("devices_per_node", held)];
    for (key, value) in counts {
        if value == 0 || value > MOST_DEVICES {
            let fix = "set the number";
            return Err(Error::new(key, value.to_string(), format!("1 to {MOST_DEVICES}"), fix));
        }
    }
    if nodes.saturating_mul(per_node) > MOST_DEVICES {
        let found = format!("{nodes} x {per_node}");
        let expected = format!("at most {MOST_DEVICES} devices");
        return Err(Error::new("nodes", found, expected, "set a smaller number"));
    }
    if per_node > held {
        let found = format!("{per_node} in one node");
        let expected = format!("at most {held}, the maximum of {}", system.name);
        let enough = per_node.div_ceil(held);
        let fix = format!("write NODESxCOUNTxDEVICE, e.g. {enough}x{held}x{}", device.id);
        return Err(Error::new("devices_per_node", found, expected, fix));
    }
    Ok(())
}

/// Each tier joins whole units of the tier inside it. Part of a node may end in a partial unit: tiers of up to `partial`
/// devices keep their sizes.
fn check_tiers(tiers: &[Tier], partial: u64) -> Result<(), Error> {
    let cuts = |pair: &&[Tier]| pair[1].devices > partial && !pair[1].devices.is_multiple_of(pair[0].devices);
    let Some([inner, outer]) = tiers.windows(2).find(cuts) else { return Ok(()) };
    let found =
        format!("`{}` joins {}, `{}` inside it {}", outer.name, outer.devices, inner.name, inner.devices);
    let fix = format!("use whole units of `{}`, or correct `devices` of the tiers", inner.name);
    Err(Error::new("tiers", found, "each a multiple of the one inside it", fix))
}

impl System {
    /// Tiers that join `per_node` devices of each node, `whole` devices in total.
    fn tiers_of(&self, per_node: u64, whole: u64) -> Vec<Tier> {
        let mut tiers: Vec<Tier> = Vec::new();
        for tier in &self.tiers {
            let inside = tier.devices <= self.devices_per_node;
            let devices = if inside { tier.devices.min(per_node) } else { tier.devices.min(whole) };
            if devices > 1 && tiers.last().is_none_or(|last| devices > last.devices) {
                tiers.push(tier.joining(devices));
            }
        }
        tiers
    }

    /// Power of the other components, for `per_node` devices of each node.
    fn power_of(&self, per_node: u64) -> Option<NodePower> {
        let held = self.devices_per_node;
        let text = format!("{per_node} of {held} devices of a node");
        let overhead =
            |power: &NodePower| power.overhead.as_ref().map(|all| share(all, per_node, held, &text));
        self.power.as_ref().map(|power| NodePower { overhead: overhead(power) })
    }

    /// A node of it with `per_node` devices, as a system of its own. Part of a node has a share of the rent, and no
    /// purchase price.
    pub fn part(&self, per_node: u64) -> System {
        let whole = (self.nodes, self.devices_per_node) == (1, per_node);
        let devices = self.nodes.saturating_mul(self.devices_per_node).max(1);
        let text = format!("{per_node} of {devices} devices of {}", self.name);
        let rent = self.price.rent.as_ref().map(|rent| share(rent, per_node, devices, &text));
        let price = Price { rent, ..Price::default() };
        System {
            devices_per_node: per_node,
            nodes: 1,
            tiers: self.tiers_of(per_node, per_node),
            network: None,
            power: self.power_of(per_node),
            price: if whole { self.price.clone() } else { price },
            ..self.clone()
        }
    }

    fn price_per_device(&self) -> Price {
        let devices = self.nodes.saturating_mul(self.devices_per_node).max(1);
        let text = format!("{} over {devices} devices", self.name);
        Price {
            purchase: self.price.purchase.as_ref().map(|figure| share(figure, 1, devices, &text)),
            rent: self.price.rent.as_ref().map(|figure| share(figure, 1, devices, &text)),
            purchase_bounds: self.price.purchase_bounds.as_ref().map(|both| parts(both, devices, &text)),
            rent_bounds: self.price.rent_bounds.as_ref().map(|both| parts(both, devices, &text)),
        }
    }
}

/// One device's share of both bounds.
fn parts<D: Dimension + Clone>(both: &PriceRange<D>, devices: u64, of: &str) -> PriceRange<D> {
    PriceRange { low: share(&both.low, 1, devices, of), high: share(&both.high, 1, devices, of) }
}

/// `part` over `whole` of a figure; the source names the whole.
fn share<D: Dimension + Clone>(figure: &Figure<D>, part: u64, whole: u64, of: &str) -> Figure<D> {
    if part == whole {
        return figure.clone();
    }
    let grade = figure.source.grade.max(Grade::Read);
    let source = Source { grade, text: format!("{of}: {}", figure.source.text).into() };
    let mut shared = Figure::new(figure.value * part as f64 / whole as f64, source);
    shared.date = figure.date.clone();
    shared
}
