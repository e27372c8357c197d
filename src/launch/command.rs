//! A command from settings, by the options of a runtime.

use super::settings::{SettingValue, Settings};
use crate::spec::launch::{Launch, LaunchOption, OptionPlace};
use crate::spec::option_table::{OptionTable, text};

/// One option as written, with the reason for it.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenOption {
    /// Its words: a flag and its value, a switch, or a positional word.
    pub words: Vec<String>,
    /// The reason.
    pub why: String,
}

/// A launch command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaunchCommand {
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// The program.
    pub program: Vec<String>,
    /// The options.
    pub options: Vec<WrittenOption>,
    /// Keys of the runtime's own YAML file, as dotted paths, with their values.
    pub yaml: Vec<(String, String)>,
    /// Settings for which the runtime has no option, as written by the plan.
    pub missing: Vec<String>,
}

impl LaunchCommand {
    /// All words of the command, without the environment.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let options = self.options.iter().flat_map(|option| &option.words);
        self.program.iter().chain(options).map(String::as_str)
    }
}

/// The value of `option` in the runtime's words; `None` where it has none.
fn value(option: &LaunchOption, value: &SettingValue) -> Option<String> {
    let plain = value.to_string();
    match value {
        SettingValue::Word(_) if !option.values.is_empty() => option.values.get(&plain).cloned(),
        _ => Some(plain),
    }
}

/// The runtime's own value of the option in the table, as a word.
fn usual(table: &OptionTable, place: &OptionPlace) -> Option<String> {
    let value = match place {
        OptionPlace::Flag(flag) => &table.find(flag)?.0.value,
        OptionPlace::Yaml(key) => &table.yaml.iter().find(|row| row.key == *key)?.value,
        OptionPlace::Positional
        | OptionPlace::Switch(_)
        | OptionPlace::OffSwitch(_)
        | OptionPlace::Environment(_) => return None,
    };
    value.default.as_ref().map(text)
}

/// The command of a worker with `settings`. Options that the runtime sets so by itself are left out.
pub fn command(launch: &Launch, table: &OptionTable, settings: &Settings) -> LaunchCommand {
    let mut command = LaunchCommand { program: table.program.clone(), ..LaunchCommand::default() };
    for option in &launch.settings {
        let Some(setting) = settings.get(option.setting) else { continue };
        let Some(word) = value(option, setting) else {
            command.missing.push(format!("{:?} {setting}", option.setting));
            continue;
        };
        let on = *setting == SettingValue::On(true);
        let usual = usual(table, &option.place).as_ref() == Some(&word);
        let words = match &option.place {
            OptionPlace::Positional => vec![word],
            OptionPlace::Flag(_) | OptionPlace::Environment(_) | OptionPlace::Yaml(_) if usual => continue,
            OptionPlace::Flag(flag) => vec![flag.clone(), word],
            OptionPlace::Switch(flag) if on => vec![flag.clone()],
            OptionPlace::OffSwitch(flag) if *setting == SettingValue::On(false) => vec![flag.clone()],
            OptionPlace::Switch(_) | OptionPlace::OffSwitch(_) => continue,
            OptionPlace::Environment(name) => {
                command.environment.push((name.clone(), word));
                continue;
            }
            OptionPlace::Yaml(path) => {
                command.yaml.push((path.clone(), word));
                continue;
            }
        };
        command.options.push(WrittenOption { words, why: option.why.clone() });
    }
    command
}
