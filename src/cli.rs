//! The command line: parses flags into problems and renders reports. It contains no formula.

#[cfg(feature = "serve")]
pub mod access;
pub mod audit;
#[cfg(feature = "bench")]
pub mod bench;
pub mod calibrate;
pub mod catalog;
pub mod check;
mod clap_error;
mod command_line;
pub mod compare;
pub mod config;
pub mod deadline;
pub mod defaults;
pub mod deploy;
pub mod detect;
pub mod diagnose;
pub mod diff;
#[cfg(feature = "runs")]
pub mod drift;
pub mod emit;
pub mod estimate;
mod exit;
pub mod explain;
mod explore;
mod first;
pub mod fleet;
pub mod inspect;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod memory;
#[cfg(feature = "serve")]
pub mod mock;
pub mod nearest;
pub mod optimize;
pub mod output;
mod outputs;
pub mod place;
pub mod plot;
pub mod problem;
pub mod progress;
pub mod recommend;
pub mod reference;
#[cfg(any(feature = "serve", feature = "mcp"))]
pub mod request_limits;
#[cfg(feature = "runs")]
pub mod runs;
#[cfg(feature = "serve")]
pub mod serve;
pub mod simulate;
pub mod simulated_records;
#[cfg(feature = "site")]
pub mod site;
pub mod static_batch;
mod stdin;
pub mod subcommand;
pub mod sweep;
pub mod terminal;
pub mod threads;
#[cfg(any(feature = "serve", feature = "bench"))]
mod token;
pub mod trace;
pub mod validate;
pub mod verify;
mod workbook;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser};

use crate::report::pretty::pretty;
use crate::request::bundle::bundle;
use crate::request::permalink::link_of;
use crate::request::wording::answer_in_keys;
use crate::spec::error::Error;
use crate::spec::limits::of_flag;
use crate::spec::visible::{acts, visible_lines};
use crate::store::catalog::Catalog;
use crate::store::closed_output::check_stdout;
use crate::store::detect::probe::ThisMachine;
use deadline::with_deadline;
use defaults::UserDefaults;
use exit::{BAD_INPUT, exit_codes};

pub use exit::ExitStatus;
use subcommand::{Command, Subcommand};

const AFTER: &str = concat!(
    "\
The default command is `optimize`; without arguments, the models for this machine or examples are shown.

Examples:
  mantile-opt --model Qwen3-32B --hardware 4xl40s --objective perf-per-dollar
  mantile-opt --model DeepSeek-V3 --hardware gb200-nvl72 --pareto-out front.csv
  mantile-opt estimate --model Llama-3.1-8B --hardware 1xh100 --tp 1 --concurrency 64
  mantile-opt explain --model Llama-3.1-8B --hardware 1xh100 --number tpot
  mantile-opt place --model Llama-3.1-8B --hardware spark-mac-studio --objective request
  mantile-opt inspect hf:Qwen/Qwen3-8B
  mantile-opt sweep --model Llama-3.1-8B --hardware 8xh100 --vary tp=1,2,4,8
  mantile-opt --hardware local

Search space: every parallel degree that the runtime supports, one set of formats for all pools, prefill and decode \
aggregated or disaggregated, pools of mixed configurations, every concurrency. Not searched (docs/optimality.md \
measures the effect): uneven load over ranks, different formats per pool, caps on batch and chunk size, other pipeline \
cuts.

Network: only for `hf:` models (HF_TOKEN, HF_ENDPOINT, HF_HOME); downloads are cached; --refresh downloads again.
Your own catalogue files: $MANTILE_HOME, else ~/.config/mantile, in the repository's folder structure.
Your own defaults (hardware, prices, SLOs): defaults.toml in that folder, or MANTILE_HARDWARE and the like; see `mantile-opt config --help`.

",
    exit_codes!()
);

/// Find the best way to serve a language model on given hardware: plan, latency, throughput and cost
#[derive(Debug, Parser)]
#[command(name = "mantile-opt", version, about, after_long_help = AFTER)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Download `hf:` models again instead of reading them from the cache
    #[arg(long, global = true, help_heading = "Output")]
    pub refresh: bool,
    /// Show no progress and no hints
    #[arg(short, long, global = true, help_heading = "Output")]
    pub quiet: bool,
    /// Ignore the defaults file and the variables MANTILE_MODEL, MANTILE_HARDWARE …
    #[arg(long, global = true, help_heading = "Output")]
    pub no_config: bool,
    /// Treat warnings about unknown keys of a model's config.json as errors; a key with a word of an architecture feature is always one
    #[arg(long, global = true, help_heading = "Output")]
    pub strict: bool,
    /// Also write the answer with every file that it rests on: `verify` makes it again, on any machine
    #[arg(long, global = true, value_name = "FILE.json", help_heading = "Output")]
    pub bundle: Option<PathBuf>,
    /// Print a short link with the scenario and its overrides instead of an answer; --scenario reads it
    #[arg(long, global = true, conflicts_with = "bundle", help_heading = "Output")]
    pub permalink: bool,
    /// Explore the rows of the answer on the terminal: filter, sort, other users, context or format; ends with its command
    #[arg(short, long, global = true, conflicts_with_all = ["bundle", "permalink"], help_heading = "Output")]
    pub interactive: bool,
    /// Read further words of the command line from a file, or `-`: on any number of lines, quoted as for a shell, without running anything; # begins a comment
    #[arg(long, global = true, value_name = "FILE", help_heading = "Output")]
    pub arguments_file: Option<PathBuf>,
    /// The flags of `optimize`, the default command.
    #[command(flatten)]
    pub optimize: Box<optimize::Optimize>,
    #[arg(skip)]
    pub outputs: Vec<outputs::Output>,
    /// Whether its model is on standard input.
    #[arg(skip)]
    pub reads_model: bool,
}

/// An error that ends a command without a result.
#[derive(Debug)]
pub enum CliError {
    Input(Error),
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
    workbook::with_formats(with_ranges(Cli::command()))
}

/// Parses, runs, and turns the outcome into an exit code.
pub fn main() -> ExitCode {
    ExitCode::from(main_of(std::env::args_os().collect()))
}

/// The same for a host program: its name and words, and the exit code.
pub fn main_of(line: Vec<OsString>) -> u8 {
    deadline::begin();
    let line = match command_line::with_files(&line) {
        Ok(line) => command_line::set(line),
        Err(error) => {
            command_line::set(line);
            return refused(&error);
        }
    };
    let cli = match parsed(line) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && in_json() => return refused(&clap_error::of_clap(&error)),
        Err(error) => return unparsed(&error),
    };
    let bare = line.len() <= 1;
    progress::set_quiet(cli.quiet);
    match threads::on_workers(|| run(cli, bare)) {
        Ok(ExitStatus::Success) if output::is_unread() => {
            failed("the output could not be written: its reader closed the pipe before the answer")
        }
        Ok(verdict) => verdict.code(),
        Err(CliError::Input(error)) => refused(&error),
        Err(CliError::Output(error)) => unwritten(&error),
    }
}

/// The command line as its commands and flags.
///
/// # Errors
/// A word is unknown or faulty, or a flag of the default command is before another command.
pub fn parsed(line: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = command().version(reference::version());
    let matches = command.try_get_matches_from_mut(line)?;
    if let Some((name, _)) = matches.subcommand() {
        let before = |arg: &&clap::Arg| {
            let given = matches.try_contains_id(arg.get_id().as_str()).unwrap_or(false)
                && matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
            given && !arg.is_global_set()
        };
        if let Some(misplaced) = command.get_arguments().find(before) {
            let mut error = clap::Error::new(ErrorKind::ArgumentConflict).with_cmd(&command);
            error.insert(ContextKind::InvalidSubcommand, ContextValue::String(name.to_owned()));
            error.insert(ContextKind::PriorArg, ContextValue::String(misplaced.to_string()));
            let tip = "write the flags of a command after its name".into();
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
            return Err(error);
        }
    }
    let cli = Cli::from_arg_matches(&matches)?;
    Ok(Cli { outputs: outputs::outputs(&matches), reads_model: stdin::is_named(&matches), ..cli })
}

/// Whether the output was requested in JSON: errors are JSON then too.
fn in_json() -> bool {
    let words = command_line::words();
    let named = words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    named || words.iter().any(|word| word == "--json" || word == "--format=json")
}

/// Prints a parse result of clap: help and version on standard output, errors on standard error.
fn unparsed(error: &clap::Error) -> u8 {
    if error.use_stderr() {
        // Typed text is echoed: control sequences in it are spelled out, so that the terminal does not act on them.
        let hostile = command_line::words().iter().any(|typed| typed.chars().any(acts));
        let text = match hostile {
            true => visible_lines(&error.render().to_string()).replace('\t', "\\t"),
            false => error.render().ansi().to_string(),
        };
        let _ = write!(anstream::stderr(), "{text}");
        return BAD_INPUT;
    }
    match check_stdout().and_then(|()| error.print()).and_then(|()| std::io::stdout().flush()) {
        Ok(()) => ExitStatus::Success.code(),
        Err(fault) => unwritten(&fault),
    }
}

fn unwritten(error: &std::io::Error) -> u8 {
    // The help and the version are no answers: a reader may leave before their end.
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return ExitStatus::Success.code();
    }
    failed(&format!("the output could not be written: {}", crate::store::file::spell(error)))
}

/// Ends a command whose input is faulty; the error is JSON where the answer would be.
fn refused(error: &Error) -> u8 {
    if !in_json() {
        return failed(&error.to_string());
    }
    // A failed write to standard error cannot be reported anywhere.
    let _ = write!(std::io::stderr(), "{}", pretty(&answer_in_keys(serde_json::json!({"error": error}))));
    BAD_INPUT
}

fn failed(text: &str) -> u8 {
    let style = clap::builder::styling::AnsiColor::Red.on_default().bold();
    // A failed write to standard error cannot be reported anywhere.
    let _ = writeln!(anstream::stderr(), "{style}error:{style:#} {text}");
    BAD_INPUT
}

impl Cli {
    /// The command; `optimize` where none is named.
    fn subcommand(&mut self) -> &mut dyn Subcommand {
        match &mut self.command {
            None => &mut *self.optimize,
            Some(command) => command.as_subcommand(),
        }
    }

    /// Name and JSON of the question that the command line poses.
    ///
    /// # Errors
    /// A file of the flags is faulty, or the command answers no question.
    pub fn request(&mut self, catalog: &Catalog) -> Result<(&'static str, serde_json::Value), Error> {
        self.subcommand().question(catalog)
    }
}

/// Reads the user's defaults into a command that takes them.
fn with_defaults(cli: &mut Cli) -> Result<UserDefaults, Error> {
    let ignored = cli.no_config;
    let mut defaults = UserDefaults::default();
    if let Some((own, applied)) = cli.subcommand().defaults() {
        if !ignored {
            defaults = UserDefaults::from_env()?;
        }
        // Both share the inputs that were applied, which the output names.
        (*own, *applied) = (defaults.clone(), defaults.applied.clone());
    }
    Ok(defaults)
}

/// Reads the user's defaults and runs a command; `bare` means that the command line is empty.
fn run(mut cli: Cli, bare: bool) -> Result<ExitStatus, CliError> {
    let defaults = with_defaults(&mut cli)?;
    run_command(cli, bare).map_err(|error| match error {
        CliError::Input(fault) => CliError::Input(defaults.located(fault)),
        CliError::Output(error) => CliError::Output(error),
    })
}

fn run_command(mut cli: Cli, bare: bool) -> Result<ExitStatus, CliError> {
    outputs::check_distinct(&cli.outputs)?;
    let mut catalog = if cli.subcommand().is_embedded() { Catalog::default() } else { Catalog::from_env()? };
    catalog = catalog.with_machine(Arc::new(ThisMachine::default()));
    catalog.refresh = cli.refresh;
    catalog.unknown_keys.strict = cli.strict;
    if cli.reads_model {
        catalog = stdin::with_model(catalog)?;
    }
    let status = answer(cli, &catalog, bare);
    for warning in catalog.unknown_keys.warnings() {
        writeln!(anstream::stderr(), "warning: {}", visible_lines(&warning))?;
    }
    status
}

fn answer(mut cli: Cli, catalog: &Catalog, bare: bool) -> Result<ExitStatus, CliError> {
    if cli.interactive {
        return explore::explore(catalog, command_line::words());
    }
    if cli.permalink {
        let (name, question) = cli.request(catalog)?;
        return output::OutputArgs::default().write(&format!("{}\n", link_of(name, &question)?));
    }
    if let Some(path) = cli.bundle.clone() {
        let (name, question) = cli.request(catalog)?;
        let limit = cli.subcommand().time_limit();
        let bundle = with_deadline(limit, |control| bundle(catalog, name, &question, control))?;
        output::write_document(&path, &bundle)?;
    }
    if bare && cli.command.is_none() {
        let Some(mut of_this_machine) = first::of_this_machine(catalog)? else {
            first::examples(anstream::stdout(), "Questions that this program answers, with examples")?;
            return Ok(ExitStatus::of(true));
        };
        let status = of_this_machine.subcommand().run(catalog)?;
        first::examples(anstream::stderr(), "\nThe models for this machine. Other questions:")?;
        return Ok(status);
    }
    cli.subcommand().run(catalog)
}
