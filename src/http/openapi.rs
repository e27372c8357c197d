//! The OpenAPI document, assembled from the schemas of the table of requests.

use axum::Json;
use axum::response::IntoResponse;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde_json::{Map, Value, json};

use super::answer::served;
use super::estimator::openapi::estimator_routes;
use super::mantile::openapi::mantile_routes;
use super::negotiate::other_media_types;
use super::problem::ProblemDocument;

pub(super) struct PublishedRoute {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) id: String,
    pub(super) about: &'static str,
    /// Parameters: name, place and meaning.
    pub(super) parameters: &'static [(&'static str, &'static str, &'static str)],
    pub(super) request: Option<Schema>,
    pub(super) answer: Option<Schema>,
    /// Problems that other routes do not have: status and meaning.
    pub(super) problems: &'static [(&'static str, &'static str)],
}

impl PublishedRoute {
    pub(super) fn new(method: &'static str, path: &str, id: &str, about: &'static str) -> PublishedRoute {
        let (path, id) = (path.to_owned(), id.to_owned());
        PublishedRoute {
            method,
            path,
            id,
            about,
            parameters: &[],
            request: None,
            answer: None,
            problems: &[],
        }
    }

    pub(super) fn takes<T: JsonSchema>(self) -> PublishedRoute {
        PublishedRoute { request: Some(schema_for!(T)), ..self }
    }

    /// A body that is one of two.
    pub(super) fn takes_either<A: JsonSchema, B: JsonSchema>(self) -> PublishedRoute {
        let mut generator = SchemaGenerator::default();
        let either = [generator.subschema_for::<A>(), generator.subschema_for::<B>()];
        let definitions = generator.take_definitions(true);
        let request = json_schema!({"anyOf": either, "$defs": definitions});
        PublishedRoute { request: Some(request), ..self }
    }

    pub(super) fn gives<T: JsonSchema>(self) -> PublishedRoute {
        PublishedRoute { answer: Some(schema_for!(T)), ..self }
    }
}

/// `GET /openapi.json`.
pub(super) async fn document() -> impl IntoResponse {
    Json(openapi())
}

pub fn openapi() -> Value {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    add(&mut schemas, "Problem", &json!(schema_for!(ProblemDocument)));
    let problem = |about: &str| {
        json!({
            "description": about,
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
        })
    };
    for entry in served() {
        let [request, report] = ["request", "report"].map(|kind| format!("{}.{kind}", entry.name));
        add(&mut schemas, &request, &json!((entry.request)()));
        add(&mut schemas, &report, &json!((entry.report)()));
        let content = |schema: &str| json!({"application/json": {"schema": {"$ref": format!("#/components/schemas/{schema}")}}});
        let mut answer = content(&report);
        for kind in other_media_types(entry) {
            answer[kind] = json!({"schema": {"type": "string"}});
        }
        let operation = json!({
            "operationId": entry.name,
            "summary": entry.about,
            "parameters": [{
                "name": "Prefer",
                "in": "header",
                "description": "wait=SECONDS: the best answer so far after that time, with its proved gap (RFC 7240)",
                "schema": {"type": "string"},
            }],
            "requestBody": {"required": false, "content": content(&request)},
            "responses": {
                "200": {"description": "the answer", "content": answer},
                "400": problem("the body is not JSON"),
                "401": problem("the bearer token is missing or wrong"),
                "406": problem("the answer has no such format"),
                "408": problem("the request took too long"),
                "413": problem("the body is too large"),
                "422": problem("a field is faulty"),
                "429": problem("too many requests wait"),
            },
        });
        paths.insert(format!("/v2/{}", entry.name), json!({"post": operation}));
    }
    published(&mut schemas, &mut paths, &problem);
    paths.insert(
        "/healthz".to_owned(),
        json!({"get": {
            "operationId": "healthz",
            "summary": "whether the server lives",
            "security": [],
            "responses": {"200": {"description": "it does", "content": {"text/plain": {"schema": {"type": "string"}}}}},
        }}),
    );
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Mantile",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": env!("CARGO_PKG_DESCRIPTION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "security": [{}, {"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn published(
    schemas: &mut Map<String, Value>,
    paths: &mut Map<String, Value>,
    problem: &dyn Fn(&str) -> Value,
) {
    for route in mantile_routes().into_iter().chain(estimator_routes()) {
        let reference = |name: &str| json!({"application/json": {"schema": {"$ref": format!("#/components/schemas/{name}")}}});
        let mut operation = json!({
            "operationId": route.id,
            "summary": route.about,
            "responses": {
                "200": {"description": "the answer", "content": {"application/json": {"schema": {"type": "object"}}}},
                "400": problem("the body or the query is not readable"),
                "401": problem("the bearer token is missing or wrong"),
                "404": problem("no such route"),
                "408": problem("the request took too long"),
                "413": problem("the body is too large"),
                "422": problem("a field is faulty"),
                "429": problem("too many requests wait"),
            },
        });
        for (status, about) in route.problems {
            operation["responses"][*status] = problem(about);
        }
        if let Some(schema) = route.request {
            let name = format!("{}.request", route.id);
            add(schemas, &name, &json!(schema));
            operation["requestBody"] = json!({"required": true, "content": reference(&name)});
        }
        if let Some(schema) = route.answer {
            let name = format!("{}.answer", route.id);
            add(schemas, &name, &json!(schema));
            operation["responses"]["200"]["content"] = reference(&name);
        }
        if !route.parameters.is_empty() {
            operation["parameters"] = route
                .parameters
                .iter()
                .map(|(name, place, about)| {
                    let required = *name != "hardware_config";
                    json!({"name": name, "in": place, "required": required, "description": about, "schema": {"type": "string"}})
                })
                .collect();
        }
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation;
    }
}

/// Adds a schema with its definitions, which become schemas of the document. Definitions of one name that differ get
/// the name of the schema too.
fn add(schemas: &mut Map<String, Value>, name: &str, schema: &Value) {
    let mut schema = schema.clone();
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("$schema");
    let definitions = object.remove("$defs");
    let definitions = definitions.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    let renamed: Vec<(String, String)> = definitions
        .iter()
        .map(|(key, value)| {
            let other = schemas.get(key).is_some_and(|known| *known != refs(value, &[]));
            (key.clone(), if other { format!("{name}.{key}") } else { key.clone() })
        })
        .collect();
    for ((_, unique), (_, value)) in renamed.iter().zip(&definitions) {
        schemas.insert(unique.clone(), refs(value, &renamed));
    }
    schemas.insert(name.to_owned(), refs(&schema, &renamed));
}

/// A schema whose references lead to the schemas of the document.
fn refs(schema: &Value, renamed: &[(String, String)]) -> Value {
    match schema {
        Value::Object(object) => {
            let each = object.iter().map(|(key, value)| {
                let reference =
                    value.as_str().filter(|_| key == "$ref").and_then(|text| text.strip_prefix("#/$defs/"));
                let value = match reference {
                    Some(name) => {
                        let unique = renamed
                            .iter()
                            .find(|(known, _)| known == name)
                            .map_or(name, |(_, unique)| unique);
                        json!(format!("#/components/schemas/{unique}"))
                    }
                    None => refs(value, renamed),
                };
                (key.clone(), value)
            });
            Value::Object(each.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| refs(item, renamed)).collect()),
        other => other.clone(),
    }
}
