//! `/docs`: the OpenAPI document as a page that people read. No script, and nothing from elsewhere.

use std::sync::OnceLock;

use axum::response::{Html, IntoResponse, Response};
use minijinja::value::Serde;
use minijinja::{Environment, context};
use serde_json::Value;

use super::openapi::openapi;
use super::problem::{ProblemDocument, Refusal};

const TEMPLATE: &str = include_str!("routes_page.html");

/// `GET /docs`.
pub(super) async fn page() -> Result<Response, Refusal> {
    static PAGE: OnceLock<Option<String>> = OnceLock::new();
    let page = PAGE.get_or_init(|| rendered(&openapi()).ok());
    let bug = || {
        let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
        ProblemDocument::new(status, "a bug; please report it")
    };
    let page = page.as_deref().ok_or_else(bug)?;
    Ok(Html(page).into_response())
}

/// A field of a request, for the page.
fn fields(document: &Value, operation: &Value) -> Vec<Value> {
    let pointer = "/requestBody/content/application~1json/schema/$ref";
    let name = operation.pointer(pointer).and_then(Value::as_str).and_then(|text| text.rsplit('/').next());
    let schema = name.and_then(|name| document["components"]["schemas"].get(name));
    let properties = schema.and_then(|schema| schema["properties"].as_object());
    let required = schema.map(|schema| &schema["required"]);
    let each = properties.into_iter().flatten().map(|(key, value)| {
        let needed =
            required.and_then(Value::as_array).is_some_and(|keys| keys.contains(&Value::from(key.as_str())));
        serde_json::json!({"name": key, "about": value["description"], "required": needed})
    });
    each.collect()
}

fn rendered(document: &Value) -> Result<String, minijinja::Error> {
    let mut routes = Vec::new();
    for (path, operations) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            routes.push(serde_json::json!({
                "method": method.to_uppercase(),
                "path": path,
                "about": operation["summary"],
                "fields": fields(document, operation),
                "parameters": operation["parameters"],
            }));
        }
    }
    let mut environment = Environment::new();
    environment.add_template("routes_page.html", TEMPLATE)?;
    environment.get_template("routes_page.html")?.render(context! {
        routes => Serde(routes),
        version => env!("CARGO_PKG_VERSION"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_on_the_page_and_markup_is_text() {
        let page = rendered(&openapi()).unwrap().replace("&#x2f;", "/");
        for path in openapi()["paths"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("<code>{path}</code>")), "{path}");
        }
        let hostile = serde_json::json!({"paths": {"/x": {"get": {"summary": "<script>alert(1)</script>"}}}});
        let page = rendered(&hostile).unwrap();
        assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"), "{page}");
    }
}
