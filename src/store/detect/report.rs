//! A detected machine as a report.

use super::LocalMachine;
use super::machine::{AcceleratorGroup, KnownHost};
use super::printed::PrintedAccelerator;
use super::recognize::{Recognition, slot_name};
use crate::report::machine::{DetectedDevices, DetectedHost};
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

impl AcceleratorGroup {
    pub(super) fn report(&self) -> DetectedDevices {
        let (device, left_out, fix) = match &self.recognition {
            Recognition::Known(device) => (Some(device.id.clone()), None, None),
            Recognition::Unknown { why, fix, .. } => {
                (None, Some(why.clone()), Some(fix.clone()).filter(|fix| !fix.is_empty()))
            }
        };
        DetectedDevices {
            count: self.count,
            printed: self.printed.name.clone(),
            device,
            memory_bytes: self.printed.memory,
            used_bytes: self.printed.used,
            slot: self.printed.slot.map(slot_name),
            power_limit_w: self.printed.power_limit,
            left_out,
            fix,
        }
    }
}

impl KnownHost {
    pub(super) fn report(&self) -> DetectedHost {
        let rate = self.processor.as_ref().and_then(|device| device.memory.bandwidth.as_ref());
        DetectedHost {
            processor: self.printed.processor.clone(),
            device: self.processor.as_ref().map(|device| device.id.clone()),
            sockets: self.printed.sockets,
            cores: self.printed.cores,
            threads: self.printed.threads,
            memory_bytes: self.printed.memory,
            free_bytes: self.printed.free,
            catalogue_bandwidth: rate.map(|rate| rate.value * self.printed.sockets as f64),
            measured: self.measured,
        }
    }
}

impl LocalMachine {
    pub(super) fn notes(&self, catalog: &Catalog) -> Result<Vec<String>, Error> {
        let known = self.groups.iter().filter_map(|group| Some((group.device()?, &group.printed)));
        let known: Vec<(&Device, &PrintedAccelerator)> = known.collect();
        let mut notes = Vec::new();
        if known.is_empty() {
            notes.push("No accelerator of the catalogue was found: the processor serves alone.".to_owned());
        }
        // On a machine whose processor and GPU share the memory, the device has the figures of both.
        if !known.iter().any(|(device, _)| device.memory.unified) {
            notes.extend(self.host.note(catalog.defaults()?.host_memory_bandwidth.value));
        }
        if known.is_empty() && self.host.printed.sockets > 1 {
            notes.push("One socket serves: bandwidth and peak are those of one.".to_owned());
        }
        notes.extend(known.iter().flat_map(|(device, printed)| device_notes(device, printed)));
        let unlinked = self.nvlink.is_some_and(|(all, joined)| all > 0 && joined == 0);
        if unlinked && known.iter().any(|(device, _)| device.scale_up.is_some()) {
            notes.push("NVLink joins no two GPUs here: they communicate over PCIe.".to_owned());
        }
        if let Err(fault) = &self.hardware {
            let Error { found, fix, .. } = fault;
            notes.push(format!("No file describes the machine: {found}; {fix}."));
        }
        Ok(notes)
    }
}

impl KnownHost {
    /// The reason that the figures of the processor are assumed, if they are.
    fn note(&self, desktop: f64) -> Option<String> {
        let why = match &self.processor {
            None => "The catalogue has no such processor",
            Some(_) if self.printed.limited => "Only some of the cores of this processor may be used",
            Some(_) if !self.is_whole(desktop) => "A virtual machine may have only part of this processor",
            Some(_) => return None,
        };
        let from = match self.printed.core {
            Some(_) => "computed from cores, clock and instructions",
            None => "assumed from the memory bandwidth",
        };
        Some(format!("{why}: its peak is {from}."))
    }
}

fn device_notes(device: &Device, printed: &PrintedAccelerator) -> Vec<String> {
    /// A limit this close to the power of the catalogue is the same.
    const SAME_POWER: f64 = 0.95;
    let mut notes = Vec::new();
    let tdp = device.power.as_ref().map(|power| power.tdp.value);
    if let Some((limit, tdp)) = printed.power_limit.zip(tdp).filter(|(limit, tdp)| *limit < SAME_POWER * tdp)
    {
        let name = &device.name;
        notes.push(format!(
            "{name}: its power limit of {limit:.0} W is below the {tdp:.0} W for which the peaks hold."
        ));
    }
    if let Some(cores) = printed.cores {
        let name = &device.name;
        notes.push(format!(
            "{name}: {cores} GPU cores; the figures of the catalogue are those of its largest GPU."
        ));
    }
    notes
}
