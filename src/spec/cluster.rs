//! Systems as their files state them: which devices, how they are joined, what hosts they sit in.

use schemars::JsonSchema;
use serde::Deserialize;

use super::device::{Device, Price, PriceRange};
use super::error::Error;
use super::figure::{ByteRate, Bytes, Dimension, Figure, Seconds, Watts};
use crate::quantity::datum::{Grade, Source};

/// How the devices of a tier are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Topology {
    /// Through switches: any device to any other at full rate.
    Switch,
    /// A link of its own between every two: the rate is shared out over the peers.
    Mesh,
    /// Each to its two neighbours.
    Ring,
    /// Over the host's PCIe.
    Pcie,
}

/// One level of the interconnect.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// `nvlink domain`, `node`, `network` …
    pub name: String,
    /// Id of the link.
    pub link: String,
    /// Devices reachable inside one unit of this tier.
    #[serde(default)]
    pub devices: u64,
    /// Per direction and device.
    pub bandwidth: Figure<ByteRate>,
    /// Of one small message.
    pub latency: Figure<Seconds>,
    /// The switches can add up (NVLS, SHARP).
    #[serde(default)]
    pub in_switch_reduction: bool,
    /// How the devices are joined.
    pub topology: Topology,
}

/// The host of a node.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its processor.
    pub cpu: Option<String>,
    /// Its memory.
    pub memory: Option<Figure<Bytes>>,
    /// Rate of its memory.
    pub memory_bandwidth: Option<Figure<ByteRate>>,
    /// Rate of its storage.
    pub storage_read: Option<Figure<ByteRate>>,
    /// Bytes of its storage that a model may lie in.
    pub storage: Option<Figure<Bytes>>,
}

/// Power that is not the devices'.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodePower {
    /// Of a node, besides its devices.
    pub overhead: Option<Figure<Watts>>,
}

/// A system as its file states it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// File name without `.json`.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Id of the device, or the device itself in place.
    #[schemars(with = "DeviceInPlace")]
    pub device: String,
    /// Devices a node holds.
    pub devices_per_node: u64,
    /// Nodes.
    pub nodes: u64,
    /// Interconnect, innermost first.
    pub tiers: Vec<Tier>,
    /// The link that joins such nodes, for systems of more of them.
    pub network: Option<Tier>,
    /// The host of a node.
    pub host: Option<Host>,
    /// Power that is not the devices'.
    pub power: Option<NodePower>,
    /// Price of the whole.
    #[serde(default)]
    pub price: Price,
    /// Remarks.
    pub notes: Option<String>,
}

/// How a system file may state its device.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code)]
enum DeviceInPlace {
    /// Id of the device.
    Id(String),
    /// The device itself.
    Device(Box<Device>),
}

/// Devices and how they are joined: what a model is placed on.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// What the user called it.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// The device, the same everywhere.
    pub device: Device,
    /// Devices a node holds.
    pub devices_per_node: u64,
    /// Nodes.
    pub nodes: u64,
    /// Interconnect, innermost first; each tier's `devices` is a multiple of the one before, but in part of a node.
    pub tiers: Vec<Tier>,
    /// The host of a node.
    pub host: Option<Host>,
    /// Power that is not the devices', of one node.
    pub power: Option<NodePower>,
    /// Price of one device with its share of what is around it, where the system's price is known.
    pub price: Price,
}

/// More devices than this are a slip of the pen.
const MOST_DEVICES: u64 = 1 << 20;

impl Cluster {
    /// All devices.
    pub fn devices(&self) -> u64 {
        self.nodes * self.devices_per_node
    }

    /// Devices of the innermost tier: an instance either lies inside one, or takes whole ones.
    pub fn domain(&self) -> u64 {
        self.tiers.first().map_or(1, |tier| tier.devices.max(1))
    }

    /// Devices of a node where it holds several units of the innermost tier, else of that tier. Inside it an instance
    /// may be of any size; larger ones take whole ones.
    pub fn block(&self) -> u64 {
        self.domain().max(self.devices_per_node)
    }

    /// The system as stated, with `nodes` nodes of `per_node` devices.
    ///
    /// # Errors
    /// A figure of the device is missing, or the system has no such number of devices in a node, or no
    /// network to join nodes with.
    pub fn build(system: &System, device: Device, nodes: u64, per_node: u64) -> Result<Cluster, Error> {
        device.complete()?;
        let held = system.devices_per_node;
        let counts = [("nodes", nodes), ("devices_per_node", per_node), ("devices_per_node", held)];
        for (key, value) in counts {
            if value == 0 || value > MOST_DEVICES {
                let fix = "state how many there are";
                return Err(Error::new(key, value.to_string(), format!("1 to {MOST_DEVICES}"), fix));
            }
        }
        if nodes.saturating_mul(per_node) > MOST_DEVICES {
            let found = format!("{nodes} x {per_node}");
            return Err(Error::new("nodes", found, format!("at most {MOST_DEVICES} devices"), "state fewer"));
        }
        if per_node > system.devices_per_node {
            return Err(Error::new(
                "devices_per_node",
                format!("{per_node} in one node"),
                format!("at most {}: {} holds no more", system.devices_per_node, system.name),
                format!(
                    "write NODESxCOUNTxDEVICE, e.g. {}x{}x{}",
                    per_node.div_ceil(system.devices_per_node),
                    system.devices_per_node,
                    device.id
                ),
            ));
        }
        let partial = per_node < system.devices_per_node;
        let whole = nodes * per_node;
        let mut tiers = system.tiers_of(per_node, whole);
        if tiers.last().map_or(1, |last| last.devices) < whole {
            let network = system.network.as_ref().ok_or_else(|| {
                Error::new(
                    "network",
                    format!("{nodes} nodes of {}", system.name),
                    "a system file that states the network between its nodes",
                    "add `network` (link, bandwidth, latency) to a copy of the system file",
                )
            })?;
            tiers.push(Tier { devices: whole, ..network.clone() });
        }
        // Part of a node may end in a unit that is not whole: the tiers keep what they join.
        let uneven = tiers.windows(2).find(|pair| !partial && pair[1].devices % pair[0].devices != 0);
        if let Some([inner, outer]) = uneven {
            let found = format!(
                "`{}` joins {}, `{}` inside it {}",
                outer.name, outer.devices, inner.name, inner.devices
            );
            return Err(Error::new(
                "tiers",
                found,
                "each a multiple of the one inside it",
                format!("take whole units of `{}`, or mend `devices` of the tiers", inner.name),
            ));
        }
        Ok(Cluster {
            id: system.id.clone(),
            name: system.name.clone(),
            device,
            devices_per_node: per_node,
            nodes,
            tiers,
            host: system.host.clone(),
            power: system.power.as_ref().map(|power| NodePower {
                overhead: power.overhead.as_ref().map(|overhead| {
                    let text = format!("{per_node} of {} devices of a node", system.devices_per_node);
                    if partial {
                        share(overhead, per_node, system.devices_per_node, &text)
                    } else {
                        overhead.clone()
                    }
                }),
            }),
            price: system.price_per_device(),
        })
    }
}

impl System {
    /// Tiers that join `per_node` devices of each node, `whole` in all.
    fn tiers_of(&self, per_node: u64, whole: u64) -> Vec<Tier> {
        let mut tiers: Vec<Tier> = Vec::new();
        for tier in &self.tiers {
            let inside = tier.devices <= self.devices_per_node;
            let devices = if inside { tier.devices.min(per_node) } else { tier.devices.min(whole) };
            if devices > 1 && tiers.last().is_none_or(|last| devices > last.devices) {
                tiers.push(Tier { devices, ..tier.clone() });
            }
        }
        tiers
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

/// `part` of `whole` of a figure; the source says of what.
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
