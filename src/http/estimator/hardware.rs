//! Hardware profiles: by id, or as figures that replace those of the catalogue's device.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Its kind, e.g. `pcie`; a name, which prices nothing.
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
    /// Name; prices nothing.
    pub sku: Option<String>,
    /// Cores; they price nothing, and the explanations of the answer say so.
    pub cores: Option<u64>,
    /// Memory bandwidth, GB/s.
    pub mem_bw_gbps: Option<f64>,
    /// NUMA nodes; they price nothing, and the explanations of the answer say so.
    pub numa_nodes: Option<u64>,
}

/// Storage of a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StorageProfile {
    /// Its kind, e.g. `nvme`; a name, which prices nothing.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Rate at which it is read, GB/s; it prices nothing, and the explanations of the answer say so.
    pub read_gbps: Option<f64>,
}

/// A figure of a profile, and the place of the catalogue that it overrides.
struct ProfileFigure {
    /// Its key in the profile.
    key: &'static str,
    /// Keys of the overrides, with the value in their unit; empty where there is nothing to override.
    overrides: Vec<String>,
}

impl HardwareProfile {
    /// The hardware of a scenario. Figures of a profile are overrides, so that they appear as such in answers.
    ///
    /// # Errors
    /// There is neither an id nor a GPU, there are several kinds of GPU, or the catalogue has no device of that name.
    pub(super) fn scenario(&self, known: &Catalog) -> Result<Scenario, Error> {
        let text = self.hardware(known)?;
        let set: Vec<String> =
            self.figures(known, &text)?.into_iter().flat_map(|figure| figure.overrides).collect();
        Ok(Scenario {
            hardware: Some(text),
            host_memory: self.ram_gb.map(|gb| format!("{gb}GB")),
            set: (!set.is_empty()).then_some(set),
            ..Scenario::default()
        })
    }

    /// That some figures of the profile change no number of the answer, if any do not.
    pub(super) fn without_effect(&self, known: &Catalog) -> Result<Option<String>, Error> {
        let figures = self.figures(known, &self.hardware(known)?)?;
        let idle = figures.iter().filter(|figure| figure.overrides.is_empty()).map(|figure| figure.key);
        let cpu = self.cpu.clone().unwrap_or_default();
        let names = [("cpu.cores", cpu.cores), ("cpu.numa_nodes", cpu.numa_nodes)];
        let names = names.into_iter().filter_map(|(key, value)| value.map(|_| key));
        let all: Vec<&str> = idle.chain(names).collect();
        let verb = if all.len() == 1 { "changes" } else { "change" };
        Ok((!all.is_empty()).then(|| format!("{} of the profile {verb} no number.", all.join(", "))))
    }

    /// The hardware as a scenario names it.
    fn hardware(&self, known: &Catalog) -> Result<String, Error> {
        let [gpu] = &self.gpus[..] else { return self.by_id() };
        let device = known.device(&gpu.sku).map_err(|miss| {
            let fault: Error = miss.into();
            let expected = "a device of the catalogue, which supplies what the profile leaves out";
            Error { key: "hardware.gpus[0].sku".into(), expected: expected.into(), ..fault }
        })?;
        Ok(format!("{}x{}", gpu.count.unwrap_or(1), device.id))
    }

    fn by_id(&self) -> Result<String, Error> {
        if self.gpus.len() > 1 {
            let fix = "use POST /v2/place, which divides a model over unlike devices";
            let found = format!("{} kinds of GPU", self.gpus.len());
            return Err(Error::new("hardware.gpus", found, "one kind, with its count", fix));
        }
        self.hardware_id.clone().ok_or_else(|| {
            let fix = "GET /v1/catalog/hardware-profiles lists the ids";
            Error::new("hardware.hardware_id", "neither an id nor `gpus`", "one of them", fix)
        })
    }

    /// The figures that the profile states for the hardware `text`.
    fn figures(&self, known: &Catalog, text: &str) -> Result<Vec<ProfileFigure>, Error> {
        let gpu = self.gpus.first().cloned().unwrap_or_default();
        let interconnect = self.interconnect.clone().unwrap_or_default();
        let memory_rate = self.cpu.as_ref().and_then(|cpu| cpu.mem_bw_gbps);
        let storage = self.storage.as_ref().and_then(|storage| storage.read_gbps);
        let slot = gpu.pcie_gen.zip(gpu.pcie_lanes);
        let slot = slot.map(|(generation, lanes)| known.load::<Link>(&format!("pcie{generation}x{lanes}")));
        let slot =
            slot.transpose().map_err(|fault| Error { key: "hardware.gpus[0].pcie_gen".into(), ..fault })?;
        let slot = slot.map(|link| link.bandwidth.value / 1e9);
        let stated: [(&str, &[&str], Option<f64>, &str); 8] = [
            ("gpus[0].vram_gb", &["device.memory.capacity"], gpu.vram_gb, "GiB"),
            ("gpus[0].mem_bw_gbps", &["device.memory.bandwidth"], gpu.mem_bw_gbps, "GB/s"),
            ("gpus[0].fp16_tflops", &["device.peak.bf16", "device.peak.fp16"], gpu.fp16_tflops, "TFLOP/s"),
            ("gpus[0].pcie_gen", &["device.host_link.bandwidth"], slot, "GB/s"),
            ("interconnect.bw_gbps", &["system.tiers.0.bandwidth"], interconnect.bw_gbps, "GB/s"),
            ("interconnect.latency_us", &["system.tiers.0.latency"], interconnect.latency_us, "us"),
            ("cpu.mem_bw_gbps", &["system.host.memory_bandwidth"], memory_rate, "GB/s"),
            ("storage.read_gbps", &[], storage, "GB/s"),
        ];
        if stated.iter().all(|(.., value, _)| value.is_none()) {
            return Ok(vec![]);
        }
        let cluster = known.hardware(text)?;
        let there = |place: &str| match place {
            "device.host_link.bandwidth" => cluster.device.host_link.is_some(),
            _ => !place.starts_with("system.tiers") || cluster.devices_per_node > 1,
        };
        let figure = |(key, places, value, unit): (&'static str, &[&str], Option<f64>, &str)| {
            let value = value?;
            let places = places.iter().filter(|place| there(place));
            Some(ProfileFigure {
                key,
                overrides: places.map(|place| format!("{place}={value} {unit}")).collect(),
            })
        };
        Ok(stated.into_iter().filter_map(figure).collect())
    }
}
