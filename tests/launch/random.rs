//! Random command lines, and what the reader makes of each: the runtimes' own parsers compare them in `.ci/launch`.

use std::fs;
use std::io::Write;

use fastrand::Rng;
use mantile::launch::back::KnownLaunch;
use mantile::launch::read::read;
use mantile::launch::settings::SettingValue;
use mantile::launch::settings_file::NamedFiles;
use mantile::spec::launch::{OptionPlace, OptionScope};
use mantile::spec::option_effect::WordEffect;
use mantile::spec::option_table::{OptionKind, OptionRow, Spelling, text};
use serde_json::{Map, Value, json};

use super::launches;
use crate::draw;

/// Command lines of each runtime.
const LINES: u64 = 5_000;
/// The runtimes whose parsers run without devices.
const RUNTIMES: [&str; 3] = ["vllm", "sglang", "trtllm"];

/// Options that the parsers take only with, or without, another one.
const WITH_RULES: [&str; 5] =
    ["--config", "--model", "--grpc-port", "--enable-auto-tool-choice", "--enable-log-outputs"];

/// A value that the row takes, or with small odds one that it may refuse.
fn value(random: &mut Rng, row: &OptionRow) -> String {
    if random.u32(..20) == 0 {
        return random.choice(["x", "1.5", "-3", "8k", "true", "1e400", "0"]).unwrap().to_owned();
    }
    let listed = row.value.choices.iter().chain(&row.value.known).flatten().map(text).collect::<Vec<_>>();
    if let Some(one) = random.choice(&listed) {
        return one.clone();
    }
    match row.value.kind {
        OptionKind::Int => random.u64(1..64).to_string(),
        OptionKind::Float => format!("0.{}", random.u32(1..99)),
        _ => ["a/b", "name", "7"][random.usize(..3)].to_owned(),
    }
}

/// A spelling of the option: an alias, the beginning of one, another dash, or with small odds a misspelt one.
fn spelling(random: &mut Rng, row: &OptionRow, underscore: bool) -> String {
    let all: Vec<&String> = row.flags.iter().chain(&row.off).collect();
    let mut flag = random.choice(all).unwrap().clone();
    match random.u32(..10) {
        0 | 1 if flag.starts_with("--") => flag.truncate(random.usize(4..=flag.len().max(4)).min(flag.len())),
        2 if underscore => flag = format!("--{}", flag.trim_start_matches('-').replace('-', "_")),
        3 if random.u32(..3) == 0 => {
            let at = random.usize(..flag.len());
            flag.insert(at, 'q');
        }
        _ => {}
    }
    flag
}

fn line(random: &mut Rng, (launch, table): &KnownLaunch) -> Vec<String> {
    let mapped: Vec<&OptionRow> = launch
        .settings
        .iter()
        .filter_map(|option| match &option.place {
            OptionPlace::Flag(flag) | OptionPlace::Switch(flag) => table.find(flag).map(|(row, _)| row),
            _ => None,
        })
        .collect();
    // Objects and files have rules of their own, and so have options that need another one.
    let plain = |row: &&OptionRow| {
        let ruled = row.flags.iter().any(|flag| WITH_RULES.contains(&flag.as_str()));
        !row.value.takes_object() && row.value.kind != OptionKind::List && !ruled
    };
    let rest: Vec<&OptionRow> = table.options.iter().filter(plain).collect();
    let mut words = match table.positional.is_empty() {
        true => vec!["--model-path".to_owned(), "org/model".to_owned()],
        false => vec!["org/model".to_owned()],
    };
    let underscore = table.spelling.contains(&Spelling::Underscore);
    for _ in 0..random.usize(..6) {
        let from = if random.bool() { &mapped } else { &rest };
        let row = *random.choice(from).unwrap();
        if !plain(&row) {
            continue;
        }
        let flag = spelling(random, row, underscore);
        // A beginning may be another option.
        if WITH_RULES.contains(&flag.as_str()) {
            continue;
        }
        match (row.value.kind, random.u32(..3)) {
            (OptionKind::Switch, _) => words.push(flag),
            (_, 0) => words.push(format!("{flag}={}", value(random, row))),
            _ => words.extend([flag, value(random, row)]),
        }
    }
    words
}

/// Numbers that the reader took, by the first spelling of their option.
fn numbers((launch, table): &KnownLaunch, found: &mantile::launch::settings::Settings) -> Map<String, Value> {
    let mut numbers = Map::new();
    for option in &launch.settings {
        let OptionPlace::Flag(flag) = &option.place else { continue };
        let Some((row, _)) = table.find(flag).filter(|_| {
            // The reader divides numbers of a whole replica.
            option.template.is_none() && option.scope == OptionScope::Rank
        }) else {
            continue;
        };
        match found.get(option.setting) {
            Some(SettingValue::Count(count)) => {
                numbers.insert(row.flags[0].clone(), json!(count));
            }
            Some(SettingValue::Real(real)) => {
                numbers.insert(row.flags[0].clone(), json!(real));
            }
            _ => {}
        }
    }
    numbers
}

#[test]
fn random_commands_are_written_for_the_parsers() {
    let known = launches();
    let mut random = Rng::with_seed(38);
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
    fs::create_dir_all(&folder).unwrap();
    let mut file = fs::File::create(folder.join("launch-random.jsonl")).unwrap();
    let (mut refused, lines) = (0, draw::cases(LINES));
    for runtime in RUNTIMES {
        let one = known.iter().find(|(launch, _)| launch.id == runtime).unwrap();
        for _ in 0..lines {
            let words = line(&mut random, one);
            let found = read((&one.0, &one.1), &[], &words, &NamedFiles::new());
            let refuses = found.leftovers.iter().any(|left| left.why.effect() == WordEffect::Refused);
            refused += u64::from(refuses);
            let row = json!({
                "runtime": runtime, "words": words, "refused": refuses, "numbers": numbers(one, &found.settings),
            });
            writeln!(file, "{row}").unwrap();
        }
    }
    assert!(refused > lines / 20 && refused < lines * 2, "{refused} of {}", RUNTIMES.len() as u64 * lines);
}

/// A settings file with one key, nested by the dots of its path.
fn settings_file(path: &str, value: &Value) -> String {
    let nested = path.rsplit('.').fold(value.clone(), |inner, key| json!({ key: inner }));
    nested.to_string()
}

/// TensorRT-LLM takes the fields of its classes alone: each of them is taken, and a misspelt one refused.
#[test]
fn keys_of_settings_files_are_the_fields_that_the_runtime_has() {
    let known = launches();
    let one = known.iter().find(|(launch, _)| launch.id == "trtllm").unwrap();
    let rows: Vec<_> = one
        .1
        .yaml
        .iter()
        .filter(|row| !row.value.takes_object() && row.value.kind != OptionKind::List)
        .collect();
    let fields: Vec<&str> = one.1.yaml.iter().map(|row| row.key.as_str()).collect();
    let mut random = Rng::with_seed(39);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..draw::cases(LINES) {
        let row = *random.choice(&rows).unwrap();
        let listed = row.value.choices.iter().chain(&row.value.known).flatten().next().cloned();
        let low = row.value.above.or(row.value.min).unwrap_or(0.0).max(0.0);
        let value = listed.unwrap_or(match row.value.kind {
            OptionKind::Int => json!(low as u64 + random.u64(1..64)),
            OptionKind::Float => json!(low + 0.5),
            OptionKind::Bool | OptionKind::Switch => json!(true),
            _ => json!("name"),
        });
        let mut path = row.key.clone();
        if random.u8(0..3) == 0 {
            path.insert(random.usize(..=path.len()), 'q');
        }
        let is_field = fields.contains(&path.as_str());
        let files = NamedFiles::from([("f.yaml".to_owned(), settings_file(&path, &value))]);
        let words = ["org/model", "--config", "f.yaml"].map(str::to_owned);
        let found = read((&one.0, &one.1), &[], &words, &files);
        let open = |left: &&mantile::launch::read::Leftover| {
            matches!(left.why.effect(), WordEffect::Refused | WordEffect::NotUnderstood)
        };
        let left: Vec<String> = found
            .leftovers
            .iter()
            .filter(open)
            .map(|left| format!("{}: {}", left.word, left.why.words("")))
            .collect();
        assert_eq!(left.is_empty(), is_field, "{path}: {value}: {left:?}");
        taken += u64::from(is_field);
        refused += u64::from(!is_field);
    }
    assert!(taken > refused && refused > 0, "{taken} {refused}");
}
