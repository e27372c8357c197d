//! Laws of the writers and of the engine of templates.

use std::process::Command;

use fastrand::Rng;
use mantile::launch::command::Word;
use mantile::launch::engine::Engine;
use mantile::launch::settings::Variable;
use mantile::spec::visible::acts;
use mantile::spec::writer::{Language, Writer, WrittenText};
use minijinja::value::Serde;
use minijinja::{Value as TemplateValue, context};
use serde_json::Value;

use super::{HIDDEN, PAYLOADS};
use crate::draw::cases;

/// A text of payloads and of any characters.
fn text(rng: &mut Rng) -> String {
    const PARTS: [&str; 24] = [
        "$",
        "$(",
        "${",
        ")",
        "}",
        "`",
        "'",
        "\"",
        "\\",
        "#",
        " ",
        ":",
        "\n",
        "|",
        "*",
        "_",
        "{{",
        "%",
        "&",
        "-",
        "a",
        "1",
        "é",
        "\u{1f600}",
    ];
    match rng.u8(..4) {
        0 => (*rng.choice(PAYLOADS.iter()).unwrap()).to_owned(),
        1 => (*rng.choice(HIDDEN.iter()).unwrap()).to_owned(),
        2 => (0..rng.usize(0..9)).map(|_| *rng.choice(PARTS.iter()).unwrap()).collect(),
        _ => (0..rng.usize(0..9)).map(|_| rng.char(..)).filter(|c| *c != '\0').collect(),
    }
}

fn draws(usual: u64, seed: u64) -> Vec<String> {
    let mut rng = Rng::with_seed(seed);
    let known = PAYLOADS.iter().chain(&HIDDEN).map(|text| (*text).to_owned());
    known.chain((0..cases(usual)).map(|_| text(&mut rng))).collect()
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|fault| panic!("{text:?}: {fault}"))
}

/// Kubernetes replaces `$(NAME)` of known names, and `$$` by `$`.
fn expanded(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        rest = match (
            after.strip_prefix('$'),
            after.strip_prefix('(').and_then(|inner| inner.split_once(')')),
        ) {
            (Some(after), _) => {
                out.push('$');
                after
            }
            (_, Some((_, after))) => {
                out.push_str("EXPANDED");
                after
            }
            _ => {
                out.push('$');
                after
            }
        };
    }
    out + rest
}

/// Law 1: what a writer writes reads back as the same text, in one line, and nothing in it acts on a terminal.
#[test]
fn every_writer_reads_back() {
    for text in draws(300, 1) {
        let of = |writer: Writer| writer.write(&text).unwrap().to_string();
        for writer in Writer::ALL.into_iter().filter(|writer| *writer != Writer::Plain) {
            assert!(!of(writer).chars().any(acts), "{writer:?} {text:?}: {:?}", of(writer));
        }
        assert_eq!(yaml(&of(Writer::YamlScalar)), Value::from(text.as_str()), "{text:?}");
        assert_eq!(
            yaml(&format!("a: {} {}", of(Writer::YamlScalar), of(Writer::Comment)))["a"],
            text.as_str()
        );
        let composed = yaml(&of(Writer::ComposeScalar));
        let composed = composed.as_str().unwrap();
        assert_eq!(composed.replace("$$", "$"), text);
        assert!(!composed.replace("$$", "").contains('$'), "compose replaces in {text:?}");
        assert_eq!(expanded(yaml(&of(Writer::KubernetesWord)).as_str().unwrap()), text, "{text:?}");
        if let Some(plain) = Writer::Plain.write(&text) {
            assert_eq!(shlex::split(plain.text()).unwrap(), [text.as_str()]);
            assert_eq!(plain.text(), text);
        }
        let message = of(Writer::Message);
        assert!(!message.contains(['$', '`', '"', '\\', '{', '}', '\'']), "{message}");
        let cell = of(Writer::MarkdownText);
        assert!(
            !cell.replace("\\\\", "").replace("\\|", "").replace("\\`", "").contains(['|', '`']),
            "{cell}"
        );
    }
}

/// Law 2: a shell gives every word to its program as it was, also as the value of an assignment, in any locale.
#[test]
#[cfg(unix)]
fn a_shell_takes_every_word_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for texts in draws(100, 2).chunks(100) {
        let words: Vec<String> =
            texts.iter().map(|text| Writer::ShellWord.write(text).unwrap().to_string()).collect();
        let comment: Vec<String> =
            texts.iter().map(|text| Writer::Comment.write(text).unwrap().to_string()).collect();
        let mut script = format!("set -eu\nprintf '%s\\0' {}\n{}\n", words.join(" "), comment.join("\n"));
        // `:?` refuses an empty value.
        for (word, text) in words.iter().zip(texts).filter(|(_, text)| !text.is_empty()) {
            let message = Writer::Message.write(text).unwrap();
            script += &format!("X={word}  {}\nX=\"${{X:?{message}}}\"\nprintf '%s\\0' \"$X\"\n", comment[0]);
        }
        for locale in ["C", "C.UTF-8"] {
            let mut shell = Command::new("bash");
            let done = shell
                .args(["-c", &script])
                .env("LC_ALL", locale)
                .current_dir(folder.path())
                .output()
                .unwrap();
            assert!(done.status.success(), "{}\n{script}", String::from_utf8_lossy(&done.stderr));
            let out = String::from_utf8(done.stdout).unwrap();
            let found: Vec<&str> = out.split_terminator('\0').collect();
            let all = || texts.iter().map(String::as_str);
            let wanted: Vec<&str> = all().chain(all().filter(|text| !text.is_empty())).collect();
            assert_eq!(found, wanted);
            assert_eq!(folder.path().read_dir().unwrap().count(), 0, "a file appeared");
        }
    }
}

/// Law 3: a template that prints text without a writer of its language does not render, whatever is done to the text.
#[test]
fn no_template_prints_a_text_by_itself() {
    let engine = Engine::new().unwrap();
    let words = [Word::Text("a b".into()), Word::Variable(Variable::Port, Default::default())];
    let seen = context! { x => "a b", list => ["a b"], words => Serde(&words), n => 3 };
    let render = |language: Language, template: &str| engine.text("a test", language, template, &seen);
    for language in Language::ALL {
        let raw = [
            "{{ x }}",
            "{{ list }}",
            "{{ list | join(', ') }}",
            "{{ x ~ 'b' }}",
            "{{ words[0] }}",
            "{{ words }}",
            "{{ 'constant' }}",
            "{{ x | upper }}",
            "{{ x | safe }}",
            "{{ x | escape }}",
            "{{ unknown }}",
            "{{ none }}",
            "{% set y %}{{ x }}{% endset %}{{ y }}",
            "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(x) }}",
            "{% set y %}ours{% endset %}{{ y ~ x }}",
            "{% set y %}ours{% endset %}{{ y | replace('o', x) }}",
            "{% autoescape false %}{{ x }}{% endautoescape %}",
            "{{ [n, x] }}",
            "{{ {'a': n} }}",
            "{{ x[:1] }}",
        ];
        for template in raw {
            assert!(render(language, template).is_err(), "{language:?}: {template}");
        }
        assert_eq!(render(language, "{{ n }} {% set y %}ours{% endset %}{{ y }}").unwrap().text, "3 ours");
        for writer in Writer::ALL.into_iter().filter(|writer| *writer != Writer::Plain) {
            let written = writer.write("a b").unwrap();
            let template = format!("{{{{ x | {} }}}}", writer.name());
            assert_eq!(
                render(language, &template).is_ok(),
                written.fits(language),
                "{language:?}: {template}"
            );
            let changed = format!("{{{{ (x | {}) ~ x }}}}", writer.name());
            assert!(render(language, &changed).is_err(), "{language:?}: {changed}");
            let cut = format!("{{{{ (x | {}) | replace('a', 'b') }}}}", writer.name());
            assert!(render(language, &cut).is_err(), "{language:?}: {cut}");
        }
    }
    let rendered = render(Language::Shell, "echo {{ x | shell }}").unwrap();
    let again = |language| engine.text("a test", language, "{{ y }}", &context! { y => Serde(&rendered) });
    assert_eq!(again(Language::Shell).unwrap().text, "echo 'a b'");
    assert!(again(Language::Yaml).is_err(), "a script in YAML without a writer");
}

/// Law 4: a word of a command is the same in a script, in compose and in Kubernetes, and only our variables are replaced.
#[test]
fn a_word_is_the_same_in_every_container() {
    let engine = Engine::new().unwrap();
    let rendered = |language, template: &str, seen: &TemplateValue| {
        engine.text("a test", language, template, seen).unwrap().text
    };
    for text in draws(200, 4) {
        let port = Word::Variable(Variable::TransferPort, [text.clone(), text.clone()]);
        let seen = context! { word => Serde(Word::Text(text.clone())), port => Serde(port) };
        let kubernetes = |template: &str| {
            expanded(yaml(&rendered(Language::Kubernetes, template, &seen)).as_str().unwrap())
        };
        assert_eq!(kubernetes("{{ word | kubernetes(transfer_port=7) }}"), text);
        assert_eq!(kubernetes("{{ port | kubernetes(transfer_port=7) }}"), format!("{text}7{text}"));
        assert_eq!(kubernetes("{{ port | kubernetes }}"), format!("{text}EXPANDED{text}"));
        let block = rendered(Language::Kubernetes, "{{ [word] | pod_shell }}", &seen);
        assert_eq!(expanded(&block), Writer::ShellWord.write(&text).unwrap().text(), "{text:?}");
        let composed = yaml(&rendered(Language::Compose, "{{ port | compose(transfer_port=7) }}", &seen));
        assert_eq!(composed.as_str().unwrap().replace("$$", "$"), format!("{text}7{text}"));
        assert!(engine.text("a test", Language::Compose, "{{ port | compose }}", &seen).is_err());
    }
    let list = WrittenText::list(Writer::YamlScalar, &["a: b".to_owned(), "#".to_owned()]).unwrap();
    assert_eq!(yaml(list.text()), serde_json::json!(["a: b", "#"]));
}
