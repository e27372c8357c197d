//! The Model Context Protocol over standard input and output: every entry of [`REQUESTS`] as a tool, with its schema,
//! `troubleshoot` beyond them, and the catalogue, the glossary and explanations as resources.
//!
//! An assistant calls `optimize`, then `explain`, and is answered with formulas, figures and sources.

mod messages;
mod resources;

use std::future::Future;
use std::io;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceContents, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::admission::flights::{Flights, RequestKey};
use crate::admission::{Admission, RefusedRequest, RequestLimits};
use crate::report::pretty::pretty;
use crate::request::{REQUESTS, RequestControl, RequestEntry, entry};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use messages::BoundedMessages;

const INSTRUCTIONS: &str = "\
Mantile finds the best way to serve an LLM on given accelerators, and predicts latency, throughput and cost. `optimize` \
searches; `estimate` evaluates one deployment or a launch command; `explain` opens one number down to formulas and \
sources; `deploy` writes launch commands; `troubleshoot` finds why a server does not start; `recommend` chooses hardware \
or models. Set `max_front_points` of `optimize` \
to keep answers short. Inputs have units in text: ttft \"500ms\", host_memory \"64GB\". Names are listed by `catalog`.";

#[derive(Clone)]
pub struct McpServer {
    admission: Arc<Admission>,
    flights: Arc<Flights<Result<String, RefusedRequest>>>,
}

impl McpServer {
    pub fn new(catalog: Catalog, limits: RequestLimits) -> io::Result<McpServer> {
        let admission = Arc::new(Admission::new(catalog, limits)?);
        Ok(McpServer { admission, flights: Arc::new(Flights::new()) })
    }

    /// Serves one client until it closes its end.
    pub async fn serve_over<R, W>(self, (reader, writer): (R, W)) -> Result<(), Error>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let broken = |fault: String| {
            let fix = "start `mantile-opt mcp` from an MCP client";
            Error::new("mcp", fault, "a client of the Model Context Protocol", fix)
        };
        let messages = BoundedMessages::new(reader, writer, self.admission.limits.message_bytes);
        let running = self.serve(messages).await.map_err(|fault| broken(fault.to_string()))?;
        running.waiting().await.map_err(|fault| broken(fault.to_string()))?;
        Ok(())
    }

    /// Answers computed so far; equal requests at the same time are computed once.
    #[cfg(feature = "internals")]
    pub fn computed(&self) -> u64 {
        self.admission.counters.answered.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// The answer of a request, within the limits. It stops when the client cancels.
    async fn answered(
        &self,
        entry: &'static RequestEntry,
        request: Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<String, Error> {
        let text = request.to_string();
        let _long = self.admission.long_message_now(text.len()).map_err(RefusedRequest::fault)?;
        let of = self.admission.clone();
        let flight = self.flights.joined(RequestKey::of(entry.name, "", &text), move |progress| async move {
            let work = move |catalog: &Catalog, control: &RequestControl| {
                (entry.answer)(catalog, &request, control).map(|answer| pretty(&answer))
            };
            of.searched((progress, None), work).await.map(|(text, _)| text)
        });
        let token = context.meta.get_progress_token();
        let mut progress = flight.progress();
        loop {
            tokio::select! {
                biased;
                answer = flight.answer() => return answer.unwrap_or(Err(RefusedRequest::Bug)).map_err(RefusedRequest::fault),
                () = context.ct.cancelled() => return Err(cancelled()),
                Ok(()) = progress.changed() => {
                    let (Some(token), Some((done, all))) = (&token, *progress.borrow_and_update()) else { continue };
                    let note = ProgressNotificationParam::new(token.clone(), done as f64).with_total(all as f64);
                    // A client that left reads no progress.
                    let _ = context.peer.notify_progress(note).await;
                }
            }
        }
    }
}

/// The fault of a request that its client cancelled.
fn cancelled() -> Error {
    Error::new("", "a request that its client cancelled", "a client that waits", "send the request again")
}

/// A tool that answers a request under the name of what a user wants.
struct NamedTool {
    name: &'static str,
    /// The request.
    of: &'static str,
    about: &'static str,
    /// Fields that its calls must have.
    required: &'static [&'static str],
}

/// Tools beyond those of the requests.
const NAMED: [NamedTool; 1] = [NamedTool {
    name: "troubleshoot",
    of: "check",
    about: "Why a server does not start: its launch command, the hardware, and its log or the symptom in words (`log`); \
            answers with the reason, its place in the memory ledger and corrected commands",
    required: &["command", "log"],
}];

fn named(name: &str) -> Option<&'static NamedTool> {
    NAMED.iter().find(|tool| tool.name == name)
}

/// The request that a tool answers, and the tool's own words where it has another name.
///
/// # Errors
/// No tool has that name.
fn called(name: &str) -> Result<(&'static RequestEntry, Option<&'static NamedTool>), Error> {
    let tool = named(name);
    Ok((entry(tool.map_or(name, |tool| tool.of))?, tool))
}

fn tool((entry, own): (&RequestEntry, Option<&NamedTool>)) -> Tool {
    let mut schema: JsonObject = Value::from((entry.request)()).as_object().cloned().unwrap_or_default();
    // The protocol wants objects at the top; every request is one.
    schema.entry("type").or_insert_with(|| "object".into());
    if let Some(own) = own {
        schema.insert("required".to_owned(), own.required.into());
    }
    let (name, about) = own.map_or((entry.name, entry.about), |own| (own.name, own.about));
    Tool::new(name, about, schema).with_annotations(ToolAnnotations::new().read_only(true).idempotent(true))
}

/// The first field that a tool needs and a call has not.
fn absent(own: &NamedTool, body: &Value) -> Option<Error> {
    let field = own.required.iter().find(|field| body.get(**field).is_none_or(Value::is_null))?;
    let fix = format!("add `{field}`; without it, call `{}`", own.of);
    Some(Error::new(*field, "nothing", format!("a text, for `{}`", own.name), fix))
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send + '_ {
        let names = REQUESTS.iter().map(|entry| entry.name).chain(NAMED.iter().map(|tool| tool.name));
        let tools = names.filter_map(|name| called(name).ok()).map(tool).collect();
        std::future::ready(Ok(ListToolsResult::with_all_items(tools)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        called(name).ok().map(tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (entry, own) =
            called(&request.name).map_err(|fault| ErrorData::invalid_params(fault.to_string(), None))?;
        let body = Value::Object(request.arguments.unwrap_or_default());
        let answer = match own.and_then(|own| absent(own, &body)) {
            Some(fault) => Err(fault),
            None => self.answered(entry, body, &context).await,
        };
        // A fault in the request is a result, so that the assistant reads it and mends the request.
        let result = match answer {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(fault) => {
                let mut refused = CallToolResult::error(vec![ContentBlock::text(fault.to_string())]);
                refused.structured_content = Some(serde_json::json!(fault));
                refused
            }
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::listed()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let missing = |fault: Error| ErrorData::resource_not_found(fault.to_string(), None);
        let (name, body) = resources::request(&self.admission.catalog, &request.uri).map_err(missing)?;
        let entry = entry(name).map_err(missing)?;
        let text = self.answered(entry, body, &context).await.map_err(missing)?;
        let contents = ResourceContents::text(text, request.uri).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
