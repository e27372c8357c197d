//! Measurements of servers whose truth is known: one that follows a script and keeps the times at which it sends, and one
//! that is simulated.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mantile::bench::points::{LoadPoint, PointLoad};
use mantile::bench::started::{StartedServer, model_here};
use mantile::bench::{BenchSession, BenchSettings, BenchSubject, Endpoint};
use mantile::http::mock::{MockDeployment, serve_mock};
use mantile::report::launch::{LaunchFile, LaunchReport};
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::simulate::SimulateRequest;
use mantile::request::validate::given::GivenRunFacts;
use mantile::request::validate::table::{MeasuredTable, usable_rows};
use mantile::spec::deployment::Deployment;
use mantile::spec::run::{BenchMetrics, RunOutcome, RunRecord};
use mantile::spec::scenario::Scenario;
use mantile::validate::score::quantile;
use serde_json::{Value, json};

use crate::doors::catalog;
use crate::http::{Running, access};

#[cfg(unix)]
mod deployments;
mod encrypted;
mod predictions;
#[cfg(target_os = "linux")]
mod telemetry;
mod traces;

/// The answer to a request, by its number in the order of arrival.
struct ScriptedAnswer {
    status: u16,
    /// Waits before each token.
    waits: Vec<Duration>,
    /// Whether one answer is made after another.
    alone: bool,
}

type Script = fn(u64) -> ScriptedAnswer;

/// Times of an answer: of the arrival of its request, and of each token.
#[derive(Clone)]
struct SentAnswer {
    arrived: Instant,
    tokens: Vec<Instant>,
}

impl SentAnswer {
    fn ttft_ms(&self) -> f64 {
        (self.tokens[0] - self.arrived).as_secs_f64() * 1e3
    }

    fn e2e_ms(&self) -> f64 {
        (*self.tokens.last().unwrap() - self.arrived).as_secs_f64() * 1e3
    }

    fn tpot_ms(&self) -> f64 {
        (self.e2e_ms() - self.ttft_ms()) / (self.tokens.len() - 1) as f64
    }
}

/// A server that follows a script, a thread for each connection. It ends with the test.
#[derive(Clone)]
struct ScriptedServer {
    script: Script,
    arrived: Arc<AtomicU64>,
    sent: Arc<Mutex<Vec<SentAnswer>>>,
    bodies: Arc<Mutex<Vec<Value>>>,
    turn: Arc<Mutex<()>>,
}

impl ScriptedServer {
    fn start(script: Script) -> (ScriptedServer, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = ScriptedServer {
            script,
            arrived: Arc::default(),
            sent: Arc::default(),
            bodies: Arc::default(),
            turn: Arc::default(),
        };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let server = serving.clone();
                std::thread::spawn(move || {
                    // The client leaves in mid-stream at the end of a run.
                    let _ = server.serve(stream);
                });
            }
        });
        (server, address)
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let (mut reader, mut stream) = (BufReader::new(stream.try_clone()?), stream);
        loop {
            let (mut head, mut length) = (String::new(), 0);
            while reader.read_line(&mut head)? > 2 {
                let line = head.lines().last().unwrap_or_default().to_ascii_lowercase();
                if let Some(bytes) = line.strip_prefix("content-length:") {
                    length = bytes.trim().parse().unwrap();
                }
            }
            if head.is_empty() {
                return Ok(());
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            match head.starts_with("GET /v1/models ") {
                true => whole(&mut stream, 200, r#"{"data": [{"id": "scripted", "owned_by": "test"}]}"#)?,
                false if head.starts_with("GET ") => whole(&mut stream, 404, "{}")?,
                false => self.answer(&mut stream, serde_json::from_slice(&body).unwrap())?,
            }
        }
    }

    fn answer(&self, stream: &mut TcpStream, body: Value) -> std::io::Result<()> {
        let arrived = Instant::now();
        let is_probe = body["max_tokens"] == 1;
        let prompt = body["messages"][0]["content"].as_str().unwrap().len() / 4;
        self.bodies.lock().unwrap().push(body);
        let script = if is_probe {
            ScriptedAnswer { status: 200, waits: vec![Duration::ZERO], alone: false }
        } else {
            (self.script)(self.arrived.fetch_add(1, SeqCst))
        };
        if script.status != 200 {
            return whole(stream, script.status, "{}");
        }
        let turn = script.alone.then(|| self.turn.lock().unwrap());
        stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )?;
        let (begun, mut due) = (if script.alone { Instant::now() } else { arrived }, Duration::ZERO);
        let mut tokens = vec![];
        for wait in &script.waits {
            due += *wait;
            std::thread::sleep((begun + due).saturating_duration_since(Instant::now()));
            tokens.push(Instant::now());
            event(stream, &json!({"choices": [{"index": 0, "delta": {"content": " tok"}}], "usage": null}))?;
        }
        drop(turn);
        if !is_probe {
            self.sent.lock().unwrap().push(SentAnswer { arrived, tokens });
        }
        let usage = json!({
            "prompt_tokens": prompt, "completion_tokens": script.waits.len(),
            "prompt_tokens_details": {"cached_tokens": 0},
        });
        event(stream, &json!({"choices": [], "usage": usage}))?;
        let done = "data: [DONE]\n\n";
        stream.write_all(format!("{:x}\r\n{done}\r\n0\r\n\r\n", done.len()).as_bytes())
    }

    /// A percentile of its answers.
    fn at(&self, of: fn(&SentAnswer) -> f64, part: f64) -> f64 {
        let sent = self.sent.lock().unwrap();
        quantile(&mut sent.iter().map(of).collect::<Vec<_>>(), part)
    }
}

fn whole(stream: &mut TcpStream, status: u16, text: &str) -> std::io::Result<()> {
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}", text.len());
    stream.write_all(format!("{head}\r\n\r\n{text}").as_bytes())
}

fn event(stream: &mut TcpStream, chunk: &Value) -> std::io::Result<()> {
    let text = format!("data: {chunk}\n\n");
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

fn settings(address: SocketAddr) -> BenchSettings {
    let endpoint = Endpoint::parse(&format!("http://{address}/v1"), None).unwrap();
    BenchSettings { timeout_s: 60.0, seed: 7, ..BenchSettings::of(endpoint) }
}

fn measured(settings: BenchSettings, point: &LoadPoint) -> RunRecord {
    let session = BenchSession::begin(settings).unwrap();
    let subject = BenchSubject::of(catalog(), Scenario::default()).unwrap();
    session.measure(&subject, point, None, Arc::new(|| {}))
}

/// Times to first token that differ from request to request, so little that no percentile lies at a jump, and nine tokens
/// 20 ms after each other.
fn steady(number: u64) -> ScriptedAnswer {
    let first = Duration::from_micros(40_000 + number * 7919 % 60_000);
    let waits = [first].into_iter().chain([Duration::from_millis(20); 9]).collect();
    ScriptedAnswer { status: 200, waits, alone: false }
}

fn near(name: &str, found: Option<f64>, expected: f64, tolerance_ms: f64) {
    let (found, tolerance) = (found.unwrap(), tolerance_ms.max(expected * 0.01));
    assert!((found - expected).abs() <= tolerance, "{name}: {found} ms, not {expected} ms");
}

fn streams_are_undistorted(clients: u64) {
    let (server, address) = ScriptedServer::start(steady);
    let run =
        measured(settings(address), &LoadPoint { isl: 100, osl: 10, load: PointLoad::Clients(clients) });
    let metrics = &run.metrics;
    eprintln!("{clients} clients: {:?}, {:?}", run.client, run.repeats);
    for (name, of, found) in [
        (
            "ttft",
            SentAnswer::ttft_ms as fn(&SentAnswer) -> f64,
            [metrics.ttft_ms_p50, metrics.ttft_ms_p95, metrics.ttft_ms_p99],
        ),
        ("tpot", SentAnswer::tpot_ms, [metrics.tpot_ms_p50, metrics.tpot_ms_p95, metrics.tpot_ms_p99]),
        ("e2e", SentAnswer::e2e_ms, [metrics.latency_ms_p50, metrics.latency_ms_p95, metrics.latency_ms_p99]),
    ] {
        for (found, (part, tolerance)) in found.into_iter().zip([(0.5, 1.0), (0.95, 1.0), (0.99, 3.0)]) {
            eprintln!("{name} {part}: {found:?} of {}", server.at(of, part));
            near(&format!("{name} {part}"), found, server.at(of, part), tolerance);
        }
    }
    let requests = run.requests.unwrap();
    assert_eq!((requests.sent, requests.answered), (10 * clients, 10 * clients));
    assert_eq!((run.context_tokens, run.output_tokens, metrics.cached_share), (100, 10, Some(0.0)));
    assert!(metrics.mean_concurrency.unwrap() > clients as f64 * 0.95, "{metrics:?}");
}

#[test]
#[ignore = "exact times need a machine of their own: the nightly lane"]
fn a_few_streams_have_the_times_at_which_the_server_sent() {
    streams_are_undistorted(8);
}

#[test]
#[ignore = "exact times need a machine of their own: the nightly lane"]
fn so_have_256_streams() {
    streams_are_undistorted(256);
}

/// Two tokens, 5 ms after each other.
fn quick(_: u64) -> ScriptedAnswer {
    ScriptedAnswer { status: 200, waits: vec![Duration::from_millis(5); 2], alone: false }
}

#[test]
fn a_run_that_agrees_is_a_row_of_a_table() {
    let (_, address) = ScriptedServer::start(quick);
    let load = PointLoad::Clients(2);
    let run = measured(settings(address), &LoadPoint { isl: 100, osl: 2, load });
    let repeats = mantile::spec::run::RunRepeats { stable: true, ..run.repeats.unwrap() };
    let known = RunRecord {
        model_id: "Llama-3.1-8B".to_owned(),
        runtime_id: "vllm".to_owned(),
        hardware_id: Some("nvidia-h100-sxm".to_owned()),
        quant: Some("bf16".to_owned()),
        repeats: Some(repeats),
        ..run
    };
    let line = serde_json::to_string(&known).unwrap();
    assert_eq!(serde_json::from_str::<RunRecord>(&line).unwrap(), known);
    let read = usable_rows(
        &[MeasuredTable { name: "runs.jsonl".to_owned(), csv: line + "\n" }],
        &GivenRunFacts::default(),
    )
    .unwrap();
    assert_eq!((read.rows.len(), read.dropped.len()), (1, 0), "{:?}", read.dropped);
    assert_eq!(read.rows[0].concurrency, Some(2));
}

/// 50 ms of work, one request after another.
fn in_turn(_: u64) -> ScriptedAnswer {
    ScriptedAnswer {
        status: 200,
        waits: vec![Duration::from_millis(45), Duration::from_millis(5)],
        alone: true,
    }
}

#[test]
#[ignore = "exact times need a machine of their own: the nightly lane"]
fn latencies_under_a_rate_count_from_the_scheduled_time() {
    let (server, address) = ScriptedServer::start(in_turn);
    let settings = BenchSettings { requests: Some(60), warm_up: Some(0), ..settings(address) };
    // A request every 33 ms at a server that takes 50: the last of 60 waits for a second.
    let load = PointLoad::Rate { per_s: 30.0, variation: 0.0 };
    let run = measured(settings, &LoadPoint { isl: 100, osl: 2, load });
    // The server's own times, which are a little longer than planted: a sleep is never short, and that adds up.
    let mut sent = server.sent.lock().unwrap().clone();
    sent.sort_by_key(|one| one.arrived);
    let begun = sent[0].arrived;
    let since = |number: usize, one: &SentAnswer| {
        (*one.tokens.last().unwrap() - begun).as_secs_f64() * 1e3 - number as f64 * 1e3 / 30.0
    };
    let truth: Vec<f64> = sent.iter().enumerate().map(|(number, one)| since(number, one)).collect();
    assert!(truth.len() == 60 && truth[59] > 1000.0, "{truth:?}");
    // By the nearest rank: each waits longer than the one before, so that neighbours differ by 17 ms.
    near("median", run.metrics.latency_ms_p50, truth[29], 1.0);
    near("p99", run.metrics.latency_ms_p99, truth[59], 3.0);
    assert!(run.repeats.unwrap().e2e_variation.is_none());
    assert_eq!((run.rate_per_s, run.arrival_variation, run.concurrency), (Some(30.0), Some(0.0), None));
    assert!(run.client.unwrap().late_ms_p99.unwrap() < 20.0, "{:?}", run.client);
}

/// Every fifth request is refused, and every seventh is never answered.
fn faulty(number: u64) -> ScriptedAnswer {
    let wait = Duration::from_millis(if number % 7 == 3 { 5000 } else { 10 });
    ScriptedAnswer { status: if number % 5 == 2 { 503 } else { 200 }, waits: vec![wait; 2], alone: false }
}

#[test]
fn failures_and_time_outs_are_counted_and_the_run_is_left_out_of_fits() {
    let (server, address) = ScriptedServer::start(faulty);
    let settings =
        BenchSettings { requests: Some(70), warm_up: Some(0), timeout_s: 0.5, ..settings(address) };
    let run = measured(settings, &LoadPoint { isl: 100, osl: 2, load: PointLoad::Clients(1) });
    let requests = run.requests.clone().unwrap();
    assert_eq!((requests.errors["status 503"], requests.timed_out, requests.answered), (14, 8, 48));
    assert!(run.doubt().unwrap().starts_with("48 of 70"), "{:?}", run.doubt());
    let line = serde_json::to_string(&run).unwrap();
    let bodies = server.bodies.lock().unwrap();
    let prompt = |body: &Value| body["messages"][0]["content"].as_str().unwrap().to_owned();
    let mut prompts: Vec<String> = bodies.iter().map(prompt).collect();
    assert!(
        prompts.iter().all(|prompt| !line.contains(&prompt[..20])) && !line.contains("127.0.0.1"),
        "{line}"
    );
    assert!(bodies.iter().all(|body| body["ignore_eos"] == true && body["min_tokens"] == body["max_tokens"]));
    // No two prompts begin with the same bytes.
    prompts.iter_mut().for_each(|prompt| prompt.truncate(16));
    prompts.sort();
    let all = prompts.len();
    prompts.dedup();
    assert_eq!(prompts.len(), all);
}

#[test]
fn a_server_that_is_not_there_is_a_fault_of_the_endpoint() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fault = BenchSession::begin(settings(free)).err().unwrap();
    assert_eq!(fault.key, "endpoint");
    assert!(fault.fix.contains("start the server"), "{fault}");
}

/// Llama-3.1-8B on an H100 by vLLM, by a plan.
fn planned(plan: &str) -> Scenario {
    Scenario {
        model: Some("Llama-3.1-8B".to_owned()),
        hardware: Some("1xh100".to_owned()),
        runtime: Some("vllm".to_owned()),
        deployment: Some(Deployment { plan: Some(plan.to_owned()), ..Deployment::default() }),
        ..Scenario::default()
    }
}

#[test]
#[ignore = "exact times need a machine of their own: the nightly lane"]
fn a_simulated_server_is_as_fast_as_predicted() {
    let scenario = planned("1 x tp1 @8");
    let question = SimulateRequest { scenario: scenario.clone(), ..SimulateRequest::default() };
    let mock = MockDeployment::new(catalog(), &question, &[], &UNCONTROLLED).unwrap();
    let server = Running::of(move |bound, stopped| {
        serve_mock(mock, &access(), |address| bound.send(address).unwrap(), async {
            let _ = stopped.await;
        })
    });
    let settings = BenchSettings { requests: Some(20), ..settings(server.address) };
    let session = BenchSession::begin(settings).unwrap();
    let subject = BenchSubject::of(catalog(), scenario).unwrap();
    let mut lines = String::new();
    for clients in [1, 4] {
        let point = LoadPoint { isl: 256, osl: 24, load: PointLoad::Clients(clients) };
        let found = subject.estimate(&point).unwrap();
        let run = session.measure(&subject, &point, found.as_ref(), Arc::new(|| {}));
        let predicted = run.prediction.clone().unwrap();
        assert_eq!((run.outcome, run.output_tokens), (RunOutcome::Measured, 24));
        assert!((run.context_tokens as f64 / 256.0 - 1.0).abs() < 0.02, "{}", run.context_tokens);
        let ratio = run.metrics.tpot_ms_p50.unwrap() / predicted.tpot_ms.unwrap();
        assert!((0.9..1.15).contains(&ratio), "{clients} clients: TPOT {ratio} of the prediction");
        assert!(run.server_metrics["vllm:request_success_total"] >= 20.0, "{:?}", run.server_metrics);
        lines += &(serde_json::to_string(&run).unwrap() + "\n");
    }
    let read = usable_rows(
        &[MeasuredTable { name: "runs.jsonl".to_owned(), csv: lines }],
        &GivenRunFacts::default(),
    )
    .unwrap();
    assert_eq!((read.rows.len(), read.dropped.len()), (2, 0));
    assert_eq!(read.rows[1].concurrency, Some(4));
}

/// A launch whose script runs `command`.
fn launch_of(command: &str) -> LaunchReport {
    let text = format!("#!/usr/bin/env bash\n{command}\n");
    let files = vec![LaunchFile { path: "start.sh".to_owned(), text }];
    LaunchReport { runtime: "vllm".to_owned(), files, ..LaunchReport::default() }
}

/// Longest start of the simulated server.
const START: Duration = Duration::from_secs(120);

/// The server of a launch runs until it is dropped, with all the processes that its script started.
#[test]
fn a_launched_server_is_measured_and_stopped() {
    let program = env!("CARGO_BIN_EXE_mantile-opt");
    let deployment = "--model Qwen3-0.6B --hardware 1xh100 --tp 1 --isl 64 --osl 8";
    let command = format!("'{program}' mock --listen \"$HOST:$PORT\" {deployment} &\nwait -n");
    let mut server = StartedServer::start(&launch_of(&command), None, None).unwrap();
    assert_eq!(server.ready("/health", START).unwrap(), Ok(()));
    let address: SocketAddr = server.address.strip_prefix("http://").unwrap().parse().unwrap();
    let point = LoadPoint { isl: 64, osl: 8, load: PointLoad::Clients(2) };
    let run = measured(settings(address), &point);
    assert_eq!((run.outcome, run.requests.unwrap().answered), (RunOutcome::Measured, 20));
    drop(server);
    assert!(TcpStream::connect(address).is_err(), "the server outlives its launch");
}

/// A start that fails says why, as a record that holds no line of the output.
#[test]
fn a_failed_start_is_a_record_with_its_reason() {
    let scenario = Scenario { runtime: None, ..planned("1 x tp1") };
    let subject = BenchSubject::of(catalog(), scenario).unwrap();
    let point = LoadPoint { isl: 64, osl: 8, load: PointLoad::Clients(2) };
    let found = subject.estimate(&point).unwrap().unwrap();
    let outcome = |command: &str| {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut server = StartedServer::start(&launch_of(command), Some(log.path()), None).unwrap();
        let failed = server.ready("/health", START).unwrap().unwrap_err();
        let run = failed.record(&subject, &point, &found);
        assert!(!serde_json::to_string(&run).unwrap().contains("secret"), "{run:?}");
        assert!(run.metrics == BenchMetrics::default() && run.prediction.is_some());
        (run.outcome, run.env["failure"].clone(), failed.line)
    };
    let full =
        "echo 'secret torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.' >&2; exit 1";
    let (how, reason, line) = outcome(full);
    assert_eq!((how, reason), (RunOutcome::Oom, json!("oom_load")));
    assert!(line.starts_with("secret torch"), "{line}");
    assert_eq!(outcome("echo secret; exit 3").0, RunOutcome::NotStarted);
}

/// A server starts in a folder of its own: the file of a question is found from there, a name stays a name.
#[test]
fn the_model_of_a_started_server_is_a_whole_path() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let file = folder.path().join("a b.gguf");
    std::fs::write(&file, "").unwrap();
    let found = model_here(file.to_str()).unwrap();
    assert!(found.is_absolute() && found.ends_with("a b.gguf"), "{found:?}");
    assert_eq!(
        (model_here(Some("Qwen3-8B")), model_here(Some("./missing.gguf")), model_here(None)),
        (None, None, None)
    );
    let configuration = folder.path().join("config.json");
    std::fs::write(&configuration, "").unwrap();
    assert_eq!(model_here(configuration.to_str()), Some(folder.path().canonicalize().unwrap()));
    let log = tempfile::NamedTempFile::new().unwrap();
    let launch = launch_of("echo \"$MODEL\"; exit 1");
    let mut server = StartedServer::start(&launch, Some(log.path()), Some(&found)).unwrap();
    assert_eq!(server.ready("/health", START).unwrap().unwrap_err().line, found.display().to_string());
}

#[test]
fn a_launch_without_a_script_for_this_host_is_a_fault() {
    let fault =
        StartedServer::start(&LaunchReport::refused("vllm", vec!["too large".to_owned()]), None, None);
    let fault = fault.unwrap_err();
    assert_eq!((fault.key.as_str(), fault.found.as_str()), ("launch", "a launch that cannot run: too large"));
}

/// The run that an answer suggests is a command, of one replica, after which the interval is inside the present one.
#[test]
fn the_suggested_run_is_a_command_that_narrows_the_interval() {
    let scenario = Scenario {
        model: Some("Qwen3-8B".to_owned()),
        hardware: Some("4xl40s".to_owned()),
        deployment: Some(Deployment { plan: Some("4 x tp1 @16".to_owned()), ..Deployment::default() }),
        ..Scenario::default()
    };
    let answer = estimate(catalog(), &EstimateRequest::of(scenario), &UNCONTROLLED).unwrap();
    let run = answer.launch.unwrap().next_run.unwrap();
    assert_eq!(run.devices, 1);
    for of in [run.ttft_ms, run.tpot_ms, run.output_tok_s] {
        assert!(of.now[0] < of.then[0] && of.then[0] < of.then[1] && of.then[1] < of.now[1], "{of:?}");
    }
    let words = shlex::split(&run.command).unwrap();
    assert!(words.contains(&"16".to_owned()) && words.contains(&"bench".to_owned()), "{words:?}");
    let dry =
        Command::new(env!("CARGO_BIN_EXE_mantile-opt")).args(&words[1..]).arg("--dry-run").output().unwrap();
    assert!(dry.status.success(), "{}", String::from_utf8_lossy(&dry.stderr));
    let table = String::from_utf8(dry.stdout).unwrap();
    assert!(table.contains("16 clients"), "{table}");
}

/// A server that takes 60 ms a token, which this model on this device does not.
fn slow(_: u64) -> ScriptedAnswer {
    ScriptedAnswer { status: 200, waits: vec![Duration::from_millis(60); 4], alone: false }
}

#[test]
fn a_running_server_is_measured_and_diagnosed() {
    let (_, address) = ScriptedServer::start(slow);
    let endpoint = format!("http://{address}");
    let deployment = ["--model", "Llama-3.1-8B", "--hardware", "1xh100", "--tp", "1"];
    let load = ["--isl", "64", "--osl", "4", "--concurrency", "2", "--json"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    let found =
        command.args(["diagnose", "--endpoint", &endpoint]).args(deployment).args(load).output().unwrap();
    let text = String::from_utf8_lossy(&found.stderr).into_owned();
    assert_eq!(found.status.code(), Some(3), "{text}");
    let answer: Value = serde_json::from_slice(&found.stdout).unwrap();
    let metrics = answer["metrics"].as_array().unwrap();
    let tpot = metrics.iter().find(|one| one["metric"] == "tpot_ms").unwrap();
    near("TPOT", tpot["measured"].as_f64(), 60.0, 10.0);
    assert_eq!(tpot["standing"], "slow");
}

/// A run against vLLM 0.32 on processors, as it was recorded: the client's clock is that of vLLM's own metrics, whose
/// warm-up it does not count, and the document has both.
#[test]
fn the_client_measures_what_vllm_does() {
    let run: RunRecord = serde_json::from_str(include_str!("data/vllm-run.jsonl")).unwrap();
    let of = |part: &str| run.server_metrics[&format!("vllm:request_time_per_output_token_seconds_{part}")];
    let (client, own) = (run.metrics.tpot_ms_mean.unwrap(), 1e3 * of("sum") / of("count"));
    near("TPOT", Some(client), own, 0.0);
    let said = format!("mean TPOT was {client:.1} ms here and {own:.1} ms in vLLM's own metrics");
    assert!(include_str!("../docs/bench.md").contains(&said), "{said}");
}

/// Without hardware there is no prediction; the model is still the one that was named, not the server's name for it, and
/// no path of this machine.
#[test]
fn a_run_without_hardware_is_of_the_named_model() {
    let (_, address) = ScriptedServer::start(slow);
    let endpoint = format!("http://{address}");
    let load = ["--isl", "64", "--osl", "4", "--concurrency", "2", "--json"];
    let model = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
        let found = command.args(["bench", "--endpoint", &endpoint]).args(words).args(load).output().unwrap();
        let text = String::from_utf8_lossy(&found.stderr).into_owned();
        let line: Value = serde_json::from_slice(&found.stdout).unwrap_or_else(|_| panic!("{text}"));
        assert!(line["prediction"].is_null(), "{line}");
        line["model_id"].as_str().unwrap().to_owned()
    };
    assert_eq!(model(&["--model", "Llama-3.1-8B"]), "Llama-3.1-8B");
    let served = model(&[]);
    assert!(served != "Llama-3.1-8B" && !served.is_empty());
    assert_eq!(model(&["--model", "somebody/secret.json"]), served);
}

#[test]
fn a_server_that_answers_nothing_is_not_diagnosed() {
    let (_, address) = ScriptedServer::start(|_| ScriptedAnswer { status: 500, waits: vec![], alone: false });
    let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
    let endpoint = format!("http://{address}");
    let words =
        ["diagnose", "--endpoint", &endpoint, "--model", "Llama-3.1-8B", "--hardware", "1xh100", "--tp", "1"];
    let found = command.args(words).output().unwrap();
    assert_eq!(found.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&found.stderr).contains("answered no request"));
}
