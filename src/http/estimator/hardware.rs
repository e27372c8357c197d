//! Hardware profiles: by id, or as figures that replace those of the catalogue's device.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::cluster::System;
use crate::spec::error::Error;
use crate::spec::link::Link;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// A hardware profile.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HardwareProfile {
    /// Id of `/v1/catalog/hardware-profiles`, or any name where `gpus` are given.
    pub hardware_id: Option<String>,
    /// The GPUs: one kind.
    pub gpus: Vec<GpuProfile>,
    /// The link between them.
    pub interconnect: Option<InterconnectProfile>,
    /// The processor of the host.
    pub cpu: Option<CpuProfile>,
    /// Memory of the host, GB.
    pub ram_gb: Option<f64>,
    /// Storage of the host.
    pub storage: Option<StorageProfile>,
}

/// GPUs of one kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GpuProfile {
    /// Name of the device.
    pub sku: String,
    /// Their number; 1 if absent.
    pub count: Option<u64>,
    /// Memory of each, in GiB, as vendors print it.
    pub vram_gb: Option<f64>,
    /// Memory bandwidth of each, GB/s.
    pub mem_bw_gbps: Option<f64>,
    /// Peak of each in 16-bit floats, dense, TFLOP/s.
    pub fp16_tflops: Option<f64>,
    /// Generation of its PCIe link.
    pub pcie_gen: Option<u64>,
    /// Lanes of its PCIe link.
    pub pcie_lanes: Option<u64>,
}

/// The link between GPUs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InterconnectProfile {
    /// Its kind, e.g. `pcie`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Bandwidth each way, GB/s.
    pub bw_gbps: Option<f64>,
    /// Latency of a small message, microseconds.
    pub latency_us: Option<f64>,
}

/// The processor of a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CpuProfile {
    /// Name.
    pub sku: Option<String>,
    /// Cores.
    pub cores: Option<u64>,
    /// Memory bandwidth, GB/s.
    pub mem_bw_gbps: Option<f64>,
    /// NUMA nodes.
    pub numa_nodes: Option<u64>,
}

/// Storage of a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StorageProfile {
    /// Its kind, e.g. `nvme`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Rate at which it is read, GB/s.
    pub read_gbps: Option<f64>,
}

impl HardwareProfile {
    /// The hardware of a scenario. Figures of an inline profile are overrides, so that they appear as such in answers.
    ///
    /// # Errors
    /// There is neither an id nor a GPU, there are several kinds of GPU, or the catalogue has no device of that name.
    pub(super) fn scenario(&self, known: &Catalog) -> Result<Scenario, Error> {
        let [gpu] = &self.gpus[..] else { return self.by_id() };
        let device = known.device(&gpu.sku).map_err(|miss| {
            let fault: Error = miss.into();
            let expected = "a device of the catalogue, which supplies what the profile leaves out";
            Error { key: "hardware.gpus[0].sku".into(), expected: expected.into(), ..fault }
        })?;
        let text = format!("{}x{}", gpu.count.unwrap_or(1), device.id);
        let cluster = known.hardware(&text)?;
        let has_system = known.load::<System>(&cluster.id).is_ok();
        let slot = gpu.pcie_gen.zip(gpu.pcie_lanes);
        let slot = slot.map(|(generation, lanes)| known.load::<Link>(&format!("pcie{generation}x{lanes}")));
        let slot =
            slot.transpose().map_err(|fault| Error { key: "hardware.gpus[0].pcie_gen".into(), ..fault })?;
        let slot = slot.map(|link| link.bandwidth.value / 1e9).filter(|_| device.host_link.is_some());
        let interconnect = self.interconnect.clone().unwrap_or_default();
        let cpu = self.cpu.clone().unwrap_or_default();
        let storage = self.storage.as_ref().and_then(|storage| storage.read_gbps);
        let several = gpu.count.unwrap_or(1) > 1;
        let figures = [
            ("device.memory.capacity", gpu.vram_gb, "GiB", true),
            ("device.memory.bandwidth", gpu.mem_bw_gbps, "GB/s", true),
            ("device.peak.bf16", gpu.fp16_tflops, "TFLOP/s", true),
            ("device.peak.fp16", gpu.fp16_tflops, "TFLOP/s", true),
            ("device.host_link.bandwidth", slot, "GB/s", true),
            ("system.tiers.0.bandwidth", interconnect.bw_gbps, "GB/s", several),
            ("system.tiers.0.latency", interconnect.latency_us, "us", several),
            ("system.host.memory_bandwidth", cpu.mem_bw_gbps, "GB/s", true),
            ("system.host.storage_read", storage, "GB/s", has_system),
        ];
        let set = figures.into_iter().filter(|(.., used)| *used);
        let set: Vec<String> = set
            .filter_map(|(key, value, unit, _)| value.map(|value| format!("{key}={value} {unit}")))
            .collect();
        Ok(Scenario {
            hardware: Some(text),
            host_memory: self.ram_gb.map(|gb| format!("{gb}GB")),
            set: (!set.is_empty()).then_some(set),
            ..Scenario::default()
        })
    }

    fn by_id(&self) -> Result<Scenario, Error> {
        if self.gpus.len() > 1 {
            let fix = "use POST /v2/place, which divides a model over unlike devices";
            let found = format!("{} kinds of GPU", self.gpus.len());
            return Err(Error::new("hardware.gpus", found, "one kind, with its count", fix));
        }
        let missing = || {
            let fix = "GET /v1/catalog/hardware-profiles lists the ids";
            Error::new("hardware.hardware_id", "neither an id nor `gpus`", "one of them", fix)
        };
        let hardware = Some(self.hardware_id.clone().ok_or_else(missing)?);
        let host_memory = self.ram_gb.map(|gb| format!("{gb}GB"));
        Ok(Scenario { hardware, host_memory, ..Scenario::default() })
    }
}
