//! Readings in the files of Linux, `/proc` and `/sys`, below a root.
//!
//! Meanings and units are those of the documents of the kernel, <https://docs.kernel.org>: filesystems/proc, block/stat
//! (sectors of 512 bytes), accounting/psi, power/powercap/powercap, hwmon/sysfs-interface, admin-guide/pm/cpufreq,
//! admin-guide/thermal/intel_thermal_throttle, admin-guide/numastat; of proc_pid_stat(5); and of
//! <https://docs.kernel.org/admin-guide/abi-stable.html> for counters of InfiniBand (words of 4 bytes). A file that is
//! absent, unreadable or other than documented has no reading.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::series::{GB, MILLI, RawReading, RawReadings};
use crate::spec::telemetry::MachineReading;
use crate::store::file::bounded;

/// Longest file that is read, in bytes: `/proc/stat` of some thousand processors is shorter.
const MOST_BYTES: u64 = 1 << 20;
/// Entries of a folder that are read, at most.
const MOST_ENTRIES: usize = 4096;
/// Processors whose frequency is read, at most: each reading may wake one.
const MOST_FREQUENCIES: usize = 16;
const KIB: f64 = 1024.0;
const SECTOR: f64 = 512.0;
/// Bytes of a word in the counters of InfiniBand.
const WORD: f64 = 4.0;
const MICRO: f64 = 1e-6;

/// The text of a file. A pipe in its place would never end.
pub(super) fn text_of(path: &Path) -> Option<String> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    bounded(File::open(path).ok()?, MOST_BYTES).ok()?
}

fn parsed(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

/// The number in a file.
pub(super) fn number_in(path: &Path) -> Option<f64> {
    parsed(&text_of(path)?)
}

/// Entries of a folder whose names are `prefix` and a number, by that number.
pub(super) fn numbered(folder: &Path, prefix: &str) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(MOST_ENTRIES).flatten();
    let of = |path: PathBuf| {
        let number = path.file_name()?.to_str()?.strip_prefix(prefix)?;
        let whole = number.bytes().all(|digit| digit.is_ascii_digit());
        Some((number.parse().ok().filter(|_| whole)?, path))
    };
    let mut found: Vec<(u64, PathBuf)> = entries.filter_map(|entry| of(entry.path())).collect();
    found.sort();
    found
}

/// Entries of a folder by their names.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(MOST_ENTRIES).flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// A file of one number.
struct NumberFile {
    kind: MachineReading,
    part: u64,
    path: PathBuf,
    /// Factor from the unit of the file to that of the reading, or to its growth per second.
    scale: f64,
    growth: NumberGrowth,
}

#[derive(Clone, Copy)]
enum NumberGrowth {
    Gauge,
    Counter,
    /// The value, in the unit of the file, after which the counter goes on from 0.
    Wrapping(f64),
}

impl NumberFile {
    fn read(&self) -> Option<RawReading> {
        let value = number_in(&self.path)? * self.scale;
        Some(match self.growth {
            NumberGrowth::Gauge => RawReading::Gauge(value),
            NumberGrowth::Counter => RawReading::Counter(value),
            NumberGrowth::Wrapping(range) => RawReading::Wrapping(value, range * self.scale),
        })
    }
}

/// The files of a machine that have readings.
pub(super) struct MachineFiles {
    root: PathBuf,
    numbers: Vec<NumberFile>,
}

/// Drivers of the temperature of processors, as hwmon names them; the first sensor is that of the package.
const PROCESSOR_SENSORS: [&str; 4] = ["coretemp", "k10temp", "zenpower", "cpu_thermal"];
/// Zones of energy by the beginning of their name. Zones within a package, and those of the whole system, are in others.
const ENERGY_ZONES: [(&str, MachineReading); 2] =
    [("package", MachineReading::ProcessorWatts), ("dram", MachineReading::MemoryWatts)];
/// Counters of the time for which heat slows a processor, ms.
const THROTTLES: [&str; 2] =
    ["thermal_throttle/package_throttle_total_time_ms", "thermal_throttle/core_throttle_total_time_ms"];

fn processors(root: &Path) -> Vec<NumberFile> {
    let all = numbered(&root.join("sys/devices/system/cpu"), "cpu");
    let every = all.len().div_ceil(MOST_FREQUENCIES).max(1);
    let files = all.into_iter().step_by(every).flat_map(|(cpu, folder)| {
        let frequency = NumberFile {
            kind: MachineReading::ProcessorMhz,
            part: cpu,
            path: folder.join("cpufreq/scaling_cur_freq"),
            scale: MILLI,
            growth: NumberGrowth::Gauge,
        };
        let throttles = THROTTLES.into_iter().enumerate().map(move |(place, name)| NumberFile {
            kind: MachineReading::ProcessorThrottled,
            part: cpu * THROTTLES.len() as u64 + place as u64,
            path: folder.join(name),
            scale: MILLI,
            growth: NumberGrowth::Counter,
        });
        [frequency].into_iter().chain(throttles)
    });
    files.collect()
}

fn temperatures(root: &Path) -> Vec<NumberFile> {
    let sensors = numbered(&root.join("sys/class/hwmon"), "hwmon").into_iter().filter(|(_, folder)| {
        text_of(&folder.join("name")).is_some_and(|name| PROCESSOR_SENSORS.contains(&name.trim()))
    });
    let of = |(part, folder): (u64, PathBuf)| NumberFile {
        kind: MachineReading::ProcessorCelsius,
        part,
        path: folder.join("temp1_input"),
        scale: MILLI,
        growth: NumberGrowth::Gauge,
    };
    sensors.map(of).collect()
}

/// Zones of Intel's RAPL, whose names AMD's have too. Other control types repeat them.
fn energies(root: &Path) -> Vec<NumberFile> {
    let powercap = root.join("sys/class/powercap");
    let packages = numbered(&powercap, "intel-rapl:");
    let within = packages.iter().map(|(package, _)| *package).flat_map(|package| {
        let zones = numbered(&powercap, &format!("intel-rapl:{package}:"));
        zones.into_iter().map(move |(zone, folder)| (package * 1000 + zone + 1000, folder))
    });
    let all: Vec<(u64, PathBuf)> = within.chain(packages.clone()).collect();
    let of = |(part, folder): (u64, PathBuf)| {
        let name = text_of(&folder.join("name"))?;
        let (_, kind) = ENERGY_ZONES.into_iter().find(|(beginning, _)| name.starts_with(beginning))?;
        let range = number_in(&folder.join("max_energy_range_uj"))?;
        let growth = NumberGrowth::Wrapping(range);
        Some(NumberFile { kind, part, path: folder.join("energy_uj"), scale: MICRO, growth })
    };
    all.into_iter().filter_map(of).collect()
}

/// Counters of a port of InfiniBand or RoCE: remote memory access, which no network adapter counts, among its data.
const PORT_COUNTERS: [(&str, MachineReading); 2] = [
    ("counters/port_rcv_data", MachineReading::InfinibandReceivedBytesS),
    ("counters/port_xmit_data", MachineReading::InfinibandSentBytesS),
];

fn infiniband(root: &Path) -> Vec<NumberFile> {
    let adapters = entries(&root.join("sys/class/infiniband"));
    let ports = adapters.into_iter().flat_map(|adapter| entries(&adapter.join("ports")));
    let of = |(part, port): (u64, PathBuf)| {
        PORT_COUNTERS.map(|(name, kind)| NumberFile {
            kind,
            part,
            path: port.join(name),
            scale: WORD,
            growth: NumberGrowth::Counter,
        })
    };
    (0..).zip(ports).flat_map(of).collect()
}

impl MachineFiles {
    /// Those of the machine whose files are below `root`.
    pub(super) fn find(root: &Path) -> MachineFiles {
        let kinds: [fn(&Path) -> Vec<NumberFile>; 4] = [processors, temperatures, energies, infiniband];
        let numbers = kinds.into_iter().flat_map(|of| of(root));
        // A file that cannot be read now, for want of rights, cannot be later.
        let numbers = numbers.filter(|file| file.read().is_some()).collect();
        MachineFiles { root: root.to_owned(), numbers }
    }

    /// Whether the power of the processors can be read.
    pub(super) fn has_power(&self) -> bool {
        self.numbers.iter().any(|file| file.kind == MachineReading::ProcessorWatts)
    }

    pub(super) fn read(&self) -> RawReadings<MachineReading> {
        let numbers = self.numbers.iter();
        let mut found: RawReadings<MachineReading> =
            numbers.filter_map(|file| Some((file.kind, file.part, file.read()?))).collect();
        let tables: [fn(&MachineFiles, &mut RawReadings<MachineReading>) -> Option<()>; 7] = [
            MachineFiles::uses,
            MachineFiles::memory,
            MachineFiles::swapped,
            MachineFiles::stalled,
            MachineFiles::disks,
            MachineFiles::network,
            MachineFiles::remote_memory,
        ];
        for table in tables {
            let _ = table(self, &mut found);
        }
        found
    }

    fn text(&self, path: &str) -> Option<String> {
        text_of(&self.root.join(path))
    }

    /// Times of the processors, and of this process in the same unit.
    fn uses(&self, found: &mut RawReadings<MachineReading>) -> Option<()> {
        let text = self.text("proc/stat")?;
        let mut whole = None;
        for line in text.lines().filter(|line| line.starts_with("cpu")) {
            let (name, times) = line.split_once(' ')?;
            // Times of guests are in those of users.
            let times: Vec<f64> = times.split_whitespace().take(8).map_while(parsed).collect();
            let [_, _, _, idle, waiting, ..] = times[..] else { continue };
            let all: f64 = times.iter().sum();
            let use_of = RawReading::Share(all - idle - waiting, all);
            match name["cpu".len()..].parse() {
                Ok(cpu) => found.push((MachineReading::BusiestProcessorUse, cpu, use_of)),
                Err(_) => {
                    whole = Some(all);
                    found.push((MachineReading::ProcessorUse, 0, use_of));
                }
            }
        }
        let own = self.text("proc/self/stat")?;
        // The name of the program may have any character.
        let fields: Vec<&str> = own[own.rfind(')')? + 1..].split_whitespace().collect();
        let [user, system] = [11, 12].map(|place: usize| parsed(fields.get(place)?));
        found.push((MachineReading::ClientUse, 0, RawReading::Share(user? + system?, whole?)));
        Some(())
    }

    fn memory(&self, found: &mut RawReadings<MachineReading>) -> Option<()> {
        let text = self.text("proc/meminfo")?;
        let of = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            parsed(lines.find(|(key, _)| *key == name)?.1.trim().strip_suffix("kB")?)
        };
        for (kind, whole, rest) in [
            (MachineReading::MemoryUsedGb, "MemTotal", "MemAvailable"),
            (MachineReading::SwapUsedGb, "SwapTotal", "SwapFree"),
        ] {
            let used = of(whole).zip(of(rest)).map(|(whole, rest)| (whole - rest).max(0.0) * KIB / GB);
            found.extend(used.map(|used| (kind, 0, RawReading::Gauge(used))));
        }
        Some(())
    }

    fn swapped(&self, found: &mut RawReadings<MachineReading>) -> Option<()> {
        let text = self.text("proc/vmstat")?;
        for (part, name) in ["pswpin ", "pswpout "].into_iter().enumerate() {
            let pages = parsed(text.lines().find_map(|line| line.strip_prefix(name))?)?;
            found.push((MachineReading::SwappedPagesS, part as u64, RawReading::Counter(pages)));
        }
        Some(())
    }

    fn stalled(&self, found: &mut RawReadings<MachineReading>) -> Option<()> {
        let text = self.text("proc/pressure/memory")?;
        let line = text.lines().find(|line| line.starts_with("some "))?;
        let total = line.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
        found.push((MachineReading::MemoryStalled, 0, RawReading::Counter(parsed(total)? * MICRO)));
        Some(())
    }

    /// Whether hardware is behind a disk or a network adapter: others are on top of these.
    fn has_hardware(&self, folder: &str, name: &str) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.!".contains(c);
        let named = !name.starts_with('.') && name.chars().all(plain);
        named && self.root.join(folder).join(name).join("device").exists()
    }

    fn disks(&self, found: &mut RawReadings<MachineReading>) -> Option<()> {
        let text = self.text("proc/diskstats")?;
        for (part, line) in text.lines().enumerate().take(MOST_ENTRIES) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, _, name, _, _, read, _, _, _, written, ..] = fields[..] else { continue };
            if self.has_hardware("sys/block", name) {
                let kinds = [MachineReading::DiskReadBytesS, MachineReading::DiskWrittenBytesS];
                let sectors = [read, written].map(parsed);
                let both =
                    kinds.into_iter().zip(sectors).filter_map(|(kind, sectors)| Some((kind, sectors?)));
                found.extend(both.map(|(kind, all)| (kind, part as u64, RawReading::Counter(all * SECTOR))));
            }
        }
        Some(())
    }

    fn network(&self, found: &mut RawReadings<MachineReading>) -> Option<()> {
        let text = self.text("proc/net/dev")?;
        for (part, line) in text.lines().enumerate().take(MOST_ENTRIES) {
            let Some((name, counts)) = line.split_once(':') else { continue };
            let counts: Vec<&str> = counts.split_whitespace().collect();
            let [received, _, _, _, _, _, _, _, sent, ..] = counts[..] else { continue };
            if self.has_hardware("sys/class/net", name.trim()) {
                let kinds = [MachineReading::NetworkReceivedBytesS, MachineReading::NetworkSentBytesS];
                let bytes = [received, sent].map(parsed);
                let both = kinds.into_iter().zip(bytes).filter_map(|(kind, bytes)| Some((kind, bytes?)));
                found.extend(both.map(|(kind, all)| (kind, part as u64, RawReading::Counter(all))));
            }
        }
        Some(())
    }

    /// Pages that nodes gave to processors of others: one in the table of each node.
    fn remote_memory(&self, found: &mut RawReadings<MachineReading>) -> Option<()> {
        let nodes = numbered(&self.root.join("sys/devices/system/node"), "node");
        // With one node, no memory is remote.
        for (part, node) in nodes.iter().filter(|_| nodes.len() > 1) {
            let text = text_of(&node.join("numastat"))?;
            let pages = parsed(text.lines().find_map(|line| line.strip_prefix("other_node "))?)?;
            found.push((MachineReading::RemotePagesS, *part, RawReading::Counter(pages)));
        }
        Some(())
    }
}
