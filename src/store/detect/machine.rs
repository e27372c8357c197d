//! From recognized devices to the machine as a system, or as a rig where they differ.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::printed::{PrintedAccelerator, PrintedHost};
use super::recognize::Recognition;
use crate::quantity::datum::{Grade, Source};
use crate::report::machine::{MachineFile, MachineFileKind, MeasuredBandwidth};
use crate::spec::cluster::{Cluster, Host, System, Topology};
use crate::spec::device::{Arithmetic, Device, DeviceMemory, Vendor};
use crate::spec::error::Error;
use crate::spec::figure::{ByteRate, Bytes, Dimension, Figure, FlopRate};
use crate::spec::rig::{Rig, RigLink, RigMember, RigTopology};
use crate::spec::visible::visible;
use crate::store::catalog::Catalog;
use crate::store::hardware::Shorthand;
use crate::store::kind::CatalogKind;
use crate::store::processor::inferred;

/// The name of this machine in `--hardware`.
pub const LOCAL: &str = "local";
/// Generation of a processor that the catalogue lacks.
const UNLISTED: &str = "unlisted-processor";
/// The name of the host in a rig.
const HOST: &str = "host";

/// Equal accelerators of a machine, and what the catalogue says about them.
#[derive(Clone, Debug)]
pub(super) struct AcceleratorGroup {
    /// The figures that all of them have at least.
    pub(super) printed: PrintedAccelerator,
    pub(super) count: u64,
    pub(super) recognition: Recognition,
}

impl AcceleratorGroup {
    pub(super) fn device(&self) -> Option<&Device> {
        match &self.recognition {
            Recognition::Known(device) => Some(device),
            Recognition::Unknown { .. } => None,
        }
    }
}

/// A host with its processor of the catalogue, where it has one.
#[derive(Clone, Debug)]
pub(super) struct KnownHost {
    pub(super) printed: PrintedHost,
    pub(super) processor: Option<Device>,
    pub(super) measured: Option<MeasuredBandwidth>,
}

/// A machine in the terms of the catalogue.
#[derive(Clone, Debug)]
pub(super) enum LocalHardware {
    /// Equal devices; the device differs from the catalogue's if `own`.
    System {
        system: Box<System>,
        device: Box<Device>,
        own: bool,
    },
    Rig(Rig),
}

fn counted(device: &Device, count: u64) -> String {
    if count > 1 { format!("{count} x {}", device.name) } else { device.name.clone() }
}

fn read<D: Dimension>(value: f64, text: &str) -> Figure<D> {
    Figure::new(value, Source { grade: Grade::Read, text: text.to_owned().into() })
}

impl KnownHost {
    /// Measured bandwidth of all sockets.
    fn bandwidth(&self) -> Option<Figure<ByteRate>> {
        let measured = self.measured?;
        let text = format!(
            "stream test of this machine with {} threads: read {:.1} GB/s, triad {:.1} GB/s",
            measured.threads,
            measured.read / 1e9,
            measured.triad / 1e9
        );
        Some(Figure::new(measured.best(), Source { grade: Grade::Measured, text: text.into() }))
    }

    /// The peak of a socket by its cores, clock and instructions.
    fn peak(&self) -> Option<Figure<FlopRate>> {
        let (value, text) = self.printed.peak()?;
        Some(Figure::new(value, Source { grade: Grade::Assumed, text: text.into() }))
    }

    /// Whether the figures of a whole processor apply. A virtual machine may have a few cores of a large one; one with
    /// no more bandwidth than a desktop is taken as whole, unless a container or an affinity leaves only some of its cores.
    pub(super) fn is_whole(&self, desktop: f64) -> bool {
        let rate = self.processor.as_ref().and_then(|device| device.memory.bandwidth.as_ref());
        !self.printed.limited && (!self.printed.guest || rate.is_none_or(|rate| rate.value <= desktop))
    }

    /// The host of a system's file.
    fn host(&self, desktop: f64) -> Host {
        let sockets = self.printed.sockets;
        let named =
            self.processor.as_ref().filter(|_| self.is_whole(desktop)).map(|device| device.id.clone());
        let name = named.or_else(|| self.printed.processor.as_deref().map(|name| visible(name).into_owned()));
        Host {
            cpu: name.map(|name| if sockets > 1 { format!("{sockets} x {name}") } else { name }),
            memory: self.printed.memory.map(|size| read(size, "memory of this machine")),
            memory_bandwidth: self.bandwidth(),
            ..Host::default()
        }
    }
}

impl Catalog {
    /// The machine with these accelerators in `host`; none of `groups` means that its processor serves.
    pub(super) fn local_hardware(
        &self,
        groups: &[AcceleratorGroup],
        host: &KnownHost,
        nvlink: Option<(usize, usize)>,
    ) -> Result<LocalHardware, Error> {
        let known = groups.iter().filter_map(|group| Some((group.device()?, group.count)));
        let known: Vec<(&Device, u64)> = known.collect();
        match &known[..] {
            [] => self.processor_alone(host),
            [(device, count)] => self.equal_devices(device, *count, host, nvlink),
            several => Ok(LocalHardware::Rig(self.unlike_devices(several, host)?)),
        }
    }

    fn equal_devices(
        &self,
        device: &Device,
        count: u64,
        host: &KnownHost,
        nvlink: Option<(usize, usize)>,
    ) -> Result<LocalHardware, Error> {
        let short = Shorthand { nodes: 1, by_node: true, count, device: &device.id };
        let bridged = |system: &System| system.tiers.iter().any(|tier| tier.link.starts_with("nvlink"));
        let unbridged = count > 1 && nvlink.is_some_and(|(_, joined)| joined == 0);
        let mut device = device.clone();
        let mut joined = device.clone();
        // A bridge that is plugged in is no longer an option.
        if let Some(link) = joined.scale_up.as_mut().filter(|_| nvlink.is_some_and(|(_, pairs)| pairs > 0)) {
            link.optional = false;
        }
        let mut shape = self.host(&joined, &short)?;
        let without_bridge = unbridged && bridged(&shape);
        if without_bridge {
            device.scale_up = None;
            shape = self.plain_host(&device)?;
        }
        // A host with more slots than the usual one: its bus joins all cards.
        let bus = shape.tiers.last_mut().filter(|tier| tier.topology == Topology::Pcie);
        if let Some(bus) = bus.filter(|_| count > shape.devices_per_node) {
            bus.devices = count;
            shape.devices_per_node = count;
        }
        let mut system = shape.part(count);
        system.id = LOCAL.into();
        system.name = format!("this machine: {}", counted(&device, count));
        system.aliases.clear();
        let of_machine = host.host(self.defaults()?.host_memory_bandwidth.value);
        // Unified memory is the device's.
        system.host = Some(if device.memory.unified {
            Host { memory: None, memory_bandwidth: None, ..of_machine }
        } else {
            of_machine
        });
        system.notes = None;
        let shipped = self.device(&device.id).map_err(Error::from)?;
        let same = |other: &Device| {
            other.memory.capacity == device.memory.capacity
                && other.host_link.as_ref().map(|link| &link.bandwidth)
                    == device.host_link.as_ref().map(|link| &link.bandwidth)
        };
        let own = without_bridge || !same(&shipped);
        Cluster::build(&system, device.clone(), 1, count)?;
        Ok(LocalHardware::System { system: Box::new(system), device: Box::new(device), own })
    }

    /// Different accelerators in the slots of one host: data goes from card to card through it.
    fn unlike_devices(&self, known: &[(&Device, u64)], host: &KnownHost) -> Result<Rig, Error> {
        let mut members = Vec::new();
        let mut links = Vec::new();
        for (device, count) in known {
            members.push(RigMember {
                device: device.id.clone(),
                count: *count,
                host: Some(HOST.into()),
                ..RigMember::default()
            });
            let link = device.host_link.as_ref().ok_or_else(|| {
                let fix = "write a rig's file with the links between the devices (`mantile-opt schema rig`)";
                Error::new("links", format!("no link from {} to its host", device.name), "a link", fix)
            })?;
            let (id, bandwidth) = (link.link.clone(), Some(link.bandwidth.clone()));
            let link = RigLink { link: id, bandwidth, ..RigLink::default() };
            links.extend(std::iter::repeat_n(link, *count as usize));
        }
        let names: Vec<String> = known.iter().map(|(device, count)| counted(device, *count)).collect();
        let desktop = self.defaults()?.host_memory_bandwidth.value;
        let rig = Rig {
            id: LOCAL.into(),
            name: format!("this machine: {}", names.join(" + ")),
            members,
            topology: Some(RigTopology::Star),
            links,
            hosts: BTreeMap::from([(HOST.into(), host.host(desktop))]),
            ..Rig::default()
        };
        rig.check()?;
        Ok(rig)
    }

    /// A machine without accelerators: one socket of its processor serves, from all memory.
    fn processor_alone(&self, host: &KnownHost) -> Result<LocalHardware, Error> {
        let defaults = self.defaults()?;
        let memory = host.printed.memory.ok_or_else(|| {
            let fix = "name a system (`mantile-opt catalog systems`), or write a file (`mantile-opt schema system`)";
            Error::new("memory.capacity", "no size of the memory", "a size that the system prints", fix)
        })?;
        let mut measured = host.bandwidth();
        if let Some(rate) = measured.as_mut().filter(|_| host.printed.sockets > 1) {
            rate.value /= host.printed.sockets as f64;
            rate.source.text =
                format!("one of {} sockets: {}", host.printed.sockets, rate.source.text).into();
        }
        let desktop = &defaults.host_memory_bandwidth;
        let listed = host.processor.as_ref().filter(|_| host.is_whole(desktop.value));
        let mut device = match listed {
            Some(device) => device.clone(),
            None => unlisted(host, measured.clone().unwrap_or_else(|| desktop.clone())),
        };
        device.memory.capacity = Some(read::<Bytes>(memory, "memory of this machine"));
        device.memory.bandwidth = measured.or(device.memory.bandwidth.take());
        if device.peak.is_empty() {
            let rate = device.memory.bandwidth.clone().unwrap_or_else(|| desktop.clone());
            let peak = host.peak().unwrap_or_else(|| inferred(&defaults, rate).peak);
            device.peak.insert(Arithmetic::Fp32, peak);
        }
        let rate = device.memory.bandwidth.as_ref();
        let assumed = rate.is_some_and(|rate| rate.source.grade == Grade::Assumed);
        let basis = if assumed { ", memory bandwidth assumed" } else { "" };
        let system = System {
            id: LOCAL.into(),
            name: format!("this machine: {}{basis}", device.name),
            device: device.id.clone(),
            devices_per_node: 1,
            nodes: 1,
            host: Some(Host { memory: None, memory_bandwidth: None, ..host.host(desktop.value) }),
            ..System::default()
        };
        Ok(LocalHardware::System { system: Box::new(system), device: Box::new(device), own: true })
    }
}

/// A processor that the catalogue lacks: only its memory is known.
fn unlisted(host: &KnownHost, bandwidth: Figure<ByteRate>) -> Device {
    let printed = host.printed.processor.as_deref();
    // A file with a hidden character in a name would not be read back.
    let name = printed.map_or("processor without a name".into(), |name| visible(name).into_owned());
    let lower = name.to_lowercase();
    let vendors = [("amd", Vendor::Amd), ("intel", Vendor::Intel)];
    let vendor =
        vendors.into_iter().find(|(word, _)| lower.contains(word)).map_or(Vendor::Other, |(_, of)| of);
    Device {
        id: UNLISTED.into(),
        name,
        vendor,
        family: UNLISTED.into(),
        new_family: true,
        class: crate::spec::device::PROCESSOR.into(),
        memory: DeviceMemory {
            kind: "unknown".into(),
            bandwidth: Some(bandwidth),
            ..DeviceMemory::default()
        },
        ..Device::default()
    }
}

/// JSON without keys that say nothing: `null`, an empty object, or an empty list that a file may leave out.
fn brief(value: Value) -> Value {
    const REQUIRED: &str = "tiers";
    let says = |key: &str, value: &Value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(values) => !values.is_empty() || key == REQUIRED,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().map(|(key, value)| (key, brief(value)));
            Value::Object(kept.filter(|(key, value)| says(key, value)).collect::<Map<_, _>>())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(brief).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn value<T: serde::Serialize>(of: &T) -> Value {
    brief(serde_json::to_value(of).expect("catalogue files have only text keys"))
}

impl LocalHardware {
    pub(super) fn cluster(&self) -> Result<Cluster, Error> {
        match self {
            LocalHardware::System { system, device, .. } => {
                let cluster = Cluster::build(system, (**device).clone(), 1, system.devices_per_node)?;
                Ok(Cluster { id: LOCAL.into(), ..cluster })
            }
            LocalHardware::Rig(rig) => {
                let fix = "use `mantile-opt place --hardware local`, or name the devices to use, e.g. `--hardware 2xrtx-4090`";
                Err(Error::new("hardware", rig.name.clone(), "devices of one kind", fix))
            }
        }
    }

    /// The rig of its devices, with the catalogue's figures of each.
    pub(super) fn rig(&self) -> Result<Rig, Error> {
        let (system, device) = match self {
            LocalHardware::Rig(rig) => return Ok(rig.clone()),
            LocalHardware::System { system, device, .. } => (system, device),
        };
        if device.is_processor() {
            let fix = "use `mantile-opt --hardware local`";
            return Err(Error::new("hardware", system.name.clone(), "a machine with accelerators", fix));
        }
        let joined = system.tiers.first().map(|tier| RigLink {
            link: tier.link.clone(),
            bandwidth: Some(tier.bandwidth.clone()),
            latency: Some(tier.latency.clone()),
            ..RigLink::default()
        });
        let host = system.host.clone().filter(|host| host.memory.is_some());
        let member = RigMember {
            device: device.id.clone(),
            count: system.devices_per_node,
            joined,
            host: host.is_some().then(|| HOST.into()),
            ..RigMember::default()
        };
        Ok(Rig {
            id: LOCAL.into(),
            name: system.name.clone(),
            members: vec![member],
            hosts: host.into_iter().map(|host| (HOST.to_owned(), host)).collect(),
            ..Rig::default()
        })
    }

    pub(super) fn file(&self) -> MachineFile {
        match self {
            LocalHardware::System { system, device, own } => {
                let mut content = value(&**system);
                if let (true, Value::Object(map)) = (*own, &mut content) {
                    map.insert("device".into(), value(&**device));
                }
                MachineFile { kind: MachineFileKind::System, content }
            }
            LocalHardware::Rig(rig) => MachineFile { kind: MachineFileKind::Rig, content: value(rig) },
        }
    }
}

/// Whether the catalogue has an entry of the user's under the name of this machine.
pub(super) fn is_taken(catalog: &Catalog, kind: CatalogKind) -> bool {
    catalog.entries(kind).contains_key(LOCAL)
}
