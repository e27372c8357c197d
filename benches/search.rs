//! Whole questions: a search, its reasons, a recommendation, from a node to 100,000 devices.

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use mantile::request::UNCONTROLLED;
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::request::recommend::{RecommendRequest, recommend};
use mantile::search::fleet::{Bucket, Fleet, FleetBounds, FleetObjective, SystemKind, SystemSupply, mix};
use mantile::search::mip::solve::SolveBudget;
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;

#[path = "../tests/support/ask.rs"]
mod ask;

/// Questions by name. Growth is that of the last three, of the same devices.
fn searches() -> Vec<(&'static str, Scenario)> {
    let any = || Some("any".to_owned());
    let aim = |objective: &str| Scenario { objective: Some(objective.into()), ..Scenario::default() };
    let llama = |hardware: &str| ask::on("Llama-3.3-70B", hardware);
    vec![
        ("default", Scenario::default()),
        ("perf-per-watt", aim("perf-per-watt")),
        ("Llama-3.3-70B on 8 H200", llama("8xh200")),
        ("Llama-3.1-8B on 8 H200", ask::on("Llama-3.1-8B", "8xh200")),
        ("Mixtral-8x7B on 8 H100", ask::on("Mixtral-8x7B", "8xh100")),
        ("Qwen3-235B-A22B on 32 H200", ask::on("Qwen3-235B-A22B", "4x8xh200")),
        ("DeepSeek-V3 on 32 H200", ask::on("DeepSeek-V3", "4x8xh200")),
        ("DeepSeek-V3 on GB200 NVL72", ask::on("DeepSeek-V3", "gb200-nvl72")),
        ("any formats, 128 H100", Scenario { weight_format: any(), kv_format: any(), ..llama("16x8xh100") }),
        (
            "perf-per-watt, 1024 H100",
            Scenario { hardware: Some("128x8xh100".into()), ..aim("perf-per-watt") },
        ),
        ("1024 H100", llama("128x8xh100")),
        ("16384 H100", llama("2048x8xh100")),
        ("100000 H100", llama("12500x8xh100")),
        ("DeepSeek-V3 on 1024 H100", ask::on("DeepSeek-V3", "128x8xh100")),
        ("DeepSeek-V3 on 16384 H100", ask::on("DeepSeek-V3", "2048x8xh100")),
        ("DeepSeek-V3 on 100000 H100", ask::on("DeepSeek-V3", "12500x8xh100")),
        (
            "DeepSeek-V3 on 16384 H100 at 5000 requests/s",
            Scenario { rate: Some(5000.0), ..ask::on("DeepSeek-V3", "2048x8xh100") },
        ),
    ]
}

/// `kinds` kinds of system for `buckets` buckets of traffic; each kind serves most buckets, at rates of its own.
fn fleet(kinds: usize, buckets: usize) -> Fleet {
    let mut random = fastrand::Rng::with_seed(1);
    let bucket =
        |at: usize| Bucket { name: format!("b{at}"), model: 0, rate: 1.0 + at as f64 % 37.0, osl: 100 };
    let mut kind = |index: usize| {
        let usd_per_hour = 1.0 + random.f64() * 50.0;
        let rate = usd_per_hour * (0.5 + random.f64());
        SystemKind {
            name: format!("k{index}"),
            supply_index: index,
            model: 0,
            usd_per_hour,
            usd_per_hour_most: usd_per_hour,
            devices: 1 + index as u64 % 8,
            rates: (0..buckets)
                .map(|_| (random.f64() < 0.9).then_some(rate * (0.5 + random.f64())))
                .collect(),
        }
    };
    Fleet {
        kinds: (0..kinds).map(&mut kind).collect(),
        buckets: (0..buckets).map(bucket).collect(),
        supplies: (0..kinds).map(|at| SystemSupply { name: format!("s{at}"), available: None }).collect(),
    }
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("search");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    for (name, scenario) in searches() {
        let problem = ask::ask(&scenario).unwrap_or_else(|fault| panic!("{fault}"));
        group.bench_function(name, |bencher| bencher.iter(|| run(&problem, &UNWATCHED)));
    }
    group.bench_function("resolve", |bencher| bencher.iter(|| ask::ask(&Scenario::default())));
    let catalog = Catalog::default();
    let infeasible =
        Scenario { hardware: Some("1xh100".into()), ttft: Some("1ms".into()), ..Scenario::default() };
    let crowded = Scenario { concurrency: Some(4096), ..ask::on("DeepSeek-V3", "4x8xh200") };
    let tight = Some("3.4ms".into());
    let many = Scenario { rate: Some(1.4), tpot: tight, ..ask::on("DeepSeek-V3", "128x8xh100") };
    let of = |scenario: Scenario, why: bool| OptimizeRequest { scenario, why, ..OptimizeRequest::default() };
    let reasons = [
        ("--why", of(Scenario::default(), true)),
        ("--why, DeepSeek-V3 on 32 H200", of(ask::on("DeepSeek-V3", "4x8xh200"), true)),
        ("infeasible", of(infeasible, false)),
        ("infeasible, 4096 requests at once", of(crowded, false)),
        ("infeasible, 1.4 requests/s on 1,024 H100", of(many, false)),
    ];
    for (name, request) in reasons {
        group.bench_function(name, |bencher| bencher.iter(|| optimize(&catalog, &request, &UNCONTROLLED)));
    }
    let any = || Some("any".to_owned());
    let small = Scenario { model: Some("gpt-oss-20b".into()), ..Scenario::default() };
    let large = Scenario { model: Some("Llama-3.3-70B".into()), ..Scenario::default() };
    let formats = Scenario { weight_format: any(), kv_format: any(), ..large.clone() };
    for (name, scenario) in
        [("recommend", small), ("recommend, 70B", large), ("recommend, 70B in any formats", formats)]
    {
        let request = RecommendRequest { scenario, ..RecommendRequest::default() };
        group.bench_function(name, |bencher| bencher.iter(|| recommend(&catalog, &request, &UNCONTROLLED)));
    }
    let fleet = fleet(30, 1000);
    group.bench_function("fleet, 30 kinds for 1000 buckets", |bencher| {
        let solve =
            || mix(&fleet, FleetObjective::Cost, &FleetBounds::default(), &SolveBudget::default()).counts;
        bencher.iter(solve);
    });
    group.finish();
}

criterion_group!(search, benches);
criterion_main!(search);
