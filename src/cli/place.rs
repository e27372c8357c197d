//! `place`: assigns layers to heterogeneous devices, provably optimal.

mod relax;
pub mod solve;

use super::deadline::watched;
use super::exit::exit_codes;
use super::output::{OutputArgs, OutputFormat, csv, json};
use super::{CliError, ExitStatus};
use crate::report::place::PlacementStatus as Proved;
use crate::report::place::build::{COLUMNS, rows};
use crate::report::proof::StoppedBy;
use crate::report::text::place::table_of;
use crate::search::placement::solve::PlacementObjective;
use crate::spec::error::Error;
use crate::spec::limits::{TIME_LIMIT, number};
use crate::spec::objective::{Metric, Objective as Stated};
use crate::spec::placing::{CHOICES, PlacementScenario, PlacingGoal};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use solve::found;

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

/// The flags of `place`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = AFTER)]
pub struct PlaceArgs {
    /// The problem.
    #[command(flatten)]
    pub stated: PlacementScenario,
    /// Stop after S seconds and report the best found so far [default: no limit]
    #[arg(long, value_name = "S", value_parser = number(&TIME_LIMIT), help_heading = CHOICES)]
    pub time_limit: Option<f64>,
    /// The output flags.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The objective of the placement search.
pub fn aim(objective: PlacingGoal) -> PlacementObjective {
    match objective {
        PlacingGoal::Throughput => PlacementObjective::Throughput,
        PlacingGoal::Request => PlacementObjective::Request,
        PlacingGoal::Latency | PlacingGoal::MaxContext | PlacingGoal::LargestModel => {
            PlacementObjective::Latency
        }
    }
}

impl PlaceArgs {
    /// The placement objective for `optimize` on a rig, from the first aim of the objective.
    ///
    /// # Errors
    /// The objective is unknown.
    pub fn asked_by(catalog: &Catalog, scenario: Scenario, output: OutputArgs) -> Result<PlaceArgs, Error> {
        let named: Option<Stated> =
            scenario.objective.as_deref().map(|name| catalog.load_or_read(name)).transpose()?;
        let first = named.and_then(|objective| objective.optimize.first().map(|aim| aim.metric));
        let objective = match first {
            Some(Metric::Ttft | Metric::E2e) => PlacingGoal::Request,
            Some(Metric::Tpot | Metric::OutputTokSPerUser) => PlacingGoal::Latency,
            Some(Metric::MaxContext) => PlacingGoal::MaxContext,
            _ => PlacingGoal::Throughput,
        };
        Ok(PlaceArgs { stated: PlacementScenario::of(scenario, objective), output, ..PlaceArgs::default() })
    }

    /// Resolves the problem and solves it.
    ///
    /// # Errors
    /// The problem is faulty, or the output cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let (found, why) = watched(self.time_limit, |control| found(catalog, &self.stated, control));
        let (mut answer, _) = found?;
        if answer.status == Proved::Feasible {
            answer.status = match why {
                Some(StoppedBy::TimeLimit) => Proved::TimeLimit,
                Some(StoppedBy::Interrupt) => Proved::Interrupted,
                Some(StoppedBy::Memory) | None => Proved::Feasible,
            };
        }
        self.output.write(&match self.output.format {
            OutputFormat::Table => table_of(&answer),
            OutputFormat::Json => json(&answer),
            OutputFormat::Csv => csv(&COLUMNS, rows(&answer))?,
        })?;
        Ok(match answer.status {
            Proved::Optimal => ExitStatus::Found,
            Proved::Feasible | Proved::TimeLimit | Proved::Interrupted => ExitStatus::Feasible,
            Proved::Infeasible => ExitStatus::Infeasible,
            Proved::Unknown => ExitStatus::Unknown,
        })
    }
}
