//! A launch command, word by word, back to settings.

use serde_json::Value;

use super::scope::to_schedulers;
use super::settings::{SettingValue, Settings, Variable};
use super::settings_file::{NamedFiles, entries, file_name};
use crate::spec::launch::{Launch, LaunchOption, OptionPlace};
use crate::spec::option_table::{OptionKind, OptionRow, OptionTable, text as text_of, whole};
use crate::spec::setting::{Setting, SettingKind};
use crate::spec::text::near;

/// An option of a command that has no effect on the price, or that the runtime does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct Leftover {
    /// Place of the word in the command, from 1.
    pub place: usize,
    pub word: String,
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
    BadValue { expected: String },
    /// The option is known and does not change the prediction.
    NoEffect,
    /// The file is not part of the text.
    NoFile,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadCommand {
    pub settings: Settings,
    pub leftovers: Vec<Leftover>,
}

/// Reads the words after the program, the environment variables before it, and the settings file that it names.
pub fn read(
    (launch, table): (&Launch, &OptionTable),
    environment: &[(String, String)],
    words: &[String],
    files: &NamedFiles,
) -> ReadCommand {
    let mut reader = Reader { launch, table, read: ReadCommand::default() };
    for (name, value) in environment {
        reader.variable(name, value);
    }
    let mut at = 0;
    while at < words.len() {
        at += reader.word(at, words);
    }
    reader.settings_file(words, files);
    to_schedulers(launch, &mut reader.read.settings);
    reader.read
}

struct Reader<'a> {
    launch: &'a Launch,
    table: &'a OptionTable,
    read: ReadCommand,
}

impl<'a> Reader<'a> {
    /// Reads an environment variable: a place of its own, or another spelling of an option.
    fn variable(&mut self, name: &str, value: &str) {
        let is = |option: &&LaunchOption| option.place == OptionPlace::Environment(name.to_owned());
        if let Some(option) = self.launch.settings.iter().find(is) {
            if option.setting.is_plan() || !value.contains('$') {
                self.take(0, option, value);
            }
            return;
        }
        let row = self.table.options.iter().find(|row| row.env.as_deref() == Some(name));
        if let Some(row) = row.filter(|_| !value.contains('$')) {
            self.valued(0, name, row, value);
        }
    }

    /// Reads the settings file that the words name.
    fn settings_file(&mut self, words: &[String], files: &NamedFiles) {
        let Some(path) = self.read.settings.word(Setting::YamlFile).map(str::to_owned) else { return };
        let at = words.iter().position(|word| word.ends_with(&path)).unwrap_or(0);
        let Some(text) = files.get(file_name(&path)) else {
            return self.leave(at, &path, LeftoverReason::NoFile);
        };
        let Some(entries) = entries(text, self.table) else {
            return self.leave(at, &path, LeftoverReason::BadValue { expected: "a YAML object".into() });
        };
        let before = (!self.launch.file_overrides).then(|| self.read.settings.clone());
        for (key, value) in entries {
            self.key(at, &key, &text_of(&value));
        }
        if let Some(before) = before {
            before.iter().for_each(|(setting, value)| self.read.settings.set(*setting, value.clone()));
        }
    }

    /// Reads a key of a settings file: of the runtime's own YAML, or an option without its dashes.
    fn key(&mut self, at: usize, key: &str, value: &str) {
        let row = self.table.find_key(key);
        let path = row.map_or(key, |row| &row.key);
        let is = |option: &&LaunchOption| option.place == OptionPlace::Yaml(path.to_owned());
        if let Some(option) = self.launch.settings.iter().find(is) {
            return self.take(at, option, value);
        }
        let flag = [format!("--{key}"), format!("--{}", key.replace('_', "-"))];
        match (flag.iter().find_map(|flag| self.table.find(flag)), row) {
            (Some((row, off)), _) if row.value.kind == OptionKind::Switch => match value {
                "true" => self.switch(at, row, off),
                "false" => self.switch(at, row, !off),
                _ => self.leave(at, key, LeftoverReason::BadValue { expected: "true or false".into() }),
            },
            (Some((row, _)), _) => self.valued(at, key, row, value),
            (None, Some(row)) => match row.value.fault(value) {
                Some(expected) => self.leave(at, key, LeftoverReason::BadValue { expected }),
                None => self.leave(at, key, LeftoverReason::NoEffect),
            },
            (None, None) => {
                let flags = self.table.flags().map(|flag| flag.trim_start_matches('-'));
                let keys = flags.chain(self.table.yaml.iter().map(|row| row.key.as_str()));
                let nearest = near(key, keys).first().map(|key| (*key).to_owned());
                self.leave(at, key, LeftoverReason::Unknown { nearest });
            }
        }
    }

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
        let following = following(row, &words[at + 1..]);
        let values = match inline {
            Some(value) => vec![value],
            None => words[at + 1..][..following].iter().map(String::as_str).collect(),
        };
        let used = 1 + if inline.is_some() { 0 } else { following };
        let Some(value) = values.first().copied() else {
            if row.value.count != Some(Value::from("?")) {
                self.leave(at, word, LeftoverReason::BadValue { expected: "a value".into() });
            }
            return used;
        };
        self.valued(at, word, row, value);
        used
    }

    /// Reads the value of an option.
    fn valued(&mut self, at: usize, word: &str, row: &OptionRow, value: &str) {
        let carried: Vec<&LaunchOption> = self.carried(row).collect();
        // A variable that the text does not set matters only where it changes the plan.
        if value.contains('$') && carried.iter().all(|option| !option.setting.is_plan()) {
            if carried.iter().any(|option| option.setting == Setting::Model) {
                self.read.settings.set(Setting::Model, SettingValue::Variable(Variable::Model));
            }
            return;
        }
        let expected = row.value.fault(value);
        match (expected, &carried[..]) {
            (Some(expected), _) => self.leave(at, word, LeftoverReason::BadValue { expected }),
            (None, []) => self.leave(at, word, LeftoverReason::NoEffect),
            (None, _) if row.value.kind == OptionKind::Json => self.object(at, row, value, &carried),
            (None, options) => {
                // Of options with one flag, the first whose form the value has.
                let fits = |one: &&&LaunchOption| parse(one, value).is_some();
                let option = options.iter().find(fits).unwrap_or(&options[0]);
                self.take(at, option, value);
            }
        }
    }

    /// Reads the keys of a JSON object.
    fn object(&mut self, at: usize, row: &OptionRow, value: &str, carried: &[&'a LaunchOption]) {
        let Ok(Value::Object(object)) = serde_json::from_str(value) else {
            self.leave(at, value, LeftoverReason::BadValue { expected: "a JSON object".into() });
            return;
        };
        for (key, value) in object {
            let is = |one: &&&LaunchOption| matches!(&one.place, OptionPlace::Json { key: known, .. } if *known == key);
            match carried.iter().find(is) {
                Some(option) => self.take(at, option, &text_of(&value)),
                None if row.value.keys.is_empty() || row.value.keys.contains(&key) => {
                    self.leave(at, &key, LeftoverReason::NoEffect);
                }
                None => {
                    let nearest = near(&key, row.value.keys.iter().map(String::as_str))
                        .first()
                        .map(|key| (*key).to_owned());
                    self.leave(at, &key, LeftoverReason::Unknown { nearest });
                }
            }
        }
    }

    /// The settings that an option with a value carries.
    fn carried(&self, row: &OptionRow) -> impl Iterator<Item = &'a LaunchOption> {
        let flags = row.flags.clone();
        self.launch.settings.iter().filter(move |one| {
            matches!(&one.place, OptionPlace::Flag(flag) | OptionPlace::Json { flag, .. } if flags.contains(flag))
        })
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

/// The number of words after a flag that are its values.
fn following(row: &OptionRow, words: &[String]) -> usize {
    // A negative number is a value, another word with a dash is the next flag.
    let is_flag = |word: &&String| word.starts_with('-') && word.parse::<f64>().is_err();
    let free = words.iter().take_while(|word| !is_flag(word)).count();
    match row.value.count.as_ref() {
        Some(Value::Number(count)) => free.min(count.as_u64().unwrap_or(1) as usize),
        Some(Value::String(any)) if any == "*" => free,
        None if row.value.kind == OptionKind::List => free,
        Some(_) | None => free.min(1),
    }
}

/// The value of a setting, from the runtime's words; `None` where it is none.
fn parse(option: &LaunchOption, value: &str) -> Option<SettingValue> {
    if option.open.iter().any(|open| open == value) {
        return Some(SettingValue::Word(value.to_owned()));
    }
    let (before, after) = option.around();
    let value = value.strip_prefix(before)?.strip_suffix(after)?;
    match option.setting.kind() {
        SettingKind::Count => {
            whole(value, true).filter(|count| *count >= 0.0).map(|count| SettingValue::Count(count as u64))
        }
        SettingKind::Real => value.parse().ok().filter(|real: &f64| real.is_finite()).map(SettingValue::Real),
        SettingKind::Switch => value.parse().ok().map(SettingValue::On),
        SettingKind::Counts => {
            let listed = value.trim_start_matches('[').trim_end_matches(']');
            let counts: Option<Vec<u64>> = listed.split(',').map(|one| one.trim().parse().ok()).collect();
            counts.map(SettingValue::Counts)
        }
        SettingKind::Word if option.values.is_empty() => Some(SettingValue::Word(value.to_owned())),
        SettingKind::Word => {
            let id = option.values.iter().find(|(_, word)| *word == value);
            id.map(|(id, _)| SettingValue::Word(id.clone()))
        }
    }
}
