//! Filters of the templates: numbers as the other reports write them.

use minijinja::Environment;
use minijinja::Value as TemplateValue;
use serde::Deserialize;
use serde_json::Value;

use crate::report::number::{change, count, digits, gib, percent, plain, requests, time};
use crate::report::pretty::pretty;
use crate::spec::visible::visible;

pub fn add(environment: &mut Environment) {
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
    environment.add_filter("words", |text: &str| text.replace('_', " "));
}

fn in_json(value: &TemplateValue) -> Value {
    Value::deserialize(value).unwrap_or_default()
}
