//! Readings of AMD's GPUs in the files of the driver `amdgpu`, <https://docs.kernel.org/gpu/amdgpu/thermal.html> and
//! <https://docs.kernel.org/gpu/amdgpu/driver-misc.html>.

use std::path::{Path, PathBuf};

use super::files::{number_in, numbered, text_of};
use super::series::{GB, RawReading, RawReadings};
use crate::spec::telemetry::GpuReading;

/// AMD among the vendors of PCI devices, <https://pci-ids.ucw.cz/read/PC/1002>.
const VENDOR: &str = "0x1002";
/// Share of its limit from which the power of a GPU counts as at it: the driver does not report the state.
const AT_LIMIT: f64 = 0.97;
const MEGA: f64 = 1e6;

/// A GPU.
pub(super) struct AmdGpu {
    device: PathBuf,
    sensors: Option<PathBuf>,
    pub(super) name: Option<String>,
}

impl AmdGpu {
    /// Those of the machine whose files are below `root`.
    pub(super) fn find(root: &Path) -> Vec<AmdGpu> {
        let cards = numbered(&root.join("sys/class/drm"), "card").into_iter();
        let devices = cards.map(|(_, card)| card.join("device"));
        let of = |device: PathBuf| {
            let vendor = text_of(&device.join("vendor"))?;
            number_in(&device.join("mem_info_vram_total"))?;
            let name = text_of(&device.join("product_name")).map(|name| name.trim().to_owned());
            let sensors = numbered(&device.join("hwmon"), "hwmon").into_iter().next();
            let name = name.filter(|name| !name.is_empty());
            let sensors = sensors.map(|(_, folder)| folder);
            (vendor.trim() == VENDOR).then_some(AmdGpu { device, sensors, name })
        };
        devices.filter_map(of).collect()
    }

    pub(super) fn read(&self) -> RawReadings<GpuReading> {
        let of_device = |name: &str| number_in(&self.device.join(name));
        let of_sensor = |name: &str| number_in(&self.sensors.as_ref()?.join(name));
        // Temperatures: of the junction, else of the edge.
        let celsius = of_sensor("temp2_input").or_else(|| of_sensor("temp1_input"));
        let watts = of_sensor("power1_average").or_else(|| of_sensor("power1_input"));
        let limit = of_sensor("power1_cap").filter(|limit| *limit > 0.0);
        let clocks = text_of(&self.device.join("pp_dpm_sclk")).unwrap_or_default();
        let clock = of_sensor("freq1_input").map(|hertz| hertz / MEGA).or_else(|| clock_in(&clocks, true));
        let speed = text_of(&self.device.join("current_link_speed"));
        let capped = watts.zip(limit).map(|(watts, limit)| f64::from(watts >= limit * AT_LIMIT));
        let all = [
            (GpuReading::InUse, of_device("gpu_busy_percent").map(|percent| percent / 100.0)),
            (GpuReading::MemoryUsedGb, of_device("mem_info_vram_used").map(|bytes| bytes / GB)),
            (GpuReading::ClockMhz, clock),
            (GpuReading::ClockLimitMhz, clock_in(&clocks, false)),
            (GpuReading::MemoryClockMhz, of_sensor("freq2_input").map(|hertz| hertz / MEGA)),
            (GpuReading::Celsius, celsius.map(|milli| milli / 1e3)),
            (GpuReading::Watts, watts.map(|micro| micro / MEGA)),
            (GpuReading::WattsLimit, limit.map(|micro| micro / MEGA)),
            (GpuReading::PowerCapped, capped),
            (GpuReading::PcieGeneration, speed.and_then(|speed| generation_of(&speed))),
            (GpuReading::PcieLanes, of_device("current_link_width")),
            (GpuReading::PcieLanesLimit, of_device("max_link_width")),
        ];
        all.into_iter().filter_map(|(kind, value)| Some((kind, 0, RawReading::Gauge(value?)))).collect()
    }
}

/// The highest clock in the lines `1: 1500Mhz *` of a list of states, MHz; of those in use if `active`.
fn clock_in(states: &str, active: bool) -> Option<f64> {
    let states = states.lines().filter(|line| !active || line.trim_end().ends_with('*'));
    let clock = |line: &str| {
        let text = line.split_once(':')?.1.trim().trim_end_matches('*').trim_end();
        let clock = text.to_ascii_lowercase().strip_suffix("mhz")?.trim().parse::<f64>().ok()?;
        Some(clock).filter(|clock| clock.is_finite())
    };
    states.filter_map(clock).reduce(f64::max)
}

/// Transfer rates of a lane by generation of PCIe, GT/s, as the kernel spells them:
/// <https://docs.kernel.org/admin-guide/abi-testing.html>, `current_link_speed`.
const LANE_RATES: [&str; 6] = ["2.5", "5.0", "8.0", "16.0", "32.0", "64.0"];

/// The generation of PCIe whose lanes have a rate, `16.0 GT/s PCIe`.
fn generation_of(speed: &str) -> Option<f64> {
    let rate = speed.split_whitespace().next()?;
    let generations = (1..).map(f64::from).zip(LANE_RATES);
    generations.filter(|(_, known)| *known == rate).map(|(generation, _)| generation).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_those_of_the_states() {
        let states = "0: 500Mhz\n1: 1500Mhz *\n2: 2100Mhz\nS: x\n: nanMhz *\n";
        assert_eq!((clock_in(states, true), clock_in(states, false)), (Some(1500.0), Some(2100.0)));
        assert_eq!(clock_in("", true), None);
    }

    #[test]
    fn the_generation_is_that_of_the_rate() {
        assert_eq!(generation_of("16.0 GT/s PCIe\n"), Some(4.0));
        assert_eq!((generation_of("Unknown"), generation_of("")), (None, None));
    }
}
