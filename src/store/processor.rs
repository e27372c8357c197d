//! The host of a cluster: from the scenario's `--host` and `--host-memory`, else from the system's file.

use std::convert::Infallible;

use super::catalog::{Catalog, LookupError};
use super::kind::CatalogKind;
use super::parsed::SHIPPED;
use crate::quantity::datum::{Grade, Source};
use crate::spec::cluster::{Cluster, Host};
use crate::spec::defaults::Defaults;
use crate::spec::device::Device;
use crate::spec::error::Error;
use crate::spec::figure::{ByteRate, Bytes, Dimension, Figure, corrected, read};
use crate::spec::host_part::HostProcessor;
use crate::spec::scenario::Scenario;

/// Bytes of a memory channel per transfer: 64 bits.
const CHANNEL: f64 = 8.0;

/// The host that `--host` names: memory, processors of the catalogue, or both.
#[derive(Default)]
struct NamedHost {
    memory: Option<Figure<ByteRate>>,
    processor: Option<(Box<Device>, u64)>,
}

/// Id of the device that the text of a system's file means, if it means one.
struct ListedProcessor(Option<String>);

fn stated<D: Dimension>(value: f64, text: String) -> Figure<D> {
    Figure::new(value, Source { grade: Grade::Stated, text: text.into() })
}

/// `ddr5-6000x2`: megatransfers per second on a number of channels; `None` for other text.
fn memory(text: &str) -> Option<Result<Figure<ByteRate>, Error>> {
    let lower = text.to_ascii_lowercase();
    let (kind, rest) = lower.split_once('-')?;
    if !["ddr3", "ddr4", "ddr5", "lpddr5", "lpddr5x", "mrdimm"].contains(&kind) {
        return None;
    }
    let (speed, channels) = rest.split_once('x').unwrap_or((rest, "2"));
    let number = |text: &str, most: u64| text.parse::<u64>().ok().filter(|n| (1..=most).contains(n));
    let (Some(speed), Some(channels)) = (number(speed, 20_000), number(channels, 64)) else {
        let fix = "write the speed in MT/s and the number of channels, e.g. `ddr5-6000x2`";
        let expected = "memory with its speed and channels";
        return Some(Err(Error::new("host", format!("`{text}`"), expected, fix)));
    };
    let rate = speed as f64 * 1e6 * CHANNEL * channels as f64;
    let why = format!("scenario: host {text}: {speed} MT/s x 8 B x {channels} channels");
    Some(Ok(stated(rate, why)))
}

/// The number of sockets and the name of the processor in `2 x AMD EPYC 9755`.
fn sockets(text: &str) -> (u64, &str) {
    let counted = text.split_once(['x', 'X']).and_then(|(count, name)| {
        let count = count.trim().parse::<u64>().ok().filter(|count| (1..=16).contains(count))?;
        Some((count, name.trim()))
    });
    counted.unwrap_or((1, text.trim()))
}

/// A name in the form of an id.
fn dashed(name: &str) -> String {
    name.to_lowercase().replace(' ', "-")
}

impl Catalog {
    fn processor(&self, text: &str) -> Result<(Device, u64), LookupError> {
        let (count, name) = sockets(text);
        Ok((self.device(&dashed(name))?, count))
    }

    /// The device that a system's file names as its processor, if the catalogue has one of that name.
    fn listed_processor(&self, text: &str) -> Option<(Device, u64)> {
        let (count, name) = sockets(text);
        let name = dashed(name);
        let find = || match &self.devices_named(&name).ok()?[..] {
            [file] => Some(file.id.clone()),
            _ => None,
        };
        // Many systems name the same few, and few of them as a device is named.
        let id = if self.is_shipped(CatalogKind::Devices) {
            let Ok(known) = SHIPPED.once(&name, || Ok::<_, Infallible>(ListedProcessor(find())));
            known.0.clone()
        } else {
            find()
        };
        Some((self.load(&id?).ok()?, count))
    }

    fn named_host(&self, text: &str) -> Result<NamedHost, Error> {
        let mut named = NamedHost::default();
        for part in text.split(',').map(str::trim) {
            let twice = match memory(part) {
                Some(found) => named.memory.replace(found?).is_some(),
                None => named.processor.replace(self.named_processor(part)?).is_some(),
            };
            if twice {
                let expected = "one kind of memory and one kind of processor";
                let fix = "write e.g. `ryzen-9-7950x,ddr5-6000x2`";
                return Err(Error::new("host", format!("`{text}`"), expected, fix));
            }
        }
        Ok(named)
    }

    fn named_processor(&self, text: &str) -> Result<(Box<Device>, u64), Error> {
        let (found, count) = self.processor(text).map_err(|miss| {
            let fault: Error = miss.into();
            let expected = "memory as `ddr5-6000x2`, or a processor of the catalogue";
            Error { key: "host".into(), expected: expected.into(), ..fault }
        })?;
        if !found.is_processor() {
            let fix = "name a processor: `mantile-opt catalog devices` lists them";
            return Err(Error::new("host", format!("{}, an accelerator", found.name), "a processor", fix));
        }
        Ok((Box::new(found), count))
    }

    /// `cluster` with the host, the bus and the network that `scenario` states, and with its processor.
    pub fn with_host(&self, cluster: Cluster, scenario: &Scenario) -> Result<Cluster, Error> {
        let cluster = self.with_network(cluster, scenario.network.as_deref())?;
        let mut cluster = self.with_peer_to_peer(cluster, scenario.p2p)?;
        let size = |text: &String| {
            let fix = format!("write `{}`", corrected::<Bytes>(text));
            let fault = |why| Error::new("host-memory", why, "a memory size", fix.as_str());
            let text = text.trim();
            let bytes = read::<Bytes>(text).map_err(fault)?;
            if bytes < 1.0 {
                return Err(fault(format!("`{text}`")));
            }
            Ok(stated::<Bytes>(bytes, format!("scenario: host memory {text}")))
        };
        let size = scenario.host_memory.as_ref().map(size).transpose()?;
        let named = scenario.host.as_deref().map(|text| self.named_host(text)).transpose()?;
        let none_named = NamedHost::default();
        if size.is_some() || named.is_some() {
            let none =
                Host { cpu: None, memory: None, memory_bandwidth: None, storage_read: None, storage: None };
            let host = cluster.host.get_or_insert(none);
            host.memory = size.clone().or(host.memory.take());
            let NamedHost { memory, processor } = named.as_ref().unwrap_or(&none_named);
            if let Some((device, count)) = processor {
                host.cpu = Some(format!("{count} x {}", device.id));
                host.memory_bandwidth = None;
            }
            host.memory_bandwidth = memory.clone().or(host.memory_bandwidth.take());
        }
        if cluster.device.is_processor() {
            own_memory(&mut cluster, size, named);
        }
        cluster.processor = self.processor_of(&cluster)?;
        Ok(cluster)
    }

    /// The processor of the host: named by it, else inferred from its memory; none where the memory is not known.
    fn processor_of(&self, cluster: &Cluster) -> Result<Option<HostProcessor>, Error> {
        let defaults = self.defaults()?;
        let device = &cluster.device;
        if device.is_processor() {
            return Ok(Some(own(device, &defaults, device.bandwidth()?.clone(), 1)));
        }
        let Some(host) = cluster.host.as_ref().filter(|host| host.memory.is_some()) else { return Ok(None) };
        let named = host.cpu.as_deref().and_then(|cpu| self.listed_processor(cpu));
        let (named, count) = named.map_or((None, 1), |(device, count)| (Some(device), count));
        let of_device = || {
            let device = named.as_ref()?;
            let rate = device.memory.bandwidth.as_ref()?;
            let source = Source {
                grade: rate.source.grade,
                text: format!("{count} x {}: {}", device.name, rate.source.text).into(),
            };
            Some(Figure::new(rate.value * count as f64, source))
        };
        let rate = host.memory_bandwidth.clone().or_else(of_device);
        let rate = rate.unwrap_or_else(|| defaults.host_memory_bandwidth.clone());
        Ok(Some(match &named {
            Some(device) => own(device, &defaults, rate, count),
            None => inferred(&defaults, rate),
        }))
    }
}

/// A processor as a device: what lies in host memory lies in its memory.
fn own_memory(cluster: &mut Cluster, size: Option<Figure<Bytes>>, named: Option<NamedHost>) {
    let memory = &mut cluster.device.memory;
    memory.capacity = size.or(memory.capacity.take());
    if let Some(rate) = named.and_then(|named| named.memory) {
        memory.bandwidth = Some(rate);
    }
}

fn own(device: &Device, defaults: &Defaults, bandwidth: Figure<ByteRate>, count: u64) -> HostProcessor {
    use crate::spec::device::Arithmetic;
    let peak = device.peak.get(&Arithmetic::Fp32).map(|peak| {
        let text = format!("{count} x {}: {}", device.name, peak.source.text);
        Figure::new(peak.value * count as f64, Source { grade: peak.source.grade, text: text.into() })
    });
    match peak {
        Some(peak) => HostProcessor { bandwidth, peak },
        None => inferred(defaults, bandwidth),
    }
}

/// A processor of which only the memory is known.
pub(super) fn inferred(defaults: &Defaults, bandwidth: Figure<ByteRate>) -> HostProcessor {
    let ratio = &defaults.host_flops_per_byte;
    let text = format!("{} operations per byte of host memory: {}", ratio.value, ratio.source.text);
    let source = Source { grade: Grade::Assumed, text: text.into() };
    HostProcessor { peak: Figure::new(bandwidth.value * ratio.value, source), bandwidth }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> f64 {
        memory(text).expect("memory").expect("numbers").value
    }

    #[test]
    fn memory_has_the_rate_of_its_channels() {
        assert_eq!(rate("ddr5-6000x2"), 96e9);
        assert_eq!(rate("DDR4-3200x8"), 204.8e9);
        assert_eq!(rate("ddr5-5600"), rate("ddr5-5600x2"));
        assert!(memory("epyc-9355").is_none());
        for wrong in ["ddr5-x2", "ddr5-6000x0", "ddr5-6000x65", "ddr5-99999", "ddr5-6000x2x2"] {
            assert_eq!(memory(wrong).expect("memory").expect_err(wrong).key, "host");
        }
    }

    fn with(hardware: &str, host: Option<&str>, size: Option<&str>) -> Result<Cluster, Error> {
        let catalog = Catalog::default();
        let cluster = catalog.hardware(hardware)?;
        let (host, host_memory) = (host.map(String::from), size.map(String::from));
        catalog.with_host(cluster, &Scenario { host, host_memory, ..Scenario::default() })
    }

    #[test]
    fn a_host_is_memory_or_a_processor_of_the_catalogue() {
        let rate = |cluster: Cluster| cluster.processor.map(|of| of.bandwidth.value);
        assert_eq!(rate(with("rtx-4090", Some("ddr5-6000x2"), Some("64GB")).unwrap()), Some(96e9));
        assert_eq!(rate(with("rtx-4090", Some("epyc-9355"), Some("512GB")).unwrap()), Some(576e9));
        assert_eq!(rate(with("rtx-4090", Some("2 x epyc-9355"), Some("512GB")).unwrap()), Some(1152e9));
        let both = with("rtx-4090", Some("ryzen-9-7950x,ddr5-6400x2"), Some("64GB")).unwrap();
        assert_eq!(rate(both), Some(102.4e9));
        let twice = Some("ddr5-6000x2,ddr5-6400x2");
        assert_eq!(with("rtx-4090", twice, Some("64GB")).unwrap_err().key, "host");
        for (host, key) in [("h100", "host"), ("ddr5-no", "host"), ("toaster", "host")] {
            assert_eq!(with("rtx-4090", Some(host), Some("64GB")).unwrap_err().key, key);
        }
        for size in ["64", "-1GB", "0GB", "plenty"] {
            assert_eq!(with("rtx-4090", None, Some(size)).unwrap_err().key, "host-memory", "{size}");
        }
    }

    #[test]
    fn a_processor_alone_takes_the_stated_memory() {
        let cluster = with("ryzen-9-7950x", Some("ddr5-6000x2"), Some("128GB")).unwrap();
        assert_eq!(cluster.device.memory.capacity.unwrap().value, 128e9);
        assert_eq!(cluster.processor.unwrap().bandwidth.value, 96e9);
    }
}
