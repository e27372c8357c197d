//! An accelerator as its file states it. Knows nothing of what runs on it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::figure::{ByteRate, Bytes, DollarRate, Dollars, Figure, FlopRate, Ratio, Watts};

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
    pub memory: Memory,
    /// Dense peak per arithmetic that it computes natively.
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
    pub measured: Vec<Measured>,
    /// The system whose host it sits in when only a number of devices is stated.
    pub system: String,
    /// Remarks.
    pub notes: Option<String>,
}

/// Memory of a device.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// `hbm3`, `gddr6x`, `lpddr5` …
    pub kind: String,
    /// Shared with the host's processor.
    #[serde(default)]
    pub unified: bool,
    /// What the maker prints.
    pub marketed: Figure<Bytes>,
    /// What software sees.
    pub capacity: Figure<Bytes>,
    /// Peak rate.
    pub bandwidth: Figure<ByteRate>,
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
}

/// A rate that somebody measured.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Measured {
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
    /// A figure that must be positive is zero, or no arithmetic is stated.
    pub fn check(&self) -> Result<(), Error> {
        let positive = |key: &str, value: f64| {
            let fault = Error::new(
                key,
                value.to_string(),
                "a number above zero",
                "state the figure of the data sheet",
            );
            if value > 0.0 { Ok(()) } else { Err(fault) }
        };
        positive("memory.capacity", self.memory.capacity.value)?;
        positive("memory.bandwidth", self.memory.bandwidth.value)?;
        for (arithmetic, peak) in &self.peak {
            positive(&format!("peak.{}", arithmetic.name()), peak.value)?;
        }
        if let Some(power) = &self.power {
            positive("power.tdp", power.tdp.value)?;
        }
        if self.peak.is_empty() {
            let fix = "state the dense peak of at least one arithmetic, e.g. bf16";
            return Err(Error::new("peak", "no arithmetic", "at least one", fix));
        }
        Ok(())
    }
}
