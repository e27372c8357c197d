//! Flags whose value is on standard input: `--model -`, `--command -`.

use std::io::IsTerminal;

use clap::ArgMatches;

use crate::spec::error::Error;
use crate::spec::model::ModelConfig;
use crate::store::catalog::Catalog;
use crate::store::file::{FileSizeLimit, bounded, spell};
use crate::store::kind::CatalogKind;

/// The name of the model on standard input.
pub const STDIN: &str = "-";

/// Whether a flag names the model on standard input.
pub fn is_named(matches: &ArgMatches) -> bool {
    let below = matches.subcommand().is_some_and(|(_, below)| is_named(below));
    below || matches!(matches.try_get_one::<String>("model"), Ok(Some(model)) if model == STDIN)
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
