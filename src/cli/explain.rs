//! `explain`: one number, down to the data it comes from.

use super::estimate::deployment;
use super::output::Output;
use super::question::Question;
use super::summary::summary;
use super::{Fault, Verdict};
use crate::spec::deployment::Deployment;
use crate::store::catalog::Catalog;
use crate::store::problem::Problem;

/// A number that can be explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Number {
    /// Time per output token
    #[default]
    Tpot,
    /// Time to first token
    Ttft,
    /// Output tokens a second of the whole deployment
    OutputTokS,
    /// Memory of the fullest device
    Memory,
    /// US dollars per million output tokens
    UsdPerMtok,
}

/// The flags of `explain`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Explain {
    /// Which number: tpot, ttft, output_tok_s, memory or usd_per_mtok
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "NUMBER",
        hide_possible_values = true,
        help_heading = "What to explain"
    )]
    pub number: Number,
    /// Only what lies under this part, e.g. decode/layer/attention
    #[arg(long, value_name = "PATH", help_heading = "What to explain")]
    pub path: Option<String>,
    /// How many levels deep
    #[arg(long, value_name = "N", help_heading = "What to explain")]
    pub depth: Option<u32>,
    /// The question.
    #[command(flatten)]
    pub question: Question,
    /// The deployment; the best one where none is stated.
    #[command(flatten)]
    pub deployment: Deployment,
    /// Where the answer goes.
    #[command(flatten)]
    pub output: Output,
}

impl Explain {
    /// Resolves the question and answers it.
    ///
    /// # Errors
    /// The question is faulty, or the answer cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<Verdict, Fault> {
        let problem = self.question.resolve(catalog, &self.deployment)?;
        deployment(&problem)?;
        self.answer(&problem)
    }

    // CALL-OUT: trace `self.number` of the stated (or best) deployment and report it to `self.output`.
    fn answer(&self, problem: &Problem) -> Result<Verdict, Fault> {
        self.output.found(&summary(problem))
    }
}
