//! A launch command, word by word, back to settings.

use serde_json::Value;

use super::layer_split::{PlacedExperts, placed_experts};
use super::scope::to_schedulers;
use super::settings::{SettingValue, Settings, Variable};
use super::settings_file::{NamedFiles, entries, file_name};
use crate::spec::launch::{Launch, LaunchOption, OptionPlace};
use crate::spec::near::near;
use crate::spec::option_effect::WordEffect;
use crate::spec::option_table::{
    OptionKind, OptionRow, OptionTable, SpelledOption, Spelling, text as text_of, whole,
};
use crate::spec::setting::{Setting, SettingKind};

/// A word of a command that sets nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Leftover {
    /// Place of the word in the command, from 1.
    pub place: usize,
    /// The number of words of the option, its values included; 0 where it is not a word of the command.
    pub words: usize,
    pub word: String,
    pub why: LeftoverReason,
}

/// The reason that a word of a command sets nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum LeftoverReason {
    /// The runtime has no such option; the nearest that it has.
    Unknown {
        /// The nearest known spelling.
        nearest: Option<String>,
    },
    /// An option of versions before this one.
    Removed { since: String },
    /// Several options begin so.
    Ambiguous { options: Vec<String> },
    /// The runtime refuses the value.
    BadValue { expected: String },
    /// The runtime may take the value of this setting, which is not understood.
    NotUnderstood { setting: Setting, expected: String },
    /// A variable of the shell that nothing sets, in the value of this setting.
    Unset { setting: Setting, variables: Vec<String> },
    /// The option is known and does not change the prediction, for this reason.
    NoEffect { why: String },
    /// The option matters and is not priced.
    NotModelled { why: Option<String> },
    /// The file is not part of the text.
    NoFile,
}

impl LeftoverReason {
    pub fn effect(&self) -> WordEffect {
        match self {
            LeftoverReason::Unknown { .. }
            | LeftoverReason::Removed { .. }
            | LeftoverReason::Ambiguous { .. }
            | LeftoverReason::BadValue { .. } => WordEffect::Refused,
            LeftoverReason::NotUnderstood { .. } | LeftoverReason::Unset { .. } | LeftoverReason::NoFile => {
                WordEffect::NotUnderstood
            }
            LeftoverReason::NoEffect { .. } => WordEffect::WithoutEffect,
            LeftoverReason::NotModelled { .. } => WordEffect::NotModelled,
        }
    }

    pub fn words(&self, runtime: &str) -> String {
        match self {
            LeftoverReason::Unknown { nearest: Some(nearest) } => {
                format!("{runtime} does not know it; the nearest that it knows is {nearest}")
            }
            LeftoverReason::Unknown { nearest: None } => format!("{runtime} does not know it"),
            LeftoverReason::Removed { since } => {
                format!("{runtime} has no such option since {since}; --runtime-version reads an older one")
            }
            LeftoverReason::Ambiguous { options } => {
                format!("{runtime} cannot choose between {}", options.join(", "))
            }
            LeftoverReason::BadValue { expected } => format!("expected {expected}"),
            LeftoverReason::NotUnderstood { setting, expected } => {
                format!("not understood ({}): expected {expected}", setting.words())
            }
            LeftoverReason::Unset { variables, .. } => format!("nothing sets {}", variables.join(", ")),
            LeftoverReason::NoEffect { why } => why.clone(),
            LeftoverReason::NotModelled { why: Some(why) } => why.clone(),
            LeftoverReason::NotModelled { why: None } => "its effect is not known".to_owned(),
            LeftoverReason::NoFile => {
                "its settings are not read: pass the folder with the file, --command DIR".to_owned()
            }
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadCommand {
    pub settings: Settings,
    /// Variables of the shell that are to hold the model: the user has a path of its own.
    pub model_variables: Vec<String>,
    /// The words that set them, in order.
    pub spans: Vec<(Setting, WordSpan)>,
    pub leftovers: Vec<Leftover>,
}

/// Reads the words after the program, the environment variables before it, and the settings file that it names.
pub fn read(
    (launch, table): (&Launch, &OptionTable),
    environment: &[(String, String)],
    words: &[String],
    files: &NamedFiles,
) -> ReadCommand {
    let mut reader = Reader { launch, table, read: ReadCommand::default(), kv_place: None };
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
    /// The option that set the format of the KV cache.
    kv_place: Option<&'a OptionPlace>,
}

impl<'a> Reader<'a> {
    /// Reads an environment variable: a place of its own, or another spelling of an option.
    fn variable(&mut self, name: &str, value: &str) {
        let is = |option: &&LaunchOption| option.place == OptionPlace::Environment(name.to_owned());
        if let Some(option) = self.launch.settings.iter().find(is) {
            if option.setting.is_plan() || !value.contains('$') {
                self.take(WordSpan::NONE, option, value);
            }
            return;
        }
        let row = self.table.options.iter().find(|row| row.env.as_deref() == Some(name));
        match row.filter(|_| !value.contains('$')) {
            Some(row) => self.valued(WordSpan::NONE, name, row, value),
            None => {
                if let Some(Err(matters)) = self.launch.effects.of(name) {
                    let why = Some(matters.words());
                    self.leave(WordSpan::NONE, name, LeftoverReason::NotModelled { why });
                }
            }
        }
    }

    /// Reads the settings file that the words name.
    fn settings_file(&mut self, words: &[String], files: &NamedFiles) {
        let Some(path) = self.read.settings.word(Setting::YamlFile).map(str::to_owned) else { return };
        let at = words.iter().position(|word| word.ends_with(&path)).unwrap_or(0);
        let span = WordSpan { at, words: 1 };
        let Some(text) = files.get(file_name(&path)) else {
            return self.leave(span, &path, LeftoverReason::NoFile);
        };
        let Some(entries) = entries(text, self.table) else {
            return self.leave(span, &path, LeftoverReason::BadValue { expected: "a YAML object".into() });
        };
        let before = (!self.launch.file_overrides).then(|| self.read.settings.clone());
        for (key, value) in entries {
            self.key(&key, &text_of(&value));
        }
        if let Some(before) = before {
            before.iter().for_each(|(setting, value)| self.read.settings.set(*setting, value.clone()));
        }
    }

    /// Reads a key of a settings file: of the runtime's own YAML, or an option without its dashes.
    fn key(&mut self, key: &str, value: &str) {
        let row = self.table.find_key(key);
        let path = row.map_or(key, |row| &row.key);
        let is = |option: &&LaunchOption| option.place == OptionPlace::Yaml(path.to_owned());
        if let Some(option) = self.launch.settings.iter().find(is) {
            return self.take(WordSpan::NONE, option, value);
        }
        let flag = [format!("--{key}"), format!("--{}", key.replace('_', "-"))];
        match (flag.iter().find_map(|flag| self.table.find(flag)), row) {
            (Some((row, off)), _) if row.value.kind == OptionKind::Switch => match value {
                "true" => self.switch(WordSpan::NONE, row, off),
                "false" => self.switch(WordSpan::NONE, row, !off),
                _ => self.leave(
                    WordSpan::NONE,
                    key,
                    LeftoverReason::BadValue { expected: "true or false".into() },
                ),
            },
            (Some((row, _)), _) => self.valued(WordSpan::NONE, key, row, value),
            (None, Some(row)) => match row.value.fault(value) {
                Some(expected) => self.leave(WordSpan::NONE, key, LeftoverReason::BadValue { expected }),
                None => self.without_setting(WordSpan::NONE, key, &row.key),
            },
            (None, None) => {
                let flags = self.table.flags().map(|flag| flag.trim_start_matches('-'));
                let keys = flags.chain(self.table.yaml.iter().map(|row| row.key.as_str()));
                let nearest = near(key, keys).first().map(|key| (*key).to_owned());
                self.leave(WordSpan::NONE, key, LeftoverReason::Unknown { nearest });
            }
        }
    }

    /// Reads the option that begins at `at`; the number of its words.
    fn word(&mut self, at: usize, words: &[String]) -> usize {
        let word = &words[at];
        if word == "--" {
            return 1;
        }
        if !is_flag(word) {
            let positional = self.launch.settings.iter().find(|one| one.place == OptionPlace::Positional);
            let span = WordSpan { at, words: 1 };
            match positional.filter(|one| self.read.settings.get(one.setting).is_none()) {
                Some(option) => self.take(span, option, word),
                None => self.leave(span, word, LeftoverReason::Unknown { nearest: None }),
            }
            return 1;
        }
        let (spelled, inline) = self.table.spelled(word);
        let alone = || {
            let value = words.get(at + 1).is_some_and(|next| !is_flag(next));
            1 + usize::from(inline.is_none() && value)
        };
        match spelled {
            SpelledOption::Option(row, off) => self.option((row, off), inline, at, words),
            SpelledOption::Key(row, path) => {
                let Some(value) = inline.or(words.get(at + 1).map(String::as_str)) else {
                    let expected = "a value".to_owned();
                    self.leave(WordSpan { at, words: 1 }, word, LeftoverReason::BadValue { expected });
                    return 1;
                };
                let span = WordSpan { at, words: if inline.is_some() { 1 } else { 2 } };
                let carried: Vec<&LaunchOption> = self.carried(row).collect();
                let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
                let (key, inner) = match path.split_once('.') {
                    Some((key, inner)) => (key, nested_value(inner, value)),
                    None => (path.as_str(), value),
                };
                self.object_key(span, row, (key, &inner), &carried);
                span.words
            }
            SpelledOption::Ambiguous(options) => {
                let options = options.into_iter().map(str::to_owned).collect();
                let span = WordSpan { at, words: alone() };
                self.leave(span, word, LeftoverReason::Ambiguous { options });
                span.words
            }
            SpelledOption::Unknown => {
                let flag = word.split_once('=').map_or(word.as_str(), |(flag, _)| flag);
                let span = WordSpan { at, words: alone() };
                match self.of_another_version(flag) {
                    Some(why) => self.leave(span, word, why),
                    None => {
                        let nearest = near(flag, self.table.flags()).first().map(|flag| (*flag).to_owned());
                        self.leave(span, word, LeftoverReason::Unknown { nearest });
                    }
                }
                span.words
            }
        }
    }

    /// The reason for an option that another version has.
    fn of_another_version(&self, flag: &str) -> Option<LeftoverReason> {
        let effects = &self.launch.effects;
        if let Some(renamed) = effects.renamed.get(flag) {
            return Some(LeftoverReason::Unknown { nearest: Some(renamed.to.clone()) });
        }
        Some(LeftoverReason::Removed { since: effects.removed.get(flag)?.clone() })
    }

    /// Reads an option with its values; the number of its words.
    fn option(
        &mut self,
        (row, off): (&OptionRow, bool),
        inline: Option<&str>,
        at: usize,
        words: &[String],
    ) -> usize {
        let word = &words[at];
        if row.removed {
            let following = if inline.is_some() { 0 } else { following(row, &words[at + 1..]) };
            let span = WordSpan { at, words: 1 + following };
            self.leave(span, word, LeftoverReason::Removed { since: self.table.version.clone() });
            return span.words;
        }
        if row.value.kind == OptionKind::Switch {
            match inline {
                None => self.switch(WordSpan { at, words: 1 }, row, off),
                Some(_) => {
                    let expected = "no value".to_owned();
                    self.leave(WordSpan { at, words: 1 }, word, LeftoverReason::BadValue { expected });
                }
            }
            return 1;
        }
        let following = following(row, &words[at + 1..]);
        let values: Vec<&str> = match inline {
            Some(value) => vec![value],
            None => words[at + 1..][..following].iter().map(String::as_str).collect(),
        };
        let span = WordSpan { at, words: 1 + if inline.is_some() { 0 } else { following } };
        match values.first() {
            Some(_) if self.is_given_again(row, &words[at + span.words..]) => {
                let why = "a later one of the same option is read in its place".to_owned();
                self.leave(span, word, LeftoverReason::NoEffect { why });
            }
            Some(value) => self.valued(span, word, row, value),
            None if row.value.count == Some(Value::from("?")) => {}
            None => self.leave(span, word, LeftoverReason::BadValue { expected: "a value".into() }),
        }
        span.words
    }

    /// Whether the parser reads the option from later words alone.
    fn is_given_again(&self, row: &OptionRow, later: &[String]) -> bool {
        let spells = |word: &String| matches!(self.table.spelled(word).0, SpelledOption::Option(other, _) if other.flags == row.flags);
        !row.repeats && self.table.spelling.contains(&Spelling::Last) && later.iter().any(spells)
    }

    /// Reads the value of an option.
    fn valued(&mut self, span: WordSpan, word: &str, row: &OptionRow, value: &str) {
        let carried: Vec<&LaunchOption> = self.carried(row).collect();
        let variables = unset(value);
        let names_model = |option: &LaunchOption| option.setting == Setting::Model && value.contains('/');
        if let Some(option) = carried.first().filter(|one| !variables.is_empty() && !names_model(one)) {
            return self.unset(span, word, option.setting, variables);
        }
        let expected = row.value.fault(value).filter(|_| variables.is_empty());
        match (expected, &carried[..]) {
            (Some(expected), _) => self.leave(span, word, LeftoverReason::BadValue { expected }),
            (None, options)
                if row.value.kind == OptionKind::Json
                    && !(options.is_empty() && row.value.keys.is_empty())
                    && !row.value.known.iter().flatten().any(|known| text_of(known) == value) =>
            {
                self.object(span, row, value, options);
            }
            (None, []) => self.without_setting(span, word, &row.flags[0]),
            (None, options) => {
                // Of options with one flag, the first whose form the value has.
                let fits = |one: &&&LaunchOption| parse(one, value).is_some();
                let option = options.iter().find(fits).unwrap_or(&options[0]);
                self.take(span, option, value);
            }
        }
    }

    /// Leaves an option that no setting carries, with its effect.
    fn without_setting(&mut self, span: WordSpan, word: &str, option: &str) {
        let why = match self.launch.effects.of(option) {
            Some(Ok(why)) => LeftoverReason::NoEffect { why: why.to_owned() },
            Some(Err(matters)) => LeftoverReason::NotModelled { why: Some(matters.words()) },
            None => LeftoverReason::NotModelled { why: None },
        };
        self.leave(span, word, why);
    }

    /// Reads the keys of a JSON object.
    fn object(&mut self, span: WordSpan, row: &OptionRow, value: &str, carried: &[&'a LaunchOption]) {
        let Ok(Value::Object(object)) = serde_json::from_str(value) else {
            self.leave(span, value, LeftoverReason::BadValue { expected: "a JSON object".into() });
            return;
        };
        for (key, value) in object {
            self.object_key(span, row, (&key, &value), carried);
        }
    }

    /// Reads one key of a JSON object.
    fn object_key(
        &mut self,
        span: WordSpan,
        row: &OptionRow,
        (key, value): (&str, &Value),
        carried: &[&'a LaunchOption],
    ) {
        let is =
            |one: &&&LaunchOption| matches!(&one.place, OptionPlace::Json { key: known, .. } if known == key);
        match carried.iter().find(is) {
            Some(option) => self.take(span, option, &text_of(value)),
            None if inner_fault(row, key, value).is_some() => {
                let nearest = inner_fault(row, key, value).flatten();
                self.leave(span, key, LeftoverReason::Unknown { nearest });
            }
            None if row.value.keys.is_empty() || row.value.keys.iter().any(|known| known == key) => {
                // Of an option that a setting carries, the other keys only say more of it.
                match carried.is_empty() {
                    true => self.without_setting(span, key, &row.flags[0]),
                    false => self.leave(span, key, LeftoverReason::NotModelled { why: None }),
                }
            }
            None => {
                let nearest =
                    near(key, row.value.keys.iter().map(String::as_str)).first().map(|key| (*key).to_owned());
                self.leave(span, key, LeftoverReason::Unknown { nearest });
            }
        }
    }

    /// The settings that an option with a value carries.
    fn carried(&self, row: &OptionRow) -> impl Iterator<Item = &'a LaunchOption> {
        let flags = self.todays(row);
        self.launch.settings.iter().filter(move |one| {
            matches!(&one.place, OptionPlace::Flag(flag) | OptionPlace::Json { flag, .. } if flags.contains(flag))
        })
    }

    /// The spellings of an option, and that of today where it is one of an older version.
    fn todays(&self, row: &OptionRow) -> Vec<String> {
        let renamed = &self.launch.effects.renamed;
        let today = row.flags.iter().filter_map(|flag| renamed.get(flag)).map(|renamed| renamed.to.clone());
        row.flags.iter().cloned().chain(today).collect()
    }

    fn switch(&mut self, span: WordSpan, row: &OptionRow, off: bool) {
        let flags = self.todays(row);
        let known = |flag: &String| flags.contains(flag) || row.off.contains(flag);
        let option = self.launch.settings.iter().find(|one| match &one.place {
            OptionPlace::Switch(flag) | OptionPlace::OffSwitch(flag) => known(flag),
            _ => false,
        });
        match option {
            Some(option) => {
                let on = matches!(option.place, OptionPlace::Switch(_)) != off;
                self.set(span, option.setting, SettingValue::On(on));
            }
            None => self.without_setting(span, &row.flags[0], &row.flags[0]),
        }
    }

    fn take(&mut self, span: WordSpan, option: &'a LaunchOption, value: &str) {
        let setting = option.setting;
        // A file in a folder of the user's own has the model's name.
        let value = match setting {
            Setting::Model if unset(file_name(value)).is_empty() && !unset(value).is_empty() => {
                file_name(value)
            }
            _ => value,
        };
        let variables = unset(value);
        if !variables.is_empty() {
            return self.unset(span, value, setting, variables);
        }
        if setting == Setting::HostExpertLayers && parse(option, value).is_none() {
            return self.placed_tensors(span, option, value);
        }
        match parse(option, value) {
            Some(parsed) if self.differs(option, &parsed) => {
                let before = self.read.settings.word(setting).unwrap_or_default().to_owned();
                let why = Some(format!("keys and values have different formats: all priced as {before}"));
                self.leave(span, value, LeftoverReason::NotModelled { why });
            }
            Some(value) => {
                if setting == Setting::KvFormat {
                    self.kv_place = Some(&option.place);
                }
                self.set(span, setting, value);
            }
            None => {
                if !setting.is_priced() || setting.is_draft() {
                    let why = Some(format!("{value} is not priced"));
                    return self.leave(span, value, LeftoverReason::NotModelled { why });
                }
                let known: Vec<&str> =
                    option.values.values().chain(option.also.keys()).map(String::as_str).collect();
                let expected = match known.is_empty() {
                    true => setting.kind().words().to_owned(),
                    false => format!("one of {}", known.join(", ")),
                };
                // The last value counts, so an earlier one is none.
                self.read.settings.remove(setting);
                self.leave(span, value, LeftoverReason::NotUnderstood { setting, expected });
            }
        }
    }

    /// Reads patterns of tensors that are placed elsewhere.
    fn placed_tensors(&mut self, span: WordSpan, option: &LaunchOption, value: &str) {
        match placed_experts(value) {
            Some(PlacedExperts::All) => self.set(span, Setting::HostExperts, SettingValue::On(true)),
            Some(PlacedExperts::Layers(layers)) => {
                let listed: Vec<String> = layers.iter().map(u64::to_string).collect();
                self.set(span, option.setting, SettingValue::Word(listed.join("|")));
            }
            Some(PlacedExperts::Others) => {
                let why =
                    Some("tensors other than experts change their place, which is not priced".to_owned());
                self.leave(span, value, LeftoverReason::NotModelled { why });
            }
            None => {
                let expected = "patterns that place the experts of whole layers in host memory".to_owned();
                self.leave(span, value, LeftoverReason::NotUnderstood { setting: option.setting, expected });
            }
        }
    }

    /// Whether the cache already has another format by another option: a runtime may have one for keys and one for values.
    fn differs(&self, option: &LaunchOption, value: &SettingValue) -> bool {
        let other = self.kv_place.is_some_and(|place| *place != option.place);
        option.setting == Setting::KvFormat
            && other
            && self.read.settings.get(Setting::KvFormat) != Some(value)
    }

    /// Leaves a value with variables that nothing sets, where the price rests on it.
    fn unset(&mut self, span: WordSpan, word: &str, setting: Setting, variables: Vec<String>) {
        if setting == Setting::Model {
            // The user has a path of its own, and names the model.
            self.read.settings.set(setting, SettingValue::Variable(Variable::Model));
            self.read.model_variables.extend(variables);
            return;
        }
        if setting.is_priced() {
            self.leave(span, word, LeftoverReason::Unset { setting, variables });
        }
    }

    fn set(&mut self, span: WordSpan, setting: Setting, value: SettingValue) {
        self.read.settings.set(setting, value);
        if span.words > 0 {
            self.read.spans.push((setting, span));
        }
    }

    fn leave(&mut self, span: WordSpan, word: &str, why: LeftoverReason) {
        let (place, word) = (span.at + 1, word.to_owned());
        self.read.leftovers.push(Leftover { place, words: span.words, word, why });
    }
}

/// The words of an option in a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordSpan {
    /// Index of the first.
    pub at: usize,
    /// Their number.
    pub words: usize,
}

impl WordSpan {
    /// No word of the command: a variable of the environment, or a key of a file.
    const NONE: WordSpan = WordSpan { at: 0, words: 0 };
}

/// Whether a parser takes the word for an option: a negative number is a value, and so is a word with blanks.
fn is_flag(word: &str) -> bool {
    let flag = word.split_once('=').map_or(word, |(flag, _)| flag);
    word.starts_with('-') && word.len() > 1 && word.parse::<f64>().is_err() && !flag.contains(' ')
}

/// The variables of the shell in a value that nothing has set.
fn unset(value: &str) -> Vec<String> {
    let named = |part: &str| {
        let inside = part.strip_prefix(['{', '(']).unwrap_or(part);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name: String = inside.chars().take_while(|c| plain(*c)).collect();
        if name.is_empty() { "a value of the shell".to_owned() } else { name }
    };
    value.split('$').skip(1).filter(|part| !part.is_empty()).map(named).collect()
}

/// Whether an inner object has a key that the runtime refuses, with the nearest that it knows: the table has the keys of
/// inner objects with dots.
fn inner_fault(row: &OptionRow, key: &str, value: &Value) -> Option<Option<String>> {
    let inside = format!("{key}.");
    let known: Vec<&str> = row.value.keys.iter().filter_map(|known| known.strip_prefix(&inside)).collect();
    let object = value.as_object().filter(|_| !known.is_empty())?;
    let unknown = object.keys().find(|key| !known.contains(&key.as_str()))?;
    Some(near(unknown, known.iter().copied()).first().map(|nearest| format!("{inside}{nearest}")))
}

/// A value below a dotted path.
fn nested_value(path: &str, value: Value) -> Value {
    path.rsplit('.').fold(value, |value, key| Value::Object([(key.to_owned(), value)].into_iter().collect()))
}

/// The number of words after a flag that are its values.
fn following(row: &OptionRow, words: &[String]) -> usize {
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
        SettingKind::Shares => {
            let shares: Option<Vec<f64>> =
                value.split([',', '/']).map(|one| one.trim().parse().ok()).collect();
            shares
                .filter(|all| all.iter().all(|share| share.is_finite() && *share >= 0.0))
                .map(SettingValue::Shares)
        }
        SettingKind::Word if option.values.is_empty() && option.also.is_empty() => {
            Some(SettingValue::Word(value.to_owned()))
        }
        SettingKind::Word => {
            let id = option.values.iter().find(|(_, word)| *word == value).map(|(id, _)| id);
            id.or_else(|| option.also.get(value)).map(|id| SettingValue::Word(id.clone()))
        }
    }
}
