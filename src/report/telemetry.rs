//! Readings of a machine during a run, in a line or two.

// Without a store of runs, its lines have no user.
#![cfg_attr(not(feature = "runs"), allow(dead_code))]

use super::number::{count, digits, percent};
use crate::spec::run::RunRecord;
use crate::spec::telemetry::{GpuReadings, GpuTelemetry, ReadingSummary, ReportingMachine, RunTelemetry};
use crate::spec::visible::visible;

const MB: f64 = 1e6;

/// A reading in words, where it is known: the text with `{}` in the place of its mean.
fn mean(reading: Option<ReadingSummary>, spell: fn(f64) -> String, words: &str) -> Option<String> {
    reading.map(|found| words.replace("{}", &spell(found.mean)))
}

/// As [`mean`], where it was ever above zero.
fn if_any(reading: Option<ReadingSummary>, spell: fn(f64) -> String, words: &str) -> Option<String> {
    mean(reading.filter(|found| found.max > 0.0), spell, words)
}

fn megabytes(bytes: f64) -> String {
    digits(bytes / MB)
}

fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn machine(found: &RunTelemetry) -> String {
    let readings = &found.readings;
    let name = match found.machine {
        ReportingMachine::Server => "machine",
        ReportingMachine::Client => "machine of the client",
    };
    let parts = joined([
        mean(readings.processor_use, percent, "processors {} in use"),
        mean(readings.busiest_processor_use, percent, "the busiest {}"),
        mean(readings.client_use, percent, "the client {}"),
        mean(readings.processor_mhz, digits, "{} MHz"),
        if_any(readings.processor_throttled, percent, "slowed by heat {} of the time"),
        readings.processor_celsius.map(|found| format!("up to {} °C", digits(found.max))),
        mean(readings.processor_watts, digits, "{} W"),
        readings.memory_used_gb.map(|found| format!("memory up to {} GB", digits(found.max))),
        if_any(readings.swapped_pages_s, digits, "{} pages/s swapped"),
        if_any(readings.disk_read_bytes_s, megabytes, "{} MB/s from disks"),
        if_any(readings.disk_written_bytes_s, megabytes, "{} MB/s to disks"),
        if_any(readings.network_received_bytes_s, megabytes, "{} MB/s received"),
        if_any(readings.network_sent_bytes_s, megabytes, "{} MB/s sent"),
        if_any(readings.infiniband_received_bytes_s, megabytes, "{} MB/s received over InfiniBand"),
        if_any(readings.infiniband_sent_bytes_s, megabytes, "{} MB/s sent over InfiniBand"),
        if_any(readings.remote_pages_s, digits, "{} pages/s of remote memory"),
    ]);
    let samples = count(found.samples, "sample");
    format!("{name}: {parts}; {samples}, {} of the time", percent(found.sampling_share))
}

/// The GPUs that serve as one: the mean of their means.
fn of_all(gpus: &[&GpuTelemetry], of: fn(&GpuReadings) -> Option<ReadingSummary>) -> Option<ReadingSummary> {
    let found: Vec<ReadingSummary> = gpus.iter().filter_map(|gpu| of(&gpu.readings)).collect();
    let mean = found.iter().map(|one| one.mean).sum::<f64>() / found.len() as f64;
    let max = found.iter().map(|one| one.max).reduce(f64::max)?;
    Some(ReadingSummary { mean, max, ..*found.first()? })
}

/// The link of the GPU with the fewest lanes.
fn pcie_link(gpus: &[&GpuTelemetry]) -> Option<String> {
    let links = gpus.iter().filter_map(|gpu| Some((gpu.readings.pcie_lanes?.max, &gpu.readings)));
    let (lanes, link) = links.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let generation = link.pcie_generation.map(|found| format!(" {}.0", found.max));
    let limit = link.pcie_lanes_limit.filter(|limit| limit.max > lanes);
    let limit = limit.map(|limit| format!(" of x{}", limit.max)).unwrap_or_default();
    Some(["PCIe", &generation.unwrap_or_default(), " x", &lanes.to_string(), &limit].concat())
}

fn gpus(run: &RunRecord, found: &RunTelemetry) -> Option<String> {
    let serving = found.serving_gpus(run.devices);
    let first = serving.first()?;
    let name = first.name.as_deref().map_or("GPU".into(), visible);
    let of = |reading| of_all(&serving, reading);
    let parts = joined([
        mean(of(|all| all.in_use), percent, "{} in use"),
        of(|all| all.memory_used_gb).map(|found| format!("memory up to {} GB", digits(found.max))),
        mean(of(|all| all.clock_mhz), digits, "{} MHz"),
        mean(of(|all| all.clock_limit_mhz), digits, "at most {} MHz"),
        mean(of(|all| all.watts), digits, "{} W"),
        mean(of(|all| all.watts_limit), digits, "at most {} W"),
        if_any(of(|all| all.power_capped), percent, "at that limit {} of the time"),
        if_any(of(|all| all.throttled), percent, "slowed {} of the time"),
        of(|all| all.celsius).map(|found| format!("up to {} °C", digits(found.max))),
        pcie_link(&serving),
        if_any(of(|all| all.pcie_received_bytes_s), megabytes, "{} MB/s received over it"),
        if_any(of(|all| all.pcie_sent_bytes_s), megabytes, "{} MB/s sent over it"),
    ]);
    Some(format!("{}, each: {parts}", [&serving.len().to_string(), " x ", &*name].concat()))
}

fn energy(run: &RunRecord, found: &RunTelemetry) -> Option<String> {
    let measured = found.joules_per_token?;
    let predicted = run.prediction.as_ref().and_then(|prediction| prediction.joules_per_token);
    let predicted = predicted.map(|joules| format!(", predicted {}", digits(joules)));
    Some(format!("devices: {} J per output token{}", digits(measured), predicted.unwrap_or_default()))
}

/// The readings of a run: a line for its machine, and one for the devices that serve. Empty where nothing was read.
pub fn telemetry_lines(run: &RunRecord) -> String {
    let Some(found) = &run.telemetry else { return String::new() };
    let devices: Vec<String> = [gpus(run, found), energy(run, found)].into_iter().flatten().collect();
    let lines = [machine(found), devices.join("; ")];
    lines.into_iter().filter(|line| !line.is_empty()).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::run::RunPrediction;
    use crate::spec::telemetry::{GpuReading, MachineReading, MachineReadings};

    #[test]
    fn the_machine_and_its_devices_have_a_line_each() {
        let of = |mean| ReadingSummary { mean, p50: mean, min: mean, max: mean };
        let readings = MachineReadings::from_iter([
            (MachineReading::ProcessorUse, of(0.4)),
            (MachineReading::SwappedPagesS, of(0.0)),
            (MachineReading::MemoryUsedGb, of(12.0)),
        ]);
        let readings_of_gpu = GpuReadings::from_iter([
            (GpuReading::InUse, of(0.9)),
            (GpuReading::Watts, of(300.0)),
            (GpuReading::PowerCapped, of(0.25)),
        ]);
        let gpu = GpuTelemetry { name: Some("L40S".to_owned()), readings: readings_of_gpu };
        let telemetry = RunTelemetry {
            readings,
            gpus: vec![gpu.clone(), gpu],
            joules_per_token: Some(0.5),
            samples: 1,
            ..RunTelemetry::default()
        };
        let prediction = RunPrediction { joules_per_token: Some(0.25), ..RunPrediction::default() };
        let run = RunRecord { telemetry: Some(telemetry), devices: Some(2), ..RunRecord::default() };
        let run = RunRecord { prediction: Some(prediction), ..run };
        let text = telemetry_lines(&run);
        let (machine, devices) = text.trim_end().split_once('\n').unwrap();
        assert!(machine.starts_with("machine: processors 40 % in use, memory up to 12"), "{text}");
        assert!(!machine.contains("swapped") && machine.contains("1 sample,"), "{text}");
        assert!(devices.starts_with("2 x L40S, each: 90 % in use, 300 W, at that limit 25 %"), "{text}");
        assert!(devices.ends_with("0.500 J per output token, predicted 0.250"), "{text}");
        assert_eq!(telemetry_lines(&RunRecord::default()), "");
    }
}
