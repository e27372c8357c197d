//! `recommend`: hardware to buy or rent for a model, or models for a machine.

use super::deadline::with_progress;
use super::defaults::UserDefaults;
use super::emit::EmitArgs;
use super::exit::exit_codes;
use super::output::OutputArgs;
use super::plot::PlotArgs;
use super::{CliError, ExitStatus};
use crate::request::recommend::{RecommendRequest, recommend};
use crate::spec::limits::{MAX_WATTS, TARGET, USERS, number, whole};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

const AFTER: &str = concat!(
    "\
The search covers every system of the catalogue, partial nodes, multi-node builds and copies, and single \
devices that no system lists. Aggregated plans with equal replicas come first; if they need \
several copies or miss an SLO, the full search space of `optimize` follows: disaggregated pools, mixed \
configurations. The speed of a build is that of the fastest plan found for the fewest copies.

Examples:
  mantile-opt recommend
  mantile-opt recommend --model Llama-3.3-70B --target-tok-s 50 --users 20 --context 32k
  mantile-opt recommend --model gpt-oss-120b --users 5 --budget 15000usd --only apple,nvidia
  mantile-opt recommend --model Qwen3-32B --users 100 --budget-hour 20usd --format csv
  mantile-opt recommend --hardware rtx-4090-x2 --target-tok-s 30

",
    exit_codes!()
);

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Recommend {
    /// Target output tokens per second for every user [default: from the TPOT SLO of the workload]
    #[arg(long, value_name = "X", value_parser = number(&TARGET), help_heading = "Requirements")]
    pub target_tok_s: Option<f64>,
    /// Users, each with one concurrent request
    #[arg(long, value_name = "N", value_parser = whole(&USERS), default_value = "1", help_heading = "Requirements")]
    pub users: u64,
    /// Context length: prompt and output, earlier turns included, e.g. 32k; prompt tokens beyond the workload's are
    /// cached
    #[arg(long, value_name = "TOKENS", help_heading = "Requirements")]
    pub context: Option<String>,
    /// Maximum purchase price, hosts and network included, e.g. 15000usd; the upper end of a price range counts
    #[arg(long, value_name = "USD", help_heading = "Requirements")]
    pub budget: Option<String>,
    /// Maximum cost per hour, e.g. 20usd; the upper end of a price range counts
    #[arg(long, value_name = "USD", help_heading = "Requirements")]
    pub budget_hour: Option<String>,
    /// Maximum power of the devices
    #[arg(long, value_name = "W", value_parser = number(&MAX_WATTS), help_heading = "Requirements")]
    pub max_watts: Option<f64>,
    /// Vendors, classes, generations, devices or systems to consider, separated by commas
    #[arg(long, value_name = "WORDS", value_delimiter = ',', help_heading = "Requirements")]
    pub only: Vec<String>,
    #[command(flatten)]
    pub scenario: Scenario,
    /// Show everything: each choice, all systems, rejected systems, defaults
    #[arg(long, help_heading = "Output")]
    pub detail: bool,
    /// Where launch files of the first choice are written.
    #[command(flatten)]
    pub emit: EmitArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub plot: PlotArgs,
    #[arg(skip)]
    pub defaults: UserDefaults,
}

/// Keys of a scenario that `recommend` finds or sets itself, and the rent of one's own hardware.
const OWN: [&str; 7] =
    ["hardware", "concurrency", "rate", "percentile", "tpot", "usd_per_device_hour", "pareto"];

impl Recommend {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        self.plot.check()?;
        let request = self.request();
        let report = with_progress(|control| recommend(catalog, &request, control))?;
        self.plot.write(|| report.picture())?;
        self.emit.write(report.launch().map(|launch| (None, launch)))?;
        self.output.answer(&report, self.detail)?;
        Ok(ExitStatus::of(report.serves()))
    }

    /// Whether a default for the key applies.
    fn takes(&self, key: &str) -> bool {
        match key {
            // With hardware alone, models are searched.
            "model" | "draft" | "draft_tokens" | "acceptance" => self.scenario.hardware.is_none(),
            "isl" | "prefix" => self.context.is_none(),
            key => !OWN.contains(&key),
        }
    }

    pub fn request(&self) -> RecommendRequest {
        RecommendRequest {
            target_tok_s: self.target_tok_s,
            users: self.users,
            context: self.context.clone(),
            budget: self.budget.clone(),
            budget_hour: self.budget_hour.clone(),
            max_watts: self.max_watts,
            only: self.only.clone(),
            scenario: self.defaults.under(self.scenario.clone(), |key| self.takes(key)),
        }
    }
}
