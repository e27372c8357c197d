//! Readings of a machine during a run, as it reports them itself: processors, memory, disks, network and GPUs.
//!
//! A reading is summarised over the measured part of the run, without the warm-up. No name of a host, serial number or
//! UUID is among them.

// Without measurements, nothing fills them in.
#![cfg_attr(not(feature = "bench"), allow(dead_code))]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine that reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportingMachine {
    /// That of the server, which the client shares.
    #[default]
    Server,
    /// That of the client: the server is elsewhere.
    Client,
}

/// A reading over the measured part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadingSummary {
    /// Its mean over the time.
    pub mean: f64,
    /// The median of its samples.
    pub p50: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

/// How the parts of a reading become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingOfParts {
    Sum,
    Mean,
    Max,
}

/// A kind of reading.
pub trait ReadingKind: Copy + Ord {
    /// How the parts of a machine that have it become one.
    fn of_parts(self) -> ReadingOfParts;
}

/// Declares readings: the figures of a record, and their names in code.
macro_rules! readings {
    ($(#[$all:meta])* $Struct:ident, $(#[$each:meta])* $Enum:ident: $($(#[$doc:meta])* $field:ident $Variant:ident $parts:ident;)*) => {
        $(#[$all])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $Struct {$(
            $(#[$doc])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $field: Option<ReadingSummary>,
        )*}

        $(#[$each])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $Enum { $($Variant,)* }

        impl ReadingKind for $Enum {
            fn of_parts(self) -> ReadingOfParts {
                match self { $($Enum::$Variant => ReadingOfParts::$parts,)* }
            }
        }

        impl FromIterator<($Enum, ReadingSummary)> for $Struct {
            fn from_iter<I: IntoIterator<Item = ($Enum, ReadingSummary)>>(all: I) -> $Struct {
                let mut found = $Struct::default();
                for (kind, summary) in all {
                    match kind { $($Enum::$Variant => found.$field = Some(summary),)* }
                }
                found
            }
        }
    };
}

readings! {
    /// Readings of a machine without its GPUs; absent where it does not report them.
    MachineReadings,
    /// A reading of a machine.
    MachineReading:
    /// Share of the processors' time that is in use.
    processor_use ProcessorUse Sum;
    /// Share of its time that the busiest processor is in use.
    busiest_processor_use BusiestProcessorUse Max;
    /// Share of all processors' time that the client of the measurement takes.
    client_use ClientUse Sum;
    /// Frequency of the processors, MHz: the mean of up to 16 of them.
    processor_mhz ProcessorMhz Mean;
    /// Share of the time for which heat slows a processor.
    processor_throttled ProcessorThrottled Max;
    /// Temperature of the hottest processor, degrees Celsius.
    processor_celsius ProcessorCelsius Max;
    /// Power of all processor packages, W.
    processor_watts ProcessorWatts Sum;
    /// Power of the memory next to them, W.
    memory_watts MemoryWatts Sum;
    /// Memory that no new process can have, GB.
    memory_used_gb MemoryUsedGb Sum;
    /// Swap space in use, GB.
    swap_used_gb SwapUsedGb Sum;
    /// Pages swapped in and out per second.
    swapped_pages_s SwappedPagesS Sum;
    /// Share of the time for which a task waits for memory.
    memory_stalled MemoryStalled Sum;
    /// Bytes read from disks per second.
    disk_read_bytes_s DiskReadBytesS Sum;
    /// Bytes written to disks per second.
    disk_written_bytes_s DiskWrittenBytesS Sum;
    /// Bytes received per second by network adapters.
    network_received_bytes_s NetworkReceivedBytesS Sum;
    /// Bytes sent per second by network adapters.
    network_sent_bytes_s NetworkSentBytesS Sum;
    /// Bytes received per second by ports of InfiniBand and RoCE.
    infiniband_received_bytes_s InfinibandReceivedBytesS Sum;
    /// Bytes sent per second by these.
    infiniband_sent_bytes_s InfinibandSentBytesS Sum;
    /// Pages of memory per second that processors are given from another NUMA node than theirs.
    remote_pages_s RemotePagesS Sum;
}

readings! {
    /// Readings of a GPU; absent where it does not report them.
    GpuReadings,
    /// A reading of a GPU.
    GpuReading:
    /// Share of the time in which it runs anything.
    in_use InUse Max;
    /// Memory in use, GB, by all processes.
    memory_used_gb MemoryUsedGb Sum;
    /// Clock of its multiprocessors, MHz.
    clock_mhz ClockMhz Mean;
    /// The highest that its settings allow, MHz.
    clock_limit_mhz ClockLimitMhz Max;
    /// Clock of its memory, MHz.
    memory_clock_mhz MemoryClockMhz Mean;
    /// Temperature, degrees Celsius.
    celsius Celsius Max;
    /// Power, W.
    watts Watts Sum;
    /// The limit of its power, W.
    watts_limit WattsLimit Sum;
    /// Share of the time at that limit.
    power_capped PowerCapped Max;
    /// Share of the time for which heat or its supply slows it.
    throttled Throttled Max;
    /// Bytes that it receives over PCIe per second.
    pcie_received_bytes_s PcieReceivedBytesS Sum;
    /// Bytes that it sends over PCIe per second.
    pcie_sent_bytes_s PcieSentBytesS Sum;
    /// Generation of PCIe that its link has now.
    pcie_generation PcieGeneration Max;
    /// Lanes of its PCIe link now.
    pcie_lanes PcieLanes Max;
    /// The most lanes that it can have.
    pcie_lanes_limit PcieLanesLimit Max;
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuTelemetry {
    /// The name of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its readings.
    #[serde(default)]
    pub readings: GpuReadings,
}

/// Readings of a machine during the measured part of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunTelemetry {
    /// The machine that they are of.
    pub machine: ReportingMachine,
    /// Time between two samples, s.
    pub every_s: f64,
    /// Samples in the measured part of the run.
    pub samples: u64,
    /// Share of the time in which samples were taken: their cost.
    pub sampling_share: f64,
    /// Readings of the machine.
    #[serde(default)]
    pub readings: MachineReadings,
    /// Its GPUs, in the order of their driver; of the machine of the server only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuTelemetry>,
    /// Energy of the deployment's devices per output token, J: of its GPUs, or of the processors where these serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joules_per_token: Option<f64>,
}

impl RunTelemetry {
    /// Mean power of the devices that serve, W: of the GPUs, or of the processors; `None` where that of one is unknown.
    pub fn device_watts(&self, devices: Option<u64>, on_processors: bool) -> Option<f64> {
        if self.machine != ReportingMachine::Server {
            return None;
        }
        let gpus = || self.serving_gpus(devices).into_iter().map(|gpu| Some(gpu.readings.watts?.mean));
        let watts = match on_processors {
            true => self.readings.processor_watts.map(|watts| watts.mean),
            false => gpus().sum(),
        };
        watts.filter(|watts| *watts > 0.0)
    }

    /// The GPUs that serve: as many as the deployment has devices, those that are most in use. Without their number, all
    /// that ran anything. Empty where the machine has fewer.
    pub fn serving_gpus(&self, devices: Option<u64>) -> Vec<&GpuTelemetry> {
        let in_use = |gpu: &&GpuTelemetry| gpu.readings.in_use.map_or(0.0, |found| found.mean);
        let mut gpus: Vec<&GpuTelemetry> = self.gpus.iter().collect();
        gpus.sort_by(|a, b| in_use(b).total_cmp(&in_use(a)));
        match devices {
            Some(devices) if devices > gpus.len() as u64 => vec![],
            Some(devices) => gpus.into_iter().take(devices as usize).collect(),
            None => gpus.into_iter().filter(|gpu| in_use(gpu) > 0.0).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(in_use: f64) -> GpuTelemetry {
        let in_use = ReadingSummary { mean: in_use, ..ReadingSummary::default() };
        GpuTelemetry { name: None, readings: GpuReadings::from_iter([(GpuReading::InUse, in_use)]) }
    }

    #[test]
    fn the_serving_gpus_are_those_in_use() {
        let found = RunTelemetry { gpus: [0.0, 0.9, 0.4].map(gpu).to_vec(), ..RunTelemetry::default() };
        let means = |devices| {
            let gpus = found.serving_gpus(devices);
            gpus.iter().map(|gpu| gpu.readings.in_use.unwrap().mean).collect::<Vec<_>>()
        };
        assert_eq!((means(Some(1)), means(None)), (vec![0.9], vec![0.9, 0.4]));
        assert_eq!((means(Some(3)).len(), means(Some(4)).len()), (3, 0));
    }
}
