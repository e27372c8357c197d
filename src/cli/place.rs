//! `place`: which of unlike devices hold which layers, in which order, proved.

mod found;
mod relax;

use std::time::Duration;

use super::output::{Format, Output, csv, json};
use super::watch::{Stopped, watched};
use super::{Fault, Verdict};
use crate::report::place::Verdict as Proved;
use crate::report::place::told::{COLUMNS, rows};
use crate::report::text::place::table_of;
use crate::search::placement::solve::Aim;
use crate::spec::error::Error;
use crate::spec::image::ImageSize;
use crate::spec::objective::{Metric, Objective as Stated};
use crate::spec::rig::{Post, Rig, Shape, Wire};
use crate::spec::scenario::{Offload, Scenario, number, whole};
use crate::store::catalog::Catalog;
use crate::store::hardware::Shorthand;
use crate::store::rig::Rigged;

const AFTER: &str = "\
Members are used in any order, each at most once, and may be left out. What is told as best is proved: \
an exact dynamic programme over members and layers, with its bound.

Examples:
  mantile-opt place --model Llama-3.1-8B --hardware spark-mac-studio --objective request --isl 8192 --osl 32
  mantile-opt place --model Llama-3.3-70B --weight-format q4_k_m --device rtx-4090 --device rtx-3090 \\
      --link pcie4x16 --topology chain
  mantile-opt place --model gpt-oss-120b --hardware mac-five --objective throughput --concurrency 8
  mantile-opt place --model Llama-3.3-70B --hardware rtx-4090-3090 --weight-format q4_k_m --objective max-context
  mantile-opt place --hardware pcie-four-cards --objective largest-model
  mantile-opt catalog rigs

Exit codes: 0 found, 2 bad input, 3 infeasible, 4 stopped before anything was found.";

/// What is sought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Objective {
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

impl Objective {
    fn aim(self) -> Aim {
        match self {
            Objective::Throughput => Aim::Throughput,
            Objective::Request => Aim::Request,
            Objective::Latency | Objective::MaxContext | Objective::LargestModel => Aim::Latency,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Objective::Latency => "latency",
            Objective::Request => "request",
            Objective::Throughput => "throughput",
            Objective::MaxContext => "max-context",
            Objective::LargestModel => "largest-model",
        }
    }
}

/// The flags of `place`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = AFTER)]
pub struct Place {
    /// Model: catalogue name, Hugging Face id, path of a config.json or its folder, hf:ORG/NAME or URL
    #[arg(short, long, value_name = "M", help_heading = "The question")]
    pub model: Option<String>,
    /// Rig: its id, or path of a rig file
    #[arg(short = 'H', long, value_name = "RIG", conflicts_with_all = ["device", "link"], help_heading = "The question")]
    pub hardware: Option<String>,
    /// A device, once for each, or with a count: rtx-4090, 2xrtx-3090
    #[arg(long, value_name = "[COUNTx]DEVICE", help_heading = "The question")]
    pub device: Vec<String>,
    /// The link between them, once for all or once for each in order
    #[arg(long, value_name = "LINK", help_heading = "The question")]
    pub link: Vec<String>,
    /// How the links join them [default: mesh]
    #[arg(
        long,
        value_enum,
        value_name = "mesh|ring|star|chain",
        hide_possible_values = true,
        help_heading = "The question"
    )]
    pub topology: Option<Shape>,
    /// What is sought
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "latency|request|throughput|max-context|largest-model",
        hide_possible_values = true,
        help_heading = "The question"
    )]
    pub objective: Objective,
    /// Prompt tokens (input sequence length)
    #[arg(long, value_name = "N", value_parser = whole, help_heading = "Traffic")]
    pub isl: Option<u64>,
    /// Output tokens (output sequence length)
    #[arg(long, value_name = "N", value_parser = whole, help_heading = "Traffic")]
    pub osl: Option<u64>,
    /// Images of each request, for models with a vision encoder; their tokens come on top of --isl
    #[arg(long, value_name = "N", value_parser = whole, help_heading = "Traffic")]
    pub images: Option<u64>,
    /// Pixels of each image, for encoders that take any size, e.g. 1024x768
    #[arg(long, value_name = "WxH", help_heading = "Traffic")]
    pub image_size: Option<ImageSize>,
    /// Requests in flight [default: 1, for throughput 16]
    #[arg(long, value_name = "N", value_parser = whole, help_heading = "Traffic")]
    pub concurrency: Option<u64>,
    /// One serving runtime for all members
    #[arg(long, value_name = "R", help_heading = "What may be chosen")]
    pub runtime: Option<String>,
    /// Weight format [default: the checkpoint's own]
    #[arg(long, value_name = "F", help_heading = "What may be chosen")]
    pub weight_format: Option<String>,
    /// KV cache format [default: 16 bits]
    #[arg(long, value_name = "F", help_heading = "What may be chosen")]
    pub kv_format: Option<String>,
    /// When layers may lie in host memory [default: auto, where nothing fits without]
    #[arg(
        long,
        value_enum,
        value_name = "auto|never|always",
        hide_possible_values = true,
        help_heading = "What may be chosen"
    )]
    pub offload: Option<Offload>,
    /// Seconds after which the best so far is told [default: as long as it takes; Ctrl-C ends it too]
    #[arg(long, value_name = "S", value_parser = number, help_heading = "What may be chosen")]
    pub time_limit: Option<f64>,
    /// Where the answer goes.
    #[command(flatten)]
    pub output: Output,
}

/// Requests in flight where throughput is sought and nothing is said.
const BUSY: u64 = 16;

impl Place {
    /// What `optimize` asks of a rig: the objective's first aim says what is sought.
    ///
    /// # Errors
    /// The objective is not known.
    pub fn asked_by(catalog: &Catalog, scenario: Scenario, output: Output) -> Result<Place, Error> {
        let named: Option<Stated> =
            scenario.objective.as_deref().map(|name| catalog.load_or_read(name)).transpose()?;
        let first = named.and_then(|objective| objective.optimize.first().map(|aim| aim.metric));
        let objective = match first {
            Some(Metric::Ttft | Metric::E2e) => Objective::Request,
            Some(Metric::Tpot | Metric::OutputTokSPerUser) => Objective::Latency,
            Some(Metric::MaxContext) => Objective::MaxContext,
            _ => Objective::Throughput,
        };
        let Scenario {
            model,
            hardware,
            isl,
            osl,
            images,
            image_size,
            concurrency,
            runtime,
            weight_format,
            kv_format,
            offload,
            ..
        } = scenario;
        Ok(Place {
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
            output,
            ..Place::default()
        })
    }

    /// Resolves the question and answers it.
    ///
    /// # Errors
    /// The question is faulty, or the answer cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<Verdict, Fault> {
        let rig = self.rig(catalog)?;
        // Beyond what a clock counts there is no limit.
        let limit = self.time_limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let (answer, why) = watched(limit, |control| match self.objective {
            Objective::MaxContext => self.longest(catalog, &rig, control),
            Objective::LargestModel => self.largest(catalog, &rig, control),
            _ => Ok(self.answer(catalog, &self.resolve(catalog, &rig, &self.scenario())?, control)?),
        });
        let mut answer = answer?;
        if answer.status == Proved::Feasible {
            answer.status = match why {
                Some(Stopped::TimeLimit) => Proved::TimeLimit,
                Some(Stopped::Interrupted) => Proved::Interrupted,
                None => Proved::Feasible,
            };
        }
        self.output.write(&match self.output.format {
            Format::Table => table_of(&answer),
            Format::Json => json(&answer),
            Format::Csv => csv(&COLUMNS, rows(&answer))?,
        })?;
        Ok(match answer.status {
            Proved::Infeasible => Verdict::Infeasible,
            Proved::Unknown => Verdict::Stopped,
            _ => Verdict::Found,
        })
    }

    fn scenario(&self) -> Scenario {
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

    fn resolve(&self, catalog: &Catalog, rig: &Rig, scenario: &Scenario) -> Result<Rigged, Error> {
        let usual = if self.objective == Objective::Throughput { BUSY } else { 1 };
        Rigged::resolve(catalog, scenario, rig.clone(), self.concurrency.unwrap_or(usual))
    }

    /// The rig that is named, or made of the devices and links that are.
    fn rig(&self, catalog: &Catalog) -> Result<Rig, Error> {
        if self.device.is_empty() {
            let fix = "name a rig (`mantile-opt catalog rigs`), or each --device and the --link between them";
            let text = self
                .hardware
                .as_deref()
                .ok_or_else(|| Error::new("hardware", "nothing", "a rig, or devices", fix))?;
            return catalog.rig(text);
        }
        let post = |text: &String| -> Result<Post, Error> {
            let short = Shorthand::parse(text)?;
            let count = short.nodes.saturating_mul(short.count);
            Ok(Post {
                name: None,
                device: short.device.to_owned(),
                count,
                joined: None,
                runtime: None,
                host: None,
            })
        };
        let wire = |link: &String| Wire { link: link.clone(), between: None, bandwidth: None, latency: None };
        let members: Vec<Post> = self.device.iter().map(post).collect::<Result<_, Error>>()?;
        let rig = Rig {
            id: "stated".into(),
            name: self.device.join(" + "),
            members,
            topology: (!self.link.is_empty()).then(|| self.topology.unwrap_or(Shape::Mesh)),
            links: self.link.iter().map(wire).collect(),
            ..Rig::default()
        };
        rig.check()?;
        Ok(rig)
    }
}
