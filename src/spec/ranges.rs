//! Allowed ranges of the figures in a file, beyond their dimension: rates above 0, fractions up to 1.
//!
//! Checked when a file is read, so that no formula divides by 0. Devices, rigs, fleets and workloads have their own
//! checks.

use super::cluster::{Host, System, Tier};
use super::constant::{CONSTANTS, ConstantFigures};
use super::defaults::Defaults;
use super::device::bounded;
use super::error::Error;
use super::figure::{Figure, Ratio};
use super::format::NumberFormat;
use super::limits::{
    BLOCK, BLOCK_TOKENS, DEVICES, EFFICIENCY, FACTOR, FACTORS, Limit, NODES, PUE, TIERS, UTILIZATION,
};
use super::nearness::Interval;
use super::runtime::Runtime;

fn within(limit: &Limit, key: &str, figure: Option<&Figure<Ratio>>) -> Result<(), Error> {
    figure.map_or(Ok(()), |figure| limit.check(key, figure.value))
}

fn factors(key: &str, values: &[f64]) -> Result<(), Error> {
    values.iter().try_for_each(|value| FACTOR.check(key, *value))
}

/// A number format: positive size of an element.
pub fn format(format: &NumberFormat) -> Result<(), Error> {
    const BITS: Limit = Limit { least: 1.0 / 64.0, most: 64.0, or_zero: false, ..super::limits::BYTES };
    BITS.check("bits_per_element", format.bits_per_element.value)?;
    let block = format.block.iter().flat_map(|block| [block.outputs, block.inputs]);
    block.into_iter().try_for_each(|side| BLOCK.check_whole("block", side))
}

/// A system: number of devices, and interconnect.
pub fn system(system: &System) -> Result<(), Error> {
    DEVICES.check_whole("devices_per_node", system.devices_per_node)?;
    NODES.check_whole("nodes", system.nodes)?;
    TIERS.check_whole("tiers", system.tiers.len() as u64)?;
    let joined = |at: usize, tier: &Tier| DEVICES.check_whole(&format!("tiers[{at}].devices"), tier.devices);
    system.tiers.iter().enumerate().try_for_each(|(at, tier)| joined(at, tier))?;
    system.host.as_ref().map_or(Ok(()), |host| self::host("host", host))?;
    system.price.check()
}

/// A host: positive memory, where given.
pub fn host(key: &str, host: &Host) -> Result<(), Error> {
    const SIZE: Limit = Limit { least: 1.0, or_zero: false, ..super::limits::BYTES };
    let of = |name: &str| format!("{key}.{name}");
    host.memory.as_ref().map_or(Ok(()), |memory| SIZE.check(&of("memory"), memory.value))?;
    host.storage.as_ref().map_or(Ok(()), |storage| SIZE.check(&of("storage"), storage.value))
}

pub fn defaults(defaults: &Defaults) -> Result<(), Error> {
    const YEARS: Limit = Limit { least: 1.0, or_zero: false, ..super::limits::SECONDS };
    const SLOTS: Limit = Limit { most: 1024.0, ..super::limits::DEVICES };
    let of = |limit: &Limit, key: &str, figure: &Figure<Ratio>| limit.check(key, figure.value);
    of(&PUE, "pue", &defaults.pue)?;
    of(&PUE, "pue_home", &defaults.pue_home)?;
    of(&UTILIZATION, "utilization", &defaults.utilization)?;
    of(&EFFICIENCY, "compute_bound_power", &defaults.compute_bound_power)?;
    of(&EFFICIENCY, "memory_bound_power", &defaults.memory_bound_power)?;
    of(&SLOTS, "pcie_devices", &defaults.pcie_devices)?;
    for (at, staged) in defaults.staged.iter().enumerate() {
        DEVICES.check_whole(&format!("staged[{at}].devices"), staged.devices)?;
        of(&EFFICIENCY, &format!("staged[{at}].rate"), &staged.rate)?;
    }
    for (key, interval) in [("unmeasured", &defaults.unmeasured), ("on_processor", &defaults.on_processor)] {
        let Interval { ttft, tpot, throughput, .. } = interval;
        factors(key, &[*ttft, *tpot, *throughput].concat())?;
    }
    for (at, host) in defaults.hosts.iter().enumerate() {
        DEVICES.check_whole(&format!("hosts[{at}].devices"), host.devices)?;
        bounded(&format!("hosts[{at}].bounds"), Some(&host.purchase), Some(&host.bounds))?;
    }
    for (key, network) in
        [("network_price", &defaults.network_price), ("network_price_home", &defaults.network_price_home)]
    {
        bounded(&format!("{key}.bounds"), Some(&network.purchase), Some(&network.bounds))?;
    }
    YEARS.check("amortization", defaults.amortization.value)
}

/// A runtime: efficiencies, and factors of its fit.
pub fn runtime(runtime: &Runtime) -> Result<(), Error> {
    within(&BLOCK_TOKENS, "block_tokens", Some(&runtime.block_tokens))?;
    within(&BLOCK_TOKENS, "max_batched_tokens", Some(&runtime.max_batched_tokens))?;
    within(&BLOCK_TOKENS, "max_sequences", runtime.max_sequences.as_ref())?;
    within(&UTILIZATION, "memory.utilization", Some(&runtime.memory.utilization))?;
    within(&BELOW_ONE, "memory.fragmentation", runtime.memory.fragmentation.as_ref())?;
    within(&PART, "memory.answer_reserved", runtime.memory.answer_reserved.as_ref())?;
    for (at, on) in runtime.defaults_on.iter().enumerate() {
        let of = |name: &str| format!("defaults_on[{at}].{name}");
        within(&BLOCK_TOKENS, &of("max_batched_tokens"), Some(&on.max_batched_tokens))?;
        within(&BLOCK_TOKENS, &of("max_sequences"), on.max_sequences.as_ref())?;
        within(&UTILIZATION, &of("utilization"), on.utilization.as_ref())?;
    }
    if let Some(held) = &runtime.memory.measured {
        factors("memory.measured.quantiles", &held.quantiles)?;
    }
    for (at, one) in runtime.corrections.iter().enumerate() {
        for (key, found) in [("time", one.time), ("compute", one.compute), ("memory", one.memory)] {
            let values = found.map(|factor| [factor.low, factor.times, factor.high]);
            factors(&format!("corrections[{at}].{key}"), values.as_ref().map_or(&[], |values| values))?;
        }
    }
    FACTORS.check_whole("constants", runtime.constants.len() as u64)?;
    let entries = runtime.constants.iter().enumerate();
    entries
        .map(|(at, constants)| (at, ConstantFigures { runtime, constants }))
        .try_for_each(|(at, figures)| reached(at, figures))?;
    let Some(fit) = &runtime.serving_fit else { return Ok(()) };
    FACTORS.check_whole("serving_fit.factors", fit.factors.len() as u64)?;
    for (at, factor) in fit.factors.iter().enumerate() {
        factors(&format!("serving_fit.factors[{at}].times"), &[factor.times])?;
    }
    for (at, Interval { ttft, tpot, throughput, .. }) in fit.intervals.iter().enumerate() {
        factors(&format!("serving_fit.intervals[{at}]"), &[*ttft, *tpot, *throughput].concat())?;
    }
    Ok(())
}

const PART: Limit = Limit { least: 0.0, most: 1.0, or_zero: true, ..super::limits::RATIO };
/// Fragmentation must leave some cache.
const BELOW_ONE: Limit = Limit { least: 1e-9, most: 0.99, ..super::limits::RATIO };

fn reached(at: usize, figures: ConstantFigures) -> Result<(), Error> {
    CONSTANTS.iter().filter(|entry| entry.is_efficiency()).try_for_each(|entry| {
        let datum = figures.datum(entry.of, String::new());
        datum.map_or(Ok(()), |datum| EFFICIENCY.check(&format!("constants[{at}].{}", entry.key), datum.value))
    })
}
