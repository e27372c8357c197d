//! `place`: assigns layers to heterogeneous devices, provably optimal.

use super::deadline::with_deadline;
use super::defaults::UserDefaults;
use super::emit::EmitArgs;
use super::exit::exit_codes;
use super::output::OutputArgs;
use super::plot::PlotArgs;
use super::{CliError, ExitStatus};
use crate::report::svg::place::place_picture;
use crate::request::place::{PlaceRequest, place};
use crate::spec::limits::{TIME_LIMIT, number};
use crate::spec::placing::{CHOICES, PlacementScenario};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

const AFTER: &str = concat!(
    "\
Devices are used in any order, each at most once, and may remain unused. The result is provably optimal: \
an exact dynamic program over devices and layers, with its bound.

Examples:
  mantile-opt place --model Llama-3.1-8B --hardware spark-mac-studio --objective request --isl 8192 --osl 32
  mantile-opt place --model Llama-3.3-70B --weight-format q4_k_m --device rtx-4090 --device rtx-3090 \\
      --link pcie4x16 --topology chain
  mantile-opt place --model gpt-oss-120b --hardware mac-five --objective throughput --concurrency 8
  mantile-opt place --model Llama-3.3-70B --hardware rtx-4090-3090 --weight-format q4_k_m --objective max-context
  mantile-opt place --hardware pcie-four-cards --objective largest-model
  mantile-opt catalog rigs

",
    exit_codes!()
);

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct PlaceArgs {
    #[command(flatten)]
    pub scenario: PlacementScenario,
    /// Stop after S seconds and report the best found so far [default: no limit]
    #[arg(long, value_name = "S", value_parser = number(&TIME_LIMIT), help_heading = CHOICES)]
    pub time_limit: Option<f64>,
    /// Show everything: baselines, disaggregation, proof, notes
    #[arg(long, help_heading = "Output")]
    pub detail: bool,
    #[command(flatten)]
    pub emit: EmitArgs,
    #[command(flatten)]
    pub plot: PlotArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[arg(skip)]
    pub defaults: UserDefaults,
}

/// The keys of a scenario that are also keys of a placement, with the same meaning.
const SHARED: [&str; 13] = [
    "model",
    "isl",
    "osl",
    "prefix",
    "prefix_groups",
    "images",
    "image_size",
    "concurrency",
    "runtime",
    "weight_format",
    "kv_format",
    "offload",
    "set",
];

impl PlaceArgs {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        self.plot.check()?;
        let request = PlaceRequest { scenario: self.scenario(catalog) };
        let answer = with_deadline(self.time_limit, |control| place(catalog, &request, control))?;
        self.plot.write(|| place_picture(&answer))?;
        self.emit.write(answer.launch.iter().map(|launch| (None, launch)))?;
        self.output.answer(&answer, self.detail)?;
        Ok(answer.status.into())
    }

    /// The flags, with the user's defaults for absent ones.
    pub fn scenario(&self, catalog: &Catalog) -> PlacementScenario {
        let flags = self.scenario.clone();
        let set =
            Scenario { concurrency: flags.concurrency, hardware: flags.hardware.clone(), ..flags.scenario() };
        let rig =
            |scenario: &Scenario| scenario.hardware.as_deref().is_some_and(|name| catalog.has_rig(name));
        // A rig of the defaults is one of heterogeneous devices; other systems are for `optimize`.
        let is_rig = flags.device.is_empty() && rig(&self.defaults.peek());
        let merged = self.defaults.under(set, |key| SHARED.contains(&key) || (key == "hardware" && is_rig));
        PlacementScenario {
            device: flags.device,
            link: flags.link,
            topology: flags.topology,
            ..PlacementScenario::of(merged, flags.objective)
        }
    }
}
