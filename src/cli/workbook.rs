//! `--format`: each command with the formats of its question, and results as workbooks.

use std::io::Write;

use clap::Command;

use super::CliError;
use super::output::{OutputArgs, for_people, parser};
use crate::report::format::Format;
use crate::report::rendered::Answer;
use crate::request::workbook::workbook;
use crate::request::{RequestEntry, entry};
use crate::store::catalog::Catalog;

/// The command line with the formats of each question at its command; the default command is `optimize`.
pub(super) fn with_formats(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let command = names.into_iter().fold(command, |command, name| match entry(&name) {
        Ok(entry) => command.mut_subcommand(name, |sub| formats_of(sub, entry)),
        Err(_) => command,
    });
    entry("optimize").map_or(command.clone(), |entry| formats_of(command, entry))
}

fn formats_of(command: Command, entry: &RequestEntry) -> Command {
    command.mut_args(|arg| {
        if arg.get_id() != "format" {
            return arg;
        }
        let formats: Vec<Format> = entry.formats().filter(|format| *format != Format::Section).collect();
        let names: Vec<&str> = formats.iter().map(|format| format.entry().name).collect();
        arg.value_parser(parser(formats)).value_name(names.join("|"))
    })
}

/// Writes the workbook of an answer if it is what the command writes; whether it has one.
pub(super) fn write<T: Answer>(output: &OutputArgs, catalog: &Catalog, answer: &T) -> Result<bool, CliError> {
    let Some((scenario, notation)) = answer.workbook() else { return Ok(false) };
    output.write_bytes(&workbook(catalog, scenario, notation)?)?;
    Ok(true)
}

/// Writes a text to standard error: standard output may be a workbook.
pub(super) fn note(text: &str) -> Result<(), CliError> {
    Ok(write!(anstream::stderr(), "{}", for_people(text))?)
}
