//! The simulated server of OpenAI's interface: each token is sent at the end of the simulated step that makes it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use mantile::http::mock::{MockDeployment, serve_mock};
use mantile::http::{ConnectionLimits, ServerAccess};
use mantile::request::UNCONTROLLED;
use mantile::request::simulate::{SimulateRequest, SimulatedTraffic, simulate};
use mantile::spec::deployment::Deployment;
use mantile::spec::fleet::TracedRequest;
use mantile::spec::role::Role;
use mantile::spec::scenario::Scenario;
use mantile::traffic::content::TokenRun;
use mantile::traffic::engine::{EngineRequest, SchedulerSettings};
use mantile::traffic::operation::OperationSettings;
use mantile::traffic::outcome::RequestRecord;
use mantile::traffic::router::RoutePolicy;
use mantile::traffic::run::{DeploymentSettings, NextEvent, PoolSettings, RunListener, TrafficRun};
use mantile::traffic::sglang::SglangSettings;
use mantile::traffic::source::{
    Arrival, Arrivals, DrawnTraffic, LengthDistribution, RequestSource, replayed, submitted,
};
use mantile::traffic::trtllm::TrtllmSettings;
use mantile::traffic::vllm::VllmSettings;
use serde_json::{Value, json};

use crate::doors::catalog;
use crate::http::{Running, access};
use crate::traffic::{AMPLE, AMPLE_SGLANG, AMPLE_TRTLLM, clock, records};

/// Tokens of each request with their times, and its record.
#[derive(Default)]
struct HeardTokens {
    now_s: f64,
    tokens: HashMap<u64, Vec<(u32, f64)>>,
    records: Vec<RequestRecord>,
}

impl RunListener for HeardTokens {
    fn answered(&mut self, record: &RequestRecord) {
        self.records.push(*record);
    }

    fn has_tokens(&mut self, id: u64, tokens: u32) {
        let heard = self.tokens.entry(id).or_default();
        let before = heard.last().map_or(0, |last| last.0);
        assert!(tokens >= before, "request {id} loses tokens: {before}, then {tokens}");
        if tokens > before {
            heard.push((tokens, self.now_s));
        }
    }
}

fn arrivals() -> Vec<Arrival> {
    let traffic = DrawnTraffic {
        arrivals: Arrivals::Rate { per_s: 12.0, variation: 1.5 },
        requests: 150,
        prompt: LengthDistribution::LogNormal { mean: 300.0, variation: 1.0 },
        output: LengthDistribution::LogNormal { mean: 60.0, variation: 0.8 },
        prefix: 64,
        prefix_groups: 3,
        distinct_prompts: 0,
        sessions: None,
        seed: 5,
    };
    let mut source = RequestSource::new(traffic);
    std::iter::from_fn(|| source.take()).collect()
}

/// Requests are submitted one by one, each when its time has come.
fn streamed(settings: &DeploymentSettings, arrivals: Vec<Arrival>) -> (HeardTokens, u64) {
    let (mut run, mut source) = (TrafficRun::new(settings, &clock).streamed(), submitted());
    let mut heard = HeardTokens::default();
    let until = |run: &mut TrafficRun<'_, _>, source: &mut RequestSource, heard: &mut HeardTokens, end_s| {
        while let Some(next_s) = run.next_s(source).filter(|next_s| *next_s <= end_s) {
            heard.now_s = next_s;
            assert!(run.advance(source, end_s, heard).is_some());
        }
        assert_eq!(run.advance(source, end_s, heard), None::<NextEvent>);
    };
    for arrival in arrivals {
        // As a driver does, which takes what is due before it hears of the request.
        until(&mut run, &mut source, &mut heard, arrival.time_s - 1e-9);
        assert!(run.can_take(&arrival.request));
        source.submit(arrival);
    }
    until(&mut run, &mut source, &mut heard, f64::INFINITY);
    let preemptions = run.totals().preemptions;
    (heard, preemptions)
}

#[test]
fn a_streamed_run_is_the_same_run_and_each_token_has_its_time() {
    let schedulers = [
        SchedulerSettings::Vllm(VllmSettings { blocks: 250, ..AMPLE }),
        SchedulerSettings::Vllm(VllmSettings { asynchronous: true, token_budget: 512, ..AMPLE }),
        SchedulerSettings::Sglang(SglangSettings { cache_tokens: 5000, ..AMPLE_SGLANG }),
        SchedulerSettings::Sglang(SglangSettings { overlap: false, page_tokens: 16, ..AMPLE_SGLANG }),
        SchedulerSettings::Trtllm(TrtllmSettings { blocks: 200, ..AMPLE_TRTLLM }),
        SchedulerSettings::Trtllm(TrtllmSettings { overlap: false, ..AMPLE_TRTLLM }),
    ];
    let mut preempted = 0;
    for scheduler in schedulers {
        for roles in [&[(Role::Aggregated, 1)][..], &[(Role::Prefill, 1), (Role::Decode, 2)]] {
            let pool = |&(role, replicas)| PoolSettings::untiered(role, (replicas, 1), scheduler.clone());
            let pools = roles.iter().map(pool).collect();
            let settings = DeploymentSettings {
                pools,
                router: RoutePolicy::LeastRequests,
                seed: 1,
                operation: OperationSettings::default(),
            };
            let (heard, preemptions) = streamed(&settings, arrivals());
            preempted += preemptions;
            let (_, whole) = records(&settings, replayed(arrivals()), &clock);
            assert_eq!(heard.records.len(), 150);
            let by_id: HashMap<u64, &RequestRecord> = heard.records.iter().map(|one| (one.id, one)).collect();
            for expected in &whole {
                let found = by_id[&expected.id];
                for (one, other) in [
                    (found.admitted_s, expected.admitted_s),
                    (found.first_token_s, expected.first_token_s),
                    (found.last_token_s, expected.last_token_s),
                ] {
                    assert!((one - other).abs() < 1e-6, "{settings:?}: {found:?}, not {expected:?}");
                }
                // The answer has the last token.
                let tokens = heard.tokens.get(&found.id).map_or(&[][..], Vec::as_slice);
                let counts: Vec<u32> = tokens.iter().map(|(count, _)| *count).collect();
                assert_eq!(counts, (1..found.output).collect::<Vec<u32>>(), "{settings:?}: {found:?}");
                if let Some((_, first_s)) = tokens.first() {
                    assert!((first_s - found.first_token_s).abs() < 1e-9, "{found:?}: {first_s}");
                }
                assert!(tokens.is_sorted_by(|a, b| a.1 < b.1));
            }
        }
    }
    assert!(preempted > 5, "{preempted} preemptions say little");
}

fn question(speed_up: f64) -> SimulateRequest {
    let deployment = Deployment { plan: Some("1 x tp1 @8".to_owned()), ..Deployment::default() };
    let scenario = Scenario {
        model: Some("Llama-3.1-8B".to_owned()),
        hardware: Some("1xh100".to_owned()),
        deployment: Some(deployment),
        osl: Some(7),
        ..Scenario::default()
    };
    let traffic = SimulatedTraffic { speed_up: Some(speed_up), ..SimulatedTraffic::default() };
    SimulateRequest { scenario, traffic, ..SimulateRequest::default() }
}

fn server(speed_up: f64, access: ServerAccess) -> Running {
    let deployment = MockDeployment::new(catalog(), &question(speed_up), &[], &UNCONTROLLED).unwrap();
    Running::of(move |bound, stopped| {
        serve_mock(deployment, &access, |address| bound.send(address).unwrap(), async {
            let _ = stopped.await;
        })
    })
}

/// Chunks of a streamed answer, with the time since the request was sent.
fn chunks(server: &Running, path: &str, body: &Value) -> Vec<(String, Duration)> {
    let begun = Instant::now();
    let stream = server.begin("POST", path, &[], &body.to_string());
    let lines = BufReader::new(stream).lines().map(|line| (line.unwrap(), begun.elapsed()));
    let data = |(line, time): (String, Duration)| Some((line.strip_prefix("data: ")?.to_owned(), time));
    lines.filter_map(data).collect()
}

#[test]
fn streams_end_with_their_usage_and_done() {
    let server = server(50.0, access());
    let body = json!({
        "model": "Llama-3.1-8B", "max_tokens": 5, "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "How are you?"}], "temperature": 0.5, "ignore_eos": true,
    });
    let chat = chunks(&server, "/v1/chat/completions", &body);
    let (done, usage) = (&chat[chat.len() - 1].0, &chat[chat.len() - 2].0);
    assert_eq!(done, "[DONE]");
    let usage: Value = serde_json::from_str(usage).unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["prompt_tokens"], 5);
    assert_eq!(usage["usage"]["completion_tokens"], 5);
    assert_eq!(usage["usage"]["total_tokens"], 10);
    let parts: Vec<Value> =
        chat[..chat.len() - 2].iter().map(|(data, _)| serde_json::from_str(data).unwrap()).collect();
    assert_eq!(parts.len(), 6);
    assert_eq!(parts[0]["choices"][0]["delta"]["role"], "assistant");
    let text: String =
        parts.iter().map(|part| part["choices"][0]["delta"]["content"].as_str().unwrap()).collect();
    assert_eq!(text, " tok tok tok tok tok");
    let ends: Vec<&Value> = parts.iter().map(|part| &part["choices"][0]["finish_reason"]).collect();
    assert!(ends[..5].iter().all(|end| end.is_null()) && ends[5] == "length", "{ends:?}");

    // A list of tokens has as many; without a limit an answer has the output tokens of the scenario.
    let body = json!({"prompt": [1, 2, 3], "stream": false});
    let (status, _, text) = server.send("POST", "/v1/completions", &[], &body.to_string());
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &answer["object"]), (200, &json!("text_completion")));
    assert_eq!(answer["usage"]["prompt_tokens"], 3);
    assert_eq!(answer["usage"]["completion_tokens"], 7);
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["choices"][0]["text"], " tok".repeat(7));
    let (_, _, models) = server.send("GET", "/v1/models", &[], "");
    let models: Value = serde_json::from_str(&models).unwrap();
    assert_eq!(models["data"][0]["id"], "Llama-3.1-8B");
    assert_eq!(server.send("GET", "/health", &[], "").0, 200);
    assert_eq!(server.metric("vllm:request_success_total"), 2.0);
    assert_eq!(server.metric("vllm:generation_tokens_total"), 12.0);
    assert_eq!(server.metric("vllm:time_to_first_token_seconds_count"), 2.0);
    assert_eq!(server.metric("vllm:num_requests_running"), 0.0);
}

#[test]
fn the_next_turn_of_a_chat_finds_the_turn_before_in_the_cache() {
    let server = server(50.0, access());
    let ask = |messages: &Value| -> Value {
        let body = json!({"messages": messages, "max_tokens": 40}).to_string();
        serde_json::from_str(&server.send("POST", "/v1/chat/completions", &[], &body).2).unwrap()
    };
    let first = json!({"role": "user", "content": "x".repeat(800)});
    let answer = ask(&json!([first]));
    assert_eq!(answer["usage"]["prompt_tokens"], 202);
    assert_eq!(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    let later =
        ask(&json!([first, answer["choices"][0]["message"], {"role": "user", "content": "And now?"}]));
    // Whole blocks of 16 tokens of the prompt and of its answer, whose last token was not computed.
    assert_eq!(later["usage"]["prompt_tokens_details"]["cached_tokens"], (202 + 39) / 16 * 16);
    let other = ask(&json!([{"role": "system", "content": "Be brief."}, first]));
    assert_eq!(other["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

#[test]
fn faults_have_the_shape_of_the_interface() {
    let server = server(50.0, access());
    let prompt = |more: Value| {
        let mut body = json!({"prompt": "How are you?"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body.to_string()
    };
    let completions = "/v1/completions";
    for (path, body, status, param, code) in [
        (completions, "{".to_owned(), 400, json!(null), json!(null)),
        (completions, prompt(json!({"model": "other"})), 404, json!("model"), json!("model_not_found")),
        (completions, prompt(json!({"n": 2})), 400, json!("n"), json!(null)),
        (completions, prompt(json!({"best_of": 3})), 400, json!("best_of"), json!(null)),
        (completions, prompt(json!({"echo": true})), 400, json!("echo"), json!(null)),
        (completions, prompt(json!({"logprobs": 1})), 400, json!("logprobs"), json!(null)),
        (completions, prompt(json!({"max_tokens": 0})), 400, json!("max_tokens"), json!(null)),
        (completions, prompt(json!({"max_tokens": "many"})), 400, json!("max_tokens"), json!(null)),
        (
            completions,
            prompt(json!({"max_tokens": 10_000_000})),
            400,
            json!("max_tokens"),
            json!("context_length_exceeded"),
        ),
        (completions, json!({"prompt": ["a", "b"]}).to_string(), 400, json!("prompt"), json!(null)),
        (completions, json!({"prompt": ""}).to_string(), 400, json!("prompt"), json!(null)),
        ("/v1/chat/completions", json!({}).to_string(), 400, json!("messages"), json!(null)),
        ("/v1/embeddings", "{}".to_owned(), 404, json!(null), json!(null)),
    ] {
        let (found, head, text) = server.send("POST", path, &[], &body);
        assert_eq!(found, status, "{path} {body}: {text}");
        assert!(head.contains("content-type: application/json") && head.contains("nosniff"), "{head}");
        let fault: Value = serde_json::from_str(&text).unwrap();
        let error = &fault["error"];
        assert_eq!((&error["param"], &error["code"]), (&param, &code), "{body}: {text}");
        assert_eq!(error["type"], "invalid_request_error");
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
    let (status, _, text) = server.send("GET", completions, &[], "");
    assert!(status == 405 && text.starts_with("{\"error\":"), "{status}: {text}");
    let (status, ..) = server.send("POST", completions, &[("content-type", "text/plain")], "{}");
    assert_eq!(status, 415);
    assert_eq!(server.send("GET", "/v1/models/other", &[], "").0, 404);
}

#[test]
fn the_key_of_clients_is_the_token() {
    let server = server(50.0, ServerAccess { token: Some("secret".to_owned()), ..access() });
    let (status, _, text) = server.send("GET", "/v1/models", &[], "");
    let fault: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &fault["error"]["code"]), (401, &json!("invalid_api_key")));
    assert_eq!(server.send("GET", "/v1/models", &[("authorization", "Bearer secret")], "").0, 200);
    assert_eq!(server.send("GET", "/health", &[], "").0, 200);
}

/// A request as its client saw it, in simulated seconds.
struct SeenRequest {
    sent_s: f64,
    prompt: u64,
    ttft_s: f64,
    tpot_s: f64,
}

/// A quarter of the speed, so that delays of a busy machine count a quarter.
const SPEED: f64 = 0.25;
const OUTPUT: u64 = 16;

/// Ten clients, of which each begins while the ones before it are being answered.
fn seen(server: &Running) -> Vec<SeenRequest> {
    let begun = Instant::now();
    let client = |client: u64| -> SeenRequest {
        std::thread::sleep(Duration::from_millis(200) * client as u32);
        let prompt = 200 + 150 * client;
        let tokens: Vec<u64> = (0..prompt).map(|at| client + 1000 * at).collect();
        let body = json!({"prompt": tokens, "max_tokens": OUTPUT, "stream": true});
        let sent_s = begun.elapsed().as_secs_f64() * SPEED;
        let chunks = chunks(server, "/v1/completions", &body);
        assert_eq!(chunks.len() as u64, OUTPUT + 1);
        let [first, last] = [0, OUTPUT as usize - 1].map(|at| chunks[at].1.as_secs_f64() * SPEED);
        SeenRequest { sent_s, prompt, ttft_s: first, tpot_s: (last - first) / (OUTPUT - 1) as f64 }
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..10).map(|number| scope.spawn(move || client(number))).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    })
}

#[test]
fn clients_see_the_latencies_of_the_simulation() {
    let server = server(SPEED, access());
    let mut seen = seen(&server);
    seen.sort_by(|a, b| a.sent_s.total_cmp(&b.sent_s));
    let request = |one: &SeenRequest| TracedRequest {
        arrival: one.sent_s,
        isl: one.prompt,
        osl: OUTPUT,
        ..TracedRequest::default()
    };
    let traffic =
        SimulatedTraffic { trace: seen.iter().map(request).collect(), ..SimulatedTraffic::default() };
    let replayed = SimulateRequest { traffic, ..question(1.0) };
    let report = simulate(catalog(), &replayed, &UNCONTROLLED).unwrap();
    let simulated = |metric: &str| {
        let row = report.latencies.iter().find(|row| row.metric == metric).unwrap();
        row.mean_ms.unwrap() / 1e3
    };
    let mean = |of: fn(&SeenRequest) -> f64| seen.iter().map(of).sum::<f64>() / seen.len() as f64;
    let (ttft, tpot) = (mean(|one| one.ttft_s), mean(|one| one.tpot_s));
    println!(
        "TTFT {:.2} ms, simulated {:.2} ms; TPOT {:.3} ms, simulated {:.3} ms",
        ttft * 1e3,
        simulated("ttft") * 1e3,
        tpot * 1e3,
        simulated("tpot") * 1e3
    );
    // The clock of a machine that is busy with other tests: 40 ms, of which a quarter counts.
    assert!((ttft - simulated("ttft")).abs() < 0.01 + 0.1 * ttft, "{ttft}, not {}", simulated("ttft"));
    assert!((tpot / simulated("tpot") - 1.0).abs() < 0.1, "{tpot}, not {}", simulated("tpot"));
}

#[test]
fn a_client_that_leaves_and_a_stop_end_it() {
    let connections = ConnectionLimits { stop: Duration::from_millis(200), ..access().connections };
    let mut server = server(1.0, ServerAccess { connections, ..access() });
    let body = json!({"prompt": "How are you?", "max_tokens": 5000, "stream": true}).to_string();
    // It leaves after its first bytes.
    let mut first = [0; 1];
    let mut left = server.begin("POST", "/v1/completions", &[], &body);
    left.read_exact(&mut first).unwrap();
    drop(left);
    // Another stays, alone in the simulation, and the server ends within its stop time.
    let mut stays = server.begin("POST", "/v1/completions", &[], &body);
    stays.read_exact(&mut first).unwrap();
    until(&server, "vllm:num_requests_running", |running| running == 1.0);
    assert!(server.stopped() < Duration::from_secs(20));
}

fn until(server: &Running, name: &str, expected: impl Fn(f64) -> bool) {
    let begun = Instant::now();
    while !expected(server.metric(name)) {
        let value = server.metric(name);
        assert!(begun.elapsed() < Duration::from_secs(20), "{name} {value}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A client that leaves in mid-stream, before its first token, or while it waits for a whole answer.
#[test]
fn the_request_of_a_client_that_leaves_ends() {
    let server = server(1.0, access());
    let running = "vllm:num_requests_running";
    // To its end, each takes about a minute: longer than the test waits.
    for (streams, reads) in [(true, true), (true, false), (false, false)] {
        let body = json!({"prompt": "How are you?", "max_tokens": 10_000, "stream": streams}).to_string();
        let mut client = server.begin("POST", "/v1/completions", &[], &body);
        if reads {
            client.read_exact(&mut [0; 1]).unwrap();
        }
        until(&server, running, |running| running == 1.0);
        drop(client);
        until(&server, running, |running| running == 0.0);
    }
    // Its cache is free, none of them counts as answered, and the next one is served.
    assert_eq!(server.metric("vllm:kv_cache_usage_perc"), 0.0);
    assert_eq!(server.metric("vllm:request_success_total"), 0.0);
    let body = json!({"prompt": "How are you?", "max_tokens": 5, "stream": true});
    assert_eq!(chunks(&server, "/v1/completions", &body).len(), 6);
}

/// One that leaves makes place for the one that waits for memory, on a worker that decodes too.
#[test]
fn what_a_client_gives_up_is_free_for_the_next() {
    let scheduler = SchedulerSettings::Vllm(VllmSettings { blocks: 100, ..AMPLE });
    for roles in [&[Role::Aggregated][..], &[Role::Prefill, Role::Decode]] {
        let pool = |&role| PoolSettings::untiered(role, (1, 1), scheduler.clone());
        let settings = DeploymentSettings {
            pools: roles.iter().map(pool).collect(),
            router: RoutePolicy::LeastRequests,
            seed: 1,
            operation: OperationSettings::default(),
        };
        let (mut run, mut source) = (TrafficRun::new(&settings, &clock).streamed(), submitted());
        let mut heard = HeardTokens::default();
        // Each needs most of the cache.
        for id in 0..2 {
            let request = EngineRequest::new(id, vec![TokenRun { id, tokens: 1400 }], 1000, 400);
            source.submit(Arrival { time_s: id as f64 * 1e-3, request });
        }
        while run.advance(&mut source, 1.0, &mut heard).is_some() {}
        let has_tokens = |id: u64| heard.tokens.get(&id).is_some_and(|tokens| !tokens.is_empty());
        assert!(has_tokens(0) && !has_tokens(1), "{roles:?}");
        run.give_up(0, 1.0, &mut source);
        // One that never came, and one that is gone, change nothing.
        run.give_up(7, 1.0, &mut source);
        run.give_up(0, 1.0, &mut source);
        while run.advance(&mut source, f64::INFINITY, &mut heard).is_some() {}
        let ids: Vec<u64> = heard.records.iter().map(|one| one.id).collect();
        assert_eq!((ids, run.totals().aborted), (vec![1], 1), "{roles:?}");
        assert!(heard.records[0].last_token_s > 1.0 && run.totals().wasted > 0);
        assert_eq!(run.state(100.0).kv_used, 0.0);
    }
}

#[test]
fn a_request_that_no_cache_holds_is_not_taken() {
    let settings: DeploymentSettings =
        PoolSettings::untiered(Role::Aggregated, (1, 1), SchedulerSettings::Vllm(AMPLE)).into();
    let run = TrafficRun::new(&settings, &clock);
    assert!(run.can_take(&EngineRequest::new(0, vec![], 1000, 10)));
    assert!(!run.can_take(&EngineRequest::new(0, vec![], 1000, 10_000_000)));
}
