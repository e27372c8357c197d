//! Commands in the text of a shell: one line, or a script with variables, branches, loops and functions.
//!
//! The script is run as far as its text says what happens. No program is started: each is found with its words. Where a
//! condition is not known, the first branch that starts a server is read, and a note says so.

mod arithmetic;
mod branch;
mod builtin;
mod condition;
mod expand;
mod lex;
mod parse;
mod pattern;
mod run;
mod scan;
mod studio;
#[cfg(test)]
mod tests;
mod text;
mod wrapper;

use std::collections::BTreeMap;

use super::settings_file::{NamedFiles, file_name};
use run::Shell;

/// A process that a text starts.
/// Values of variables, by name.
pub type CommandVariables = BTreeMap<String, String>;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Where it was found, for people.
    pub place: String,
    pub environment: Vec<(String, String)>,
    /// Container image, where it runs in one.
    pub image: Option<String>,
    pub words: Vec<String>,
    /// Number of like processes, where the text has one.
    pub replicas: Option<u64>,
    /// Devices of one, where the text has them.
    pub devices: Option<u64>,
    /// Hosts of one, where the text has them.
    pub hosts: Option<u64>,
    /// `prefill` or `decode`, where the format of the text has it.
    pub role: Option<String>,
    /// Notes for people on how it was read.
    pub notes: Vec<String>,
}

/// The commands of `text` in order, and the files that it writes. `files` are those that it may run or read;
/// `variables` are set before it begins. A variable that nothing sets stays in the words as `$NAME`.
pub fn commands(
    text: &str,
    files: &NamedFiles,
    variables: &BTreeMap<String, String>,
) -> (Vec<Process>, NamedFiles) {
    let (mut found, mut written) = (Vec::new(), NamedFiles::new());
    for script in parse::parse(lex::tokens(text)) {
        let mut shell = Shell::new(files, variables);
        shell.written.clone_from(&written);
        shell.script(&script);
        found.extend(shell.found.into_iter().map(|one| one.process));
        written.extend(shell.written);
    }
    keep_one_model(&mut found);
    (found, written)
}

/// The commands of a container that runs `words` with the variables of `environment`.
pub(super) fn container_commands(
    words: &[String],
    files: &NamedFiles,
    environment: &[(String, String)],
) -> (Vec<Process>, NamedFiles) {
    let mut shell = Shell::new(files, &BTreeMap::new());
    shell.start(words, environment);
    (shell.found.into_iter().map(|one| one.process).collect(), shell.written)
}

/// Programs that serve a model, with the word after them where another command of theirs does not.
const SERVERS: [(&str, Option<&str>); 13] = [
    ("vllm", Some("serve")),
    ("sglang", Some("serve")),
    ("trtllm-serve", None),
    ("llama-server", None),
    ("llama-cli", None),
    ("mlx_lm.server", None),
    ("mlx.launch", None),
    ("exo", None),
    ("rpc-server", None),
    ("mistralrs", None),
    ("mistralrs-server", None),
    ("ollama", Some("serve")),
    ("lms", Some("load")),
];

/// Beginnings of the names of modules that serve a model.
const SERVER_MODULES: [&str; 8] = [
    "vllm.entrypoints",
    "sglang.launch_server",
    "sglang_router.launch_server",
    "dynamo.vllm",
    "dynamo.sglang",
    "dynamo.trtllm",
    "mlx_lm.server",
    "tensorrt_llm.commands.serve",
];

/// Whether the words start a server of a model.
pub(super) fn starts_server(words: &[String]) -> bool {
    let Some(first) = words.first().map(|word| file_name(word)) else { return false };
    let second = words.get(1).map(String::as_str);
    if second == Some("-m") && (first.starts_with("python") || first.starts_with('$')) {
        let module = words.get(2).map(String::as_str).unwrap_or_default();
        return SERVER_MODULES.iter().any(|known| module.starts_with(known));
    }
    SERVERS.iter().any(|(program, command)| *program == first && (command.is_none() || *command == second))
}

/// Options that name the model of a server.
const MODEL_OPTIONS: [&str; 9] = [
    "--model",
    "--model-path",
    "--model_path",
    "-m",
    "-hf",
    "-hfr",
    "--hf-repo",
    "--model-tag",
    "--model-name-or-path",
];

/// The model in the words of a server, as they write it.
fn model_of(words: &[String]) -> Option<&str> {
    let of_option = words.iter().enumerate().skip(1).find_map(|(at, word)| match word.split_once('=') {
        Some((flag, value)) => MODEL_OPTIONS.contains(&flag).then_some(value),
        // `-m` before a module is no model.
        None if word == "-m" && at == 1 && !words[0].contains("llama") => None,
        None => {
            MODEL_OPTIONS.contains(&word.as_str()).then(|| words.get(at + 1)).flatten().map(String::as_str)
        }
    });
    let positional = || match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "serve", model, ..] | ["trtllm-serve", model, ..] if !model.starts_with('-') => Some(model),
        _ => None,
    };
    of_option.or_else(positional)
}

/// Keeps of several models the first, with a remark: a deployment has one.
pub(super) fn keep_one_model(found: &mut Vec<Process>) {
    let models =
        || found.iter().filter(|one| starts_server(&one.words)).filter_map(|one| model_of(&one.words));
    let Some(first) = models().next().map(str::to_owned) else { return };
    let mut others: Vec<&str> = models().filter(|model| *model != first).collect();
    others.sort_unstable();
    others.dedup();
    if others.is_empty() {
        return;
    }
    let note = format!("of {} models {first} is read, and not {}", others.len() + 1, others.join(", "));
    found.retain(|one| !starts_server(&one.words) || model_of(&one.words).is_none_or(|model| model == first));
    let servers = found.iter_mut().filter(|one| starts_server(&one.words));
    servers.for_each(|one| one.notes.push(note.clone()));
}

/// Whether the text is the name of a variable.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(plain)
}

/// `NAME=VALUE` or `NAME+=VALUE`: the name, whether it appends, and the value.
fn assignment(word: &str) -> Option<(&str, bool, &str)> {
    let (name, value) = word.split_once('=')?;
    let (name, appends) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
    is_name(name).then_some((name, appends, value))
}
