//! A server of OpenAI's interface that answers at the predicted speed: a simulated deployment in real time.
//!
//! A request reaches the simulation at the time at which it arrives, and each of its tokens is sent when the simulated
//! step ends that makes it. The text is one word again and again.

mod driver;
mod fault;
mod figures;
mod prompt;
mod wire;

use std::convert::Infallible;
use std::future::{Future, ready};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;

use super::state::AccessGuards;
use super::{RouteWords, ServerAccess, body, guarded, listen, metrics};
use crate::admission::MESSAGE_BYTES;
use crate::request::RequestControl;
use crate::request::priced_plan::PricedPlan;
use crate::request::simulate::SimulateRequest;
use crate::search::simulated_pool::tokens;
use crate::spec::error::Error;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use crate::store::resolved_scenario::DEFAULT_MODEL;
use crate::traffic::engine::EngineRequest;
use crate::traffic::run::DeploymentSettings;
use driver::{AnswerPart, DriverMessage, started};
use fault::{FaultCode, MockFault, shaped};
use wire::{AnswerFrame, FinishReason, TextBody, TextInterface};

/// A deployment that answers by simulation.
#[derive(Clone, Debug)]
pub struct MockDeployment {
    plan: PricedPlan,
    settings: DeploymentSettings,
    /// The names of its model; answers to requests without one have the first.
    names: Vec<String>,
    /// Simulated seconds in a second.
    speed: f64,
}

impl MockDeployment {
    /// The deployment of a request of `simulate`, whose model has these names; without any, the given one and its
    /// Hugging Face id.
    ///
    /// # Errors
    /// The request is faulty, or the deployment cannot run, or is not simulated.
    pub fn new(
        catalog: &Catalog,
        request: &SimulateRequest,
        names: &[String],
        control: &RequestControl,
    ) -> Result<MockDeployment, Error> {
        let (planned, plan, settings) = request.deployed(catalog, control)?;
        let mut names = names.to_vec();
        if names.is_empty() {
            let stated = planned.scenario.model.as_deref().unwrap_or(DEFAULT_MODEL).trim();
            names = vec![stated.to_owned(), catalog.model(stated)?.name];
            names.dedup();
        }
        Ok(MockDeployment { plan, settings, names, speed: request.traffic.speed_up.unwrap_or(1.0) })
    }

    /// The plan in one line.
    pub fn notation(&self) -> &str {
        &self.plan.notation
    }

    /// The name of its model.
    pub fn model(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// Tokens of a prompt with its answer, at most: the model's window, the cache of a replica, and no more than bytes
    /// of a body.
    fn window(&self) -> u64 {
        let window = self.plan.clock().instance.max_context.unwrap_or(u64::MAX);
        window.min(self.plan.kv_tokens).min(MESSAGE_BYTES as u64)
    }
}

/// The state that all requests share.
#[derive(Clone)]
struct MockState(Arc<MockShared>);

struct MockShared {
    names: Vec<String>,
    window: u64,
    /// Tokens of an answer whose request has no limit.
    usual_output: u64,
    simulation: Sender<DriverMessage>,
    /// Requests that came.
    requests: AtomicU64,
    /// Seconds since 1970 at the start.
    begun: u64,
    guards: Arc<AccessGuards>,
}

impl std::ops::Deref for MockState {
    type Target = MockShared;

    fn deref(&self) -> &MockShared {
        &self.0
    }
}

const WORDS: RouteWords = RouteWords {
    health: "/health",
    no_route: "use /v1/chat/completions, /v1/completions, /v1/models, /metrics or /health",
    no_method: "POST requests for text, and GET all else",
};

/// The routes of a deployment, whose simulation begins.
fn routes(deployment: MockDeployment, access: &ServerAccess) -> io::Result<Router> {
    let guards = AccessGuards::of(access);
    let state = MockState(Arc::new(MockShared {
        names: deployment.names.clone(),
        window: deployment.window(),
        usual_output: deployment.plan.lengths().osl,
        simulation: started(deployment)?,
        requests: AtomicU64::new(0),
        begun: unix_s(),
        guards: guards.clone(),
    }));
    let routes = Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completions))
        .route("/v1/models", get(models))
        .route("/v1/models/{*model}", get(model))
        .route("/metrics", get(figures))
        .layer(from_fn_with_state(guards.clone(), read));
    let routes = guarded(routes, Router::new(), &WORDS, (&guards, MESSAGE_BYTES));
    Ok(routes.layer(map_response(shaped)).with_state(state))
}

/// Serves a deployment until `stopped` resolves; what is being answered then is finished within the stop time. `bound`
/// receives the address.
///
/// # Errors
/// The address is in use, or is not one of this machine.
pub fn serve_mock(
    deployment: MockDeployment,
    access: &ServerAccess,
    bound: impl FnOnce(SocketAddr),
    stopped: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    listen(routes(deployment, access)?, access, 1, bound, stopped)
}

/// Seconds since 1970.
fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Reads the body of a request within the limits of the server.
async fn read(State(guards): State<Arc<AccessGuards>>, request: Request, next: Next) -> Response {
    match body::received(request, guards.access.connections.body, ready(())).await {
        Ok(((), request)) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn chat(State(state): State<MockState>, body: Bytes) -> Result<Response, MockFault> {
    answer(&state, TextInterface::Chat, &body).await
}

async fn completions(State(state): State<MockState>, body: Bytes) -> Result<Response, MockFault> {
    answer(&state, TextInterface::Completions, &body).await
}

/// The answer to a request for text.
async fn answer(state: &MockState, interface: TextInterface, body: &[u8]) -> Result<Response, MockFault> {
    let arrived = Instant::now();
    let text = std::str::from_utf8(body).map_err(|_| MockFault::of("", "the body is not UTF-8"))?;
    let body: TextBody = from_json(text, "a request for text")?;
    body.check()?;
    let model = state.named(body.model.as_deref())?.to_owned();
    let (prompt, limit) = (body.prompt(interface)?, body.limit()?);
    let length = prompt.len();
    let output = limit.unwrap_or_else(|| state.usual_output.min(state.window.saturating_sub(length)));
    if output == 0 || length.saturating_add(output) > state.window {
        return Err(state.too_long(length, limit));
    }
    let number = state.requests.fetch_add(1, Relaxed);
    let (length, output) = (tokens(length), tokens(output));
    let request = EngineRequest::new(number, prompt.with_answer(output), length, output);
    let request = EngineRequest { session: body.session().unwrap_or(number), ..request };
    let (sender, mut parts) = mpsc::unbounded_channel();
    let message = DriverMessage::Request(request, arrived, sender);
    state.simulation.send(message).map_err(|_| MockFault::bug())?;
    match parts.recv().await {
        Some(AnswerPart::Accepted) => {}
        Some(AnswerPart::Refused) => return Err(state.too_long(length.into(), limit)),
        _ => return Err(MockFault::bug()),
    }
    let prefix = match interface {
        TextInterface::Chat => "chatcmpl",
        TextInterface::Completions => "cmpl",
    };
    let frame = AnswerFrame {
        interface,
        id: format!("{prefix}-{:x}-{number}", state.begun),
        created: unix_s(),
        model,
        finish: if limit.is_some() { FinishReason::Length } else { FinishReason::Stop },
        usage: body.ends_with_usage(),
    };
    if body.streams() {
        return Ok(streamed(frame, parts));
    }
    while let Some(part) = parts.recv().await {
        if let AnswerPart::Answered(record) = part {
            return Ok(Json(frame.whole(&record)).into_response());
        }
    }
    Err(MockFault::bug())
}

/// Chunks that wait for a client.
const CHUNKS: usize = 16;

/// An answer in chunks of one token, each at its time.
fn streamed(frame: AnswerFrame, mut parts: mpsc::UnboundedReceiver<AnswerPart>) -> Response {
    let (sender, receiver) = mpsc::channel::<Result<Event, Infallible>>(CHUNKS);
    tokio::spawn(async move {
        let event = |chunk: &Value| Ok(Event::default().data(chunk.to_string()));
        let mut given = 0;
        loop {
            // The receiver goes with the connection, also while the request waits.
            let part = tokio::select! {
                part = parts.recv() => part,
                () = sender.closed() => return,
            };
            let Some(part) = part else { return };
            let (tokens, record) = match part {
                AnswerPart::Tokens(tokens) => (tokens, None),
                AnswerPart::Answered(record) => (record.output, Some(record)),
                AnswerPart::Accepted | AnswerPart::Refused => continue,
            };
            let begin = frame.begin().filter(|_| given == 0);
            let new = (given..tokens).map(|at| frame.token(record.is_some() && at + 1 == tokens));
            given = tokens;
            let end = record.and_then(|record| frame.end(&record));
            for chunk in begin.into_iter().chain(new).chain(end) {
                // A client that has left gets no more.
                if sender.send(event(&chunk)).await.is_err() {
                    return;
                }
            }
            if record.is_some() {
                let _ = sender.send(Ok(Event::default().data("[DONE]"))).await;
            }
        }
    });
    Sse::new(ReceiverStream::new(receiver)).into_response()
}

impl MockShared {
    /// The name of the model that a request wants.
    fn named<'a>(&'a self, model: Option<&'a str>) -> Result<&'a str, MockFault> {
        let Some(model) = model else { return Ok(self.names.first().map_or("", String::as_str)) };
        if self.names.iter().any(|name| name == model) {
            return Ok(model);
        }
        let names = self.names.join("`, `");
        let found = format!("the model `{model}` does not exist; served here: `{names}`");
        Err(MockFault::of("model", found).code(FaultCode::ModelNotFound).status(StatusCode::NOT_FOUND))
    }

    fn too_long(&self, prompt: u64, output: Option<u64>) -> MockFault {
        let output = output.map_or(String::new(), |output| format!(" and {output} of the answer"));
        let found = format!(
            "a context has at most {} tokens here, found {prompt} of the prompt{output}",
            self.window
        );
        MockFault::of("max_tokens", found).code(FaultCode::ContextLengthExceeded)
    }

    fn described(&self, model: &str) -> Value {
        json!({
            "id": model, "object": "model", "created": self.begun, "owned_by": "mantile", "max_model_len": self.window,
        })
    }
}

async fn models(State(state): State<MockState>) -> Response {
    let list: Vec<Value> = state.names.iter().map(|name| state.described(name)).collect();
    Json(json!({"object": "list", "data": list})).into_response()
}

async fn model(State(state): State<MockState>, Path(model): Path<String>) -> Result<Response, MockFault> {
    Ok(Json(state.described(state.named(Some(&model))?)).into_response())
}

/// The figures of the deployment, and the responses of the server.
async fn figures(State(state): State<MockState>) -> Result<Response, MockFault> {
    let (sender, figures) = oneshot::channel();
    state.simulation.send(DriverMessage::Figures(sender)).map_err(|_| MockFault::bug())?;
    let figures = figures.await.map_err(|_| MockFault::bug())?;
    let name = state.names.first().map_or("", String::as_str);
    Ok(metrics::in_text(figures.text(name) + &metrics::responses(&state.guards)))
}
