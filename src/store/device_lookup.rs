//! From a device's name to the device: by id, name or alias, by a short form, with another memory, or a slice of it.

use super::catalog::{Catalog, CatalogEntry, LookupError, read_entry};
use super::device_name::{DeviceName, Slice, gigabytes, profiles, sliced};
use super::kind::CatalogKind;
use super::lookup::is_labelled;
use crate::quantity::datum::{Grade, Source};
use crate::spec::device::{Device, DeviceMemory, Power, Price};
use crate::spec::error::Error;
use crate::spec::figure::Figure;

/// Bytes of a GiB: the labels of memories are binary.
const GIB: f64 = (1u64 << 30) as f64;
/// Gigabytes that a hardware word may state.
const MOST_GIGABYTES: u64 = 1 << 20;

impl Catalog {
    /// The device with this id, name or alias, or with this short form of an id; `DEVICE@16GB` with another memory, and
    /// `DEVICE:3g.40gb` for a slice of it.
    pub fn device(&self, name: &str) -> Result<Device, LookupError> {
        if let Some((device, profile)) = sliced(name) {
            return self.slice(device, profile);
        }
        match name.rsplit_once('@') {
            Some((device, size)) => self.resized(device, size),
            None => {
                let found = self.devices_named(name)?;
                let only = self.only(CatalogKind::Devices, name, found, "a unique device name")?;
                read_entry(&only).map_err(LookupError::Unclear)
            }
        }
    }

    /// The files of the devices that `name` may mean: by id, name or alias, else those that it is a short form of.
    ///
    /// # Errors
    /// It is only a part of devices' names.
    pub(super) fn devices_named(&self, name: &str) -> Result<Vec<CatalogEntry>, LookupError> {
        let named = self.matching(CatalogKind::Devices, name, is_labelled)?;
        if !named.is_empty() || name.is_empty() {
            return Ok(named);
        }
        let (wanted, mut shelf) = (DeviceName::parse(name), self.entries(CatalogKind::Devices));
        let marketed = |entry: &CatalogEntry| self.label(entry).ok()?.memory.marketed.as_ref()?.gigabytes();
        let meant = |id: &String, entry: &CatalogEntry| {
            let whole = DeviceName::of_id(id);
            wanted.shortens(&whole, None)
                || wanted.product == whole.product && wanted.shortens(&whole, marketed(entry))
        };
        let found: Vec<CatalogEntry> =
            shelf.iter().filter(|(id, entry)| meant(id, entry)).map(|(_, entry)| entry.clone()).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        // A number at the end may be the memory without its unit: `h20-141`.
        if name.rsplit_once('-').is_some_and(|(_, last)| last.chars().all(|c| c.is_ascii_digit()))
            && let Ok(found) = self.devices_named(&format!("{name}gb"))
            && !found.is_empty()
        {
            return Ok(found);
        }
        let part = name.to_lowercase();
        shelf.retain(|id, _| {
            let short = id.split_once('-').map_or(id.as_str(), |(_, short)| short);
            [id.as_str(), short].iter().any(|id| id.starts_with(&part) || id.ends_with(&part))
        });
        if shelf.is_empty() {
            return Ok(vec![]);
        }
        Err(LookupError::Unclear(partial(name, &shelf.into_keys().collect::<Vec<_>>())))
    }

    /// The device with the memory that a hardware word states: a product that has it, else the device with that memory.
    fn resized(&self, name: &str, size: &str) -> Result<Device, LookupError> {
        let stated = gigabytes(size).filter(|size| (1..=MOST_GIGABYTES).contains(size)).ok_or_else(|| {
            let found = format!("`{name}@{size}`");
            let fault =
                Error::new("hardware", found, "a size such as 16GB after `@`", "write e.g. v100@16GB");
            LookupError::Unclear(fault)
        })?;
        let whole = self.device(name)?;
        let held = whole.memory.marketed.as_ref().map(|size| (size.value / 1e9).round() as u64);
        if held == Some(stated) {
            return Ok(whole);
        }
        if let Ok(found) = self.devices_named(&format!("{name}-{stated}gb"))
            && let [product] = &found[..]
        {
            return read_entry(product).map_err(LookupError::Unclear);
        }
        let source = || Source { grade: Grade::Assumed, text: "stated in the hardware word".into() };
        Ok(Device {
            id: format!("{}@{stated}GB", whole.id),
            name: format!("{} with {stated} GB", whole.name),
            aliases: vec![],
            memory: DeviceMemory {
                marketed: Some(Figure::new(stated as f64 * 1e9, source())),
                capacity: Some(Figure::new(stated as f64 * GIB, source())),
                ..whole.memory
            },
            // The prices are those of the product.
            price: Price::default(),
            system: None,
            ..whole
        })
    }

    /// The part of a device that `profile` gives.
    fn slice(&self, name: &str, profile: &str) -> Result<Device, LookupError> {
        let whole = self.device(name)?;
        let known = profiles(&whole.id);
        let Some(slice) = known.get(profile.to_lowercase().as_str()) else {
            let found = format!("`{name}:{profile}`");
            let names: Vec<&str> = known.keys().copied().collect();
            let (expected, fix) = match &names[..] {
                [] => {
                    (format!("a device with slices; {} has none", whole.name), "name the whole device".into())
                }
                [first, ..] => (format!("one of {}", names.join(", ")), format!("write e.g. {name}:{first}")),
            };
            return Err(LookupError::Unclear(Error::new("hardware", found, expected, fix)));
        };
        Ok(part(whole, profile, slice))
    }
}

/// The fault of a name that is only a part of `ids`.
fn partial(name: &str, ids: &[String]) -> Error {
    const NAMED: usize = 4;
    let shown = ids[..ids.len().min(NAMED)].join(", ");
    let (found, fix) = match ids.len() {
        0..=NAMED => (format!("`{name}`, a part of {shown}"), format!("write {}", ids.join(" or "))),
        all => (
            format!("`{name}`, a part of {shown} and {} more", all - NAMED),
            "write the whole name: `mantile-opt catalog devices` lists them".to_owned(),
        ),
    };
    let expected = "the whole name of a product: `super`, `ti`, `xt`, `max` and their like make another";
    Error::new(CatalogKind::Devices.singular(), found, expected, fix)
}

/// The part `slice` of a device. Parts have no link between them but that of the host, and no price.
fn part(whole: Device, profile: &str, slice: &Slice) -> Device {
    let of = |source: &Source, share: f64| Source {
        grade: source.grade,
        text: format!("{share:.3} of the whole, {}; {}", slice.source, source.text).into(),
    };
    let peak = whole.peak.into_iter().map(|(arithmetic, rate)| {
        let source = of(&rate.source, slice.compute);
        (arithmetic, Figure::new(rate.value * slice.compute, source))
    });
    let capacity = |size: Figure<_>| {
        let source = of(&size.source, slice.memory);
        Figure::new(size.value * slice.memory, source)
    };
    let bandwidth = whole.memory.bandwidth.map(|rate| {
        let source = of(&rate.source, slice.memory);
        Figure::new(rate.value * slice.memory, source)
    });
    let power = whole.power.map(|power| {
        let source = Source { grade: Grade::Assumed, ..of(&power.tdp.source, slice.compute) };
        Power { tdp: Figure::new(power.tdp.value * slice.compute, source), idle: None, ..power }
    });
    Device {
        id: format!("{}-mig-{}", whole.id, profile.to_lowercase()),
        name: format!("{}, MIG {}", whole.name, profile.to_lowercase()),
        aliases: vec![],
        memory: DeviceMemory {
            marketed: whole.memory.marketed.map(capacity),
            capacity: whole.memory.capacity.map(capacity),
            bandwidth,
            ..whole.memory
        },
        peak: peak.collect(),
        scale_up: None,
        power,
        price: Price::default(),
        measured: vec![],
        system: None,
        ..whole
    }
}
