//! Settings as options, and options as settings.

use std::collections::BTreeSet;

use mantile::launch::command::{Word, command};
use mantile::launch::context::nested;
use mantile::launch::read::{LeftoverReason, read};
use mantile::launch::settings::{SettingValue, Settings};
use mantile::launch::settings_file::NamedFiles;
use mantile::spec::launch::{LaunchOption, OptionPlace};
use mantile::spec::setting::{Setting, SettingKind};
use proptest::prelude::*;

use super::launches;

fn text(word: &Word) -> String {
    match word {
        Word::Text(text) => text.clone(),
        Word::Variable(variable, _) => variable.name().to_owned(),
    }
}

/// A value that the option takes, from random numbers.
fn value(option: &LaunchOption, (number, share, word): (u64, f64, &str)) -> SettingValue {
    match option.setting.kind() {
        SettingKind::Count => SettingValue::Count(number),
        SettingKind::Real if option.setting == Setting::OffloadedGib => SettingValue::Real(number as f64),
        SettingKind::Real => SettingValue::Real((share * 1e4).round() / 1e4),
        SettingKind::Switch => SettingValue::On(number.is_multiple_of(2)),
        SettingKind::Counts => SettingValue::Counts(vec![number, number + 1]),
        SettingKind::Shares => SettingValue::Shares(vec![number as f64, share]),
        SettingKind::Word if option.setting == Setting::GpuLayers => SettingValue::Word("all".to_owned()),
        SettingKind::Word if option.values.is_empty() => SettingValue::Word(word.to_owned()),
        SettingKind::Word => {
            let known: Vec<&String> = option.values.keys().collect();
            SettingValue::Word(known[number as usize % known.len()].clone())
        }
    }
}

/// Every option of every launch is in the table of its runtime, and takes what is written into it.
#[test]
fn every_option_of_a_launch_is_known_to_its_runtime() {
    for (launch, table) in launches() {
        for option in &launch.settings {
            let known = match &option.place {
                OptionPlace::Flag(flag) | OptionPlace::Switch(flag) | OptionPlace::OffSwitch(flag) => {
                    table.find(flag).is_some()
                }
                OptionPlace::Json { flag, key } => {
                    table.find(flag).is_some_and(|(row, _)| row.value.keys.contains(key))
                }
                OptionPlace::Yaml(key) => table.yaml.iter().any(|row| row.key == *key),
                OptionPlace::Positional => !table.positional.is_empty(),
                OptionPlace::Environment(_) => true,
                OptionPlace::Request(_) => launch.request.is_some(),
                OptionPlace::Hosts => launch.starter.is_some(),
                OptionPlace::Ranks => launch.ranks.is_some(),
            };
            assert!(known, "{}: {option:?}", launch.id);
            for word in option.values.values() {
                let fault = match &option.place {
                    OptionPlace::Flag(flag) => table.find(flag).unwrap().0.value.fault(word),
                    OptionPlace::Yaml(key) => {
                        table.yaml.iter().find(|row| row.key == *key).unwrap().value.fault(word)
                    }
                    _ => None,
                };
                assert_eq!(fault, None, "{}: {word} of {option:?}", launch.id);
            }
        }
    }
}

/// Every option of every launch sets something, has no effect, or matters and is not modelled: exactly one of them.
#[test]
fn every_option_has_one_effect() {
    let mut seen = 0;
    for (launch, table) in launches() {
        let first = |flag: &str| table.find(flag).map_or(flag.to_owned(), |(row, _)| row.flags[0].clone());
        let carried = launch.settings.iter().filter_map(|option| match &option.place {
            OptionPlace::Flag(flag)
            | OptionPlace::Switch(flag)
            | OptionPlace::OffSwitch(flag)
            | OptionPlace::Json { flag, .. } => Some(first(flag)),
            OptionPlace::Yaml(key) => Some(key.clone()),
            _ => None,
        });
        let carried: BTreeSet<String> = carried.collect();
        let keys = table.yaml.iter().map(|row| row.key.clone());
        for option in table.options.iter().map(|row| row.flags[0].clone()).chain(keys) {
            let effects = &launch.effects;
            let classes = [
                carried.contains(&option),
                effects.none.contains_key(&option),
                effects.not_modelled.contains_key(&option),
            ];
            let count = classes.iter().filter(|is| **is).count();
            assert_eq!(count, 1, "{}: {option}: {classes:?}", launch.id);
            seen += 1;
        }
    }
    assert!(seen > 1_500, "{seen}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is written is read back, for every runtime and any set of its settings.
    #[test]
    fn what_is_written_is_read_back(
        picks in prop::collection::vec(any::<bool>(), 64),
        number in 2u64..64,
        share in 0.05f64..0.99,
        word in "[a-z][a-z0-9_]{1,8}/[A-Za-z0-9.-]{1,12}",
    ) {
        for (launch, table) in launches() {
            let mut settings = Settings::default();
            for (option, pick) in launch.settings.iter().zip(picks.iter().cycle()) {
                let other = option.setting == Setting::YamlFile
                    || matches!(option.place, OptionPlace::Request(_) | OptionPlace::Hosts | OptionPlace::Ranks);
                if *pick && !other && !option.read_only && settings.get(option.setting).is_none() {
                    settings.set(option.setting, value(option, (number, share, &word)));
                }
            }
            let plain = command(&launch, &table, &settings);
            if !plain.yaml.is_empty() {
                settings.set(Setting::YamlFile, SettingValue::Word("server.yaml".to_owned()));
            }
            let written = command(&launch, &table, &settings);
            let yaml = serde_saphyr::to_string(&nested(&written.yaml)).unwrap();
            let files = NamedFiles::from([("server.yaml".to_owned(), yaml)]);
            let words: Vec<String> = written.options.iter().flat_map(|option| option.words.iter().map(text)).collect();
            let environment: Vec<(String, String)> =
                written.environment.iter().map(|one| (one.name.clone(), text(&one.word))).collect();
            let found = read((&launch, &table), &environment, &words, &files);
            prop_assert!(found.leftovers.is_empty(), "{}: {:?} of {:?}", launch.id, found.leftovers, words);
            for (setting, value) in found.settings.iter() {
                // Several ids may have one word.
                let options = launch.settings.iter().filter(|option| option.setting == *setting);
                let alike = |id: &SettingValue| {
                    let SettingValue::Word(id) = id else { return vec![] };
                    options.clone().filter_map(|option| option.values.get(id)).collect::<Vec<_>>()
                };
                let given = settings.get(*setting).unwrap();
                let same = given == value || !alike(given).is_empty() && alike(given) == alike(value);
                prop_assert!(same, "{}: {setting:?} {given} read as {value}", launch.id);
            }
        }
    }

    /// One wrong letter in a flag is named with its place and the nearest flag.
    #[test]
    fn a_wrong_flag_is_named(at in 0usize..400, letter in 3usize..30) {
        for (launch, table) in launches() {
            let flags: Vec<&str> = table.flags().filter(|flag| flag.len() > 8 && flag.starts_with("--")).collect();
            let flag = flags[at % flags.len()];
            let mut wrong: Vec<char> = flag.chars().collect();
            let place = letter % wrong.len();
            if place < 3 || !wrong[place].is_ascii_alphabetic() {
                continue;
            }
            wrong[place] = if wrong[place] == 'x' { 'q' } else { 'x' };
            let wrong: String = wrong.into_iter().collect();
            if table.find(&wrong).is_some() {
                continue;
            }
            let words = ["org/model".to_owned(), wrong.clone()];
            let found = read((&launch, &table), &[], &words[1..], &NamedFiles::new());
            let left = &found.leftovers[0];
            prop_assert_eq!((left.place, &left.word), (1, &wrong));
            let LeftoverReason::Unknown { nearest } = &left.why else { panic!("{left:?}") };
            prop_assert!(nearest.is_some(), "{}: {} for {}", launch.id, wrong, flag);
        }
    }
}

#[test]
fn ports_are_those_of_the_runtimes() {
    let mut checked = 0;
    for (launch, table) in launches() {
        let Some((row, _)) = table.find("--port") else { continue };
        assert_eq!(row.value.default, Some(launch.port.into()), "{}", launch.id);
        checked += 1;
    }
    assert!(checked >= 5, "{checked}");
}
