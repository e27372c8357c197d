//! Programs in Python that start an engine: `LLM(...)` of vLLM and TensorRT-LLM, `Engine(...)` of SGLang, `LLMConfig(...)` of
//! Ray Serve. Only calls with literals and simple variables are read; the program is not run.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::container::{Container, Scope};
use super::keys::every_option;
use super::{ManifestReader, fault};
use crate::launch::settings_file::NamedFiles;
use crate::spec::error::Error;

/// How the arguments of a class become a command.
#[derive(Clone, Copy, PartialEq)]
enum EngineCall {
    /// Options of the server with the same names, after these words and the model.
    Options(&'static [&'static str]),
    /// Keys of the YAML file of `trtllm-serve`.
    Keys,
    /// A configuration of Ray Serve.
    Ray,
}

/// Classes of engines, by a part of the module that has them.
const ENGINES: [(&str, &str, EngineCall); 6] = [
    ("LLMConfig", "ray", EngineCall::Ray),
    ("LLM", "vllm", EngineCall::Options(&["vllm", "serve"])),
    ("AsyncEngineArgs", "vllm", EngineCall::Options(&["vllm", "serve"])),
    ("EngineArgs", "vllm", EngineCall::Options(&["vllm", "serve"])),
    ("LLM", "tensorrt_llm", EngineCall::Keys),
    ("Engine", "sglang", EngineCall::Options(&["python3", "-m", "sglang.launch_server", "--model-path"])),
];

/// Names of the argument that has the model.
const MODEL: [&str; 2] = ["model", "model_path"];

/// Beginnings of the first line of a program: a script that only contains one begins otherwise.
const FIRST_WORDS: [&str; 4] = ["import ", "from ", "\"\"\"", "'''"];

/// Whether the text is a program with a call of an engine.
pub(super) fn is_program(text: &str) -> bool {
    let shell = text.starts_with("#!") && !text.lines().next().is_some_and(|line| line.contains("python"));
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let begins = first.is_some_and(|line| FIRST_WORDS.iter().any(|word| line.starts_with(word)));
    !shell && begins && engine_call(text).is_some()
}

/// The first call of an engine: its kind, its name and the text after its bracket.
fn engine_call(text: &str) -> Option<(EngineCall, &'static str, &str)> {
    let imports: Vec<&str> =
        text.lines().filter(|line| line.starts_with("import ") || line.starts_with("from ")).collect();
    ENGINES.iter().find_map(|(class, module, kind)| {
        let imported = |line: &&str| {
            line.split([' ', '.', ',']).any(|word| word == *module)
                && (line.starts_with("import ") || line.contains(class))
        };
        let imported = imports.iter().any(imported);
        let call = format!("{class}(");
        let at = text.match_indices(&call).map(|(at, _)| at).find(|at| {
            let before = text[..*at].chars().next_back();
            before.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
        })?;
        imported.then(|| (*kind, *class, &text[at + call.len()..]))
    })
}

impl ManifestReader {
    /// Reads the call of an engine as the server with those options.
    pub(super) fn program(&mut self, text: &str) -> Result<NamedFiles, Error> {
        let Some((kind, class, call)) = engine_call(text) else { return Ok(NamedFiles::new()) };
        let mut known =
            self.variables.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        assignments(text, &mut known);
        let mut literals = Literals { rest: call, known: &known };
        let arguments = literals.arguments();
        if kind == EngineCall::Ray {
            return self.ray_serve(&Value::Object(arguments), class);
        }
        let Some(model) = MODEL.iter().find_map(|key| arguments.get(*key)?.as_str()) else {
            let fix = "pass the command of the server";
            return Err(fault(class, "a call without model=", "the model of an engine", fix));
        };
        let mut files = NamedFiles::new();
        let note = format!("the call {class}(...) of a program, read as a server with these options");
        let mut container = Container { notes: vec![note], ..Container::default() };
        if let EngineCall::Options(program) = kind {
            container.program = program.iter().copied().chain([model]).map(str::to_owned).collect();
            container.arguments = every_option(&arguments, &MODEL);
        } else {
            let keys: Map<String, Value> = arguments
                .iter()
                .filter(|(key, _)| !MODEL.contains(&key.as_str()))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
            let file = "arguments.yaml";
            files.insert(file.to_owned(), Value::Object(keys).to_string());
            container.program = ["trtllm-serve", model, "--config", file].map(str::to_owned).to_vec();
        }
        files
            .extend(self.container(container, &Scope { place: format!("{class}(...)"), ..Scope::default() }));
        Ok(files)
    }
}

/// The literals that names have before any indentation; a name that is given stays.
fn assignments(text: &str, known: &mut BTreeMap<String, Value>) {
    for (at, line) in line_starts(text) {
        let Some((name, _)) = line.split_once('=') else { continue };
        let (name, value) = (name.trim_end(), line.len() - name.len() - 1);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !begins || !name.chars().all(plain) || known.contains_key(name) {
            continue;
        }
        let start = at + line.len() - value;
        let value = Literals { rest: &text[start..], known }.value();
        if let Some(value) = value.filter(|value| !is_open(value)) {
            known.insert(name.to_owned(), value);
        }
    }
}

/// Every line with its place.
fn line_starts(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        at += line.len();
        (at - line.len(), line)
    })
}

/// Whether a value is an expression that is not read.
fn is_open(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with('$'))
}

/// Literals of Python at the beginning of a text.
struct Literals<'a> {
    rest: &'a str,
    known: &'a BTreeMap<String, Value>,
}

impl<'a> Literals<'a> {
    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\\');
            match self.rest.strip_prefix('#') {
                Some(comment) => self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest),
                None => return,
            }
        }
    }

    fn take(&mut self, mark: char) -> bool {
        self.skip();
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// `name=value, …)`: the named arguments up to the bracket; positional ones are the model, where they come first.
    fn arguments(&mut self) -> Map<String, Value> {
        let mut found = Map::new();
        while !self.take(')') && !self.rest.is_empty() {
            let before = self.rest;
            let name = self.name();
            if !name.is_empty() && self.take('=') && !self.rest.starts_with('=') {
                if let Some(value) = self.value() {
                    found.insert(name.to_owned(), value);
                }
            } else {
                self.rest = before;
                if let Some(value) = self.value().filter(|_| found.is_empty()) {
                    found.insert(MODEL[0].to_owned(), value);
                }
            }
            if !self.take(',') && !self.rest.starts_with(')') {
                return found;
            }
        }
        found
    }

    fn name(&mut self) -> &'a str {
        self.skip();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        name
    }

    /// A literal; an expression is a variable with its name, which nothing sets. `None` at the end of the text.
    fn value(&mut self) -> Option<Value> {
        self.skip();
        let from = self.rest;
        let value = self.literal()?;
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        if self.rest.is_empty() || self.rest.starts_with([',', ')', ']', '}', ':', '\n', '\r', '#', ';']) {
            return Some(value);
        }
        // More than a literal: an operator or a call.
        self.rest = from;
        let name: String = from.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        self.past_expression();
        Some(Value::from(format!("${}", if name.is_empty() { "expression" } else { &name })))
    }

    fn literal(&mut self) -> Option<Value> {
        let quote = self.rest.trim_start_matches(['r', 'f', 'b', 'u', 'R', 'F', 'B', 'U']);
        if quote.starts_with(['"', '\'']) && self.rest.len() - quote.len() <= 2 {
            let formatted = self.rest[..self.rest.len() - quote.len()].to_lowercase().contains('f');
            return self.text(quote, formatted);
        }
        match self.rest.chars().next()? {
            '[' | '(' => {
                let close = if self.rest.starts_with('[') { ']' } else { ')' };
                self.rest = &self.rest[1..];
                let mut items = Vec::new();
                while !self.take(close) && !self.rest.is_empty() {
                    items.extend(self.value());
                    if !self.take(',') && !self.rest.starts_with(close) {
                        return None;
                    }
                }
                Some(Value::Array(items))
            }
            '{' => self.dictionary(),
            c if c.is_ascii_digit() || c == '-' || c == '.' => self.number(),
            _ => self.named(),
        }
    }

    fn text(&mut self, quoted: &'a str, formatted: bool) -> Option<Value> {
        let triple = ["\"\"\"", "'''"].into_iter().find(|mark| quoted.starts_with(mark));
        let mark = triple.unwrap_or(&quoted[..1]);
        let (text, rest) = quoted[mark.len()..].split_once(mark)?;
        self.rest = rest;
        let open = formatted && text.contains('{');
        Some(Value::from(if open { format!("${}", text.replace(['{', '}'], "")) } else { text.to_owned() }))
    }

    fn number(&mut self) -> Option<Value> {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !"._-+".contains(c))
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        let digits = digits.replace('_', "");
        digits.parse::<i64>().map(Value::from).or_else(|_| digits.parse::<f64>().map(Value::from)).ok()
    }

    fn dictionary(&mut self) -> Option<Value> {
        self.rest = &self.rest[1..];
        let mut object = Map::new();
        while !self.take('}') && !self.rest.is_empty() {
            let key = self.value()?;
            if !self.take(':') {
                return None;
            }
            let value = self.value()?;
            object.insert(key.as_str().map_or(key.to_string(), str::to_owned), value);
            if !self.take(',') && !self.rest.starts_with('}') {
                return None;
            }
        }
        Some(Value::Object(object))
    }

    /// `True`, `None`, `dict(...)`, or a variable.
    fn named(&mut self) -> Option<Value> {
        let name = self.name();
        Some(match name {
            "" => return None,
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            "None" => Value::Null,
            "dict" if self.take('(') => Value::Object(self.arguments()),
            // A class of options has the form of an object.
            _ if name.ends_with("Config") && self.take('(') => Value::Object(self.arguments()),
            other => self.known.get(other).cloned().unwrap_or_else(|| Value::from(format!("${other}"))),
        })
    }

    /// Goes to the comma, bracket or line end after an expression.
    fn past_expression(&mut self) {
        let (mut depth, mut quote) = (0_usize, None);
        for (at, c) in self.rest.char_indices() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(c),
                (None, '(' | '[' | '{') => depth += 1,
                (None, ')' | ']' | '}' | ',' | '\n') if depth == 0 => {
                    self.rest = &self.rest[at..];
                    return;
                }
                (None, ')' | ']' | '}') => depth -= 1,
                _ => {}
            }
        }
        self.rest = "";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let mut reader = ManifestReader::default();
        reader.program(text).map_or_else(
            |fault| fault.to_string(),
            |_| reader.found.iter().map(|one| one.words.join(" ")).collect::<Vec<_>>().join("; "),
        )
    }

    #[test]
    fn calls_of_engines_are_servers() {
        for (text, line) in [
            (
                "from vllm import LLM, SamplingParams\nTP = 4\nllm = LLM(\n    \"a/b\",  # the model\n    \
                 tensor_parallel_size=TP, max_model_len=8_192,\n    enforce_eager=True)",
                "vllm serve a/b --tensor-parallel-size 4 --max-model-len 8192 --enforce-eager",
            ),
            (
                "import sglang as sgl\nif __name__ == '__main__':\n    e = sgl.Engine(model_path='a/b', tp_size=2)",
                "python3 -m sglang.launch_server --model-path a/b --tp-size 2",
            ),
            (
                "from vllm import EngineArgs\nargs = EngineArgs(model=\"a/b\", hf_overrides={\"x\": [1, 2.5]})",
                "vllm serve a/b --hf-overrides {\"x\":[1,2.5]}",
            ),
            (
                "from vllm import LLM\nimport torch\nllm = LLM(model=name, tensor_parallel_size=torch.cuda.device_count())",
                "vllm serve $name --tensor-parallel-size $torch",
            ),
            (
                "from tensorrt_llm import LLM\nLLM(model='a/b', tensor_parallel_size=2)",
                "trtllm-serve a/b --config arguments.yaml",
            ),
        ] {
            assert!(is_program(text), "{text}");
            assert_eq!(words(text), line);
        }
        assert!(!is_program("vllm serve a/b --hf-overrides 'LLM(x)'"));
        assert!(!is_program("cat > a.py <<E\nfrom vllm import LLM\nLLM('a/b')\nE\nvllm serve a/b"));
        assert!(words("from vllm import LLM\nLLM(tensor_parallel_size=2)").contains("without model"));
    }

    #[test]
    fn no_program_is_a_panic() {
        let text = "from vllm import LLM\nA = {'x': (1,), }\nllm = LLM('a/b', x=f'{A}', y=-1.5e3, z=[None, False], w=a.b(c)[0])";
        for end in 0..=text.len() {
            words(&text[..end]);
            words(&format!("from vllm import LLM\nLLM({}", &text[end..]));
        }
    }
}
