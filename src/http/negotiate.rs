//! The format of an answer, by the `Accept` header.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::problem::{ProblemDocument, Refusal};
use crate::report::pretty::pretty;
use crate::report::rendered::{RenderedFormat, rendered};
use crate::request::RequestEntry;

/// A format of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerFormat {
    /// JSON, as the command line prints it.
    Json,
    /// Events with progress, then the answer.
    Events,
    /// Another format that some answers have.
    Rendered(RenderedFormat),
}

/// Formats by their media types; the first one is the default.
const FORMATS: [(&str, AnswerFormat); 5] = [
    ("application/json", AnswerFormat::Json),
    ("text/event-stream", AnswerFormat::Events),
    ("text/csv", AnswerFormat::Rendered(RenderedFormat::Csv)),
    ("image/svg+xml", AnswerFormat::Rendered(RenderedFormat::Svg)),
    ("text/html", AnswerFormat::Rendered(RenderedFormat::Html)),
];

impl AnswerFormat {
    /// The first format that the client accepts, in the order of its weights.
    pub(super) fn of(headers: &HeaderMap) -> Result<AnswerFormat, Refusal> {
        let accepted: Vec<&str> =
            headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
        let mut ranges: Vec<(f64, &str)> =
            accepted.iter().flat_map(|text| text.split(',')).map(range).collect();
        if ranges.is_empty() {
            return Ok(AnswerFormat::Json);
        }
        ranges.sort_by(|a, b| b.0.total_cmp(&a.0));
        let wanted = ranges.iter().filter(|(weight, _)| *weight > 0.0).find_map(|(_, range)| {
            let fits = |kind: &str| {
                kind == *range
                    || range.strip_suffix('*').is_some_and(|start| kind.starts_with(start))
                    || *range == "*/*"
            };
            FORMATS.iter().find(|(kind, _)| fits(kind)).map(|(_, format)| *format)
        });
        let wanted = wanted.ok_or_else(|| {
            let kinds: Vec<&str> = FORMATS.iter().map(|(kind, _)| *kind).collect();
            ProblemDocument {
                field: Some("Accept".to_owned()),
                expected: Some(kinds.join(", ")),
                ..ProblemDocument::new(StatusCode::NOT_ACCEPTABLE, "no such format")
            }
        });
        Ok(wanted?)
    }

    /// The answer in this format.
    pub(super) fn response(self, entry: &RequestEntry, answer: &Value) -> Result<Response, Refusal> {
        let kind = FORMATS.iter().find(|(_, format)| *format == self).map_or("", |(kind, _)| *kind);
        let text = match self {
            AnswerFormat::Json | AnswerFormat::Events => pretty(answer),
            AnswerFormat::Rendered(format) => rendered(entry.name, answer, format)
                .map_err(Refusal::from)?
                .ok_or_else(|| ProblemDocument {
                    field: Some("Accept".to_owned()),
                    fix: Some("accept application/json".to_owned()),
                    ..ProblemDocument::new(
                        StatusCode::NOT_ACCEPTABLE,
                        format!("`{}` has no {kind}", entry.name),
                    )
                })?,
        };
        Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
    }
}

/// A media range and its weight.
fn range(text: &str) -> (f64, &str) {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=")).and_then(|weight| weight.parse().ok());
    (weight.unwrap_or(1.0), range)
}
