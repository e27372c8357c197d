//! The words of a device's name: the product, and what a short form may leave out. The words are those of
//! `device_name.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::model_name::words;

/// The tables of `device_name.json`.
#[derive(Deserialize)]
struct DeviceWords {
    lines: Vec<String>,
    loose: Vec<String>,
    forms: Vec<String>,
    slices: SliceTable,
}

#[derive(Deserialize)]
struct SliceTable {
    source: String,
    devices: Vec<SlicedDevices>,
}

/// Devices with the same parts.
#[derive(Deserialize)]
struct SlicedDevices {
    devices: Vec<String>,
    compute: u64,
    memory: u64,
    /// Parts of the compute units and of the memory of each profile.
    profiles: BTreeMap<String, (u64, u64)>,
}

static TABLES: LazyLock<DeviceWords> =
    LazyLock::new(|| serde_json::from_str(include_str!("device_name.json")).expect("the tables are JSON"));

/// A name in parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DeviceName {
    /// The words of the product, joined.
    pub product: String,
    lines: Vec<String>,
    forms: Vec<String>,
    /// Gigabytes.
    pub memory: Option<u64>,
}

impl DeviceName {
    pub fn parse(text: &str) -> DeviceName {
        let tables = &*TABLES;
        let mut name = DeviceName::default();
        for word in words(text).iter().flat_map(|word| parts(word)) {
            // `sxm4` is a form like `sxm`.
            let form = word.trim_end_matches(|c: char| c.is_ascii_digit());
            if tables.forms.iter().any(|known| known == form) {
                name.forms.push(form.to_owned());
            } else if let Some(gigabytes) = gigabytes(word) {
                name.memory = Some(gigabytes);
            } else if tables.lines.iter().chain(&tables.loose).any(|known| known == word) {
                name.lines.push(word.to_owned());
            } else {
                name.product.push_str(word);
            }
        }
        name
    }

    /// The parts of an id, whose first word is the vendor's.
    pub fn of_id(id: &str) -> DeviceName {
        let (vendor, rest) = id.split_once('-').unwrap_or(("", id));
        let name = DeviceName::parse(rest);
        if name.product.is_empty() { DeviceName::parse(id) } else { name.with_line(vendor) }
    }

    fn with_line(mut self, line: &str) -> DeviceName {
        self.lines.push(line.to_lowercase());
        self
    }

    /// Whether `self` is a short form of `whole`, whose memory is `gigabytes`.
    pub fn shortens(&self, whole: &DeviceName, gigabytes: Option<u64>) -> bool {
        let has = |line: &String| whole.lines.contains(line) || TABLES.loose.contains(line);
        !self.product.is_empty()
            && self.product == whole.product
            && self.lines.iter().all(has)
            && self.forms.iter().all(|form| whole.forms.contains(form))
            && self.memory.is_none_or(|stated| [whole.memory, gigabytes].contains(&Some(stated)))
    }
}

/// A word, with its line cut from a number that follows at once: `rtx3090`.
fn parts(word: &str) -> Vec<&str> {
    let glued = TABLES.lines.iter().find_map(|line| {
        let rest = word.strip_prefix(line.as_str()).filter(|_| line.len() > 1)?;
        let number = rest.len() > 2 && rest.starts_with(|c: char| c.is_ascii_digit());
        number.then(|| word.split_at(line.len()))
    });
    glued.map_or_else(|| vec![word], |(line, rest)| vec![line, rest])
}

/// `80gb`.
pub(super) fn gigabytes(word: &str) -> Option<u64> {
    word.to_lowercase().strip_suffix("gb")?.trim().parse().ok()
}

/// The part of a device that a profile gives.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slice {
    pub compute: f64,
    pub memory: f64,
    pub source: &'static str,
}

/// The profiles of the device with this id; empty where it has none.
pub(super) fn profiles(id: &str) -> BTreeMap<&'static str, Slice> {
    let table = &TABLES.slices;
    let own = table.devices.iter().filter(|sliced| sliced.devices.iter().any(|device| device == id));
    own.flat_map(|sliced| {
        sliced.profiles.iter().map(|(name, (compute, memory))| {
            let slice = Slice {
                compute: *compute as f64 / sliced.compute as f64,
                memory: *memory as f64 / sliced.memory as f64,
                source: &table.source,
            };
            (name.as_str(), slice)
        })
    })
    .collect()
}

/// `a100:3g.40gb`, `a100-mig-3g.40gb`: the device and the profile.
pub(super) fn sliced(text: &str) -> Option<(&str, &str)> {
    let is_profile = |profile: &str| {
        let (units, size) = profile.split_once("g.").unwrap_or_default();
        units.len() == 1 && units.starts_with(|c: char| c.is_ascii_digit()) && gigabytes(size).is_some()
    };
    [":", "-mig-", "-"].iter().find_map(|mark| {
        let (device, profile) = text.rsplit_once(mark)?;
        let device = device.trim_end_matches([':', '-']).trim_end_matches("mig").trim_end_matches([':', '-']);
        is_profile(profile).then_some((device, profile))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_form_leaves_out_vendor_line_form_and_memory() {
        let shortens =
            |short: &str, id: &str| DeviceName::parse(short).shortens(&DeviceName::of_id(id), None);
        for (short, id) in [
            ("rtx-3090", "nvidia-rtx-3090"),
            ("rtx3090", "nvidia-rtx-3090"),
            ("geforce-rtx-4070-ti", "nvidia-rtx-4070-ti"),
            ("v100-sxm2-16gb", "nvidia-v100-sxm2-16gb"),
            ("h100-sxm5", "nvidia-h100-sxm"),
            ("7950x", "amd-ryzen-9-7950x"),
            ("v5e", "google-tpu-v5e"),
            ("m5-max", "apple-m5-max"),
        ] {
            assert!(shortens(short, id), "{short} {id}");
        }
        for (short, id) in [
            ("rtx-2060", "nvidia-rtx-2060-super"),
            ("rx-7900-xt", "amd-rx-7900-xtx"),
            ("h100", "nvidia-h100-nvl"),
            ("m5", "apple-m5-max"),
            ("v100-sxm2-16gb", "nvidia-v100-sxm2-32gb"),
            ("h100-pcie", "nvidia-h100-sxm"),
            ("gtx-2060", "nvidia-rtx-2060"),
            ("rtx", "nvidia-rtx-3090"),
        ] {
            assert!(!shortens(short, id), "{short} {id}");
        }
    }

    #[test]
    fn a_slice_is_a_profile_of_its_device() {
        for text in ["a100:3g.40gb", "a100-mig-3g.40gb", "a100-3g.40gb", "a100:mig-3g.40gb"] {
            assert_eq!(sliced(text), Some(("a100", "3g.40gb")), "{text}");
        }
        assert_eq!(sliced("h100-sxm-80gb"), None);
        let half = &profiles("nvidia-a100-sxm-80gb")["3g.40gb"];
        assert_eq!((half.compute * 7.0, half.memory), (3.0, 0.5));
    }
}
