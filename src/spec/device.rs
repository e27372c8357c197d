//! An accelerator as its file states it. Knows nothing of what runs on it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::figure::{ByteRate, Bytes, Dimension, DollarRate, Dollars, Figure, FlopRate, Ratio, Watts};
use super::limits::{CAPACITY, DEVICES, EFFICIENCY, POWER};

/// An arithmetic that a device may compute natively. Later ones are narrower.
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

/// One accelerator.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// File name without `.json`.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Maker.
    pub vendor: String,
    /// Generation, which efficiency constants are shared by.
    pub family: String,
    /// Other short names that mean this device and no other.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// `datacenter`, `workstation`, `consumer`, `unified` …
    pub class: String,
    /// Its memory.
    pub memory: DeviceMemory,
    /// Dense peak per arithmetic that it computes natively; empty where none was published.
    #[serde(default)]
    pub peak: BTreeMap<Arithmetic, Figure<FlopRate>>,
    /// Link to its neighbours inside a node.
    pub scale_up: Option<ScaleUp>,
    /// Link to host memory.
    pub host_link: Option<HostLink>,
    /// Power.
    pub power: Option<Power>,
    /// Price.
    #[serde(default)]
    pub price: Price,
    /// Achieved rates that somebody measured, for reading beside the peaks.
    #[serde(default)]
    pub measured: Vec<MeasuredRate>,
    /// The system whose host it sits in when only a number of devices is stated; absent where its own links
    /// say how several of it are joined.
    pub system: Option<String>,
    /// Remarks.
    pub notes: Option<String>,
}

/// Memory of a device.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceMemory {
    /// `hbm3`, `gddr6x`, `lpddr5` …
    pub kind: String,
    /// Shared with the host's processor.
    #[serde(default)]
    pub unified: bool,
    /// What the maker prints.
    pub marketed: Option<Figure<Bytes>>,
    /// What software sees; absent where it depends on what is plugged in.
    pub capacity: Option<Figure<Bytes>>,
    /// Peak rate; absent where none was published.
    pub bandwidth: Option<Figure<ByteRate>>,
}

/// Link between the devices of a node.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleUp {
    /// Id of the link.
    pub link: String,
    /// Per direction and device.
    pub bandwidth: Figure<ByteRate>,
    /// Devices that it joins at most.
    pub domain: u32,
}

/// Link to host memory.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostLink {
    /// Id of the link.
    pub link: String,
    /// Per direction.
    pub bandwidth: Figure<ByteRate>,
}

/// Power of a device.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Limit.
    pub tdp: Figure<Watts>,
    /// Doing nothing.
    pub idle: Option<Figure<Watts>>,
    /// Fraction of the limit drawn by compute-bound kernels.
    pub compute_bound: Option<Figure<Ratio>>,
    /// Fraction of the limit drawn by memory-bound kernels.
    pub memory_bound: Option<Figure<Ratio>>,
}

/// Price of a device or system.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// To own.
    pub purchase: Option<Figure<Dollars>>,
    /// To rent.
    pub rent: Option<Figure<DollarRate>>,
    /// The cheapest and the dearest purchase that were found.
    pub purchase_bounds: Option<PriceRange<Dollars>>,
    /// The cheapest and the dearest rent that were found.
    pub rent_bounds: Option<PriceRange<DollarRate>>,
}

/// Between which a price was found.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
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
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Bounds are stated of no price, or do not hold it.
    pub fn check(&self) -> Result<(), Error> {
        bounded("price.purchase_bounds", self.purchase.as_ref(), self.purchase_bounds.as_ref())?;
        bounded("price.rent_bounds", self.rent.as_ref(), self.rent_bounds.as_ref())
    }
}

fn bounded<D: Dimension>(
    key: &str,
    price: Option<&Figure<D>>,
    bounds: Option<&PriceRange<D>>,
) -> Result<(), Error> {
    match (price, bounds) {
        (_, None) => Ok(()),
        (Some(price), Some(bounds)) if bounds.hold(price) => Ok(()),
        (price, Some(bounds)) => {
            let found = format!("{} to {}", bounds.low, bounds.high);
            let expected = price.map_or("a price that they are of".to_owned(), |price| {
                format!("bounds that {price} lies between")
            });
            Err(Error::new(key, found, expected, "state the price beside them, or mend the bounds"))
        }
    }
}

/// A rate that somebody measured.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct MeasuredRate {
    /// What was measured.
    pub what: String,
    /// The number and its unit.
    pub value: serde_json::Value,
    /// Where it came from.
    pub source: String,
}

impl Device {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// A figure is outside its limits.
    pub fn check(&self) -> Result<(), Error> {
        for (key, figure) in
            [("memory.marketed", &self.memory.marketed), ("memory.capacity", &self.memory.capacity)]
        {
            figure.iter().try_for_each(|figure| CAPACITY.check(key, figure.value))?;
        }
        self.scale_up.iter().try_for_each(|up| DEVICES.check_whole("scale_up.domain", up.domain.into()))?;
        self.price.check()?;
        let Some(power) = &self.power else { return Ok(()) };
        POWER.check("power.tdp", power.tdp.value)?;
        let parts =
            [("power.compute_bound", &power.compute_bound), ("power.memory_bound", &power.memory_bound)];
        parts.into_iter().try_for_each(|(key, part)| {
            part.as_ref().map_or(Ok(()), |part| EFFICIENCY.check(key, part.value))
        })
    }

    /// Keys of the figures that a deployment needs and nobody published.
    pub fn missing(&self) -> Vec<&'static str> {
        let keys = [
            ("memory.capacity", self.memory.capacity.is_none()),
            ("memory.bandwidth", self.memory.bandwidth.is_none()),
            ("peak", self.peak.is_empty()),
        ];
        keys.into_iter().filter(|(_, missing)| *missing).map(|(key, _)| key).collect()
    }

    /// What software sees of its memory.
    ///
    /// # Errors
    /// Nobody stated it.
    pub fn capacity(&self) -> Result<&Figure<Bytes>, Error> {
        self.memory.capacity.as_ref().ok_or_else(|| self.asks_for("memory.capacity"))
    }

    /// Peak rate of its memory.
    ///
    /// # Errors
    /// Nobody stated it.
    pub fn bandwidth(&self) -> Result<&Figure<ByteRate>, Error> {
        self.memory.bandwidth.as_ref().ok_or_else(|| self.asks_for("memory.bandwidth"))
    }

    /// Whether everything is stated that a deployment needs.
    ///
    /// # Errors
    /// The first figure that is missing, by its key.
    pub fn complete(&self) -> Result<(), Error> {
        self.missing().first().map_or(Ok(()), |key| Err(self.asks_for(key)))
    }

    /// The fault of a figure that is needed and not stated.
    fn asks_for(&self, key: &str) -> Error {
        let (expected, example) = match key {
            "memory.capacity" => {
                ("the memory that software sees", r#""capacity": {"value": "384 GiB", "source": "…"}"#)
            }
            "memory.bandwidth" => {
                ("the peak rate of its memory", r#""bandwidth": {"value": "460.8 GB/s", "source": "…"}"#)
            }
            _ => (
                "the dense peak of at least one arithmetic",
                r#""bf16": {"value": "125 TFLOP/s", "source": "…"}"#,
            ),
        };
        let missing = self.missing();
        let others =
            if missing.len() > 1 { format!(" (missing: {})", missing.join(", ")) } else { String::new() };
        Error::new(
            key,
            format!("no figure for {}: none was published{others}", self.name),
            expected,
            format!("state it in your own hardware/devices/{}.json, e.g. {example}", self.id),
        )
    }
}
