//! With a request rate, the default is the cheapest plan that meets the SLOs: no plan of any other objective, on as many
//! or fewer of the same devices, costs less.

use mantile::search::point::place;
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::evidence::EvidenceRule;
use mantile::spec::objective::Metric;
use mantile::spec::percentile::Confidence;
use mantile::spec::scenario::Scenario;
use rayon::prelude::*;

use super::ask::{ask, on};

/// Model, device, devices there are, requests/s, ISL, OSL, TTFT and TPOT limits.
type Question = (&'static str, &'static str, u64, f64, u64, u64, Option<&'static str>, Option<&'static str>);

const QUESTIONS: [Question; 24] = [
    ("Llama-3.1-8B", "h100-sxm", 8, 1.0, 1024, 256, None, None),
    ("Llama-3.1-8B", "h100-sxm", 8, 20.0, 1024, 256, Some("1 s"), Some("30 ms")),
    ("Llama-3.1-8B", "l40s", 8, 5.0, 2000, 200, Some("1 s"), Some("50 ms")),
    ("Llama-3.1-8B", "a100-sxm-80gb", 8, 10.0, 512, 512, None, Some("25 ms")),
    ("Llama-3.1-8B", "mi300x", 8, 30.0, 1000, 100, Some("500 ms"), None),
    ("Llama-3.1-8B", "l4", 8, 0.5, 1000, 100, None, None),
    ("Llama-3.3-70B", "h100-sxm", 16, 1.0, 1024, 256, None, None),
    ("Llama-3.3-70B", "h100-sxm", 16, 5.0, 4096, 256, Some("2 s"), Some("50 ms")),
    ("Llama-3.3-70B", "h200", 8, 3.0, 1024, 1024, Some("1 s"), Some("40 ms")),
    ("Llama-3.3-70B", "mi300x", 8, 2.0, 8192, 256, Some("3 s"), Some("60 ms")),
    ("Llama-3.3-70B", "b200", 8, 4.0, 2048, 512, None, Some("20 ms")),
    ("Llama-3.3-70B", "a100-sxm-80gb", 16, 0.5, 1024, 256, None, None),
    ("Qwen3-32B", "h100-sxm", 8, 2.0, 2048, 512, None, None),
    ("Qwen3-32B", "h100-sxm", 8, 8.0, 512, 128, Some("500 ms"), Some("25 ms")),
    ("Qwen3-32B", "l40s", 8, 0.5, 1024, 256, None, None),
    ("Qwen3-30B-A3B", "h100-sxm", 8, 10.0, 1024, 256, None, None),
    ("Qwen3-30B-A3B", "h200", 8, 40.0, 1024, 256, Some("1 s"), Some("20 ms")),
    ("gpt-oss-20b", "h100-sxm", 8, 10.0, 1024, 256, None, None),
    ("gpt-oss-120b", "h100-sxm", 8, 2.0, 1024, 512, None, None),
    ("gpt-oss-120b", "h200", 8, 10.0, 4096, 512, Some("2 s"), Some("20 ms")),
    ("gpt-oss-120b", "mi300x", 8, 5.0, 1024, 1024, None, Some("30 ms")),
    ("Mistral-Small-3.1-24B-Instruct-2503", "h100-sxm", 8, 4.0, 1024, 256, None, None),
    ("DeepSeek-V3", "h200", 16, 1.0, 1024, 256, None, None),
    ("DeepSeek-V3", "b200", 16, 5.0, 4096, 512, Some("2 s"), Some("40 ms")),
];

const OTHERS: [&str; 5] = ["throughput", "latency", "perf-per-dollar", "min-chips", "interactive"];

/// Cost of the winner, USD per output token, and its devices.
fn cost(scenario: &Scenario, limits: Option<&Scenario>) -> Option<(f64, u64)> {
    let mut problem = ask(scenario).unwrap_or_else(|fault| panic!("{scenario:?}: {fault}"));
    if let Some(limits) = limits {
        problem.limits = ask(limits).unwrap().limits;
    }
    problem.axes.clear();
    let best = run(&problem, &UNWATCHED).best?;
    Some((best.point[place(Metric::UsdPerMtok)], best.candidate.devices()))
}

#[test]
fn with_a_rate_no_plan_within_the_slos_is_cheaper_than_the_default() {
    let answered: usize = QUESTIONS
        .par_iter()
        .map(|&(model, device, devices, rate, isl, osl, ttft, tpot)| {
            let requested = |count: u64| Scenario {
                rate: Some(rate),
                risk: Some(Confidence::Median),
                evidence: Some(EvidenceRule::Any),
                isl: Some(isl),
                osl: Some(osl),
                ttft: ttft.map(Into::into),
                tpot: tpot.map(Into::into),
                ..on(model, &format!("{count}x{device}"))
            };
            let default = requested(devices);
            let name = format!("{model} on {devices}x{device} at {rate}/s");
            let (ours, used) = cost(&default, None).unwrap_or_else(|| panic!("{name}: infeasible"));
            assert!(ours.is_finite(), "{name} has no price");
            let mut count = 1;
            while count <= devices {
                for objective in OTHERS {
                    let other = Scenario { objective: Some(objective.into()), ..requested(count) };
                    if let Some((theirs, fewer)) = cost(&other, Some(&default)) {
                        let bound = theirs * (1.0 + 1e-9);
                        assert!(
                            ours <= bound,
                            "{name}: {ours} on {used}; {objective} on {fewer} of {count}: {theirs}"
                        );
                    }
                }
                count *= 2;
            }
            1
        })
        .sum();
    assert_eq!(answered, QUESTIONS.len());
}
