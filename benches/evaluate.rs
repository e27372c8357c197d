//! One full evaluation: a prompt and a round of decoding, to all metrics, in both readings.

use mantile::spec::offload::Offload;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use mantile::plan::parallel::ParallelPlan;
use mantile::quantity::ledger::Ledger;
use mantile::quantity::num::Qty;
use mantile::quantity::read::{Plain, Reading};
use mantile::search::problem::Problem;
use mantile::serving::evaluate::{Evaluation, Pool, aggregated};
use mantile::serving::instance::Instance;
use mantile::serving::iteration::prefill;
use mantile::serving::terms::{Demand, InstanceLoad};

#[path = "../tests/support/ask.rs"]
mod ask;

/// Instances side by side, their requests in flight.
const LOAD: InstanceLoad = InstanceLoad { concurrency: 64, offload: Offload::Nothing };

fn full<R: Reading>(
    read: &R,
    problem: &Problem,
    instance: &Instance,
    concurrency: u64,
) -> Evaluation<Qty<R::N>> {
    let machine = problem.formats[0].machine.read(read);
    let terms = problem.workload.read(read);
    let prompt = prefill(read, instance, &machine, &terms, &mut ());
    let pool = Pool {
        instance,
        replicas: 1,
        prompt,
        load: InstanceLoad { concurrency, ..LOAD },
        memory: None,
        prompt_context: None,
    };
    aggregated(read, &[pool], &machine, &terms, &Demand::Free, &mut ())
}

fn bench(criterion: &mut Criterion, name: &str, model: &str, hardware: &str, plan: ParallelPlan) {
    let problem = ask::ask(&ask::on(model, hardware)).unwrap_or_else(|fault| panic!("{fault}"));
    let layers = problem.graph.layers.value as u32;
    let instance = Instance::new(&problem.graph, plan, vec![layers], problem.tiers());
    let (machine, terms) = (problem.formats[0].plain(), problem.terms());
    let mut group = criterion.benchmark_group("evaluate");
    let mut load = 0;
    let mut next = move || {
        load = load % 256 + 1;
        black_box(load)
    };
    group.bench_function(format!("{name}, f64"), |bencher| {
        bencher.iter(|| {
            let prompt = prefill(&Plain, &instance, machine, terms, &mut ());
            let load = InstanceLoad { concurrency: next(), ..LOAD };
            let pool =
                Pool { instance: &instance, replicas: 1, prompt, load, memory: None, prompt_context: None };
            aggregated(&Plain, &[pool], machine, terms, &Demand::Free, &mut ())
        });
    });
    let prompt = prefill(&Plain, &instance, machine, terms, &mut ());
    group.bench_function(format!("{name}, load only, f64"), |bencher| {
        bencher.iter(|| {
            let load = InstanceLoad { concurrency: next(), ..LOAD };
            let pool =
                Pool { instance: &instance, replicas: 1, prompt, load, memory: None, prompt_context: None };
            aggregated(&Plain, &[pool], machine, terms, &Demand::Free, &mut ())
        });
    });
    group.bench_function(format!("{name}, traced"), |bencher| {
        bencher.iter(|| {
            let ledger = Ledger::new();
            full(&&ledger, &problem, &instance, next()).metrics.tpot.value()
        });
    });
    group.finish();
}

fn benches(criterion: &mut Criterion) {
    let tp8 = ParallelPlan { tp: 8, moe_tp: 8, ..ParallelPlan::SINGLE };
    bench(criterion, "llama-70b tp8", "Llama-3.3-70B-Instruct", "dgx-h100", tp8);
    let ep8 = ParallelPlan { dp: 8, ep: 8, ..ParallelPlan::SINGLE };
    bench(criterion, "deepseek-v3 dp8 ep8", "DeepSeek-V3", "dgx-h200", ep8);
}

criterion_group!(evaluate, benches);
criterion_main!(evaluate);
