//! Default prices of energy, power fractions and service life, and the scenario's values over them.

use schemars::JsonSchema;
use serde::Deserialize;

use super::cluster::{Cluster, Host, Tier};
use super::device::{Device, Power, PriceRange};
use super::error::Error;
use super::figure::{ByteRate, Dimension, DollarRate, DollarsPerEnergy, Figure, Ratio, Seconds, Watts};
use super::limits::{AMORTIZATION, ELECTRICITY, HOURS_PER_DAY, Limit, PUE, USD_PER_DEVICE_HOUR, UTILIZATION};
use super::nearness::Interval;
use super::price::{HOURS_OF_A_DAY, HostPrice, NetworkPrice, PriceBasis, Purchase, node_power};
use super::scenario::Scenario;
use crate::quantity::datum::{Grade, Source};

/// `hardware/defaults.json`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Electricity price in a data centre.
    pub electricity: Figure<DollarsPerEnergy>,
    /// Electricity price at home.
    pub electricity_home: Figure<DollarsPerEnergy>,
    /// Power usage effectiveness (PUE) of a data centre.
    pub pue: Figure<Ratio>,
    /// PUE at home.
    pub pue_home: Figure<Ratio>,
    /// Amortization period of a purchase, in years.
    pub amortization: Figure<Seconds>,
    /// Fraction of the amortization period in which the hardware serves.
    pub utilization: Figure<Ratio>,
    /// Fraction of the power limit drawn by compute-bound kernels.
    pub compute_bound_power: Figure<Ratio>,
    /// Fraction of the power limit drawn by memory-bound kernels.
    pub memory_bound_power: Figure<Ratio>,
    /// Fraction of the power limit drawn at idle.
    pub idle_power: Figure<Ratio>,
    /// Accepted part of draft tokens in published runs, where a scenario states none: the end of a range.
    pub typical_acceptance: Figure<Ratio>,
    /// Devices in the PCIe slots of a host, where no system defines it.
    pub pcie_devices: Figure<Ratio>,
    /// Rates of a bus whose devices do not read each other's memory, by their number.
    pub staged: Vec<StagedRate>,
    /// Host of cards at home, where no system states one.
    pub host_home: Host,
    /// Bandwidth of host memory, where only its size is known.
    pub host_memory_bandwidth: Figure<ByteRate>,
    /// Vector operations of a host's processor per byte of its memory's bandwidth, where only the memory is known.
    pub host_flops_per_byte: Figure<Ratio>,
    /// Network between hosts in a data centre, where no system defines it.
    pub network: Tier,
    /// The same at home.
    pub network_home: Tier,
    /// Prices of hosts for devices that are sold without one; the first that takes the devices of a node applies.
    pub hosts: Vec<HostPrice>,
    /// Price of the network between hosts in a data centre.
    pub network_price: NetworkPrice,
    /// The same at home.
    pub network_price_home: NetworkPrice,
    /// Prediction interval for borrowed constants: the widest of all held-out groups.
    pub unmeasured: Interval,
    /// Prediction interval where a processor computes with constants that are fitted to runs on others.
    pub on_processor: Interval,
}

/// Rate of a bus without peer-to-peer: data is staged through the host's memory.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StagedRate {
    /// Number of devices, at most.
    pub devices: u64,
    /// Fraction of the link's rate.
    pub rate: Figure<Ratio>,
}

impl Defaults {
    /// Host of `device`, where no system states one: cards at home are in a desktop.
    pub fn host(&self, device: &Device) -> Option<&Host> {
        (device.is_at_desk() && !device.memory.unified).then_some(&self.host_home)
    }

    /// Network between hosts of `device`, where no system defines it.
    pub fn network(&self, device: &Device) -> &Tier {
        if device.is_at_desk() { &self.network_home } else { &self.network }
    }

    pub fn network_price(&self, device: &Device) -> &NetworkPrice {
        if device.is_at_desk() { &self.network_price_home } else { &self.network_price }
    }

    /// The host for a node of `cluster`, where its devices are sold without one.
    pub fn host_price(&self, cluster: &Cluster) -> Option<&HostPrice> {
        let device = &cluster.device;
        self.hosts.iter().find(|host| {
            host.modules == device.is_module()
                && host.classes.contains(&device.class)
                && cluster.devices_per_node <= host.devices
        })
    }
}

/// Prices of energy and devices: from the scenario, else from the files.
#[derive(Clone, Debug)]
pub struct Economics {
    pub basis: PriceBasis,
    pub rent: Option<Figure<DollarRate>>,
    /// Range of the catalogue's rents, if the rent is from the catalogue.
    pub rent_bounds: Option<PriceRange<DollarRate>>,
    /// Purchase price of one device, with its share of the host and of the network.
    pub purchase: Option<Purchase>,
    pub electricity: Figure<DollarsPerEnergy>,
    /// Power usage effectiveness (PUE): power of the facility over power of its machines.
    pub pue: Figure<Ratio>,
    /// Share of a device in the power of the rest of its node.
    pub node_power: Figure<Watts>,
    pub amortization: Figure<Seconds>,
    /// Fraction of the amortization period in which the hardware serves.
    pub utilization: Figure<Ratio>,
    /// Time of a day in which the hardware serves: the day's share of [`Economics::utilization`] if it is owned.
    pub serving_time: Figure<Seconds>,
    /// Fraction of the power limit drawn by compute-bound kernels.
    pub compute_bound_power: Figure<Ratio>,
    /// Fraction of the power limit drawn by memory-bound kernels.
    pub memory_bound_power: Figure<Ratio>,
    /// Fraction of the power limit drawn at idle.
    pub idle_power: Figure<Ratio>,
}

/// Seconds per hour.
pub const HOUR: f64 = 3600.0;
/// Seconds per month, a twelfth of the mean Gregorian year.
pub const MONTH: f64 = 2_629_746.0;
/// Joules per kWh.
const KWH: f64 = 3.6e6;

impl Economics {
    /// The prices for `cluster` in `scenario`.
    pub fn new(defaults: &Defaults, cluster: &Cluster, scenario: &Scenario) -> Result<Economics, Error> {
        let home = cluster.device.is_at_desk();
        let (energy, overhead) = if home {
            (&defaults.electricity_home, &defaults.pue_home)
        } else {
            (&defaults.electricity, &defaults.pue)
        };
        let (device, power) = (&cluster.device, cluster.device.power.as_ref());
        let rent =
            stated(scenario.usd_per_device_hour, "usd_per_device_hour", 1.0 / HOUR, &USD_PER_DEVICE_HOUR)?;
        let electricity =
            stated(scenario.electricity_usd_per_kwh, "electricity_usd_per_kwh", 1.0 / KWH, &ELECTRICITY)?;
        let pue = stated(scenario.pue, "pue", 1.0, &PUE)?;
        let amortization = stated(scenario.amortization_months, "amortization_months", MONTH, &AMORTIZATION)?;
        let hours = stated::<Ratio>(scenario.hours_per_day, "hours_per_day", 1.0, &HOURS_PER_DAY)?;
        let fraction = |own: fn(&Power) -> Option<&Figure<Ratio>>, general: &Figure<Ratio>| {
            power.and_then(own).unwrap_or(general).clone()
        };
        let purchase = Purchase::of(defaults, cluster);
        let known_rent = cluster.price.rent.clone().or_else(|| device.price.rent.clone());
        let known = (purchase.is_some(), rent.is_some() || known_rent.is_some());
        let basis = basis(scenario, device, known)?;
        let owned = basis == PriceBasis::Owned;
        let used = match hours.clone().filter(|_| owned) {
            Some(hours) => Some(times(&hours, 1.0 / HOURS_OF_A_DAY)),
            None => stated(scenario.utilization, "utilization", 1.0, &UTILIZATION)?,
        };
        let utilization = used.unwrap_or_else(|| defaults.utilization.clone());
        let serving_time = match &hours {
            Some(hours) => times(hours, HOUR),
            None if owned => times(&utilization, HOURS_OF_A_DAY * HOUR),
            None => {
                Figure::new(HOURS_OF_A_DAY * HOUR, Source { grade: Grade::Assumed, text: ALL_DAY.into() })
            }
        };
        let rent_bounds = known_rent
            .as_ref()
            .filter(|_| rent.is_none())
            .and_then(|rent| holding(rent, [&cluster.price.rent_bounds, &device.price.rent_bounds]));
        Ok(Economics {
            basis,
            rent: rent.or(known_rent),
            rent_bounds,
            purchase,
            electricity: electricity.unwrap_or_else(|| energy.clone()),
            pue: pue.unwrap_or_else(|| overhead.clone()),
            node_power: node_power(defaults, cluster),
            amortization: amortization.unwrap_or_else(|| defaults.amortization.clone()),
            utilization,
            serving_time,
            compute_bound_power: fraction(|own| own.compute_bound.as_ref(), &defaults.compute_bound_power),
            memory_bound_power: fraction(|own| own.memory_bound.as_ref(), &defaults.memory_bound_power),
            idle_power: idle_power(cluster).unwrap_or_else(|| defaults.idle_power.clone()),
        })
    }
}

impl Economics {
    /// Dates of the prices on the basis, the oldest first.
    pub fn dated(&self) -> Vec<String> {
        let mut dates: Vec<String> = match self.basis {
            PriceBasis::Rented => self.rent.iter().filter_map(|rent| rent.date.clone()).collect(),
            PriceBasis::Owned => {
                let parts = self.purchase.iter().flat_map(Purchase::parts);
                parts.filter_map(|part| part.price.date.clone()).collect()
            }
        };
        dates.sort();
        dates.dedup();
        dates
    }
}

/// Source of the serving time of rented hardware.
const ALL_DAY: &str = "hours_per_day: 24 assumed";

/// A figure times a number, of the same source.
fn times<D: Dimension>(figure: &Figure<Ratio>, factor: f64) -> Figure<D> {
    Figure::new(figure.value * factor, figure.source.clone())
}

/// Idle power as a fraction of TDP, where the device has one.
fn idle_power(cluster: &Cluster) -> Option<Figure<Ratio>> {
    let power = cluster.device.power.as_ref()?;
    let idle = power.idle.as_ref()?;
    let text = format!("{idle} of {}: {}", power.tdp, idle.source.text);
    let source = Source { grade: idle.source.grade, text: text.into() };
    Some(Figure::new(idle.value / power.tdp.value, source))
}

/// The basis that the scenario sets, or that follows from the costs that it sets.
pub fn stated_basis(scenario: &Scenario) -> Result<Option<PriceBasis>, Error> {
    let costs = [
        ("electricity_usd_per_kwh", scenario.electricity_usd_per_kwh),
        ("pue", scenario.pue),
        ("amortization_months", scenario.amortization_months),
        ("utilization", scenario.utilization),
    ];
    let owning = costs.iter().find(|(_, value)| value.is_some()).map(|(key, _)| *key);
    if let (Some(key), Some(_)) = (owning, scenario.usd_per_device_hour) {
        let found = format!("both {key} and usd_per_device_hour");
        let fix = "a rent includes power and building: set only the rent, or only the costs of owning";
        return Err(Error::new(key, found, "one of them", fix));
    }
    let implied = match (owning, scenario.usd_per_device_hour) {
        (Some(key), _) => Some((key, PriceBasis::Owned)),
        (None, Some(_)) => Some(("usd_per_device_hour", PriceBasis::Rented)),
        (None, None) => None,
    };
    if let (Some((key, implied)), Some(stated)) = (implied, scenario.price_basis)
        && implied != stated
    {
        let found = format!("{key} with price_basis {}", stated.name());
        let fix = format!("remove {key}, or set price_basis {}", implied.name());
        return Err(Error::new("price_basis", found, implied.name(), fix));
    }
    Ok(scenario.price_basis.or(implied.map(|(_, basis)| basis)))
}

/// The basis of one cluster: the scenario's, else the default of its class, else the one with a price.
fn basis(scenario: &Scenario, device: &Device, known: (bool, bool)) -> Result<PriceBasis, Error> {
    let usual = if device.is_owned_by_default() { PriceBasis::Owned } else { PriceBasis::Rented };
    let wanted = stated_basis(scenario)?.unwrap_or(usual);
    let priced = |basis: PriceBasis| if basis == PriceBasis::Owned { known.0 } else { known.1 };
    let other = scenario.price_basis.is_none() && !priced(wanted) && priced(wanted.other());
    Ok(if other { wanted.other() } else { wanted })
}

/// The first bounds that contain the price: the system's, then the device's.
fn holding<D: Dimension + Clone>(
    price: &Figure<D>,
    bounds: [&Option<PriceRange<D>>; 2],
) -> Option<PriceRange<D>> {
    bounds.into_iter().flatten().find(|bounds| bounds.hold(price)).cloned()
}

/// A figure of the scenario in base units, if set.
fn stated<D: Dimension>(
    value: Option<f64>,
    key: &'static str,
    scale: f64,
    limit: &Limit,
) -> Result<Option<Figure<D>>, Error> {
    let Some(value) = value else { return Ok(None) };
    limit.check(key, value)?;
    let source = Source { grade: Grade::Stated, text: format!("scenario: {key}").into() };
    Ok(Some(Figure::new(value * scale, source)))
}
