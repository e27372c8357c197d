//! A flag that is accepted acts, or is refused.

use clap::{CommandFactory, Parser};
use mantile::cli::Cli;
use mantile::cli::subcommand::Command;
use mantile::request::UNCONTROLLED;
use mantile::request::fleet::fleet;
use mantile::request::recommend::recommend;
use mantile::store::catalog::Catalog;
use serde_json::Value;

/// A flag, with values of which one acts or is refused: on some question each accepted one changes the answer.
type TriedFlag = (&'static str, &'static [&'static str]);

/// Questions of `recommend`.
const RECOMMENDATIONS: [&str; 4] = [
    "recommend --model Llama-3.1-8B --only nvidia-rtx-4090,nvidia-l40s --users 3 --target-tok-s 9",
    "recommend --model gpt-oss-120b --hardware 1xrtx-4090 --host-memory 64GB --target-tok-s 5",
    "recommend --model DeepSeek-V3 --hardware 8xh200 --users 4 --target-tok-s 20",
    "recommend --model Qwen3-8B --hardware 1xl40s --users 8 --target-tok-s 9 --prefix 1024",
];

/// Flags of `recommend`, with a value that differs from those of the questions.
const OF_RECOMMEND: &[TriedFlag] = &[
    ("--target-tok-s", &["400"]),
    ("--users", &["900"]),
    ("--context", &["16k"]),
    ("--budget", &["100usd"]),
    ("--budget-hour", &["0.01usd"]),
    ("--max-watts", &["20"]),
    ("--only", &["nvidia-l4"]),
    ("--model", &["Qwen3-8B"]),
    ("--hardware", &["1xl4"]),
    ("--host", &["ddr5-6000x2"]),
    ("--host-memory", &["32GB"]),
    ("--p2p", &["no", "yes"]),
    ("--network", &["ib-ndr"]),
    ("--prefix-groups", &["3"]),
    ("--objective", &["interactive"]),
    ("--workload", &["long-prompt"]),
    ("--isl", &["77"]),
    ("--osl", &["33"]),
    ("--concurrency", &["3"]),
    ("--rate", &["3"]),
    ("--percentile", &["p99"]),
    ("--risk", &["p90"]),
    ("--prefix", &["64"]),
    ("--images", &["2"]),
    ("--image-size", &["640x480"]),
    ("--draft", &["mtp", "TinyLlama-1.1B-Chat-v1.0"]),
    ("--draft-tokens", &["2"]),
    ("--acceptance", &["0.5"]),
    ("--ttft", &["1ms"]),
    ("--tpot", &["1ms"]),
    ("--e2e", &["1ms"]),
    ("--runtime", &["sglang"]),
    ("--runtime-version", &["0.10.0"]),
    ("--max-num-batched-tokens", &["256"]),
    ("--max-num-seqs", &["1"]),
    ("--max-model-len", &["9000"]),
    ("--gpu-memory-utilization", &["0.5"]),
    ("--weight-format", &["q8_0", "int4-awq"]),
    ("--prefill-weight-format", &["fp8"]),
    ("--decode-weight-format", &["fp8"]),
    ("--kv-format", &["fp8"]),
    ("--offload", &["never", "always"]),
    ("--evidence", &["any"]),
    ("--mode", &["aggregated", "disaggregated"]),
    ("--without", &["tp", "tp,pp,ep"]),
    ("--theoretical", &["true"]),
    ("--pareto", &["tpot"]),
    ("--price-basis", &["rented", "owned"]),
    ("--usd-per-device-hour", &["0.5"]),
    ("--electricity-usd-per-kwh", &["1.5"]),
    ("--pue", &["1.9"]),
    ("--amortization-months", &["7"]),
    ("--utilization", &["0.3"]),
    ("--hours-per-day", &["5"]),
    ("--set", &["device[nvidia-l40s].memory.bandwidth=100 GB/s"]),
];

/// The answer without what repeats the question; none where it is refused.
fn answer(line: &str) -> Option<Value> {
    let words = std::iter::once("mantile-opt").chain(line.split_whitespace());
    let words = words.map(|word| word.replace('~', " "));
    let cli = Cli::try_parse_from(words).ok()?;
    let catalog = Catalog::default();
    let mut value = match cli.command.as_ref()? {
        Command::Recommend(args) => {
            serde_json::to_value(recommend(&catalog, &args.request(), &UNCONTROLLED).ok()?).ok()?
        }
        Command::Fleet(args) => {
            serde_json::to_value(fleet(&catalog, &args.request().ok()?, &UNCONTROLLED).ok()?).ok()?
        }
        _ => panic!("{line}"),
    };
    for key in ["scenario", "sought", "question", "looked", "launch", "launches", "certificate"] {
        value.as_object_mut()?.remove(key);
    }
    Some(value)
}

/// Flags that change no answer of any question, with values that are all accepted.
fn idle(questions: &[&str], flags: &[TriedFlag]) -> Vec<String> {
    let plain: Vec<Value> =
        questions.iter().map(|line| answer(line).expect("the question has an answer")).collect();
    let mut idle = Vec::new();
    for (flag, values) in flags {
        let mut acts = false;
        let mut ignored = Vec::new();
        for (line, plain) in questions.iter().zip(&plain) {
            for value in *values {
                // The last of two values counts.
                let without: Vec<&str> = line.split_whitespace().collect();
                let at = without.iter().position(|word| word == flag);
                let mut words = without.clone();
                at.map(|at| words.drain(at..at + 2).count());
                match answer(&format!("{} {flag} {}", words.join(" "), value.replace(' ', "~"))) {
                    None => {}
                    Some(other) if other != *plain => acts = true,
                    Some(_) => ignored.push(*value),
                }
            }
        }
        if !acts && !ignored.is_empty() {
            idle.push(format!("{flag} {}", ignored[0]));
        }
    }
    idle
}

/// Every flag of `recommend` has an entry, so that a new one is tried too.
#[test]
fn every_flag_of_recommend_is_tried() {
    let command = Cli::command();
    let of = command.find_subcommand("recommend").expect("a command");
    let output = ["Output", "Launch files", "Options", "Pictures"];
    let flags =
        of.get_arguments().filter(|arg| !arg.get_help_heading().is_some_and(|of| output.contains(&of)));
    let untried: Vec<String> = flags
        .filter(|arg| !arg.is_global_set())
        .filter_map(|arg| Some(format!("--{}", arg.get_long()?)))
        .filter(|flag| flag != "--allow" && !OF_RECOMMEND.iter().any(|(known, _)| known == flag))
        .collect();
    assert_eq!(untried, Vec::<String>::new());
}

#[test]
fn every_flag_of_recommend_acts_or_is_refused() {
    assert_eq!(idle(&RECOMMENDATIONS, OF_RECOMMEND), Vec::<String>::new());
}

/// Devices of vendors without measurements compete only where they are allowed.
#[test]
fn unmeasured_devices_compete_where_they_are_allowed() {
    let line = "recommend --model Llama-3.1-8B --only workstation --target-tok-s 9";
    let [usual, allowed] =
        ["", " --allow unmeasured"].map(|flag| answer(&format!("{line}{flag}")).expect("an answer"));
    assert_ne!(usual, allowed);
}

/// Questions of `fleet`.
const FLEETS: [&str; 1] = ["fleet --model Llama-3.1-8B --offers 1xl40s,1xrtx-4090,h100-sxm-x1"];

/// Flags of `fleet`.
const OF_FLEET: &[TriedFlag] = &[
    ("--offers", &["1xh100"]),
    ("--aim", &["devices", "throughput"]),
    ("--budget-hour", &["0.1usd"]),
    ("--max-devices", &["1"]),
    ("--spare", &[""]),
    ("--headroom", &["0.5"]),
    ("--hours-per-day", &["5"]),
    ("--model", &["Qwen3-8B"]),
    ("--ttft", &["30ms"]),
    ("--tpot", &["8ms"]),
    ("--weight-format", &["fp8"]),
    ("--price-basis", &["owned", "rented"]),
    ("--electricity-usd-per-kwh", &["1.5"]),
    ("--set", &["device[nvidia-l40s].memory.bandwidth=100 GB/s"]),
];

#[test]
fn every_flag_of_fleet_acts_or_is_refused() {
    assert_eq!(idle(&FLEETS, OF_FLEET), Vec::<String>::new());
}
