//! `--model -`: a model's config.json from standard input.

use std::io::IsTerminal;

use super::{Cli, Command};
use crate::spec::error::Error;
use crate::spec::model::ModelConfig;
use crate::store::catalog::Catalog;
use crate::store::file::{FileSizeLimit, bounded, spell};
use crate::store::kind::CatalogKind;

/// The name of the model on standard input.
pub const STDIN: &str = "-";

/// Whether a flag names the model on standard input.
pub fn is_named(cli: &Cli) -> bool {
    let model = match &cli.command {
        None => &cli.optimize.problem.scenario.model,
        Some(Command::Optimize(command)) => &command.problem.scenario.model,
        Some(Command::Estimate(command)) => &command.problem.scenario.model,
        Some(Command::Deploy(command)) => &command.problem.scenario.model,
        Some(Command::Explain(command)) => &command.problem.scenario.model,
        Some(Command::Place(command)) => &command.scenario.model,
        Some(Command::Recommend(command)) => &command.scenario.model,
        Some(Command::Fleet(command)) => &command.model,
        Some(Command::Inspect(command)) => &command.model,
        Some(
            Command::Verify(_)
            | Command::Validate(_)
            | Command::Calibrate(_)
            | Command::Catalog(_)
            | Command::Detect(_)
            | Command::Config(_)
            | Command::Schema(_)
            | Command::Glossary(_)
            | Command::Completions(_)
            | Command::Man,
        ) => &None,
    };
    model.as_deref() == Some(STDIN)
}

/// The catalogue with the config.json of standard input as the model `-`.
///
/// # Errors
/// Standard input is a terminal, cannot be read, or is not a configuration.
pub fn with_model(catalog: Catalog) -> Result<Catalog, Error> {
    let fault = |found: String, fix: &str| Error::new("model", found, "a config.json on standard input", fix);
    let input = std::io::stdin();
    if input.is_terminal() {
        return Err(fault("a terminal".into(), "write e.g. `mantile-opt --model - < config.json`"));
    }
    let text = bounded(input.lock(), FileSizeLimit::Configuration.bytes());
    let text = text.map_err(|error| fault(spell(&error), "pipe a config.json into the command"))?;
    let text =
        text.ok_or_else(|| fault("a file that is too large".into(), "pipe a config.json, not weights"))?;
    ModelConfig::parse(&text).map_err(|fault| fault.in_file("standard input"))?;
    Ok(catalog.with_entry(CatalogKind::Models, STDIN, &text))
}
