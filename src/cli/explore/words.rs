//! The words of a command line that is explored: flags are set and removed in them, and its answer is read as rows.

use std::ffi::OsString;

use super::rows::AnswerRows;
use crate::cli::terminal::without_output;
use crate::cli::{clap_error, command, parsed, with_defaults};
use crate::report::format::Format;
use crate::request::{RequestControl, entry};
use crate::spec::error::Error;
use crate::spec::writer::shell_word;
use crate::store::catalog::Catalog;

const PROGRAM: &str = env!("CARGO_PKG_NAME");

/// The words after the name of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExploredWords(Vec<String>);

/// A flag as it is typed: `-m`, and whether a value follows.
struct FlagForm {
    long: String,
    short: Option<String>,
    takes_value: bool,
}

impl ExploredWords {
    /// Words without those that say how an answer is written.
    pub(super) fn of(words: Vec<String>) -> ExploredWords {
        ExploredWords(without_output(words))
    }

    /// The command, as a shell reads it.
    pub(super) fn command(&self) -> String {
        let words = self.0.iter().map(|word| shell_word(word));
        std::iter::once(PROGRAM.to_owned()).chain(words).collect::<Vec<_>>().join(" ")
    }

    fn line(&self) -> Vec<OsString> {
        std::iter::once(PROGRAM).chain(self.0.iter().map(String::as_str)).map(OsString::from).collect()
    }

    fn form(&self, long: &str) -> FlagForm {
        let command = command();
        let sub = self.0.first().and_then(|name| command.find_subcommand(name)).unwrap_or(&command);
        let global = command.get_arguments().filter(|arg| arg.is_global_set());
        let arg = sub.get_arguments().chain(global).find(|arg| arg.get_long() == Some(long));
        FlagForm {
            long: format!("--{long}"),
            short: arg.and_then(clap::Arg::get_short).map(|letter| format!("-{letter}")),
            takes_value: arg.is_some_and(|arg| arg.get_action().takes_values()),
        }
    }

    fn without(&self, long: &str) -> ExploredWords {
        let FlagForm { long, short, takes_value } = self.form(long);
        let mut kept = vec![];
        let mut words = self.0.iter();
        while let Some(word) = words.next() {
            let is_joined = takes_value && word.strip_prefix(&long).is_some_and(|rest| rest.starts_with('='));
            let is_short = short.as_ref().is_some_and(|short| match takes_value {
                true => word.starts_with(short) && !word.starts_with("--"),
                false => word == short,
            });
            if *word == long || short.as_ref() == Some(word) {
                let _value = if takes_value { words.next() } else { None };
            } else if !is_joined && !is_short {
                kept.push(word.clone());
            }
        }
        ExploredWords(kept)
    }

    /// The words with a flag that is typed as `users 4`, `--users 4` or `users=4`; without a value the flag is removed, or
    /// set where it is a switch.
    ///
    /// # Errors
    /// The flag is none of the command, or its value is faulty.
    pub(super) fn changed(&self, text: &str) -> Result<ExploredWords, Error> {
        let text = text.trim().trim_start_matches('-');
        let (flag, value) = text.split_once([' ', '=']).unwrap_or((text, ""));
        if flag.is_empty() {
            return Err(Error::new("flag", "nothing", "a flag and its value: users 4", "type one"));
        }
        let mut next = self.without(flag);
        match value.trim() {
            "" if next != *self => {}
            "" => next.0.push(format!("--{flag}")),
            // A value may begin like a flag.
            value if value.starts_with('-') => next.0.push(format!("--{flag}={value}")),
            value => next.0.extend([format!("--{flag}"), value.to_owned()]),
        }
        parsed(&next.line()).map_err(|fault| clap_error::of_clap(&fault))?;
        Ok(next)
    }

    /// The rows of the answer.
    ///
    /// # Errors
    /// The command answers no question, or a faulty one.
    pub(super) fn answered(
        &self,
        catalog: &Catalog,
        control: &RequestControl<'_>,
    ) -> Result<AnswerRows, Error> {
        let mut cli = parsed(&self.line()).map_err(|fault| clap_error::of_clap(&fault))?;
        with_defaults(&mut cli)?;
        let (name, question) = cli.request(catalog)?;
        let entry = entry(name)?;
        let answer = (entry.answer)(catalog, &question, control)?;
        let csv = entry.formatted(catalog, &answer, Format::Csv)?.unwrap_or_default();
        AnswerRows::of_csv(&csv)
    }

    /// The command that answers one row: the deployment of a plan, a model on the hardware, or the hardware for a model.
    pub(super) fn of_row(&self, row: &[(&str, &str)]) -> Option<String> {
        let of =
            |name: &str| row.iter().find(|(column, _)| *column == name).map(|(_, text)| (*text).to_owned());
        let is_recommended = self.0.first().is_some_and(|name| name == "recommend");
        let (words, flag, value) = match is_recommended {
            true if self.without("hardware") == *self => (self.clone(), "hardware", of("system")?),
            true => (self.clone(), "model", of("model")?),
            false => (self.as_estimate(), "plan", of("notation")?),
        };
        let mut words = words.without(flag);
        words.0.extend([format!("--{flag}"), value]);
        parsed(&words.line()).is_ok().then(|| words.command())
    }

    /// The same question for `estimate`.
    fn as_estimate(&self) -> ExploredWords {
        let named = self.0.first().is_some_and(|name| name == "optimize");
        let rest = self.0.iter().skip(usize::from(named)).cloned();
        ExploredWords(std::iter::once("estimate".to_owned()).chain(rest).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> ExploredWords {
        ExploredWords::of(text.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn a_flag_is_set_in_the_place_of_its_earlier_value() {
        let of = |line: &str, text: &str| words(line).changed(text).unwrap().command();
        let recommend = "recommend --hardware rtx-4090 --users 2 --interactive --format csv";
        assert_eq!(of(recommend, "users 4"), "mantile-opt recommend --hardware rtx-4090 --users 4");
        assert_eq!(of(recommend, "--users=4"), "mantile-opt recommend --hardware rtx-4090 --users 4");
        assert_eq!(of(recommend, "users"), "mantile-opt recommend --hardware rtx-4090");
        assert_eq!(
            of("recommend --hardware=a -i --users=3", "context 32k"),
            "mantile-opt recommend '--hardware=a' '--users=3' --context 32k"
        );
        assert_eq!(of("-m A -H 8xh100 --isl 9", "model B"), "mantile-opt -H 8xh100 --isl 9 --model B");
        assert_eq!(of("-mA -H8xh100", "model B"), "mantile-opt -H8xh100 --model B");
        assert_eq!(of("optimize -m A", "why"), "mantile-opt optimize -m A --why");
        assert_eq!(of("optimize -m A --why", "why"), "mantile-opt optimize -m A");
    }

    #[test]
    fn a_faulty_change_is_refused_by_its_flag() {
        for (text, key) in [("user 4", "user"), ("users -1", "users"), ("users", "users"), ("", "flag")] {
            let fault = words("recommend --hardware rtx-4090").changed(text).unwrap_err();
            assert_eq!(fault.key, key, "{text}: {fault}");
        }
    }

    #[test]
    fn a_row_has_a_command_of_its_own() {
        let row = [("model", "Org/It's"), ("system", "4xl40s"), ("notation", "1 x tp2 @4")];
        let of = |line: &str| words(line).of_row(&row).unwrap();
        assert_eq!(of("recommend --hardware a"), "mantile-opt recommend --hardware a --model 'Org/It'\\''s'");
        assert_eq!(of("recommend --model a"), "mantile-opt recommend --model a --hardware 4xl40s");
        assert_eq!(of("-m A -H b --isl 9"), "mantile-opt estimate -m A -H b --isl 9 --plan '1 x tp2 @4'");
        assert_eq!(of("optimize -m A -H b"), "mantile-opt estimate -m A -H b --plan '1 x tp2 @4'");
        assert_eq!(words("sweep -m A --vary tp=1,2").of_row(&row[..2]), None);
    }
}
