//! Answers as HTML: one template per request over the JSON of its answer. Texts are escaped by construction.
//!
//! A part of a page is a sequence of `<section data-view>`; a report file has all of them below each other.

pub mod bars;
pub mod context;

use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value as TemplateValue, context};
use serde::Deserialize;
use serde_json::Value;

use super::number::{change, count, digits, gib, percent, plain, requests, time};
use super::pretty::pretty;
use super::robustness::SloOdds;
use super::svg::palette::page_style;
use super::svg::{SvgPanel, escaped};
use super::table::grouped;
use crate::spec::error::Error;
use crate::spec::visible::visible;

static TEMPLATES: Dir = include_dir!("$CARGO_MANIFEST_DIR/src/report/page/templates");
/// The style sheet of the page and of report files; colours of pictures are those of their palette.
const STYLE: &str = include_str!("page/page.css");
/// Longest name of a picture, in characters.
const LONGEST: usize = 300;

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    add_filters(&mut environment);
    for file in TEMPLATES.files() {
        let (Some(name), Some(text)) = (file.path().to_str(), file.contents_utf8()) else { continue };
        // A faulty template is found when it is used; a test uses each.
        let _ = environment.add_template(name, text);
    }
    environment
});

/// The style sheet: tokens, rules, and the colours of pictures.
pub fn style() -> String {
    format!("{STYLE}{}", page_style())
}

/// A template of the page over a context.
pub fn rendered_template(name: &str, context: TemplateValue) -> Result<String, Error> {
    let template = ENVIRONMENT.get_template(name);
    template.and_then(|template| template.render(context)).map_err(|fault| faulty(&fault))
}

fn faulty(fault: &minijinja::Error) -> Error {
    Error::new(
        "html",
        format!("{fault:#}"),
        "a page of the answer",
        "report it: the page of this answer is faulty",
    )
}

/// A template of another module over a context, with the filters of this one.
pub fn rendered_text(name: &str, text: &str, context: TemplateValue) -> Result<String, Error> {
    ENVIRONMENT.render_named_str(name, text, context).map_err(|fault| faulty(&fault))
}

/// Whether the question `name` has a template of its own.
pub fn has_template(name: &str) -> bool {
    ENVIRONMENT.get_template(&format!("{name}.html")).is_ok()
}

/// The answer to the question `name` as a part of a page, by its template and `page`; without a template, its pictures
/// and its text.
pub fn section(
    name: &str,
    answer: &Value,
    page: TemplateValue,
    text: impl FnOnce() -> String,
) -> Result<String, Error> {
    let answer = TemplateValue::from(Serde(answer));
    if has_template(name) {
        return rendered_template(&format!("{name}.html"), context! { answer, ..page });
    }
    rendered_template("_answer.html", context! { name, answer, text => text(), ..page })
}

/// The answer as a page that needs nothing else.
pub fn document(
    name: &str,
    answer: &Value,
    page: TemplateValue,
    text: impl FnOnce() -> String,
) -> Result<String, Error> {
    let title = context::title(answer).unwrap_or_else(|| name.to_owned());
    let body = TemplateValue::from_safe_string(section(name, answer, page, text)?);
    let style = TemplateValue::from_safe_string(style());
    rendered_template("_report.html", context! { title, body, style })
}

/// A picture inside a page, whose style sheet colours it.
pub fn embedded(panel: &SvgPanel, label: &str) -> TemplateValue {
    let SvgPanel { width, height, body } = panel;
    TemplateValue::from_safe_string(format!(
        "<svg class=\"picture\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         role=\"img\" aria-label=\"{}\">\n{body}</svg>\n",
        escaped(label, LONGEST)
    ))
}

fn add_filters(environment: &mut Environment) {
    environment.add_filter("digits", digits);
    environment.add_filter("plain", plain);
    environment.add_filter("change", change);
    environment.add_filter("time", time);
    environment.add_filter("gib", gib);
    environment.add_filter("percent", percent);
    environment.add_filter("requests", requests);
    environment.add_filter("count", |number: u64, noun: &str| count(number, noun));
    environment.add_filter("visible", |text: &str| visible(text).into_owned());
    // Plain texts, which a template escapes as any other; the built-in filter marks its own as markup.
    environment.add_filter("json", |value: TemplateValue| in_json(&value).to_string());
    environment.add_filter("pretty", |value: TemplateValue| pretty(&in_json(&value)));
    environment.add_filter("odds", |value: TemplateValue| {
        SloOdds::deserialize(&value).map_or_else(|_| String::new(), |odds| odds.words())
    });
    environment.add_filter("grouped", grouped);
    environment.add_filter("words", |text: &str| text.replace('_', " "));
}

fn in_json(value: &TemplateValue) -> Value {
    Value::deserialize(value).unwrap_or_default()
}
