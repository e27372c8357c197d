//! `recommend`: what to buy or rent for a model, or which models a machine serves well.

pub mod explore;
pub mod requirements;
pub mod rerun;

use super::exit::exit_codes;
use super::output::{OutputArgs, OutputFormat, json};
use super::{CliError, ExitStatus};
use crate::report::recommend::PaymentMode;
use crate::report::rows::builds as csv;
use crate::report::text::models::table as served_table;
use crate::report::text::recommend::table;
use crate::spec::limits::{MAX_WATTS, TARGET, USERS, number, whole};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use explore::{for_hardware, for_model};

const AFTER: &str = concat!(
    "\
Every system of the catalogue is looked at, with parts of its node, more nodes of it, and copies of it side by \
side; so are devices that no system lists. Like instances that take prompts and answers are looked at first; where \
they take several copies or miss a limit, everything else that `optimize` searches is: disaggregated pools, different \
instances too. The pace of a build is that of the quickest plan found for the fewest copies.

Examples:
  mantile-opt recommend
  mantile-opt recommend --model Llama-3.3-70B --target-tok-s 50 --users 20 --context 32k
  mantile-opt recommend --model gpt-oss-120b --users 5 --budget 15000usd --prefer buy --only apple,nvidia
  mantile-opt recommend --model Qwen3-32B --users 100 --budget-hour 20usd --format csv
  mantile-opt recommend --hardware rtx-4090-x2 --target-tok-s 30

",
    exit_codes!()
);

/// The flags of `recommend`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = AFTER)]
pub struct Recommend {
    /// Output tokens a second that every user must see [default: what the workload's TPOT limit gives]
    #[arg(long, value_name = "X", value_parser = number(&TARGET), help_heading = "What is sought")]
    pub target_tok_s: Option<f64>,
    /// Users, each with one request in flight
    #[arg(long, value_name = "N", value_parser = whole(&USERS), default_value = "1", help_heading = "What is sought")]
    pub users: u64,
    /// Prompt and answer, earlier turns included, e.g. 32k; what is beyond the workload's prompt is cached
    #[arg(long, value_name = "TOKENS", help_heading = "What is sought")]
    pub context: Option<String>,
    /// Most that the purchase may cost, e.g. 15000usd; what is bought is owned
    #[arg(long, value_name = "USD", help_heading = "What is sought")]
    pub budget: Option<String>,
    /// Most that an hour may cost, e.g. 20usd
    #[arg(long, value_name = "USD", help_heading = "What is sought")]
    pub budget_hour: Option<String>,
    /// Buy or rent [default: whichever costs less an hour]
    #[arg(
        long,
        value_enum,
        value_name = "buy|rent",
        hide_possible_values = true,
        help_heading = "What is sought"
    )]
    pub prefer: Option<PaymentMode>,
    /// Most power of the devices
    #[arg(long, value_name = "W", value_parser = number(&MAX_WATTS), help_heading = "What is sought")]
    pub max_watts: Option<f64>,
    /// Makers, classes, generations, devices or systems to look at, separated by commas
    #[arg(long, value_name = "WORDS", value_delimiter = ',', help_heading = "What is sought")]
    pub only: Vec<String>,
    /// Everything else.
    #[command(flatten)]
    pub stated: Scenario,
    /// Where the answer goes.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Recommend {
    /// Resolves what is sought and answers it.
    ///
    /// # Errors
    /// What is sought is faulty, or the answer cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let (scenario, mut sought) = self.sought(catalog)?;
        let (text, served) = if scenario.model.is_none() && scenario.hardware.is_some() {
            let answer = for_hardware(catalog, &scenario, &mut sought)?;
            let text = match self.output.format {
                OutputFormat::Table => served_table(&answer),
                OutputFormat::Json => json(&answer),
                OutputFormat::Csv => {
                    csv(&answer.models.iter().map(|held| held.build.clone()).collect::<Vec<_>>())
                }
            };
            (text, !answer.models.is_empty())
        } else {
            let answer = for_model(catalog, &scenario, &mut sought)?;
            let text = match self.output.format {
                OutputFormat::Table => table(&answer),
                OutputFormat::Json => json(&answer),
                OutputFormat::Csv => csv(&answer.builds),
            };
            (text, answer.minimum.is_some() || answer.cheapest.is_some())
        };
        self.output.write(&text)?;
        Ok(if served { ExitStatus::Found } else { ExitStatus::Infeasible })
    }
}
