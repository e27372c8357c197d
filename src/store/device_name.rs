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
    machines: Vec<String>,
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
    #[serde(default)]
    source: Option<String>,
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

    /// Whether the two are one but for the memory that both state.
    pub fn differs_in_memory(&self, other: &DeviceName) -> bool {
        let both = self.memory.zip(other.memory);
        both.is_some_and(|(own, other)| own != other)
            && DeviceName { memory: other.memory, ..self.clone() } == *other
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

/// `80gb`, `80GiB`: labels of memories are binary.
pub(super) fn gigabytes(word: &str) -> Option<u64> {
    let word = word.to_lowercase();
    word.strip_suffix("gb").or_else(|| word.strip_suffix("gib"))?.trim().parse().ok()
}

/// The part of a device that a profile gives.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slice {
    pub compute: f64,
    pub memory: f64,
    pub source: String,
}

impl SlicedDevices {
    fn slice(&self, (compute, memory): (u64, u64)) -> Slice {
        let own = self.source.iter().map(String::as_str);
        Slice {
            compute: compute as f64 / self.compute as f64,
            memory: memory as f64 / self.memory as f64,
            source: std::iter::once(TABLES.slices.source.as_str()).chain(own).collect::<Vec<_>>().join("; "),
        }
    }
}

/// The profiles of the device with this id; empty where it has none.
pub(super) fn profiles(id: &str) -> BTreeMap<&'static str, Slice> {
    let own = TABLES.slices.devices.iter().filter(|sliced| sliced.devices.iter().any(|device| device == id));
    own.flat_map(|sliced| sliced.profiles.iter().map(|(name, parts)| (name.as_str(), sliced.slice(*parts))))
        .collect()
}

/// The ids of the devices with this profile.
pub(super) fn with_profile(profile: &str) -> impl Iterator<Item = &'static str> {
    let all = TABLES.slices.devices.iter();
    let having = all.filter(move |sliced| sliced.profiles.contains_key(profile));
    having.flat_map(|sliced| sliced.devices.iter().map(String::as_str))
}

/// Words that may follow the size in a profile: media engines and graphics. Kubernetes writes a point for the plus sign.
const EXTRAS: [(&str, &str); 8] = [
    ("", ""),
    ("+me", "+me"),
    (".me", "+me"),
    ("+me.all", "+me.all"),
    (".me.all", "+me.all"),
    ("+gfx", "+gfx"),
    (".gfx", "+gfx"),
    ("-me", "-me"),
];
/// The resource names of Kubernetes begin so: they do not say which card it is.
const KUBERNETES: &str = "nvidia.com";

/// The device and the profile of `a100:3g.40gb`, `A100 MIG 3g.40gb` or `nvidia.com/mig-3g.40gb`, where the device is
/// empty.
pub(super) fn sliced(text: &str) -> Option<(&str, String)> {
    let lower = text.to_ascii_lowercase();
    let units = lower.rfind("g.")?.checked_sub(1).filter(|at| lower.as_bytes()[*at].is_ascii_digit())?;
    let (device, profile) = text.split_at(units);
    if device.ends_with(|c: char| c.is_alphanumeric()) {
        return None;
    }
    let profile = profile.trim().to_ascii_lowercase();
    let end = profile.find("gb").map(|at| at + "gb".len())?;
    let (slice, extra) = profile.split_at(end);
    let (_, extra) = EXTRAS.iter().find(|(written, _)| *written == extra)?;
    gigabytes(slice.split_once("g.")?.1)?;
    let separators = |c: char| !c.is_alphanumeric();
    let device = device.trim_end_matches(separators);
    let before = device.len().checked_sub("mig".len()).filter(|at| device.is_char_boundary(*at));
    let marked = before.filter(|at| device[*at..].eq_ignore_ascii_case("mig"));
    let whole = |at: &usize| device[..*at].is_empty() || device[..*at].ends_with(separators);
    let device = marked.filter(whole).map_or(device, |at| device[..at].trim_end_matches(separators));
    let device = if device.eq_ignore_ascii_case(KUBERNETES) { "" } else { device };
    Some((device, format!("{slice}{extra}")))
}

/// The name without the memory size in it, and the size; the name of a machine in front of its chip is left out.
pub(super) fn sized(text: &str) -> Option<(String, u64)> {
    let mut rest = words(text);
    // `64 gb`
    if let Some(at) = rest.iter().position(|word| word == "gb" || word == "gib").filter(|at| *at > 0) {
        let unit = rest.remove(at);
        rest[at - 1].push_str(&unit);
    }
    let at = rest.iter().rposition(|word| gigabytes(word).is_some())?;
    let size = gigabytes(&rest.remove(at))?;
    Some((bare_chip(&rest).join("-"), size))
}

/// The words of a chip, without the name of a machine in front: `mac studio m2 ultra`.
pub(super) fn bare_chip(words: &[String]) -> &[String] {
    let named = |machine: &&String| {
        let mut all = machine.split(' ').zip(words);
        words.len() > machine.split(' ').count() && all.all(|(one, word)| one == word)
    };
    let machine = TABLES.machines.iter().find(named);
    machine.map_or(words, |machine| &words[machine.split(' ').count()..])
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
        let written = [
            "a100:3g.40gb",
            "a100-mig-3g.40gb",
            "a100-3g.40gb",
            "a100:mig-3g.40gb",
            "a100 3g.40gb",
            "a100 MIG 3g.40gb",
            "a100:3G.40GB",
        ];
        for text in written {
            assert_eq!(sliced(text), Some(("a100", "3g.40gb".to_owned())), "{text}");
        }
        for (text, device, profile) in [
            ("nvidia.com/mig-3g.40gb", "", "3g.40gb"),
            ("MIG 1g.10gb", "", "1g.10gb"),
            ("1g.10gb", "", "1g.10gb"),
            ("nvidia.com/mig-1g.10gb.me", "", "1g.10gb+me"),
            ("h100-1g.10gb+me", "h100", "1g.10gb+me"),
            ("rtx-pro-6000 1g.24gb+me.all", "rtx-pro-6000", "1g.24gb+me.all"),
            ("rtx-pro-6000:1g.24gb-me", "rtx-pro-6000", "1g.24gb-me"),
            ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H100 80GB HBM3", "1g.10gb"),
        ] {
            assert_eq!(sliced(text), Some((device, profile.to_owned())), "{text}");
        }
        for text in ["h100-sxm-80gb", "h100:3g.40", "g.", "1g.", "h100-x1g.10gb", "h100:1g.10gb+you"] {
            assert_eq!(sliced(text), None, "{text}");
        }
        let half = &profiles("nvidia-a100-sxm-80gb")["3g.40gb"];
        assert_eq!((half.compute * 7.0, half.memory), (3.0, 0.5));
    }

    #[test]
    fn a_memory_size_is_cut_from_a_name() {
        for (text, base, size) in [
            ("m4 max 64gb", "m4-max", 64),
            ("m4-max-64GB", "m4-max", 64),
            ("M4 Max 64 GB", "m4-max", 64),
            ("mac studio m2 ultra 192gb", "m2-ultra", 192),
            ("MacBook Pro M3 Max 36GB", "m3-max", 36),
            ("ryzen ai max+ 395 128gb", "ryzen-ai-max-395", 128),
            ("strix halo 64GiB", "strix-halo", 64),
        ] {
            assert_eq!(sized(text), Some((base.to_owned(), size)), "{text}");
        }
        for text in ["m4 max", "gb", "gb10", "mac studio"] {
            assert_eq!(sized(text), None, "{text}");
        }
    }
}
