//! Equal requests at the same time are computed once.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::Duration;

use fastrand::Rng;
use mantile::admission::RequestLimits;
use mantile::http::ServerOptions;
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use super::assistants::{Assistant, call};
use crate::draw::cases;
use crate::http::{Running, limits, long, options, until};

/// Limits under which one long request lets all others wait for a while.
fn one_at_a_time() -> RequestLimits {
    RequestLimits { running: 1, waiting: 200, time: Some(Duration::from_secs(3)), ..limits() }
}

/// A few short requests, some of them equal.
fn drawn(random: &mut Rng) -> Vec<(&'static str, Value)> {
    let one = |random: &mut Rng| match random.u32(..3) {
        0 => ("formulas", json!({"word": (*random.choice(&["roofline", "ttft", "none"]).unwrap())})),
        1 => (
            "estimate",
            json!({"scenario": {
                "model": "Qwen3-0.6B", "hardware": "1xl40s", "isl": random.u32(1..4) * 100,
                "deployment": {"both": {"tp": 1}},
            }}),
        ),
        // A fault is one answer too.
        _ => ("estimate", json!({"scenario": {"model": "none", "isl": random.u32(1..3)}})),
    };
    (0..random.usize(5..60)).map(|_| one(random)).collect()
}

/// 9. Over the Model Context Protocol.
#[test]
fn equal_calls_are_computed_once() {
    let mut random = Rng::with_seed(9);
    for _ in 0..cases(2).min(20) {
        let mut client = Assistant::of(one_at_a_time());
        let calls = drawn(&mut random);
        let different: BTreeSet<String> = calls.iter().map(|(name, body)| format!("{name} {body}")).collect();
        let mut messages = vec![call(0, "sweep", &serde_json::from_str(&long()).unwrap())];
        messages.extend((1..).zip(&calls).map(|(id, (name, body))| call(id, name, body)));
        client.send(&messages);
        let mut texts: Vec<Option<String>> = vec![None; messages.len()];
        for _ in &messages {
            let answer = client.next();
            texts[answer["id"].as_u64().unwrap() as usize] = Some(answer["result"].to_string());
        }
        assert_eq!(client.server.computed(), 1 + different.len() as u64, "{calls:?}");
        for (at, call) in calls.iter().enumerate() {
            let same = calls.iter().position(|other| other == call).unwrap();
            assert_eq!(texts[at + 1], texts[same + 1]);
        }
    }
}

/// 10. Over HTTP, in every format, although those before may have left.
#[test]
fn equal_requests_are_computed_once() {
    let mut random = Rng::with_seed(10);
    for _ in 0..cases(2).min(20) {
        let server =
            Running::under(ServerOptions { limits: one_at_a_time(), ..options() }, Catalog::default());
        let blocking = server.begin("POST", "/v2/sweep", &[], &long());
        until(|| server.metric("mantile_requests_running") == 1.0);
        let mut different = BTreeSet::new();
        let mut sent = Vec::new();
        for (name, body) in drawn(&mut random) {
            let accept = *random.choice(&["application/json", "text/event-stream"]).unwrap();
            let begin =
                || server.begin("POST", &format!("/v2/{name}"), &[("accept", accept)], &body.to_string());
            if random.bool() {
                // Its twin remains.
                drop(begin());
            }
            sent.push(begin());
            different.insert(format!("{name} {accept} {body}"));
        }
        until(|| server.metric("mantile_requests_waiting") >= different.len() as f64);
        for mut stream in sent.into_iter().chain([blocking]) {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 200") || text.starts_with("HTTP/1.1 422"), "{text}");
        }
        assert_eq!(server.metric("mantile_answers_total"), 1.0 + different.len() as f64);
    }
}
