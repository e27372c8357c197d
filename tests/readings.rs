//! One formula, many readings: the plain and the traced one agree bit for bit, and the traced one
//! knows where everything comes from.

use mantile::spec::offload::Offload;
use mantile::spec::role::Role;
use std::cell::RefCell;
use std::collections::BTreeSet;

use mantile::cost::roofline::Cost;
use mantile::plan::parallel::ParallelPlan;
use mantile::plan::parallel::Phase;
use mantile::plan::shard::{ShardedBlock, TaskStep};
use mantile::quantity::datum::{Grade, Source};
use mantile::quantity::dual::{Scaled, Slope};
use mantile::quantity::formula::Formula;
use mantile::quantity::ledger::{Explanation, Ledger, Op, Traced};
use mantile::quantity::num::{Num, Qty};
use mantile::quantity::read::{Plain, Reading};
use mantile::quantity::unit::{SECOND, USD};
use mantile::report::audit::inputs;
use mantile::request::build_candidate::candidate;
use mantile::search::candidate::{Candidate, PoolPlan};
use mantile::search::problem::{Problem, Traffic};
use mantile::search::shape::usual_cut;
use mantile::serving::economy::usd_per_phase_token;
use mantile::serving::evaluate::Evaluation;
use mantile::serving::first_wave::{first_wave, mean_from_start};
use mantile::serving::iteration::cycle;
use mantile::serving::mixed::{RankLoad, rank_step};
use mantile::serving::placed::{placed_stage, placed_step, request_alone};
use mantile::serving::static_batch::static_step;
use mantile::serving::step::CostObserver;
use mantile::serving::streamed::{arrival, transfer};
use mantile::serving::utilization::{bubble, mbu, mfu, prefill_tok_s, prompt_load};
use mantile::spec::correction::{CellCorrection, ShrunkFactor};
use mantile::spec::figure::Figure;
use mantile::spec::objective::METRICS;
use mantile::spec::percentile::Percentile;
use mantile::spec::runtime::StatedHold;
use mantile::spec::scenario::Scenario;
use mantile::store::prediction_intervals::model_key;
use mantile::store::resolved_scenario::ResolvedScenario;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::ask;
use crate::cases;

use cases::{Case, each_case};

/// Every number of every kernel and exchange.
#[derive(Default)]
struct Kernels(Vec<(String, f64)>);

impl<N: Num> CostObserver<N> for Kernels {
    fn on_operator(&mut self, phase: Phase, block: &ShardedBlock, step: &TaskStep, cost: &Cost<Qty<N>>) {
        let numbers = [
            cost.flops,
            cost.bytes,
            cost.wire,
            cost.compute_time,
            cost.memory_time,
            cost.time,
            cost.roofline_time,
        ];
        let name = format!("{}/{}/{}", phase.name(), block.name, step.name);
        self.0.extend(numbers.map(|number| (name.clone(), number.value())));
    }

    fn on_idle(&mut self, phase: Phase, what: &'static str, times: u64, time: Qty<N>) {
        self.0.push((format!("{} {times} {what}", phase.name()), time.value()));
    }
}

/// Every number that leaves an evaluation.
fn figures<N: Num>(evaluation: &Evaluation<Qty<N>>) -> Vec<(String, Qty<N>)> {
    let metrics = &evaluation.metrics;
    let named = METRICS.iter().filter_map(|entry| Some((entry.name.to_owned(), metrics.get(entry.metric)?)));
    let mut figures: Vec<_> = named.collect();
    figures.extend(metrics.usd_per_token_total.map(|usd| ("usd_per_token_total".to_owned(), usd)));
    figures.extend(evaluation.spilled.map(|bytes| ("spilled".to_owned(), bytes)));
    let held = &evaluation.memory;
    let memory = [held.weights, held.kv, held.activations, held.buffers, held.total, held.usable];
    figures.extend(memory.map(|bytes| ("memory".to_owned(), bytes)));
    for (name, step) in [("decode", &evaluation.decode), ("prefill", &evaluation.prefill)] {
        let times = [step.total, step.slowest, step.compute_time, step.memory_time];
        figures.extend(times.map(|time| (name.to_owned(), time)));
    }
    figures
}

fn evaluate<R: Reading>(case: &Case, read: &R) -> (Evaluation<Qty<R::N>>, Vec<(String, f64)>) {
    let mut kernels = Kernels::default();
    let mut problem = case.problem.clone();
    // More in flight than two pools hold moving, as measured deployments have.
    if case.candidate.is_disaggregated() {
        problem.traffic = Traffic::InFlight(1_000.into());
    }
    let evaluation = case.candidate.evaluate(read, &problem, &mut kernels);
    (evaluation, kernels.0)
}

/// A cache streamed to another device, as if the prompt were two layers.
fn arrives<R: Reading>(case: &Case, read: &R, shown: &Evaluation<Qty<R::N>>) -> Option<Qty<R::N>> {
    let machine = case.problem.formats[case.candidate.formats].machine.read(read);
    let layer = (shown.prefill.total, transfer(shown.memory.kv, machine.links.first()?, &machine.chip));
    Some(arrival(Qty::literal(0.0 * SECOND), [layer, layer]))
}

/// How much of its devices a prefill uses, as if it did `told.memory` of work.
fn uses<R: Reading>(case: &Case, read: &R, shown: &Evaluation<Qty<R::N>>) -> [Qty<R::N>; 7] {
    let machine = case.problem.formats[case.candidate.formats].machine.read(read);
    let terms = case.problem.workload.read(read);
    let (step, one) = (&shown.prefill, Qty::from(1.0));
    let flops = step.compute_time * machine.chip.weight_peak;
    let load = prompt_load(shown.metrics.requests_per_s, step.slowest, one);
    let usd = Qty::literal(1.0 * USD) / Qty::literal(1.0 * SECOND);
    let lengths = (terms.isl, terms.osl);
    let (prompts, outputs) = usd_per_phase_token(usd, load, shown.metrics.requests_per_s, lengths);
    [
        mfu(flops, &machine.chip, step.total),
        mbu(shown.memory.total, &machine.chip, step.total),
        bubble(step, Qty::from(2.0), one, cycle(step, one)),
        prefill_tok_s(shown.metrics.requests_per_s, terms.isl - terms.prefix, one),
        load,
        prompts,
        outputs,
    ]
}

/// The time of a request on devices in a row, as if two of them took the steps of the case.
fn placed<N: Num>(evaluation: &Evaluation<Qty<N>>) -> Qty<N> {
    let stages = [&evaluation.prefill, &evaluation.decode].map(|step| placed_stage(step.total, step.slowest));
    request_alone(placed_step(stages), evaluation.decode.total, Qty::from(3.0))
}

/// A step of prompts and requests together, of the first pool.
fn joined<R: Reading>(case: &Case, read: &R) -> Vec<(String, Qty<R::N>)> {
    let pool = &case.candidate.pools[0];
    let instance = &case.candidate.instances(&case.problem)[0];
    let machine = case.problem.formats[case.candidate.formats].machine.read(read);
    let of = |number: f64| Qty::from(number);
    let load = RankLoad {
        decoding: of(5.0),
        cached: of(300.0),
        prompts: of(2.0),
        new_tokens: of(100.0),
        prompt_cached: of(32.0),
        all_decoding: of(5.0 * pool.plan.dp as f64),
        all_new_tokens: of(200.0),
    };
    let (step, whole) = rank_step(read, instance, &load, &machine, &mut ());
    vec![("joined".to_owned(), step.total), ("joined_cycle".to_owned(), whole)]
}

/// Both phases of a static batch of 24 requests on the first pool.
fn batched<R: Reading>(case: &Case, read: &R) -> Vec<(String, Qty<R::N>)> {
    let machine = case.problem.formats[case.candidate.formats].machine.read(read);
    let terms = case.problem.workload.read(read);
    let instance = case.candidate.instances(&case.problem).swap_remove(0);
    let of = |phase| {
        let found = static_step(read, (&instance, phase), 24, &terms, &machine, &mut ());
        [found.step.total, found.memory.total, found.sequences, found.tokens, found.tok_s]
    };
    let all = [Phase::Prefill, Phase::Decode].map(of).concat();
    all.into_iter().map(|number| ("static".to_owned(), number)).collect()
}

fn same_bits(plain: &[(String, f64)], traced: &[(String, f64)]) -> Result<(), TestCaseError> {
    prop_assert_eq!(plain.len(), traced.len());
    for ((name, plain), (_, traced)) in plain.iter().zip(traced) {
        prop_assert_eq!(plain.to_bits(), traced.to_bits(), "{}: {} is not {}", name, plain, traced);
    }
    Ok(())
}

/// Every entry follows from the entries it names, which came before it.
fn follows(ledger: &Ledger) -> Result<(), TestCaseError> {
    let entries = ledger.entries();
    for (id, entry) in entries.iter().enumerate() {
        prop_assert!(entry.op.operands().iter().all(|&part| (part as usize) < id), "{:?}", entry);
        let at = |id: u32| entries[id as usize].value;
        let value = match entry.op {
            Op::Input(_) | Op::Literal => continue,
            Op::Add(a, b) => at(a) + at(b),
            Op::Sub(a, b) => at(a) - at(b),
            Op::Mul(a, b) => at(a) * at(b),
            Op::Div(a, b) => at(a) / at(b),
            Op::Max(a, b) => at(a).max(at(b)),
            Op::Min(a, b) => at(a).min(at(b)),
            Op::Smax(a, b) => ((at(a) * at(a)).powi(2) + (at(b) * at(b)).powi(2)).sqrt().sqrt(),
            Op::Pow(a, b) => libm::pow(at(a), at(b)),
            Op::Ceil(a) => at(a).ceil(),
            Op::Ln(a) => libm::log(at(a)),
            Op::Same(a) => at(a),
        };
        prop_assert_eq!(value.to_bits(), entry.value.to_bits(), "{:?}", entry);
    }
    Ok(())
}

fn sound(explanation: &Explanation) -> Result<(), TestCaseError> {
    prop_assert!(
        explanation.value.is_finite(),
        "`{}` at {} is not finite",
        explanation.symbol,
        explanation.path
    );
    let named = !explanation.symbol.is_empty();
    prop_assert!(
        !named || !explanation.source.is_empty(),
        "`{}` at {} has no source",
        explanation.symbol,
        explanation.path
    );
    explanation.parts.iter().try_for_each(sound)
}

/// The path of each metric is its own number; a step is made of numbers of its phase, and of inputs of it.
fn filed(ledger: &Ledger, evaluation: &Evaluation<Qty<Traced>>) -> Result<(), TestCaseError> {
    let metrics = &evaluation.metrics;
    let of_table = METRICS.iter().filter_map(|entry| Some((entry.name, metrics.get(entry.metric)?)));
    let others = [
        ("requests_per_s", metrics.requests_per_s),
        ("concurrency", metrics.in_flight),
        ("decode/memory", evaluation.memory.total),
        ("prefill", evaluation.prefill.total),
    ];
    for (path, number) in of_table.chain(others) {
        let found = ledger.find(path).and_then(|found| found.0.id());
        prop_assert!(
            found.is_some() && found == number.0.id(),
            "{} is {:?}, not {:?}",
            path,
            found,
            number.0.id()
        );
    }
    let entries = ledger.entries();
    for (phase, step) in [("prefill", evaluation.prefill), ("decode", evaluation.decode)] {
        let mut seen = BTreeSet::new();
        let mut pending: Vec<u32> =
            [step.total, step.slowest].iter().filter_map(|time| time.0.id()).collect();
        while let Some(id) = pending.pop() {
            let entry = &entries[id as usize];
            if !seen.insert(id) {
                continue;
            }
            let mut scopes = entry.path.split('/');
            // What exceeds the memory is streamed in every step.
            let elsewhere = ["constants", "workload"].contains(&scopes.clone().next().unwrap_or_default())
                || entry.path.ends_with("decode/memory/host");
            let own = scopes.any(|scope| scope == phase);
            let path = entry.path.clone();
            prop_assert!(entry.formula.is_none() || own || elsewhere, "{} of {} is at {}", id, phase, path);
            if !elsewhere {
                pending.extend(entry.op.operands());
            }
        }
    }
    Ok(())
}

/// What the traced reading promises of one case.
fn promises(case: &Case, seen: &RefCell<BTreeSet<usize>>) -> Result<(), TestCaseError> {
    let ledger = Ledger::new();
    let (plain, plain_kernels) = evaluate(case, &Plain);
    let (traced, traced_kernels) = evaluate(case, &&ledger);
    filed(&ledger, &traced)?;
    prop_assert_eq!(placed(&plain).value().to_bits(), placed(&traced).value().to_bits());
    for (plain, traced) in uses(case, &Plain, &plain).iter().zip(uses(case, &&ledger, &traced)) {
        prop_assert_eq!(plain.value().to_bits(), traced.value().to_bits());
    }
    let more = arrives(case, &Plain, &plain).map(|more| ("cache_arrival".to_owned(), more));
    let more = more
        .into_iter()
        .chain(batched(case, &Plain))
        .chain(joined(case, &Plain))
        .chain(from_start(case, &Plain));
    let plain: Vec<_> =
        figures(&plain).into_iter().chain(more).map(|(name, number)| (name, number.value())).collect();
    let more = arrives(case, &&ledger, &traced).map(|more| ("cache_arrival".to_owned(), more));
    let more = more
        .into_iter()
        .chain(batched(case, &&ledger))
        .chain(joined(case, &&ledger))
        .chain(from_start(case, &&ledger));
    let traced: Vec<_> = figures(&traced).into_iter().chain(more).collect();
    let read: Vec<_> = traced.iter().map(|(name, number)| (name.clone(), number.value())).collect();
    same_bits(&plain, &read)?;
    same_bits(&plain_kernels, &traced_kernels)?;
    derives(case, &plain)?;
    prop_assert_eq!(ledger.unit_errors(), Vec::<String>::new());
    follows(&ledger)?;
    for (name, number) in &traced {
        for leaf in ledger.leaves(*number) {
            prop_assert!(!leaf.source.trim().is_empty(), "{} of {} has no source", leaf.symbol, name);
        }
    }
    for (name, number) in traced.iter().filter(|(name, _)| EXPLAINED.contains(&name.as_str())) {
        let explanation = ledger.explain(*number, 4);
        prop_assert_eq!(explanation.value.to_bits(), number.value().to_bits(), "{}", name);
        sound(&explanation)?;
    }
    let named = ledger.entries();
    let named =
        named.iter().filter_map(|entry| entry.formula).map(|formula| std::ptr::from_ref(formula) as usize);
    seen.borrow_mut().extend(named);
    Ok(())
}

/// The reading with derivatives has the plain values, and its slopes are difference quotients.
fn derives(case: &Case, plain: &[(String, f64)]) -> Result<(), TestCaseError> {
    let inputs = inputs(&case.problem, &case.candidate);
    let input = &inputs[plain.len() * 7 % inputs.len()];
    let (dual, _) = evaluate(case, &Slope(input));
    let scaled = |factor: f64| {
        let (evaluation, _) = evaluate(case, &Scaled { input, factor });
        figures(&evaluation).into_iter().map(|(_, number)| number.value()).collect::<Vec<f64>>()
    };
    let step = 1e-5;
    let (up, down) = (scaled(1.0 + step), scaled(1.0 - step));
    for (at, (name, number)) in figures(&dual).into_iter().enumerate() {
        let (_, value) = plain[at];
        prop_assert_eq!(number.value().to_bits(), value.to_bits(), "{}", name);
        let (above, below) = ((up[at] - value) / step, (value - down[at]) / step);
        // At a kink of a maximum the two sides differ; the slope is one of them.
        let scale = value.abs().max(f64::MIN_POSITIVE);
        let near = |side: f64| (number.0.slope - side).abs() <= 1e-3 * scale.max(side.abs());
        let jumps = (above - below).abs() > 1e-2 * scale.max(above.abs());
        prop_assert!(
            jumps || near(above) || near(below),
            "{} by {}: {} is not {}",
            name,
            input.symbol,
            number.0.slope,
            above
        );
    }
    Ok(())
}

/// Numbers that users have explained.
const EXPLAINED: [&str; 5] = ["tpot", "ttft", "output_tok_s", "memory", "usd_per_mtok"];

fn formulas() -> Vec<&'static Formula> {
    [mantile::cost::formulas(), mantile::serving::formulas()].concat()
}

/// A deployment on a measured version of a runtime: some constants have multipliers by version alone.
fn of_a_version() -> Case {
    let (runtime, runtime_version) = (Some("sglang".into()), Some("0.5.9".into()));
    on_one_device(&Scenario { runtime, runtime_version, ..ask::on("Llama-3.1-8B", "1xh100-sxm") })
}

/// Requests that come at random, under a runtime whose prompts join the steps of others.
fn of_random_arrivals() -> Case {
    let (rate, percentile) = (Some(2.0), Some(Percentile::P90));
    on_one_device(&Scenario { rate, percentile, ..ask::on("Llama-3.1-8B", "1xh100-sxm") })
}

/// A server whose flags hold prompts back, with so many attention ranks.
fn of_held_prompts(runtime: &str, ranks: u64) -> Case {
    let scenario = Scenario { runtime: Some(runtime.into()), ..ask::on("Qwen3-30B-A3B", "dgx-h100") };
    let mut resolved = ResolvedScenario::resolve(&ask::CATALOG, &scenario).unwrap();
    let figure = |value| Figure::new(value, Source { grade: Grade::Stated, text: "a launch flag".into() });
    std::sync::Arc::make_mut(&mut resolved.runtime).scheduler.held =
        Some(StatedHold { steps: figure(20.0), tokens_ratio: figure(0.9) });
    let problem = resolved.problem().unwrap();
    let plan = ParallelPlan { dp: ranks, ep: ranks, ..ParallelPlan::SINGLE };
    let stages = usual_cut(&problem.graph, plan.pp);
    let pools = vec![PoolPlan { role: Role::Aggregated, plan, stages, replicas: 1, concurrency: 8 * ranks }];
    Case { problem, candidate: Candidate { formats: 0, pools, offload: Offload::Nothing } }
}

/// A plan, with other values of the catalogue.
fn of_a_plan(model: &str, plan: &str, set: Option<Vec<String>>) -> Case {
    let problem = ask::ask(&Scenario { set, ..ask::on(model, "1xh100-sxm") }).unwrap();
    let candidate = candidate(&problem, &plan.parse().unwrap()).unwrap();
    Case { problem, candidate }
}

/// A deployment with factors of its own measurements.
fn of_own_measurements() -> Case {
    let weight_format = Some("bf16".to_owned());
    let scenario = Scenario { weight_format, ..ask::on("Llama-3.1-8B", "1xh100-sxm") };
    let mut resolved = ResolvedScenario::resolve(&ask::CATALOG, &scenario).unwrap();
    let factor = || ShrunkFactor::of(&[0.2], [0.8, 1.25]);
    let correction = CellCorrection {
        model: model_key(&resolved.graph),
        hardware: resolved.cluster.device.id.clone(),
        weight_format: "bf16".into(),
        time: factor(),
        compute: factor(),
        memory: factor(),
        source: "one row".into(),
    };
    std::sync::Arc::make_mut(&mut resolved.runtime).corrections.push(correction);
    let (problem, plan) = (resolved.problem().unwrap(), ParallelPlan::SINGLE);
    let stages = usual_cut(&problem.graph, plan.pp);
    let pools = vec![PoolPlan { role: Role::Aggregated, plan, stages, replicas: 1, concurrency: 8 }];
    Case { problem, candidate: Candidate { formats: 0, pools, offload: Offload::Nothing } }
}

/// The TTFT of a benchmark that starts with all its clients at once.
fn from_start<R: Reading>(case: &Case, read: &R) -> Vec<(String, Qty<R::N>)> {
    let machine = case.problem.formats[case.candidate.formats].machine.read(read);
    let terms = case.problem.workload.read(read);
    let instance = case.candidate.instances(&case.problem).swap_remove(0);
    let wave = first_wave(read, (&instance, 64), &machine, &terms);
    let mean = mean_from_start(wave / 2.0, wave, Qty::from(10.0));
    vec![("first wave".to_owned(), wave), ("mean from the start".to_owned(), mean)]
}

fn on_one_device(scenario: &Scenario) -> Case {
    let (problem, plan) = (ask::ask(scenario).unwrap(), ParallelPlan::SINGLE);
    let stages = usual_cut(&problem.graph, plan.pp);
    let pools = vec![PoolPlan { role: Role::Aggregated, plan, stages, replicas: 1, concurrency: 8 }];
    Case { problem, candidate: Candidate { formats: 0, pools, offload: Offload::Nothing } }
}

#[test]
fn readings_agree_and_every_formula_is_read() {
    let seen = RefCell::new(BTreeSet::new());
    each_case(150, |case| promises(case, &seen));
    promises(&of_a_version(), &seen).unwrap();
    promises(&of_random_arrivals(), &seen).unwrap();
    promises(&of_own_measurements(), &seen).unwrap();
    let set = Some(vec!["runtime.memory.streamed=2 GiB".to_owned()]);
    promises(&of_a_plan("Llama-3.1-8B", "1 x tp1 @1, offload layers", set), &seen).unwrap();
    let image = Scenario { images: Some(1), ..ask::on("Llama-3.2-11B-Vision-Instruct", "1xh100-sxm") };
    promises(&on_one_device(&image), &seen).unwrap();
    promises(&of_a_plan("Qwen3-32B", "1 x tp1 @64, weights bf16, offload layers", None), &seen).unwrap();
    for (runtime, ranks) in [("sglang", 1), ("trtllm", 1), ("trtllm", 8)] {
        promises(&of_held_prompts(runtime, ranks), &seen)
            .unwrap_or_else(|fault| panic!("{runtime}, {ranks}: {fault}"));
    }
    for (model, plan) in
        [("Qwen3-30B-A3B", "1 x tp1 @1, host experts 20"), ("Llama-3.1-8B", "1 x tp1 @1, host layers 9")]
    {
        let (runtime, weight_format) = (Some("llama.cpp".into()), Some("gguf-q4_k_m".into()));
        let scenario = Scenario { runtime, weight_format, ..ask::on(model, "rtx-4090") };
        let problem = ask::ask(&scenario).unwrap();
        let candidate = candidate(&problem, &plan.parse().unwrap()).unwrap();
        promises(&Case { problem, candidate }, &seen).unwrap_or_else(|fault| panic!("{plan}: {fault}"));
    }
    let seen = seen.into_inner();
    let unread =
        formulas().into_iter().filter(|formula| !seen.contains(&(std::ptr::from_ref(*formula) as usize)));
    let unread: Vec<_> = unread.map(|formula| formula.symbol).collect();
    assert!(unread.is_empty(), "no case reads {unread:?}");
}

/// Every wait of the decode step that the host accounts for, with `requests` of each of `dp` attention ranks.
fn host(problem: &Problem, dp: u64, requests: u64) -> Vec<f64> {
    let plan = ParallelPlan { dp, ep: dp, ..ParallelPlan::SINGLE };
    let stages = usual_cut(&problem.graph, plan.pp);
    let pool = PoolPlan { role: Role::Aggregated, plan, stages, replicas: 1, concurrency: requests * dp };
    let candidate = Candidate { formats: 0, pools: vec![pool], offload: Offload::Nothing };
    let mut seen = Kernels::default();
    candidate.evaluate(&Plain, problem, &mut seen);
    seen.0.into_iter().filter(|(name, _)| name == "decode 1 host").map(|(_, time)| time).collect()
}

/// Each attention rank has a scheduler of its own.
#[test]
fn the_host_takes_as_long_for_a_rank_however_many_ranks_there_are() {
    let problem = ask::ask(&ask::on("Qwen3-30B-A3B", "dgx-h100")).unwrap();
    let alone = host(&problem, 1, 24);
    assert!(alone.len() == 1 && alone[0] > 0.0, "{alone:?}");
    for dp in [2, 4, 8] {
        assert_eq!(host(&problem, dp, 24), alone, "{dp} ranks");
    }
    assert!(host(&problem, 8, 25)[0] > alone[0]);
}

/// Whatever a runtime makes others wait: a request that is alone takes as long as its prompt and what the server takes.
#[test]
fn a_request_that_is_alone_waits_for_nobody() {
    each_case(100, |case| {
        let mut candidate = case.candidate.clone();
        let [pool] = &mut candidate.pools[..] else { return Ok(()) };
        pool.concurrency = 1;
        let mut problem = case.problem.clone();
        if matches!(problem.traffic, Traffic::Rate(_)) {
            return Ok(());
        }
        let ttft = |problem: &Problem| candidate.evaluate(&Plain, problem, &mut ()).metrics.ttft.value();
        let before = ttft(&problem);
        for pair in std::sync::Arc::make_mut(&mut problem.formats) {
            let chip = &mut pair.machine.chip;
            for wait in
                [&mut chip.step_wait, &mut chip.prompt_queue, &mut chip.prompt_burst, &mut chip.request_work]
            {
                wait.value = 10.0 * wait.value + 1.0;
            }
        }
        prop_assert_eq!(ttft(&problem).to_bits(), before.to_bits());
        Ok(())
    });
}
