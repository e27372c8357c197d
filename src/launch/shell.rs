//! Commands in the text of a shell: one line, or a script with variables and arrays.

use std::collections::BTreeMap;

use super::settings_file::{NamedFiles, file_name};

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
}

/// Words before a command that do not change it.
const WRAPPERS: [&str; 6] = ["exec", "nohup", "sudo", "time", "env", "command"];

/// Programs that run a script.
const SHELLS: [&str; 2] = ["bash", "sh"];

/// Scripts that run scripts: ours are two deep, and one that runs itself ends.
const DEEPEST: usize = 4;

/// The commands of `text`, in order; of scripts of `files` that it runs, their commands. Blocks of `for` are
/// left out, and of `if` where the condition is not known to hold: they repeat or vary a command.
pub fn commands(text: &str, files: &NamedFiles) -> Vec<Process> {
    Shell::new(files).run(text)
}

struct Shell<'a> {
    files: &'a NamedFiles,
    /// Scripts around this one.
    outer: usize,
    variables: BTreeMap<String, String>,
    arrays: BTreeMap<String, Vec<String>>,
    exported: Vec<String>,
    open: Option<(String, Vec<String>)>,
    depth: usize,
    found: Vec<Process>,
}

impl<'a> Shell<'a> {
    fn new(files: &'a NamedFiles) -> Shell<'a> {
        Shell {
            files,
            outer: 0,
            variables: BTreeMap::new(),
            arrays: BTreeMap::new(),
            exported: vec![],
            open: None,
            depth: 0,
            found: vec![],
        }
    }

    fn run(mut self, text: &str) -> Vec<Process> {
        let mut line = String::new();
        for (number, part) in text.lines().enumerate() {
            // A comment ends with its line.
            match part.strip_suffix('\\').filter(|part| !part.trim_start().starts_with('#')) {
                Some(continued) => line.extend([continued, " "]),
                None => {
                    line.push_str(part);
                    self.line(number + 1, line.trim());
                    line.clear();
                }
            }
        }
        self.line(text.lines().count(), line.trim());
        self.found
    }

    /// The commands of a script of the files that the words run, e.g. `env REPLICA=1 bash ./server.sh`.
    fn script(&self, number: usize, words: &[String], own: &[(String, String)]) -> Option<Vec<Process>> {
        let at = words.iter().position(|word| SHELLS.contains(&word.as_str()))?;
        let text = self.files.get(file_name(words.get(at + 1)?)).filter(|_| self.outer < DEEPEST)?;
        let mut inner = Shell { outer: self.outer + 1, ..Shell::new(self.files) };
        let exported = self.exported.iter().filter_map(|name| self.variables.get_key_value(name));
        let before = words[..at].iter().filter_map(|word| assignment(word));
        let before = before.map(|(name, value)| (name.to_owned(), value.to_owned()));
        inner.variables = exported.map(|(name, value)| (name.clone(), value.clone())).collect();
        inner.variables.extend(own.iter().cloned().chain(before));
        inner.exported = inner.variables.keys().cloned().collect();
        let mut found = inner.run(text);
        found.iter_mut().for_each(|process| process.place = format!("line {number}"));
        Some(found)
    }

    fn line(&mut self, number: usize, line: &str) {
        if line.starts_with("#!") {
            // Another script begins.
            if number > 1 {
                *self = Shell { found: std::mem::take(&mut self.found), ..Shell::new(self.files) };
            }
            return;
        }
        let first = line.split_whitespace().next().unwrap_or_default();
        if self.open.is_none() {
            match first.trim_end_matches(';') {
                // A block whose condition is known to hold is read like the lines around it.
                "if" if self.depth == 0 && self.holds(line) => return,
                "else" | "elif" if self.depth == 0 => {
                    self.depth = 1;
                    return;
                }
                "if" | "for" | "while" | "until" | "case" => {
                    let closed = ["; fi", "; done", " esac"].iter().any(|end| line.ends_with(end));
                    self.depth += usize::from(!closed);
                    return;
                }
                "fi" | "done" | "esac" => {
                    self.depth = self.depth.saturating_sub(1);
                    return;
                }
                _ if self.depth > 0 => return,
                _ => {}
            }
        }
        let Some(words) = shlex::split(line) else { return };
        if let Some((name, mut all)) = self.open.take() {
            let ends = words.iter().any(|word| word == ")");
            all.extend(words.iter().filter(|word| *word != ")").flat_map(|word| self.expanded(word)));
            if ends {
                self.arrays.insert(name, all);
            } else {
                self.open = Some((name, all));
            }
            return;
        }
        if let [only] = &words[..]
            && let Some(name) = only.strip_suffix("=(")
        {
            self.open = Some((name.to_owned(), vec![]));
            return;
        }
        self.command(number, &words);
    }

    /// Whether the condition of `if ((NAME > 0)); then` is known and holds.
    fn holds(&self, line: &str) -> bool {
        let condition = line.strip_prefix("if ((").and_then(|rest| rest.strip_suffix(")); then"));
        let Some((name, least)) = condition.and_then(|condition| condition.split_once(" > ")) else {
            return false;
        };
        let number = |text: &str| text.parse::<u64>().ok();
        let value = self.variables.get(name).and_then(|value| number(value));
        value.zip(number(least)).is_some_and(|(value, least)| value > least)
    }

    fn command(&mut self, number: usize, words: &[String]) {
        let exports = words.first().is_some_and(|word| word == "export");
        let words = &words[usize::from(exports)..];
        let assigns = |word: &&String| assignment(word).is_some();
        let mut own = Vec::new();
        for word in words.iter().take_while(assigns) {
            let Some((name, value)) = assignment(word) else { continue };
            own.push((name.to_owned(), self.expanded(value).join(" ")));
        }
        let rest = &words[own.len()..];
        if rest.is_empty() {
            for (name, value) in own {
                if exports {
                    self.exported.push(name.clone());
                }
                self.variables.insert(name, value);
            }
            return;
        }
        let mut words: Vec<String> = rest.iter().flat_map(|word| self.expanded(word)).collect();
        while words.first().is_some_and(|word| WRAPPERS.contains(&word.as_str())) {
            words.remove(0);
        }
        if let Some(found) = self.script(number, &words, &own) {
            return self.found.extend(found);
        }
        let ends = |word: &String| ["&", "|", "&&", "||", ";", ">", "2>&1"].contains(&word.as_str());
        words.truncate(words.iter().position(ends).unwrap_or(words.len()));
        let exported =
            self.exported.iter().filter_map(|name| Some((name.clone(), self.variables.get(name)?.clone())));
        let environment = exported.chain(own).collect();
        self.found.push(Process {
            place: format!("line {number}"),
            environment,
            words,
            ..Process::default()
        });
    }

    /// A word with its variables; an array becomes several words.
    fn expanded(&self, word: &str) -> Vec<String> {
        let array = word.strip_prefix("${").and_then(|rest| rest.strip_suffix("[@]}"));
        if let Some(words) = array.and_then(|name| self.arrays.get(name)) {
            return words.clone();
        }
        vec![expand(word, &self.variables)]
    }
}

/// `NAME=VALUE`.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (starts && name.chars().all(plain)).then_some((name, value))
}

/// The text with `$NAME`, `${NAME}`, `${NAME:-default}` and `${NAME:?message}` replaced where they are known.
pub fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let braced = after.strip_prefix('{').and_then(|inner| Some((inner, inner.find('}')?)));
        let (inside, end) = match braced {
            Some((inner, close)) => (&inner[..close], close + 2),
            None => {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let end = after.find(|c| !plain(c)).unwrap_or(after.len());
                (&after[..end], end)
            }
        };
        let named = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inside.len());
        let (name, operator) = inside.split_at(named);
        let default = operator.strip_prefix(":-").or(operator.strip_prefix('-'));
        // Other operators change the value.
        let plain = operator.is_empty() || operator.trim_start_matches(':').starts_with(['-', '?']);
        match variables.get(name).map(String::as_str).or(default).filter(|_| plain) {
            Some(value) => out.push_str(value),
            None => out.push_str(&rest[at..at + 1 + end]),
        }
        rest = &after[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        commands(text, &NamedFiles::new()).into_iter().map(|one| one.words).collect()
    }

    #[test]
    fn a_script_reads_as_a_shell_would_run_it() {
        let script = "#!/bin/bash\nset -e\nexport A=\"1\"\nPORT=\"${PORT:-8000}\"\nargs=(\n  a/b  # the model\n  \
                      --x '{\"k\": 1}'\n)\nif ((R > 0)); then\n  args=(\n  c\n  )\nfi\nexec vllm serve \"${args[@]}\" \\\n --port \"$PORT\"\n";
        let found = commands(script, &NamedFiles::new());
        let last = found.last().unwrap();
        assert_eq!(last.words, ["vllm", "serve", "a/b", "--x", "{\"k\": 1}", "--port", "8000"]);
        assert_eq!(last.environment, [("A".to_owned(), "1".to_owned())]);
        assert_eq!(words("B=2 nohup llama-server -m x & "), [["llama-server", "-m", "x"]]);
        assert_eq!(words("# old: \\\nvllm serve \\\r\n  a \\"), [["vllm", "serve", "a"]]);
        assert_eq!(
            words("R=1\nif ((R > 0)); then\nx a\nelse\nx b\nfi\nif ((Q > 0)); then\nx c\nfi"),
            [["x", "a"]]
        );
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "\\PC{0,80}", lines in prop::collection::vec("[a-z =(){}$\"'\\\\\\[\\]@:-]{0,30}", 0..8)) {
            commands(&text, &NamedFiles::new());
            commands(&lines.join("\n"), &NamedFiles::new());
        }

        #[test]
        fn quoted_words_come_back(parts in prop::collection::vec("[ -~]{0,12}", 1..6)) {
            let plain = parts.iter().all(|part| !part.contains('$'));
            let quoted: Vec<String> = parts.iter().map(|part| crate::spec::writer::shell_word(part)).collect();
            let found = commands(&format!("program {}", quoted.join(" ")), &NamedFiles::new());
            if plain && !parts.iter().any(|part| ["&", "|", "&&", "||", ";", ">", "2>&1"].contains(&part.as_str())) {
                prop_assert_eq!(&found[0].words[1..], &parts[..]);
            }
        }
    }
}
