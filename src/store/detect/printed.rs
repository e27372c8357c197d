//! Devices and hosts as their tools print them, before the catalogue is searched.

use crate::spec::limits::CAPACITY;

/// An accelerator as its tool prints it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrintedAccelerator {
    pub name: String,
    /// Total memory in bytes.
    pub memory: Option<f64>,
    /// Memory in use, by all processes, in bytes.
    pub used: Option<f64>,
    pub slot: Option<PcieSlot>,
    /// Power limit in watts.
    pub power_limit: Option<f64>,
    /// It is divided into instances (MIG).
    pub partitioned: bool,
    /// GPU cores of a chip of Apple.
    pub cores: Option<u64>,
}

/// The largest PCIe link that a device and its slot support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PcieSlot {
    pub generation: u32,
    pub lanes: u32,
}

impl PcieSlot {
    /// A plausible slot.
    pub fn new(generation: f64, lanes: f64) -> Option<PcieSlot> {
        let whole = |number: f64, most: f64| {
            (number.fract() == 0.0 && (1.0..=most).contains(&number)).then_some(number as u32)
        };
        Some(PcieSlot { generation: whole(generation, 9.0)?, lanes: whole(lanes, 32.0)? })
    }
}

/// Processor and memory of a host as its tools print them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrintedHost {
    pub processor: Option<String>,
    /// Sockets; 1 where unknown.
    pub sockets: u64,
    /// Physical cores of all sockets.
    pub cores: Option<u64>,
    pub threads: Option<u64>,
    /// Its cores at work, where their clock and instructions are printed.
    pub core: Option<CoreRate>,
    /// Memory visible to the system, in bytes.
    pub memory: Option<f64>,
    /// Memory available to a new process, in bytes.
    pub free: Option<f64>,
    /// It is a virtual machine, which may have only part of a processor.
    pub guest: bool,
    /// Only part of its processors may be used.
    pub limited: bool,
}

/// The arithmetic rate of a core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreRate {
    /// In Hz, without boost.
    pub clock: f64,
    /// fp32 operations a clock.
    pub operations: f64,
    /// The instructions that do so.
    pub instructions: &'static str,
}

/// Of the operations a clock.
const SOURCE: &str =
    "https://stackoverflow.com/questions/15655835/flops-per-cycle-for-sandy-bridge-and-haswell-sse2-avx-avx2";

impl PrintedHost {
    /// fp32 operations per second of a socket, and how they are counted.
    pub fn peak(&self) -> Option<(f64, String)> {
        let CoreRate { clock, operations, instructions } = self.core?;
        let cores = (self.cores.or(self.threads)? / self.sockets.max(1)).max(1) as f64;
        let text = format!(
            "{operations} operations x {cores} cores x {:.2} GHz (without boost), computed: {instructions}; {SOURCE}",
            clock / 1e9
        );
        Some((operations * cores * clock, text))
    }

    /// The machine that a measurement of its memory is valid for: processor, sockets, threads and memory.
    pub fn identity(&self) -> String {
        let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        let memory = self.memory.map(|bytes| bytes.to_string()).unwrap_or_default();
        let name = self.processor.as_deref().unwrap_or_default();
        [name, &self.sockets.to_string(), &number(self.threads), &memory].join(";")
    }
}

/// A size that a memory can have, in bytes; `None` for a fault of the tool.
pub fn memory(bytes: f64) -> Option<f64> {
    Some(bytes).filter(|bytes| CAPACITY.holds(*bytes))
}

/// `text` as a number of bytes, watts or lanes; `None` for `[N/A]` and the like.
pub fn number(text: &str) -> Option<f64> {
    /// Larger numbers are faults of the tool.
    const MOST: f64 = 1e18;
    let value: f64 = text.trim().parse().ok()?;
    (0.0..=MOST).contains(&value).then_some(value)
}
