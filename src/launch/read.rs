//! A launch command, word by word, back to settings.

use super::settings::{SettingValue, Settings};
use crate::spec::launch::{Launch, LaunchOption, OptionPlace, SettingKind};
use crate::spec::option_table::{OptionKind, OptionRow, OptionTable, whole};
use crate::spec::text::near;

/// An option of a command that has no effect on the price, or that the runtime does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct Leftover {
    /// Place of the word in the command, from 1.
    pub place: usize,
    /// The word.
    pub word: String,
    /// The reason.
    pub why: LeftoverReason,
}

/// The reason that a word of a command was not read.
#[derive(Clone, Debug, PartialEq)]
pub enum LeftoverReason {
    /// The runtime has no such option; the nearest that it has.
    Unknown {
        /// The nearest known spelling.
        nearest: Option<String>,
    },
    /// The value is none that the option takes.
    BadValue {
        /// The expected value.
        expected: String,
    },
    /// The option is known and does not change the prediction.
    NoEffect,
}

/// A command as read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadCommand {
    /// Its settings.
    pub settings: Settings,
    /// What was not read.
    pub leftovers: Vec<Leftover>,
}

/// Reads the words after the program, and the environment variables before it.
pub fn read(
    launch: &Launch,
    table: &OptionTable,
    environment: &[(String, String)],
    words: &[String],
) -> ReadCommand {
    let mut reader = Reader { launch, table, read: ReadCommand::default() };
    for (name, value) in environment {
        let is = |option: &&LaunchOption| option.place == OptionPlace::Environment(name.clone());
        if let Some(option) = launch.settings.iter().find(is) {
            reader.take(0, option, value);
        }
    }
    let mut at = 0;
    while at < words.len() {
        at += reader.word(at, words);
    }
    reader.read
}

struct Reader<'a> {
    launch: &'a Launch,
    table: &'a OptionTable,
    read: ReadCommand,
}

impl<'a> Reader<'a> {
    /// Reads the option that begins at `at`; the number of its words.
    fn word(&mut self, at: usize, words: &[String]) -> usize {
        let word = &words[at];
        if !word.starts_with('-') {
            let positional = self.launch.settings.iter().find(|one| one.place == OptionPlace::Positional);
            match positional.filter(|one| self.read.settings.get(one.setting).is_none()) {
                Some(option) => self.take(at, option, word),
                None => self.leave(at, word, LeftoverReason::Unknown { nearest: None }),
            }
            return 1;
        }
        let (flag, inline) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word.as_str(), None),
        };
        let Some((row, off)) = self.table.find(flag) else {
            let nearest = near(flag, self.table.flags()).first().map(|flag| (*flag).to_owned());
            self.leave(at, word, LeftoverReason::Unknown { nearest });
            let value = words.get(at + 1).is_some_and(|next| !next.starts_with('-'));
            return 1 + usize::from(inline.is_none() && value);
        };
        if row.value.kind == OptionKind::Switch {
            self.switch(at, row, off);
            return 1;
        }
        let value = inline.or_else(|| words.get(at + 1).map(String::as_str));
        let Some(value) = value else {
            self.leave(at, word, LeftoverReason::BadValue { expected: "a value".into() });
            return 1;
        };
        match (row.value.fault(value), self.option(row)) {
            (Some(expected), _) => self.leave(at, word, LeftoverReason::BadValue { expected }),
            (None, Some(option)) => self.take(at, option, value),
            (None, None) => self.leave(at, word, LeftoverReason::NoEffect),
        }
        1 + usize::from(inline.is_none())
    }

    /// The setting that an option with a value carries.
    fn option(&self, row: &OptionRow) -> Option<&'a LaunchOption> {
        let carries =
            |one: &&LaunchOption| matches!(&one.place, OptionPlace::Flag(flag) if row.flags.contains(flag));
        self.launch.settings.iter().find(carries)
    }

    fn switch(&mut self, at: usize, row: &OptionRow, off: bool) {
        let known = |flag: &String| row.flags.contains(flag) || row.off.contains(flag);
        let option = self.launch.settings.iter().find(|one| match &one.place {
            OptionPlace::Switch(flag) | OptionPlace::OffSwitch(flag) => known(flag),
            _ => false,
        });
        match option {
            Some(option) => {
                let on = matches!(option.place, OptionPlace::Switch(_)) != off;
                self.read.settings.set(option.setting, SettingValue::On(on));
            }
            None => self.leave(at, &row.flags[0], LeftoverReason::NoEffect),
        }
    }

    fn take(&mut self, at: usize, option: &LaunchOption, value: &str) {
        match parse(option, value) {
            Some(value) => self.read.settings.set(option.setting, value),
            None => {
                let expected = option.setting.kind().words().to_owned();
                self.leave(at, value, LeftoverReason::BadValue { expected });
            }
        }
    }

    fn leave(&mut self, at: usize, word: &str, why: LeftoverReason) {
        self.read.leftovers.push(Leftover { place: at + 1, word: word.to_owned(), why });
    }
}

/// The value of a setting, from the runtime's words; `None` where it is none.
fn parse(option: &LaunchOption, value: &str) -> Option<SettingValue> {
    match option.setting.kind() {
        SettingKind::Count => {
            whole(value, true).filter(|count| *count >= 0.0).map(|count| SettingValue::Count(count as u64))
        }
        SettingKind::Real => value.parse().ok().filter(|real: &f64| real.is_finite()).map(SettingValue::Real),
        SettingKind::Switch => value.parse().ok().map(SettingValue::On),
        SettingKind::Counts => {
            let counts: Option<Vec<u64>> = value.split(',').map(|one| one.trim().parse().ok()).collect();
            counts.map(SettingValue::Counts)
        }
        SettingKind::Word if option.values.is_empty() => Some(SettingValue::Word(value.to_owned())),
        SettingKind::Word => {
            let id = option.values.iter().find(|(_, word)| *word == value);
            id.map(|(id, _)| SettingValue::Word(id.clone()))
        }
    }
}
