//! Outputs of a Mac: `system_profiler` and `sysctl`.

use serde_json::Value;

use super::printed::{PrintedAccelerator, PrintedHost, memory, number};

/// The chip of a Mac with its GPU cores; an empty list on a Mac of Intel.
pub fn chip(text: &str) -> Option<Vec<PrintedAccelerator>> {
    let value: Value = serde_json::from_str(text).ok()?;
    let first = |key: &str| value.get(key)?.as_array()?.first();
    let hardware = first("SPHardwareDataType")?;
    let Some(name) = hardware.get("chip_type").and_then(Value::as_str) else { return Some(vec![]) };
    let cores = first("SPDisplaysDataType").and_then(|gpu| gpu.get("sppci_cores")?.as_str()?.parse().ok());
    Some(vec![PrintedAccelerator { name: name.trim().to_owned(), cores, ..PrintedAccelerator::default() }])
}

/// Processor and memory in the lines `key: value` of `sysctl`.
pub fn host(text: &str) -> PrintedHost {
    let of = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| *name == key).map(|(_, value)| value.trim())
    };
    let whole = |key: &str| of(key)?.parse().ok();
    PrintedHost {
        processor: of("machdep.cpu.brand_string").filter(|name| !name.is_empty()).map(str::to_owned),
        sockets: 1,
        cores: whole("hw.physicalcpu"),
        threads: whole("hw.logicalcpu"),
        core: None,
        memory: of("hw.memsize").and_then(number).and_then(memory),
        free: None,
        guest: false,
        limited: false,
    }
}
