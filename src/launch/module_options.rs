//! Modules that start a runtime and take options of their own around those of the runtime, some in other words: workers of
//! Dynamo, and the router of SGLang that starts its workers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::spec::launch::Launch;

/// Options of a module itself, none of which changes the engine.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ModuleOptions {
    #[serde(rename = "source")]
    _source: String,
    /// The module whose options it has too.
    like: Option<String>,
    /// Switches that give a worker its role.
    roles: BTreeMap<String, String>,
    /// The beginning of further options of its own, with any number of values.
    prefix: Option<String>,
    switches: Vec<String>,
    /// Options with a value.
    values: Vec<String>,
    /// Spellings of older versions.
    renamed: BTreeMap<String, String>,
    /// Whether a settings file takes precedence over the command's own options.
    file_overrides: bool,
}

/// The words of a runtime in those of a module that starts it.
#[derive(Default)]
pub(super) struct RuntimeWords {
    pub(super) words: Vec<String>,
    /// The role that the module gives a worker.
    pub(super) role: Option<String>,
    /// Whether a settings file takes precedence over the words.
    pub(super) file_overrides: bool,
}

/// By the module's name.
static MODULES: LazyLock<BTreeMap<String, ModuleOptions>> = LazyLock::new(|| {
    // A test reads the file strictly.
    serde_json::from_str(include_str!("module_options.json")).unwrap_or_default()
});

/// Roles of a worker that does one phase alone.
const ROLES: [&str; 2] = ["prefill", "decode"];

/// The words of the runtime in those of a module that starts it. `process` are the words from the program on, `words` those
/// after it.
pub(super) fn of_runtime(launch: &Launch, process: &[String], words: &[String]) -> RuntimeWords {
    let module = process.get(2).filter(|_| process[1] == "-m");
    match module.filter(|module| MODULES.contains_key(*module)) {
        Some(module) => {
            let flags = launch.dynamo.as_ref().filter(|dynamo| dynamo.program.last() == Some(module));
            let none = BTreeMap::new();
            let (words, role) = without_own(module, flags.map_or(&none, |dynamo| &dynamo.flags), words);
            let file_overrides = options_of(module).iter().any(|module| module.file_overrides);
            RuntimeWords { words, role, file_overrides }
        }
        None => RuntimeWords { words: words.to_vec(), ..RuntimeWords::default() },
    }
}

/// A module's options, with those of the module that it is like.
fn options_of(module: &str) -> Vec<&'static ModuleOptions> {
    let own = MODULES.get(module);
    let like = own.and_then(|own| MODULES.get(own.like.as_ref()?));
    own.into_iter().chain(like).collect()
}

/// The part of a command that an option of a module is.
enum FlagPart {
    Role(String),
    RoleOfValue,
    /// Its own, with a number of values.
    Own(usize),
    /// Its value is a positional word of the runtime.
    Positional,
    /// An option of the runtime, as the runtime spells it.
    Runtime(String),
}

/// The part of a flag; `free` are the words after it that are no option.
fn part_of(
    modules: &[&ModuleOptions],
    flags: &BTreeMap<String, String>,
    flag: &str,
    free: usize,
) -> FlagPart {
    let bare = flag.strip_prefix("--no-").map(|name| format!("--{name}"));
    let is = |known: &String| known == flag || bare.as_ref() == Some(known);
    let has = |key: &str| flags.get(key).is_some_and(|known| known == flag);
    let begins =
        |module: &&ModuleOptions| module.prefix.as_ref().is_some_and(|prefix| flag.starts_with(prefix));
    if let Some(role) = modules.iter().find_map(|module| module.roles.get(flag)) {
        FlagPart::Role(role.clone())
    } else if has("role") {
        FlagPart::RoleOfValue
    } else if has("positional") {
        FlagPart::Positional
    } else if modules.iter().any(|module| module.values.iter().any(|known| known == flag)) {
        FlagPart::Own(1)
    } else if modules.iter().any(|module| module.switches.iter().any(is)) {
        FlagPart::Own(0)
    } else if modules.iter().any(begins) {
        FlagPart::Own(free)
    } else {
        let runtime = flags.iter().find(|(_, words)| *words == flag).map_or(flag, |(flag, _)| flag);
        FlagPart::Runtime(runtime.to_owned())
    }
}

/// The words without a module's own. `flags` has the module's words by the runtime's flag.
fn without_own(
    module: &str,
    flags: &BTreeMap<String, String>,
    words: &[String],
) -> (Vec<String>, Option<String>) {
    let modules = options_of(module);
    let (mut own, mut role) = (Vec::new(), None);
    let mut at = 0;
    while at < words.len() {
        let (flag, inline) = match words[at].split_once('=').filter(|(flag, _)| flag.starts_with("--")) {
            Some((flag, value)) => (flag, Some(value)),
            None => (words[at].as_str(), None),
        };
        at += 1;
        if !flag.starts_with("--") {
            own.push(flag.to_owned());
            continue;
        }
        let rest = &words[at..];
        let free = rest.iter().take_while(|word| !word.starts_with('-')).count();
        let value = inline.or(rest.first().map(String::as_str)).map(str::to_owned);
        let renamed = modules.iter().find_map(|module| module.renamed.get(flag));
        let values = match part_of(&modules, flags, renamed.map_or(flag, String::as_str), free) {
            FlagPart::Role(known) => {
                role = Some(known);
                0
            }
            FlagPart::RoleOfValue => {
                role = value;
                1
            }
            FlagPart::Own(values) => values,
            FlagPart::Positional => {
                own.extend(value);
                1
            }
            FlagPart::Runtime(flag) => {
                own.push(inline.map_or(flag.clone(), |value| format!("{flag}={value}")));
                0
            }
        };
        at += if inline.is_some() { 0 } else { values };
    }
    for (flag, words) in flags.iter().filter(|(_, words)| words.contains(' ')) {
        let words: Vec<&str> = words.split(' ').collect();
        if let Some(at) = own.windows(words.len()).position(|some| some == words) {
            own.splice(at..at + words.len(), [flag.clone()]);
        }
    }
    (own, role.filter(|role| ROLES.contains(&role.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_has_its_source() {
        let all: BTreeMap<String, ModuleOptions> =
            serde_json::from_str(include_str!("module_options.json")).unwrap();
        for (name, one) in &all {
            assert!(!one._source.is_empty(), "{name}");
            assert!(one.like.as_ref().is_none_or(|like| all.contains_key(like)), "{name}");
        }
    }

    #[test]
    fn a_worker_has_the_words_of_its_runtime() {
        let flags: BTreeMap<String, String> = [
            ("positional", "--model"),
            ("role", "--disaggregation-mode"),
            ("--tp_size", "--tensor-parallel-size"),
            ("--dp", "--enable-dp --dp-size"),
        ]
        .map(|(flag, words)| (flag.to_owned(), words.to_owned()))
        .into();
        for (text, own, role) in [
            ("--model-path a/b --tensor-parallel-size 4", "a/b --tp_size 4", None),
            ("--model=a/b --tensor-parallel-size=4 --skip-warmup", "a/b --tp_size=4", None),
            ("--model a/b --is-prefill-worker --dyn-tool-call-parser x", "a/b", Some("prefill")),
            ("--disaggregation-mode decode --model a/b --no-publish-metrics", "a/b", Some("decode")),
            ("--disaggregation-mode pd --model a/b", "a/b", None),
            ("--enable-dp --dp-size 8 --other", "--dp 8 --other", None),
        ] {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let (words, found) = without_own("dynamo.trtllm", &flags, &words);
            assert_eq!((words.join(" ").as_str(), found.as_deref()), (own, role), "{text}");
        }
        let words =
            ["--router-policy", "x", "--router-selector", "a=b", "c=d", "--dp-size", "4"].map(str::to_owned);
        let (words, _) = without_own("sglang_router.launch_server", &BTreeMap::new(), &words);
        assert_eq!(words, ["--dp-size", "4"]);
    }
}
