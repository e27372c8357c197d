//! The screen of an empty command line: the models for this machine, where it has an accelerator that the catalogue knows,
//! else examples of questions.

use std::io::Write;

use clap::Parser;

use super::{Cli, CliError};
use crate::request::UNCONTROLLED;
use crate::request::detect::{DetectRequest, detect};
use crate::store::catalog::Catalog;

/// Words that recommend models for this machine.
const OF_THIS_MACHINE: [&str; 4] = ["mantile-opt", "recommend", "--hardware", "local"];

/// Questions with their commands.
const EXAMPLES: [(&str, &str); 3] = [
    ("the best plan for a model", "mantile-opt --model Llama-3.3-70B --hardware 8xh100"),
    ("the hardware to buy", "mantile-opt recommend --model Qwen3-32B --users 4 --budget 15000usd"),
    (
        "the models for a machine",
        "mantile-opt recommend --hardware 1xrtx-4090 --host ddr5-6000x2 --host-memory 64GB",
    ),
];

/// The command line in place of an empty one; none without an accelerator.
///
/// # Errors
/// The catalogue cannot be read.
pub(super) fn of_this_machine(catalog: &Catalog) -> Result<Option<Cli>, CliError> {
    let machine = detect(catalog, &DetectRequest { stream: false }, &UNCONTROLLED)?;
    let serves = machine.file.is_some() && machine.devices.iter().any(|one| one.device.is_some());
    Ok(if serves { Cli::try_parse_from(OF_THIS_MACHINE).ok() } else { None })
}

/// Writes the examples.
pub(super) fn examples(mut out: impl Write, title: &str) -> Result<(), CliError> {
    writeln!(out, "{title}")?;
    for (question, command) in EXAMPLES {
        writeln!(out, "  {question}:\n    {command}")?;
    }
    writeln!(out, "  all commands: mantile-opt --help")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_and_the_command_of_this_machine_are_command_lines() {
        for command in
            EXAMPLES.map(|(_, command)| command.to_owned()).into_iter().chain([OF_THIS_MACHINE.join(" ")])
        {
            assert!(Cli::try_parse_from(command.split(' ')).is_ok(), "{command}");
        }
    }
}
