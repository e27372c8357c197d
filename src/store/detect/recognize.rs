//! From the name that a tool prints to a device of the catalogue. A name matches whole or not at all: a laptop GPU is not
//! the card whose name it begins with. The memory size selects among variants, and rejects the others.

use std::sync::Arc;

use super::host::bare_name;
use super::printed::{PcieSlot, PrintedAccelerator, PrintedHost};
use crate::quantity::datum::{Grade, Source};
use crate::quantity::unit::GIB;
use crate::quantity::unit::{BYTE, humanize};
use crate::spec::device::{Device, HostLink, SoldMemory, UNIFIED};
use crate::spec::error::Error;
use crate::spec::figure::{Bytes, Figure};
use crate::spec::limits::CAPACITY;
use crate::spec::link::Link;
use crate::spec::near::near;
use crate::spec::text::folded;
use crate::store::catalog::{Catalog, CatalogEntry};
use crate::store::kind::CatalogKind;

/// Sizes this close are one size: error correction takes a sixteenth of GDDR memory, drivers take less.
const SAME_SIZE: f64 = 0.08;
/// Sizes this close have the figures of the catalogue's file.
const SAME_FIGURE: f64 = 0.01;
/// Unified memory this close to its label is that of the catalogue's machine: the firmware keeps part of it.
const SAME_LABEL: f64 = 0.15;
/// Less memory is that of a display adapter, in bytes: no device of the catalogue that runs a model has so little.
const DISPLAY: f64 = 2.0 * GIB;
#[derive(Clone, Debug)]
pub enum Recognition {
    /// It is this device, with the figures that were read in place of the catalogue's.
    Known(Box<Device>),
    /// It is none of the catalogue.
    Unknown {
        why: String,
        fix: String,
        /// It serves a display: no loss.
        display: bool,
    },
}

fn close(a: f64, b: f64, by: f64) -> bool {
    (a / b - 1.0).abs() <= by
}

/// A name without the vendor in front, case and separators: old drivers leave the vendor out.
fn bare(name: &str) -> String {
    let name = folded(name);
    let short = ["nvidia", "amd", "intel"].iter().find_map(|vendor| name.strip_prefix(vendor));
    short.map_or_else(|| name.clone(), str::to_owned)
}

impl Catalog {
    /// The devices with this name, id or alias.
    fn named(&self, printed: &str) -> Result<Vec<Device>, Error> {
        let wanted = bare(printed);
        let mut found = Vec::new();
        for file in self.entries(CatalogKind::Devices).into_values() {
            let label = self.label(&file)?;
            let mut names = [&file.id, &label.name].into_iter().chain(&label.aliases);
            if names.any(|name| bare(name) == wanted) {
                found.push(Arc::unwrap_or_clone(self.read(&file)?));
            }
        }
        Ok(found)
    }

    /// The device of a printed accelerator in a host with `host_memory` bytes.
    pub(super) fn recognized(
        &self,
        printed: &PrintedAccelerator,
        host_memory: Option<f64>,
    ) -> Result<Recognition, Error> {
        if printed.partitioned {
            let why = "MIG is enabled: its instances are no devices of the catalogue";
            return Ok(self.unknown(printed, why.to_owned()));
        }
        let named = self.named(&printed.name)?.into_iter().filter(|device| !device.is_processor());
        let named: Vec<Device> = named.flat_map(with_sold_sizes).collect();
        let total = host_memory.map(|host| host + printed.memory.unwrap_or(0.0));
        let fitting = named.iter().find(|device| fits(device, printed.memory, total));
        if let Some(device) = fitting {
            return Ok(Recognition::Known(Box::new(self.adjusted(device.clone(), printed, total))));
        }
        let sizes = named.iter().filter_map(|device| {
            device.memory.capacity.as_ref().map(|size| format!("{} has {size}", device.name))
        });
        let sizes: Vec<String> = sizes.collect();
        let why = match (&sizes[..], printed.memory.or(total)) {
            ([_, ..], Some(size)) => {
                format!("its {} are another size: {}", humanize(size, BYTE), sizes.join(", "))
            }
            _ => "the catalogue has no device of this name".to_owned(),
        };
        Ok(self.unknown(printed, why))
    }

    fn unknown(&self, printed: &PrintedAccelerator, why: String) -> Recognition {
        if printed.memory.is_some_and(|size| size < DISPLAY) {
            let why = "a display adapter: too little memory for a model".to_owned();
            return Recognition::Unknown { why, fix: String::new(), display: true };
        }
        let files: Vec<CatalogEntry> = self.entries(CatalogKind::Devices).into_values().collect();
        let names = files.iter().map(|file| file.id.as_str());
        let near = near(&printed.name.to_lowercase().replace(' ', "-"), names);
        let start = match &near[..] {
            [] => "`mantile-opt catalog devices` lists the known ones".to_owned(),
            near => format!(
                "the nearest are {}; start from `mantile-opt catalog devices {} --json`",
                near.join(", "),
                near[0]
            ),
        };
        let fix = format!(
            "write its own file hardware/devices/ID.json in your catalogue folder with \"{}\" in `aliases` and this memory \
             size (`mantile-opt schema device`): {start}",
            printed.name
        );
        Recognition::Unknown { why, fix, display: false }
    }

    /// `device` with the memory and the slot that were read, where they differ from the file's.
    fn adjusted(&self, mut device: Device, printed: &PrintedAccelerator, total: Option<f64>) -> Device {
        if let Some(sold) = total.and_then(|total| sold_near(&device, total)) {
            device = sold;
        }
        let memory = &mut device.memory;
        let capacity = memory.capacity.as_ref().map(|capacity| capacity.value);
        match (printed.memory.filter(|_| !memory.unified), capacity) {
            (Some(size), Some(known)) if close(size, known, SAME_FIGURE) => {}
            (Some(size), _) => {
                let source =
                    Source { grade: Grade::Read, text: "total memory, as its tool prints it".into() };
                memory.capacity = Some(Figure::new(size, source));
            }
            (None, _) => {}
        }
        let is_unified = memory.unified && device.class == UNIFIED;
        if let Some(scaled) = usable(&device, total).filter(|_| is_unified) {
            device.memory.capacity = Some(scaled);
        }
        if let Some(link) = printed.slot.and_then(|slot| self.slower_link(&device, slot)) {
            device.host_link = Some(link);
        }
        device
    }

    /// The link of a slot that is slower than the device's own.
    fn slower_link(&self, device: &Device, slot: PcieSlot) -> Option<HostLink> {
        let own = device.host_link.as_ref().filter(|own| own.link.starts_with("pcie"))?;
        let load = |lanes: u32| self.load::<Link>(&format!("pcie{}x{lanes}", slot.generation)).ok();
        let (link, share) = match load(slot.lanes) {
            Some(link) => (link, 1.0),
            None => (load(16)?, f64::from(slot.lanes) / 16.0),
        };
        let rate = link.bandwidth.value * share;
        // Files differ in the digits of one rate.
        if rate > own.bandwidth.value * (1.0 - SAME_FIGURE) {
            return None;
        }
        let text = format!("{} as its tool prints it: {}", slot_name(slot), link.bandwidth.source.text);
        let source = Source { grade: link.bandwidth.source.grade.max(Grade::Read), text: text.into() };
        Some(HostLink { link: link.id, bandwidth: Figure::new(rate, source) })
    }

    pub(super) fn recognized_processor(&self, host: &PrintedHost) -> Result<Option<Device>, Error> {
        let Some(printed) = &host.processor else { return Ok(None) };
        Ok(self.named(&bare_name(printed))?.into_iter().next())
    }
}

/// `PCIe 4.0 x16`.
pub(super) fn slot_name(slot: PcieSlot) -> String {
    format!("PCIe {}.0 x{}", slot.generation, slot.lanes)
}

/// Whether a printed size can be that of `device`; `total` is all memory of the machine.
fn fits(device: &Device, printed: Option<f64>, total: Option<f64>) -> bool {
    let memory = &device.memory;
    let sizes: Vec<f64> =
        [&memory.capacity, &memory.marketed].into_iter().flatten().map(|size| size.value).collect();
    let any = |size: f64, by: f64| sizes.is_empty() || sizes.iter().any(|known| close(size, *known, by));
    match (memory.unified, printed, total) {
        (false, Some(size), _) => any(size, SAME_SIZE),
        // Machines of this class are sold with several sizes of memory.
        (true, ..) if device.class == UNIFIED => true,
        (true, _, Some(total)) => any(total, SAME_LABEL),
        (false, None, _) | (true, _, None) => true,
    }
}

/// A device with memory of its own, and the same with each other size that it is sold with.
fn with_sold_sizes(device: Device) -> Vec<Device> {
    let other = device.memory.sold.iter().filter(|_| !device.memory.unified);
    let other: Vec<Device> = other.filter_map(|sold| device.sold_with(sold.gigabytes())).collect();
    std::iter::once(device).chain(other).collect()
}

/// The machine with the size of memory nearest to `total` bytes, of those that it is sold with.
fn sold_near(device: &Device, total: f64) -> Option<Device> {
    let size = |sold: &SoldMemory| sold.gigabytes() as f64 * GIB;
    let near = device.memory.sold.iter().filter(|sold| close(total, size(sold), SAME_LABEL));
    let off = |sold: &SoldMemory| (total / size(sold) - 1.0).abs();
    let nearest = near.min_by(|a, b| off(a).total_cmp(&off(b)))?;
    device.sold_with(nearest.gigabytes()).filter(|_| device.memory.unified)
}

/// The memory that a model may use of a machine with `total` bytes, where that is not the catalogue's machine: the same
/// share. Labels are numbers of GiB.
fn usable(device: &Device, total: Option<f64>) -> Option<Figure<Bytes>> {
    let (label, capacity) = (device.memory.marketed.as_ref()?, device.memory.capacity.as_ref()?);
    let share = (total? / GIB) / (label.value / 1e9);
    if (share - 1.0).abs() <= SAME_LABEL || !CAPACITY.holds(capacity.value * share) {
        return None;
    }
    let text =
        format!("{share:.3} of the usable {capacity} of a machine with {label}: {}", capacity.source.text);
    Some(Figure::new(capacity.value * share, Source { grade: Grade::Assumed, text: text.into() }))
}
