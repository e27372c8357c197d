//! Faults in the shape of OpenAI's interface: `{"error": {"message", "type", "param", "code"}}`.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::http::problem::{ProblemDocument, Refusal};
use crate::spec::error::Error;

/// The `code` of a fault, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultCode {
    ModelNotFound,
    ContextLengthExceeded,
    InvalidApiKey,
}

impl FaultCode {
    fn name(self) -> &'static str {
        match self {
            FaultCode::ModelNotFound => "model_not_found",
            FaultCode::ContextLengthExceeded => "context_length_exceeded",
            FaultCode::InvalidApiKey => "invalid_api_key",
        }
    }
}

/// A request that is refused.
#[derive(Clone, Debug)]
pub(super) struct MockFault {
    status: StatusCode,
    message: String,
    /// The key of the request that is faulty.
    param: Option<String>,
    code: Option<FaultCode>,
}

impl MockFault {
    /// A fault of the request, in one of its keys.
    pub(super) fn of(param: &str, message: impl Into<String>) -> MockFault {
        let param = (!param.is_empty()).then(|| param.to_owned());
        MockFault { status: StatusCode::BAD_REQUEST, message: message.into(), param, code: None }
    }

    /// The same with a code.
    pub(super) fn code(self, code: FaultCode) -> MockFault {
        MockFault { code: Some(code), ..self }
    }

    /// The same with another status.
    pub(super) fn status(self, status: StatusCode) -> MockFault {
        MockFault { status, ..self }
    }

    /// A fault of the server.
    pub(super) fn bug() -> MockFault {
        MockFault::of("", "a bug; please report the request").status(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<&ProblemDocument> for MockFault {
    fn from(problem: &ProblemDocument) -> MockFault {
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let fix = problem.fix.as_ref().map(|fix| format!("; {fix}")).unwrap_or_default();
        MockFault {
            status,
            message: format!("{}{fix}", problem.detail),
            param: problem.field.clone(),
            code: (status == StatusCode::UNAUTHORIZED).then_some(FaultCode::InvalidApiKey),
        }
    }
}

impl From<Refusal> for MockFault {
    fn from(refusal: Refusal) -> MockFault {
        refusal.document().into()
    }
}

impl From<Error> for MockFault {
    fn from(fault: Error) -> MockFault {
        MockFault::from(&ProblemDocument::from(fault)).status(StatusCode::BAD_REQUEST)
    }
}

impl IntoResponse for MockFault {
    fn into_response(self) -> Response {
        let kind = if self.status.is_server_error() { "server_error" } else { "invalid_request_error" };
        let code = self.code.map(FaultCode::name);
        let error = json!({"message": self.message, "type": kind, "param": self.param, "code": code});
        (self.status, Json(json!({"error": error}))).into_response()
    }
}

/// A fault of the guards, which all servers share, in the shape of this interface; other responses as they are.
pub(super) async fn shaped(mut response: Response) -> Response {
    let Some(problem) = response.extensions_mut().remove::<ProblemDocument>() else { return response };
    let mut shaped = MockFault::from(&problem).into_response();
    let own = [header::CONTENT_TYPE, header::CONTENT_LENGTH];
    for (name, value) in response.headers().iter().filter(|(name, _)| !own.contains(name)) {
        shaped.headers_mut().insert(name, value.clone());
    }
    shaped
}
