//! Commands in the text of a shell: one line, or a script with variables and arrays.

use std::collections::BTreeMap;

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

/// The commands of `text`, in order. Blocks of `if` and `for` are left out: they repeat or vary a command.
pub fn commands(text: &str) -> Vec<Process> {
    let mut shell = Shell::default();
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    for (number, line) in joined.lines().enumerate() {
        shell.line(number + 1, line.trim());
    }
    shell.found
}

#[derive(Default)]
struct Shell {
    variables: BTreeMap<String, String>,
    arrays: BTreeMap<String, Vec<String>>,
    exported: Vec<String>,
    open: Option<(String, Vec<String>)>,
    depth: usize,
    found: Vec<Process>,
}

impl Shell {
    fn line(&mut self, number: usize, line: &str) {
        if line.starts_with("#!") {
            // Another script begins.
            *self = Shell { found: std::mem::take(&mut self.found), ..Shell::default() };
            return;
        }
        let first = line.split_whitespace().next().unwrap_or_default();
        if self.open.is_none() {
            match first.trim_end_matches(';') {
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

/// The text with `$NAME`, `${NAME}` and `${NAME:-default}` replaced where they are known.
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
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        match variables.get(name).map(String::as_str).or(default) {
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
        commands(text).into_iter().map(|one| one.words).collect()
    }

    #[test]
    fn a_script_reads_as_a_shell_would_run_it() {
        let script = "#!/bin/bash\nset -e\nexport A=\"1\"\nPORT=\"${PORT:-8000}\"\nargs=(\n  a/b  # the model\n  \
                      --x '{\"k\": 1}'\n)\nif ((R > 0)); then\n  args=(\n  c\n  )\nfi\nexec vllm serve \"${args[@]}\" \\\n --port \"$PORT\"\n";
        let found = commands(script);
        let last = found.last().unwrap();
        assert_eq!(last.words, ["vllm", "serve", "a/b", "--x", "{\"k\": 1}", "--port", "8000"]);
        assert_eq!(last.environment, [("A".to_owned(), "1".to_owned())]);
        assert_eq!(words("B=2 nohup llama-server -m x & "), [["llama-server", "-m", "x"]]);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "\\PC{0,80}", lines in prop::collection::vec("[a-z =(){}$\"'\\\\\\[\\]@:-]{0,30}", 0..8)) {
            commands(&text);
            commands(&lines.join("\n"));
        }

        #[test]
        fn quoted_words_come_back(parts in prop::collection::vec("[ -~]{0,12}", 1..6)) {
            let plain = parts.iter().all(|part| !part.contains('$'));
            let quoted: Vec<String> = parts.iter().map(|part| crate::spec::writer::shell_word(part)).collect();
            let found = commands(&format!("program {}", quoted.join(" ")));
            if plain && !parts.iter().any(|part| ["&", "|", "&&", "||", ";", ">", "2>&1"].contains(&part.as_str())) {
                prop_assert_eq!(&found[0].words[1..], &parts[..]);
            }
        }
    }
}
