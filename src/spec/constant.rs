//! Calibrated constants: the one table of them, and the multipliers that a fit puts on them.
//!
//! A constant of the table has a field of the same name in its section of the runtime file, and in
//! [`crate::cost::machine::Chip`]; the compiler names what is missing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::device::Device;
use super::runtime::{Constants, Runtime, ServingFit};
use crate::quantity::datum::Datum;
use crate::quantity::unit::{COUNT, SECOND, Unit};

/// Calls `$rows!` with the table: name, key, kind, and section of the runtime file.
macro_rules! calibrated_constants {
    ($rows:ident) => {
        $rows! {
            GemmCompute gemm_compute Efficiency Constants,
            GemmMemory gemm_memory Efficiency Constants,
            AttentionCompute attention_compute Efficiency Constants,
            AttentionMemory attention_memory Efficiency Constants,
            MoeCompute moe_compute Efficiency Constants,
            MoeMemory moe_memory Efficiency Constants,
            CollectiveLatency collective_latency Time Constants,
            CollectiveBandwidth collective_bandwidth Efficiency Constants,
            LaunchPerLayer launch_per_layer Time Constants,
            KernelLaunch kernel_launch Time ServingFit,
            QuantisedLaunch quantised_launch Time ServingFit,
            ExpertsLaunch experts_launch Time ServingFit,
            HostPerStep host_per_step Time Constants,
            HostPerSequence host_per_sequence Time ServingFit,
            PrefillInterference prefill_interference Count Constants,
            RequestOverhead request_overhead Time Scheduler,
            PromptQueue prompt_queue Count Scheduler,
            PromptBurst prompt_burst Count ServingFit,
            StepWait step_wait Count Scheduler,
            RequestWork request_work Time ServingFit,
        }
    };
}
pub(crate) use calibrated_constants;

/// Kind of a constant: decides its unit, and how a multiplier on its time applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstantKind {
    /// Fraction of a peak: falls as its time grows, and is at most 1.
    Efficiency,
    /// Seconds.
    Time,
    /// A number that multiplies a time.
    Count,
}

impl ConstantKind {
    pub const fn unit(self) -> Unit {
        match self {
            ConstantKind::Efficiency | ConstantKind::Count => COUNT,
            ConstantKind::Time => SECOND,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstantSection {
    /// An entry of `constants`, per device and weight format.
    Constants,
    /// `scheduler`
    Scheduler,
    /// `serving_fit`; without one the constant is 0.
    ServingFit,
}

#[derive(Clone, Copy, Debug)]
pub struct ConstantEntry {
    pub of: CalibratedConstant,
    /// Its name in files and formulas.
    pub key: &'static str,
    pub kind: ConstantKind,
    /// Its place in the runtime file.
    pub section: ConstantSection,
}

impl ConstantEntry {
    /// Whether it is a fraction of a peak.
    pub fn is_efficiency(&self) -> bool {
        self.kind == ConstantKind::Efficiency
    }
}

/// The figure of a constant in its section, under `symbol`.
macro_rules! figure {
    (Constants $key:ident $from:ident $symbol:ident) => {
        Some($from.constants.$key.datum($symbol))
    };
    (Scheduler $key:ident $from:ident $symbol:ident) => {
        Some($from.runtime.scheduler.$key.datum($symbol))
    };
    (ServingFit $key:ident $from:ident $symbol:ident) => {
        $from.runtime.serving_fit.as_ref().map(|fit| fit.$key.datum($symbol))
    };
}

macro_rules! declare {
    ($($Name:ident $key:ident $Kind:ident $Section:ident,)*) => {
        /// Constants that a fit may change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs)]
        pub enum CalibratedConstant { $($Name,)* }

        /// Every calibrated constant, in the order of the enum.
        pub const CONSTANTS: &[ConstantEntry] = &[$(ConstantEntry {
            of: CalibratedConstant::$Name,
            key: stringify!($key),
            kind: ConstantKind::$Kind,
            section: ConstantSection::$Section,
        },)*];

        impl ConstantFigures<'_> {
            /// The figure of a constant, as the file has it; `None` where the file has no fit.
            pub fn datum(&self, of: CalibratedConstant, symbol: String) -> Option<Datum> {
                match of { $(CalibratedConstant::$Name => figure!($Section $key self symbol),)* }
            }
        }
    };
}
calibrated_constants!(declare);

/// A runtime, and its entry of `constants` for a device and a weight format.
#[derive(Clone, Copy, Debug)]
pub struct ConstantFigures<'a> {
    pub runtime: &'a Runtime,
    pub constants: &'a Constants,
}

impl CalibratedConstant {
    /// Whether it is a fraction of peak compute, which decides the time of long prompts.
    pub const fn is_of_compute(self) -> bool {
        use CalibratedConstant::{AttentionCompute, GemmCompute, MoeCompute};
        matches!(self, GemmCompute | AttentionCompute | MoeCompute)
    }

    pub const fn entry(self) -> &'static ConstantEntry {
        &CONSTANTS[self as usize]
    }
}

/// A multiplier on the time of one constant, under its conditions.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalibrationFactor {
    /// The constant.
    pub of: CalibratedConstant,
    /// Class of device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Device generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// Weight format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_format: Option<String>,
    /// Kind of attention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<AttentionKind>,
    /// Whether all requests have the same lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equal_lengths: Option<bool>,
    /// Runtime version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind of link between devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkKind>,
    /// Architecture and number of parameters of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The multiplier.
    pub times: f64,
}

/// Kinds of links between devices, whose collectives have software of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// The host's bus: PCIe.
    Bus,
    /// Links of the devices' own, with or without switches.
    Fabric,
}

impl LinkKind {
    pub fn name(self) -> &'static str {
        match self {
            LinkKind::Bus => "bus",
            LinkKind::Fabric => "fabric",
        }
    }
}

/// Kinds of attention with kernels of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttentionKind {
    /// Full attention.
    Full,
    /// Sliding-window attention in some layers.
    Sliding,
    /// Multi-head latent attention.
    Latent,
}

impl AttentionKind {
    pub fn name(self) -> &'static str {
        match self {
            AttentionKind::Full => "full",
            AttentionKind::Sliding => "sliding",
            AttentionKind::Latent => "latent",
        }
    }
}

/// Properties of a model and its traffic that the multipliers depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalibrationKey {
    pub attention: AttentionKind,
    /// Whether it has routed experts.
    pub experts: bool,
    /// Whether all requests have the same lengths.
    pub equal_lengths: bool,
    pub version: Option<String>,
    pub link: LinkKind,
    /// Architecture and number of parameters of the model.
    pub model: String,
}

impl CalibrationFactor {
    /// A multiplier of 1, without conditions.
    pub fn of(of: CalibratedConstant) -> CalibrationFactor {
        CalibrationFactor {
            of,
            class: None,
            family: None,
            weight_format: None,
            attention: None,
            equal_lengths: None,
            version: None,
            link: None,
            model: None,
            times: 1.0,
        }
    }

    pub fn holds(&self, (class, family): (&str, &str), weight_format: &str, key: &CalibrationKey) -> bool {
        let is = |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|s| s == name);
        is(&self.class, class)
            && is(&self.family, family)
            && is(&self.weight_format, weight_format)
            && self.attention.is_none_or(|kind| kind == key.attention)
            && self.equal_lengths.is_none_or(|equal| equal == key.equal_lengths)
            && (self.version.is_none() || self.version == key.version)
            && self.link.is_none_or(|link| link == key.link)
            && is(&self.model, &key.model)
    }

    /// Its conditions: `class: datacenter, weight_format: fp8`; `always` without any.
    pub fn condition(&self) -> String {
        let conditions = [
            ("class", self.class.clone()),
            ("family", self.family.clone()),
            ("weight_format", self.weight_format.clone()),
            ("attention", self.attention.map(|kind| kind.name().to_owned())),
            ("equal_lengths", self.equal_lengths.map(|equal| equal.to_string())),
            ("version", self.version.clone()),
            ("link", self.link.map(|link| link.name().to_owned())),
            ("model", self.model.clone()),
        ];
        let known = conditions.into_iter().filter_map(|(key, value)| Some(format!("{key}: {}", value?)));
        let known: Vec<String> = known.collect();
        if known.is_empty() { "always".to_owned() } else { known.join(", ") }
    }
}

impl ServingFit {
    /// The multipliers of `of` whose conditions apply, in the order of the file.
    pub fn multipliers<'a>(
        &'a self,
        of: CalibratedConstant,
        device: &'a Device,
        weight_format: &'a str,
        key: &'a CalibrationKey,
    ) -> impl Iterator<Item = &'a CalibrationFactor> {
        let device = (device.class.as_str(), device.family.as_str());
        self.factors.iter().filter(move |f| f.of == of && f.holds(device, weight_format, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::cluster::PeerToPeer;
    use crate::spec::device::{Arithmetic, Vendor};
    use crate::spec::fleet::PricingTerms;
    use crate::spec::host_part::HostedTensors;
    use crate::spec::nearness::Nearness;
    use crate::spec::offload::OffloadPolicy;
    use crate::spec::percentile::Percentile;
    use crate::spec::placing::PlacementObjective;
    use crate::spec::price::PriceBasis;
    use crate::spec::role::Role;

    #[test]
    fn keys_of_the_table_are_the_names_in_files() {
        for (place, entry) in CONSTANTS.iter().enumerate() {
            assert_eq!(entry.of as usize, place);
            assert_eq!(serde_json::json!(entry.of), entry.key);
            assert_eq!(entry.of.entry().key, entry.key);
        }
    }

    /// The name of a variant in messages is that in files.
    #[test]
    fn names_are_those_in_files() {
        macro_rules! check {
            ($($Type:ident: $($Variant:ident),*;)*) => {$($(
                assert_eq!(serde_json::json!($Type::$Variant), $Type::$Variant.name());
            )*)*};
        }
        check! {
            AttentionKind: Full, Sliding, Latent;
            LinkKind: Bus, Fabric;
            Role: Aggregated, Prefill, Decode;
            Arithmetic: Fp32, Bf16, Fp16, Fp8, Int8, Fp4, Int4;
            Vendor: Amd, Apple, Aws, Cerebras, Google, Groq, Huawei, Intel, Nvidia, SambaNova, Tenstorrent, Other;
            PeerToPeer: Yes, No, Switch;
            OffloadPolicy: Auto, Never, Always;
            PriceBasis: Owned, Rented;
            PricingTerms: OnDemand, Reserved, Spot, Owned;
            HostedTensors: Experts, Layers;
            PlacementObjective: Latency, Request, Throughput, MaxContext, LargestModel;
            Nearness: Measured, HardwareAndRuntime, Load, Model, Hardware, Vendor, Split, Hosts, Nothing;
            Percentile: P50, P90, P95, P99;
        }
    }

    #[test]
    fn conditions_are_written_as_in_files() {
        let mut factor = CalibrationFactor::of(CalibratedConstant::StepWait);
        assert_eq!(factor.condition(), "always");
        factor.equal_lengths = Some(true);
        factor.weight_format = Some("fp8".to_owned());
        assert_eq!(factor.condition(), "weight_format: fp8, equal_lengths: true");
    }
}
