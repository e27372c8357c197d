//! Plausibility of figures: ratios of peaks, a bandwidth against its memory generation, a link's bandwidth against its
//! lanes. A doubt is not a fault: the given value is used.

use super::cluster::System;
use super::device::{Arithmetic, Device};
use super::figure::{Dimension, Figure};
use super::format::NumberFormat;
use super::link::Link;

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Warning {
    pub key: String,
    pub why: String,
}

fn doubt(key: impl Into<String>, why: impl Into<String>) -> Warning {
    Warning { key: key.into(), why: why.into() }
}

/// A generation of memory: range of rates per pin, and range of pins per device.
struct Generation {
    kind: &'static str,
    gbit_per_pin: (f64, f64),
    pins: (f64, f64),
}

/// From the JEDEC standards (JESD235 and JESD270 for HBM, JESD239 and JESD250 for GDDR, JESD209 for LPDDR, JESD79 for
/// DDR) and the bus widths of devices.
static GENERATIONS: [Generation; 13] = [
    generation("hbm2", (1.4, 2.4), (2048.0, 6144.0)),
    generation("hbm2e", (2.0, 3.7), (4096.0, 8192.0)),
    generation("hbm3", (4.8, 6.6), (4096.0, 8192.0)),
    generation("hbm3e", (6.2, 9.9), (4096.0, 8192.0)),
    generation("hbm4", (6.4, 13.0), (16384.0, 32768.0)),
    generation("gddr6", (12.0, 20.0), (96.0, 384.0)),
    generation("gddr6x", (18.0, 24.0), (192.0, 384.0)),
    generation("gddr7", (27.0, 36.0), (96.0, 512.0)),
    generation("lpddr4x", (3.2, 4.3), (64.0, 256.0)),
    generation("lpddr5", (5.5, 6.5), (64.0, 1024.0)),
    generation("lpddr5x", (6.4, 10.7), (64.0, 1024.0)),
    generation("ddr5", (4.8, 8.8), (128.0, 768.0)),
    generation("mrdimm", (8.8, 12.8), (512.0, 768.0)),
];

const fn generation(kind: &'static str, gbit_per_pin: (f64, f64), pins: (f64, f64)) -> Generation {
    Generation { kind, gbit_per_pin, pins }
}

/// Bytes per second of a pin at 1 Gb/s.
const GBIT: f64 = 1e9 / 8.0;
/// Tolerance of ratios for rounding on data sheets.
const ROUNDING: f64 = 0.06;

/// Each number format with a wider one, and the usual ratios of their peaks.
const RATIOS: [(Arithmetic, Arithmetic, &[f64]); 6] = [
    (Arithmetic::Fp16, Arithmetic::Bf16, &[1.0]),
    (Arithmetic::Fp8, Arithmetic::Bf16, &[1.0, 2.0]),
    (Arithmetic::Int8, Arithmetic::Bf16, &[1.0, 2.0, 4.0]),
    (Arithmetic::Fp4, Arithmetic::Fp8, &[1.0, 2.0]),
    (Arithmetic::Int4, Arithmetic::Int8, &[1.0, 2.0]),
    (Arithmetic::Int8, Arithmetic::Fp16, &[1.0, 2.0, 4.0]),
];

fn is_near(found: f64, wanted: f64) -> bool {
    (found / wanted - 1.0).abs() <= ROUNDING
}

/// Checks a device, alone and against the links that it names.
pub fn device(device: &Device, link: impl Fn(&str) -> Option<Link>) -> Vec<Warning> {
    let mut doubts = peaks(device);
    doubts.extend(memory(device));
    let ends = [
        device.scale_up.as_ref().map(|up| ("scale_up.bandwidth", &up.link, &up.bandwidth)),
        device.host_link.as_ref().map(|host| ("host_link.bandwidth", &host.link, &host.bandwidth)),
    ];
    doubts
        .extend(ends.into_iter().flatten().filter_map(|(key, id, rate)| against_link(key, rate, &link(id)?)));
    if let Some(power) = &device.power {
        let idle = power.idle.as_ref().filter(|idle| idle.value >= power.tdp.value);
        doubts.extend(idle.map(|idle| {
            doubt("power.idle", format!("{idle} is not below the power limit of {}", power.tdp))
        }));
    }
    doubts
}

fn peaks(device: &Device) -> Vec<Warning> {
    let mut doubts = Vec::new();
    for (narrow, wide, allowed) in RATIOS {
        let (Some(own), Some(other)) = (device.peak.get(&narrow), device.peak.get(&wide)) else { continue };
        if wide == Arithmetic::Fp16 && device.peak.contains_key(&Arithmetic::Bf16) {
            continue;
        }
        let ratio = own.value / other.value;
        if !allowed.iter().any(|wanted| is_near(ratio, *wanted)) {
            let usual: Vec<String> = allowed.iter().map(|times| format!("{times}")).collect();
            let hint = match ratio {
                ratio if allowed.iter().any(|wanted| is_near(ratio, 2.0 * wanted)) => {
                    "; does it include sparsity?"
                }
                ratio if ratio < 1.0 => "; it is slower than the wider one",
                _ => "",
            };
            let why = format!("{own} is {ratio:.3} x {}, usual are {}{hint}", wide.name(), usual.join(", "));
            doubts.push(doubt(format!("peak.{}", narrow.name()), why));
        }
    }
    let wide = [Arithmetic::Bf16, Arithmetic::Fp16].iter().find_map(|a| device.peak.get(a));
    if let (Some(fp32), Some(wide)) = (device.peak.get(&Arithmetic::Fp32), wide)
        && fp32.value > wide.value * (1.0 + ROUNDING)
    {
        doubts.push(doubt("peak.fp32", format!("{fp32} is above the 16-bit rate of {wide}")));
    }
    doubts
}

fn memory(device: &Device) -> Vec<Warning> {
    let mut doubts = Vec::new();
    let memory = &device.memory;
    let known = GENERATIONS.iter().find(|generation| generation.kind == memory.kind);
    if let (Some(rate), Some(known)) = (&memory.bandwidth, known) {
        let [least, most] = [0, 1].map(|end| {
            let of = |pair: (f64, f64)| if end == 0 { pair.0 } else { pair.1 };
            of(known.gbit_per_pin) * of(known.pins) * GBIT
        });
        if !(least..=most).contains(&rate.value) {
            let why =
                format!("{rate} is out of range for {}: {} to {} GB/s", known.kind, least / 1e9, most / 1e9);
            doubts.push(doubt("memory.bandwidth", why));
        }
    }
    if let (Some(seen), Some(label)) = (&memory.capacity, &memory.marketed) {
        // GB and GiB differ by 7 %; a system reserves at most a third of shared memory.
        let least = if memory.unified { 0.66 } else { 0.9 };
        let share = seen.value / label.value;
        if !(least..=1.08).contains(&share) {
            let why = format!("{seen} is {share:.2} of the marketed {label}");
            doubts.push(doubt("memory.capacity", why));
        }
    }
    doubts
}

/// Checks a bandwidth given for a link against the link's own.
fn against_link<D: Dimension>(key: &str, rate: &Figure<D>, link: &Link) -> Option<Warning> {
    let most = link.bandwidth.value;
    (rate.value > most * (1.0 + ROUNDING)).then(|| {
        let both = if is_near(rate.value, 2.0 * most) { "; is it the sum of both directions?" } else { "" };
        doubt(key, format!("{rate} is above the {} each way of {}{both}", link.bandwidth, link.id))
    })
}

/// Checks a link against the lanes and generation in its id: `pcie5x16`, `ethernet-100g`, `ib-ndr`, `nvlink4`.
pub fn link(link: &Link) -> Vec<Warning> {
    let Some((rate, made_of)) = named_rate(&link.id) else { return vec![] };
    let lanes =
        if link.id.starts_with("nvlink") { (link.bandwidth.value / rate).round().max(1.0) } else { 1.0 };
    let rate = rate * lanes;
    let twice =
        if is_near(link.bandwidth.value, 2.0 * rate) { "; is it the sum of both directions?" } else { "" };
    if is_near(link.bandwidth.value, rate) {
        return vec![];
    }
    let why = format!("{} is not {} GB/s each way, {made_of}{twice}", link.bandwidth, rate / 1e9);
    vec![doubt("bandwidth", why)]
}

/// Bytes per second for an id: a whole bus or port, or one lane of NVLink.
fn named_rate(id: &str) -> Option<(f64, String)> {
    if let Some((generation, lanes)) = id.strip_prefix("pcie").and_then(|rest| rest.split_once('x')) {
        let (generation, lanes): (i32, f64) = (generation.parse().ok()?, lanes.parse().ok()?);
        // 8 GT/s in generation 3, doubled in each later one; 128b/130b coding up to 5, flits from 6 on.
        let coding = if generation <= 5 { 128.0 / 130.0 } else { 242.0 / 256.0 };
        let transfers = 8.0 * 2f64.powi(generation - 3);
        return Some((transfers * coding * lanes * GBIT, format!("{lanes} lanes of {transfers} GT/s")));
    }
    if let Some(gbit) = id.strip_prefix("ethernet-").and_then(|rest| rest.strip_suffix('g')) {
        return Some((gbit.parse::<f64>().ok()? * GBIT, format!("{gbit} Gb/s")));
    }
    const INFINIBAND: [(&str, f64); 4] =
        [("ib-edr", 100.0), ("ib-hdr", 200.0), ("ib-ndr", 400.0), ("ib-xdr", 800.0)];
    if let Some((_, gbit)) = INFINIBAND.iter().find(|(name, _)| *name == id) {
        return Some((gbit * GBIT, format!("{gbit} Gb/s")));
    }
    // The bridge of GA102 has slower lanes: the only generation with two rates.
    const NVLINK: [(&str, f64); 7] = [
        ("nvlink1", 20.0),
        ("nvlink2", 25.0),
        ("nvlink3", 25.0),
        ("nvlink4", 25.0),
        ("nvlink4-h800", 25.0),
        ("nvlink5", 50.0),
        ("nvlink6", 50.0),
    ];
    let (_, lane) = NVLINK.iter().find(|(name, _)| *name == id)?;
    Some((lane * 1e9, format!("whole lanes of {lane} GB/s")))
}

/// Checks a system against the links of its tiers.
pub fn system(system: &System, link: impl Fn(&str) -> Option<Link>) -> Vec<Warning> {
    let mut doubts = Vec::new();
    let whole = system.nodes.saturating_mul(system.devices_per_node);
    for (at, tier) in system.tiers.iter().enumerate() {
        doubts.extend(
            link(&tier.link)
                .and_then(|link| against_link(&format!("tiers[{at}].bandwidth"), &tier.bandwidth, &link)),
        );
        if at > 0 && tier.bandwidth.value > system.tiers[at - 1].bandwidth.value {
            let why = format!(
                "{} outside is faster than {} inside",
                tier.bandwidth,
                system.tiers[at - 1].bandwidth
            );
            doubts.push(doubt(format!("tiers[{at}].bandwidth"), why));
        }
    }
    let reached = system.tiers.last().map_or(1, |tier| tier.devices);
    if reached != whole && system.network.is_none() {
        let why = format!("the outermost tier joins {reached} of {whole} devices, and there is no `network`");
        doubts.push(doubt("tiers", why));
    }
    doubts
}

/// Checks a format against its own name: fewer bits than its elements have is an error.
pub fn format(format: &NumberFormat) -> Vec<Warning> {
    let bits = 8.0 * format.bits_per_element.value;
    let mut doubts = Vec::new();
    if !(1.0..=32.0).contains(&bits) {
        doubts.push(doubt("bits_per_element", format!("{bits} bits is outside 1 to 32")));
    }
    // Scales and wider tensors of mixed formats add up to a little more than one bit.
    let named = nominal(&format.id).filter(|nominal| !(0.0..=1.3).contains(&(bits - nominal)));
    doubts.extend(
        named.map(|nominal| doubt("bits_per_element", format!("{bits} bits of a format of {nominal}"))),
    );
    doubts
}

/// The bits of a name such as `gguf-q4_k_m`, `int4-awq` or `fp8`.
fn nominal(id: &str) -> Option<f64> {
    let digit = id.find(|c: char| c.is_ascii_digit())?;
    let digits: String = id[digit..].chars().take_while(char::is_ascii_digit).collect();
    let named = ["q", "iq", "int", "fp", "bf", "mxfp", "nvfp", "mlx-"];
    let prefix = id[..digit].trim_start_matches("gguf-");
    named.contains(&prefix).then(|| digits.parse().ok()).flatten()
}
