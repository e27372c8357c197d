//! `optimize`: the best deployment, and the front behind it.

use std::io::Write;
use std::path::PathBuf;

use super::output::Output;
use super::question::Question;
use super::summary::summary;
use super::{Fault, Verdict};
use crate::spec::deployment::Deployment;
use crate::store::catalog::Catalog;
use crate::store::problem::Problem;

/// The flags of `optimize`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Optimize {
    /// The question.
    #[command(flatten)]
    pub question: Question,
    /// Where the answer goes.
    #[command(flatten)]
    pub output: Output,
    /// Write the Pareto front to a file, CSV or JSON by its ending
    #[arg(long, value_name = "FILE.csv|.json", help_heading = "Output")]
    pub pareto_out: Option<PathBuf>,
}

impl Optimize {
    /// Resolves the question and answers it.
    ///
    /// # Errors
    /// The question is faulty, or the answer cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<Verdict, Fault> {
        let problem = self.question.resolve(catalog, &Deployment::default())?;
        self.answer(&problem)
    }

    // CALL-OUT: search `problem`, report the outcome to `self.output` and its front to `self.pareto_out`.
    fn answer(&self, problem: &Problem) -> Result<Verdict, Fault> {
        self.output.found(&summary(problem))
    }
}

/// Says what else there is, to whoever asked nothing.
///
/// # Errors
/// Standard error is closed.
pub fn hint() -> Result<(), Fault> {
    let mut out = anstream::stderr().lock();
    writeln!(out, "\nThat was Llama-3.3-70B on one HGX H100 node. Ask your own:")?;
    writeln!(out, "  mantile-opt --model Qwen3-32B --hardware 4xl40s --objective perf-per-dollar")?;
    writeln!(out, "  mantile-opt catalog models|devices|systems|objectives   what is known")?;
    writeln!(out, "  mantile-opt explain --number tpot                       where a number comes from")?;
    writeln!(out, "  mantile-opt --help                                      everything else")?;
    Ok(())
}
