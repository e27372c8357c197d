//! A static batch as text.

use super::operators::{scaled, step_operators};
use super::page::{BAD, BOLD, bullets, heading, indent, paragraph, styled};
use crate::plan::parallel::Phase;
use crate::report::number::{count, digits, gib, percent, time};
use crate::report::static_batch::{StaticLayerType, StaticPhase, StaticReport};
use crate::report::table::{grouped, table};
use crate::spec::visible::visible;

/// The report; `detail` adds every operator.
pub fn static_batch(report: &StaticReport, detail: bool) -> String {
    let StaticReport { model, hardware, runtime, isl, osl, .. } = report;
    let mut text = String::new();
    if !report.theoretical.is_empty() {
        text.push_str(&format!("{}\n", styled(BAD, "THEORETICAL: the runtime does not run this plan")));
        text.push_str(&bullets(&report.theoretical));
    }
    let head =
        format!("TTFT {}, TPOT {}, E2E {}", time(report.ttft_ms), time(report.tpot_ms), time(report.e2e_ms));
    text.push_str(&format!("{}\n", styled(BOLD, &head)));
    let of = format!(
        "static batch of {} on {}: {} tokens in, {} out; efficiencies of {runtime}",
        visible(model),
        visible(hardware),
        grouped(*isl),
        grouped(*osl)
    );
    text.push_str(&paragraph(&of));
    report.phases.iter().for_each(|one| text.push_str(&phase(one, detail)));
    text
}

fn phase(one: &StaticPhase, detail: bool) -> String {
    let (name, tokens) = match one.phase {
        Phase::Prefill => ("Prefill", "input tok/s"),
        Phase::Decode => ("Decode step", "output tok/s"),
    };
    let rest = format!(
        "{} x {} on {}, {} weights, {} KV",
        count(one.batch, "request"),
        one.label,
        count(one.devices, "device"),
        one.weight_format,
        one.kv_format
    );
    let mut text = heading(name, &rest);
    let sent = match one.wire_bytes > 0.0 {
        true => format!(", {} sent", bytes(one.wire_bytes)),
        false => String::new(),
    };
    let speed = format!(
        "{}, {} {tokens}; bound by {}; MFU {}, MBU {}; on a device of each stage {}, {} of memory{sent}",
        time(one.time_ms),
        digits(one.tok_s),
        one.bound_by.name(),
        percent(one.mfu),
        percent(one.mbu),
        flop(one.flops),
        bytes(one.bytes)
    );
    text.push_str(&paragraph(&speed));
    let held = &one.memory;
    let memory = format!(
        "memory of a device: weights {} + KV cache {} + activations {} + buffers {} = {} of {}",
        gib(held.weights_bytes),
        gib(held.kv_cache_bytes),
        gib(held.activations_bytes),
        gib(held.buffers_bytes),
        gib(held.total_bytes),
        gib(held.usable_bytes)
    );
    text.push_str(&paragraph(&memory));
    if !one.fits {
        text.push_str(&paragraph(&styled(
            BAD,
            "DOES NOT FIT: the batch needs more memory than a device has",
        )));
    }
    if one.layer_types.iter().any(|layers| layers.least_devices > 1) {
        text.push_str(&paragraph(&format!("devices: {}", one.devices_why)));
    }
    let fewest = match (&one.fewest_devices.devices, &one.fewest_devices.label) {
        (Some(devices), Some(label)) => {
            format!("fewest devices: {devices} ({label}); {}", one.fewest_devices.why)
        }
        _ => format!("fewest devices: none of this system; {}", one.fewest_devices.why),
    };
    text.push_str(&paragraph(&fewest));
    let rows = one.layer_types.iter().map(|layers| row(layers, one.time_ms));
    let header = ["layer type", "layers", "time", "share", "bound by", "FLOP", "B", "B sent", "B weights"];
    text.push_str(&indent(&table(&header, rows), 2));
    if detail {
        text.push('\n');
        let lines = one.layer_types.iter().flat_map(|layers| &layers.operators);
        text.push_str(&step_operators(lines));
    }
    text
}

/// `21.9 GB`; `0 B` for nothing.
fn bytes(number: f64) -> String {
    if number > 0.0 { format!("{}B", scaled(number)) } else { "0 B".to_owned() }
}

fn flop(number: f64) -> String {
    if number > 0.0 { format!("{}FLOP", scaled(number)) } else { "0 FLOP".to_owned() }
}

fn row(one: &StaticLayerType, whole_ms: f64) -> Vec<String> {
    vec![
        one.layer_type.name().to_owned(),
        Some(one.layers).filter(|layers| *layers > 0).map_or_else(String::new, |layers| layers.to_string()),
        time(one.time_ms),
        percent(one.time_ms / whole_ms),
        one.bound_by.name().to_owned(),
        scaled(one.flops),
        scaled(one.bytes),
        scaled(one.wire_bytes),
        scaled(one.weight_bytes),
    ]
}
