//! Whole questions: a search, its reasons, a recommendation, from a node to 100,000 devices.

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use mantile::request::UNCONTROLLED;
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::request::recommend::{RecommendRequest, recommend};
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
    ]
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
    let reasons = [
        ("--why", OptimizeRequest { why: true, ..OptimizeRequest::default() }),
        ("infeasible", OptimizeRequest { scenario: infeasible, ..OptimizeRequest::default() }),
    ];
    for (name, request) in reasons {
        group.bench_function(name, |bencher| bencher.iter(|| optimize(&catalog, &request, &UNCONTROLLED)));
    }
    let scenario = Scenario { model: Some("gpt-oss-20b".into()), ..Scenario::default() };
    let request = RecommendRequest { scenario, ..RecommendRequest::default() };
    group
        .bench_function("recommend", |bencher| bencher.iter(|| recommend(&catalog, &request, &UNCONTROLLED)));
    group.finish();
}

criterion_group!(search, benches);
criterion_main!(search);
