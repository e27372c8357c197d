//! The engine of the templates of launch files. A file has a language, and text enters it through a writer of that
//! language only: a template that prints a text by itself, or through the writer of another language, does not render.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Kwargs, Object, ObjectRepr, ValueKind};
use minijinja::{AutoEscape, Environment, ErrorKind, Output, State, UndefinedBehavior, Value};
use serde::{Serialize, Serializer};

use super::command::Word;
use crate::spec::error::Error;
use crate::spec::writer::{Language, Writer, WrittenText};

type Fault = minijinja::Error;

/// The templates, by the names under which they import each other.
const TEMPLATES: [(&str, &str); 15] = [
    ("shell/check", include_str!("templates/check.sh")),
    ("shell/script", include_str!("templates/script.sh")),
    ("shell/start", include_str!("templates/start.sh")),
    ("shell/request", include_str!("templates/request.sh")),
    ("shell/router", include_str!("templates/router.sh")),
    ("compose/compose", include_str!("templates/compose.yaml")),
    ("kubernetes/pod", include_str!("templates/pod.yaml")),
    ("kubernetes/kubernetes", include_str!("templates/kubernetes.yaml")),
    ("kubernetes/dynamo", include_str!("templates/dynamo.yaml")),
    ("kubernetes/llm-d", include_str!("templates/llm-d.yaml")),
    ("kubernetes/inference-pool", include_str!("templates/inference-pool.yaml")),
    ("kubernetes/autoscaling", include_str!("templates/autoscaling.yaml")),
    ("shell/slurm", include_str!("templates/slurm.sh")),
    ("shell/benchmark", include_str!("templates/benchmark.sh")),
    ("markdown/readme", include_str!("templates/readme.md")),
];

/// Filters of the engine that would mark any text as written.
const MARKING: [&str; 3] = ["safe", "escape", "e"];

pub struct Engine(Environment<'static>);

/// A text that a template of a language gave: another file of that language may contain it.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderedText {
    pub language: Language,
    pub text: String,
}

/// A fault of a template that the program or the catalogue brought.
fn fault(of: &str, error: &Fault) -> Error {
    Error::new("launch", format!("the template of {of}: {error:#}"), "a template that renders", "report this")
}

impl Engine {
    pub fn new() -> Result<Engine, Error> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        environment.set_auto_escape_callback(|name| match Language::of_template(name) {
            Some(language) => AutoEscape::Custom(language.name().into()),
            None => AutoEscape::None,
        });
        environment.set_formatter(print);
        MARKING.iter().for_each(|name| environment.remove_filter(name));
        for writer in Writer::ALL {
            environment.add_filter(
                writer.name(),
                move |value: Value, names: Kwargs| -> Result<Value, Fault> {
                    let written = written(writer, &value, &names)?;
                    Ok(Value::from_object(written))
                },
            );
        }
        environment.add_filter("pod_shell", |value: Value| -> Result<Value, Fault> {
            let words = words(&value)?;
            let parts = words.iter().map(|word| word.part(super::command::in_pod));
            Ok(Value::from_object(WrittenText::words_in_kubernetes(parts)))
        });
        for (name, text) in TEMPLATES {
            environment.add_template(name, text).map_err(|error| fault(name, &error))?;
        }
        Ok(Engine(environment))
    }

    pub fn file(&self, name: &str, context: Value) -> Result<String, Error> {
        let template = self.0.get_template(name).map_err(|error| fault(name, &error))?;
        template.render(context).map(|text| text + "\n").map_err(|error| fault(name, &error))
    }

    /// The text of a template of the catalogue, which writes `language`.
    pub fn text(
        &self,
        of: &str,
        language: Language,
        template: &str,
        context: &Value,
    ) -> Result<RenderedText, Error> {
        let name = format!("{}/{of}", language.name());
        let text = self.0.render_named_str(&name, template, context.clone());
        Ok(RenderedText { language, text: text.map_err(|error| fault(of, &error))? })
    }
}

impl Language {
    const fn name(self) -> &'static str {
        match self {
            Language::Shell => "shell",
            Language::Yaml => "yaml",
            Language::Compose => "compose",
            Language::Kubernetes => "kubernetes",
            Language::Markdown => "markdown",
            Language::Nginx => "nginx",
        }
    }

    fn named(name: &str) -> Option<Language> {
        Language::ALL.into_iter().find(|language| language.name() == name)
    }

    fn of_template(name: &str) -> Option<Language> {
        Language::named(name.split_once('/')?.0)
    }
}

/// Prints a value into a file: numbers, and text of a writer of its language.
fn print(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Fault> {
    let AutoEscape::Custom(name) = state.auto_escape() else {
        return Err(Fault::new(ErrorKind::InvalidOperation, "a template without a language"));
    };
    let language = Language::named(name);
    let fits = |written: &WrittenText| language.is_some_and(|language| written.fits(language));
    let numbers = |value: &Value| {
        let is_number = |item: Value| item.kind() == ValueKind::Number;
        value.kind() == ValueKind::Seq && value.try_iter().is_ok_and(|mut items| items.all(is_number))
    };
    let written = value.downcast_object_ref::<WrittenText>();
    let rendered = value.downcast_object_ref::<RenderedText>();
    let ours = match (written, rendered) {
        (Some(written), _) => fits(written),
        (_, Some(rendered)) => Some(rendered.language) == language,
        // A block of this template that was captured is of its language.
        _ => value.kind() == ValueKind::Number || value.is_safe() || numbers(value),
    };
    if !ours {
        let what = format!("`{value}` in a file of {name} without a writer of {name}, e.g. `| shell`");
        return Err(Fault::new(ErrorKind::InvalidOperation, what));
    }
    out.write_fmt(format_args!("{value}")).map_err(|_| ErrorKind::WriteFailure.into())
}

/// A value in the form of a writer; `names` are the values of our variables where they are known.
fn written(writer: Writer, value: &Value, names: &Kwargs) -> Result<WrittenText, Fault> {
    let refused = || {
        let what = format!("`{value}` has no form as `{}`", writer.name());
        Fault::new(ErrorKind::InvalidOperation, what)
    };
    if let Some(word) = value.downcast_object_ref::<Word>() {
        return word_of(writer, word, names)?.ok_or_else(refused);
    }
    if value.kind() == ValueKind::Seq {
        if writer == Writer::ShellWord {
            return Ok(WrittenText::words(words(value)?.iter().map(|word| word.part(|name| name.name()))));
        }
        let items: Option<Vec<String>> =
            value.try_iter()?.map(|item| item.as_str().map(str::to_owned)).collect();
        return items.and_then(|items| WrittenText::list(writer, &items)).ok_or_else(refused);
    }
    let text = match (value.as_str(), value.downcast_object_ref::<WrittenText>()) {
        (Some(text), _) => text.to_owned(),
        (_, Some(written)) => written.text().to_owned(),
        _ if value.kind() == ValueKind::Number => value.to_string(),
        _ => value.downcast_object_ref::<RenderedText>().ok_or_else(refused)?.text.clone(),
    };
    writer.write(&text).ok_or_else(refused)
}

fn word_of(writer: Writer, word: &Word, names: &Kwargs) -> Result<Option<WrittenText>, Fault> {
    let Word::Variable(variable, [before, after]) = word else {
        return Ok(if let Word::Text(text) = word { writer.write(text) } else { None });
    };
    let name = super::command::in_pod(*variable);
    let known: Option<Value> = names.get::<Option<Value>>(&name.to_lowercase())?;
    Ok(match (writer, known) {
        (_, Some(known)) => writer.write(&format!("{before}{known}{after}")),
        (Writer::ShellWord, None) => Some(WrittenText::words([word.part(|variable| variable.name())])),
        (Writer::KubernetesWord, None) => Some(WrittenText::kubernetes_variable(before, name, after)),
        _ => None,
    })
}

/// Words of a command, or a text as one.
fn words(value: &Value) -> Result<Vec<Word>, Fault> {
    let of = |item: Value| match item.as_str() {
        Some(text) => Ok(Word::Text(text.to_owned())),
        None => item.downcast_object_ref::<Word>().cloned().ok_or_else(|| {
            Fault::new(ErrorKind::InvalidOperation, format!("`{item}` is no word of a command"))
        }),
    };
    value.try_iter()?.map(of).collect()
}

/// Objects that templates see whole, so that a writer knows what they are.
macro_rules! whole {
    ($($kind:ty: $shown:expr;)*) => {$(
        impl Object for $kind {
            fn repr(self: &Arc<Self>) -> ObjectRepr {
                ObjectRepr::Plain
            }

            fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let shown: fn(&$kind) -> String = $shown;
                f.write_str(&shown(self))
            }
        }

        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Value::from_object(self.clone()).serialize(serializer)
            }
        }
    )*};
}

whole! {
    WrittenText: |written| written.text().to_owned();
    RenderedText: |rendered| rendered.text.clone();
    Word: Word::shell;
}
