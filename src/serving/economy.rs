//! Operating cost: money and power.

use crate::figures;
use crate::quantity::datum::Datum;
use crate::quantity::num::{Num, Qty};
use crate::quantity::read::Reading;
use crate::quantity::unit::{COUNT, JOULE, SECOND, TOKEN, USD, WATT};
use crate::spec::defaults::{HOUR, MONTH};
use crate::spec::price::HOURS_OF_A_DAY;

figures! {
    /// Power of a device.
    PowerDraw {
        /// Power limit.
        tdp,
        /// Idle power, as a fraction of the limit.
        idle,
        /// Power of compute-bound kernels, as a fraction of the limit.
        compute_bound,
        /// Power of memory-bound kernels, as a fraction of the limit.
        memory_bound,
    }
}

figures! {
    /// Inputs for the cost of an owned device.
    Owned {
        /// Purchase price of the device; of the device with its share of the system, where a system's price is known.
        purchase,
        /// Its share of the price of a host that is sold separately.
        host,
        /// Its share of the price of the network between hosts.
        network,
        /// Time in service.
        amortization,
        /// Fraction of that time that it serves.
        utilization,
        /// Price of energy.
        electricity,
        /// Facility power over device power (PUE).
        pue,
        /// Its share of the power of the rest of the node.
        node_power,
    }
}

figures! {
    /// Power that comes on top of that of a device.
    Facility {
        /// Its share of the power of the rest of the node.
        node_power,
        /// Facility power over the power of devices and nodes (PUE).
        pue,
    }
}

/// Payment model of a device.
#[derive(Clone, Copy, Debug)]
pub enum Bill<T> {
    /// Rented by the hour.
    Rented(T),
    /// Bought, with electricity on top.
    Owned(Owned<T>),
}

impl<T> Bill<T> {
    /// The costs of owning, where it is owned.
    pub fn as_owned(&self) -> Option<&Owned<T>> {
        match self {
            Bill::Owned(owned) => Some(owned),
            Bill::Rented(_) => None,
        }
    }
}

impl Bill<Datum> {
    /// The same bill in another reading.
    pub fn read<R: Reading>(&self, read: &R) -> Bill<Qty<R::N>> {
        match self {
            Bill::Rented(price) => Bill::Rented(read.datum(price)),
            Bill::Owned(owned) => Bill::Owned(owned.map(|datum| read.datum(datum))),
        }
    }
}

/// Fraction of time that one unit of a device is busy: `work` once per `period` over `stages` pipeline stages.
#[inline(always)]
pub fn busy<N: Num>(work: Qty<N>, stages: Qty<N>, period: Qty<N>) -> Qty<N> {
    (work / (stages * period)).is(&BUSY)
}

/// Power of `devices` devices whose arithmetic and memory units are busy for these fractions of the time.
#[inline(always)]
pub fn watts<N: Num>(devices: Qty<N>, computing: Qty<N>, moving: Qty<N>, draw: &PowerDraw<Qty<N>>) -> Qty<N> {
    let one = || Qty::from(1.0);
    let busy = draw.idle
        + (draw.compute_bound - draw.idle) * computing.min(one())
        + (draw.memory_bound - draw.idle) * moving.min(one());
    (devices * draw.tdp * busy.min(one())).is(&WATTS)
}

/// Output tokens per joule.
#[inline(always)]
pub fn tok_per_joule<N: Num>(output_tok_s: Qty<N>, watts: Qty<N>) -> Qty<N> {
    (output_tok_s / watts).is(&TOK_PER_JOULE)
}

/// Power of `devices` devices, the rest of their nodes, and the facility. Devices of unknown power count as none.
#[inline(always)]
pub fn facility_watts<N: Num>(devices: Qty<N>, watts: Option<Qty<N>>, of: Facility<Qty<N>>) -> Qty<N> {
    let rest = devices * of.node_power;
    let drawn = match watts {
        Some(watts) => watts + rest,
        None => rest,
    };
    (drawn * of.pue).is(&FACILITY_WATTS)
}

/// Cost in USD of a day with `serving_time` seconds of service.
#[inline(always)]
pub fn usd_per_day<N: Num>(usd_per_second: Qty<N>, serving_time: Qty<N>) -> Qty<N> {
    (usd_per_second * serving_time).is(&USD_PER_DAY)
}

/// Cost in USD of a month.
#[inline(always)]
pub fn usd_per_month<N: Num>(usd_per_day: Qty<N>) -> Qty<N> {
    (usd_per_day * Qty::from(DAYS_OF_A_MONTH)).is(&USD_PER_MONTH)
}

/// Days of a month, a twelfth of the mean Gregorian year.
const DAYS_OF_A_MONTH: f64 = MONTH / (HOURS_OF_A_DAY * HOUR);

/// Output tokens per USD.
#[inline(always)]
pub fn tok_per_usd<N: Num>(output_tok_s: Qty<N>, usd_per_second: Qty<N>) -> Qty<N> {
    (output_tok_s / usd_per_second).is(&TOK_PER_USD)
}

/// Cost of `devices` devices, in USD per second.
#[inline(always)]
pub fn usd_per_second<N: Num>(devices: Qty<N>, watts: Option<Qty<N>>, bill: &Bill<Qty<N>>) -> Qty<N> {
    match bill {
        Bill::Rented(price) => (devices * *price).is(&RENTED),
        Bill::Owned(owned) => {
            let bought = devices * (owned.purchase + owned.host + owned.network);
            let capital = bought / (owned.amortization * owned.utilization);
            let of = Facility { node_power: owned.node_power, pue: owned.pue };
            (capital + facility_watts(devices, watts, of) * owned.electricity).is(&OWNED)
        }
    }
}

/// Cost in USD per output token.
#[inline(always)]
pub fn usd_per_token<N: Num>(usd_per_second: Qty<N>, output_tok_s: Qty<N>) -> Qty<N> {
    (usd_per_second / output_tok_s).is(&USD_PER_TOKEN)
}

/// Cost in USD per token of prompt or output.
#[inline(always)]
pub fn usd_per_token_total<N: Num>(usd_per_token: Qty<N>, isl: Qty<N>, osl: Qty<N>) -> Qty<N> {
    (usd_per_token * osl / (isl + osl)).is(&USD_PER_TOKEN_TOTAL)
}

/// Cost in USD per prompt token and per output token, where prefill has `share` of a system of `usd_per_second` that
/// serves `requests` requests per second.
pub fn usd_per_phase_token<N: Num>(
    usd_per_second: Qty<N>,
    share: Qty<N>,
    requests: Qty<N>,
    (isl, osl): (Qty<N>, Qty<N>),
) -> (Qty<N>, Qty<N>) {
    let token = || Qty::literal(1.0 * TOKEN);
    let prompts = share * usd_per_second / (requests * isl * token());
    let outputs = (1.0 - share) * usd_per_second / (requests * osl * token());
    (prompts.is(&USD_PER_PROMPT_TOKEN), outputs.is(&USD_PER_ANSWER_TOKEN))
}

crate::formulas! {
    BUSY {
        symbol: "busy",
        unit: COUNT,
        why: "fraction of time that one unit of the device is busy",
        cite: "utilisation law",
    }
    WATTS {
        symbol: "watts",
        unit: WATT,
        why: "idle power, plus the power of arithmetic and memory while they are busy, up to the limit",
        cite: "power logged with kernels on H200, B200, GB200: GEMM 98 %, decode attention 38 % of the limit",
    }
    FACILITY_WATTS {
        symbol: "facility_watts",
        unit: WATT,
        why: "devices and the rest of their nodes, times the facility's power over theirs (PUE)",
        cite: "Barroso, Hoelzle, Ranganathan 2018 (The Datacenter as a Computer), 5",
    }
    USD_PER_DAY {
        symbol: "usd_per_day",
        unit: USD,
        why: "the cost of the time of a day in which the hardware serves",
        cite: "definition",
    }
    USD_PER_MONTH {
        symbol: "usd_per_month",
        unit: USD,
        why: "a month has 30.436875 days: a twelfth of the mean Gregorian year",
        cite: "definition",
    }
    TOK_PER_USD {
        symbol: "tok_per_usd",
        unit: TOKEN.per(USD),
        why: "output tokens per second over the cost of a second",
        cite: "definition",
    }
    TOK_PER_JOULE {
        symbol: "tok_per_joule",
        unit: TOKEN.per(JOULE),
        why: "output tokens per second over watts",
        cite: "definition",
    }
    RENTED {
        symbol: "usd_per_second",
        unit: USD.per(SECOND),
        why: "rented by the hour; the price includes power and facility",
        cite: "definition",
    }
    OWNED {
        symbol: "usd_per_second_owned",
        unit: USD.per(SECOND),
        why: "price of devices, hosts and network spread over the time in service, plus electricity for devices, nodes \
              and the facility (PUE)",
        cite: "Barroso, Hoelzle, Ranganathan 2018 (The Datacenter as a Computer), 6",
    }
    USD_PER_TOKEN {
        symbol: "usd_per_token",
        unit: USD.per(TOKEN),
        why: "total cost over output tokens; it includes the work of prefill",
        cite: "definition",
    }
    USD_PER_PROMPT_TOKEN {
        symbol: "usd_per_prompt_token",
        unit: USD.per(TOKEN),
        why: "the cost of the time that prefill takes, over the prompt tokens",
        cite: "time-driven activity-based costing: Kaplan, Anderson 2004",
    }
    USD_PER_ANSWER_TOKEN {
        symbol: "usd_per_answer_token",
        unit: USD.per(TOKEN),
        why: "the cost of the rest of the time, which is decode's and idle, over the output tokens",
        cite: "time-driven activity-based costing: Kaplan, Anderson 2004",
    }
    USD_PER_TOKEN_TOTAL {
        symbol: "usd_per_token_total",
        unit: USD.per(TOKEN),
        why: "total cost over prompt and output tokens",
        cite: "definition",
    }
}
