//! Readings of NVIDIA's GPUs: NVML, a library of the driver that is loaded at run time,
//! <https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html>.

use std::path::Path;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id::{NVML_FI_DEV_PCIE_COUNT_RX_BYTES, NVML_FI_DEV_PCIE_COUNT_TX_BYTES};
use nvml_wrapper::{Device, Nvml};

use super::series::{GB, MILLI, RawReading, RawReadings};
use crate::spec::telemetry::GpuReading;

/// The GPUs of a machine.
pub(super) struct NvidiaGpus {
    library: Nvml,
    pub(super) count: u32,
}

impl NvidiaGpus {
    /// Loads the library.
    ///
    /// # Errors
    /// It is absent, or has no driver; the reason in words.
    pub(super) fn open(library: &Path) -> Result<NvidiaGpus, &'static str> {
        let words = |fault: NvmlError| match fault {
            NvmlError::LibloadingError(_) => "no library of NVIDIA's driver (NVML)",
            NvmlError::DriverNotLoaded => "NVIDIA's driver is not loaded",
            NvmlError::NoPermission => "no permission to read NVIDIA's driver",
            _ => "NVIDIA's driver reports a fault",
        };
        let library = Nvml::builder().lib_path(library.as_os_str()).init().map_err(words)?;
        let count = library.device_count().map_err(words)?;
        Ok(NvidiaGpus { library, count })
    }

    /// The name of the kind of one.
    pub(super) fn name(&self, number: u32) -> Option<String> {
        self.library.device_by_index(number).ok()?.name().ok()
    }

    /// The readings of one; none where the driver has lost it.
    pub(super) fn read(&self, number: u32) -> RawReadings<GpuReading> {
        self.library.device_by_index(number).map(|device| readings(&device)).unwrap_or_default()
    }
}

fn readings(device: &Device<'_>) -> RawReadings<GpuReading> {
    // Heat, the supply, and both as the hardware reports them.
    let slowed = ThrottleReasons::HW_SLOWDOWN
        | ThrottleReasons::SW_THERMAL_SLOWDOWN
        | ThrottleReasons::HW_THERMAL_SLOWDOWN
        | ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN;
    let reasons = device.current_throttle_reasons().ok();
    let has = |which| reasons.map(|reasons: ThrottleReasons| f64::from(reasons.intersects(which)));
    let number = |value: Result<u32, NvmlError>| value.ok().map(f64::from);
    let gauges = [
        (GpuReading::InUse, device.utilization_rates().ok().map(|rates| f64::from(rates.gpu) / 100.0)),
        (GpuReading::MemoryUsedGb, device.memory_info().ok().map(|memory| memory.used as f64 / GB)),
        (GpuReading::ClockMhz, number(device.clock_info(Clock::SM))),
        (GpuReading::ClockLimitMhz, number(device.max_clock_info(Clock::SM))),
        (GpuReading::MemoryClockMhz, number(device.clock_info(Clock::Memory))),
        (GpuReading::Celsius, number(device.temperature(TemperatureSensor::Gpu))),
        (GpuReading::WattsLimit, number(device.enforced_power_limit()).map(|milli| milli * MILLI)),
        (GpuReading::PowerCapped, has(ThrottleReasons::SW_POWER_CAP)),
        (GpuReading::Throttled, has(slowed)),
        (GpuReading::PcieGeneration, number(device.current_pcie_link_gen())),
        (GpuReading::PcieLanes, number(device.current_pcie_link_width())),
        (GpuReading::PcieLanesLimit, number(device.max_pcie_link_width())),
    ];
    let gauges = gauges.into_iter().filter_map(|(kind, value)| Some((kind, RawReading::Gauge(value?))));
    // The counter of energy misses nothing between samples; GPUs before Volta have only their power now.
    let energy = device.total_energy_consumption().ok().map(|mj| RawReading::Counter(mj as f64 * MILLI));
    let power = || number(device.power_usage()).map(|milli| RawReading::Gauge(milli * MILLI));
    let watts = energy.or_else(power).map(|watts| (GpuReading::Watts, watts));
    gauges.chain(watts).chain(sent_over_pcie(device)).map(|(kind, raw)| (kind, 0, raw)).collect()
}

/// Counters of the bytes over PCIe, of drivers that have them: a rate of now would take 20 ms for each direction.
fn sent_over_pcie(device: &Device<'_>) -> Vec<(GpuReading, RawReading)> {
    let fields = [NVML_FI_DEV_PCIE_COUNT_RX_BYTES, NVML_FI_DEV_PCIE_COUNT_TX_BYTES];
    let kinds = [GpuReading::PcieReceivedBytesS, GpuReading::PcieSentBytesS];
    let samples = device.field_values_for(&fields.map(FieldId)).unwrap_or_default();
    let bytes = |value: SampleValue| match value {
        SampleValue::U64(bytes) => Some(bytes as f64),
        SampleValue::U32(bytes) => Some(f64::from(bytes)),
        SampleValue::F64(_) | SampleValue::I64(_) => None,
    };
    let counted = samples.into_iter().map(|sample| bytes(sample.ok()?.value.ok()?));
    kinds.into_iter().zip(counted).filter_map(|(kind, all)| Some((kind, RawReading::Counter(all?)))).collect()
}
