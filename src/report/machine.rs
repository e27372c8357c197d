//! A machine as its own tools describe it: devices, host, measured memory bandwidth, and the file that describes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sheet::{CsvColumn, known, table};

/// A detected machine.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MachineReport {
    /// Accelerators, equal ones in one entry.
    pub devices: Vec<DetectedDevices>,
    /// The host.
    pub host: DetectedHost,
    /// Every tool that was tried, and its outcome.
    pub tools: Vec<ToolResult>,
    /// The machine as a file that `--hardware` reads; `null` where a needed figure is unknown.
    pub file: Option<MachineFile>,
    /// Remarks about the figures.
    pub notes: Vec<String>,
}

/// The description of a machine as the content of a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MachineFile {
    /// Its schema.
    pub kind: MachineFileKind,
    /// Its content.
    pub content: Value,
}

/// Schema of a machine's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MachineFileKind {
    /// Equal devices: `--hardware` of every command reads it.
    System,
    /// Heterogeneous devices: `place --hardware` reads it.
    Rig,
}

impl MachineFileKind {
    /// Its name in `mantile-opt schema`.
    pub fn name(self) -> &'static str {
        match self {
            MachineFileKind::System => "system",
            MachineFileKind::Rig => "rig",
        }
    }
}

/// Equal accelerators of a machine.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DetectedDevices {
    /// Number.
    pub count: u64,
    /// Name as the tool prints it.
    pub printed: String,
    /// Id in the catalogue; `null` for a device that the catalogue lacks.
    pub device: Option<String>,
    /// Total memory of each, in bytes.
    pub memory_bytes: Option<f64>,
    /// Memory in use on the fullest, in bytes.
    pub used_bytes: Option<f64>,
    /// The slowest slot, e.g. `PCIe 4.0 x16`.
    pub slot: Option<String>,
    /// The lowest power limit, in watts.
    pub power_limit_w: Option<f64>,
    /// The reason that they are not part of the file.
    pub left_out: Option<String>,
    /// How to make them part of it.
    pub fix: Option<String>,
}

/// The host of a detected machine.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DetectedHost {
    /// Name of the processor as the system prints it.
    pub processor: Option<String>,
    /// Id in the catalogue; `null` for a processor that the catalogue lacks.
    pub device: Option<String>,
    /// Sockets.
    pub sockets: u64,
    /// Physical cores.
    pub cores: Option<u64>,
    /// Hardware threads.
    pub threads: Option<u64>,
    /// Memory that the process may use, in bytes: that of the system, or the limit of its container.
    pub memory_bytes: Option<f64>,
    /// Memory available now, in bytes.
    pub free_bytes: Option<f64>,
    /// Bandwidth of all sockets in the catalogue, in B/s.
    pub catalogue_bandwidth: Option<f64>,
    /// Measured bandwidth; `null` without the stream test.
    pub measured: Option<MeasuredBandwidth>,
}

/// Measured memory bandwidth of all cores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredBandwidth {
    /// Best rate of reading all arrays, in B/s.
    pub read: f64,
    /// Best rate of the triad `a = b + s c`, in B/s, as STREAM counts: 24 B per element.
    pub triad: f64,
    /// Threads.
    pub threads: u64,
    /// Size of all arrays, in bytes.
    pub bytes: f64,
}

impl MeasuredBandwidth {
    /// The higher of both rates, in B/s: a triad also reads what it writes, which STREAM does not count.
    pub fn best(&self) -> f64 {
        self.read.max(self.triad)
    }
}

/// The outcome of a tool.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The tool.
    pub tool: String,
    /// The hardware that it describes.
    pub finds: String,
    /// Whether it gave an output that could be read.
    pub found: bool,
    /// Its outcome in words.
    pub result: String,
}

impl MachineReport {
    /// A row for each kind of device.
    pub fn csv(&self) -> String {
        let columns: [CsvColumn<DetectedDevices>; 7] = [
            ("count", |one| one.count.to_string()),
            ("device", |one| one.printed.clone()),
            ("catalogue", |one| one.device.clone().unwrap_or_default()),
            ("memory_bytes", |one| known(one.memory_bytes)),
            ("used_bytes", |one| known(one.used_bytes)),
            ("slot", |one| one.slot.clone().unwrap_or_default()),
            ("power_limit_w", |one| known(one.power_limit_w)),
        ];
        table(&columns, &self.devices)
    }
}
