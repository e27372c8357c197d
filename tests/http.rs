//! The HTTP server, over real sockets: the answers of the table byte for byte, its limits, and what it does not do.

mod log;
mod page;
mod published;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use mantile::admission::RequestLimits;
use mantile::http::openapi::openapi;
use mantile::http::{ConnectionLimits, ServerAccess, ServerOptions, Sites, serve};
use mantile::report::pretty::pretty;
use mantile::request::{UNCONTROLLED, entry};
use mantile::spec::run::{
    ClientOverhead, RunMethod, RunOutcome, RunPrediction, RunRecord, RunRequests, RunTrace,
};
use mantile::spec::telemetry::RunTelemetry;
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::requests::{LINES, request};

/// A server that stops when it is dropped.
pub struct Running {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<std::io::Result<()>>>,
}

impl Running {
    fn with(token: Option<&str>, limits: RequestLimits) -> Running {
        Running::under(
            ServerOptions {
                access: ServerAccess { token: token.map(str::to_owned), ..access() },
                limits,
                store: None,
            },
            Catalog::default(),
        )
    }

    /// A server of a catalogue.
    pub fn under(options: ServerOptions, catalog: Catalog) -> Running {
        Running::of(move |bound, stopped| {
            serve(catalog.closed(false), &options, |address| bound.send(address).unwrap(), async {
                let _ = stopped.await;
            })
        })
    }

    /// A server that `serves` until it is stopped, once it has sent its address.
    pub fn of(
        serves: impl FnOnce(mpsc::Sender<SocketAddr>, oneshot::Receiver<()>) -> std::io::Result<()>
        + Send
        + 'static,
    ) -> Running {
        let (bound, address) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || serves(bound, stopped));
        Running { address: address.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
    }

    pub fn start() -> Running {
        Running::with(None, limits())
    }

    /// Status, headers and body of a request.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String, String) {
        let mut stream = self.begin(method, path, headers, body);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), body.to_owned())
    }

    pub fn begin(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        let usual = [("host", "localhost"), ("content-type", "application/json")];
        let set = |name: &str| headers.iter().any(|(given, _)| *given == name);
        for (name, value) in usual.iter().filter(|(name, _)| !set(name)) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
        stream
    }

    pub fn metric(&self, name: &str) -> f64 {
        let (_, _, text) = self.send("GET", "/metrics", &[], "");
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }
}

impl Running {
    /// Stops the server; the time until it has ended.
    pub fn stopped(&mut self) -> Duration {
        let begun = Instant::now();
        if let (Some(stop), Some(thread)) = (self.stop.take(), self.thread.take()) {
            let _ = stop.send(());
            let _ = thread.join();
        }
        begun.elapsed()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopped();
    }
}

/// Options of a server for tests.
pub fn options() -> ServerOptions {
    ServerOptions { access: access(), limits: limits(), store: None }
}

/// Access to a server for tests: this machine, on a port that is free.
pub fn access() -> ServerAccess {
    let (header, body, stop) = (Duration::from_secs(20), Duration::from_secs(30), Duration::from_secs(30));
    ServerAccess {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        token: None,
        sites: Sites::default(),
        connections: ConnectionLimits { most: 400, header, body, stop },
        log: None,
    }
}

pub fn limits() -> RequestLimits {
    RequestLimits { message_bytes: 1 << 20, running: 2, waiting: 16, time: Some(Duration::from_secs(60)) }
}

/// A request of many seconds.
pub fn long() -> String {
    json!({
        "scenario": {"model": "Llama-3.1-8B", "hardware": "8xh100", "deployment": {"both": {"tp": 1}}},
        "vary": ["isl=1..100000+1", "concurrency=1..8+1"],
    })
    .to_string()
}

#[test]
fn every_request_answers_with_the_bytes_of_the_table() {
    let server = Running::start();
    for line in LINES.iter().filter(|line| line[0] != "detect") {
        let request = request(line);
        let expected =
            (entry(line[0]).unwrap().answer)(&Catalog::default(), &request, &UNCONTROLLED).unwrap();
        let (status, head, body) =
            server.send("POST", &format!("/v2/{}", line[0]), &[], &request.to_string());
        assert_eq!((status, body), (200, pretty(&expected)), "{line:?}");
        assert!(head.contains("content-type: application/json") && head.contains("nosniff"), "{head}");
    }
}

#[test]
fn faults_are_problems_that_name_the_field() {
    let server = Running::start();
    let model = |name: &str| json!({"scenario": {"model": name}}).to_string();
    for (path, body, status, field) in [
        ("/v2/estimate", "{".to_owned(), 400, None),
        ("/v2/estimate", "[1]".to_owned(), 422, None),
        ("/v2/estimate", json!({"scenaro": {}}).to_string(), 422, Some("scenaro")),
        ("/v2/optimize", json!({"scenario": {"isl": 0}}).to_string(), 422, Some("isl")),
        ("/v2/optimize", model("no-such-model"), 422, Some("model")),
        ("/v2/optimize", model("/etc/passwd"), 422, Some("model")),
        ("/v2/optimize", model("./config.json"), 422, Some("model")),
        ("/v2/optimize", model("hf:a/b"), 422, Some("model")),
        ("/v2/optimize", model("hf:a/b:Q4_K_M"), 422, Some("model")),
        ("/v2/optimize", model("hf:a/b/c.gguf"), 422, Some("model")),
        ("/v2/optimize", json!({"scenario": {"hardware": "/etc/hostname"}}).to_string(), 422, Some("path")),
        ("/v2/optimize", json!({"scenario": {"hardware": "local"}}).to_string(), 422, Some("hardware")),
        ("/v2/detect", "{}".to_owned(), 404, None),
        ("/v2/nothing", "{}".to_owned(), 404, None),
        ("/nothing", String::new(), 404, None),
        ("/v2/optimize", format!("\"{}\"", "x".repeat(2 << 20)), 413, None),
    ] {
        let (found, head, text) = server.send("POST", path, &[], &body);
        assert_eq!(found, status, "{path} {}: {text}", &body[..body.len().min(80)]);
        assert!(head.contains("content-type: application/problem+json"), "{head}");
        let problem: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(problem["status"], status);
        assert_eq!(problem.get("field").and_then(Value::as_str), field, "{problem}");
        assert!(!text.contains("root:"), "{text}");
    }
    let (status, ..) = server.send("DELETE", "/v2/optimize", &[], "");
    assert_eq!(status, 405);
    assert_eq!(server.send("GET", "/healthz", &[], "").2, "ok\n");
}

#[test]
fn a_token_is_requested_of_everything_but_health() {
    let server = Running::with(Some("secret"), limits());
    for path in ["/v2", "/openapi.json", "/metrics", "/v2/glossary"] {
        assert_eq!(server.send("GET", path, &[], "").0, 401, "{path}");
        assert_eq!(server.send("GET", path, &[("authorization", "Bearer wrong")], "").0, 401, "{path}");
        assert_eq!(server.send("GET", path, &[("authorization", "Bearer secret")], "").0, 200, "{path}");
    }
    assert_eq!(server.send("GET", "/healthz", &[], "").0, 200);
}

#[test]
fn other_formats_are_negotiated() {
    let server = Running::start();
    let body = json!({"scenario": {
        "model": "Llama-3.1-8B", "hardware": "1xh100", "deployment": {"plan": "1 x tp1 @8"}
    }})
    .to_string();
    for (accept, status, begins) in [
        ("text/csv", 200, "model,"),
        ("image/svg+xml", 200, "<svg"),
        ("text/html", 200, "<!DOCTYPE html>"),
        ("text/html;q=0.4, text/csv;q=0.9", 200, "model,"),
        ("image/avif, */*;q=0.1", 200, "{\n"),
        ("application/*", 200, "{\n"),
        ("image/avif", 406, "{"),
    ] {
        let (found, head, text) = server.send("POST", "/v2/estimate", &[("accept", accept)], &body);
        assert_eq!(found, status, "{accept}: {text}");
        assert!(text.starts_with(begins), "{accept}: {head} {}", &text[..text.len().min(60)]);
    }
    let (_, _, text) = server.send("POST", "/v2/estimate", &[("accept", "text/event-stream")], &body);
    assert!(text.contains("event: answer") && text.contains("1 x tp1 @8"), "{text}");
    let wrong = json!({"scenario": {"model": "none"}}).to_string();
    let (status, _, text) = server.send("POST", "/v2/optimize", &[("accept", "text/event-stream")], &wrong);
    assert!(status == 200 && text.contains("event: problem"), "{text}");
}

/// Waits until a condition holds; the time that it took.
#[track_caller]
pub fn until(holds: impl Fn() -> bool) -> Duration {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(120), "it never held");
        std::thread::sleep(Duration::from_millis(5));
    }
    begun.elapsed()
}

#[test]
fn a_search_ends_when_its_client_leaves_and_too_many_are_refused() {
    let server = Running::with(None, RequestLimits { running: 1, waiting: 1, ..limits() });
    for accept in ["application/json", "text/event-stream"] {
        let before = server.metric("mantile_abandoned_total");
        let leaving = server.begin("POST", "/v2/sweep", &[("accept", accept)], &long());
        until(|| server.metric("mantile_requests_running") == 1.0);
        // An equal request would wait for the same answer.
        let other = long().replace("100000", "99999");
        let waiting = server.begin("POST", "/v2/sweep", &[], &other);
        until(|| server.metric("mantile_requests_waiting") == 1.0);
        // A request that was never answered: others come from the cache.
        let fresh = json!({"word": accept}).to_string();
        assert_eq!(server.send("POST", "/v2/formulas", &[], &fresh).0, 429);
        drop(waiting);
        until(|| server.metric("mantile_requests_waiting") == 0.0);
        drop(leaving);
        until(|| server.metric("mantile_abandoned_total") > before);
        until(|| server.metric("mantile_requests_running") == 0.0);
        assert_eq!(server.send("POST", "/v2/formulas", &[], &fresh).0, 200, "the server answers again");
    }
}

#[test]
fn a_long_search_returns_its_best_at_the_time_limit() {
    let server = Running::with(None, RequestLimits { time: Some(Duration::ZERO), ..limits() });
    let body = json!({"scenario": {"model": "Qwen3-32B", "hardware": "8xh100"}}).to_string();
    let (status, _, text) = server.send("POST", "/v2/optimize", &[], &body);
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 200);
    assert!(["feasible", "unknown"].contains(&answer["status"].as_str().unwrap()), "{}", answer["status"]);
    assert_eq!(answer["proof"]["stopped_by"], "time_limit");
}

/// The best so far for a client that waits less than the search takes; what was cut is not the answer of the next one.
#[test]
fn a_client_that_waits_less_gets_the_best_so_far() {
    let server = Running::start();
    let body = json!({"scenario": {"model": "Qwen3-32B", "hardware": "8xh100"}}).to_string();
    let answered = |headers: &[(&str, &str)]| {
        let (status, head, text) = server.send("POST", "/v2/optimize", headers, &body);
        assert_eq!(status, 200, "{text}");
        (head.to_lowercase(), serde_json::from_str::<Value>(&text).unwrap())
    };
    let (head, cut) = answered(&[("Prefer", "wait=0")]);
    assert!(head.contains("preference-applied: wait=0"), "{head}");
    assert!(["feasible", "unknown"].contains(&cut["status"].as_str().unwrap()), "{}", cut["status"]);
    assert_eq!(cut["proof"]["stopped_by"], "time_limit");
    // What is known whole is given at once, whatever the client waits.
    for headers in [&[][..], &[("Prefer", "wait=50")], &[("Prefer", "wait=0")]] {
        let (head, whole) = answered(headers);
        assert_eq!(
            (&whole["status"], head.contains("preference-applied")),
            (&json!("optimal"), !headers.is_empty())
        );
    }
}

/// The body of a measured run is the record of the interface, or that of `bench` with all that it may have.
#[test]
fn the_openapi_document_has_the_record_of_bench_as_a_body() {
    let document = openapi();
    let responses = &document["paths"]["/v1/calibrate"]["post"]["responses"];
    assert!(responses["507"]["content"]["application/problem+json"].is_object(), "{responses}");
    let schema = json!({
        "$ref": "#/components/schemas/estimator.calibrate.request", "components": document["components"],
    });
    let validator = jsonschema::validator_for(&schema).unwrap();
    let trace = RunTrace { sha256: "0".repeat(64), requests: 3, speed_up: 2.0, seconds: 1.5 };
    let method = RunMethod { trace: Some(trace), ..RunMethod::default() };
    let run = RunRecord {
        outcome: RunOutcome::Died,
        method: Some(method),
        requests: Some(RunRequests::default()),
        client: Some(ClientOverhead::default()),
        telemetry: Some(RunTelemetry::default()),
        prediction: Some(RunPrediction::default()),
        ..RunRecord::default()
    };
    let record = serde_json::to_value(&run).unwrap();
    assert!(validator.is_valid(&record), "{record}");
    let published = json!({
        "run_id": "a", "model_id": "m", "runtime_id": "vllm", "hardware_id": "h", "context_tokens": 8,
        "output_tokens": 8, "concurrency": 1, "metrics": {"ttft_ms_p50": 4.0},
    });
    assert!(validator.is_valid(&published), "{published}");
    for wrong in [json!({"run_id": "a"}), json!({"run_id": "a", "unknown": 1}), json!([])] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn the_openapi_document_has_every_request_and_no_broken_reference() {
    let document = openapi();
    let text = document.to_string();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for part in text.split("\"$ref\":\"").skip(1) {
        let name = part.split('"').next().unwrap();
        let name = name.strip_prefix("#/components/schemas/").unwrap_or_else(|| panic!("{name}"));
        assert!(schemas.contains_key(name), "{name}");
    }
    for line in LINES.iter().filter(|line| line[0] != "detect") {
        assert!(document["paths"].get(format!("/v2/{}", line[0])).is_some(), "{line:?}");
    }
}
