//! Readings during a run, of a machine whose files are in a temporary folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use mantile::bench::telemetry::TelemetrySettings;
use mantile::bench::{BenchSession, BenchSettings};
use mantile::report::telemetry::telemetry_lines;
use mantile::request::diagnose::{DiagnoseRequest, diagnose};
use mantile::request::runs::lines_of;
use mantile::spec::run::{RunRecord, RunRepeats};
use mantile::spec::telemetry::{ReadingSummary, ReportingMachine, RunTelemetry};

use super::*;

/// Writes a file of a machine.
fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const CARD: &str = "sys/class/drm/card1/device";

/// A machine with two processors, a disk, a network adapter and a GPU of AMD.
fn machine() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000\n"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3000000\n"),
        ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
        ("sys/class/hwmon/hwmon0/name", "nvme\n"),
        ("sys/class/hwmon/hwmon0/temp1_input", "99000\n"),
        ("sys/class/hwmon/hwmon1/name", "coretemp\n"),
        ("sys/class/hwmon/hwmon1/temp1_input", "65500\n"),
        ("sys/class/powercap/intel-rapl:0/name", "package-0\n"),
        ("sys/class/powercap/intel-rapl:0/energy_uj", "0\n"),
        // Of ten joules: it starts again every second.
        ("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "10000000\n"),
        ("sys/class/powercap/intel-rapl:0:0/name", "core\n"),
        ("sys/class/powercap/intel-rapl:0:0/energy_uj", "5\n"),
        ("sys/class/powercap/intel-rapl:0:0/max_energy_range_uj", "1000000\n"),
        (
            "proc/meminfo",
            "MemTotal: 64000000 kB\nMemAvailable: 14000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
        ),
        ("proc/vmstat", "pgfault 9\npswpin 5\npswpout 7\n"),
        ("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\n"),
        ("proc/diskstats", " 8 0 sda 1 0 800 0 1 0 80 0 0 0 0\n 7 0 loop0 1 0 900 0 1 0 90 0 0 0 0\n"),
        ("proc/net/dev", "Inter-| Receive\n lo: 9 0 0 0 0 0 0 0 9 0\neth0: 500 1 0 0 0 0 0 0 100 1\n"),
        ("sys/block/sda/device/model", "disk\n"),
        ("sys/class/net/eth0/device/vendor", "0x8086\n"),
        ("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "7\n"),
        ("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "7\n"),
        ("sys/devices/system/node/node0/numastat", "numa_hit 9\nlocal_node 9\nother_node 0\n"),
        ("sys/devices/system/node/node1/numastat", "numa_hit 9\nlocal_node 9\nother_node 0\n"),
    ];
    files.into_iter().for_each(|(path, text)| write(folder.path(), path, text));
    let gpu = [
        ("vendor", "0x1002\n"),
        ("product_name", "AMD Instinct MI210\n"),
        ("unique_id", "secret-number\n"),
        ("gpu_busy_percent", "60\n"),
        ("mem_info_vram_total", "64000000000\n"),
        ("mem_info_vram_used", "48000000000\n"),
        ("pp_dpm_sclk", "0: 500Mhz\n1: 1400Mhz *\n2: 1700Mhz\n"),
        ("current_link_speed", "32.0 GT/s PCIe\n"),
        ("current_link_width", "8\n"),
        ("max_link_width", "16\n"),
        ("hwmon/hwmon7/power1_average", "295000000\n"),
        ("hwmon/hwmon7/power1_cap", "300000000\n"),
        ("hwmon/hwmon7/temp2_input", "88000\n"),
    ];
    gpu.into_iter().for_each(|(path, text)| write(folder.path(), &[CARD, path].join("/"), text));
    times(folder.path(), 0);
    folder
}

/// Processors of which one is always in use, half of that by the client, after this many hundredths of a second.
fn times(root: &Path, hundredths: u64) {
    let (all, quarter) = (hundredths, hundredths / 4);
    let text = format!(
        "cpu  {all} 0 0 {all} 0 0 0 0 0 0\ncpu0 {all} 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 {all} 0 0 0 0 0 0\nintr 1\n"
    );
    replace(root, "proc/stat", &text);
    let own = format!("7 (a ) name) S 1 1 1 0 -1 4194304 1 0 0 0 {quarter} {quarter} 0 0 20 0 1 0 1 1 1");
    replace(root, "proc/self/stat", &own);
}

/// A file whose readers see the old text or the new one.
fn replace(root: &Path, path: &str, text: &str) {
    write(root, &[path, ".new"].concat(), text);
    fs::rename(root.join([path, ".new"].concat()), root.join(path)).unwrap();
}

/// A run whose machine is the one in `root`, with ten watts while `work` goes on.
fn run_on(root: &Path, settings: BenchSettings, point: &LoadPoint) -> RunRecord {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let begun = Instant::now();
            while !over.load(SeqCst) {
                let lasted = begun.elapsed().as_secs_f64();
                let energy = (lasted * 10.0 * 1e6) as u64 % 10_000_000;
                replace(root, "sys/class/powercap/intel-rapl:0/energy_uj", &energy.to_string());
                times(root, (lasted * 100.0) as u64);
                let words = ((lasted * 250e6) as u64).to_string();
                replace(root, "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", &words);
                let pages = format!("numa_hit 9\nother_node {}\n", (lasted * 1000.0) as u64);
                replace(root, "sys/devices/system/node/node1/numastat", &pages);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let run = measured(settings, point);
        over.store(true, SeqCst);
        run
    })
}

fn on(root: &Path, address: SocketAddr) -> BenchSettings {
    let (every, nvml) = (Duration::from_millis(40), PathBuf::from("no-such-library.so"));
    let telemetry = TelemetrySettings { every, root: root.to_owned(), nvml };
    BenchSettings { requests: Some(20), telemetry, ..settings(address) }
}

const POINT: LoadPoint = LoadPoint { isl: 100, osl: 4, load: PointLoad::Clients(2) };

fn is_near(found: Option<ReadingSummary>, expected: f64, share: f64) {
    let found = found.unwrap();
    assert!((found.mean / expected - 1.0).abs() <= share, "{found:?}, not {expected}");
}

#[test]
fn the_machine_of_a_server_is_read_while_it_is_measured() {
    let folder = machine();
    let (_, address) = ScriptedServer::start(slow);
    let run = run_on(folder.path(), on(folder.path(), address), &POINT);
    let line = serde_json::to_string(&run).unwrap();
    assert_eq!(serde_json::from_str::<RunRecord>(&line).unwrap(), run);
    assert!(!line.contains("secret-number"), "{line}");
    let found = run.telemetry.clone().unwrap();
    assert_eq!((found.machine, found.every_s), (ReportingMachine::Server, 0.04));
    // Twenty requests of two clients take 2.4 s.
    assert!((20..=65).contains(&found.samples) && found.sampling_share < 0.5, "{found:?}");
    let readings = &found.readings;
    is_near(readings.processor_mhz, 2500.0, 1e-9);
    is_near(readings.processor_celsius, 65.5, 1e-9);
    is_near(readings.memory_used_gb, 51.2, 1e-9);
    is_near(readings.processor_use, 0.5, 0.1);
    is_near(readings.busiest_processor_use, 1.0, 0.1);
    is_near(readings.client_use, 0.25, 0.2);
    is_near(readings.processor_watts, 10.0, 0.2);
    assert!(readings.memory_watts.is_none() && readings.processor_throttled.is_none());
    let none = ReadingSummary::default();
    assert_eq!((readings.disk_read_bytes_s, readings.network_sent_bytes_s), (Some(none), Some(none)));
    is_near(readings.infiniband_sent_bytes_s, 1e9, 0.2);
    assert_eq!(readings.infiniband_received_bytes_s, Some(none));
    is_near(readings.remote_pages_s, 1000.0, 0.2);
    let [gpu] = &found.gpus[..] else { panic!("{found:?}") };
    is_near(gpu.readings.pcie_generation, 5.0, 1e-9);
    is_near(gpu.readings.pcie_lanes, 8.0, 1e-9);
    is_near(gpu.readings.pcie_lanes_limit, 16.0, 1e-9);
    assert_eq!(gpu.name.as_deref(), Some("AMD Instinct MI210"));
    is_near(gpu.readings.in_use, 0.6, 1e-9);
    is_near(gpu.readings.memory_used_gb, 48.0, 1e-9);
    is_near(gpu.readings.clock_mhz, 1400.0, 1e-9);
    is_near(gpu.readings.clock_limit_mhz, 1700.0, 1e-9);
    is_near(gpu.readings.watts, 295.0, 1e-9);
    is_near(gpu.readings.power_capped, 1.0, 1e-9);
    is_near(gpu.readings.celsius, 88.0, 1e-9);
    let joules = found.joules_per_token.unwrap() * run.metrics.decode_toks_sec.unwrap();
    assert!((joules / 295.0 - 1.0).abs() < 1e-9, "{joules} W");
    let text = telemetry_lines(&run);
    assert!(text.contains("1 x AMD Instinct MI210, each: 60 % in use"), "{text}");
    assert!(text.contains("PCIe 5.0 x8 of x16") && text.contains("pages/s of remote memory"), "{text}");
}

#[test]
fn nothing_is_read_where_none_is_wanted_or_there() {
    let (_, address) = ScriptedServer::start(quick);
    let folder = tempfile::tempdir().unwrap();
    let settings = on(folder.path(), address);
    let session = BenchSession::begin(settings.clone()).unwrap();
    let notes = session.notes().join("\n");
    assert!(notes.contains("no telemetry of GPUs") && notes.contains("RAPL"), "{notes}");
    assert_eq!(measured(settings.clone(), &POINT).telemetry, None);
    let every = Duration::ZERO;
    let telemetry = TelemetrySettings { every, root: machine().path().to_owned(), ..settings.telemetry };
    assert_eq!(measured(BenchSettings { telemetry, ..on(folder.path(), address) }, &POINT).telemetry, None);
}

/// Files that are too long, no numbers, folders or pipes end in readings that are absent, or in finite ones.
#[test]
fn a_hostile_machine_ends_in_a_record() {
    let (_, address) = ScriptedServer::start(quick);
    let folder = machine();
    let mut paths = vec![];
    let mut folders = vec![folder.path().to_owned()];
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { folders.push(path) } else { paths.push(path) }
        }
    }
    paths.sort();
    let long = "9".repeat(1 << 21);
    let texts = ["", "nan", "-1", "1e308", "18446744073709551616", &long, "\u{0}\u{ffff}", "cpu 1e308 1e308"];
    for first in 0..texts.len() {
        for (place, path) in paths.iter().enumerate() {
            fs::write(path, texts[(first + place) % texts.len()]).unwrap();
        }
        for (path, text) in [
            ("proc/stat", "cpu 1e308 1e308 1e308 1e308 1e308\ncpu99999999999999999999 1 1 1 1 1\ncpu\n"),
            ("proc/diskstats", "1 1 ../../../x 1 1 1 1 1 1 1 1\n1 1 sda 1 1 1e308 1 1 1 1e308\n"),
            ("proc/net/dev", ":::::\neth0: 1e308 1 1 1 1 1 1 1 1e308\n..: 1 1 1 1 1 1 1 1 1\n"),
            ("proc/self/stat", ") ) )"),
        ] {
            write(folder.path(), path, text);
        }
        let line = serde_json::to_string(&measured(on(folder.path(), address), &POINT)).unwrap();
        serde_json::from_str::<RunRecord>(&line).unwrap();
    }
    // A pipe without a writer would keep its reader, a folder has no text.
    let pipe = folder.path().join("proc/meminfo");
    fs::remove_file(&pipe).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::remove_file(folder.path().join("proc/vmstat")).unwrap();
    fs::create_dir(folder.path().join("proc/vmstat")).unwrap();
    let run = measured(on(folder.path(), address), &POINT);
    assert_eq!(run.outcome, RunOutcome::Measured);
}

/// A driver of two GPUs, of which one serves: at 300 W by its counter of energy, a quarter of the time at its limit.
const DRIVER: &str = r#"
#include <time.h>
#include <string.h>
typedef unsigned int u; typedef unsigned long long ull;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *text, u size) { strncpy(text, "550.120", size); return 0; }
int nvmlDeviceGetCount_v2(u *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(u index, void **device) { *device = (void *)(ull)(index + 1); return 0; }
static int serves(void *device) { return device == (void *)2; }
int nvmlDeviceGetName(void *device, char *text, u size) { strncpy(text, "NVIDIA L40S", size); return 0; }
int nvmlDeviceGetUtilizationRates(void *device, u *rates) { rates[0] = serves(device) ? 80 : 0; rates[1] = 5; return 0; }
struct memory { u version; ull total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *m) { m->used = 40000000000ULL; return 0; }
int nvmlDeviceGetClockInfo(void *device, u type, u *mhz) { *mhz = type == 1 ? 1500 : 9001; return 0; }
int nvmlDeviceGetMaxClockInfo(void *device, u type, u *mhz) { *mhz = 2520; return 0; }
int nvmlDeviceGetTemperature(void *device, u sensor, u *celsius) { *celsius = 71; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *device, u *mw) { *mw = 350000; return 0; }
int nvmlDeviceGetPowerUsage(void *device, u *mw) { *mw = 1; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *device, ull *mj) { *mj = now() * (serves(device) ? 300e3 : 20e3); return 0; }
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, u *found) { *found = 4; return 0; }
int nvmlDeviceGetCurrPcieLinkWidth(void *device, u *found) { *found = 8; return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(void *device, u *found) { *found = 16; return 0; }
struct field { u id, scope; long long at, took; u type, fault; ull value; };
int nvmlDeviceGetFieldValues(void *device, int count, struct field *all) {
    for (int i = 0; i < count; i++) { all[i].type = 3; all[i].fault = 0; all[i].value = now() * (all[i].id == 197 ? 2e9 : 5e8); }
    return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, ull *reasons) {
    static int calls;
    *reasons = serves(device) && calls++ % 4 == 0 ? 0x4 : 0x1;
    return 0;
}
"#;

#[test]
fn gpus_of_nvidia_are_read_by_the_library_of_their_driver() {
    let folder = machine();
    fs::remove_dir_all(folder.path().join("sys/class/drm")).unwrap();
    fs::write(folder.path().join("driver.c"), DRIVER).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o", "driver.so", "driver.c"]).current_dir(folder.path());
    assert!(compiler.status().unwrap().success());
    let (_, address) = ScriptedServer::start(slow);
    let settings = on(folder.path(), address);
    let nvml = folder.path().join("driver.so");
    let telemetry = TelemetrySettings { nvml, ..settings.telemetry.clone() };
    let run = measured(BenchSettings { telemetry, ..settings }, &POINT);
    let found = run.telemetry.unwrap();
    assert_eq!(found.gpus.len(), 2);
    let serving = found.serving_gpus(Some(1));
    let [gpu] = serving[..] else { panic!("{found:?}") };
    assert_eq!(gpu.name.as_deref(), Some("NVIDIA L40S"));
    is_near(gpu.readings.in_use, 0.8, 1e-9);
    is_near(gpu.readings.memory_used_gb, 40.0, 1e-9);
    is_near(gpu.readings.clock_mhz, 1500.0, 1e-9);
    is_near(gpu.readings.clock_limit_mhz, 2520.0, 1e-9);
    is_near(gpu.readings.memory_clock_mhz, 9001.0, 1e-9);
    is_near(gpu.readings.celsius, 71.0, 1e-9);
    is_near(gpu.readings.watts, 300.0, 0.05);
    is_near(gpu.readings.watts_limit, 350.0, 1e-9);
    is_near(gpu.readings.pcie_sent_bytes_s, 2e9, 0.05);
    is_near(gpu.readings.pcie_received_bytes_s, 5e8, 0.05);
    is_near(gpu.readings.pcie_generation, 4.0, 1e-9);
    is_near(gpu.readings.pcie_lanes_limit, 16.0, 1e-9);
    is_near(gpu.readings.power_capped, 0.25, 0.3);
    assert_eq!(gpu.readings.throttled, Some(ReadingSummary::default()));
    let joules = found.joules_per_token.unwrap() * run.metrics.decode_toks_sec.unwrap();
    assert!((joules / 300.0 - 1.0).abs() < 0.05, "{joules} W");
}

/// The answer of `diagnose` about a run with these readings at 60 ms a token.
fn diagnosed_with(telemetry: RunTelemetry, tpot_ms: f64) -> mantile::Diagnosis {
    let mut run = RunRecord {
        run_id: "a".to_owned(),
        model_id: "Llama-3.1-8B".to_owned(),
        runtime_id: "vllm".to_owned(),
        hardware_id: Some("nvidia-h100-sxm".to_owned()),
        devices: Some(1),
        context_tokens: 64,
        output_tokens: 16,
        concurrency: Some(2),
        repeats: Some(RunRepeats { stable: true, ..RunRepeats::default() }),
        telemetry: Some(telemetry),
        ..RunRecord::default()
    };
    run.metrics.tpot_ms_p50 = Some(tpot_ms);
    let deployment = Deployment { plan: Some("1 x tp1 @2".to_owned()), ..Deployment::default() };
    let scenario = Scenario { deployment: Some(deployment), ..Scenario::default() };
    let table = MeasuredTable { name: "runs.jsonl".to_owned(), csv: lines_of(&[run]) };
    let request = DiagnoseRequest { scenario, run: Some(table), ..DiagnoseRequest::default() };
    diagnose(catalog(), &request, &UNCONTROLLED).unwrap()
}

#[test]
fn causes_are_listed_only_of_a_slow_server() {
    let folder = machine();
    let (_, address) = ScriptedServer::start(quick);
    let telemetry = run_on(folder.path(), on(folder.path(), address), &POINT).telemetry.unwrap();
    let slow = diagnosed_with(telemetry.clone(), 60.0);
    let causes: Vec<String> = slow.causes.iter().map(|one| one.text()).collect();
    assert!(causes[0].contains("limit of its power") && causes[1].contains("run nothing"), "{causes:?}");
    assert!(slow.text().contains("Check: `nvidia-smi -q -d POWER`"), "{}", slow.text());
    let predicted = slow.metrics[0].predicted;
    let as_predicted = diagnosed_with(telemetry.clone(), predicted);
    assert!(as_predicted.causes.is_empty() && !as_predicted.text().contains("Causes"));
    let fast = diagnosed_with(telemetry, predicted * 0.6);
    assert!(fast.causes.is_empty(), "{:?}", fast.causes);
}

#[test]
fn the_command_shows_the_readings() {
    let (_, address) = ScriptedServer::start(slow);
    let endpoint = format!("http://{address}");
    let command = |every: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
        command.args(["bench", "--endpoint", &endpoint, "--isl", "64", "--osl", "4", "--requests", "10"]);
        let found = command.args(["--telemetry-every", every]).output().unwrap();
        assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
        String::from_utf8(found.stdout).unwrap()
    };
    let text = command("0.1");
    assert_eq!(text.contains("\nmachine: processors "), cfg!(target_os = "linux"), "{text}");
    assert!(!command("0").contains("machine"));
}
