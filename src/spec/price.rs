//! The price of devices on one basis: owned with host and network, or rented.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::Cluster;
use super::defaults::Defaults;
use super::device::{Device, PriceRange};
use super::figure::{Dimension, Dollars, Figure, Watts};
use crate::quantity::datum::{Grade, Source};

pub const HOURS_OF_A_DAY: f64 = 24.0;

/// How hardware is paid for. Every offer of a comparison is priced on the same basis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum PriceBasis {
    /// Bought: devices, hosts and network, paid off over the amortization period, and electricity.
    Owned,
    /// Rented by the hour, power and facility included.
    Rented,
}

impl PriceBasis {
    /// Its name in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            PriceBasis::Owned => "owned",
            PriceBasis::Rented => "rented",
        }
    }

    /// The other one.
    pub fn other(self) -> PriceBasis {
        match self {
            PriceBasis::Owned => PriceBasis::Rented,
            PriceBasis::Rented => PriceBasis::Owned,
        }
    }

    /// The words for a basis that no scenario sets.
    pub fn assumption(self) -> String {
        format!("price basis: {0} for every offer (--price-basis {0})", self.name())
    }

    /// The default basis of a comparison: owned if every offer is at home; else rented if every offer with a price
    /// has a rent; else owned.
    pub fn of_offers<'a>(offers: impl Iterator<Item = &'a Cluster> + Clone) -> PriceBasis {
        let priced = offers.clone().filter(|one| one.rents() || one.sells());
        if offers.clone().all(|one| one.device.is_owned_by_default()) || !priced.clone().all(Cluster::rents) {
            return PriceBasis::Owned;
        }
        PriceBasis::Rented
    }
}

/// Price of a host for devices that are sold without one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostPrice {
    /// `desktop`, `workstation`, `server` …
    pub name: String,
    /// Classes of devices that it takes.
    pub classes: Vec<String>,
    /// It takes modules on a common board; else cards.
    #[serde(default)]
    pub modules: bool,
    /// Maximum number of devices.
    pub devices: u64,
    /// Purchase price without devices.
    pub purchase: Figure<Dollars>,
    /// The lowest and highest price found.
    pub bounds: PriceRange<Dollars>,
    /// Power without devices.
    pub power: Figure<Watts>,
}

/// Price of the network between hosts, per device: adapter, cables, and share of the switches.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkPrice {
    /// Purchase price per device.
    pub purchase: Figure<Dollars>,
    /// The lowest and highest price found.
    pub bounds: PriceRange<Dollars>,
}

/// A part of the price of a device, with its range.
#[derive(Clone, Debug)]
pub struct PricePart {
    pub price: Figure<Dollars>,
    pub bounds: Option<PriceRange<Dollars>>,
}

impl PricePart {
    /// No price of its own, for this reason.
    fn free(why: &'static str) -> PricePart {
        let source = Source { grade: Grade::Assumed, text: why.into() };
        PricePart { price: Figure::new(0.0, source), bounds: None }
    }

    /// The lowest or the highest price; the price itself where no range was found.
    pub fn end(&self, high: bool) -> &Figure<Dollars> {
        self.bounds.as_ref().map_or(&self.price, |both| if high { &both.high } else { &both.low })
    }

    /// One of `devices` equal shares.
    fn shared(price: &Figure<Dollars>, bounds: &PriceRange<Dollars>, devices: u64) -> PricePart {
        let part = |figure: &Figure<Dollars>| share(figure, devices);
        let bounds = Some(PriceRange { low: part(&bounds.low), high: part(&bounds.high) });
        PricePart { price: part(price), bounds }
    }
}

fn share<D: Dimension + Clone>(figure: &Figure<D>, devices: u64) -> Figure<D> {
    let text = if devices == 1 {
        figure.source.text.clone()
    } else {
        format!("over {devices} devices: {}", figure.source.text).into()
    };
    let source = Source { grade: figure.source.grade, text };
    let mut part = Figure::new(figure.value / devices as f64, source);
    part.date = figure.date.clone();
    part
}

/// The purchase price of one device of a cluster, in parts.
#[derive(Clone, Debug)]
pub struct Purchase {
    /// The device, or its share of a system with a price.
    pub device: PricePart,
    /// Its share of a host that is sold separately.
    pub host: PricePart,
    pub network: PricePart,
    /// Price class of the host; absent where the price of the device includes it.
    pub host_class: Option<String>,
}

impl Purchase {
    /// The parts of the price of one device of `cluster`; absent where a part has no known price.
    pub fn of(defaults: &Defaults, cluster: &Cluster) -> Option<Purchase> {
        let device = PricePart {
            price: cluster.price.purchase.clone().or_else(|| cluster.device.price.purchase.clone())?,
            bounds: None,
        };
        let both = [&cluster.price.purchase_bounds, &cluster.device.price.purchase_bounds];
        let bounds = both.into_iter().flatten().find(|bounds| bounds.hold(&device.price)).cloned();
        let device = PricePart { bounds, ..device };
        let class = if is_whole(cluster) { None } else { Some(defaults.host_price(cluster)?) };
        let host = class.map_or_else(
            || PricePart::free("in the price of the system"),
            |host| PricePart::shared(&host.purchase, &host.bounds, sharing(host, cluster)),
        );
        let network = if cluster.networked {
            let NetworkPrice { purchase, bounds } = defaults.network_price(&cluster.device);
            PricePart::shared(purchase, bounds, 1)
        } else {
            PricePart::free("no network between hosts, or one in the price of the system")
        };
        let host_class = class.map(|host| host.name.clone());
        Some(Purchase { device, host, network, host_class })
    }

    pub fn parts(&self) -> [&PricePart; 3] {
        [&self.device, &self.host, &self.network]
    }
}

/// Whether a price of the devices includes their host.
fn is_whole(cluster: &Cluster) -> bool {
    cluster.price.purchase.is_some() || cluster.device.is_machine()
}

/// Devices that share a host: a board of modules is sold whole; cards share the host that they are in.
fn sharing(host: &HostPrice, cluster: &Cluster) -> u64 {
    if host.modules { host.devices } else { cluster.devices_per_node.max(1) }
}

/// The share of one device of `cluster` in the power of the rest of its node.
pub fn node_power(defaults: &Defaults, cluster: &Cluster) -> Figure<Watts> {
    let of_system = cluster.power.as_ref().and_then(|power| power.overhead.as_ref());
    let of_host = defaults.host_price(cluster).filter(|_| !is_whole(cluster));
    let none = || Figure::new(0.0, Source { grade: Grade::Assumed, text: "no figure is known".into() });
    match (of_system, of_host) {
        (Some(power), _) => share(power, cluster.devices_per_node.max(1)),
        (None, Some(host)) => share(&host.power, sharing(host, cluster)),
        (None, None) => none(),
    }
}

impl Device {
    /// Whether it is owned unless a scenario rents it: a device on a desk or in a home.
    pub fn is_owned_by_default(&self) -> bool {
        self.is_home() || self.is_at_desk()
    }
}
