//! The Model Context Protocol has the limits of the HTTP server.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use mantile::admission::RequestLimits;
use mantile::mcp::McpServer;
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};

use crate::draw::cases;
use crate::http::limits;

/// A client of a server in this process.
pub struct Assistant {
    pub server: McpServer,
    runtime: tokio::runtime::Runtime,
    answers: BufReader<ReadHalf<DuplexStream>>,
    requests: WriteHalf<DuplexStream>,
}

impl Assistant {
    pub fn of(limits: RequestLimits) -> Assistant {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let server = McpServer::new(Catalog::default(), limits).unwrap();
        let (near, far) = duplex(64 << 10);
        runtime.spawn(server.clone().serve_over(split(far)));
        let (answers, requests) = split(near);
        let mut client = Assistant { server, runtime, answers: BufReader::new(answers), requests };
        client.send(&[json!({
            "jsonrpc": "2.0", "id": "begin", "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
        })]);
        assert_eq!(client.next()["id"], "begin");
        client.send(&[json!({"jsonrpc": "2.0", "method": "notifications/initialized"})]);
        client
    }

    /// Sends messages at once.
    pub fn send(&mut self, messages: &[Value]) {
        let text: String = messages.iter().map(|message| format!("{message}\n")).collect();
        self.runtime.block_on(self.requests.write_all(text.as_bytes())).unwrap();
    }

    /// The next message of the server.
    pub fn next(&mut self) -> Value {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        let read =
            self.runtime.block_on(async { tokio::time::timeout(Duration::from_secs(300), read).await });
        read.expect("the server answers").unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

pub fn call(id: u64, name: &str, body: &Value) -> Value {
    let params = json!({"name": name, "arguments": body});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// 6. Calls beyond the places that answer and wait are refused with the limit; all others are answered.
#[test]
fn calls_beyond_the_places_are_refused_with_the_limit() {
    let mut random = Rng::with_seed(6);
    for _ in 0..cases(2).min(20) {
        let (running, waiting) = (random.usize(1..4), random.usize(..5));
        let calls = 60;
        let time = Some(Duration::from_millis(300));
        let mut client = Assistant::of(RequestLimits { running, waiting, time, ..limits() });
        let sweep = |at: u64| {
            json!({
                "scenario": {"model": "Llama-3.1-8B", "hardware": "8xh100", "deployment": {"both": {"tp": 1}}},
                "vary": [format!("isl={}..20000+1", at + 1)],
            })
        };
        client.send(&(0..calls).map(|at| call(at, "sweep", &sweep(at))).collect::<Vec<_>>());
        let limit = format!("at most {running} requests that are answered and {waiting} that wait");
        let (mut answered, mut ids) = (0, BTreeSet::new());
        for _ in 0..calls {
            let message = client.next();
            ids.insert(message["id"].as_u64());
            let text = message["result"]["content"][0]["text"].as_str().unwrap();
            match message["result"]["isError"] == true {
                true => assert!(text.contains(&limit), "{text}"),
                false => answered += 1,
            }
        }
        assert_eq!(ids.len() as u64, calls);
        assert!((running + waiting..30).contains(&answered), "{answered} of {running} + {waiting}");
        assert_eq!(client.server.computed(), answered as u64);
    }
}

/// 7. Each message beyond the largest one is refused with the limit; all others are answered. Many come at once.
#[test]
fn a_message_that_is_too_long_is_refused_with_the_limit() {
    let mut random = Rng::with_seed(7);
    let most = 20_000;
    let mut client = Assistant::of(RequestLimits { message_bytes: most, ..limits() });
    for _ in 0..cases(60) {
        let filled = |id: u64, bytes: usize| call(id, "glossary", &json!({"filter": "x".repeat(bytes)}));
        let messages = (0..random.u64(1..6)).map(|id| {
            let bytes = match random.bool() {
                true => most + random.usize(..20) - 10,
                false => random.usize(1000..4 * most),
            };
            (id, bytes, filled(id, bytes - filled(id, 0).to_string().len()))
        });
        let (mut too_long, mut answered, mut sent) = (0, BTreeSet::new(), Vec::new());
        for (id, bytes, message) in messages {
            match bytes <= most {
                true => assert!(answered.insert(id)),
                false => too_long += 1,
            }
            sent.push(message);
        }
        client.send(&sent);
        for _ in &sent {
            let answer = client.next();
            match answer["id"].as_u64() {
                Some(id) => assert!(answered.remove(&id), "{answer}"),
                None => {
                    let text = answer["error"]["message"].as_str().unwrap();
                    assert!(text.contains(&format!("{most} bytes")), "{answer}");
                    too_long -= 1;
                }
            }
        }
        assert!(answered.is_empty() && too_long == 0, "{answered:?}, {too_long}");
    }
}

/// 8. A call that its client cancels ends, and its place is free.
#[test]
fn a_cancelled_call_frees_its_place() {
    let mut client = Assistant::of(RequestLimits { running: 1, waiting: 0, time: None, ..limits() });
    let long: Value = serde_json::from_str(&crate::http::long()).unwrap();
    for id in 0..cases(3).min(40) {
        client.send(&[call(2 * id, "sweep", &long)]);
        client.send(&[json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2 * id},
        })]);
        // The place is free as soon as the search sees that it was left.
        let answered = loop {
            client.send(&[call(2 * id + 1, "formulas", &json!({"word": "roofline"}))]);
            let answer = loop {
                let message = client.next();
                if message["id"] == 2 * id + 1 {
                    break message;
                }
            };
            if answer["result"]["isError"] != true {
                break answer;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(
            answered["result"]["content"][0]["text"].as_str().unwrap().contains("roofline"),
            "{answered}"
        );
    }
}

/// 11. `troubleshoot` is `check` with a symptom, and says so where there is none.
#[test]
fn troubleshoot_is_a_check_with_a_symptom() {
    let mut client = Assistant::of(limits());
    let symptom = json!({
        "command": "vllm serve Qwen/Qwen3-32B", "log": "out of memory when graphs are captured",
        "scenario": {"hardware": "1xl40s"},
    });
    let mut text = |id: u64, name: &str, body: &Value| {
        client.send(&[call(id, name, body)]);
        client.next()["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let answers = [text(1, "check", &symptom), text(2, "troubleshoot", &symptom)];
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].contains("corrections"), "{}", answers[0]);
    let without = json!({"command": symptom["command"], "scenario": symptom["scenario"]});
    assert!(text(3, "troubleshoot", &without).contains("call `check`"));
}
