//! The field's language: words that a reader of a serving engine's documentation would not meet stay out of doc
//! comments, messages and documents.

use crate::source::{Source, files, root};

use super::{has_word, none};

/// Words and phrases of a private idiom, each with the field's word.
const IDIOM: [(&str, &str); 26] = [
    ("told", "shown, reported"),
    ("tell", "show, report"),
    ("tells", "shows, reports"),
    ("telling", "showing"),
    ("asked", "requested, given"),
    ("asks", "requires"),
    ("beside", "next to, in addition to"),
    ("besides", "in addition to"),
    ("apart", "disaggregated, separate"),
    ("sought", "required"),
    ("nobody", "no user"),
    ("whoever", "the caller"),
    ("at worst", "weakest"),
    ("so many", "a count"),
    ("comes to", "equals"),
    ("come to", "equal"),
    ("its like", "similar"),
    ("alike", "identical, equal"),
    ("one another", "each other"),
    ("stand", "be"),
    ("stands", "is"),
    ("four in five", "80 % interval"),
    ("4 in 5", "80 % interval"),
    ("nine in ten", "p90"),
    ("laid", "placed, sharded"),
    ("programme", "program"),
];

/// Prose of a source file: doc comments, comments, and string literals of several words; unit tests are left out.
fn prose(source: &Source) -> Vec<(usize, String)> {
    let product = source.text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    let lines = product.enumerate().flat_map(|(at, line)| {
        let bare = line.trim_start();
        let texts: Vec<String> = match bare.strip_prefix("//") {
            Some(comment) => vec![comment.trim_start_matches(['/', '!', ' ']).to_owned()],
            None => line
                .split('"')
                .skip(1)
                .step_by(2)
                .filter(|text| text.contains(' '))
                .map(str::to_owned)
                .collect(),
        };
        texts.into_iter().map(move |text| (at + 1, text))
    });
    lines.collect()
}

/// Prose of a document: no code blocks.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut code = false;
    let kept = text.lines().enumerate().filter(|(_, line)| {
        code ^= line.trim_start().starts_with("```");
        !code
    });
    kept.map(|(at, line)| (at + 1, line.to_owned())).collect()
}

/// `text` without identifiers in backticks, braces or brackets.
fn without_names(text: &str) -> String {
    let mut out = String::new();
    let mut ends: Vec<char> = Vec::new();
    for c in text.chars() {
        match (c, ends.last()) {
            (c, Some(end)) if c == *end => drop(ends.pop()),
            ('`', _) => ends.push('`'),
            ('{', _) => ends.push('}'),
            ('[', _) => ends.push(']'),
            (_, None) => out.push(c),
            _ => {}
        }
    }
    out
}

/// The idioms in one line of prose.
fn faults<'a>(name: &'a str, at: usize, text: &'a str) -> impl Iterator<Item = String> + 'a {
    let plain = without_names(text).to_lowercase();
    let headless = text.trim_start_matches(['-', '#', ' ']).starts_with("What ") && !plain.contains('?');
    let headless = headless.then(|| format!("{name}:{at}: headless `What …`: {text}"));
    let idioms = IDIOM.iter().filter(move |(word, _)| has_word(&plain, word));
    idioms.map(move |(word, field)| format!("{name}:{at}: `{word}` ({field}): {text}")).chain(headless)
}

#[test]
fn messages_and_doc_comments_speak_the_fields_language() {
    let sources = files("src", "rs");
    let found = sources.iter().flat_map(|source| {
        prose(source).into_iter().flat_map(|(at, text)| faults(&source.name, at, &text).collect::<Vec<_>>())
    });
    none(&found.collect::<Vec<_>>());
}

#[test]
fn documents_speak_the_fields_language() {
    let read = |name: &str| Source {
        name: name.to_owned(),
        text: std::fs::read_to_string(root().join(name)).expect("a document of the project"),
    };
    let own = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "hardware/README.md"].map(read);
    let found = own.into_iter().chain(files("docs", "md")).flat_map(|source| {
        let lines = paragraphs(&source.text);
        lines
            .iter()
            .flat_map(|(at, text)| faults(&source.name, *at, text).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    });
    none(&found.collect::<Vec<_>>());
}

/// The same words, and those of a search that speaks of itself, inside the names of the code.
const NAMES: [(&str, &str); 21] = [
    ("told", "shown, given"),
    ("tells", "shows"),
    ("asked", "requested"),
    ("asks", "requests"),
    ("beside", "next to"),
    ("besides", "also"),
    ("apart", "disaggregated, separate"),
    ("laid", "layouts, placed"),
    ("duty", "role"),
    ("room", "free bytes, headroom"),
    ("rooms", "free bytes, headroom"),
    ("pace", "TPOT limit, tokens per second"),
    ("paces", "TPOT limits"),
    ("hair", "tolerance, margin"),
    ("looks", "required metrics"),
    ("receipt", "certificate"),
    ("outruns", "exceeds"),
    ("richest", "largest"),
    ("lighter", "smaller load"),
    ("whoever", "caller"),
    ("aims", "objective terms"),
];

/// The words of the names in a line of code: `told_by`, `ToldBy` and `TOLD_BY` have two each.
fn words(code: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut last = ' ';
    for c in code.chars() {
        if !c.is_ascii_alphabetic() || c.is_uppercase() && last.is_lowercase() {
            words.push(String::new());
        }
        if c.is_ascii_alphabetic() {
            words.last_mut().unwrap().push(c.to_ascii_lowercase());
        }
        last = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn names_speak_the_fields_language() {
    let sources = files("src", "rs").into_iter().chain(files("tests", "rs"));
    let found = sources.flat_map(|source| {
        let of_line = |(at, code): (usize, String)| {
            let idioms = words(&code).into_iter().filter_map(|word| {
                let (word, field) = NAMES.iter().find(|(known, _)| *known == word)?;
                Some(format!("{}:{at}: `{word}` ({field}): {}", source.name, code.trim()))
            });
            idioms.collect::<Vec<_>>()
        };
        source.code().into_iter().flat_map(of_line).collect::<Vec<_>>()
    });
    none(&found.collect::<Vec<_>>());
}

#[test]
fn an_idiom_is_found_in_a_name() {
    assert_eq!(words("fn told_by(x: ToldBy) -> HAIR2"), ["fn", "told", "by", "x", "told", "by", "hair"]);
}

#[test]
fn an_idiom_is_found() {
    let of = |text: &str| faults("x", 1, text).count();
    assert_eq!(of("The number is told with its source"), 1);
    assert_eq!(of("What binds"), 1);
    assert_eq!(of("A field `told` of [`asked`]"), 0);
    assert_eq!(of("What is TTFT?"), 0);
}
