//! A faulty command line as an error with key, found, expected and fix.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::spec::error::Error;

/// The error of clap in the form of all other errors.
pub fn of_clap(fault: &clap::Error) -> Error {
    let context = |kind: ContextKind| fault.get(kind).map(spell).filter(|text| !text.is_empty());
    // `--isl <N>` → `isl`
    let flag = context(ContextKind::InvalidArg).or_else(|| context(ContextKind::InvalidSubcommand));
    let flag = flag.unwrap_or_default();
    let key = flag.split([' ', '=', ',']).next().unwrap_or_default().trim_start_matches('-').to_owned();
    let typed = context(ContextKind::InvalidValue).map(|value| format!("`{value}`"));
    let valid = context(ContextKind::ValidValue).or_else(|| context(ContextKind::ValidSubcommand));
    let (found, expected) = match fault.kind() {
        ErrorKind::UnknownArgument => {
            (format!("`{flag}`, which is unknown"), "a flag of this command".into())
        }
        ErrorKind::InvalidSubcommand => (format!("`{flag}`, which is unknown"), "a command".into()),
        ErrorKind::MissingRequiredArgument => ("nothing".into(), flag.clone()),
        ErrorKind::ArgumentConflict => {
            let other = context(ContextKind::PriorArg).unwrap_or_else(|| "another flag".into());
            (format!("both `{flag}` and `{other}`"), "one of them".into())
        }
        _ => {
            let why = fault.source().map(ToString::to_string).unwrap_or_else(|| first_line(fault));
            let why = why.strip_prefix("expected ").map(str::to_owned).unwrap_or(why);
            (
                typed.unwrap_or_else(|| "no valid value".into()),
                valid.map_or(why, |valid| format!("one of {valid}")),
            )
        }
    };
    let near = context(ContextKind::SuggestedArg)
        .or_else(|| context(ContextKind::SuggestedValue))
        .or_else(|| context(ContextKind::SuggestedSubcommand));
    let misplaced =
        fault.kind() == ErrorKind::ArgumentConflict && fault.get(ContextKind::InvalidSubcommand).is_some();
    let general = match misplaced {
        true => "write the flags of a command after its name",
        false => "`mantile-opt help` lists the commands, `--help` after a command its flags",
    };
    let fix = near.map_or_else(|| general.to_owned(), |near| format!("did you mean `{near}`?"));
    Error::new(key, found, expected, fix)
}

/// Clap's own message, without its label and hints.
fn first_line(fault: &clap::Error) -> String {
    let text = fault.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn spell(value: &ContextValue) -> String {
    match value {
        ContextValue::None => String::new(),
        ContextValue::Strings(all) => all.join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    fn fault(line: &str) -> Error {
        of_clap(&command().try_get_matches_from(format!("mantile-opt {line}").split(' ')).unwrap_err())
    }

    #[test]
    fn a_faulty_command_line_names_the_flag_and_a_fix() {
        for (line, key, found, expected) in [
            ("--isl many", "isl", "`many`", "a whole number"),
            ("--offload perhaps", "offload", "`perhaps`", "one of auto"),
            ("--hardwear h100", "hardwear", "--hardwear", "a flag"),
            ("--json --format csv", "json", "both", "one of them"),
            ("inspect", "<MODEL>", "nothing", "<MODEL>"),
        ] {
            let fault = fault(line);
            assert!(fault.found.contains(found) && fault.expected.contains(expected), "{line}: {fault}");
            assert_eq!(fault.key, key, "{line}: {fault}");
            assert!(!fault.fix.is_empty(), "{line}");
        }
        assert_eq!(fault("--hardwear h100").fix, "did you mean `--hardware`?");
    }
}
