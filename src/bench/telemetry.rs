//! Readings of this machine during a run, by a thread of its own: the client of the measurement does not wait for it.
//!
//! Only counters and gauges of hardware are read: no name of a host, no serial number, no UUID. On systems other than
//! Linux nothing is read.

#[cfg(target_os = "linux")]
mod amd;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod nvidia;
mod series;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
pub(super) use linux::MachineSource;
use series::{RawReadings, TimeSpan, between, summarised};

use crate::spec::telemetry::{
    GpuReading, GpuTelemetry, MachineReading, ReadingKind, ReadingSummary, RunTelemetry,
};

/// The readings to take, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct TelemetrySettings {
    /// Time between two samples; none are taken at zero.
    pub every: Duration,
    /// The folder that has `proc` and `sys`.
    pub root: PathBuf,
    /// The library of NVML.
    pub nvml: PathBuf,
}

/// Seconds between two samples, where nothing is stated.
pub const SAMPLE_EVERY_S: f64 = 1.0;
/// The library of NVML as the driver installs it.
const NVML: &str = "libnvidia-ml.so.1";

impl Default for TelemetrySettings {
    fn default() -> TelemetrySettings {
        TelemetrySettings {
            every: Duration::from_secs_f64(SAMPLE_EVERY_S),
            root: PathBuf::from("/"),
            nvml: PathBuf::from(NVML),
        }
    }
}

/// The source of readings; none on this system.
#[cfg(not(target_os = "linux"))]
pub(super) struct MachineSource {}

#[cfg(not(target_os = "linux"))]
use crate::spec::telemetry::ReportingMachine;

#[cfg(not(target_os = "linux"))]
impl MachineSource {
    pub(super) fn open(_: &TelemetrySettings, _: ReportingMachine) -> (Option<MachineSource>, Vec<String>) {
        (None, vec![format!("no telemetry: it is not read on {}", std::env::consts::OS)])
    }

    fn machine(&self) -> ReportingMachine {
        ReportingMachine::Client
    }

    fn names(&self) -> Vec<Option<String>> {
        vec![]
    }

    fn read(&self) -> MachineSample {
        MachineSample::default()
    }
}

/// One sample.
#[derive(Default)]
struct MachineSample {
    machine: RawReadings<MachineReading>,
    gpus: Vec<RawReadings<GpuReading>>,
}

/// Values of readings between samples.
type ReadingSeries<K> = BTreeMap<K, Vec<(TimeSpan, f64)>>;

/// The samples of a run. Times are seconds from the first one.
struct SampledRun {
    begun: Instant,
    machine: ReadingSeries<MachineReading>,
    gpus: Vec<ReadingSeries<GpuReading>>,
    /// When each sample began, and how long it took.
    taken: Vec<(f64, f64)>,
}

fn extend<K: ReadingKind>(series: &mut ReadingSeries<K>, span: TimeSpan, values: Vec<(K, f64)>) {
    values.into_iter().for_each(|(kind, value)| series.entry(kind).or_default().push((span, value)));
}

fn over<K: ReadingKind>(
    series: &ReadingSeries<K>,
    window: TimeSpan,
) -> impl Iterator<Item = (K, ReadingSummary)> {
    series.iter().filter_map(move |(kind, values)| Some((*kind, summarised(values, window)?)))
}

/// Samples that are taken until they are stopped.
pub(super) struct Sampler {
    source: Arc<MachineSource>,
    every: Duration,
    stop: Sender<()>,
    thread: JoinHandle<SampledRun>,
}

impl Sampler {
    /// Takes the first sample now; `None` where the system starts no thread.
    pub(super) fn start(source: Arc<MachineSource>, every: Duration) -> Option<Sampler> {
        let (stop, stopped) = channel();
        let read = source.clone();
        let work = move || sampled(&read, |wait| stopped.recv_timeout(wait), every);
        let thread = Builder::new().name("telemetry".to_owned()).spawn(work).ok()?;
        Some(Sampler { source, every, stop, thread })
    }

    /// The readings from `part` of a run that began at `run`, in seconds from there; `None` where nothing was read.
    pub(super) fn stop(self, run: Instant, part: TimeSpan) -> Option<RunTelemetry> {
        // The thread may have ended.
        let _ = self.stop.send(());
        let found = self.thread.join().ok()?;
        let from = run.saturating_duration_since(found.begun).as_secs_f64();
        let late = found.begun.saturating_duration_since(run).as_secs_f64();
        let window = (part.0 + from - late, part.1 + from - late);
        let within = || found.taken.iter().filter(|(at, _)| (window.0..=window.1).contains(at));
        let lasted = window.1 - window.0;
        let gpus = self.source.names().into_iter().zip(&found.gpus);
        let telemetry = RunTelemetry {
            machine: self.source.machine(),
            every_s: self.every.as_secs_f64(),
            samples: within().count() as u64,
            sampling_share: (within().map(|(_, took)| took).sum::<f64>() / lasted).min(1.0),
            readings: over(&found.machine, window).collect(),
            gpus: gpus
                .map(|(name, series)| GpuTelemetry { name, readings: over(series, window).collect() })
                .collect(),
            joules_per_token: None,
        };
        (lasted > 0.0 && over(&found.machine, window).next().is_some()).then_some(telemetry)
    }
}

/// Samples until `wait` is stopped, and one more then, so that the end of the run is between two.
fn sampled(
    source: &MachineSource,
    wait: impl Fn(Duration) -> Result<(), RecvTimeoutError>,
    every: Duration,
) -> SampledRun {
    let begun = Instant::now();
    let now_s = || begun.elapsed().as_secs_f64();
    let mut run = SampledRun { begun, machine: BTreeMap::new(), gpus: vec![], taken: vec![] };
    let (mut before, mut at, mut over) = (source.read(), 0.0, false);
    run.taken.push((at, now_s()));
    run.gpus.resize_with(before.gpus.len(), BTreeMap::new);
    while !over {
        let due = every.saturating_sub(Duration::from_secs_f64(now_s() - at));
        over = wait(due) != Err(RecvTimeoutError::Timeout);
        let next = now_s();
        let sample = source.read();
        run.taken.push((next, now_s() - next));
        let (span, seconds) = ((at, next), next - at);
        extend(&mut run.machine, span, between(&before.machine, &sample.machine, seconds));
        for (series, (earlier, later)) in run.gpus.iter_mut().zip(before.gpus.iter().zip(&sample.gpus)) {
            extend(series, span, between(earlier, later, seconds));
        }
        (before, at) = (sample, next);
    }
    run
}
