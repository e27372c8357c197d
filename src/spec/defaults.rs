//! Prices of energy, power fractions and service life where nobody states any, and what is stated in their place.

use schemars::JsonSchema;
use serde::Deserialize;

use super::cluster::{Cluster, Tier};
use super::device::{Device, PriceRange};
use super::error::Error;
use super::figure::{Dimension, DollarRate, Dollars, DollarsPerEnergy, Figure, Ratio, Seconds};
use super::limits::{AMORTIZATION, ELECTRICITY, Limit, PUE, USD_PER_DEVICE_HOUR, UTILIZATION};
use super::nearness::Interval;
use super::scenario::Scenario;
use crate::quantity::datum::{Grade, Source};

/// `hardware/defaults.json`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Price of energy in a data centre.
    pub electricity: Figure<DollarsPerEnergy>,
    /// Price of energy at home.
    pub electricity_home: Figure<DollarsPerEnergy>,
    /// Power of the facility per power of the machines in it.
    pub pue: Figure<Ratio>,
    /// The same at home.
    pub pue_home: Figure<Ratio>,
    /// Years of service over which a purchase is paid off.
    pub amortization: Figure<Seconds>,
    /// Fraction of that time in which it serves.
    pub utilization: Figure<Ratio>,
    /// Fraction of the power limit drawn by compute-bound kernels.
    pub compute_bound_power: Figure<Ratio>,
    /// Fraction of the power limit drawn by memory-bound kernels.
    pub memory_bound_power: Figure<Ratio>,
    /// Fraction of the power limit drawn doing nothing.
    pub idle_power: Figure<Ratio>,
    /// Devices that a host takes over its PCIe slots, where no system says so.
    pub pcie_devices: Figure<Ratio>,
    /// What joins hosts in a data centre, where no system says so.
    pub network: Tier,
    /// The same at home.
    pub network_home: Tier,
    /// How far off predictions may be where constants are borrowed: as far as any that was left out of any fit.
    pub unmeasured: Interval,
}

impl Defaults {
    /// What joins hosts of `device`, where no system says so.
    pub fn network(&self, device: &Device) -> &Tier {
        if at_home(device) { &self.network_home } else { &self.network }
    }
}

fn at_home(device: &Device) -> bool {
    AT_HOME.contains(&device.class.as_str())
}

/// What energy and devices cost here: what the scenario states, else what the files say.
#[derive(Clone, Debug)]
pub struct Economics {
    /// Rent of one device; absent where it is owned, or nobody states one.
    pub rent: Option<Figure<DollarRate>>,
    /// Purchase price of one device, with its share of the host where a system's price is known.
    pub purchase: Option<Figure<Dollars>>,
    /// Between which that rent was found, where it is the catalogue's.
    pub rent_bounds: Option<PriceRange<DollarRate>>,
    /// Between which that purchase price was found.
    pub purchase_bounds: Option<PriceRange<Dollars>>,
    /// Price of energy.
    pub electricity: Figure<DollarsPerEnergy>,
    /// Power of the facility per power of the machines in it.
    pub pue: Figure<Ratio>,
    /// Over which a purchase is paid off.
    pub amortization: Figure<Seconds>,
    /// Fraction of that time in which it serves.
    pub utilization: Figure<Ratio>,
    /// Fraction of the power limit drawn by compute-bound kernels.
    pub compute_bound_power: Figure<Ratio>,
    /// Fraction of the power limit drawn by memory-bound kernels.
    pub memory_bound_power: Figure<Ratio>,
    /// Fraction of the power limit drawn doing nothing.
    pub idle_power: Figure<Ratio>,
}

/// Seconds of an hour.
pub const HOUR: f64 = 3600.0;
/// Seconds of a month, a twelfth of the mean Gregorian year.
pub const MONTH: f64 = 2_629_746.0;
/// Joules of a kWh.
const KWH: f64 = 3.6e6;
/// Classes of devices that stand on desks.
const AT_HOME: [&str; 3] = ["consumer", "unified", "workstation"];

impl Economics {
    /// What holds for `cluster` in `scenario`.
    ///
    /// # Errors
    /// A stated figure is out of its range.
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
        let idle = power.and_then(|power| {
            let idle = power.idle.as_ref()?;
            let text = format!("{idle} of {}: {}", power.tdp, idle.source.text);
            let source = Source { grade: idle.source.grade, text: text.into() };
            Some(Figure::new(idle.value / power.tdp.value, source))
        });
        let owning = [
            ("electricity_usd_per_kwh", scenario.electricity_usd_per_kwh),
            ("pue", scenario.pue),
            ("amortization_months", scenario.amortization_months),
            ("utilization", scenario.utilization),
        ];
        let owning = owning.iter().find(|(_, value)| value.is_some()).map(|(key, _)| *key);
        if let (Some(key), Some(_)) = (owning, scenario.usd_per_device_hour) {
            let found = format!("both {key} and usd_per_device_hour");
            let fix = "a rent covers power and building: state it alone, or what owning takes";
            return Err(Error::new(key, found, "one of them", fix));
        }
        let purchase = cluster.price.purchase.clone().or_else(|| device.price.purchase.clone());
        let known_rent = cluster.price.rent.clone().or_else(|| device.price.rent.clone());
        // Whoever states what owning takes owns the devices, if anybody knows what they cost to buy.
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
            idle_power: idle.unwrap_or_else(|| defaults.idle_power.clone()),
        })
    }
}

/// Those bounds, the system's before the device's, that a price lies between.
fn holding<D: Dimension + Clone>(
    price: &Figure<D>,
    bounds: [&Option<PriceRange<D>>; 2],
) -> Option<PriceRange<D>> {
    bounds.into_iter().flatten().find(|bounds| bounds.hold(price)).cloned()
}

/// A figure of the scenario in base units, where it is stated.
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
