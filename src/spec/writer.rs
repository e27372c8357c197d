//! The writers of other languages: text of others enters a file of a language through one of these, and nothing else.

use std::fmt::{self, Write};

use super::visible::{acts, visible};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Shell,
    /// Plain YAML, as runtimes and routers read it.
    Yaml,
    /// Docker compose: YAML whose scalars replace `$NAME`, and `$$` by `$`.
    Compose,
    /// Objects of Kubernetes: YAML whose commands and variables replace `$(NAME)`, and `$$` by `$`.
    Kubernetes,
    Markdown,
    Nginx,
}

impl Language {
    pub const ALL: [Language; 6] = [
        Language::Shell,
        Language::Yaml,
        Language::Compose,
        Language::Kubernetes,
        Language::Markdown,
        Language::Nginx,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// A word of a shell, also as the value of an assignment.
    ShellWord,
    /// A comment from `#` to the end of its line.
    Comment,
    /// A message of `${NAME:?message}`. Characters with a meaning there become `?`.
    Message,
    /// A scalar of YAML, in which nothing is replaced.
    YamlScalar,
    ComposeScalar,
    /// A word of a command, or the value of a variable, of Kubernetes.
    KubernetesWord,
    /// Text in a line or a cell of Markdown.
    MarkdownText,
    /// Code in a line of Markdown.
    MarkdownCode,
    /// Code in a cell of a table of Markdown.
    MarkdownCell,
    /// A name or path of letters, digits and `-_./:`, which means itself in every language; other texts have no such form.
    Plain,
}

/// Every writer with its name as a filter of templates, and the languages that it writes.
const WRITERS: [(Writer, &str, &[Language]); 10] = {
    use Language::{Compose, Kubernetes, Markdown, Shell, Yaml};
    [
        (Writer::ShellWord, "shell", &[Shell]),
        (Writer::Comment, "comment", &[Shell, Yaml, Compose, Kubernetes]),
        (Writer::Message, "message", &[Shell, Compose]),
        (Writer::YamlScalar, "yaml", &[Yaml, Kubernetes]),
        (Writer::ComposeScalar, "compose", &[Compose]),
        (Writer::KubernetesWord, "kubernetes", &[Kubernetes]),
        (Writer::MarkdownText, "markdown", &[Markdown]),
        (Writer::MarkdownCode, "code", &[Markdown]),
        (Writer::MarkdownCell, "cell", &[Markdown]),
        (Writer::Plain, "plain", &Language::ALL),
    ]
};

crate::rows_by_variant!(WRITERS);

impl Writer {
    pub const ALL: [Writer; WRITERS.len()] = {
        let (mut all, mut at) = ([Writer::Plain; WRITERS.len()], 0);
        while at < all.len() {
            all[at] = WRITERS[at].0;
            at += 1;
        }
        all
    };

    /// Its name as a filter of templates.
    pub const fn name(self) -> &'static str {
        WRITERS[self as usize].1
    }

    const fn languages(self) -> &'static [Language] {
        WRITERS[self as usize].2
    }

    /// `text` in the form of this writer; `None` where it has no such form.
    pub fn write(self, text: &str) -> Option<WrittenText> {
        let written = match self {
            Writer::ShellWord => shell_word(text),
            Writer::Comment => format!("# {}", visible(text)),
            Writer::Message => message(text),
            Writer::YamlScalar => yaml_scalar(text),
            Writer::ComposeScalar | Writer::KubernetesWord => yaml_scalar(&text.replace('$', "$$")),
            Writer::MarkdownText => markdown_text(text),
            Writer::MarkdownCode => markdown_code(text),
            // The border of a cell ends code too; the sign before it is no part of the code.
            Writer::MarkdownCell => markdown_code(text).replace('|', "\\|"),
            Writer::Plain => {
                return is_plain(text).then(|| WrittenText { writer: self, text: text.to_owned() });
            }
        };
        Some(WrittenText { writer: self, text: written })
    }
}

/// Text in the form of a writer. Only this module makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenText {
    writer: Writer,
    text: String,
}

impl WrittenText {
    /// Whether a file of `language` may contain it.
    pub fn fits(&self, language: Language) -> bool {
        self.writer.languages().contains(&language)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Words of a shell, one after another.
    pub fn words<'a>(words: impl IntoIterator<Item = ShellPart<'a>>) -> WrittenText {
        let words: Vec<String> = words.into_iter().map(|word| word.written(shell_word)).collect();
        WrittenText { writer: Writer::ShellWord, text: words.join(" ") }
    }

    /// Words of a shell in a script that an object of Kubernetes holds as a block.
    pub fn words_in_kubernetes<'a>(words: impl IntoIterator<Item = ShellPart<'a>>) -> WrittenText {
        let written = |text: &str| shell_word(text).replace('$', "$$");
        let words: Vec<String> = words.into_iter().map(|word| word.written(written)).collect();
        WrittenText { writer: Writer::KubernetesWord, text: words.join(" ") }
    }

    /// A word of a command of Kubernetes with the value of one of our variables in it.
    pub fn kubernetes_variable(before: &str, name: &'static str, after: &str) -> WrittenText {
        let [before, after] = [before, after].map(|text| text.replace('$', "$$"));
        let text = yaml_scalar(&format!("{before}$({name}){after}"));
        WrittenText { writer: Writer::KubernetesWord, text }
    }

    /// The value of one of our variables as a word of a shell.
    pub fn shell_variable(name: &'static str) -> WrittenText {
        WrittenText { writer: Writer::ShellWord, text: format!("\"${name}\"") }
    }

    /// The address of a process on the host of that number, which a script knows as `HOST_0`.
    pub fn address_on(host: u64, port: u64) -> WrittenText {
        WrittenText { writer: Writer::Plain, text: format!("${{HOST_{host}}}:{port}") }
    }

    /// An address as a URL in a word of a shell.
    pub fn url(address: &WrittenText) -> WrittenText {
        WrittenText { writer: Writer::ShellWord, text: format!("\"http://{address}\"") }
    }

    /// Several scalars of one writer as a list in a line.
    pub fn list(writer: Writer, items: &[String]) -> Option<WrittenText> {
        let items: Option<Vec<WrittenText>> = items.iter().map(|item| writer.write(item)).collect();
        let items: Vec<String> = items?.into_iter().map(|item| item.text).collect();
        Some(WrittenText { writer, text: format!("[{}]", items.join(",")) })
    }
}

impl fmt::Display for WrittenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A word of a shell: a text, or the value of one of our variables with text around it.
#[derive(Clone, Copy, Debug)]
pub struct ShellPart<'a> {
    /// The text, or that before the variable.
    pub text: &'a str,
    /// The name of the variable, and the text after it.
    pub variable: Option<(&'static str, &'a str)>,
}

impl ShellPart<'_> {
    fn written(self, word: impl Fn(&str) -> String) -> String {
        let Some((name, after)) = self.variable else { return word(self.text) };
        let [before, after] = [self.text, after].map(in_double_quotes);
        format!("\"{before}${{{name}}}{after}\"")
    }
}

fn in_double_quotes(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for character in visible(text).chars() {
        if matches!(character, '\\' | '"' | '$' | '`') {
            written.push('\\');
        }
        written.push(character);
    }
    written
}

/// A word of a command as a shell reads it back: quoted where it has other characters than plain ones. It is one line,
/// and nothing in it acts on a terminal.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| (c.is_alphanumeric() && !acts(c)) || "-_.,/:@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if !word.chars().any(acts) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    let mut quoted = String::from("$'");
    for character in word.chars() {
        match character {
            '\'' | '\\' => quoted.extend(['\\', character]),
            // Bytes, not code points: these depend on the locale.
            hidden if acts(hidden) => {
                for byte in hidden.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a string cannot fail. Octal digits end after three.
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            shown => quoted.push(shown),
        }
    }
    quoted + "'"
}

/// Words for a person between `:?` and `}` of a shell or of docker compose.
fn message(text: &str) -> String {
    let plain = |c: char| (c.is_alphanumeric() && !acts(c)) || " -_.,:;/()+=@%#".contains(c);
    text.chars().map(|c| if plain(c) { c } else { '?' }).collect()
}

/// A scalar of YAML between double quotes; every parser reads back the same text.
fn yaml_scalar(text: &str) -> String {
    let mut written = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => written.extend(['\\', character]),
            '\n' => written.push_str("\\n"),
            '\t' => written.push_str("\\t"),
            '\r' => written.push_str("\\r"),
            // Writing to a string cannot fail.
            hidden if acts(hidden) => {
                let _ = match u32::from(hidden) {
                    code @ 0..=0xffff => write!(written, "\\u{code:04x}"),
                    code => write!(written, "\\U{code:08x}"),
                };
            }
            shown => written.push(shown),
        }
    }
    written + "\""
}

/// Text in a line of Markdown: no code, emphasis, link, picture, tag, entity or border of a cell begins in it.
fn markdown_text(text: &str) -> String {
    let shown = visible(text);
    let characters: Vec<char> = shown.chars().collect();
    let mut written = String::with_capacity(shown.len());
    for (at, character) in characters.iter().enumerate() {
        let is_letter =
            |at: Option<usize>| at.and_then(|at| characters.get(at)).is_some_and(|c| c.is_alphanumeric());
        let marks = match character {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '&' | '~' | '!' | '$' => true,
            // Inside a word it is a letter.
            '_' => !(is_letter(at.checked_sub(1)) && is_letter(Some(at + 1))),
            // At the start they would begin a list or a heading.
            '#' | '-' | '+' | '=' => at == 0,
            '.' | ')' => at > 0 && characters[..at].iter().all(char::is_ascii_digit),
            _ => false,
        };
        if marks {
            written.push('\\');
        }
        written.push(*character);
    }
    written
}

/// Code in a line of Markdown: between more backticks than it has in a row.
fn markdown_code(text: &str) -> String {
    let shown = visible(text);
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if shown.starts_with(['`', ' ']) || shown.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{shown}{pad}{fence}")
}

/// Whether a text means itself in every language: a name that begins with a letter or a digit, or a path.
fn is_plain(text: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/') && text.chars().all(known)
}

/// Lines of text unchanged in a document in Markdown: between fences that are longer than any run of backticks in it.
pub fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}text\n{text}{end}{fence}\n")
}
