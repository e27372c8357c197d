//! Flags whose value is on standard input: `--model -`, `--command -`.

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
        Some(Command::Static(command)) => &command.problem.scenario.model,
        Some(Command::Audit(command)) => &command.problem.scenario.model,
        Some(Command::Diagnose(command)) => &command.problem.scenario.model,
        Some(Command::Nearest(command)) => &command.problem.scenario.model,
        Some(Command::Compare(command)) => &command.problem.scenario.model,
        Some(Command::Sweep(command)) => &command.problem.scenario.model,
        Some(Command::Place(command)) => &command.scenario.model,
        Some(Command::Recommend(command)) => &command.scenario.model,
        Some(Command::Fleet(command)) => &command.model,
        Some(Command::Inspect(command)) => &command.model,
        Some(
            Command::Merge(_)
            | Command::Diff(_)
            | Command::Verify(_)
            | Command::Validate(_)
            | Command::Calibrate(_)
            | Command::Catalog(_)
            | Command::Detect(_)
            | Command::Config(_)
            | Command::Schema(_)
            | Command::Formulas(_)
            | Command::Glossary(_)
            | Command::Completions(_)
            | Command::Man,
        ) => &None,
        #[cfg(feature = "serve")]
        Some(Command::Serve(_)) => &None,
        #[cfg(feature = "mcp")]
        Some(Command::Mcp(_)) => &None,
        #[cfg(feature = "site")]
        Some(Command::Site(_)) => &None,
    };
    model.as_deref() == Some(STDIN)
}

/// The catalogue with the config.json of standard input as the model `-`.
///
/// # Errors
/// Standard input is a terminal, cannot be read, or is not a configuration.
pub fn with_model(catalog: Catalog) -> Result<Catalog, Error> {
    let fix = "write e.g. `mantile-opt --model - < config.json`";
    let text = text("model", "a config.json on standard input", fix)?;
    ModelConfig::parse(&text).map_err(|fault| fault.in_file("standard input"))?;
    Ok(catalog.with_entry(CatalogKind::Models, STDIN, &text))
}

/// The text on standard input, as the value of `key`.
///
/// # Errors
/// Standard input is a terminal, too long, or cannot be read.
pub fn text(key: &str, expected: &str, fix: &str) -> Result<String, Error> {
    let fault = |found: String| Error::new(key, found, expected, fix);
    let input = std::io::stdin();
    if input.is_terminal() {
        return Err(fault("a terminal".into()));
    }
    let text = bounded(input.lock(), FileSizeLimit::Configuration.bytes());
    let text = text.map_err(|error| fault(spell(&error)))?;
    text.ok_or_else(|| fault("a text that is too long".into()))
}
