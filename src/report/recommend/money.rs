//! Cost of a build on the price basis of the comparison: total, parts and range.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Requirements};
use crate::quantity::datum::Datum;
use crate::quantity::num::Qty;
use crate::report::cost::CostReport;
use crate::report::number::digits;
use crate::search::sizing::Totals;
use crate::serving::economy::{Bill, Owned, tok_per_usd, usd_per_day, usd_per_month};
use crate::spec::defaults::{HOUR, MONTH};
use crate::spec::price::{HOURS_OF_A_DAY, PriceBasis};

/// Cost of a build on the price basis of the comparison.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Money {
    /// Owned or rented; null without a price on that basis.
    pub basis: Option<PriceBasis>,
    /// Purchase price of all copies: devices, hosts and network; null if rented.
    pub buy_usd: Option<f64>,
    /// The lowest and highest purchase price; a budget holds at the highest.
    pub buy_usd_range: Option<[f64; 2]>,
    /// Price of the devices, with their hosts where a system has one price.
    pub devices_usd: Option<f64>,
    /// Price of hosts that are sold separately.
    pub hosts_usd: Option<f64>,
    /// Price of the network between hosts.
    pub network_usd: Option<f64>,
    /// Price class of these hosts; null where the price of the devices includes them.
    pub host: Option<String>,
    /// Amortization period of the purchase, in months.
    pub amortization_months: Option<f64>,
    /// Fraction of the amortization period in which the hardware serves.
    pub utilization: Option<f64>,
    /// Cost per hour of electricity and building alone, nodes included, if owned; null without the power of the devices.
    pub electricity_usd_per_hour: Option<f64>,
    /// Cost per hour.
    pub usd_per_hour: Option<f64>,
    /// The lowest and highest cost per hour; a budget holds at the highest.
    pub usd_per_hour_range: Option<[f64; 2]>,
    /// Hours of a day in which the hardware serves; null without a price.
    #[serde(default)]
    pub hours_per_day: Option<f64>,
    /// Cost per day, over the hours of a day in which the hardware serves.
    pub usd_per_day: Option<f64>,
    /// Cost per month.
    pub usd_per_month: Option<f64>,
    /// Output tokens per US dollar with the given users.
    pub tok_per_usd: Option<f64>,
    /// Cost per million output tokens with the given users.
    pub usd_per_mtok: Option<f64>,
    /// Cost per million output tokens at full load.
    pub usd_per_mtok_full: Option<f64>,
    /// Dates of the prices, the oldest first.
    pub dated: Vec<String>,
}

/// Known prices of a system on the basis of the comparison.
#[derive(Clone, Debug)]
pub struct SystemPrices {
    pub bill: Option<Bill<Datum>>,
    /// The lowest and highest cost of a device, where a range is known.
    pub bounds: Option<[Bill<Datum>; 2]>,
    /// Seconds of a day in which it serves.
    pub serving_time: f64,
    /// Price class of its host, where it is sold separately.
    pub host: Option<String>,
    /// Dates of the prices, the oldest first.
    pub dated: Vec<String>,
}

/// Purchase price of `devices` devices: devices, hosts, network.
fn parts(bill: &Bill<Datum>, devices: u64) -> Option<[f64; 3]> {
    let owned = bill.as_owned()?;
    let of = |part: &Datum| part.value * devices as f64;
    Some([of(&owned.purchase), of(&owned.host), of(&owned.network)])
}

/// The same bill with everything for free but electricity.
fn unpaid(owned: &Owned<Datum>) -> Bill<Datum> {
    let free = |part: &Datum| Datum { value: 0.0, ..part.clone() };
    Bill::Owned(Owned {
        purchase: free(&owned.purchase),
        host: free(&owned.host),
        network: free(&owned.network),
        ..owned.clone()
    })
}

impl SystemPrices {
    /// The cost of all copies, with the given users and at full load.
    pub(super) fn money(&self, now: &Totals, full: &Totals) -> Money {
        let bill = self.bill.as_ref();
        let hourly = |bill: &Bill<Datum>| now.usd_per_second(bill) * HOUR;
        let bought = bill.and_then(|bill| parts(bill, now.devices));
        let owned = bill.and_then(Bill::as_owned);
        let ends = |of: &dyn Fn(&Bill<Datum>) -> Option<f64>| {
            let [low, high] = self.bounds.as_ref().filter(|_| bill.is_some())?;
            Some([of(low)?, of(high)?])
        };
        let total = |bill: &Bill<Datum>| Some(parts(bill, now.devices)?.iter().sum());
        let per_second = bill.map(|bill| now.usd_per_second(bill));
        let a_day = per_second.map(|usd| usd_per_day(Qty(usd), Qty(self.serving_time)));
        let mtok = |totals: &Totals| bill.map(|bill| totals.usd_per_token(totals.usd_per_second(bill)) * 1e6);
        Money {
            basis: bill.map(|_| owned.map_or(PriceBasis::Rented, |_| PriceBasis::Owned)),
            buy_usd: bill.and_then(total),
            buy_usd_range: ends(&total),
            devices_usd: bought.map(|parts| parts[0]),
            hosts_usd: bought.map(|parts| parts[1]),
            network_usd: bought.map(|parts| parts[2]),
            host: self.host.clone().filter(|_| owned.is_some()),
            amortization_months: owned.map(|owned| owned.amortization.value / MONTH),
            utilization: owned.map(|owned| owned.utilization.value),
            electricity_usd_per_hour: owned
                .filter(|_| now.watts.is_some())
                .map(|owned| hourly(&unpaid(owned))),
            usd_per_hour: per_second.map(|usd| usd * HOUR),
            usd_per_hour_range: ends(&|bill| Some(hourly(bill))),
            hours_per_day: bill.map(|_| self.serving_time / HOUR),
            usd_per_day: a_day.map(Qty::value),
            usd_per_month: a_day.map(|usd| usd_per_month(usd).value()),
            tok_per_usd: per_second.map(|usd| tok_per_usd(Qty(now.output_tok_s), Qty(usd)).value()),
            usd_per_mtok: mtok(now),
            usd_per_mtok_full: mtok(full),
            dated: if bill.is_some() { self.dated.clone() } else { vec![] },
        }
    }
}

impl Money {
    /// The cost by time and by token; none without a price.
    pub fn cost(&self) -> Option<CostReport> {
        let (usd_per_hour, usd_per_day) = self.usd_per_hour.zip(self.usd_per_day)?;
        Some(CostReport {
            price_basis: self.basis,
            hours_per_day: self.hours_per_day.unwrap_or(HOURS_OF_A_DAY),
            usd_per_hour,
            usd_per_day,
            usd_per_month: self.usd_per_month?,
            usd_per_mtok: self.usd_per_mtok?,
            tok_per_usd: self.tok_per_usd?,
        })
    }

    /// The most that the purchase may cost.
    pub fn most_usd(&self) -> Option<f64> {
        self.buy_usd_range.map(|[_, high]| high).or(self.buy_usd)
    }

    /// The most that an hour may cost.
    pub fn most_usd_per_hour(&self) -> Option<f64> {
        self.usd_per_hour_range.map(|[_, high]| high).or(self.usd_per_hour)
    }
}

/// Unit of a limit of power: hosts and facility are not in it.
const WATTS: &str = "W of devices";

/// The budget that a build may exceed, and by how much.
pub(super) fn over(build: &Build, sought: &Requirements) -> Option<String> {
    let checks = [
        ("USD to buy", build.money.most_usd(), sought.budget_usd),
        ("USD/h", build.money.most_usd_per_hour(), sought.budget_usd_per_hour),
        (WATTS, build.watts, sought.max_watts),
    ];
    checks.into_iter().find_map(|(unit, value, most)| {
        let most = most?;
        match value {
            Some(value) if value > most => {
                let up_to = if unit == WATTS { "" } else { "up to " };
                Some(format!("{up_to}{} {unit}, {} over the budget", digits(value), digits(value - most)))
            }
            Some(_) => None,
            None => Some(format!("{unit} unknown, may exceed the budget of {}", digits(most))),
        }
    })
}
