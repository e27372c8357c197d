//! From a device's name to the device: by id, name or alias, by a short form, with another memory, or a slice of it.

use std::sync::Arc;

use super::catalog::{Catalog, CatalogEntry, LookupError};
use super::device_name::{DeviceName, Slice, bare_chip, gigabytes, profiles, sized, sliced, with_profile};
use super::kind::CatalogKind;
use super::lookup::{LabelledEntry, is_labelled};
use super::model_name::words;
use crate::quantity::datum::{Grade, Source};
use crate::spec::device::{Device, DeviceMemory, HostLink, Power, Price, SoldMemory};
use crate::spec::error::Error;
use crate::spec::figure::{Figure, FlopRate, Ratio};

/// Bytes of a GiB: the labels of memories are binary.
const GIB: f64 = (1u64 << 30) as f64;
/// Gigabytes that a hardware word may state.
const MOST_GIGABYTES: u64 = 1 << 20;

impl Catalog {
    /// The device with this id, name or alias, or with this short form of an id; with a memory size that it is sold
    /// with (`m4-max-64gb`); `DEVICE@16GB` with another memory, and `DEVICE:3g.40gb` for a slice of it.
    pub fn device(&self, name: &str) -> Result<Device, LookupError> {
        if let Some((device, profile)) = sliced(name) {
            return self.slice(device, &profile);
        }
        if let Some((device, size)) = name.rsplit_once('@') {
            return self.resized(device, size);
        }
        let found = self.devices_named(name);
        if !found.as_ref().is_ok_and(|found| !found.is_empty())
            && let Some(device) = self.with_stated_memory(name)
        {
            return device;
        }
        let only = self.only(CatalogKind::Devices, name, found?, "a unique device name")?;
        self.read(&only).map(Arc::unwrap_or_clone).map_err(LookupError::Unclear)
    }

    /// The device of a name with a memory size in it; `None` where the rest names no device.
    fn with_stated_memory(&self, name: &str) -> Option<Result<Device, LookupError>> {
        let Some((base, stated)) = sized(name) else {
            let words = words(name);
            let chip = bare_chip(&words);
            return (chip.len() < words.len()).then(|| self.device(&chip.join("-")));
        };
        let found = self.devices_named(&base).ok().filter(|found| found.len() == 1)?;
        let whole: Arc<Device> = self.read(&found[0]).ok()?;
        if let Some(device) = whole.sold_with(stated) {
            return Some(Ok(device));
        }
        let label = |sold: &SoldMemory| sold.gigabytes().to_string();
        let found = format!("`{}`", name.trim());
        let own = whole.memory.gigabytes();
        let (expected, fix) = match (&whole.memory.sold[..], own) {
            ([], None) => return None,
            ([], Some(own)) => (
                format!("{own} GB, the memory of {}", whole.name),
                format!("write {base}, or {base}@{stated}GB for one whose memory was changed"),
            ),
            ([first, ..], _) => (
                format!(
                    "one of the memory sizes of {}: {} GB",
                    whole.name,
                    whole.memory.sold.iter().map(label).collect::<Vec<_>>().join(", ")
                ),
                format!("write e.g. {base}-{}gb", label(first)),
            ),
        };
        Some(Err(LookupError::Unclear(Error::new("hardware", found, expected, fix))))
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
        let (wanted, listed) = (DeviceName::parse(name), self.labelled(CatalogKind::Devices));
        let marketed = |one: &LabelledEntry| one.label.as_ref().ok()?.memory.marketed.as_ref()?.gigabytes();
        let meant = |one: &&LabelledEntry| {
            let whole = DeviceName::of_id(one.id());
            wanted.shortens(&whole, None)
                || wanted.product == whole.product && wanted.shortens(&whole, marketed(one))
        };
        let found: Vec<CatalogEntry> = listed.iter().filter(meant).map(|one| one.entry(self)).collect();
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
        let begun = |id: &&str| {
            let short = id.split_once('-').map_or(*id, |(_, short)| short);
            [*id, short].iter().any(|id| id.starts_with(&part) || id.ends_with(&part))
        };
        let ids: Vec<String> =
            listed.iter().map(LabelledEntry::id).filter(begun).map(str::to_owned).collect();
        if ids.is_empty() {
            return Ok(vec![]);
        }
        Err(LookupError::Unclear(partial(name, &ids)))
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
        let held = whole.memory.gigabytes();
        if held == Some(stated) {
            return Ok(whole);
        }
        if !whole.memory.sold.is_empty() {
            return self.device(&format!("{name}-{stated}gb"));
        }
        if let Ok(found) = self.devices_named(&format!("{name}-{stated}gb"))
            && let [product] = &found[..]
        {
            return self.read(product).map(Arc::unwrap_or_clone).map_err(LookupError::Unclear);
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
            chip_of: Some(whole.id.clone()),
            ..whole
        })
    }

    /// The part of a device that `profile` gives.
    fn slice(&self, name: &str, profile: &str) -> Result<Device, LookupError> {
        let refused = |found: String, expected: String, fix: String| {
            Err(LookupError::Unclear(Error::new("hardware", found, expected, fix)))
        };
        if name.is_empty() {
            let having: Vec<&str> = with_profile(profile).collect();
            let found = format!("the profile {profile} without its card");
            return match having.first() {
                None => refused(found, "a card with slices".into(), "write e.g. h100:3g.40gb".into()),
                Some(first) => refused(
                    found,
                    format!("a card with this profile: {}", having.join(", ")),
                    format!("write e.g. {first}:{profile}"),
                ),
            };
        }
        let whole = self.device(name)?;
        let known = profiles(&whole.id);
        if let Some(slice) = known.get(profile) {
            return Ok(part(whole, profile, slice));
        }
        // `a100` is the card with 80 GB, and its profile may be that of the one with 40.
        let own = DeviceName::of_id(&whole.id);
        let unsized_name = DeviceName::parse(name).memory.is_none();
        let other_size = |id: &&str| DeviceName::of_id(id).differs_in_memory(&own);
        if let Some(other) = with_profile(profile).find(other_size).filter(|_| unsized_name) {
            return self.slice(other, profile);
        }
        let names: Vec<&str> = known.keys().copied().collect();
        let (expected, fix) = match &names[..] {
            [] => (format!("a device with slices; {} has none", whole.name), "name the whole device".into()),
            [first, ..] => (
                format!("a profile of {}: {}", whole.name, names.join(", ")),
                format!("write e.g. {name}:{first}"),
            ),
        };
        refused(format!("`{name}:{profile}`"), expected, fix)
    }
}

impl Device {
    /// This device with a memory size that it is sold with.
    pub(super) fn sold_with(&self, gigabytes: u64) -> Option<Device> {
        let own = self.memory.gigabytes()?;
        let sold = self.memory.sold.iter().find(|sold| sold.gigabytes() == gigabytes)?;
        if own == gigabytes {
            return Some(self.clone());
        }
        let chip = sold.chip.as_ref().map_or_else(String::new, |chip| format!(" ({chip})"));
        let (label, other) = (format!("{own}GB"), format!("{gigabytes}GB"));
        let peak = self.peak.clone().into_iter().map(|(arithmetic, rate)| {
            let scaled = sold.peaks.as_ref().map(|share| share_of(&rate, share));
            (arithmetic, scaled.unwrap_or(rate))
        });
        let bandwidth = sold.bandwidth.clone().or_else(|| self.memory.bandwidth.clone());
        let host_link = self.host_link.clone().map(|own| match &sold.bandwidth {
            Some(bandwidth) if self.memory.unified => HostLink { bandwidth: bandwidth.clone(), ..own },
            _ => own,
        });
        Some(Device {
            id: format!("{}-{gigabytes}gb", self.id),
            name: format!("{}{chip}", self.name.replace(&label, &other)),
            aliases: vec![],
            memory: DeviceMemory {
                marketed: Some(sold.marketed.clone()),
                capacity: Some(sold.capacity.clone()),
                bandwidth,
                ..self.memory.clone()
            },
            peak: peak.collect(),
            host_link,
            // The price is that of the machine in the file.
            price: Price::default(),
            system: None,
            chip_of: Some(self.id.clone()),
            ..self.clone()
        })
    }
}

/// `share` of a rate.
fn share_of(rate: &Figure<FlopRate>, share: &Figure<Ratio>) -> Figure<FlopRate> {
    let text = format!("{} of {rate}: {}; {}", share.value, share.source.text, rate.source.text);
    let grade = rate.source.grade.max(share.source.grade);
    Figure::new(rate.value * share.value, Source { grade, text: text.into() })
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
        id: format!("{}-mig-{profile}", whole.id),
        name: format!("{}, MIG {profile}", whole.name),
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
