//! Results as workbooks: `--format xlsx`, or a file that ends in `.xlsx`.

use std::io::{IsTerminal, Write};
use std::path::Path;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};

use super::CliError;
use super::defaults::footer;
use super::output::{FormatFlag, OutputArgs, OutputFormat, for_people};
use super::progress;
use crate::request::workbook::workbook;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::file;

/// Subcommands whose result has a workbook.
const COMMANDS: [&str; 2] = ["optimize", "estimate"];

/// The formats of a subcommand.
fn formats(name: &str) -> Vec<&'static str> {
    let workbook = COMMANDS.contains(&name).then_some("xlsx");
    ["table", "json", "csv", "html", "markdown"].into_iter().chain(workbook).collect()
}

/// The command line with `--format xlsx` only where there is a workbook.
pub(super) fn where_supported(command: clap::Command) -> clap::Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        let formats = formats(&name);
        command.mut_subcommand(name, |sub| {
            sub.mut_args(|arg| {
                let mut values = arg.get_possible_values().into_iter();
                let all = arg.get_id() == "format" && values.any(|value| value.get_name() == "xlsx");
                if !all {
                    return arg;
                }
                let named = PossibleValuesParser::new(formats.clone());
                let read = |name: String| FormatFlag::from_str(&name, false).unwrap_or_default();
                arg.value_parser(ValueParser::new(named.map(read))).value_name(formats.join("|"))
            })
        })
    })
}

/// Whether the result is written as a workbook.
///
/// # Errors
/// The format is that of a text and the file that of a workbook, or the bytes would go to a terminal.
pub(super) fn is_wanted(output: &OutputArgs) -> Result<bool, Error> {
    let text = output.format() != OutputFormat::Table;
    if output.ends_in_xlsx() && text {
        return Err(text_in_workbook(output));
    }
    let wanted = !text && (output.format == FormatFlag::Xlsx || output.ends_in_xlsx());
    if wanted && output.to_stdout() && std::io::stdout().is_terminal() {
        let fix = "add --out FILE.xlsx, or redirect the output to a file";
        return Err(Error::new("format", "xlsx, on a terminal", "a file: a workbook is binary", fix));
    }
    Ok(wanted)
}

/// The error of a text that would be written to a file of a workbook.
pub(super) fn text_in_workbook(output: &OutputArgs) -> Error {
    let path = output.out.as_deref().unwrap_or(Path::new("-"));
    let fix = "choose another ending, or use optimize or estimate without another --format";
    Error::new("out", format!("a text for `{}`", file::shown(path)), "the ending of a text file", fix)
}

/// Writes the workbook of the plan `notation`.
///
/// # Errors
/// The plan cannot run, or the file cannot be written.
pub(super) fn write(
    output: &OutputArgs,
    catalog: &Catalog,
    scenario: &Scenario,
    notation: &str,
) -> Result<(), CliError> {
    let bytes = workbook(catalog, scenario, notation)?;
    if !progress::is_quiet() {
        note(&footer(&output.applied))?;
    }
    Ok(file::write_bytes(output.out.as_deref().unwrap_or(Path::new("-")), &bytes)?)
}

/// Writes a text to standard error: standard output may be a workbook.
///
/// # Errors
/// Standard error is closed.
pub(super) fn note(text: &str) -> Result<(), CliError> {
    Ok(write!(anstream::stderr(), "{}", for_people(text))?)
}
