//! The readings of a machine with Linux.

use super::amd::AmdGpu;
use super::files::MachineFiles;
use super::nvidia::NvidiaGpus;
use super::{MachineSample, TelemetrySettings};
use crate::spec::telemetry::ReportingMachine;

/// The source of a machine's readings.
pub(in crate::bench) struct MachineSource {
    machine: ReportingMachine,
    files: MachineFiles,
    amd: Vec<AmdGpu>,
    nvidia: Option<NvidiaGpus>,
}

impl MachineSource {
    /// Finds what can be read, and says what cannot. GPUs of a machine on which the server is not are of no use.
    pub(in crate::bench) fn open(
        settings: &TelemetrySettings,
        machine: ReportingMachine,
    ) -> (Option<MachineSource>, Vec<String>) {
        if settings.every.is_zero() {
            return (None, vec![]);
        }
        let files = MachineFiles::find(&settings.root);
        if machine == ReportingMachine::Client {
            let note = "telemetry is of this machine; the server is on another one".to_owned();
            return (Some(MachineSource { machine, files, amd: vec![], nvidia: None }), vec![note]);
        }
        let amd = AmdGpu::find(&settings.root);
        let (nvidia, mut notes) = match NvidiaGpus::open(&settings.nvml) {
            Ok(gpus) => (Some(gpus), vec![]),
            Err(_) if !amd.is_empty() => (None, vec![]),
            Err(reason) => (None, vec![format!("no telemetry of GPUs: {reason}, and no GPU of amdgpu")]),
        };
        if !files.has_power() {
            notes.push("no telemetry of the processors' power: no RAPL that may be read".to_owned());
        }
        (Some(MachineSource { machine, files, amd, nvidia }), notes)
    }

    pub(super) fn machine(&self) -> ReportingMachine {
        self.machine
    }

    fn nvidia(&self) -> impl Iterator<Item = (&NvidiaGpus, u32)> {
        self.nvidia.iter().flat_map(|gpus| (0..gpus.count).map(move |number| (gpus, number)))
    }

    /// The names of the GPUs, in the order of their readings.
    pub(super) fn names(&self) -> Vec<Option<String>> {
        let nvidia = self.nvidia().map(|(gpus, number)| gpus.name(number));
        nvidia.chain(self.amd.iter().map(|gpu| gpu.name.clone())).collect()
    }

    pub(super) fn read(&self) -> MachineSample {
        let nvidia = self.nvidia().map(|(gpus, number)| gpus.read(number));
        MachineSample {
            machine: self.files.read(),
            gpus: nvidia.chain(self.amd.iter().map(AmdGpu::read)).collect(),
        }
    }
}
