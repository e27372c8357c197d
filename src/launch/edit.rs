//! Changes of a command's words: options that the runtime refuses repaired, and settings replaced.

use super::back::{KnownLaunch, ReadLaunch, ReadProcess};
use super::read::{Leftover, LeftoverReason};
use super::settings::SettingValue;
use super::shell::Process;
use crate::spec::launch::{LaunchOption, OptionPlace};
use crate::spec::option_effect::WordEffect;
use crate::spec::setting::Setting;
use crate::spec::writer::shell_word;

/// The processes of a launch with every refused option repaired: replaced by the nearest that the runtime has, or left
/// out. `None` where the refused words are not words of a command.
pub fn repaired(launch: &ReadLaunch) -> Option<Vec<Process>> {
    launch.processes.iter().map(|one| repaired_process(launch.known, one)).collect()
}

fn repaired_process((launch, _): &KnownLaunch, one: &ReadProcess) -> Option<Process> {
    let mut process = one.process.clone();
    let refused = one.read.leftovers.iter().filter(|left| left.why.effect() == WordEffect::Refused);
    let mut refused: Vec<&Leftover> = refused.collect();
    refused.sort_by_key(|left| std::cmp::Reverse(left.place));
    refused.dedup_by_key(|left| left.place);
    for left in refused {
        let first = one.arguments? + left.place - 1;
        if left.words == 0 {
            return None;
        }
        let carried = |flag: &&String| {
            launch.settings.iter().any(|option| option.place == OptionPlace::Flag((*flag).clone()))
        };
        let instead = match &left.why {
            LeftoverReason::Unknown { nearest } => nearest.clone(),
            LeftoverReason::Ambiguous { options } => {
                options.iter().find(carried).or(options.first()).cloned()
            }
            _ => None,
        };
        let is_key = !process.words[first].starts_with('-') || process.words[first].contains('.');
        match instead.filter(|_| !is_key) {
            Some(flag) => {
                let value = process.words[first].split_once('=').map(|(_, value)| format!("={value}"));
                process.words[first] = flag + &value.unwrap_or_default();
            }
            None => {
                process.words.drain(first..first + left.words);
            }
        }
    }
    Some(process)
}

/// The words of a process with a setting of another value: in its place, or after the others. `None` where the runtime has
/// no flag for it.
pub fn with_setting(
    (launch, table): &KnownLaunch,
    one: &ReadProcess,
    setting: Setting,
    value: &SettingValue,
) -> Option<Process> {
    let mut process = one.process.clone();
    let written = |option: &&LaunchOption| option.setting == setting && !option.read_only;
    let option = launch.settings.iter().find(written)?;
    let own = |flag: &String| table.find(flag).map_or(flag.clone(), |(row, _)| row.flags[0].clone());
    let words: Vec<String> = match (&option.place, value) {
        (OptionPlace::Flag(flag), SettingValue::Word(word)) if !option.values.is_empty() => {
            vec![own(flag), option.values.get(word)?.clone()]
        }
        (OptionPlace::Flag(flag), value) => vec![own(flag), value.to_string()],
        (OptionPlace::Switch(flag), SettingValue::On(true)) => vec![own(flag)],
        _ => return None,
    };
    match one.read.spans.iter().rev().find(|(known, _)| *known == setting) {
        Some((_, span)) => {
            let first = one.arguments? + span.at;
            process.words.splice(first..first + span.words, words);
        }
        None => process.words.extend(words),
    }
    Some(process)
}

/// The command of a process in one line.
pub fn line(process: &Process) -> String {
    process.words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}
