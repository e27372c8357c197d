//! `fleet`: the cheapest mix of systems for a traffic mix.

use std::path::{Path, PathBuf};

use super::deadline::with_progress;
use super::defaults::UserDefaults;
use super::emit::EmitArgs;
use super::exit::exit_codes;
use super::output::OutputArgs;
use super::plot::PlotArgs;
use super::{CliError, ExitStatus};
use crate::report::svg::fleet::fleet_picture;
use crate::request::fleet::{FleetRequest, fleet};
use crate::request::traced_traffic::traced_in;
use crate::search::fleet::FleetObjective;
use crate::spec::error::Error;
use crate::spec::fleet::{FleetFile, TracedRequest};
use crate::spec::limits::{ELECTRICITY, HEADROOM, HOURS_PER_DAY, MAX_DEVICES, number, whole};
use crate::spec::price::{HOURS_OF_A_DAY, PriceBasis};
use crate::spec::scenario::Scenario;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::file::{self, FileSizeLimit};

const AFTER: &str = concat!(
    "\
For each offer and bucket, the search of `optimize --rate` finds the plan with the highest request rate within the \
SLOs, for random arrivals. These rates are the coefficients of a MIP with integer numbers of systems and fractional \
shares of traffic. Every row of the result is checked.

Examples:
  mantile-opt fleet
  mantile-opt fleet --file fleet.json --spare
  mantile-opt fleet --model Llama-3.1-8B --trace requests.csv --offers 1xl40s,h100-sxm-x1,mi300x-x1
  mantile-opt fleet --file fleet.json --aim throughput --budget-hour 50usd --format json

A fleet file (mantile-opt schema fleet):
  {\"model\": \"Llama-3.1-8B\", \"buckets\": [{\"isl\": 2048, \"osl\": 512, \"rate\": 4}],
   \"offers\": [{\"hardware\": \"1xl40s\", \"available\": 8}, {\"hardware\": \"1xh100\", \"terms\": \"spot\", \"usd_per_hour\": 1.4}]}
A trace is a CSV file with the columns arrival (seconds), isl, osl, or one of Azure, BurstGPT, Mooncake or vLLM bench.

",
    exit_codes!()
);

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct FleetArgs {
    /// Fleet file: buckets, offers, SLOs
    #[arg(long, value_name = "FILE.json", help_heading = "The fleet")]
    pub file: Option<PathBuf>,
    /// Trace of requests, in place of buckets: CSV of our own, Azure or BurstGPT, JSON of Mooncake or vLLM bench
    #[arg(long, value_name = "FILE", help_heading = "The fleet")]
    pub trace: Option<PathBuf>,
    /// Systems in place of the file's offers, separated by commas
    #[arg(long, value_name = "H", value_delimiter = ',', help_heading = "The fleet")]
    pub offers: Vec<String>,
    /// Lowest cost, fewest devices, or highest throughput within the budget
    #[arg(
        long,
        value_enum,
        value_name = "cost|devices|throughput",
        default_value = "cost",
        hide_possible_values = true,
        help_heading = "The fleet"
    )]
    pub aim: FleetObjective,
    /// Budget, USD/h; the upper end of a price range counts
    #[arg(long, value_name = "USD", help_heading = "The fleet")]
    pub budget_hour: Option<String>,
    /// Maximum number of devices
    #[arg(long, value_name = "N", value_parser = whole(&MAX_DEVICES), help_heading = "The fleet")]
    pub max_devices: Option<u64>,
    /// One spare system of every kind in use (N+1)
    #[arg(long, help_heading = "The fleet")]
    pub spare: bool,
    /// Share of every system's capacity that stays free, e.g. 0.2 [default: 0]
    #[arg(long, value_name = "X", value_parser = number(&HEADROOM), help_heading = "The fleet")]
    pub headroom: Option<f64>,
    /// Hours a day that the fleet runs, for the costs of a day, month and year [default: 24]
    #[arg(long, value_name = "H", value_parser = number(&HOURS_PER_DAY), help_heading = "The fleet")]
    pub hours_per_day: Option<f64>,
    /// Model of buckets without one
    #[arg(short, long, value_name = "M", help_heading = "The fleet")]
    pub model: Option<String>,
    /// TTFT SLO: maximum time to first token; `none` for no limit
    #[arg(long, value_name = "T", help_heading = "The fleet")]
    pub ttft: Option<String>,
    /// TPOT SLO: maximum time per output token; `none` for no limit
    #[arg(long, value_name = "T", help_heading = "The fleet")]
    pub tpot: Option<String>,
    /// Weight format: an id, or `any`
    #[arg(long, value_name = "F", help_heading = "The fleet")]
    pub weight_format: Option<String>,
    /// Price every offer as owned or rented [default: the terms of the offers; else rented where every offer has a rent]
    #[arg(
        long,
        value_enum,
        value_name = "owned|rented",
        hide_possible_values = true,
        help_heading = "The fleet"
    )]
    pub price_basis: Option<PriceBasis>,
    /// Electricity price, USD/kWh
    #[arg(long, value_name = "USD", value_parser = number(&ELECTRICITY), help_heading = "The fleet")]
    pub electricity_usd_per_kwh: Option<f64>,
    /// Override a value in the file of a model, device, system or runtime, e.g. device[h100-sxm].memory.bandwidth='3
    /// TB/s' (repeatable)
    #[arg(
        long,
        value_name = "FILE[NAME].KEY=VALUE",
        allow_hyphen_values = true,
        help_heading = "Assumptions"
    )]
    pub set: Option<Vec<String>>,
    /// Show everything: routing, certificate, defaults
    #[arg(long, help_heading = "Output")]
    pub detail: bool,
    /// Where launch files are written: one folder per kind of system.
    #[command(flatten)]
    pub emit: EmitArgs,
    #[command(flatten)]
    pub plot: PlotArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    /// The user's defaults for keys that neither a flag nor the file sets.
    #[arg(skip)]
    pub defaults: UserDefaults,
}

/// Keys that the user's defaults may set, other than those that a fleet file may.
const FROM_DEFAULTS: [&str; 5] =
    ["weight_format", "price_basis", "electricity_usd_per_kwh", "utilization", "hours_per_day"];

impl FleetArgs {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        self.plot.check()?;
        let request = self.request()?;
        let report = with_progress(|control| fleet(catalog, &request, control))?;
        self.plot.write(|| fleet_picture(&report))?;
        let folder = |at: usize| Some(format!("{}-{}", at + 1, report.systems[at].system));
        self.emit.write(report.launches.iter().enumerate().map(|(at, launch)| (folder(at), launch)))?;
        self.output.answer(&report, self.detail)?;
        Ok(report.certificate.status.into())
    }

    pub fn request(&self) -> Result<FleetRequest, Error> {
        let fleet = match &self.file {
            Some(path) => {
                let name = file::shown(path);
                let text = file::read_json(path, FileSizeLimit::Configuration)?;
                let filed: FleetFile = from_json(&text, "a fleet").map_err(|fault| fault.in_file(&name))?;
                filed.check().map_err(|fault| fault.in_file(&name))?;
                filed
            }
            None => FleetFile::default(),
        };
        let scenario = self.scenario(&fleet);
        let utilized = scenario.utilization.map(|share| share * HOURS_OF_A_DAY);
        Ok(FleetRequest {
            fleet,
            trace: self.trace.as_deref().map(traced).transpose()?,
            offers: self.offers.clone(),
            aim: self.aim,
            budget_hour: self.budget_hour.clone(),
            max_devices: self.max_devices,
            spare: self.spare,
            headroom: self.headroom,
            hours_per_day: scenario.hours_per_day.or(utilized),
            model: scenario.model,
            ttft: scenario.ttft,
            tpot: scenario.tpot,
            weight_format: scenario.weight_format,
            price_basis: scenario.price_basis,
            electricity_usd_per_kwh: scenario.electricity_usd_per_kwh,
            set: scenario.set,
        })
    }

    /// The flags for every system, with the user's defaults for keys that neither a flag nor the file sets.
    fn scenario(&self, fleet: &FleetFile) -> Scenario {
        let flags = Scenario {
            model: self.model.clone(),
            ttft: self.ttft.clone(),
            tpot: self.tpot.clone(),
            weight_format: self.weight_format.clone(),
            price_basis: self.price_basis,
            electricity_usd_per_kwh: self.electricity_usd_per_kwh,
            hours_per_day: self.hours_per_day,
            set: self.set.clone(),
            ..Scenario::default()
        };
        self.defaults.under(flags, |key| match key {
            "model" => fleet.model.is_none(),
            "ttft" => fleet.limits.ttft.is_none(),
            "tpot" => fleet.limits.tpot.is_none(),
            key => FROM_DEFAULTS.contains(&key),
        })
    }
}

fn traced(path: &Path) -> Result<Vec<TracedRequest>, Error> {
    let text = file::read_most(path, FileSizeLimit::Table)?;
    traced_in(&text).map_err(|fault| fault.in_file(file::shown(path)))
}
