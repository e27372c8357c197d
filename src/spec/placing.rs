//! Everything that may be asked of a placement, as flags or as they are saved with its answer. Knows nothing of what
//! the names in it mean.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::image::ImageSize;
use super::limits::{CONCURRENCY, IMAGES, ISL, MEMBERS, OSL, whole};
use super::rig::RigTopology;
use super::scenario::{OffloadMode, Scenario};

/// What is sought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PlacingGoal {
    /// The least time of a decode step.
    #[default]
    Latency,
    /// The least time of one request, prompt and answer.
    Request,
    /// The most tokens a second.
    Throughput,
    /// The longest prompt that fits beside the answer.
    MaxContext,
    /// The largest model of the catalogue that fits.
    LargestModel,
}

impl PlacingGoal {
    /// Its name as a flag takes it.
    pub fn name(self) -> &'static str {
        match self {
            PlacingGoal::Latency => "latency",
            PlacingGoal::Request => "request",
            PlacingGoal::Throughput => "throughput",
            PlacingGoal::MaxContext => "max-context",
            PlacingGoal::LargestModel => "largest-model",
        }
    }
}

/// A placement as it is asked for. What is left out has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct PlacementScenario {
    /// Model: catalogue name, Hugging Face id, path of a config.json or its folder, hf:ORG/NAME or URL
    #[arg(short, long, value_name = "M", help_heading = QUESTION)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Rig: its id, or path of a rig file
    #[arg(short = 'H', long, value_name = "RIG", conflicts_with_all = ["device", "link"], help_heading = QUESTION)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// A device, once for each, or with a count: rtx-4090, 2xrtx-3090
    #[arg(long, value_name = "[COUNTx]DEVICE", help_heading = QUESTION)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<String>,
    /// The link between them, once for all or once for each in order
    #[arg(long, value_name = "LINK", help_heading = QUESTION)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<String>,
    /// How the links join them [default: mesh]
    #[arg(
        long,
        value_enum,
        value_name = "mesh|ring|star|chain",
        hide_possible_values = true,
        help_heading = QUESTION
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<RigTopology>,
    /// What is sought
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "latency|request|throughput|max-context|largest-model",
        hide_possible_values = true,
        help_heading = QUESTION
    )]
    pub objective: PlacingGoal,
    /// Prompt tokens (input sequence length)
    #[arg(long, value_name = "N", value_parser = whole(&ISL), help_heading = TRAFFIC)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isl: Option<u64>,
    /// Output tokens (output sequence length)
    #[arg(long, value_name = "N", value_parser = whole(&OSL), help_heading = TRAFFIC)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub osl: Option<u64>,
    /// Images of each request, for models with a vision encoder; their tokens come on top of --isl
    #[arg(long, value_name = "N", value_parser = whole(&IMAGES), help_heading = TRAFFIC)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<u64>,
    /// Pixels of each image, for encoders that take any size, e.g. 1024x768
    #[arg(long, value_name = "WxH", help_heading = TRAFFIC)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_size: Option<ImageSize>,
    /// Requests in flight [default: 1, for throughput 16]
    #[arg(long, value_name = "N", value_parser = whole(&CONCURRENCY), help_heading = TRAFFIC)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// One serving runtime for all members
    #[arg(long, value_name = "R", help_heading = CHOICES)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// Weight format [default: the checkpoint's own]
    #[arg(long, value_name = "F", help_heading = CHOICES)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_format: Option<String>,
    /// KV cache format [default: 16 bits]
    #[arg(long, value_name = "F", help_heading = CHOICES)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_format: Option<String>,
    /// When layers may lie in host memory [default: auto, where nothing fits without]
    #[arg(long, value_enum, value_name = "auto|never|always", hide_possible_values = true, help_heading = CHOICES)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<OffloadMode>,
}

const QUESTION: &str = "The question";
const TRAFFIC: &str = "Traffic";
/// What the search decides where nobody does.
pub const CHOICES: &str = "What may be chosen";

/// Requests in flight where throughput is sought and nothing is said.
const BUSY: u64 = 16;

impl PlacementScenario {
    /// What it asks of every member.
    pub fn scenario(&self) -> Scenario {
        Scenario {
            model: self.model.clone(),
            isl: self.isl,
            images: self.images,
            image_size: self.image_size,
            osl: self.osl,
            runtime: self.runtime.clone(),
            weight_format: self.weight_format.clone(),
            kv_format: self.kv_format.clone(),
            offload: self.offload,
            ..Scenario::default()
        }
    }

    /// Checks every number that it states, whoever stated it: a flag, a scenario or a saved answer.
    ///
    /// # Errors
    /// Names the number that is outside its limits.
    pub fn check(&self) -> Result<(), Error> {
        self.scenario().check()?;
        CONCURRENCY.check_whole("concurrency", self.in_flight())?;
        let named = self.device.len().max(self.link.len()) as u64;
        if named > 0 { MEMBERS.check_whole("device", named) } else { Ok(()) }
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> u64 {
        let usual = if self.objective == PlacingGoal::Throughput { BUSY } else { 1 };
        self.concurrency.unwrap_or(usual)
    }

    /// What a question about any hardware asks of a rig.
    pub fn of(scenario: Scenario, objective: PlacingGoal) -> PlacementScenario {
        let Scenario { model, hardware, isl, osl, images, image_size, concurrency, .. } = scenario;
        let Scenario { runtime, weight_format, kv_format, offload, .. } = scenario;
        PlacementScenario {
            model,
            hardware,
            objective,
            isl,
            osl,
            images,
            image_size,
            concurrency,
            runtime,
            weight_format,
            kv_format,
            offload,
            ..PlacementScenario::default()
        }
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
            objective: PlacingGoal::MaxContext,
            ..PlacementScenario::default()
        };
        let text = serde_json::to_string(&placing).unwrap();
        assert_eq!(serde_json::from_str::<PlacementScenario>(&text).unwrap(), placing);
        assert!(!text.contains("null") && text.contains(placing.objective.name()), "{text}");
    }

    #[test]
    fn throughput_is_asked_of_many_requests() {
        let of = |objective, concurrency| {
            PlacementScenario { objective, concurrency, ..PlacementScenario::default() }.in_flight()
        };
        assert_eq!(of(PlacingGoal::Throughput, None), 16);
        assert_eq!(of(PlacingGoal::Latency, None), 1);
        assert_eq!(of(PlacingGoal::Throughput, Some(3)), 3);
    }
}
