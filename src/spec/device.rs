//! An accelerator as in its file. Independent of workloads.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::figure::{ByteRate, Bytes, Dimension, DollarRate, Dollars, Figure, FlopRate, Ratio, Watts};
use super::limits::{CAPACITY, DEVICES, EFFICIENCY, POWER};
use super::stated_constants::StatedConstants;

/// A number format that a device may compute natively. Later variants are narrower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arithmetic {
    /// IEEE single precision.
    Fp32,
    /// bfloat16 with fp32 accumulation.
    Bf16,
    /// IEEE half precision with fp32 accumulation.
    Fp16,
    /// E4M3 or E5M2.
    Fp8,
    /// 8-bit integers.
    Int8,
    /// E2M1.
    Fp4,
    /// 4-bit integers.
    Int4,
}

impl Arithmetic {
    /// Its name in files and formulas.
    pub fn name(self) -> &'static str {
        match self {
            Arithmetic::Fp32 => "fp32",
            Arithmetic::Bf16 => "bf16",
            Arithmetic::Fp16 => "fp16",
            Arithmetic::Fp8 => "fp8",
            Arithmetic::Int8 => "int8",
            Arithmetic::Fp4 => "fp4",
            Arithmetic::Int4 => "int4",
        }
    }
}

/// The maker of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// AMD.
    Amd,
    /// Apple.
    Apple,
    /// Amazon Web Services.
    Aws,
    /// Cerebras.
    Cerebras,
    /// Google.
    Google,
    /// Groq.
    Groq,
    /// Huawei.
    Huawei,
    /// Intel.
    Intel,
    /// NVIDIA.
    Nvidia,
    /// SambaNova.
    SambaNova,
    /// Tenstorrent.
    Tenstorrent,
    /// Any other: runtimes name the generations of its devices.
    #[default]
    Other,
}

impl Vendor {
    /// The names in files of all but the last, in their order.
    pub const NAMES: [&str; 11] = [
        "amd",
        "apple",
        "aws",
        "cerebras",
        "google",
        "groq",
        "huawei",
        "intel",
        "nvidia",
        "sambanova",
        "tenstorrent",
    ];

    pub fn name(self) -> &'static str {
        Vendor::NAMES.get(self as usize).copied().unwrap_or("other")
    }
}

/// One accelerator.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// File name without `.json`.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Vendor.
    pub vendor: Vendor,
    /// Generation; efficiency constants are shared by generation. One of the catalogue's, or a new one with
    /// `new_family`.
    pub family: String,
    /// The generation is new: no other file knows it, so that the constants of the nearest devices apply.
    #[serde(default)]
    pub new_family: bool,
    /// Other short names of this device only.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// `datacenter`, `workstation`, `consumer`, `laptop`, `unified` …
    pub class: String,
    /// Its memory.
    pub memory: DeviceMemory,
    /// Dense peak per arithmetic that it computes natively; empty where none was published.
    #[serde(default)]
    pub peak: BTreeMap<Arithmetic, Figure<FlopRate>>,
    /// Link between devices of a node.
    pub scale_up: Option<ScaleUp>,
    /// Link to host memory.
    pub host_link: Option<HostLink>,
    /// Power.
    pub power: Option<Power>,
    /// Price of the bare device; of the whole machine for the classes `unified` and `edge`.
    #[serde(default)]
    pub price: Price,
    /// Measured rates, for comparison with the peaks.
    #[serde(default)]
    pub measured: Vec<MeasuredRate>,
    /// Efficiencies and overheads in place of the runtime's.
    #[serde(default, skip_serializing_if = "StatedConstants::is_empty")]
    pub constants: StatedConstants,
    /// The system of the host when only a number of devices is given; absent where the device's own links define the
    /// interconnect.
    pub system: Option<String>,
    /// Remarks.
    pub notes: Option<String>,
    /// The device of the catalogue whose chip this is, where only its memory is another: it has its constants.
    #[serde(skip)]
    pub chip_of: Option<String>,
}

/// Memory of a device.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceMemory {
    /// `hbm3`, `gddr6x`, `lpddr5` …
    pub kind: String,
    /// Shared with the host's processor.
    #[serde(default)]
    pub unified: bool,
    /// Marketed size.
    pub marketed: Option<Figure<Bytes>>,
    /// Size visible to software; absent where it depends on installed modules.
    pub capacity: Option<Figure<Bytes>>,
    /// Peak bandwidth; absent where none was published.
    pub bandwidth: Option<Figure<ByteRate>>,
    /// The sizes that its maker sells, where there are several; the figures above are those of one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sold: Vec<SoldMemory>,
}

/// A memory size that a device is sold with.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoldMemory {
    /// Marketed size.
    pub marketed: Figure<Bytes>,
    /// Size visible to software.
    pub capacity: Figure<Bytes>,
    /// Peak bandwidth, where it is not that of the device.
    pub bandwidth: Option<Figure<ByteRate>>,
    /// Fraction of the peaks of the device, where it is not 1: a chip with fewer cores.
    pub peaks: Option<Figure<Ratio>>,
    /// The chip with this memory, where there are several: `14-core CPU, 32-core GPU`.
    pub chip: Option<String>,
}

/// Gigabytes of the label of a memory.
fn labelled(size: &Figure<Bytes>) -> u64 {
    (size.value / 1e9).round() as u64
}

impl DeviceMemory {
    /// Gigabytes of its label.
    pub fn gigabytes(&self) -> Option<u64> {
        self.marketed.as_ref().map(labelled)
    }
}

impl SoldMemory {
    /// Gigabytes of its label.
    pub fn gigabytes(&self) -> u64 {
        labelled(&self.marketed)
    }
}

/// Link between the devices of a node.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleUp {
    /// Id of the link.
    pub link: String,
    /// Bandwidth per direction and device.
    pub bandwidth: Figure<ByteRate>,
    /// Maximum number of devices that it joins.
    pub domain: u32,
    /// Whether it is a bridge that buyers of cards for a home seldom add: only systems that are named have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// Link to host memory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostLink {
    /// Id of the link.
    pub link: String,
    /// Bandwidth per direction.
    pub bandwidth: Figure<ByteRate>,
}

/// Power of a device.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Power limit.
    pub tdp: Figure<Watts>,
    /// Power at idle.
    pub idle: Option<Figure<Watts>>,
    /// Fraction of the limit drawn by compute-bound kernels.
    pub compute_bound: Option<Figure<Ratio>>,
    /// Fraction of the limit drawn by memory-bound kernels.
    pub memory_bound: Option<Figure<Ratio>>,
}

/// Price of a device or system.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Purchase price.
    pub purchase: Option<Figure<Dollars>>,
    /// Rent.
    pub rent: Option<Figure<DollarRate>>,
    /// The lowest and highest purchase price found.
    pub purchase_bounds: Option<PriceRange<Dollars>>,
    /// The lowest and highest rent found.
    pub rent_bounds: Option<PriceRange<DollarRate>>,
}

/// Range of a price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, bound = "D: Dimension")]
#[schemars(bound = "D: Dimension")]
pub struct PriceRange<D> {
    /// The lowest.
    pub low: Figure<D>,
    /// The highest.
    pub high: Figure<D>,
}

impl<D: Dimension> PriceRange<D> {
    /// Whether `price` lies between them.
    pub fn hold(&self, price: &Figure<D>) -> bool {
        (self.low.value..=self.high.value).contains(&price.value)
    }
}

impl Price {
    /// Checks the constraints that the types do not express.
    pub fn check(&self) -> Result<(), Error> {
        bounded("price.purchase_bounds", self.purchase.as_ref(), self.purchase_bounds.as_ref())?;
        bounded("price.rent_bounds", self.rent.as_ref(), self.rent_bounds.as_ref())
    }
}

/// A price and its bounds, which contain it.
pub fn bounded<D: Dimension>(
    key: &str,
    price: Option<&Figure<D>>,
    bounds: Option<&PriceRange<D>>,
) -> Result<(), Error> {
    match (price, bounds) {
        (_, None) => Ok(()),
        (Some(price), Some(bounds)) if bounds.hold(price) => Ok(()),
        (price, Some(bounds)) => {
            let found = format!("{} to {}", bounds.low, bounds.high);
            let expected = price
                .map_or("a price with these bounds".to_owned(), |price| format!("bounds around {price}"));
            Err(Error::new(key, found, expected, "add the price, or correct the bounds"))
        }
    }
}

/// A measured rate.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredRate {
    /// The measured quantity.
    pub what: String,
    /// The number and its unit.
    pub value: serde_json::Value,
    /// Source.
    pub source: String,
}

/// Class of devices that share the memory of their host. They are whole machines: a link between them joins machines, not
/// slots.
pub const UNIFIED: &str = "unified";
/// Class of GPUs that are part of a laptop: one in a machine, and no card that can be bought.
pub const LAPTOP: &str = "laptop";
/// Class of devices that are processors of hosts.
pub const PROCESSOR: &str = "host";

impl Device {
    /// Whether it is the processor of a host.
    pub fn is_processor(&self) -> bool {
        self.class == PROCESSOR
    }

    /// Whether it is a home or edge device, or a processor: such machines serve one user, with the runtimes and formats made for them.
    pub fn is_home(&self) -> bool {
        ["consumer", LAPTOP, "unified", "edge", PROCESSOR].contains(&self.class.as_str())
    }

    /// Whether it is on a desk or in a home: electricity, network and hosts are those of a home.
    pub fn is_at_desk(&self) -> bool {
        ["consumer", LAPTOP, "unified", "workstation"].contains(&self.class.as_str())
    }

    /// Whether it is a whole machine, so that its price includes its host.
    pub fn is_machine(&self) -> bool {
        ["unified", "edge"].contains(&self.class.as_str())
    }

    /// The id under which it was measured: that of the device with the same chip.
    pub fn measured_as(&self) -> &str {
        self.chip_of.as_deref().unwrap_or(&self.id)
    }

    /// Whether it is a module of a board, sold with the board: its links join more than a few others.
    pub fn is_module(&self) -> bool {
        const DATACENTER: &str = "datacenter";
        const BRIDGED: u32 = 4;
        self.class == DATACENTER && self.scale_up.as_ref().is_some_and(|up| up.domain > BRIDGED)
    }

    /// Checks the constraints that the types do not express.
    pub fn check(&self) -> Result<(), Error> {
        for (key, figure) in
            [("memory.marketed", &self.memory.marketed), ("memory.capacity", &self.memory.capacity)]
        {
            figure.iter().try_for_each(|figure| CAPACITY.check(key, figure.value))?;
        }
        for sold in &self.memory.sold {
            CAPACITY.check("memory.sold.marketed", sold.marketed.value)?;
            CAPACITY.check("memory.sold.capacity", sold.capacity.value)?;
            sold.peaks.iter().try_for_each(|share| EFFICIENCY.check("memory.sold.peaks", share.value))?;
        }
        self.scale_up.iter().try_for_each(|up| DEVICES.check_whole("scale_up.domain", up.domain.into()))?;
        self.price.check()?;
        self.constants.check()?;
        let Some(power) = &self.power else { return Ok(()) };
        POWER.check("power.tdp", power.tdp.value)?;
        let parts =
            [("power.compute_bound", &power.compute_bound), ("power.memory_bound", &power.memory_bound)];
        parts.into_iter().try_for_each(|(key, part)| {
            part.as_ref().map_or(Ok(()), |part| EFFICIENCY.check(key, part.value))
        })
    }

    /// Keys of unpublished figures that a deployment needs.
    pub fn missing(&self) -> Vec<&'static str> {
        let keys = [
            ("memory.capacity", self.memory.capacity.is_none()),
            ("memory.bandwidth", self.memory.bandwidth.is_none()),
            ("peak", self.peak.is_empty()),
        ];
        keys.into_iter().filter(|(_, missing)| *missing).map(|(key, _)| key).collect()
    }

    /// Memory visible to software.
    pub fn capacity(&self) -> Result<&Figure<Bytes>, Error> {
        self.memory.capacity.as_ref().ok_or_else(|| self.unstated("memory.capacity"))
    }

    /// Peak memory bandwidth.
    pub fn bandwidth(&self) -> Result<&Figure<ByteRate>, Error> {
        self.memory.bandwidth.as_ref().ok_or_else(|| self.unstated("memory.bandwidth"))
    }

    /// Checks that the file has every figure that a deployment needs.
    pub fn complete(&self) -> Result<(), Error> {
        self.missing().first().map_or(Ok(()), |key| Err(self.unstated(key)))
    }

    fn unstated(&self, key: &str) -> Error {
        let (expected, example) = match key {
            "memory.capacity" => {
                ("the memory visible to software", r#""capacity": {"value": "384 GiB", "source": "…"}"#)
            }
            "memory.bandwidth" => {
                ("the peak memory bandwidth", r#""bandwidth": {"value": "460.8 GB/s", "source": "…"}"#)
            }
            _ => (
                "the dense peak of at least one number format",
                r#""bf16": {"value": "125 TFLOP/s", "source": "…"}"#,
            ),
        };
        let missing = self.missing();
        let others =
            if missing.len() > 1 { format!(" (missing: {})", missing.join(", ")) } else { String::new() };
        Error::new(
            key,
            format!("no figure for {}: unpublished{others}", self.name),
            expected,
            format!("add it to your own hardware/devices/{}.json, e.g. {example}", self.id),
        )
    }
}
