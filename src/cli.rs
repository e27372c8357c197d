//! The command line: flags to questions, answers to text. Knows no formula.

pub mod ask;
pub mod build_candidate;
pub mod calibrate;
pub mod catalog;
pub mod deadline;
pub mod estimate;
mod exit;
pub mod explain;
pub mod fleet;
pub mod inspect;
pub mod memory;
pub mod optimize;
pub mod output;
pub mod place;
pub mod progress;
pub mod question;
pub mod recommend;
pub mod reference;
pub mod remedy;
pub mod summary;
pub mod threads;
pub mod validate;
pub mod verify;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::spec::error::Error;
use crate::spec::limits::of_flag;
use crate::spec::visible::{acts, visible_lines};
use crate::store::catalog::Catalog;
use exit::{BAD_INPUT, exit_codes};

pub use exit::ExitStatus;

const AFTER: &str = concat!(
    "\
Without a command, `optimize` is meant; without anything, Llama-3.3-70B on one HGX H100 node.

Examples:
  mantile-opt --model Qwen3-32B --hardware 4xl40s --objective perf-per-dollar
  mantile-opt --model DeepSeek-V3 --hardware gb200-nvl72 --pareto-out front.csv
  mantile-opt estimate --model Llama-3.1-8B --hardware 1xh100 --tp 1 --concurrency 64
  mantile-opt explain --model Llama-3.1-8B --hardware 1xh100 --number tpot
  mantile-opt place --model Llama-3.1-8B --hardware spark-mac-studio --objective request
  mantile-opt inspect hf:Qwen/Qwen3-8B
  mantile-opt catalog devices

What the search covers: every degree that the runtime has, formats of the question over all pools, prefill and decode \
aggregated or disaggregated, instances of different shapes, every concurrency. Outside, with its measured worth in docs/optimality.md: uneven \
load over ranks, different formats per pool, caps on batch and chunk, other cuts of a pipeline.

Network: none, except for `hf:` models and Hugging Face addresses (HF_TOKEN, HF_ENDPOINT, HF_HOME); what was fetched \
is kept, and fetched again with --refresh.
Own catalogue files: $MANTILE_HOME, else ~/.config/mantile, with the repository's folders.

",
    exit_codes!()
);

/// Finds the best way to serve a language model on given accelerators: how fast, at what cost, and why
#[derive(Debug, Parser)]
#[command(name = "mantile-opt", version, about, after_help = AFTER)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Fetch `hf:` models again that are kept from an earlier run
    #[arg(long, global = true, help_heading = "Output")]
    pub refresh: bool,
    /// What to optimise, where no command is named.
    #[command(flatten)]
    pub optimize: Box<optimize::Optimize>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The best deployment, and the Pareto front behind it (what is meant without a command)
    Optimize(Box<optimize::Optimize>),
    /// One stated deployment: the same metrics
    Estimate(Box<estimate::Estimate>),
    /// Place layers on heterogeneous devices, provably optimal
    Place(Box<place::PlaceArgs>),
    /// One number, down to the data it comes from
    Explain(Box<explain::Explain>),
    /// What to buy or rent for a model, over the whole catalogue; or what a machine serves well
    Recommend(Box<recommend::Recommend>),
    /// A mix of systems for a mix of traffic, at least cost, with a certificate
    Fleet(Box<fleet::FleetArgs>),
    /// A model laid open: layers, operators, every tensor, KV layout, counts
    Inspect(inspect::Inspect),
    /// A saved answer checked again: every row, the objective, a sample of what was pruned, the search
    Verify(verify::Verify),
    /// Predictions held against a table of measurements
    Validate(validate::Validate),
    /// A runtime's factors refitted to measurements
    Calibrate(calibrate::Calibrate),
    /// What is known: models, devices, systems, formats …
    Catalog(catalog::ListCatalog),
    /// JSON Schema of a file or a result
    Schema(reference::SchemaArgs),
    /// What the words mean here
    Glossary(output::OutputArgs),
    /// Completions for a shell
    Completions(reference::Completions),
    /// The manual page, in roff
    Man,
}

/// Why a command ended without an answer.
#[derive(Debug)]
pub enum CliError {
    /// What was asked is faulty.
    Input(Error),
    /// The answer could not be written.
    Output(std::io::Error),
}

impl From<Error> for CliError {
    fn from(error: Error) -> CliError {
        CliError::Input(error)
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> CliError {
        CliError::Output(error)
    }
}

/// The command line; the help of each number shows its range.
pub fn command() -> clap::Command {
    fn with_ranges(command: clap::Command) -> clap::Command {
        let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        let command = command.mut_args(|arg| {
            let Some(limit) = arg.get_long().and_then(of_flag) else { return arg };
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            arg.help(format!("{help} [{}]", limit.range()))
        });
        names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_ranges))
    }
    with_ranges(Cli::command())
}

/// Parses, runs, and turns the outcome into an exit code.
pub fn main() -> ExitCode {
    let cli = match command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return unparsed(&error),
    };
    let bare = std::env::args_os().len() <= 1;
    match threads::on_workers(|| run(cli, bare)) {
        Ok(verdict) => verdict.into(),
        Err(CliError::Input(error)) => failed(&error.to_string()),
        Err(CliError::Output(error)) => unwritten(&error),
    }
}

/// What is said of flags that make no question: help and version on standard output, what is wrong on standard error.
fn unparsed(told: &clap::Error) -> ExitCode {
    if told.use_stderr() {
        // What was typed is shown; a terminal is not to obey it. Without styles whatever is left is spelled out.
        let hostile = std::env::args_os().any(|typed| typed.to_string_lossy().chars().any(acts));
        let text = match hostile {
            true => visible_lines(&told.render().to_string()).replace('\t', "\\t"),
            false => told.render().ansi().to_string(),
        };
        let _ = write!(anstream::stderr(), "{text}");
        return ExitCode::from(BAD_INPUT);
    }
    match told.print().and_then(|()| std::io::stdout().flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => unwritten(&error),
    }
}

/// The end of a command whose answer could not be written.
fn unwritten(error: &std::io::Error) -> ExitCode {
    // Whoever closed the pipe has read enough.
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return ExitCode::SUCCESS;
    }
    failed(&format!("the output could not be written: {}", crate::store::file::spell(error)))
}

/// The end of a command that failed.
fn failed(text: &str) -> ExitCode {
    let style = clap::builder::styling::AnsiColor::Red.on_default().bold();
    // Nobody is left to be told where even this fails.
    let _ = writeln!(anstream::stderr(), "{style}error:{style:#} {text}");
    ExitCode::from(BAD_INPUT)
}

/// Runs a command; `bare` is when nothing at all was asked.
fn run(cli: Cli, bare: bool) -> Result<ExitStatus, CliError> {
    let apart = matches!(
        cli.command,
        Some(Command::Schema(_) | Command::Glossary(_) | Command::Completions(_) | Command::Man)
    );
    let mut catalog = if apart { Catalog::default() } else { Catalog::from_env()? };
    catalog.refresh = cli.refresh;
    match cli.command {
        None => {
            let verdict = cli.optimize.run(&catalog)?;
            if bare {
                optimize::hint()?;
            }
            Ok(verdict)
        }
        Some(Command::Optimize(command)) => command.run(&catalog),
        Some(Command::Estimate(command)) => command.run(&catalog),
        Some(Command::Place(command)) => command.run(&catalog),
        Some(Command::Explain(command)) => command.run(&catalog),
        Some(Command::Recommend(command)) => command.run(&catalog),
        Some(Command::Fleet(command)) => command.run(&catalog),
        Some(Command::Inspect(command)) => command.run(&catalog),
        Some(Command::Validate(command)) => command.run(&catalog),
        Some(Command::Verify(command)) => command.run(&catalog),
        Some(Command::Calibrate(command)) => command.run(&catalog),
        Some(Command::Catalog(command)) => command.run(&catalog),
        Some(Command::Schema(command)) => command.run(),
        Some(Command::Glossary(output)) => reference::glossary(&output),
        Some(Command::Completions(command)) => command.run(),
        Some(Command::Man) => reference::man(),
    }
}
