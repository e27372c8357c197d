//! Every input of a placement problem, as flags or as saved with its result. Names are not resolved here.

use crate::spec::offload::OffloadPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::Error;
use super::image::ImageSize;
use super::limits::{CONCURRENCY, MEMBERS};
#[cfg(feature = "cli")]
use super::limits::{IMAGES, ISL, OSL, PREFIX, PREFIX_GROUPS, whole};
use super::rig::RigTopology;
use super::scenario::Scenario;
use super::writer::shell_word;

/// The objective of a placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum PlacementObjective {
    /// Lowest TPOT.
    #[default]
    Latency,
    /// Lowest end-to-end latency of one request.
    Request,
    /// Highest throughput in tokens per second.
    Throughput,
    /// Longest prompt whose KV cache fits, together with the output.
    MaxContext,
    /// Largest model of the catalogue that fits.
    LargestModel,
}

impl PlacementObjective {
    /// Its name as a flag value.
    pub fn name(self) -> &'static str {
        match self {
            PlacementObjective::Latency => "latency",
            PlacementObjective::Request => "request",
            PlacementObjective::Throughput => "throughput",
            PlacementObjective::MaxContext => "max-context",
            PlacementObjective::LargestModel => "largest-model",
        }
    }
}

/// A placement problem. Absent fields have defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct PlacementScenario {
    /// Model: catalogue name, Hugging Face id, path of a config.json, its folder or a GGUF file, hf:ORG/NAME[:QUANT|/FILE.gguf] or URL
    #[cfg_attr(feature = "cli", arg(short, long, value_name = "M", help_heading = QUESTION))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Rig: its id, or path of a rig file
    #[cfg_attr(feature = "cli", arg(short = 'H', long, value_name = "RIG", conflicts_with_all = ["device", "link"], help_heading = QUESTION))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// A device, repeatable, or with a count: rtx-4090, 2xrtx-3090
    #[cfg_attr(feature = "cli", arg(long, value_name = "[COUNTx]DEVICE", help_heading = QUESTION))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<String>,
    /// The link between the devices: one for all, or one for each in order
    #[cfg_attr(feature = "cli", arg(long, value_name = "LINK", help_heading = QUESTION))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<String>,
    /// Topology of the links [default: mesh]
    #[cfg_attr(feature = "cli", arg(
        long,
        value_enum,
        value_name = "mesh|ring|star|chain",
        hide_possible_values = true,
        help_heading = QUESTION
    ))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<RigTopology>,
    /// Objective of the placement
    #[cfg_attr(feature = "cli", arg(
        long,
        value_enum,
        default_value_t,
        value_name = "latency|request|throughput|max-context|largest-model",
        hide_possible_values = true,
        help_heading = QUESTION
    ))]
    pub objective: PlacementObjective,
    /// Prompt tokens (input sequence length)
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&ISL), help_heading = TRAFFIC))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isl: Option<u64>,
    /// Output tokens (output sequence length)
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&OSL), help_heading = TRAFFIC))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub osl: Option<u64>,
    /// Prompt tokens that every request shares and that are already in the KV cache (prefix cache hits)
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&PREFIX), help_heading = TRAFFIC))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<u64>,
    /// Different prefixes among the requests: each is stored once, by runtimes that share them [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&PREFIX_GROUPS), help_heading = TRAFFIC))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_groups: Option<u64>,
    /// Images per request, for models with a vision encoder; their tokens are added to --isl
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&IMAGES), help_heading = TRAFFIC))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<u64>,
    /// Pixels of each image, for encoders with dynamic resolution, e.g. 1024x768
    #[cfg_attr(feature = "cli", arg(long, value_name = "WxH", help_heading = TRAFFIC))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_size: Option<ImageSize>,
    /// Concurrent requests [default: 1; 16 for throughput]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = whole(&CONCURRENCY), help_heading = TRAFFIC))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// One serving runtime for all devices
    #[cfg_attr(feature = "cli", arg(long, value_name = "R", help_heading = CHOICES))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// Weight format [default: the checkpoint's own]
    #[cfg_attr(feature = "cli", arg(long, value_name = "F", help_heading = CHOICES))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_format: Option<String>,
    /// KV cache format [default: 16 bits]
    #[cfg_attr(feature = "cli", arg(long, value_name = "F", help_heading = CHOICES))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_format: Option<String>,
    /// Offload of layers to host memory [default: auto, where it helps]
    #[cfg_attr(feature = "cli", arg(long, value_enum, value_name = "auto|never|always", hide_possible_values = true, help_heading = CHOICES))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<OffloadPolicy>,
    /// Override a value of the model's config.json, or of the file of a device, system or runtime (repeatable)
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE[NAME].KEY=VALUE", allow_hyphen_values = true, help_heading = CHANGED))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Vec<String>>,
}

const QUESTION: &str = "Problem";
const TRAFFIC: &str = "Traffic";
const CHANGED: &str = "Assumptions";
pub const CHOICES: &str = "Search space";

const BUSY: u64 = 16;

/// A scenario of one type with the fields that both have from one of the other type, and with further fields.
macro_rules! with_common {
    ($Type:ident from $from:ident, $($own:ident,)*) => {
        $Type {
            $($own,)*
            model: $from.model,
            isl: $from.isl,
            osl: $from.osl,
            prefix: $from.prefix,
            prefix_groups: $from.prefix_groups,
            images: $from.images,
            image_size: $from.image_size,
            runtime: $from.runtime,
            weight_format: $from.weight_format,
            kv_format: $from.kv_format,
            offload: $from.offload,
            set: $from.set,
            ..$Type::default()
        }
    };
}

impl PlacementScenario {
    /// The scenario for every device.
    pub fn scenario(&self) -> Scenario {
        let this = self.clone();
        with_common!(Scenario from this,)
    }

    /// Checks every number, from a flag, a scenario or a saved result.
    pub fn check(&self) -> Result<(), Error> {
        self.scenario().check()?;
        CONCURRENCY.check_whole("concurrency", self.in_flight())?;
        let named = self.device.len().max(self.link.len()) as u64;
        if named > 0 { MEMBERS.check_whole("device", named) } else { Ok(()) }
    }

    /// Concurrent requests.
    pub fn in_flight(&self) -> u64 {
        let usual = if self.objective == PlacementObjective::Throughput { BUSY } else { 1 };
        self.concurrency.unwrap_or(usual)
    }

    /// The placement problem of a general scenario on a rig.
    pub fn of(scenario: Scenario, objective: PlacementObjective) -> PlacementScenario {
        let (hardware, concurrency) = (scenario.hardware, scenario.concurrency);
        with_common!(PlacementScenario from scenario, objective, hardware, concurrency,)
    }

    /// The command that answers it, for a shell.
    pub fn command(&self) -> String {
        let mut words = vec!["mantile-opt".to_owned(), "place".to_owned()];
        let objective = Value::from(PlacementObjective::default().name());
        let stated = serde_json::to_value(self).ok().and_then(|value| value.as_object().cloned());
        for (key, value) in stated.unwrap_or_default() {
            let values = value.as_array().cloned().unwrap_or_else(|| vec![value]);
            for value in values.iter().filter(|value| key != "objective" || **value != objective) {
                let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                words.extend([format!("--{}", key.replace('_', "-")), shell_word(&word)]);
            }
        }
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_reads_back_the_same() {
        let placing = PlacementScenario {
            device: vec!["2xrtx-3090".into(), "rtx-4090".into()],
            link: vec!["pcie4x16".into()],
            topology: Some(RigTopology::Chain),
            objective: PlacementObjective::MaxContext,
            ..PlacementScenario::default()
        };
        let text = serde_json::to_string(&placing).unwrap();
        assert_eq!(serde_json::from_str::<PlacementScenario>(&text).unwrap(), placing);
        assert!(!text.contains("null") && text.contains(placing.objective.name()), "{text}");
    }

    #[test]
    fn the_command_has_every_stated_field_as_words_of_a_shell() {
        let placing = PlacementScenario {
            model: Some("my model".into()),
            device: vec!["1xrtx-4090".into(), "1xrtx-3090".into()],
            isl: Some(4096),
            weight_format: Some("gguf-q4_k_m".into()),
            ..PlacementScenario::default()
        };
        let command = placing.command();
        let words = "mantile-opt place --model 'my model' --device 1xrtx-4090 --device 1xrtx-3090 --isl 4096 \
                     --weight-format gguf-q4_k_m";
        let sorted = |text: &str| {
            let mut flags: Vec<String> = text.split(" --").map(str::to_owned).collect();
            flags.sort();
            flags
        };
        assert_eq!(sorted(&command), sorted(words));
    }

    #[test]
    fn throughput_is_that_of_many_requests() {
        let of = |objective, concurrency| {
            PlacementScenario { objective, concurrency, ..PlacementScenario::default() }.in_flight()
        };
        assert_eq!(of(PlacementObjective::Throughput, None), 16);
        assert_eq!(of(PlacementObjective::Latency, None), 1);
        assert_eq!(of(PlacementObjective::Throughput, Some(3)), 3);
    }
}
