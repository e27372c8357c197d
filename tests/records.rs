//! The records of real servers account for their tokens: what requests were sent is what steps computed.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/vllm-0.24.0-h200");

/// Phases whose last steps were not written, and the one that computes prompts again after a preemption.
const INCOMPLETE: [&str; 3] = ["fp8/closed128", "tight/poisson60mixed", "tight/closed96"];

fn unpacked(name: &str) -> String {
    let mut text = String::new();
    let file = std::fs::File::open(format!("{FOLDER}/{name}")).unwrap();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// Prompt tokens and decoded tokens by phase, of requests: the first token of each comes from its prompt.
fn sent() -> BTreeMap<String, [u64; 2]> {
    let mut all: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for line in unpacked("requests.jsonl.gz").lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        let number = |key: &str| request[key].as_u64().unwrap();
        let time = |key: &str| request[key].as_f64().unwrap();
        assert_eq!(number("n"), number("osl"), "{line}");
        // A timer may fire a little early.
        assert!(
            time("arr") <= time("send") + 2e-3
                && time("send") <= time("first")
                && time("first") <= time("end")
        );
        let sum = all.entry(request["ph"].as_str().unwrap().to_owned()).or_default();
        *sum = [sum[0] + number("isl"), sum[1] + number("osl") - 1];
    }
    all
}

/// The same, of steps.
fn computed() -> BTreeMap<String, [u64; 2]> {
    let mut all: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let text = unpacked("steps.csv.gz");
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let head = rows.headers().unwrap().clone();
    let at = |name: &str| head.iter().position(|column| column == name).unwrap();
    let [prompt, decoded] = [at("ctx_tokens"), at("gen_tokens")];
    for row in rows.records().map(Result::unwrap) {
        let number = |column: usize| row[column].parse::<u64>().unwrap();
        let sum = all.entry(row[0].to_owned()).or_default();
        *sum = [sum[0] + number(prompt), sum[1] + number(decoded)];
    }
    all
}

#[test]
fn steps_account_for_every_token_of_the_requests() {
    let (sent, computed) = (sent(), computed());
    assert_eq!(sent.len(), 21);
    for (phase, sent) in &sent {
        let computed = computed[phase];
        if INCOMPLETE.contains(&phase.as_str()) {
            assert_ne!(computed, *sent, "{phase}");
        } else {
            assert_eq!(computed, *sent, "{phase}");
        }
    }
}
