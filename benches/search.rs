//! Whole searches: a node, a rack with pools apart, a cluster.

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::scenario::Scenario;

#[path = "../tests/support/ask.rs"]
mod ask;

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("search");
    group.sample_size(10).measurement_time(Duration::from_secs(10));
    let questions = [
        ("default", Scenario::default()),
        ("72 devices, pools apart", ask::on("DeepSeek-V3", "gb200-nvl72")),
        ("1024 devices", ask::on("Llama-3.3-70B-Instruct", "dgx-h100x1024")),
    ];
    for (name, scenario) in questions {
        let problem = ask::ask(&scenario).unwrap_or_else(|fault| panic!("{fault}"));
        group.bench_function(name, |bencher| bencher.iter(|| run(&problem, &UNWATCHED)));
    }
    group.bench_function("resolve", |bencher| bencher.iter(|| ask::ask(&Scenario::default())));
    group.finish();
}

criterion_group!(search, benches);
criterion_main!(search);
