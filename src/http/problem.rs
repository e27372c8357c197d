//! Faults as problem documents (RFC 9457): the field, what was found and expected, and the fix.

use std::any::Any;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::admission::RefusedRequest;
use crate::request::wording::Door;
use crate::spec::error::Error;
use crate::store::runs::StoreFault;

/// A problem document.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProblemDocument {
    /// A URI that names the kind of problem; `about:blank` where the title says all.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem in words.
    pub title: String,
    /// Status of the response.
    pub status: u16,
    /// The problem in a sentence.
    pub detail: String,
    /// The key of the request that is faulty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The value that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The expected value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// How to mend it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl ProblemDocument {
    /// A problem without a field.
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> ProblemDocument {
        ProblemDocument {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or("Problem").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            field: None,
            found: None,
            expected: None,
            fix: None,
        }
    }

    /// The problem of a run that the store of the server did not take: only a fault of the run is one of the request.
    pub(super) fn of_store(fault: Error) -> ProblemDocument {
        let status = match StoreFault::of(&fault) {
            None => return fault.into(),
            Some(StoreFault::Full) => StatusCode::INSUFFICIENT_STORAGE,
            Some(StoreFault::Busy) => StatusCode::SERVICE_UNAVAILABLE,
            Some(StoreFault::Broken) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let ProblemDocument { status, title, .. } = ProblemDocument::new(status, "");
        ProblemDocument { status, title, field: None, ..fault.into() }
    }

    pub(super) fn field(self, field: &str) -> ProblemDocument {
        ProblemDocument { field: Some(field.to_owned()), ..self }
    }

    pub(super) fn expected(self, expected: impl Into<String>) -> ProblemDocument {
        ProblemDocument { expected: Some(expected.into()), ..self }
    }

    pub(super) fn fix(self, fix: &str) -> ProblemDocument {
        ProblemDocument { fix: Some(fix.to_owned()), ..self }
    }
}

impl From<Error> for ProblemDocument {
    fn from(fault: Error) -> ProblemDocument {
        let fault = Door::Json.fault(fault);
        let filled = |text: String| (!text.is_empty()).then_some(text);
        let field = filled(fault.key.clone());
        let place = field.as_ref().map(|key| format!("{key}: ")).unwrap_or_default();
        ProblemDocument {
            field,
            found: filled(fault.found.clone()),
            expected: filled(fault.expected.clone()),
            fix: filled(fault.fix.clone()),
            ..ProblemDocument::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                format!("{place}found {}, expected {}", fault.found, fault.expected),
            )
        }
    }
}

impl From<RefusedRequest> for ProblemDocument {
    fn from(refused: RefusedRequest) -> ProblemDocument {
        let (status, detail) = match refused {
            RefusedRequest::Fault(fault) => return fault.into(),
            RefusedRequest::Busy(fault) => {
                let status = StatusCode::TOO_MANY_REQUESTS;
                return ProblemDocument {
                    status: status.as_u16(),
                    title: status.canonical_reason().unwrap_or("Problem").to_owned(),
                    detail: "too many requests wait".to_owned(),
                    field: None,
                    ..fault.into()
                };
            }
            RefusedRequest::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "the server stops"),
            RefusedRequest::Bug => (StatusCode::INTERNAL_SERVER_ERROR, "a bug; please report the request"),
        };
        ProblemDocument::new(status, detail)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Refusal(Box<ProblemDocument>);

impl<T: Into<ProblemDocument>> From<T> for Refusal {
    fn from(problem: T) -> Refusal {
        Refusal(Box::new(problem.into()))
    }
}

impl Refusal {
    pub(super) fn document(&self) -> &ProblemDocument {
        &self.0
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl IntoResponse for ProblemDocument {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&self)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        // A server of another interface writes it in the shape of that.
        response.extensions_mut().insert(self);
        response
    }
}

pub(super) fn no_route(fix: &str) -> ProblemDocument {
    ProblemDocument::new(StatusCode::NOT_FOUND, "no such route").fix(fix)
}

pub(super) fn no_method(fix: &str) -> ProblemDocument {
    ProblemDocument::new(StatusCode::METHOD_NOT_ALLOWED, "the route has other methods").fix(fix)
}

/// A bug: the server lives on, and the client learns nothing of its inside.
pub(super) fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    ProblemDocument::new(StatusCode::INTERNAL_SERVER_ERROR, "a bug; please report the request")
        .into_response()
}
