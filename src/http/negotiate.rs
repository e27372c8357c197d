//! The format of an answer, by the `Accept` header.

use axum::http::{HeaderMap, StatusCode, header};
use serde_json::Value;

use super::problem::{ProblemDocument, Refusal};
use crate::report::pretty::pretty;
use crate::report::rendered::RenderedFormat;
use crate::request::RequestEntry;
use crate::request::workbook::workbook_of_answer;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::png::png;

/// A format of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerFormat {
    /// JSON, as the command line prints it.
    Json,
    /// Events with progress, then the answer.
    Events,
    /// A text that some answers have.
    Rendered(RenderedFormat),
    /// A workbook.
    Xlsx,
    /// The picture as pixels.
    Png,
}

/// Formats by their media types; the first one is the default.
const FORMATS: [(&str, AnswerFormat); 10] = [
    ("application/json", AnswerFormat::Json),
    ("text/event-stream", AnswerFormat::Events),
    ("text/csv", AnswerFormat::Rendered(RenderedFormat::Csv)),
    ("text/plain", AnswerFormat::Rendered(RenderedFormat::Text)),
    ("text/markdown", AnswerFormat::Rendered(RenderedFormat::Markdown)),
    ("image/svg+xml", AnswerFormat::Rendered(RenderedFormat::Svg)),
    ("text/html", AnswerFormat::Rendered(RenderedFormat::Html)),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", AnswerFormat::Xlsx),
    ("image/png", AnswerFormat::Png),
    ("application/vnd.mantile.section+html", AnswerFormat::Rendered(RenderedFormat::Section)),
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

    /// Its media type.
    pub(super) fn media_type(self) -> &'static str {
        FORMATS.iter().find(|(_, format)| *format == self).map_or("", |(kind, _)| *kind)
    }

    /// The answer in this format; none where the request has no such format.
    pub(super) fn rendered(
        self,
        catalog: &Catalog,
        entry: &RequestEntry,
        answer: &Value,
    ) -> Result<Option<Vec<u8>>, Error> {
        let text = |format| entry.rendered(answer, format);
        Ok(match self {
            AnswerFormat::Json => Some(pretty(answer).into_bytes()),
            // The data of an event is one line.
            AnswerFormat::Events => Some(answer.to_string().into_bytes()),
            AnswerFormat::Rendered(format) => text(format)?.map(String::into_bytes),
            AnswerFormat::Xlsx => workbook_of_answer(catalog, entry.name, answer)?,
            AnswerFormat::Png => text(RenderedFormat::Svg)?.map(|svg| png(&svg)).transpose()?,
        })
    }

    /// The problem of an answer that has no such format.
    pub(super) fn missing(self, entry: &RequestEntry) -> ProblemDocument {
        ProblemDocument {
            field: Some("Accept".to_owned()),
            fix: Some("accept application/json".to_owned()),
            ..ProblemDocument::new(
                StatusCode::NOT_ACCEPTABLE,
                format!("`{}` has no {}", entry.name, self.media_type()),
            )
        }
    }
}

/// Media types of answers other than JSON.
pub(super) fn other_media_types() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().filter(|(_, format)| *format != AnswerFormat::Json).map(|(kind, _)| *kind)
}

/// A media range and its weight.
fn range(text: &str) -> (f64, &str) {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=")).and_then(|weight| weight.parse().ok());
    (weight.unwrap_or(1.0), range)
}
