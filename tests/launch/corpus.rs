//! Public launch commands and files against their right readings, which come from the runtimes' own parsers and sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use mantile::launch::back::{ReadLaunch, read_launch};
use mantile::launch::manifest::{is_manifest, processes};
use mantile::launch::settings::{SettingValue, Settings};
use mantile::launch::settings_file::NamedFiles;
use mantile::launch::shell::commands;
use mantile::spec::option_effect::WordEffect;
use mantile::spec::setting::Setting;

use super::{CATALOG, KnownLaunch};

/// A public command with its right reading.
struct Public {
    row: BTreeMap<String, String>,
}

impl Public {
    fn text(&self, column: &str) -> &str {
        self.row.get(column).map_or("", String::as_str)
    }

    /// A whole number; none where the column is empty or has one for each of several servers.
    fn number(&self, column: &str) -> Option<u64> {
        self.text(column).parse().ok()
    }

    /// The text of the command or file, and its files.
    fn command(&self) -> (String, NamedFiles) {
        let text = self.text("text");
        let path = folder().join("manifests").join(text);
        if text.len() < 200 && path.is_file() {
            let others = fs::read_dir(path.parent().unwrap()).unwrap().filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name().to_string_lossy().into_owned();
                Some((name, fs::read_to_string(entry.path()).ok()?))
            });
            return (fs::read_to_string(path).unwrap(), others.collect());
        }
        (text.replace("\\n", "\n"), NamedFiles::new())
    }

    /// Whether it must be read, and not refused.
    fn is_read(&self) -> bool {
        self.text("must") == "read"
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn public() -> Vec<Public> {
    let mut table = csv::Reader::from_path(folder().join("commands.csv")).unwrap();
    table.deserialize().map(|row| Public { row: row.unwrap() }).collect()
}

/// The launch of a public command, by the options of its version.
fn read<'a>(known: &'a [KnownLaunch], one: &Public) -> Result<ReadLaunch<'a>, String> {
    let (text, mut files) = one.command();
    let variables = BTreeMap::new();
    let (found, own) = match is_manifest(&text) {
        true => processes(&text, &files, &variables).map_err(|fault| fault.to_string())?,
        false => commands(&text, &files, &variables),
    };
    files.extend(own);
    read_launch(known, &found, &files).map_err(|fault| fault.to_string())
}

/// Ranks of a process: the devices that it uses.
fn ranks(settings: &Settings) -> u64 {
    let count = |setting| settings.count(setting).unwrap_or(1);
    let stage = [Setting::StageRanks, Setting::Ranks].into_iter().find_map(|setting| settings.count(setting));
    let attention_dp = if stage.is_some() { 1 } else { count(Setting::Dp) };
    stage.unwrap_or_else(|| count(Setting::Tp)) * count(Setting::Pp) * attention_dp
}

/// Where the reading differs from the right one.
fn differences(one: &Public, launch: &ReadLaunch) -> Vec<String> {
    let role = |process: &&mantile::launch::back::ReadProcess| {
        let settings = &process.read.settings;
        let stated = settings.word(Setting::Role).or(process.process.role.as_deref());
        one.text("role").is_empty()
            || one.text("role").contains('|')
            || stated.is_none_or(|stated| stated == one.text("role"))
    };
    let Some(process) = launch.processes.iter().find(role) else {
        return vec![format!("no process with the role {}", one.text("role"))];
    };
    let settings = &process.read.settings;
    let mut wrong = Vec::new();
    let mut same = |column: &str, found: Option<u64>| {
        if let Some(right) = one.number(column).filter(|right| found.is_some_and(|found| found != *right)) {
            wrong.push(format!("{column}: {right}, read as {}", found.unwrap_or_default()));
        }
    };
    let count = |setting| settings.count(setting);
    same("pp", Some(count(Setting::Pp).unwrap_or(1)).filter(|_| one.text("runtime") != "llama.cpp"));
    same("max_model_len", count(Setting::Context));
    if one.text("role").is_empty() && launch.processes.len() == 1 && one.text("runtime") != "llama.cpp" {
        let copies = count(Setting::Copies).filter(|_| !settings.is_on(Setting::AttentionDp)).unwrap_or(1);
        let replicas = process.process.replicas.unwrap_or(1) * copies;
        let all = one.number("devices").map(|devices| devices * one.number("replicas").unwrap_or(1));
        let used = ranks(settings) * replicas;
        let fits = all.is_none_or(|all| all == used || one.number("devices") == Some(used));
        if !fits {
            wrong.push(format!("devices: {}, read as {used}", one.text("devices")));
        }
    }
    let share = match settings.get(Setting::MemoryShare) {
        Some(SettingValue::Real(share)) => Some(*share),
        _ => None,
    };
    let right = one.text("memory_share").parse::<f64>().ok();
    if right.zip(share).is_some_and(|(right, share)| (right - share).abs() > 1e-9) {
        wrong.push(format!("memory_share: {right:?}, read as {share:?}"));
    }
    if one.text("ep") == "no" && count(Setting::Ep).is_some_and(|ep| ep > 1) {
        wrong.push("experts are parallel, and should not be".to_owned());
    }
    if one.text("ep") == "yes" && !settings.is_on(Setting::ExpertParallel) && count(Setting::Ep).is_none() {
        wrong.push("experts are not parallel, and should be".to_owned());
    }
    wrong
}

#[test]
fn public_commands_are_read_as_their_runtimes_read_them() {
    let known = CATALOG.launches().unwrap();
    let (mut read_right, mut wrong, mut refused, mut all) = (0, vec![], vec![], 0);
    for one in public().iter().filter(|one| one.text("runtime") != "ollama") {
        let id = format!("{} {} {}", one.text("id"), one.text("runtime"), one.text("kind"));
        all += usize::from(one.is_read());
        match read(&known, one) {
            Err(fault) if one.is_read() => refused.push(format!("{id}: {}", fault.replace('\n', " "))),
            Err(_) => {}
            Ok(launch) => {
                let stops = |effect| launch.leftovers().any(|(_, left)| left.why.effect() == effect);
                let unset = launch.processes.iter().any(|one| !one.read.model_variables.is_empty());
                let open = unset || stops(WordEffect::NotUnderstood) || stops(WordEffect::Refused);
                let different = differences(one, &launch);
                match (one.is_read(), open) {
                    (true, true) => {
                        let words: Vec<String> = launch
                            .leftovers()
                            .filter(|(_, left)| {
                                matches!(left.why.effect(), WordEffect::NotUnderstood | WordEffect::Refused)
                            })
                            .map(|(_, left)| format!("{}: {}", left.word, left.why.words("it")))
                            .collect();
                        refused.push(format!("{id}: {}", words.join("; ")));
                    }
                    (true, false) if different.is_empty() => read_right += 1,
                    (true, false) => wrong.push(format!("{id}: {}", different.join("; "))),
                    (false, true) => {}
                    (false, false) => wrong.push(format!("{id}: read, but {}", one.text("must"))),
                }
            }
        }
    }
    println!("{read_right} of {all} public commands are read, {} wrongly", wrong.len());
    println!("wrong:\n{}", wrong.join("\n"));
    println!("refused:\n{}", refused.join("\n"));
    // The others are refused; a wrong reading is worse.
    assert!(read_right * 10 >= all * 9, "{read_right} of {all}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
