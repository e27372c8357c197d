//! Answers as HTML: one template per request over the JSON of its answer. Texts are escaped by construction.
//!
//! A part of a page is a sequence of `<section data-view>`; a report file has all of them below each other.

pub mod context;
mod filters;

use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value as TemplateValue, context};
use serde_json::Value;

use super::svg::palette::page_style;
use super::svg::{SvgPanel, escaped};
use crate::spec::error::Error;

static TEMPLATES: Dir = include_dir!("$CARGO_MANIFEST_DIR/src/report/page/templates");
/// The style sheet of the page and of report files; colours of pictures are those of their palette.
const STYLE: &str = include_str!("page/page.css");
/// Longest name of a picture, in characters.
const LONGEST: usize = 300;

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    filters::add(&mut environment);
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
