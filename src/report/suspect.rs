//! Causes of a slow server that the readings of its machine show, each with the check that would confirm it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number::{digits, percent};
use crate::spec::run::{MOST_VARIATION, RunRecord};
use crate::spec::telemetry::{GpuReadings, GpuTelemetry, ReadingSummary, ReportingMachine, RunTelemetry};

/// A cause of a slow server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GapCause {
    /// Heat or the supply slows a GPU.
    GpuThrottled,
    /// A GPU is at the limit of its power.
    GpuPowerCapped,
    /// GPUs run nothing although requests are in the system: the host is the limit.
    GpuIdle,
    /// Heat slows a processor.
    ProcessorThrottled,
    /// Tasks wait for memory.
    MemoryShort,
    /// The client takes the time of saturated processors.
    ClientSaturates,
    /// The link of a GPU has fewer lanes than the GPU can use, and devices send to each other.
    FewLanes,
}

/// A cause that the readings of a run show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuspectCause {
    /// The cause.
    pub cause: GapCause,
    /// Share of the measured time that it had; null where only its presence is known.
    pub share: Option<f64>,
    /// The readings, in words.
    pub words: String,
    /// The check that would confirm it.
    pub check: String,
}

/// Use of all processors from which a task waits for others: nine of them on average before one server with random
/// arrivals (Kleinrock, Queueing Systems I, 3.2).
const SATURATED: f64 = 0.9;

/// A run with the readings of its machine.
struct ReadRun<'a> {
    run: &'a RunRecord,
    found: &'a RunTelemetry,
    gpus: Vec<&'a GpuTelemetry>,
}

/// A cause with the share of the time that it had and what was read; `None` where nothing shows it.
type ReadCause = Option<(Option<f64>, String)>;

struct CauseEntry {
    cause: GapCause,
    read: fn(&ReadRun<'_>) -> ReadCause,
    check: &'static str,
}

const CAUSES: [CauseEntry; 7] = [
    CauseEntry {
        cause: GapCause::GpuThrottled,
        read: |run| run.worst(|gpu| gpu.throttled, "heat or the supply slows a GPU"),
        check: "`nvidia-smi -q -d PERFORMANCE,TEMPERATURE` during a run lists an active slowdown; cool it, and \
                measure again",
    },
    CauseEntry {
        cause: GapCause::GpuPowerCapped,
        read: |run| run.worst(|gpu| gpu.power_capped, "a GPU is at the limit of its power"),
        check: "`nvidia-smi -q -d POWER` or `amd-smi metric --power` during a run; raise the limit, where it is below \
                the default, and measure again",
    },
    CauseEntry {
        cause: GapCause::GpuIdle,
        read: |run| run.idle(),
        check: "`top -H` during a run shows a thread of the server near 100 %: the host is the limit; try its graphs, \
                and fewer processes next to it",
    },
    CauseEntry {
        cause: GapCause::ProcessorThrottled,
        read: |run| {
            let found = run.of_server()?.readings.processor_throttled?;
            let hottest = run.found.readings.processor_celsius;
            let hottest = hottest.map(|found| format!(", at up to {} °C", digits(found.max)));
            let words = ["heat slows a processor", &hottest.unwrap_or_default()].concat();
            Some((Some(found.mean), words))
        },
        check: "the counters in /sys/devices/system/cpu/cpu0/thermal_throttle grow during a run; cool it, and measure \
                again",
    },
    CauseEntry {
        cause: GapCause::MemoryShort,
        read: |run| run.short(),
        check: "`vmstat 1` during a run: si and so stay above 0; end other processes, or serve with less memory",
    },
    CauseEntry {
        cause: GapCause::ClientSaturates,
        read: |run| run.saturated(),
        check: "measure with the client on another machine",
    },
    CauseEntry {
        cause: GapCause::FewLanes,
        read: |run| run.few_lanes(),
        check: "`nvidia-smi -q` lists the link width under `GPU Link Info`; where the devices have no other link, use a slot \
                with all lanes, or state its bandwidth with --set device.host_link.bandwidth",
    },
];

impl ReadRun<'_> {
    /// The readings, where they are those of the machine of the server.
    fn of_server(&self) -> Option<&RunTelemetry> {
        Some(self.found).filter(|found| found.machine == ReportingMachine::Server)
    }

    /// The GPU with the greatest share of a state, with its clock and its power.
    fn worst(&self, of: fn(&GpuReadings) -> Option<ReadingSummary>, words: &str) -> ReadCause {
        let shares = self.gpus.iter().filter_map(|gpu| Some((of(&gpu.readings)?.mean, *gpu)));
        let (share, gpu) = shares.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let gpu = &gpu.readings;
        let within = |now: Option<ReadingSummary>, limit: Option<ReadingSummary>, unit: &str| {
            let (now, limit) = (digits(now?.mean), digits(limit?.max));
            Some([", at ", &now, " of ", &limit, " ", unit].concat())
        };
        let clock = within(gpu.clock_mhz, gpu.clock_limit_mhz, "MHz").unwrap_or_default();
        let power = within(gpu.watts, gpu.watts_limit, "W").unwrap_or_default();
        Some((Some(share), [words, &clock, &power].concat()))
    }

    fn idle(&self) -> ReadCause {
        let clients = self.run.concurrency.map(|clients| clients as f64);
        // With less than one request in the system, GPUs have nothing to run.
        self.run.metrics.mean_concurrency.or(clients).filter(|requests| *requests >= 1.0)?;
        let uses: Vec<f64> = self.gpus.iter().filter_map(|gpu| Some(gpu.readings.in_use?.mean)).collect();
        let mean = uses.iter().sum::<f64>() / uses.len() as f64;
        let busiest = self.found.readings.busiest_processor_use;
        let busiest =
            busiest.map(|found| format!(", the busiest processor is {} in use", percent(found.mean)));
        let words = ["the GPUs run nothing while requests are in the system", &busiest.unwrap_or_default()];
        mean.is_finite().then(|| (Some(1.0 - mean), words.concat()))
    }

    fn short(&self) -> ReadCause {
        let readings = &self.of_server()?.readings;
        let pages = readings.swapped_pages_s;
        let swapped = pages.map(|pages| format!(", {} pages/s are swapped", digits(pages.mean)));
        match readings.memory_stalled {
            Some(stalled) => {
                let words = ["tasks wait for memory", &swapped.unwrap_or_default()].concat();
                Some((Some(stalled.mean), words))
            }
            // Half of the samples and more: not the start of another program.
            None => pages
                .filter(|pages| pages.p50 > 0.0)
                .map(|pages| (None, format!("{} pages/s are swapped", digits(pages.mean)))),
        }
    }

    fn saturated(&self) -> ReadCause {
        let readings = &self.found.readings;
        let used = readings.processor_use?.mean;
        let client = readings.client_use?.mean;
        let words = format!("the processors are {} in use, a part of it by the client", percent(used));
        (used >= SATURATED).then_some((Some(client), words))
    }

    fn few_lanes(&self) -> ReadCause {
        self.run.devices.filter(|devices| *devices > 1)?;
        let links = self.gpus.iter().filter_map(|gpu| {
            let (now, most) = (gpu.readings.pcie_lanes?.max, gpu.readings.pcie_lanes_limit?.max);
            (now < most).then_some((now, most))
        });
        let (now, most) = links.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some((None, format!("the PCIe link of a GPU has {now} of {most} lanes")))
    }
}

/// The causes that the readings of a run show, that with the largest share of the time first.
pub(super) fn suspect_causes(run: &RunRecord) -> Vec<SuspectCause> {
    let Some(found) = &run.telemetry else { return vec![] };
    let gpus = found.serving_gpus(run.devices);
    let read = ReadRun { run, found, gpus };
    let of = |entry: &CauseEntry| {
        let (share, words) = (entry.read)(&read)?;
        // Repeats of a stable run differ by as much.
        let shown = share.is_none_or(|share| share >= MOST_VARIATION);
        let check = entry.check.to_owned();
        shown.then_some(SuspectCause { cause: entry.cause, share, words, check })
    };
    let mut causes: Vec<SuspectCause> = CAUSES.iter().filter_map(of).collect();
    causes.sort_by(|a, b| b.share.unwrap_or(0.0).total_cmp(&a.share.unwrap_or(0.0)));
    causes
}

impl SuspectCause {
    /// The cause in a line.
    pub fn text(&self) -> String {
        let share = self.share.map(|share| format!(" ({} of the time)", percent(share)));
        format!("  {}{}. Check: {}\n", self.words, share.unwrap_or_default(), self.check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::telemetry::{GpuReading, MachineReading, MachineReadings};

    fn of(mean: f64) -> ReadingSummary {
        ReadingSummary { mean, p50: mean, min: mean, max: mean }
    }

    fn run(machine: &[(MachineReading, f64)], gpu: &[(GpuReading, f64)]) -> RunRecord {
        let readings: MachineReadings = machine.iter().map(|(kind, mean)| (*kind, of(*mean))).collect();
        let of_gpu = |all: &[(GpuReading, f64)]| GpuTelemetry {
            name: None,
            readings: all.iter().map(|(kind, mean)| (*kind, of(*mean))).collect(),
        };
        // The second GPU does not serve.
        let gpus = vec![of_gpu(gpu), of_gpu(&[(GpuReading::InUse, 0.0)])];
        let telemetry = RunTelemetry { readings, gpus, ..RunTelemetry::default() };
        let (concurrency, devices) = (Some(8), Some(1));
        RunRecord { telemetry: Some(telemetry), concurrency, devices, ..RunRecord::default() }
    }

    fn causes(run: &RunRecord) -> Vec<GapCause> {
        suspect_causes(run).into_iter().map(|one| one.cause).collect()
    }

    #[test]
    fn causes_are_in_the_order_of_their_share_of_the_time() {
        use MachineReading::{ClientUse, MemoryStalled, ProcessorThrottled, ProcessorUse, SwappedPagesS};
        let gpu = [
            (GpuReading::InUse, 0.9),
            (GpuReading::Throttled, 0.3),
            (GpuReading::PowerCapped, 0.6),
            (GpuReading::ClockMhz, 1200.0),
            (GpuReading::ClockLimitMhz, 1980.0),
        ];
        let machine = [
            (ProcessorUse, 0.97),
            (ClientUse, 0.4),
            (ProcessorThrottled, 0.5),
            (MemoryStalled, 0.2),
            (SwappedPagesS, 900.0),
        ];
        let found = run(&machine, &gpu);
        let all = [
            GapCause::GpuPowerCapped,
            GapCause::ProcessorThrottled,
            GapCause::ClientSaturates,
            GapCause::GpuThrottled,
            GapCause::MemoryShort,
            GapCause::GpuIdle,
        ];
        assert_eq!(causes(&found), all);
        let first = &suspect_causes(&found)[0];
        assert!(
            first.text().contains("at 1,200 of 1,980 MHz (60 % of the time). Check: `nvidia-smi"),
            "{first:?}"
        );
    }

    #[test]
    fn readings_of_a_healthy_server_are_no_cause() {
        use MachineReading::{ClientUse, MemoryStalled, ProcessorUse, SwappedPagesS};
        let healthy = [(GpuReading::InUse, 0.99), (GpuReading::PowerCapped, 0.01)];
        // A client may take much of processors that have time left.
        let machine = [(ProcessorUse, 0.6), (ClientUse, 0.5), (MemoryStalled, 0.0), (SwappedPagesS, 0.0)];
        assert_eq!(causes(&run(&machine, &healthy)), []);
        assert_eq!(causes(&run(&[], &[])), []);
        assert_eq!(causes(&RunRecord::default()), []);
    }

    #[test]
    fn a_cause_is_not_read_from_the_wrong_machine_or_an_idle_one() {
        let swapping = [(MachineReading::SwappedPagesS, 5.0)];
        let mut found = run(&swapping, &[(GpuReading::InUse, 0.2)]);
        assert_eq!(causes(&found), [GapCause::GpuIdle, GapCause::MemoryShort]);
        assert_eq!(suspect_causes(&found)[1].share, None);
        found.metrics.mean_concurrency = Some(0.3);
        assert_eq!(causes(&found), [GapCause::MemoryShort]);
        found.telemetry.as_mut().unwrap().machine = ReportingMachine::Client;
        assert_eq!(causes(&found), []);
    }

    #[test]
    fn lanes_count_only_where_devices_send_to_each_other() {
        let gpu =
            [(GpuReading::InUse, 0.99), (GpuReading::PcieLanes, 4.0), (GpuReading::PcieLanesLimit, 16.0)];
        let one = run(&[], &gpu);
        assert_eq!(causes(&one), []);
        let two = RunRecord { devices: Some(2), ..one };
        // The second GPU runs nothing.
        assert_eq!(causes(&two), [GapCause::GpuIdle, GapCause::FewLanes]);
        let found = suspect_causes(&two);
        assert!(found[1].text().contains("has 4 of 16 lanes"), "{found:?}");
    }
}
