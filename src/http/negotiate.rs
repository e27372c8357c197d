//! The format of an answer, by the `Accept` header.

use std::collections::BTreeSet;

use axum::http::{HeaderMap, StatusCode, header};
use serde_json::Value;

use super::problem::{ProblemDocument, Refusal};
use crate::report::format::{FORMATS, Format};
use crate::report::pretty::pretty;
use crate::request::RequestEntry;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

/// The form in which a client takes an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accepted {
    Answer(Format),
    /// Events with progress, then the answer as JSON.
    Events,
}

const EVENTS: &str = "text/event-stream";

/// Every form with its media type; the first one is the default.
fn offers() -> impl Iterator<Item = (&'static str, Accepted)> {
    let json = Accepted::Answer(Format::Json);
    let rest = FORMATS.iter().map(|entry| (entry.media_type, Accepted::Answer(entry.format)));
    let events = std::iter::once((EVENTS, Accepted::Events));
    std::iter::once((Format::Json.entry().media_type, json)).chain(events).chain(rest)
}

impl Accepted {
    /// The first format that the client accepts, in the order of its weights.
    pub(super) fn of(headers: &HeaderMap) -> Result<Accepted, Refusal> {
        let accepted: Vec<&str> =
            headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
        let mut ranges: Vec<(f64, &str)> =
            accepted.iter().flat_map(|text| text.split(',')).map(range).collect();
        if ranges.is_empty() {
            return Ok(Accepted::Answer(Format::Json));
        }
        ranges.sort_by(|a, b| b.0.total_cmp(&a.0));
        let wanted = ranges.iter().filter(|(weight, _)| *weight > 0.0).find_map(|(_, range)| {
            let fits = |kind: &str| {
                kind == *range
                    || range.strip_suffix('*').is_some_and(|start| kind.starts_with(start))
                    || *range == "*/*"
            };
            offers().find(|(kind, _)| fits(kind)).map(|(_, accepted)| accepted)
        });
        let wanted = wanted.ok_or_else(|| {
            let kinds: BTreeSet<&str> = offers().map(|(kind, _)| kind).collect();
            ProblemDocument::new(StatusCode::NOT_ACCEPTABLE, "no such format")
                .field("Accept")
                .expected(kinds.into_iter().collect::<Vec<_>>().join(", "))
        });
        Ok(wanted?)
    }

    pub(super) fn media_type(self) -> &'static str {
        match self {
            Accepted::Answer(format) => format.entry().media_type,
            Accepted::Events => EVENTS,
        }
    }

    /// The answer in this format; none where the request has no such format.
    pub(super) fn rendered(
        self,
        catalog: &Catalog,
        entry: &RequestEntry,
        answer: &Value,
    ) -> Result<Option<Vec<u8>>, Error> {
        match self {
            Accepted::Answer(Format::Json) => Ok(Some(pretty(answer).into_bytes())),
            Accepted::Answer(format) => entry.formatted(catalog, answer, format),
            // The data of an event is one line.
            Accepted::Events => Ok(Some(answer.to_string().into_bytes())),
        }
    }

    /// The problem of an answer that has no such format.
    pub(super) fn missing(self, entry: &RequestEntry) -> ProblemDocument {
        let detail = format!("`{}` has no {}", entry.name, self.media_type());
        ProblemDocument::new(StatusCode::NOT_ACCEPTABLE, detail)
            .field("Accept")
            .expected(other_media_types(entry).collect::<Vec<_>>().join(", "))
            .fix("accept application/json")
    }
}

/// Media types of the answers of a question, other than JSON.
pub(super) fn other_media_types(entry: &RequestEntry) -> impl Iterator<Item = &'static str> {
    let formats = entry.formats().filter(|format| *format != Format::Json);
    std::iter::once(EVENTS).chain(formats.map(|format| format.entry().media_type))
}

fn range(text: &str) -> (f64, &str) {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=")).and_then(|weight| weight.parse().ok());
    (weight.unwrap_or(1.0), range)
}
