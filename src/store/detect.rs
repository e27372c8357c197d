//! This machine in the terms of the catalogue: outputs of its tools → devices and host → a system or a rig.
//!
//! The outputs come from a [`MachineProbe`] that the program gives to the catalogue; all else is a function of them.

mod amd;
mod apple;
mod host;
mod machine;
mod nvidia;
mod printed;
#[cfg(feature = "cli")]
pub mod probe;
mod recognize;
mod report;
#[cfg(feature = "cli")]
pub mod stream;
pub mod tools;

use std::sync::Arc;

pub use machine::LOCAL;

use super::catalog::Catalog;
use super::kind::CatalogKind;
use crate::quantity::unit::GIB;
use crate::report::machine::{MachineReport, ToolResult};
use crate::spec::cluster::Cluster;
use crate::spec::error::Error;
use crate::spec::rig::Rig;
use host::ProcessorLimits;
use machine::{AcceleratorGroup, KnownHost, LocalHardware, is_taken};
use printed::{PcieSlot, PrintedAccelerator, PrintedHost};
use recognize::Recognition;
use tools::{MachineOutputs, MachineProbe, MachineTool, StreamTest, TOOLS, ToolOutput};

struct LocalMachine {
    groups: Vec<AcceleratorGroup>,
    host: KnownHost,
    nvlink: Option<(usize, usize)>,
    tools: Vec<ToolResult>,
    hardware: Result<LocalHardware, Error>,
}

/// The accelerators of one tool; `None` where its output cannot be read.
fn accelerators(tool: MachineTool, text: &str) -> Option<Vec<PrintedAccelerator>> {
    match tool {
        MachineTool::NvidiaSmi => Some(nvidia::gpus(text)),
        MachineTool::AmdSmi => amd::amd_smi(text),
        MachineTool::RocmSmi => amd::rocm_smi(text),
        MachineTool::SystemProfiler => apple::chip(text),
        _ => None,
    }
}

fn host_of(outputs: &MachineOutputs) -> PrintedHost {
    let text = |tool| outputs.text(tool);
    if let Some(found) = text(MachineTool::PowerShell).and_then(host::windows) {
        return found;
    }
    if let Some(lines) = text(MachineTool::Sysctl) {
        return apple::host(lines);
    }
    let limits = ProcessorLimits::of(text(MachineTool::AllowedProcessors), text(MachineTool::ProcessorLimit));
    let processor = text(MachineTool::CpuInfo).map(|all| host::linux(all, &limits));
    let (memory, free) = text(MachineTool::MemInfo).map_or((None, None), host::linux_memory);
    let limit = text(MachineTool::MemoryLimit).and_then(printed::number).and_then(printed::memory);
    let within = |size: Option<f64>| size.map(|size| limit.map_or(size, |limit| size.min(limit)));
    PrintedHost {
        memory: within(memory),
        free: within(free),
        ..processor.unwrap_or(PrintedHost { sockets: 1, ..PrintedHost::default() })
    }
}

fn result(name: &str, finds: &str, tool: MachineTool, output: &ToolOutput) -> ToolResult {
    let (found, result) = match output {
        ToolOutput::Missing => (false, "not found".to_owned()),
        ToolOutput::Failed(why) => (false, why.clone()),
        ToolOutput::Text(text) => match tool {
            MachineTool::NvidiaSmi
            | MachineTool::AmdSmi
            | MachineTool::RocmSmi
            | MachineTool::SystemProfiler => match accelerators(tool, text).map(|found| found.len()) {
                None => (false, "an output that cannot be read".to_owned()),
                Some(0) => (false, "no device".to_owned()),
                Some(1) => (true, "1 device".to_owned()),
                Some(count) => (true, format!("{count} devices")),
            },
            MachineTool::NvidiaTopology => match nvidia::pairs(text) {
                None => (false, "an output that cannot be read".to_owned()),
                Some((all, joined)) => (true, format!("{joined} of {all} pairs of GPUs")),
            },
            _ => (true, "read".to_owned()),
        },
    };
    ToolResult { tool: name.to_owned(), finds: finds.to_owned(), found, result }
}

/// Accelerators of one name and size are one group, in the order of their tools.
fn grouped(all: Vec<PrintedAccelerator>) -> Vec<Vec<PrintedAccelerator>> {
    let size = |one: &PrintedAccelerator| one.memory.map(|bytes| (bytes / GIB).round() as u64);
    let mut groups: Vec<Vec<PrintedAccelerator>> = Vec::new();
    for one in all {
        let same = |group: &&mut Vec<PrintedAccelerator>| {
            group[0].name == one.name
                && size(&group[0]) == size(&one)
                && group[0].partitioned == one.partitioned
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// The figures that all devices of a group have at least; memory in use is that of the fullest.
fn common(group: &[PrintedAccelerator]) -> PrintedAccelerator {
    let least =
        |of: fn(&PrintedAccelerator) -> Option<f64>| group.iter().filter_map(of).min_by(f64::total_cmp);
    let slots: Option<Vec<_>> = group.iter().map(|one| one.slot).collect();
    let rate = |slot: &PcieSlot| u64::from(slot.lanes) << slot.generation;
    PrintedAccelerator {
        memory: least(|one| one.memory),
        used: group.iter().filter_map(|one| one.used).max_by(f64::total_cmp),
        slot: slots.and_then(|slots| slots.into_iter().min_by_key(|slot| (rate(slot), *slot))),
        power_limit: least(|one| one.power_limit),
        ..group[0].clone()
    }
}

impl Catalog {
    /// The catalogues on a machine that `probe` describes: `local` names it.
    pub fn with_machine(mut self, probe: Arc<dyn MachineProbe>) -> Catalog {
        self.machine = Some(probe);
        self
    }

    /// Detects this machine; `stream` also measures its memory bandwidth.
    ///
    /// # Errors
    /// The program has no access to a machine, or a file of the catalogue is faulty.
    pub fn detect(&self, stream: bool) -> Result<MachineReport, Error> {
        let machine = self.local_machine(if stream { StreamTest::Now } else { StreamTest::None })?;
        let notes = machine.notes(self)?;
        Ok(MachineReport {
            devices: machine.groups.iter().map(AcceleratorGroup::report).collect(),
            host: machine.host.report(),
            tools: machine.tools,
            file: machine.hardware.as_ref().ok().map(LocalHardware::file),
            notes,
        })
    }

    /// Whether `text` names this machine: no entry of the user has the name.
    pub(super) fn is_local(&self, text: &str, kind: CatalogKind) -> bool {
        text.eq_ignore_ascii_case(LOCAL) && !is_taken(self, kind)
    }

    pub(super) fn local_cluster(&self) -> Result<Cluster, Error> {
        self.whole_machine()?.hardware?.cluster()
    }

    pub(super) fn local_rig(&self) -> Result<Rig, Error> {
        self.whole_machine()?.hardware?.rig()
    }

    /// Whether the accelerators of this machine differ: no system describes it.
    pub(super) fn is_local_rig(&self) -> bool {
        let machine = self.local_machine(StreamTest::None);
        machine.is_ok_and(|machine| matches!(machine.hardware, Ok(LocalHardware::Rig(_))))
    }

    /// This machine, if the catalogue has all its accelerators: an answer for some of them could be taken for all.
    fn whole_machine(&self) -> Result<LocalMachine, Error> {
        let machine = self.local_machine(StreamTest::Once)?;
        for group in &machine.groups {
            if let Recognition::Unknown { why, fix, display: false } = &group.recognition {
                let found = format!("{}: {why}", group.printed.name);
                let fix =
                    format!("{fix}; or `mantile-opt detect --out machine.json` writes a file without it");
                return Err(Error::new("hardware", found, "devices of the catalogue", fix));
            }
        }
        Ok(machine)
    }

    fn local_machine(&self, stream: StreamTest) -> Result<LocalMachine, Error> {
        let Some(probe) = &self.machine else {
            let fix = "name a system or a file; `mantile-opt detect --out machine.json` writes one on the machine itself";
            let found = "`local`, where the program has no access to a machine";
            return Err(Error::new("hardware", found, "a system of the catalogue or a file", fix));
        };
        let outputs = probe.outputs();
        let printed = host_of(&outputs);
        let memory = printed.memory;
        let processor = self.recognized_processor(&printed)?;
        let tried = TOOLS.iter().filter_map(|entry| Some((entry, outputs.0.get(&entry.tool)?)));
        let tools =
            tried.map(|(entry, output)| result(entry.name, entry.finds, entry.tool, output)).collect();
        let read = |tool| {
            outputs.text(tool).and_then(|text| accelerators(tool, text)).filter(|found| !found.is_empty())
        };
        let amd = read(MachineTool::AmdSmi).or_else(|| read(MachineTool::RocmSmi));
        let apple = read(MachineTool::SystemProfiler);
        let all = [read(MachineTool::NvidiaSmi), amd, apple].into_iter().flatten().flatten().collect();
        let mut groups = Vec::new();
        for printed in grouped(all) {
            let count = printed.len() as u64;
            let printed = common(&printed);
            groups.push(AcceleratorGroup { recognition: self.recognized(&printed, memory)?, printed, count });
        }
        self.add_unified_processor(&mut groups, processor.as_ref(), &printed)?;
        let measured = match (stream, printed.free.or(memory)) {
            (StreamTest::Once | StreamTest::Now, Some(free)) if free > 0.0 => {
                probe.bandwidth(&printed.identity(), free / 4.0, stream)
            }
            _ => None,
        };
        let host =
            KnownHost { processor: processor.filter(|device| device.is_processor()), printed, measured };
        let nvlink = outputs.text(MachineTool::NvidiaTopology).and_then(nvidia::pairs);
        let hardware = self.local_hardware(&groups, &host, nvlink);
        Ok(LocalMachine { groups, host, nvlink, tools, hardware })
    }

    /// A processor whose GPU is a device of the catalogue takes the place of what its tool prints, which is often only
    /// `AMD Radeon Graphics`.
    fn add_unified_processor(
        &self,
        groups: &mut Vec<AcceleratorGroup>,
        processor: Option<&crate::spec::device::Device>,
        host: &PrintedHost,
    ) -> Result<(), Error> {
        let Some(device) = processor.filter(|device| !device.is_processor()) else {
            return Ok(());
        };
        // One of them may be known by the size of memory that it was sold with.
        let same = |found: &crate::spec::device::Device| found.measured_as() == device.measured_as();
        if groups.iter().filter_map(AcceleratorGroup::device).any(same) {
            return Ok(());
        }
        let vendor = device.vendor.name();
        let own = |group: &AcceleratorGroup| {
            let named = group.printed.name.to_lowercase();
            matches!(group.recognition, Recognition::Unknown { .. })
                && (named.starts_with(vendor) || named.contains("radeon"))
        };
        let set_aside =
            groups.iter().filter(|group| own(group)).filter_map(|group| group.printed.memory).sum();
        groups.retain(|group| !own(group));
        let memory = Some(set_aside).filter(|bytes| *bytes > 0.0);
        let printed = PrintedAccelerator { name: device.id.clone(), memory, ..PrintedAccelerator::default() };
        let recognition = self.recognized(&printed, host.memory)?;
        let named = PrintedAccelerator { name: host.processor.clone().unwrap_or_default(), ..printed };
        groups.push(AcceleratorGroup { printed: named, count: 1, recognition });
        Ok(())
    }
}
