//! Simple commands: assignments, the shell's own commands, functions, and programs.

use std::collections::BTreeSet;

use super::lex::{RawWord, Redirect};
use super::run::{Flow, FoundRun, Shell, ShellStatus, Value, known_or_unset};
use super::text::{ShellText, WordPiece};
use super::wrapper::{Started, started};
use super::{Process, assignment, is_name, starts_server};
use crate::launch::settings_file::file_name;

/// Commands that declare variables.
const DECLARING: [&str; 5] = ["export", "declare", "local", "readonly", "typeset"];

/// Commands of a shell that change nothing here.
const WITHOUT_EFFECT: [&str; 14] = [
    ":", "true", "pushd", "popd", "ulimit", "umask", "shopt", "alias", "trap", "hash", "type", "jobs",
    "disown", "bind",
];

/// Programs that run scripts.
pub(super) const SHELLS: [&str; 5] = ["bash", "sh", "zsh", "dash", "ash"];

impl Shell<'_> {
    pub(super) fn simple(&mut self, words: &[RawWord], redirects: &[Redirect], line: usize) -> Flow {
        let outside = std::mem::take(&mut self.used);
        let flow = self.simple_with(words, redirects, line);
        self.used.extend(outside);
        flow
    }

    fn simple_with(&mut self, words: &[RawWord], redirects: &[Redirect], line: usize) -> Flow {
        let assigns = |word: &&RawWord| word.elements.is_some() || assignment(&word.text).is_some();
        let first = words.iter().take_while(assigns).count();
        if first == words.len() {
            words.iter().for_each(|word| self.assign_word(word, None));
            self.status = ShellStatus::Known(true);
            return Flow::Next;
        }
        let mut own = Vec::new();
        for word in &words[..first] {
            if let Some((name, _, raw)) = assignment(&word.text) {
                own.push((name.to_owned(), self.text_of(raw)));
            }
        }
        let raw = &words[first..];
        let name = raw[0].text.as_str();
        if DECLARING.contains(&name) {
            self.declare(name, &raw[1..]);
            return Flow::Next;
        }
        if ["[", "test"].contains(&name) {
            let inner: Vec<String> = raw[1..].iter().map(|word| word.text.clone()).collect();
            let closed = usize::from(name == "[" && inner.last().is_some_and(|word| word == "]"));
            self.status = self.single_test(&inner[..inner.len() - closed]);
            return Flow::Next;
        }
        let words: Vec<ShellText> = raw.iter().flat_map(|word| self.words_of(&word.text)).collect();
        self.run_words(words, &own, redirects, line)
    }

    fn assign_word(&mut self, word: &RawWord, exports: Option<bool>) {
        let Some((name, appends, raw)) = assignment(&word.text) else { return };
        let outside = std::mem::take(&mut self.used);
        let value = match &word.elements {
            Some(elements) => {
                let mut all = if appends { self.elements(name) } else { vec![] };
                for element in elements {
                    // `[key]=value`
                    let keyed = element.strip_prefix('[').and_then(|rest| rest.split_once("]="));
                    match keyed {
                        Some((_, value)) => all.push(self.text_of(value)),
                        None => all.extend(self.words_of(element)),
                    }
                }
                Value::Many(all)
            }
            None if appends => {
                let mut value = if self.is_set(name) { self.value(name) } else { ShellText::default() };
                value.extend(self.text_of(raw));
                Value::One(value)
            }
            None => Value::One(self.text_of(raw)),
        };
        self.assign(name, value);
        self.used.extend(outside);
        if exports == Some(true) {
            self.export(name);
        }
    }

    /// `export`, `local` and the like.
    fn declare(&mut self, command: &str, words: &[RawWord]) {
        let exports = command == "export" || words.iter().any(|word| word.text == "-x");
        let is_local = command == "local" || command == "declare" && !self.locals.is_empty();
        for word in words.iter().filter(|word| !word.text.starts_with('-')) {
            let assigned = assignment(&word.text).map(|(name, ..)| name.to_owned());
            match assigned {
                Some(name) => {
                    if is_local {
                        self.localize(&name);
                    }
                    self.assign_word(word, Some(exports));
                }
                None if exports => self.export(&word.text),
                None if is_local && is_name(&word.text) => {
                    self.localize(&word.text);
                    self.assign(&word.text, Value::One(ShellText::default()));
                }
                None => {}
            }
        }
        self.status = ShellStatus::Known(true);
    }

    /// Runs a command whose words are expanded.
    fn run_words(
        &mut self,
        words: Vec<ShellText>,
        own: &[(String, ShellText)],
        redirects: &[Redirect],
        line: usize,
    ) -> Flow {
        let Some(first) = words.first() else {
            self.status = ShellStatus::Known(true);
            return Flow::Next;
        };
        let name = first.value().unwrap_or_default();
        if self.functions.contains_key(&name) {
            return self.call(&name, words[1..].to_vec(), own);
        }
        if let Some(flow) = self.own_command(&name, &words[1..], own, redirects, line) {
            return flow;
        }
        self.program(&words, own, redirects, line);
        Flow::Next
    }

    /// Runs a command of the shell itself.
    fn own_command(
        &mut self,
        name: &str,
        words: &[ShellText],
        own: &[(String, ShellText)],
        redirects: &[Redirect],
        line: usize,
    ) -> Option<Flow> {
        let shown: Vec<String> = words.iter().map(ShellText::shown).collect();
        self.status = match name {
            "exec" => return Some(self.exec(words, own, redirects, line)),
            "exit" => return Some(self.exit(shown.first(), line)),
            "return" => {
                self.status = ShellStatus::Known(shown.first().is_none_or(|status| status == "0"));
                return Some(Flow::Return);
            }
            "break" => return Some(Flow::Break),
            "continue" => return Some(Flow::Continue),
            "eval" => return Some(self.text(&shown.join(" "))),
            "source" | "." => return Some(self.source(words)),
            "false" => ShellStatus::Known(false),
            "cd" | "wait" | "sleep" | "kill" => ShellStatus::Assumed,
            _ if WITHOUT_EFFECT.contains(&name) => ShellStatus::Known(true),
            "set" => self.set(&shown, words),
            "shift" => self.shift(shown.first()),
            "unset" => {
                shown.iter().for_each(|name| {
                    self.variables.remove(name);
                    self.functions.remove(name);
                });
                ShellStatus::Known(true)
            }
            "let" => {
                let last = shown.iter().map(|one| self.number(one)).last().flatten();
                last.map_or(ShellStatus::Open(None), |number| ShellStatus::Known(number != 0))
            }
            "read" | "mapfile" | "readarray" => self.read(name, &shown),
            "echo" | "printf" | "cat" | "tee" => self.write(name, words, redirects),
            _ => return None,
        };
        Some(Flow::Next)
    }

    /// `exit`: a status other than 0 is a fault.
    fn exit(&mut self, status: Option<&String>, line: usize) -> Flow {
        if status.is_none_or(|status| status == "0") {
            return Flow::Exit;
        }
        self.failed = Some(line);
        if self.past_faults { Flow::Next } else { Flow::Exit }
    }

    /// `exec`: the script ends with the command.
    fn exec(
        &mut self,
        words: &[ShellText],
        own: &[(String, ShellText)],
        redirects: &[Redirect],
        line: usize,
    ) -> Flow {
        let first = words.iter().position(|word| !word.shown().starts_with('-')).unwrap_or(words.len());
        if first == words.len() {
            return Flow::Next;
        }
        self.program(&words[first..], own, redirects, line);
        Flow::Exit
    }

    fn source(&mut self, words: &[ShellText]) -> Flow {
        self.status = ShellStatus::Assumed;
        let Some(text) = words.first().and_then(|path| self.file(&path.shown())) else { return Flow::Next };
        let before = self.arguments.clone();
        if words.len() > 1 {
            self.arguments = Some(words[1..].to_vec());
        }
        let flow = self.text(&text);
        self.arguments = before;
        self.status = ShellStatus::Assumed;
        if flow == Flow::Exit { Flow::Exit } else { Flow::Next }
    }

    fn set(&mut self, shown: &[String], words: &[ShellText]) -> ShellStatus {
        match shown.iter().position(|word| word == "--") {
            Some(at) => self.arguments = Some(words[at + 1..].to_vec()),
            None if shown.first().is_some_and(|word| !word.starts_with(['-', '+'])) => {
                self.arguments = Some(words.to_vec());
            }
            None => {}
        }
        let flag = |sign: char| {
            let all = shown.iter().any(|word| word == &format!("{sign}o"));
            let named = all && shown.iter().any(|word| word == "allexport");
            named
                || shown
                    .iter()
                    .any(|word| word.starts_with(sign) && !word.starts_with("--") && word.contains('a'))
        };
        self.exports_all = self.exports_all && !flag('+') || flag('-');
        ShellStatus::Known(true)
    }

    fn shift(&mut self, count: Option<&String>) -> ShellStatus {
        let count = count.map_or(Some(1), |count| count.parse::<usize>().ok());
        let (Some(all), Some(count)) = (&mut self.arguments, count) else {
            return ShellStatus::Open(Some(false));
        };
        if count > all.len() {
            return ShellStatus::Known(false);
        }
        all.drain(..count);
        ShellStatus::Known(true)
    }

    /// Variables that take what is not part of the text.
    fn read(&mut self, name: &str, words: &[String]) -> ShellStatus {
        for variable in words.iter().filter(|word| is_name(word)) {
            let shown = |text: String| ShellText::of(WordPiece::Unknown(text));
            let value = match name {
                "read" => Value::One(shown(format!("${variable}"))),
                _ => Value::Many(vec![shown(format!("${{{variable}[@]}}"))]),
            };
            self.assign(variable, value);
        }
        ShellStatus::Open(None)
    }

    /// A command that writes a text, perhaps to a file.
    fn write(&mut self, name: &str, words: &[ShellText], redirects: &[Redirect]) -> ShellStatus {
        let shown: Vec<String> = words.iter().map(ShellText::shown).collect();
        if name == "printf"
            && let [flag, variable, ..] = &shown[..]
            && flag == "-v"
        {
            self.assign(variable, Value::One(ShellText::of(WordPiece::Unknown(format!("${variable}")))));
        }
        let body = redirects.iter().find_map(|redirect| redirect.body.as_ref());
        let text = match (name, body) {
            (_, Some((text, true))) => Some(text.clone()),
            (_, Some((text, false))) => Some(self.document_of(text).shown()),
            ("echo", None) => {
                let is_option = |word: &&String| ["-e", "-n", "-en", "-ne"].contains(&word.as_str());
                let escapes = shown.iter().take_while(is_option).any(|word| word.contains('e'));
                let text = shown.iter().skip_while(is_option).cloned().collect::<Vec<_>>().join(" ") + "\n";
                Some(if escapes { text.replace("\\n", "\n").replace("\\t", "\t") } else { text })
            }
            ("printf", None) => match &shown[..] {
                [format] => Some(format.replace("\\n", "\n")),
                [format, text] if format == "%s\\n" || format == "%s" => Some(text.clone() + "\n"),
                _ => None,
            },
            _ => None,
        };
        let outputs = redirects.iter().filter(|one| [">", ">>", ">|"].contains(&one.operator));
        let targets: Vec<(bool, String)> = outputs
            .map(|one| (one.operator == ">>", self.text_of(&one.target).shown()))
            .chain(
                shown
                    .iter()
                    .filter(|word| name == "tee" && !word.starts_with('-'))
                    .map(|path| (shown.iter().any(|word| word == "-a"), path.clone())),
            )
            .collect();
        for (appends, path) in targets {
            let Some(text) = &text else { continue };
            let before = if appends { self.file(&path).unwrap_or_default() } else { String::new() };
            self.charge(before.len() + text.len());
            self.written.insert(file_name(&path).to_owned(), before + text);
        }
        ShellStatus::Known(true)
    }

    /// A program: its command is found, or the script that it runs is read.
    fn program(
        &mut self,
        words: &[ShellText],
        own: &[(String, ShellText)],
        redirects: &[Redirect],
        line: usize,
    ) {
        self.status = ShellStatus::Assumed;
        let shown: Vec<String> = words.iter().map(ShellText::shown).collect();
        let own: Vec<(String, String)> =
            own.iter().map(|(name, value)| (name.clone(), value.shown())).collect();
        let mut one = started(shown, &|name| self.exported_value(name));
        one.environment.splice(0..0, own);
        let from = self.found.len();
        if !self.runs_script(&one, redirects, line) {
            self.find(&one, line);
        }
        let doubts = self.used.iter().filter_map(|name| self.doubts.get(name));
        let line = |note: &str| note.split([' ', ':']).nth(1).and_then(|line| line.parse::<usize>().ok());
        let notes: BTreeSet<(Option<usize>, String)> =
            doubts.map(|note| (line(note), note.clone())).collect();
        let notes: Vec<String> = notes.into_iter().map(|(_, note)| note).collect();
        for found in &mut self.found[from..] {
            if one.image.is_some() {
                found.process.image.clone_from(&one.image);
            }
            found.process.devices = found.process.devices.or(one.devices);
            if starts_server(&found.process.words) {
                let new = notes.iter().chain(&one.notes).filter(|note| !found.process.notes.contains(note));
                let new: Vec<String> = new.cloned().collect();
                found.process.notes.extend(new);
            }
        }
    }

    /// Runs the words of a container, in which each variable of `environment` is exported.
    pub(super) fn start(&mut self, words: &[String], environment: &[(String, String)]) {
        for (name, value) in environment {
            self.assign(name, Value::One(known_or_unset(value)));
            self.export(name);
        }
        let words: Vec<ShellText> = words.iter().map(|word| known_or_unset(word)).collect();
        self.program(&words, &[], &[], 1);
    }

    fn exported_value(&self, name: &str) -> Option<String> {
        let variable = self.variables.get(name)?;
        match &variable.value {
            Value::One(text) => Some(text.shown()),
            Value::Many(_) => None,
        }
    }

    /// Reads the script that a command runs, where it is one.
    fn runs_script(&mut self, one: &Started, redirects: &[Redirect], line: usize) -> bool {
        let Some(first) = one.words.first() else { return true };
        if self.functions.contains_key(first) {
            let words: Vec<ShellText> =
                one.words[1..].iter().map(|word| ShellText::known(word.as_str())).collect();
            let own: Vec<(String, ShellText)> = one
                .environment
                .iter()
                .map(|(name, value)| (name.clone(), ShellText::known(value.as_str())))
                .collect();
            self.call(&first.clone(), words, &own);
            return true;
        }
        let texts =
            |words: &[String]| Some(words.iter().map(|word| ShellText::known(word.as_str())).collect());
        if !SHELLS.contains(&file_name(first)) {
            let Some(text) = self.file(first).filter(|_| first.ends_with(".sh")) else { return false };
            self.inner(&text, one, texts(&one.words[1..]), line);
            return true;
        }
        let is_flag = |word: &&String| word.starts_with(['-', '+']) && word.len() > 1;
        let flags = one.words[1..].iter().take_while(is_flag).count();
        let rest = &one.words[1 + flags..];
        let runs_text = one.words[1..=flags].iter().any(|flag| !flag.starts_with("--") && flag.contains('c'));
        if runs_text {
            let Some(text) = rest.first() else { return true };
            // The word after the text is the name of the script.
            let arguments = rest.get(2..).map_or(Some(vec![]), texts);
            self.inner(text, one, arguments, line);
            return true;
        }
        if let Some(path) = rest.first() {
            let Some(text) = self.file(path) else { return false };
            self.inner(&text, one, texts(&rest[1..]), line);
            return true;
        }
        let Some((body, quoted)) = redirects.iter().find_map(|one| one.body.clone()) else { return false };
        let text = if quoted { body } else { self.document_of(&body).shown() };
        self.inner(&text, one, None, line);
        true
    }

    fn find(&mut self, one: &Started, line: usize) {
        let exported = self.variables.iter().filter(|(_, variable)| variable.exported && !one.clears);
        let exported = exported.filter_map(|(name, variable)| match &variable.value {
            Value::One(text) => Some((name.clone(), text.shown())),
            Value::Many(_) => None,
        });
        let kept = exported.filter(|(name, _)| !one.unset.contains(name));
        let environment = kept.chain(one.environment.iter().cloned()).collect();
        self.charge(one.words.iter().map(String::len).sum());
        let process = Process {
            place: format!("line {}", self.place.unwrap_or(line)),
            environment,
            words: one.words.clone(),
            ..Process::default()
        };
        self.found.push(FoundRun { process, background: false });
    }
}
