//! Default prices of energy, power fractions and service life, and the scenario's values over them.

use schemars::JsonSchema;
use serde::Deserialize;

use super::cluster::{Cluster, Host, Tier};
use super::device::{Device, PriceRange};
use super::error::Error;
use super::figure::{ByteRate, Dimension, DollarRate, Dollars, DollarsPerEnergy, Figure, Ratio, Seconds};
use super::limits::{AMORTIZATION, ELECTRICITY, Limit, PUE, USD_PER_DEVICE_HOUR, UTILIZATION};
use super::nearness::Interval;
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
    /// Devices in the PCIe slots of a host, where no system defines it.
    pub pcie_devices: Figure<Ratio>,
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
    /// Prediction interval for borrowed constants: the widest of all held-out groups.
    pub unmeasured: Interval,
}

impl Defaults {
    /// Host of `device`, where no system states one: cards at home are in a desktop.
    pub fn host(&self, device: &Device) -> Option<&Host> {
        (at_home(device) && !device.memory.unified).then_some(&self.host_home)
    }

    /// Network between hosts of `device`, where no system defines it.
    pub fn network(&self, device: &Device) -> &Tier {
        if at_home(device) { &self.network_home } else { &self.network }
    }
}

fn at_home(device: &Device) -> bool {
    AT_HOME.contains(&device.class.as_str())
}

/// Prices of energy and devices: from the scenario, else from the files.
#[derive(Clone, Debug)]
pub struct Economics {
    /// Rent of one device; absent if it is owned or the rent is unknown.
    pub rent: Option<Figure<DollarRate>>,
    /// Purchase price of one device, with its share of the host where a system's price is known.
    pub purchase: Option<Figure<Dollars>>,
    /// Range of the catalogue's rents, if the rent is from the catalogue.
    pub rent_bounds: Option<PriceRange<DollarRate>>,
    /// Range of the purchase price.
    pub purchase_bounds: Option<PriceRange<Dollars>>,
    /// Electricity price.
    pub electricity: Figure<DollarsPerEnergy>,
    /// Power usage effectiveness (PUE): power of the facility over power of its machines.
    pub pue: Figure<Ratio>,
    /// Amortization period.
    pub amortization: Figure<Seconds>,
    /// Fraction of the amortization period in which the hardware serves.
    pub utilization: Figure<Ratio>,
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
/// Classes of devices on a desk or in a home.
const AT_HOME: [&str; 3] = ["consumer", "unified", "workstation"];

impl Economics {
    /// The prices for `cluster` in `scenario`.
    ///
    /// # Errors
    /// A figure of the scenario is out of range.
    pub fn new(defaults: &Defaults, cluster: &Cluster, scenario: &Scenario) -> Result<Economics, Error> {
        let home = at_home(&cluster.device);
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
        let utilization = stated(scenario.utilization, "utilization", 1.0, &UTILIZATION)?;
        let fraction = |own: Option<&Figure<Ratio>>, general: &Figure<Ratio>| own.unwrap_or(general).clone();
        let owning = owning(scenario)?;
        let purchase = cluster.price.purchase.clone().or_else(|| device.price.purchase.clone());
        let known_rent = cluster.price.rent.clone().or_else(|| device.price.rent.clone());
        // A scenario with costs of owning means owned devices, if their purchase price is known.
        let known_rent = known_rent.filter(|_| owning.is_none() || purchase.is_none());
        let rent_bounds = known_rent
            .as_ref()
            .filter(|_| rent.is_none())
            .and_then(|rent| holding(rent, [&cluster.price.rent_bounds, &device.price.rent_bounds]));
        let purchase_bounds = purchase.as_ref().and_then(|purchase| {
            holding(purchase, [&cluster.price.purchase_bounds, &device.price.purchase_bounds])
        });
        Ok(Economics {
            rent: rent.or(known_rent),
            purchase,
            rent_bounds,
            purchase_bounds,
            electricity: electricity.unwrap_or_else(|| energy.clone()),
            pue: pue.unwrap_or_else(|| overhead.clone()),
            amortization: amortization.unwrap_or_else(|| defaults.amortization.clone()),
            utilization: utilization.unwrap_or_else(|| defaults.utilization.clone()),
            compute_bound_power: fraction(
                power.and_then(|power| power.compute_bound.as_ref()),
                &defaults.compute_bound_power,
            ),
            memory_bound_power: fraction(
                power.and_then(|power| power.memory_bound.as_ref()),
                &defaults.memory_bound_power,
            ),
            idle_power: idle_power(cluster).unwrap_or_else(|| defaults.idle_power.clone()),
        })
    }
}

/// Idle power as a fraction of TDP, where the device has one.
fn idle_power(cluster: &Cluster) -> Option<Figure<Ratio>> {
    let power = cluster.device.power.as_ref()?;
    let idle = power.idle.as_ref()?;
    let text = format!("{idle} of {}: {}", power.tdp, idle.source.text);
    let source = Source { grade: idle.source.grade, text: text.into() };
    Some(Figure::new(idle.value / power.tdp.value, source))
}

/// The first cost of owning that the scenario sets.
///
/// # Errors
/// It sets a rent too.
fn owning(scenario: &Scenario) -> Result<Option<&'static str>, Error> {
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
    Ok(owning)
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
